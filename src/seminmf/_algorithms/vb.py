"""Variational Bayes EM: the paper's Algorithm 2, with the bound of its appendix, corrected."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.executor import per_sample
from ..special import inverse_digamma
from . import em
from .loop import Info
from .problem import Problem, bound_constant

# Samples whose posteriors are computed at a time.
_AT_ONCE = 1 << 16


class Posteriors(NamedTuple):
    """Posterior shapes α̂ of the activations (J, K) and of the atoms (2, K, I).

    The posterior rates are β̂ = 1 + β always.
    """

    activation_shape: NDArray
    atom_shape: NDArray


def start(problem: Problem, point: Posteriors) -> Posteriors:
    """The point itself: there is nothing to remember between iterations."""
    return point


def point(state: Posteriors) -> Posteriors:
    """The state itself."""
    return state


def step(problem: Problem, state: Posteriors) -> tuple[Posteriors, Info]:
    """One iteration: both factors' posteriors are updated from the same E-step."""
    atoms, atom_term = problem.model.atoms.prior.geometric_means(state.atom_shape)
    rows, sums = problem.over_samples(step_samples, (state.activation_shape,), atoms)
    u_atoms, *terms = sums
    atom_shape = update_atoms(problem, state.atom_shape, problem.mass * atoms * u_atoms)
    return Posteriors(rows[0], atom_shape), Info(_bound(problem, atom_term, *terms))


@per_sample(rows=1, sums=3)
def step_samples(problem: Problem, shape: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    """New posterior shapes; U^atoms, and the terms of the bound at the old ones."""
    means, divergence = geometric_means(problem, shape)
    expected = problem.expectations(means, atoms)
    data_term = expected.data_term + _linear_term(problem, means, atoms)
    counts = expected.activations
    counts *= means
    counts *= counts.dtype.type(problem.mass)
    posterior = problem.model.activations.prior.posterior(counts)
    return (posterior,), (expected.atoms, data_term, divergence)


def update_atoms(problem: Problem, before: NDArray, counts: NDArray) -> NDArray:
    """Posterior shapes of the atoms from their counts; frozen components keep theirs."""
    factor = problem.model.atoms
    updated = factor.keep_frozen(factor.prior.posterior(counts), before)
    return updated.astype(before.dtype, copy=False)


def project(problem: Problem, point: Posteriors) -> Posteriors:
    """The point, with no shape below the prior's, as after any step; frozen ones stay."""
    rows, _ = problem.over_samples(_project_samples, (point.activation_shape,))
    factor = problem.model.atoms
    atom_shape = np.maximum(point.atom_shape, factor.prior.shape)
    factor.keep_frozen(atom_shape, point.atom_shape)
    return Posteriors(rows[0], atom_shape.astype(point.atom_shape.dtype, copy=False))


@per_sample(rows=1)
def _project_samples(problem: Problem, shape: NDArray) -> tuple[tuple, tuple]:
    prior = problem.model.activations.prior
    return (np.maximum(shape, prior.shape.astype(shape.dtype)),), ()


def prior_state(problem: Problem) -> Posteriors:
    """The prior as the posterior to start from, as in the paper's first experiment."""
    rows, _ = problem.over_samples(_prior_samples, ())
    shape = (2, problem.n_components, problem.data.shape[1])
    atom_shape = np.broadcast_to(problem.model.atoms.prior.shape, shape)
    return Posteriors(rows[0], atom_shape.astype(problem.dtype))


@per_sample(rows=1)
def _prior_samples(problem: Problem) -> tuple[tuple, tuple]:
    shape = (problem.data.shape[0], problem.n_components)
    alpha = np.broadcast_to(problem.model.activations.prior.shape, shape)
    return (alpha.astype(problem.dtype),), ()


def state_from(problem: Problem, point: em.Factors) -> Posteriors:
    """Posterior that would follow if `point` were the expected counts."""
    rows, (totals,) = problem.over_samples(_posterior_samples, (point.activations,))
    atom_shape = problem.model.atoms.prior.posterior(point.atoms * totals[:, None])
    return Posteriors(rows[0], atom_shape.astype(problem.dtype))


@per_sample(rows=1, sums=1)
def _posterior_samples(problem: Problem, activations: NDArray) -> tuple[tuple, tuple]:
    counts = problem.mass * activations.astype(np.float64)
    sums = problem.data.component_sums(counts)
    posterior = problem.model.activations.prior.posterior(counts)
    return (posterior.astype(problem.dtype),), (sums,)


def shape_of(problem: Problem, activations: NDArray) -> NDArray:
    """Posterior shapes α̂ whose geometric means are `activations`, which are overwritten."""
    activations *= problem.model.activations.prior.posterior_rate(problem.mass)
    np.log(activations, out=activations)
    for start in range(0, len(activations), _AT_ONCE):
        block = activations[start : start + _AT_ONCE]
        block[:] = inverse_digamma(block)
    return activations


def evaluate(problem: Problem, state: Posteriors) -> float:
    """Normalised lower bound at a state."""
    atoms, atom_term = problem.model.atoms.prior.geometric_means(state.atom_shape)
    _, sums = problem.over_samples(_evaluate_samples, (state.activation_shape,), atoms)
    return _bound(problem, atom_term, *sums)


@per_sample(sums=2)
def _evaluate_samples(problem: Problem, shape: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    """The terms of the bound."""
    means, divergence = geometric_means(problem, shape)
    expected = problem.expectations(means, atoms)
    return (), (expected.data_term + _linear_term(problem, means, atoms), divergence)


def _linear_term(problem: Problem, means: NDArray, atoms: NDArray) -> float:
    """Σ ℓ̄ over all cells, of the paper's g_Z."""
    totals = atoms.sum(axis=(0, 2), dtype=np.float64)
    return float(problem.data.component_sums(means) @ totals)


def geometric_means(problem: Problem, shape: NDArray) -> tuple[NDArray, float]:
    """ℓ, geometric means of the activations' posterior; and the posterior's part of the bound."""
    shape = np.ascontiguousarray(shape)
    means = np.empty_like(shape)
    prior, weights = problem.model.activations.prior, problem.data.weights

    def task(part: slice) -> float:
        own = prior.of_samples(part)
        return own.geometric_means(shape[part], weights[part], problem.mass, means[part])

    return means, sum(problem.map_samples(task))


def _bound(problem: Problem, atom_term: float, data_term: float, activation_term: float) -> float:
    """Normalised ELBO. The data term has the Σ ℓ̄ of the paper's g_Z, of every cell.

    The other two are minus the Kullback-Leibler divergence from prior to posterior, but for the
    terms that the data term brings.
    """
    return problem.mass * data_term + activation_term + atom_term + problem.bound_constant


def bound_of_batch(problem: Problem, shape: NDArray, total: float, objective: float) -> float:
    """What the bound of `total` samples would be, if all had the mean `objective` of a batch."""
    _, atom_term = problem.model.atoms.prior.geometric_means(shape)
    constant = bound_constant(problem.model, np.array([total]), problem.data.shape[1])
    return total * objective + atom_term + constant
