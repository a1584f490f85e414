"""How often a fit looks at all of its data: a file is as slow as it is read often."""

import warnings

import numpy as np
import pytest
from kinds import Sliced

from seminmf import BayesianSkellamSNMF, PriorLearner, SkellamSNMF
from seminmf._data.dense import DenseSource

N_SAMPLES, N_ITER = 60, 3


def passes(model):
    """How often a fit with a fixed number of iterations reads each sample."""
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, 2.0, (N_SAMPLES, 2)) @ rng.normal(size=(2, 7))
    source = Sliced(X + rng.normal(size=X.shape))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(max_iter=N_ITER, tol=0, n_init=1, random_state=0, n_jobs=1).fit(source)
    return sum(stop - start for start, stop in source.reads) / N_SAMPLES


@pytest.mark.parametrize(
    ("model", "others"),
    [
        # The check, the objective at the end, and what is explained.
        (SkellamSNMF(2, dispersion=0.0, solver="em", acceleration=None), 3),
        (BayesianSkellamSNMF(2, dispersion=1.0, noise=None, acceleration=None), 3),
        # The search for noise, the start and its objective as well; the end is known.
        (SkellamSNMF(2), 5),
    ],
)
def test_data_are_read_once_an_iteration(model, others):
    assert passes(model) == N_ITER + others


def test_the_first_matrix_of_a_stream_is_opened_three_times(monkeypatch):
    """When it comes, when it is fitted, and when its posterior gets correlations."""
    checked = []
    summarise = DenseSource.summarise

    def counted(self, *arguments):
        checked.append(1)
        return summarise(self, *arguments)

    monkeypatch.setattr(DenseSource, "summarise", counted)
    X = np.random.default_rng(0).normal(size=(40, 5))
    estimator = BayesianSkellamSNMF(1, dispersion=1.0, noise=None, random_state=0)
    PriorLearner(estimator).partial_fit(X)
    assert len(checked) == 3
