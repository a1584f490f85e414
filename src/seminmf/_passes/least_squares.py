"""Least squares, X ≈ A W with A ≥ 0: a sweep over the samples that moves A and sums up for W.

The rules for a sample's activations a see its residual, x − a W, and the Gram matrix of W. Where
the sample has gaps, both are over its observed features alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._sources import Source, row_ranges
from .compiled import kernel, part, prefer_wide_vectors
from .pool import Pool

# Rules for the activations.
KEEP, MULTIPLY, DESCEND = 0, 1, 2
# Rounds over a sample's coordinates in one sweep; more are better spent after a step of W.
_ROUNDS = 4


class Sums(NamedTuple):
    """What a sweep found.

    Attributes
    ----------
    activations : (J, K) array
        After the rule.
    ahead : (J, K) array
        The same, extrapolated; the sums that follow are at these.
    loss : float
        Σ weight (x − a W)² at the activations that the sweep started from.
    products : (K, I) array
        Σ_j weight a x, over the observed cells of each feature.
    grams : (1 or I, K, K) array
        Σ_j weight a aᵀ, for each feature if there are gaps.
    """

    activations: NDArray
    ahead: NDArray
    loss: float
    products: NDArray
    grams: NDArray


@part
def _residual(x, values, components, residual):
    """x − a W into `residual`, 0 in gaps; returns its square and whether there are gaps."""
    n_components, n_features = components.shape
    for i in range(n_features):
        residual[i] = x[i]
    for k in range(n_components):
        for i in range(n_features):
            residual[i] -= values[k] * components[k, i]
    square, gaps = 0.0, False
    for i in range(n_features):
        if math.isnan(residual[i]):
            residual[i] = 0.0
            gaps = True
        square += residual[i] * residual[i]
    return square, gaps


@kernel
def gram_of_row(x, components, gram):
    """W Wᵀ over the observed features of a sample."""
    n_components, n_features = components.shape
    for k in range(n_components):
        for l in range(k + 1):
            total = 0.0
            for i in range(n_features):
                if not math.isnan(x[i]):
                    total += components[k, i] * components[l, i]
            gram[k, l] = gram[l, k] = total


@part
def _descend(values, gradient, gram):
    """Coordinate descent: each activation in turn to its best value (HALS)."""
    n_components = len(values)
    for _ in range(_ROUNDS):
        for k in range(n_components):
            if gram[k, k] > 0.0:
                step = max(gradient[k] / gram[k, k], -values[k])
                values[k] += step
                for l in range(n_components):
                    gradient[l] -= step * gram[k, l]


@part
def _multiply(values, gradient, gram, updated):
    """The rule of Ding, Li and Jordan: a √((c⁺ + a Q⁻) / (c⁻ + a Q⁺)), c = W x, Q the Gram."""
    n_components = len(values)
    for k in range(n_components):
        positive = negative = 0.0
        for l in range(n_components):
            positive += values[l] * max(gram[k, l], 0.0)
            negative += values[l] * max(-gram[k, l], 0.0)
        product = gradient[k] + positive - negative
        above, below = max(product, 0.0) + negative, max(-product, 0.0) + positive
        # Where both are 0 the activation is 0, or changes nothing.
        updated[k] = values[k] * math.sqrt(above / below) if below > 0.0 else values[k]
    for k in range(n_components):
        values[k] = updated[k]


@kernel
def _sweep_rows(
    rule, momentum, factor, X, weights, components, gram, start, before, moved, ahead, sums
):
    """A sweep over consecutive samples, in units of 1 / factor; returns the loss."""
    prefer_wide_vectors()
    n_samples, n_features = X.shape
    n_components = len(components)
    x, residual = np.empty(n_features), np.empty(n_features)
    values, gradient, updated = (
        np.empty(n_components),
        np.empty(n_components),
        np.empty(n_components),
    )
    own = np.empty((n_components, n_components))
    loss = 0.0
    for j in range(n_samples):
        for i in range(n_features):
            x[i] = factor * X[j, i]
        for k in range(n_components):
            values[k] = start[j, k]
        square, gaps = _residual(x, values, components, residual)
        loss += weights[j] * square
        if rule != KEEP:
            for k in range(n_components):
                total = 0.0
                for i in range(n_features):
                    total += residual[i] * components[k, i]
                gradient[k] = total
            used = gram
            if gaps:
                gram_of_row(x, components, own)
                used = own
            if rule == DESCEND:
                _descend(values, gradient, used)
            else:
                _multiply(values, gradient, used, updated)
        for k in range(n_components):
            moved[j, k] = values[k]
            values[k] = max(values[k] + momentum * (moved[j, k] - before[j, k]), 0.0)
            ahead[j, k] = values[k]
        _add_up(x, weights[j], values, gaps, sums[0], sums[1])
    return loss


@part
def _add_up(x, weight, values, gaps, products, grams):
    """Add a sample to the sums."""
    n_components, n_features = products.shape
    shared = len(grams) == 1
    for k in range(n_components):
        scaled = weight * values[k]
        if gaps:
            for i in range(n_features):
                products[k, i] += 0.0 if math.isnan(x[i]) else scaled * x[i]
        else:
            for i in range(n_features):
                products[k, i] += scaled * x[i]
        if shared:
            for l in range(n_components):
                grams[0, k, l] += scaled * values[l]
    if not shared:
        for i in range(n_features):
            if not math.isnan(x[i]):
                for k in range(n_components):
                    for l in range(n_components):
                        grams[i, k, l] += weight * values[k] * values[l]


def sweep(
    source: Source,
    unit: float,
    sample_weight: NDArray,
    components: NDArray,
    activations: NDArray,
    pool: Pool,
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
    moved, ahead = np.empty_like(activations), np.empty_like(activations)
    gram = components @ components.T

    def task(rows: tuple[int, int]) -> tuple[float, NDArray, NDArray]:
        part = slice(*rows)
        products = np.zeros((n_components, n_features))
        grams = np.zeros((1 if complete else n_features, n_components, n_components))
        loss = _sweep_rows(
            rule,
            momentum,
            1 / unit,
            source.rows(*rows),
            sample_weight[part],
            components,
            gram,
            activations[part],
            before[part],
            moved[part],
            ahead[part],
            (products, grams),
        )
        return loss, products, grams

    losses, products, grams = zip(*pool.map(task, row_ranges(source, n_components)), strict=True)
    return Sums(moved, ahead, sum(losses), np.sum(products, axis=0), np.sum(grams, axis=0))
