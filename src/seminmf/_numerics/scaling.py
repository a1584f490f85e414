"""Powers of two near given sizes, which scale without rounding."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# No farther than this: products and quotients of two such powers are still numbers.
_FARTHEST = 1000


def power_of_two(size: float) -> float:
    """The power of two at or below `size`; 1 for 0."""
    if size == 0:
        return 1.0
    return math.ldexp(1.0, min(max(math.frexp(size)[1] - 1, -_FARTHEST), _FARTHEST))


def powers_of_two(sizes: NDArray) -> NDArray:
    """The same for each of an array."""
    exponents = np.clip(np.frexp(sizes)[1] - 1, -_FARTHEST, _FARTHEST)
    return np.ldexp(1.0, np.where(sizes == 0, 0, exponents))
