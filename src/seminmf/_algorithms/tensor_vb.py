"""VBEM for tensors: gamma posteriors of free factors, Dirichlet posteriors of those that sum to 1.

A point has the posterior shapes α̂ of each factor. Rates β̂ are 1 + β but for free factors that are
exposed: what they are multiplied by is itself uncertain, and their rates are arrays behind the
shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from .._model.factors import TensorFactor
from .._model.priors import Dirichlet
from .loop import Info
from .tensor import TensorModel, TensorProblem

# A NamedTuple of posterior shapes, then of rates.
Point = Any


class Moments(NamedTuple):
    """Geometric and arithmetic mean of each factor, and minus the divergences from the priors."""

    geometric: list[NDArray]
    means: list[NDArray]
    term: float


def start(problem: TensorProblem, point: Point) -> Point:
    """The point itself: there is nothing to remember between iterations."""
    return point


def point(state: Point) -> Point:
    """The state itself."""
    return state


def step(problem: TensorProblem, state: Point) -> tuple[Point, Info]:
    """One iteration: all posteriors are updated from the same E-step."""
    moments = moments_of(problem, state)
    found = problem.expectations(moments.geometric)
    bound = _bound(problem, moments, found.data_term + found.total)
    arrays, model = list(state), problem.model
    for n, factor in enumerate(model.tensors):
        if n not in model.held:
            counts = moments.geometric[n] * found.gradients[n]
            updated = factor.prior.posterior(counts)
            prior = np.broadcast_to(factor.prior.shape, updated.shape)
            arrays[n] = factor.keep_frozen(updated, prior).astype(state[n].dtype, copy=False)
    for place, n in enumerate(model.exposed, len(model.tensors)):
        if n not in model.held:
            exposure = problem.exposures(means_of(model, arrays))[n]
            rate = model.tensors[n].prior.posterior_rate(1.0, exposure)
            arrays[place] = rate.astype(state[place].dtype, copy=False)
    return state._make(arrays), Info(bound)


def evaluate(problem: TensorProblem, state: Point) -> float:
    """Lower bound of the evidence at a state."""
    moments = moments_of(problem, state)
    found = problem.expectations(moments.geometric)
    return _bound(problem, moments, found.data_term + found.total)


def _bound(problem: TensorProblem, moments: Moments, data_term: float) -> float:
    """g = Σ value(x | ℓ̄) + Σ ℓ̄ − Σ m̄ − Σ_f KL_f; the data term has the first two."""
    return data_term - problem.total(moments.means) + moments.term


def moments_of(problem: TensorProblem, state: Sequence[NDArray]) -> Moments:
    """What the posteriors at a state say of each factor."""
    geometric: list[NDArray] = []
    term = 0.0
    for n, factor in enumerate(problem.model.tensors):
        if isinstance(factor.prior, Dirichlet):
            own, part = factor.prior.geometric_means(state[n])
            part += factor.prior.bound_constant(state[n].shape)
        else:
            own, part = _gamma_moments(problem, n, state)
        geometric.append(_with_known(factor, own))
        term += part
    return Moments(geometric, means_of(problem.model, state), term)


def _gamma_moments(
    problem: TensorProblem, n: int, state: Sequence[NDArray]
) -> tuple[NDArray, float]:
    """exp ψ(α̂) / β̂, and minus the divergence of what is not frozen."""
    factor, shape = problem.model.tensors[n], state[n]
    prior, weights = factor.prior, factor.row_weights
    exposure = _exposure(problem.model, n, state)
    own = np.empty_like(shape)
    term = prior.geometric_means(shape, weights, 1.0, own, exposure)
    mean = shape / prior.posterior_rate(1.0, exposure)
    rest = prior.bound_constant(exposure) + shape - prior.rate * mean
    known = gammaln(np.broadcast_to(prior.shape, shape.shape))
    return own, term + float(weights @ np.where(factor.frozen, -known, rest).sum(axis=1))


def _exposure(model: TensorModel, n: int, state: Sequence[NDArray]) -> NDArray | float:
    """E in β̂ = E + β."""
    if not model.tensors[n].exposed:
        return 1.0
    place = len(model.tensors) + model.exposed.index(n)
    return state[place] - model.tensors[n].prior.rate


def rate_of(model: TensorModel, n: int, state: Sequence[NDArray]) -> NDArray:
    """Posterior rates β̂ of a free factor."""
    return model.tensors[n].prior.posterior_rate(1.0, _exposure(model, n, state))


def means_of(model: TensorModel, state: Sequence[NDArray]) -> list[NDArray]:
    """Posterior means of all factors."""
    means = []
    for n, factor in enumerate(model.tensors):
        shape = state[n]
        if isinstance(factor.prior, Dirichlet):
            mean = shape / shape.sum(axis=(0, 2), keepdims=True)
        else:
            mean = (shape / rate_of(model, n, state)).astype(shape.dtype)
        means.append(_with_known(factor, mean))
    return means


def _with_known(factor: TensorFactor, values: NDArray) -> NDArray:
    return factor.keep_frozen(values, factor.known) if factor.frozen.any() else values


def state_from(problem: TensorProblem, point: Any) -> list[NDArray]:
    """Posteriors that would follow if a point of EM were the expected counts."""
    exposures = problem.exposures(point)
    shapes, rates = [], []
    for n, factor in enumerate(problem.model.tensors):
        exposure = exposures[n] if factor.exposed or not factor.is_free else 1.0
        shape = factor.prior.posterior(np.array(point[n] * exposure, dtype=np.float64))
        prior = np.broadcast_to(factor.prior.shape, shape.shape)
        shapes.append(factor.keep_frozen(shape, prior).astype(problem.dtype))
        if factor.exposed:
            rates.append(factor.prior.posterior_rate(1.0, exposure).astype(problem.dtype))
    return [*shapes, *rates]


def project(problem: TensorProblem, point: Point) -> Point:
    """The point, with no shape or rate below the prior's, as after any step."""
    arrays = []
    for n, (factor, values) in enumerate(zip(problem.model.factors, point, strict=True)):
        is_rate = n >= len(problem.model.tensors)
        least = factor.prior.rate if is_rate else factor.prior.shape
        arrays.append(np.maximum(values, least).astype(values.dtype, copy=False))
    return point._make(arrays)
