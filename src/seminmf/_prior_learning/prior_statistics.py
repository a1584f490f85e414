"""What posteriors tell about their prior, summed by the labels of the sharing maps.

The statistics of the paper's Section "Estimation of hyperparameters": γ, δ and ξ, and with them how
many samples they come from, because matrices may differ in that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import digamma

from .._model.model import Priors
from ..special import inverse_digamma
from .atom_history import AtomHistory, AtomRecord
from .hyperparameters import (
    DIRICHLET,
    RATE_BOUNDS,
    SHAPE_BOUNDS,
    Objective,
    best_rates,
    incidence,
    maximise,
)

# How often the atoms' prior and what its history says with it follow each other: some times for
# this many matrices, and once for more, which change it little.
_ROUNDS, _FEW = 3, 50


class Expectations(NamedTuple):
    """Posterior means of λ and ln λ (J, K), in the unit of the prior, and of ln θ (2, K, I).

    `record` is what the data say of the atoms, if it is known apart from the prior.
    """

    activations: NDArray
    log_activations: NDArray
    log_atoms: NDArray
    record: AtomRecord | None = None

    @classmethod
    def of(cls, shape: NDArray, rate: NDArray, atom_shape: NDArray) -> Expectations:
        """Those of a gamma posterior with these shapes and rates, and of a Dirichlet posterior."""
        shape, atom_shape = shape.astype(np.float64), atom_shape.astype(np.float64)
        totals = atom_shape.sum(axis=(0, 2), keepdims=True)
        return cls(
            shape / rate, digamma(shape) - np.log(rate), digamma(atom_shape) - digamma(totals)
        )

    def of_components(self, order: Any) -> Expectations:
        """Those of some components, in some order."""
        record = None if self.record is None else self.record.ordered(order)
        activations, log_activations, log_atoms = (part[:, order] for part in self[:3])
        return Expectations(activations, log_activations, log_atoms, record)


def best_order(prior: Priors, expected: Expectations) -> NDArray:
    """Order of the posterior's components in which the prior explains them best.

    The bound changes with the order by nothing but this, so the best order never lowers it.
    """
    parameters = prior.parameters.values()
    shape, rate, atom_shape = (np.asarray(part, dtype=np.float64) for part in parameters)
    n_samples, n_components = expected.activations.shape
    shape, rate = (np.broadcast_to(part, (n_samples, n_components)) for part in (shape, rate))
    atom_shape = np.broadcast_to(atom_shape, expected.log_atoms.shape)
    gains = (
        expected.log_activations.T @ shape
        - expected.activations.T @ rate
        + np.einsum("ski,sli->kl", expected.log_atoms, atom_shape)
    )
    found, slots = linear_sum_assignment(gains, maximize=True)
    order = found[np.argsort(slots)]
    kept = np.arange(n_components)
    # No change for nothing: a prior that does not tell the components apart leaves their order.
    better = gains[order, kept].sum() - gains[kept, kept].sum()
    return order if better > 1e-9 * np.abs(gains).sum() else kept


@dataclass(frozen=True)
class Maps:
    """Sharing maps: labels of the activations' shapes and rates (R, K) and of the atoms (2, K, I).

    R is 1 where all samples share their labels, so that matrices may differ in their number, or
    else the number of samples. None is a prior that is not learned.
    """

    activation_shape: NDArray | None
    activation_rate: NDArray | None
    atom_shape: NDArray | None

    def found_with_atoms(self) -> Maps:
        """Those of the activations that do not tell samples apart."""
        rows = (self.activation_shape, self.activation_rate)
        shape, rate = (
            labels if labels is not None and len(labels) == 1 else None for labels in rows
        )
        return Maps(shape, rate, None)

    def without(self, others: Maps) -> Maps:
        """The maps for what the others do not learn."""
        shape, rate = (
            own if other is None else None
            for own, other in (
                (self.activation_shape, others.activation_shape),
                (self.activation_rate, others.activation_rate),
            )
        )
        return Maps(shape, rate, self.atom_shape)

    @cached_property
    def sizes(self) -> tuple[int, int, int]:
        """Numbers of labels; 0 for what is not learned."""
        shape, rate, atoms = (
            0 if labels is None else int(labels.max()) + 1
            for labels in (self.activation_shape, self.activation_rate, self.atom_shape)
        )
        return shape, rate, atoms

    @cached_property
    def pairs(self) -> Any:
        """How often rate and shape labels meet in the rows of the maps."""
        assert self.activation_shape is not None and self.activation_rate is not None
        rates, shapes = np.broadcast_arrays(self.activation_rate, self.activation_shape)
        return incidence(rates, shapes, (self.sizes[1], self.sizes[0]))

    @cached_property
    def atom_pairs(self) -> Any:
        """How many entries of each component have each label."""
        assert self.atom_shape is not None
        components = np.broadcast_to(
            np.arange(self.atom_shape.shape[1])[:, None], self.atom_shape.shape
        )
        shape = (self.atom_shape.shape[1], self.sizes[2])
        return incidence(components, self.atom_shape, shape)


class Statistics(NamedTuple):
    """γ and δ by label, for a matrix of `n_samples` samples on average, and what ξ follows from.

    γ and δ are empty where a prior is not learned.
    """

    n_samples: float
    gamma: NDArray
    delta: NDArray
    atoms: AtomHistory

    @classmethod
    def of(cls, expected: Expectations, maps: Maps) -> Statistics:
        """Statistics of one matrix (the paper's equations for γ, δ and ξ with T = 1)."""
        n_shapes, n_rates, _ = maps.sizes
        follows = expected.record is not None and maps.atom_shape is not None
        return cls(
            float(len(expected.activations)),
            _sums(expected.log_activations, maps.activation_shape, n_shapes),
            _sums(expected.activations, maps.activation_rate, n_rates),
            AtomHistory.following(expected.record)  # type: ignore[arg-type]
            if follows
            else AtomHistory.fixed(expected.log_atoms),
        )

    def blend(self, new: Statistics, rate: float, atom_rate: float) -> Statistics:
        """(1 − c) times these plus c times the new ones: the paper's online recursion."""
        return Statistics(
            (1 - rate) * self.n_samples + rate * new.n_samples,
            (1 - rate) * self.gamma + rate * new.gamma,
            (1 - rate) * self.delta + rate * new.delta,
            self.atoms.times(1 - atom_rate).joined(new.atoms.times(atom_rate)),
        )

    @staticmethod
    def mean(parts: list[Statistics]) -> Statistics:
        """Average over matrices."""
        n_samples, gamma, delta, histories = zip(*parts, strict=True)
        first, *others = (history.times(1 / len(parts)) for history in histories)
        return Statistics(
            float(np.mean(n_samples)),
            np.mean(gamma, axis=0),
            np.mean(delta, axis=0),
            first.joined(*others),
        )


def _sums(values: NDArray, labels: NDArray | None, n_labels: int) -> NDArray:
    """Sum of the values of each label."""
    if labels is None:
        return np.zeros(0)
    if labels.shape != values.shape:  # one row of labels for all samples
        values = values.sum(axis=0, keepdims=True)
    return np.bincount(labels.ravel(), weights=values.ravel(), minlength=n_labels)


def update_prior(
    prior: Priors, statistics: Statistics, maps: Maps, hyperprior: float = 0.0
) -> Priors:
    """The prior that maximises the bound of the posteriors that the statistics come from.

    `hyperprior` is the rate of an exponential distribution of each shape, divided by the number of
    matrices that the statistics stand for.
    """
    shape, rate = _update_gamma(prior, statistics, maps, hyperprior)
    return Priors.of(shape, rate, _update_dirichlet(prior, statistics, maps, hyperprior))


def bounds_met(prior: Priors, maps: Maps) -> tuple[str, ...]:
    """Sentences on what met a bound."""
    return (
        *_notes(
            "activation_shape_prior", prior.activations.shape, maps.activation_shape, SHAPE_BOUNDS
        ),
        *_notes("activation_rate_prior", prior.activations.rate, maps.activation_rate, RATE_BOUNDS),
        *_notes("atom_shape_prior", prior.atoms.shape, maps.atom_shape, SHAPE_BOUNDS),
    )


def _update_gamma(
    prior: Priors, statistics: Statistics, maps: Maps, hyperprior: float
) -> tuple[NDArray, NDArray]:
    """Proposition 1: shapes and rates of the activations, of which either may be given."""
    shape, rate = prior.activations.shape, prior.activations.rate
    shape_labels, rate_labels = maps.activation_shape, maps.activation_rate
    if shape_labels is None and rate_labels is None:
        return shape, rate
    # One row of labels stands for all samples.
    labels = shape_labels if shape_labels is not None else rate_labels
    assert labels is not None
    multiplicity = statistics.n_samples if len(labels) == 1 else 1.0
    delta = np.maximum(statistics.delta, np.finfo(float).tiny)
    if shape_labels is None:
        assert rate_labels is not None
        shapes = multiplicity * _spread_sums(shape, rate_labels, maps.sizes[1])
        return shape, _clipped(shapes / delta, RATE_BOUNDS)[rate_labels]
    gamma = statistics.gamma - hyperprior
    counts = multiplicity * np.bincount(shape_labels.ravel()).astype(np.float64)
    if rate_labels is None:
        logs = multiplicity * _spread_sums(np.log(rate), shape_labels, maps.sizes[0])
        best = inverse_digamma((logs + gamma) / counts)
        return _clipped(best, SHAPE_BOUNDS)[shape_labels], rate
    pairs = multiplicity * maps.pairs
    objective = Objective(pairs, pairs.sum(axis=0), gamma, best_rates(delta))
    before = _label_values(shape, shape_labels, maps.sizes[0])
    best = maximise(objective, before)
    free = (pairs @ best) / delta
    rates = _clipped(free, RATE_BOUNDS)
    if not np.array_equal(rates, free):
        # Away from the best rates the best shapes are others: one after the other, from before.
        rates = _clipped((pairs @ before) / delta, RATE_BOUNDS)
        best = _clipped(
            inverse_digamma((pairs.T @ np.log(rates) + gamma) / objective.counts), SHAPE_BOUNDS
        )
    return best[shape_labels], rates[rate_labels]


def _update_dirichlet(
    prior: Priors, statistics: Statistics, maps: Maps, hyperprior: float
) -> NDArray:
    """Proposition 2: shapes of the atoms."""
    labels = maps.atom_shape
    if labels is None:
        return prior.atoms.shape
    counts = np.bincount(labels.ravel()).astype(np.float64)
    best = _label_values(prior.atoms.shape, labels, maps.sizes[2])
    for _ in range(_ROUNDS if 0 < len(statistics.atoms.weights) <= _FEW else 1):
        xi = _sums(statistics.atoms.log_atoms(best[labels]), labels, maps.sizes[2])
        best = maximise(Objective(maps.atom_pairs, counts, xi - hyperprior, DIRICHLET), best)
    return best[labels]


def _spread_sums(values: NDArray, labels: NDArray, n_labels: int) -> NDArray:
    """Sum over the cells of each label of values that broadcast to the labels' shape."""
    cells = np.broadcast_to(values, labels.shape)
    return np.bincount(labels.ravel(), weights=cells.ravel(), minlength=n_labels)


def _label_values(values: NDArray, labels: NDArray, n_labels: int) -> NDArray:
    """One value for each label, the mean over its cells, within the bounds."""
    sums = _spread_sums(values, labels, n_labels)
    return _clipped(sums / np.bincount(labels.ravel()), SHAPE_BOUNDS)


def _clipped(values: NDArray, bounds: tuple[float, float]) -> NDArray:
    return np.clip(values, *bounds)


def _notes(
    name: str, values: NDArray, labels: NDArray | None, bounds: tuple[float, float]
) -> list[str]:
    if labels is None:
        return []
    notes = []
    for bound in bounds:
        met = np.unique(labels[np.isclose(values, bound, rtol=1e-12, atol=0)])
        if met.size:
            shown = ", ".join(str(label) for label in met[:5]) + (", ..." if met.size > 5 else "")
            notes.append(
                f"{name} reached its bound of {bound:g} for {met.size} labels ({shown}): "
                "the matrices do not say where it should end."
            )
    return notes
