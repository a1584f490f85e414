"""EM for tensors: the maximum a posteriori, with the M-steps of the matrix model.

All expected counts come from one pass. Then factor after factor is updated, each with the others as
they are by then: every update maximises the same bound in one factor, so the objective never falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._model.factors import TensorFactor
from .._model.priors import Dirichlet, Gamma, normalise
from .loop import Info
from .tensor import TensorProblem

# A point is a NamedTuple of the factors' arrays, in their layouts.
Point = Any


def start(problem: TensorProblem, point: Point) -> Point:
    """The point itself: there is nothing to remember between iterations."""
    return point


def point(state: Point) -> Point:
    """The state itself."""
    return state


def step(problem: TensorProblem, state: Point) -> tuple[Point, Info]:
    """One iteration: the M-step of all factors, from the same E-step."""
    found = problem.expectations(state)
    arrays = list(state)
    for n, factor in enumerate(problem.model.tensors):
        if n not in problem.model.held and not factor.is_frozen:
            exposure = problem.exposures(arrays)[n] if factor.exposed else 1.0
            updated = _m_step(factor, state[n], found.gradients[n], exposure)
            arrays[n] = factor.keep_frozen(updated, state[n])
    return state._make(arrays), Info(found.data_term + log_prior(problem, state))


def _m_step(
    factor: TensorFactor,
    values: NDArray,
    gradient: NDArray,
    exposure: NDArray | float,
) -> NDArray:
    """(S + α − 1) / (E + β) of a free factor; in proportion to S + α − 1 where it sums to 1."""
    if isinstance(factor.prior, Dirichlet):
        return factor.prior.m_step(values, values * gradient, 1.0)
    expected = gradient.astype(values.dtype)
    factor.prior.m_step(values, expected, factor.row_weights, 1.0, exposure)
    return expected


def evaluate(problem: TensorProblem, state: Point) -> float:
    """The objective: log-likelihood and log-priors, constants dropped."""
    return problem.expectations(state).data_term + log_prior(problem, state)


def log_prior(problem: TensorProblem, arrays: Sequence[NDArray]) -> float:
    """Σ (α − 1) ln F, and −βF where F is free; what is frozen and free adds a constant."""
    total = 0.0
    for factor, values in zip(problem.model.tensors, arrays, strict=True):
        if isinstance(factor.prior, Gamma):
            known = np.where(factor.frozen, 1, values).astype(values.dtype, copy=False)
            total += factor.prior.log_prior(known, factor.row_weights, 1.0)
        else:
            total += factor.prior.log_density(values)
    return total


def project(problem: TensorProblem, point: Point) -> Point:
    """The point, brought back to where the constraints hold; what is frozen stays."""
    arrays = []
    for factor, values in zip(problem.model.tensors, point, strict=True):
        if isinstance(factor.prior, Dirichlet):
            updated = normalise(values.astype(np.float64), factor.prior.floor)
        else:
            updated = np.maximum(values, factor.prior.floor)
        arrays.append(factor.keep_frozen(updated, values).astype(values.dtype, copy=False))
    return point._make(arrays)
