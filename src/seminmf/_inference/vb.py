"""Variational Bayes EM: the paper's Algorithm 2, with the bound of its appendix, corrected."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from .._passes.geometric import geometric_means
from ..special import inverse_digamma
from . import em
from .problem import Prior, Problem


class State(NamedTuple):
    """Posterior shapes α̂ of the activations (J, K) and of the atoms (2, K, I).

    The posterior rates are β̂ = 1 + β always.
    """

    activation_shape: NDArray
    atom_shape: NDArray


class Info(NamedTuple):
    """Bound at the state that the step started from."""

    objective: float


class Means(NamedTuple):
    """Geometric means ℓ and h that stand for λ and θ in the E-step, and their share of the bound.

    ℓ is in the problem's unit. `divergence` is minus the Kullback-Leibler divergence from prior to
    posterior, but for the terms that the data term brings.
    """

    activations: NDArray
    atoms: NDArray
    divergence: float


def start(problem: Problem, point: State) -> State:
    """The point itself: there is nothing to remember between iterations."""
    return point


def point(state: State) -> State:
    """The state itself."""
    return state


def step(problem: Problem, state: State) -> tuple[State, Info]:
    """One iteration: both factors' posteriors are updated from the same E-step."""
    means = geometric(problem, state)
    expected = problem.expectations(means.activations, means.atoms)
    info = Info(bound(problem, means, expected.data_term))
    counts = expected.activations
    counts *= means.activations
    counts *= counts.dtype.type(problem.mass)
    counts += problem.prior.activation_shape.astype(counts.dtype)
    atom_shape = problem.mass * means.atoms * expected.atoms + problem.prior.atom_shape
    atom_shape[:, problem.frozen] = state.atom_shape[:, problem.frozen]
    return State(counts, atom_shape.astype(state.atom_shape.dtype, copy=False)), info


def project(problem: Problem, point: State) -> State:
    """The point, with no shape below the prior's, as after any step; frozen ones stay."""
    prior = problem.prior
    activation_shape = np.maximum(point.activation_shape, prior.activation_shape)
    atom_shape = np.maximum(point.atom_shape, prior.atom_shape)
    atom_shape[:, problem.frozen] = point.atom_shape[:, problem.frozen]
    return State(
        activation_shape.astype(point.activation_shape.dtype, copy=False),
        atom_shape.astype(point.atom_shape.dtype, copy=False),
    )


def multiplicity(problem: Problem) -> State:
    """How often each number of a point counts: activations as often as their sample."""
    return State(problem.sample_weight[:, None], np.ones((1, 1, 1)))


def prior_state(problem: Problem) -> State:
    """The prior as the posterior to start from, as in the paper's first experiment."""
    n_samples, n_features = problem.source.shape
    dtype = problem.source.dtype
    shape, _, atom_shape = problem.prior
    return State(
        np.broadcast_to(shape, (n_samples, problem.n_components)).astype(dtype),
        np.broadcast_to(atom_shape, (2, problem.n_components, n_features)).astype(dtype),
    )


def state_from(problem: Problem, point: em.State) -> State:
    """Posterior that would follow if `point` were the expected counts."""
    activations = problem.mass * point.activations.astype(np.float64)
    totals = problem.sample_weight @ activations
    dtype = problem.source.dtype
    return State(
        (problem.prior.activation_shape + activations).astype(dtype),
        (problem.prior.atom_shape + point.atoms * totals[:, None]).astype(dtype),
    )


def shape_of(problem: Problem, activations: NDArray) -> NDArray:
    """Posterior shapes α̂ whose geometric means are `activations`."""
    rate = problem.mass * (1 + problem.prior.activation_rate)
    return inverse_digamma(np.log(rate * activations))


def evaluate(problem: Problem, state: State) -> float:
    """Normalised lower bound at a state."""
    means = geometric(problem, state)
    return bound(problem, means, problem.expectations(means.activations, means.atoms).data_term)


def geometric(problem: Problem, state: State) -> Means:
    """Geometric means of the posterior, and its divergence from the prior."""
    prior = problem.prior
    activations, activation_term = geometric_means(
        problem.source,
        state.activation_shape,
        prior.activation_shape,
        problem.mass * (1 + prior.activation_rate),
        problem.sample_weight,
        problem.pool,
    )
    atoms, atom_term = geometric_atoms(state.atom_shape, prior.atom_shape)
    divergence = activation_term + atom_term + problem.prior_constant
    return Means(activations, atoms, divergence)


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


def bound(problem: Problem, means: Means, data_term: float) -> float:
    """Normalised ELBO. The data term lacks the Σ ℓ̄ that the paper's g_Z has in every cell."""
    atom_totals = means.atoms.sum(axis=(0, 2), dtype=np.float64)
    # Not BLAS, whose sums depend on its number of threads.
    totals = np.einsum("j,jk->k", problem.sample_weight, means.activations)
    linear = float(totals @ atom_totals)
    return problem.mass * (data_term + linear) + means.divergence


def prior_constant(prior: Prior, shape: tuple[int, int, int], sample_weight: NDArray) -> float:
    """The part of the bound that depends on the priors alone; `shape` is (J, K, I)."""
    n_samples, n_components, n_features = shape
    alpha, beta = prior.activation_shape, prior.activation_rate
    per_activation = alpha * np.log(beta / (1 + beta)) - gammaln(alpha)
    per_sample = np.broadcast_to(per_activation, (n_samples, n_components)).sum(axis=1)
    atoms = np.broadcast_to(prior.atom_shape, (2, n_components, n_features))
    dirichlet = gammaln(atoms.sum(axis=(0, 2))).sum() - gammaln(atoms).sum()
    return float(per_sample @ sample_weight + dirichlet)
