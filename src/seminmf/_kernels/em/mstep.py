"""The M-step of the activations, and their prior's part of the objective, in one go."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._data.source import Source, row_ranges
from ..._data.threads import Pool
from ..compiled import kernel, prefer_wide_vectors


@kernel
def _update_rows(activations, expected, excess, rate, inverse, floor, curved, weights):
    """Replace `expected`, U^act, by the new activations; return the prior's part at the old.

    The prior's arrays have one row for all samples, or one for each.
    """
    prefer_wide_vectors()
    n_samples, n_components = activations.shape
    total = 0.0
    for j in range(n_samples):
        row = 0.0
        a, b = min(j, excess.shape[0] - 1), min(j, rate.shape[0] - 1)
        for k in range(n_components):
            value = activations[j, k]
            updated = (value * expected[j, k] + excess[a, k]) * inverse[b, k]
            expected[j, k] = max(updated, floor)
            row -= rate[b, k] * value
        if curved:
            for k in range(n_components):
                if excess[a, k] != 0.0:
                    row += excess[a, k] * np.log(np.float64(activations[j, k]))
        total += weights[j] * row
    return total


def update_activations(
    source: Source,
    activations: NDArray,
    expected: NDArray,
    excess: NDArray,
    rate: NDArray,
    floor: float,
    sample_weight: NDArray,
    pool: Pool,
) -> float:
    """(λU + a) / (1 + β), not below the floor, in the place of U; returns Σ a ln λ − βλ at λ.

    `excess`, a = α − 1 in the unit of λ, and `rate` broadcast to (J, K).
    """
    n_components = activations.shape[1]
    excess, rate = (_all_components(array, n_components) for array in (excess, rate))
    inverse = 1 / (1 + rate)
    curved = bool(np.any(excess))
    activations = np.ascontiguousarray(activations)

    def task(rows: tuple[int, int]) -> float:
        part = slice(*rows)
        return _update_rows(
            activations[part],
            expected[part],
            _some_rows(excess, part),
            _some_rows(rate, part),
            _some_rows(inverse, part),
            floor,
            curved,
            sample_weight[part],
        )

    return sum(pool.map(task, row_ranges(source, n_components)))


def _all_components(array: NDArray, n_components: int) -> NDArray:
    return np.ascontiguousarray(np.broadcast_to(array, (len(array), n_components)))


def _some_rows(array: NDArray, part: slice) -> NDArray:
    return array if len(array) == 1 else array[part]
