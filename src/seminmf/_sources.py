"""Sources: where the data are, as blocks of samples. They know nothing of the model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

# A task of a pass has about this many cells × components, a third of a millisecond: much more
# than it costs to hand it to a thread.
_TASK = 1 << 20
_MOST_TASKS = 64


class Source(Protocol):
    """Samples × features, NaN where not observed."""

    shape: tuple[int, int]
    dtype: np.dtype

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop` as a C-contiguous array of `dtype`."""
        ...


class DenseSource:
    """An array in memory, of any layout. Blocks are views where the layout allows."""

    def __init__(self, X: NDArray) -> None:
        self.X = X
        self.shape: tuple[int, int] = X.shape
        self.dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.dtype(np.float64)

    def rows(self, start: int, stop: int) -> NDArray:
        block = np.ascontiguousarray(self.X[start:stop], dtype=self.dtype)
        return block if block.flags.writeable else np.asarray(_Writeable(block))


class _Writeable:
    """An array's memory without the mark that it is read-only.

    Nothing writes to it; but kernels are compiled anew for arrays with that mark.
    """

    def __init__(self, array: NDArray) -> None:
        self._array = array  # keeps the memory alive
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


class Columns:
    """Some consecutive features of another source."""

    def __init__(self, source: Source, start: int, stop: int) -> None:
        self.source = source
        self.columns = slice(start, stop)
        self.shape: tuple[int, int] = (source.shape[0], stop - start)
        self.dtype = source.dtype

    def rows(self, start: int, stop: int) -> NDArray:
        return np.ascontiguousarray(self.source.rows(start, stop)[:, self.columns])


def row_ranges(
    source: Source, n_components: int = 1, most: int = _MOST_TASKS
) -> list[tuple[int, int]]:
    """Consecutive ranges of samples, one for each of at most `most` tasks of a pass.

    They depend on the sizes alone, and so do the sums over them: the number of threads does not
    change a bit of the result.
    """
    n_samples, n_features = source.shape
    work = n_samples * n_features * n_components
    n_tasks = min(max(1, work // _TASK), most, n_samples)
    edges = np.linspace(0, n_samples, n_tasks + 1).astype(int)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
