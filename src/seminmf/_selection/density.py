"""The likelihood of cells, and how it bends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..special import log_hyp0f1_regularized


def log_density(X: NDArray, rate0: NDArray, rate1: NDArray) -> NDArray:
    """ln P of the Skellam distribution, for real numbers as well; 0 in gaps."""
    x = np.nan_to_num(X)
    side = np.log(np.where(x < 0, rate1, rate0))
    size = np.abs(x)
    value = size * side - rate0 - rate1 + log_hyp0f1_regularized(size + 1, rate0 * rate1)
    return np.where(np.isnan(X), 0.0, value)


def sensitivity(X: NDArray, activations: NDArray, atoms: NDArray) -> tuple[NDArray, NDArray]:
    """g_s (J, I) with which −ln P has the Hessian (g₀ dλ₀ + g₁ dλ₁)², at the posterior means.

    This is the Hessian of real data, U_s / √r; that of counts is close to it.
    """
    rate0, rate1 = activations @ atoms
    x = np.nan_to_num(X)
    root = np.hypot(x, 2 * np.sqrt(rate0) * np.sqrt(rate1))
    big = (np.abs(x) + root) / 2
    u0 = np.where(x >= 0, big / rate0, rate1 / big)
    u1 = np.where(x >= 0, rate0 / big, big / rate1)
    weight = np.where(np.isnan(X), 0.0, 1 / np.sqrt(root))
    return u0 * weight, -u1 * weight
