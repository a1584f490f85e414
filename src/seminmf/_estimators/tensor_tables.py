"""Factors of tensor models as tables, to be drawn: an axis of the data down, all others across."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._model.language import Axis, Plan
from .tensor_fitted import signed_values
from .tensor_labels import Label, Labels, label_of

# Types of labels that have an order by themselves: numbers, and dates.
_ORDERED = "iufM"


class FactorTable(NamedTuple):
    """A factor with its axes in two.

    Attributes
    ----------
    name : str
    signed : bool
    values : (n_rows, n_columns) array
    rows : Label
        Of the axis that goes down.
    columns : list of str
        A name for each latent cell, "0" or "0, 2".
    column_title : str
    is_ordered : bool
        Whether neighbouring rows belong together: times, lags, frequencies.
    is_unit : bool
        Whether it has the unit of X.
    """

    name: str
    signed: bool
    values: NDArray
    rows: Label
    columns: list[str]
    column_title: str
    is_ordered: bool
    is_unit: bool


def factor_tables(model: Any) -> dict[str, FactorTable]:
    """The factors of a fitted model, by their names."""
    return {name: _table(model, name, parts) for name, parts in model.parts_.items()}


def as_table(model: Any, name: str, array: NDArray) -> NDArray:
    """An array with the axes of a factor, as its table has them: (n_rows, n_columns)."""
    plan = model._fitted.model.plan
    rows = np.moveaxis(array.astype(np.float64), _axis_down(plan.factors[name], plan), 0)
    return rows.reshape(len(rows), math.prod(rows.shape[1:]))


def _table(model: Any, name: str, parts: NDArray) -> FactorTable:
    plan, labels = model._fitted.model.plan, model._fitted.labels
    axes = plan.factors[name]
    down = _axis_down(axes, plan)
    own = [label_of(axis, size, labels) for axis, size in zip(axes, parts.shape[1:], strict=True)]
    rows = own.pop(down)
    across = [label.values for label in own if label.values is not None]
    return FactorTable(
        name=name,
        signed=len(parts) == 2,
        values=as_table(model, name, signed_values(parts)),
        rows=rows,
        columns=[", ".join(map(str, cell)) for cell in product(*across)],
        column_title=", ".join(label.name for label in own),
        is_ordered=_is_ordered(axes[down], plan, labels),
        is_unit=name in model._fitted.model.network.units,
    )


def _lags(plan: Plan) -> set[str]:
    return {axis.lag for term in plan.terms for use in term.uses for axis in use.axes if axis.lag}


def _axis_down(axes: tuple[Axis, ...], plan: Plan) -> int:
    """That of the samples, of lags or of the data, the first that there is."""
    letters = [axis.letter for axis in axes]
    for wanted in ([plan.sample], _lags(plan), plan.observed):
        for n, letter in enumerate(letters):
            if letter in wanted:
                return n
    return 0


def _is_ordered(axis: Axis, plan: Plan, labels: Labels) -> bool:
    if axis.lag or axis.letter in _lags(plan):
        return True
    values = labels[axis.letter].values if axis.letter in labels else None
    if values is None or values.dtype.kind not in _ORDERED or len(values) < 2:
        return False
    return bool(np.all(values[1:] > values[:-1]))


def texts_of(label: Label) -> list[str]:
    """Labels as they are read, dates no longer than they need to be."""
    values = np.asarray(label.values)
    if values.dtype.kind == "M":
        texts = np.datetime_as_string(values, unit="s")
        days = all(text.endswith("T00:00:00") for text in texts)
        return [text[:10] if days else text.replace("T", " ") for text in texts]
    if values.dtype.kind == "f":
        return [f"{value:g}" for value in values]
    return [str(value) for value in values]
