"""Methods to fill gaps, ours and others', with the settings that each chooses from.

A method sees the matrix with its gaps and nothing else. To choose its settings, it hides a tenth of
the cells that are left, the same for all methods, and takes the least root mean square error there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.stats import norm

from .. import BayesianSkellamSNMF, SkellamSNMF
from .._selection.heldout import hide

LEVEL = 0.9
# Share of the seen cells by which settings are chosen.
HELD_OUT = 0.1
OURS: dict[str, dict[str, Any]] = {
    "Skellam SNMF": {"estimator": SkellamSNMF},
    "Bayesian SNMF": {
        "estimator": BayesianSkellamSNMF,
        "posterior": "mean-field",
        "init": "map",
    },
}
# Soft SVD ends when its matrix changes by less than this share of its size.
_SMALL_CHANGE = 1e-4
_MOST_ITERATIONS = 500
# Ratings of the mean user that are added to those of each, before their mean is taken.
_MEAN_RATINGS = 3.0


class Fill(NamedTuple):
    """A matrix without gaps, and the ends of intervals, if there are any."""

    values: NDArray
    lower: NDArray | None = None
    upper: NDArray | None = None

    def shifted(self, offset: NDArray) -> Fill:
        """The same with an offset added."""
        lower, upper = (None if end is None else end + offset for end in self[1:])
        return Fill(self.values + offset, lower, upper)


class Method(NamedTuple):
    """How gaps are filled.

    Attributes
    ----------
    fill : callable
        Takes the matrix, a seed, whether intervals are wanted, and the settings by their names;
        returns a Fill.
    choices : mapping of str to sequence
        Values of each setting; the best of all combinations is chosen.
    """

    fill: Callable[..., Fill]
    choices: Mapping[str, Sequence[float]] = {}

    def choose(self, gappy: NDArray, seed: int) -> dict[str, float]:
        """The settings that fill a tenth of the seen cells best."""
        held = hide(~np.isnan(gappy), HELD_OUT, RandomState(seed))
        seen = np.where(held, np.nan, gappy)

        def error(settings: dict[str, float]) -> float:
            fill = self.fill(seen, seed=seed, intervals=False, **settings)
            return root_mean_square((fill.values - gappy)[held])

        combinations = list(product(*self.choices.values()))
        candidates = [dict(zip(self.choices, values, strict=True)) for values in combinations]
        return min(candidates, key=error) if self.choices else {}

    def wrapped(self, wrapper: Callable[..., Fill], *arguments: Any) -> Method:
        """The same with another fill, which a wrapper makes of this one."""
        return self._replace(fill=partial(wrapper, *arguments, self.fill))


def root_mean_square(values: NDArray) -> float:
    """√ of the mean square."""
    return math.sqrt(np.mean(values**2))


# --- means --------------------------------------------------------------------------------------


def column_means(gappy: NDArray) -> NDArray:
    """Mean of each column, in the shape of the data; that of all cells where it has none."""
    seen = ~np.isnan(gappy)
    counts = seen.sum(axis=0)
    sums = np.sum(gappy, axis=0, where=seen)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nanmean(gappy))
    return np.broadcast_to(means, gappy.shape)


def row_and_column_means(gappy: NDArray) -> NDArray:
    """Means of the columns, plus how far each row is above them in the mean.

    A row with few cells counts as if it had some more, which are as the columns' means.
    """
    columns = column_means(gappy)
    seen = ~np.isnan(gappy)
    sums = np.sum(gappy - columns, axis=1, where=seen)
    return columns + (sums / (seen.sum(axis=1) + _MEAN_RATINGS))[:, None]


def fill_with_means(
    gappy: NDArray, seed: int, intervals: bool, means: Callable[[NDArray], NDArray]
) -> Fill:
    """Means, and intervals as if cells of a column were normal around them."""
    values = means(gappy)
    if not intervals:
        return Fill(values)
    residuals = gappy - values
    spread = np.sqrt(column_means(residuals**2))
    half = norm.ppf((1 + LEVEL) / 2) * spread
    return Fill(values, values - half, values + half)


# --- scikit-learn -------------------------------------------------------------------------------


def fill_by_neighbours(gappy: NDArray, seed: int, intervals: bool, n_neighbors: int) -> Fill:
    """scikit-learn's KNNImputer."""
    from sklearn.impute import KNNImputer

    return Fill(KNNImputer(n_neighbors=n_neighbors, keep_empty_features=True).fit_transform(gappy))


def fill_by_regression(gappy: NDArray, seed: int, intervals: bool, n_nearest_features: int) -> Fill:
    """scikit-learn's IterativeImputer, in three rounds; its default is ten, with all features.

    In trials on both tasks, ten rounds changed the error by −4 to +2 %, in three times the time.
    """
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    imputer = IterativeImputer(
        n_nearest_features=n_nearest_features,
        max_iter=3,
        keep_empty_features=True,
        random_state=seed,
    )
    return Fill(imputer.fit_transform(gappy))


# --- singular values ----------------------------------------------------------------------------


class LowRank(NamedTuple):
    """A matrix, and the objectives on the way to it."""

    values: NDArray
    objectives: list[float]


def soft_svd(gappy: NDArray, threshold: float, start: NDArray | None = None) -> LowRank:
    """The Z with the least ½ Σ_observed (x − z)² + threshold · (sum of its singular values).

    softImpute of Mazumder, Hastie and Tibshirani (2010): fill the gaps from Z, reduce all singular
    values by the threshold, and go on until Z hardly changes.
    """
    seen = ~np.isnan(gappy)
    Z = np.zeros(gappy.shape) if start is None else start
    objectives: list[float] = []
    for _ in range(_MOST_ITERATIONS):
        before = Z
        left, sizes, right = np.linalg.svd(np.where(seen, gappy, Z), full_matrices=False)
        kept = np.maximum(sizes - threshold, 0.0)
        Z = (left * kept) @ right
        squares = float(np.sum((gappy - Z) ** 2, where=seen))
        objectives.append(squares / 2 + threshold * float(kept.sum()))
        if np.linalg.norm(Z - before) <= _SMALL_CHANGE * np.linalg.norm(Z):
            break
    return LowRank(Z, objectives)


def fill_by_soft_svd(gappy: NDArray, seed: int, intervals: bool, threshold: float) -> Fill:
    """Soft SVD; the threshold is a share of the largest singular value, with zeros for gaps.

    Larger thresholds come first, and each starts from the one before, as the authors advise.
    """
    largest = float(np.linalg.norm(np.nan_to_num(gappy), 2))
    n_halves = math.floor(-math.log2(threshold))
    Z = np.zeros(gappy.shape)
    for share in [*(0.5**n for n in range(1, n_halves + 1)), threshold]:
        Z = soft_svd(gappy, share * largest, start=Z).values
    return Fill(Z)


# --- factorizations -----------------------------------------------------------------------------


def fill_by_factorization(
    gappy: NDArray, seed: int, intervals: bool, estimator: type, **settings: Any
) -> Fill:
    """One of our estimators; the Bayesian one has intervals."""
    model = estimator(tol=1e-3, random_state=seed, n_jobs=1, **settings).fit(gappy)
    if intervals and isinstance(model, BayesianSkellamSNMF):
        return Fill(*model.impute(gappy, return_interval=True, level=LEVEL))
    return Fill(model.impute(gappy))


# --- all methods --------------------------------------------------------------------------------


def fill_residuals(fill: Callable[..., Fill], gappy: NDArray, **options: Any) -> Fill:
    """Fill what the means of rows and columns leave."""
    offset = row_and_column_means(gappy)
    return fill(gappy - offset, **options).shifted(offset)


def fill_within(
    bounds: tuple[float, float], fill: Callable[..., Fill], gappy: NDArray, **options: Any
) -> Fill:
    """Fill, and cut what lies beyond the bounds: nobody would believe it."""
    found = fill(gappy, **options)
    return found._replace(values=np.clip(found.values, *bounds))


def methods(
    choices: Mapping[str, Sequence[float]],
    likelihoods: Sequence[str],
    bounds: tuple[float, float],
    *,
    residuals: bool,
) -> dict[str, Method]:
    """All methods by name.

    Parameters
    ----------
    choices : mapping of str to sequence
        Values of all settings, by name.
    likelihoods : sequence of str
        Those of our estimators.
    bounds : tuple of two floats
        The least and the largest value that a cell can have.
    residuals : bool
        Whether all but means are applied to what the means of rows and columns leave.
    """

    def chosen(*names: str) -> dict[str, Sequence[float]]:
        return {name: choices[name] for name in names}

    means = {"column means": Method(partial(fill_with_means, means=column_means))}
    others = {
        "KNN imputer": Method(fill_by_neighbours, chosen("n_neighbors")),
        "iterative imputer": Method(fill_by_regression, chosen("n_nearest_features")),
        "soft SVD": Method(fill_by_soft_svd, chosen("threshold")),
    }
    for likelihood in likelihoods:
        for name, parameters in OURS.items():
            fill = partial(fill_by_factorization, likelihood=likelihood, **parameters)
            # A shape of the atoms above 1 holds them together, which many gaps make necessary.
            settings = chosen("n_components", "atom_shape_prior")
            others[f"{name}, {likelihood}"] = Method(fill, settings)
    if residuals:
        means["row and column means"] = Method(partial(fill_with_means, means=row_and_column_means))
        others = {name: method.wrapped(fill_residuals) for name, method in others.items()}
    return {name: each.wrapped(fill_within, bounds) for name, each in (means | others).items()}
