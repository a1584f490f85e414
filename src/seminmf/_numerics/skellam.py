"""Logarithm of the Skellam probability and the conditional mean of one cell, at any size."""

from __future__ import annotations

import math

from . import bessel
from .compilation import scalar_function
from .divergence import divergence_of_any_size
from .elementary import log

# Beyond, the expansions reduce to their leading terms, which are homogeneous: orders and arguments
# can be scaled down, so that their squares stay in range.
_LARGEST = 1e100


@scalar_function
def skellam_log_pmf(x, rate0, rate1):
    """ln P(x) = -D(x | rate0, rate1) + G(|x|, 2 sqrt(rate0 rate1)), float64; -inf if impossible.

    For rate1 = 0 it is the Poisson distribution's.
    """
    size, mean, shrink = _within_range(x, rate0, rate1)
    _, g = bessel.bessel_cell(size, mean * mean)
    # G is -ln(2 pi s)/2 where `shrink` is not 1.
    value = (g + 0.5 * log(shrink)) - divergence_of_any_size(x, rate0, rate1)
    return value if x == math.floor(x) else (-math.inf if x == x else x)


@scalar_function
def smaller_total(x, rate0, rate1):
    """Mean of the smaller Poisson total given the difference x, float64."""
    size, mean, shrink = _within_range(x, rate0, rate1)
    return bessel.smaller_total(size, mean * mean) / shrink


@scalar_function
def _within_range(x, rate0, rate1):
    """|x| and sqrt(rate0 rate1), both multiplied by the third result."""
    mean = math.sqrt(rate0) * math.sqrt(rate1)
    larger = max(abs(x), mean)
    shrink = _LARGEST / larger if larger > _LARGEST else 1.0
    return shrink * abs(x), shrink * mean, shrink
