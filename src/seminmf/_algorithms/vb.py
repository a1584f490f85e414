"""Variational Bayes EM: the paper's Algorithm 2, with the bound of its appendix, corrected."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from .._data.executor import per_sample
from .._kernels.em.geometric import geometric_means
from ..special import inverse_digamma
from . import em
from .problem import Prior, Problem

# Samples whose posteriors are computed at a time.
_AT_ONCE = 1 << 16


class State(NamedTuple):
    """Posterior shapes α̂ of the activations (J, K) and of the atoms (2, K, I).

    The posterior rates are β̂ = 1 + β always.
    """

    activation_shape: NDArray
    atom_shape: NDArray


class Info(NamedTuple):
    """Bound at the state that the step started from."""

    objective: float


def start(problem: Problem, point: State) -> State:
    """The point itself: there is nothing to remember between iterations."""
    return point


def point(state: State) -> State:
    """The state itself."""
    return state


def step(problem: Problem, state: State) -> tuple[State, Info]:
    """One iteration: both factors' posteriors are updated from the same E-step."""
    atoms, atom_term = geometric_atoms(state.atom_shape, problem.prior.atom_shape)
    rows, sums = problem.over_samples(step_samples, (state.activation_shape,), atoms)
    u_atoms, *terms = sums
    atom_shape = problem.mass * atoms * u_atoms + problem.prior.atom_shape
    atom_shape[:, problem.frozen] = state.atom_shape[:, problem.frozen]
    following = State(rows[0], atom_shape.astype(state.atom_shape.dtype, copy=False))
    return following, Info(_bound(problem, atom_term, *terms))


@per_sample(rows=1, sums=3)
def step_samples(problem: Problem, shape: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    """New posterior shapes; U^atoms, and the terms of the bound at the old ones."""
    means, divergence = geometric(problem, shape)
    expected = problem.expectations(means, atoms)
    linear = float(problem.component_sums(means) @ atoms.sum(axis=(0, 2), dtype=np.float64))
    counts = expected.activations
    counts *= means
    counts *= counts.dtype.type(problem.mass)
    counts += problem.prior.activation_shape.astype(counts.dtype)
    return (counts,), (expected.atoms, expected.data_term + linear, divergence)


def project(problem: Problem, point: State) -> State:
    """The point, with no shape below the prior's, as after any step; frozen ones stay."""
    rows, _ = problem.over_samples(_project_samples, (point.activation_shape,))
    atom_shape = np.maximum(point.atom_shape, problem.prior.atom_shape)
    atom_shape[:, problem.frozen] = point.atom_shape[:, problem.frozen]
    return State(rows[0], atom_shape.astype(point.atom_shape.dtype, copy=False))


@per_sample(rows=1)
def _project_samples(problem: Problem, shape: NDArray) -> tuple[tuple, tuple]:
    return (np.maximum(shape, problem.prior.activation_shape.astype(shape.dtype)),), ()


def prior_state(problem: Problem) -> State:
    """The prior as the posterior to start from, as in the paper's first experiment."""
    rows, _ = problem.over_samples(_prior_samples, ())
    shape = (2, problem.n_components, problem.source.shape[1])
    atom_shape = np.broadcast_to(problem.prior.atom_shape, shape)
    return State(rows[0], atom_shape.astype(problem.source.dtype))


@per_sample(rows=1)
def _prior_samples(problem: Problem) -> tuple[tuple, tuple]:
    shape = (problem.source.shape[0], problem.n_components)
    alpha = np.broadcast_to(problem.prior.activation_shape, shape)
    return (alpha.astype(problem.source.dtype),), ()


def state_from(problem: Problem, point: em.State) -> State:
    """Posterior that would follow if `point` were the expected counts."""
    rows, (totals,) = problem.over_samples(_posterior_samples, (point.activations,))
    atom_shape = problem.prior.atom_shape + point.atoms * totals[:, None]
    return State(rows[0], atom_shape.astype(problem.source.dtype))


@per_sample(rows=1, sums=1)
def _posterior_samples(problem: Problem, activations: NDArray) -> tuple[tuple, tuple]:
    counts = problem.mass * activations.astype(np.float64)
    sums = problem.component_sums(counts)
    counts += problem.prior.activation_shape
    return (counts.astype(problem.source.dtype),), (sums,)


def shape_of(problem: Problem, activations: NDArray) -> NDArray:
    """Posterior shapes α̂ whose geometric means are `activations`, which are overwritten."""
    activations *= problem.mass * (1 + problem.prior.activation_rate)
    np.log(activations, out=activations)
    for start in range(0, len(activations), _AT_ONCE):
        block = activations[start : start + _AT_ONCE]
        block[:] = inverse_digamma(block)
    return activations


def evaluate(problem: Problem, state: State) -> float:
    """Normalised lower bound at a state."""
    atoms, atom_term = geometric_atoms(state.atom_shape, problem.prior.atom_shape)
    _, sums = problem.over_samples(_evaluate_samples, (state.activation_shape,), atoms)
    return _bound(problem, atom_term, *sums)


@per_sample(sums=2)
def _evaluate_samples(problem: Problem, shape: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    """The terms of the bound."""
    _, (_, *terms) = step_samples(problem, shape, atoms)
    return (), tuple(terms)


def geometric(problem: Problem, shape: NDArray) -> tuple[NDArray, float]:
    """ℓ, geometric means of the activations' posterior, in the problem's unit; and their part of
    the bound."""
    prior = problem.prior
    return geometric_means(
        problem.source,
        shape,
        prior.activation_shape,
        problem.mass * (1 + prior.activation_rate),
        problem.sample_weight,
        problem.pool,
    )


def geometric_atoms(shape: NDArray, prior_shape: NDArray) -> tuple[NDArray, float]:
    """h = exp(ψ(α̂) − ψ(Σα̂)) and the atoms' part of the bound (g_θ of the appendix)."""
    posterior = shape.astype(np.float64)
    total = posterior.sum(axis=(0, 2), keepdims=True)
    log_atoms = digamma(posterior) - digamma(total)
    atoms = np.exp(log_atoms)
    term = float(
        np.sum(gammaln(posterior) - (posterior - prior_shape) * log_atoms) - np.sum(gammaln(total))
    )
    return atoms.astype(shape.dtype, copy=False), term


def _bound(problem: Problem, atom_term: float, data_term: float, activation_term: float) -> float:
    """Normalised ELBO. The data term has the Σ ℓ̄ of the paper's g_Z, of every cell.

    The other two are minus the Kullback-Leibler divergence from prior to posterior, but for the
    terms that the data term brings.
    """
    return problem.mass * data_term + activation_term + atom_term + problem.prior_constant


def bound_of_batch(problem: Problem, shape: NDArray, total: float, objective: float) -> float:
    """What the bound of `total` samples would be, if all had the mean `objective` of a batch."""
    _, atom_term = geometric_atoms(shape, problem.prior.atom_shape)
    sizes = (1, problem.n_components, problem.source.shape[1])
    constant = prior_constant(problem.prior, sizes, np.array([total]))
    return total * objective + atom_term + constant


def prior_constant(prior: Prior, shape: tuple[int, int, int], sample_weight: NDArray) -> float:
    """The part of the bound that depends on the priors alone; `shape` is (J, K, I)."""
    n_samples, n_components, n_features = shape
    alpha, beta = prior.activation_shape, prior.activation_rate
    per_activation = alpha * np.log(beta / (1 + beta)) - gammaln(alpha)
    per_sample = np.broadcast_to(per_activation, (n_samples, n_components)).sum(axis=1)
    atoms = np.broadcast_to(prior.atom_shape, (2, n_components, n_features))
    dirichlet = gammaln(atoms.sum(axis=(0, 2))).sum() - gammaln(atoms).sum()
    return float(per_sample @ sample_weight + dirichlet)
