"""Least squares with so few observed cells that they do not decide: fills keep within reach."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from seminmf import EuclideanSNMF
from seminmf._data.dense import DenseSource
from seminmf._data.executor import LocalExecutor
from seminmf._kernels.euclidean.least_squares import GAP_WEIGHT
from seminmf._kernels.euclidean.nnls import solve_rows

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*have no observed cell:UserWarning"
)


def data(J=40, I=30, gaps=0.9, seed=0, dtype=np.float64):
    random = np.random.default_rng(seed)
    X = random.gamma(0.7, 2.0, (J, 3)) @ random.normal(size=(3, I))
    X += 0.3 * random.normal(size=(J, I))
    X[random.random(X.shape) < gaps] = np.nan
    return X.astype(dtype)


def assert_within_reach(model, X):
    """Finite, not far beyond what was observed, and never a fall."""
    most = 10 * np.nanmax(np.abs(X))
    fits = model.activations_.astype(float) @ model.components_
    for filled in (model.impute(X), fits):
        assert np.isfinite(filled).all()
        assert np.abs(filled).max() <= most
    assert np.diff(model.objectives_).min() >= 0


@pytest.mark.parametrize(
    ("J", "I", "gaps", "K", "init", "solver", "seed"),
    [
        (40, 30, 0.9, 5, "kmeans", "hals", 0),
        (30, 80, 0.9, 5, "kmeans", "hals", 1),
        (40, 30, 0.9, 20, "kmeans", "hals", 0),
        (30, 80, 0.5, 5, "kmeans", "hals", 0),
        (100, 20, 0.9, 20, "kmeans", "multiplicative", 0),
        (40, 30, 0.99, 20, "svd", "hals", 0),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fills_keep_within_reach(J, I, gaps, K, init, solver, seed, dtype):
    X = data(J, I, gaps, seed, dtype)
    model = EuclideanSNMF(K, init=init, solver=solver, max_iter=100, random_state=seed).fit(X)
    assert_within_reach(model, X)


@pytest.mark.slow
@pytest.mark.parametrize("init", ["random", "kmeans", "svd"])
@pytest.mark.parametrize("gaps", [0.5, 0.9, 0.99])
def test_fills_keep_within_reach_however_it_is_fitted(gaps, init):
    shapes, sizes, types = [(40, 30), (100, 20), (30, 80)], [5, 20], [np.float64, np.float32]
    for (J, I), K, dtype, seed, unit in itertools.product(shapes, sizes, types, range(2), [1, 1e4]):
        X = (unit * data(J, I, gaps, seed)).astype(dtype)
        model = EuclideanSNMF(K, init=init, max_iter=300, random_state=seed).fit(X)
        assert_within_reach(model, X)


def test_the_objective_counts_squares_in_gaps():
    X = data(gaps=0.5)
    model = EuclideanSNMF(3, max_iter=30, tol=0, random_state=0).fit(X)
    A, W, seen = model.activations_, model.components_, ~np.isnan(X)
    errors = np.where(seen, X - A @ W, 0.0)
    in_gaps = np.sum((A**2 @ W**2)[~seen])
    assert model.objective_ == pytest.approx(-0.5 * (np.sum(errors**2) + GAP_WEIGHT * in_gaps))


def test_a_solution_has_no_slope():
    X = data(gaps=0.8)
    components = np.random.default_rng(1).normal(size=(8, 30))
    found = solve_rows(DenseSource(X), 1.0, components, LocalExecutor())
    assert found.min() >= 0
    for x, values in zip(X, found, strict=True):
        seen = ~np.isnan(x)
        own, hidden = components[:, seen], components[:, ~seen]
        slope = own @ (values @ own - x[seen]) + GAP_WEIGHT * values * np.sum(hidden**2, axis=1)
        assert slope.min() > -1e-9
        assert np.abs(slope * values).max() < 1e-8


def test_complete_data_are_plain_least_squares():
    X = data(gaps=0.0)
    model = EuclideanSNMF(3, tol=1e-9, random_state=0).fit(X)
    best = np.linalg.lstsq(model.activations_, X, rcond=None)[0]
    assert_allclose(model.components_, best, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("unit", [1e-6, 1e6, 1e-100])
@pytest.mark.parametrize(("gaps", "K"), [(0.2, 3), (0.9, 5)])
def test_the_unit_of_x_does_not_matter(gaps, K, unit):
    X = data(gaps=gaps)
    one, other = (
        EuclideanSNMF(K, init="svd", max_iter=20, tol=0.0, random_state=0).fit(c * X)
        for c in (1.0, unit)
    )
    assert_allclose(other.activations_, one.activations_, rtol=1e-5, atol=1e-7)
    assert_allclose(other.components_ / unit, one.components_, rtol=1e-5, atol=1e-7)
    assert_allclose(other.transform(unit * X), one.transform(X), rtol=1e-5, atol=1e-7)


def test_transform_treats_each_row_alone_and_is_what_a_converged_fit_has():
    X = data(seed=3)
    X[np.isnan(X).all(axis=1), 0] = 1.0
    model = EuclideanSNMF(5, random_state=0).fit(X)
    assert model.converged_
    together = model.transform(X)
    assert_allclose(together, model.activations_, rtol=1e-6, atol=1e-9)
    assert_array_equal(np.concatenate([model.transform(x[None]) for x in X]), together)
    assert_allclose(model.transform(1e3 * X), 1e3 * together, rtol=1e-6, atol=1e-6)


def test_no_warning_of_numbers():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        EuclideanSNMF(20, init="kmeans", max_iter=50, random_state=0).fit(data(gaps=0.95))
