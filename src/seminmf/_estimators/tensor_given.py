"""Checks of what users give for single factors: start values, what is frozen, priors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._model.language import Plan, axis_size
from .._model.model import split_signed
from . import validation as check
from .tensor_build import Given, PriorValues


def check_signed(plan: Plan, signed: Any, least: float) -> tuple[str, ...]:
    """Names of the factors that have signs; negative data need some, or a word that none has."""
    if signed is None:
        if least < 0 and not plan.has_difference:
            factors = ", ".join(repr(name) for name in plan.factors)
            raise ValueError(
                f"signed must name the factors that have signs, of {factors}, or be () if noise "
                f"alone makes X negative; found None, and a smallest value of {least:g} in X."
            )
        return ()
    names = (signed,) if isinstance(signed, str) else tuple(signed)
    for name in names:
        if name not in plan.factors:
            raise ValueError(
                f"signed must name factors of the model ({', '.join(map(repr, plan.factors))}); "
                f"found {name!r}."
            )
    return names


def check_given(
    plan: Plan,
    sizes: Mapping[str, int],
    signed: tuple[str, ...],
    factors: Any,
    frozen: Any,
) -> dict[str, Given]:
    """Start values and frozen entries, by the names of factors."""
    for argument, value in (("factors", factors), ("frozen", frozen)):
        if value is not None and not isinstance(value, Mapping):
            raise ValueError(
                f"{argument} must be None or a dict by the names of factors; found {value!r}."
            )
        for name in value or {}:
            if name not in plan.factors:
                raise ValueError(
                    f"{argument} must have names of factors "
                    f"({', '.join(map(repr, plan.factors))}); found {name!r}."
                )
    found = {}
    for name, value in (factors or {}).items():
        shape = tuple(axis_size(axis, sizes) for axis in plan.factors[name])
        parts = _parts(name, value, shape, name in signed)
        mask = _mask(plan, name, (frozen or {}).get(name, False), shape)
        _check_known(name, parts, mask)
        found[name] = Given(parts, np.broadcast_to(mask, parts.shape).copy())
    for name in frozen or {}:
        if name not in found and np.any(frozen[name]):
            raise ValueError(
                f"frozen must name factors that `factors` has values for; found {name!r}."
            )
    return found


def _parts(name: str, value: Any, shape: tuple[int, ...], signed: bool) -> NDArray:
    """The values of a factor as (signs, *sizes)."""
    what = f"factors[{name!r}]"
    array = check.as_numbers(what, getattr(value, "values", value), f"numbers of shape {shape}")
    if signed and array.shape == shape:
        with np.errstate(invalid="ignore"):
            array = split_signed(array)
    elif not signed and array.shape == shape:
        array = array[None]
    if array.shape != (1 + signed, *shape):
        halves = f" or {(2, *shape)} (positive and negative parts)" if signed else ""
        raise ValueError(f"{what} must have the shape {shape}{halves}; found {array.shape}.")
    if np.any(array < 0) or np.any(np.isinf(array)):
        wrong = array[(array < 0) | np.isinf(array)][0]
        raise ValueError(
            f"{what} must be finite{'' if signed else ' and at least 0, as it is not signed'}; "
            f"found {wrong}."
        )
    return array


def _mask(plan: Plan, name: str, value: Any, shape: tuple[int, ...]) -> NDArray:
    """Which entries are frozen: all, those of a mask, or columns of a latent letter."""
    array = np.asarray(value)
    if array.dtype == bool and array.shape in ((), shape):
        return np.broadcast_to(array, shape)
    axes = [n for n, axis in enumerate(plan.factors[name]) if str(axis) in plan.latent]
    if len(axes) == 1 and array.ndim == 1 and array.dtype.kind in "iu":
        size = shape[axes[0]]
        if array.size and (array.min() < -size or array.max() >= size):
            raise ValueError(
                f"frozen[{name!r}] must have indices from 0 to {size - 1}; found {value!r}."
            )
        column = np.zeros(size, dtype=bool)
        column[array] = True
        return np.broadcast_to(
            column.reshape([-1 if n == axes[0] else 1 for n in range(len(shape))]), shape
        )
    indices = " or indices of its latent letter" if len(axes) == 1 else ""
    raise ValueError(
        f"frozen[{name!r}] must be True, a boolean array of the shape {shape}{indices}; found "
        f"{value!r}."
    )


def _check_known(name: str, parts: NDArray, mask: NDArray) -> None:
    if np.isnan(parts[:, mask]).any():
        raise ValueError(
            f"factors[{name!r}] must have numbers where `frozen` says that they stay; found NaN."
        )


def check_priors(
    plan: Plan,
    sizes: Mapping[str, int],
    signed: tuple[str, ...],
    parameters: Mapping[str, Any],
    free: set[str],
    auto_rate: float,
    *,
    positive_rate: bool,
) -> dict[str, PriorValues]:
    """Parameters of the priors of each factor, from numbers or dicts by the names of factors."""
    for parameter, value in parameters.items():
        for name in value if isinstance(value, Mapping) else ():
            if name not in plan.factors:
                raise ValueError(f"{parameter} must have names of factors; found {name!r}.")
    found = {}
    for name, axes in plan.factors.items():
        shape = tuple(axis_size(axis, sizes) for axis in axes)
        if name in signed:
            shape = (2, *shape)
        kinds = (
            ("activation_shape_prior", "activation_rate_prior")
            if name in free
            else ("atom_shape_prior", "activation_rate_prior")
        )
        values = []
        for parameter in kinds:
            value = _of_factor(parameters[parameter], name)
            if check.is_auto(value):
                value = auto_rate if parameter == "activation_rate_prior" else 1.0
            zero = parameter == "activation_rate_prior" and not positive_rate
            values.append(_broadcast(parameter, name, value, shape, zero))
        found[name] = PriorValues(*values)
    return found


def _of_factor(value: Any, name: str) -> Any:
    return value.get(name, "auto") if isinstance(value, Mapping) else value


def _broadcast(
    parameter: str, name: str, value: Any, shape: tuple[int, ...], zero: bool
) -> NDArray:
    """A number as it is, or an array of the factor's shape."""
    array = check.check_parameter(parameter, value, shape, f"the shape of '{name}'", zero=zero)
    return array.reshape(()) if array.size == 1 else np.broadcast_to(array, shape)
