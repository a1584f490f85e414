"""An array in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .source import Block, BlockSource, float_type


class DenseSource(BlockSource):
    """An array in memory, of any layout. Blocks are views where the layout allows."""

    in_memory = True

    def __init__(self, X: NDArray) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.dtype = float_type(X.dtype)

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop`."""
        block = np.ascontiguousarray(self.X[start:stop], dtype=self.dtype)
        return block if block.flags.writeable else np.asarray(_Writeable(block))

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """One block: it is in memory already."""
        yield Block(slice(start, stop), self.rows(start, stop))

    def take(self, rows: NDArray) -> NDArray:
        """Some samples."""
        return np.ascontiguousarray(self.X[rows], dtype=self.dtype)

    def subset(self, rows: NDArray | slice) -> DenseSource:
        """Some samples."""
        return DenseSource(self.X[rows])

    def columns(self, start: int, stop: int) -> DenseSource:
        """Some consecutive features."""
        return DenseSource(self.X[:, start:stop])

    def divided(self, sizes: NDArray) -> DenseSource:
        """A copy, with each feature divided by a number."""
        return DenseSource((self.X / sizes).astype(self.dtype, copy=False))

    def parts(self) -> Iterator[NDArray]:
        """The array."""
        yield self.X


class _Writeable:
    """An array's memory without the mark that it is read-only.

    Nothing writes to it; but kernels are compiled anew for arrays with that mark.
    """

    def __init__(self, array: NDArray) -> None:
        self._array = array  # keeps the memory alive
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface
