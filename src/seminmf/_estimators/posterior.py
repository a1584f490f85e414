"""What is asked of the posterior of a fitted model: draws, intervals, fills with intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.stats import gamma
from sklearn.utils.validation import check_is_fitted, check_random_state

from .._algorithms.activations import posterior_samples, solve_posterior
from .._model.priors import Dirichlet, Gamma
from . import validation as check
from .base import like
from .skellam import BaseSkellamSNMF


class Interval(NamedTuple):
    """Lower and upper end of credible intervals."""

    lower: NDArray
    upper: NDArray


class Intervals(NamedTuple):
    """Credible intervals of the activations (J, K) and of the components (K, I)."""

    activations: Interval
    components: Interval


class PosteriorSkellamSNMF(BaseSkellamSNMF):
    """Base of an estimator with gamma and Dirichlet posteriors; not for direct use.

    It has `activation_shape_`, `activation_rate_`, `atom_shape_` and `dispersion_`.
    """

    def sample(
        self, n: int = 1, random_state: int | RandomState | None = None
    ) -> tuple[NDArray, NDArray]:
        """Draw from the posterior.

        Parameters
        ----------
        n : int, default=1
            Number of draws.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        activations : ndarray of shape (n, n_samples, n_components)
            In the unit of X.
        atoms : ndarray of shape (n, 2, n_components, n_features)
        """
        check_is_fitted(self)
        check.check_count("n", n)
        random = check_random_state(random_state)
        posterior = Gamma(self.activation_shape_, self.activation_rate_)
        activations = posterior.draw(random, (n, *self.activation_shape_.shape))
        return activations, Dirichlet(self.atom_shape_).draw(random, n)

    def to_arviz(self, n_draws: int = 1000, random_state: int | RandomState | None = 0) -> Any:
        """Draws from the posterior for ArviZ, which must be installed.

        Parameters
        ----------
        n_draws : int, default=1000
            Number of draws. All are in memory: (n_samples + 3 n_features) n_components numbers
            each.
        random_state : int, RandomState or None, default=0

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1 on
            The group `posterior` has `activations`, `atoms` and `components`, with the dimensions
            sample, component, sign and feature. The draws are independent, in one chain.
        """
        from .arviz import to_arviz

        check_is_fitted(self)
        check.check_count("n_draws", n_draws)
        return to_arviz(self, n_draws, random_state)

    def interval(
        self,
        level: float = 0.9,
        n_draws: int = 1000,
        random_state: int | RandomState | None = 0,
    ) -> Intervals:
        """Credible intervals of activations (exact quantiles) and components (from draws).

        Parameters
        ----------
        level : float, default=0.9
            Probability of each interval.
        n_draws : int, default=1000
            Draws of the atoms.
        random_state : int, RandomState or None, default=0

        Returns
        -------
        Intervals
            `.activations` and `.components`, each with `.lower` and `.upper`.
        """
        check_is_fitted(self)
        tails = _tails(level)
        check.check_count("n_draws", n_draws)
        activations = Interval(
            *(
                gamma.ppf(tail, self.activation_shape_, scale=1 / self.activation_rate_)
                for tail in tails
            )
        )
        # One component at a time: the draws of all may need much memory.
        random = check_random_state(random_state)
        quantiles = np.empty((2, *self.atom_shape_.shape[1:]))
        for k in range(len(self.components_)):
            atoms = Dirichlet(self.atom_shape_[:, k : k + 1]).draw(random, n_draws)
            quantiles[:, k] = np.quantile(atoms[:, 0, 0] - atoms[:, 1, 0], tails, axis=0)
        return Intervals(activations, Interval(*quantiles))

    def impute(
        self,
        X: Any,
        return_interval: bool = False,
        level: float = 0.9,
        n_draws: int = 200,
        random_state: int | RandomState | None = 0,
        *,
        cell_noise: ArrayLike | None = None,
    ) -> Any:
        """X with its gaps filled by the factorization, with intervals for what was filled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        return_interval : bool, default=False
            Whether to return the ends of the predictive intervals as well.
        level : float, default=0.9
            Probability of each interval.
        n_draws : int, default=200
            Draws from the posterior, for the intervals.
        random_state : int, RandomState or None, default=0
        cell_noise : array-like that broadcasts to (n_samples, n_features)
            As for `transform`.

        Returns
        -------
        filled : ndarray or DataFrame of shape (n_samples, n_features)
            A DataFrame if X is one.
        lower, upper : ndarrays or DataFrames
            With `return_interval`: ends of the intervals in which a new observation falls, noise
            included. They equal X where it is observed.
        """
        if not return_interval:
            return super().impute(X, cell_noise=cell_noise)
        self._check_transformable()
        tails = _tails(level)
        check.check_count("n_draws", n_draws)
        data = self._check_data(X, cell_noise=cell_noise)
        with self._fitted_problem(data) as problem:
            rows = solve_posterior(problem, self.atom_shape_)
            (_, means), _ = problem.over_samples(posterior_samples, (rows,))
        shape = np.asarray(rows)
        filled = self._fill(X, data, means)
        random = check_random_state(random_state)
        observed = data.source.rows(0, data.source.shape[0])
        ends = [np.array(observed, dtype=np.float64) for _ in tails]
        gaps = np.nonzero(np.isnan(observed))
        quantiles = np.quantile(self._draw_cells(shape, gaps, n_draws, random), tails, axis=0)
        for end, values in zip(ends, quantiles, strict=True):
            end[gaps] = values
        return filled, *(like(X, end) for end in ends)

    def _draw_cells(
        self, shape: NDArray, cells: tuple[NDArray, ...], n_draws: int, random: RandomState
    ) -> NDArray:
        """Draws (n_draws, n_cells) of new observations in the cells given, by posterior shapes."""
        likelihood = self._likelihood()(1.0, self.dispersion_)
        posterior = Gamma(shape, self._priors.activations.posterior_rate() / self.dispersion_)
        atoms_posterior = Dirichlet(self.atom_shape_)
        samples, features = cells
        draws = np.empty((n_draws, len(samples)))
        for draw in draws:
            activations = posterior.draw(random)
            atoms = atoms_posterior.draw(random, 1)[0]
            rates = (
                np.einsum("nk,nk->n", activations[samples], atom.T[features]) for atom in atoms
            )
            draw[:] = likelihood.draw(*rates, random)
        return draws


def _tails(level: float) -> tuple[float, float]:
    level = check.check_share("level", level)
    return (1 - level) / 2, (1 + level) / 2
