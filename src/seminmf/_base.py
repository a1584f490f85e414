"""What both Skellam estimators share: everything after the fit, and the frame of the fit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state

from . import _validation as check
from ._inference.acceleration import METHODS as ACCELERATIONS
from ._inference.loop import WINDOW, Algorithm, Result, run
from ._inference.problem import Prior, Problem
from ._inference.start import METHODS as STARTS
from ._inference.summary import Summary, power_of_two
from ._likelihoods import Integer, Real
from ._passes.compiled import announced
from ._passes.estep import Cells, evaluate_cells
from ._passes.pool import pool
from ._progress import Progress
from ._sources import DenseSource, row_ranges

S = TypeVar("S")

# Below this share of the mean |x| a dispersion is no noise but rounding.
_LEAST_DISPERSION = 1e-12
# Posterior rates have the dispersion as their divisor: it must leave room for them.
_SMALLEST_DISPERSION = 1e-300
# Computations run in a unit of at least this, in the unit of the priors.
_LEAST_UNIT = {"float32": 1e-3, "float64": 1e-12}


class Data(NamedTuple):
    """X after the checks: as an array, and summed up."""

    X: NDArray
    summary: Summary


class Best(NamedTuple, Generic[S]):
    """The best of several runs, and how alike the others' components are to its own."""

    result: Result[S]
    stability: float


class BaseSkellamSNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the Skellam estimators; not for direct use."""

    _starts: tuple[str, ...] = STARTS

    # --- the frame of a fit -----------------------------------------------------------------

    def _check_parameters(self) -> None:
        check.check_count("n_components", self.n_components)
        check.check_choice("likelihood", self.likelihood, ("real", "integer"))
        check.check_choice("acceleration", self.acceleration, ACCELERATIONS)
        check.check_choice("init", self.init, self._starts)
        check.check_count("n_init", self.n_init)
        check.check_count("max_iter", self.max_iter, least=0)
        check.check_tolerance(self.tol)
        check.check_jobs(self.n_jobs)
        check_random_state(self.random_state)

    def _check_data(self, X: Any, *, fitted: bool = True) -> Data:
        array = check.check_array(self, X, fitted=fitted)
        integer = self.likelihood == "integer"
        summary = check.check_values(DenseSource(array), integer=integer and self.check_integer)
        if integer:
            check.check_integer_range(summary)
        return Data(array, summary)

    def _choose_unit(self, data: Data, scale: float | None = None) -> None:
        """Fix the unit that computations run in: no overflow, whatever the unit of X.

        Where priors speak in units of `scale`, X may be nothing against them; they are then what
        must not overflow.
        """
        largest = data.summary.largest
        name = data.X.dtype.name
        least = _LEAST_UNIT[name] * scale if scale and largest > 0 else 0.0
        # Its inverse is a factor of the same type.
        least = max(least, 2.0**-120) if name == "float32" and largest > 0 else least
        integer = self.likelihood == "integer"
        self._unit = 1.0 if integer else power_of_two(max(largest, least))

    @contextmanager
    def _problem(self, X: NDArray, prior: Prior, scale: float, **others: Any) -> Iterator[Problem]:
        """The problem that passes and algorithms see, with its threads, for a while."""
        likelihood = Integer() if self.likelihood == "integer" else Real(self._unit)
        others = {
            "sample_weight": np.ones(len(X)),
            "frozen": np.zeros(self.n_components, dtype=bool),
            **others,
        }
        with announced(), pool(self.n_jobs) as workers:
            yield Problem(
                DenseSource(X), likelihood, self._unit / scale, prior, pool=workers, **others
            )

    def _iterate(
        self,
        algorithm: Algorithm,
        problem: Problem,
        point: S,
        description: str,
        max_iter: int,
        tol: float,
    ) -> Result[S]:
        """Run an algorithm, with a progress bar if one was asked for."""
        with Progress(max_iter, description, bool(self.verbose)) as progress:
            return run(algorithm, problem, point, max_iter=max_iter, tol=tol, progress=progress)

    def _best_run(
        self,
        run_once: Callable[[RandomState], Result[S]],
        components: Callable[[S], NDArray],
    ) -> Best[S]:
        """Run from `n_init` starts, keep the best, and compare the components of all."""
        random = check_random_state(self.random_state)
        results: list[Result[S]] = []
        for _ in range(self.n_init):
            results.append(run_once(random))
            if results[-1].interrupted:
                break
        best = max(results, key=lambda result: result.objectives[-1])
        own = components(best.state)
        others = [components(result.state) for result in results if result is not best]
        similarities = [matched_similarity(own, other) for other in others]
        self._warn(best, last=results[-1])
        return Best(best, float(np.mean(similarities)) if similarities else float("nan"))

    def _warn(self, best: Result, last: Result) -> None:
        if last.interrupted:
            warnings.warn(
                f"Interrupted after {last.n_iter} iterations; the best state so far is kept.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif not best.converged:
            warnings.warn(
                f"No convergence after max_iter={self.max_iter} iterations: the objective still "
                f"gained more than tol={self.tol} of its size over {WINDOW} of them. "
                "Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )

    @staticmethod
    def _warn_unobserved(summary: Summary) -> None:
        n_samples = int(np.sum(summary.row_count == 0))
        n_features = int(np.sum(summary.column_count == 0))
        if n_samples or n_features:
            warnings.warn(
                f"{n_samples} samples and {n_features} features have no observed cell; "
                "they get what the prior says.",
                UserWarning,
                stacklevel=3,
            )

    # --- after the fit ----------------------------------------------------------------------

    @property
    def components_(self) -> NDArray:
        """Signed components (K, I): positive minus negative part of the atoms."""
        return self.atoms_[0] - self.atoms_[1]

    @property
    def _n_features_out(self) -> int:
        return self.atoms_.shape[1]

    def fit_transform(self, X: Any, y: Any = None, **fit_parameters: Any) -> NDArray:
        """Fit to X and return the activations that belong to the fitted atoms.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        y : None
            Not used.
        **fit_parameters
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            What `transform(X)` returns.
        """
        self.fit(X, y, **fit_parameters)
        if self.converged_ or self._per_sample_prior():
            return self.activations_
        return self._solve(self._check_data(X))

    def transform(self, X: Any) -> NDArray:
        """Activations of samples, given the fitted atoms. Each sample is treated alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        self._check_transformable()
        return self._solve(self._check_data(X))

    def _check_transformable(self) -> None:
        check_is_fitted(self)
        if self._per_sample_prior():
            raise ValueError(
                "transform needs priors that hold for any sample; found an activation prior with "
                f"one row for each of the {self._prior_rows()} samples of the fit."
            )

    def _prior_rows(self) -> int:
        return max(len(self._prior.activation_shape), len(self._prior.activation_rate))

    def _per_sample_prior(self) -> bool:
        return self._prior_rows() > 1

    def inverse_transform(self, X: ArrayLike) -> NDArray:
        """Data that activations stand for: activations · components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Activations.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        activations = check.check_activations(X, self._n_features_out)
        return activations @ self.components_

    def predict(self, X: Any) -> NDArray:
        """Cluster of each sample: the component with the largest activation.

        Where there is a posterior, its geometric mean decides.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.

        Returns
        -------
        ndarray of shape (n_samples,), integer
        """
        self._check_transformable()
        return np.argmax(self._membership(self._check_data(X)), axis=1)

    def fit_predict(self, X: Any, y: Any = None, **fit_parameters: Any) -> NDArray:
        """Fit to X and return each sample's cluster.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        y : None
            Not used.
        **fit_parameters
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_samples,), integer
        """
        self.fit(X, y, **fit_parameters)
        if self.converged_ or self._per_sample_prior():
            return np.argmax(self._training_membership(), axis=1)
        return self.predict(X)

    def impute(self, X: Any) -> Any:
        """X with its gaps filled by the factorization.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.

        Returns
        -------
        ndarray or DataFrame of shape (n_samples, n_features)
            A DataFrame if X is one.
        """
        check_is_fitted(self)
        activations = np.asarray(self.transform(X))
        filled = np.array(check.check_array(self, X, fitted=True))
        components = self.components_
        for start, stop in row_ranges(DenseSource(filled)):
            block = filled[start:stop]
            gaps = np.isnan(block)
            block[gaps] = (activations[start:stop] @ components)[gaps]
        return like(X, filled)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the observed cells, given their samples' activations.

        For likelihood "integer" it is the mean of ln P. For "real" it is the mean of the saddle-
        point density −D/φ − ½ ln(2πφr), with the dispersion φ of the training data: −D alone would
        favour ever larger rates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        y : None
            Not used.

        Returns
        -------
        float
        """
        total, n_observed = 0.0, 0
        for x, activations, cells in self._evaluate(X):
            terms = cells.log_likelihood
            if self.likelihood == "real":
                phi = self.dispersion_
                rate0, rate1 = activations @ self.atoms_.astype(np.float64)
                root = np.hypot(x, 2 * np.sqrt(rate0) * np.sqrt(rate1))
                # Where x and both rates vanish there is no density: such a cell counts as a
                # hundredth of the noise.
                logarithm = np.log(2 * np.pi) + np.log(phi) + np.log(np.maximum(root, 1e-2 * phi))
                terms = terms / phi - 0.5 * logarithm
            observed = ~np.isnan(x)
            total += float(np.sum(terms[observed]))
            n_observed += int(observed.sum())
        return total / n_observed

    def _evaluate(self, X: Any) -> Iterator[tuple[NDArray, NDArray, Cells]]:
        """Blocks of X with their activations, and their cells under the model."""
        check_is_fitted(self)
        array = check.check_array(self, X, fitted=True)
        all_activations = np.asarray(self.transform(X), dtype=np.float64)
        likelihood = Integer() if self.likelihood == "integer" else Real(1.0)
        atoms = self.atoms_.astype(np.float64)
        for start, stop in row_ranges(DenseSource(array)):
            x, activations = array[start:stop], all_activations[start:stop]
            yield x, activations, evaluate_cells(x, likelihood, activations, atoms)

    def sources(self, X: Any) -> NDArray:
        """Expected share of each component in each cell; the shares sum to X.

        In a gap they sum to what `impute` fills in.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.

        Returns
        -------
        ndarray of shape (n_samples, n_features, n_components)
        """
        blocks = []
        for x, activations, cells in self._evaluate(X):
            # E[Z_0k − Z_1k | x] = λ_k (θ_0k U_0 − θ_1k U_1): the diffnomial's mean.
            positive = np.einsum("ji,ki->jik", cells.u0, self.atoms_[0])
            negative = np.einsum("ji,ki->jik", cells.u1, self.atoms_[1])
            shares = activations[:, None, :] * (positive - negative)
            blocks.append(shares.astype(x.dtype, copy=False))
        return np.concatenate(blocks)

    def predict_cells(self, rows: ArrayLike, columns: ArrayLike) -> NDArray:
        """Values that the fit predicts for cells of the training data.

        Parameters
        ----------
        rows, columns : array-like of int, broadcast against each other
            Samples and features.

        Returns
        -------
        ndarray
        """
        check_is_fitted(self)
        shape = (len(self.activations_), self.n_features_in_)
        rows, columns = check.check_cells(rows, columns, shape)
        return np.einsum(
            "...k,...k->...", self.activations_[rows], np.moveaxis(self.components_, 0, -1)[columns]
        )

    def save(self, path: Any) -> None:
        """Write the fitted estimator to a file that `seminmf.load` reads.

        Parameters
        ----------
        path : str or path-like
            File to write, in the safetensors format.
        """
        from .io import save

        check_is_fitted(self)
        save(self, path)

    # --- scikit-learn -----------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def matched_similarity(first: NDArray, second: NDArray) -> float:
    """Mean cosine of the components of two fits, after the best matching; 1 if they agree."""
    lengths = np.outer(np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1))
    cosines = (first @ second.T) / np.where(lengths > 0, lengths, 1)
    rows, columns = linear_sum_assignment(-cosines)
    return float(cosines[rows, columns].mean())


def dispersion(
    divergence: float, summary: Summary, sample_weight: NDArray, n_components: int
) -> float:
    """φ = 2 ΣD / (observed cells − K (I + J)), the noise level of real data, in the unit of ΣD.

    A sample counts as often as its weight says.
    """
    n_observed = float(summary.row_count @ sample_weight)
    n_parameters = n_components * (len(summary.column_count) + float(sample_weight.sum()))
    estimate = 2 * divergence / max(n_observed - n_parameters, 1.0)
    if summary.largest == 0:
        return 1.0
    return max(estimate, _LEAST_DISPERSION * summary.mean_size, _SMALLEST_DISPERSION)


def like(X: Any, values: NDArray) -> Any:
    """`values` as a DataFrame with the labels of X, if X is one."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return type(X)(values, index=X.index, columns=X.columns)
    return values
