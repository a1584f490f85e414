"""Random draws that survive small shapes."""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

# Gamma variates with a smaller shape are no different in floating point, but their logarithms
# overflow.
_SMALLEST_SHAPE = 1e-300


def draw_dirichlet(
    shape: NDArray[np.float64], rng: RandomState, axes: tuple[int, int]
) -> NDArray[np.float64]:
    """Dirichlet variates over two axes together, signs and features."""
    logs = draw_log_gamma(shape, rng)
    gammas = np.exp(logs - logs.max(axis=axes, keepdims=True))
    return gammas / gammas.sum(axis=axes, keepdims=True)


def draw_log_gamma(shape: NDArray[np.float64], rng: RandomState) -> NDArray[np.float64]:
    """Logarithms of standard gamma variates.

    For shapes well below 1 the variates themselves underflow, and a Dirichlet draw of zeros cannot
    be normalised. Their logarithms are safe, by Gamma(a) = Gamma(a + 1) U^(1/a), where -ln U is
    exponential.
    """
    shape = np.maximum(shape, _SMALLEST_SHAPE)
    return np.log(rng.standard_gamma(shape + 1)) - rng.standard_exponential(shape.shape) / shape
