"""Activations of each sample, given the atoms, where a shape is below 1: EM, row by row.

Such a prior has a pole at 0, which a floor cuts off, and its penalty is not convex: the M-step is
safe where Newton's method is not.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..._data.executor import LocalExecutor
from ..._data.source import BlockSource, row_ranges
from ..._model.likelihoods import cell
from ..._numerics.compiled import kernel_with_arrays, part_with_arrays
from ..._numerics.linking import handed_to, intrinsic
from ..newton.lane_atoms import blocks_of_rows, cell_of, n_cells
from ..newton.lanes import row_unit
from ..newton.sweep import RowProblems

_MAX_STEPS = 5000
# Relative change of an activation that counts as none.
_NO_CHANGE = 1e-10


@intrinsic
def _background_of_row(typing_context, X, j, background, own):
    """The rates (2, I) that the cells of a row have without any component."""
    dense = isinstance(X, types.Array)
    choice = _own_background if dense else _gathered_background
    return handed_to(typing_context, choice, X, j, background, own)


@part_with_arrays
def _own_background(X, j, background, own):
    row = min(j, background.shape[1] - 1)
    for s in range(2):
        for i in range(own.shape[1]):
            own[s, i] = background[s, row, i]
    return own


@part_with_arrays
def _gathered_background(X, j, background, own):
    first = X.starts[j]
    for i in range(X.ends[j] - first):
        for s in range(2):
            own[s, i] = background[s, 0, X.indices[first + i]]
    return own


@intrinsic
def _atoms_of_row(typing_context, X, j, atoms, atom_totals, workspace, rest):
    """The atoms that the cells of a row see; and what those that it has not see, in `rest`."""
    choice = _all_atoms if isinstance(X, types.Array) else _gathered_atoms
    return handed_to(typing_context, choice, X, j, atoms, atom_totals, workspace, rest)


@part_with_arrays
def _all_atoms(X, j, atoms, atom_totals, workspace, rest):
    return atoms


@part_with_arrays
def _gathered_atoms(X, j, atoms, atom_totals, workspace, rest):
    first = X.starts[j]
    stored = X.ends[j] - first
    for k in range(atoms.shape[1]):
        seen = 0.0
        for s in range(2):
            for i in range(stored):
                workspace[s, k, i] = atoms[s, k, X.indices[first + i]]
                seen += workspace[s, k, i]
        rest[k] = max(atom_totals[k] - seen, 0.0)
    return workspace


@kernel_with_arrays
def _em_rows(
    likelihood,
    mass,
    floor,
    X,
    all_atoms,
    atom_totals,
    background,
    shape,
    rate,
    workspace,
    rest,
    activations,
):
    """EM on consecutive rows, in place, every row in its own unit."""
    n_components = all_atoms.shape[1]
    rates = np.empty((2, workspace.shape[2]))
    x = np.empty(workspace.shape[2])
    gathered = np.empty((2, workspace.shape[2]))
    for j in range(activations.shape[0]):
        values = activations[j]
        n_features = n_cells(X, j, j + 1)
        atoms = _atoms_of_row(X, j, all_atoms, atom_totals, workspace, rest)
        start_rates = _background_of_row(X, j, background, gathered)
        unit = row_unit(likelihood, True, X, j)
        row_mass, lowest = mass * unit, floor / unit
        for i in range(n_features):
            x[i] = cell_of(X, j, i) / (likelihood.unit * unit)
        for k in range(n_components):
            values[k] = max(values[k] / unit, lowest)
        for _ in range(_MAX_STEPS):
            for s in range(2):
                for i in range(n_features):
                    rates[s, i] = start_rates[s, i]
                for k in range(n_components):
                    for i in range(n_features):
                        rates[s, i] += values[k] * atoms[s, k, i]
            for i in range(n_features):
                rates[0, i], rates[1, i], _ = cell(likelihood, x[i], rates[0, i], rates[1, i])
            change = 0.0
            for k in range(n_components):
                expected = rest[k]
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
    source: BlockSource, problems: RowProblems, activations: NDArray, executor: LocalExecutor
) -> None:
    """Solve for all activations (J, K), float64, in place."""
    atoms = problems.atoms
    problems.check(source.shape, activations)
    atom_totals = atoms.sum(axis=(0, 2))
    n_components = len(atom_totals)
    shapes, rates = (np.broadcast_to(part, activations.shape) for part in problems.prior)

    def task(rows: tuple[int, int]) -> None:
        for own, block in blocks_of_rows(source, *rows):
            _em_rows(
                problems.likelihood,
                problems.penalty.mass,
                problems.prior.floor,
                block,
                atoms,
                atom_totals,
                problems.start_rates(own),
                np.ascontiguousarray(shapes[own]),
                np.ascontiguousarray(rates[own]),
                np.empty((2, n_components, source.longest_row)),
                np.zeros(n_components),
                activations[own],
            )

    for _ in executor.map(task, row_ranges(source, 16 * n_components)):
        pass
