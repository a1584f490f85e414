"""Runs searches for noise, with progress, checkpoint and Ctrl-C, as fits have them."""

from __future__ import annotations

from .._algorithms import noise as search
from .._algorithms.noise import ContinuedStopping, Found, Search, SearchStopping
from .runs import Runner

# Most rounds, and nats for each cell that count as none over so many of them.
_ROUNDS, _TOLERANCE, _WINDOW = 300, 1e-5, 10


class Searcher:
    """Runs searches, and none after Ctrl-C."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.interrupted = False

    def run(self, problem: Search, state: Found, most: int = _ROUNDS) -> Found:
        """Search from a state, for at most so many rounds."""
        return self._run(problem, state, most, SearchStopping)

    def go_on(self, problem: Search, state: Found, most: int = _ROUNDS) -> Found:
        """The same from where a search has ended, perhaps with another price."""
        return self._run(problem, state, most, ContinuedStopping)

    def _run(self, problem: Search, state: Found, most: int, rule: type[SearchStopping]) -> Found:
        if self.interrupted:
            return state
        tolerance = _TOLERANCE * problem.data.counts.sum()
        stopping = rule(most, tolerance, window=_WINDOW, relative=False)
        result = self._runner.run(search, problem, lambda: state, "noise", stopping)
        self.interrupted = result.interrupted
        return result.state
