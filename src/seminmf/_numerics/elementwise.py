"""From scalar kernels to public functions of arrays: checks, broadcasting, precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Real = float | NDArray[Any]


def real(name: str, value: ArrayLike) -> Real:
    """`value` as an array of floats; a number of Python stays one, and adapts to the others."""
    if type(value) in (int, float):
        return float(value)  # type: ignore[arg-type]
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers; found dtype {array.dtype}.")
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def require(name: str, value: Real, valid: Any, accepted: str) -> None:
    """Raise ValueError for the first entry that is not `valid`; NaN is, and stays NaN."""
    wrong = ~(np.asarray(valid) | np.isnan(value))
    if wrong.any():
        found = np.broadcast_to(value, wrong.shape)[wrong].flat[0]
        raise ValueError(f"{name} must be {accepted}; found {found}.")


def nonnegative(name: str, value: ArrayLike) -> Real:
    """`value` as finite real numbers >= 0, or NaN."""
    array = real(name, value)
    require(name, array, np.greater_equal(array, 0) & np.isfinite(array), "finite and >= 0")
    return array


def elementwise(loop: Callable[..., None], *values: Real) -> Any:
    """Apply a compiled loop over float64 vectors, the last one its result.

    The result has the broadcast shape, a scalar for scalars, and is float32 if all arrays are.
    """
    arrays = np.broadcast_arrays(*values)
    result = np.empty(arrays[0].shape)
    loop(
        *(np.ascontiguousarray(a, dtype=np.float64).reshape(-1) for a in arrays), result.reshape(-1)
    )
    with np.errstate(over="ignore", under="ignore"):
        return result.astype(result_type(*values), copy=False)[()]


def result_type(*values: Real) -> type[np.floating[Any]]:
    """float32 if all arrays among `values` are that narrow, else float64."""
    return np.float32 if np.result_type(*values) in (np.float16, np.float32) else np.float64
