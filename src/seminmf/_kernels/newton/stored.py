"""What the atoms' Newton step needs of a sparse matrix: from its cells, feature by feature.

A sweep over samples would add each cell to the Hessian of another feature. Here the cells of a
feature are one after the other, so that its sums stay in the cache, and no two threads write to the
same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._data.executor import LocalExecutor
from ..._numerics.compiled import kernel, part
from ..em.sparse_estep import in_vectors
from ..simd.vectors import aligned, lanes, load, multiply_add, splat, store, total
from .lanes import LARGEST_Q, LARGEST_U, curved_cells
from .sweep import LEAST_ACTIVATION, RowProblems

# Ranges of features that are computed at a time.
_TASKS = 16
# Cells whose likelihood is computed at a time, and numbers in a vector.
_BATCH, _LANES = 256, 8


class Columns(NamedTuple):
    """Stored cells of features, in the format CSC: where each feature's end, samples and values."""

    ends: NDArray
    samples: NDArray
    values: NDArray


class StoredSums(NamedTuple):
    """Sums over the samples for some features, as `Sweep` has them.

    Attributes
    ----------
    features : (n,) array
    slopes : (2, K, n) array
    hessian_blocks : (3, K (K + 1) / 2, n) array
        Empty, as the slopes are, if they are not asked for.
    """

    features: NDArray
    slopes: NDArray
    hessian_blocks: NDArray


class _Workspace(NamedTuple):
    """Of a task: a batch of cells, and a feature's sums.

    Attributes
    ----------
    x, q : (n,) arrays
        Values, then log-likelihoods; and curvatures.
    rates : (2, n) array
        Rates, then U.
    slopes, gram : (2, width) and (3, K, width) arrays
    """

    x: NDArray
    q: NDArray
    rates: NDArray
    slopes: NDArray
    gram: NDArray

    @classmethod
    def of_size(cls, n_components: int, width: int) -> _Workspace:
        """For so many components, in vectors of `width` numbers in all."""

        def lines(*shape: int) -> NDArray:
            return aligned(math.prod(shape), np.empty(0)).reshape(shape)

        return cls(
            lines(_BATCH),
            lines(_BATCH),
            lines(2, _BATCH),
            lines(2, width),
            lines(3, n_components, width),
        )


@part
def _load_cells(unit, columns, activations, background, atoms, n, first, size, x, rates):
    """Values and rates of some consecutive cells of feature n."""
    _, samples, values = columns
    width = activations.shape[1]
    lane = lanes(activations)
    at_atoms = 2 * n * width
    zero = splat(0.0)
    for c in range(size):
        j = samples[first + c]
        x[c] = values[first + c] / unit
        sum0 = sum1 = zero
        for l in range(0, width, lane):
            own = load(activations, j * width + l)
            sum0 = multiply_add(own, load(atoms, at_atoms + l), sum0)
            sum1 = multiply_add(own, load(atoms, at_atoms + width + l), sum1)
        b = j if background.shape[1] > 1 else 0
        rates[0, c] = background[0, b, n] + total(sum0)
        rates[1, c] = background[1, b, n] + total(sum1)


@part
def _collect_cells(samples, activations, weights, first, size, workspace):
    """Add what some cells tell of the atoms to the sums of their feature."""
    _, q, u, slopes, gram = workspace
    n_components, width = gram.shape[1:]
    lane = lanes(activations)
    one, most_u, most_q = 1.0, float(LARGEST_U), float(LARGEST_Q)
    of_sign, of_block = width, n_components * width
    for c in range(size):
        j = samples[first + c]
        weight = weights[j]
        curved = min(q[c], most_q) * weight
        # Cut before they are multiplied, so that the Hessian has no negative part.
        u0 = max(min(u[0, c], most_u), one / most_u)
        u1 = max(min(u[1, c], most_u), one / most_u)
        down0, down1 = splat(weight * (one - u0)), splat(weight * (one - u1))
        for l in range(0, width, lane):
            own = load(activations, j * width + l)
            store(slopes, l, multiply_add(down0, own, load(slopes, l)))
            store(slopes, of_sign + l, multiply_add(down1, own, load(slopes, of_sign + l)))
        for k in range(n_components):
            value = activations[j, k]
            if value > LEAST_ACTIVATION:
                down, across, up = curved * u0 * value, curved * u1 * value, curved * u1 * value
                q00, q01, q11 = splat(down * u0), splat(-across * u0), splat(up * u1)
                for l in range(0, k + 1, lane):
                    own = load(activations, j * width + l)
                    at = k * width + l
                    store(gram, at, multiply_add(q00, own, load(gram, at)))
                    at += of_block
                    store(gram, at, multiply_add(q01, own, load(gram, at)))
                    at += of_block
                    store(gram, at, multiply_add(q11, own, load(gram, at)))


@kernel
def _add_features(
    likelihood, columns, rows, background, atoms, start, workspace, features, slopes, hessians
):
    """Sums of consecutive features, the first of which is `start` in the columns.

    `background`, `atoms` (n, 2, width) and all sums are of these features; `slopes` (n, 2, K) and
    `hessians` (n, 3, pairs) are left out if they are empty.
    """
    ends, samples, _ = columns
    activations, weights = rows
    x, q, rates, own_slopes, gram = workspace
    n_components = gram.shape[1]
    collects = slopes.size > 0
    for n in range(features.size):
        i = start + n
        own_slopes[:] = 0.0
        gram[:] = 0.0
        for first in range(ends[i - 1] if i > 0 else 0, ends[i], x.size):
            size = min(x.size, ends[i] - first)
            _load_cells(
                likelihood.unit, columns, activations, background, atoms, n, first, size, x, rates
            )
            curved_cells(likelihood, x[:size], rates[0, :size], rates[1, :size], q[:size])
            for c in range(size):
                features[n] -= weights[samples[first + c]] * x[c]
            if collects:
                _collect_cells(samples, activations, weights, first, size, workspace)
        if not collects:
            continue
        for s in range(2):
            for k in range(n_components):
                slopes[n, s, k] = own_slopes[s, k]
        for t in range(3):
            pair = 0
            for k in range(n_components):
                for m in range(k + 1):
                    hessians[n, t, pair] = gram[t, k, m]
                    pair += 1


def stored_sums(
    columns: Columns,
    problems: RowProblems,
    activations: NDArray,
    executor: LocalExecutor,
    *,
    first: int = 0,
    collect: bool = True,
) -> StoredSums:
    """Sums for the features of `problems.atoms`, the first of which is `first` in the columns.

    Parameters
    ----------
    columns : Columns
    problems : RowProblems
        With the atoms of these features.
    activations : (J, K) array
    executor : LocalExecutor
    first : int
    collect : bool
        Whether slopes and Hessians are asked for, or the value of each feature alone.
    """
    n_components, n_features = problems.atoms.shape[1:]
    n_pairs = n_components * (n_components + 1) // 2
    width = -(-n_components // _LANES) * _LANES
    atoms = in_vectors(problems.atoms.transpose(2, 0, 1), width)
    rows = in_vectors(activations, width), problems.weights
    background = np.asarray(problems.start_rates(slice(None)), dtype=np.float64)
    features = np.zeros(n_features)
    slopes = np.zeros((n_features, 2, n_components) if collect else (0, 2, 0))
    hessians = np.zeros((n_features, 3, n_pairs) if collect else (0, 3, 0))

    def task(part: tuple[int, int]) -> None:
        own = slice(*part)
        _add_features(
            problems.likelihood,
            columns,
            rows,
            background[:, :, own],
            atoms[own],
            first + part[0],
            _Workspace.of_size(n_components, width),
            features[own],
            slopes[own],
            hessians[own],
        )

    list(executor.map(task, _ranges(columns, first, n_features)))
    return StoredSums(
        features,
        np.ascontiguousarray(slopes.transpose(1, 2, 0)),
        np.ascontiguousarray(hessians.transpose(1, 2, 0)),
    )


def _ranges(columns: Columns, first: int, n_features: int) -> Sequence[tuple[int, int]]:
    """Ranges of features with about as many stored cells."""
    ends = columns.ends[first : first + n_features]
    before = columns.ends[first - 1] if first > 0 else 0
    targets = np.linspace(before, ends[-1], _TASKS + 1)[1:-1]
    edges = np.unique([0, *np.searchsorted(ends, targets), n_features])
    return [(int(a), int(b)) for a, b in pairwise(edges)]


def columns_of(by_feature: Any) -> Columns:
    """Those of a sparse matrix in the format CSC."""
    return Columns(by_feature.indptr[1:].astype(np.int64), by_feature.indices, by_feature.data)
