"""The evidence of the samples at some atoms and some prior of the activations, and its slope."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from .._algorithms.problem import Problem
from .._data.dense import DenseSource
from .._kernels.evidence.quadrature import Marginal, Nodes, integrate
from .activation_prior import ActivationPrior
from .gaussian_potential import Belief

_SMALLEST_ATOM = 1e-12


class Point(NamedTuple):
    """Atoms (2, K, I) and the activations' prior, and what the samples say there."""

    atoms: NDArray
    activation_prior: ActivationPrior
    marginal: Marginal
    objective: float


class Task(NamedTuple):
    """The problem with the samples of a stage, and what is believed and sought.

    Attributes
    ----------
    problem : Problem
    unit : float
        Unit of the prior.
    nodes : Nodes
    belief : Belief or None
        What earlier matrices say of the activations' prior; None to leave it as it is.
    """

    problem: Problem
    unit: float
    nodes: Nodes
    belief: Belief | None


def evaluate(task: Task, atoms: NDArray, own: ActivationPrior, modes: NDArray) -> Point:
    """The point at these atoms, brought back to sums of 1, and this prior."""
    problem = task.problem
    atoms = np.maximum(atoms / atoms.sum(axis=(0, 2), keepdims=True), _SMALLEST_ATOM)
    marginal = integrate(
        problem.source,
        task.unit,
        atoms,
        own.shape,
        own.rate,
        problem.sample_weight,
        modes,
        task.nodes,
        own.scores,
        problem.pool,
    )
    objective = marginal.evidence + float(np.sum(problem.prior.atom_shape * np.log(atoms)))
    objective += prior_constants(problem, own)
    if task.belief is not None:
        objective += task.belief.log_density(own.logs)
    return Point(atoms, own, marginal, objective)


def derivatives(task: Task, here: Point) -> tuple[NDArray, NDArray]:
    """Slope by ln θ, ln α and ln β, and a positive matrix for minus the second derivatives."""
    slope, curvature = own_derivatives(task.problem, here)
    if task.belief is not None:
        size = here.atoms.size
        slope[size:] += task.belief.slope(here.activation_prior.logs)
        curvature[size:, size:] += task.belief.precision
    return slope, curvature


def own_derivatives(problem: Problem, here: Point) -> tuple[NDArray, NDArray]:
    """The same without what is believed.

    In ln θ the Dirichlet prior is Σ α ln θ, with the slope α − θ Σα.
    """
    shape = np.broadcast_to(problem.prior.atom_shape, here.atoms.shape)
    slope = here.marginal.slopes.copy()
    weight = float(problem.sample_weight.sum())
    curvature = here.marginal.information - np.outer(slope, slope) / weight
    size = here.atoms.size
    slope[:size] += (shape - here.atoms * shape.sum(axis=(0, 2), keepdims=True)).ravel()
    curvature[np.arange(size), np.arange(size)] += shape.ravel()
    return slope, curvature


def free_parameters(task: Task, here: Point) -> NDArray:
    """Which parameters are sought."""
    frozen = np.broadcast_to(task.problem.frozen[:, None], here.atoms.shape).ravel()
    n_others = len(here.marginal.slopes) - here.atoms.size
    return np.concatenate([~frozen, np.full(n_others, task.belief is not None)])


def some_samples(problem: Problem, n_samples: int) -> tuple[Problem, NDArray]:
    """The problem with so many samples, evenly spaced, that stand for all; and which they are."""
    total = problem.source.shape[0]
    if not 0 < n_samples < total:
        return problem, np.arange(total)
    rows = np.arange(n_samples) * total // n_samples
    weight = problem.sample_weight[rows] * (total / n_samples)
    source = DenseSource(problem.source.take(rows))
    shape, rate = (
        part[rows] if len(part) == total else part
        for part in (problem.prior.activation_shape, problem.prior.activation_rate)
    )
    prior = problem.prior._replace(activation_shape=shape, activation_rate=rate)
    return problem._replace(source=source, sample_weight=weight, prior=prior), rows


def prior_constants(problem: Problem, own: ActivationPrior) -> float:
    """What normalises the activations' prior."""
    per_cell = own.shape * np.log(own.rate) - gammaln(own.shape)
    shape = (problem.source.shape[0], problem.n_components)
    return float(problem.sample_weight @ np.broadcast_to(per_cell, shape).sum(axis=1))
