"""Objective over time: how a solver is run, what is recorded, and when it was good enough."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from wonterfact_peer import Peer

from seminmf._algorithms import em, loop
from seminmf._algorithms.problem import Problem
from seminmf._model.likelihoods import Real

# A peer's objective is looked at about this often, and never later than a twentieth of its time.
CHUNK_SECONDS = 0.05
CHUNK_SHARE = 0.05
# The paper's runs end when the objective has stood still over this many iterations.
PEER_WINDOW = 50


class Limits(NamedTuple):
    """When a run ends: it has converged, its time is over, or there were enough iterations."""

    tol: float
    seconds: float = np.inf
    max_iter: int = 10**9


class Curve(NamedTuple):
    """Objective after so many seconds, and whether the run had converged at its end."""

    seconds: NDArray
    objectives: NDArray
    converged: bool

    @property
    def best(self) -> float:
        """Best objective."""
        return float(np.max(self.objectives))

    @property
    def duration(self) -> float:
        """Seconds of the whole run."""
        return float(self.seconds[-1])

    def time_to(self, goal: float) -> float:
        """Seconds until the objective was at least `goal`; inf if it never was."""
        reached = self.objectives >= goal
        return float(self.seconds[np.argmax(reached)]) if reached.any() else np.inf

    def thinned(self, n_points: int = 200) -> list[tuple[float, float]]:
        """Points for a plot: the first, the last, and some between, even in log time."""
        grid = np.geomspace(self.seconds[0] + 1e-6, self.duration + 1e-6, n_points)
        chosen = np.unique(np.searchsorted(self.seconds, grid[:-1])).tolist()
        chosen = sorted({0, *chosen, len(self.seconds) - 1})
        return [(float(self.seconds[i]), float(self.objectives[i])) for i in chosen]


# Runs from a point of a problem, until a limit is reached.
Solver = Callable[[Problem, Any, Limits], Curve]


class Recorder:
    """In the place of a progress bar: notes time and objective, and ends the run in time."""

    def __init__(self, limit: float) -> None:
        self.seconds = array("d")
        self.objectives = array("d")
        self.time_is_over = False
        self._limit = limit
        self._begin = time.perf_counter()

    def update(self, objective: float) -> None:
        """One more iteration. Ctrl-C is how a run ends early and still returns its result."""
        now = time.perf_counter() - self._begin
        self.seconds.append(now)
        self.objectives.append(objective)
        if now > self._limit:
            self.time_is_over = True
            raise KeyboardInterrupt


def own_solver(algorithm: loop.Algorithm) -> Solver:
    """One of our algorithms.

    An objective is recorded when it is known, which is one iteration after its point was there.
    """

    def solve(problem: Problem, point: Any, limits: Limits) -> Curve:
        recorder = Recorder(limits.seconds)
        stopping = loop.Stopping(max_iter=limits.max_iter, tol=limits.tol)
        result = loop.run(algorithm, problem, lambda: point, stopping, recorder)
        if result.interrupted and not recorder.time_is_over:
            raise KeyboardInterrupt  # somebody's Ctrl-C, not ours
        return Curve(np.array(recorder.seconds), np.array(recorder.objectives), result.converged)

    return solve


def wonterfact(problem: Problem, point: em.Factors, limits: Limits) -> Curve:
    """Wonterfact's accelerated EM, the mode it is best in, with its default options.

    It iterates in chunks, and the clock stands still while our own function computes the
    objective, and while it initialises. By default the acceleration begins after 200 plain
    iterations; to begin earlier was slower as often as faster.
    """
    source, likelihood = problem.data.source, problem.model.likelihood
    peer = Peer(
        source.rows(0, source.shape[0]),
        likelihood.unit * point.activations,
        point.atoms,
        real=isinstance(likelihood, Real),
        update_type="parabolic",
    )
    iterations, seconds, objectives = [0], [0.0], [em.evaluate(problem, point)]
    chunk = 1
    while iterations[-1] < limits.max_iter and seconds[-1] < limits.seconds:
        elapsed = peer.iterate(chunk)
        activations, atoms = peer.factors()
        iterations.append(iterations[-1] + chunk)
        seconds.append(seconds[-1] + elapsed)
        objectives.append(em.evaluate(problem, em.Factors(activations / likelihood.unit, atoms)))
        if _stands_still(iterations, objectives, limits.tol):
            return Curve(np.array(seconds), np.array(objectives), converged=True)
        wanted = min(CHUNK_SECONDS, CHUNK_SHARE * seconds[-1])
        chunk = max(1, min(2 * chunk, int(chunk * wanted / elapsed)))
    return Curve(np.array(seconds), np.array(objectives), converged=False)


def _stands_still(iterations: list[int], objectives: list[float], tol: float) -> bool:
    """Whether the gain over the last `PEER_WINDOW` iterations is below `tol`, relative."""
    before = bisect_right(iterations, iterations[-1] - PEER_WINDOW) - 1
    return before >= 0 and objectives[-1] - objectives[before] < tol * abs(objectives[-1])
