"""Many jobs at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .._data.executor import count_threads

Result = TypeVar("Result")


def run_all(jobs: Iterable[Callable[[], Result]], n_jobs: int | None) -> list[Result]:
    """Results of all jobs, in their order; `n_jobs` of them at a time, None and -1 for all cores.

    Threads do: the time is spent in compiled code that lets others run, and nothing is copied.
    """
    from joblib import Parallel, delayed

    parallel: Any = Parallel(n_jobs=count_threads(n_jobs), backend="threading")
    return list(parallel(delayed(job)() for job in jobs))
