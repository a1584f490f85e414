"""Priors that fit posteriors best: the paper's Propositions 1 and 2, for any sharing maps.

Both propositions maximise one concave function of the shapes α,

    Φ(α) = Σ_b h_b(N_b) − Σ_a n_a ln Γ(α_a) + Σ_a α_a s_a,    N_b = Σ_a m_ba α_a.

- Dirichlet: b counts the components, m_ba entries of component b have label a, h = ln Γ and s = ξ.
- Gamma: b are the labels of the rates, m_ba activations have labels a and b, s = γ, and
  h_b(N) = N ln N − N − N ln δ_b is what the best rate β_b = N_b / δ_b leaves.

It is maximised by Newton's method, whose Hessian is diagonal plus low rank. Where a Newton step
does not raise Φ, the paper's fixed point does: n_a ψ(α_a) = Σ_b m_ba h_b'(N_b) + s_a.

References
----------
T. Minka, "Estimating a Dirichlet distribution", 2000.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import spsolve
from scipy.special import digamma, gammaln, polygamma

from ..special import inverse_digamma

# What priors are learned within. Shapes of 1e-3 and 1e6 are spikes, at 0 and at the mean.
SHAPE_BOUNDS = (1e-3, 1e6)
RATE_BOUNDS = (1e-9, 1e9)

_MOST_STEPS = 100
# A step that promises less than this share of Φ is lost in rounding.
_LEAST_GAIN = 1e-15
# One step changes a shape by no more than this factor.
_MOST_CHANGE = 8.0
# The halvings of a Newton step before the fixed point is taken instead.
_MOST_HALVINGS = 3
# An incidence of more numbers than this is kept sparse.
_LARGEST_DENSE = 2_000_000


class Outer(NamedTuple):
    """The functions h_b, with two derivatives."""

    value: Callable[[NDArray], NDArray]
    slope: Callable[[NDArray], NDArray]
    curvature: Callable[[NDArray], NDArray]


DIRICHLET = Outer(gammaln, digamma, lambda sums: polygamma(1, sums))


def best_rates(delta: NDArray) -> Outer:
    """h_b of the gamma prior when the rates follow the shapes."""
    log_delta = np.log(delta)
    return Outer(
        lambda sums: sums * (np.log(sums) - 1 - log_delta),
        lambda sums: np.log(sums) - log_delta,
        lambda sums: 1 / sums,
    )


class Objective(NamedTuple):
    """Φ: the incidence m (B, A), the counts n (A,), the statistic s (A,) and the h_b."""

    incidence: Any
    counts: NDArray
    statistic: NDArray
    outer: Outer

    def value(self, shapes: NDArray) -> float:
        """Φ at these shapes."""
        sums = self.incidence @ shapes
        inner = shapes @ self.statistic - self.counts @ gammaln(shapes)
        return float(np.sum(self.outer.value(sums)) + inner)

    def gradient(self, shapes: NDArray) -> NDArray:
        """Derivatives by each shape."""
        return self._pull(shapes) - self.counts * digamma(shapes)

    def fixed_point(self, shapes: NDArray) -> NDArray:
        """The paper's update, which never lowers Φ: h is replaced by its tangent."""
        return inverse_digamma(self._pull(shapes) / self.counts)

    def newton_step(self, shapes: NDArray, gradient: NDArray, free: NDArray) -> NDArray:
        """Solution of (D − mᵀ C m) step = gradient on the free shapes; 0 for the others."""
        incidence = self.incidence[:, free]
        curvature = self.outer.curvature(self.incidence @ shapes)
        diagonal = (self.counts * polygamma(1, shapes))[free]
        step = np.zeros_like(shapes)
        step[free] = _solve(diagonal, incidence, curvature, gradient[free])
        return step

    def _pull(self, shapes: NDArray) -> NDArray:
        return self.incidence.T @ self.outer.slope(self.incidence @ shapes) + self.statistic


def gamma_shape(gap: Any) -> Any:
    """Shape α of gamma distributions with ln E[λ] − E[ln λ] = ln α − ψ(α) = gap."""
    gap = np.maximum(gap, 0.5 / SHAPE_BOUNDS[1])
    # Minka's start, within 1.5 %, and Newton's method in ln α.
    shape = (3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap)
    for _ in range(4):
        error = np.log(shape) - digamma(shape) - gap
        shape = shape * np.exp(error / (shape * polygamma(1, shape) - 1))
    return shape


def incidence(rows: NDArray, columns: NDArray, shape: tuple[int, int]) -> Any:
    """How often each pair of labels occurs, as a matrix; sparse if it is large."""
    pairs = sparse.coo_array(
        (np.ones(rows.size), (rows.ravel(), columns.ravel())), shape=shape
    ).tocsr()
    return pairs if shape[0] * shape[1] > _LARGEST_DENSE else pairs.toarray()


def maximise(objective: Objective, shapes: NDArray) -> NDArray:
    """Shapes within their bounds that maximise Φ, from a start within them."""
    value = objective.value(shapes)
    for _ in range(_MOST_STEPS):
        gradient = objective.gradient(shapes)
        free = _free(shapes, gradient)
        if not free.any():
            break
        step = objective.newton_step(shapes, gradient, free)
        if gradient @ step <= _LEAST_GAIN * max(abs(value), 1.0):
            break
        following, reached = _raise(objective, shapes, step, value)
        if not reached > value:
            break
        shapes, value = following, reached
    return shapes


def _raise(
    objective: Objective, shapes: NDArray, step: NDArray, value: float
) -> tuple[NDArray, float]:
    """The Newton step, or a shorter one, or the fixed point: the first that raises Φ."""
    for halvings in range(_MOST_HALVINGS + 1):
        candidate = _within(shapes + step / 2**halvings, shapes)
        reached = objective.value(candidate)
        if reached > value:
            return candidate, reached
    candidate = _within(objective.fixed_point(shapes), shapes)
    return candidate, objective.value(candidate)


def _within(candidate: NDArray, shapes: NDArray) -> NDArray:
    lower, upper = SHAPE_BOUNDS
    return np.clip(
        candidate,
        np.maximum(lower, shapes / _MOST_CHANGE),
        np.minimum(upper, shapes * _MOST_CHANGE),
    )


def _free(shapes: NDArray, gradient: NDArray) -> NDArray:
    """Shapes that are not held at a bound."""
    lower, upper = SHAPE_BOUNDS
    held = ((shapes <= lower) & (gradient <= 0)) | ((shapes >= upper) & (gradient >= 0))
    return ~held


def _solve(diagonal: NDArray, incidence: Any, curvature: NDArray, right: NDArray) -> NDArray:
    """Solve (D − mᵀ C m) x = right in the smaller of both spaces (Woodbury's identity)."""
    n_rows, n_columns = incidence.shape
    if n_columns <= n_rows:
        return _solve_any(-incidence.T @ _scaled(incidence, curvature), diagonal, right)
    scaled = _scaled(incidence.T, 1 / diagonal)  # D⁻¹ mᵀ
    inner = _solve_any(-incidence @ scaled, 1 / curvature, scaled.T @ right)
    return right / diagonal + scaled @ inner


def _scaled(matrix: Any, factors: NDArray) -> Any:
    """The matrix with its rows multiplied by the factors."""
    return (
        sparse.diags_array(factors) @ matrix
        if sparse.issparse(matrix)
        else (factors[:, None] * matrix)
    )


def _solve_any(matrix: Any, diagonal: NDArray, right: NDArray) -> NDArray:
    """Solve (matrix + diagonal) x = right."""
    if sparse.issparse(matrix):
        return np.atleast_1d(spsolve((matrix + sparse.diags_array(diagonal)).tocsc(), right))
    matrix[np.diag_indices_from(matrix)] += diagonal
    return np.linalg.solve(matrix, right)
