"""The frame of a fit: parameters that are kept, runs from several starts, checkpoints, warnings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_random_state

from .._algorithms.loop import UNRECORDED, WINDOW, Result
from . import validation as check
from .checkpoint import Journal, describe, lock_checkpoint
from .notices import warn_user
from .runs import Best, Runner, best_run
from .transaction import Transactional

S = TypeVar("S")


class FitFrame(Transactional):
    """Base of the estimators; not for direct use."""

    # Parameters that a fitted estimator keeps: a change to them is for the next fit.
    _kept_parameters: tuple[str, ...]
    # Parameters that all estimators have.
    random_state: Any
    verbose: Any
    n_init: Any
    max_iter: Any
    tol: Any

    def _keep_parameters(self) -> None:
        """Note what the fit was made with."""
        self._kept = {name: getattr(self, name) for name in self._kept_parameters}

    def _parameter(self, name: str) -> Any:
        """A parameter as it was in the fit, if there was one."""
        kept: dict[str, Any] = getattr(self, "_kept", {})
        return kept[name] if name in kept else getattr(self, name)

    def _runner(
        self, path: Any, every: Any, source: Any, **given: NDArray | None
    ) -> tuple[Runner, RandomState]:
        """Who runs the algorithms, and the source of random numbers that goes with it."""
        random = check_random_state(self.random_state)
        every = check.check_seconds("checkpoint_every", every)
        if path is None:
            return Runner(UNRECORDED, bool(self.verbose)), random
        self._checkpoint_lock = lock = lock_checkpoint(path)
        fit = describe(self, source, given)
        journal = Journal(path, every, fit, random, alone=lock.held)
        return Runner(journal, bool(self.verbose)), journal.random

    def _best_run(
        self,
        run_once: Callable[[], Result[S]],
        components: Callable[[S], NDArray],
        n_init: int | None = None,
    ) -> Best[S]:
        """The best of some runs, `n_init` of them unless it is said."""
        best = best_run(run_once, components, self.n_init if n_init is None else n_init)
        self._end(best)
        return best

    def _end(self, best: Best) -> None:
        """Note whether Ctrl-C came, and warn of a run that did not converge."""
        self._interrupted = best.last.interrupted
        self._warn(best.result, last=best.last)

    def _warn(self, best: Result, last: Result) -> None:
        if last.interrupted:
            warn_user(
                f"Interrupted after {last.n_iter} iterations; the best state so far is kept.",
                ConvergenceWarning,
            )
        elif not best.converged:
            warn_user(
                f"No convergence after max_iter={self.max_iter} iterations: the objective still "
                f"gained more than tol={self.tol} of its size over {WINDOW} of them. "
                "Raise max_iter or tol.",
                ConvergenceWarning,
            )
