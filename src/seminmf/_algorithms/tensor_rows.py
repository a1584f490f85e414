"""The factors of the samples, given all others: each sample is the row problem of matrices.

That is so where every term has one factor with an axis of samples, which is free and not signed.
Features of all observed tensors then stand beside each other, and so do the cells of these factors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.dense import DenseSource
from .._data.source import Data
from .._data.summary import summarise_rows
from .._model.factors import TensorFactor
from .._model.model import Background, Model, Priors
from .._model.penalties import Penalty
from .._model.priors import Gamma
from .._model.split import Split, View
from .activations import solve
from .problem import Problem
from .tensor import Table


class SampleColumns(NamedTuple):
    """The cells of the samples' factors, one after the other.

    Attributes
    ----------
    first : dict of int
        The first column of each factor, by its number.
    n_columns : int
    """

    first: dict[int, int]
    n_columns: int

    @classmethod
    def of(cls, factors: Mapping[int, TensorFactor]) -> SampleColumns:
        """For these factors."""
        first, n_columns = {}, 0
        for n, factor in factors.items():
            first[n] = n_columns
            n_columns += factor.layout.shape[1]
        return cls(first, n_columns)


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
    columns = SampleColumns.of(factors)
    atoms = np.concatenate([_atoms(one, columns, point) for one in tables], axis=2)
    problem = _row_problem(tables, columns, _joint_prior(factors))
    values = solve(problem, kind, atoms).activations
    n_columns = {n: factor.layout.shape[1] for n, factor in factors.items()}
    return problem, {n: values[:, at : at + n_columns[n]] for n, at in columns.first.items()}


def _row_problem(tables: Sequence[Table], columns: SampleColumns, prior: Gamma) -> Problem:
    """All observed tensors as one matrix, each in its own unit."""
    first = tables[0].problem
    kind, executor = type(first.model.likelihood), first.executor
    parts = []
    for table in tables:
        source = table.problem.data.source
        unit = source.dtype.type(table.problem.model.likelihood.unit)
        parts.append(source.rows(0, source.shape[0]) / unit)
    X = np.concatenate(parts, axis=1)
    noise = np.concatenate([_noise(table) for table in tables])
    data = Data(DenseSource(X), summarise_rows(X), first.data.weights)
    model = Model.of(
        kind(1.0, 1.0),
        Priors(prior, first.model.atoms.prior),
        np.zeros(columns.n_columns, dtype=bool),
    )
    background = Background(noise[None], np.zeros(1))
    return Problem(model._replace(background=background), data, executor)


def _noise(table: Table) -> NDArray:
    n_features = table.split.n_features
    if table.noise is None:
        return np.zeros(n_features)
    return np.broadcast_to(table.noise.left[0] * table.noise.right, n_features)


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


def _atoms(table: Table, columns: SampleColumns, point: Sequence[NDArray]) -> NDArray:
    """What each cell of the samples' factors is multiplied by in this tensor."""
    split = table.split
    ones = [
        np.ones((1, *array.shape[1:])) if n in columns.first else array
        for n, array in enumerate(point)
    ]
    right = split.right(point)
    atoms = np.zeros((2, columns.n_columns, split.n_features))
    start = 0
    for n, term in enumerate(split.terms):
        stop = start + term.n_columns
        number, order = _places(split, n, columns)
        # The rest of the left side, such as the shares of the term.
        rest = _of_one_sample(split, n, ones, number).reshape(-1)
        # No cell is twice in a term.
        atoms[:, order] += rest[:, None] * right[:, start:stop]
        start = stop
    return atoms


def _of_one_sample(split: Split, n: int, ones: Sequence[NDArray], number: int) -> NDArray:
    """The product on the left of a term for one sample, where its own factor is 1."""
    side = split.terms[n].left
    views = tuple(
        view._replace(layout=view.layout._replace(sizes=_one(view)))
        if view.factor == number
        else view
        for view in side.views
    )
    return side._replace(views=views).of(ones)


def _one(view: View) -> tuple[int, ...]:
    """Sizes with one sample only."""
    sample = view.layout.sample
    return tuple(1 if n == sample else size for n, size in enumerate(view.layout.sizes))


def _places(split: Split, n: int, columns: SampleColumns) -> tuple[int, NDArray]:
    """The samples' factor of a term, and which of all columns each column of the term is."""
    side = split.terms[n].left
    view = next(view for view in side.views if view.factor in columns.first)
    labels = view.labels[1:]
    lengths = [view.layout.sizes[m] for m in view.layout.order if m >= 0][1:]
    cells = np.arange(int(np.prod(lengths))).reshape(lengths)
    order = [labels.index(label) for label in side.output[1:]]
    return view.factor, columns.first[view.factor] + cells.transpose(order).reshape(-1)
