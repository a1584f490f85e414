"""Least squares with a price on activations: optimal by its conditions, with and without gaps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from seminmf._kernels.euclidean.priced import (
    NO_GAPS,
    ObservedCells,
    solve_bounded_features,
    solve_priced_rows,
    sum_for_features,
    sum_residuals,
)


def make(gaps, J=30, I=7, K=3, seed=0):
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(J, I)), rng.normal(size=(K, I))
    precision = rng.uniform(0.5, 2, (1, I))
    if gaps:
        precision = precision * (rng.random((J, I)) < 0.7)
    return X, W, precision, rng.normal(size=I), rng.uniform(0.05, 0.3, K)


def cells_of(precision):
    """Where precisions are above 0, if samples differ."""
    if len(precision) == 1:
        return NO_GAPS
    seen = precision > 0
    return ObservedCells(np.cumsum(seen.sum(axis=1)), np.nonzero(seen)[1].astype(np.int32))


@pytest.mark.parametrize("gaps", [False, True])
def test_activations_are_optimal(gaps):
    X, W, precision, centre, prices = make(gaps)
    values, weights = np.zeros((len(X), len(W))), np.random.default_rng(1).uniform(0.5, 2, len(X))
    cells = cells_of(precision)
    minimised = solve_priced_rows(X, precision, cells, weights, centre, W, prices, 2000, values)
    slopes = ((X - centre - values @ W) * precision) @ W.T - prices
    assert (values >= 0).all() and (values == 0).any() and (values > 0).any()
    assert np.abs(slopes[values > 0]).max() < 1e-4
    assert slopes[values == 0].max() <= 1e-4
    squares = np.sum(precision * (X - centre - values @ W) ** 2, axis=1)
    assert_allclose(minimised, weights @ (squares / 2 + values @ prices), rtol=1e-12)


@pytest.mark.parametrize("gaps", [False, True])
def test_sums_for_features(gaps):
    X, _, precision, _, _ = make(gaps)
    rng = np.random.default_rng(1)
    values, weights = rng.gamma(1.0, size=(30, 3)), rng.uniform(0.5, 2, 30)
    products, grams = np.zeros((3, 7)), np.zeros((3, 3, 7 if gaps else 1))
    sum_for_features(X, precision, cells_of(precision), weights, values, products, grams)
    seen = precision if gaps else np.ones((1, 7))
    seen = np.broadcast_to(seen, X.shape) * weights[:, None]
    assert_allclose(products, np.einsum("ji,jk,ji->ki", seen, values, X), rtol=1e-12)
    full = np.einsum("ji,jk,jl->kli", seen, values, values)
    lower = np.tril_indices(3)
    assert_allclose(grams[lower], full[lower] if gaps else full[lower][:, :1], rtol=1e-12)


def test_bounded_features():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(20, 3))
    gram, products = (A.T @ A)[:, :, None].copy(), rng.normal(size=(3, 5)) * 10
    values = np.zeros((3, 5))
    bounded = np.array([True, True, False])
    solve_bounded_features(gram, products, bounded, 5000, values)
    slopes = products - gram[:, :, 0] @ values
    assert (values[:2] >= 0).all() and (values[2] < 0).any()
    free = (values > 0) | ~bounded[:, None]
    assert np.abs(slopes[free]).max() < 1e-3 and slopes[~free].max() <= 1e-3


@pytest.mark.parametrize("gaps", [False, True])
def test_leverages_are_those_of_the_hat_matrix(gaps):
    X, W, precision, centre, _ = make(gaps)
    rng = np.random.default_rng(3)
    values = rng.gamma(1.0, size=(30, 3)) * (rng.random((30, 3)) < 0.6)
    weights = rng.uniform(0.5, 2, 30)
    squares, leverages = np.zeros(7), np.zeros(7)
    cells, least = cells_of(precision), np.zeros(3)
    sum_residuals(X, precision, cells, weights, centre, W, values, least, squares, leverages)
    residual = X - centre - values @ W
    expected = np.zeros(7)
    for j in range(30):
        p = precision[j if gaps else 0]
        D = (np.sqrt(p) * W[values[j] > 0]).T
        expected += weights[j] * np.diag(D @ np.linalg.pinv(D)) if D.size else 0
    seen = np.broadcast_to(precision > 0, X.shape)
    assert_allclose(squares, np.sum(weights[:, None] * residual**2 * seen, axis=0), rtol=1e-10)
    # A row with fewer cells than active components has a singular matrix, and a small ridge.
    assert_allclose(leverages, expected, rtol=1e-3)


def test_gaps_may_have_one_row_of_precisions():
    """Cells that are left out are gaps, whatever their precision; few are added one by one."""
    X, W, precision, centre, prices = make(False, J=20, I=40)
    seen = np.random.default_rng(3).random(X.shape) < np.linspace(0.02, 0.9, 20)[:, None]
    weights = np.ones(len(X))
    results = []
    for own in (precision, precision * seen):
        cells = cells_of(seen.astype(float))
        values, products, grams = np.zeros((20, 3)), np.zeros((3, 40)), np.zeros((3, 3, 40))
        total = solve_priced_rows(X, own, cells, weights, centre, W, prices, 500, values)
        sum_for_features(X, own, cells, weights, values, products, grams)
        results.append((total, values, products, grams))
    for one, other in zip(*results, strict=True):
        assert_allclose(one, other, rtol=1e-12)
    expected = np.einsum("ji,jk,ji->ki", precision * seen, values, X)
    assert_allclose(products, expected, rtol=1e-10, atol=1e-12)
