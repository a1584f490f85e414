"""A Dask array as a source: chunks of samples, wherever they are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import dask.base as dask
import numpy as np
from dask.delayed import delayed
from dask.sizeof import sizeof
from numpy.typing import NDArray

from ..dense import DenseSource, equal_edges, float_type
from ..memory import available_memory
from ..source import Source
from ..summary import Summary
from .reduction import branches, total
from .workers import at_home, current_workers, homes_of

# Share of the memory there is that the chunks may take to be kept there during a fit.
_SHARE = 0.5


class Chunk(NamedTuple):
    """Some samples where they are: a source, its sums, and the memory that it takes."""

    source: Source
    summary: Summary
    n_bytes: int


# A scheduler that took chunks for small would send them from worker to worker.
sizeof.register(Chunk, attrgetter("n_bytes"))


class ChunkedSource:
    """A Dask array that is chunked over samples.

    Parameters
    ----------
    X : dask.array.Array
    zeros : {"missing", "observed"}
        What sparse chunks do not store.
    """

    def __init__(self, X: Any, zeros: str) -> None:
        self.X = X
        self._zeros = zeros
        self.shape: tuple[int, int] = X.shape
        self.dtype = float_type(X.dtype)
        self.lengths: tuple[int, ...] = X.chunks[0]
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])

    @property
    def n_cells(self) -> int:
        """All of them."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def homes(self) -> list[str | None]:
        """The worker that each chunk is kept on, if there are workers."""
        return homes_of(self.X)

    def opened(self, accepted: Any) -> list[Any]:
        """Delayed chunks, whose values are checked when it is their turn."""
        (X,) = dask.optimize(self.X)
        task = delayed(_open_chunk, pure=False)
        chunks = []
        for n, (block, home) in enumerate(zip(X.to_delayed().ravel(), self.homes, strict=True)):
            with at_home(home):
                chunks.append(task(block, self._zeros, accepted, int(self.starts[n])))
        return chunks

    def summarised(self, accepted: Any) -> tuple[list[Any], Summary]:
        """The chunks, which stay in memory if there is enough of it, and what they sum up to."""
        chunks = self.opened(accepted)
        if _fits(self.X.nbytes):
            chunks = list(dask.persist(*chunks))
        task = delayed(_summary_of, pure=False)
        parts = branches([task(chunk) for chunk in chunks], Summary.joined)
        return chunks, total(parts, Summary.joined)

    def place(self, chunks: list[Any], prior: Any, sample_weight: NDArray) -> Any:
        """Where the work on the chunks is done."""
        from .executor import OnChunks

        return OnChunks(self, chunks, prior, sample_weight)

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop`, brought here."""
        return self._dense(self.X[start:stop].compute())

    def take(self, rows: NDArray) -> NDArray:
        """Some samples, brought here."""
        return self._dense(self.X[rows].compute())

    def _dense(self, block: Any) -> NDArray:
        source = _source_of(block, self._zeros)
        return source.rows(0, source.shape[0])

    def blocks(self, start: int, stop: int) -> Iterator[tuple[slice, NDArray]]:
        """Chunks, brought here one after the other."""
        inner = self.starts[(self.starts > start) & (self.starts < stop)].tolist()
        for pair in pairwise([start, *inner, stop]):
            yield slice(*pair), self.rows(*pair)

    def subset(self, rows: NDArray | slice) -> Source:
        """Some samples, brought here."""
        return _source_of(self.X[rows].compute(), self._zeros)

    def columns(self, start: int, stop: int) -> ChunkedSource:
        """Some consecutive features."""
        return ChunkedSource(self.X[:, start:stop], self._zeros)

    def parts(self) -> Iterator[NDArray]:
        """Fingerprints of the chunks."""
        task = delayed(_fingerprint, pure=False)
        blocks = self.X.to_delayed().ravel()
        yield np.array(dask.compute(*(task(block, self._zeros) for block in blocks)))

    def edges(self, n_ranges: int) -> NDArray:
        """Ranges of as many samples each."""
        return equal_edges(self.shape[0], n_ranges)


def _open_chunk(block: Any, zeros: str, accepted: Any, first_row: int) -> Chunk:
    """The samples of a chunk, after the checks of their values."""
    from ..._estimators import validation as check

    source = _source_of(block, zeros)
    summary = check.summarise(source, accepted, first_row)
    n_bytes = sum(part.nbytes for part in source.parts())
    return Chunk(source, summary, n_bytes + sizeof(summary))


def _source_of(block: Any, zeros: str) -> Source:
    from ..opening import sparse_source

    if hasattr(block, "tocsr"):
        return sparse_source(block, zeros)
    return DenseSource(np.asarray(block))


def _summary_of(chunk: Chunk) -> Summary:
    """What is told of a chunk: not of its samples one by one."""
    return chunk.summary.without_rows()


def _fingerprint(block: Any, zeros: str) -> NDArray:
    from ..._estimators.checkpoint import fingerprint

    digest = fingerprint(*_source_of(block, zeros).parts())
    return np.frombuffer(bytes.fromhex(digest), dtype=np.uint8)


def _fits(n_bytes: float) -> bool:
    """Whether so much data can stay in the memory of the workers, or of this machine."""
    workers = current_workers().values()
    available = sum(worker["memory_limit"] or 0 for worker in workers)
    if not workers:
        available = available_memory()
    return not available or n_bytes < _SHARE * available
