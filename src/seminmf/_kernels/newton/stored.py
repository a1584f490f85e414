"""What the atoms' Newton step needs of a sparse matrix: from its cells, feature by feature.

A sweep over samples would add each cell to the Hessian of another feature. Here the cells of a
feature are one after the other, so that its sums stay in the cache, and no two threads write to the
same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._data.executor import LocalExecutor
from ..._model.likelihoods import cell, curvature
from ..._numerics.compiled import kernel
from .lanes import LARGEST_Q, LARGEST_U
from .sweep import LEAST_ACTIVATION, RowProblems

# Ranges of features that are computed at a time.
_TASKS = 16


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


@kernel
def _add_features(likelihood, columns, rows, background, atoms, start, features, slopes, hessians):
    """Sums of consecutive features, the first of which is `start` in the columns.

    `background`, `atoms` (n, 2, K) and all sums are of these features; `slopes` (n, 2, K) and
    `hessians` (n, 3, pairs) are left out if they are empty.
    """
    ends, samples, values = columns
    activations, weights = rows
    n_components = activations.shape[1]
    collects = slopes.size > 0
    one, most_u, most_q = 1.0, float(LARGEST_U), float(LARGEST_Q)
    for n in range(features.size):
        i = start + n
        first = ends[i - 1] if i > 0 else 0
        for at in range(first, ends[i]):
            j = samples[at]
            own, weight = activations[j], weights[j]
            b = j if background.shape[1] > 1 else 0
            rate0, rate1 = background[0, b, n], background[1, b, n]
            for k in range(n_components):
                rate0 += own[k] * atoms[n, 0, k]
                rate1 += own[k] * atoms[n, 1, k]
            x = values[at] / likelihood.unit
            u0, u1, level = cell(likelihood, x, rate0, rate1)
            features[n] -= weight * level
            if not collects:
                continue
            q = min(curvature(likelihood, x, rate0, rate1, u0, u1), most_q) * weight
            # Cut before they are multiplied, so that the Hessian has no negative part.
            u0 = max(min(u0, most_u), one / most_u)
            u1 = max(min(u1, most_u), one / most_u)
            down0, down1 = weight * (one - u0), weight * (one - u1)
            q00, q01, q11 = q * u0 * u0, -q * u0 * u1, q * u1 * u1
            pair = 0
            for k in range(n_components):
                slopes[n, 0, k] += down0 * own[k]
                slopes[n, 1, k] += down1 * own[k]
                value = own[k] if own[k] > LEAST_ACTIVATION else 0.0
                for m in range(k + 1):
                    both = value * own[m]
                    hessians[n, 0, pair] += q00 * both
                    hessians[n, 1, pair] += q01 * both
                    hessians[n, 2, pair] += q11 * both
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
    atoms = np.ascontiguousarray(problems.atoms.transpose(2, 0, 1), dtype=np.float64)
    rows = np.ascontiguousarray(activations, dtype=np.float64), problems.weights
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
