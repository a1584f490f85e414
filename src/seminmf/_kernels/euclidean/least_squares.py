"""Least squares, X ≈ A W with A ≥ 0: a sweep over the samples that moves A and sums up for W.

The rules for a sample's activations a see its residual, x − a W, and the Gram matrix of W. Where
the sample has gaps, both are over its observed features alone.

Few observed cells may leave a component free to be anything in a gap. There the square of what each
component puts into it, a_k W_ki, counts with a small weight: a ridge on the diagonals of the Gram
matrices, which decides where the data do not, in any unit, and is nothing where there are no gaps.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._data.executor import LocalExecutor
from ..._data.source import BlockSource, row_ranges
from ..._numerics.arguments import check_arrays
from ..._numerics.compiled import kernel_with_arrays, part, part_with_arrays
from ..simd.products import dots, multiply

# Rules for the activations.
KEEP, MULTIPLY, DESCEND = 0, 1, 2
# Rounds over a sample's coordinates in one sweep; more are better spent after a step of W.
_ROUNDS = 4
# Samples that are treated at the same time, a panel, lie side by side in memory: a vector has one
# number of each, so that neither few features nor few components leave it half empty. A panel of
# few features is wide, one of many is narrow enough for the cache.
_WIDEST, _NARROWEST = 64, 16
_PANEL_CELLS = 1 << 14
# Weight of the squares in gaps, against those of errors in cells.
GAP_WEIGHT = 1e-4
# Tasks of a sweep, fewer where the Gram matrices of all features are large.
_MOST_TASKS, _MOST_NUMBERS = 64, 1 << 24


class Sums(NamedTuple):
    """What a sweep found.

    Attributes
    ----------
    activations : (J, K) array
        After the rule.
    ahead : (J, K) array
        The same, extrapolated; the sums that follow are at these.
    loss : float
        Σ weight (x − a W)² at the activations that the sweep started from, and the squares in gaps.
    products : (K, I) array
        Σ_j weight a x, over the observed cells of each feature.
    grams : (1 or I, K, K) array
        Σ_j weight a aᵀ, for each feature if there are gaps, with the squares in them.
    """

    activations: NDArray
    ahead: NDArray
    loss: float
    products: NDArray
    grams: NDArray


@part
def panel_width(n_features):
    """How many samples a panel has."""
    width = _WIDEST
    while width > _NARROWEST and width * n_features > _PANEL_CELLS:
        width //= 2
    return width


@part
def gram_of_row(x, components, gap_weight, gram):
    """W Wᵀ over the observed features of a sample, and the squares in its gaps."""
    n_components, n_features = components.shape
    for k in range(n_components):
        for l in range(k + 1):
            in_gaps = gap_weight if k == l else 0.0
            total = 0.0
            for i in range(n_features):
                weight = in_gaps if math.isnan(x[i]) else 1.0
                total += weight * components[k, i] * components[l, i]
            gram[k, l] = gram[l, k] = total


@part
def _fetch(X, factor, start, first, n_rows, x, seen, values):
    """Samples and activations of a panel, gaps as 0; returns whether there are any.

    The last sample fills the panel.
    """
    n_features, width = x.shape
    n_components = len(values)
    for p in range(width):
        j = first + min(p, n_rows - 1)
        for i in range(n_features):
            x[i, p] = factor * X[j, i]
        for k in range(n_components):
            values[k, p] = start[j, k]
    gaps = False
    for i in range(n_features):
        for p in range(width):
            gap = math.isnan(x[i, p])
            gaps = gaps or gap
            seen[i, p] = 0.0 if gap else 1.0
            x[i, p] = 0.0 if gap else x[i, p]
    return gaps


@part
def _residuals(x, seen, values, transposed, residual, squares):
    """x − a W into `residual`, 0 in gaps, and the sum of its squares for each sample."""
    width = len(squares)
    multiply(transposed, values, 0.0, residual)
    squares[:] = 0.0
    for i in range(len(x)):
        row, x_row, seen_row = residual[i], x[i], seen[i]
        for p in range(width):
            row[p] = (x_row[p] - row[p]) * seen_row[p]
            squares[p] += row[p] * row[p]


@part_with_arrays
def _count_gaps(seen, squared_components, values, gradient, squares):
    """Add the squares in gaps to each sample's loss, and what they pull to its gradient."""
    n_components, width = values.shape
    pull = np.empty((n_components, width))
    multiply(squared_components, 1.0 - seen, 0.0, pull)
    for k in range(n_components):
        for p in range(width):
            pulled = GAP_WEIGHT * pull[k, p] * values[k, p]
            gradient[k, p] -= pulled
            squares[p] += pulled * values[k, p]


@part
def _grams_of_panel(X, first, n_rows, components, gram, own, gaps, grams):
    """Each sample's Gram matrix: its own where it has gaps, and else the one for all."""
    n_components, width = grams.shape[1:]
    for p in range(width):
        used = gram
        if gaps:
            gram_of_row(X[first + min(p, n_rows - 1)], components, GAP_WEIGHT, own)
            used = own
        for k in range(n_components):
            for l in range(n_components):
                grams[k, l, p] = used[k, l]


@part
def _descend(values, gradient, grams, step):
    """Coordinate descent: each activation in turn to its best value (HALS)."""
    n_components, width = values.shape
    for _ in range(_ROUNDS):
        for k in range(n_components):
            value, slope, size = values[k], gradient[k], grams[k, k]
            for p in range(width):
                best = max(slope[p] / (size[p] if size[p] > 0.0 else 1.0), -value[p])
                step[p] = best if size[p] > 0.0 else 0.0
                value[p] += step[p]
            for l in range(n_components):
                slope, gram = gradient[l], grams[k, l]
                for p in range(width):
                    slope[p] -= step[p] * gram[p]


@part_with_arrays
def _multiply(values, gradient, grams, updated):
    """The rule of Ding, Li and Jordan: a √((c⁺ + a Q⁻) / (c⁻ + a Q⁺)), c = W x, Q the Gram."""
    n_components, width = values.shape
    above, below = np.empty(width), np.empty(width)
    for k in range(n_components):
        above[:] = 0.0
        below[:] = 0.0
        for l in range(n_components):
            value, gram = values[l], grams[k, l]
            for p in range(width):
                above[p] += value[p] * max(-gram[p], 0.0)
                below[p] += value[p] * max(gram[p], 0.0)
        value, slope, new = values[k], gradient[k], updated[k]
        for p in range(width):
            product = slope[p] + below[p] - above[p]
            more, less = above[p] + max(product, 0.0), below[p] + max(-product, 0.0)
            # Where both are 0 the activation is 0, or changes nothing.
            ratio = math.sqrt(more / (less if less > 0.0 else 1.0))
            new[p] = value[p] * (ratio if less > 0.0 else 1.0)
    values[:] = updated


@part
def _look_ahead(momentum, first, n_rows, values, before, moved, ahead):
    """Write down the new activations, and extrapolate them."""
    for p in range(n_rows):
        j = first + p
        for k in range(len(values)):
            moved[j, k] = values[k, p]
            value = values[k, p] + momentum * (values[k, p] - before[j, k])
            values[k, p] = ahead[j, k] = max(value, 0.0)


@part_with_arrays
def _add_up(x, seen, panel_weights, values, scaled, spare, products, grams):
    """Add a panel to the sums."""
    n_components, n_features = products.shape
    width = len(panel_weights)
    for k in range(n_components):
        row, value = scaled[0, k], values[0, k]
        for p in range(width):
            row[p] = panel_weights[p] * value[p]
    dots(scaled, x, n_components, spare[0])
    products += spare[0]
    if len(grams) == 1:
        dots(scaled, values, n_components, spare[1])
        grams[0] += spare[1]
    for i in range(n_features if len(grams) > 1 else 0):
        for k in range(n_components):
            for l in range(k + 1):
                in_gaps = GAP_WEIGHT if k == l else 0.0
                total = 0.0
                for p in range(width):
                    weight = seen[i, p] + in_gaps * (1.0 - seen[i, p])
                    total += scaled[0, k, p] * values[0, l, p] * weight
                grams[i, k, l] += total
                if l < k:
                    grams[i, l, k] += total


@kernel_with_arrays
def _sweep_rows(
    rule, momentum, factor, X, weights, components, gram, start, before, moved, ahead, sums
):
    """A sweep over consecutive samples, in units of 1 / factor; returns the loss."""
    n_samples, n_features = X.shape
    n_components = len(components)
    width = panel_width(n_features)
    transposed, squared_components = components.T.copy(), components * components
    # Those with a leading axis of 1 are sums over one pair, for `dots`.
    x, values = np.empty((1, n_features, width)), np.empty((1, n_components, width))
    seen, residual = np.empty((n_features, width)), np.empty((n_features, width))
    gradient, scaled = np.empty((n_components, width)), np.empty((1, n_components, width))
    grams, own = np.empty((n_components, n_components, width)), np.empty_like(gram)
    squares, panel_weights = np.empty(width), np.empty(width)
    spare = np.empty((n_components, n_features)), np.empty((n_components, n_components))
    loss, filled = 0.0, False
    for first in range(0, n_samples, width):
        n_rows = min(width, n_samples - first)
        for p in range(width):
            panel_weights[p] = weights[first + p] if p < n_rows else 0.0
        gaps = _fetch(X, factor, start, first, n_rows, x[0], seen, values[0])
        _residuals(x[0], seen, values[0], transposed, residual, squares)
        multiply(components, residual, 0.0, gradient)
        if gaps:
            _count_gaps(seen, squared_components, values[0], gradient, squares)
        for p in range(width):
            loss += panel_weights[p] * squares[p]
        if rule != KEEP:
            if gaps or not filled:
                _grams_of_panel(X, first, n_rows, components, gram, own, gaps, grams)
                filled = not gaps
            if rule == DESCEND:
                _descend(values[0], gradient, grams, squares)
            else:
                _multiply(values[0], gradient, grams, scaled[0])
        _look_ahead(momentum, first, n_rows, values[0], before, moved, ahead)
        _add_up(x, seen, panel_weights, values, scaled, spare, sums[0], sums[1])
    return loss


def sweep(
    source: BlockSource,
    unit: float,
    sample_weight: NDArray,
    components: NDArray,
    activations: NDArray,
    executor: LocalExecutor,
    *,
    rule: int,
    complete: bool,
    before: NDArray | None = None,
    momentum: float = 0.0,
) -> Sums:
    """Sweep over all samples.

    The new activations are extrapolated by `momentum` times their way from `before`. `complete`
    says that there are no gaps.
    """
    n_components, n_features = components.shape
    before = activations if before is None else before
    check_arrays(
        {"J": source.shape[0], "K": n_components, "I": source.shape[1]},
        activations=("JK", activations),
        before=("JK", before),
        components=("KI", components),
        sample_weight=("J", sample_weight),
    )
    moved, ahead = np.empty_like(activations), np.empty_like(activations)
    gram = components @ components.T

    def task(rows: tuple[int, int]) -> tuple[float, NDArray, NDArray]:
        products = np.zeros((n_components, n_features))
        grams = np.zeros((1 if complete else n_features, n_components, n_components))
        loss = 0.0
        for block in source.blocks(*rows):
            span = block.samples
            loss += _sweep_rows(
                rule,
                momentum,
                1 / unit,
                block.X,
                sample_weight[span],
                components,
                gram,
                activations[span],
                before[span],
                moved[span],
                ahead[span],
                (products, grams),
            )
        return loss, products, grams

    most = _MOST_TASKS if complete else max(_MOST_NUMBERS // (n_features * n_components**2), 1)
    ranges = row_ranges(source, n_components, min(most, _MOST_TASKS))
    loss, products, grams = 0.0, np.zeros((n_components, n_features)), np.zeros(1)
    for part_loss, part_products, part_grams in executor.map(task, ranges):
        loss += part_loss
        products += part_products
        grams = grams + part_grams
    return Sums(moved, ahead, loss, products, grams)
