"""Model files: the arrays of a fitted estimator and a JSON header, in the safetensors format.

A file holds numbers and text, and nothing of it is ever executed. Each class of estimators declares
what of it a file holds, and whatever does not fit that is refused.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._algorithms.loop import REASONS
from .._algorithms.minibatch import NO_MODEL, QuadraticModel, Stream
from .._model.model import PARAMETERS, Priors
from . import container
from .container import Content

FORMAT = "seminmf"
FORMAT_VERSION = 1

# What the features are divided by, before the fit.
SCALE = "feature_scale_"
# Constructor parameters that may be arrays.
PRIOR_PARAMETERS = tuple(f"{name}_prior" for name in PARAMETERS)

_PRIOR_AXES = dict(zip(PARAMETERS, ("JK", "JK", "2KI"), strict=True))
# What batches told: P = K (K + 1) / 2, 3 as in `newton.Sweep`.
_STREAM_COUNTS = {"stream.counts": "2KI"}
_STREAM_MODEL = {"stream.slopes": "2KI", "stream.grams": "3PI", "stream.price": "K"}
# An array that has a row for each draw from the posterior.
DRAWS = "_atom_draws"
# Parameters of the fit that the estimator does not have any more.
_KEPT = "parameters_of_fit"
_STREAM_SCALARS: dict[str, type] = {"n_steps": int, "n_samples": float}


class ArrayField(NamedTuple):
    """A fitted array that a file holds.

    Attributes
    ----------
    axes : str
        Samples J, components K, features I, signs 2, draws S, and T = one more than there were
        iterations.
    sign : {"nonnegative", "positive", "any"}
        Which numbers it may have.
    of_data : bool
        Whether it has the type of the data, or else float64.
    default : float or None
        What it is full of if a file of an older version does not have it; None refuses such files.
    attribute : str or None
        The attribute that it is of the estimator; None is the name that it has in the file.
    """

    axes: str
    sign: Literal["nonnegative", "positive", "any"] = "nonnegative"
    of_data: bool = True
    default: float | None = None
    attribute: str | None = None


TRACE = ArrayField("T", sign="any", of_data=False)
COMMON_SCALARS: dict[str, type] = {
    "n_features_in_": int,
    "n_iter_": int,
    "converged_": bool,
    "stop_reason_": str,
    "stability_": float,
    "n_same_starts_": int,
    "r2_": float,
    "_unit": float,
}
# What files of all estimators have, but for older ones.
_COMMON_ARRAYS = {
    "component_stability_": ArrayField("K", sign="any", of_data=False, default=math.nan),
    "r2_drop_": ArrayField("K", sign="any", of_data=False, default=math.nan),
    SCALE: ArrayField("I", of_data=False, default=1.0),
}
_COMMON_DEFAULTS = {"n_same_starts_": 1, "r2_": math.nan}


class FittedFields(NamedTuple):
    """What of a fitted estimator a file holds.

    Attributes
    ----------
    arrays : dict of ArrayField
        By attribute. The first one's type is that of the data.
    scalars : dict of type
        By attribute.
    defaults : dict
        Scalars that older files do not have.
    older_parameters : callable
        The parameters of a file, which may be older, as the estimator has them now.
    has_priors : bool
    stream_atoms : str or None
        The attribute that batches learn, of estimators that learn from batches.
    """

    arrays: dict[str, ArrayField]
    scalars: dict[str, type]
    defaults: dict[str, Any] = {}  # noqa: RUF012
    older_parameters: Callable[[dict[str, Any]], dict[str, Any]] = lambda given: given
    has_priors: bool = False
    stream_atoms: str | None = None

    @property
    def all_arrays(self) -> dict[str, ArrayField]:
        """Those of this class, and those of all."""
        return self.arrays | _COMMON_ARRAYS

    @property
    def trace(self) -> str:
        """The attribute with the objectives."""
        return next(name for name, field in self.arrays.items() if field.axes == "T")


# --- writing --------------------------------------------------------------------------------


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file, whole or not at all."""
    check_own_class(estimator, "_fitted_fields")
    write(estimator, path, model_content(estimator), rebuild)


def check_own_class(estimator: Any, declares: str) -> None:
    """Refuse subclasses, which have not declared what a file is to hold of them."""
    kind = type(estimator)
    if declares not in vars(kind):
        raise ValueError(f"save takes the estimators of this library; found {kind.__name__}.")


def write(estimator: Any, path: str | os.PathLike[str], content: Content, rebuild: Any) -> None:
    """Write content with the header that all files have, if it can be read again."""
    from .. import __version__

    name = type(estimator).__name__
    names = getattr(estimator, "feature_names_in_", None)
    header = {
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "estimator": name,
        "feature_names": None if names is None else [str(label) for label in names],
        **content.header,
    }
    content = Content(header, content.arrays)
    try:
        rebuild(type(estimator), content)
    except ValueError as error:
        raise ValueError(f"This {name} cannot be saved: {error}") from error
    container.write(path, FORMAT, content)


def model_content(estimator: Any) -> Content:
    """What is particular to a fitted estimator."""
    fields: FittedFields = estimator._fitted_fields
    arrays = {
        name: getattr(estimator, field.attribute or name)
        for name, field in fields.all_arrays.items()
    }
    if fields.has_priors:
        arrays |= priors_content(estimator._priors)
    stream = getattr(estimator, "_stream", None)
    arrays |= _stream_arrays(stream)
    parameters, parameter_arrays = split_parameters(estimator, PRIOR_PARAMETERS)
    fitted = {scalar: _written(getattr(estimator, scalar)) for scalar in fields.scalars}
    header = {"parameters": parameters, "fitted": fitted}
    kept = {
        name: value
        for name, value in vars(estimator).get("_kept", {}).items()
        if value != parameters[name]
    }
    if kept:
        header[_KEPT] = kept
    if stream is not None:
        header["stream"] = {scalar: getattr(stream, scalar) for scalar in _STREAM_SCALARS}
    return Content(header, arrays | parameter_arrays)


def priors_content(priors: Priors) -> dict[str, NDArray]:
    """The arrays of priors, by their names in a file."""
    return {f"_prior.{name}": value for name, value in priors.parameters.items()}


def _stream_arrays(stream: Stream | None) -> dict[str, NDArray]:
    """What batches told, if there were any, but for the atoms."""
    if stream is None:
        return {}
    model = () if stream.model.is_empty else stream.model
    return dict(zip((*_STREAM_COUNTS, *_STREAM_MODEL), (stream.counts, *model), strict=False))


def split_parameters(
    estimator: Any, may_be_arrays: tuple[str, ...], skip: tuple[str, ...] = ()
) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Constructor parameters as JSON has them, and those that are arrays."""
    plain, arrays = {}, {}
    for parameter, value in estimator.get_params(deep=False).items():
        if parameter in skip:
            continue
        if parameter in may_be_arrays and np.ndim(value) > 0:
            arrays[f"parameter.{parameter}"] = _numbers(parameter, value)
        else:
            plain[parameter] = _plain(parameter, value)
    return plain, arrays


def _numbers(parameter: str, value: Any) -> NDArray:
    array = np.asarray(value)
    if array.dtype not in container.DTYPES.values():
        try:
            array = array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{parameter} must hold numbers to be saved.") from None
    return array


def _plain(parameter: str, value: Any) -> Any:
    """A constructor parameter as JSON has it."""
    if isinstance(value, RandomState):
        return None
    if isinstance(value, np.generic | np.ndarray) and np.ndim(value) == 0:
        value = value.item()
    finite = not isinstance(value, float) or math.isfinite(value)
    if not finite or not isinstance(value, bool | int | float | str | None):
        raise ValueError(f"{parameter} must be a number or text to be saved; found {value!r}.")
    return value


def _written(value: Any) -> Any:
    """A fitted number as JSON has it, which knows neither NaN nor infinity."""
    value = value.item() if isinstance(value, np.generic) else value
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


# --- reading --------------------------------------------------------------------------------


def array_names(kind: Any) -> set[str]:
    """Names of all arrays that a file of this class of estimators may hold."""
    own = (*kind._fitted_fields.all_arrays, *_STREAM_COUNTS, *_STREAM_MODEL)
    return {*own, *shared_names()}


def shared_names() -> set[str]:
    """Names of arrays that files of all classes may hold."""
    priors = {f"_prior.{name}" for name in PARAMETERS}
    return priors | {f"parameter.{parameter}" for parameter in PRIOR_PARAMETERS}


def rebuild(kind: Any, content: Content) -> Any:
    """The estimator that the content describes, or a ValueError that says what is wrong."""
    fields: FittedFields = kind._fitted_fields
    given = parameters(content, kind, "parameters", PRIOR_PARAMETERS, fields.older_parameters)
    if SCALE in content.arrays:  # of files from when the command line scaled, and no estimator
        given.setdefault("scale_features", True)
    kept = parameters(content, kind, _KEPT, ()) if _KEPT in content.header else {}
    for values in (given, given | kept):
        estimator = kind(**values)
        estimator._check_parameters()
    estimator._keep_parameters()
    estimator.set_params(**given)
    found = _COMMON_DEFAULTS | fields.defaults | content.header["fitted"]
    for scalar, value in _scalars(found, fields.scalars).items():
        setattr(estimator, scalar, value)
    sizes = _sizes(content, estimator)
    for name, field in fields.all_arrays.items():
        setattr(estimator, field.attribute or name, _fitted_array(content, name, fields, sizes))
    if _has_stream(content, fields):
        assert fields.stream_atoms is not None
        estimator._stream = _stream(content, getattr(estimator, fields.stream_atoms), sizes)
    if fields.has_priors:
        estimator._priors = read_priors(content, sizes)
    check_numbers(SCALE, getattr(estimator, SCALE), zero=False)
    set_feature_names(estimator, content)
    return estimator


def _has_stream(content: Content, fields: FittedFields) -> bool:
    return "stream" in content.header and fields.stream_atoms is not None


def _sizes(content: Content, estimator: Any) -> dict[str, int]:
    """How long each axis is."""
    fields: FittedFields = estimator._fitted_fields
    n_components, length = estimator._parameter("n_components"), estimator.n_iter_ + 1
    if _has_stream(content, fields):
        # A stream that did not begin with a fit has no objective before its first batch.
        length = min(length, len(np.atleast_1d(_array(content, fields.trace))))
    return {
        "2": 2,
        "J": len(np.atleast_1d(_array(content, "activations_"))),
        "K": n_components,
        "I": estimator.n_features_in_,
        "T": length,
        "P": n_components * (n_components + 1) // 2,
        "3": 3,
        "S": len(np.atleast_1d(content.arrays.get(DRAWS, ()))),
    }


def _fitted_array(
    content: Content, name: str, fields: FittedFields, sizes: dict[str, int]
) -> NDArray:
    """An array of a fit: of its shape and type, and with values that a fit can have."""
    field = fields.all_arrays[name]
    first = content.arrays.get(next(iter(fields.arrays)))
    single = field.of_data and first is not None and first.dtype == np.float32
    shape = tuple(sizes[axis] for axis in field.axes)
    if field.default is not None and name not in content.arrays:
        return np.full(shape, field.default)
    array = checked_array(content, name, shape, np.float32 if single else np.float64)
    if field.of_data:
        size = np.abs(array) if field.sign == "any" else array
        check_numbers(name, size, zero=field.sign != "positive")
    return array


def _stream(content: Content, atoms: NDArray, sizes: dict[str, int]) -> Stream:
    """What batches told."""
    header = content.header["stream"]
    if not isinstance(header, dict):
        raise ValueError("its stream is not described by numbers")
    scalars = {
        name: checked_scalar(name, header.get(name), kind) for name, kind in _STREAM_SCALARS.items()
    }
    if scalars["n_steps"] < 1 or not 0 < scalars["n_samples"] < math.inf:
        raise ValueError("its counts of batches and samples must be above 0")
    counts = _sized_array(content, "stream.counts", "2KI", sizes)
    check_numbers("stream.counts", counts, zero=True)
    model = NO_MODEL
    if any(name in content.arrays for name in _STREAM_MODEL):
        parts = [_sized_array(content, *pair, sizes) for pair in _STREAM_MODEL.items()]
        if not all(np.all(np.isfinite(part)) for part in parts):
            raise ValueError("its quadratic model is not finite")
        model = QuadraticModel(*parts)
    return Stream(atoms, counts, model, **scalars)


def parameters(
    content: Content,
    kind: Any,
    part: str,
    may_be_arrays: tuple[str, ...],
    renew: Callable[[dict[str, Any]], dict[str, Any]] = lambda given: given,
) -> dict[str, Any]:
    """Constructor parameters; those that a file does not have keep their defaults.

    `renew` makes those of today of those of an older file.
    """
    found = renew(dict(content.header[part]))
    for parameter in may_be_arrays:
        if f"parameter.{parameter}" in content.arrays:
            found[parameter] = content.arrays[f"parameter.{parameter}"]
    known = set(kind._get_param_names()) - {"estimator"}
    unknown = sorted(set(found) - set(known))
    if unknown:
        raise ValueError(f"it has an unknown parameter, {unknown[0]!r}")
    for parameter, value in found.items():
        if isinstance(value, dict | list):
            raise ValueError(f"its parameter {parameter!r} is neither a number nor text")
    return found


def _scalars(fitted: dict[str, Any], kinds: dict[str, type]) -> dict[str, Any]:
    values = {
        scalar: checked_scalar(scalar, fitted.get(scalar), kind) for scalar, kind in kinds.items()
    }
    for scalar in ("dispersion_", "_unit"):
        if not 0 < values.get(scalar, 1.0) < math.inf:
            raise ValueError(f"{scalar} is {values[scalar]}, not a positive number")
    for scalar, least in (("n_features_in_", 1), ("n_iter_", 0)):
        if values[scalar] < least:
            raise ValueError(f"{scalar} is {values[scalar]}, below {least}")
    if values["stop_reason_"] not in REASONS:
        raise ValueError(f"stop_reason_ is {values['stop_reason_']!r}, which is unknown")
    return values


def checked_scalar(name: str, value: Any, kind: type) -> Any:
    """A number or text of the header, of its type."""
    if kind is float and (type(value) in (int, float) or value in ("nan", "inf", "-inf")):
        return float(value)
    if type(value) is not kind:
        raise ValueError(f"{name} is {value!r}, not of type {kind.__name__}")
    return value


def _array(content: Content, name: str) -> NDArray:
    if name not in content.arrays:
        raise ValueError(f"{name} is missing")
    return content.arrays[name]


def checked_array(
    content: Content, name: str, shape: tuple[int, ...] | None, dtype: Any = np.float64
) -> NDArray:
    """An array of its shape, if that is known, and type."""
    array = _array(content, name)
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} has the shape {array.shape}, not {shape}")
    if array.dtype != dtype:
        raise ValueError(f"{name} has the type {array.dtype}, not {np.dtype(dtype)}")
    return array


def _sized_array(content: Content, name: str, axes: str, sizes: dict[str, int]) -> NDArray:
    return checked_array(content, name, tuple(sizes[axis] for axis in axes))


def check_numbers(name: str, array: NDArray, *, zero: bool) -> None:
    """Refuse numbers that are not finite, or below 0, or 0."""
    if not np.all(np.isfinite(array)) or np.any(array < 0) or (not zero and np.any(array == 0)):
        raise ValueError(f"{name} has values that are not {'at least' if zero else 'above'} 0")


def read_priors(content: Content, sizes: dict[str, int]) -> Priors:
    """The priors of a file."""
    arrays = []
    for parameter, axes in _PRIOR_AXES.items():
        name = f"_prior.{parameter}"
        array = checked_array(content, name, None)
        full = tuple(sizes[axis] for axis in axes)
        fits = array.ndim == len(full) and all(
            size in (1, most) for size, most in zip(array.shape, full, strict=True)
        )
        if not fits:
            raise ValueError(f"{name} has the shape {array.shape}, which does not suit {full}")
        check_numbers(name, array, zero=parameter == "activation_rate")
        arrays.append(array)
    return Priors.of(*arrays)


def set_feature_names(estimator: Any, content: Content) -> None:
    """Give the estimator the feature names of a file, if it has any."""
    names, n_features = content.header.get("feature_names"), estimator.n_features_in_
    if names is None:
        return
    if not isinstance(names, list) or len(names) != n_features:
        raise ValueError(f"it does not have one name for each of its {n_features} features")
    if not all(isinstance(name, str) for name in names):
        raise ValueError("its feature names are not all text")
    estimator.feature_names_in_ = np.array(names, dtype=object)
