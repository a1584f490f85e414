"""The activations' prior as parameters that are found together with the atoms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from .._algorithms.problem import Prior
from .hyperparameters import RATE_BOUNDS, SHAPE_BOUNDS
from .prior_statistics import Maps


class ActivationPrior(NamedTuple):
    """Shapes and rates, and the labels (1, K) of those that are to be found.

    The parameters η are ln α of each shape label, then ln β of each rate label. Labels of None keep
    their part of the prior as it is.
    """

    shape: NDArray
    rate: NDArray
    shape_labels: NDArray | None
    rate_labels: NDArray | None

    @classmethod
    def of(cls, prior: Prior, maps: Maps) -> ActivationPrior:
        """The prior, whose parameters are those that the maps have labels for."""
        shape, rate = prior.activation_shape, prior.activation_rate
        labels = (maps.activation_shape, maps.activation_rate)
        if any(part is not None for part in labels):
            shape, rate = np.broadcast_arrays(shape, rate)
        return cls(shape, rate, *labels)

    def of_samples(self, rows: NDArray) -> ActivationPrior:
        """The prior of some samples; the same where all have the same."""
        shape, rate = (part[rows] if len(part) > 1 else part for part in (self.shape, self.rate))
        return self._replace(shape=shape, rate=rate)

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of shapes and rates to find."""
        shapes, rates = (
            0 if labels is None else int(labels.max()) + 1
            for labels in (self.shape_labels, self.rate_labels)
        )
        return shapes, rates

    @property
    def logs(self) -> NDArray:
        """The parameters η."""
        found = []
        for labels, values in ((self.shape_labels, self.shape), (self.rate_labels, self.rate)):
            if labels is not None:
                cells = np.log(np.broadcast_to(values, labels.shape)[0])
                found.append(np.bincount(labels[0], weights=cells) / np.bincount(labels[0]))
        return np.concatenate([np.zeros(0), *found])

    def at(self, logs: NDArray) -> ActivationPrior:
        """The prior with other parameters, within their bounds."""
        n_shapes, _ = self.sizes
        shape, rate = self.shape, self.rate
        if self.shape_labels is not None:
            shape = np.exp(np.clip(logs[:n_shapes], *np.log(SHAPE_BOUNDS)))[self.shape_labels]
        if self.rate_labels is not None:
            rate = np.exp(np.clip(logs[n_shapes:], *np.log(RATE_BOUNDS)))[self.rate_labels]
        return self._replace(shape=shape, rate=rate)

    def scores(self, activations: NDArray, log_activations: NDArray) -> NDArray:
        """Derivatives by η of each row's E[ln p(λ)]."""
        by_shape = self.shape * (np.log(self.rate) - digamma(self.shape) + log_activations)
        by_rate = self.shape - self.rate * activations
        parts = [
            np.zeros((len(activations), 0)) if labels is None else by_cell @ _indicator(labels)
            for labels, by_cell in ((self.shape_labels, by_shape), (self.rate_labels, by_rate))
        ]
        return np.concatenate(parts, axis=1)


def _indicator(labels: NDArray) -> NDArray:
    """Which component has which label, as a matrix (K, n_labels)."""
    return np.eye(int(labels.max()) + 1)[labels[0]]
