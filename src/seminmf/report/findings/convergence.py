"""How the fit came to its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._algorithms.loop import WINDOW
from ..._views.ending import ending_of, is_drawn

# A line of more points looks no different.
_MOST_POINTS = 300


class Fitted(Protocol):
    """What is asked of a subject."""

    @property
    def model(self) -> Any:
        """A fitted model."""

    @property
    def bayesian(self) -> bool:
        """Whether there are posteriors."""


@dataclass(frozen=True)
class Convergence:
    """The way to the end.

    Attributes
    ----------
    sentence : str
        Why the fit ended.
    n_iter : int
    iterations, distances : (n,) arrays
        How far the objective was from its last value; where that is above 0. Draws have none.
    objective : str
        What was maximised.
    """

    sentence: str
    n_iter: int
    iterations: NDArray
    distances: NDArray
    objective: str

    @classmethod
    def of(cls, subject: Fitted) -> Convergence:
        """Describe the way to the end."""
        model = subject.model
        if is_drawn(model):
            nothing = np.empty(0)
            return cls(why_it_ended(subject), int(model.n_iter_), nothing, nothing, "")
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


def why_it_ended(subject: Fitted) -> str:
    """The reason, in plain words."""
    model = subject.model
    words = f"The fit has {ending_of(model)}"
    if is_drawn(model) and not model.converged_:
        return f"{words}: the halves of the chain differ, and intervals may be too narrow."
    if not model.converged_:
        return f"{words}."
    if is_drawn(model):
        return f"{words}: both halves of the chain have the same components."
    return (
        f"{words}: over the last {WINDOW} of them it gained less than tol = {model.tol:g} of the "
        "objective’s size."
    )
