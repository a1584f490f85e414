"""Why a fit ended and which solver it was by, in words."""

from __future__ import annotations

from typing import Any

_WORDS = {
    "tolerance": "converged",
    "max_iter": "not converged: stopped by max_iter",
    "interrupted": "not converged: interrupted",
}
# The same of draws from a posterior.
_WORDS_OF_DRAWS = {
    "tolerance": "draws that have settled",
    "max_iter": "draws that have not settled",
    "interrupted": "draws until it was interrupted",
}

_SOLVERS = {"newton": "Newton's method", "em": "EM"}


def solver_of(model: Any) -> str | None:
    """The solver that was used, and that it was not the one asked for; None if it is not known.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> solver_of(SimpleNamespace(solver_="em", solver="newton"))
    "EM, in the place of Newton's method"
    """
    used = getattr(model, "solver_", "unknown")
    if used not in _SOLVERS:
        return None if used == "unknown" else str(used)
    instead = used == "em" and model.solver == "newton"
    return f"{_SOLVERS[used]}, in the place of Newton's method" if instead else _SOLVERS[used]


def is_drawn(model: Any) -> bool:
    """Whether a fit has draws from its posterior, and no objective that rises."""
    return getattr(model, "posterior_", None) == "correlated"


def ending_of(model: Any) -> str:
    """Why a fit ended; "the fit has" may stand before it."""
    return ending(model.stop_reason_, model.n_iter_, drawn=is_drawn(model))


def ending(stop_reason: str, n_iter: int, *, drawn: bool = False) -> str:
    """The reason, and after how many iterations or sweeps.

    Examples
    --------
    >>> ending("max_iter", 1)
    'not converged: stopped by max_iter after 1 iteration'
    >>> ending("tolerance", 2500, drawn=True)
    'draws that have settled, after 2500 sweeps'
    """
    plural = "" if n_iter == 1 else "s"
    if drawn:
        return f"{_WORDS_OF_DRAWS[stop_reason]}, after {n_iter} sweep{plural}"
    return f"{_WORDS[stop_reason]} after {n_iter} iteration{plural}"
