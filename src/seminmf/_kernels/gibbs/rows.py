"""Draws of activations from their posterior, given the components: X ≈ A W + b, normal noise.

Activations have gamma priors of any shape. With the others given, the density of one is

    a^(α − 1) exp(t a − h a² / 2),    a > 0,

and a slice through its second factor is an interval, on which a power is drawn by its inverse: no
draw is refused, and a small change of the data changes the draws a little.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._numerics.compiled import kernel, part

# Activations do not become 0: logarithms of them are summed up.
_LEAST = 1e-200
# Values that are less probable than 0 by so many nats are not drawn in a lifetime.
_FAR = 30.0
# Rounds of coordinate descent.
_DESCENTS = 20
# Values of a sample are told apart, for its random numbers, to this share of the largest.
_COARSE = 2.0**20


class CellNoise(NamedTuple):
    """Variances of cells: `features` (I,) for all samples, and `known` (n, I) or (0, 0) besides."""

    features: NDArray
    known: NDArray


class Conditions(NamedTuple):
    """What the activations of a sample depend on besides its data.

    Attributes
    ----------
    components, centre : (K, I) and (I,) arrays
    shape, rate : (K,) arrays
        Of the activations' priors.
    gram : (K, K) array
        Σ_i W_ki W_li / variance_i, for samples without gaps.
    """

    components: NDArray
    centre: NDArray
    shape: NDArray
    rate: NDArray
    gram: NDArray


class RowSums(NamedTuple):
    """Sums over samples, with their weights; V values are activations, and 1 for an intercept.

    Attributes
    ----------
    products : (V, I) array
        Σ_j q a x. q is 0 in gaps, 1 / variance where cells have their own, and else 1.
    squares, counts : (I,) arrays
        Σ_j q x², and the number of observed cells.
    whole : (V, V) array
        Σ_j a aᵀ of samples without gaps.
    grams : (V, V, I) array
        Σ_j q a aᵀ of all others.
    totals : (2, K) array
        Σ_j a and Σ_j ln a.
    """

    products: NDArray
    squares: NDArray
    counts: NDArray
    whole: NDArray
    grams: NDArray
    totals: NDArray

    @classmethod
    def empty(cls, n_components: int, n_values: int, n_features: int) -> RowSums:
        """Zeros."""
        return cls(
            np.zeros((n_values, n_features)),
            np.zeros(n_features),
            np.zeros(n_features),
            np.zeros((n_values, n_values)),
            np.zeros((n_values, n_values, n_features)),
            np.zeros((2, n_components)),
        )

    def symmetric(self) -> RowSums:
        """With what is above the diagonals, which the kernel leaves out."""
        whole = np.tril(self.whole) + np.tril(self.whole, -1).T
        above = np.tril(self.grams.transpose(2, 0, 1), -1).transpose(2, 1, 0)
        return self._replace(whole=whole, grams=self.grams + above)


@part
def _draw_values(gram, product, shape, n_scans, values):
    """Draw the values of a sample one after the other, some times, in place."""
    n_components = values.size
    for _ in range(n_scans):
        for k in range(n_components):
            curvature, value = gram[k, k], values[k]
            slope = product[k] + curvature * value
            for l in range(n_components):
                slope -= gram[k, l] * values[l]
            # Where h a² / 2 − t a is below a level.
            level = 0.5 * curvature * value * value - slope * value
            level -= math.log(1.0 - np.random.random())
            root = math.sqrt(max(slope * slope + 2.0 * curvature * level, 0.0))
            if slope > 0.0:
                upper = (slope + root) / curvature
                lower = max(0.0, -2.0 * level / (slope + root))
            else:
                upper, lower = 2.0 * level / (root - slope), 0.0
            least = (lower / upper) ** shape[k]
            share = least + (1.0 - least) * np.random.random()
            values[k] = max(upper * share ** (1.0 / shape[k]), _LEAST)


@part
def _energy(gram, product, values):
    """½ aᵀ G a − pᵀ a: minus the log-density of a sample's values, but for the powers; 0 at 0."""
    total = 0.0
    for k in range(values.size):
        row = -product[k]
        for l in range(values.size):
            row += 0.5 * gram[k, l] * values[l]
        total += row * values[k]
    return total


@part
def _start_again(gram, product, values):
    """Values near the most probable ones, from 0 by coordinate descent."""
    for k in range(values.size):
        values[k] = 0.0
    for _ in range(_DESCENTS):
        for k in range(values.size):
            slope = product[k] + gram[k, k] * values[k]
            for l in range(values.size):
                slope -= gram[k, l] * values[l]
            values[k] = slope / gram[k, k] if slope > 0.0 and gram[k, k] > 0.0 else 0.0
    for k in range(values.size):
        values[k] = max(values[k], _LEAST)


@part
def _weigh(row, j, scale, variances, known, relative, centre, precision, deviation):
    """Precisions of a sample's cells, 0 in gaps, and (x − b) times these; whether it is whole."""
    whole = True
    j = 0 if known.shape[0] == 1 else j
    for i in range(row.size):
        x = row[i] * scale
        variance = variances[i] * relative[i]
        if known.size > 0:
            variance += known[j, i]
        seen = x == x
        whole &= seen
        precision[i] = 1.0 / variance if seen else 0.0
        deviation[i] = precision[i] * (x - centre[i]) if seen else 0.0
    return whole and known.size == 0


@part
def _weighted_gram(components, precision, gram):
    """Σ_i p_i W_ki W_li of a sample."""
    n_components, n_features = components.shape
    for k in range(n_components):
        for l in range(k + 1):
            total = 0.0
            for i in range(n_features):
                total += precision[i] * components[k, i] * components[l, i]
            gram[k, l] = gram[l, k] = total


@part
def _slopes(components, rate, deviation, product):
    """Σ_i W_ki p_i (x_i − b_i) − ρ_k of a sample."""
    n_components, n_features = components.shape
    for k in range(n_components):
        total = -rate[k]
        for i in range(n_features):
            total += components[k, i] * deviation[i]
        product[k] = total


@part
def _add_row(row, scale, weight, own_noise, whole, precision, values, sums):
    """Add a sample to the sums; `values` has a 1 behind the activations if there is an intercept.

    `precision` is overwritten by q.
    """
    products, squares, counts, all_whole, grams, totals = sums
    n_values = products.shape[0]
    for k in range(totals.shape[1]):
        totals[0, k] += weight * values[k]
        totals[1, k] += weight * math.log(values[k])
    for i in range(row.size):
        seen = precision[i] > 0.0
        x = row[i] * scale if seen else 0.0
        q = weight * (precision[i] if own_noise else (1.0 if seen else 0.0))
        counts[i] += weight if seen else 0.0
        squares[i] += q * x * x
        precision[i] = q
    for k in range(n_values):
        for i in range(row.size):
            x = row[i] * scale if precision[i] > 0.0 else 0.0
            products[k, i] += values[k] * precision[i] * x
        for l in range(k + 1):
            both = values[k] * values[l]
            if whole:
                all_whole[k, l] += weight * both
            else:
                for i in range(row.size):
                    grams[k, l, i] += both * precision[i]


class _Workspace(NamedTuple):
    """For one sample: arrays of features, of components, (K, K), and of V values."""

    precision: NDArray
    deviation: NDArray
    relative: NDArray
    signal: NDArray
    product: NDArray
    gram: NDArray
    values: NDArray

    @classmethod
    def of_size(cls, n_components: int, n_values: int, n_features: int) -> _Workspace:
        precision, deviation, relative, signal = np.ones((4, n_features))
        gram = np.empty((n_components, n_components))
        values = np.ones(n_values)
        return cls(precision, deviation, relative, signal, np.empty(n_components), gram, values)


def draw_rows(
    X: NDArray,
    scale: float,
    noise: CellNoise,
    conditions: Conditions,
    weights: NDArray,
    n_scans: int,
    seed: np.uint32,
    activations: NDArray,
    sums: RowSums,
) -> None:
    """Draw the activations of samples, in place, and add up what the components need."""
    (n_components, n_features), n_values = conditions.components.shape, len(sums.products)
    workspace = _Workspace.of_size(n_components, n_values, n_features)
    _draw_rows(X, scale, noise, conditions, weights, n_scans, seed, activations, sums, workspace)


@kernel
def _draw_rows(X, scale, noise, conditions, weights, n_scans, seed, activations, sums, workspace):
    components, centre, shape, rate, shared = conditions
    precision, deviation, even, _, product, gram, values = workspace
    n_components, known = components.shape[0], noise.known
    own = values[:n_components]
    np.random.seed(seed)
    for j in range(X.shape[0]):
        row = X[j]
        whole = _weigh(row, j, scale, noise.features, known, even, centre, precision, deviation)
        if not whole:
            _weighted_gram(components, precision, gram)
        _slopes(components, rate, deviation, product)
        for k in range(n_components):
            own[k] = activations[j, k]
        _draw_values(shared if whole else gram, product, shape, n_scans, own)
        for k in range(n_components):
            activations[j, k] = own[k]
        _add_row(row, scale, weights[j], known.size > 0, whole, precision, values, sums)


@part
def _seed_of(row):
    """A number that the values of a sample decide, whatever their unit."""
    largest = 0.0
    for i in range(row.size):
        largest = max(largest, abs(row[i]) if row[i] == row[i] else 0.0)
    factor = _COARSE / largest if largest > 0.0 else 0.0
    code = np.uint64(14695981039346656037)
    for i in range(row.size):
        coarse = math.floor(row[i] * factor + 0.5) if row[i] == row[i] else -4.0 * _COARSE
        code = (code ^ np.uint64(np.int64(coarse) + np.int64(1 << 40))) * np.uint64(1099511628211)
    return np.uint32(code >> np.uint64(32))


class Draws(NamedTuple):
    """Draws of all that activations depend on, S of each (`Conditions`).

    `growing` is the share of the noise that grows with the signal, whose mean in the fit is
    `typical` (I,).
    """

    components: NDArray
    centre: NDArray
    shape: NDArray
    rate: NDArray
    grams: NDArray
    variances: NDArray
    growing: float
    typical: NDArray


@kernel
def _fill_seeds(X, seeds):
    for j in range(X.shape[0]):
        seeds[j] = _seed_of(X[j])


def seeds_of(X: NDArray) -> NDArray:
    """A seed for each sample."""
    seeds = np.empty(len(X), np.uint32)
    _fill_seeds(X, seeds)
    return seeds


@part
def _add_signal(components, values, signal):
    """Add what a sample's components put into its cells, Σ_k a_k |W_ki|."""
    for k in range(values.size):
        for i in range(signal.size):
            signal[i] += values[k] * abs(components[k, i])


class Drawn(NamedTuple):
    """Where activations for S draws go: means and mean squares (J, K), all (S, J, K) or none."""

    means: NDArray
    squares: NDArray
    kept: NDArray


def draw_rows_given(
    X: NDArray,
    scale: float,
    known: NDArray,
    draws: Draws,
    n_first: int,
    n_scans: int,
    start: NDArray,
    out: Drawn,
) -> None:
    """Activations of each sample for each of some draws, from a sample's own random numbers.

    So many of the draws are gone through before those that count, to forget the start.
    """
    _, n_components, n_features = draws.components.shape
    workspace = _Workspace.of_size(n_components, n_components, n_features)
    _draw_rows_given(X, scale, known, draws, n_first, n_scans, start, out, workspace)


@kernel
def _draw_rows_given(X, scale, known, draws, n_first, n_scans, start, out, workspace):
    precision, deviation, relative, signal, product, gram, values = workspace
    n_draws, n_components, n_features = draws.components.shape
    means, squares, kept = out
    grows, n_late = draws.growing > 0.0, n_first // 2
    for j in range(X.shape[0]):
        row = X[j]
        np.random.seed(_seed_of(row))
        for k in range(n_components):
            values[k], means[j, k], squares[j, k] = start[k], 0.0, 0.0
        for i in range(n_features):
            relative[i], signal[i] = 1.0, 0.0
        for turn in range(-n_first, n_draws):
            s = turn if turn >= 0 else (-turn) % n_draws
            components, variances, centre = draws.components[s], draws.variances[s], draws.centre[s]
            if grows and turn == 0:
                for i in range(n_features):
                    share = signal[i] / (n_late * draws.typical[i])
                    relative[i] = 1.0 - draws.growing + draws.growing * share
            whole = _weigh(row, j, scale, variances, known, relative, centre, precision, deviation)
            whole &= not grows
            if not whole:
                _weighted_gram(components, precision, gram)
            _slopes(components, draws.rate[s], deviation, product)
            own_gram = draws.grams[s] if whole else gram
            # Values that suit the components of one draw may be absurd for those of the next: where
            # components are nearly alike, they would grow from draw to draw.
            if not _energy(own_gram, product, values) <= _FAR:
                _start_again(own_gram, product, values)
            _draw_values(own_gram, product, draws.shape[s], n_scans, values)
            if grows and -n_late <= turn < 0:
                _add_signal(components, values, signal)
            if turn >= 0:
                _add_draw(s, j, values, n_draws, means, squares, kept)


@part
def _add_draw(s, j, values, n_draws, means, squares, kept):
    """Add a draw of a sample to its means, and keep it if there is room for it."""
    for k in range(values.size):
        means[j, k] += values[k] / n_draws
        squares[j, k] += values[k] * values[k] / n_draws
        if kept.shape[0] > 0:
            kept[s, j, k] = values[k]
