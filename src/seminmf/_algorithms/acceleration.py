"""Extrapolation of a slow algorithm: SQUAREM and parabolic EM.

A plain algorithm goes x₀ → x₁ → x₂. Both methods lay a parabola through the logarithms,

    ln x(t) = ln x₀ + 2 t r + t² v,    r = ln x₁ − ln x₀,    v = (ln x₂ − ln x₁) − r,

which is at x₂ for t = 1, and go on from further out, if that is no worse than x₁. They differ in
how they choose t. The objective out there comes from the same pass as the step from there: what is
refused costs one pass, and the objective never falls. A point is a NamedTuple of arrays of numbers
≥ 0, whatever they mean, one for each factor of the model.

References
----------
R. Varadhan and C. Roland, "Simple and globally convergent methods for accelerating the convergence
of any EM algorithm", 2008: scheme S3.
A. Berlinet and C. Roland, "Acceleration of the EM algorithm: P-EM versus epsilon algorithm", 2012.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from .._data.executor import per_sample
from .._kernels.em.extrapolation import extrapolate, measure
from .loop import Algorithm

METHODS = ("squarem", "parabolic", None)

# SQUAREM's bound on t. Most steps at the bound fail, but one that succeeds gains more than several
# failures cost: so it grows fast and shrinks slowly.
_GROWTH = 4.0
_SHRINKAGE = 1.25
_LONGEST = 1e6
# How s of parabolic EM rises and falls, and where it ends.
_UP, _DOWN, _FARTHEST = 3.0, 10.0, 48.0
# A step multiplies no number by more than e^5, nor divides: what is 0 stays 0 for ever, and
# nothing should get near it by one bold step.
_MOST_CHANGE = 5.0


class Accelerable(Algorithm, Protocol):
    """An algorithm whose state is the point itself, and that can be accelerated."""

    def project(self, problem: Any, point: Any) -> Any:
        """The point, brought back to where the constraints hold."""
        ...


class AcceleratedState(NamedTuple):
    """A point, and how far to go from it: SQUAREM's bound on t, or parabolic EM's s."""

    point: Any
    reach: float


@dataclass(frozen=True)
class Accelerated:
    """An algorithm whose step is a cycle of an acceleration; `reach` is the first one."""

    algorithm: Accelerable
    cycle: Callable[[Accelerable, Any, AcceleratedState], tuple[AcceleratedState, Any]]
    reach: float

    def start(self, problem: Any, point: Any) -> AcceleratedState:
        """AcceleratedState to begin with at `point`."""
        return AcceleratedState(point, self.reach)

    def step(self, problem: Any, state: AcceleratedState) -> tuple[AcceleratedState, Any]:
        """One cycle, and an info that has the objective at `state`."""
        return self.cycle(self.algorithm, problem, state)

    def evaluate(self, problem: Any, state: AcceleratedState) -> float:
        """Objective at `state`."""
        return self.algorithm.evaluate(problem, state.point)

    def point(self, state: AcceleratedState) -> Any:
        """Where `state` is."""
        return state.point


def accelerate(algorithm: Accelerable, method: str | None) -> Algorithm:
    """The algorithm with one of the `METHODS` on top; None leaves it as it is."""
    if method is None:
        return algorithm
    cycle, reach = {"squarem": (squarem, 1.0), "parabolic": (parabolic, 0.0)}[method]
    return Accelerated(algorithm, cycle, reach)


def squarem(
    algorithm: Accelerable, problem: Any, state: AcceleratedState
) -> tuple[AcceleratedState, Any]:
    """One cycle of SQUAREM: t = |r| / |v|, at least 1 and at most the bound."""
    path, here, there = Parabola.from_steps(algorithm, problem, state.point)
    bound = state.reach
    t = min(max(path.step_length(problem), 1.0), bound)
    image, objective = path.try_out(algorithm, problem, t)
    if not reaches(objective, there.objective):
        return AcceleratedState(path.end, max(bound / _SHRINKAGE, 1.0)), here
    return AcceleratedState(image, min(_GROWTH * bound, _LONGEST) if t == bound else bound), here


def parabolic(
    algorithm: Accelerable, problem: Any, state: AcceleratedState
) -> tuple[AcceleratedState, Any]:
    """One cycle of parabolic EM: t = 1 + 0.1 · 1.5^s, with a shorter one if that fails.

    The search for the best s goes on from cycle to cycle: what was good is tried further out in the
    next one. A search within the cycle costs passes, and gains less than as many cycles.
    """
    path, here, there = Parabola.from_steps(algorithm, problem, state.point)
    s, shorter = state.reach, max(state.reach - _DOWN, 0.0)
    image, objective = path.try_out(algorithm, problem, 1 + 0.1 * 1.5**s)
    if reaches(objective, there.objective):
        return AcceleratedState(image, min(s + _UP, _FARTHEST)), here
    if shorter < s:
        image, objective = path.try_out(algorithm, problem, 1 + 0.1 * 1.5**shorter)
        if reaches(objective, there.objective):
            return AcceleratedState(image, shorter), here
    return AcceleratedState(path.end, shorter), here


def reaches(objective: float, goal: float) -> bool:
    """Whether an objective is a number, and not below the goal."""
    return math.isfinite(objective) and objective >= goal


class Parabola(NamedTuple):
    """The points x₀, x₁ and x₂ of two steps; numbers that are 0 in any of them do not move."""

    x0: Any
    x1: Any
    end: Any

    @classmethod
    def from_steps(cls, algorithm: Accelerable, problem: Any, x0: Any) -> tuple[Parabola, Any, Any]:
        """The parabola of two steps from x₀, with their infos, of x₀ and of x₁."""
        x1, here = algorithm.step(problem, x0)
        x2, there = algorithm.step(problem, x1)
        return cls(x0, x1, x2), here, there

    def step_length(self, problem: Any) -> float:
        """|r| / |v|, where each number counts in proportion to its size in x₂.

        What a count tells about the logarithm of its mean is proportional to that mean. In a plain
        sum of squares the many numbers that are on their way to 0 would decide.
        """
        squares = []
        for factor, points in self._by_factor(problem):
            if factor.has_samples:
                _, (sums,) = problem.over_samples(_measure_samples, points)
            else:
                sums = measure(*points, factor.row_weights[:, None])
            squares.append(_relative(sums))
        r2, v2 = np.sum(squares, axis=0)
        return math.sqrt(r2 / v2) if v2 > 0 else math.inf

    def try_out(self, algorithm: Accelerable, problem: Any, t: float) -> tuple[Any, float]:
        """One step from the point at t: where it leads, and the objective at the point."""
        point = self.end if t == 1 else algorithm.project(problem, self.at(problem, t))
        image, info = algorithm.step(problem, point)
        return image, info.objective

    def at(self, problem: Any, t: float) -> Any:
        """Point at t, as a multiple of x₂: what did not move stays as it is, to the last bit."""
        way = 2 * (t - 1), t * t - 1, _MOST_CHANGE
        moved = []
        for factor, points in self._by_factor(problem):
            if factor.has_samples:
                (array,), _ = problem.over_samples(_extrapolate_samples, points, way)
            else:
                array = extrapolate(*points, *way)
            moved.append(array)
        return self.end._make(moved)

    def _by_factor(self, problem: Any) -> Iterator[tuple[Any, tuple[NDArray, NDArray, NDArray]]]:
        """Each factor, and its arrays in x₀, x₁ and x₂."""
        return zip(problem.model.factors, zip(*self, strict=True), strict=True)


@per_sample(sums=1)
def _measure_samples(problem: Any, x0: NDArray, x1: NDArray, x2: NDArray) -> tuple[tuple, tuple]:
    """Sums over samples, which count by their weights."""
    return (), (measure(x0, x1, x2, problem.data.weights[:, None]),)


@per_sample(rows=1)
def _extrapolate_samples(
    problem: Any, x0: NDArray, x1: NDArray, x2: NDArray, way: tuple[float, float, float]
) -> tuple[tuple, tuple]:
    return (extrapolate(x0, x1, x2, *way),), ()


def _relative(sums: NDArray) -> NDArray:
    """Σ w r² and Σ w v² in units of the mean w, from `measure`'s sums."""
    number, weight, r2, v2 = sums
    mean = max(weight / number, np.finfo(np.float64).tiny)
    return np.array([r2, v2]) / mean
