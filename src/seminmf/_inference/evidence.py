"""Atoms that maximise the evidence of the samples, with their activations integrated out.

The mean-field posterior drops the correlations of a sample's activations, and its bound then
favours components that lie too far apart, by more than the data can oppose. Here nothing is dropped
but what the rule of integration misses. EM would crawl along the same directions, so the iteration
is Fisher's scoring in ln θ: Newton's method with the observed information, damped where it must be.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import digamma, gammaln, ndtri, polygamma
from scipy.stats import qmc

from .._passes.quadrature import Marginal, Nodes, integrate
from . import em
from .hyperparameters import RATE_BOUNDS, SHAPE_BOUNDS
from .prior_statistics import Expectations, Maps, Statistics
from .problem import Prior, Problem

# Points on each axis of the product rule, as long as there are no more than so many in all.
_ORDER = 5
_MOST_NODES = 125
# Points of the low-discrepancy sequence, each with its mirror image.
_HALF_SEQUENCE = 64

# Newton steps towards the samples' modes at the start, and in each iteration.
_FIRST_STEPS, _STEPS = 6, 1
# No ln θ changes by more than this at once.
_LONGEST = 2.0
_SMALLEST_ATOM = 1e-12
# Damping after a step that did not raise the evidence, its growth, and where the search ends.
_DAMPING, _GROWTH, _MOST_DAMPING = 0.05, 4.0, 1e3


class History(NamedTuple):
    """What earlier matrices say about the activations' prior, and how much that counts."""

    statistics: Statistics
    weight: float


class ActivationPrior(NamedTuple):
    """Shapes and rates by label, with their maps, as far as they are found with the atoms.

    A map of None, or one that tells samples apart, keeps its prior as it is.
    """

    shape: NDArray
    rate: NDArray
    shape_labels: NDArray | None
    rate_labels: NDArray | None

    @classmethod
    def of(cls, prior: Prior, maps: Maps) -> ActivationPrior:
        """The prior's values by label."""
        learned = [
            labels if labels is not None and len(labels) == 1 else None
            for labels in (maps.activation_shape, maps.activation_rate)
        ]
        shape, rate = prior.activation_shape, prior.activation_rate
        if any(labels is not None for labels in learned):
            shape, rate = np.broadcast_arrays(shape, rate)
        return cls(shape, rate, *learned)

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of shapes and rates to find."""
        shapes, rates = (
            0 if labels is None else int(labels.max()) + 1
            for labels in (self.shape_labels, self.rate_labels)
        )
        return shapes, rates

    def moved(self, step: NDArray) -> ActivationPrior:
        """Values multiplied by exp(step), within their bounds."""
        n_shapes, _ = self.sizes
        shape, rate = self.shape, self.rate
        if self.shape_labels is not None:
            shape = np.clip(shape * np.exp(step[:n_shapes][self.shape_labels]), *SHAPE_BOUNDS)
        if self.rate_labels is not None:
            rate = np.clip(rate * np.exp(step[n_shapes:][self.rate_labels]), *RATE_BOUNDS)
        return self._replace(shape=shape, rate=rate)

    def scores(self, activations: NDArray, log_activations: NDArray) -> NDArray:
        """Derivatives by ln α and ln β of each row's E[ln p(λ)], summed by label."""
        by_shape = self.shape * (np.log(self.rate) - digamma(self.shape) + log_activations)
        by_rate = self.shape - self.rate * activations
        parts = [
            np.zeros((len(activations), 0)) if labels is None else by_cell @ _indicator(labels)
            for labels, by_cell in ((self.shape_labels, by_shape), (self.rate_labels, by_rate))
        ]
        return np.concatenate(parts, axis=1)

    def curvature(self, n_samples: float) -> NDArray:
        """Minus the second derivatives of E[ln p(λ)] of so many samples, near the optimum."""
        n_components = self.shape.shape[1]
        shapes = np.broadcast_to(self.shape, (1, n_components))[0]
        columns = [
            np.zeros((n_components, 0)) if labels is None else _indicator(labels)
            for labels in (self.shape_labels, self.rate_labels)
        ]
        cross = -columns[0].T @ (shapes[:, None] * columns[1])
        own = [
            columns[0].T @ ((shapes**2 * polygamma(1, shapes))[:, None] * columns[0]),
            columns[1].T @ (shapes[:, None] * columns[1]),
        ]
        return n_samples * np.block([[own[0], cross], [cross.T, own[1]]])

    def past_scores(self, past: Statistics) -> NDArray:
        """Derivatives by ln α and ln β of what the statistics of other matrices say."""
        nothing = np.zeros((1, self.shape.shape[1]))
        scores = past.n_samples * self.scores(nothing, nothing)[0]
        shapes, rates = self.values()
        n_shapes, _ = self.sizes
        scores[:n_shapes] += shapes * past.gamma[:n_shapes]
        scores[n_shapes:] -= rates * past.delta[: len(rates)]
        return scores

    def past_log_density(self, past: Statistics) -> float:
        """E[ln p(λ)] of other matrices, but for what does not depend on this prior."""
        shapes, rates = self.values()
        constants = self.shape * np.log(self.rate) - gammaln(self.shape)
        linear = shapes @ past.gamma[: len(shapes)] - rates @ past.delta[: len(rates)]
        return float(past.n_samples * constants.sum() + linear)

    def values(self) -> tuple[NDArray, NDArray]:
        """Shapes and rates by label."""
        found = []
        for labels, values in ((self.shape_labels, self.shape), (self.rate_labels, self.rate)):
            by_label = np.zeros(0)
            if labels is not None:
                by_label = np.zeros(int(labels.max()) + 1)
                by_label[labels[0]] = np.broadcast_to(values, labels.shape)[0]
            found.append(by_label)
        return found[0], found[1]


def _indicator(labels: NDArray) -> NDArray:
    """Which component has which label, as a matrix (K, n_labels)."""
    return np.eye(int(labels.max()) + 1)[labels[0]]


class Point(NamedTuple):
    """Atoms (2, K, I) and the activations' prior, and what the samples say there."""

    atoms: NDArray
    activation_prior: ActivationPrior
    marginal: Marginal
    objective: float


class Found(NamedTuple):
    """Atoms and activations' prior that maximise the evidence, and expectations there.

    Attributes
    ----------
    atoms : (2, K, I) array
    atom_shape : (2, K, I) array
        A Dirichlet posterior with that mean, and about the variances of ln θ.
    prior : Prior
    expected : Expectations
    objectives : list of float
        Evidence at the atoms, their log-prior and what the history says, from the start to the end,
        but for constants.
    evidence : float
        Logarithm of the evidence of the matrix, with the atoms integrated out by Laplace's method.
    """

    atoms: NDArray
    atom_shape: NDArray
    prior: Prior
    expected: Expectations
    objectives: list[float]
    evidence: float


class Task(NamedTuple):
    """The problem, the unit of the prior, and what earlier matrices say."""

    problem: Problem
    unit: float
    history: History | None


def maximise(
    problem: Problem,
    maps: Maps,
    history: History | None,
    start: em.State,
    *,
    max_iter: int = 40,
    tol: float = 0.1,
) -> Found:
    """Find atoms, and what the maps say of the activations' prior, from a start near by.

    It stops when no more than `tol` is to be gained. A prior that is found at the same time needs
    no second fit: what the matrix says of it and what its history says are weighed against each
    other.
    """
    unit = problem.likelihood.unit / problem.mass
    task = Task(problem, unit, history)
    activations = problem.mass * start.activations.astype(np.float64)
    modes = np.log(np.maximum(activations, np.finfo(np.float64).tiny))
    own = ActivationPrior.of(problem.prior, maps)
    here = _evaluate(task, start.atoms.astype(np.float64), own, modes, _FIRST_STEPS)
    objectives = [here.objective]
    damping = 0.0
    for _ in range(max_iter):
        there, damping = _advance(task, here, damping, tol)
        if there is None:
            break
        here = there
        objectives.append(here.objective)
    prior = problem.prior._replace(
        activation_shape=here.activation_prior.shape, activation_rate=here.activation_prior.rate
    )
    _, curvature = _derivatives(task, here)
    size = here.atoms.size
    precisions = 1 / _log_variances(here.atoms, np.linalg.inv(curvature)[:size, :size])
    totals = precisions.sum(axis=(0, 2), keepdims=True)
    return Found(
        here.atoms,
        here.atoms * totals,
        prior,
        _expectations(here, precisions),
        objectives,
        _total_evidence(problem, here, curvature[:size, :size]),
    )


def _advance(task: Task, here: Point, damping: float, tol: float) -> tuple[Point | None, float]:
    """The next point, or None if there is nothing to gain, and the damping for the step after."""
    slope, curvature = _derivatives(task, here)
    diagonal = np.diag(curvature)
    while damping < _MOST_DAMPING:
        step = cho_solve(cho_factor(curvature + np.diag((1e-9 + damping) * diagonal)), slope)
        if slope @ step < tol:
            return None, damping
        step = np.clip(step, -_LONGEST, _LONGEST)
        size = here.atoms.size
        atoms = here.atoms * np.exp(step[:size].reshape(here.atoms.shape))
        prior = here.activation_prior.moved(step[size:])
        there = _evaluate(task, atoms, prior, here.marginal.modes, _STEPS)
        if there.objective > here.objective:
            return there, damping / _GROWTH if damping > 1e-3 else 0.0
        damping = max(_GROWTH * damping, _DAMPING)
    return None, damping


def _derivatives(task: Task, here: Point) -> tuple[NDArray, NDArray]:
    """Slope by ln θ, ln α and ln β, and a positive matrix for minus the second derivatives.

    In ln θ the Dirichlet prior is Σ α ln θ, with the slope α − θ Σα.
    """
    problem, _, history = task
    shape = np.broadcast_to(problem.prior.atom_shape, here.atoms.shape)
    slope = here.marginal.slopes.copy()
    weight = float(problem.sample_weight.sum())
    curvature = here.marginal.information - np.outer(slope, slope) / weight
    size = here.atoms.size
    slope[:size] += (shape - here.atoms * shape.sum(axis=(0, 2), keepdims=True)).ravel()
    curvature[np.arange(size), np.arange(size)] += shape.ravel()
    if history is not None:
        own, past = here.activation_prior, history.statistics
        slope[size:] += history.weight * own.past_scores(past)
        curvature[size:, size:] += history.weight * own.curvature(past.n_samples)
    frozen = np.broadcast_to(problem.frozen[:, None], here.atoms.shape).ravel()
    slope[:size][frozen] = 0.0
    return slope, curvature


def _evaluate(
    task: Task, atoms: NDArray, own: ActivationPrior, modes: NDArray, n_steps: int
) -> Point:
    """The point at these atoms, brought back to sums of 1, and this prior."""
    problem, _, history = task
    atoms = np.maximum(atoms / atoms.sum(axis=(0, 2), keepdims=True), _SMALLEST_ATOM)
    marginal = integrate(
        problem.source,
        task.unit,
        atoms,
        own.shape,
        own.rate,
        problem.sample_weight,
        modes,
        standard_nodes(problem.n_components),
        n_steps,
        own.scores,
        problem.pool,
    )
    objective = marginal.evidence + float(np.sum(problem.prior.atom_shape * np.log(atoms)))
    constants = np.broadcast_to(own.shape * np.log(own.rate) - gammaln(own.shape), modes.shape)
    objective += float(problem.sample_weight @ constants.sum(axis=1))
    if history is not None:
        objective += history.weight * own.past_log_density(history.statistics)
    return Point(atoms, own, marginal, objective)


def _expectations(here: Point, precisions: NDArray) -> Expectations:
    """Posterior means of λ and ln λ, in the unit of the prior, and of ln θ.

    That of ln θ is below the logarithm of θ as for a gamma variable of that precision.
    """
    log_atoms = np.log(here.atoms) + digamma(precisions) - np.log(precisions)
    return Expectations(here.marginal.activations, here.marginal.log_activations, log_atoms)


def _log_variances(atoms: NDArray, covariance: NDArray) -> NDArray:
    """Variances of ln θ after normalisation, from the covariance before."""
    components = np.broadcast_to(np.arange(atoms.shape[1])[:, None], atoms.shape).ravel()
    same = components[:, None] == components
    project = np.eye(atoms.size) - same * atoms.ravel()
    variances = np.sum((project @ covariance) * project, axis=1)
    return np.maximum(variances, 1e-12).reshape(atoms.shape)


def _total_evidence(problem: Problem, here: Point, curvature: NDArray) -> float:
    """Evidence without the atoms, by Laplace's method.

    A Dirichlet variable is one of independent gamma variables that is divided by its sum. In their
    logarithms, of which Σα = a is the best sum, the density is Σ α ln(aθ) − a − Σ lnΓ(α).
    """
    shape = np.broadcast_to(problem.prior.atom_shape, here.atoms.shape)
    totals = shape.sum(axis=(0, 2), keepdims=True)
    density = np.sum(shape * np.log(totals * here.atoms) - gammaln(shape)) - totals.sum()
    _, log_det = np.linalg.slogdet(curvature)
    volume = 0.5 * (here.atoms.size * math.log(2 * math.pi) - log_det)
    return here.marginal.evidence + _constants(problem, here.activation_prior) + density + volume


def _constants(problem: Problem, own: ActivationPrior) -> float:
    """What normalises the activations' prior."""
    per_cell = own.shape * np.log(own.rate) - gammaln(own.shape)
    shape = (problem.source.shape[0], problem.n_components)
    return float(problem.sample_weight @ np.broadcast_to(per_cell, shape).sum(axis=1))


@lru_cache(maxsize=8)
def standard_nodes(n_components: int) -> Nodes:
    """Nodes for the standard normal distribution in so many dimensions."""
    if _ORDER**n_components <= _MOST_NODES:
        axis, weights = np.polynomial.hermite_e.hermegauss(_ORDER)
        points = np.array(np.meshgrid(*[axis] * n_components, indexing="ij"))
        points = points.reshape(n_components, -1)
        logs = np.array(np.meshgrid(*[np.log(weights)] * n_components, indexing="ij"))
        return Nodes(points, logs.reshape(n_components, -1).sum(axis=0) + _half_square(points))
    sobol = qmc.Sobol(n_components, scramble=True, rng=np.random.default_rng(0))
    half = ndtri(sobol.random(_HALF_SEQUENCE)).T
    points = np.ascontiguousarray(np.concatenate([half, -half], axis=1))
    density = 0.5 * n_components * math.log(2 * math.pi) - math.log(points.shape[1])
    return Nodes(points, density + _half_square(points))


def _half_square(points: NDArray) -> NDArray:
    return 0.5 * np.sum(points**2, axis=0)
