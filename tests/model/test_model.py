"""The model: factors in their order, priors by name, and the part of some samples."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from seminmf._model.likelihoods import Real
from seminmf._model.model import PARAMETERS, Model, Priors, split_signed

J, K, I = 5, 3, 4


def make_priors(by_sample=True):
    random = np.random.default_rng(0)
    return Priors.of(
        activation_shape=random.uniform(1, 2, (J if by_sample else 1, K)),
        activation_rate=random.uniform(1, 2, (1, K)),
        atom_shape=random.uniform(1, 2, (2, K, I)),
    )


def make_model(priors, frozen=(1,)):
    mask = np.isin(np.arange(K), frozen)
    return Model.of(likelihood=Real(unit=4.0, dispersion=0.5), priors=priors, frozen=mask)


def test_priors_of_numbers_have_all_axes():
    priors = Priors.of(activation_shape=1.0, activation_rate=[0.1, 0.2], atom_shape=2.0)
    assert [part.ndim for part in priors.parameters.values()] == [2, 2, 3]
    assert tuple(priors.parameters) == PARAMETERS
    assert_array_equal(priors.activations.rate, [[0.1, 0.2]])
    assert priors.activations.n_rows == 1


def test_priors_come_back_by_name():
    priors = make_priors()
    again = Priors.of(**priors.parameters)
    for name, values in priors.parameters.items():
        assert_array_equal(again.parameters[name], values)


@pytest.mark.parametrize("name", PARAMETERS)
def test_components_are_told_apart_by_any_parameter(name):
    alike = {
        "activation_shape": np.ones((J, K)),
        "activation_rate": np.ones((1, 1)),
        "atom_shape": np.ones((2, K, I)),
    }
    assert not Priors.of(**alike).tell_components_apart()
    changed = np.ones((2, K, I) if name == "atom_shape" else (1, K))
    changed[:, 1] = 1.01
    priors = Priors.of(**alike | {name: changed})
    assert priors.tell_components_apart() and not priors.tell_components_apart(rtol=0.1)


def test_a_model_has_its_priors_and_factors():
    priors = make_priors()
    model = make_model(priors)
    assert model.n_components == K
    assert model.mass == 8.0
    assert model.priors is not priors and model.priors == priors
    assert [factor.has_samples for factor in model.factors] == [True, False]
    assert not model.activations.frozen.any() and model.atoms.frozen.sum() == 1
    other = Priors.of(activation_shape=1.0, activation_rate=1.0, atom_shape=1.0)
    assert model.with_priors(other).priors == other
    assert_array_equal(model.with_priors(other).atoms.frozen, model.atoms.frozen)


@pytest.mark.parametrize("by_sample", [False, True])
def test_the_model_of_some_samples(by_sample):
    priors, rows = make_priors(by_sample), np.array([3, 1])
    part = make_model(priors).of_samples(rows)
    shapes = np.broadcast_to(priors.activations.shape, (J, K))
    assert_array_equal(np.broadcast_to(part.activations.prior.shape, (2, K)), shapes[rows])
    assert_array_equal(part.activations.prior.rate, priors.activations.rate)
    assert_array_equal(part.atoms.prior.shape, priors.atoms.shape)


def test_frozen_components_keep_what_they_have():
    atoms = make_model(make_priors(), frozen=[0, 2]).atoms
    before, updated = np.zeros((2, K, I)), np.ones((2, K, I))
    kept = atoms.keep_frozen(updated, before)
    assert (kept[:, [0, 2]] == 0).all() and (kept[:, 1] == 1).all()


def test_signed_components_are_split_without_loss():
    components = np.random.default_rng(0).normal(size=(K, I))
    positive, negative = split_signed(components)
    assert_array_equal(positive - negative, components)
    assert_array_equal(positive + negative, np.abs(components))
