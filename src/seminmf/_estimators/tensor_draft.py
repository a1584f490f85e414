"""A tensor model with data, before its levels are known; and the problem once they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._algorithms.tensor import Table, TensorModel, TensorProblem
from .._algorithms.tensor_newton import Mode
from .._algorithms.tensor_rows import RowColumns, row_data
from .._data.dense import DenseSource
from .._data.source import BlockSource, Data
from .._data.summary import ANY_NUMBERS
from .._data.tensors import SlicedTensor
from .._model.language import Observation
from .._model.split import MOST_COPIED, Split
from .tensor_build import (
    Blueprint,
    Given,
    PriorValues,
    Scales,
    scaled_in,
    table,
    tensor_factors,
    unfolded,
)
from .tensor_levels import Levels, Wanted, unit_of
from .tensor_modes import Rows, rows_of, tables_with

# κ, the price of an amount in units of the noise.
_PRICE = 0.3


class Observed(NamedTuple):
    """An observed tensor as a matrix, with its sums and the weights of its rows."""

    observation: Observation
    split: Split
    data: Data

    def table(self, model: Blueprint, want: Wanted, levels: Levels, executor: Any) -> Table:
        """The same as algorithms see it."""
        likelihood = want.kind(levels.unit, levels.unit)
        own = self.observation, self.split, self.data
        return table(model, *own, likelihood, levels.rates, executor)


def observe(
    model: Blueprint,
    observation: Observation,
    array: Any,
    weights: NDArray,
    rows: tuple[str, ...] | None = None,
    left: frozenset[str] | None = None,
) -> Observed:
    """An observed tensor as a matrix; `rows` and `left` choose how (`split`)."""
    own = model.split(observation, rows, left)
    source = _source(model, observation, own, array)
    row_weights = np.ones(own.n_rows)
    if observation.output[0] == model.plan.sample and len(weights) == own.shape[0]:
        row_weights = np.repeat(weights, own.n_rows // own.shape[0])
    data = Data(source, source.summarise(ANY_NUMBERS), row_weights)
    return Observed(observation, own, data)


def _source(model: Blueprint, observation: Observation, own: Split, array: Any) -> BlockSource:
    """Where the samples of an observed tensor are."""
    if isinstance(array, np.ndarray):
        return DenseSource(unfolded(model, observation, own, array))
    padding = observation.padding(model.sizes)
    order = [observation.output.index(letter) for letter in (*own.rows, *own.features)]
    in_order = order == sorted(order) and not any(padding.values())
    if isinstance(array, SlicedTensor) and not in_order:
        return DenseSource(unfolded(model, observation, own, array.dense()))
    return array.source(order, [padding[letter] for letter in observation.output], len(own.rows))


class Turned(NamedTuple):
    """The factors of a letter that Newton's method goes over, and the tensors with it as rows."""

    rows: Rows
    tables: dict[str, Observed]


class Draft(NamedTuple):
    """What is known before the levels are."""

    model: Blueprint
    wants: dict[str, Wanted]
    observed: dict[str, Observed]
    priors: dict[str, PriorValues]
    given: dict[str, Given]
    weights: NDArray
    executor: Any
    variational: bool
    auto_rates: frozenset[str]
    turned: Mapping[str, Turned] = MappingProxyType({})

    @property
    def priors_speak(self) -> bool:
        """Whether priors say how large factors are."""
        return self.variational or any(np.any(own.shape != 1) for own in self.priors.values())

    def known(self, levels: Mapping[str, Levels]) -> tuple[dict[str, NDArray], Scales]:
        """Given values in units of computations, brought to where factors sum to 1."""
        given = {}
        for name, own in self.given.items():
            unit = unit_of(self.model, name, levels)
            given[name] = own._replace(parts=own.parts / unit)
        return scaled_in(self.model, given)

    def problem(self, levels: Mapping[str, Levels]) -> TensorProblem:
        """The problem that algorithms see."""
        known, _ = self.known(levels)
        factors = tensor_factors(
            self.model,
            self._priced(levels),
            self.given,
            known,
            self.weights,
            variational=self.variational,
        )
        tables = tuple(
            own.table(self.model, self.wants[name], levels[name], self.executor)
            for name, own in self.observed.items()
        )
        model = TensorModel(factors, has_rates=self.variational)
        modes = () if self.variational else tuple(self._modes(levels))
        return TensorProblem(model, tables, modes)

    def with_rows(self, arrays: Mapping[str, Any]) -> Draft:
        """The same with the tensors once more for each letter that Newton's method goes over."""
        too_many = max(math.prod(own.split.shape) for own in self.observed.values()) > MOST_COPIED
        kinds = {(want.kind, want.letter is None) for want in self.wants.values()}
        in_memory = all(isinstance(array, np.ndarray) for array in arrays.values())
        if np.any(self.weights != 1) or too_many or len(kinds) > 1 or not in_memory:
            return self
        turned = {}
        for letter, rows in rows_of(self.model, self._fixed, self._constant).items():
            left = frozenset(rows.names)
            tables = {
                one.name: observe(self.model, one, arrays[one.name], self.weights, (letter,), left)
                for one in tables_with(self.model, letter)
            }
            turned[letter] = Turned(rows, tables)
        return self._replace(turned=turned)

    @property
    def _fixed(self) -> frozenset[str]:
        """Factors that Newton's method cannot move: some of it is frozen, or has no flat prior."""
        frozen = {name for name, own in self.given.items() if own.frozen.any()}
        return frozenset(frozen | {n for n, own in self.priors.items() if np.any(own.shape != 1)})

    @property
    def _constant(self) -> frozenset[tuple[str, str]]:
        """Factors that stay altogether, with the letters that make no difference in them."""
        found = set()
        for name, own in self.given.items():
            for n, axis in enumerate(self.model.plan.factors[name], start=1):
                same = own.is_frozen and np.ptp(own.parts, axis=n).max() == 0
                if same and own.parts.any():
                    found.add((name, str(axis)))
        return frozenset(found)

    def _modes(self, levels: Mapping[str, Levels]) -> Iterator[Mode]:
        """What Newton's method goes over."""
        model = self.model
        for letter, (rows, observed) in self.turned.items():
            tables = tuple(
                own.table(model, self.wants[name], levels[name], self.executor)
                for name, own in observed.items()
            )
            layouts = {model.names.index(name): model.layout(name) for name in rows.names}
            columns, data = RowColumns.of(letter, layouts), row_data(tables)
            constant = frozenset(model.names.index(name) for name in rows.constant)
            yield Mode(columns, tables, data, rows.pushes, constant)

    def _priced(self, levels: Mapping[str, Levels]) -> dict[str, PriorValues]:
        """The priors, with the rates of units that are to be found where there is noise."""
        priors = dict(self.priors)
        for observation in self.model.plan.observations:
            own = levels[observation.name]
            for term in self.model.terms_of(observation):
                unit = self.model.network.units[term]
                if unit in self.auto_rates and own.noise.size:
                    rate = own.unit * self._price(observation, unit, own)
                    priors[unit] = priors[unit]._replace(rate=np.array(rate))
        return priors

    def _price(self, observation: Observation, unit: str, levels: Levels) -> float:
        """The price of one unit of X: κ n, the length n that of the noise itself, of sum 1.

        n = √cells / Σ σ, over the cells that one entry of the unit is in.
        """
        own = {axis.letter for axis in self.model.plan.factors[unit]}
        others = [letter for letter in observation.output if letter not in own]
        n_cells = math.prod(self.model.sizes[letter] for letter in others)
        return _PRICE / (math.sqrt(n_cells) * float(levels.noise.mean()))

    def starts(self, levels: Mapping[str, Levels]) -> dict[int, NDArray]:
        """Given values, by the numbers of factors, as they are inside."""
        known, _ = self.known(levels)
        names = self.model.names
        return {
            names.index(name): self.model.layout(name).pack(parts) for name, parts in known.items()
        }
