"""Least squares in units of the noise, with a price on activations: X ≈ A W + b, A ≥ 0.

Each cell has a precision, 1 / variance, which is 0 in a gap. Where all samples have the same
precisions, these have one row, and so have the Gram matrices.
"""

from __future__ import annotations

import math

import numpy as np

from ..._numerics.compiled import kernel, part, prefer_wide_vectors

# A change of a value, against its standard deviation, that counts as none.
_NO_CHANGE = 1e-5


@part
def _descend(gram, product, bounded, most_rounds, values):
    """Coordinate descent on ½ v Q v − c v, where the bounded values are at least 0, in place."""
    n_values = values.size
    for _ in range(most_rounds):
        change = 0.0
        for k in range(n_values):
            size = gram[k, k]
            if size > 0.0:
                slope = product[k]
                for l in range(n_values):
                    slope -= gram[k, l] * values[l]
                new = values[k] + slope / size
                if bounded[k] and new < 0.0:
                    new = 0.0
                change = max(change, abs(new - values[k]) * math.sqrt(size))
                values[k] = new
        if change < _NO_CHANGE:
            break


@part
def _gram_of_row(precision, components, gram):
    """Σ_i precision_i W_ki W_li."""
    n_components, n_features = components.shape
    for k in range(n_components):
        for l in range(k + 1):
            total = 0.0
            for i in range(n_features):
                total += precision[i] * components[k, i] * components[l, i]
            gram[k, l] = gram[l, k] = total


@part
def _quadratic(gram, product, values):
    """½ v Q v − c v."""
    total = 0.0
    for k in range(values.size):
        if values[k] != 0.0:
            slope = -2.0 * product[k]
            for l in range(values.size):
                slope += gram[k, l] * values[l]
            total += 0.5 * slope * values[k]
    return total


@kernel
def solve_priced_rows(X, precision, weights, centre, components, prices, most_rounds, values):
    """Activations of each sample, from where they are, in place.

    Returns what is minimised: the sum of ½ p (x − a W − b)² and of the prices, with the weights.
    """
    prefer_wide_vectors()
    n_samples, n_features = X.shape
    n_components = components.shape[0]
    shared = precision.shape[0] == 1
    gram, product = np.empty((n_components, n_components)), np.empty(n_components)
    residual, bounded = np.empty(n_features), np.ones(n_components, np.bool_)
    total = 0.0
    if shared:
        _gram_of_row(precision[0], components, gram)
    for j in range(n_samples):
        own = precision[0 if shared else j]
        if not shared:
            _gram_of_row(own, components, gram)
        squares = 0.0
        for i in range(n_features):
            deviation = X[j, i] - centre[i]
            residual[i] = own[i] * deviation
            squares += residual[i] * deviation
        for k in range(n_components):
            slope = -prices[k]
            for i in range(n_features):
                slope += components[k, i] * residual[i]
            product[k] = slope
        _descend(gram, product, bounded, most_rounds, values[j])
        total += weights[j] * (0.5 * squares + _quadratic(gram, product, values[j]))
    return total


@kernel
def sum_for_features(X, precision, weights, values, products, grams):
    """Add Σ_j w p a x and Σ_j w p a aᵀ, for each feature or, without p, for all alike."""
    prefer_wide_vectors()
    n_samples, n_features = X.shape
    n_values = values.shape[1]
    shared = precision.shape[0] == 1
    row, seen = np.empty(n_features), np.empty(n_features)
    for j in range(n_samples):
        for i in range(n_features):
            seen[i] = weights[j] if shared else weights[j] * precision[j, i]
            row[i] = seen[i] * X[j, i]
        for k in range(n_values):
            value = values[j, k]
            if value == 0.0:
                continue
            for i in range(n_features):
                products[k, i] += value * row[i]
            for l in range(k + 1):
                both = value * values[j, l]
                if both == 0.0:
                    continue
                if shared:
                    grams[k, l, 0] += weights[j] * both
                else:
                    for i in range(n_features):
                        grams[k, l, i] += both * seen[i]


@kernel
def solve_bounded_features(grams, products, bounded, most_rounds, values):
    """Components of each feature of which some are at least 0, from where they are, in place."""
    n_values, n_features = products.shape
    gram, own = np.empty((n_values, n_values)), np.empty(n_values)
    for i in range(n_features):
        at = i if grams.shape[2] > 1 else 0
        for k in range(n_values):
            own[k] = values[k, i]
            for l in range(n_values):
                gram[k, l] = grams[k, l, at]
        _descend(gram, products[:, i].copy(), bounded, most_rounds, own)
        for k in range(n_values):
            values[k, i] = own[k]


@part
def _factorise(gram, active, n_active, factor):
    """Cholesky factor of the Gram matrix of the active components; False if it has none."""
    for a in range(n_active):
        for b in range(a + 1):
            total = gram[active[a], active[b]]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if b < a:
                factor[a, b] = total / factor[b, b]
            else:
                factor[a, a] = math.sqrt(max(total, 1e-9 * gram[active[a], active[a]] + 1e-300))


@part
def _leverage(components, i, active, n_active, factor, solved):
    """Variance of the fit of feature i by active components, whose Gram matrix is factorised."""
    leverage = 0.0
    for a in range(n_active):
        total = components[active[a], i]
        for b in range(a):
            total -= factor[a, b] * solved[b]
        solved[a] = total / factor[a, a]
        leverage += solved[a] * solved[a]
    return leverage


@kernel
def sum_residuals(X, precision, weights, centre, components, values, least, squares, leverages):
    """Add each feature's Σ_j w (x − a W − b)² and Σ_j w h over observed cells.

    h is the leverage of a cell on its sample's fit by the components that are active there: those
    above `least`.
    """
    prefer_wide_vectors()
    n_samples, n_features = X.shape
    n_components = components.shape[0]
    shared = precision.shape[0] == 1
    gram, factor = np.empty((n_components, n_components)), np.empty((n_components, n_components))
    active, solved = np.empty(n_components, np.int64), np.empty(n_components)
    if shared:
        _gram_of_row(precision[0], components, gram)
    for j in range(n_samples):
        own = precision[0 if shared else j]
        if not shared:
            _gram_of_row(own, components, gram)
        n_active = 0
        for k in range(n_components):
            if values[j, k] > least[k] and gram[k, k] > 0.0:
                active[n_active] = k
                n_active += 1
        _factorise(gram, active, n_active, factor)
        for i in range(n_features):
            if own[i] == 0.0:
                continue
            residual = X[j, i] - centre[i]
            for k in range(n_components):
                residual -= values[j, k] * components[k, i]
            squares[i] += weights[j] * residual * residual
            leverage = _leverage(components, i, active, n_active, factor, solved)
            leverages[i] += weights[j] * own[i] * leverage
