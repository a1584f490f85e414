"""Sources: where the data are, as blocks of samples. They know nothing of the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

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

    @property
    def n_cells(self) -> int:
        """Number of cells that a pass has to look at."""
        ...

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop` as a C-contiguous array of `dtype`."""
        ...

    def blocks(self, start: int, stop: int) -> Iterator[tuple[slice, NDArray]]:
        """The same in parts that do not need much memory, with the samples that they are."""
        ...

    def take(self, rows: NDArray) -> NDArray:
        """Some samples, by their numbers, in the form of `rows`."""
        ...

    def subset(self, rows: NDArray | slice) -> Source:
        """Some samples as a source of their own."""
        ...

    def columns(self, start: int, stop: int) -> Source:
        """Some consecutive features."""
        ...

    def parts(self) -> Iterator[NDArray]:
        """Arrays that tell these data from others."""
        ...

    def edges(self, n_ranges: int) -> NDArray:
        """Where ranges of samples that have about the same number of cells start and end."""
        ...


@runtime_checkable
class Elsewhere(Protocol):
    """A source whose samples are in chunks, of which not all need to be here at the same time."""

    def opened(self, accepted: Any) -> list[Any]:
        """The chunks, in which only accepted numbers may be."""
        ...

    def summarised(self, accepted: Any) -> tuple[list[Any], Any]:
        """The same, and what they sum up to."""
        ...

    def place(self, chunks: list[Any], prior: Any, sample_weight: NDArray) -> Any:
        """Where the work on them is done, for a problem with this prior and these weights."""
        ...


def row_ranges(
    source: Source, n_components: int = 1, most: int = _MOST_TASKS
) -> list[tuple[int, int]]:
    """Consecutive ranges of samples, one for each of at most `most` tasks of a pass.

    They depend on the data alone, and so do the sums over them: the number of threads does not
    change a bit of the result.
    """
    n_tasks = min(max(1, source.n_cells * n_components // _TASK), most, source.shape[0])
    edges = source.edges(n_tasks)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
