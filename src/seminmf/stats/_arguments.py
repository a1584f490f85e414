"""What the distributions have in common: arguments, generators, the expected totals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from .._numerics import loops
from .._numerics.elementwise import elementwise, nonnegative, real, require

# NumPy's generators count in 64 bits.
LARGEST_COUNT = 9e18


def generator(random_state: Any) -> Generator:
    """A NumPy generator from what scikit-learn takes as `random_state`, or from one itself."""
    if isinstance(random_state, Generator):
        return random_state
    legacy = check_random_state(random_state)
    # The legacy generator has no multinomial draws that broadcast. It hands out a seed.
    return np.random.default_rng(legacy.randint(0, 2**31, size=4))


def finite(name: str, value: ArrayLike) -> Any:
    """`value` as finite real numbers, or NaN."""
    array = real(name, value)
    require(name, array, np.isfinite(array), "finite")
    return array


def source_rates(rates: ArrayLike) -> NDArray[Any]:
    """`rates` as an array (..., 2, N) of finite numbers >= 0."""
    array = np.asarray(nonnegative("rates", rates))
    if array.ndim < 2 or array.shape[-2] != 2:
        raise ValueError(f"rates must have the shape (..., 2, N); found {array.shape}.")
    return array


def possible(x: Any, totals: NDArray[Any]) -> None:
    """Refuse an x whose sign has no rate: nothing can be said of sources that cannot be."""
    own = np.where(np.greater_equal(x, 0), totals[..., 0], totals[..., 1])
    accepted = "0, or of a sign for which rates has a positive entry"
    require("x", x, (own > 0) | np.equal(x, 0), accepted)


def mean_totals(x: Any, totals: NDArray[Any]) -> NDArray[Any]:
    """Means (..., 2) of the two Poisson totals, whose rates are `totals`, given x."""
    smaller = elementwise(loops.smaller_total, x, totals[..., 0], totals[..., 1])
    return np.stack([smaller + np.maximum(x, 0), smaller + np.maximum(np.negative(x), 0)], axis=-1)


def shares(rates: NDArray[Any], totals: NDArray[Any]) -> NDArray[Any]:
    """Part of each source in its side's rate; equal parts of nothing."""
    empty = totals[..., None] == 0
    return np.where(empty, 1 / rates.shape[-1], rates / np.where(empty, 1, totals[..., None]))
