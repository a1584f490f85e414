"""Runs searches for noise, with progress, checkpoint and Ctrl-C, as fits have them."""

from __future__ import annotations

from .._algorithms import noise as search
from .._algorithms.noise import Found, Search, SearchStopping
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
        if self.interrupted:
            return state
        tolerance = _TOLERANCE * problem.data.counts.sum()
        stopping = SearchStopping(most, tolerance, window=_WINDOW, relative=False)
        result = self._runner.run(search, problem, lambda: state, "noise", stopping)
        self.interrupted = result.interrupted
        return result.state
