"""How near found factors are to the true ones: matching, and four numbers."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment


class Factors(NamedTuple):
    """Activations (J, K) and components (K, I)."""

    activations: NDArray
    components: NDArray

    @property
    def shape(self) -> tuple[int, int]:
        """Of the product."""
        return len(self.activations), self.components.shape[1]

    @property
    def amounts(self) -> NDArray:
        """What each component puts into each sample."""
        return self.activations * np.abs(self.components).sum(axis=1)

    def product(self) -> NDArray:
        """Activations · components."""
        return self.activations @ self.components

    def with_features_over(self, units: NDArray | float) -> Factors:
        """The same for data whose features are divided by their units."""
        return self._replace(components=self.components / units)

    def matched(self, true_components: NDArray, *, flip: bool = False) -> Factors:
        """In the order of the true components; `flip` if a component may change its sign."""
        cosines = cosine_matrix(true_components, self.components)
        order = best_pairs(np.abs(cosines) if flip else cosines)
        chosen = cosines[np.arange(len(order)), order]
        signs = np.where(chosen < 0, -1.0, 1.0) if flip else np.ones(len(order))
        return Factors(signs * self.activations[:, order], signs[:, None] * self.components[order])


class Scores(NamedTuple):
    """Means over the components, after matching, but for labels and slope.

    Attributes
    ----------
    cosine : float
        Of true and found components.
    correlation : float
        Of true and found amounts.
    labels : float
        Share of the samples whose largest amount is that of the right component.
    slope : float
        Of found amounts over true ones, through the origin, all components together.
    """

    cosine: float
    correlation: float
    labels: float
    slope: float


def score(found: Factors, truth: Factors, *, flip: bool = False) -> Scores:
    """Compare factors with the true ones."""
    found = found.matched(truth.components, flip=flip)
    true, amounts = truth.amounts, found.amounts
    cosines = np.diag(cosine_matrix(truth.components, found.components))
    return Scores(
        cosine=float(cosines.mean()),
        correlation=float(np.diag(correlation_matrix(true, amounts)).mean()),
        labels=float(np.mean(true.argmax(axis=1) == amounts.argmax(axis=1))),
        slope=float(np.sum(true * amounts) / np.sum(true**2)),
    )


def agreement(runs: list[NDArray]) -> float:
    """Mean cosine of matched components, over all pairs of runs."""
    return float(np.mean([matched_cosines(*pair).mean() for pair in combinations(runs, 2)]))


def matched_cosines(first: NDArray, second: NDArray) -> NDArray:
    """Cosine of each component of the first with its match in the second."""
    cosines = cosine_matrix(first, second)
    return cosines[np.arange(len(first)), best_pairs(cosines)]


def best_pairs(similarities: NDArray) -> NDArray:
    """The column for each row, by the Hungarian method."""
    return linear_sum_assignment(similarities, maximize=True)[1]


def cosine_matrix(first: NDArray, second: NDArray) -> NDArray:
    """Cosines of rows with rows; those of rows of zeros are 0."""
    first, second = _unit_rows(first), _unit_rows(second)
    return first @ second.T


def correlation_matrix(first: NDArray, second: NDArray) -> NDArray:
    """Correlations of columns with columns; those of constant columns are 0."""
    return cosine_matrix((first - first.mean(axis=0)).T, (second - second.mean(axis=0)).T)


def _unit_rows(rows: NDArray) -> NDArray:
    rows = rows / np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo(float).tiny)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(float).tiny)
