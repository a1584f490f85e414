"""Arrays with a row for each sample, in chunks that stay where they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import dask.base as dask
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from ..._algorithms.loop import UNRECORDED
from ..._algorithms.problem import Prior, Problem
from ..executor import HERE
from ..threads import Pool
from .reduction import BRANCHES, branches, total
from .source import Chunk, ChunkedSource
from .workers import together

# What a function returns for a chunk: arrays, and sums.
Bundle = tuple[tuple, tuple]


class ChunkedRows:
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

    def placed(self, array: NDArray) -> ChunkedRows:
        """Another array in the same chunks."""
        edges = np.cumsum(self.lengths)[:-1]
        bundles = [delayed(_bundle, pure=False)(part) for part in np.split(array, edges)]
        return ChunkedRows(bundles, 0, self.lengths)

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
    problem: Problem
    numbers: list[int]
    shared: tuple


class Own(NamedTuple):
    """What belongs to the samples of a chunk: their weights, and their activations' priors."""

    weight: NDArray
    shape: NDArray
    rate: NDArray


class OnChunks:
    """The place of samples that are in chunks, for one problem."""

    def __init__(
        self, source: ChunkedSource, chunks: list[Any], prior: Prior, weights: NDArray
    ) -> None:
        self._source, self._chunks = source, chunks
        self._own = _own_values(source, prior, weights)
        self._groups = together(source.homes, BRANCHES)
        self._on_workers = None not in source.homes
        self._held: tuple = ()

    def run(self, problem: Problem, function: Any, rows: tuple, shared: tuple) -> tuple:
        """Call the function for each chunk; sums come here, arrays stay.

        Without sums nothing is computed yet.
        """
        numbers = [array.number for array in rows]
        message = Message(function, _sent(problem), numbers, shared)
        sent = delayed(message, pure=False, traverse=False)
        task = delayed(_call, pure=False)
        bundles = [
            task(sent, chunk, own, *(array.bundles[n] for array in rows))
            for n, (chunk, own) in enumerate(zip(self._chunks, self._own, strict=True))
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
        lengths = self._source.lengths
        return tuple(ChunkedRows(bundles, n, lengths) for n in range(function.n_rows)), sums

    def kept(self, array: ChunkedRows) -> ChunkedRows:
        """The array, computed."""
        return ChunkedRows(list(dask.persist(*array.bundles)), array.number, array.lengths)

    def placed(self, array: NDArray) -> ChunkedRows:
        """An array from here, in chunks."""
        return ChunkedRows([], 0, self._source.lengths).placed(array)

    def handed_out(self, array: ChunkedRows, n_columns: int, dtype: np.dtype) -> Any:
        """The array as users get it."""
        return array.as_dask((n_columns,), dtype)


def _own_values(source: ChunkedSource, prior: Prior, weights: NDArray) -> list[Any]:
    """Weights and priors of the samples in each chunk; None if all samples have the same."""
    shape, rate = prior.activation_shape, prior.activation_rate
    if len(shape) == len(rate) == 1 and np.all(weights == 1):
        return [None] * len(source.lengths)
    spans = [slice(*pair) for pair in pairwise(source.starts)]
    task = delayed(Own, pure=False)
    own = [
        task(weights[span], *(part if len(part) == 1 else part[span] for part in (shape, rate)))
        for span in spans
    ]
    return list(dask.persist(*own))


def _sent(problem: Problem) -> Problem:
    """What of a problem is the same for all chunks."""
    nothing: Any = None
    prior = problem.prior
    if max(len(prior.activation_shape), len(prior.activation_rate)) > 1:
        prior = prior._replace(activation_shape=nothing, activation_rate=nothing)
    return problem._replace(
        source=nothing,
        summary=nothing,
        prior=prior,
        sample_weight=nothing,
        pool=nothing,
        recorder=UNRECORDED,
        place=HERE,
    )


def _call(message: Message, chunk: Chunk, own: Own | None, *bundles: Bundle) -> Bundle:
    """What a function returns for the samples of a chunk."""
    n_samples = chunk.source.shape[0]
    problem = message.problem._replace(
        source=chunk.source, summary=chunk.summary, sample_weight=np.ones(n_samples), pool=Pool(1)
    )
    if own is not None:
        prior = problem.prior._replace(activation_shape=own.shape, activation_rate=own.rate)
        problem = problem._replace(sample_weight=own.weight, prior=prior)
    rows = map(_array_of, bundles, message.numbers)
    return message.function(problem, *rows, *message.shared)


def _add_sums(first: tuple, second: tuple) -> tuple:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def _bundle(array: NDArray) -> Bundle:
    return (array,), ()


def _array_of(bundle: Bundle, number: int) -> NDArray:
    return bundle[0][number]


def _sums_of(*bundles: Bundle) -> tuple:
    return reduce(_add_sums, (sums for _, sums in bundles))
