"""Model files: the arrays of a fitted estimator and a JSON header, in the safetensors format.

A file holds numbers and text, and nothing of it is ever executed: the class comes from a fixed
table, and whatever does not fit the table is refused.
"""

from __future__ import annotations

import math
import os
import warnings
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from ._algorithms.loop import REASONS
from ._algorithms.minibatch import Model, Stream
from ._algorithms.problem import Prior
from ._estimators import container as container
from ._estimators.container import Content
from ._prior_learning.atom_history import AtomHistory
from ._prior_learning.gaussian_potential import Belief
from ._prior_learning.prior_statistics import Statistics

FORMAT = "seminmf"
FORMAT_VERSION = 1

# Fitted arrays by estimator, with their axes: samples J, components K, features I, and T = one more
# than there were iterations.
_FACTORS = {"atoms_": "2KI", "activations_": "JK"}
_POSTERIOR = {"atom_shape_": "2KI", "activation_shape_": "JK", "activation_rate_": "JK"}
_ARRAYS = {
    "SkellamSNMF": {**_FACTORS, "objectives_": "T"},
    "BayesianSkellamSNMF": {**_FACTORS, **_POSTERIOR, "lower_bounds_": "T"},
    "EuclideanSNMF": {"components_": "KI", "activations_": "JK", "objectives_": "T"},
}
_COMMON_SCALARS: dict[str, type] = {
    "n_features_in_": int,
    "n_iter_": int,
    "converged_": bool,
    "stop_reason_": str,
    "stability_": float,
    "_unit": float,
}
_SCALARS: dict[str, dict[str, type]] = {
    "SkellamSNMF": {**_COMMON_SCALARS, "dispersion_": float, "objective_": float},
    "BayesianSkellamSNMF": {**_COMMON_SCALARS, "dispersion_": float, "lower_bound_": float},
    "EuclideanSNMF": {**_COMMON_SCALARS, "objective_": float},
}
_WITHOUT_PRIOR = ("EuclideanSNMF",)
_PRIOR_AXES = dict(zip(Prior._fields, ("JK", "JK", "2KI"), strict=True))
# Constructor parameters that may be arrays.
_ARRAY_PARAMETERS = tuple(f"{name}_prior" for name in Prior._fields)

# What batches told, by estimators that learn from them: P = K (K + 1) / 2, 3 as in `newton.Sweep`.
_STREAM_ATOMS = {"SkellamSNMF": "atoms_", "BayesianSkellamSNMF": "atom_shape_"}
_STREAM_COUNTS = {"stream.counts": "2KI"}
_STREAM_MODEL = {"stream.slopes": "2KI", "stream.grams": "3PI", "stream.price": "K"}
_STREAM_SCALARS: dict[str, type] = {"n_steps": int, "n_samples": float}

# What the command line divided the features by, if it did.
_SCALE = "feature_scale_"

# A learner: the statistics of its stream, and what fixes how the stream goes on.
LEARNER = "PriorLearner"
_STATISTICS = ("gamma", "delta")
_SHARING_PARAMETERS = ("activation_shape_sharing", "activation_rate_sharing", "atom_sharing")
_LEARNER_SCALARS: dict[str, type] = {
    "n_features_in_": int,
    "scale_": float,
    "_seed": int,
    "_n_samples": int,
}
_KINDS = (*_ARRAYS, LEARNER)
# Samples of a learner's matrices, where no array has as many numbers.
_MOST_SAMPLES = 10**7


# --- writing --------------------------------------------------------------------------------


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a file; the same as its method `save`.

    Parameters
    ----------
    estimator : SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF or PriorLearner
        A fitted estimator. A `random_state` that is a generator is written as None.
    path : str or path-like
        File to write, whole or not at all. An older file of that name is replaced.
    """
    name = type(estimator).__name__
    if name not in _KINDS or _class_of(name) is not type(estimator):
        raise ValueError(f"save takes one of {', '.join(_KINDS)}; found {name}.")
    content = _content_of(estimator, name)
    try:
        _rebuild(content)
    except ValueError as error:
        raise ValueError(f"This {name} cannot be saved: {error}") from error
    container.write(path, FORMAT, content)


def _content_of(estimator: Any, name: str) -> Content:
    from . import __version__

    content = _learner_content(estimator) if name == LEARNER else _model_content(estimator, name)
    names = getattr(estimator, "feature_names_in_", None)
    header = {
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "estimator": name,
        "feature_names": None if names is None else [str(label) for label in names],
        **content.header,
    }
    return Content(header, content.arrays)


def _model_content(estimator: Any, name: str) -> Content:
    """What is particular to a fitted estimator."""
    arrays = {array: getattr(estimator, array) for array in _ARRAYS[name]}
    if name not in _WITHOUT_PRIOR:
        prior = estimator._prior._asdict()
        arrays |= {f"_prior.{field}": value for field, value in prior.items()}
    stream = getattr(estimator, "_stream", None)
    arrays |= _stream_arrays(stream)
    if hasattr(estimator, _SCALE):
        arrays[_SCALE] = np.asarray(getattr(estimator, _SCALE), dtype=np.float64)
    parameters, parameter_arrays = _split_parameters(estimator, _ARRAY_PARAMETERS)
    fitted = {scalar: _written(getattr(estimator, scalar)) for scalar in _SCALARS[name]}
    header = {"parameters": parameters, "fitted": fitted}
    if stream is not None:
        header["stream"] = {scalar: getattr(stream, scalar) for scalar in _STREAM_SCALARS}
    return Content(header, arrays | parameter_arrays)


def _stream_arrays(stream: Stream | None) -> dict[str, NDArray]:
    """What batches told, if there were any, but for the atoms."""
    if stream is None:
        return {}
    model = () if stream.model is None else stream.model
    return dict(zip((*_STREAM_COUNTS, *_STREAM_MODEL), (stream.counts, *model), strict=False))


def _learner_content(learner: Any) -> Content:
    """What is particular to a learner: its estimator, and all that the next matrix needs."""
    learned = learner._learned
    arrays = {f"_prior.{field}": value for field, value in learned.prior._asdict().items()}
    arrays |= {name: getattr(learned.statistics, name) for name in _STATISTICS}
    arrays |= {f"atoms.{name}": value for name, value in learned.statistics.atoms._asdict().items()}
    arrays |= {f"belief.{name}": value for name, value in learned.belief._asdict().items()}
    inner, inner_arrays = _split_parameters(learner.estimator, _ARRAY_PARAMETERS)
    parameters, own_arrays = _split_parameters(learner, _SHARING_PARAMETERS, skip=("estimator",))
    fitted = {
        "n_matrices": learned.n_matrices,
        "weight": learned.weight,
        "n_samples": learned.statistics.n_samples,
        **{name: getattr(learner, name) for name in _LEARNER_SCALARS},
    }
    header = {"parameters": parameters, "estimator_parameters": inner, "fitted": fitted}
    return Content(header, arrays | inner_arrays | own_arrays)


def _split_parameters(
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


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fitted estimator from a file that its method `save` wrote.

    Parameters
    ----------
    path : str or path-like
        File to read.

    Returns
    -------
    SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF or PriorLearner
        It does what the one that was saved does, to the last bit. A model that the command line
        fitted with --scale has the attribute `feature_scale_`: it knows X / `feature_scale_`.

    Raises
    ------
    ValueError
        If the file is not a model, or not a sound one. Nothing in a file is executed.

    Examples
    --------
    >>> import tempfile
    >>> from seminmf import SkellamSNMF, load, sample_skellam_snmf
    >>> X, _, _ = sample_skellam_snmf(50, 4, 2, random_state=0)
    >>> model = SkellamSNMF(n_components=2, likelihood="integer", random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.safetensors")
    ...     again = load(f"{folder}/model.safetensors")
    >>> bool((again.transform(X) == model.transform(X)).all())
    True
    """
    try:
        estimator = _rebuild(container.read(path, FORMAT, _names_for))
    except ValueError as error:
        reason = str(error).rstrip(".")
        raise ValueError(f"{os.fspath(path)} is not a seminmf model: {reason}.") from error
    if hasattr(estimator, _SCALE):
        warnings.warn(
            "This model was fitted to scaled features: give it X / feature_scale_, and multiply "
            "what it fills in.",
            UserWarning,
            stacklevel=2,
        )
    return estimator


def _names_for(header: dict[str, Any]) -> set[str]:
    """Names of the arrays that a file with this header may hold, if it is one of ours."""
    version = header.get("format_version")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"its format version is {version!r}, and this library reads {FORMAT_VERSION}"
        )
    name = header.get("estimator")
    if not isinstance(name, str) or name not in _KINDS:
        raise ValueError(f"its estimator is {name!r}, which is unknown")
    inner = ("estimator_parameters",) if name == LEARNER else ()
    for part in ("parameters", "fitted", *inner):
        if not isinstance(header.get(part), dict):
            raise ValueError(f"its header has no {part}")
    return _array_names(name)


def _array_names(estimator: str) -> set[str]:
    """Names of all arrays that a file of this estimator may hold."""
    own = (
        (
            *_STATISTICS,
            *(f"atoms.{name}" for name in AtomHistory._fields),
            *(f"belief.{name}" for name in Belief._fields),
            *(f"parameter.{parameter}" for parameter in _SHARING_PARAMETERS),
        )
        if estimator == LEARNER
        else (*_ARRAYS[estimator], _SCALE, *_STREAM_COUNTS, *_STREAM_MODEL)
    )
    return {
        *own,
        *(f"_prior.{field}" for field in Prior._fields),
        *(f"parameter.{parameter}" for parameter in _ARRAY_PARAMETERS),
    }


def _class_of(estimator: str) -> Any:
    from . import BayesianSkellamSNMF, EuclideanSNMF, PriorLearner, SkellamSNMF

    return {
        "SkellamSNMF": SkellamSNMF,
        "BayesianSkellamSNMF": BayesianSkellamSNMF,
        "EuclideanSNMF": EuclideanSNMF,
        LEARNER: PriorLearner,
    }[estimator]


# --- from content to estimator ----------------------------------------------------------------


def _rebuild(content: Content) -> Any:
    """The estimator that the content describes, or a ValueError that says what is wrong."""
    name = content.header["estimator"]
    if name == LEARNER:
        return _rebuild_learner(content)
    estimator = _class_of(name)(**_parameters(content, name, "parameters", _ARRAY_PARAMETERS))
    estimator._check_parameters()
    for scalar, value in _scalars(content.header["fitted"], name).items():
        setattr(estimator, scalar, value)
    sizes = {
        "2": 2,
        "J": len(np.atleast_1d(_array(content, "activations_"))),
        "K": estimator.n_components,
        "I": estimator.n_features_in_,
        "T": estimator.n_iter_ + 1,
        "P": estimator.n_components * (estimator.n_components + 1) // 2,
        "3": 3,
    }
    if "stream" in content.header and name in _STREAM_ATOMS:
        # A stream that did not begin with a fit has no objective before its first batch.
        sizes["T"] = min(sizes["T"], len(np.atleast_1d(_array(content, list(_ARRAYS[name])[-1]))))
    for array, axes in _ARRAYS[name].items():
        setattr(estimator, array, _sized_array(content, array, axes, sizes))
    if "stream" in content.header and name in _STREAM_ATOMS:
        atoms = getattr(estimator, _STREAM_ATOMS[name])
        estimator._stream = _stream(content, atoms, sizes)
    if name not in _WITHOUT_PRIOR:
        estimator._prior = _prior(content, sizes)
    if _SCALE in content.arrays:
        scale = _checked_array(content, _SCALE, (sizes["I"],))
        _check_numbers(_SCALE, scale, zero=False)
        setattr(estimator, _SCALE, scale)
    names = _feature_names(content.header.get("feature_names"), sizes["I"])
    if names is not None:
        estimator.feature_names_in_ = names
    return estimator


def _stream(content: Content, atoms: NDArray, sizes: dict[str, int]) -> Stream:
    """What batches told."""
    header = content.header["stream"]
    if not isinstance(header, dict):
        raise ValueError("its stream is not described by numbers")
    scalars = {
        name: _checked_scalar(name, header.get(name), kind)
        for name, kind in _STREAM_SCALARS.items()
    }
    if scalars["n_steps"] < 1 or not 0 < scalars["n_samples"] < math.inf:
        raise ValueError("its counts of batches and samples must be above 0")
    counts = _sized_array(content, "stream.counts", "2KI", sizes)
    _check_numbers("stream.counts", counts, zero=True)
    model = None
    if any(name in content.arrays for name in _STREAM_MODEL):
        parts = [_sized_array(content, *pair, sizes) for pair in _STREAM_MODEL.items()]
        if not all(np.all(np.isfinite(part)) for part in parts):
            raise ValueError("its quadratic model is not finite")
        model = Model(*parts)
    return Stream(atoms, counts, model, **scalars)


def _rebuild_learner(content: Content) -> Any:
    """The learner that the content describes."""
    from .bayesian import BayesianSkellamSNMF

    inner_name = BayesianSkellamSNMF.__name__
    inner = _parameters(content, inner_name, "estimator_parameters", _ARRAY_PARAMETERS)
    estimator = BayesianSkellamSNMF(**inner)
    own = _parameters(content, LEARNER, "parameters", _SHARING_PARAMETERS)
    learner = _class_of(LEARNER)(estimator, **own)
    learner._check_parameters()
    fitted = content.header["fitted"]
    for scalar, kind in _LEARNER_SCALARS.items():
        setattr(learner, scalar, _checked_scalar(scalar, fitted.get(scalar), kind))
    if not 0 < learner.scale_ < math.inf or learner.n_features_in_ < 1 or learner._n_samples < 1:
        raise ValueError("its sizes and its scale must be above 0")
    numbers = {
        name: _checked_scalar(name, fitted.get(name), kind)
        for name, kind in (("n_matrices", int), ("weight", float), ("n_samples", float))
    }
    if numbers["n_matrices"] < 0 or not 0 < min(numbers["weight"], numbers["n_samples"]) < math.inf:
        raise ValueError("its counts of matrices and samples must be above 0")
    _check_sizes(content, learner)
    plan = learner._plan(learner._n_samples, learner.n_features_in_)
    learned = _learned(content, learner, plan, **numbers)
    names = _feature_names(content.header.get("feature_names"), learner.n_features_in_)
    if names is not None:
        learner.feature_names_in_ = names
    learner._publish(learned)
    return learner


def _check_sizes(content: Content, learner: Any) -> None:
    """Believe sizes only if arrays have them: what follows takes memory in proportion."""
    shape = (2, learner.estimator.n_components, learner.n_features_in_)
    _checked_array(content, "atoms.settled", shape)
    longest = max(len(np.atleast_1d(array)) for array in content.arrays.values())
    if learner._n_samples > max(_MOST_SAMPLES, longest):
        raise ValueError(f"its matrices have {learner._n_samples} samples, which none can have")


def _learned(
    content: Content, learner: Any, plan: Any, n_matrices: int, weight: float, n_samples: float
) -> Any:
    """What a learner knows, in arrays of the sizes that its sharing maps ask for."""
    n_components, n_features = learner.estimator.n_components, learner.n_features_in_
    sizes = {"2": 2, "J": learner._n_samples, "K": n_components, "I": n_features}
    prior = _prior(content, sizes)
    _check_numbers("_prior.activation_rate", prior.activation_rate, zero=False)
    # A learner that has seen nothing has all that is fixed by its settings.
    empty = learner._start(learner._n_samples, n_features, plan)
    gamma, delta = (
        _checked_array(content, name, getattr(empty.statistics, name).shape) for name in _STATISTICS
    )
    belief = Belief(
        *(
            _checked_array(content, f"belief.{name}", array.shape)
            for name, array in empty.belief._asdict().items()
        )
    )
    atoms = _atom_history(content, n_components, n_features)
    statistics = Statistics(n_samples, gamma, delta, atoms)
    if np.any(delta < 0) or not all(
        np.all(np.isfinite(a)) for a in (gamma, delta, *belief, *atoms)
    ):
        raise ValueError("its statistics are not finite, or its sums of activations are negative")
    return empty._replace(
        prior=prior, statistics=statistics, belief=belief, n_matrices=n_matrices, weight=weight
    )


def _atom_history(content: Content, n_components: int, n_features: int) -> AtomHistory:
    """What matrices said of the atoms."""
    shape = (2, n_components, n_features)
    weights = _array(content, "atoms.weights")
    records = (len(weights), *shape) if weights.ndim == 1 else ()
    shapes = {"settled": shape, "weights": records[:1]}
    history = AtomHistory(
        *(
            _checked_array(content, f"atoms.{name}", shapes.get(name, records))
            for name in AtomHistory._fields
        )
    )
    if not all(np.all(part >= 0) for part in (weights, history.information, history.best_for)):
        raise ValueError("its records have weights, shapes or information below 0")
    return history


def _parameters(
    content: Content, estimator: str, part: str, may_be_arrays: tuple[str, ...]
) -> dict[str, Any]:
    """Constructor parameters; those that a file does not have keep their defaults."""
    parameters = dict(content.header[part])
    for parameter in may_be_arrays:
        if f"parameter.{parameter}" in content.arrays:
            parameters[parameter] = content.arrays[f"parameter.{parameter}"]
    known = set(_class_of(estimator)._get_param_names()) - {"estimator"}
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        raise ValueError(f"it has an unknown parameter, {unknown[0]!r}")
    for parameter, value in parameters.items():
        if isinstance(value, dict | list):
            raise ValueError(f"its parameter {parameter!r} is neither a number nor text")
    return parameters


def _scalars(fitted: dict[str, Any], name: str) -> dict[str, Any]:
    values = {
        scalar: _checked_scalar(scalar, fitted.get(scalar), kind)
        for scalar, kind in _SCALARS[name].items()
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


def _checked_scalar(name: str, value: Any, kind: type) -> Any:
    if kind is float and (type(value) in (int, float) or value in ("nan", "inf", "-inf")):
        return float(value)
    if type(value) is not kind:
        raise ValueError(f"{name} is {value!r}, not of type {kind.__name__}")
    return value


def _array(content: Content, name: str) -> NDArray:
    if name not in content.arrays:
        raise ValueError(f"{name} is missing")
    return content.arrays[name]


def _checked_array(content: Content, name: str, shape: tuple[int, ...]) -> NDArray:
    """An array of a fit: of its shape and type, and with values that a fit can have."""
    array = _array(content, name)
    if array.shape != shape:
        raise ValueError(f"{name} has the shape {array.shape}, not {shape}")
    if name in (*_FACTORS, *_POSTERIOR, "components_"):
        first = "atoms_" if "atoms_" in content.arrays else "components_"
        single = content.arrays.get(first, array).dtype == np.float32
        expected = np.float32 if single else np.float64
        size = np.abs(array) if name == "components_" else array
        _check_numbers(name, size, zero=name not in _POSTERIOR)
    else:
        expected = np.float64
    if array.dtype != expected:
        raise ValueError(f"{name} has the type {array.dtype}, not {np.dtype(expected)}")
    return array


def _sized_array(content: Content, name: str, axes: str, sizes: dict[str, int]) -> NDArray:
    return _checked_array(content, name, tuple(sizes[axis] for axis in axes))


def _check_numbers(name: str, array: NDArray, *, zero: bool) -> None:
    if not np.all(np.isfinite(array)) or np.any(array < 0) or (not zero and np.any(array == 0)):
        raise ValueError(f"{name} has values that are not {'at least' if zero else 'above'} 0")


def _prior(content: Content, sizes: dict[str, int]) -> Prior:
    arrays = []
    for field, axes in _PRIOR_AXES.items():
        name = f"_prior.{field}"
        array = _array(content, name)
        full = tuple(sizes[axis] for axis in axes)
        fits = array.ndim == len(full) and all(
            size in (1, most) for size, most in zip(array.shape, full, strict=True)
        )
        if not fits:
            raise ValueError(f"{name} has the shape {array.shape}, which does not suit {full}")
        arrays.append(_checked_array(content, name, array.shape))
        _check_numbers(name, array, zero=field == "activation_rate")
    return Prior(*arrays)


def _feature_names(names: Any, n_features: int) -> NDArray | None:
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != n_features:
        raise ValueError(f"it does not have one name for each of its {n_features} features")
    if not all(isinstance(name, str) for name in names):
        raise ValueError("its feature names are not all text")
    return np.array(names, dtype=object)
