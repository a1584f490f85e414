"""Arrays with a row for each sample, in chunks that stay where they are, and work on them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import dask.base as dask
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from ..executor import LocalExecutor
from .reduction import BRANCHES, branches, total
from .workers import current_workers, on_worker, share_out, together

# What a scheduler keeps of a task, and of an array that all chunks are told: so that it can compute
# again what a worker takes with it.
_TASK_BYTES, _COPIES = 4096, 3
# So many bytes are kept there before arrays of samples are made known for themselves.
_MOST_KEPT = 16 << 20
# Calls after which the workers are looked at again.
_LOOK_EVERY = 20

# What a function returns for a chunk: arrays, and sums.
Bundle = tuple[tuple, tuple]


class ChunkedArray:
    """An array in chunks.

    Parameters
    ----------
    bundles : list of Delayed
        The delayed Bundle of each chunk.
    number : int
        Which of the arrays it is.
    lengths : tuple of int
        Samples in the chunks.
    """

    def __init__(self, bundles: list[Any], number: int, lengths: tuple[int, ...]) -> None:
        self.bundles, self.number, self.lengths = bundles, number, lengths

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray:
        chunks = dask.compute(*self.as_delayed())
        return np.concatenate(chunks).astype(dtype, copy=False)

    def scatter(self, array: NDArray) -> ChunkedArray:
        """Another array in the same chunks."""
        edges = np.cumsum(self.lengths)[:-1]
        bundles = [delayed(_bundle, pure=False)(part) for part in np.split(array, edges)]
        return ChunkedArray(bundles, 0, self.lengths)

    def as_dask(self, shape: tuple[int, ...], dtype: np.dtype) -> Any:
        """A Dask array that is computed when it is asked for."""
        import dask.array as da

        chunks = [
            da.from_delayed(chunk, (length, *shape), dtype)
            for chunk, length in zip(self.as_delayed(), self.lengths, strict=True)
        ]
        return da.concatenate(chunks)

    def as_delayed(self) -> list[Any]:
        """The delayed array of each chunk."""
        task = delayed(_array_of, pure=False)
        return [task(bundle, self.number) for bundle in self.bundles]


@dataclass(frozen=True)
class Message:
    """What all chunks are told. Not a tuple: some versions of Dask look for tasks in those."""

    function: Any
    problem: Any
    numbers: list[int]
    shared: tuple


class ChunkedExecutor:
    """Does the work on samples where their chunks are.

    Parameters
    ----------
    chunks : list of Delayed
        Each with a source and a summary.
    lengths : tuple of int
        Samples in the chunks.
    workers : list of str or None
        The worker that each chunk is kept on.
    """

    def __init__(
        self, chunks: list[Any], lengths: tuple[int, ...], workers: list[str | None]
    ) -> None:
        self._chunks, self._lengths, self._homes = chunks, lengths, workers
        self._groups = together(workers, BRANCHES)
        self._on_workers = None not in workers
        self._workers = {home for home in workers if home is not None}
        self._held: tuple = ()
        self._n_calls = self._n_kept = 0
        self._most_kept = _MOST_KEPT
        self._own: tuple[Any, list[Any]] = (None, [])

    def run(self, problem: Any, function: Any, rows: tuple, shared: tuple) -> tuple[tuple, tuple]:
        """Call the function for each chunk; sums come here, arrays stay.

        Without sums nothing is computed yet.
        """
        rows = self._looked_after(rows, shared)
        numbers = [array.number for array in rows]
        message = Message(function, problem.without_samples(), numbers, shared)
        sent = delayed(message, pure=False, traverse=False)
        task = delayed(_call, pure=False)
        bundles = [
            task(sent, chunk, own, *(array.bundles[n] for array in rows))
            for n, (chunk, own) in enumerate(zip(self._chunks, self._own_of(problem), strict=True))
        ]
        sums: tuple = ()
        if function.n_sums:
            # A task of its own, where the bundles are: sums travel, the chunks' arrays do not.
            add = delayed(_sums_of, pure=False)
            parts = [add(*(bundles[n] for n in group)) for group in self._groups]
            computed = dask.persist(*bundles, *branches(parts, _add_sums))
            if self._on_workers:
                # Those of the call before are let go only now: a client sends a message every 10 ms
                # at most, and word of that would have held up this one.
                self._held = computed, rows
            bundles = list(computed[: len(bundles)])
            sums = total(computed[len(bundles) :], _add_sums)
        return tuple(ChunkedArray(bundles, n, self._lengths) for n in range(function.n_rows)), sums

    def _looked_after(self, rows: tuple, shared: tuple) -> tuple:
        """The same rows; now and then what was told of them until now is no longer kept.

        A scheduler keeps all tasks that an array came from, and all that they were told. Arrays
        that are brought here and sent anew come from nothing. They travel no more than all that has
        been told since they did so before.
        """
        if not self._on_workers:
            return rows
        self._n_calls += 1
        if self._n_calls % _LOOK_EVERY == 0:
            self._share_out_again()
        told = sum(part.nbytes for part in shared if isinstance(part, np.ndarray))
        self._n_kept += _COPIES * told + _TASK_BYTES * len(self._chunks)
        if not rows or self._n_kept <= self._most_kept:
            return rows
        self._most_kept = max(_MOST_KEPT, _bytes_of(rows))
        if self._n_kept <= self._most_kept:
            return rows
        self._n_kept = 0
        return tuple(self._rooted(row) for row in rows)

    def _rooted(self, rows: ChunkedArray) -> ChunkedArray:
        """The array, which is brought here and sent to where its chunks are."""
        parts = dask.compute(*rows.as_delayed())
        task, bundles = delayed(_bundle, pure=False), []
        for part, home in zip(parts, self._homes, strict=True):
            with on_worker(home):
                bundles.append(task(part))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")
            return self.persist(ChunkedArray(bundles, 0, self._lengths))

    def _share_out_again(self) -> None:
        """Move chunks, if they stay in memory, when workers have gone or come."""
        workers = current_workers()
        if not workers or set(workers) == self._workers or not _are_there(self._chunks):
            return
        self._workers = set(workers)
        threads = {address: worker["nthreads"] for address, worker in workers.items()}
        homes: list[str | None] = [
            *share_out([(home,) if home in workers else () for home in self._homes], threads)
        ]
        moved = [n for n, home in enumerate(homes) if home != self._homes[n]]
        task, chunks = delayed(_same, pure=False), []
        for n in moved:
            with on_worker(homes[n]):
                chunks.append(task(self._chunks[n]))
        # The source has the same list, and lets go what is not there any more.
        for n, chunk in zip(moved, dask.persist(*chunks), strict=True):
            self._chunks[n] = chunk
        self._homes, self._groups = homes, together(homes, BRANCHES)

    def persist(self, array: ChunkedArray) -> ChunkedArray:
        """The array, computed."""
        return ChunkedArray(list(dask.persist(*array.bundles)), array.number, array.lengths)

    def scatter(self, array: NDArray) -> ChunkedArray:
        """An array from here, in chunks."""
        return ChunkedArray([], 0, self._lengths).scatter(array)

    def gather(self, array: ChunkedArray, n_columns: int, dtype: np.dtype) -> Any:
        """A Dask array."""
        return array.as_dask((n_columns,), dtype)

    def _own_of(self, problem: Any) -> list[Any]:
        """What of a problem belongs to the samples of each chunk; sent once, and kept there."""
        known, own = self._own
        if known is None or any(a is not b for a, b in zip(known, problem.per_sample, strict=True)):
            starts = np.concatenate([[0], np.cumsum(self._lengths)]).tolist()
            parts = [problem.own_of(slice(*pair)) for pair in pairwise(starts)]
            sent = dask.persist(*(None if part is None else _constant(part) for part in parts))
            known, own = self._own = problem.per_sample, list(sent)
        return own


def _call(message: Message, chunk: Any, own: Any, *bundles: Bundle) -> Bundle:
    """What a function returns for the samples of a chunk."""
    problem = message.problem.with_samples(chunk.source, chunk.summary, own, LocalExecutor())
    rows = map(_array_of, bundles, message.numbers)
    return message.function(problem, *rows, *message.shared)


def _bytes_of(rows: tuple) -> int:
    """What the arrays take in the memory of workers."""
    from distributed import futures_of, get_client

    keys = [future.key for row in rows for future in futures_of(row.bundles)]
    return sum(get_client().nbytes(keys, summary=False).values())


def _are_there(chunks: list[Any]) -> bool:
    """Whether chunks are kept by workers, and not computed again when they are needed."""
    from distributed import futures_of

    return all(futures_of(chunk) for chunk in chunks)


def _constant(value: Any) -> Any:
    """A delayed value, as it is."""
    return delayed(_same, pure=False)(delayed(value, pure=False, traverse=False))


def _same(value: Any) -> Any:
    return value


def _add_sums(first: tuple, second: tuple) -> tuple:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def _bundle(array: NDArray) -> Bundle:
    return (array,), ()


def _array_of(bundle: Bundle, number: int) -> NDArray:
    return bundle[0][number]


def _sums_of(*bundles: Bundle) -> tuple:
    return reduce(_add_sums, (sums for _, sums in bundles))
