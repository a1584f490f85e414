"""Arrays with a row for each sample, in chunks that stay where they are."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dask.base as dask
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray

from .._inference.loop import UNRECORDED
from .._inference.place import HERE
from .._inference.problem import Prior, Problem
from .._passes.pool import Pool
from .source import Chunk, ChunkedSource
from .tree import tree_sum


class ChunkedRows:
    """An array in chunks: the one with a number in each of the delayed tuples of arrays."""

    def __init__(self, bundles: list[Any], number: int, lengths: tuple[int, ...]) -> None:
        self.bundles, self.number, self.lengths = bundles, number, lengths

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray:
        chunks = dask.compute(*self._delayed())
        return np.concatenate(chunks).astype(dtype, copy=False)

    def placed(self, array: NDArray) -> ChunkedRows:
        """Another array in the same chunks."""
        edges = np.cumsum(self.lengths)[:-1]
        bundles = [delayed((part,), traverse=False) for part in np.split(array, edges)]
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
        task = delayed(_pick, pure=False)
        return [task(bundle, self.number) for bundle in self.bundles]


class OnChunks:
    """The place of samples that are in chunks, for one problem."""

    def __init__(
        self, source: ChunkedSource, chunks: list[Any], prior: Prior, weights: NDArray
    ) -> None:
        self._source, self._chunks = source, chunks
        self._own = _own_values(source, prior, weights)

    def run(self, problem: Problem, function: Any, rows: tuple, shared: tuple) -> tuple:
        """Call the function for each chunk; sums come here, arrays stay.

        Without sums nothing is computed yet.
        """
        shared = delayed(
            (function, _sent(problem), [array.number for array in rows], shared),
            pure=False,
            traverse=False,
        )
        task = delayed(_call, pure=False)
        results = []
        for n, (chunk, own) in enumerate(zip(self._chunks, self._own, strict=True)):
            results.append(task(shared, chunk, own, *(array.bundles[n] for array in rows)))
        bundles = [delayed(_pick, pure=False)(result, 0) for result in results]
        sums: tuple = ()
        if function.n_sums:
            parts = [delayed(_pick, pure=False)(result, 1) for result in results]
            *bundles, total = dask.persist(*bundles, tree_sum(parts, _add_sums))
            sums = total.compute()
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
    own = [
        delayed(
            (weights[span], *(part if len(part) == 1 else part[span] for part in (shape, rate))),
            pure=False,
            traverse=False,
        )
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


def _call(shared: tuple, chunk: Chunk, own: tuple | None, *bundles: tuple) -> tuple[tuple, tuple]:
    """What a function returns for the samples of a chunk."""
    function, problem, numbers, arguments = shared
    n_samples = chunk.source.shape[0]
    problem = problem._replace(
        source=chunk.source, summary=chunk.summary, sample_weight=np.ones(n_samples), pool=Pool(1)
    )
    if own is not None:
        weight, shape, rate = own
        prior = problem.prior._replace(activation_shape=shape, activation_rate=rate)
        problem = problem._replace(sample_weight=weight, prior=prior)
    rows = [bundle[number] for bundle, number in zip(bundles, numbers, strict=True)]
    return function(problem, *rows, *arguments)


def _add_sums(first: tuple, second: tuple) -> tuple:
    return tuple(a + b for a, b in zip(first, second, strict=True))


def _pick(values: tuple, number: int) -> Any:
    return values[number]
