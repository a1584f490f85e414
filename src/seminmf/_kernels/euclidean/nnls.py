"""Nonnegative least squares, sample by sample, to precision: an active-set method.

References
----------
R. Bro and S. de Jong, "A fast non-negativity-constrained least squares algorithm", 1997.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..._data.executor import LocalExecutor
from ..._data.source import BlockSource, row_ranges
from ..._numerics.arguments import check_arrays
from ..._numerics.compiled import kernel_with_arrays, part
from .least_squares import GAP_WEIGHT, gram_of_row

# A gradient of this share of its size, a pivot of this share of its diagonal: rounding.
_ROUNDING = 1e-13
# Steps for each component; few need more than two.
_MOST_STEPS = 10


@part
def _solve_passive(gram, product, passive, factor, solution):
    """Solve Q z = c on the passive set, by Cholesky; components that depend on others leave it."""
    n_components = len(product)
    for k in range(n_components):
        solution[k] = 0.0
        if not passive[k]:
            continue
        for l in range(k + 1):
            if passive[l]:
                total = gram[k, l]
                for m in range(l):
                    if passive[m]:
                        total -= factor[k, m] * factor[l, m]
                if l < k:
                    factor[k, l] = total / factor[l, l]
                elif total > _ROUNDING * gram[k, k]:
                    factor[k, k] = math.sqrt(total)
                else:
                    passive[k] = False
    for k in range(n_components):
        if passive[k]:
            total = product[k]
            for m in range(k):
                if passive[m]:
                    total -= factor[k, m] * solution[m]
            solution[k] = total / factor[k, k]
    for k in range(n_components - 1, -1, -1):
        if passive[k]:
            total = solution[k]
            for m in range(k + 1, n_components):
                if passive[m]:
                    total -= factor[m, k] * solution[m]
            solution[k] = total / factor[k, k]


@part
def _enter(gram, product, values, passive, refused):
    """Let the component with the steepest gradient into the passive set; -1 if there is none."""
    best, entering = 0.0, -1
    for k in range(len(product)):
        if passive[k] or refused[k] or not gram[k, k] > 0.0:
            continue
        gradient, size = product[k], abs(product[k])
        for l in range(len(product)):
            gradient -= gram[k, l] * values[l]
            size += abs(gram[k, l] * values[l])
        # In the unit of what it gains: the components may differ in size.
        gain = gradient / math.sqrt(gram[k, k])
        if gradient > _ROUNDING * size and gain > best:
            best, entering = gain, k
    if entering >= 0:
        passive[entering] = True
    return entering


@part
def _move(values, solution, passive):
    """Go towards the solution until a value would get negative: which one it is, or -1."""
    share, blocking = 1.0, -1
    for k in range(len(values)):
        if passive[k] and solution[k] <= 0.0:
            this = values[k] / (values[k] - solution[k]) if values[k] > 0.0 else 0.0
            if this < share:
                share, blocking = this, k
    for k in range(len(values)):
        values[k] += share * (solution[k] - values[k])
    return blocking


@part
def _solve_row(gram, product, values, passive, refused, factor, solution):
    """The active-set method for one sample, from 0."""
    n_components = len(product)
    for k in range(n_components):
        values[k], passive[k], refused[k] = 0.0, False, False
    for _ in range(_MOST_STEPS * n_components):
        entering = _enter(gram, product, values, passive, refused)
        if entering < 0:
            return
        for _ in range(n_components + 1):
            _solve_passive(gram, product, passive, factor, solution)
            blocking = _move(values, solution, passive)
            if blocking < 0:
                break
            values[blocking], passive[blocking] = 0.0, False
        if not passive[entering]:
            refused[entering] = True  # it depends on others, or rounding let it in


@kernel_with_arrays
def _solve_rows(factor, gap_weight, X, components, gram, activations):
    """Solve for consecutive samples, in units of 1 / factor."""
    n_samples, n_features = X.shape
    n_components = len(components)
    x, product = np.empty(n_features), np.empty(n_components)
    values, solution = np.empty(n_components), np.empty(n_components)
    passive, refused = np.empty(n_components, np.bool_), np.empty(n_components, np.bool_)
    own, triangle = np.empty_like(gram), np.empty_like(gram)
    for j in range(n_samples):
        gaps = False
        for i in range(n_features):
            x[i] = factor * X[j, i]
            gaps = gaps or math.isnan(x[i])
        used = gram
        if gaps:
            gram_of_row(x, components, gap_weight, own)
            used = own
        for k in range(n_components):
            total = 0.0
            for i in range(n_features):
                if not math.isnan(x[i]):
                    total += components[k, i] * x[i]
            product[k] = total
        _solve_row(used, product, values, passive, refused, triangle, solution)
        for k in range(n_components):
            activations[j, k] = values[k]


def solve_rows(
    source: BlockSource,
    unit: float,
    components: NDArray,
    executor: LocalExecutor,
    gap_weight: float = GAP_WEIGHT,
) -> NDArray:
    """Activations (J, K), float64, that belong to the components; X and they in units of `unit`."""
    components = np.ascontiguousarray(components)
    sizes = {"K": len(components), "I": source.shape[1]}
    check_arrays(sizes, components=("KI", components))
    activations = np.empty((source.shape[0], len(components)))
    gram = components @ components.T

    def task(rows: tuple[int, int]) -> None:
        for block in source.blocks(*rows):
            own = activations[block.samples]
            _solve_rows(1 / unit, gap_weight, block.X, components, gram, own)

    for _ in executor.map(task, row_ranges(source, 4 * len(components))):
        pass
    return activations
