"""Models and tables together: sizes of features, what there is to say of a model."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._estimators.tensor import BaseSNTF
from .._model.likelihoods import takes_integers
from .._views.dominance import dominant_feature
from .._views.misfit import root_mean_square
from .._views.shares import shares
from ..io import LEARNER, load
from .tables import Table, read_table

if TYPE_CHECKING:
    import pandas as pd

    from .options import TableOptions

# Cells that are looked at at a time: X may be as large as memory allows.
_CELLS = 1 << 20


def load_model(path: str, *, tensors: bool = False) -> Any:
    """A fitted estimator from a file; a learner is none, and few commands know of tensors."""
    model = load_file(path)
    if type(model).__name__ == LEARNER:
        raise ValueError(f"{path} has a learned prior, not a fitted model.")
    if is_tensor_model(model) and not tensors:
        raise ValueError(
            f"{path} has a tensor model, and this command is for tables; in Python, seminmf.load "
            "reads it."
        )
    return model


def is_tensor_model(model: Any) -> bool:
    """Whether it is a model that was written as a string."""
    return isinstance(model, BaseSNTF)


def load_file(path: str) -> Any:
    """What a file has, be it an estimator or a learner."""
    try:
        return load(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}.") from error


def feature_names(model: Any) -> list[str] | None:
    """Names of the features of a model or a learner, if they have any."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def read_for(model: Any, path: str, options: TableOptions) -> Table:
    """The table whose features are those of the model."""
    names = feature_names(model)
    if names is None:
        return replace(read_table(path, options), plain=True)
    table = read_table(path, options, names)
    found = [str(name) for name in table.features]
    if not table.named and found != names and len(found) == len(names):
        # Numbers alone: the features are in the order of the model's.
        frame = table.frame.rename(columns=dict(zip(table.features, names, strict=True)))
        return replace(table, frame=frame, features=names, named=True)
    return table


def check_scale(X: pd.DataFrame | NDArray, estimator: Any) -> None:
    """Warn of a feature that will decide the fit, if features are not scaled."""
    if estimator.scale_features or takes_integers(getattr(estimator, "likelihood", None)):
        return
    values = np.asarray(X, dtype=np.float64)
    step = max(1, _CELLS // len(values))
    parts = (values[:, first : first + step] for first in range(0, values.shape[1], step))
    with np.errstate(invalid="ignore"):
        sizes = np.concatenate([root_mean_square(part, axis=0) for part in parts])
    sizes = np.nan_to_num(sizes, nan=0.0)
    if not np.all(np.isfinite(sizes)) or not sizes.any():
        return  # the estimator will say what is wrong
    dominant = dominant_feature((sizes / sizes.max()) ** 2)
    if dominant is not None:
        name = X.columns[dominant.feature] if hasattr(X, "columns") else dominant.feature
        warnings.warn(
            f"The feature {str(name)!r} has {dominant.share:.0%} of all squares, "
            "and will decide the fit; --scale gives all features the same size.",
            UserWarning,
            stacklevel=2,
        )


def components_table(model: Any) -> pd.DataFrame:
    """The components, in the unit of the table: a row each, with its size before the features."""
    import pandas as pd

    components = np.asarray(model.components_, dtype=np.float64)
    numbered = [f"feature_{i}" for i in range(components.shape[1])]
    frame = pd.DataFrame(components, columns=feature_names(model) or numbered)
    frame.insert(0, "r2_drop", model.r2_drop_, allow_duplicates=True)
    frame.insert(0, "share", shares(model), allow_duplicates=True)
    frame.insert(0, "component", np.arange(len(components)), allow_duplicates=True)
    return frame


def component_names(model: Any) -> list[str]:
    """Names of the columns of activations."""
    return [f"component_{k}" for k in range(len(model.components_))]


def summary(model: Any) -> dict[str, Any]:
    """What there is to say of a fitted model."""
    objective = "lower_bound_" if hasattr(model, "lower_bound_") else "objective_"
    found = {
        "estimator": type(model).__name__,
        "n_components": len(model.components_),
        "n_samples": len(model.activations_),
        "n_features": model.n_features_in_,
        "converged": model.converged_,
        "stop_reason": model.stop_reason_,
        "n_iter": model.n_iter_,
        "solver": getattr(model, "solver_", None),
        "posterior": getattr(model, "posterior_", None),
        objective.rstrip("_"): getattr(model, objective),
        "dispersion": getattr(model, "dispersion_", None),
        "stability": model.stability_,
        "shares": shares(model),
        "r2": model.r2_,
        "r2_drop": None if np.isnan(model.r2_) else model.r2_drop_,
        "scaled": model._is_scaled,
        "parameters": _parameters(model),
        "feature_names": feature_names(model),
    }
    return {name: value for name, value in found.items() if value is not None}


def tensor_summary(model: Any) -> dict[str, Any]:
    """What there is to say of a fitted tensor model."""
    objective = "lower_bound_" if hasattr(model, "lower_bound_") else "objective_"
    inside = model._fitted.model
    names = {letter: own.name for letter, own in model._fitted.labels.items()}
    found = {
        "estimator": type(model).__name__,
        "model": model._parameter("model"),
        "sizes": inside.sizes,
        "names": {letter: name for letter, name in names.items() if name != letter} or None,
        "factors": {
            name: " × ".join(map(str, parts.shape[1:]))
            + (", signed" if len(parts) == 2 else "")
            + (", free" if inside.network.roles[name].is_free else ", sums to 1")
            for name, parts in model.parts_.items()
        },
        "converged": model.converged_,
        "stop_reason": model.stop_reason_,
        "n_iter": model.n_iter_,
        objective.rstrip("_"): getattr(model, objective),
        "dispersion": model.dispersion_,
        "noise": model.noise_ if np.size(model.noise_) else None,
        "r2": model.r2_,
        "r2_drop": model.r2_drop_,
        "parameters": _parameters(model),
    }
    return {name: value for name, value in found.items() if value is not None}


def _parameters(model: Any) -> dict[str, Any]:
    parameters = model.get_params(deep=False)
    return {
        name: f"array of shape {np.shape(value)}" if np.ndim(value) else value
        for name, value in parameters.items()
        if name != "estimator"
    }
