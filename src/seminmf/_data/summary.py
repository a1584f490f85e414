"""Sums over X that starts and units need, from one sweep over the source; and which numbers X may
hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Sums over samples, and activations, which are of the size of a sum over features, may be so many
# times the largest |x| times the number of features.
_ROOM_FOR_SUMS = 2.0**20


class Summary(NamedTuple):
    """Sums over the observed cells.

    Attributes
    ----------
    row_mass, row_count : (J,) arrays
        Σ|x| and the number of observed cells of each sample; empty where samples are elsewhere.
    column_sum, column_count : (I,) arrays
        Σx and the number of observed cells of each feature.
    largest : float
        Largest |x|.
    mass : float
        Σ|x| in units of the largest, because the sum of large numbers may overflow.
    n_empty : int
        Number of samples without an observed cell.
    least : float
        Smallest x.
    """

    row_mass: NDArray
    row_count: NDArray
    column_sum: NDArray
    column_count: NDArray
    largest: float
    mass: float
    n_empty: int
    least: float

    @classmethod
    def of(
        cls,
        row_mass: NDArray,
        row_count: NDArray,
        column_sum: NDArray,
        column_count: NDArray,
        largest: float,
        least: float,
    ) -> Summary:
        """The summary with these sums."""
        mass = float(np.sum(row_mass / largest)) if largest > 0 else 0.0
        n_empty = int(np.sum(row_count == 0))
        return cls(row_mass, row_count, column_sum, column_count, largest, mass, n_empty, least)

    @property
    def n_observed(self) -> int:
        """Number of observed cells."""
        return int(self.column_count.sum())

    @property
    def mean_size(self) -> float:
        """Mean of |x| over the observed cells."""
        return self.largest * self.mass / max(self.n_observed, 1)

    def joined(self, other: Summary) -> Summary:
        """Summary of these samples and of those that follow."""
        largest = max(self.largest, other.largest)
        unit = largest if largest > 0 else 1.0
        masses = (part.mass * (part.largest / unit) for part in (self, other))
        return Summary(
            np.concatenate([self.row_mass, other.row_mass]),
            np.concatenate([self.row_count, other.row_count]),
            self.column_sum + other.column_sum,
            self.column_count + other.column_count,
            largest,
            sum(masses),
            self.n_empty + other.n_empty,
            min(self.least, other.least),
        )

    def of_rows(self, rows: Any) -> Summary:
        """What is known of some samples one by one, and of all together."""
        return self._replace(row_mass=self.row_mass[rows], row_count=self.row_count[rows])

    def without_rows(self) -> Summary:
        """What is known of all samples together."""
        return self._replace(row_mass=np.empty(0), row_count=np.empty(0, dtype=int))

    @staticmethod
    def combine(parts: Sequence[Summary]) -> Summary:
        """Summary of consecutive blocks of samples."""
        whole = reduce(Summary.joined, [part.without_rows() for part in parts])
        return whole._replace(
            row_mass=np.concatenate([part.row_mass for part in parts]),
            row_count=np.concatenate([part.row_count for part in parts]),
        )


NOTHING_KNOWN = Summary.of(np.empty(0), np.empty(0), np.empty(0), np.empty(0), 0.0, 0.0)


def summarise_rows(block: NDArray) -> Summary:
    """Summary of some samples."""
    observed = ~np.isnan(block)
    values = np.where(observed, block, 0).astype(np.float64, copy=False)
    sizes = np.abs(values)
    with np.errstate(over="ignore", invalid="ignore"):  # such sizes are refused
        return Summary.of(
            sizes.sum(axis=1),
            observed.sum(axis=1),
            values.sum(axis=0),
            observed.sum(axis=0),
            float(sizes.max(initial=0.0)),
            float(values.min(initial=0.0)),
        )


def summarise_cells(X: Any) -> Summary:
    """Summary of a sparse matrix in the format CSR, whose other cells are gaps."""
    values = X.data.astype(np.float64, copy=False)
    n_samples, n_features = X.shape
    counts = np.diff(X.indptr)
    rows = np.repeat(np.arange(n_samples, dtype=np.int32), counts)
    sizes = np.abs(values)
    return Summary.of(
        np.bincount(rows, sizes, n_samples),
        counts,
        np.bincount(X.indices, values, n_features),
        np.bincount(X.indices, minlength=n_features),
        float(sizes.max(initial=0.0)),
        float(values.min(initial=0.0)),
    )


class Accepted(NamedTuple):
    """Which numbers X may have: integers only, of what size at the most, and who asks for it."""

    integer: bool = False
    largest: float = math.inf
    asked_by: str = ""

    def check_largest(self, found: float, n_features: int, dtype: np.dtype) -> None:
        """Refuse numbers that are too large, also for sums over features and samples."""
        if found > self.largest:
            raise ValueError(
                f"X must be within ±2^{math.log2(self.largest):g} for {self.asked_by}; "
                f"found a value of size {found:.6g}."
            )
        largest = float(np.finfo(dtype).max) / n_features / _ROOM_FOR_SUMS
        if found > largest:
            raise ValueError(
                f"X must be within ±{largest:.2g} for {n_features} features of {dtype}, whose sums "
                f"overflow beyond; found a value of size {found:.6g}, which a larger unit of X "
                "makes smaller."
            )


ANY_NUMBERS = Accepted()


def refuse_values(
    block: NDArray, accepted: Accepted, first_row: int, cell: Callable | None = None
) -> None:
    """Refuse what is not accepted; `cell` tells where the numbers of a single row belong."""
    wrong, words = np.isinf(block), "finite, or NaN for a gap"
    if accepted.integer and not wrong.any():
        with np.errstate(invalid="ignore"):
            wrong = (block != np.rint(block)) & ~np.isnan(block)
        words = f"of integers for {accepted.asked_by} (check_integer=False lets others pass)"
    if wrong.any():
        j, i = np.argwhere(wrong)[0]
        row, column = (j, i) if cell is None else cell(i)
        raise ValueError(
            f"X must be {words}; found {block[j, i]} in row {first_row + row}, column {column}."
        )
