"""Models and tables together: scaling, clusters, what there is to say of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._shares import shares
from ..io import LEARNER, load
from .tables import Table, read_table

if TYPE_CHECKING:
    import pandas as pd

    from .options import TableOptions


def load_model(path: str) -> Any:
    """A fitted estimator from a file; a learner is none."""
    model = load_file(path)
    if type(model).__name__ == LEARNER:
        raise ValueError(f"{path} has a learned prior, not a fitted model.")
    return model


def load_file(path: str) -> Any:
    """What a file has, be it an estimator or a learner."""
    try:
        return load(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_for(model: Any, path: str, options: TableOptions) -> Table:
    """The table whose features are those of the model."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return replace(read_table(path, options), plain=True)
    table = read_table(path, options, [str(name) for name in names])
    if not table.named and len(table.features) == len(names):
        # Numbers alone: the features are in the order of the model's.
        frame = table.frame.rename(columns=dict(zip(table.features, names, strict=True)))
        return replace(table, frame=frame, features=list(names), named=True)
    return table


def scale_of(X: pd.DataFrame | NDArray) -> NDArray:
    """Root mean square of each feature's observed cells; 1 where that is 0.

    The mean stays where it is: signs and zeros mean something.
    """
    values = np.asarray(X, dtype=np.float64)
    largest = np.nanmax(np.abs(values), axis=0, initial=0.0)
    unit = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    count = np.maximum(np.sum(~np.isnan(values), axis=0), 1)
    return unit * np.sqrt(np.nansum((values / unit) ** 2, axis=0) / count + (largest == 0))


def scaled(model: Any, X: pd.DataFrame | NDArray) -> pd.DataFrame | NDArray:
    """Features as the model was fitted to them."""
    scale = getattr(model, "feature_scale_", None)
    return X if scale is None else X / scale


def unscaled(model: Any, values: Any) -> Any:
    """Values of features in the unit of the table."""
    scale = getattr(model, "feature_scale_", None)
    return values if scale is None else values * scale


def components_table(model: Any) -> pd.DataFrame:
    """The components, in the unit of the table: a row each, with its share before the features."""
    import pandas as pd

    components = unscaled(model, np.asarray(model.components_, dtype=np.float64))
    names = getattr(
        model, "feature_names_in_", [f"feature_{i}" for i in range(components.shape[1])]
    )
    frame = pd.DataFrame(components, columns=[str(name) for name in names])
    frame.insert(0, "share", shares(model), allow_duplicates=True)
    frame.insert(0, "component", np.arange(len(components)), allow_duplicates=True)
    return frame


def component_names(model: Any) -> list[str]:
    """Names of the columns of activations."""
    return [f"component_{k}" for k in range(len(model.components_))]


def summary(model: Any) -> dict[str, Any]:
    """What there is to say of a fitted model."""
    names = getattr(model, "feature_names_in_", None)
    objective = "lower_bound_" if hasattr(model, "lower_bound_") else "objective_"
    found = {
        "estimator": type(model).__name__,
        "n_components": model.n_components,
        "n_samples": len(model.activations_),
        "n_features": model.n_features_in_,
        "converged": model.converged_,
        "stop_reason": model.stop_reason_,
        "n_iter": model.n_iter_,
        objective.rstrip("_"): getattr(model, objective),
        "dispersion": getattr(model, "dispersion_", None),
        "stability": model.stability_,
        "shares": shares(model),
        "scaled": hasattr(model, "feature_scale_"),
        "parameters": _parameters(model),
        "feature_names": None if names is None else [str(name) for name in names],
    }
    return {name: value for name, value in found.items() if value is not None}


def _parameters(model: Any) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    return {
        name: f"array of shape {np.shape(value)}" if np.ndim(value) else value
        for name, value in parameters.items()
        if name != "estimator"
    }
