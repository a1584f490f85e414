"""Sources: where the data are, as blocks of samples; and data with weights.

They know nothing of the model.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.random import RandomState
from numpy.typing import DTypeLike, NDArray

from .executor import local_executor
from .summary import Accepted, Summary, refuse_values, summarise_rows

# A task of a kernel has about this many cells × components, a third of a millisecond: much more
# than it costs to hand it to a thread.
_TASK = 1 << 20
_MOST_TASKS = 64


class Block(NamedTuple):
    """Some consecutive samples of a source.

    Attributes
    ----------
    samples : slice
        Which they are.
    X : (n, I) array
        Their values, NaN where not observed.
    """

    samples: slice
    X: NDArray


class Source(Protocol):
    """Samples × features, NaN where not observed: what a fit needs of data, wherever they are."""

    shape: tuple[int, int]
    dtype: np.dtype
    # Whether all of it is an array in memory, and whether kernels can read it in this process.
    in_memory: bool
    is_local: bool

    def check(self, accepted: Accepted, *, fitted: bool) -> tuple[Any, Summary]:
        """The source after a check of its values, and what they sum up to.

        For samples of a model that is fitted already, both may be put off.
        """
        ...

    def executor(self, n_jobs: int | None) -> AbstractContextManager[Any]:
        """Where work on the samples is done, for a while."""
        ...

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop` as a C-contiguous array of `dtype`."""
        ...

    def take(self, rows: NDArray) -> NDArray:
        """Some samples, by their numbers, in the form of `rows`."""
        ...

    def parts(self) -> Iterator[NDArray]:
        """Arrays that tell these data from others."""
        ...


class BlockSource:
    """Base of the sources whose samples kernels read here, in blocks.

    A source has `shape`, `dtype`, `rows`, `take`, `parts`, and what is declared below.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    in_memory = False
    is_local = True
    # Whether only some cells are stored and the others are gaps: kernels then look at those alone,
    # and the source has what `SparseSource` has.
    stores_cells = False

    def rows(self, start: int, stop: int) -> NDArray:
        """Samples `start` to `stop` as a C-contiguous array of `dtype`."""
        raise NotImplementedError

    def subset(self, rows: NDArray | slice) -> BlockSource:
        """Some samples as a source of their own."""
        raise NotImplementedError

    def columns(self, start: int, stop: int) -> BlockSource:
        """Some consecutive features."""
        raise NotImplementedError

    def divided(self, sizes: NDArray) -> BlockSource:
        """The same with each feature divided by a number (I,)."""
        raise NotImplementedError

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """Samples `start` to `stop` in parts that do not need much memory."""
        raise NotImplementedError

    @property
    def n_cells(self) -> int:
        """Number of cells that a kernel has to look at."""
        return self.shape[0] * self.shape[1]

    @property
    def longest_row(self) -> int:
        """Most cells that a kernel has to look at in a sample."""
        return self.shape[1]

    def edges(self, n_ranges: int) -> NDArray:
        """Where ranges of samples that have about the same number of cells start and end."""
        return np.linspace(0, self.shape[0], n_ranges + 1).astype(int)

    def batches(self, size: int, random: RandomState) -> Iterator[NDArray | slice]:
        """All samples once, `size` at a time, drawn at random."""
        n_samples = self.shape[0]
        order = random.permutation(n_samples)
        for start in range(0, n_samples, size):
            yield np.sort(order[start : start + size])

    def executor(self, n_jobs: int | None) -> AbstractContextManager[Any]:
        """Threads of this process."""
        return local_executor(n_jobs)

    def check(self, accepted: Accepted, *, fitted: bool) -> tuple[Any, Summary]:
        """The source, whose values are accepted, and what they sum up to."""
        return self, self.summarise(accepted)

    def summarise(self, accepted: Accepted, first_row: int = 0) -> Summary:
        """The sums over X, or a refusal of one of its numbers; samples count from `first_row`."""
        parts = []
        for block in all_blocks(self):
            refuse_values(block.X, accepted, first_row + block.samples.start)
            parts.append(summarise_rows(block.X))
        summary = Summary.combine(parts)
        accepted.check_largest(summary.largest, self.shape[1], self.dtype)
        return summary


def all_blocks(source: BlockSource) -> Iterator[Block]:
    """The samples of a source, block by block."""
    for rows in row_ranges(source):
        yield from source.blocks(*rows)


def row_ranges(
    source: BlockSource, n_components: int = 1, most: int = _MOST_TASKS
) -> list[tuple[int, int]]:
    """Consecutive ranges of samples, one for each of at most `most` tasks of a kernel.

    They depend on the data alone, and so do the sums over them: the number of threads does not
    change a bit of the result.
    """
    n_tasks = min(max(1, source.n_cells * n_components // _TASK), most, source.shape[0])
    if n_tasks == 1:
        return [(0, source.shape[0])]
    edges = source.edges(n_tasks)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def float_type(dtype: DTypeLike) -> np.dtype:
    """The type that data of some type are computed in: float32 stays, all else is float64."""
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


class Data(NamedTuple):
    """X after the checks, and how much each sample counts.

    Attributes
    ----------
    source : Source
    summary : Summary
        The sums over it.
    weights : (J,) array
        A weight of 2 counts as the sample twice.
    cell_noise : (J, I) array or None
        Standard deviation that is known of each cell; its axes may be of length 1.
    """

    source: Any
    summary: Summary
    weights: NDArray
    cell_noise: NDArray | None = None

    @classmethod
    def unweighted(cls, source: Any, summary: Summary) -> Data:
        """All samples count once."""
        return cls(source, summary, np.ones(source.shape[0]))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and features."""
        return self.source.shape

    @property
    def total_weight(self) -> float:
        """How many samples they count as."""
        return float(self.weights.sum())

    def of_samples(self, rows: NDArray | slice) -> Data:
        """The data of some samples; what is known of all together stays."""
        noise = self.cell_noise
        if noise is not None and len(noise) > 1:
            noise = noise[rows]
        source, summary = self.source.subset(rows), self.summary.of_rows(rows)
        return Data(source, summary, self.weights[rows], noise)

    def component_sums(self, per_activation: NDArray, times: NDArray | None = None) -> NDArray:
        """Sums over the samples, with their weights, of something for each activation.

        `times` is a factor, the same for all samples or for each activation.
        """
        # Not BLAS, whose sums depend on its number of threads and on where arrays lie.
        if times is None or len(times) == 1:
            sums = np.einsum("j,jk->k", self.weights, per_activation, dtype=np.float64)
            return sums if times is None else times[0] * sums
        factors = self.weights, np.broadcast_to(times, per_activation.shape), per_activation
        return np.einsum("j,jk,jk->k", *factors, dtype=np.float64)

    def shares(self, unit: float, n_components: int) -> NDArray:
        """Σ|x| of each sample as if it had no gaps, in a unit, divided among components."""
        mass = self.summary.row_mass / unit
        return mass * self.shape[1] / np.maximum(self.summary.row_count, 1) / n_components
