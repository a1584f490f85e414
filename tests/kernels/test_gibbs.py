"""Draws of activations against sums over a grid, and the sums that the components need."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest, truncnorm

from seminmf._algorithms.prior_draws import slice_draw
from seminmf._kernels.gibbs.features import draw_positive_features
from seminmf._kernels.gibbs.rows import CellNoise, Conditions, RowSums, draw_rows

K, I = 2, 3
NOTHING_KNOWN = np.empty((0, 0))


def conditions(shape, components=None, rate=0.7):
    rng = np.random.default_rng(3)
    components = rng.normal(size=(K, I)) if components is None else components
    variance = np.array([0.5, 1.0, 2.0])
    gram = (components / variance) @ components.T
    return Conditions(
        components, np.array([0.1, 0.0, -0.2]), np.full(K, shape), np.full(K, rate), gram
    ), variance


def draws(X, own, variance, known=NOTHING_KNOWN, n_draws=4000, weights=None, n_values=K):
    """Draws of a sample's activations, from as many copies of it, and the last sums."""
    activations = np.ones((len(X), K))
    weights = np.ones(len(X)) if weights is None else weights
    for seed in range(60):
        sums = RowSums.empty(K, n_values, I)
        draw_rows(X, 1.0, CellNoise(variance, known), own, weights, 2, seed, activations, sums)
    return activations, sums.symmetric()


@pytest.mark.parametrize("shape", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("gap", [False, True])
def test_means_and_spreads_are_those_of_the_density(shape, gap):
    own, variance = conditions(shape)
    x = np.array([1.5, np.nan if gap else -0.4, 0.8])
    found, _ = draws(np.tile(x, (20000, 1)), own, variance)
    # A grid in ln a, where a density with a pole at 0 has none.
    grid = np.exp(np.linspace(-40 if shape < 1 else -8, 2.5, 1500))
    first, second = np.meshgrid(grid, grid, indexing="ij")
    seen = ~np.isnan(x)
    log_density = shape * (np.log(first) + np.log(second)) - 0.7 * (first + second)
    for i in np.flatnonzero(seen):
        mean = first * own.components[0, i] + second * own.components[1, i] + own.centre[i]
        log_density -= (x[i] - mean) ** 2 / (2 * variance[i])
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    means = [float((density * part).sum()) for part in (first, second)]
    squares = [float((density * part**2).sum()) for part in (first, second)]
    product = float((density * first * second).sum())
    assert_allclose(found.mean(axis=0), means, rtol=0.03)
    assert_allclose((found**2).mean(axis=0), squares, rtol=0.06)
    assert_allclose((found[:, 0] * found[:, 1]).mean(), product, rtol=0.06)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_sums_are_those_of_the_rows(gaps, known):
    rng = np.random.default_rng(0)
    own, variance = conditions(1.0)
    X = rng.normal(size=(40, I))
    if gaps:
        X[rng.random(X.shape) < 0.3] = np.nan
    own_variance = rng.uniform(0.5, 2.0, size=X.shape) if known else NOTHING_KNOWN
    weights = rng.uniform(0.5, 2.0, size=40)
    found, sums = draws(X, own, variance, own_variance, weights=weights, n_values=K + 1)
    seen = ~np.isnan(X)
    q = seen / (variance + own_variance) if known else seen.astype(float)
    values = np.column_stack([found, np.ones(40)])
    filled = np.where(seen, X, 0.0)
    assert_allclose(sums.products, np.einsum("j,ji,jv,ji->vi", weights, q, values, filled))
    assert_allclose(sums.squares, np.einsum("j,ji,ji->i", weights, q, filled**2))
    assert_allclose(sums.counts, weights @ seen)
    grams = np.einsum("j,ji,jv,jw->vwi", weights, q, values, values)
    assert_allclose(sums.whole[:, :, None] + sums.grams, grams)
    assert_allclose(sums.totals, [weights @ found, weights @ np.log(found)])


def test_component_without_data_has_its_prior():
    own, variance = conditions(2.0, components=np.zeros((K, I)))
    found, _ = draws(np.zeros((5000, I)), own, variance)
    assert_allclose(found.mean(axis=0), 2.0 / 0.7, rtol=0.05)
    assert_allclose(found.var(axis=0), 2.0 / 0.49, rtol=0.1)


@pytest.mark.parametrize("mean", [-6.0, -0.5, 2.0])
def test_positive_draws_are_those_of_a_cut_normal_distribution(mean):
    n_features, size = 4000, 2.0
    values = np.ones((1, n_features))
    arguments = (np.full((1, 1, 1), size), np.full((1, n_features), mean * size))
    draw_positive_features(*arguments, np.full(n_features, 0.5), np.array([True]), 1, 7, values)
    deviation = 0.5 / np.sqrt(size)
    expected = truncnorm(-mean / deviation, np.inf, loc=mean, scale=deviation)
    assert kstest(values[0], expected.cdf).pvalue > 1e-3
    assert values.min() > 0


def test_a_density_that_is_no_number_ends():
    """Where data are out of range nothing is known of a shape, which then stays."""
    random = np.random.default_rng(0)
    for value in (np.nan, np.inf, -np.inf):
        assert slice_draw(lambda _, value=value: value, 1.5, random) == pytest.approx(1.5)
    # One that rises for ever is cut off.
    assert slice_draw(lambda log_shape: 1e3 * log_shape, 1.0, random) <= np.exp(11)
