"""How the fit came to its end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._algorithms.loop import WINDOW
from ..subject import Subject

# A line of more points looks no different.
_MOST_POINTS = 300


@dataclass(frozen=True)
class Convergence:
    """The way to the end.

    Attributes
    ----------
    sentence : str
        Why the fit ended.
    n_iter : int
    iterations, distances : (n,) arrays
        How far the objective was from its last value; where that is above 0.
    objective : str
        What was maximised.
    """

    sentence: str
    n_iter: int
    iterations: NDArray
    distances: NDArray
    objective: str

    @classmethod
    def of(cls, subject: Subject) -> Convergence:
        """Describe the way to the end."""
        model = subject.model
        history = model.lower_bounds_ if subject.bayesian else model.objectives_
        history = np.where(np.isfinite(history), history, np.nan)
        distances = history[-1] - history
        iterations = np.flatnonzero(distances > 0)
        if len(iterations) > _MOST_POINTS:
            chosen = np.linspace(0, len(iterations) - 1, _MOST_POINTS).round().astype(int)
            iterations = iterations[chosen]
        return cls(
            sentence=why_it_ended(subject),
            n_iter=int(model.n_iter_),
            iterations=iterations,
            distances=distances[iterations],
            objective="lower bound" if subject.bayesian else "objective",
        )


def why_it_ended(subject: Subject) -> str:
    """The reason, in plain words."""
    model = subject.model
    iterations = "1 iteration" if model.n_iter_ == 1 else f"{model.n_iter_} iterations"
    if model.converged_:
        return (
            f"The fit converged after {iterations}: over the last {WINDOW} of them it gained less "
            f"than tol = {model.tol:g} of the objective’s size."
        )
    if model.stop_reason_ == "interrupted":
        return f"The fit was interrupted after {iterations}, before it had converged."
    return f"The fit ended after max_iter = {model.max_iter} iterations, and had not converged."
