"""Least squares in units of the noise, with a price on activations: X ≈ A W + b, A ≥ 0.

Each cell has a precision, 1 / variance. Where all samples have the same precisions, these have one
row. Samples without gaps then share a Gram matrix, and so do features; that of another is the same
less what its gaps have in it, or the sum over its observed cells, whichever is less work.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._numerics.compiled import kernel, part

# A change of a value, against its standard deviation, that counts as none.
NO_CHANGE = 1e-5
# Of a square less those in gaps: below this share of it, nothing is left but rounding.
_ROUNDING = 1e-10
# Pivots are at least this share of what is on the diagonal.
_LEAST_PIVOT = 1e-9
# Leverages are those of so many samples that their matrices take about this many multiplications,
# but of no fewer than this, if there are more.
_MOST_WORK, _LEAST_SAMPLES = 1 << 24, 64


class Listed(NamedTuple):
    """Some cells of each sample, by feature; or of each feature, by sample.

    Attributes
    ----------
    ends : (n,) array
        Where each one's cells end in `members`.
    members : array
    are_gaps : (n,) boolean array
        Whether they are its gaps, and not what is observed of it.
    """

    ends: NDArray
    members: NDArray
    are_gaps: NDArray

    @classmethod
    def of(cls, observed: NDArray, gaps: bool) -> Listed:
        """Of the rows of a boolean array; their gaps, where these are fewer, if they may be."""
        are_gaps = gaps & (2 * observed.sum(axis=1) > observed.shape[1])
        listed = observed != are_gaps[:, None]
        members = np.broadcast_to(np.arange(observed.shape[1], dtype=np.int32), observed.shape)
        return cls(np.cumsum(listed.sum(axis=1)), members[listed], are_gaps)


class Cells(NamedTuple):
    """The cells of each sample, and of each feature."""

    of_samples: Listed
    of_features: Listed

    @classmethod
    def of(cls, observed: NDArray, gaps: bool) -> Cells:
        """Of a boolean array (n, I); by gaps only if precisions are the same for all samples."""
        return cls(Listed.of(observed, gaps), Listed.of(observed.T, gaps))


class RowGrams(NamedTuple):
    """What Gram matrices are made of: rows (n, K), weights of all, and the sum over all rows.

    For samples, rows are the features' components, and weights their precisions.
    """

    rows: NDArray
    weights: NDArray
    whole: NDArray

    @classmethod
    def of(cls, rows: NDArray, weights: NDArray) -> RowGrams:
        """With the sum, for which there is one row of weights."""
        n = rows.shape[1]
        whole = np.zeros((n, n))
        rows = np.ascontiguousarray(rows)
        if len(weights) == 1:
            _add_squares(rows, weights[0], whole)
        return cls(rows, weights, whole)


@part
def _add_square(weight, row, gram):
    """gram += weight row rowᵀ, on and below the diagonal."""
    for k in range(row.size):
        value = weight * row[k]
        if value != 0.0:
            for l in range(k + 1):
                gram[k, l] += value * row[l]


@part
def _mirror(gram):
    """What is below the diagonal, above it."""
    for k in range(gram.shape[0]):
        for l in range(k):
            gram[l, k] = gram[k, l]


@kernel
def _add_squares(rows, weights, gram):
    for n in range(weights.size):
        _add_square(weights[n], rows[n], gram)
    _mirror(gram)


@part
def _cells_of(listed, n):
    """Where the cells start and end, and whether they are gaps."""
    return listed.ends[n - 1] if n > 0 else 0, listed.ends[n], listed.are_gaps[n]


@part
def _sum_gram(grams, listed, n, gram):
    """The Gram matrix of a sample or feature, over its observed cells."""
    rows, all_weights, whole = grams
    first, last, are_gaps = _cells_of(listed, n)
    weights = all_weights[0 if all_weights.shape[0] == 1 else n]
    for k in range(gram.shape[0]):
        for l in range(k + 1):
            gram[k, l] = whole[k, l] if are_gaps else 0.0
    for c in range(first, last):
        m = listed.members[c]
        _add_square(-weights[m] if are_gaps else weights[m], rows[m], gram)
    if are_gaps:
        for k in range(gram.shape[0]):
            if gram[k, k] <= _ROUNDING * whole[k, k]:
                gram[k, k] = 0.0
    _mirror(gram)


@part
def _prepare(gram, inverse, root):
    """1 / Q_kk, 0 if there is none, and √Q_kk."""
    for k in range(inverse.size):
        size = max(gram[k, k], 0.0)
        inverse[k] = 1.0 / size if size > 0.0 else 0.0
        root[k] = math.sqrt(size)


@part
def _descend(quadratic, product, bounded, most_rounds, slope, values):
    """Coordinate descent on ½ v Q v − c v, where the bounded values are at least 0, in place."""
    gram, inverse, root = quadratic
    n_values = values.size
    for k in range(n_values):
        slope[k] = product[k]
    for k in range(n_values):
        if values[k] != 0.0:
            for l in range(n_values):
                slope[l] -= values[k] * gram[k, l]
    for _ in range(most_rounds):
        change = 0.0
        for k in range(n_values):
            new = values[k] + slope[k] * inverse[k]
            if bounded[k] and new < 0.0 and inverse[k] > 0.0:
                new = 0.0
            move = new - values[k]
            if move != 0.0:
                change = max(change, abs(move) * root[k])
                values[k] = new
                for l in range(n_values):
                    slope[l] -= move * gram[k, l]
        if change < NO_CHANGE:
            break


@part
def _value(product, slope, values):
    """½ v Q v − c v, where the slope is c − Q v."""
    total = 0.0
    for k in range(values.size):
        total -= 0.5 * values[k] * (product[k] + slope[k])
    return total


class _Workspace(NamedTuple):
    """For one sample: what is solved with, and errors and precisions of cells, 0 in gaps."""

    gram: NDArray
    inverse: NDArray
    root: NDArray
    product: NDArray
    slope: NDArray
    bounded: NDArray
    error: NDArray
    seen: NDArray

    @classmethod
    def of(cls, n_components: int, n_features: int) -> _Workspace:
        inverse, root, product, slope = np.empty((4, n_components))
        error, seen = np.empty((2, n_features))
        return cls(
            np.empty((n_components, n_components)),
            inverse,
            root,
            product,
            slope,
            np.ones(n_components, dtype=bool),
            error,
            seen,
        )


@part
def _load_cells(x, precision, centre, listed, j, error, seen):
    """x − b and precision of each of a sample's cells; both are 0 in gaps."""
    first, last, are_gaps = _cells_of(listed, j)
    own = precision[0 if precision.shape[0] == 1 else j]
    if are_gaps:
        for i in range(x.size):
            seen[i] = own[i]
            error[i] = x[i] - centre[i]
        for c in range(first, last):
            seen[listed.members[c]] = error[listed.members[c]] = 0.0
    else:
        seen[:] = 0.0
        error[:] = 0.0
        for c in range(first, last):
            i = listed.members[c]
            seen[i] = own[i]
            error[i] = x[i] - centre[i]


def solve_priced_rows(
    X: NDArray,
    cells: Cells,
    weights: NDArray,
    centre: NDArray,
    grams: RowGrams,
    prices: NDArray,
    most_rounds: int,
    values: NDArray,
) -> float:
    """Activations of each sample, from where they are, in place.

    Returns what is minimised: the sum of ½ p (x − a W − b)² and of the prices, with the weights.
    """
    workspace = _Workspace.of(values.shape[1], X.shape[1])
    return _solve_rows(
        X, cells.of_samples, weights, centre, grams, prices, most_rounds, values, workspace
    )


@kernel
def _solve_rows(X, listed, weights, centre, grams, prices, most_rounds, values, workspace):
    own_gram, inverse, root, product, slope, bounded, error, seen = workspace
    rows, precision, whole = grams
    n_features, n_components = rows.shape
    total = 0.0
    is_prepared = False
    for j in range(weights.size):
        first, last, are_gaps = _cells_of(listed, j)
        is_complete = are_gaps and first == last
        if not is_complete:
            _sum_gram(grams, listed, j, own_gram)
        gram = whole if is_complete else own_gram
        if not (is_complete and is_prepared):
            _prepare(gram, inverse, root)
        is_prepared = is_complete
        _load_cells(X[j], precision, centre, listed, j, error, seen)
        squares = 0.0
        for k in range(n_components):
            product[k] = -prices[k]
        for i in range(n_features):
            weighted = seen[i] * error[i]
            if weighted != 0.0:
                squares += weighted * error[i]
                for k in range(n_components):
                    product[k] += weighted * rows[i, k]
        quadratic = gram, inverse, root
        _descend(quadratic, product, bounded, most_rounds, slope, values[j])
        total += weights[j] * (0.5 * squares + _value(product, slope, values[j]))
    return total


def sum_products(X: NDArray, precision: NDArray, weights: NDArray, values: NDArray) -> NDArray:
    """Σ_j w p a x (K, I); X is 0 in gaps."""
    products = np.zeros((values.shape[1], X.shape[1]))
    _sum_products(X, precision, weights, values, np.empty(X.shape[1]), products)
    return products


@kernel
def _sum_products(X, precision, weights, values, row, products):
    n_features = row.size
    for j in range(weights.size):
        own = precision[0 if precision.shape[0] == 1 else j]
        for i in range(n_features):
            row[i] = weights[j] * own[i] * X[j, i]
        for k in range(values.shape[1]):
            value = values[j, k]
            if value != 0.0:
                for i in range(n_features):
                    products[k, i] += value * row[i]


def sum_grams(cells: Cells, grams: RowGrams) -> NDArray:
    """Σ_j w p a aᵀ (I, K, K) for each feature, over its observed cells."""
    n_features, n_values = len(cells.of_features.ends), grams.rows.shape[1]
    summed = np.empty((n_features, n_values, n_values))
    _sum_grams(cells.of_features, grams, summed)
    return summed


@kernel
def _sum_grams(listed, grams, summed):
    for i in range(summed.shape[0]):
        _sum_gram(grams, listed, i, summed[i])


def solve_bounded_features(
    grams: NDArray, products: NDArray, bounded: NDArray, most_rounds: int, values: NDArray
) -> None:
    """Components of each feature of which some are at least 0, from where they are, in place.

    Gram matrices (n, K, K) are those of each feature, or one for all.
    """
    _solve_features(grams, products, bounded, most_rounds, values, *np.empty((5, len(products))))


@kernel
def _solve_features(
    grams, products, bounded, most_rounds, values, inverse, root, product, slope, own
):
    n_values, n_features = products.shape
    for i in range(n_features):
        gram = grams[i if grams.shape[0] > 1 else 0]
        for k in range(n_values):
            own[k], product[k] = values[k, i], products[k, i]
        _prepare(gram, inverse, root)
        _descend((gram, inverse, root), product, bounded, most_rounds, slope, own)
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
def _invert(gram, active, n_active, row, inverse):
    """Inverse of the active components' Gram matrix, by Gauss and Jordan.

    Where it is singular, pivots are small numbers instead.
    """
    for a in range(n_active):
        for b in range(n_active):
            inverse[a, b] = gram[active[a], active[b]]
    for a in range(n_active):
        least = _LEAST_PIVOT * gram[active[a], active[a]] + 1e-300
        pivot = 1.0 / max(inverse[a, a], least)
        inverse[a, a] = 1.0
        for c in range(n_active):
            row[c] = inverse[a, c] * pivot
            inverse[a, c] = 0.0
        for b in range(n_active):
            factor = inverse[b, a]
            if b == a:
                factor = -1.0
            else:
                inverse[b, a] = 0.0
            for c in range(n_active):
                inverse[b, c] -= factor * row[c]


@part
def _leverage(row, active, n_active, inverse):
    """Variance of the fit of a feature by the active components."""
    leverage = 0.0
    for a in range(n_active):
        total = 0.0
        for b in range(n_active):
            total += inverse[a, b] * row[active[b]]
        leverage += total * row[active[a]]
    return leverage


def sum_leverages(
    cells: Cells, weights: NDArray, grams: RowGrams, values: NDArray, least: NDArray
) -> NDArray:
    """Each feature's Σ_j w h over observed cells.

    h is the leverage of a cell on its sample's fit by the components that are active there: those
    above `least`. Where components are many, it is taken from some of the samples.
    """
    n_features, n_components = grams.rows.shape
    leverages = np.zeros(n_features)
    matrices, row = np.zeros((3, n_components, n_components)), np.empty(n_components)
    active = np.empty(n_components, dtype=np.int64)
    every = _every(len(weights), n_components)
    workspace = (*matrices, row, active)
    _sum_leverages(every, cells.of_samples, weights, grams, values, least, workspace, leverages)
    seen = weights[::every].sum()
    return leverages * (weights.sum() / seen if seen > 0 else 1.0)


def _every(n_samples: int, n_components: int) -> int:
    """Leverages are those of one in so many samples."""
    wanted = max(_LEAST_SAMPLES, _MOST_WORK // n_components**3)
    return max(1, n_samples // wanted)


@kernel
def _sum_leverages(every, listed, weights, grams, values, least, workspace, leverages):
    gram, inverse, in_all, row, active = workspace
    rows, precision, _ = grams
    n_features, n_components = rows.shape
    for j in range(0, weights.size, every):
        first, last, are_gaps = _cells_of(listed, j)
        _sum_gram(grams, listed, j, gram)
        n_active = _find_active(values[j], least, gram, active)
        _invert(gram, active, n_active, row, inverse)
        # Of samples whose gaps are listed all cells are summed up at the end, and gaps taken off.
        if are_gaps:
            for a in range(n_active):
                for b in range(n_active):
                    in_all[active[a], active[b]] += weights[j] * inverse[a, b]
        own = precision[0 if precision.shape[0] == 1 else j]
        for c in range(first, last):
            i = listed.members[c]
            weight = weights[j] * own[i]
            leverage = weight * _leverage(rows[i], active, n_active, inverse)
            leverages[i] += -leverage if are_gaps else leverage
    for i in range(n_features):
        for k in range(n_components):
            total = 0.0
            for l in range(n_components):
                total += in_all[k, l] * rows[i, l]
            leverages[i] += precision[0, i] * rows[i, k] * total
