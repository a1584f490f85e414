"""The E-step on the stored cells of a sparse matrix, whose other cells are gaps.

A gap has U = 1, so that

    U^act_jk = Σ_si θ_sik + Σ_cells θ_sik (U_sij − 1),
    U^atoms_sik = Σ_j w_j λ_jk + Σ_cells w_j λ_jk (U_sij − 1),

and the first sums know nothing of the data. Factors have the components in the lanes. The cells
come in squares (`SparseSource.cells`) whose rows of both factors stay in the cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._data.executor import LocalExecutor
from ..._data.sparse import SparseSource
from ..._model.likelihoods import Likelihood
from ..._model.model import NO_BACKGROUND, Background
from ..._numerics.compiled import kernel_with_arrays
from ..simd.vectors import aligned, lanes, load, multiply_add, splat, store, total
from .estep import Expectations, checked_factors, replace_cells, start_rates

# Cells whose rates are computed at a time.
_BATCH = 256
# Numbers in the rows of a square's samples, for either factor.
_SQUARE = 1 << 16
# Sums over the cells of a task are as large as the atoms. So there are few tasks, each with so many
# cells for a feature, where there are enough.
_CELLS_FOR_A_FEATURE = 64
_FEWEST_TASKS, _MOST_TASKS = 16, 64


@kernel_with_arrays
def _estep_cells(
    likelihood, inverse_unit, background, cells, activations, weights, atoms, u_act, u_atoms
):
    """Add the cells' θ (U − 1) and w λ (U − 1); `atoms` and its sums are (I, 2, width).

    `background` (2, I) are the rates without any component.
    """
    all_rows, all_columns, all_values = cells
    width = activations.shape[1]
    lane = lanes(activations)
    x = np.empty(_BATCH)
    rates = np.empty((2, _BATCH))
    zero = splat(0.0)
    data_term = 0.0
    for start in range(0, all_values.size, _BATCH):
        size = min(_BATCH, all_values.size - start)
        rows, columns = all_rows[start : start + size], all_columns[start : start + size]
        for n in range(size):
            x[n] = all_values[start + n] * inverse_unit
            at, at0 = rows[n] * width, 2 * columns[n] * width
            sum0 = sum1 = zero
            for l in range(0, width, lane):
                values = load(activations, at + l)
                sum0 = multiply_add(values, load(atoms, at0 + l), sum0)
                sum1 = multiply_add(values, load(atoms, at0 + width + l), sum1)
            rates[0, n] = total(sum0) + background[0, columns[n]]
            rates[1, n] = total(sum1) + background[1, columns[n]]
        replace_cells(likelihood, x[:size], rates[0, :size], rates[1, :size])
        for n in range(size):
            weight = weights[rows[n]]
            data_term += weight * x[n]
            u0, u1 = rates[0, n] - 1.0, rates[1, n] - 1.0
            vector0, vector1 = splat(u0), splat(u1)
            weighted0, weighted1 = splat(weight * u0), splat(weight * u1)
            at, at0 = rows[n] * width, 2 * columns[n] * width
            at1 = at0 + width
            for l in range(0, width, lane):
                values = load(activations, at + l)
                atom0, atom1 = load(atoms, at0 + l), load(atoms, at1 + l)
                both = multiply_add(vector1, atom1, load(u_act, at + l))
                store(u_act, at + l, multiply_add(vector0, atom0, both))
                store(u_atoms, at0 + l, multiply_add(weighted0, values, load(u_atoms, at0 + l)))
                store(u_atoms, at1 + l, multiply_add(weighted1, values, load(u_atoms, at1 + l)))
    return data_term


def estep_of_cells(
    source: SparseSource,
    likelihood: Likelihood,
    activations: NDArray,
    atoms: NDArray,
    sample_weight: NDArray,
    executor: LocalExecutor,
    background: Background = NO_BACKGROUND,
) -> Expectations:
    """Run the E-step over the stored cells, in float64 whatever the type of the data."""
    n_components, n_features = atoms.shape[1:]
    activations, atoms = checked_factors(source, activations, atoms, sample_weight, background)
    by_sign = _feature_rates(background, n_features)
    width = -(-n_components // 8) * 8
    cells = source.cells(max(16, _SQUARE // width))
    padded = in_vectors(activations, width)
    by_feature = in_vectors(atoms.transpose(2, 0, 1), width)
    u_activations = np.zeros_like(padded)
    # Tasks sum up in the same workspaces, one after the other: new memory is slow at first.
    workspaces: list[NDArray] = []

    def task(stripes: tuple[int, int]) -> tuple[NDArray, float]:
        part = slice(*cells.starts[list(stripes)])
        u_atoms = workspaces.pop() if workspaces else np.empty_like(by_feature)
        u_atoms.fill(0)
        data_term = _estep_cells(
            likelihood,
            1 / likelihood.unit,
            by_sign,
            (cells.rows[part], cells.columns[part], cells.values[part]),
            padded,
            sample_weight,
            by_feature,
            u_activations,
            u_atoms,
        )
        return u_atoms, data_term

    u_atoms, data_term = np.zeros_like(by_feature), 0.0
    for partial_atoms, partial_term in executor.map(task, _stripe_ranges(cells.starts, n_features)):
        u_atoms += partial_atoms
        data_term += partial_term
        workspaces.append(partial_atoms)
    u_activations = u_activations[:, :n_components] + atoms.sum(axis=(0, 2), dtype=np.float64)
    # Not BLAS, whose sums depend on its number of threads.
    u_atoms += np.einsum("j,jk->k", sample_weight, padded)
    # Where all of a sum cancels, rounding may leave less than nothing.
    return Expectations(
        np.maximum(u_activations, 0, out=u_activations).astype(activations.dtype, copy=False),
        np.maximum(u_atoms[:, :, :n_components].transpose(1, 2, 0), 0),
        data_term,
    )


def _feature_rates(background: Background, n_features: int) -> NDArray:
    """Rates (2, I) without any component, which are the same for all samples."""
    if background.n_rows != 1:
        raise ValueError(
            "the noise must be the same for all samples of a sparse matrix; "
            f"found {background.n_rows} rows."
        )
    rates = start_rates(background, np.dtype(np.float64))[:, 0]
    return np.ascontiguousarray(np.broadcast_to(rates, (2, n_features)))


def in_vectors(array: NDArray, width: int) -> NDArray:
    """The array in float64 with its last axis filled up with zeros, on cache lines."""
    shape = (*array.shape[:-1], width)
    out = aligned(int(np.prod(shape)), np.empty(0)).reshape(shape)
    out[..., : array.shape[-1]] = array
    out[..., array.shape[-1] :] = 0
    return out


def _stripe_ranges(starts: NDArray, n_features: int) -> list[tuple[int, int]]:
    """Ranges of stripes for the tasks, of about as many cells each."""
    n_stripes = len(starts) - 1
    wanted = int(starts[-1]) // (_CELLS_FOR_A_FEATURE * n_features)
    n_tasks = min(max(_FEWEST_TASKS, wanted), _MOST_TASKS, n_stripes)
    targets = np.linspace(0, starts[-1], n_tasks + 1)
    edges = np.unique(np.searchsorted(starts, targets).clip(0, n_stripes))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
