"""What compiled code gets: it follows sizes without a look, so that they are checked before."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def check_arrays(sizes: dict[str, int], **arrays: tuple[str, NDArray]) -> None:
    """Refuse arrays that do not go together.

    Parameters
    ----------
    sizes : dict
        How long axes are, by letter: samples J, components K, features I.
    **arrays : (axes, array)
        By name. An axis is a letter, or a digit if it has always this length. Arrays must be
        C-contiguous, but for those whose axes begin with a question mark: they are broadcast, and
        their axes may have the length 1.
    """
    for name, (axes, array) in arrays.items():
        broadcast = axes.startswith("?")
        wanted = tuple(
            int(axis) if axis.isdigit() else sizes[axis] for axis in axes.removeprefix("?")
        )
        fits = array.ndim == len(wanted) and all(
            found == size or (broadcast and found == 1)
            for found, size in zip(array.shape, wanted, strict=True)
        )
        if not fits:
            raise ValueError(f"{name} must have the shape {wanted}; found {array.shape}.")
        if array.dtype.char not in "fd?":
            raise ValueError(f"{name} must be of type float32 or float64; found {array.dtype}.")
        if not (broadcast or array.flags.c_contiguous):
            raise ValueError(f"{name} must be C-contiguous.")


def spread(array: ArrayLike, shape: tuple[int, ...]) -> NDArray:
    """The array broadcast to a shape, C-contiguous and writable: others are compiled for anew."""
    array = np.asarray(array)
    whole = array if array.shape == shape else np.broadcast_to(array, shape)
    return np.require(whole, requirements=("C", "W"))
