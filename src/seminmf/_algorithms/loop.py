"""The loop that all algorithms share: iterate, watch the objective, stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, get_args

# One iteration's gain would not tell whether a run has converged: EM is slow on this model, and
# each of a thousand small gains looks like the end.
WINDOW = 20

Reason = Literal["tolerance", "max_iter", "interrupted"]
REASONS: tuple[Reason, ...] = get_args(Reason)

P = TypeVar("P")


class Info(NamedTuple):
    """What a step tells: the objective at the state that it started from.

    Or at the state that it led to, where `Stopping` says so.
    """

    objective: float


class Stopping(NamedTuple):
    """When a run ends.

    Attributes
    ----------
    max_iter : int
        After so many iterations.
    tol : float
        When the objective gained at most this over the last `window` iterations. With 0 it never
        does, though rounding may turn a gain into a loss.
    window : int
    relative : bool
        Whether `tol` is a share of the objective's size.
    of_following : bool
        Whether steps tell the objective of the state that they lead to. Then it is the start that
        is evaluated, and not the end.
    """

    max_iter: int
    tol: float
    window: int = WINDOW
    relative: bool = True
    of_following: bool = False

    def is_met(self, objectives: list[float]) -> bool:
        """Whether the objectives say that the run has converged."""
        if len(objectives) <= self.window or self.tol == 0:
            return False
        gain = objectives[-1] - objectives[-1 - self.window]
        return gain <= self.tol * (abs(objectives[-1]) if self.relative else 1.0)


class Algorithm(Protocol):
    """What the loop needs: a module or an object with these four functions.

    A point is what is fitted. A state is what the next iteration needs: for plain algorithms the
    point itself, for others the point and what they remember.
    """

    def start(self, problem: Any, point: Any) -> Any:
        """State to begin with at `point`."""
        ...

    def step(self, problem: Any, state: Any) -> tuple[Any, Info]:
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


class Progress(Protocol):
    """Who shows how far a run is."""

    def update(self, objective: float) -> None:
        """One more iteration, with this objective."""
        ...

    def skip(self, n: int) -> None:
        """Iterations that were done at an earlier time."""
        ...


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


def run(
    algorithm: Algorithm,
    problem: Any,
    begin: Callable[[], P],
    stopping: Stopping,
    progress: Progress,
    recorder: Recorder = UNRECORDED,
) -> Result[P]:
    """Iterate an algorithm from the point that `begin` returns.

    A run that `recorder` knows goes on from where it was. Points may be large, so the first one
    should not be kept by the caller.
    """
    known = _begin(algorithm, problem, begin(), recorder)
    if known.reason is not None:
        return Result(known.state, known.objectives, known.reason)
    objectives, ahead = known.objectives, int(stopping.of_following)
    if objectives:
        progress.skip(len(objectives) - ahead)
    elif stopping.of_following:
        objectives.append(algorithm.evaluate(problem, known.state))
    # A state and the number of iterations before it change at once, whenever Ctrl-C comes.
    here = known.state, len(objectives) - ahead
    del known
    converged = False
    try:
        while here[1] < stopping.max_iter and not converged:
            recorder.keep(Run(here[0], objectives))
            following, info = algorithm.step(problem, here[0])
            progress.update(info.objective)
            objectives.append(info.objective)
            converged = stopping.is_met(objectives)
            if not converged or stopping.of_following:
                here = following, len(objectives) - ahead
        if not converged and not stopping.of_following:
            objectives.append(algorithm.evaluate(problem, here[0]))
            converged = stopping.is_met(objectives)
    except KeyboardInterrupt:
        # The step that was cut off left no trace; the state may not have been evaluated yet.
        state, n_iter = here
        objectives = objectives[: n_iter + ahead]
        recorder.stop(Run(state, objectives))
        if not stopping.of_following:
            objectives = [*objectives, algorithm.evaluate(problem, state)]
        return Result(algorithm.point(state), objectives, "interrupted")
    result = Result(algorithm.point(here[0]), objectives, "tolerance" if converged else "max_iter")
    recorder.end(Run(*result))
    return result


def _begin(algorithm: Algorithm, problem: Any, point: Any, recorder: Recorder) -> Run:
    """How far a run from this point is."""
    return recorder.begin(algorithm.start(problem, point), point)
