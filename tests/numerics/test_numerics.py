"""The scalar kernels: accuracy against mpmath in both precisions, limits, vectorisation."""

import math
import re

import mpmath
import numpy as np
import pytest
from exact import log_bessel, log_bessel_by_expansion
from mpmath import mpf
from numba import njit
from pieces import called

from seminmf._model.cells import integer_cell, real_cell
from seminmf._numerics import bessel, elementary, gamma

EPSILON = {np.float64: 2.0**-52, np.float32: 2.0**-23}
PRECISIONS = [np.float64, np.float32]


@pytest.fixture(autouse=True)
def many_digits():
    with mpmath.workdps(50):
        yield


def exact(value):
    return mpf(float(value))


def log_uniform(rng, low, high, size, dtype):
    return (10 ** rng.uniform(low, high, size)).astype(dtype)


def loop_over(function, n_arguments):
    """Compile a plain loop, as the passes have it."""
    if n_arguments == 1:

        @njit(error_model="numpy")
        def loop(x, out):
            for i in range(out.size):
                out[i] = function(x[i])
    else:

        @njit(error_model="numpy")
        def loop(x, y, z, out):
            for i in range(out.size):
                out[i] = function(x[i], y[i], z[i])

    return loop


def apply(function, *arrays):
    out = np.empty_like(arrays[0])
    loop_over(function, len(arrays))(*arrays, out)
    return out


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(("function", "reference"), [("log", np.log), ("exp", np.exp)])
def test_log_and_exp_within_one_unit_in_the_last_place(function, reference, dtype):
    rng = np.random.default_rng(0)
    if function == "log":
        limits = np.log10([np.finfo(dtype).tiny, np.finfo(dtype).max])
        x = np.concatenate([log_uniform(rng, *limits, 2000, dtype), rng.normal(1, 0.1, 2000)])
    else:
        x = np.concatenate([rng.uniform(-87, 88, 2000), rng.normal(0, 0.1, 2000)])
    x = x.astype(dtype)
    wanted = reference(x.astype(np.longdouble))
    error = np.abs(apply(getattr(elementary, function), x) - wanted)
    assert np.all(error <= np.spacing(np.abs(wanted.astype(dtype))))


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_log_and_exp_at_the_limits(dtype):
    x = np.array([0.0, np.inf, np.nan, 1.0], dtype)
    np.testing.assert_array_equal(apply(elementary.log, x), [-np.inf, np.inf, np.nan, 0.0])
    x = np.array([-np.inf, np.inf, np.nan, 0.0, -1e30, 1e30], dtype)
    np.testing.assert_array_equal(apply(elementary.exp, x), [0, np.inf, np.nan, 1, 0, np.inf])
    # Gradual underflow, and the last number before overflow.
    x = np.array([math.log(np.finfo(dtype).tiny) - 2, math.log(np.finfo(dtype).max) - 1e-4], dtype)
    np.testing.assert_allclose(apply(elementary.exp, x), np.exp(x), rtol=4 * EPSILON[dtype], atol=0)


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_powers_of_two_split_and_join(dtype):
    rng = np.random.default_rng(1)
    limits = np.log10([np.finfo(dtype).tiny * 2, np.finfo(dtype).max / 2])
    for u in log_uniform(rng, *limits, 200, dtype):
        e, m = called(elementary.frexp_sqrt2)(u)
        assert e == round(e)
        assert math.sqrt(0.5) * (1 - 1e-7) <= m < math.sqrt(2.0) * (1 + 1e-7)
        assert m * called(elementary.ldexp2)(dtype(e)) == u


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_log_ratio_is_accurate_for_close_and_for_distant_numbers(dtype):
    rng = np.random.default_rng(2)
    denominator = log_uniform(rng, -15, 15, 600, dtype)
    close = denominator * (1 + rng.normal(size=600) * 10 ** rng.uniform(-7, 0, 600))
    distant = log_uniform(rng, -15, 15, 600, dtype)
    for numerator in (np.abs(close).astype(dtype), distant):
        difference = (numerator.astype(np.longdouble) - denominator).astype(dtype)
        result = apply(elementary.log_ratio, numerator, denominator, difference)
        wanted = [
            mpmath.log(exact(a) / exact(b)) for a, b in zip(numerator, denominator, strict=True)
        ]
        for got, value in zip(result, wanted, strict=True):
            assert abs(exact(got) - value) <= 4 * EPSILON[dtype] * abs(value)


def test_sums_and_products_with_their_rounding_errors():
    rng = np.random.default_rng(3)
    for a, b in rng.normal(size=(100, 2)) * 10.0 ** rng.integers(-8, 9, (100, 2)):
        total, low = called(elementary.two_sum)(a, b)
        assert exact(total) + exact(low) == exact(a) + exact(b)
        product, low = called(elementary.two_product)(a, b)
        assert exact(product) + exact(low) == exact(a) * exact(b)
        high, low = called(elementary.log_in_two_parts)(abs(a))
        assert abs(exact(high) + exact(low) - mpmath.log(abs(exact(a)))) < 1e-16


def test_references_agree():
    nu, z = mpf(100), mpf(120)
    by_series = mpmath.log(mpmath.besseli(nu, z, maxterms=10**6))
    assert abs(log_bessel_by_expansion(nu, z) - by_series) < mpf(10) ** -25


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float64, (5e-15, 1e-14)), (np.float32, (5e-7, 4e-6))]
)
def test_bessel_cell(dtype, tolerance):
    rng = np.random.default_rng(4)
    small = rng.integers(0, 40, 150), log_uniform(rng, -8, 2, 150, dtype)
    large = np.floor(10 ** rng.uniform(0, 6, 150)), log_uniform(rng, -8, 7, 150, dtype)
    fractions = rng.uniform(0, 3, 100), log_uniform(rng, -2, 2, 100, dtype)
    for orders, arguments in (small, large, fractions):
        for n, z in zip(orders.astype(dtype), arguments, strict=True):
            sigma = z * z / dtype(4)
            argument = 2 * mpmath.sqrt(exact(sigma))
            order = exact(n)
            s = mpmath.sqrt(order**2 + argument**2)
            level = log_bessel(order, argument)
            ratio = mpmath.exp(log_bessel(order + 1, argument) - level)
            wanted_g = level - s + order * mpmath.log((order + s) / argument)
            wanted_total = argument * ratio / 2
            total, g = called(bessel.bessel_cell)(n, sigma)
            assert abs(total - wanted_total) <= tolerance[0] * wanted_total
            assert abs(g - wanted_g) <= tolerance[1]
            assert called(bessel.smaller_total)(n, sigma) == pytest.approx(total, rel=tolerance[0])


def test_bessel_cell_without_argument_is_the_poisson_distribution():
    for n in (0.0, 0.5, 1.0, 7.0, 1e3, 1e12):
        total, g = called(bessel.bessel_cell)(n, 0.0)
        wanted = n * mpmath.log(n) - n - mpmath.loggamma(exact(n) + 1) if n else mpf(0)
        assert total == 0.0
        assert abs(g - wanted) < 1e-14


@pytest.mark.parametrize("n", [0.0, 1e-300, 1.0, 1e15])
@pytest.mark.parametrize("sigma", [1e-300, 1e-20, 1e20, 2.5e299])
def test_bessel_cell_far_outside(n, sigma):
    total, g = called(bessel.bessel_cell)(n, sigma)
    s = math.sqrt(n * n + 4 * sigma)
    wanted_total = sigma / (n + 1) if sigma < 1 else 2 * sigma / (n + s)
    wanted_g = -n if s <= 1 else -0.5 * math.log(2 * math.pi * s)
    assert total == pytest.approx(wanted_total, rel=1e-9, abs=0)
    assert g == pytest.approx(wanted_g, abs=1e-9)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 2e-14), (np.float32, 4e-6)])
def test_gamma_terms(dtype, tolerance):
    rng = np.random.default_rng(5)
    range_ = (-300, 300) if dtype == np.float64 else (-34, 34)
    x = np.concatenate(
        [
            10 ** rng.uniform(-3.2, 4, 300),
            10 ** rng.uniform(*range_, 60),
            1.4616 + rng.normal(0, 1e-3, 40),
            1 / rng.uniform(600, 720, 60),  # where the exponential is about to underflow
        ]
    ).astype(dtype)
    tiny = np.finfo(dtype).tiny
    for value in x:
        with mpmath.workdps(50 + max(0, int(math.log10(value)))):
            digamma = mpmath.digamma(exact(value))
            h = mpmath.loggamma(exact(value)) - exact(value) * digamma + exact(value)
            geometric = mpmath.exp(digamma)
        result = called(gamma.gamma_terms)(value)
        if geometric > tiny:
            assert abs(result[0] - geometric) <= tolerance * geometric
        else:
            assert 0 <= result[0] <= tiny
        for got, wanted in zip(result[1:], (digamma, h), strict=True):
            assert abs(got - wanted) <= tolerance * max(1, abs(wanted))
        parts = called(gamma.exp_digamma)(value), called(gamma.digamma)(value)
        np.testing.assert_allclose(parts, result[:2], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 2e-6)])
def test_trigamma_and_inverse_digamma(dtype, tolerance):
    rng = np.random.default_rng(6)
    for value in log_uniform(rng, -12, 12, 200, dtype):
        wanted = mpmath.psi(1, exact(value))
        assert abs(called(gamma.trigamma)(value) - wanted) <= tolerance * wanted
    levels = np.concatenate([rng.uniform(-20, 20, 150), -(10 ** rng.uniform(1, 10, 50))])
    for y in levels.astype(dtype):
        x = exact(called(gamma.inverse_digamma)(y))
        # One more Newton step in many digits tells the error.
        step = (mpmath.digamma(x) - exact(y)) / mpmath.psi(1, x)
        assert abs(step) <= tolerance * x


@njit(forceinline=True, error_model="numpy")
def correction(n, sigma, unused):
    return bessel.bessel_cell(n, sigma)[1]


@njit(forceinline=True, error_model="numpy")
def entropy(x):
    return gamma.gamma_terms(x)[2]


@njit(forceinline=True, error_model="numpy")
def real_value(x, rate0, rate1):
    return real_cell(x, rate0, rate1)[2]


@njit(forceinline=True, error_model="numpy")
def integer_value(x, rate0, rate1):
    return integer_cell(x, rate0, rate1)[2]


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize(
    ("function", "n_arguments"),
    [
        (elementary.log, 1),
        (elementary.exp, 1),
        (elementary.log_ratio, 3),
        (gamma.exp_digamma, 1),
        (entropy, 1),
        (real_value, 3),
        (integer_value, 3),
        (correction, 3),
    ],
    ids=["log", "exp", "log_ratio", "exp_digamma", "entropy", "real", "integer", "bessel"],
)
def test_loops_are_vectorised(function, n_arguments, dtype):
    loop = loop_over(function, n_arguments)
    arrays = [np.ones(8, dtype) for _ in range(n_arguments + 1)]
    loop(*arrays)
    (code,) = loop.inspect_llvm().values()
    kind = "double" if dtype == np.float64 else "float"
    assert re.search(rf"fmul[^\n]*<\d+ x {kind}>", code)
    assert "@log" not in code and "@exp" not in code
