"""SNMFImputer: gaps filled by a factorization, as a transformer of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.impute import MissingIndicator
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
    check_random_state,
)

from ._data.opening import check_array
from ._data.summary import ANY_NUMBERS, refuse_values
from ._estimators import validation as check
from ._estimators.base import BaseSNMF
from ._selection.filling import choose_by_fills
from .selection import Selection
from .skellam import SkellamSNMF

# Numbers of components that are compared, as far as the data have as many samples and features.
_CANDIDATES = (1, 2, 3, 4, 6, 8, 12)
_N_FOLDS, _SHARE = 2, 0.1
# No choice has more parameters than this share of the observed cells.
_MOST_PARAMETERS = 0.5


class SNMFImputer(TransformerMixin, BaseEstimator):
    """Fill gaps by semi-nonnegative matrix factorization.

    Used as `sklearn.impute.KNNImputer` is: in a pipeline, with `set_output`, with an indicator of
    what was missing. Cells that are observed stay exactly as they are, and each sample is filled
    alone, by the components that were found in `fit`.

    Parameters
    ----------
    n_components : "auto", int or None, default="auto"
        Number of components. "auto" hides a tenth of the observed cells, twice, and takes the
        number whose fills are best, up to 12. None takes that of `estimator`.
    estimator : SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF or None, default=None
        What is fitted, with its own settings. None is
        ``SkellamSNMF(fit_intercept=True, n_init=1)``, with `random_state` and `n_jobs` of the
        imputer.
    missing_values : int, float or np.nan, default=np.nan
        What stands for a gap. NaN and missing values of other libraries are gaps by default.
    add_indicator : bool, default=False
        Whether columns follow that say which cells were gaps, one for each feature that had any
        in `fit`: those of `sklearn.impute.MissingIndicator`.
    keep_empty_features : bool, default=False
        Whether features that had no observed cell in `fit` are kept, their gaps filled with 0, or
        left out.
    random_state : int, RandomState or None, default=None
        Source of hidden cells and start values.
    n_jobs : int or None, default=None
        Fits that run at the same time, and threads. None and -1 are as many as there are cores.

    Attributes
    ----------
    estimator_ : fitted estimator
        Of the features that have observed cells.
    n_components_ : int
        The number of components that was used.
    selection_ : Selection or None
        How numbers of components compare, if one was chosen; the score is minus the mean squared
        error of a hidden cell, of features with a standard deviation of 1.
    indicator_ : MissingIndicator or None
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If X has feature names.

    See Also
    --------
    SkellamSNMF.impute : The same without a choice of the number of components.
    BayesianSkellamSNMF.impute : Fills with intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from seminmf import SNMFImputer
    >>> X = load_wine().data
    >>> hidden = np.random.RandomState(0).uniform(size=X.shape) < 0.1
    >>> filled = SNMFImputer(n_components=3, random_state=0).fit_transform(
    ...     np.where(hidden, np.nan, X)
    ... )
    >>> bool(np.array_equal(filled[~hidden], X[~hidden]))
    True
    >>> errors = ((filled - X) / X.std(axis=0))[hidden]
    >>> bool(np.sqrt(np.mean(errors**2)) < 0.9)
    True
    """

    def __init__(
        self,
        n_components: int | str | None = "auto",
        *,
        estimator: Any = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = False,
        random_state: int | RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.estimator = estimator
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: Any = None) -> SNMFImputer:
        """Find the components, and how many.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Data, with gaps or without.
        y : None
            Not used.

        Returns
        -------
        self
        """
        self._check_parameters()
        array = self._check_data(X, fitted=False)
        check.record_features(self, X)
        self._valid = ~np.isnan(array).all(axis=0)
        if not self._valid.any():
            raise ValueError("X must have at least one observed cell; found gaps (NaN) only.")
        self._fit_indicator(array)
        self._fit_model(array[:, self._valid])
        return self

    def _fit_model(self, array: NDArray) -> None:
        """Choose the number of components, if it is to be chosen, and fit."""
        random = check_random_state(self.random_state)
        model = self._model(random)
        self.selection_ = None
        if self.n_components == "auto":
            numbers = _candidates(array)
            found = None
            if len(numbers) > 1:
                found = choose_by_fills(
                    model, array, numbers, _N_FOLDS, _SHARE, random, self.n_jobs
                )
            if found is not None:
                self.selection_ = Selection(
                    found.best, found.clear, found.sentence, found.table, "fills"
                )
            model.set_params(n_components=numbers[0] if found is None else found.best)
        elif self.n_components is not None:
            model.set_params(n_components=self.n_components)
        self.estimator_ = model.fit(array)
        self.n_components_ = int(model.n_components)

    def transform(self, X: ArrayLike) -> NDArray:
        """X with its gaps filled, each sample alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The samples of the fit, or others.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            As `get_feature_names_out` names them: those that were observed in `fit`, or all with
            `keep_empty_features`, and then the indicators.
        """
        check_is_fitted(self)
        array = self._check_data(X, fitted=True)
        filled = self.estimator_.impute(array[:, self._valid])
        if self.keep_empty_features:
            known, filled = filled, np.nan_to_num(array)
            filled[:, self._valid] = known
        if self.indicator_ is None:
            return filled
        return np.hstack([filled, self.indicator_.transform(array)])

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the features, which must be those of the fit if it had names.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        kept = names if self.keep_empty_features else names[self._valid]
        if self.indicator_ is None:
            return kept
        return np.concatenate([kept, self.indicator_.get_feature_names_out(names)])

    # --- checks -------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        if self.n_components != "auto" and self.n_components is not None:
            if isinstance(self.n_components, str):
                raise ValueError(
                    "n_components must be 'auto', None or an integer of at least 1; "
                    f"found {self.n_components!r}."
                )
            check.check_count("n_components", self.n_components)
        if self.n_components is None and self.estimator is None:
            raise ValueError("n_components must not be None without an estimator that has it.")
        if self.estimator is not None and not isinstance(self.estimator, BaseSNMF):
            raise ValueError(
                "estimator must be None, a SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF; "
                f"found {self.estimator!r}."
            )
        if not check.is_number(self.missing_values):
            raise ValueError(
                f"missing_values must be a number or NaN; found {self.missing_values!r}."
            )
        check.check_flag("add_indicator", self.add_indicator)
        check.check_flag("keep_empty_features", self.keep_empty_features)
        check.check_jobs(self.n_jobs)

    def _check_data(self, X: Any, *, fitted: bool) -> NDArray:
        """X as an array of its own, with NaN in its gaps."""
        array = check_array(self, X, fitted=fitted)
        if not np.isnan(self.missing_values):
            if np.isnan(array).any():
                raise ValueError(
                    f"X must have {self.missing_values!r} for gaps, as missing_values says; found "
                    "NaN as well."
                )
            array = np.where(array == self.missing_values, array.dtype.type(np.nan), array)
        refuse_values(array, ANY_NUMBERS, 0)
        return array

    def _fit_indicator(self, array: NDArray) -> None:
        self.indicator_ = None
        if self.add_indicator:
            self.indicator_ = MissingIndicator(error_on_new=False).fit(array)

    def _model(self, random: RandomState) -> Any:
        """A new estimator."""
        if self.estimator is not None:
            return clone(self.estimator)
        seed = int(random.randint(2**31 - 1))
        return SkellamSNMF(fit_intercept=True, n_init=1, random_state=seed, n_jobs=self.n_jobs)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(np.isnan(self.missing_values))
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _candidates(array: NDArray) -> list[int]:
    """Numbers of components that the data may have."""
    n_samples, n_features = array.shape
    n_cells = int(np.sum(~np.isnan(array)))
    most = min(n_features - 1, n_samples - 1, _MOST_PARAMETERS * n_cells / (n_samples + n_features))
    return [number for number in _CANDIDATES if number <= most] or [1]
