"""EM for the maximum a posteriori: the paper's Algorithm 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.executor import per_sample
from .._kernels.newton.sweep import NO_STEP, RowProblems, sweep
from .._model.penalties import Maximum
from .._model.priors import normalise
from .loop import Info
from .problem import Problem

# What is left of an objective is known as exactly as this share of it is large.
_MUCH_LEFT = 1e-5


class Factors(NamedTuple):
    """Activations (J, K), in the unit of computations, and atoms (2, K, I)."""

    activations: NDArray
    atoms: NDArray


def start(problem: Problem, point: Factors) -> Factors:
    """The point itself: there is nothing to remember between iterations."""
    return point


def point(state: Factors) -> Factors:
    """The state itself."""
    return state


def step(problem: Problem, state: Factors) -> tuple[Factors, Info]:
    """One iteration: the M-step of both factors, from the same E-step."""
    problem = problem.at(state.atoms)
    rows, sums = problem.over_samples(step_samples, (state.activations,), state.atoms)
    u_atoms, data_term, prior_term = sums
    info = Info(objective(problem, state.atoms, data_term, prior_term))
    return Factors(rows[0], update_atoms(problem, state.atoms, state.atoms * u_atoms)), info


@per_sample(rows=1, sums=3)
def step_samples(problem: Problem, activations: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    """New activations; U^atoms, data term and the activations' log-prior at the old ones."""
    expected = problem.expectations(activations, atoms)
    prior_term = _update_activations(problem, activations, expected.activations)
    return (expected.activations,), (expected.atoms, expected.data_term, prior_term)


def above_floor(problem: Problem, state: Factors) -> Factors:
    """The state, moved to where shapes below 1 allow it to be; frozen atoms stay."""
    activations, atoms = state
    if problem.model.activations.prior.floor > 0:
        (activations,), _ = problem.over_samples(_floor_samples, (activations,))
    floor = problem.model.atoms.prior.floor
    if floor > 0:
        atoms = _normalise_free(problem, atoms, floor)
    return Factors(activations, atoms)


@per_sample(rows=1)
def _floor_samples(problem: Problem, activations: NDArray) -> tuple[tuple, tuple]:
    return (np.maximum(activations, problem.model.activations.prior.floor),), ()


def project(problem: Problem, point: Factors) -> Factors:
    """The point, brought back to where the constraints hold; frozen atoms stay."""
    atoms = _normalise_free(problem, point.atoms, 0.0)
    return above_floor(problem, Factors(point.activations, atoms))


def _normalise_free(problem: Problem, atoms: NDArray, floor: float) -> NDArray:
    normalised = normalise(atoms.astype(np.float64), floor)
    return problem.model.atoms.keep_frozen(normalised, atoms).astype(atoms.dtype)


def evaluate(problem: Problem, state: Factors) -> float:
    """Objective f of the paper at a state."""
    problem = problem.at(state.atoms)
    _, sums = problem.over_samples(_evaluate_samples, (state.activations,), state.atoms)
    return objective(problem, state.atoms, *sums)


def data_term(problem: Problem, state: Factors) -> float:
    """Log-likelihood of the observed cells."""
    _, sums = problem.over_samples(_evaluate_samples, (state.activations,), state.atoms)
    return sums[0]


def known_data_term(problem: Problem, state: Factors, known: float) -> float:
    """The same at a state whose objective is known.

    It is what the priors leave of the objective. Data are looked at only where that is so little
    that it would be rounding.
    """
    problem = problem.at(state.atoms)
    _, (term,) = problem.over_samples(_activation_samples, (state.activations,))
    rest = objective(problem, state.atoms, 0.0, term)
    left = known - rest
    if abs(left) > _MUCH_LEFT * (abs(known) + abs(rest)):
        return left / problem.mass
    return data_term(problem, state)


@per_sample(sums=1)
def _activation_samples(problem: Problem, activations: NDArray) -> tuple[tuple, tuple]:
    return (), (_activation_term(problem, activations),)


@per_sample(sums=2)
def _evaluate_samples(problem: Problem, activations: NDArray, atoms: NDArray) -> tuple:
    """Data term and the activations' log-prior."""
    prior = problem.model.activations.prior
    stores = problem.data.source.stores_cells
    if problem.model.has_noise and prior.is_log_concave and not stores:
        value = _swept_data_term(problem, activations, atoms)
    else:
        value = problem.expectations(activations, atoms).data_term
    return (), (value, _activation_term(problem, activations))


def _swept_data_term(problem: Problem, activations: NDArray, atoms: NDArray) -> float:
    """The data term from a sweep without steps.

    A fit with noise makes sweeps in any case, but runs the E-step in EM alone: it need not be
    compiled for the value.
    """
    model, weights = problem.model, problem.data.weights
    found = sweep(
        problem.data.source,
        RowProblems(
            model.likelihood,
            Maximum(problem.mass),
            model.activations.prior,
            np.ascontiguousarray(atoms),
            weights,
            model.background,
        ),
        np.array(activations, order="C"),
        NO_STEP,
        problem.executor,
        gains=np.zeros(len(weights)),
    )
    return -float(found.features.sum())


def _update_activations(problem: Problem, activations: NDArray, expected: NDArray) -> float:
    """Put the new activations in the place of `expected`; return the old ones' log-prior."""
    activations = np.ascontiguousarray(activations)
    prior, weights = problem.model.activations.prior, problem.data.weights

    def task(part: slice) -> float:
        own = prior.of_samples(part)
        return own.m_step(activations[part], expected[part], weights[part], problem.mass)

    return problem.mass * sum(problem.map_samples(task)) + unit_term(problem)


def _activation_term(problem: Problem, activations: NDArray) -> float:
    """Log-prior of the activations, constants dropped."""
    activations = np.ascontiguousarray(activations)
    prior, weights = problem.model.activations.prior, problem.data.weights

    def task(part: slice) -> float:
        return prior.of_samples(part).log_prior(activations[part], weights[part], problem.mass)

    return problem.mass * sum(problem.map_samples(task)) + unit_term(problem)


def unit_term(problem: Problem) -> float:
    """What Σ (α − 1) ln λ lacks when λ is in the unit of computations and not in the prior's."""
    prior, weights = problem.model.activations.prior, problem.data.weights
    return prior.log_unit(problem.n_components, weights, problem.mass)


def update_atoms(problem: Problem, atoms: NDArray, counts: NDArray) -> NDArray:
    """M-step of the atoms from counts θU (float64); frozen components keep theirs."""
    factor, price = problem.model.atoms, problem.model.length_price
    if price is None:
        updated = factor.prior.m_step(atoms, counts, problem.mass)
    else:
        # The activations' M-step has given Σ_j λ_jk = Σ_si counts / (1 + rate).
        rate = problem.model.activations.prior.rate[0]
        rate_sum = rate / (1 + rate) * counts.sum(axis=(0, 2))
        updated = factor.prior.m_step(atoms, counts, problem.mass, price.ridge(rate_sum, atoms))
    return factor.keep_frozen(updated, atoms)


def objective(problem: Problem, atoms: NDArray, data_term: float, activation_term: float) -> float:
    """f: log-likelihood and log-priors, constants dropped (the paper's full objective)."""
    value = problem.mass * data_term + activation_term
    return value + problem.model.atoms.prior.log_density(atoms)
