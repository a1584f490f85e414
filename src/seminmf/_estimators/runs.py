"""The runs of one fit: with a progress bar and a checkpoint, from several starts."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from .._algorithms.loop import Algorithm, Recorder, Result, Stopping, run


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
    stability : float
        How alike the others' components are to its own.
    """

    result: Result[S]
    last: Result[S]
    stability: float


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
    similarities = [matched_similarity(own, other) for other in others]
    stability = float(np.mean(similarities)) if similarities else float("nan")
    return Best(best, results[-1], stability)


def matched_similarity(first: NDArray, second: NDArray) -> float:
    """Mean cosine of the components of two fits, after the best matching; 1 if they agree."""
    lengths = np.outer(np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1))
    cosines = (first @ second.T) / np.where(lengths > 0, lengths, 1)
    rows, columns = linear_sum_assignment(-cosines)
    return float(cosines[rows, columns].mean())
