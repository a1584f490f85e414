"""The Skellam divergence: identities, accuracy near and far from a fit, hostile input."""

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mpmath import mpf
from pieces import called

from seminmf import skellam_divergence
from seminmf._model.cells import real_cell

# The first call compiles, which takes longer than hypothesis allows.
reproducible = settings(deadline=None, derandomize=True)

signed = st.floats(-1e6, 1e6)
rate = st.floats(0, 1e6)
positive = st.floats(1e-6, 1e6)


def exact_divergence(x, rate0, rate1, digits=60):
    """The printed formula, in many digits."""
    with mpmath.workdps(digits):
        x, rate0, rate1 = (mpf(float(v)) for v in (x, rate0, rate1))
        root = mpmath.sqrt(x * x + 4 * rate0 * rate1)
        own = rate0 if x >= 0 else rate1
        log = mpmath.log((abs(x) + root) / (2 * own)) if x else mpf(0)
        return abs(x) * log + rate0 + rate1 - root


def kullback_leibler(z, rate):
    return z * np.log(z / rate) - z + rate


def fits(rng, count, quality, dtype=np.float64):
    """Cells whose residual is `quality` times the rates."""
    rate0, rate1 = np.exp(rng.normal(0, 2, (2, count))).astype(dtype)
    x = rate0 - rate1 + quality * rng.normal(size=count) * (rate0 + rate1)
    return x.astype(dtype), rate0, rate1


@pytest.mark.parametrize("quality", [1e-12, 1e-6, 1e-3, 0.1, 1, 10])
def test_relative_accuracy_whatever_the_fit(quality):
    cells = fits(np.random.default_rng(0), 200, quality)
    for value, cell in zip(skellam_divergence(*cells), zip(*cells, strict=True), strict=True):
        wanted = exact_divergence(*cell)
        assert abs(value - wanted) <= 2e-14 * wanted


@pytest.mark.parametrize("quality", [1e-4, 1e-3, 0.1, 1])
def test_relative_accuracy_of_the_kernel_in_single_precision(quality):
    cells = fits(np.random.default_rng(1), 200, quality, np.float32)
    for cell in zip(*cells, strict=True):
        wanted = exact_divergence(*cell)
        assert abs(-called(real_cell)(*cell)[2] - wanted) <= 1e-5 * wanted


def test_relative_accuracy_at_all_sizes():
    rng = np.random.default_rng(2)
    x, rate0, rate1 = 10 ** rng.uniform(-300, 300, (3, 150))
    x *= rng.choice([-1, 1], 150)
    for value, *cell in zip(skellam_divergence(x, rate0, rate1), x, rate0, rate1, strict=True):
        wanted = exact_divergence(*cell, digits=700)
        assert abs(value - wanted) <= 2e-14 * wanted


@reproducible
@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_zero_where_the_difference_of_the_rates_is_met(rate0, rate1):
    rate0, rate1 = rate0 / 1024, rate1 / 1024  # their difference is exact
    assert skellam_divergence(rate0 - rate1, rate0, rate1) == 0


@reproducible
@given(signed, positive, positive)
def test_positive_elsewhere(x, rate0, rate1):
    residual = mpf(x) - mpf(rate0) + mpf(rate1)
    assume(abs(residual) > 1e-100)
    assert skellam_divergence(x, rate0, rate1) > 0


@reproducible
@given(signed, positive, positive, st.integers(-200, 200))
def test_homogeneous(x, rate0, rate1, power):
    factor = 2.0**power
    scaled = skellam_divergence(factor * x, factor * rate0, factor * rate1)
    wanted = factor * skellam_divergence(x, rate0, rate1)
    assert scaled == pytest.approx(wanted, rel=1e-13, abs=1e-290)


@reproducible
@given(signed, rate, rate)
def test_symmetric(x, rate0, rate1):
    assert skellam_divergence(x, rate0, rate1) == skellam_divergence(-x, rate1, rate0)


@reproducible
@given(positive, positive)
def test_kullback_leibler_for_one_rate(x, rate0):
    wanted = exact_divergence(x, rate0, 0.0)
    np.testing.assert_allclose(
        kullback_leibler(x, rate0), float(wanted), rtol=1e-9, atol=1e-9 * (x + rate0)
    )
    assert skellam_divergence(x, rate0, 0.0) == pytest.approx(float(wanted), rel=1e-13, abs=0)


@reproducible
@given(signed, positive, positive, st.floats(-0.99, 3))
def test_least_cost_of_a_difference(x, rate0, rate1, change):
    root = np.hypot(x, 2 * np.sqrt(rate0 * rate1))
    smaller = (2 * rate0 * rate1) / (abs(x) + root)
    value = skellam_divergence(x, rate0, rate1)

    def cost(smaller):
        larger = smaller + abs(x)
        sources = (larger, smaller) if x >= 0 else (smaller, larger)
        return kullback_leibler(sources[0], rate0) + kullback_leibler(sources[1], rate1)

    slack = 1e-10 * (rate0 + rate1 + abs(x))
    assert cost(smaller) == pytest.approx(value, abs=slack, rel=1e-9)
    assert cost(smaller * (1 + change)) >= value - slack


@reproducible
@given(signed, positive, positive, signed, positive, positive)
def test_jointly_convex(x, rate0, rate1, other_x, other_rate0, other_rate1):
    ends = skellam_divergence([x, other_x], [rate0, other_rate0], [rate1, other_rate1])
    middle = skellam_divergence(
        (x + other_x) / 2, (rate0 + other_rate0) / 2, (rate1 + other_rate1) / 2
    )
    assert middle <= ends.mean() * (1 + 1e-13) + 1e-13


@reproducible
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0, 1.7e308),
    st.floats(0, 1.7e308),
)
def test_never_negative_nor_nan(x, rate0, rate1):
    assert skellam_divergence(x, rate0, rate1) >= 0


def test_rates_of_zero():
    x = [0, 0, 0, 1, -1, 1, -1]
    rate0 = [0, 0, 3, 0, 2, 2, 0]
    rate1 = [0, 2, 0, 2, 0, 0, 0]
    wanted = [0, 2, 3, np.inf, np.inf, 1 - np.log(2), np.inf]
    np.testing.assert_allclose(skellam_divergence(x, rate0, rate1), wanted, rtol=1e-14)


def test_shapes_precision_and_nan():
    result = skellam_divergence(np.zeros((3, 1)), np.ones(2), 1.0)
    assert result.shape == (3, 2)
    assert np.isnan(skellam_divergence(np.nan, 1, 1))
    single = np.ones(2, np.float32)
    assert skellam_divergence(single, single, single).dtype == np.float32
    assert isinstance(skellam_divergence(1, 2, 3), np.float64)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, -2, 3), r"rate0 must be finite and >= 0; found -2\.0"),
        ((1, 2, np.inf), "rate1 must be finite and >= 0; found inf"),
        ((np.inf, 2, 3), "x must be finite; found inf"),
        (("one", 2, 3), "x must hold real numbers"),
    ],
)
def test_errors_name_the_argument_and_what_was_found(arguments, message):
    with pytest.raises(ValueError, match=message):
        skellam_divergence(*arguments)
