"""The Skellam and the diffnomial distribution: probabilities, moments, exact draws."""

import itertools

import mpmath
import numpy as np
import pytest
import scipy.stats
from exact import log_bessel
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from seminmf.special import log_hyp0f1_regularized
from seminmf.stats import diffnomial, skellam

# The first call compiles, which takes longer than hypothesis allows.
reproducible = settings(deadline=None, derandomize=True)

RATES = np.array([[1.0, 2.0, 0.5], [0.5, 0.0, 1.5]])


def exact_logpmf(x, rate0, rate1):
    """Paper, eq. Skellam-distribution, in many digits."""
    with mpmath.workdps(40):
        rate0, rate1 = mpf(float(rate0)), mpf(float(rate1))
        n, argument = abs(int(x)), 2 * mpmath.sqrt(rate0 * rate1)
        own = rate0 if x >= 0 else rate1
        if argument == 0:
            bessel = -mpmath.loggamma(n + 1)
        else:
            bessel = log_bessel(n, argument) - n * mpmath.log(argument / 2)
        return bessel - rate0 - rate1 + (n * mpmath.log(own) if n else 0)


def accurate(value, wanted):
    return abs(mpf(float(value)) - wanted) <= 1e-12 * max(1, abs(wanted))


def test_skellam_logpmf_against_mpmath():
    rng = np.random.default_rng(0)
    rate0, rate1 = 10 ** rng.uniform(-8, 6, (2, 150))
    spread = np.sqrt(rate0 + rate1)
    x = np.rint(rate0 - rate1 + rng.normal(size=150) * spread * rng.choice([1, 10], 150))
    for value, *cell in zip(skellam.logpmf(x, rate0, rate1), x, rate0, rate1, strict=True):
        assert accurate(value, exact_logpmf(*cell))


def test_skellam_pmf_against_scipy():
    x = np.arange(-30, 31)
    for rate0, rate1 in ((0.01, 0.02), (1, 2), (10, 3), (100, 120)):
        wanted = scipy.stats.skellam.pmf(x, rate0, rate1)
        np.testing.assert_allclose(skellam.pmf(x, rate0, rate1), wanted, rtol=1e-8, atol=1e-14)


def test_skellam_logpmf_by_the_formula_of_the_paper():
    x, rate0, rate1 = 7, 3.0, 5.0
    formula = log_hyp0f1_regularized(x + 1, rate0 * rate1) - rate0 - rate1 + x * np.log(rate0)
    assert skellam.logpmf(x, rate0, rate1) == pytest.approx(formula, rel=1e-13)


@pytest.mark.parametrize(("rate0", "rate1"), [(0.3, 0), (0.5, 2), (40, 30), (1e4, 2e4)])
def test_skellam_sums_to_one_with_its_moments(rate0, rate1):
    mean, var = skellam.mean(rate0, rate1), skellam.var(rate0, rate1)
    reach = int(12 * np.sqrt(var) + 40)
    x = np.arange(int(mean) - reach, int(mean) + reach + 1)
    weights = skellam.pmf(x, rate0, rate1)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    assert weights @ x == pytest.approx(mean, rel=1e-11)
    assert weights @ (x - mean) ** 2 == pytest.approx(var, rel=1e-11)


def test_skellam_with_one_rate_is_poisson():
    x = np.arange(-3, 40)
    wanted = scipy.stats.poisson.logpmf(x, 5.5)
    np.testing.assert_allclose(skellam.logpmf(x, 5.5, 0), wanted, rtol=1e-13)
    np.testing.assert_allclose(skellam.logpmf(-x, 0, 5.5), wanted, rtol=1e-13)


def test_skellam_impossible_values():
    np.testing.assert_array_equal(
        skellam.logpmf([0.5, 1, -1, 1, 0], [1, 0, 1, 0, 0], [1, 1, 0, 0, 0]),
        [-np.inf, -np.inf, -np.inf, -np.inf, 0],
    )
    assert np.isnan(skellam.logpmf(np.nan, 1, 1))


@reproducible
@given(
    st.integers(-(2**53), 2**53).map(float) | st.integers(-5, 5).map(float),
    st.floats(0, 1.7e308) | st.floats(0, 10),
    st.floats(0, 1.7e308) | st.floats(0, 10),
)
def test_skellam_logpmf_is_a_logarithm_of_a_probability(x, rate0, rate1):
    assert skellam.logpmf(x, rate0, rate1) <= 1e-14
    assert skellam.logpmf(x, rate0, rate1) == skellam.logpmf(-x, rate1, rate0)


@reproducible
@given(st.integers(-50, 50), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_skellam_recurrence(x, rate0, rate1):
    # x P(x) = rate0 P(x-1) - rate1 P(x+1), of positive terms if the negative one moves over.
    logs = skellam.logpmf([x - 1, x, x + 1], rate0, rate1)
    below, here, above = np.exp(logs - logs.max())
    left, right = rate0 * below + max(-x, 0) * here, rate1 * above + max(x, 0) * here
    assert left == pytest.approx(right, rel=1e-11)


def test_skellam_rvs():
    draws = skellam.rvs(3.0, 5.0, size=20000, random_state=0)
    values, counts = np.unique(draws, return_counts=True)
    expected = skellam.pmf(values, 3.0, 5.0) * draws.size
    common = expected > 10
    chi_square = ((counts[common] - expected[common]) ** 2 / expected[common]).sum()
    assert scipy.stats.chi2.sf(chi_square, common.sum() - 1) > 1e-3
    assert skellam.rvs([1.0, 2.0], [[3.0], [4.0]]).shape == (2, 2)
    np.testing.assert_array_equal(draws[:5], skellam.rvs(3.0, 5.0, 20000, 0)[:5])


def by_enumeration(x, rates, limit=24):
    """Mean of the sources by brute force over their two totals."""
    smaller = np.arange(limit)
    totals = np.stack([smaller + max(x, 0), smaller + max(-x, 0)])
    weights = np.prod(
        [scipy.stats.poisson.pmf(t, r) for t, r in zip(totals, rates.sum(axis=1), strict=True)],
        axis=0,
    )
    means = totals @ weights / weights.sum()
    return rates / rates.sum(axis=1, keepdims=True) * means[:, None]


@pytest.mark.parametrize("x", [-4, -1, 0, 2, 9])
def test_source_mean_by_enumeration(x):
    np.testing.assert_allclose(skellam.source_mean(x, RATES), by_enumeration(x, RATES), rtol=1e-12)


@reproducible
@given(
    st.integers(-(10**6), 10**6).map(float) | st.floats(-3, 3),
    st.floats(1e-300, 1e300) | st.floats(0.1, 10),
    st.floats(1e-300, 1e300) | st.floats(0.1, 10),
)
def test_source_mean_sums_to_the_difference(x, rate0, rate1):
    sources = skellam.source_mean(x, [[rate0, rate0 / 2], [rate1, rate1 / 4]])
    assert np.all(sources >= 0) and np.all(np.isfinite(sources))
    totals = sources.sum(axis=-1)
    assert totals[0] - totals[1] == pytest.approx(x, rel=1e-12, abs=1e-12 * totals.max())
    # Numbers below 1e-308 have fewer digits.
    np.testing.assert_allclose(sources[:, 0], sources[:, 1] * [2, 4], rtol=1e-12, atol=1e-320)


def test_source_mean_of_huge_rates():
    # The two totals differ by x and have the product rate0 rate1.
    np.testing.assert_allclose(skellam.source_mean(0, [[1e250], [1e240]]), 1e245, rtol=1e-13)
    np.testing.assert_allclose(
        skellam.source_mean(3e200, [[2e200], [2e200]]), [[4e200], [1e200]], rtol=1e-13
    )


def test_source_mean_shapes_and_empty_sides():
    assert skellam.source_mean([[1], [2]], np.ones((3, 2, 4))).shape == (2, 3, 2, 4)
    assert skellam.source_mean(1, np.ones((2, 4), np.float32)).dtype == np.float32
    # Without negative sources the positive ones share x as a multinomial does.
    np.testing.assert_allclose(
        skellam.source_mean(6, [[1.0, 2.0], [0.0, 0.0]]), [[2, 4], [0, 0]], rtol=1e-14
    )
    np.testing.assert_array_equal(skellam.source_mean(0, np.zeros((2, 3))), np.zeros((2, 3)))


def possible_sources(x, limit):
    """All tables of the shape of RATES with entries up to `limit` that agree with x."""
    tables = np.array(list(itertools.product(range(limit + 1), repeat=4)))
    # The source without a rate stays empty, and x settles the last one.
    z = np.zeros((len(tables), 2, 3))
    z[:, 0, :], z[:, 1, 0] = tables[:, :3], tables[:, 3]
    z[:, 1, 2] = z[:, 0].sum(axis=1) - z[:, 1, 0] - x
    return z[z[:, 1, 2] >= 0]


def test_diffnomial_sums_to_one_with_its_mean():
    x = 1
    z = possible_sources(x, limit=13)
    weights = diffnomial.pmf(z, x, RATES)
    assert weights.sum() == pytest.approx(1, rel=1e-6)  # the tables are cut off
    mean = np.tensordot(weights, z, axes=1)
    np.testing.assert_allclose(mean, diffnomial.mean(x, RATES), rtol=1e-5, atol=1e-12)


def test_diffnomial_logpmf_by_the_formula_of_the_paper():
    z = np.array([[2, 1, 0], [1, 0, 3]])
    x = -1
    with mpmath.workdps(30):
        sigma = mpf(3.5) * mpf(2)
        wanted = mpmath.log(mpmath.gamma(2) / mpmath.hyp0f1(2, sigma) / mpf(2))
        for count, rate in zip(z.ravel(), RATES.ravel(), strict=True):
            wanted += count * mpmath.log(rate) if count else 0
            wanted -= mpmath.loggamma(count + 1)
    assert accurate(diffnomial.logpmf(z, x, RATES), wanted)


def test_diffnomial_logpmf_for_large_rates():
    rates = np.array([[1e6, 3e5], [2e5, 5e5]])
    z = np.array([[1000300, 299900], [200100, 499500]])
    x = z[0].sum() - z[1].sum()
    wanted = -exact_logpmf(x, *rates.sum(axis=1))
    for count, rate in zip(z.ravel(), rates.ravel(), strict=True):
        wanted += exact_logpmf(count, rate, 0)
    assert accurate(diffnomial.logpmf(z, x, rates), wanted)


def test_diffnomial_with_one_sign_is_multinomial():
    z = np.array([[3, 1, 2], [0, 0, 0]])
    rates = [[1.0, 2.0, 0.5], [0.0, 0.0, 0.0]]
    wanted = scipy.stats.multinomial.logpmf(z[0], 6, np.array(rates[0]) / 3.5)
    assert diffnomial.logpmf(z, 6, rates) == pytest.approx(wanted, rel=1e-13)
    draws = diffnomial.rvs(6, rates, size=50, random_state=0)
    assert np.all(draws[:, 0].sum(axis=-1) == 6) and not draws[:, 1].any()


@pytest.mark.parametrize(
    "z",
    [
        [[2, 1, 0], [1, 0, 0]],  # the signed sum is not x
        [[2, 0, 0], [0, 1, 0]],  # a source without a rate
        [[3, -1, 0], [1, 0, 0]],
        [[1.5, 0.5, 0], [1, 0, 0]],
    ],
)
def test_diffnomial_impossible_values(z):
    assert diffnomial.logpmf(z, 1, RATES) == -np.inf
    assert diffnomial.pmf(z, 1, RATES) == 0


@pytest.mark.parametrize(
    ("n", "rate0", "rate1"),
    [(0, 2.0, 3.0), (3, 0.1, 0.2), (1, 1e-3, 50.0), (50, 1e3, 2e3), (400, 20.0, 30.0)],
)
def test_diffnomial_draws_of_the_totals(n, rate0, rate1):
    draws = diffnomial.rvs(n, [[rate0], [rate1]], size=100_000, random_state=1)[..., 0]
    assert np.all(draws[:, 0] - draws[:, 1] == n)
    smaller = np.arange(draws[:, 1].max() + 1)
    sources = np.stack([smaller + n, smaller], axis=-1)[..., None]
    probability = diffnomial.pmf(sources, n, [[rate0], [rate1]])
    # Few groups, and some for the tails: there a wrong bound would show.
    group = np.searchsorted([1e-3, 1e-2, 0.1, 0.3, 0.7, 0.9, 0.99, 0.999], np.cumsum(probability))
    expected = draws.shape[0] * np.bincount(group, probability)
    expected[-1] += draws.shape[0] - expected.sum()
    counts = np.bincount(group, np.bincount(draws[:, 1]))
    used = expected > 1
    chi_square = ((counts[used] - expected[used]) ** 2 / expected[used]).sum()
    assert scipy.stats.chi2.sf(chi_square, used.sum()) > 1e-3
    # k (k + n) p(k) = sigma p(k - 1): the mean of the product of the totals is sigma.
    product = draws.astype(float).prod(axis=-1)
    spread = product.std() / np.sqrt(product.size)
    assert abs(product.mean() - rate0 * rate1) <= 4 * spread


@pytest.mark.parametrize("x", [-3, 0, 1000])
@pytest.mark.parametrize("scale", [1.0, 1e10])
def test_diffnomial_draws_have_the_mean(x, scale):
    rates = scale * RATES
    draws = diffnomial.rvs(x, rates, size=20000, random_state=2)
    mean, spread = draws.mean(axis=0), draws.std(axis=0) / np.sqrt(draws.shape[0])
    assert np.all(np.abs(mean - diffnomial.mean(x, rates)) <= 4.5 * spread)


def test_diffnomial_rvs_shapes_and_seeds():
    x = np.array([[1], [-2]])
    draws = diffnomial.rvs(x, np.ones((3, 2, 4)), random_state=0)
    assert draws.shape == (2, 3, 2, 4)
    assert draws.dtype == np.int64
    np.testing.assert_array_equal(draws.sum(axis=-1) @ [1, -1], np.broadcast_to(x, (2, 3)))
    np.testing.assert_array_equal(draws, diffnomial.rvs(x, np.ones((3, 2, 4)), random_state=0))
    assert diffnomial.rvs(1, RATES, size=(5, 2)).shape == (5, 2, 2, 3)
    assert diffnomial.rvs(1, RATES, size=0).shape == (0, 2, 3)
    rng = np.random.default_rng(0)
    first, second = (diffnomial.rvs(1, RATES, 100, rng) for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: skellam.logpmf(1, -1, 2), r"rate0 must be finite and >= 0; found -1\.0"),
        (lambda: skellam.mean(1, -2), r"rate1 must be finite and >= 0; found -2\.0"),
        (lambda: skellam.logpmf(np.inf, 1, 2), "x must be finite; found inf"),
        (lambda: skellam.rvs(1e19, 1), r"rate0 must be at most 9e18; found 1e\+19"),
        (lambda: skellam.source_mean(1, [1, 2]), r"rates must have the shape \(\.\.\., 2, N\)"),
        (lambda: skellam.source_mean(-1, [[1], [0]]), r"x must be 0, or of a sign .* found -1\.0"),
        (lambda: diffnomial.logpmf([1, 2], 1, RATES), r"z must have the shape \(\.\.\., 2, N\)"),
        (lambda: diffnomial.mean(1, [[0], [3]]), r"x must be 0, or of a sign .* found 1\.0"),
        (lambda: diffnomial.rvs(0.5, RATES), r"x must be integer; found 0\.5"),
        (lambda: diffnomial.rvs(1, -RATES), "rates must be finite and >= 0"),
        (lambda: diffnomial.rvs(np.nan, RATES), "x and rates must be numbers; found NaN"),
        (lambda: diffnomial.rvs(1, 1e20 * RATES), r"x and rates must give sums below 2\^53"),
    ],
)
def test_errors_name_the_argument_and_what_was_found(call, message):
    with pytest.raises(ValueError, match=message):
        call()
