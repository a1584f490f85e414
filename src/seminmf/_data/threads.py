"""A thread pool that maps a kernel over ranges of samples, with results in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Pool:
    """Runs tasks on `n_threads` threads; with one, in the caller's.

    Kernels release the GIL, so threads suffice, and unlike the compiler's own threads they survive
    a fork and can be nested in other pools.
    """

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self._executor = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def map(self, function: Callable[[tuple[int, int]], T], ranges: Sequence) -> Iterator[T]:
        """Apply `function` to each range; the results come in the order of the ranges."""
        if self._executor is None or len(ranges) == 1:
            return map(function, ranges)
        return self._executor.map(function, ranges)

    def close(self) -> None:
        """Wait for the threads to end."""
        if self._executor is not None:
            self._executor.shutdown()


def count_threads(n_jobs: int | None) -> int:
    """Number of threads that `n_jobs` asks for: None and -1 are all cores."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    available = available or os.cpu_count() or 1
    if n_jobs is None:
        return available
    return n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs)


@contextmanager
def pool(n_jobs: int | None) -> Iterator[Pool]:
    """A pool for the time of a fit."""
    workers = Pool(count_threads(n_jobs))
    try:
        yield workers
    finally:
        workers.close()
