"""The arithmetic of a parabola through logarithms, number by number and without temporaries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._numerics.elementary import exp, log
from .compiled import kernel, prefer_wide_vectors

# Below the normal numbers logarithms are coarse; what is there does not move.
_SMALLEST = np.finfo(np.float64).tiny


@kernel
def _log_differences(x0, x1, x2, r, v):
    prefer_wide_vectors()
    for n in range(x0.size):
        a, b, c = np.float64(x0[n]), np.float64(x1[n]), np.float64(x2[n])
        moves = min(min(a, b), c) >= _SMALLEST
        middle = log(b if moves else 1.0)
        first = middle - log(a if moves else 1.0)
        r[n] = first
        v[n] = (log(c if moves else 1.0) - middle) - first


@kernel
def _extrapolate(end, r, v, along, across, most, out):
    prefer_wide_vectors()
    for n in range(end.size):
        change = along * r[n] + across * v[n]
        out[n] = end[n] * exp(min(max(change, -most), most))


def log_differences(x0: NDArray, x1: NDArray, x2: NDArray) -> tuple[NDArray, NDArray]:
    """r = ln x₁ − ln x₀ and v = (ln x₂ − ln x₁) − r; both 0 for numbers that are 0 in any point.

    In float64: a long step multiplies v, a difference of differences, by t².
    """
    r, v = np.empty(x0.shape), np.empty(x0.shape)
    _log_differences(*(np.ravel(array) for array in (x0, x1, x2, r, v)))
    return r, v


def extrapolate(
    end: NDArray, r: NDArray, v: NDArray, along: float, across: float, most: float
) -> NDArray:
    """end · exp(along r + across v), where the exponent stays within ± `most`."""
    out = np.empty(end.shape, dtype=end.dtype)
    _extrapolate(np.ravel(end), np.ravel(r), np.ravel(v), along, across, most, out.ravel())
    return out
