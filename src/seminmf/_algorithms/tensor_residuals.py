"""What tensors leave of their data: sums of squares, in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .tensor import Table

# Residuals that are in memory at a time.
_BLOCK = 1 << 20


class Residuals(NamedTuple):
    """Of each value of a letter: observed cells, their squares, and those of the residuals."""

    counts: NDArray
    squares: NDArray
    errors: NDArray


def residuals(
    table: Table,
    point: Sequence[NDArray],
    letter: str = "",
    n_levels: int = 1,
    most_cells: int | None = None,
) -> Residuals:
    """Sums over the observed cells, in the unit of X, for each value of a letter or for all.

    With `most_cells` some samples stand for all, if there are more cells.
    """
    split, unit = table.split, table.problem.model.likelihood.unit
    right = split.right(point)
    signed = unit * (right[0] - right[1])
    sums = np.zeros((3, n_levels))
    for cells in _blocks(table, most_cells):
        rows = table.rows(cells)
        x = table.problem.data.source.rows(rows.start, rows.stop).astype(np.float64)
        fitted = split.left(point, cells) @ signed
        seen = ~np.isnan(x)
        x = np.where(seen, x, 0.0)
        errors = np.where(seen, x - fitted, 0.0)
        weights = table.problem.data.weights[rows, None]
        for n, values in enumerate((seen, x * x, errors * errors)):
            sums[n] += _by_level(table, weights * values, letter, cells, n_levels)
    return Residuals(*sums)


def _by_level(table: Table, values: NDArray, letter: str, cells: slice, n_levels: int) -> NDArray:
    """Sums of some rows for each value of a letter, whose ends may have gaps beside the data."""
    split = table.split
    letters = (*split.rows, *split.features)
    if letter not in letters:
        return values.sum(keepdims=True)[0]
    place = letters.index(letter)
    shape = (cells.stop - cells.start, *split.shape[1:])
    others = tuple(n for n in range(len(letters)) if n != place)
    sums = values.reshape(shape).sum(axis=others)
    padding = (len(sums) - n_levels) // 2
    return sums[padding : padding + n_levels]


def _blocks(table: Table, most_cells: int | None) -> Iterator[slice]:
    """Cells of the first row letter, in blocks whose residuals are not too large."""
    split = table.split
    n_cells = split.shape[0]
    per_cell = split.n_rows // n_cells * max(split.n_features, split.n_columns)
    stride = 1
    if most_cells is not None:
        stride = -(-n_cells * per_cell // most_cells)
    if stride > 1:
        yield from (slice(start, start + 1) for start in range(0, n_cells, stride))
        return
    step = max(1, _BLOCK // per_cell)
    for start in range(0, n_cells, step):
        yield slice(start, min(start + step, n_cells))
