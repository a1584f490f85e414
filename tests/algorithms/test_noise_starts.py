"""Where a search for noise starts from."""

import numpy as np
import pytest
from numpy.random import RandomState
from numpy.testing import assert_allclose

from seminmf._algorithms import noise_starts
from seminmf._algorithms.noise import Search, SearchData, SearchModel


def problem(X, n_components, intercept=False, positive=False):
    observed = ~np.isnan(X)
    data = SearchData(
        np.where(observed, X, 0.0), observed.astype(float), np.ones(len(X)), np.zeros((1, 1))
    )
    frozen = np.zeros(n_components, dtype=bool)
    return Search.of(data, SearchModel(frozen, intercept, positive, "feature"))


def three_directions(n_samples=90):
    """Samples along three rows of three features each, with next to no noise."""
    random = RandomState(0)
    rows = np.kron(np.eye(3), np.ones(3)) * random.normal(size=(3, 9))
    amounts = random.gamma(2.0, size=(n_samples, 1)) * np.eye(3)[np.arange(n_samples) % 3]
    return amounts @ rows + 1e-4 * random.normal(size=(n_samples, 9)), rows


def cosines(found, rows):
    found = found / np.linalg.norm(found, axis=1, keepdims=True)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return found @ rows.T


@pytest.mark.parametrize("method", ["worst samples", "directions", "likely samples"])
def test_each_of_three_directions_is_found(method):
    X, rows = three_directions()
    found = noise_starts.METHODS[method](problem(X, 3), 3, RandomState(1))
    assert (cosines(found, rows).max(axis=0) > 0.999).all()


@pytest.mark.parametrize("method", noise_starts.METHODS)
@pytest.mark.parametrize("options", [{}, {"intercept": True}, {"positive": True}])
def test_numbers_also_where_little_is_observed(method, options):
    """More components than samples, gaps, a constant feature: finite, and of the right shape."""
    X = np.where(RandomState(2).random((5, 4)) < 0.5, np.nan, RandomState(3).normal(size=(5, 4)))
    X[:, 3] = 1.0
    found = noise_starts.METHODS[method](problem(X, 7, **options), 7, RandomState(4))
    assert found.shape == (7, 4)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("method", noise_starts.METHODS)
def test_units_of_features_do_not_matter(method):
    X, _ = three_directions()
    units = np.geomspace(0.1, 10, 9)
    plain, scaled = (
        noise_starts.METHODS[method](problem(data, 3), 3, RandomState(5)) for data in (X, X * units)
    )
    assert_allclose(scaled, plain * units, rtol=1e-6, atol=1e-9)


def test_samples_that_are_fitted_are_not_drawn_again():
    """Two samples differ from nothing: both are drawn, whatever the random numbers."""
    X = np.zeros((50, 6))
    X[7, :3], X[31, 3:] = [1.0, -2.0, 0.5], [2.0, 1.0, -1.0]
    for seed in range(5):
        found = noise_starts.likely_samples(problem(X, 2), 2, RandomState(seed))
        assert (cosines(found, X[[7, 31]]).max(axis=0) > 0.999).all()
