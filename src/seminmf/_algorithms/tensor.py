"""What EM and VBEM for tensors work on: factors, and observed tensors as matrices.

Every observed tensor goes through the E-step of matrices. What it returns is led back to the
factors: G_f, the derivative of Σ U λ̄ by each entry, so that F ∘ G are its expected counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._model.factors import TensorFactor
from .._model.split import Split
from .problem import Problem

# Numbers of Λ that are there at a time.
_BLOCK = 1 << 22
# Numbers of X that are read at a time.
_READ = 1 << 24


class NoiseColumn(NamedTuple):
    """Noise as a term whose two signs are equal: rates left_j · right_i, in the unit inside."""

    left: NDArray
    right: NDArray


class Table(NamedTuple):
    """An observed tensor as a matrix.

    Attributes
    ----------
    name : str
    split : Split
    problem : Problem
        Of the matrix: likelihood, data with weights, threads.
    noise : NoiseColumn or None
    """

    name: str
    split: Split
    problem: Problem
    noise: NoiseColumn | None

    @property
    def n_observed(self) -> float:
        """Number of observed cells, with the samples' weights."""
        return float(self.problem.data.weights @ self.problem.data.summary.row_count)

    def blocks(self) -> Iterator[slice]:
        """Cells of the first row letter, in blocks for which Λ is not too large."""
        n_cells = self.split.shape[0]
        each = self.split.n_rows // n_cells
        step = max(1, _BLOCK // (each * self.split.n_columns))
        source = self.problem.data.source
        if not source.in_memory and not source.stores_cells:
            step = min(step, max(1, _READ // (each * self.split.n_features)))
        for start in range(0, n_cells, step):
            yield slice(start, min(start + step, n_cells))

    def rows(self, cells: slice) -> slice:
        """The rows of some cells of the first row letter."""
        each = self.split.n_rows // self.split.shape[0]
        return slice(cells.start * each, cells.stop * each)

    def of_rows(self, rows: slice) -> Problem:
        """The problem of some rows."""
        whole = rows == slice(0, self.split.n_rows)
        return self.problem if whole else self.problem.of_samples(rows)

    def left(self, point: Sequence[NDArray], cells: slice) -> NDArray:
        """Λ of some cells, with the column of the noise."""
        left = self.split.left(point, cells)
        if self.noise is not None:
            left = np.column_stack([left, self.noise.left[self.rows(cells)]])
        return left.astype(self.problem.dtype, copy=False)

    def right(self, point: Sequence[NDArray]) -> NDArray:
        """Θ, with the noise in both signs."""
        right = self.split.right(point)
        if self.noise is not None:
            noise = np.broadcast_to(self.noise.right, (2, 1, self.split.n_features))
            right = np.concatenate([right, noise], axis=1)
        return right.astype(self.problem.dtype, copy=False)


class TensorModel(NamedTuple):
    """The factors of a model.

    Attributes
    ----------
    tensors : tuple of TensorFactor
    held : frozenset of int
        Factors that an algorithm leaves as they are: others are sought for them.
    has_rates : bool
        Whether points have an array of rates for each exposed factor behind the others, as those of
        VBEM do.
    """

    tensors: tuple[TensorFactor, ...]
    held: frozenset[int] = frozenset()
    has_rates: bool = False

    @property
    def exposed(self) -> list[int]:
        """Free factors that are multiplied by what does not simply sum to 1."""
        return [n for n, factor in enumerate(self.tensors) if factor.exposed]

    @property
    def factors(self) -> tuple[TensorFactor, ...]:
        """The factor that each array of a point belongs to."""
        extra = self.exposed if self.has_rates else []
        return (*self.tensors, *(self.tensors[n] for n in extra))


class TensorExpectations(NamedTuple):
    """What a pass over all data returns.

    Attributes
    ----------
    gradients : list of arrays
        G of each factor, in its layout. Those of factors with an axis of samples are without the
        samples' weights, the others with them.
    data_term : float
        Log-likelihood of the observed cells.
    total : float
        Σ λ̄ over all cells and both signs, without noise.
    """

    gradients: list[NDArray]
    data_term: float
    total: float


@dataclass(frozen=True)
class TensorProblem:
    """A model, and the observed tensors."""

    model: TensorModel
    tables: tuple[Table, ...]
    # What Newton's method goes over in turn (`tensor_newton.Mode`).
    modes: tuple[Any, ...] = ()

    @property
    def dtype(self) -> np.dtype:
        """The type of the factors."""
        return np.result_type(*(table.problem.dtype for table in self.tables))

    def expectations(self, point: Sequence[NDArray]) -> TensorExpectations:
        """The E-step at a point, or at geometric means."""
        sums = _Sums(self)
        data_term = total = 0.0
        for table in self.tables:
            right = table.right(point)
            u_atoms = np.zeros((2, table.split.n_columns, table.split.n_features))
            for cells in table.blocks():
                problem = table.of_rows(table.rows(cells))
                left = table.left(point, cells)
                found = problem.expectations(left, right)
                data_term += found.data_term
                u_atoms += found.atoms[:, : table.split.n_columns]
                own = found.activations[:, : table.split.n_columns]
                sums.add_left(table, own, point, cells, problem.data.weights)
                total += _total(left, right, problem.data.weights, table.split.n_columns)
            sums.add_right(table, u_atoms, point)
        return TensorExpectations(sums.gradients, data_term, total)

    def exposures(self, point: Sequence[NDArray]) -> list[NDArray]:
        """E of each factor: G without any data, U = 1 in all cells."""
        sums = _Sums(self)
        for table in self.tables:
            split, weights = table.split, table.problem.data.weights
            right = split.right(point).sum(axis=(0, 2), dtype=np.float64)
            left = np.zeros(split.n_columns)
            for cells in table.blocks():
                rows = table.rows(cells)
                own = np.broadcast_to(right, (rows.stop - rows.start, len(right)))
                sums.add_left(table, own, point, cells, weights[rows])
                left += weights[rows] @ split.left(point, cells)
            shape = (2, split.n_columns, split.n_features)
            sums.add_right(table, np.broadcast_to(left[:, None], shape), point)
        return sums.gradients

    def total(self, point: Sequence[NDArray]) -> float:
        """Σ λ̄ over all cells and both signs, without noise, with the samples' weights."""
        total = 0.0
        for table in self.tables:
            right = table.split.right(point)
            for cells in table.blocks():
                left, weights = table.split.left(point, cells), table.problem.data.weights
                total += _total(left, right, weights[table.rows(cells)], table.split.n_columns)
        return total


class _Sums:
    """G of all factors while it is summed up, with and without the samples' weights."""

    def __init__(self, problem: TensorProblem) -> None:
        self._factors = problem.model.tensors
        self._weighted = any(np.any(factor.row_weights != 1) for factor in self._factors)
        self._plain = [np.zeros(factor.layout.shape) for factor in self._factors]
        self._sums = [array.copy() for array in self._plain] if self._weighted else self._plain

    @property
    def gradients(self) -> list[NDArray]:
        """Without weights for factors that have an axis of samples."""
        return [
            plain if factor.layout.sample is not None else weighted
            for factor, plain, weighted in zip(self._factors, self._plain, self._sums, strict=True)
        ]

    def add_left(
        self,
        table: Table,
        gradient: NDArray,
        point: Sequence[NDArray],
        cells: slice,
        weights: NDArray,
    ) -> None:
        table.split.back_left(gradient, point, self._plain, cells)
        if self._weighted:
            table.split.back_left(weights[:, None] * gradient, point, self._sums, cells)

    def add_right(self, table: Table, gradient: NDArray, point: Sequence[NDArray]) -> None:
        # Factors with an axis of samples are on the left, or have no weights.
        table.split.back_right(gradient, point, self._sums)


def _total(left: NDArray, right: NDArray, weights: NDArray, n_columns: int) -> float:
    per_column = np.einsum("j,jk->k", weights, left[:, :n_columns], dtype=np.float64)
    return float(per_column @ right[:, :n_columns].sum(axis=(0, 2), dtype=np.float64))
