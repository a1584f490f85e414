"""Activations of each sample, given the atoms, where a shape is below 1: EM, row by row.

Such a prior has a pole at 0, which a floor cuts off, and its penalty is not convex: the M-step is
safe where Newton's method is not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._likelihoods import SMALLEST_RATE, Integer, Real, cell
from .._sources import Source, row_ranges
from .compiled import kernel, prefer_wide_vectors
from .lanes import row_unit
from .pool import Pool

_MAX_STEPS = 5000
# Relative change of an activation that counts as none.
_NO_CHANGE = 1e-10
_SMALLEST = SMALLEST_RATE["float64"]


@kernel
def _em_rows(likelihood, mass, floor, X, atoms, atom_totals, shape, rate, activations):
    """EM on consecutive rows, in place, every row in its own unit."""
    prefer_wide_vectors()
    n_samples, n_features = X.shape
    n_components = atoms.shape[1]
    rates = np.empty((2, n_features))
    x = np.empty(n_features)
    for j in range(n_samples):
        values = activations[j]
        unit = row_unit(likelihood, True, X[j])
        row_mass, lowest = mass * unit, floor / unit
        for i in range(n_features):
            x[i] = X[j, i] / (likelihood.unit * unit)
        for k in range(n_components):
            values[k] = max(values[k] / unit, lowest)
        for _ in range(_MAX_STEPS):
            for s in range(2):
                for i in range(n_features):
                    rates[s, i] = _SMALLEST
                for k in range(n_components):
                    for i in range(n_features):
                        rates[s, i] += values[k] * atoms[s, k, i]
            for i in range(n_features):
                rates[0, i], rates[1, i], _ = cell(likelihood, x[i], rates[0, i], rates[1, i])
            change = 0.0
            for k in range(n_components):
                expected = 0.0
                for i in range(n_features):
                    expected += rates[0, i] * atoms[0, k, i] + rates[1, i] * atoms[1, k, i]
                count = values[k] * expected + (shape[j, k] - 1.0) / row_mass
                updated = max(count / (atom_totals[k] + rate[j, k]), lowest)
                change = max(change, abs(updated - values[k]) / updated)
                values[k] = updated
            if change <= _NO_CHANGE:
                break
        for k in range(n_components):
            values[k] *= unit


def solve_by_em(
    source: Source,
    likelihood: Real | Integer,
    mass: float,
    floor: float,
    atoms: NDArray,
    shape: NDArray,
    rate: NDArray,
    activations: NDArray,
    pool: Pool,
) -> None:
    """Solve for all activations (J, K), float64, in place; `shape` and `rate` broadcast to them."""
    atoms = np.ascontiguousarray(atoms, dtype=np.float64)
    atom_totals = atoms.sum(axis=(0, 2))
    shapes = np.broadcast_to(shape, activations.shape)
    rates = np.broadcast_to(rate, activations.shape)

    def task(rows: tuple[int, int]) -> None:
        part = slice(*rows)
        _em_rows(
            likelihood,
            mass,
            floor,
            np.ascontiguousarray(source.rows(*rows), dtype=np.float64),
            atoms,
            atom_totals,
            np.ascontiguousarray(shapes[part]),
            np.ascontiguousarray(rates[part]),
            activations[part],
        )

    for _ in pool.map(task, row_ranges(source, 16 * atoms.shape[1])):
        pass
