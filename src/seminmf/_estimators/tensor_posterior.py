"""Draws from the posterior of a tensor model, and intervals of its factors."""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.stats import beta, gamma

from .._algorithms.tensor import TensorModel
from .._algorithms.tensor_vb import rate_of
from .._model.priors import Dirichlet
from .posteriors import Interval, Tails
from .tensor_fitted import Fitted, signed_values
from .tensor_labels import labelled


def draw(fitted: Fitted, random: RandomState) -> dict[str, NDArray]:
    """One draw of all factors, with the axes as written, in the unit of X."""
    parts = fitted.parts([_draw(fitted, n, random) for n in range(len(fitted.factors))])
    return {name: signed_values(own) for name, own in parts.factors.items()}


def intervals(
    fitted: Fitted, tails: Tails, n_draws: int, random: RandomState
) -> dict[str, Interval]:
    """Intervals of all factors: exact where they have no sign, and else by draws.

    Their ends have the labels that the factors have.
    """
    ends = [
        fitted.parts([_quantile(fitted, n, tail) for n in range(len(fitted.factors))]).factors
        for tail in tails
    ]
    found = {}
    for name in fitted.model.plan.factors:
        if len(ends[0][name]) == 1:
            found[name] = Interval(*(end[name][0] for end in ends))
        else:
            found[name] = _by_draws(fitted, name, tails, n_draws, random)
        axes = fitted.model.plan.factors[name]
        found[name] = Interval(*(labelled(end, axes, fitted.labels) for end in found[name]))
    return found


def _by_draws(
    fitted: Fitted, name: str, tails: Tails, n_draws: int, random: RandomState
) -> Interval:
    """The interval of a signed factor."""
    n, means = fitted.model.names.index(name), fitted.means(True)
    draws = []
    for _ in range(n_draws):
        own = [*means[:n], _draw(fitted, n, random), *means[n + 1 :]]
        draws.append(signed_values(fitted.parts(own).factors[name]))
    return Interval.of_draws(np.array(draws), tails)


def _draw(fitted: Fitted, n: int, random: RandomState) -> NDArray:
    """A draw of one factor inside."""
    factor, shape = fitted.factors[n], fitted.state[n].astype(np.float64)
    if isinstance(factor.prior, Dirichlet):
        values = Dirichlet(shape).draw(random, 1)[0]
    else:
        rate = rate_of(TensorModel(fitted.factors, has_rates=True), n, fitted.state)
        values = random.gamma(shape) / rate
    return factor.keep_frozen(values, factor.known)


def _quantile(fitted: Fitted, n: int, tail: float) -> NDArray:
    """A quantile of each entry of a factor inside."""
    factor, shape = fitted.factors[n], fitted.state[n].astype(np.float64)
    if isinstance(factor.prior, Dirichlet):
        values = beta.ppf(tail, shape, shape.sum(axis=(0, 2), keepdims=True) - shape)
        values = np.where(np.isnan(values), 1.0, values)  # an entry that is all of its sum
    else:
        rate = rate_of(TensorModel(fitted.factors, has_rates=True), n, fitted.state)
        values = gamma.ppf(tail, shape, scale=1 / np.broadcast_to(rate, shape.shape))
    return factor.keep_frozen(values, factor.known)
