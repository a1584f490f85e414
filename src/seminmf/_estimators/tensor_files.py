"""Files of fitted tensor models: arrays and a JSON header, of which nothing is ever executed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._model.language import read
from .._model.network import derive
from .._model.priors import Dirichlet, Gamma
from .container import Content
from .files import checked_scalar, write
from .tensor_build import Blueprint, Scales, drawn
from .tensor_fitted import Fitted, point_of
from .tensor_labels import Label, Labels
from .tensor_levels import Levels, wanted

_SCALARS: dict[str, type] = {"n_iter_": int, "converged_": bool, "stop_reason_": str, "r2_": float}
# Arrays of a factor, by their place in a file.
_OF_FACTOR = ("frozen", "known", "shape", "rate", "weights")


def save(estimator: Any, path: Any) -> None:
    """Write a fitted estimator to a file, whole or not at all."""
    write(estimator, path, content_of(estimator), rebuild)


def content_of(estimator: Any) -> Content:
    """What is particular to a fitted estimator."""
    fitted: Fitted = estimator._fitted
    values, last = estimator._trace
    arrays: dict[str, NDArray] = {"objectives": getattr(estimator, values)}
    parameters = _without_arrays("parameter", estimator.get_params(deep=False), arrays)
    header = {
        "parameters": parameters,
        "parameters_of_fit": _without_arrays("kept", estimator._kept, {}),
        "fitted": {name: getattr(estimator, name) for name in _SCALARS}
        | {last: float(getattr(estimator, last)), "solver_": estimator.solver_},
        "sizes": fitted.model.sizes,
        "signed": [
            name
            for name, layout in zip(fitted.model.names, fitted.model.layouts, strict=True)
            if layout.signs == 2
        ],
        "free": [name for name, role in fitted.model.network.roles.items() if role.is_free],
        "levels": {
            name: {"unit": own.unit, "dispersion": own.dispersion, "letter": own.letter}
            for name, own in fitted.levels.items()
        },
        "labels": {letter: _label(own) for letter, own in fitted.labels.items()},
    }
    for n, array in enumerate(fitted.state):
        arrays[f"state/{n}"] = array
    for n, factor in enumerate(fitted.factors):
        parts = (factor.frozen.astype(np.float64), factor.known, *factor.prior)
        for place, part in zip(_OF_FACTOR, parts, strict=False):
            arrays[f"{place}/{n}"] = np.asarray(part, dtype=np.float64)
        arrays[f"weights/{n}"] = factor.row_weights
    arrays |= {f"noise/{name}": own.noise for name, own in fitted.levels.items()}
    arrays |= {f"scale/{name}": own for name, own in fitted.scales.by_factor.items()}
    arrays |= {f"drop/{letter}": own for letter, own in estimator.r2_drop_.items()}
    stability = estimator.component_stability_.items()
    arrays |= {f"stability/{letter}": own for letter, own in stability}
    return Content(header, arrays)


def _without_arrays(place: str, value: Any, arrays: dict[str, NDArray]) -> Any:
    """A parameter as JSON has it; arrays go into `arrays`, and are named in their place."""
    if isinstance(value, Mapping):
        return {
            name: _without_arrays(f"{place}/{name}", one, arrays) for name, one in value.items()
        }
    if isinstance(value, str) or value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (tuple, list)) and all(isinstance(one, str) for one in value):
        return list(value)
    if isinstance(value, (np.number, np.bool_)):
        return value.item()
    if isinstance(value, np.random.RandomState):
        return None
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{place} must be numbers or text to be saved; found {value!r}.") from None
    arrays[place] = array
    return {"array": place}


def _with_arrays(value: Any, arrays: Mapping[str, NDArray]) -> Any:
    """The parameter of which `_without_arrays` made JSON."""
    if isinstance(value, dict) and set(value) == {"array"}:
        return arrays[value["array"]]
    if isinstance(value, dict):
        return {name: _with_arrays(one, arrays) for name, one in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _label(own: Label) -> dict[str, Any]:
    if own.values is None:
        return {"name": own.name, "values": None}
    if own.values.dtype.kind in "mM":
        values = own.values.astype(np.int64).tolist()
        return {"name": own.name, "values": values, "dtype": own.values.dtype.str}
    return {"name": own.name, "values": [_plain(value) for value in own.values.tolist()]}


def _plain(value: Any) -> Any:
    finite = not isinstance(value, float) or np.isfinite(value)
    return value if isinstance(value, (str, int, float)) and finite else str(value)


# --- reading --------------------------------------------------------------------------------


def rebuild(kind: Any, content: Content) -> Any:
    """The estimator that the content describes, or a ValueError that says what is wrong."""
    try:
        return _rebuilt(kind, content)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"it has not what a tensor model has ({error!r})") from error


def _rebuilt(kind: Any, content: Content) -> Any:
    header, arrays = content
    given = _with_arrays(header["parameters"], arrays)
    unknown = sorted(set(given) - set(kind._get_param_names()))
    if unknown:
        raise ValueError(f"it has an unknown parameter, {unknown[0]!r}")
    estimator = kind(**given)
    estimator._check_parameters()
    estimator._kept = _with_arrays(header["parameters_of_fit"], arrays)
    estimator._interrupted = False
    for name, type_ in _SCALARS.items():
        setattr(estimator, name, checked_scalar(name, header["fitted"][name], type_))
    values, last = kind._trace
    setattr(estimator, values, arrays["objectives"])
    setattr(estimator, last, checked_scalar(last, header["fitted"][last], float))
    # Files of the first version do not tell what the last two are.
    estimator.solver_ = checked_scalar("solver_", header["fitted"].get("solver_", "unknown"), str)
    estimator.r2_drop_ = _by_letter("drop", arrays)
    unknown_ones = {
        letter: np.full(own.shape, np.nan) for letter, own in estimator.r2_drop_.items()
    }
    estimator.component_stability_ = unknown_ones | _by_letter("stability", arrays)
    estimator._fitted = _fitted(estimator, header, arrays)
    return estimator


def _by_letter(kind: str, arrays: Mapping[str, NDArray]) -> dict[str, NDArray]:
    """Arrays of a kind, by latent letter."""
    return {
        name.partition("/")[2]: own for name, own in arrays.items() if name.startswith(f"{kind}/")
    }


def _fitted(estimator: Any, header: dict[str, Any], arrays: Mapping[str, NDArray]) -> Fitted:
    kept = estimator._kept
    plan = read(kept["model"])
    sizes = {letter: checked_scalar(letter, size, int) for letter, size in header["sizes"].items()}
    frozen = [arrays[f"frozen/{n}"] > 0 for n in range(len(plan.factors))]
    network = derive(
        plan,
        unit=kept["unit"],
        frozen=frozenset(name for name, own in zip(plan.factors, frozen, strict=True) if own.all()),
        loose=frozenset(header["free"]),
    )
    model = drawn(plan, sizes, header["signed"], network)
    factors = tuple(_factor(estimator, model, n, arrays) for n in range(len(model.names)))
    levels = {
        name: Levels(
            checked_scalar("unit", own["unit"], float),
            checked_scalar("dispersion", own["dispersion"], float),
            checked_scalar("letter", own["letter"], str),
            arrays[f"noise/{name}"],
        )
        for name, own in header["levels"].items()
    }
    n_rates = sum(factor.exposed for factor in factors) if estimator._variational else 0
    state = [arrays[f"state/{n}"] for n in range(len(factors) + n_rates)]
    for own, factor in zip(state, factors, strict=False):
        if own.shape != factor.layout.shape or not np.all(np.isfinite(own)) or np.any(own < 0):
            raise ValueError(f"its factor {factor.name!r} is no array of {factor.layout.shape}")
    scales = {
        name.partition("/")[2]: own for name, own in arrays.items() if name.startswith("scale/")
    }
    wants = wanted(plan, kept["likelihood"], kept["dispersion"], kept["noise"])
    return Fitted(
        model, wants, factors, point_of(state), levels, Scales(scales), _labels(header["labels"])
    )


def _factor(estimator: Any, model: Blueprint, n: int, arrays: Mapping[str, NDArray]) -> Any:
    from .._model.factors import TensorFactor

    layout = model.layouts[n]
    prior: Gamma | Dirichlet = Dirichlet(arrays[f"shape/{n}"])
    if layout.role.is_free:
        prior = Gamma(arrays[f"shape/{n}"], arrays[f"rate/{n}"])
    exposed = layout.role.is_free and model.network.is_exposed(model.names[n], model.plan.terms)
    return TensorFactor(
        model.names[n],
        layout,
        prior,
        arrays[f"frozen/{n}"] > 0,
        arrays[f"known/{n}"],
        exposed,
        arrays[f"weights/{n}"],
    )


def _labels(header: Mapping[str, Any]) -> Labels:
    return {
        letter: Label(
            own["name"],
            None
            if own["values"] is None
            else np.array(own["values"], dtype=_dtype(own.get("dtype"))),
        )
        for letter, own in header.items()
    }


def _dtype(name: Any) -> np.dtype | None:
    """The type of dates and times, which are numbers in a file."""
    dtype = None if name is None else np.dtype(name)
    if dtype is not None and dtype.kind not in "mM":
        raise ValueError(f"it has labels of an unknown type, {name!r}")
    return dtype
