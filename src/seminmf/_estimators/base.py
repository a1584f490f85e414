"""What all estimators share: the frame of a fit, and what comes after it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_random_state

from .._algorithms.cells import Levels, fill
from .._algorithms.explained import Explained, explain
from .._data.dense import DenseSource
from .._data.opening import open_source
from .._data.reading import is_pandas, is_xarray, library_of
from .._data.sizes import feature_sizes
from .._data.source import Data
from .._data.summary import ANY_NUMBERS, NOTHING_KNOWN, Accepted, Summary
from .._views.concerns import empty_components, little_explained, small_features_explained
from . import validation as check
from .files import FittedFields, save
from .frame import FitFrame
from .notices import warn_user

# A cell is filled in at most so many root mean squares of its feature away from the intercept.
_FARTHEST = 10.0


class BaseSNMF(FitFrame, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the estimators; not for direct use.

    An estimator has `_components_of_fit`, `activations_` and `converged_`, `_solve` for the
    activations of other samples, and `_explained` for how much of them is explained.

    What is "of the fit" is of features in the unit in which they are fitted, X / `feature_scale_`.
    All work is done there; what users hand in is divided when it comes, and what they get is
    multiplied when it goes.
    """

    _starts: tuple[str, ...]
    # What samples and features get that have no observed cell.
    _default_for_unobserved: str
    # What of a fitted estimator a file holds.
    _fitted_fields: FittedFields
    # What could be explained if all features had the same noise, where that was asked.
    _r2_of_same_noise: float = float("nan")
    # What comes from a fit without being public.
    _private_state: tuple[str, ...] = ("_unit", "_interrupted", "_kept")
    _kept_parameters: tuple[str, ...] = ("n_components",)

    # --- the frame of a fit -----------------------------------------------------------------

    def _check_parameters(self) -> None:
        check.check_count("n_components", self.n_components)
        check.check_choice("init", self.init, self._starts)
        self._check_starts_number()
        check.check_count("max_iter", self.max_iter, least=0)
        check.check_tolerance(self.tol)
        check.check_jobs(self.n_jobs)
        check.check_flag("scale_features", self.scale_features)
        check_random_state(self.random_state)

    def _check_starts_number(self) -> None:
        check.check_count("n_init", self.n_init)

    def _check_data(self, X: Any, *, fitted: bool = True, cell_noise: Any = None) -> Data:
        if cell_noise is not None:
            raise ValueError(
                f"cell_noise must be None for {type(self).__name__}; found a value, which "
                "SkellamSNMF takes."
            )
        source = self._scaled(open_source(self, X, fitted=fitted), fitted=fitted)
        source, summary = source.check(self._accepted_values(), fitted=fitted)
        if not fitted:
            check.check_observed(summary)
        return Data.unweighted(source, summary)

    def _scaled(self, source: Any, *, fitted: bool) -> Any:
        """Data in the unit of the fit, of which the data of the fit decide."""
        if not fitted:
            self.feature_scale_ = np.ones(source.shape[1])
            if self.scale_features:
                self._check_scalable(source)
                around_mean = getattr(self, "fit_intercept", False)
                self.feature_scale_ = feature_sizes(source, around_mean=around_mean)
        if not self._is_scaled:
            return source
        self._check_scalable(source)
        return source.divided(self.feature_scale_)

    def _check_scalable(self, source: Any) -> None:
        if not source.is_local:
            raise ValueError(
                "X must be in memory or on disk for a model with scale_features=True; found a Dask "
                "array, which can be divided by numbers of your own before the fit."
            )

    @property
    def _is_scaled(self) -> bool:
        """Whether features are fitted in another unit than that of X."""
        return bool(np.any(self.feature_scale_ != 1.0))

    def _in_unit_of_X(self, values: NDArray) -> NDArray:
        """Numbers of the fit that have the features along their last axis."""
        if not self._is_scaled:
            return values
        return (values * self.feature_scale_).astype(values.dtype, copy=False)

    def _of_fit(self, values: NDArray) -> NDArray:
        """The way back."""
        return values / self.feature_scale_ if self._is_scaled else values

    def _check_scored(
        self, X: Any, sample_weight: Any, cell_noise: Any = None
    ) -> tuple[Data, NDArray]:
        """Data to be scored, and weights of their samples, of which the largest is 1."""
        data = self._check_data(X, cell_noise=cell_noise)
        weights = check.check_weight(sample_weight, data, has_prior=False)
        weights = weights / weights.max()
        if data.summary is not NOTHING_KNOWN:
            check.check_scored(float(weights @ data.summary.row_count))
        return data, weights

    def _accepted_values(self) -> Accepted:
        """Which numbers X may have."""
        return ANY_NUMBERS

    def _publish_starts(self, stability: NDArray, n_same: int) -> None:
        """Set what the starts say of each other: `runs.compared`."""
        self.component_stability_, self.n_same_starts_ = stability, n_same
        self.stability_ = float(np.mean(stability))

    def _warn_unobserved(self, summary: Summary) -> None:
        n_features = int(np.sum(summary.column_count == 0))
        if summary.n_empty or n_features:
            warn_user(
                f"{summary.n_empty} samples and {n_features} features have no observed cell; "
                f"they get {self._default_for_unobserved}.",
            )

    def _publish_explained(self, problem: Any, activations: Any, *, warn: bool = True) -> None:
        """Set what tells how much of the data is explained, and say so if that is nothing.

        The activations are in the form that the problem's executor has.
        """
        found = self._explain(problem, activations)
        self.r2_, self.r2_drop_ = found.r2, found.r2_drop
        if warn and not self._interrupted:
            concern = (
                little_explained(found.r2)
                or small_features_explained(found.r2, self._r2_of_same_noise)
                or empty_components(found.shares)
            )
            if concern is not None:
                warn_user(f"{concern.title}. {concern.text}")

    def _explain(self, problem: Any, activations: Any) -> Explained:
        """How much of a problem's data is explained."""
        intercept = getattr(self, "_intercept_of_fit", None)
        return explain(problem, activations, self._components_of_fit, intercept)

    # --- after the fit ----------------------------------------------------------------------

    @property
    def components_(self) -> NDArray:
        """Signed components (K, I), in the unit of X."""
        return self._in_unit_of_X(self._components_of_fit)

    @property
    def amounts_(self) -> NDArray:
        """What each component puts into each sample of the fit (J, K): Σ |activation × component|.

        Sums over features, in the unit of X, or of scaled features where these are fitted.
        Activations are of the size that the atoms leave to them; amounts can be compared between
        components.
        """
        return self._amounts(self.activations_)

    def _amounts(self, activations: Any) -> Any:
        """The same for other activations; those of a cluster stay there."""
        sizes = np.abs(self._components_of_fit).sum(axis=1, dtype=np.float64)
        return (activations * sizes).astype(activations.dtype)

    @property
    def _n_features_out(self) -> int:
        return len(self._components_of_fit)

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
        if self._is_solved():
            return self.activations_.copy()
        return self._solve(self._check_data(X, cell_noise=fit_parameters.get("cell_noise")))

    def transform(self, X: Any, *, cell_noise: ArrayLike | None = None) -> NDArray:
        """Activations of samples, given the fitted atoms. Each sample is treated alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        cell_noise : array-like that broadcasts to (n_samples, n_features)
            Known standard deviations of cells, as for the `fit` of estimators that take them.
            Without, cells have the noise that their feature had in the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        self._check_transformable()
        return self._solve(self._check_data(X, cell_noise=cell_noise))

    def _is_solved(self) -> bool:
        """Whether `activations_` are what `transform` would return for the training data."""
        return self.converged_

    def _check_transformable(self) -> None:
        check_is_fitted(self)

    def inverse_transform(self, X: ArrayLike) -> NDArray:
        """Data that activations stand for: activations · components, and the intercept.

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
        return activations @ self.components_ + self._intercept

    @property
    def _intercept(self) -> Any:
        """What is added to activations · components."""
        intercept = getattr(self, "intercept_", None)
        return 0.0 if intercept is None else intercept.astype(self.components_.dtype)

    @property
    def _levels(self) -> Levels:
        """Intercept, and how far from it cells are filled in: any distance, unless it is known."""
        dtype, n_features = self.components_.dtype, self.components_.shape[1]
        sizes = self._in_unit_of_X(getattr(self, "_feature_sizes", np.zeros(n_features)))
        reach = np.where(sizes > 0, _FARTHEST * sizes, np.inf)
        intercept = np.broadcast_to(self._intercept, n_features)
        return Levels(intercept, reach.astype(dtype))

    def predict(self, X: Any, *, cell_noise: ArrayLike | None = None) -> NDArray:
        """Cluster of each sample: the component that puts the largest amount into it.

        An amount is activation × Σ |component|; where there is a posterior, of its means.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        cell_noise : array-like that broadcasts to (n_samples, n_features)
            As for `transform`.

        Returns
        -------
        ndarray of shape (n_samples,), integer
        """
        self._check_transformable()
        data = self._check_data(X, cell_noise=cell_noise)
        return np.argmax(self._amounts(self._solve(data)), axis=1)

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
        if self._is_solved():
            return np.argmax(self.amounts_, axis=1)
        return self.predict(X, cell_noise=fit_parameters.get("cell_noise"))

    def r2(self, X: Any, *, cell_noise: ArrayLike | None = None) -> float:
        """R² of the observed cells, given their samples' activations.

        It is 1 − Σ (x − activations · components)² / Σ x², less the intercept in both if there is
        one: 1 for a perfect fit, 0 for a fit that is no better than nothing. Because activations
        are fitted to the cells, it cannot choose the number of components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        cell_noise : array-like that broadcasts to (n_samples, n_features)
            As for `transform`.

        Returns
        -------
        float
            0 if all observed cells are 0, NaN if none is observed.
        """
        self._check_transformable()
        return self._explained(self._check_data(X, cell_noise=cell_noise)).r2

    def impute(self, X: Any, *, cell_noise: ArrayLike | None = None) -> Any:
        """X with its gaps filled by the factorization.

        Where noise was sought, a fill is at most ten times as far from 0, or from the intercept, as
        the cells of its feature typically were: an outlier that looks like a component would else
        fill in the absurd.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, NaN where not observed.
        cell_noise : array-like that broadcasts to (n_samples, n_features)
            As for `transform`; what it says of gaps does not matter.

        Returns
        -------
        ndarray or table of shape (n_samples, n_features)
            A DataFrame of pandas or polars, a Table of pyarrow, a DataArray of xarray if X is one.
        """
        self._check_transformable()
        return self._fill(X, self._check_data(X, cell_noise=cell_noise))

    def _fill(self, X: Any, data: Data, activations: NDArray | None = None) -> Any:
        """X with its gaps filled, by the activations of its samples if they are known."""
        activations = self._solve(data) if activations is None else activations
        filled = fill(self._unscaled(X, data), activations, self.components_, self._levels)
        return like(X, filled)

    def _unscaled(self, X: Any, data: Data) -> Any:
        """The data as X has them, with the gaps that they have in the fit."""
        if not self._is_scaled:
            return data.source
        source = open_source(self, X, fitted=True)
        if data.cell_noise is None:
            return source
        gaps = np.isnan(data.source.rows(0, data.shape[0]))
        return DenseSource(np.where(gaps, np.nan, source.rows(0, data.shape[0])))

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
        # Each sample once: they may be elsewhere.
        needed, places = np.unique(rows, return_inverse=True)
        activations = np.asarray(self.activations_[needed])[places.reshape(rows.shape)]
        fitted = np.einsum("...k,...k->...", activations, self.components_.T[columns])
        return self._levels.of_features(columns).values(fitted)

    def save(self, path: Any) -> None:
        """Write the fitted estimator to a file that `seminmf.load` reads.

        Parameters
        ----------
        path : str or path-like
            File to write, in the safetensors format.
        """
        check_is_fitted(self)
        save(self, path)

    # --- scikit-learn -----------------------------------------------------------------------

    def _repr_html_inner(self) -> str:
        """What a notebook shows: scikit-learn's diagram, and what came out of the fit."""
        diagram = super()._repr_html_inner()
        if not hasattr(self, "stop_reason_"):
            return diagram
        from .notebook import fitted_summary

        return diagram + fitted_summary(self)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = self._repr_html_inner()
        return bundle

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def like(X: Any, values: NDArray) -> Any:
    """`values` as a table with the labels of X, if X is one."""
    if is_pandas(X):
        return type(X)(values, index=X.index, columns=X.columns)
    if library_of(X) == "polars":
        return type(X)(values, schema=X.columns, orient="row")
    if library_of(X) == "pyarrow":
        return type(X).from_pydict(dict(zip(X.column_names, values.T, strict=True)))
    if is_xarray(X):
        return X.copy(data=values)
    return values
