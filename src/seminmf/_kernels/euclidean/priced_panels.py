"""Least squares with a price on activations, where all samples have the same Gram matrix.

Samples lie side by side, a panel of them, so that a vector has one number of each: neither few
features nor few components leave it half empty.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..._numerics.compiled import kernel, part
from ..simd.products import multiply
from ..simd.vectors import add, aligned, greatest, lanes, load, multiply_add, negative, splat, store
from .priced import NO_CHANGE

# Samples of a panel: four vectors, whose sums do not wait for each other.
WIDTH = 32


def panels_of(X: NDArray) -> NDArray:
    """The samples (n, I) as panels (n / WIDTH, I, WIDTH), zeros beside the last ones."""
    n_panels = -(-len(X) // WIDTH)
    panels = aligned(n_panels * X.shape[1] * WIDTH, X).reshape(n_panels, X.shape[1], WIDTH)
    panels[:] = 0.0
    for p in range(n_panels):
        own = X[p * WIDTH : (p + 1) * WIDTH]
        panels[p, :, : len(own)] = own.T
    return panels


@part
def _slopes(gram, product, k, values, slopes):
    """c_k − Σ_l Q_kl v_l of each sample of a panel."""
    lane, row = lanes(values), k * values.shape[1]
    s0, s1 = load(product, row), load(product, row + lane)
    s2, s3 = load(product, row + 2 * lane), load(product, row + 3 * lane)
    for l in range(gram.shape[0]):
        entry, at = splat(-gram[k, l]), l * values.shape[1]
        s0 = multiply_add(entry, load(values, at), s0)
        s1 = multiply_add(entry, load(values, at + lane), s1)
        s2 = multiply_add(entry, load(values, at + 2 * lane), s2)
        s3 = multiply_add(entry, load(values, at + 3 * lane), s3)
    store(slopes, 0, s0), store(slopes, lane, s1)
    store(slopes, 2 * lane, s2), store(slopes, 3 * lane, s3)


@part
def _descend(gram, product, inverse, root, most_rounds, rows, values):
    """Rounds of coordinate descent; a sample that has settled does not move any more."""
    slopes, mask, change = rows
    width, lane = values.shape[1], lanes(values)
    zero = splat(type(values[0, 0])(0.0))
    for l in range(width):
        mask[l] = 1.0
    for _ in range(most_rounds):
        for l in range(width):
            change[l] = 0.0
        for k in range(gram.shape[0]):
            if inverse[k] > 0.0:
                _slopes(gram, product, k, values, slopes)
                step, size = splat(inverse[k]), splat(root[k])
                for l in range(0, width, lane):
                    here = load(values, k * width + l)
                    there = greatest(multiply_add(load(slopes, l), step, here), zero)
                    move = multiply_add(add(there, negative(here)), load(mask, l), zero)
                    store(values, k * width + l, add(here, move))
                    far = multiply_add(greatest(move, negative(move)), size, zero)
                    store(change, l, greatest(far, load(change, l)))
        n_moving = 0
        for l in range(width):
            mask[l] = mask[l] if change[l] >= NO_CHANGE else 0.0
            n_moving += mask[l] > 0.0
        if n_moving == 0:
            break


@kernel
def _solve_panels(panels, weighted, gram, offset, most_rounds, workspace, values, quadratics):
    """Activations (n, K) in place; ½ v Q v − c v of each sample."""
    product, own, rows, inverse, root = workspace
    slopes, _, total = rows
    n_samples, n_components = values.shape
    width = own.shape[1]
    for k in range(n_components):
        inverse[k] = 1.0 / gram[k, k] if gram[k, k] > 0.0 else 0.0
        root[k] = math.sqrt(gram[k, k])
    for p in range(panels.shape[0]):
        first = p * width
        n_rows = min(width, n_samples - first)
        own[:] = 0.0
        for l in range(n_rows):
            for k in range(n_components):
                own[k, l] = values[first + l, k]
        multiply(weighted, panels[p], offset, product)
        _descend(gram, product, inverse, root, most_rounds, rows, own)
        for l in range(width):
            total[l] = 0.0
        for k in range(n_components):
            _slopes(gram, product, k, own, slopes)
            for l in range(width):
                total[l] -= 0.5 * own[k, l] * (slopes[l] + product[k, l])
        for l in range(n_rows):
            quadratics[first + l] = total[l]
            for k in range(n_components):
                values[first + l, k] = own[k, l]


def solve_priced_panels(
    panels: NDArray,
    precision: NDArray,
    centre: NDArray,
    components: NDArray,
    gram: NDArray,
    prices: NDArray,
    most_rounds: int,
    values: NDArray,
) -> NDArray:
    """Activations of each sample, from where they are, in place.

    Returns the sum of ½ p (x − a W − b)² and of the prices of each sample, less ½ p (x − b)².

    Parameters
    ----------
    panels : (n / WIDTH, I, WIDTH) array
    precision, centre : (I,) arrays
        p, and what is still to be taken off the samples.
    components : (K, I) array
    gram : (K, K) array
        Σ_i p W W.
    prices : (K,) array
    most_rounds : int
    values : (n, K) array
    """
    n_components = len(components)
    weighted = np.ascontiguousarray(components * precision)
    offset = np.repeat(-(prices + weighted @ centre)[:, None], WIDTH, axis=1)
    product, own = (
        aligned(n_components * WIDTH, values).reshape(n_components, WIDTH) for _ in range(2)
    )
    rows = tuple(aligned(WIDTH, values) for _ in range(3))
    workspace = product, own, rows, *np.empty((2, n_components))
    quadratics = np.empty(len(values))
    _solve_panels(panels, weighted, gram, offset, most_rounds, workspace, values, quadratics)
    return quadratics
