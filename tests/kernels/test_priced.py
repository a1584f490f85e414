"""Least squares with a price on activations: optimal by its conditions, with and without gaps."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from seminmf._kernels.euclidean.priced import (
    Cells,
    RowGrams,
    solve_bounded_features,
    solve_priced_rows,
    sum_grams,
    sum_leverages,
    sum_products,
)
from seminmf._kernels.euclidean.priced_panels import panels_of, solve_priced_panels


def make(gaps, J=30, I=7, K=3, seed=0):
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(J, I)), rng.normal(size=(K, I))
    precision = rng.uniform(0.5, 2, (1, I))
    if gaps:
        precision = precision * (rng.random((J, I)) < 0.7)
    return X, W, precision, rng.normal(size=I), rng.uniform(0.05, 0.3, K)


def cells_of(precision, shape=(30, 7)):
    """Where precisions are above 0."""
    return Cells.of(np.broadcast_to(precision > 0, shape), gaps=len(precision) == 1)


def grams_of(W, precision):
    return RowGrams.of(W.T, precision)


@pytest.mark.parametrize("gaps", [False, True])
def test_activations_are_optimal(gaps):
    X, W, precision, centre, prices = make(gaps)
    values, weights = np.zeros((len(X), len(W))), np.random.default_rng(1).uniform(0.5, 2, len(X))
    cells, grams = cells_of(precision), grams_of(W, precision)
    minimised = solve_priced_rows(X, cells, weights, centre, grams, prices, 2000, values)
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
    products = sum_products(X, precision, weights, values)
    sums = RowGrams.of(values, np.ascontiguousarray((weights[:, None] * precision).T))
    grams = sum_grams(Cells.of(np.broadcast_to(precision > 0, X.shape), gaps=False), sums)
    seen = np.broadcast_to(precision, X.shape) * weights[:, None]
    assert_allclose(products, np.einsum("ji,jk,ji->ki", seen, values, X), rtol=1e-12)
    assert_allclose(grams, np.einsum("ji,jk,jl->ikl", seen, values, values), rtol=1e-12)


def test_bounded_features():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(20, 3))
    gram, products = (A.T @ A)[None].copy(), rng.normal(size=(3, 5)) * 10
    values = np.zeros((3, 5))
    bounded = np.array([True, True, False])
    solve_bounded_features(gram, products, bounded, 5000, values)
    slopes = products - gram[0] @ values
    assert (values[:2] >= 0).all() and (values[2] < 0).any()
    free = (values > 0) | ~bounded[:, None]
    assert np.abs(slopes[free]).max() < 1e-3 and slopes[~free].max() <= 1e-3


@pytest.mark.parametrize("gaps", [False, True])
def test_leverages_are_those_of_the_hat_matrix(gaps):
    _, W, precision, _, _ = make(gaps)
    rng = np.random.default_rng(3)
    values = rng.gamma(1.0, size=(30, 3)) * (rng.random((30, 3)) < 0.6)
    weights = rng.uniform(0.5, 2, 30)
    cells, grams, least = cells_of(precision), grams_of(W, precision), np.zeros(3)
    leverages = sum_leverages(cells, weights, grams, values, least)
    expected = np.zeros(7)
    for j in range(30):
        p = precision[j if gaps else 0]
        D = (np.sqrt(p) * W[values[j] > 0]).T
        expected += weights[j] * np.diag(D @ np.linalg.pinv(D)) if D.size else 0
    # A row with fewer cells than active components has a singular matrix, and a small ridge.
    assert_allclose(leverages, expected, rtol=1e-3)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9, 1.0])
def test_gaps_taken_off_are_as_cells_added_up(share):
    """Where precisions are the same for all samples, whichever is fewer is summed up."""
    X, W, precision, centre, prices = make(False, J=20, I=40)
    rng = np.random.default_rng(3)
    seen = rng.random(X.shape) < share
    weights, least = rng.uniform(0.5, 2, len(X)), np.zeros(3)
    results = []
    for own in (precision, precision * seen):
        cells = Cells.of(seen, gaps=len(own) == 1)
        assert cells.of_samples.are_gaps.any() == (share >= 0.5 and len(own) == 1)
        values, grams = np.zeros((20, 3)), grams_of(W, own)
        total = solve_priced_rows(X, cells, weights, centre, grams, prices, 500, values)
        leverages = sum_leverages(cells, weights, grams, values, least)
        sums = sum_grams(cells, RowGrams.of(values, weights[None]))
        results.append((total, values, leverages, sums))
    for one, other in zip(*results, strict=True):
        assert_allclose(one, other, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("J", [1, 31, 32, 70])
@pytest.mark.parametrize("rounds", [1, 5, 2000])
def test_panels_are_as_rows(J, rounds):
    """Samples side by side, with some in the last panel: what each one finds on its own."""
    X, W, precision, centre, prices = make(False, J=J, I=9, K=4, seed=J)
    W[1] = 0.0
    start = np.random.default_rng(5).gamma(1.0, size=(J, 4))
    cells, grams = cells_of(precision, X.shape), grams_of(W, precision)
    weights = np.random.default_rng(6).uniform(0.5, 2, J)
    rows, values = start.copy(), start.copy()
    minimised = solve_priced_rows(X, cells, weights, centre, grams, prices, rounds, rows)
    own = precision[0], centre, W, grams.whole, prices, rounds, values
    quadratics = solve_priced_panels(panels_of(X), *own)
    assert_allclose(values, rows, rtol=1e-10, atol=1e-12)
    squares = np.sum(precision * (X - centre) ** 2, axis=1)
    assert_allclose(weights @ (squares / 2 + quadratics), minimised, rtol=1e-10)


def test_leverages_of_some_samples_stand_for_all():
    """Many components: samples that are all alike have the same leverages, whoever is asked."""
    _, W, precision, _, _ = make(False, J=1, I=70, K=64)
    values = np.random.default_rng(3).gamma(1.0, size=(1, 64))
    grams, found = grams_of(W, precision), []
    for n in (1, 300):
        own = np.full(n, 1 / n), grams, np.repeat(values, n, axis=0), np.zeros(64)
        found.append(sum_leverages(cells_of(precision, (n, 70)), *own))
    assert found[0].sum() == pytest.approx(64)
    assert_allclose(found[1], found[0], rtol=1e-9)
