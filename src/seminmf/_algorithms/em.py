"""EM for the maximum a posteriori: the paper's Algorithm 1."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.executor import per_sample
from .._kernels.em.mstep import update_activations
from .._model.factors import NOTHING, normalise
from .problem import Problem

# Where a shape is below 1 its density has no maximum: parameters are then kept above these
# floors, atoms against their sum of 1, activations against the unit of the data.
ATOM_FLOOR = 1e-12
ACTIVATION_FLOOR = 1e-12


class State(NamedTuple):
    """Activations (J, K), in the problem's unit, and atoms (2, K, I)."""

    activations: NDArray
    atoms: NDArray


class Info(NamedTuple):
    """Objective at the state that the step started from."""

    objective: float


def start(problem: Problem, point: State) -> State:
    """The point itself: there is nothing to remember between iterations."""
    return point


def point(state: State) -> State:
    """The state itself."""
    return state


def step(problem: Problem, state: State) -> tuple[State, Info]:
    """One iteration: both factors are updated from the same E-step."""
    rows, sums = problem.over_samples(step_samples, (state.activations,), state.atoms)
    u_atoms, data_term, prior_term = sums
    info = Info(objective(problem, state.atoms, data_term, prior_term))
    atoms = update_atoms(problem, state.atoms, state.atoms * u_atoms)
    return State(rows[0], atoms), info


@per_sample(rows=1, sums=3)
def step_samples(problem: Problem, activations: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    """New activations; U^atoms, data term and the activations' log-prior at the old ones."""
    expected = problem.expectations(activations, atoms)
    prior_term = _update_activations(problem, activations, expected.activations)
    return (expected.activations,), (expected.atoms, expected.data_term, prior_term)


def above_floor(problem: Problem, state: State) -> State:
    """The state, moved to where shapes below 1 allow it to be; frozen atoms stay."""
    activations, atoms = state
    if np.any(problem.prior.activation_shape < 1):
        (activations,), _ = problem.over_samples(_floor_samples, (activations,))
    if np.any(problem.prior.atom_shape < 1):
        atoms = _normalise_free(problem, atoms, ATOM_FLOOR)
    return State(activations, atoms)


@per_sample(rows=1)
def _floor_samples(problem: Problem, activations: NDArray) -> tuple[tuple, tuple]:
    return (np.maximum(activations, ACTIVATION_FLOOR),), ()


def project(problem: Problem, point: State) -> State:
    """The point, brought back to where the constraints hold; frozen atoms stay."""
    atoms = _normalise_free(problem, point.atoms, 0.0)
    return above_floor(problem, State(point.activations, atoms))


def _normalise_free(problem: Problem, atoms: NDArray, floor: float) -> NDArray:
    normalised = normalise(atoms.astype(np.float64), floor)
    return np.where(problem.frozen[:, None], atoms, normalised).astype(atoms.dtype)


def evaluate(problem: Problem, state: State) -> float:
    """Objective f of the paper at a state."""
    _, sums = problem.over_samples(_evaluate_samples, (state.activations,), state.atoms)
    return objective(problem, state.atoms, *sums)


def data_term(problem: Problem, state: State) -> float:
    """Log-likelihood of the observed cells."""
    _, sums = problem.over_samples(_evaluate_samples, (state.activations,), state.atoms)
    return sums[0]


@per_sample(sums=2)
def _evaluate_samples(problem: Problem, activations: NDArray, atoms: NDArray) -> tuple:
    """Data term and the activations' log-prior."""
    _, (_, *terms) = step_samples(problem, activations, atoms)
    return (), tuple(terms)


def _update_activations(problem: Problem, activations: NDArray, expected: NDArray) -> float:
    """Put the new activations in the place of `expected`; return the old ones' log-prior."""
    shape, rate, _ = problem.prior
    floor = ACTIVATION_FLOOR if np.any(shape < 1) else 0.0
    term = problem.mass * update_activations(
        problem.source,
        activations,
        expected,
        (shape - 1) / problem.mass,
        rate,
        floor,
        problem.sample_weight,
        problem.pool,
    )
    return term + unit_term(problem)


def unit_term(problem: Problem) -> float:
    """What Σ(α − 1) ln λ lacks when λ is in the problem's unit and not in the prior's."""
    shape = problem.prior.activation_shape
    if np.all(shape == 1):
        return 0.0
    excess = np.broadcast_to(shape - 1, (problem.source.shape[0], problem.n_components))
    return problem.weighted_sum(excess) * math.log(problem.mass)


def update_atoms(problem: Problem, atoms: NDArray, counts: NDArray) -> NDArray:
    """M-step of the atoms: θU + α − 1 (float64), normalised; frozen components keep theirs."""
    shape = problem.prior.atom_shape
    counts = counts + (shape - 1) / problem.mass
    floor = ATOM_FLOOR if np.any(shape < 1) else 0.0
    updated = normalise(counts, floor)
    # A component without any activation tells nothing about its atoms.
    kept = problem.frozen | ~(np.sum(np.maximum(counts, 0), axis=(0, 2)) > NOTHING)
    updated[:, kept] = atoms[:, kept]
    return updated.astype(atoms.dtype, copy=False)


def objective(problem: Problem, atoms: NDArray, data_term: float, activation_term: float) -> float:
    """f: log-likelihood and log-priors, constants dropped (the paper's full objective)."""
    value = problem.mass * data_term + activation_term
    shape = problem.prior.atom_shape
    if np.any(shape != 1):
        with np.errstate(divide="ignore"):
            logarithm = np.log(atoms.astype(np.float64))
        value += float(np.sum((shape - 1) * np.where(shape == 1, 0.0, logarithm)))
    return value
