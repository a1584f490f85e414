"""The loop that all algorithms share: iterate, watch the objective, stop.

The rule for stopping: the objective gained less than `tol` times its size over the last `WINDOW`
iterations. One iteration's gain would not do: EM is slow on this model, and each of a thousand
small gains looks like the end.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from .._progress import Progress
from .problem import Problem

WINDOW = 20

S = TypeVar("S")


class Algorithm(Protocol):
    """What the loop needs: a module with these two functions, `em` or `vb`."""

    def step(self, problem: Problem, state: Any) -> tuple[Any, Any]:
        """One iteration, and an info that has the objective at `state`."""
        ...

    def evaluate(self, problem: Problem, state: Any) -> float:
        """Objective at `state`."""
        ...


class Result(NamedTuple, Generic[S]):
    """How a run ended.

    Attributes
    ----------
    state : S
        The last state.
    objectives : list of float
        From the start to `state`: one more than there were iterations.
    converged, interrupted : bool
        Whether the rule was met; whether Ctrl-C ended the run.
    """

    state: S
    objectives: list[float]
    converged: bool
    interrupted: bool

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return len(self.objectives) - 1

    def ending_with(self, state: S, objective: float) -> Result[S]:
        """The same run with another state at its end, unless that is worse."""
        if objective < self.objectives[-1]:
            return self
        return self._replace(state=state, objectives=[*self.objectives[:-1], objective])


def has_converged(objectives: list[float], tol: float) -> bool:
    """Whether the gain over the last `WINDOW` iterations is below `tol`, relative."""
    if len(objectives) <= WINDOW:
        return False
    gain = objectives[-1] - objectives[-1 - WINDOW]
    return gain < tol * abs(objectives[-1]) or gain == 0 < tol


def run(
    algorithm: Algorithm,
    problem: Problem,
    state: S,
    *,
    max_iter: int,
    tol: float,
    progress: Progress,
) -> Result[S]:
    """Iterate an algorithm from `state` until it has converged, or `max_iter` times."""
    objectives: list[float] = []
    try:
        for _ in range(max_iter):
            following, info = algorithm.step(problem, state)
            objectives.append(info.objective)
            progress.update(info.objective)
            if has_converged(objectives, tol):
                return Result(state, objectives, converged=True, interrupted=False)
            state = following
        objectives.append(algorithm.evaluate(problem, state))
    except KeyboardInterrupt:
        # The step that was cut off left no trace; `state` may not have been evaluated yet.
        objectives.append(algorithm.evaluate(problem, state))
        return Result(state, objectives, converged=False, interrupted=True)
    return Result(state, objectives, converged=has_converged(objectives, tol), interrupted=False)
