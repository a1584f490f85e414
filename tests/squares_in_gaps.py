"""Least squares with a weight on squares in gaps, written down plainly."""

import numpy as np

from seminmf._kernels.euclidean.least_squares import GAP_WEIGHT


def cost_of_gaps(X, activations, components, weights=1.0):
    """Σ weight (a_k W_ki)² over gaps and components, with the weight of gaps."""
    squares = np.where(np.isnan(X), activations**2 @ components**2, 0.0)
    return GAP_WEIGHT * np.sum(np.multiply(weights, squares.sum(axis=1)))


def row_problem(x, components):
    """Design and target of one sample: its cells, and a row for each component's gaps."""
    seen = ~np.isnan(x)
    ridge = np.sqrt(GAP_WEIGHT * np.sum(components[:, ~seen] ** 2, axis=1))
    design = np.concatenate([components[:, seen].T, np.diag(ridge)])
    return design, np.concatenate([x[seen], np.zeros(len(components))])
