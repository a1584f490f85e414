"""A fit whose prior follows the posterior."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._algorithms.problem import Prior
from .._prior_learning.prior_statistics import Expectations, Maps, Statistics, update_prior
from ..bayesian import BayesianSkellamSNMF
from .problem import Problem

# A prior is learned in rounds of a few iterations, after a start with the first one.
_START_ITERATIONS = 300
_START_TOLERANCE = 1e-3
_ROUNDS = 30
_ROUND_ITERATIONS = 22
# Components that are not needed take their time to go.
_PATIENT_ROUNDS = 200
_PATIENT_TOLERANCE = 1e-5
_SHAPES = (1e-2, 1e2)


class Group(NamedTuple):
    """Components that share a prior of their activations, and whether its shape is learned too."""

    components: slice
    shape: bool


def fit(problem: Problem, X: NDArray, n_components: int, seed: int) -> BayesianSkellamSNMF:
    """A fit to X, which is the problem's or has more gaps; all components have one prior."""
    every = Group(slice(0, n_components), problem.learns_shape)
    groups = [every] if problem.learn_prior else []
    return _fit(problem, X, n_components, seed, groups, _ROUNDS, problem.estimator.tol)


def fit_each(problem: Problem, n_components: int, seed: int) -> BayesianSkellamSNMF:
    """A fit to the problem's data; each component has a rate of its own."""
    groups = [Group(slice(k, k + 1), shape=False) for k in range(n_components)]
    tol = min(problem.estimator.tol, _PATIENT_TOLERANCE)
    return _fit(problem, problem.X, n_components, seed, groups, _PATIENT_ROUNDS, tol)


def _fit(
    problem: Problem,
    X: NDArray,
    n_components: int,
    seed: int,
    groups: list[Group],
    n_rounds: int,
    tol: float,
) -> BayesianSkellamSNMF:
    """Rounds of a few iterations each, with a prior learned in between for each group."""
    model = problem.model(n_components, seed)
    start = problem.start(n_components)
    if problem.has_noise:
        groups = [*groups, Group(slice(n_components, None), shape=True)]
    if not groups:
        return _fitted(model, X)
    most = model.max_iter
    model.set_params(tol=max(tol, _START_TOLERANCE), max_iter=min(most, _START_ITERATIONS))
    _fitted(model, X, **start)
    # A round never converges by itself: it would end by solving for the activations each time.
    model.set_params(tol=0.0, max_iter=min(most, _ROUND_ITERATIONS))
    for _ in range(n_rounds):
        before = model.lower_bound_
        start["atom_shape"] = model.atom_shape_
        start["activation_shape"] = model.activation_shape_
        model.set_params(n_init=1, **_learned_prior(model, groups))
        _fitted(model, X, **start)
        if model.lower_bound_ - before < tol * abs(model.lower_bound_):
            break
    return model


def _fitted(model: BayesianSkellamSNMF, X: NDArray, **start: Any) -> BayesianSkellamSNMF:
    """The model after a fit that nobody interrupted: half a fit is nothing to compare."""
    model.fit(X, **start)
    if model._interrupted:
        raise KeyboardInterrupt
    return model


def _learned_prior(model: BayesianSkellamSNMF, groups: list[Group]) -> dict[str, NDArray]:
    """The prior that suits the posterior best, in each group of components."""
    shape, rate = model.activation_shape_, model.activation_rate_
    expected = Expectations.of(shape, rate, model.atom_shape_)
    priors = np.broadcast_arrays(model.activation_shape_prior, model.activation_rate_prior)
    new_shape, new_rate = (
        np.array(np.broadcast_to(prior, (len(prior), shape.shape[1]))) for prior in priors
    )
    for components, learn_shape in groups:
        own = expected.of_components(components)
        labels = np.zeros((1, own.activations.shape[1]), int)
        maps = Maps(labels if learn_shape else None, labels, None)
        before = Prior(
            new_shape[:, components].mean(axis=0, keepdims=True),
            new_rate[:, components].mean(axis=0, keepdims=True),
            model.atom_shape_,
        )
        best = update_prior(before, Statistics.of(own, maps), maps)
        if not learn_shape:
            new_rate[:, components] = best.activation_rate
            continue
        clipped = np.clip(best.activation_shape, *_SHAPES)
        new_shape[:, components] = clipped
        new_rate[:, components] = best.activation_rate * clipped / best.activation_shape
    return {"activation_shape_prior": new_shape, "activation_rate_prior": new_rate}
