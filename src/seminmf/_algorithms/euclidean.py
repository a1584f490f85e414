"""Semi-NMF for squared errors: the activations by a rule, then the components by least squares.

The components are optimal for the activations, so these are what is extrapolated: the step from
the last activations to the new ones is continued by a share of it, the momentum. The next sweep
judges the point; if it is no better than the last one, the iteration goes back to the activations
without extrapolation. Whatever the rule, the objective, −½ Σ (x − a W)² less the squares in gaps,
never falls.

References
----------
C. Ding, T. Li and M. I. Jordan, "Convex and semi-nonnegative matrix factorizations", 2010.
A. M. S. Ang and N. Gillis, "Accelerating nonnegative matrix factorization algorithms using
extrapolation", 2019.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.executor import LocalExecutor
from .._data.source import Data
from .._kernels.euclidean.least_squares import DESCEND, KEEP, MULTIPLY, Sums, sweep
from .loop import Info

SOLVERS = {"hals": DESCEND, "multiplicative": MULTIPLY}

# Momentum at first and at the most, and what a success and a failure make of it.
_FIRST, _MOST, _GROWTH, _SHRINKAGE = 0.5, 1.0, 1.05, 0.5
# Directions of the activations that are this small against the largest tell nothing of W.
_SINGULAR = 1e-12
# A component whose activations' squares sum to less has none: products of such numbers vanish.
_NOTHING = 1e-200


class SignedFactors(NamedTuple):
    """Activations (J, K) and components (K, I), float64, in the unit of computations."""

    activations: NDArray
    components: NDArray


class LeastSquares(NamedTuple):
    """What stays the same during a fit.

    Attributes
    ----------
    data : Data
    unit : float
        The components are in this unit; activations have none.
    frozen : (K,) boolean array
        Components that stay.
    solver : {"hals", "multiplicative"}
    executor : LocalExecutor
    """

    data: Data
    unit: float
    frozen: NDArray
    solver: str
    executor: LocalExecutor

    def sweep(
        self,
        point: SignedFactors,
        rule: int,
        before: NDArray | None = None,
        momentum: float = 0.0,
    ) -> Sums:
        """A sweep over the data from `point`."""
        source = self.data.source
        return sweep(
            source,
            self.unit,
            self.data.weights,
            point.components,
            point.activations,
            self.executor,
            rule=rule,
            complete=self.data.summary.n_observed == source.n_cells,
            before=before,
            momentum=momentum,
        )


class DescentState(NamedTuple):
    """The best point so far with its objective, and where to look next.

    Attributes
    ----------
    best : SignedFactors
    objective : float
    proposal : SignedFactors
        The next point to judge.
    moved : (J, K) array
        Activations that the last sweep led to, without extrapolation.
    momentum : float
    """

    best: SignedFactors
    objective: float
    proposal: SignedFactors
    moved: NDArray
    momentum: float


def with_best_components(problem: LeastSquares, point: SignedFactors) -> SignedFactors:
    """The point with the components that are best for its activations."""
    return point._replace(components=fitted(problem, point.components, problem.sweep(point, KEEP)))


def start(problem: LeastSquares, point: SignedFactors) -> DescentState:
    """State to begin with at `point`."""
    momentum = 0.0 if problem.solver == "multiplicative" else _FIRST
    found = problem.sweep(point, SOLVERS[problem.solver])
    components = fitted(problem, point.components, found)
    proposal = SignedFactors(found.ahead, components)
    return DescentState(point, -0.5 * found.loss, proposal, found.activations, momentum)


def step(problem: LeastSquares, state: DescentState) -> tuple[DescentState, Info]:
    """One sweep: judge the proposal, and make the next."""
    best, goal, proposal, moved, momentum = state
    info = Info(goal)
    found = problem.sweep(proposal, SOLVERS[problem.solver], moved, momentum)
    objective = -0.5 * found.loss
    if objective >= goal:
        following = SignedFactors(found.ahead, fitted(problem, proposal.components, found))
        momentum = min(_GROWTH * momentum, _MOST)
        return DescentState(proposal, objective, following, found.activations, momentum), info
    if np.array_equal(proposal.activations, moved):
        return state, info  # all that is left to gain is rounding
    careful = with_best_components(problem, best._replace(activations=moved))
    return state._replace(proposal=careful, momentum=_SHRINKAGE * momentum), info


def objective(problem: LeastSquares, point: SignedFactors) -> float:
    """−½ Σ weight (x − a W)² at a point, less the squares in gaps."""
    return -0.5 * problem.sweep(point, KEEP).loss


def evaluate(problem: LeastSquares, state: DescentState) -> float:
    """Objective at `state`."""
    return state.objective


def point(state: DescentState) -> SignedFactors:
    """Where `state` is."""
    return state.best


def fitted(problem: LeastSquares, components: NDArray, sums: Sums) -> NDArray:
    """Least squares for the components that are not frozen.

    It is a step from where they are, in the directions that the activations tell something of: a
    singular system moves nothing that it does not determine.
    """
    free = np.flatnonzero(~problem.frozen)
    gradient = sums.products - _times(sums.grams, components)
    inverse = pseudo_inverse(sums.grams[:, free[:, None], free])
    moved = components.copy()
    moved[free] += _times(inverse, gradient[free])
    return moved


def _times(matrices: NDArray, columns: NDArray) -> NDArray:
    """Each feature's matrix, or the one that all share, times its column."""
    if len(matrices) == 1:
        return matrices[0] @ columns
    return np.einsum("ikl,li->ki", matrices, columns)


def pseudo_inverse(grams: NDArray) -> NDArray:
    """Inverses of Gram matrices (n, K, K), with 0 in the directions that are none."""
    squares = np.einsum("nkk->nk", grams)
    sizes = np.sqrt(np.where(squares > _NOTHING, squares, 1.0))
    pairs = sizes[:, :, None] * sizes[:, None, :]
    values, vectors = np.linalg.eigh(grams / pairs)
    useful = values > _SINGULAR
    inverses = np.where(useful, 1 / np.where(useful, values, 1.0), 0.0)
    return (vectors * inverses[:, None, :]) @ vectors.swapaxes(1, 2) / pairs
