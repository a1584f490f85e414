"""What pictures take from a model, after the checks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._estimators import validation as check
from .._estimators.base import BaseSNMF
from .._estimators.tensor import BaseSNTF
from .._views.shares import shares
from ._frame import limit_of


def check_model(model: Any, *, tensors: bool = False) -> None:
    """Refuse what is no estimator of this library, or not fitted; tensor models where they fit."""
    is_tensor = isinstance(model, BaseSNTF)
    if not (isinstance(model, BaseSNMF) or (tensors and is_tensor)):
        hint = "; plot.factors draws factors of tensors" if is_tensor else ""
        raise ValueError(
            "model must be a SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF; "
            f"found an object of type {type(model).__name__}{hint}."
        )
    check_is_fitted(model)


def check_flag(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; found {value!r}.")


def check_index(name: str, value: Any, size: int) -> int:
    """An integer from 0 to below `size`."""
    integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not integer or not 0 <= value < size:
        raise ValueError(f"{name} must be an integer from 0 to {size - 1}; found {value!r}.")
    return int(value)


def activations_of(model: Any, X: Any) -> NDArray:
    """Activations (J, K) of X, or of the training data if X is None."""
    return model.activations_ if X is None else np.asarray(model.transform(X))


def amounts_of(model: Any, X: Any) -> NDArray:
    """Amounts (J, K) of the components in X, or in the training data if X is None."""
    return model.amounts_ if X is None else np.asarray(model._amounts(model.transform(X)))


def component_order(model: Any, order: str) -> NDArray[np.intp]:
    """Indices of the components: as they are, or the largest share first."""
    check.check_choice("order", order, ("share", "index"))
    if order == "index":
        return np.arange(len(model.components_))
    return np.argsort(-shares(model), kind="stable")


def component_titles(model: Any, picked: NDArray[np.intp]) -> list[str]:
    """Index and share of each component picked."""
    return [f"{k} ({share:.0%})" for k, share in zip(picked, shares(model)[picked], strict=True)]


def relative(components: NDArray) -> NDArray:
    """Each component (a row) in units of its largest |value|."""
    return components / np.array([limit_of(row) for row in components])[:, None]


def largest_features(components: NDArray, most: int) -> NDArray[np.intp]:
    """Indices of at most so many features, the largest ones, in their own order.

    A feature is as large as it is in one of the components, relative to that component's largest:
    so each component shows what it is made of.
    """
    sizes = np.abs(relative(components)).max(axis=0)
    return np.sort(np.argsort(-sizes, kind="stable")[:most])
