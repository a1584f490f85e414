"""Labels of axes: from xarrays and DataFrames that go in, to factors and tensors that come out."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.reading import is_pandas, library_of
from .._model.language import Axis, Observation, Plan
from .base import like as table_like

# How xarray calls axes that have no name.
_NAMELESS = "dim_"


class Label(NamedTuple):
    """What a letter is called in the data, and its values; None if they have no names."""

    name: str
    values: NDArray | None


Labels = dict[str, Label]


# --- what goes in -------------------------------------------------------------------------------


def in_order(what: str, letters: Sequence[str], value: Any, known: Labels, sample: str = "") -> Any:
    """An xarray with its axes in the order of the letters, by names that are known already.

    The axis of other samples may have another name than in the fit.
    """
    if library_of(value) != "xarray" or value.ndim != len(letters):
        return value
    dims = list(map(str, value.dims))
    if all(dim.startswith(_NAMELESS) for dim in dims):
        return value
    names = {letter: known[letter].name for letter in letters if letter in known}
    if sample in names and names[sample] not in dims:
        del names[sample]
    missing = [name for name in names.values() if name not in dims]
    if missing:
        raise ValueError(
            f"{what} must have the axes {_listed(list(names.values()))}; found {_listed(dims)}."
        )
    others = iter([dim for dim in dims if dim not in names.values()])
    wanted = [names.get(letter) or next(others) for letter in letters]
    places = [value.dims[dims.index(name)] for name in wanted]
    return value.transpose(*places)


def labels_of(letters: Sequence[str], value: Any) -> Labels:
    """Labels of the letters of a value that has any, in the order of its axes."""
    if len(getattr(value, "shape", ())) != len(letters):
        return {}
    if library_of(value) == "xarray":
        return {
            letter: Label(str(dim), value.coords[dim].values if dim in value.coords else None)
            for letter, dim in zip(letters, value.dims, strict=True)
        }
    if library_of(value) == "polars" and len(letters) == 2:
        return {letters[1]: Label(letters[1], np.array(value.columns, dtype=object))}
    axes = [getattr(value, name, None) for name in ("index", "columns")[: len(letters)]]
    if len(letters) > 2 or not (is_pandas(value) or type(value).__name__ == "Series"):
        return {}
    return {
        letter: Label(str(axis.name or letter), None if _counts(axis) else axis.to_numpy())
        for letter, axis in zip(letters, axes, strict=True)
        if axis is not None
    }


def _counts(index: Any) -> bool:
    """Whether an index is nothing but 0, 1, 2 …"""
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def check_same(what: str, whose: str, own: Labels, known: Labels) -> None:
    """Refuse other labels than those that are known, or the same in another order."""
    for letter in own.keys() & known.keys():
        values, wanted = own[letter].values, known[letter].values
        if values is None or wanted is None or len(values) != len(wanted):
            continue  # lengths are checked with all other sizes
        wrong = np.array([a != b for a, b in zip(values, wanted, strict=True)], dtype=bool)
        if wrong.any():
            place = int(np.argmax(wrong))
            raise ValueError(
                f"{what} must have the labels of {whose} along its axis '{own[letter].name}', in "
                f"their order; found {_shown(values[place])} at place {place}, where "
                f"{_shown(wanted[place])} is."
            )


def _shown(value: Any) -> str:
    return repr(value.item() if isinstance(value, (np.str_, np.number)) else value)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def given_factors(plan: Plan, factors: Any, labels: Labels) -> tuple[Any, Labels]:
    """Factors in the order of their letters, and the labels with those of latent letters."""
    if not isinstance(factors, Mapping):
        return factors, labels
    ordered, found = {}, dict(labels)
    for name, value in factors.items():
        letters = [str(axis) for axis in plan.factors.get(name, ())]
        what = f"factors[{name!r}]"
        ordered[name] = in_order(what, letters, value, labels)
        own = labels_of(letters, ordered[name])
        check_same(what, "X", own, labels)
        latent = {x: y for x, y in own.items() if x in plan.latent and y.values is not None}
        check_same(what, "other factors", latent, found)
        found |= latent
    return ordered, found


# --- what comes out -----------------------------------------------------------------------------


def labelled(array: NDArray, axes: Sequence[str | Axis], labels: Labels) -> Any:
    """An array with the labels of its axes: a Series, a DataFrame, or from three axes an xarray.

    Without any label it is the array, and from three axes also where nobody has imported xarray.
    """
    own = [label_of(axis, size, labels) for axis, size in zip(axes, array.shape, strict=True)]
    if not any(_letter(axis) in labels for axis in axes):
        return array
    if array.ndim > 2:
        return as_xarray(array, own) if "xarray" in sys.modules else array
    import pandas as pd

    index = [pd.Index(label.values, name=label.name, tupleize_cols=False) for label in own]
    if array.ndim == 1:
        return pd.Series(array, index=index[0])
    return pd.DataFrame(array, index=index[0], columns=index[1])


def labelled_xarray(array: NDArray, axes: Sequence[str | Axis], labels: Labels) -> Any:
    """The same as an xarray, however many axes it has."""
    own = [label_of(axis, size, labels) for axis, size in zip(axes, array.shape, strict=True)]
    return as_xarray(array, own)


def as_xarray(array: NDArray, own: Sequence[Label]) -> Any:
    """An array with a label for each axis."""
    import xarray

    names: list[str] = []
    for label in own:
        names.append(f"{label.name}_" if label.name in names else label.name)
    coords = {name: (name, label.values) for name, label in zip(names, own, strict=True)}
    return xarray.DataArray(array, dims=names, coords=coords)


def _letter(axis: str | Axis) -> str:
    return axis.letter if isinstance(axis, Axis) else axis


def label_of(axis: str | Axis, size: int, labels: Labels) -> Label:
    """The label of an axis, with numbers where it has no values."""
    label = labels.get(_letter(axis), Label(_letter(axis), None))
    values = label.values
    if isinstance(axis, Axis) and axis.lag:
        earlier = size - (size if values is None else len(values))
        values = np.arange(-earlier, size - earlier) if values is None else _longer(values, earlier)
    if values is None or len(values) != size:
        values = np.arange(size)
    return Label(label.name, values)


def values_of(axis: str | Axis, size: int, labels: Labels) -> NDArray:
    """The labels along an axis, numbers if it has none."""
    values = label_of(axis, size, labels).values
    return np.arange(size) if values is None else values


def _longer(values: NDArray, earlier: int) -> NDArray:
    """Evenly spaced values with some before the first; others are counted, 0 is the first."""
    places = np.arange(-earlier, len(values))
    if values.dtype.kind not in "iufM" or len(values) < 2:
        return places
    steps = np.diff(values)
    even = np.all(steps == steps[0]) or (
        values.dtype.kind == "f" and np.allclose(steps, steps[0], rtol=1e-6)
    )
    return values[0] + places * steps[0] if even else places


def like(X: Any, array: NDArray, observation: Observation, labels: Labels) -> Any:
    """An array, with the axes of the model, as what X is."""
    if library_of(X) == "xarray":
        ordered = in_order("X", observation.output, X, labels)
        return ordered.copy(data=array).transpose(*X.dims)
    return table_like(X, array) if array.ndim == 2 else array
