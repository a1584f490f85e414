"""What is known at the atoms that maximise the evidence: Laplace's method around them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from .._kernels.evidence.log_means import log_mass_beyond_normal
from .._model.model import Priors
from .atom_history import AtomRecord
from .gaussian_potential import GaussianPotential
from .marginal import (
    Point,
    Task,
    derivatives,
    evaluate,
    free_parameters,
    own_derivatives,
    prior_constants,
    some_samples,
)
from .nodes import standard_nodes
from .prior_statistics import Expectations

# The change of ln α or ln β over which the volume is compared, the samples that are looked at for
# it, and the points on each axis.
_CHANGE, _SOME_SAMPLES, _ORDER = 0.05, 1000, 5
# The best ln α, ln β or ln θ is taken to be no farther away than this.
_FARTHEST = 0.5
# Curvature below this share of the slope says nothing.
_FLAT = 0.1


class Found(NamedTuple):
    """Atoms and activations' prior that maximise the evidence, and expectations there.

    Attributes
    ----------
    atoms : (2, K, I) array
    atom_shape : (2, K, I) array
        A Dirichlet posterior with that mean, and about the variances of ln θ.
    prior : Priors
    expected : Expectations
    own : GaussianPotential
        What this matrix alone says of the activations' prior.
    objectives : list of float
        Evidence at the atoms, their log-prior and what was believed before, but for constants, in
        the last stage.
    evidence : float
        Logarithm of the evidence of the matrix, with the atoms integrated out by Laplace's method.
    """

    atoms: NDArray
    atom_shape: NDArray
    prior: Priors
    expected: Expectations
    own: GaussianPotential
    objectives: list[float]
    evidence: float


def found_at(task: Task, here: Point, objectives: list[float]) -> Found:
    """What is known at the end."""
    problem, own = task.problem, here.activation_prior
    size = here.atoms.size
    slope, curvature = own_derivatives(problem, here)
    # The atoms follow the prior: what is left of slope and curvature when they are at their best.
    by_atoms = np.linalg.solve(curvature[:size, :size], curvature[:size, size:]).T
    information = curvature[size:, size:] - by_atoms @ curvature[:size, size:]
    slope = slope[size:] - by_atoms @ slope[:size] + _volume_slope(task, here, by_atoms)
    # Samples that are all alike have a slope, and no curvature: then as much as leads there.
    entries = np.diag_indices_from(information)
    flat = information[entries] < _FLAT * np.abs(slope) + np.finfo(float).tiny
    information[entries] += np.where(flat, np.abs(slope) / _FARTHEST + _FLAT, 0.0)
    # Further away the curvature is another one.
    distance = np.abs(np.linalg.solve(information, slope)).max(initial=0.0)
    slope /= max(1.0, distance / _FARTHEST)
    precisions = _precisions(task, here)
    shape = np.array(np.broadcast_to(problem.model.atoms.prior.shape, here.atoms.shape))
    atoms = _best_atoms(task, here)
    record = AtomRecord(np.log(atoms), np.maximum(precisions - shape, 0.0), shape)
    return Found(
        atoms,
        atoms * precisions.sum(axis=(0, 2), keepdims=True),
        problem.model.priors._replace(activations=own.prior),
        _expectations(here, precisions, record),
        GaussianPotential.around(own.logs, slope, information),
        objectives,
        _total_evidence(task, here),
    )


def _best_atoms(task: Task, here: Point) -> NDArray:
    """The atoms one Newton step further, which is short and needs no look at the samples."""
    slope, curvature = derivatives(task, here)
    free = free_parameters(task, here)
    step = np.zeros(len(slope))
    step[free] = np.linalg.solve(curvature[np.ix_(free, free)], slope[free])
    change = np.clip(step[: here.atoms.size], -_FARTHEST, _FARTHEST).reshape(here.atoms.shape)
    atoms = here.atoms * np.exp(change)
    return atoms / atoms.sum(axis=(0, 2), keepdims=True)


def _expectations(here: Point, precisions: NDArray, record: AtomRecord) -> Expectations:
    """Posterior means of λ and ln λ, in the unit of the prior, and of ln θ.

    That of ln θ is below the logarithm of θ as for a gamma variable of that precision.
    """
    log_atoms = record.log_best + digamma(precisions) - np.log(precisions)
    return Expectations(here.marginal.activations, here.marginal.log_activations, log_atoms, record)


def _precisions(task: Task, here: Point) -> NDArray:
    """Of ln θ after normalisation: 1 / variance, with what is believed of the prior."""
    _, curvature = derivatives(task, here)
    free = free_parameters(task, here)
    covariance = np.zeros_like(curvature)
    covariance[np.ix_(free, free)] = np.linalg.inv(curvature[np.ix_(free, free)])
    size = here.atoms.size
    components = np.broadcast_to(np.arange(here.atoms.shape[1])[:, None], here.atoms.shape)
    same = components.ravel()[:, None] == components.ravel()
    project = np.eye(size) - same * here.atoms.ravel()
    variances = np.sum((project @ covariance[:size, :size]) * project, axis=1)
    return 1 / np.maximum(variances, 1e-12).reshape(here.atoms.shape)


def _log_volume(task: Task, here: Point) -> float:
    """Logarithm of how many atoms are about as good: Laplace's method, and what it misses.

    It misses much for small shapes, whose ln θ is not normal.
    """
    size = here.atoms.size
    _, curvature = own_derivatives(task.problem, here)
    _, log_det = np.linalg.slogdet(curvature[:size, :size])
    shape = np.array(
        np.broadcast_to(task.problem.model.atoms.prior.shape, here.atoms.shape)
    ).ravel()
    # The prior of the activations is given here, whatever is believed.
    information = np.maximum(_precisions(task._replace(potential=None), here).ravel() - shape, 0.0)
    beyond = log_mass_beyond_normal(shape, information)
    return 0.5 * (size * math.log(2 * math.pi) - log_det) + beyond


def _volume_slope(task: Task, here: Point, by_atoms: NDArray) -> NDArray:
    """Derivatives of the volume by η, to which the atoms respond.

    Where the data say little, atoms near 0 leave more room, and that decides on the mean of the
    activations. Some samples are enough to see it.
    """
    part, rows = some_samples(task.problem, _SOME_SAMPLES)
    task = task._replace(problem=part, nodes=standard_nodes(part.n_components, _ORDER))
    own, modes = here.activation_prior.of_samples(rows), here.marginal.modes[rows]
    slopes = np.zeros(len(own.logs))
    for p, response in enumerate(-by_atoms):
        for change in (-_CHANGE, _CHANGE):
            moved = np.clip(change * response, -1, 1)
            atoms = here.atoms * np.exp(moved.reshape(here.atoms.shape))
            logs = own.logs + change * np.eye(len(slopes))[p]
            there = evaluate(task, atoms, own.at(logs), modes)
            slopes[p] += _log_volume(task, there) / (2 * change)
    return slopes


def _total_evidence(task: Task, here: Point) -> float:
    """Evidence without the atoms.

    A Dirichlet variable is one of independent gamma variables that is divided by its sum. In their
    logarithms, of which Σα = a is the best sum, the density is Σ α ln(aθ) − a − Σ lnΓ(α).
    """
    shape = np.broadcast_to(task.problem.model.atoms.prior.shape, here.atoms.shape)
    totals = shape.sum(axis=(0, 2), keepdims=True)
    density = np.sum(shape * np.log(totals * here.atoms) - gammaln(shape)) - totals.sum()
    constants = prior_constants(task.problem, here.activation_prior)
    return float(here.marginal.evidence + constants + density + _log_volume(task, here))
