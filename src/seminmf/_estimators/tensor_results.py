"""What comes after a fit to tensors: factors as users read them, and what is asked of data."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._data.executor import local_executor
from .._data.reading import is_pandas, library_of
from .._data.summary import Accepted
from .._data.tensors import dense_of
from . import validation as check
from .frame import FitFrame
from .tensor_cells import amounts_of, explained, log_densities, sources_of, tensors_of
from .tensor_data import open_tensors
from .tensor_files import save
from .tensor_fitted import Fitted, Parts, signed_values
from .tensor_labels import Label, labelled, labelled_xarray, like, values_of
from .tensor_levels import Wanted
from .tensor_samples import Samples, sample_axes, solved, tables_of


class TensorResults(FitFrame, TransformerMixin, BaseEstimator):
    """What is asked of a fitted estimator; not for direct use."""

    _variational: bool
    _algorithm: Any
    _fitted: Fitted
    _private_state = ("_interrupted", "_kept", "_fitted")
    _kept_parameters = (
        "model",
        "n_components",
        "signed",
        "unit",
        "likelihood",
        "dispersion",
        "noise",
        "check_integer",
    )

    # --- factors ------------------------------------------------------------------------------

    @property
    def parts_(self) -> dict[str, NDArray]:
        """Factors as (2, *sizes), positive and negative part, or (1, *sizes) without a sign."""
        return self._parts().factors

    @property
    def factors_(self) -> dict[str, Any]:
        """Factors by their names, with the axes as written and the labels of X, if it has any."""
        plan, labels = self._fitted.model.plan, self._fitted.labels
        return {
            name: labelled(signed_values(parts), plan.factors[name], labels)
            for name, parts in self.parts_.items()
        }

    @property
    def activations_(self) -> Any:
        """The factor that has the unit of X: that of the first term."""
        return self.factors_[self._fitted.model.network.units[0]]

    @property
    def table_weights_(self) -> dict[str, NDArray]:
        """What terms with the same unit multiply it by, by its name: (terms, *latent cells)."""
        return self._parts().weights

    @property
    def dispersion_(self) -> Any:
        """The dispersion, in the unit of X; a dict if there are several tensors."""
        return self._by_tensor({n: own.dispersion for n, own in self._levels.items()})

    @property
    def noise_(self) -> Any:
        """Standard deviation of the noise for each value of its letter, in the unit of X."""
        return self._by_tensor({n: own.noise for n, own in self._levels.items()})

    @property
    def _levels(self) -> Mapping[str, Any]:
        check_is_fitted(self)
        return self._fitted.levels

    def _by_tensor(self, values: Mapping[str, Any]) -> Any:
        """The value of the only tensor, or a dict."""
        return next(iter(values.values())) if len(values) == 1 else dict(values)

    def _parts(self) -> Parts:
        check_is_fitted(self)
        return self._fitted.parts(self._fitted.means(self._variational))

    # --- data ---------------------------------------------------------------------------------

    def transform(self, X: Any) -> NDArray:
        """Factors of samples, given all others.

        Parameters
        ----------
        X : array-like, or dict of them by the names of tensors
            Data, NaN where not observed. Of several tensors some may be missing.

        Returns
        -------
        ndarray of shape (n_samples, n_cells)
            All factors with the letter of the samples beside each other, each with its other axes
            in one.
        """
        return self._flat(self._solved(X).fitted)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray:
        """Names of the columns that `transform` returns: a factor's, and its latent cells'.

        Parameters
        ----------
        input_features : None
            Not used.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        plan, labels, parts = self._fitted.model.plan, self._fitted.labels, self._parts().factors
        names = []
        for name, axis in sample_axes(self._fitted.model).items():
            own = [
                values_of(one, size, labels)
                for one, size in zip(plan.factors[name], parts[name].shape[1:], strict=True)
            ]
            cells = product(*(values for n, values in enumerate(own) if n != axis))
            names += ["_".join(map(str, (name, *cell))) for cell in cells]
        return np.array(names, dtype=object)

    def fit_transform(self, X: Any, y: Any = None, **fit_parameters: Any) -> NDArray:
        """Fit to X, then `transform` it.

        Parameters
        ----------
        X, y, **fit_parameters
            As for `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_cells)
        """
        return self.fit(X, y, **fit_parameters).transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Tensors that factors of samples stand for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_cells)
            As `transform` returns them.

        Returns
        -------
        ndarray, or dict of them by the names of tensors
            With the labels of the fit, if it had any: DataFrames, or xarrays.
        """
        check_is_fitted(self)
        plan, labels = self._fitted.model.plan, dict(self._fitted.labels)
        if plan.sample in labels:
            rows = X.index.to_numpy() if is_pandas(X) else None
            labels[plan.sample] = Label(labels[plan.sample].name, rows)
        tensors = tensors_of(self._fitted, self._parts(), np.asarray(X))
        return self._by_tensor(
            {one.name: labelled(tensors[one.name], one.output, labels) for one in plan.observations}
        )

    def impute(self, X: Any) -> Any:
        """X with its gaps filled by the model; tensors that are not there are filled altogether.

        Parameters
        ----------
        X : array-like, or dict of them by the names of tensors
            Data, NaN where not observed.

        Returns
        -------
        As X, or a dict with all tensors
        """
        samples = self._solved(X)
        own, several = samples.fitted, isinstance(X, Mapping)
        expected, filled = self._expected(samples), {}
        for one in own.model.plan.observations:
            array = dense_of(samples.arrays[one.name])
            values = np.where(np.isnan(array), expected[one.name].astype(array.dtype), array)
            if not several or one.name in X:
                given = X[one.name] if several else X
                filled[one.name] = like(given, values, one, own.labels)
            else:
                as_labelled = labelled_xarray if library_of(X) == "xarray" else labelled
                filled[one.name] = as_labelled(values, one.output, own.labels)
        return type(X)(filled) if library_of(X) == "xarray" and several else self._by_tensor(filled)

    def predict(self, X: Any) -> NDArray:
        """Cluster of each sample: the latent cell that puts the largest amount into it.

        Cells are those of the factor that has the unit of X; an amount is the sum of the sizes of
        all cells of the tensor that it is in.

        Parameters
        ----------
        X : array-like, or dict of them by the names of tensors
            Data, NaN where not observed.

        Returns
        -------
        ndarray of shape (n_samples,), integer
        """
        samples = self._solved(X)
        return np.argmax(amounts_of(samples.fitted, self._parts_of(samples)), axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density of the observed cells, given their samples' factors.

        Parameters
        ----------
        X : array-like, or dict of them by the names of tensors
            Data, NaN where not observed.
        y : None
            Not used.

        Returns
        -------
        float
        """
        samples = self._solved(X)
        parts = self._parts_of(samples)
        terms = np.concatenate(
            [
                log_densities(samples.fitted, parts, one, dense_of(samples.arrays[one.name]))
                for one in samples.fitted.model.plan.observations
            ]
        )
        check.check_scored(len(terms))
        return float(terms.mean())

    def r2(self, X: Any) -> float:
        """R² of the observed cells, given their samples' factors: 1 − Σ (x − x̂)² / Σ x².

        Each tensor counts in its own unit.

        Parameters
        ----------
        X : array-like, or dict of them by the names of tensors
            Data, NaN where not observed.

        Returns
        -------
        float
        """
        samples = self._solved(X)
        with local_executor(self.n_jobs) as executor:
            tables = tables_of(samples.fitted, samples.arrays, executor)
            return explained(tables, samples.fitted.means(self._variational))

    def sources(self, X: Any, letter: str | None = None) -> Any:
        """Expected part of each value of a latent letter in each cell.

        The parts sum to X, less the part of the noise. In a gap they sum to what `impute` fills in.

        Parameters
        ----------
        X : array-like, or dict of them by the names of tensors
            Data, NaN where not observed.
        letter : str or None
            A latent letter that is in each term; None is the only one.

        Returns
        -------
        ndarray of shape (*X.shape, n_values), or dict of them by the names of tensors
            An xarray where X is one.
        """
        samples = self._solved(X)
        plan = samples.fitted.model.plan
        everywhere = [x for x in plan.latent if all(x in term.letters for term in plan.terms)]
        if letter is None and len(everywhere) == 1:
            letter = everywhere[0]
        if letter not in everywhere:
            raise ValueError(
                f"letter must be a latent letter that is in each term "
                f"({', '.join(map(repr, everywhere)) or 'there is none'}); found {letter!r}."
            )
        found = sources_of(samples, self._parts_of(samples), letter)
        if library_of(X) == "xarray":
            for one in plan.observations:
                axes = (*one.output, letter)
                found[one.name] = labelled_xarray(found[one.name], axes, samples.fitted.labels)
        return self._by_tensor(found)

    def _solved(self, X: Any) -> Samples:
        """The samples of X with their factors."""
        check_is_fitted(self)
        fitted = self._fitted
        arrays, labels = open_tensors(
            fitted.model.plan, X, self._accepted(fitted.wants), fitted.labels
        )
        own = fitted._replace(labels=labels)
        with local_executor(self.n_jobs) as executor:
            return solved(own, arrays, executor, variational=self._variational)

    def _parts_of(self, samples: Samples) -> Parts:
        return samples.fitted.parts(samples.fitted.means(self._variational))

    def _cells(self, X: Any) -> dict[str, tuple[NDArray, NDArray]]:
        """The tensors of X that are there, and what the model makes of them."""
        samples = self._solved(X)
        expected = self._expected(samples)
        there = X if isinstance(X, Mapping) else expected
        arrays = {name: own for name, own in samples.arrays.items() if name in there}
        return {name: (dense_of(own), expected[name]) for name, own in arrays.items()}

    def _expected(self, samples: Samples) -> dict[str, NDArray]:
        """The tensors that the factors of samples stand for."""
        parts, plan = self._parts_of(samples), samples.fitted.model.plan
        return {one.name: samples.fitted.expected(parts, one) for one in plan.observations}

    def _flat(self, fitted: Fitted) -> NDArray:
        """All factors of the samples as one matrix."""
        parts = fitted.parts(fitted.means(self._variational)).factors
        flat = []
        for name, axis in sample_axes(fitted.model).items():
            rows = np.moveaxis(signed_values(parts[name]), axis, 0)
            flat.append(rows.reshape(len(rows), -1))
        return np.concatenate(flat, axis=1)

    def _accepted(self, wants: Mapping[str, Wanted]) -> dict[str, Accepted]:
        """Which numbers each tensor may have."""
        integer = self._parameter("check_integer")
        return {
            name: Accepted(
                want.kind.integers and integer, want.kind.largest, "likelihood='integer'"
            )
            for name, want in wants.items()
        }

    def save(self, path: Any) -> None:
        """Write the fitted estimator to a file that `seminmf.load` reads.

        Parameters
        ----------
        path : str or path-like
            File to write, in the safetensors format.
        """
        check_is_fitted(self)
        save(self, path)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags
