"""Least squares in units of the noise, with a price on activations: X ≈ A W + b, A ≥ 0.

Each cell has a precision, 1 / variance. Where all samples have the same precisions, these have one
row. Without gaps samples then share a Gram matrix, and so do features; `ObservedCells` is empty.
With gaps or precisions of their own, work grows with the number of observed cells.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._numerics.compiled import kernel, part, part_optimised

# Below this share of observed cells they are added one by one, and not by whole vectors.
_FEW = 0.25
# A change of a value, against its standard deviation, that counts as none.
_NO_CHANGE = 1e-5


class ObservedCells(NamedTuple):
    """Where each sample's observed cells end in an array of features; or two empty arrays."""

    ends: NDArray
    features: NDArray


NO_GAPS = ObservedCells(np.zeros(0, np.int64), np.zeros(0, np.int32))


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
def _gram_of_row(precision, components, n_features, gram):
    """Σ_i precision_i W_ki W_li, over the first features."""
    for k in range(components.shape[0]):
        for l in range(k + 1):
            total = 0.0
            for i in range(n_features):
                total += precision[i] * components[k, i] * components[l, i]
            gram[k, l] = gram[l, k] = total


@part
def _gather(precision, components, cells, j, features, seen, own):
    """Features, precisions and components of a sample's cells; returns how many it has."""
    first = cells.ends[j - 1] if j > 0 else 0
    count = cells.ends[j] - first
    row = 0 if precision.shape[0] == 1 else j
    for c in range(count):
        features[c] = cells.features[first + c]
        seen[c] = precision[row, features[c]]
    for k in range(components.shape[0]):
        for c in range(count):
            own[k, c] = components[k, features[c]]
    return count


class _Workspace(NamedTuple):
    """For one sample: its features, their precisions and components, and what is solved with.

    At first it has all features.
    """

    features: NDArray
    precision: NDArray
    components: NDArray
    residual: NDArray
    gram: NDArray
    factor: NDArray
    product: NDArray
    bounded: NDArray
    active: NDArray

    @classmethod
    def of(cls, precision: NDArray, components: NDArray) -> _Workspace:
        n_components, n_features = components.shape
        gram, factor = np.empty((2, n_components, n_components))
        return cls(
            np.arange(n_features),
            precision[0].copy(),
            components.copy(),
            np.empty(n_features),
            gram,
            factor,
            np.empty(n_components),
            np.ones(n_components, dtype=bool),
            np.empty(n_components, dtype=np.int64),
        )


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


def solve_priced_rows(
    X: NDArray,
    precision: NDArray,
    cells: ObservedCells,
    weights: NDArray,
    centre: NDArray,
    components: NDArray,
    prices: NDArray,
    most_rounds: int,
    values: NDArray,
) -> float:
    """Activations of each sample, from where they are, in place.

    Returns what is minimised: the sum of ½ p (x − a W − b)² and of the prices, with the weights.
    """
    workspace = _Workspace.of(precision, components)
    return _solve_rows(
        X, precision, cells, weights, centre, components, prices, most_rounds, values, workspace
    )


@kernel
def _solve_rows(
    X, precision, cells, weights, centre, components, prices, most_rounds, values, workspace
):
    features, seen, own, residual, gram, _, product, bounded, _ = workspace
    n_samples, count = X.shape
    n_components = components.shape[0]
    shared = cells.ends.size == 0
    total = 0.0
    if shared:
        _gram_of_row(seen, own, count, gram)
    for j in range(n_samples):
        if not shared:
            count = _gather(precision, components, cells, j, features, seen, own)
            _gram_of_row(seen, own, count, gram)
        squares = 0.0
        for c in range(count):
            deviation = X[j, features[c]] - centre[features[c]]
            residual[c] = seen[c] * deviation
            squares += residual[c] * deviation
        for k in range(n_components):
            slope = -prices[k]
            for c in range(count):
                slope += own[k, c] * residual[c]
            product[k] = slope
        _descend(gram, product, bounded, most_rounds, values[j])
        total += weights[j] * (0.5 * squares + _quadratic(gram, product, values[j]))
    return total


def sum_for_features(
    X: NDArray,
    precision: NDArray,
    cells: ObservedCells,
    weights: NDArray,
    values: NDArray,
    products: NDArray,
    grams: NDArray,
) -> None:
    """Add Σ_j w p a x and Σ_j w p a aᵀ, for each feature or, without p, for all alike."""
    row, seen = np.empty((2, X.shape[1]))
    _sum_for_features(X, precision, cells, weights, values, products, grams, row, seen)


@kernel
def _sum_for_features(X, precision, cells, weights, values, products, grams, row, seen):
    n_samples, n_features = X.shape
    n_values = values.shape[1]
    shared = cells.ends.size == 0
    for j in range(n_samples):
        if shared:
            for i in range(n_features):
                row[i] = weights[j] * X[j, i]
        else:
            first = cells.ends[j - 1] if j > 0 else 0
            features = cells.features[first : cells.ends[j]]
            if features.size < _FEW * n_features:
                own = precision[0 if precision.shape[0] == 1 else j]
                _add_cells(X[j], own, features, weights[j], values[j], products, grams)
                continue
            for i in range(n_features):
                seen[i] = 0.0
            for i in features:
                seen[i] = weights[j] * precision[0 if precision.shape[0] == 1 else j, i]
            for i in range(n_features):
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


@part
def _add_cells(x, precision, features, weight, values, products, grams):
    """The same for a sample with few observed cells."""
    for k in range(values.size):
        value = weight * values[k]
        if value == 0.0:
            continue
        for i in features:
            products[k, i] += value * precision[i] * x[i]
        for l in range(k + 1):
            both = value * values[l]
            if both == 0.0:
                continue
            for i in features:
                grams[k, l, i] += both * precision[i]


def solve_bounded_features(
    grams: NDArray, products: NDArray, bounded: NDArray, most_rounds: int, values: NDArray
) -> None:
    """Components of each feature of which some are at least 0, from where they are, in place."""
    n_values = len(products)
    gram, (product, own) = np.empty((n_values, n_values)), np.empty((2, n_values))
    _solve_features(grams, products, bounded, most_rounds, values, gram, product, own)


@kernel
def _solve_features(grams, products, bounded, most_rounds, values, gram, product, own):
    n_values, n_features = products.shape
    for i in range(n_features):
        at = i if grams.shape[2] > 1 else 0
        for k in range(n_values):
            own[k], product[k] = values[k, i], products[k, i]
            for l in range(n_values):
                gram[k, l] = grams[k, l, at]
        _descend(gram, product, bounded, most_rounds, own)
        for k in range(n_values):
            values[k, i] = own[k]


@part
def _find_active(values, least, gram, active):
    """Write down which components are active; returns how many."""
    n_active = 0
    for k in range(values.size):
        if values[k] > least[k] and gram[k, k] > 0.0:
            active[n_active] = k
            n_active += 1
    return n_active


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


@part_optimised
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


def sum_residuals(
    X: NDArray,
    precision: NDArray,
    cells: ObservedCells,
    weights: NDArray,
    centre: NDArray,
    components: NDArray,
    values: NDArray,
    least: NDArray,
    squares: NDArray,
    leverages: NDArray,
) -> None:
    """Add each feature's Σ_j w (x − a W − b)² and Σ_j w h over observed cells.

    h is the leverage of a cell on its sample's fit by the components that are active there: those
    above `least`.
    """
    workspace = _Workspace.of(precision, components)
    _sum_residuals(
        X,
        precision,
        cells,
        weights,
        centre,
        components,
        values,
        least,
        squares,
        leverages,
        workspace,
    )


@kernel
def _sum_residuals(
    X, precision, cells, weights, centre, components, values, least, squares, leverages, workspace
):
    features, seen, own, _, gram, factor, solved, _, active = workspace
    n_samples, count = X.shape
    n_components = components.shape[0]
    shared = cells.ends.size == 0
    if shared:
        _gram_of_row(seen, own, count, gram)
    for j in range(n_samples):
        if not shared:
            count = _gather(precision, components, cells, j, features, seen, own)
            _gram_of_row(seen, own, count, gram)
        n_active = _find_active(values[j], least, gram, active)
        _factorise(gram, active, n_active, factor)
        for c in range(count):
            i = features[c]
            residual = X[j, i] - centre[i]
            for k in range(n_components):
                residual -= values[j, k] * own[k, c]
            squares[i] += weights[j] * residual * residual
            leverage = _leverage(own, c, active, n_active, factor, solved)
            leverages[i] += weights[j] * seen[c] * leverage
