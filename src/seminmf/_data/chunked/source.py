"""A Dask array as a source: chunks of samples, wherever they are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

import dask.base as dask
import numpy as np
from dask.delayed import delayed
from dask.sizeof import sizeof
from numpy.typing import NDArray

from ..dense import DenseSource
from ..fingerprint import fingerprint
from ..memory import available_memory
from ..opening import sparse_source
from ..reading import as_numbers_only, within
from ..source import BlockSource, float_type
from ..summary import NOTHING_KNOWN, Accepted, Summary
from .executor import ChunkedExecutor
from .reduction import branches, total
from .workers import current_workers, on_worker, workers_of

# Share of the memory there is that the chunks may take to be kept there during a fit.
_SHARE = 0.5


class Chunk(NamedTuple):
    """Some samples where they are: a source, its sums, and the memory that it takes."""

    source: BlockSource
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
    chunks : list of Delayed or None
        The delayed `Chunk`s, once `check` has made them.
    """

    in_memory = False
    is_local = False
    stores_cells = False

    def __init__(self, X: Any, zeros: str, chunks: list[Any] | None = None) -> None:
        self.X = X
        self._zeros, self._chunks = zeros, chunks
        self.shape: tuple[int, int] = X.shape
        self.dtype = float_type(X.dtype)
        self.lengths: tuple[int, ...] = X.chunks[0]
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])

    @cached_property
    def workers(self) -> list[str | None]:
        """The worker that each chunk is kept on, if there are workers."""
        return workers_of(self.X)

    def check(self, accepted: Accepted, *, fitted: bool) -> tuple[ChunkedSource, Summary]:
        """The source with its chunks, and what they sum up to.

        Chunks stay in memory if there is enough of it. For a model that is fitted already each
        chunk is checked when it is its turn.
        """
        chunks = self._opened(accepted)
        if fitted:
            return self._with_chunks(chunks), NOTHING_KNOWN
        if _fits(self.X.nbytes):
            chunks = list(dask.persist(*chunks))
        task = delayed(_summary_of, pure=False)
        parts = branches([task(chunk) for chunk in chunks], Summary.joined)
        return self._with_chunks(chunks), total(parts, Summary.joined)

    def _with_chunks(self, chunks: list[Any]) -> ChunkedSource:
        opened = ChunkedSource(self.X, self._zeros, chunks)
        opened.workers = self.workers
        return opened

    def _opened(self, accepted: Accepted) -> list[Any]:
        (X,) = dask.optimize(self.X)
        task = delayed(_open_chunk, pure=False)
        chunks = []
        blocks = X.to_delayed().ravel()
        for n, (block, worker) in enumerate(zip(blocks, self.workers, strict=True)):
            with on_worker(worker):
                chunks.append(task(block, self._zeros, accepted, int(self.starts[n])))
        return chunks

    def executor(self, n_jobs: int | None) -> AbstractContextManager[ChunkedExecutor]:
        """Where the chunks are; Dask decides on the threads."""
        assert self._chunks is not None
        return nullcontext(ChunkedExecutor(self._chunks, self.lengths, self.workers))

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop`, brought here."""
        return self._dense(self.X[start:stop].compute())

    def take(self, rows: NDArray) -> NDArray:
        """Some samples, brought here."""
        return self._dense(self.X[rows].compute())

    def _dense(self, block: Any) -> NDArray:
        source = _source_of(block, self._zeros)
        return source.rows(0, source.shape[0])

    def parts(self) -> Iterator[NDArray]:
        """Fingerprints of the chunks."""
        task = delayed(_fingerprint, pure=False)
        blocks = self.X.to_delayed().ravel()
        yield np.array(dask.compute(*(task(block, self._zeros) for block in blocks)))


def _open_chunk(block: Any, zeros: str, accepted: Accepted, first_row: int) -> Chunk:
    """The samples of a chunk, after the checks of their values."""
    source = _source_of(block, zeros, first_row)
    summary = source.summarise(accepted, first_row)
    n_bytes = sum(part.nbytes for part in source.parts())
    return Chunk(source, summary, n_bytes + sizeof(summary))


def _source_of(block: Any, zeros: str, first_row: int = 0) -> Any:
    if hasattr(block, "tocsr"):
        return sparse_source(block, zeros, first_row)
    return DenseSource(as_numbers_only(np.asanyarray(block), place=within(first_row)))


def _summary_of(chunk: Chunk) -> Summary:
    """What is told of a chunk: not of its samples one by one."""
    return chunk.summary.without_rows()


def _fingerprint(block: Any, zeros: str) -> NDArray:
    digest = fingerprint(*_source_of(block, zeros).parts())
    return np.frombuffer(bytes.fromhex(digest), dtype=np.uint8)


def _fits(n_bytes: float) -> bool:
    """Whether so much data can stay in the memory of the workers, or of this machine."""
    workers = current_workers().values()
    available = sum(worker["memory_limit"] or 0 for worker in workers)
    if not workers:
        available = available_memory()
    return not available or n_bytes < _SHARE * available
