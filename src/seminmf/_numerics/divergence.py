"""The Skellam divergence of one cell, without cancellation.

Let a be the side of the sign of x, big = (|x| + r)/2 with r = sqrt(x^2 + 4 rate0 rate1) the mean of
that side's Poisson total given x, and e = |x| - rate_a + rate_b. Then

    w = (big - rate_a) / (big + rate_a) = e / (r + rate0 + rate1)

holds exactly, and so does D = e w + |x| (ln(big / rate_a) - 2 w). Near a fit the first term is of
order e^2, the second of order e^3, and neither is a difference of larger ones.
"""

from __future__ import annotations

import math

from .compilation import by_precision, scalar_function, strict_function
from .elementary import log_ratio_tail, two_sum

# For float32 and float64.
_HUGE = (1e36, 1e306)


@scalar_function
def divergence_of_any_size(x, rate0, rate1):
    """D(x | rate0, rate1), also of numbers whose products leave the range.

    It is inf if only the side opposite to x has a positive rate.
    """
    real = type(x)
    # D is homogeneous: a sum of numbers next to the largest there are would overflow.
    huge = max(abs(x), max(rate0, rate1)) > real(by_precision(x, _HUGE))
    scale = real(0.0625) if huge else real(1.0)
    x, rate0, rate1 = scale * x, scale * rate0, scale * rate1
    size = abs(x)
    twice_mean = real(2.0) * math.sqrt(rate0) * math.sqrt(rate1)
    larger = max(size, twice_mean)
    quotient = min(size, twice_mean) / larger if larger > real(0.0) else real(0.0)
    root = larger * math.sqrt(real(1.0) + quotient * quotient)
    return _divergence(x, rate0, rate1, root) / scale


@scalar_function
def _divergence(x, rate0, rate1, root):
    real = type(x)
    zero = real(0.0)
    size = abs(x)
    own = rate0 if x >= zero else rate1
    other = rate1 if x >= zero else rate0
    error = _residual(size, own, other)
    total = root + (own + other)
    w = error / total if total > zero else zero
    value = error * w + size * log_ratio_tail(real(0.5) * (size + root), own, w)
    impossible = (own <= zero) & (size > zero)
    return real(math.inf) if impossible else value


@strict_function
def _residual(size, own, other):
    """size - own + other with one rounding: for a good fit all of it may be in the last bits."""
    difference, low = two_sum(size, -own)
    total, lower = two_sum(difference, other)
    return total + (low + lower)
