"""Geometric means exp E[ln λ] of the activations' posterior, and their part of the bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._data.source import Source, row_ranges
from ..._data.threads import Pool
from ..._numerics.gamma import gamma_terms
from ..compiled import kernel, prefer_wide_vectors


@kernel
def _geometric_rows(shape, prior_shape, inverse_rate, weights, geometric):
    """Fill `geometric` for some samples, and return their part of the bound."""
    prefer_wide_vectors()
    n_samples, n_components = shape.shape
    terms = np.empty(shape.size)
    # Flat, because a loop over a few components would hardly use a vector.
    flat_shape, flat_prior = shape.ravel(), prior_shape.ravel()
    flat_inverse, flat_geometric = inverse_rate.ravel(), geometric.ravel()
    for n in range(shape.size):
        alpha = np.float64(flat_shape[n])
        exp_digamma, digamma, entropy = gamma_terms(alpha)
        flat_geometric[n] = exp_digamma * flat_inverse[n]
        terms[n] = flat_prior[n] * digamma + entropy - alpha
    total = 0.0
    for j in range(n_samples):
        row = 0.0
        for k in range(n_components):
            row += terms[j * n_components + k]
        total += weights[j] * row
    return total


def geometric_means(
    source: Source,
    shape: NDArray,
    prior_shape: NDArray,
    rate: NDArray,
    sample_weight: NDArray,
    pool: Pool,
) -> tuple[NDArray, float]:
    """exp ψ(α̂) / β̂ for all samples, and Σ αψ(α̂) + lnΓ(α̂) − α̂ψ(α̂), with the samples' weights.

    `prior_shape` and `rate` broadcast to the shape of `shape`.
    """
    shape = np.ascontiguousarray(shape)
    geometric = np.empty_like(shape)
    all_priors = np.broadcast_to(prior_shape, shape.shape)
    all_inverses = np.broadcast_to(1 / rate, shape.shape)

    def task(rows: tuple[int, int]) -> float:
        part = slice(*rows)
        return _geometric_rows(
            shape[part],
            np.ascontiguousarray(all_priors[part]),
            np.ascontiguousarray(all_inverses[part]),
            sample_weight[part],
            geometric[part],
        )

    return geometric, sum(pool.map(task, row_ranges(source, shape.shape[1])))
