"""The size of a latent letter, by hidden cells."""

import numpy as np
import pytest

from seminmf import SkellamSNTF, select_n_components


def data(random, n_components=2):
    factors = [random.gamma(1, size=(25, n_components)), random.normal(size=(8, n_components))]
    signal = np.einsum("nr,jr,kr->njk", *factors, random.gamma(1, size=(7, n_components)))
    return signal + 0.3 * signal.std() * random.normal(size=signal.shape)


def test_the_number_of_components_is_found_by_hidden_cells():
    X = data(np.random.default_rng(0))
    model = SkellamSNTF("nr,jr,kr->njk", signed="jr", n_init=2)
    found = select_n_components(
        X, [1, 2, 3], estimator=model, criterion="heldout", n_folds=3, random_state=0
    )
    assert found.best == 2
    assert found.table["score"].idxmax() in (1, 2)


def test_one_of_several_letters_is_chosen():
    X = data(np.random.default_rng(1))
    model = SkellamSNTF("na,ab,jb,kb->njk", {"a": 2, "b": 1}, signed="jb", n_init=1)
    found = select_n_components(
        X, [1, 2], estimator=model, criterion="heldout", letter="b", n_folds=2, random_state=0
    )
    assert found.best == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "criterion must be 'heldout' for tensor models; found 'elbo'"),
        ({"criterion": "heldout", "letter": "j"}, "letter must be a latent letter of the model"),
    ],
)
def test_what_cannot_be_compared_is_told(options, sentence):
    model = SkellamSNTF("nr,jr,kr->njk", signed="jr")
    with pytest.raises(ValueError, match=sentence):
        select_n_components(data(np.random.default_rng(0)), [1, 2], estimator=model, **options)
