"""What a report is about: the model, the data and the names, after the checks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._data.opening import check_array
from .._estimators import validation as check
from .._estimators.base import like
from .._estimators.posteriors import Interval
from .._model.likelihoods import Likelihood
from .._resampling.bootstrap import Bootstrap, check_bootstrap
from ..bayesian import BayesianSkellamSNMF
from ..euclidean import EuclideanSNMF
from ..skellam import SkellamSNMF

_MODELS = (SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF)
_LONGEST_NAME = 200
# An activation below this share of its component's largest is none.
_INACTIVE = 1e-6
# Draws of the atoms have at most so many entries: a page takes seconds, and never minutes.
_MOST_DRAWN, _LEAST_DRAWS = 50_000_000, 50


@dataclass(frozen=True)
class Subject:
    """The model, the data as the model sees them, and names.

    Attributes
    ----------
    model : SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF
    data : array or DataFrame of shape (J, I), or None
        X in the unit that the model takes.
    feature_scale : (I,) array or None
        From that unit to that of X, if it is another.
    activations : (J, K) array
        Of the data; without data, of the fit.
    feature_names, sample_names : lists of str
    labels : (J,) array of objects or None
        Classes; None where there is none.
    title, source : str or None
    bootstrap : Bootstrap or None
    """

    model: Any
    data: Any
    feature_scale: NDArray | None
    activations: NDArray
    feature_names: list[str]
    sample_names: list[str]
    labels: NDArray | None
    title: str | None
    source: str | None
    bootstrap: Bootstrap | None

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        *,
        title: str | None,
        source: str | None,
        labels: ArrayLike | None,
        sample_names: ArrayLike | None,
        feature_scale: ArrayLike | None,
        bootstrap: Bootstrap | None,
    ) -> Subject:
        """Check what the user handed in, and find the activations of the data."""
        _check_model(model)
        if bootstrap is not None:
            check_bootstrap(bootstrap, model)
        scale = _check_scale(feature_scale, model.n_features_in_)
        data = None if X is None else _scaled(model, X, scale)
        n_samples = len(model.activations_ if data is None else data)
        labels = None if labels is None else _one_each("labels", labels, n_samples)
        if sample_names is not None:
            names = [tidy(name) for name in _one_each("sample_names", sample_names, n_samples)]
        else:
            names = _index_names(X) or [f"sample {j}" for j in range(n_samples)]
        activations = model.activations_ if data is None else model.transform(data)
        return cls(
            model=model,
            data=data,
            feature_scale=scale,
            activations=np.asarray(activations, dtype=np.float64),
            feature_names=_feature_names(model, X),
            sample_names=names,
            labels=labels,
            title=tidy(title) if title else None,
            source=tidy(source) if source else None,
            bootstrap=bootstrap,
        )

    @cached_property
    def components(self) -> NDArray:
        """Components (K, I), in the unit of the fit."""
        return np.asarray(self.model._components_of_fit, dtype=np.float64)

    @cached_property
    def values(self) -> NDArray | None:
        """The data as an array (J, I), in the unit of the fit."""
        if self.data is None:
            return None
        return self.model._of_fit(np.asarray(self.data, dtype=np.float64))

    @cached_property
    def residuals(self) -> NDArray | None:
        """Data minus fit (J, I), NaN in the gaps, in the unit of the fit."""
        if self.values is None:
            return None
        return self.values - self.intercept - self.activations @ self.components

    @cached_property
    def deviations(self) -> NDArray | None:
        """What there is to explain (J, I): data minus intercept, NaN in the gaps."""
        return None if self.values is None else self.values - self.intercept

    @cached_property
    def standard_deviations(self) -> NDArray | None:
        """Those of the cells (J, I) by noise and dispersion of the model; None if it has neither.

        √(φ Σ|W| λ + noise²), in the unit of the fit.
        """
        if not hasattr(self.model, "dispersion_"):
            return None
        totals = np.asarray(self.model.atoms_, dtype=np.float64).sum(axis=0)
        dispersed = np.sqrt(self.model.dispersion_) * np.sqrt(self.activations @ totals)
        return np.hypot(dispersed, self.model._noise_scale)

    @property
    def n_fitted(self) -> int:
        """How many numbers are fitted: components, and activations that are not 0."""
        largest = self.activations.max(axis=0)
        return self.components.size + int(np.sum(self.activations > _INACTIVE * largest))

    @cached_property
    def intercept(self) -> NDArray:
        """What the model adds to activations · components (I,)."""
        none = np.zeros(self.components.shape[1])
        return np.asarray(getattr(self.model, "_intercept_of_fit", none), dtype=np.float64)

    @cached_property
    def amounts(self) -> NDArray:
        """What each component puts into each sample (J, K), in the unit of the fit."""
        return self.model._amounts(self.activations)

    @cached_property
    def units(self) -> NDArray:
        """From the unit of the fit to that of X (I,)."""
        own = self.model.feature_scale_
        return own if self.feature_scale is None else own * self.feature_scale

    @property
    def scaled(self) -> bool:
        """Whether the fit has another unit than X."""
        return self.feature_scale is not None or self.model._is_scaled

    @property
    def bayesian(self) -> bool:
        """Whether there are posteriors."""
        return isinstance(self.model, BayesianSkellamSNMF)

    @property
    def likelihood(self) -> type[Likelihood] | None:
        """The likelihood of the model, if it has one."""
        return None if isinstance(self.model, EuclideanSNMF) else self.model._likelihood()

    def component_interval(self, level: float) -> Interval | None:
        """Ends of the components' intervals (K, I), in the unit of the fit, if there are any."""
        if self.bootstrap is not None:
            found = self.bootstrap.at(level).components
        elif self.bayesian:
            found = self.model.interval(level, n_draws=self.n_draws(1000)).components
        else:
            return None
        return Interval(*map(self.model._of_fit, found))

    def n_draws(self, usual: int) -> int:
        """Draws for intervals: the usual number, or fewer if the components are very large."""
        return int(np.clip(_MOST_DRAWN // (2 * self.components.size), _LEAST_DRAWS, usual))

    def clusters(self) -> NDArray:
        """Component (J,) to which each sample belongs."""
        return np.argmax(self.amounts, axis=1)

    def fitted_clusters(self) -> NDArray:
        """Component to which each sample of the fit belongs."""
        return np.argmax(self.model.amounts_, axis=1)


def tidy(name: Any) -> str:
    """A name on one line, of bounded length."""
    text = " ".join(str(name).split())
    if len(text) > _LONGEST_NAME:
        text = f"{text[: _LONGEST_NAME - 1]}…"
    return text or "(empty)"


def _check_model(model: Any) -> None:
    if not isinstance(model, _MODELS):
        names = " or a ".join(kind.__name__ for kind in _MODELS)
        hint = ", whose attribute last_ is one" if hasattr(model, "partial_fit") else ""
        raise ValueError(f"model must be a fitted {names}; found a {type(model).__name__}{hint}.")
    check_is_fitted(model)


def _check_scale(feature_scale: Any, n_features: int) -> NDArray | None:
    if feature_scale is None:
        return None
    accepted = f"{n_features} numbers above 0, one for each feature"
    scale = check.as_numbers("feature_scale", feature_scale, accepted)
    if scale.shape != (n_features,):
        raise ValueError(f"feature_scale must be {accepted}; found the shape {scale.shape}.")
    wrong = ~(np.isfinite(scale) & (scale > 0))
    if wrong.any():
        raise ValueError(f"feature_scale must be {accepted}; found {scale[wrong][0]}.")
    return scale


def _scaled(model: Any, X: Any, scale: NDArray | None) -> Any:
    """X in the unit of the model; a DataFrame if it is one."""
    array = check_array(model, X, fitted=True)
    return like(X, array if scale is None else (array / scale).astype(array.dtype))


def _one_each(name: str, values: Any, n_samples: int) -> NDArray:
    """A value for each sample, as an array of objects."""
    shape = np.shape(values)
    if shape != (n_samples,):
        raise ValueError(
            f"{name} must have one entry for each of the {n_samples} samples; "
            f"found the shape {shape}."
        )
    array = np.empty(n_samples, dtype=object)
    array[:] = list(values)
    return array


def _feature_names(model: Any, X: Any) -> list[str]:
    names = getattr(model, "feature_names_in_", getattr(X, "columns", None))
    if names is None:
        return [f"feature {i}" for i in range(model.n_features_in_)]
    return [tidy(name) for name in names]


def _index_names(X: Any) -> list[str] | None:
    """Names from the index of a DataFrame, unless it only counts."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return [tidy(name) for name in index]
