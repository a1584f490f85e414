"""Why a fit ended, in words."""

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
