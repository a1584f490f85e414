"""Arrays with a row for each sample, in chunks that stay where they are, and work on them."""

from __future__ import annotations

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
from .workers import together

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
        chunks = dask.compute(*self._delayed())
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
            for chunk, length in zip(self._delayed(), self.lengths, strict=True)
        ]
        return da.concatenate(chunks)

    def _delayed(self) -> list[Any]:
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
        self._chunks, self._lengths = chunks, lengths
        self._groups = together(workers, BRANCHES)
        self._on_workers = None not in workers
        self._held: tuple = ()
        self._own: tuple[Any, list[Any]] = (None, [])

    def run(self, problem: Any, function: Any, rows: tuple, shared: tuple) -> tuple[tuple, tuple]:
        """Call the function for each chunk; sums come here, arrays stay.

        Without sums nothing is computed yet.
        """
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
