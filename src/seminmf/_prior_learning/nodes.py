"""Points that stand for the normal distribution in some dimensions."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

from .._kernels.evidence.quadrature import Nodes

# The product rule has no more points than this in all, and at the end at least five on an axis.
_MOST_NODES, _LEAST_ORDER = 125, 5
# Points of the low-discrepancy sequence, each with its mirror image.
_HALF_SEQUENCE = 64


def standard_nodes(n_components: int, order: int = 7) -> Nodes:
    """Nodes for the standard normal distribution in so many dimensions."""
    least = min(order, _LEAST_ORDER)
    while order > least and order**n_components > _MOST_NODES:
        order -= 2
    if order**n_components > _MOST_NODES:
        return _sequence(n_components)
    return _product_rule(n_components, order)


@lru_cache(maxsize=16)
def _product_rule(n_components: int, order: int) -> Nodes:
    """The Gauss-Hermite rule on each axis."""
    axis, weights = np.polynomial.hermite_e.hermegauss(order)
    points = np.array(np.meshgrid(*[axis] * n_components, indexing="ij"))
    points = points.reshape(n_components, -1)
    logs = np.array(np.meshgrid(*[np.log(weights)] * n_components, indexing="ij"))
    return Nodes(points, logs.reshape(n_components, -1).sum(axis=0) + _half_square(points))


@lru_cache(maxsize=16)
def _sequence(n_components: int) -> Nodes:
    """Points of a low-discrepancy sequence, whatever the number of dimensions, and the origin."""
    sobol = qmc.Sobol(n_components, scramble=True, rng=np.random.default_rng(0))
    half = ndtri(sobol.random(_HALF_SEQUENCE)).T
    origin = np.zeros((n_components, 1))
    points = np.ascontiguousarray(np.concatenate([half, -half, origin], axis=1))
    density = 0.5 * n_components * math.log(2 * math.pi) - math.log(points.shape[1])
    return Nodes(points, density + _half_square(points))


def _half_square(points: NDArray) -> NDArray:
    return 0.5 * np.sum(points**2, axis=0)
