"""Where work on samples is done: here, on threads, or where the chunks of a cluster are."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable)
T = TypeVar("T")


def per_sample(rows: int = 0, sums: int = 0) -> Callable[[F], F]:
    """Mark a function that an executor runs: how many arrays and sums it returns."""

    def mark(function: F) -> F:
        function.n_rows, function.n_sums = rows, sums  # type: ignore[attr-defined]
        return function

    return mark


class Executor(Protocol):
    """Does the work on arrays with a row for each sample."""

    def run(self, problem: Any, function: Any, rows: tuple, shared: tuple) -> tuple[tuple, tuple]:
        """Call a function for all samples, or for one part of them after the other.

        Parameters
        ----------
        problem : Problem
            Of all samples.
        function : callable
            Of the problem of some samples, the `rows` of these and `shared`; it returns two tuples:
            arrays with rows for these samples, and sums over them. It is marked by `per_sample`,
            and found by its name in a module, so that it can be sent to other processes.
        rows : tuple of arrays
            With a row for each sample.
        shared : tuple
            The same for all samples.

        Returns
        -------
        rows, sums : tuples
            Those of all samples.
        """
        ...

    def persist(self, array: Any) -> Any:
        """An array that is used more than once: computed, if that was put off."""
        ...

    def scatter(self, array: NDArray) -> Any:
        """A NumPy array in the form that `rows` have."""
        ...

    def gather(self, array: Any, n_columns: int, dtype: np.dtype) -> Any:
        """An array with a row for each sample, as users get it."""
        ...


class LocalExecutor:
    """All samples are in this process; kernels run on `n_threads` threads.

    Kernels release the GIL, so threads suffice, and unlike the compiler's own threads they survive
    a fork and can be nested in other pools. With one thread it is the caller's.
    """

    def __init__(self, n_threads: int = 1) -> None:
        self.n_threads = n_threads
        self._threads = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def map(self, task: Callable[[tuple[int, int]], T], ranges: Sequence) -> Iterator[T]:
        """Results of a task for each range of samples, in the order of the ranges."""
        if self._threads is None or len(ranges) == 1:
            return map(task, ranges)
        return self._threads.map(task, ranges)

    def close(self) -> None:
        """Wait for the threads to end."""
        if self._threads is not None:
            self._threads.shutdown()

    def run(self, problem: Any, function: Any, rows: tuple, shared: tuple) -> tuple[tuple, tuple]:
        """What the function returns for all samples at once."""
        return function(problem, *rows, *shared)

    def persist(self, array: NDArray) -> NDArray:
        """The array."""
        return array

    def scatter(self, array: NDArray) -> NDArray:
        """The array."""
        return array

    def gather(self, array: NDArray, n_columns: int, dtype: np.dtype) -> NDArray:
        """The array."""
        return array


def count_threads(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` asks for: None and -1 are all cores."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    available = available or os.cpu_count() or 1
    if n_jobs is None:
        return available
    return n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)


@contextmanager
def local_executor(n_jobs: int | None) -> Iterator[LocalExecutor]:
    """Threads for the time of a fit."""
    executor = LocalExecutor(count_threads(n_jobs))
    try:
        yield executor
    finally:
        executor.close()
