"""A sparse matrix: what is not stored is a gap, or 0."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .dense import DenseSource
from .source import Block, BlockSource, float_type
from .summary import Accepted, Summary, refuse_values, summarise_cells

# Cells of a block that is made dense.
_BLOCK = 1 << 20
# Stored cells that are looked at one by one, at a time.
_STORED = 1 << 16


class _Stored(BlockSource):
    """What both have in common: a matrix in the format CSR, of which blocks are made dense."""

    _unstored: float

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.dtype = float_type(X.dtype)

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop`, dense."""
        return self._dense(self.X[start:stop])

    def take(self, rows: NDArray) -> NDArray:
        """Some samples, dense."""
        return self._dense(self.X[rows])

    def _dense(self, part: Any) -> NDArray:
        block = np.full(part.shape, self._unstored, dtype=self.dtype)
        samples = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        block[samples, part.indices] = part.data
        return block

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """Blocks that are made dense one at a time."""
        step = max(1, _BLOCK // self.shape[1])
        for first in range(start, stop, step):
            part = slice(first, min(first + step, stop))
            yield Block(part, self.rows(part.start, part.stop))

    def divided(self, sizes: NDArray) -> Any:
        """A copy, with each feature divided by a number."""
        values = (self.X.data / sizes[self.X.indices]).astype(self.dtype, copy=False)
        return type(self)(type(self.X)((values, self.X.indices, self.X.indptr), self.X.shape))

    def parts(self) -> Iterator[NDArray]:
        """The arrays that are stored."""
        yield np.array(self.shape)
        yield from (self.X.indptr, self.X.indices, self.X.data)


class ZeroFilledSource(_Stored):
    """A sparse matrix in which cells that are not stored are 0, and data like others."""

    _unstored = 0.0

    def subset(self, rows: NDArray | slice) -> ZeroFilledSource:
        """Some samples."""
        return ZeroFilledSource(self.X[rows])

    def columns(self, start: int, stop: int) -> ZeroFilledSource:
        """Some consecutive features."""
        return ZeroFilledSource(self.X[:, start:stop])


class Cells(NamedTuple):
    """Stored cells, in an order in which what belongs to them is near in memory.

    Attributes
    ----------
    rows, columns : (n,) arrays of int32
    values : (n,) array
    starts : (n_stripes + 1,) array
        Where the cells of each stripe, of `height` samples, start and end.
    height : int
    """

    rows: NDArray
    columns: NDArray
    values: NDArray
    starts: NDArray
    height: int


class SparseSource(_Stored):
    """A sparse matrix in which cells that are not stored are gaps; passes look at the others."""

    stores_cells = True
    _unstored = np.nan

    def __init__(self, X: Any) -> None:
        super().__init__(X)
        self._cells: Cells | None = None
        self._by_feature: Any = None

    @property
    def n_cells(self) -> int:
        """Number of stored cells."""
        return int(self.X.nnz)

    @property
    def longest_row(self) -> int:
        """Most stored cells of a sample."""
        return max(1, int(np.diff(self.X.indptr).max()))

    def summarise(self, accepted: Accepted, first_row: int = 0) -> Summary:
        """The sums over the stored cells, or a refusal of one of them."""
        refuse_values(self.X.data[None], accepted, first_row, self.cell)
        summary = summarise_cells(self.X)
        accepted.check_largest(summary.largest, self.shape[1], self.dtype)
        return summary

    def dense(self) -> DenseSource:
        """The same as an array in memory."""
        return DenseSource(self.rows(0, self.shape[0]))

    def subset(self, rows: NDArray | slice) -> SparseSource:
        """Some samples."""
        return SparseSource(self.X[rows])

    def columns(self, start: int, stop: int) -> SparseSource:
        """Some consecutive features."""
        return SparseSource(self.X[:, start:stop])

    def edges(self, n_ranges: int) -> NDArray:
        """Ranges of about as many stored cells each, one sample at least."""
        n_samples = self.shape[0]
        targets = np.linspace(0, self.n_cells, n_ranges + 1)
        edges = np.searchsorted(self.X.indptr, targets)
        edges[0], edges[-1] = 0, n_samples
        low = np.arange(n_ranges + 1)
        return np.clip(np.maximum.accumulate(edges - low) + low, low, n_samples - low[::-1])

    def cell(self, number: int) -> tuple[int, int]:
        """Sample and feature of a stored cell, by its number."""
        sample = int(np.searchsorted(self.X.indptr, number, side="right")) - 1
        return sample, int(self.X.indices[number])

    def stored(self) -> Iterator[tuple[NDArray, NDArray, NDArray]]:
        """Samples, features and values of the stored cells, some at a time."""
        indptr = self.X.indptr
        for first in range(0, self.n_cells, _STORED):
            part = slice(first, min(first + _STORED, self.n_cells))
            numbers = np.arange(part.start, part.stop)
            samples = np.searchsorted(indptr, numbers, side="right") - 1
            yield samples, self.X.indices[part], self.X.data[part]

    @property
    def by_feature(self) -> Any:
        """The matrix in the format CSC."""
        if self._by_feature is None:
            self._by_feature = self.X.tocsc()
        return self._by_feature

    def cells(self, size: int) -> Cells:
        """Stored cells, in squares of `size` samples and features, one after the other."""
        if self._cells is None or self._cells.height != size:
            self._cells = _in_squares(self.X, size)
        return self._cells


def _in_squares(X: Any, size: int) -> Cells:
    """The cells of a CSR matrix, stripe by stripe, and in a stripe square by square."""
    n_samples = X.shape[0]
    n_stripes = -(-n_samples // size)
    parts: list[tuple[NDArray, NDArray, NDArray]] = []
    for start in range(0, n_samples, size):
        first, last = X.indptr[start], X.indptr[min(start + size, n_samples)]
        counts = np.diff(X.indptr[start : start + size + 1])
        rows = np.repeat(np.arange(start, start + len(counts), dtype=np.int32), counts)
        columns = X.indices[first:last]
        # Few squares: a short integer is sorted without comparisons.
        order = np.argsort((columns // size).astype(np.uint16), kind="stable")
        parts.append((rows[order], columns[order].astype(np.int32), X.data[first:last][order]))
    starts = X.indptr[np.minimum(np.arange(n_stripes + 1) * size, n_samples)]
    rows, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Cells(rows, columns, values, starts.astype(np.int64), size)
