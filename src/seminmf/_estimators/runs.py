"""The runs of one fit: with a progress bar and a checkpoint, from several starts."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from .._algorithms.loop import UNRECORDED, Algorithm, Recorder, Result, Stopping, run


class Progress:
    """Bar over the iterations of a fit, with the objective behind it; silent if not `shown`."""

    def __init__(self, total: int, description: str, shown: bool) -> None:
        self._bar: Any = None
        if shown:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, desc=description, unit="it")

    def update(self, objective: float) -> None:
        """One more iteration, with this objective."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"objective {objective:.8g}", refresh=False)
            self._bar.update()

    def skip(self, n: int) -> None:
        """Iterations that were done at an earlier time."""
        if self._bar is not None:
            self._bar.update(n)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()


S = TypeVar("S")

# Components with this cosine are the same.
_SAME = 0.95


class Runner(NamedTuple):
    """Iterates algorithms for one fit.

    Attributes
    ----------
    recorder : Recorder
        Who is told of the iterations.
    verbose : bool
        Whether there is a progress bar.
    """

    recorder: Recorder
    verbose: bool

    @classmethod
    def silent(cls) -> Runner:
        """One that tells nobody."""
        return cls(UNRECORDED, False)

    def run(
        self,
        algorithm: Algorithm,
        problem: Any,
        begin: Callable[[], S],
        description: str,
        stopping: Stopping,
    ) -> Result:
        """Run an algorithm from what `begin` returns."""
        with Progress(stopping.max_iter, description, self.verbose) as progress:
            return run(algorithm, problem, begin, stopping, progress, self.recorder)


class Best(NamedTuple, Generic[S]):
    """The best of several runs.

    Attributes
    ----------
    result : Result
    last : Result
        That of the last run, which Ctrl-C may have ended.
    stability : (K,) array
        Mean cosine of each of its components with the matches in the others; NaN if there is none.
    n_same : int
        Number of runs that found the same components.
    """

    result: Result[S]
    last: Result[S]
    stability: NDArray
    n_same: int


def best_run(
    run_once: Callable[[], Result[S]], components: Callable[[S], NDArray], n_init: int
) -> Best[S]:
    """Run from `n_init` starts, keep the best, and compare the components of all."""
    results: list[Result[S]] = []
    for _ in range(n_init):
        results.append(run_once())
        if results[-1].interrupted:
            break
    best = max(results, key=lambda result: result.objectives[-1])
    own = components(best.state)
    others = [components(result.state) for result in results if result is not best]
    return Best(best, results[-1], *compared(own, others))


def compared(components: NDArray, others: list[NDArray]) -> tuple[NDArray, int]:
    """Mean cosines (K,) with the matches in other fits, and how many fits found the same."""
    cosines = [matched_cosines(components, other) for other in others]
    if not cosines:
        return np.full(len(components), np.nan), 1
    return np.mean(cosines, axis=0), 1 + sum(bool(own.min() >= _SAME) for own in cosines)


def matched_cosines(first: NDArray, second: NDArray) -> NDArray:
    """Cosine of each component of a fit with its match in another, after the best matching."""
    lengths = np.outer(np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1))
    cosines = (first @ second.T) / np.where(lengths > 0, lengths, 1)
    rows, columns = linear_sum_assignment(-cosines)
    return cosines[rows, columns]
