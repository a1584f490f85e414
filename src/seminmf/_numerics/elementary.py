"""Logarithm and exponential that the compiler can vectorise.

`math.log` is a call into the C library and keeps the loop around it scalar, at four to five times
the price. The tables come from `tools/elementary_coefficients.py`.

Powers of two are exchanged as floats with integer values: the conversion between integers and
floats is then an addition of a large constant, which every instruction set has in packed form.
"""

from __future__ import annotations

import math

import numpy as np

from .compilation import (
    bits_of,
    by_precision,
    float_of_bits,
    fused_multiply_add,
    polynomial,
    scalar_function,
    strict_function,
)

# Pairs are for float32 and float64.
_MANTISSA = (23, 52)
_BIAS = (127, 1023)
_INTEGER_UNIT = (2.0**23, 2.0**52)  # from here on the last bit of a float is worth 1
_ROUNDER = (1.5 * 2.0**23, 1.5 * 2.0**52)  # added and taken away: the nearest integer
_SQRT_HALF = (
    int(np.float32(math.sqrt(0.5)).view(np.int32)),
    int(np.float64(math.sqrt(0.5)).view(np.int64)),
)
_LARGEST = (float(np.finfo(np.float32).max), float(np.finfo(np.float64).max))

# ln 2 in two parts. The first has so few bits that a product with an exponent is exact.
LN2_HIGH = (0.693359375, 0.6931471803691238)
LN2_LOW = (-2.1219444005469057e-4, 1.9082149292705877e-10)
_INVERSE_LN2 = 1.4426950408889634

# Beyond these the result is 0 or infinite; within, both factors of 2^k are normal numbers.
_EXP_LOWEST = (-105.0, -746.0)
_EXP_HIGHEST = (89.5, 710.5)

# (2 atanh(w) - 2 w) / w^3 in powers of w^2, |w| <= (sqrt 2 - 1) / (sqrt 2 + 1).
_LOG_TAIL = (
    (
        0.6666666655449709,
        0.40000121839806124,
        0.28550820815960665,
        0.23330467216303835,
    ),
    (
        0.6666666666666666,
        0.4000000000000088,
        0.28571428570803614,
        0.22222222391713917,
        0.18181795640132906,
        0.15386239702814658,
        0.13268773138656886,
        0.13086626147840102,
    ),
)
# (e^r - 1 - r) / r^2 in powers of r, |r| <= ln(2) / 2.
_EXP_TAIL = (
    (
        0.5,
        0.16666576666119928,
        0.04166655421298415,
        0.008363232883682618,
        0.0013926250831497611,
    ),
    (
        0.5000000000000001,
        0.16666666666666669,
        0.041666666666623824,
        0.008333333333330039,
        0.0013888888917367081,
        0.00019841269863171557,
        2.4801521057868204e-05,
        2.7557268276905696e-06,
        2.7620201591031547e-07,
        2.5100472505694996e-08,
    ),
)


@scalar_function
def frexp_sqrt2(u):
    """Split a positive normal number: u = m 2^e, m in [sqrt(1/2), sqrt(2)).

    Returns
    -------
    e, m : floats of the type of `u`, `e` with an integer value.
    """
    real = type(u)
    bits = bits_of(u)
    whole = type(bits)
    mantissa = by_precision(u, _MANTISSA)
    bias = by_precision(u, _BIAS)
    sqrt_half = by_precision(u, _SQRT_HALF)
    # The exponent of u / sqrt(1/2), biased, hence positive.
    biased = whole(bits - sqrt_half + (bias << mantissa)) >> mantissa
    m = float_of_bits(bits - ((biased - bias) << mantissa), u)
    # 2^mantissa + biased is the float whose low bits are `biased`.
    offset = real(by_precision(u, _INTEGER_UNIT))
    e = float_of_bits(bits_of(offset) | biased, u) - (offset + real(bias))
    return e, m


@scalar_function
def ldexp2(e):
    """2^e for a float `e` with an integer value, if the result is a normal number."""
    mantissa = by_precision(e, _MANTISSA)
    bias = by_precision(e, _BIAS)
    # The addition leaves the biased exponent in the low bits, also for negative `e`.
    offset = type(e)(by_precision(e, _ROUNDER) + bias)
    return float_of_bits(bits_of(e + offset) << mantissa, e)


@scalar_function
def log_tail(w):
    """2 atanh(w) - 2 w = ln((1+w)/(1-w)) - 2 w, for |w| <= (sqrt 2 - 1)/(sqrt 2 + 1) = 0.1716."""
    y = w * w
    return w * y * polynomial(y, by_precision(w, _LOG_TAIL))


@scalar_function
def log(u):
    """Natural logarithm: -inf at 0, inf at inf, NaN at NaN; for normal `u` within 1 ulp."""
    real = type(u)
    e, m = frexp_sqrt2(u)
    f = m - real(1.0)  # exact
    w = f / (m + real(1.0))
    low = real(by_precision(u, LN2_LOW))
    high = real(by_precision(u, LN2_HIGH))
    # 2w = f - wf: f is exact and wf is small, so that the rounding of w hardly matters.
    value = e * high + (f - (w * f - (log_tail(w) + e * low)))
    value = value if u > real(0.0) else real(-math.inf)
    return value if u <= real(by_precision(u, _LARGEST)) else u


@scalar_function
def log_ratio_tail(numerator, denominator, w):
    """ln(numerator / denominator) - 2 w of positive normal numbers, whatever their quotient.

    `w` is (numerator - denominator) / (numerator + denominator) from a formula without
    cancellation. The result, of order w^3, then keeps its relative accuracy as w goes to 0.
    """
    real = type(w)
    e0, m0 = frexp_sqrt2(numerator)
    e1, m1 = frexp_sqrt2(denominator)
    # m0 / m1 is within (1/2, 2): one more step brings it into [sqrt(1/2), sqrt(2)].
    sqrt2 = real(math.sqrt(2.0))
    above = m0 > sqrt2 * m1
    below = m1 > sqrt2 * m0
    e = e0 - e1 + (real(1.0) if above else (real(-1.0) if below else real(0.0)))
    m0 = m0 * (real(0.5) if above else (real(2.0) if below else real(1.0)))
    reduced = w if e == real(0.0) else (m0 - m1) / (m0 + m1)
    low = real(by_precision(w, LN2_LOW))
    high = real(by_precision(w, LN2_HIGH))
    return e * high + (real(2.0) * (reduced - w) + (log_tail(reduced) + e * low))


@scalar_function
def log_ratio(numerator, denominator, difference):
    """ln(numerator / denominator) of positive normal numbers, whatever their quotient.

    `difference` is numerator - denominator from a formula without cancellation. The logarithm
    then keeps its relative accuracy where the two are close.
    """
    w = difference / (numerator + denominator)
    return w + w + log_ratio_tail(numerator, denominator, w)


@scalar_function
def exp(x):
    """Exponential: 0 and inf where it leaves the range, gradual underflow; within 1 ulp."""
    real = type(x)
    lowest = real(by_precision(x, _EXP_LOWEST))
    highest = real(by_precision(x, _EXP_HIGHEST))
    # In this form of min and max a NaN goes through.
    x = lowest if x < lowest else x
    x = highest if x > highest else x
    shift = real(by_precision(x, _ROUNDER))
    k = (x * real(_INVERSE_LN2) + shift) - shift  # nearest integer
    half = (k * real(0.5) + shift) - shift
    r = x - k * real(by_precision(x, LN2_HIGH))
    r = r - k * real(by_precision(x, LN2_LOW))
    value = real(1.0) + (r + r * r * polynomial(r, by_precision(x, _EXP_TAIL)))
    # Two factors, because 2^k itself may lie outside of the normal numbers.
    return value * ldexp2(half) * ldexp2(k - half)


@strict_function
def two_sum(a, b):
    """Rounded sum and its rounding error: together they are a + b exactly."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


@strict_function
def two_product(a, b):
    """Rounded product and its rounding error: together they are a b exactly."""
    product = a * b
    return product, fused_multiply_add(a, b, -product)


@strict_function
def log_in_two_parts(u):
    """ln(u) of a positive normal float64 as a rounded value and what it lacks (to 1e-16)."""
    e, m = frexp_sqrt2(u)
    coarse = e * LN2_HIGH[1]  # exact
    fine = log(m)
    value = coarse + fine
    return value, (fine - (value - coarse)) + e * LN2_LOW[1]
