"""What both Skellam estimators share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray

from .._algorithms.acceleration import METHODS as ACCELERATIONS
from .._algorithms.cells import fill_samples, score_samples, source_samples
from .._algorithms.explained import Explained
from .._algorithms.problem import Problem
from .._algorithms.start import METHODS as STARTS
from .._data.dense import DenseSource
from .._data.opening import ZEROS
from .._data.source import Data, all_blocks
from .._data.summary import Accepted
from .._model.likelihoods import LIKELIHOODS, Dispersed, takes_integers
from .._model.model import NO_BACKGROUND, Background, Model, Priors
from . import validation as check
from .base import BaseSNMF
from .build import choose_unit, open_problem

# Noise that is known counts as between these, against the largest |x|: beyond, it is none or all.
_NOISE_RANGE, _LEAST = (1e-12, 1e12), 1e-150


class BaseSkellamSNMF(BaseSNMF):
    """Base of the Skellam estimators; not for direct use.

    An estimator has `_prior_scale`, the unit that its priors speak in, and `_solve_rows` for the
    activations of a problem's samples.
    """

    _starts: tuple[str, ...] = STARTS
    _default_for_unobserved = "what the prior says"
    _private_state = (*BaseSNMF._private_state, "_priors", "_stream")
    _kept_parameters: tuple[str, ...] = (
        "n_components",
        "likelihood",
        "check_integer",
        "sparse_zeros",
    )

    # --- the frame of a fit -----------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check.check_choice("likelihood", self.likelihood, tuple(LIKELIHOODS))
        check.check_choice("acceleration", self.acceleration, ACCELERATIONS)
        check.check_choice("sparse_zeros", self.sparse_zeros, ZEROS)
        if self.scale_features and takes_integers(self.likelihood):
            raise ValueError(
                "scale_features makes real numbers of integers, so it must be False for "
                f"likelihood={self.likelihood!r}; found True."
            )

    def _check_data(self, X: Any, *, fitted: bool = True, cell_noise: Any = None) -> Data:
        check.check_choice("sparse_zeros", self._parameter("sparse_zeros"), ZEROS)
        data = super()._check_data(X, fitted=fitted)
        if cell_noise is None:
            return data
        if not issubclass(self._likelihood(), Dispersed):
            raise ValueError(
                "cell_noise must be None without a component for noise: for likelihood='integer' "
                "and for dispersion=0.0; found a value."
            )
        deviation = self._of_fit(check.check_cell_noise(cell_noise, X, data))
        unknown = np.isinf(deviation)
        if unknown.any():
            rows = np.where(unknown, np.nan, data.source.rows(0, data.shape[0]))
            source = DenseSource(rows)
            data = Data.unweighted(source, source.summarise(self._accepted_values()))
            if not fitted:
                check.check_observed(data.summary)
            deviation = np.where(unknown, 1.0, deviation)
        size = data.summary.largest or 1.0
        least, most = (max(size * share, _LEAST) for share in _NOISE_RANGE)
        return data._replace(cell_noise=np.clip(deviation, least, most))

    def _accepted_values(self) -> Accepted:
        likelihood = self._likelihood()
        integer = likelihood.integers and self._parameter("check_integer")
        name = f"likelihood={self._parameter('likelihood')!r}"
        return Accepted(integer, likelihood.largest, name)

    def _likelihood(self) -> Any:
        """The class of the likelihood."""
        return LIKELIHOODS[self._parameter("likelihood")]

    def _choose_unit(self, data: Data, dispersion: float | None = None) -> None:
        """Fix the unit that computations run in."""
        self._unit = choose_unit(self._likelihood(), data, dispersion)

    def _problem(
        self, data: Data, priors: Priors, dispersion: float, frozen: NDArray | None = None
    ) -> AbstractContextManager[Problem]:
        """The problem that algorithms see, with its threads, for a while."""
        return open_problem(self._model(data, priors, dispersion, frozen), data, self.n_jobs)

    def _problem_to_fit(
        self, data: Data, priors: Priors, frozen: NDArray | None = None
    ) -> AbstractContextManager[Problem]:
        """The problem of a fit, with what of the model is fitted only."""
        return self._problem(data, priors, self._prior_scale(), frozen)

    def _model(
        self, data: Data, priors: Priors, dispersion: float, frozen: NDArray | None = None
    ) -> Model:
        """The model of some data."""
        if frozen is None:
            frozen = np.zeros(self._parameter("n_components"), dtype=bool)
        background = self._background(data)
        likelihood = self._likelihood()(self._unit, dispersion)
        model = Model.of(likelihood.with_roots_above(background.least_root), priors, frozen)
        return model._replace(background=background)

    def _background(self, data: Data) -> Background:
        """What rates are without any component, in the unit of computations."""
        return NO_BACKGROUND

    # --- after the fit ----------------------------------------------------------------------

    @property
    def _components_of_fit(self) -> NDArray:
        """Signed components (K, I): positive minus negative part of the atoms."""
        return self.atoms_[0] - self.atoms_[1]

    def _is_solved(self) -> bool:
        return self.converged_ or self._per_sample_prior()

    def _check_transformable(self) -> None:
        super()._check_transformable()
        if self._per_sample_prior():
            raise ValueError(
                "transform needs priors that hold for any sample; found an activation prior with "
                f"one row for each of the {self._priors.activations.n_rows} samples of the fit."
            )

    def _per_sample_prior(self) -> bool:
        return self._priors.activations.n_rows > 1

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        cell_noise: ArrayLike | None = None,
    ) -> float:
        """Mean log-likelihood of the observed cells, given their samples' activations.

        It is the mean of ln P, as a density in the unit of X if the dispersion is above 0. For a
        dispersion of 0 it is the mean of the saddle-point density −D/φ − ½ ln(2πφr), with the
        dispersion φ of the training data: −D alone would favour ever larger rates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        y : None
            Not used.
        sample_weight : array-like of shape (n_samples,)
            A weight of 2 counts as the sample twice.
        cell_noise : array-like that broadcasts to (n_samples, n_features)
            As for `fit`.

        Returns
        -------
        float
        """
        self._check_transformable()
        data, weights = self._check_scored(X, sample_weight, cell_noise)
        with self._fitted_problem(data) as problem:
            rows = self._solve_rows(problem), problem.executor.scatter(weights)
            shared = self.atoms_, self.dispersion_
            _, (total, n_observed) = problem.over_samples(score_samples, rows, *shared)
        check.check_scored(n_observed)
        return (total - self._log_scale_of(data, weights)) / n_observed

    def _log_scale_of(self, data: Data, weights: NDArray) -> float:
        """Sum of the log scales of observed cells: log-densities in the unit of X differ by it."""
        if not self._is_scaled:
            return 0.0
        counts = (weights[block.samples] @ ~np.isnan(block.X) for block in all_blocks(data.source))
        return float(sum(counts) @ np.log(self.feature_scale_))

    def sources(self, X: Any, *, cell_noise: ArrayLike | None = None) -> NDArray:
        """Expected part of each component in each cell.

        The parts sum to X, less the intercept and the part of the noise. In a gap they sum to what
        `impute` fills in, less the intercept.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        cell_noise : array-like that broadcasts to (n_samples, n_features)
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_features, n_components)
        """
        self._check_transformable()
        data = self._check_data(X, cell_noise=cell_noise)
        with self._fitted_problem(data) as problem:
            rows = (self._solve_rows(problem),)
            (sources,), _ = problem.over_samples(source_samples, rows, self.atoms_)
            parts = np.asarray(sources)
        return np.swapaxes(self._in_unit_of_X(np.swapaxes(parts, 1, 2)), 1, 2)

    def _drawn_like(self, data: Data, random: RandomState) -> NDArray:
        """Data (J, I) that the fitted model might have had in the place of those of the fit."""
        likelihood = self._likelihood()(1.0, self.dispersion_)
        rates = self._background(data).rates * self._unit + self.activations_ @ self.atoms_
        return likelihood.draw(*rates, random)

    def _fitted_problem(self, data: Data) -> AbstractContextManager[Problem]:
        """The problem of other samples, with the prior of the fit."""
        return self._problem(data, self._priors, self._prior_scale())

    def _solve(self, data: Data) -> NDArray:
        with self._fitted_problem(data) as problem:
            return self._gather(problem, self._solve_rows(problem))

    def _explained(self, data: Data) -> Explained:
        with self._fitted_problem(data) as problem:
            return self._explain(problem, self._solve_rows(problem))

    def _gather(self, problem: Problem, rows: Any) -> Any:
        """An array with a column for each component, as users get it."""
        return problem.executor.gather(rows, problem.n_components, problem.dtype)

    def _fill(self, X: Any, data: Data, activations: NDArray | None = None) -> Any:
        if data.source.is_local:
            return super()._fill(X, data, activations)
        with self._fitted_problem(data) as problem:
            rows = (self._solve_rows(problem),)
            shared = self.components_, self._levels
            (filled,), _ = problem.over_samples(fill_samples, rows, *shared)
            return problem.executor.gather(filled, data.shape[1], problem.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
