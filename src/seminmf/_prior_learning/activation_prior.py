"""The activations' prior as parameters that are found together with the atoms."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._model.model import Priors
from .._model.priors import Gamma
from .hyperparameters import RATE_BOUNDS, SHAPE_BOUNDS
from .prior_statistics import Maps


class ActivationPrior(NamedTuple):
    """A gamma prior, and the labels (1, K) of the shapes and rates that are to be found.

    The parameters η are ln α of each shape label, then ln β of each rate label. Labels of None keep
    their part of the prior as it is.
    """

    prior: Gamma
    shape_labels: NDArray | None
    rate_labels: NDArray | None

    @classmethod
    def of(cls, prior: Priors, maps: Maps) -> ActivationPrior:
        """The prior, whose parameters are those that the maps have labels for."""
        own = prior.activations
        labels = (maps.activation_shape, maps.activation_rate)
        if any(part is not None for part in labels):
            own = Gamma(*np.broadcast_arrays(*own))
        return cls(own, *labels)

    def of_samples(self, rows: NDArray) -> ActivationPrior:
        """The prior of some samples; the same where all have the same."""
        return self._replace(prior=self.prior.of_samples(rows))

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
        for labels, values in zip((self.shape_labels, self.rate_labels), self.prior, strict=True):
            if labels is not None:
                cells = np.log(np.broadcast_to(values, labels.shape)[0])
                found.append(np.bincount(labels[0], weights=cells) / np.bincount(labels[0]))
        return np.concatenate([np.zeros(0), *found])

    def at(self, logs: NDArray) -> ActivationPrior:
        """The prior with other parameters, within their bounds."""
        n_shapes, _ = self.sizes
        shape, rate = self.prior
        if self.shape_labels is not None:
            shape = np.exp(np.clip(logs[:n_shapes], *np.log(SHAPE_BOUNDS)))[self.shape_labels]
        if self.rate_labels is not None:
            rate = np.exp(np.clip(logs[n_shapes:], *np.log(RATE_BOUNDS)))[self.rate_labels]
        return self._replace(prior=Gamma(shape, rate))

    def scores(self, activations: NDArray, log_activations: NDArray) -> NDArray:
        """Derivatives by η of each row's E[ln p(λ)]."""
        all_labels = self.shape_labels, self.rate_labels
        scores = self.prior.scores(activations, log_activations)
        parts = [
            np.zeros((len(activations), 0)) if labels is None else by_cell @ _indicator(labels)
            for labels, by_cell in zip(all_labels, scores, strict=True)
        ]
        return np.concatenate(parts, axis=1)


def _indicator(labels: NDArray) -> NDArray:
    """Which component has which label, as a matrix (K, n_labels)."""
    return np.eye(int(labels.max()) + 1)[labels[0]]
