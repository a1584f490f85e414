"""Many fits at the same time, with a progress bar."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from .parallel import run_all


def run_tasks(
    function: Callable,
    tasks: Sequence[tuple],
    n_jobs: int | None,
    verbose: int,
    note: Callable[[Any], None] | None = None,
) -> list:
    """What the function returns for each of the tasks, in their order.

    `note` is told of each as soon as it is there, by the thread that had the task.
    """
    with warnings.catch_warnings(), _bar(len(tasks), verbose) as update:
        # Learning a prior cuts fits short on purpose; gaps were the user's.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)

        def work(task: tuple) -> Any:
            result = function(*task)
            if note is not None:
                note(result)
            update()
            return result

        return run_all((partial(work, task) for task in tasks), n_jobs)


@contextmanager
def _bar(total: int, verbose: int) -> Iterator[Callable[[], Any]]:
    """A progress bar on fits, or nothing; yields what to call after each fit."""
    if not verbose:
        yield lambda: None
        return
    from tqdm.auto import tqdm

    with tqdm(total=total, desc="fits", unit="fit") as bar:
        yield bar.update
