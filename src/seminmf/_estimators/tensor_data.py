"""What users hand in as observed tensors: arrays, tables, xarrays, or a dict of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from .._data.reading import as_meant, library_of
from .._data.source import float_type
from .._data.summary import Accepted
from .._data.tensors import LARGE, SlicedTensor, StoredTensor, blocks_of
from .._model.language import ONLY, Observation, Plan
from .tensor_labels import Labels, check_same, in_order, labels_of


def open_tensors(
    plan: Plan, X: Any, accepted: Mapping[str, Accepted], known: Labels | None = None
) -> tuple[dict[str, Any], Labels]:
    """Arrays by the names of observed tensors, checked, and the labels of their axes.

    `known` are the labels of a fitted model; then some tensors may be missing.
    """
    fitted = known is not None
    names = [observation.name for observation in plan.observations]
    if names == [ONLY] and isinstance(X, Mapping):
        raise ValueError(
            f"X must be one array, as the model is one string; found a {type(X).__name__} with "
            f"{', '.join(map(repr, X)) or 'nothing'}."
        )
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
    of_fit = known or {}
    for observation in plan.observations:
        if observation.name in given:
            what, letters = _name(plan, observation), observation.output
            value = in_order(
                what,
                letters,
                given[observation.name],
                of_fit | labels,
                plan.sample if fitted else "",
            )
            array = _as_array(what, value)
            _check_values(what, array, accepted[observation.name])
            arrays[observation.name] = array
            own = labels_of(letters, value)
            check_same(what, "other tensors", own, labels)
            check_same(what, "the fit", {x: y for x, y in own.items() if x != plan.sample}, of_fit)
            labels = own | labels
    if fitted:
        labels = {x: y for x, y in of_fit.items() if x != plan.sample} | labels
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
