"""What users hand in as observed tensors: arrays, tables, xarrays, or a dict of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._data.reading import as_meant, is_pandas, library_of
from .._data.source import float_type
from .._data.summary import Accepted
from .._data.tensors import LARGE, SlicedTensor, StoredTensor, blocks_of
from .._model.language import ONLY, Observation, Plan


class Label(NamedTuple):
    """What a letter is called in the data, and its values; None if they have no names."""

    name: str
    values: NDArray | None


Labels = dict[str, Label]


def open_tensors(
    plan: Plan, X: Any, accepted: Mapping[str, Accepted], *, fitted: bool
) -> tuple[dict[str, Any], Labels]:
    """Arrays by the names of observed tensors, checked, and the labels of their axes.

    For other samples of a fitted model some tensors may be missing.
    """
    names = [observation.name for observation in plan.observations]
    given = {ONLY: X} if names == [ONLY] else X
    wanted = " and ".join(map(repr, names))
    if not isinstance(given, Mapping):
        raise ValueError(f"X must be a dict with the tensors {wanted}; found {_shown(X)}.")
    unknown = [name for name in given if name not in names]
    missing = [name for name in names if name not in given]
    if unknown or (missing and not fitted) or len(missing) == len(names):
        found = ", ".join(map(repr, given)) or "none"
        raise ValueError(f"X must have the tensors {wanted}; found {found}.")
    arrays: dict[str, Any] = {}
    labels: Labels = {}
    for observation in plan.observations:
        if observation.name in given:
            value = given[observation.name]
            array = _as_array(_name(plan, observation), value)
            _check_values(_name(plan, observation), array, accepted[observation.name])
            arrays[observation.name] = array
            labels |= _labels(observation, value)
    return arrays, labels


def _name(plan: Plan, observation: Observation) -> str:
    return "X" if len(plan.observations) == 1 else f"X[{observation.name!r}]"


def _shown(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None else f"a {type(value).__name__} of shape {tuple(shape)}"


def _as_array(name: str, value: Any) -> Any:
    """An array of float32 or float64, stored cells, or a large array that is read in slices."""
    if sparse.issparse(value):
        return StoredTensor.of(value)
    if _is_sliced(value):
        if value.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} must hold real numbers, with NaN for gaps; found {_shown(value)}."
            )
        tensor = SlicedTensor(value)
        if math.prod(tensor.shape) > LARGE:
            return tensor
        value = tensor.dense()
    meant = value.values if library_of(value) == "xarray" else as_meant(value, name)
    try:
        array = np.asarray(meant)
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError):
        array = np.empty((), dtype=object)
    if array.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must hold real numbers, with NaN for gaps; found {_shown(value)}."
        )
    if array.ndim == 0 or array.size == 0:
        raise ValueError(f"{name} must have axes of length 1 or more; found shape {array.shape}.")
    return array.astype(float_type(array.dtype), copy=False)


def _is_sliced(value: Any) -> bool:
    """Whether X is a memory map, a Dask array, or no array but sliced like one."""
    if isinstance(value, np.memmap) or library_of(value) == "dask":
        return value.ndim > 0 and 0 not in value.shape
    in_memory = ("iloc", "dims", "__dataframe__", "__array_namespace__", "__dlpack__")
    if isinstance(value, (np.ndarray, np.generic)) or any(hasattr(value, n) for n in in_memory):
        return False
    sliced = all(hasattr(value, part) for part in ("shape", "dtype", "__getitem__"))
    return sliced and len(value.shape) > 0 and 0 not in value.shape


def _check_values(name: str, array: Any, accepted: Accepted) -> None:
    """Refuse infinities, and what is no integer where that is asked for."""
    parts = (part for block in blocks_of(array) for part in block)
    for n, part in enumerate(parts):
        wrong, words = np.isinf(part), "finite, or NaN for a gap"
        if accepted.integer and not np.any(wrong):
            with np.errstate(invalid="ignore"):
                wrong = (part != np.rint(part)) & ~np.isnan(part)
            words = f"of integers for {accepted.asked_by} (check_integer=False lets others pass)"
        if np.any(wrong):
            place = (n, *map(int, np.argwhere(wrong)[0])) if np.ndim(part) else (n,)
            raise ValueError(
                f"{name} must be {words}; found {np.asarray(part)[place[1:]]} at index {place}."
            )


def _labels(observation: Observation, value: Any) -> Labels:
    """Labels of the letters of a tensor that has any."""
    if library_of(value) == "xarray":
        if len(value.dims) != len(observation.output):
            return {}
        return {
            letter: Label(str(dim), value.coords[dim].values if dim in value.coords else None)
            for letter, dim in zip(observation.output, value.dims, strict=True)
        }
    if is_pandas(value) and len(observation.output) == 2:
        axes = zip(observation.output, (value.index, value.columns), strict=True)
        return {letter: Label(str(axis.name or letter), axis.to_numpy()) for letter, axis in axes}
    return {}


def labelled(array: NDArray, letters: tuple[str, ...], labels: Labels) -> Any:
    """An array with the labels of its letters: a DataFrame if it has two axes, or else an xarray.

    Without any label it is the array.
    """
    if not any(letter in labels for letter in letters):
        return array
    own = [labels.get(letter, Label(letter, None)) for letter in letters]
    values = [
        np.arange(size) if label.values is None or len(label.values) != size else label.values
        for label, size in zip(own, array.shape, strict=True)
    ]
    if array.ndim == 2:
        import pandas as pd

        index, columns = (
            pd.Index(value, name=label.name) for value, label in zip(values, own, strict=True)
        )
        return pd.DataFrame(array, index=index, columns=columns)
    import xarray

    names = [label.name for label in own]
    return xarray.DataArray(array, dims=names, coords=dict(zip(names, values, strict=True)))


def like(X: Any, array: NDArray) -> Any:
    """An array as what X is."""
    if library_of(X) == "xarray":
        return X.copy(data=array)
    return type(X)(array, index=X.index, columns=X.columns) if is_pandas(X) else array
