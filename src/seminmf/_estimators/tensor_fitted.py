"""A fitted tensor model as it is inside, and its factors as users read them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._algorithms import tensor_vb
from .._algorithms.dispersion import LEAST_DISPERSION, SMALLEST_DISPERSION
from .._algorithms.tensor import TensorModel, TensorProblem
from .._model.factors import TensorFactor
from .._model.language import Observation
from .._model.likelihoods import Real
from .tensor_build import Blueprint, Scales, folded, scaled_out
from .tensor_labels import Labels
from .tensor_levels import Levels, Wanted, unit_of


@lru_cache(maxsize=64)
def _point_type(n_arrays: int) -> type:
    """A NamedTuple of so many arrays, which acceleration and checkpoints take."""
    return namedtuple("TensorPoint", [f"array{n}" for n in range(n_arrays)])


def point_of(arrays: Sequence[NDArray]) -> Any:
    """Arrays as a point of algorithms."""
    return _point_type(len(arrays))(*arrays)


def signed_values(parts: NDArray) -> NDArray:
    """The values of a factor from its parts."""
    return parts[0] - parts[1] if len(parts) == 2 else parts[0]


class Parts(NamedTuple):
    """Factors in the unit of X, as (signs, *sizes), and what terms multiply shared units by."""

    factors: dict[str, NDArray]
    weights: dict[str, NDArray]


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

    def means(self, variational: bool) -> list[NDArray]:
        """The factors inside, or their posterior means."""
        if not variational:
            return list(self.state)
        return tensor_vb.means_of(TensorModel(self.factors, has_rates=True), self.state)

    def parts(self, means: Sequence[NDArray]) -> Parts:
        """Factors in the unit of X, from those inside or draws of them."""
        model, levels = self.model, self.levels
        units = {name: unit_of(model, name, levels) for name in model.plan.factors}
        parts = {
            name: model.layout(name).unpack(means[n]) * means[n].dtype.type(units[name])
            for n, name in enumerate(model.names)
            if name in units
        }
        weights = model.table_weights(means)
        tensors = [one.name for one in model.plan.observations for _ in one.terms]
        for unit, terms in model.network.shared_units.items():
            scales = [levels[tensors[term]].unit / units[unit] for term in terms]
            weights[unit] = weights[unit] * np.reshape(
                scales, (-1,) + (1,) * (weights[unit].ndim - 1)
            )
        scaled_out(model, parts, weights, self.scales)
        return Parts(parts, weights)

    def rates(self, parts: Parts, observation: Observation) -> NDArray:
        """Rates of both signs (2, *shape) of a tensor, without noise, in the unit of X."""
        model = self.model
        own = model.split(observation)
        point = model.packed(parts.factors, parts.weights)
        rates = own.left(point) @ own.right(point)
        return np.stack([folded(model, observation, own, rate) for rate in rates])

    def noise_rates(self, observation: Observation) -> NDArray:
        """What noise adds to the rates of both signs, broadcasting to the tensor."""
        levels = self.levels[observation.name]
        noise = levels.rates
        if noise is None:
            return np.zeros((1,) * len(observation.output))
        shape = [-1 if letter == noise.letter else 1 for letter in observation.output]
        return levels.unit * np.reshape(noise.rates, shape)

    def expected(self, parts: Parts, observation: Observation) -> NDArray:
        """The tensor that the factors stand for."""
        positive, negative = self.rates(parts, observation)
        return positive - negative


def with_dispersion(
    problem: TensorProblem, fitted: Fitted, means: Sequence[NDArray]
) -> dict[str, Levels]:
    """The levels, with the dispersion of the residuals where it is no part of the model.

    φ = 2 ΣD / (observed cells − numbers that were fitted), each tensor with its share of these.
    """
    n_cells = {table.name: table.n_observed for table in problem.tables}
    levels = dict(fitted.levels)
    for table in problem.tables:
        if fitted.wants[table.name].kind is not Real:
            continue
        alone = TensorProblem(problem.model, (table,))
        n_fitted = fitted.model.n_fitted(fitted.factors) * n_cells[table.name]
        freedom = max(n_cells[table.name] - n_fitted / sum(n_cells.values()), 1.0)
        estimate = -2 * alone.expectations(means).data_term * levels[table.name].unit / freedom
        size = table.problem.data.summary.mean_size
        own = max(estimate, LEAST_DISPERSION * size, SMALLEST_DISPERSION)
        levels[table.name] = levels[table.name]._replace(dispersion=own)
    return levels
