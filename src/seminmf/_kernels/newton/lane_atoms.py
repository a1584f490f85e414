"""The atoms as samples in lanes see them: the same for all lanes, or each lane its own.

A dense block has the same features in all lanes, and its atoms (2, I, K) are spread over them. In a
sparse block a lane has the cells that its sample has stored, one after the other, and atoms are
gathered for a chunk of cells at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from ..._numerics.compilation import scalar_function
from ..._numerics.compiled import part
from ..._numerics.linking import handed_to, intrinsic
from ..simd.products import multiply, outer
from ..simd.vectors import lanes, load, multiply_add, splat, store, transpose_square


class SparseRows(NamedTuple):
    """Samples by where their cells start and end in arrays of features and values."""

    starts: NDArray
    ends: NDArray
    indices: NDArray
    values: NDArray


class Gathered(NamedTuple):
    """Which feature is where, (n, lanes), the atoms (I, 2, K), and theirs (2, n, K, lanes)."""

    features: NDArray
    atoms: NDArray
    gathered: NDArray


def blocks_of_rows(source: Any, start: int, stop: int) -> Iterator[tuple[slice, Any]]:
    """Blocks of samples in float64: dense, or what is stored of them."""
    if source.stores_cells:
        ends = source.X.indptr[start : stop + 1].astype(np.int64)
        values = source.X.data.astype(np.float64, copy=False)
        yield slice(start, stop), SparseRows(ends[:-1], ends[1:], source.X.indices, values)
        return
    for block in source.blocks(start, stop):
        yield block.samples, block.X.astype(np.float64, copy=False)


def _is_dense(kind: Any) -> bool:
    return isinstance(kind, types.Array)


@intrinsic
def cell_of(typing_context, X, j, i):
    """The value of a sample's cell, of the `n_cells` that it has."""
    return handed_to(typing_context, _dense_cell if _is_dense(X) else _stored_cell, X, j, i)


@scalar_function
def _dense_cell(X, j, i):
    return X[j, i]


@scalar_function
def _stored_cell(X, j, i):
    return X.values[X.starts[j] + i]


@intrinsic
def n_cells(typing_context, X, start, stop):
    """Most cells that a sample from `start` to `stop` has."""
    return handed_to(typing_context, _all_cells if _is_dense(X) else _most_stored, X, start, stop)


@part
def _all_cells(X, start, stop):
    return X.shape[1]


@part
def _most_stored(X, start, stop):
    most = 0
    for j in range(start, stop):
        most = max(most, X.ends[j] - X.starts[j])
    return most


@intrinsic
def load_cells(typing_context, X, start, stop, atoms, scale, x):
    """Bring the samples' cells to their lanes, each lane times its `scale`; the rest are gaps."""
    choice = _load_dense if _is_dense(X) else _load_sparse
    return handed_to(typing_context, choice, X, start, stop, atoms, scale, x)


@part
def _load_dense(X, start, stop, atoms, scale, x):
    n_features, width = x.shape
    lane = lanes(x)
    whole = n_features - n_features % lane if stop - start == width else 0
    for half in range(0, width, lane):
        for i in range(0, whole, lane):
            at = (start + half) * n_features + i
            transpose_square(X, at, n_features, x, i * width + half, width, load(scale, half))
    for l in range(width):
        if start + l < stop:
            for i in range(whole, n_features):
                x[i, l] = X[start + l, i] * scale[l]
        else:
            for i in range(n_features):
                x[i, l] = np.nan


@part
def _load_sparse(X, start, stop, atoms, scale, x):
    features = atoms.features
    for l in range(x.shape[1]):
        j = min(start + l, stop - 1)
        first = X.starts[j]
        stored = X.ends[j] - first if start + l < stop else 0
        for i in range(stored):
            x[i, l] = X.values[first + i] * scale[l]
            features[i, l] = X.indices[first + i]
        for i in range(stored, x.shape[0]):
            x[i, l] = np.nan
            features[i, l] = 0


@intrinsic
def gather(typing_context, atoms, first, last):
    """Bring the atoms of the cells `first` to `last` to their lanes."""
    choice = _are_there if _is_dense(atoms) else _gather_chunk
    return handed_to(typing_context, choice, atoms, first, last)


@part
def _are_there(atoms, first, last):
    return None


@part
def _gather_chunk(atoms, first, last):
    own = atoms.gathered
    _, _, n_components, width = own.shape
    for i in range(last - first):
        for l in range(width):
            feature = atoms.features[first + i, l]
            for s in range(2):
                for k in range(n_components):
                    own[s, i, k, l] = atoms.atoms[feature, s, k]


@intrinsic
def load_background(typing_context, atoms, start, stop, background, lanes):
    """Rates (2, n, I) that samples have without any component, to their lanes (2, n_cells, width).

    Where all samples have the same cells and rates, they stay there.
    """
    choice = _dense_background if _is_dense(atoms) else _sparse_background
    return handed_to(typing_context, choice, atoms, start, stop, background, lanes)


@part
def _dense_background(atoms, start, stop, background, lanes):
    n_rows = background.shape[1]
    if start == 0 or n_rows > 1:
        for s in range(2):
            for l in range(lanes.shape[2]):
                row = min(start + l, stop - 1, n_rows - 1)
                for i in range(lanes.shape[1]):
                    lanes[s, i, l] = background[s, row, i]


@part
def _sparse_background(atoms, start, stop, background, lanes):
    features = atoms.features
    for s in range(2):
        for i in range(lanes.shape[1]):
            for l in range(lanes.shape[2]):
                lanes[s, i, l] = background[s, 0, features[i, l]]


@intrinsic
def lane_rates(typing_context, atoms, first, last, values, background, rates):
    """rates[s, i, l] = background + Σ_k θ_sik λ_kl for the cells `first` to `last`."""
    choice = _shared_rates if _is_dense(atoms) else _own_rates
    return handed_to(typing_context, choice, atoms, first, last, values, background, rates)


@part
def _shared_rates(atoms, first, last, values, background, rates):
    for s in range(2):
        multiply(atoms[s, first:last], values, background[s, first:last], rates[s])


@part
def _own_rates(atoms, first, last, values, background, rates):
    own, count = atoms.gathered, last - first
    _, most, n_components, width = own.shape
    lane = lanes(values)
    for s in range(2):
        for i in range(count):
            at = (s * most + i) * n_components * width
            start = (s * background.shape[1] + first + i) * width
            for half in range(0, width, lane):
                total = load(background, start + half)
                for k in range(n_components):
                    atom = load(own, at + k * width + half)
                    total = multiply_add(atom, load(values, k * width + half), total)
                store(rates, (s * rates.shape[1] + i) * width + half, total)


@intrinsic
def lane_atom(typing_context, atoms, s, first, i, k, half):
    """θ_sk of cell i of the chunk from `first` on, for the lanes from `half` on."""
    choice = _shared_atom if _is_dense(atoms) else _own_atom
    return handed_to(typing_context, choice, atoms, s, first, i, k, half)


@scalar_function
def _shared_atom(atoms, s, first, i, k, half):
    return splat(atoms[s, first + i, k])


@scalar_function
def _own_atom(atoms, s, first, i, k, half):
    _, most, n_components, width = atoms.gathered.shape
    return load(atoms.gathered, ((s * most + i) * n_components + k) * width + half)


@intrinsic
def lane_slopes(typing_context, atoms, first, last, excess, slope):
    """slope[k, l] = Σ_si θ_sik excess[s, i, l] over the cells `first` to `last`."""
    choice = _shared_slopes if _is_dense(atoms) else _own_slopes
    return handed_to(typing_context, choice, atoms, first, last, excess, slope)


@part
def _shared_slopes(atoms, first, last, excess, slope):
    outer(atoms[:, first:last], excess, last - first, slope)


@part
def _own_slopes(atoms, first, last, excess, slope):
    own, count = atoms.gathered, last - first
    _, most, n_components, width = own.shape
    lane = lanes(slope)
    zero = splat(type(slope[0, 0])(0))
    for k in range(n_components):
        for half in range(0, width, lane):
            total = zero
            for s in range(2):
                for i in range(count):
                    atom = load(own, ((s * most + i) * n_components + k) * width + half)
                    u = load(excess, (s * excess.shape[1] + i) * width + half)
                    total = multiply_add(atom, u, total)
            store(slope, k * width + half, total)
