"""Newton step on the atoms: feature by feature, from what a sweep over the samples collected."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..._numerics.arguments import check_arrays, spread
from ..._numerics.compiled import kernel
from ..simd.vectors import aligned
from .lanes import TOWARDS_BARRIER
from .quadratic import bounded_quadratic
from .sweep import ONE_STEP
from .workspace import lane_width

# Of float32 data the Hessian is known to about this only.
_RIDGE = 1.0 + 1e-5
_NOTHING = 1e-300
# Curvature that keeps an atom where it is.
_FIXED = 1e300


@kernel
def _move_features(control, slopes, hessian_blocks, atoms, excess, ridge, fixed, workspace, moves):
    """Fill in the moves (2, K, I); a feature has 2K unknowns, those of sign 0 first."""
    n_components, n_features = atoms.shape[1:]
    slope, lowest, move, hessian, descent = workspace
    width = slope.shape[1]
    for start in range(0, n_features, width):
        for l in range(width):
            i = min(start + l, n_features - 1)
            pair = 0
            for k in range(n_components):
                for m in range(k + 1):
                    hessian[k, m, l] = hessian_blocks[0, pair, i]
                    hessian[n_components + k, m, l] = hessian_blocks[1, pair, i]
                    hessian[n_components + m, k, l] = hessian_blocks[1, pair, i]
                    hessian[n_components + k, n_components + m, l] = hessian_blocks[2, pair, i]
                    pair += 1
            for s in range(2):
                for k in range(n_components):
                    row = s * n_components + k
                    value, barrier = atoms[s, k, i], excess[s, k, i]
                    stays = fixed[s, k]
                    slope[row, l] = 0.0 if stays else slopes[s, k, i]
                    # Zero is approached as a barrier is: where all atoms of a sample vanish at
                    # once, the quadratic model knows nothing of the rate_sum.
                    lowest[row, l] = -(1.0 - TOWARDS_BARRIER) * value
                    bent = hessian[row, row, l] + ridge[k, i]
                    if barrier > 0.0 and not stays:
                        slope[row, l] -= barrier / value
                        bent += barrier / (value * value)
                    # Atoms sum to 1: without curvature a step is no longer than that.
                    bent += abs(slope[row, l])
                    hessian[row, row, l] = _FIXED if stays else bent * _RIDGE + _NOTHING
        bounded_quadratic(
            slope, hessian, lowest, descent, control.max_sweeps, control.sweep_tolerance, move
        )
        for l in range(min(width, n_features - start)):
            for s in range(2):
                for k in range(n_components):
                    moves[s, k, start + l] = move[s * n_components + k, l]


def move_features(
    slopes: NDArray,
    hessian_blocks: NDArray,
    atoms: NDArray,
    excess: NDArray,
    ridge: NDArray,
    fixed: NDArray,
) -> NDArray:
    """Moves (2, K, I) that minimise the quadratic model of every feature, with atoms ≥ 0.

    Parameters
    ----------
    slopes, hessian_blocks : float64 arrays of shape (2, K, I) and (3, K (K + 1) / 2, I)
        Gradient and Hessian, as `newton.Sweep` has them.
    atoms : float64 array of shape (2, K, I)
        Where they were taken.
    excess : float64 array of shape (2, K, I)
        Weights ≥ 0 of the barrier −excess ln θ.
    ridge : float64 array of shape (K, I)
        What is added to the Hessian's diagonal, the same for both signs.
    fixed : boolean array of shape (2, K)
        Atoms that stay.
    """
    _, n_components, n_features = atoms.shape
    excess, ridge = spread(excess, atoms.shape), spread(ridge, atoms.shape[1:])
    slopes, hessian_blocks, atoms = (
        np.ascontiguousarray(part) for part in (slopes, hessian_blocks, atoms)
    )
    check_arrays(
        {"K": n_components, "I": n_features, "P": n_components * (n_components + 1) // 2},
        slopes=("2KI", slopes),
        hessian_blocks=("3PI", hessian_blocks),
        atoms=("2KI", atoms),
        ridge=("KI", ridge),
        fixed=("2K", fixed),
    )
    moves = np.empty(atoms.shape)
    workspace = _workspace(2 * n_components, atoms)
    _move_features(ONE_STEP, slopes, hessian_blocks, atoms, excess, ridge, fixed, workspace, moves)
    return moves


def _workspace(n: int, atoms: NDArray) -> tuple[NDArray, ...]:
    """Slope, bound and move (n, width), Hessian (n, n, width), and what the descent works in."""
    width = lane_width(atoms.dtype)
    shapes = (n, width), (n, width), (n, width), (n, n, width), (3 * n + 3, width)
    return tuple(aligned(math.prod(shape), atoms).reshape(shape) for shape in shapes)
