"""What is asked of one cell, for each likelihood: compiled rules for scalars.

Given x and the two rates λ₀ and λ₁ of a cell: U_s = E[Z_s | x] / λ_s (s = 0, 1), its
log-likelihood, and the curvature that Newton's method takes for its Hessian.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .._numerics.bessel import LARGE_SERIES, MEDIUM_SERIES, skellam_cell, smaller_total
from .._numerics.compilation import (
    bits_of,
    by_precision,
    float_of_bits,
    polynomial,
    polynomial2,
    scalar_function,
)
from .._numerics.elementary import log

# Added to every rate. A product of three rates must stay a normal number, hence the cube root of
# the smallest; in the unit of the passes, where the largest |x| is about 1, it is nothing.
SMALLEST_RATE = {"float32": 1e-12, "float64": 1e-95}

# Pairs are for float32 and float64. Bits of the mantissa, and one half of its range.
_MANTISSA = (23, 52)
_HALF = (1 << 22, 1 << 51)

# (2 atanh(w) − 2w) / w³ in powers of w², |w| ≤ 0.2013, relative error 6e-9 and 4e-15:
# tools/elementary_coefficients.py.
_TAIL = (
    (0.666666662560984, 0.4000032387799185, 0.28531696604890266, 0.23768208227277335),
    (
        0.6666666666666696,
        0.3999999999929155,
        0.2857142885062758,
        0.2222218103771892,
        0.18184702797723667,
        0.15281456600051058,
        0.15138775178873456,
    ),
)
_LN2 = math.log(2.0)


@scalar_function
def real_cell(x, rate0, rate1):
    """U₀, U₁ and −D(x | λ₀, λ₁) of a cell, for M = ∞; a gap (NaN) has U = 1 and D = 0.

    With a the side of x's sign and b the other, r = √(x² + 4λ₀λ₁) and big = (|x| + r) / 2,
    U_a = big / λ_a and U_b = λ_a / big: neither cancels. Moreover U_a = (1+w) / (1−w) with

        w = (|x| − λ_a + λ_b) / (r + λ₀ + λ₁),    D = w (|x| − λ_a + λ_b) + |x| (ln U_a − 2w),

    where the residual stands as a factor: D keeps its relative accuracy for good fits. For U_a
    far from 1 the logarithm is taken of U_a / 2^e instead, and D is |x| ln U_a + λ₀ + λ₁ − r.
    """
    real = type(rate0)
    zero, two = real(0.0), real(2.0)
    observed = x == x
    negative = x < zero
    size = abs(x) if observed else zero
    side = rate1 if negative else rate0
    other = rate0 if negative else rate1
    twice_side = side + side
    total = rate0 + rate1
    root = math.sqrt(size * size + real(4.0) * (rate0 * rate1))
    twice_big = size + root
    # Near a fit the larger of the two is between half of `side` and all: no rounding there.
    residual = (max(size, other) - side) + min(size, other)

    # 2^e next to U_a, from the difference of the two floats' bits, which is almost a logarithm.
    mantissa = by_precision(rate0, _MANTISSA)
    half = by_precision(rate0, _HALF)
    bits = bits_of(twice_side)
    exponent = (bits_of(twice_big) - bits + half) >> mantissa
    scaled_side = float_of_bits(bits + (exponent << mantissa), rate0)
    near = exponent == 0
    difference = residual if near else twice_big - scaled_side
    denominator = root + total if near else twice_big + scaled_side

    # One division serves w, U_a and U_b.
    product = twice_side * twice_big
    quotient = real(1.0) / (product * denominator)
    w = difference * product * quotient
    quotient = quotient * denominator
    u_side = twice_big * twice_big * quotient
    u_other = twice_side * twice_side * quotient

    square = w * w
    logarithm = square * w * polynomial(square, by_precision(rate0, _TAIL))
    logarithm = logarithm + (zero if near else real(exponent) * real(_LN2) + two * w)
    divergence = size * logarithm + (w * residual if near else total - root)

    u0 = u_other if negative else u_side
    u1 = u_side if negative else u_other
    one = real(1.0)
    return u0 if observed else one, u1 if observed else one, -divergence if observed else zero


@scalar_function
def integer_cell(x, rate0, rate1):
    """U₀, U₁ and ln P(x | λ₀, λ₁) of a cell, for M = 1; a gap (NaN) has U = 1 and ln P = 0.

    The smaller of the two expected totals is 2σ / (ν + Y_ν), the larger is |x| more.
    """
    real = type(rate0)
    zero, one = real(0.0), real(1.0)
    observed = x == x
    x = x if observed else zero
    size = abs(x)
    negative = x < zero
    side = rate1 if negative else rate0
    other = rate0 if negative else rate1
    u_side, u_other, value = skellam_cell(size, side, other)
    u0 = u_other if negative else u_side
    u1 = u_side if negative else u_other
    return u0 if observed else one, u1 if observed else one, value if observed else zero


def _series_rule(ratio_series: tuple, debye_series: tuple) -> Callable:
    """The rule that has a number of terms of the two series."""

    @scalar_function
    def series_cell(x, rate0, rate1):
        real = type(rate0)
        observed = x == x
        u0, u1, value = real_cell(x, rate0, rate1)
        size = abs(x) if observed else real(0.0)
        root = math.sqrt(size * size + real(4.0) * (rate0 * rate1))
        t = real(1.0) / root
        p = size * t
        ratio = real(2.0) * t * polynomial2(t, p * p, ratio_series) if observed else real(0.0)
        level = real(0.5) * log(t * real(0.5 / math.pi)) + polynomial2(t, p * p, debye_series)
        return u0 + ratio * rate1, u1 + ratio * rate0, value + (level if observed else real(0.0))

    return series_cell


# The same as `integer_cell`, where s = √(x² + 4λ₀λ₁) is at least `LARGE`, or at least `MEDIUM`.
# With n = |x|, t = 1/s and q = (nt)², Debye's expansions of the order itself have few terms there:
#
#     Y_n = s + s (1 − q) R(t, q),    ln P = −D − ½ ln(2πs) + L(t, q),
#
# and s (1 − q) = 4λ₀λ₁t, so that M = ∞ has all but the last terms of U₀ = (Y_n + x) / (2λ₀) and
# U₁ = (Y_n − x) / (2λ₁).
large_cell = _series_rule(*LARGE_SERIES)
medium_cell = _series_rule(*MEDIUM_SERIES)


@scalar_function
def real_curvature(x, rate0, rate1, u0, u1):
    """q = 1 / r with ∂²D = q (U₀ dλ₀ − U₁ dλ₁)²: the Hessian has rank one."""
    real = type(rate0)
    observed = x == x
    size = abs(x) if observed else real(0.0)
    root = math.sqrt(size * size + real(4.0) * (rate0 * rate1))
    return real(1.0) / root if observed else real(0.0)


@scalar_function
def integer_curvature(x, rate0, rate1, u0, u1):
    """q for which q (U₀ dλ₀ − U₁ dλ₁)² stands for the Hessian of −ln P.

    With a the side of x's sign, b the other, g = 1 / (|x| + 1 + P/2) the smaller expected total
    divided by σ = λ₀λ₁, and g' the same at the next order, the Hessian is

        [[ |x|/λ_a² + λ_b² G,  −δ     ],
         [ −δ,                 λ_a² G ]],    G = g (g − g'),  δ = g − σG,

    without cancellation where a rate vanishes. Its determinant is not positive, and its positive
    part is near that of rank one that M = ∞ has: q gives it the same eigenvalue.
    """
    real = type(rate0)
    zero, half, one = real(0.0), real(0.5), real(1.0)
    observed = x == x
    size = abs(x) if observed else zero
    sigma = rate0 * rate1
    side = rate1 if x < zero else rate0
    other = rate0 if x < zero else rate1
    g = smaller_total(size, sigma) / sigma
    curvature = g * (g - smaller_total(size + one, sigma) / sigma)
    delta = g - sigma * curvature
    h_side = size / (side * side) + other * other * curvature
    h_other = side * side * curvature
    half_gap = half * (h_side - h_other)
    eigenvalue = half * (h_side + h_other) + math.sqrt(half_gap * half_gap + delta * delta)
    return eigenvalue / (u0 * u0 + u1 * u1) if observed else zero
