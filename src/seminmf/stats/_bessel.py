"""Exact draws of the smaller of two Poisson totals whose difference is known.

Given the difference n >= 0, the smaller total has the probabilities p(k) ~ sigma^k / (k! (k+n)!)
with sigma = rate0 rate1: a Bessel variable of order n and argument 2 sqrt(sigma).
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .._numerics import loops
from .._numerics.elementwise import elementwise

Vector = NDArray[np.float64]

# The bound takes a lower bound of the mode's probability, which is known up to rounding.
_MARGIN = 1 - 1e-9


def matching_rates(n: Vector, mean: Vector) -> tuple[Vector, Vector]:
    """Rates whose difference is n and whose geometric mean is `mean`: the larger, the smaller.

    Every pair with the same product leads to the same p. With these, p(k) is largest where both
    Poisson probabilities are, and each is of moderate size there.
    """
    larger = (n + np.hypot(n, 2 * mean)) / 2
    return larger, mean * (mean / np.where(larger > 0, larger, 1))


def draw_smaller_totals(n: Vector, mean: Vector, rng: Generator) -> NDArray[np.int64]:
    """One Bessel variate of order n and argument 2 `mean` for each pair of entries.

    p is log-concave, so that p(m + j) <= p(m) min(1, exp(1 - p(m) abs(j))) at its mode m. On
    average fewer than five candidates under this bound are drawn for one that is kept [1]_.

    References
    ----------
    .. [1] L. Devroye, "Simulating Bessel random variables", Statistics & Probability Letters 57,
       2002.
    """
    larger, smaller = matching_rates(n, mean)
    mode = np.floor(smaller)
    peak = _log_weight(mode, n, larger, smaller)
    probability = np.exp(peak - elementwise(loops.skellam_log_pmf, n, larger, smaller)) * _MARGIN
    result = np.empty(n.shape, dtype=np.int64)
    pending = np.arange(n.size)
    while pending.size:
        at = pending
        step, log_bound = _candidates(probability[at], rng)
        value = mode[at] + step
        log_ratio = _log_weight(value, n[at], larger[at], smaller[at]) - peak[at]
        kept = log_bound - rng.standard_exponential(at.size) <= log_ratio
        result[at[kept]] = value[kept]
        pending = at[~kept]
    return result


def _log_weight(k: Vector, n: Vector, larger: Vector, smaller: Vector) -> Vector:
    """ln p(k) up to a constant; -inf for k < 0."""
    none = np.zeros_like(k)
    return elementwise(loops.skellam_log_pmf, k, smaller, none) + elementwise(
        loops.skellam_log_pmf, k + n, larger, none
    )


def _candidates(probability: Vector, rng: Generator) -> tuple[Vector, Vector]:
    """Distances from the mode, drawn under the bound, and the logarithm of the bound there.

    The distances are rounded from a continuous variable, flat and then exponential on either side;
    the rounding moves it by 1/2 at most, which widens the flat part.
    """
    flat = 1 + probability / 2
    count = probability.size
    in_flat = rng.random(count) * (1 + flat) <= flat
    distance = np.where(in_flat, flat * rng.random(count), flat + rng.standard_exponential(count))
    sign = np.where(rng.random(count) < 0.5, -1, 1)
    return sign * np.rint(distance / probability), np.minimum(flat - distance, 0)
