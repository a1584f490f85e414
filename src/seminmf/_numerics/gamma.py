"""Digamma, its exponential and inverse, and the entropy term of a gamma variable.

The expansions hold for large arguments. With N steps of the recurrences
digamma(x) = digamma(x + N) - sum 1/(x+k) and Gamma(x) = Gamma(x + N) / prod (x+k), k < N, they
serve every x > 0. They are taken at v = x + N - 1/2, with u = 1/v^2:

    digamma(v + 1/2) = ln v + b(u),            b = u/24 - 7 u^2/960 + ...
    exp digamma(v + 1/2) = v e(u),             e = exp(b)
    ln Gamma(v + 1/2) = v ln v - v + ln(2 pi)/2 - 1/(24 v) + 7/(2880 v^3) - ...

`tools/gamma_coefficients.py` derives the tables.
"""

from __future__ import annotations

import math

from .compilation import (
    by_precision,
    fused_multiply_add,
    looping_function,
    polynomial,
    scalar_function,
)
from .elementary import exp, log, two_sum

# Pairs are for float32 and float64.
_STEPS = (6, 12)  # N
_EULER = 0.5772156649015329

_DIGAMMA_DOUBLE = (
    0.0,
    1 / 24,
    -7 / 960,
    31 / 8064,
    -127 / 30720,
    511 / 67584,
    -1414477 / 67092480,
)
_EXP_DIGAMMA_DOUBLE = (
    1.0,
    1 / 24,
    -37 / 5760,
    10313 / 2903040,
    -5509121 / 1393459200,
    2709398569 / 367873228800,
    -499769010050743 / 24103053950976000,
)
_ENTROPY_DOUBLE = (
    -1 / 12,
    7 / 720,
    -31 / 6720,
    127 / 26880,
    -2555 / 304128,
    1414477 / 61501440,
)
# digamma'(v + 1/2) = (1 - 2 u b'(u)) / v
_TRIGAMMA_DOUBLE = (1.0, *(-2 * k * b for k, b in enumerate(_DIGAMMA_DOUBLE) if k))
_DIGAMMA = (_DIGAMMA_DOUBLE[:4], _DIGAMMA_DOUBLE)
_EXP_DIGAMMA = (_EXP_DIGAMMA_DOUBLE[:4], _EXP_DIGAMMA_DOUBLE)
_TRIGAMMA = (_TRIGAMMA_DOUBLE[:4], _TRIGAMMA_DOUBLE)
_ENTROPY = (_ENTROPY_DOUBLE[:3], _ENTROPY_DOUBLE)


@looping_function
def _shift(x):
    """v, 1/v, and of the factors f_k = (x+k)/v, 0 < k < N: their product p, p', p''/2.

    The derivatives are by v f_k, so that p'/p is the sum of 1/f_k: a sum of quotients that takes
    one division in the end. The factor k = 0 is left to the callers: for small x it needs care.
    """
    real = type(x)
    steps = by_precision(x, _STEPS)
    v = x + real(steps - 0.5)
    inverse_v = real(1.0) / v
    base = x * inverse_v
    product, first, second = base + inverse_v, real(1.0), real(0.0)
    for k in range(2, steps):
        factor = base + real(k) * inverse_v
        second = second * factor + first
        first = first * factor + product
        product = product * factor
    return v, inverse_v, product, first, second


@scalar_function
def _lower(exp_shifted, x, inverse, remainder):
    """exp_shifted exp(-1/x - remainder), `inverse` being 1/x rounded.

    Where the exponent is large, its rounding errors matter: they enter by the factor 1 + low.
    """
    real = type(x)
    exponent, low = two_sum(-inverse, -remainder)
    low = low - fused_multiply_add(-x, inverse, real(1.0)) * inverse
    # Beyond the underflow `low` is as large as it likes.
    return exp_shifted * exp(exponent) * max(real(1.0) + low, real(0.0))


@scalar_function
def gamma_terms(x):
    """exp(digamma(x)), digamma(x) and h(x) = ln Gamma(x) - x digamma(x) + x, for x > 0.

    With the product and the sum over 0 < k < N, and c(u)/v + (N-1) b(u) what the three expansions
    leave together,

        h = digamma(v + 1/2)/2 - ln(x product) + x sum + ln(2 pi)/2 + 3/2 - N + c(u)/v + (N-1) b(u):

    the terms of order x and x ln x are gone before they could cancel.
    """
    real = type(x)
    v, inverse_v, product, first, _ = _shift(x)
    remainder = first * inverse_v / product
    u = inverse_v * inverse_v
    exp_shifted = v * polynomial(u, by_precision(x, _EXP_DIGAMMA))
    shifted = log(exp_shifted)
    inverse = real(1.0) / x
    steps = by_precision(x, _STEPS)
    series = inverse_v * polynomial(u, by_precision(x, _ENTROPY))
    series = series + real(steps - 1) * polynomial(u, by_precision(x, _DIGAMMA))
    constant = real(0.5 * math.log(2.0 * math.pi) + 1.5 - steps)
    h = (real(0.5) * shifted - log(x * product)) + (x * remainder + (constant + series))
    return _lower(exp_shifted, x, inverse, remainder), shifted - (inverse + remainder), h


@scalar_function
def digamma(x):
    """Derivative of ln Gamma(x), for x > 0."""
    return gamma_terms(x)[1]


@scalar_function
def exp_digamma(x):
    """exp(digamma(x)) for x > 0, to full relative accuracy; 0 only where it underflows."""
    return gamma_terms(x)[0]


@scalar_function
def trigamma(x):
    """Derivative of digamma(x), for x > 0."""
    return _digamma_and_trigamma(x)[1]


@scalar_function
def _digamma_and_trigamma(x):
    real = type(x)
    v, inverse_v, product, first, second = _shift(x)
    u = inverse_v * inverse_v
    inverse = real(1.0) / x
    remainder = first / product  # the sum of v/(x+k); its square less 2 p''/2p is that of squares
    squares = remainder * remainder - real(2.0) * second / product
    shifted = log(v * polynomial(u, by_precision(x, _EXP_DIGAMMA)))
    slope = inverse_v * polynomial(u, by_precision(x, _TRIGAMMA))
    return (
        shifted - (inverse + remainder * inverse_v),
        slope + (inverse * inverse + squares * u),
    )


@looping_function
def inverse_digamma(y):
    """The x > 0 with digamma(x) = y: Newton's method from the start of Minka (2000), appendix C.

    Beyond -1e8 and 18 the start is exact to rounding, and better than a step could make it.
    """
    real = type(y)
    start = real(-1.0) / (y + real(_EULER)) if y < real(-2.22) else exp(y) + real(0.5)
    x = min(max(start, real(1e-9)), real(1e9))
    for _ in range(5):
        value, slope = _digamma_and_trigamma(x)
        x = x - (value - y) / slope
    return x if abs(y + real(5e7)) < real(5e7 + 18.0) else start
