"""What comes after a fit to tensors: factors as users read them, and what is asked of new data."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._data.summary import Accepted
from .._model.factors import TensorFactor
from .frame import FitFrame
from .tensor_build import Blueprint, Scales, scaled_out
from .tensor_data import Labels, labelled
from .tensor_draft import unit_of
from .tensor_levels import Levels, Wanted


class Fitted(NamedTuple):
    """What a fit leaves, as it is inside.

    Attributes
    ----------
    model : Blueprint
    wants : dict of Wanted
        By observed tensor, as the levels.
    factors : tuple of TensorFactor
    state : tuple of arrays
        A point of the algorithm.
    levels : dict of Levels
    scales : Scales
    labels : dict of Label
    """

    model: Blueprint
    wants: dict[str, Wanted]
    factors: tuple[TensorFactor, ...]
    state: Any
    levels: dict[str, Levels]
    scales: Scales
    labels: Labels


@lru_cache(maxsize=64)
def _point_type(n_arrays: int) -> type:
    """A NamedTuple of so many arrays, which acceleration and checkpoints take."""
    return namedtuple("TensorPoint", [f"array{n}" for n in range(n_arrays)])


def point_of(arrays: Sequence[NDArray]) -> Any:
    """Arrays as a point of algorithms."""
    return _point_type(len(arrays))(*arrays)


class TensorResults(FitFrame, TransformerMixin, BaseEstimator):
    """What is asked of a fitted estimator; not for direct use."""

    _variational: bool
    _algorithm: Any
    _fitted: Fitted
    _private_state = ("_interrupted", "_kept", "_fitted")
    _kept_parameters = ("model", "n_components", "signed", "unit", "check_integer")

    # --- factors ------------------------------------------------------------------------------

    @property
    def parts_(self) -> dict[str, NDArray]:
        """Both parts of signed factors (2, *sizes), and others as (1, *sizes)."""
        return self._user_parts()[0]

    @property
    def factors_(self) -> dict[str, Any]:
        """All factors, by their names, with the axes as written and the labels of X."""
        plan, labels = self._fitted.model.plan, self._fitted.labels
        return {
            name: labelled(
                parts[0] - parts[1] if len(parts) == 2 else parts[0],
                tuple(str(axis) for axis in plan.factors[name]),
                labels,
            )
            for name, parts in self.parts_.items()
        }

    @property
    def activations_(self) -> Any:
        """The factor with the unit of X, of the first term."""
        return self.factors_[self._fitted.model.network.units[0]]

    @property
    def table_weights_(self) -> dict[str, NDArray]:
        """What terms that have the same unit multiply it by: (terms, *latent cells)."""
        return self._user_parts()[1]

    @property
    def dispersion_(self) -> Any:
        """The dispersion, in the unit of X; a dict if there are several tensors."""
        return self._by_tensor({n: own.dispersion for n, own in self._fitted.levels.items()})

    @property
    def noise_(self) -> Any:
        """Standard deviation of the noise for each value of its letter, in the unit of X."""
        return self._by_tensor({n: own.noise for n, own in self._fitted.levels.items()})

    def _by_tensor(self, values: Mapping[str, Any]) -> Any:
        return next(iter(values.values())) if len(values) == 1 else dict(values)

    def _user_parts(self) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        """Parts of all factors in the unit of X, and the weights of terms."""
        check_is_fitted(self)
        model, levels = self._fitted.model, self._fitted.levels
        means = self._means()
        parts = {
            name: model.layout(name).unpack(means[n]) * means[n].dtype.type(unit_of(model, name, levels))
            for n, name in enumerate(model.names)
            if name in model.plan.factors
        }
        weights = model.table_weights(means)
        tensors = [
            observation.name
            for observation in model.plan.observations
            for _ in observation.terms
        ]
        for unit, terms in model.network.shared_units.items():
            for n, term in enumerate(terms):
                weights[unit][n] *= levels[tensors[term]].unit / unit_of(model, unit, levels)
        scaled_out(model, parts, weights, self._fitted.scales)
        return parts, weights

    def _means(self) -> list[NDArray]:
        """The factors inside, or their posterior means."""
        raise NotImplementedError

    def _accepted(self, wants: Mapping[str, Wanted]) -> dict[str, Accepted]:
        """Which numbers each tensor may have."""
        integer = self._parameter("check_integer")
        return {
            name: Accepted(
                want.kind.integers and integer, want.kind.largest, "likelihood='integer'"
            )
            for name, want in wants.items()
        }
