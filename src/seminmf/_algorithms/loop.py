"""The loop that all algorithms share: iterate, watch the objective, stop.

The rule for stopping: the objective gained less than `tol` times its size over the last `WINDOW`
iterations. One iteration's gain would not do: EM is slow on this model, and each of a thousand
small gains looks like the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, get_args

from .._estimators.progress import Progress

WINDOW = 20

Reason = Literal["tolerance", "max_iter", "interrupted"]
REASONS: tuple[Reason, ...] = get_args(Reason)

P = TypeVar("P")


class Algorithm(Protocol):
    """What the loop needs: a module or an object with these four functions.

    A point is what is fitted. A state is what the next iteration needs: for plain algorithms the
    point itself, for others the point and what they remember.
    """

    def start(self, problem: Any, point: Any) -> Any:
        """State to begin with at `point`."""
        ...

    def step(self, problem: Any, state: Any) -> tuple[Any, Any]:
        """One iteration, and an info that has the objective at `state`."""
        ...

    def evaluate(self, problem: Any, state: Any) -> float:
        """Objective at `state`."""
        ...

    def point(self, state: Any) -> Any:
        """Where `state` is."""
        ...


class Run(NamedTuple):
    """How far a run is.

    Attributes
    ----------
    state : Any
        The algorithm's state; once the run has ended, the point where it ended.
    objectives : list of float
        Of all states before this one; once the run has ended, of this one as well.
    reason : {"tolerance", "max_iter"} or None
        Why it ended; None if it goes on.
    """

    state: Any
    objectives: list[float]
    reason: Reason | None = None


class Recorder(Protocol):
    """Who is told of runs, and may know them from an earlier time."""

    def begin(self, state: Any, point: Any) -> Run:
        """A run begins in this state, at this point: how far was it at an earlier time?"""
        ...

    def keep(self, run: Run) -> None:
        """Note how far a run is, if it is time to."""
        ...

    def stop(self, run: Run) -> None:
        """Note how far a run is, and nothing that comes after it."""
        ...

    def end(self, run: Run) -> None:
        """Note how a run ended."""
        ...


class Unrecorded:
    """A recorder that forgets."""

    def begin(self, state: Any, point: Any) -> Run:
        """The beginning."""
        return Run(state, [])

    def keep(self, run: Run) -> None:
        """Nothing."""

    stop = end = keep


UNRECORDED = Unrecorded()


class Result(NamedTuple, Generic[P]):
    """How a run ended.

    Attributes
    ----------
    state : P
        The last point.
    objectives : list of float
        From the start to `state`: one more than there were iterations.
    reason : {"tolerance", "max_iter", "interrupted"}
        Why it ended: the rule was met, there were no more iterations, or Ctrl-C.
    """

    state: P
    objectives: list[float]
    reason: Reason

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return len(self.objectives) - 1

    @property
    def converged(self) -> bool:
        """Whether the rule was met."""
        return self.reason == "tolerance"

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the run."""
        return self.reason == "interrupted"

    def ending_with(self, state: P, objective: float, rounding: float = 0.0) -> Result[P]:
        """The same run with another point at its end, unless that is worse, beyond rounding."""
        last = self.objectives[-1]
        if objective < last - rounding:
            return self
        return self._replace(state=state, objectives=[*self.objectives[:-1], max(objective, last)])

    def followed_by(self, other: Result[P]) -> Result[P]:
        """This run and one from a better point: the way there counts as an iteration."""
        return other._replace(objectives=[*self.objectives, *other.objectives])


def has_converged(objectives: list[float], tol: float) -> bool:
    """Whether the gain over the last `WINDOW` iterations is at most `tol`, relative.

    With a `tol` of 0 it never is, though rounding may turn a gain into a loss.
    """
    if len(objectives) <= WINDOW or tol == 0:
        return False
    gain = objectives[-1] - objectives[-1 - WINDOW]
    return gain <= tol * abs(objectives[-1])


def run(
    algorithm: Algorithm,
    problem: Any,
    begin: Callable[[], P],
    *,
    max_iter: int,
    tol: float,
    progress: Progress,
    recorder: Recorder = UNRECORDED,
) -> Result[P]:
    """Iterate an algorithm from the point that `begin` returns, until it has converged, or
    `max_iter` times.

    A run that `recorder` knows goes on from where it was. Points may be large, so the first one
    should not be kept by the caller.
    """
    known = _begin(algorithm, problem, begin(), recorder)
    if known.reason is not None:
        return Result(known.state, known.objectives, known.reason)
    objectives = known.objectives
    if objectives:
        progress.skip(len(objectives))
    # A state and the number of objectives before it change at once, whenever Ctrl-C comes.
    here = known.state, len(objectives)
    del known
    try:
        while here[1] < max_iter:
            recorder.keep(Run(here[0], objectives))
            following, info = algorithm.step(problem, here[0])
            progress.update(info.objective)
            objectives.append(info.objective)
            if has_converged(objectives, tol):
                break
            here = following, len(objectives)
        else:
            objectives.append(algorithm.evaluate(problem, here[0]))
    except KeyboardInterrupt:
        # The step that was cut off left no trace; the state may not have been evaluated yet.
        state, n_iter = here
        recorder.stop(Run(state, objectives[:n_iter]))
        objectives = [*objectives[:n_iter], algorithm.evaluate(problem, state)]
        return Result(algorithm.point(state), objectives, "interrupted")
    reason: Reason = "tolerance" if has_converged(objectives, tol) else "max_iter"
    result = Result(algorithm.point(here[0]), objectives, reason)
    recorder.end(Run(*result))
    return result


def _begin(algorithm: Algorithm, problem: Any, point: Any, recorder: Recorder) -> Run:
    """How far a run from this point is."""
    return recorder.begin(algorithm.start(problem, point), point)
