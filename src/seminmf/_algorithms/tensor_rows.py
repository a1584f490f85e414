"""The factors of one letter, given all others: each of its values is the row problem of matrices.

That is so where every term has one factor with the letter. Features of all observed tensors then
stand beside each other, and so do the cells of these factors. For the samples' letter the factors
are those that `transform` seeks; for the other letters of the data they are what Newton's method
goes over in turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.dense import DenseSource
from .._data.source import Data
from .._data.summary import summarise_rows
from .._model.factors import Layout, TensorFactor
from .._model.likelihoods import Dispersed, Likelihood, Real
from .._model.model import Background, Model, Priors
from .._model.penalties import Penalty
from .._model.priors import Gamma
from .._model.split import Split, View
from .activations import solve
from .problem import Problem
from .tensor import Table


def as_rows(layout: Layout, letter: str, array: NDArray) -> NDArray:
    """An array inside as (values of the letter, all other cells)."""
    turned = np.moveaxis(array.reshape(layout.full_shape), layout.place_of(letter), 0)
    return turned.reshape(len(turned), -1)


def from_rows(layout: Layout, letter: str, rows: NDArray) -> NDArray:
    """The array inside of `as_rows`."""
    place, shape = layout.place_of(letter), list(layout.full_shape)
    n_values = shape.pop(place)
    turned = np.moveaxis(rows.reshape(n_values, *shape), 0, place)
    return np.ascontiguousarray(turned).reshape(layout.shape)


class RowColumns(NamedTuple):
    """The cells of the factors of a letter, one after the other.

    Attributes
    ----------
    letter : str
    first : dict of int
        The first column of each factor, by its number.
    n_columns : int
    """

    letter: str
    first: dict[int, int]
    n_columns: int

    @classmethod
    def of(cls, letter: str, layouts: Mapping[int, Layout]) -> RowColumns:
        """For these factors."""
        first, n_columns = {}, 0
        for n, layout in layouts.items():
            first[n] = n_columns
            n_columns += layout.n_cells // layout.full_shape[layout.place_of(letter)]
        return cls(letter, first, n_columns)


def solve_samples(
    tables: Sequence[Table],
    factors: Mapping[int, TensorFactor],
    point: Sequence[NDArray],
    kind: Penalty,
) -> tuple[Problem, dict[int, NDArray]]:
    """Values of the samples' factors, by their numbers, and the problem of rows.

    `tables` have the samples as rows, and these factors alone on the left; `point` has all others,
    or their geometric means.
    """
    (letter,) = tables[0].split.rows
    columns = RowColumns.of(letter, {n: factor.layout for n, factor in factors.items()})
    atoms = row_atoms(tables, columns, point)
    data = row_data(tables)
    problem = row_problem(tables, columns.n_columns, data, _joint_prior(factors))
    values = solve(problem, kind, atoms).activations
    n_columns = {n: factor.layout.shape[1] for n, factor in factors.items()}
    return problem, {n: values[:, at : at + n_columns[n]] for n, at in columns.first.items()}


def row_data(tables: Sequence[Table]) -> Data:
    """All observed tensors as one matrix: a single one as it is, several each in its own unit."""
    first = tables[0].problem.data
    if len(tables) == 1:
        return first
    parts = []
    for table in tables:
        source = table.problem.data.source
        unit = source.dtype.type(table.problem.model.likelihood.unit)
        parts.append(source.rows(0, source.shape[0]) / unit)
    X = np.concatenate(parts, axis=1)
    return Data(DenseSource(X), summarise_rows(X), first.weights)


def row_problem(
    tables: Sequence[Table],
    n_columns: int,
    data: Data,
    prior: Gamma,
    known: NDArray | None = None,
) -> Problem:
    """The problem of the rows of `row_data`; `known` (2, features) are rates that all rows have."""
    first = tables[0].problem
    likelihood = first.model.likelihood
    if len(tables) > 1:
        likelihood = _joint_likelihood(tables)
    noise = np.concatenate([_noise(table) for table in tables], axis=1)
    if not noise.any():
        noise = np.zeros((1, 1))
    intercept = np.zeros(1)
    if known is not None and known.any():
        noise, intercept = noise + known.mean(axis=0), known[0] - known[1]
    model = Model.of(
        likelihood,
        Priors(prior, first.model.atoms.prior),
        np.zeros(n_columns, dtype=bool),
    )
    background = Background(noise, intercept)
    return Problem(model._replace(background=background), data, first.executor)


def _joint_likelihood(tables: Sequence[Table]) -> Likelihood:
    """One for the cells of all, each in units of its own dispersion: cells are numbers of units.

    What is faster for large noise in one table need not hold in another.
    """
    kinds = [type(table.problem.model.likelihood) for table in tables]
    if len(set(kinds)) == 1:
        return kinds[0](unit=1.0, dispersion=1.0)
    if Real in kinds:
        raise TypeError("cells of infinite M have no likelihood in common with others.")
    return Dispersed.of(1.0)


def _noise(table: Table) -> NDArray:
    """Rates of the noise (rows, features), or (1, features) if rows do not differ."""
    n_features = table.split.n_features
    if table.noise is None:
        return np.zeros((1, n_features))
    left, right = table.noise.left, np.broadcast_to(table.noise.right, n_features)
    return left[:1, None] * right if np.all(left == left[0]) else left[:, None] * right


def _joint_prior(factors: Mapping[int, TensorFactor]) -> Gamma:
    """The priors of all columns."""
    shapes: list[NDArray] = []
    rates: list[NDArray] = []
    for factor in factors.values():
        size = factor.layout.shape[1]
        for found, part in zip((shapes, rates), factor.prior, strict=True):
            found.append(np.broadcast_to(part, (len(part), size)))
    n_rows = max(len(part) for part in (*shapes, *rates))
    return Gamma(
        *(
            np.concatenate([np.broadcast_to(one, (n_rows, one.shape[1])) for one in parts], axis=1)
            for parts in (shapes, rates)
        )
    )


def row_atoms(tables: Sequence[Table], columns: RowColumns, point: Sequence[NDArray]) -> NDArray:
    """What each cell of the letter's factors is multiplied by, (2, columns, features)."""
    return np.concatenate([_atoms(one, columns, point) for one in tables], axis=2)


def _atoms(table: Table, columns: RowColumns, point: Sequence[NDArray]) -> NDArray:
    """The same in one tensor."""
    split = table.split
    right = split.right(point)
    atoms = np.zeros((2, columns.n_columns, split.n_features))
    start = 0
    for n, term in enumerate(split.terms):
        stop = start + term.n_columns
        number, order = _places(split, n, columns)
        # The rest of the left side, such as the shares of the term.
        rest = _of_one_value(split, n, point, number, columns.letter).reshape(-1)
        # No cell is twice in a term.
        atoms[:, order] += rest[:, None] * right[:, start:stop]
        start = stop
    return atoms


def _of_one_value(
    split: Split, n: int, point: Sequence[NDArray], number: int, letter: str
) -> NDArray:
    """The product on the left of a term for one value of the letter, where its factor is 1."""
    side = split.terms[n].left
    ones = list(point)
    views = []
    for view in side.views:
        if view.factor == number:
            layout = view.layout.with_size(letter, 1)
            ones[number], view = np.ones(layout.n_cells), view._replace(layout=layout)
        views.append(view)
    fixed = tuple((array, labels) for array, labels in side.fixed if letter not in labels)
    return side._replace(views=tuple(views), fixed=fixed).of(ones)


def _places(split: Split, n: int, columns: RowColumns) -> tuple[int, NDArray]:
    """The factor of the letter in a term, and which of all columns each column of the term is."""
    side = split.terms[n].left
    view = next(view for view in side.views if view.factor in columns.first)
    labels, shape = list(_labels(view)), list(view.shape)
    place = labels.index(columns.letter)
    del labels[place], shape[place]
    cells = np.arange(int(np.prod(shape))).reshape(shape)
    order = [labels.index(label) for label in side.output[1:]]
    return view.factor, columns.first[view.factor] + cells.transpose(order).reshape(-1)


def _labels(view: View) -> tuple[str, ...]:
    """Labels of the axes of the factor itself, without those of lags."""
    return view.labels[: len(view.shape)]
