"""A fit whose prior follows the posterior."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._algorithms.loop import Info, Stopping, run
from .._estimators.runs import Progress
from .._model.model import Priors
from .._prior_learning.prior_statistics import Expectations, Maps, Statistics, update_prior
from ..bayesian import BayesianSkellamSNMF
from .comparison import Comparison

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


def fit(comparison: Comparison, X: NDArray, n_components: int, seed: int) -> BayesianSkellamSNMF:
    """A fit to X, which is the comparison's or has more gaps; all components have one prior."""
    every = Group(slice(0, n_components), comparison.learns_shape)
    groups = [every] if comparison.learn_prior else []
    return _fit(comparison, X, n_components, seed, groups, _ROUNDS, comparison.estimator.tol)


def fit_each(comparison: Comparison, n_components: int, seed: int) -> BayesianSkellamSNMF:
    """A fit to the comparison's data; each component has a rate of its own."""
    groups = [Group(slice(k, k + 1), shape=False) for k in range(n_components)]
    tol = min(comparison.estimator.tol, _PATIENT_TOLERANCE)
    return _fit(comparison, comparison.X, n_components, seed, groups, _PATIENT_ROUNDS, tol)


def _fit(
    comparison: Comparison,
    X: NDArray,
    n_components: int,
    seed: int,
    groups: list[Group],
    n_rounds: int,
    tol: float,
) -> BayesianSkellamSNMF:
    """Rounds of a few iterations each, with a prior learned in between for each group."""
    model = comparison.model(n_components, seed)
    start = comparison.start(n_components)
    if comparison.has_noise:
        groups = [*groups, Group(slice(n_components, None), shape=True)]
    if not groups:
        return _fitted(model, X)
    most = model.max_iter
    model.set_params(tol=max(tol, _START_TOLERANCE), max_iter=min(most, _START_ITERATIONS))
    _fitted(model, X, **start)
    # A round never converges by itself: it would end by solving for the activations each time.
    model.set_params(tol=0.0, max_iter=min(most, _ROUND_ITERATIONS), n_init=1)
    rounds = Rounds(X, groups, start.get("frozen"))
    stopping = Stopping(n_rounds, tol, window=1, of_following=True)
    result = run(rounds, comparison, lambda: model, stopping, Progress(n_rounds, "", shown=False))
    if result.interrupted:
        raise KeyboardInterrupt
    return result.state


class Rounds:
    """The algorithm whose iteration is a round: the prior that suits best, and a few of VBEM's."""

    def __init__(self, X: NDArray, groups: list[Group], frozen: list[int] | None) -> None:
        self._X, self._groups, self._frozen = X, groups, frozen

    def start(self, comparison: Comparison, point: BayesianSkellamSNMF) -> BayesianSkellamSNMF:
        """The fitted model itself."""
        return point

    def point(self, state: BayesianSkellamSNMF) -> BayesianSkellamSNMF:
        """The fitted model itself."""
        return state

    def step(
        self, comparison: Comparison, model: BayesianSkellamSNMF
    ) -> tuple[BayesianSkellamSNMF, Info]:
        """The next model, and its bound."""
        following = clone(model).set_params(**_learned_prior(model, self._groups))
        start = {"atom_shape": model.atom_shape_, "activation_shape": model.activation_shape_}
        _fitted(following, self._X, **start, frozen=self._frozen)
        return following, Info(following.lower_bound_)

    def evaluate(self, comparison: Comparison, state: BayesianSkellamSNMF) -> float:
        """The bound of a model."""
        return state.lower_bound_


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
        before = Priors.of(
            new_shape[:, components].mean(axis=0, keepdims=True),
            new_rate[:, components].mean(axis=0, keepdims=True),
            model.atom_shape_,
        )
        best = update_prior(before, Statistics.of(own, maps), maps)
        if not learn_shape:
            new_rate[:, components] = best.activations.rate
            continue
        clipped = np.clip(best.activations.shape, *_SHAPES)
        new_shape[:, components] = clipped
        new_rate[:, components] = best.activations.rate * clipped / best.activations.shape
    return {"activation_shape_prior": new_shape, "activation_rate_prior": new_rate}
