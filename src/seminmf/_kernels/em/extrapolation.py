"""The arithmetic of a parabola through logarithms, number by number and without temporaries."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._numerics.compilation import scalar_function
from ..._numerics.compiled import kernel
from ..._numerics.elementary import exp, log

# Below the normal numbers logarithms are coarse; what is there does not move.
_SMALLEST = np.finfo(np.float64).tiny


@scalar_function
def _differences(x0, x1, x2):
    """r = ln x₁ − ln x₀ and v = (ln x₂ − ln x₁) − r; both 0 for numbers that are 0 in any point.

    In float64: a long step multiplies v, a difference of differences, by t².
    """
    a, b, c = np.float64(x0), np.float64(x1), np.float64(x2)
    moves = min(min(a, b), c) >= _SMALLEST
    middle = log(b if moves else 1.0)
    r = middle - log(a if moves else 1.0)
    return r, (log(c if moves else 1.0) - middle) - r


@kernel
def _measure(x0, x1, x2, times, sums):
    for j in range(times.size):
        weight = squares_r = squares_v = 0.0
        for n in range(x0.shape[1]):
            r, v = _differences(x0[j, n], x1[j, n], x2[j, n])
            size = np.float64(x2[j, n])
            weight += size
            squares_r += size * r * r
            squares_v += size * v * v
        sums[0] += times[j] * x0.shape[1]
        sums[1] += times[j] * weight
        sums[2] += times[j] * squares_r
        sums[3] += times[j] * squares_v


@kernel
def _extrapolate(x0, x1, x2, along, across, most, out):
    for n in range(x2.size):
        r, v = _differences(x0[n], x1[n], x2[n])
        change = along * r + across * v
        out[n] = x2[n] * exp(min(max(change, -most), most))


def measure(x0: NDArray, x1: NDArray, x2: NDArray, times: ArrayLike) -> NDArray:
    """Σ t, Σ t x₂, Σ t x₂ r² and Σ t x₂ v², where each row counts `times` t."""
    rows = [np.ascontiguousarray(x).reshape(len(x), -1) for x in (x0, x1, x2)]
    _check_points(*rows)
    sums = np.zeros(4)
    _measure(*rows, np.broadcast_to(times, (len(x0), 1)).reshape(-1).astype(np.float64), sums)
    return sums


def _check_points(x0: NDArray, x1: NDArray, x2: NDArray) -> None:
    """Refuse points of different sizes."""
    if not x0.shape == x1.shape == x2.shape:
        raise ValueError(
            f"Points must have the same shape; found {x0.shape}, {x1.shape} and {x2.shape}."
        )


def extrapolate(
    x0: NDArray, x1: NDArray, x2: NDArray, along: float, across: float, most: float
) -> NDArray:
    """x₂ · exp(along r + across v), where the exponent stays within ± `most`."""
    _check_points(x0, x1, x2)
    out = np.empty(x2.shape, dtype=x2.dtype)
    _extrapolate(*(np.ravel(x) for x in (x0, x1, x2)), along, across, most, out.ravel())
    return out
