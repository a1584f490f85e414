"""Data like those of a fit, and fits to them that start where it ended."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from .._data.source import Data

# Samples are drawn again if a feature had no observed cell left, so often at the most.
_MOST_TRIES = 100


class Refit(NamedTuple):
    """Factors of one refit, in the order of the model's components.

    Attributes
    ----------
    activations : (J, K) array
        Of the samples of X.
    components : (K, I) array
    intercept : (I,) array
    cosines : (K,) array
        Of each component with the model's.
    """

    activations: NDArray
    components: NDArray
    intercept: NDArray
    cosines: NDArray


class Refits(NamedTuple):
    """A model, its data in the unit of its fit, and how data like these are drawn.

    Attributes
    ----------
    model : fitted estimator
    data : Data
    X : (J, I) array
    kind : {"parametric", "rows"}
    frozen : (K,) boolean array
    """

    model: Any
    data: Data
    X: NDArray
    kind: str
    frozen: NDArray

    @classmethod
    def of(cls, model: Any, data: Data, kind: str, frozen: NDArray) -> Refits:
        """With the data as an array."""
        return cls(model, data, data.source.rows(0, data.shape[0]), kind, frozen)

    def draw(self, random: RandomState) -> Refit:
        """Draw data, and fit to them."""
        if self.kind == "rows":
            rows = self._drawn_rows(random)
            refit = self._fitted(self.X[rows], rows)
            activations = refit.transform(self.X, **self._cell_noise())
        else:
            drawn = self.model._drawn_like(self.data, random)
            refit = self._fitted(np.where(np.isnan(self.X), np.nan, drawn).astype(self.X.dtype))
            activations = refit.activations_
        intercept = np.broadcast_to(getattr(refit, "intercept_", 0.0), self.X.shape[1])
        return self._matched(activations, refit.components_, intercept)

    def _cell_noise(self, rows: NDArray | None = None) -> dict[str, NDArray]:
        """What is known of the noise of cells, as an argument."""
        noise = self.data.cell_noise
        if noise is None:
            return {}
        return {"cell_noise": noise if rows is None or len(noise) == 1 else noise[rows]}

    def _drawn_rows(self, random: RandomState) -> NDArray:
        """Numbers of samples, with repetitions; each feature keeps an observed cell."""
        observed = ~np.isnan(self.X)
        seen = observed.any(axis=0)
        for _ in range(_MOST_TRIES):
            rows = random.randint(len(observed), size=len(observed))
            if np.array_equal(observed[rows].any(axis=0), seen):
                return rows
        raise ValueError(
            "kind must be 'parametric' where a feature is observed in few samples only; "
            "found 'rows'."
        )

    def _fitted(self, X: NDArray, rows: NDArray | None = None) -> Any:
        """A fit to X, of which `rows` says where in the data it comes from."""
        estimator, start = self.model._refitting()
        if rows is not None:
            start["activations"] = start["activations"][rows]
        return estimator.fit(X, **start, frozen=self.frozen, **self._cell_noise(rows))

    def _matched(self, activations: NDArray, components: NDArray, intercept: NDArray) -> Refit:
        """The refit with its components in the order and of the size of the model's."""
        own = np.asarray(self.model._components_of_fit, dtype=np.float64)
        components = np.asarray(components, dtype=np.float64)
        cosines = _cosines(own, components)
        order = np.arange(len(own))
        free = np.flatnonzero(~self.frozen)
        order[free] = free[linear_sum_assignment(-cosines[np.ix_(free, free)])[1]]
        activations, components = activations[:, order], components[order]
        if not hasattr(self.model, "atoms_"):
            # Least squares leaves open how large a component is and how large its activations.
            sizes = _sizes(own) / _sizes(components)
            components, activations = components * sizes[:, None], activations / sizes
        return Refit(activations, components, intercept, cosines[np.arange(len(own)), order])


def _sizes(components: NDArray) -> NDArray:
    """Σ |W| of each component; 1 where that is 0."""
    sizes = np.abs(components).sum(axis=1)
    return np.where(sizes > 0, sizes, 1.0)


def _cosines(first: NDArray, second: NDArray) -> NDArray:
    lengths = np.outer(np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1))
    return (first @ second.T) / np.where(lengths > 0, lengths, 1)
