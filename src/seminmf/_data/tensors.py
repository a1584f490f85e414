"""Observed tensors that are no arrays in memory: stored cells alone, or slices that are read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .disk import DiskSource
from .source import BlockSource, float_type
from .sparse import SparseSource

# Numbers that are read at a time, and cells from which on an array is not read as a whole.
_BLOCK = 1 << 22
LARGE = 1 << 25


class StoredTensor(NamedTuple):
    """Cells of a tensor, whose others are gaps.

    Attributes
    ----------
    shape : tuple of int
    coords : tuple of arrays
        Where the cells are, for each axis.
    values : array
    """

    shape: tuple[int, ...]
    coords: tuple[NDArray, ...]
    values: NDArray

    @classmethod
    def of(cls, X: Any) -> StoredTensor:
        """From a sparse array of any number of axes; what is stored twice adds up."""
        own = X.tocoo().copy()
        own.sum_duplicates()
        values = own.data.astype(float_type(own.data.dtype), copy=False)
        return cls(tuple(own.shape), tuple(np.asarray(one) for one in own.coords), values)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def dense(self) -> NDArray:
        """The same as an array, with NaN in gaps."""
        array = np.full(self.shape, np.nan, dtype=self.values.dtype)
        array[self.coords] = self.values
        return array

    def blocks(self) -> Iterator[NDArray]:
        """The values."""
        yield self.values

    def parts(self) -> Iterator[NDArray]:
        """Arrays that tell it from others."""
        yield np.array(self.shape)
        yield from self.coords
        yield self.values

    def source(self, order: Sequence[int], padding: Sequence[int], n_rows: int) -> SparseSource:
        """As rows × features: axes in this order, the first `n_rows` of them rows."""
        lengths = [self.shape[n] + 2 * padding[n] for n in order]
        coords = [self.coords[n].astype(np.int64) + padding[n] for n in order]
        sides = []
        for part in (slice(0, n_rows), slice(n_rows, None)):
            sides.append(np.ravel_multi_index(tuple(coords[part]), tuple(lengths[part])))
        shape = (math.prod(lengths[:n_rows]), math.prod(lengths[n_rows:]))
        return SparseSource(sparse.csr_array((self.values, tuple(sides)), shape=shape))


class SlicedTensor:
    """A large array that is read in slices of its first axis: HDF5, Zarr, Dask, a memory map."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.shape: tuple[int, ...] = tuple(int(size) for size in X.shape)
        self.ndim = len(self.shape)
        self.dtype = float_type(X.dtype)
        self._step = max(1, _BLOCK // math.prod(self.shape[1:]))

    def cells(self, start: int, stop: int) -> NDArray:
        """Some values of the first axis, in memory."""
        return np.asarray(self.X[start:stop]).astype(self.dtype, copy=False)

    def dense(self) -> NDArray:
        """All of it."""
        return self.cells(0, self.shape[0])

    def blocks(self) -> Iterator[NDArray]:
        """All of it, slice by slice."""
        for start in range(0, self.shape[0], self._step):
            yield self.cells(start, min(start + self._step, self.shape[0]))

    parts = blocks

    def source(self, order: Sequence[int], padding: Sequence[int], n_rows: int) -> BlockSource:
        """As rows × features; the axes stay in their order."""
        return DiskSource(_Unfolded(self, n_rows))


class _Unfolded:
    """A sliced tensor as a table that is sliced."""

    def __init__(self, tensor: SlicedTensor, n_rows: int) -> None:
        self._tensor = tensor
        self._each = math.prod(tensor.shape[1:n_rows])
        self.shape = (tensor.shape[0] * self._each, math.prod(tensor.shape[n_rows:]))
        self.dtype = tensor.dtype

    def __getitem__(self, part: tuple[slice, slice]) -> NDArray:
        rows, features = part
        first, last = rows.start // self._each, -(-rows.stop // self._each)
        table = self._tensor.cells(first, last).reshape(-1, self.shape[1])
        start = rows.start - first * self._each
        return table[start : start + rows.stop - rows.start, features]


def blocks_of(array: Any) -> Iterator[NDArray]:
    """The numbers of an observed tensor, in arrays."""
    return iter((array,)) if isinstance(array, np.ndarray) else array.blocks()


def dense_of(array: Any) -> NDArray:
    """An observed tensor as an array."""
    return array if isinstance(array, np.ndarray) else array.dense()
