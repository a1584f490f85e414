"""The public special functions: accuracy against mpmath, identities, hostile input."""

import math

import mpmath
import numpy as np
import pytest
from exact import log_bessel
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf
from scipy.special import digamma

from seminmf.special import bessel_ratio, exp_digamma, inverse_digamma, log_hyp0f1_regularized

TOLERANCE = 1e-12
# The first call compiles, which takes longer than hypothesis allows.
reproducible = settings(deadline=None, derandomize=True)

any_size = st.floats(0, 1.7e308) | st.floats(0, 10) | st.integers(0, 10**6).map(float)


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workdps(40):
        yield


def error(value, wanted):
    """Error relative to max(1, |value|), the promise of the library."""
    return float(abs(mpf(float(value)) - wanted) / max(1, abs(wanted)))


def orders_and_arguments(seed, count):
    rng = np.random.default_rng(seed)
    orders = np.concatenate(
        [rng.integers(0, 60, count), np.floor(10 ** rng.uniform(0, 6, count)), [0, 0, 1e6, 1e6]]
    )
    arguments = np.concatenate([10 ** rng.uniform(-8, 7, 2 * count), [1e-8, 1e7, 1e-8, 1e7]])
    return orders, arguments


def test_bessel_ratio():
    nu, z = orders_and_arguments(0, 60)
    for order, argument, value in zip(nu, z, bessel_ratio(nu, z), strict=True):
        wanted = mpmath.exp(log_bessel(order + 1, argument) - log_bessel(order, argument))
        assert abs(value - wanted) <= 1e-14 * wanted  # relative, which is more than promised


def test_log_hyp0f1_regularized():
    n, z = orders_and_arguments(1, 60)
    for order, argument, value in zip(n, z, log_hyp0f1_regularized(n + 1, z), strict=True):
        bessel_argument = 2 * mpmath.sqrt(mpf(argument))
        wanted = log_bessel(order, bessel_argument) - order * mpmath.log(bessel_argument / 2)
        assert error(value, wanted) <= TOLERANCE


@pytest.mark.parametrize("z", [0.0, 1e-8, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("b", [1e-8, 0.1, 0.5, 1.0, 1.5, 33.25])
def test_log_hyp0f1_regularized_for_small_parameters(b, z):
    wanted = mpmath.log(mpmath.hyp0f1(mpf(b), mpf(z)) / mpmath.gamma(mpf(b)))
    assert error(log_hyp0f1_regularized(b, z), wanted) <= TOLERANCE


@pytest.mark.parametrize("z", [1e5, 1e6, 1e7])
def test_log_hyp0f1_regularized_where_its_large_terms_cancel(z):
    low, high = 10.0, 1e5  # the zero of the logarithm lies between
    while high - low > 0.1:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if log_hyp0f1_regularized(middle, z) > 0 else (low, middle)
    b = float(round(low))
    argument = 2 * mpmath.sqrt(mpf(z))
    wanted = log_bessel(b - 1, argument) - (b - 1) * mpmath.log(argument / 2)
    assert abs(wanted) < 5 < 0.01 * argument
    assert error(log_hyp0f1_regularized(b, z), wanted) <= TOLERANCE


def test_exp_digamma():
    rng = np.random.default_rng(2)
    x = np.concatenate([10 ** rng.uniform(-2.8, 6, 200), [1e-300, 1e-3, 1e300]])
    for point, value in zip(x, exp_digamma(x), strict=True):
        with mpmath.workdps(40 + max(0, int(math.log10(point)))):
            wanted = mpmath.exp(mpmath.digamma(mpf(point)))
        assert abs(value - wanted) <= 1e-13 * wanted + np.finfo(float).tiny


def test_inverse_digamma():
    rng = np.random.default_rng(3)
    y = np.concatenate(
        [rng.uniform(-20, 20, 150), -(10 ** rng.uniform(0, 10, 50)), rng.uniform(17, 700, 50)]
    )
    for level, x in zip(y, inverse_digamma(y), strict=True):
        x = mpf(x)
        # digamma(x) is ln(x) - 1/(2x) to many digits for the largest.
        large = x > 1e30
        level_of_x = mpmath.log(x) - 1 / (2 * x) if large else mpmath.digamma(x)
        slope = 1 / x if large else mpmath.psi(1, x)
        assert abs((level_of_x - mpf(level)) / slope) <= TOLERANCE * x


@reproducible
@example(0.0, 3285340743794689.0)
@given(any_size, any_size)
def test_no_nan_comes_out_of_finite_input(a, b):
    ratio = bessel_ratio(a, b)
    assert 0 <= ratio <= 1
    assert not np.isnan(log_hyp0f1_regularized(max(a, 1e-300), b))
    assert 0 <= exp_digamma(a) <= a + 1e-300
    assert inverse_digamma(b) >= 0 and inverse_digamma(-b) >= 0


@reproducible
@given(st.floats(0, 1e6), st.floats(1e-6, 1e7))
def test_recurrence_of_the_bessel_ratio(nu, z):
    ratio, above = bessel_ratio([nu, nu + 1], z)
    assert ratio * (2 * (nu + 1) / z + above) == pytest.approx(1, rel=1e-13)
    assert above < ratio < 1


@reproducible
@given(st.floats(1e-3, 1e3), st.floats(0, 1e5))
def test_recurrence_of_the_hypergeometric_function(b, z):
    # F_b = b F_{b+1} + z F_{b+2}
    first, second, third = log_hyp0f1_regularized([b, b + 1, b + 2], z)
    wanted = second + np.log(b + z * np.exp(third - second))
    assert first == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@reproducible
@given(st.floats(2e-3, 1e15))
def test_recurrence_of_exp_digamma(x):
    assert exp_digamma(x + 1) == pytest.approx(exp_digamma(x) * np.exp(1 / x), rel=1e-12)


@reproducible
@given(st.floats(1e-9, 1e15))
def test_inverse_digamma_inverts(x):
    assert inverse_digamma(digamma(x)) == pytest.approx(x, rel=1e-12 + 1e-15 * abs(digamma(x)))


def test_limits():
    assert bessel_ratio(3, 0) == 0
    assert bessel_ratio(3, 1e-200) == pytest.approx(1e-200 / 8, rel=1e-14, abs=0)
    assert bessel_ratio(0, 1e308) == 1
    assert bessel_ratio(3e200, 4e200) == pytest.approx(4 / (3 + 5), rel=1e-14)
    assert log_hyp0f1_regularized(1, 0) == pytest.approx(0, abs=1e-14)
    assert log_hyp0f1_regularized(1, 1e300) == pytest.approx(2e150, rel=1e-14)
    assert log_hyp0f1_regularized(1e200, 1) == pytest.approx(-1e200 * (200 * np.log(10) - 1))
    np.testing.assert_array_equal(exp_digamma([0, 1e-310, np.inf]), [0, 0, np.inf])
    np.testing.assert_array_equal(inverse_digamma([-np.inf, np.inf, 800]), [0, np.inf, np.inf])


FUNCTIONS = [(bessel_ratio, 2), (log_hyp0f1_regularized, 2), (exp_digamma, 1), (inverse_digamma, 1)]


@pytest.mark.parametrize(("function", "n_arguments"), FUNCTIONS)
def test_shapes_precision_and_nan(function, n_arguments):
    arguments = [np.linspace(1, 3, 3), np.linspace(1, 2, 2)[:, None]][:n_arguments]
    result = function(*arguments)
    assert result.shape == np.broadcast_shapes(*(a.shape for a in arguments))
    assert result.dtype == np.float64
    single = function(*(a.astype(np.float32) for a in arguments))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, result.astype(np.float32))
    assert function(*(a[..., :0] for a in arguments)).size == 0
    assert isinstance(function(*([1.5] * n_arguments)), np.float64)
    assert isinstance(function(*([np.float32(1.5)] * n_arguments)), np.float32)
    assert function(*([2] * n_arguments)) == function(*([2.0] * n_arguments))
    for position in range(n_arguments):
        with_nan = [1.0] * n_arguments
        with_nan[position] = np.nan
        assert np.isnan(function(*with_nan))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bessel_ratio(-1, 2), r"nu must be finite and >= 0; found -1\.0"),
        (lambda: bessel_ratio(1, [2, np.inf]), r"z must be finite and >= 0; found inf"),
        (lambda: log_hyp0f1_regularized(0, 1), r"b must be finite and > 0; found 0\.0"),
        (lambda: log_hyp0f1_regularized(1, -2), r"z must be finite and >= 0; found -2\.0"),
        (lambda: exp_digamma([1, -3]), r"x must be >= 0; found -3\.0"),
        (lambda: inverse_digamma(1j), "y must hold real numbers; found dtype complex128"),
        (lambda: exp_digamma("a"), "x must hold real numbers; found dtype <U1"),
    ],
)
def test_errors_name_the_argument_and_what_was_found(call, message):
    with pytest.raises(ValueError, match=message):
        call()
