"""EM for the maximum a posteriori: the paper's Algorithm 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .atoms import NOTHING, normalise
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


def step(problem: Problem, state: State) -> tuple[State, Info]:
    """One iteration: both factors are updated from the same E-step."""
    activations, atoms = state
    expected = problem.expectations(activations, atoms)
    info = Info(objective(problem, state, expected.data_term))
    new_activations = expected.activations
    new_activations *= activations
    new_atoms = update_atoms(problem, atoms, atoms * expected.atoms)
    return State(update_activations(problem, new_activations), new_atoms), info


def above_floor(problem: Problem, state: State) -> State:
    """The state, moved to where shapes below 1 allow it to be; frozen atoms stay."""
    activations, atoms = state
    if np.any(problem.prior.activation_shape < 1):
        activations = np.maximum(activations, ACTIVATION_FLOOR)
    if np.any(problem.prior.atom_shape < 1):
        lifted = normalise(atoms.astype(np.float64), ATOM_FLOOR)
        atoms = np.where(problem.frozen[:, None], atoms, lifted).astype(atoms.dtype)
    return State(activations, atoms)


def evaluate(problem: Problem, state: State) -> float:
    """Objective f of the paper at a state."""
    return objective(problem, state, problem.expectations(*state).data_term)


def update_activations(problem: Problem, counts: NDArray) -> NDArray:
    """M-step of the activations, in place: (λU + α − 1) / (1 + β), not below the floor."""
    shape, rate = problem.prior.activation_shape, problem.prior.activation_rate
    if np.any(shape != 1):
        counts += ((shape - 1) / problem.mass).astype(counts.dtype)
    counts /= (1 + rate).astype(counts.dtype)
    if np.any(shape < 1):
        np.maximum(counts, ACTIVATION_FLOOR, out=counts)
    return counts


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


def objective(problem: Problem, state: State, data_term: float) -> float:
    """f: log-likelihood and log-priors, constants dropped (the paper's full objective)."""
    prior, mass = problem.prior, problem.mass
    activations, atoms = state
    value = mass * data_term
    value -= mass * problem.weighted_sum(prior.activation_rate * activations)
    if np.any(prior.activation_shape != 1):
        value += problem.weighted_sum(_log_prior(prior.activation_shape, mass * activations))
    if np.any(prior.atom_shape != 1):
        value += float(np.sum(_log_prior(prior.atom_shape, atoms.astype(np.float64))))
    return value


def _log_prior(shape: NDArray, value: NDArray) -> NDArray:
    """(α − 1) ln value, with 0 ln 0 = 0."""
    with np.errstate(divide="ignore"):
        logarithm = np.log(value)
    return np.where(shape == 1, 0.0, (shape - 1) * np.where(shape == 1, 0.0, logarithm))
