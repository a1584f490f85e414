"""The activations that belong to given atoms, to precision, for one row as for a million."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.executor import per_sample
from .._kernels.em.rows import solve_by_em
from .._kernels.newton.sweep import PRECISE, Effort, sweep
from .._model.likelihoods import Integer
from .._model.penalties import Maximum, Posterior
from . import em, vb
from .em import ACTIVATION_FLOOR
from .problem import Problem, shares


class Solution(NamedTuple):
    """What is known of the rows at their solution.

    Attributes
    ----------
    activations : (J, K) array, float64
    values : (J,) array
        Value of each row's problem; 0 after EM.
    slopes, grams : arrays
        What the atoms need (`newton.Sweep`); empty, if it was not asked for.
    """

    activations: NDArray
    values: NDArray
    slopes: NDArray = np.empty(0)
    grams: NDArray = np.empty(0)


# How much better, relatively, another stationary point must be to be preferred.
_BETTER = 1e-9


def solve_maximum(problem: Problem, atoms: NDArray) -> NDArray:
    """Activations that are most probable, given the atoms."""
    (activations,), _ = problem.over_samples(_solve_maximum, (), atoms)
    return activations


def refine_maximum(problem: Problem, point: em.State) -> em.State:
    """The point with the activations that belong to its atoms, in the type of the data."""
    (solved,), _ = problem.over_samples(_refine_maximum, (point.activations,), point.atoms)
    return em.State(problem.place.kept(solved), point.atoms)


def solve_posterior(problem: Problem, atom_shape: NDArray) -> NDArray:
    """Posterior shapes of the activations, given those of the atoms."""
    atoms, _ = vb.geometric_atoms(atom_shape, problem.prior.atom_shape)
    (shape,), _ = problem.over_samples(_solve_posterior, (), atoms)
    return shape


def refine_posterior(problem: Problem, point: vb.State) -> vb.State:
    """The point with the activations' posterior that belongs to its atoms', in the data's type."""
    atoms, _ = vb.geometric_atoms(point.atom_shape, problem.prior.atom_shape)
    (shape,), _ = problem.over_samples(_refine_posterior, (point.activation_shape,), atoms)
    return vb.State(problem.place.kept(shape), point.atom_shape)


@per_sample(rows=1)
def _solve_maximum(problem: Problem, atoms: NDArray) -> tuple[tuple, tuple]:
    return (solve(problem, Maximum(problem.mass), atoms).activations,), ()


@per_sample(rows=1)
def _refine_maximum(problem: Problem, activations: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    solved = refine(problem, Maximum(problem.mass), atoms, activations)
    return (solved.astype(problem.source.dtype),), ()


@per_sample(rows=1)
def _solve_posterior(problem: Problem, atoms: NDArray) -> tuple[tuple, tuple]:
    solution = solve(problem, Posterior(problem.mass), atoms)
    return (vb.shape_of(problem, solution.activations),), ()


@per_sample(rows=1)
def _refine_posterior(problem: Problem, shape: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    means, _ = vb.geometric(problem, shape)
    solved = refine(problem, Posterior(problem.mass), atoms, means)
    return (vb.shape_of(problem, solved).astype(problem.source.dtype),), ()


def solve(
    problem: Problem,
    kind: Maximum | Posterior,
    atoms: NDArray,
    effort: Effort = PRECISE,
    collect: bool = False,
) -> Solution:
    """Solve every row from a start that only the row decides."""
    return _solve_from(problem, kind, atoms, own_start(problem, kind), effort, collect)


def refine(
    problem: Problem, kind: Maximum | Posterior, atoms: NDArray, activations: NDArray
) -> NDArray:
    """What `solve` returns, unless a row's problem is not convex and `activations` lead further."""
    solution = solve(problem, kind, atoms)
    if is_convex(problem):
        return solution.activations
    other = _solve_from(problem, kind, atoms, activations)
    better = other.values < solution.values - _BETTER * np.abs(solution.values)
    solution.activations[better] = other.activations[better]
    return solution.activations


def is_convex(problem: Problem) -> bool:
    """Whether each row has one optimal value: D is convex, and so are penalties of shapes ≥ 1."""
    real = not isinstance(problem.likelihood, Integer)
    return real and bool(np.all(problem.prior.activation_shape >= 1))


def own_start(problem: Problem, kind: Maximum | Posterior) -> NDArray:
    """Each row's Σ|x|, divided among the components, plus the prior's part."""
    share = shares(problem)
    shape, rate, _ = problem.prior
    excess = shape - 1 if isinstance(kind, Maximum) else shape
    start = (share[:, None] + np.maximum(excess, 0) / problem.mass) / (1 + rate)
    return np.broadcast_to(start, (len(share), problem.n_components))


def _solve_from(
    problem: Problem,
    kind: Maximum | Posterior,
    atoms: NDArray,
    start: NDArray,
    effort: Effort = PRECISE,
    collect: bool = False,
) -> Solution:
    shape, rate, _ = problem.prior
    activations = np.array(start, dtype=np.float64, order="C")
    if isinstance(kind, Maximum) and np.any(shape < 1):
        solve_by_em(
            problem.source,
            problem.likelihood,
            problem.mass,
            ACTIVATION_FLOOR,
            atoms,
            shape,
            rate,
            activations,
            problem.pool,
        )
        return Solution(activations, np.zeros(len(activations)))
    found = sweep(
        problem.source,
        problem.likelihood,
        kind,
        effort,
        activations,
        np.ascontiguousarray(atoms, dtype=np.float64),
        shape,
        rate,
        problem.sample_weight,
        gains=np.full(len(activations), np.inf),
        threshold=0.0,
        pool=problem.pool,
        collect=collect,
    )
    return Solution(found.activations, found.values, found.slopes, found.grams)
