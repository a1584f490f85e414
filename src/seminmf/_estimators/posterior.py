"""What is asked of the posterior of a fitted model: draws, intervals, fills with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, check_random_state

from .._algorithms.activations import posterior_samples, solve_posterior
from .._algorithms.problem import Problem
from .._model.priors import Dirichlet, Gamma
from . import validation as check
from .base import like
from .posteriors import Correlated, Intervals, MeanField
from .skellam import BaseSkellamSNMF


class PosteriorSkellamSNMF(BaseSkellamSNMF):
    """Base of an estimator with posteriors; not for direct use.

    It has `activation_shape_`, `activation_rate_`, `atom_shape_`, `dispersion_` and
    `_intercept_of_fit`.
    """

    def _posterior(self) -> MeanField | Correlated:
        """That of the fit."""
        return MeanField(
            Gamma(self.activation_shape_, self.activation_rate_),
            Dirichlet(self.atom_shape_),
            self._intercept_of_fit[None],
        )

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
        return self._posterior().sample(n, check_random_state(random_state))

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
        """Credible intervals of activations, components, amounts and means of cells.

        Parameters
        ----------
        level : float, default=0.9
            Probability of each interval.
        n_draws : int, default=1000
            Draws of the atoms, of a mean field.
        random_state : int, RandomState or None, default=0

        Returns
        -------
        Intervals
            `.activations`, `.components`, `.amounts` and `.cells` (means of cells, without noise),
            each with `.lower` and `.upper`.
        """
        check_is_fitted(self)
        tails = check.check_level(level)
        check.check_count("n_draws", n_draws)
        random = check_random_state(random_state)
        return Intervals(self._posterior(), tails, n_draws, random, self.feature_scale_)

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
        tails = check.check_level(level)
        check.check_count("n_draws", n_draws)
        data = self._check_data(X, cell_noise=cell_noise)
        random = check_random_state(random_state)
        observed = self._unscaled(X, data).rows(0, data.shape[0])
        gaps = np.nonzero(np.isnan(observed))
        with self._fitted_problem(data) as problem:
            means, draws = self._drawn_gaps(problem, gaps, n_draws, random)
        filled = self._fill(X, data, means)
        ends = [np.array(observed, dtype=np.float64) for _ in tails]
        quantiles = np.quantile(draws, tails, axis=0) * self.feature_scale_[gaps[1]]
        for end, values in zip(ends, quantiles, strict=True):
            end[gaps] = values
        return filled, *(like(X, end) for end in ends)

    def _drawn_gaps(
        self, problem: Problem, gaps: tuple[NDArray, ...], n_draws: int, random: RandomState
    ) -> tuple[NDArray, NDArray]:
        """Means of the activations, and draws (n_draws, n_gaps) of new observations in gaps."""
        rows = solve_posterior(problem, self.atom_shape_)
        (_, means), _ = problem.over_samples(posterior_samples, (rows,))
        likelihood = self._likelihood()(1.0, self.dispersion_)
        rate = self._priors.activations.posterior_rate() / self.dispersion_
        posterior, atoms_posterior = Gamma(np.asarray(rows), rate), Dirichlet(self.atom_shape_)
        background = problem.model.background.of_cells(*gaps) * self._unit
        samples, features = gaps
        draws = np.empty((n_draws, len(samples)))
        for draw in draws:
            activations = posterior.draw(random)
            atoms = atoms_posterior.draw(random, 1)[0]
            rates = (
                base + np.einsum("nk,nk->n", activations[samples], atom.T[features])
                for base, atom in zip(background, atoms, strict=True)
            )
            draw[:] = likelihood.draw(*rates, random)
        return means, draws
