"""One matrix after the other: how a new one is fitted, and how much it counts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..bayesian import BayesianSkellamSNMF
from .gaussian_potential import GaussianPotential
from .learned import WEAK, Learned, Plan, learn_from
from .posteriors import Posterior, correlated, variational
from .prior_statistics import best_order

# The rate at which an annealed learner goes on.
_LASTING_RATE = 0.01
# So many matrices are believed before one that contradicts them is doubted.
_TRUSTED_AFTER = 5


def next_matrix(
    estimator: BayesianSkellamSNMF,
    X: Any,
    learned: Learned,
    plan: Plan,
    learning_rate: float | str,
    **parameters: Any,
) -> tuple[Posterior, Learned]:
    """Fit one more matrix with the present prior, and learn from it.

    `parameters` are those of the estimator that this matrix has to itself.
    """
    kept = _remaining_potential(learned, learning_rate)
    posterior = _posterior(partial(variational, estimator, X, **parameters), X, learned, kept, plan)
    return posterior, learn_from(
        learned, posterior, plan, rates(learning_rate, learned.n_matrices), kept
    )


def rates(learning_rate: float | str, n_matrices: int) -> tuple[float, float]:
    """Weight of the next matrix for the activations' prior, and for the atoms'."""
    if learning_rate == "harmonic":
        return 1 / (n_matrices + 2), 1 / (n_matrices + 2)
    if learning_rate == "annealed":
        # Late matrices count more than early ones, whose prior was worse. One matrix has many
        # activations but each atom once, and needs the start beside it.
        both = 3 / (n_matrices + 4), 2 / (n_matrices + 6)
        return max(both[0], _LASTING_RATE), max(both[1], _LASTING_RATE)
    return float(learning_rate), float(learning_rate)


def _remaining_potential(learned: Learned, learning_rate: float | str) -> GaussianPotential:
    """What is left of what was believed when a new matrix comes, which counts as one.

    With the weights c of matrices in a mean, the last one's is c, and that of all before 1 − c
    instead of 1.
    """
    if learned.n_matrices == 0:
        return learned.potential
    before, now = (rates(learning_rate, learned.n_matrices - back)[0] for back in (1, 0))
    if now == 1:
        return GaussianPotential.weak(learned.potential.mean, WEAK)
    return learned.potential.times((1 - now) * before / now)


def _posterior(
    fit: Any, X: Any, learned: Learned, kept: GaussianPotential, plan: Plan
) -> Posterior:
    """The fit to one matrix; started again if another order of its components is better."""
    posterior = fit(learned.prior)
    order = best_order(learned.prior, posterior.expected)
    if not np.array_equal(order, np.arange(len(order))):
        posterior = fit(learned.prior, posterior.ordered(order).model)
    if not plan.correlated:
        return posterior
    doubt = learned.n_matrices >= _TRUSTED_AFTER
    return correlated(X, posterior, learned.prior, plan.known, kept, doubt=doubt)
