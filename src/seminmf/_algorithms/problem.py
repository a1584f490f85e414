"""What a step works on besides its state: a model, data, and where the work is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._data.executor import Executor, LocalExecutor
from .._data.source import Data, row_ranges
from .._data.summary import Summary
from .._kernels.em.estep import Expectations, estep
from .._kernels.em.sparse_estep import estep_of_cells
from .._model.model import Background, Model
from .._model.priors import Gamma

T = TypeVar("T")


class Own(NamedTuple):
    """What belongs to some samples alone: weights, and prior and background if they do."""

    weights: NDArray
    prior: Gamma | None
    background: Background | None


@dataclass(frozen=True)
class Problem:
    """A model, data, and the executor of work on the data's samples."""

    model: Model
    data: Data
    executor: Any

    @property
    def n_components(self) -> int:
        """Number of components, K."""
        return self.model.n_components

    @property
    def mass(self) -> float:
        """What one unit of computations counts against the priors."""
        return self.model.mass

    @property
    def dtype(self) -> np.dtype:
        """The type of the data, and so of the factors."""
        return self.data.source.dtype

    @cached_property
    def bound_constant(self) -> float:
        """The part of the variational bound that depends on the priors alone."""
        return bound_constant(self.model, self.data.weights, self.data.shape[1])

    # --- work on samples ---------------------------------------------------------------------

    def over_samples(self, function: Callable, rows: tuple, *shared: Any) -> tuple[tuple, tuple]:
        """Arrays and sums that a function returns for all samples (`Executor.run`)."""
        return self.executor.run(self, function, rows, shared)

    def map_samples(self, function: Callable[[slice], T]) -> list[T]:
        """What a function returns for ranges of the samples, one after the other or on threads."""
        ranges = row_ranges(self.data.source, self.n_components)
        return list(self.executor.map(lambda rows: function(slice(*rows)), ranges))

    def expectations(self, activations: NDArray, atoms: NDArray) -> Expectations:
        """Run the E-step at these activations and atoms, or their geometric means."""
        source, likelihood = self.data.source, self.model.likelihood
        run = estep_of_cells if source.stores_cells else estep
        return run(
            source,
            likelihood,
            activations,
            atoms,
            self.data.weights,
            self.executor,
            self.model.background,
        )

    def at(self, atoms: NDArray) -> Problem:
        """The problem with the prior of the activations that goes with these atoms."""
        if self.model.length_price is None:
            return self
        return replace(self, model=self.model.at(atoms))

    # --- the problem of some samples ----------------------------------------------------------

    def of_samples(self, rows: NDArray | slice) -> Problem:
        """The problem of some samples, which are here."""
        return replace(self, model=self.model.of_samples(rows), data=self.data.of_samples(rows))

    @property
    def per_sample(self) -> tuple[NDArray, Gamma | None, Background | None]:
        """What has a row for each sample: weights, and prior and background if they have."""
        prior, background = self.model.activations.prior, self.model.background
        return (
            self.data.weights,
            prior if prior.n_rows > 1 else None,
            background if background.n_rows > 1 else None,
        )

    def own_of(self, rows: slice) -> Own | None:
        """What belongs to some samples alone; None if all samples have the same."""
        weights, prior, background = self.per_sample
        if prior is background is None and np.all(weights == 1):
            return None
        return Own(
            weights[rows],
            None if prior is None else prior.of_samples(rows),
            None if background is None else background.of_samples(rows),
        )

    def without_samples(self) -> Problem:
        """What is the same for all samples, to be sent to where they are."""
        nothing: Any = None
        factor = self.model.activations
        if factor.prior.n_rows > 1:
            factor = factor._replace(prior=nothing)
        background = self.model.background
        if background.n_rows > 1:
            background = nothing
        model = self.model._replace(activations=factor, background=background)
        return Problem(model, Data(nothing, nothing, nothing), nothing)

    def with_samples(
        self, source: Any, summary: Summary, own: Own | None, executor: Executor
    ) -> Problem:
        """The problem of some samples, from what `without_samples` and `own_of` returned."""
        if own is None:
            return Problem(self.model, Data.unweighted(source, summary), executor)
        model = self.model
        if own.prior is not None:
            factor = model.activations._replace(prior=own.prior)
            model = model._replace(activations=factor)
        if own.background is not None:
            model = model._replace(background=own.background)
        return Problem(model, Data(source, summary, own.weights), executor)


def bound_constant(model: Model, weights: NDArray, n_features: int) -> float:
    """The same for samples that count as `weights` say."""
    n_components = model.n_components
    per_activation = model.activations.prior.bound_constant()
    per_sample = np.broadcast_to(per_activation, (len(weights), n_components)).sum(axis=1)
    atoms = model.atoms.prior.bound_constant((2, n_components, n_features))
    return float(per_sample @ weights + atoms)


def local_problem(model: Model, data: Data) -> Problem:
    """A problem that is worked on here, on one thread."""
    return Problem(model, data, LocalExecutor())
