"""An array on disk: a memory map, or anything that is sliced like one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .dense import DenseSource
from .reading import as_numbers_only, within
from .source import Block, BlockSource, float_type

# Bytes of a block. A task has two of them at a time, one to work on and one that is being read.
_BLOCK = 8 << 20


class DiskSource(BlockSource):
    """An array that is read in blocks, each while the one before it is worked on.

    Parameters
    ----------
    X : object with `shape`, `dtype` and slices
        A `numpy.memmap`, an HDF5 or Zarr array. If it has chunks, blocks are made of whole ones.
    first, last : int
        The features that are taken.
    sizes : (I,) array or None
        What these are divided by, as they are read.
    """

    def __init__(
        self, X: Any, first: int = 0, last: int | None = None, sizes: NDArray | None = None
    ) -> None:
        self.X, self._sizes = X, sizes
        self._features = slice(first, X.shape[1] if last is None else last)
        self.shape: tuple[int, int] = (X.shape[0], self._features.stop - first)
        self.dtype = float_type(X.dtype)
        self._step = self._rows_of_a_block()

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop`, copied into memory."""
        block = np.asanyarray(self.X[start:stop, self._features])  # some have a mask
        block = as_numbers_only(block, place=within(start, self._features.start))
        if self._sizes is not None:
            block = block / self._sizes
        return np.array(block, dtype=self.dtype, order="C")

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """Blocks that are read ahead by a thread."""
        inner = range((start // self._step + 1) * self._step, stop, self._step)
        edges = [start, *inner, stop]
        parts = [slice(*pair) for pair in pairwise(edges)]
        with ThreadPoolExecutor(1) as reader:
            waiting = reader.submit(self.rows, start, edges[1])
            for part, following in zip(parts, [*parts[1:], None], strict=True):
                block = waiting.result()
                if following is not None:
                    waiting = reader.submit(self.rows, following.start, following.stop)
                yield Block(part, block)

    def take(self, rows: NDArray) -> NDArray:
        """Some samples."""
        return np.concatenate([self.rows(j, j + 1) for j in rows])

    def subset(self, rows: NDArray | slice) -> DenseSource:
        """Some samples, read into memory."""
        if isinstance(rows, slice):
            return DenseSource(self.rows(rows.start, rows.stop))
        return DenseSource(self.take(rows))

    def columns(self, start: int, stop: int) -> DiskSource:
        """Some consecutive features."""
        first = self._features.start
        sizes = None if self._sizes is None else self._sizes[start:stop]
        return DiskSource(self.X, first + start, first + stop, sizes)

    def divided(self, sizes: NDArray) -> DiskSource:
        """The same, with each feature divided by a number as it is read."""
        return DiskSource(self.X, self._features.start, self._features.stop, sizes)

    def parts(self) -> Iterator[NDArray]:
        """All blocks."""
        return (block.X for block in self.blocks(0, self.shape[0]))

    def batches(self, size: int, random: RandomState) -> Iterator[NDArray | slice]:
        """Batches of neighbours, as they lie on the disk, in random order."""
        starts = range(0, self.shape[0], size)
        for number in random.permutation(len(starts)):
            yield slice(starts[number], min(starts[number] + size, self.shape[0]))

    def _rows_of_a_block(self) -> int:
        row = self.shape[1] * self.dtype.itemsize
        chunks = getattr(self.X, "chunks", None)
        chunk = int(chunks[0]) if chunks else 1
        return max(1, _BLOCK // (row * chunk)) * chunk
