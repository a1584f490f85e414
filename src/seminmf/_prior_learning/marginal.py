"""The evidence of the samples at some atoms and some prior of the activations, and its slope."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._algorithms.problem import Problem
from .._kernels.evidence.quadrature import Marginal, Nodes, integrate
from .activation_prior import ActivationPrior
from .gaussian_potential import GaussianPotential

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
    potential : GaussianPotential or None
        What earlier matrices say of the activations' prior; None to leave it as it is.
    """

    problem: Problem
    unit: float
    nodes: Nodes
    potential: GaussianPotential | None


def evaluate(task: Task, atoms: NDArray, own: ActivationPrior, modes: NDArray) -> Point:
    """The point at these atoms, brought back to sums of 1, and this prior."""
    problem = task.problem
    atoms = np.maximum(atoms / atoms.sum(axis=(0, 2), keepdims=True), _SMALLEST_ATOM)
    marginal = integrate(
        problem.data.source,
        task.unit,
        atoms,
        *own.prior,
        problem.data.weights,
        modes,
        task.nodes,
        own.scores,
        problem.executor,
    )
    objective = marginal.evidence + float(np.sum(problem.model.atoms.prior.shape * np.log(atoms)))
    objective += prior_constants(problem, own)
    if task.potential is not None:
        objective += task.potential.log_density(own.logs)
    return Point(atoms, own, marginal, objective)


def derivatives(task: Task, here: Point) -> tuple[NDArray, NDArray]:
    """Slope by ln θ, ln α and ln β, and a positive matrix for minus the second derivatives."""
    slope, curvature = own_derivatives(task.problem, here)
    if task.potential is not None:
        size = here.atoms.size
        slope[size:] += task.potential.slope(here.activation_prior.logs)
        curvature[size:, size:] += task.potential.precision
    return slope, curvature


def own_derivatives(problem: Problem, here: Point) -> tuple[NDArray, NDArray]:
    """The same without what is believed.

    In ln θ the Dirichlet prior is Σ α ln θ, with the slope α − θ Σα.
    """
    shape = np.broadcast_to(problem.model.atoms.prior.shape, here.atoms.shape)
    slope = here.marginal.slopes.copy()
    weight = float(problem.data.weights.sum())
    curvature = here.marginal.information - np.outer(slope, slope) / weight
    size = here.atoms.size
    slope[:size] += (shape - here.atoms * shape.sum(axis=(0, 2), keepdims=True)).ravel()
    curvature[np.arange(size), np.arange(size)] += shape.ravel()
    return slope, curvature


def free_parameters(task: Task, here: Point) -> NDArray:
    """Which parameters are sought."""
    frozen = np.broadcast_to(task.problem.model.atoms.frozen[:, None], here.atoms.shape).ravel()
    n_others = len(here.marginal.slopes) - here.atoms.size
    return np.concatenate([~frozen, np.full(n_others, task.potential is not None)])


def some_samples(problem: Problem, n_samples: int) -> tuple[Problem, NDArray]:
    """The problem with so many samples, evenly spaced, that stand for all; and which they are."""
    total = problem.data.shape[0]
    if not 0 < n_samples < total:
        return problem, np.arange(total)
    rows = np.arange(n_samples) * total // n_samples
    part = problem.of_samples(rows)
    weights = part.data.weights * (total / n_samples)
    return replace(part, data=part.data._replace(weights=weights)), rows


def prior_constants(problem: Problem, own: ActivationPrior) -> float:
    """What normalises the activations' prior."""
    shape = (problem.data.shape[0], problem.n_components)
    per_sample = np.broadcast_to(own.prior.log_normaliser(), shape).sum(axis=1)
    return float(problem.data.weights @ per_sample)
