"""Sizes of a latent letter of a tensor model, by cells that the fits did not see."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import clone

from .._estimators.tensor import BaseSNTF
from .._estimators.tensor_cells import log_densities
from .._model.language import ONLY, read
from .heldout import hide


def check_letter(estimator: BaseSNTF, letter: str | None) -> str:
    """The latent letter whose size is to be chosen, of a model with one observed tensor."""
    plan = read(estimator.model)
    if len(plan.observations) > 1:
        raise ValueError(
            "estimator must be of a model with one observed tensor; found one with "
            f"{len(plan.observations)}."
        )
    accepted = ", ".join(map(repr, plan.latent))
    if letter is None and len(plan.latent) == 1:
        return plan.latent[0]
    if letter not in plan.latent:
        raise ValueError(
            f"letter must be a latent letter of the model ({accepted}); found {letter!r}."
        )
    return letter


def hidden_cells(X: NDArray, share: float, random: RandomState) -> NDArray:
    """A random share of the observed cells; each sample keeps one, and each cell of a sample."""
    flat = ~np.isnan(X.reshape(len(X), -1))
    return hide(flat, share, random).reshape(X.shape)


def predict_hidden(
    estimator: BaseSNTF, X: NDArray, letter: str, size: int, seed: int, hidden: NDArray
) -> NDArray:
    """Log-densities of hidden cells, by a fit to all others that finds its own noise."""
    given = estimator.n_components
    sizes = dict(given) | {letter: size} if isinstance(given, Mapping) else {letter: size}
    model = clone(estimator).set_params(n_components=sizes, random_state=int(seed), n_jobs=1)
    model.set_params(verbose=0).fit(np.where(hidden, np.nan, X))
    fitted = model._fitted
    parts = fitted.parts(fitted.means(model._variational))
    observation = fitted.model.plan.observations[0]
    assert observation.name == ONLY
    return log_densities(fitted, parts, observation, np.where(hidden, X, np.nan))
