"""Sums over X that starts and units need, from one sweep over the source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Summary(NamedTuple):
    """Sums over the observed cells.

    Attributes
    ----------
    row_mass, row_count : (J,) arrays
        Σ|x| and the number of observed cells of each sample.
    column_sum, column_count : (I,) arrays
        Σx and the number of observed cells of each feature.
    largest : float
        Largest |x|.
    """

    row_mass: NDArray
    row_count: NDArray
    column_sum: NDArray
    column_count: NDArray
    largest: float

    @property
    def n_observed(self) -> int:
        """Number of observed cells."""
        return int(self.row_count.sum())

    @property
    def mean_size(self) -> float:
        """Mean of |x| over the observed cells."""
        # Divided by the largest first, because the sum of large numbers may overflow.
        if self.largest == 0:
            return 0.0
        return self.largest * float(np.sum(self.row_mass / self.largest)) / self.n_observed

    @staticmethod
    def combine(parts: Sequence[Summary]) -> Summary:
        """Summary of consecutive blocks of samples."""
        return Summary(
            np.concatenate([part.row_mass for part in parts]),
            np.concatenate([part.row_count for part in parts]),
            np.sum([part.column_sum for part in parts], axis=0),
            np.sum([part.column_count for part in parts], axis=0),
            max(part.largest for part in parts),
        )


def summarise_rows(block: NDArray) -> Summary:
    """Summary of some samples."""
    observed = ~np.isnan(block)
    values = np.where(observed, block, 0).astype(np.float64, copy=False)
    sizes = np.abs(values)
    return Summary(
        sizes.sum(axis=1),
        observed.sum(axis=1),
        values.sum(axis=0),
        observed.sum(axis=0),
        float(sizes.max(initial=0.0)),
    )


def summarise_cells(X: Any) -> Summary:
    """Summary of a sparse matrix in the format CSR, whose other cells are gaps."""
    values = X.data.astype(np.float64, copy=False)
    n_samples, n_features = X.shape
    counts = np.diff(X.indptr)
    rows = np.repeat(np.arange(n_samples, dtype=np.int32), counts)
    sizes = np.abs(values)
    return Summary(
        np.bincount(rows, sizes, n_samples),
        counts,
        np.bincount(X.indices, values, n_features),
        np.bincount(X.indices, minlength=n_features),
        float(sizes.max(initial=0.0)),
    )


def power_of_two(size: float) -> float:
    """The power of two at or below `size`, which scales without rounding; 1 for 0."""
    if size == 0:
        return 1.0
    return math.ldexp(1.0, min(max(math.frexp(size)[1] - 1, -1000), 1000))


def powers_of_two(sizes: NDArray) -> NDArray:
    """The same for each of an array."""
    return np.array([power_of_two(float(size)) for size in sizes])
