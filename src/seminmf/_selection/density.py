"""The likelihood of cells, and its sensitivity to their rates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._kernels.em.estep import evaluate_cells
from .._model.likelihoods import Integer, Real


def log_density(X: NDArray, rate0: NDArray, rate1: NDArray) -> NDArray:
    """ln P of the Skellam distribution, for real numbers as well; 0 in gaps."""
    return evaluate_cells(Integer(), X, rate0, rate1).log_likelihood


def sensitivity(X: NDArray, activations: NDArray, atoms: NDArray) -> tuple[NDArray, NDArray]:
    """g_s (J, I) with which −ln P has the Hessian (g₀ dλ₀ + g₁ dλ₁)², at the posterior means.

    This is the Hessian of real data, U_s / √r; that of counts is close to it.
    """
    rate0, rate1 = activations @ atoms
    cells = evaluate_cells(Real(), X, rate0, rate1)
    root = np.hypot(np.nan_to_num(X), 2 * np.sqrt(rate0) * np.sqrt(rate1))
    weight = np.where(np.isnan(X), 0.0, 1 / np.sqrt(root))
    return cells.u0 * weight, -cells.u1 * weight
