"""The rules for one cell that the passes use, against public functions and algebra."""

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_allclose

from seminmf import skellam_divergence
from seminmf._model.likelihoods import (
    Dispersed,
    DispersedLarge,
    DispersedMedium,
    Integer,
    Real,
    cell,
    curvature,
)
from seminmf._model.model import Background
from seminmf._numerics.bessel import LARGE, MEDIUM
from seminmf.stats import skellam

LIKELIHOODS = {"real": Real(1.0), "integer": Integer()}


@njit
def evaluate(likelihood, x, rate0, rate1, out):
    for n in range(x.size):
        out[0, n], out[1, n], out[2, n] = cell(likelihood, x[n], rate0[n], rate1[n])


@njit
def bend(likelihood, x, rate0, rate1, u0, u1, out):
    for n in range(x.size):
        out[n] = curvature(likelihood, x[n], rate0[n], rate1[n], u0[n], u1[n])


def cells(likelihood, x, rate0, rate1):
    out = np.empty((3, x.size), dtype=rate0.dtype)
    evaluate(LIKELIHOODS[likelihood], x, rate0, rate1, out)
    return out


def draw(n, dtype=np.float64, largest=5, smallest=-5, seed=0):
    """Rates over many orders, and a difference of counts that they make likely."""
    random = np.random.default_rng(seed)
    rate0, rate1 = 10 ** random.uniform(smallest, largest, (2, n))
    x = random.poisson(rate0) - random.poisson(rate1)
    return x.astype(dtype), rate0.astype(dtype), rate1.astype(dtype)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_log_likelihood_is_the_public_one(likelihood):
    x, rate0, rate1 = draw(5000)
    value = cells(likelihood, x, rate0, rate1)[2]
    if likelihood == "integer":
        expected = skellam.logpmf(x, rate0, rate1)
    else:
        expected = -skellam_divergence(x, rate0, rate1)
    # A residual is known to the rounding of its terms.
    rounding = 1e-15 * np.abs(x - rate0 + rate1)
    assert np.all(np.abs(value - expected) <= 2e-14 * np.maximum(1, np.abs(expected)) + rounding)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_expected_totals_differ_by_x(likelihood):
    x, rate0, rate1 = draw(5000)
    u0, u1, _ = cells(likelihood, x, rate0, rate1)
    total0, total1 = rate0 * u0, rate1 * u1
    assert_allclose(total0 - total1, x, atol=1e-14 * np.max([rate0, rate1]))
    if likelihood == "real":
        assert_allclose(total0 * total1, rate0 * rate1, rtol=1e-13)
    else:
        rates = np.stack([rate0, rate1], axis=-1)[..., None]
        expected = skellam.source_mean(x, rates)[..., 0]
        assert_allclose(np.stack([total0, total1], axis=-1), expected, rtol=1e-12)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_ratios_are_the_gradient(likelihood):
    """∂(−log-likelihood)/∂λ_s = 1 − U_s."""
    x, rate0, rate1 = draw(300, largest=2, smallest=-1)
    u0, u1, _ = cells(likelihood, x, rate0, rate1)
    for u, step0, step1 in ((u0, 1e-6 * rate0, 0), (u1, 0, 1e-6 * rate1)):
        above = cells(likelihood, x, rate0 + step0, rate1 + step1)[2]
        below = cells(likelihood, x, rate0 - step0, rate1 - step1)[2]
        assert_allclose((above - below) / (2 * (step0 + step1)), u - 1, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_gaps_say_nothing(likelihood):
    rate0, rate1 = np.array([1.0, 1e-95, 3.0]), np.array([2.0, 1e-95, 1e90])
    out = cells(likelihood, np.full(3, np.nan), rate0, rate1)
    assert_allclose(out, [[1] * 3, [1] * 3, [0] * 3], rtol=0, atol=0)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_no_nan_at_the_edges(likelihood):
    edges = np.array([1e-95, 1e-30, 1.0, 1e15])
    x, rate0, rate1 = (
        grid.ravel() for grid in np.meshgrid([-1e15, -7.0, 0.0, 1.0, 1e15], edges, edges)
    )
    assert np.isfinite(cells(likelihood, x, rate0, rate1)).all()


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_float32_agrees_with_float64(likelihood):
    x, rate0, rate1 = draw(5000, np.float32)
    single = cells(likelihood, x, rate0, rate1)
    double = cells(likelihood, *(array.astype(np.float64) for array in (x, rate0, rate1)))
    assert single.dtype == np.float32
    assert_allclose(single[:2], double[:2], rtol=3e-6)
    assert_allclose(single[2], double[2], rtol=3e-5, atol=3e-5)


def test_divergence_of_good_fits_in_float32():
    """Relative accuracy where the printed formula of D has none left."""
    random = np.random.default_rng(0)
    rate0, rate1 = random.uniform(1, 10, (2, 2000)).astype(np.float32)
    x = (rate0 - rate1 + 1e-3 * random.normal(size=2000) * (rate0 + rate1)).astype(np.float32)
    value = cells("real", x, rate0, rate1)[2]
    exact = -skellam_divergence(*(array.astype(np.float64) for array in (x, rate0, rate1)))
    residual = np.abs(x.astype(float) - rate0.astype(float) + rate1)
    told_apart = residual > 1e-5 * (rate0 + rate1)
    assert np.median(np.abs(value / exact - 1)[told_apart]) < 1e-4


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_curvature_is_that_of_the_hessian(likelihood):
    """q (U₀, −U₁)(U₀, −U₁)ᵀ: the Hessian for real cells; its largest eigenvalue for integers."""
    x, rate0, rate1 = draw(200, largest=3, smallest=-1, seed=1)
    u0, u1, _ = cells(likelihood, x, rate0, rate1)
    q = np.empty(x.size)
    bend(LIKELIHOODS[likelihood], x, rate0, rate1, u0, u1, q)
    vector = np.stack([u0, -u1])
    found = np.einsum("n,sn,tn->nst", q, vector, vector)
    hessian = np.empty((x.size, 2, 2))
    for t, (step0, step1) in enumerate(((1e-5 * rate0, 0 * rate1), (0 * rate0, 1e-5 * rate1))):
        above = cells(likelihood, x, rate0 + step0, rate1 + step1)
        below = cells(likelihood, x, rate0 - step0, rate1 - step1)
        hessian[:, :, t] = ((below - above)[:2] / (2 * (step0 + step1))).T
    values = np.linalg.eigvalsh((hessian + hessian.transpose(0, 2, 1)) / 2)
    assert (values[:, 0] <= 1e-4 * values[:, 1]).all()
    assert_allclose(np.trace(found, axis1=1, axis2=2), values[:, 1], rtol=2e-4)
    if likelihood == "real":
        scale = values[:, 1, None, None]
        assert_allclose(found / scale, hessian / scale, atol=2e-4)


# --- Large cells ---

SERIES = [(DispersedLarge, LARGE), (DispersedMedium, MEDIUM)]


def values(likelihood, x, rate0, rate1):
    out = np.empty((3, x.size), dtype=rate0.dtype)
    evaluate(likelihood, x, rate0, rate1, out)
    return out


def large_cells(n, least, seed=0):
    """Orders to 1e12 and arguments from 1e-8, near a fit and far from it."""
    random = np.random.default_rng(seed)
    size, argument = 10 ** random.uniform(0, 12, n), 10 ** random.uniform(-8, 12, n)
    side = (size + np.hypot(size, argument)) / 2
    other = argument**2 / (4 * side)
    side = side * np.exp(random.choice([0, 1e-3, 0.5], n) * random.normal(size=n))
    large = np.sqrt(size**2 + 4 * side * other) >= least
    x = size * random.choice([-1, 1], n)
    rate0, rate1 = np.where(x > 0, side, other), np.where(x > 0, other, side)
    return x[large], rate0[large], rate1[large]


@pytest.mark.parametrize(("kind", "least"), SERIES)
def test_large_cells_have_the_general_values(kind, least):
    x, rate0, rate1 = large_cells(20_000, least)
    assert len(x) > 10_000
    expected = values(Dispersed.of(1.0), x, rate0, rate1)
    found = values(kind.of(1.0), x, rate0, rate1)
    assert np.all(np.abs(found - expected) <= 1e-13 * np.maximum(1, np.abs(expected)))


@pytest.mark.parametrize(("kind", "least"), SERIES)
def test_large_cells_at_the_limit(kind, least):
    """The last term that is left out is largest where s is smallest."""
    random = np.random.default_rng(1)
    x = least * random.uniform(-1, 1, 5000)
    product = (least**2 - x**2) / 4
    rate0 = np.abs(x) + np.sqrt(product)
    rate1 = product / rate0
    expected = values(Dispersed.of(1.0), x, rate0, rate1)
    found = values(kind.of(1.0), x, rate0, rate1)
    assert np.all(np.abs(found - expected) <= 1e-13 * np.maximum(1, np.abs(expected)))


@pytest.mark.parametrize("kind", [DispersedMedium, DispersedLarge])
def test_large_cells_in_float32(kind):
    x, rate0, rate1 = (part.astype(np.float32) for part in large_cells(5000, 2 * LARGE, seed=2))
    inside = np.maximum(np.maximum(np.abs(x), rate0), rate1) < 1e6
    single = values(kind.of(1.0), x[inside], rate0[inside], rate1[inside])
    double = values(kind.of(1.0), *(part[inside].astype(float) for part in (x, rate0, rate1)))
    assert single.dtype == np.float32
    assert_allclose(single[:2], double[:2], rtol=3e-6)
    assert_allclose(single[2], double[2], rtol=3e-5, atol=3e-5)


@pytest.mark.parametrize("kind", [DispersedMedium, DispersedLarge])
def test_a_large_cell_in_a_gap_says_nothing(kind):
    found = values(kind.of(1.0), np.array([np.nan]), np.array([1e4]), np.array([2e4]))
    assert_allclose(found[:, 0], [1, 1, 0])


@pytest.mark.parametrize(
    ("noise", "intercept", "kind"),
    [
        (29.0, 0.0, Dispersed),
        (31.0, 0.0, DispersedMedium),
        (299.0, 0.0, DispersedMedium),
        (301.0, 0.0, DispersedLarge),
        (301.0, 500.0, DispersedMedium),
    ],
)
def test_large_cells_are_those_of_much_noise(noise, intercept, kind):
    background = Background(np.array([[noise, 1e6]]), np.array([intercept, 0.0]))
    assert type(Dispersed.of(0.1).with_roots_above(background.least_root)) is kind
    lowest = 2 * np.sqrt(background.rates.prod(axis=0)).min()
    assert_allclose(background.least_root, lowest)
