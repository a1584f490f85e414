"""The activations that belong to given atoms, to precision, for one row as for a million."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.executor import per_sample
from .._kernels.em.rows import solve_by_em
from .._kernels.newton.sweep import PRECISE, NewtonControl, RowProblems, sweep
from .._model.penalties import Maximum, Penalty, Posterior
from . import em, vb
from .problem import Problem


class Solution(NamedTuple):
    """What is known of the rows at their solution.

    Attributes
    ----------
    activations : (J, K) array, float64
    values : (J,) array
        Value of each row's problem; 0 after EM.
    slopes, hessian_blocks : arrays
        What the atoms need (`newton.Sweep`); empty, if it was not asked for.
    """

    activations: NDArray
    values: NDArray
    slopes: NDArray = np.empty(0)
    hessian_blocks: NDArray = np.empty(0)


# How far activations are solved where atoms are to follow: with fewer steps atoms are biased. A fit
# that goes on from there ends higher than from precise ones, which hold the atoms where they are.
ROUGH = NewtonControl(20, 20, 1e-2, 1e-3, False)
# A batch is not seen again. Next to noise slopes are of the size of the activations' rate, and a
# share of that is little.
_LITTLE, _PRECISELY = 1e-2, 1e-10
# How much better, relatively, another stationary point must be to be preferred.
_BETTER = 1e-9


def batch_control(problem: Problem) -> NewtonControl:
    """How far activations are solved for a batch, from whose sums the atoms follow."""
    if not problem.model.has_noise:
        return ROUGH
    least = _LITTLE * float(np.min(problem.model.activations.prior.rate))
    return ROUGH._replace(slope=min(max(least, _PRECISELY), ROUGH.slope))


def solve_maximum(problem: Problem, atoms: NDArray) -> NDArray:
    """Activations that are most probable, given the atoms."""
    problem = problem.at(atoms)
    (activations,), _ = problem.over_samples(_solve_maximum, (), atoms)
    return activations


def solve_roughly(problem: Problem, atoms: NDArray) -> NDArray:
    """The same as far as a start needs it, in the type of the data."""
    (activations,), _ = problem.at(atoms).over_samples(_solve_roughly, (), atoms)
    return problem.executor.persist(activations)


def refine_maximum(problem: Problem, point: em.Factors) -> em.Factors:
    """The point with the activations that belong to its atoms, in the type of the data."""
    problem = problem.at(point.atoms)
    (solved,), _ = problem.over_samples(_refine_maximum, (point.activations,), point.atoms)
    return em.Factors(problem.executor.persist(solved), point.atoms)


def solve_posterior(problem: Problem, atom_shape: NDArray) -> NDArray:
    """Posterior shapes of the activations, given those of the atoms."""
    atoms, _ = problem.model.atoms.prior.geometric_means(atom_shape)
    (shape,), _ = problem.over_samples(_solve_posterior, (), atoms)
    return shape


def refine_posterior(problem: Problem, point: vb.Posteriors) -> vb.Posteriors:
    """The point with the activations' posterior that belongs to its atoms', in the data's type."""
    atoms, _ = problem.model.atoms.prior.geometric_means(point.atom_shape)
    (shape,), _ = problem.over_samples(_refine_posterior, (point.activation_shape,), atoms)
    return vb.Posteriors(problem.executor.persist(shape), point.atom_shape)


@per_sample(rows=1)
def _solve_maximum(problem: Problem, atoms: NDArray) -> tuple[tuple, tuple]:
    return (solve(problem, Maximum(problem.mass), atoms).activations,), ()


@per_sample(rows=1)
def _solve_roughly(problem: Problem, atoms: NDArray) -> tuple[tuple, tuple]:
    found = solve(problem, Maximum(problem.mass), atoms, ROUGH)
    return (found.activations.astype(problem.dtype),), ()


@per_sample(rows=1)
def _refine_maximum(problem: Problem, activations: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    solved = refine(problem, Maximum(problem.mass), atoms, activations)
    return (solved.astype(problem.dtype),), ()


@per_sample(rows=1)
def _solve_posterior(problem: Problem, atoms: NDArray) -> tuple[tuple, tuple]:
    solution = solve(problem, Posterior(problem.mass), atoms)
    return (vb.shape_of(problem, solution.activations),), ()


@per_sample(rows=1)
def _refine_posterior(problem: Problem, shape: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    means, _ = vb.geometric_means(problem, shape)
    solved = refine(problem, Posterior(problem.mass), atoms, means)
    return (vb.shape_of(problem, solved).astype(problem.dtype),), ()


def solve(
    problem: Problem,
    kind: Penalty,
    atoms: NDArray,
    control: NewtonControl = PRECISE,
    collect: bool = False,
) -> Solution:
    """Solve every row from a start that only the row decides."""
    return _solve_from(problem, kind, atoms, own_start(problem, kind), control, collect)


def refine(problem: Problem, kind: Penalty, atoms: NDArray, activations: NDArray) -> NDArray:
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
    return problem.model.likelihood.convex and problem.model.activations.prior.is_log_concave


def own_start(problem: Problem, kind: Penalty) -> NDArray:
    """Each row's Σ|x|, divided among the components, plus the prior's part."""
    share = problem.data.shares(problem.model.likelihood.unit, problem.n_components)
    prior = problem.model.activations.prior
    excess = prior.shape + kind.excess
    start = (share[:, None] + np.maximum(excess, 0) / problem.mass) / (1 + prior.rate)
    return np.broadcast_to(start, (len(share), problem.n_components))


def _solve_from(
    problem: Problem,
    kind: Penalty,
    atoms: NDArray,
    start: NDArray,
    control: NewtonControl = PRECISE,
    collect: bool = False,
) -> Solution:
    model, data = problem.model, problem.data
    prior = model.activations.prior
    activations = np.array(start, dtype=np.float64, order="C")
    atoms = np.ascontiguousarray(atoms, dtype=np.float64)
    problems = RowProblems(model.likelihood, kind, prior, atoms, data.weights, model.background)
    if kind.has_pole and not prior.is_log_concave:
        solve_by_em(data.source, problems, activations, problem.executor)
        return Solution(activations, np.zeros(len(activations)))
    found = sweep(
        data.source,
        problems,
        activations,
        control,
        problem.executor,
        gains=np.full(len(activations), np.inf),
        collect=collect,
    )
    return Solution(found.activations, found.values, found.slopes, found.hessian_blocks)


@per_sample(rows=2)
def posterior_samples(problem: Problem, shape: NDArray) -> tuple[tuple, tuple]:
    """Posterior rates and means of activations, in the unit of X and the type of the data."""
    dtype = problem.dtype
    rate = problem.model.activations.prior.posterior_rate() / problem.model.likelihood.dispersion
    means = np.divide(shape, rate, out=np.empty(shape.shape, dtype))
    return (np.broadcast_to(rate, shape.shape).astype(dtype), means), ()
