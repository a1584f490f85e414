"""Why a fit ended, in words."""

from __future__ import annotations

_WORDS = {
    "tolerance": "converged",
    "max_iter": "not converged: stopped by max_iter",
    "interrupted": "not converged: interrupted",
}


def ending(stop_reason: str, n_iter: int) -> str:
    """The reason, and after how many iterations; "has" may stand before it.

    Examples
    --------
    >>> ending("max_iter", 1)
    'not converged: stopped by max_iter after 1 iteration'
    """
    return f"{_WORDS[stop_reason]} after {n_iter} iteration{'' if n_iter == 1 else 's'}"
