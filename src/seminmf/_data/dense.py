"""An array in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


def float_type(dtype: DTypeLike) -> np.dtype:
    """The type that data of some type are computed in: float32 stays, all else is float64."""
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


class DenseSource:
    """An array in memory, of any layout. Blocks are views where the layout allows."""

    def __init__(self, X: NDArray) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.dtype = float_type(X.dtype)

    @property
    def n_cells(self) -> int:
        """All of them."""
        return self.shape[0] * self.shape[1]

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop`."""
        block = np.ascontiguousarray(self.X[start:stop], dtype=self.dtype)
        return block if block.flags.writeable else np.asarray(_Writeable(block))

    def blocks(self, start: int, stop: int) -> Iterator[tuple[slice, NDArray]]:
        """One block: it is in memory already."""
        yield slice(start, stop), self.rows(start, stop)

    def take(self, rows: NDArray) -> NDArray:
        """Some samples."""
        return np.ascontiguousarray(self.X[rows], dtype=self.dtype)

    def subset(self, rows: NDArray | slice) -> DenseSource:
        """Some samples."""
        return DenseSource(self.X[rows])

    def columns(self, start: int, stop: int) -> DenseSource:
        """Some consecutive features."""
        return DenseSource(self.X[:, start:stop])

    def parts(self) -> Iterator[NDArray]:
        """The array."""
        yield self.X

    def edges(self, n_ranges: int) -> NDArray:
        """Ranges of as many samples each."""
        return equal_edges(self.shape[0], n_ranges)


def equal_edges(n_samples: int, n_ranges: int) -> NDArray[Any]:
    """Where ranges of about the same number of samples start and end."""
    return np.linspace(0, n_samples, n_ranges + 1).astype(int)


class _Writeable:
    """An array's memory without the mark that it is read-only.

    Nothing writes to it; but kernels are compiled anew for arrays with that mark.
    """

    def __init__(self, array: NDArray) -> None:
        self._array = array  # keeps the memory alive
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface
