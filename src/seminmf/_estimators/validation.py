"""Checks of what users hand in: one sentence with argument, what was found, what is accepted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight, validate_data

from .._data.reading import as_meant, is_pandas, named
from .._data.source import Data
from .._data.summary import Summary
from .._model.model import Priors, split_signed
from .notices import warn_user

# What weights may sum to: sums over samples are in the type of the data.
_MOST_WEIGHT = {"float32": 1e15, "float64": 1e100}
# So near to 1 is the sum of weights that were normalised, in float32 as well.
_NORMALISED = 1e-5


def record_features(estimator: Any, X: Any) -> None:
    """Remember number and names of the features, once nothing can be refused any more."""
    validate_data(estimator, named(X), reset=True, skip_check_array=True)


def as_numbers(name: str, value: Any, accepted: str) -> NDArray:
    """A copy of `value` as an array of float64: what users change later changes nothing here."""
    meant = as_meant(value, name)
    try:
        array = np.asarray(meant)
        if array.dtype.kind not in "mMc":
            return array.astype(np.float64)
    except (TypeError, ValueError):
        pass
    shown = repr(value)
    if "\n" in shown:
        shown = f"a {type(value).__name__}"
    raise ValueError(f"{name} must be {accepted}; found {shown}.") from None


def check_observed(summary: Summary) -> None:
    """Refuse data without any observed cell."""
    if summary.n_observed == 0:
        raise ValueError("X must have at least one observed cell; found gaps (NaN) only.")


def check_scored(n_observed: float) -> None:
    """Refuse data of which a mean over observed cells, counted by their weights, has none."""
    if n_observed == 0:
        raise ValueError(
            "X must have at least one observed cell for a score, in a sample whose weight is above "
            "0; found none."
        )


def is_number(value: Any) -> bool:
    """Whether a value is a real number: not a truth value, text or an array."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def check_choice(name: str, value: Any, accepted: tuple) -> None:
    """Refuse a value that is not among the accepted ones."""
    if not any(
        value is option or (isinstance(value, str) and value == option) for option in accepted
    ):
        options = ", ".join(repr(option) for option in accepted)
        raise ValueError(f"{name} must be one of {options}; found {value!r}.")


def check_count(name: str, value: Any, least: int = 1) -> int:
    """An integer that is not below `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}; found {value!r}.")
    return int(value)


def check_seconds(name: str, value: Any) -> float:
    """A number of at least 0."""
    if not is_number(value) or not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a number of seconds, 0 or more; found {value!r}.")
    return float(value)


def check_jobs(value: Any) -> None:
    """None, or an integer other than 0."""
    if value is not None and (
        isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value == 0
    ):
        raise ValueError(f"n_jobs must be None or an integer other than 0; found {value!r}.")


def check_share(name: str, value: Any) -> float:
    """A number between 0 and 1."""
    if not is_number(value) or not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1; found {value!r}.")
    return float(value)


def check_level(value: Any) -> tuple[float, float]:
    """Both tails of intervals of some probability."""
    level = check_share("level", value)
    return (1 - level) / 2, (1 + level) / 2


def check_cells(rows: Any, columns: Any, shape: tuple[int, int]) -> tuple[NDArray, NDArray]:
    """Indices of cells of a matrix, broadcast against each other."""
    indices = []
    for name, value, size in zip(("rows", "columns"), (rows, columns), shape, strict=True):
        array = np.asarray(value)
        if not np.issubdtype(array.dtype, np.integer):
            raise ValueError(f"{name} must be integers; found {value!r}.")
        if np.any((array < -size) | (array >= size)):
            raise ValueError(
                f"{name} must be within 0 to {size - 1}; found {array.min()} to {array.max()}."
            )
        indices.append(array)
    try:
        first, second = np.broadcast_arrays(*indices)
    except ValueError:
        raise ValueError(
            "rows and columns must broadcast against each other; "
            f"found the shapes {indices[0].shape} and {indices[1].shape}."
        ) from None
    return first, second


def check_flag(name: str, value: Any) -> None:
    """Refuse what is not True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False; found {value!r}.")


def check_dispersion(value: Any, known: float | None, likelihood: str) -> None:
    """Refuse what is neither "auto" nor a number of at least 0, or not that of a likelihood."""
    automatic = isinstance(value, str) and value == "auto"
    if not automatic and not (is_number(value) and 0 <= value < np.inf):
        raise ValueError(f"dispersion must be 'auto' or a number of at least 0; found {value!r}.")
    if known is not None and not automatic and value != known:
        raise ValueError(
            f"dispersion must be 'auto' or {known:g} for likelihood={likelihood!r}; "
            f"found {value!r}."
        )


def check_tolerance(value: Any, name: str = "tol") -> float:
    """A finite number that is not negative."""
    if not is_number(value) or not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0; found {value!r}.")
    return float(value)


def check_parameter(
    name: str, value: ArrayLike, shape: tuple[int, ...], axes: str, *, zero: bool = False
) -> NDArray:
    """A prior's parameter as an array with as many axes as `shape`, to which it broadcasts."""
    array = as_numbers(name, value, f"a number or broadcast to {axes} = {shape}")
    try:
        fits = np.broadcast_shapes(array.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} must be a number or broadcast to {axes} = {shape}; "
            f"found an array of shape {array.shape}."
        )
    sign = "at least 0" if zero else "above 0"
    if not np.all(np.isfinite(array)) or np.any(array < 0) or (not zero and np.any(array == 0)):
        worst = array.flat[np.argmin(np.where(np.isfinite(array), array, -np.inf))]
        raise ValueError(f"{name} must be finite and {sign}; found {worst}.")
    return array.reshape((1,) * (len(shape) - array.ndim) + array.shape)


def check_priors(
    estimator: Any,
    n_samples: int,
    n_features: int,
    *,
    positive_rate: bool,
    auto: Mapping[str, float] | None = None,
) -> Priors:
    """The estimator's priors, checked against the sizes of the data.

    `auto` has the parameters that may be "auto", and what they are then.
    """
    n_components = estimator.n_components
    activations = (n_samples, n_components), "(n_samples, n_components)"
    atoms = (2, n_components, n_features), "(2, n_components, n_features)"
    parameters = []
    for name, sizes, zero in (
        ("activation_shape_prior", activations, False),
        ("activation_rate_prior", activations, not positive_rate),
        ("atom_shape_prior", atoms, False),
    ):
        value = getattr(estimator, name)
        if is_auto(value) and auto is not None and name in auto:
            value = auto[name]
        parameters.append(check_parameter(name, value, *sizes, zero=zero))
    return Priors.of(*parameters)


def is_auto(value: Any) -> bool:
    """Whether a parameter is to be found."""
    return isinstance(value, str) and value == "auto"


def check_weight(sample_weight: Any, data: Data, *, has_prior: bool = True) -> NDArray:
    """Weights of the samples, one each, in float64; 1 if there are none.

    Where there is a prior, their sum is what the data count as against it.
    """
    n_samples = data.shape[0]
    if sample_weight is None:
        return np.ones(n_samples)
    weights = as_numbers("sample_weight", sample_weight, "a number for each sample")
    missing = np.flatnonzero(~np.isfinite(weights))
    if len(missing):
        raise ValueError(
            f"sample_weight must be finite for each sample; found {weights.flat[missing[0]]} for "
            f"sample {missing[0]}, as which a mask or a missing value counts."
        )
    weights = _check_sample_weight(weights, range(n_samples), dtype=np.float64)
    if np.any(weights < 0) or not np.any(weights > 0):
        raise ValueError(
            "sample_weight must be at least 0, and above 0 for some sample; "
            f"found a smallest of {weights.min()} and a largest of {weights.max()}."
        )
    if has_prior:
        _check_total(weights, data.source.dtype)
    return weights


def _check_total(weights: NDArray, dtype: np.dtype) -> None:
    """Refuse weights whose sum overflows, and warn of those that were normalised."""
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if total > _MOST_WEIGHT[dtype.name]:
        raise ValueError(
            f"sample_weight must sum to at most {_MOST_WEIGHT[dtype.name]:g} for data of {dtype}; "
            f"found a sum of {total:g}."
        )
    if abs(total - 1) < _NORMALISED and weights.max() < 1:
        warn_user(
            "sample_weight sums to 1, and a weight counts as repeats of its sample: all "
            f"{len(weights)} samples together count as a single one against the prior. Weights "
            "with a mean of 1 keep their number."
        )


def check_cell_noise(value: Any, X: Any, data: Data) -> NDArray:
    """Known standard deviations of cells, (J, I) or (1, I); infinity makes a gap of its cell.

    A DataFrame is put into the order of X, if X has labels too. A gap of X may have anything.
    """
    shape, accepted = data.shape, "standard deviations above 0 that broadcast to the shape of X"
    if is_pandas(value) and value.ndim == 2 and is_pandas(X):
        missing = [label for label in X.columns if label not in value.columns]
        if missing or not X.index.isin(value.index).all():
            raise ValueError(
                f"cell_noise must have the labels of X; found none for {(missing or ['a row'])[0]}."
            )
        value = value.loc[X.index, X.columns]
    array = as_numbers("cell_noise", value, accepted)
    try:
        fits = np.broadcast_shapes(array.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"cell_noise must broadcast to {shape}; found the shape {array.shape}.")
    array = array.reshape((1,) * (2 - array.ndim) + array.shape)
    if not data.source.in_memory and (len(array) > 1 or np.isinf(array).any()):
        raise ValueError(
            "cell_noise must be finite and the same for all samples unless X is an array in "
            f"memory; found the shape {array.shape}, with {int(np.isinf(array).sum())} infinite."
        )
    array = np.broadcast_to(array, (len(array), shape[1]))
    in_gap = np.isnan(data.source.rows(0, shape[0])) if len(array) > 1 else False
    wrong = ~(array > 0) & ~in_gap
    if np.any(wrong):
        j, i = np.argwhere(wrong)[0]
        raise ValueError(
            f"cell_noise must be above 0 where X is observed; found {array[j, i]} in row {j}, "
            f"column {i}."
        )
    return np.where(in_gap, 1.0, array)


def check_start(name: str, value: Any, shape: tuple[int, ...], *, gaps: bool = False) -> NDArray:
    """Start values: of the shape given, not negative; NaN only where `gaps` allows."""
    array = as_numbers(name, value, f"numbers of the shape {shape}")
    if array.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}; found {array.shape}.")
    if np.any(array < 0) or np.any(np.isinf(array)) or (not gaps and np.any(np.isnan(array))):
        wrong = array[(array < 0) | np.isinf(array) | (np.isnan(array) & (not gaps))][0]
        raise ValueError(f"{name} must be finite and at least 0; found {wrong}.")
    return array


def check_activations(X: Any, n_components: int) -> NDArray:
    """Activations that stand for data: a row for each sample, a column for each component."""
    array = np.asarray(as_meant(X))
    if array.dtype not in (np.float32, np.float64):
        array = as_numbers("X", X, "an array of numbers")
    if array.ndim != 2 or array.shape[1] != n_components:
        raise ValueError(f"X must have the shape (n_samples, {n_components}); found {array.shape}.")
    return array


def check_whole(name: str, array: NDArray) -> None:
    """Refuse components of which some entries are NaN and some are not."""
    missing = np.isnan(array)
    partly = missing.any(axis=(0, 2)) & ~missing.all(axis=(0, 2))
    if partly.any():
        raise ValueError(
            f"{name} must be NaN for all of a component or for nothing of it; "
            f"found both in component {int(np.flatnonzero(partly)[0])}."
        )


def check_atoms(atoms: Any, n_components: int, n_features: int, scale: NDArray) -> NDArray:
    """Start atoms (2, K, I), normalised; signed ones (K, I) are split by the paper's rule.

    Signed ones are components in the unit of X, which the fit divides by `scale`. Components whose
    atoms are NaN are left so, for `start` to fill in.
    """
    array = as_numbers("atoms", atoms, f"numbers of the shape {(2, n_components, n_features)}")
    if array.shape == (n_components, n_features):
        array = split_signed(array / scale)
    if array.shape != (2, n_components, n_features):
        raise ValueError(
            f"atoms must have the shape {(2, n_components, n_features)}, "
            f"or {(n_components, n_features)} with signs; found {array.shape}."
        )
    check_start("atoms", array, array.shape, gaps=True)
    check_whole("atoms", array)
    missing = np.isnan(array).any(axis=(0, 2))
    totals = array.sum(axis=(0, 2), keepdims=True)
    if np.any(totals[:, ~missing] <= 0):
        empty = int(np.flatnonzero(~missing & (totals[0, :, 0] <= 0))[0])
        raise ValueError(f"atoms must not be all zero; found zeros in component {empty}.")
    array = array / np.where(missing[:, None], 1.0, totals)
    array[:, missing] = np.nan
    return array


def check_components(components: Any, shape: tuple[int, int]) -> NDArray:
    """Signed start components (K, I); those that are NaN are left so, for the start to fill in."""
    array = as_numbers("components", components, f"numbers of the shape {shape}")
    if array.shape != shape:
        raise ValueError(f"components must have the shape {shape}; found {array.shape}.")
    if np.any(np.isinf(array)):
        raise ValueError(f"components must be finite; found {array[np.isinf(array)][0]}.")
    check_whole("components", array[None])
    return array


def check_frozen(
    frozen: Any, n_components: int, given: NDArray | None, name: str = "atoms"
) -> NDArray:
    """Mask (K,) of the components that stay, from a mask or from indices.

    What they are is in `given`, of shape (..., K, I), under its `name`.
    """
    mask = np.zeros(n_components, dtype=bool)
    if frozen is None:
        return mask
    array = np.asarray(frozen)
    if array.dtype == bool and array.shape == (n_components,):
        mask = array.copy()
    elif array.ndim <= 1 and (array.size == 0 or np.issubdtype(array.dtype, np.integer)):
        indices = np.atleast_1d(array).astype(int)
        if np.any((indices < 0) | (indices >= n_components)):
            raise ValueError(
                f"frozen must hold indices from 0 to {n_components - 1}; found {indices.tolist()}."
            )
        mask[indices] = True
    else:
        raise ValueError(
            f"frozen must be a boolean mask of length {n_components} or indices of components; "
            f"found an array of shape {array.shape} and type {array.dtype}."
        )
    if mask.any() and (given is None or np.isnan(given[..., mask, :]).any()):
        raise ValueError(f"frozen components must have their {name} given; found none or NaN.")
    return mask
