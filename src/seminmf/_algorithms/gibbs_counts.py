"""Gibbs sampling of the model of integers: draws of everything, from the joint posterior.

All conditional distributions are exact (`_kernels.gibbs.counts`): counts behind the cells, gamma
distributed activations, atoms from Dirichlet distributions, and what is not given of the priors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .._data.source import Data, row_ranges
from .._kernels.gibbs.counts import draw_count_rows
from .._model.model import split_signed
from .gibbs import Schedule
from .loop import Info
from .prior_draws import DirichletShape, GammaPrior, drawn_gamma, slice_draw

# Share of the atoms at the start that is spread over all entries.
_SPREAD = 0.05
# Atoms are not smaller than this: logarithms of them are summed up.
_LEAST_ATOM = 1e-250


@dataclass(frozen=True)
class CountSampling:
    """The problem of a chain.

    Attributes
    ----------
    data : Data
        Integers, in memory, dense.
    frozen : (K,) boolean array
    prior : GammaPrior
        Of the activations.
    atom_shape : (2, K, I) array or None
        Of the atoms' prior; None if it is learned, the same for all.
    schedule : Schedule
    executor : LocalExecutor
    log_likelihood : callable
        Of activations and atoms.
    """

    data: Data
    frozen: NDArray
    prior: GammaPrior
    atom_shape: NDArray | None
    schedule: Schedule
    executor: Any
    log_likelihood: Any


class KeptCounts(NamedTuple):
    """Draws of what all samples share, S of each."""

    atoms: NDArray
    shape: NDArray
    rate: NDArray
    atom_shape: NDArray

    @classmethod
    def empty(cls, n_draws: int, n_components: int, n_features: int) -> KeptCounts:
        """Room for them."""
        return cls(
            np.zeros((n_draws, 2, n_components, n_features)),
            np.ones((n_draws, n_components)),
            np.ones((n_draws, n_components)),
            np.ones((n_draws, 1)),
        )


class CountChain(NamedTuple):
    """Where a chain is.

    Attributes
    ----------
    activations, atoms : (J, K) and (2, K, I) arrays
    shape, rate : (K,) arrays
    atom_shape : (1,) array
        That of all atoms, where it is learned.
    kept : KeptCounts
    age, seed : int
    """

    activations: NDArray
    atoms: NDArray
    shape: NDArray
    rate: NDArray
    atom_shape: NDArray
    kept: KeptCounts
    age: int
    seed: int


def first(problem: CountSampling, activations: NDArray, atoms: NDArray, seed: int) -> CountChain:
    """Where a chain starts, at factors that were found, but without what cancels.

    A mean field has far too much of it, and a chain takes long to forget it, but not to find it.
    """
    n_components, n_features = atoms.shape[1:]
    signed = split_signed(atoms[0] - atoms[1])
    sizes = signed.sum(axis=(0, 2))
    sizes = np.where(problem.frozen | ~(sizes > 0), 1.0, sizes)
    spread = signed / sizes[:, None] * (1 - _SPREAD) + _SPREAD / (2 * n_features)
    atoms = np.where(problem.frozen[:, None], atoms, spread)
    atoms = atoms / atoms.sum(axis=(0, 2), keepdims=True)
    activations = activations * sizes
    prior = problem.prior
    shape = np.ones(n_components) if prior.shape is None else prior.shape
    typical = np.maximum(activations.mean(axis=0), 1e-3 * prior.typical)
    return CountChain(
        np.maximum(activations, 1e-3 * prior.typical).astype(np.float64),
        atoms.astype(np.float64),
        shape,
        shape / typical if prior.rate is None else prior.rate,
        np.ones(1),
        KeptCounts.empty(problem.schedule.n_draws, n_components, n_features),
        0,
        seed,
    )


def start(problem: CountSampling, point: CountChain) -> CountChain:
    """The point itself."""
    return point


def point(state: CountChain) -> CountChain:
    """The state itself."""
    return state


def step(problem: CountSampling, state: CountChain) -> tuple[CountChain, Info]:
    """One sweep; the objective is the log-likelihood after it."""
    random = np.random.default_rng([state.seed, state.age])
    activations, counts, totals = _drawn_activations(problem, state, random)
    atoms = _drawn_atoms(problem, state, counts, random)
    n = problem.data.weights.sum()
    shape, rate = drawn_gamma(problem.prior, n, totals, state.shape, random)
    atom_shape = state.atom_shape
    if problem.atom_shape is None:
        atom_shape = np.array([_drawn_atom_shape(problem, atoms, float(atom_shape[0]), random)])
    state = state._replace(
        activations=activations, atoms=atoms, shape=shape, rate=rate, atom_shape=atom_shape
    )
    number = problem.schedule.number_after(state.age)
    if number is not None:
        for kept, drawn in zip(state.kept, (atoms, shape, rate, atom_shape), strict=True):
            kept[number] = drawn
    return state._replace(age=state.age + 1), Info(evaluate(problem, state))


def evaluate(problem: CountSampling, state: CountChain) -> float:
    """Log-likelihood of the data."""
    return problem.log_likelihood(state.activations, state.atoms)


def _drawn_activations(
    problem: CountSampling, state: CountChain, random: Generator
) -> tuple[NDArray, NDArray, NDArray]:
    """New activations of all samples, counts of the atoms, and sums for the activations' prior."""
    source, weights = problem.data.source, problem.data.weights
    n_components = len(state.shape)
    ranges = row_ranges(source, 16 * n_components)
    seeds = dict(zip(ranges, random.integers(2**32, size=len(ranges)), strict=True))
    activations = state.activations.copy()

    def task(rows: tuple[int, int]) -> tuple[NDArray, NDArray]:
        counts, totals = np.zeros(state.atoms.shape), np.zeros((2, n_components))
        for number, block in enumerate(source.blocks(*rows)):
            draw_count_rows(
                block.X,
                state.atoms,
                state.shape,
                state.rate,
                weights[block.samples],
                np.uint32((int(seeds[rows]) + number) % 2**32),
                activations[block.samples],
                counts,
                totals,
            )
        return counts, totals

    counts, totals = np.zeros(state.atoms.shape), np.zeros((2, n_components))
    for own_counts, own_totals in problem.executor.map(task, ranges):
        counts += own_counts
        totals += own_totals
    return activations, counts, totals


def _drawn_atoms(
    problem: CountSampling, state: CountChain, counts: NDArray, random: Generator
) -> NDArray:
    """New atoms, but for those that are frozen."""
    prior = state.atom_shape[0] if problem.atom_shape is None else problem.atom_shape
    drawn = np.maximum(random.standard_gamma(prior + counts), _LEAST_ATOM)
    drawn /= drawn.sum(axis=(0, 2), keepdims=True)
    return np.where(problem.frozen[:, None], state.atoms, np.maximum(drawn, _LEAST_ATOM))


def _drawn_atom_shape(
    problem: CountSampling, atoms: NDArray, shape: float, random: Generator
) -> float:
    """The shape of the prior of all atoms that are not frozen."""
    free = atoms[:, ~problem.frozen]
    if not free.size:
        return shape
    density = DirichletShape(free.shape[1], 2 * free.shape[2], float(np.log(free).sum()))
    return slice_draw(density.at, shape, random)
