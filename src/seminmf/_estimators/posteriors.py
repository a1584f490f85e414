"""The two kinds of posteriors that a fit may have, and intervals by draws from them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.stats import gamma

from .._model.priors import Dirichlet, Gamma

Tails = tuple[float, float]
# Numbers of the draws of cells that are in memory at a time.
_MOST_NUMBERS = 1 << 23
# Most draws of everything at once.
_DRAWS_OF_ALL = 200


class Interval(NamedTuple):
    """Lower and upper end of credible intervals."""

    lower: NDArray
    upper: NDArray

    @classmethod
    def of_draws(cls, draws: NDArray, tails: Tails) -> Interval:
        """By the quantiles of draws, which are along the first axis."""
        return cls(*np.quantile(draws, tails, axis=0))


class MeanField(NamedTuple):
    """Independent gamma and Dirichlet distributions.

    Attributes
    ----------
    activations : Gamma
        (J, K), in the unit of X.
    atoms : Dirichlet
    intercept : (1, I) array
        Which is known.
    """

    activations: Gamma
    atoms: Dirichlet
    intercept: NDArray

    def sample(self, n: int, random: RandomState) -> tuple[NDArray, NDArray]:
        """Activations (n, J, K) and atoms (n, 2, K, I)."""
        shape = self.activations.shape.shape
        return self.activations.draw(random, (n, *shape)), self.atoms.draw(random, n)

    def activation_interval(self, tails: Tails) -> Interval:
        """By exact quantiles."""
        shape, rate = self.activations
        return Interval(*(gamma.ppf(tail, shape, scale=1 / rate) for tail in tails))

    def component_interval(self, tails: Tails, n_draws: int, random: RandomState) -> Interval:
        """From draws, one component at a time: those of all may need much memory."""
        shape = self.atoms.shape
        quantiles = np.empty((2, *shape.shape[1:]))
        for k in range(shape.shape[1]):
            atoms = Dirichlet(shape[:, k : k + 1]).draw(random, n_draws)
            quantiles[:, k] = np.quantile(atoms[:, 0, 0] - atoms[:, 1, 0], tails, axis=0)
        return Interval(*quantiles)


class Correlated(NamedTuple):
    """Draws from the joint posterior.

    Attributes
    ----------
    activations : (S, J, K) array
    atoms : (S, 2, K, I) array
    intercept : (S, I) array
    """

    activations: NDArray
    atoms: NDArray
    intercept: NDArray

    def sample(self, n: int, random: RandomState) -> tuple[NDArray, NDArray]:
        """Some of the draws: each at most once, unless more are asked for than there are."""
        n_draws = len(self.atoms)
        chosen = random.choice(n_draws, n, replace=n > n_draws)
        return self.activations[chosen], self.atoms[chosen]

    def activation_interval(self, tails: Tails) -> Interval:
        """By quantiles of the draws."""
        return Interval.of_draws(self.activations, tails)

    def component_interval(self, tails: Tails, n_draws: int, random: RandomState) -> Interval:
        """By quantiles of all draws."""
        return Interval.of_draws(self.components, tails)

    @property
    def components(self) -> NDArray:
        """Those of all draws, (S, K, I)."""
        return self.atoms[:, 0] - self.atoms[:, 1]


class Intervals:
    """Credible intervals of a fit, each with `.lower` and `.upper`.

    Attributes
    ----------
    activations, amounts : Interval
        Of shape (n_samples, n_components).
    components : Interval
        Of shape (n_components, n_features).
    cells : Interval
        Of shape (n_samples, n_features): means of cells, activations · components + intercept,
        without noise. Computed when first asked for.
    """

    def __init__(
        self,
        posterior: MeanField | Correlated,
        tails: Tails,
        n_draws: int,
        random: RandomState,
        scale: NDArray,
    ) -> None:
        # The posterior is of X / scale.
        self._posterior, self._tails, self._scale = posterior, tails, scale
        self.activations = posterior.activation_interval(tails)
        components = posterior.component_interval(tails, n_draws, random)
        self.components = Interval(*(end * scale for end in components))
        self._n_draws, self._random = min(n_draws, _DRAWS_OF_ALL), random

    def __iter__(self) -> Iterator[Interval]:
        """Those of activations, components, amounts and cells."""
        return iter((self.activations, self.components, self.amounts, self.cells))

    @cached_property
    def _draws(self) -> tuple[NDArray, NDArray]:
        """Activations and components of the same draws."""
        posterior = self._posterior
        if isinstance(posterior, Correlated):
            return posterior.activations, posterior.components
        activations, atoms = posterior.sample(self._n_draws, self._random)
        return activations, atoms[:, 0] - atoms[:, 1]

    @cached_property
    def amounts(self) -> Interval:
        """What each component puts into each sample."""
        activations, components = self._draws
        return Interval(*self._ends(activations * np.abs(components).sum(axis=2)[:, None]))

    @cached_property
    def cells(self) -> Interval:
        """Means of cells."""
        activations, components = self._draws
        n_draws, n_samples, _ = activations.shape
        n_features = components.shape[2]
        ends = np.empty((2, n_samples, n_features))
        size = max(1, _MOST_NUMBERS // (n_draws * n_features))
        for start in range(0, n_samples, size):
            rows = slice(start, start + size)
            means = activations[:, rows] @ components + self._posterior.intercept[:, None]
            ends[:, rows] = self._ends(means) * self._scale
        return Interval(*ends)

    def _ends(self, draws: NDArray) -> NDArray:
        """Lower and upper end, by draws along the first axis."""
        return np.quantile(draws, self._tails, axis=0)
