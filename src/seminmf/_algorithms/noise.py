"""How large the noise is, and factors to start a fit from: found together.

In the limit of a small dispersion the model with a component for noise is least squares in units of
the noise. With n_k = √Σ_i (W_ki / σ_i)² the length of a component in these units, λ_jk n_k is the
signal-to-noise ratio of component k in sample j, and

    ½ Σ_observed (x − A W − b)² / σ_i² + κ Σ_jk λ_jk n_k

is minimised over A ≥ 0, W and b, while the noise σ_i follows the residuals. Least squares alone
leaves a rotation open; the price κ closes it. What it should be is seen from cells that are held
back: too small a price lets components follow the noise, too large a price shrinks them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from .._kernels.euclidean.priced import (
    Cells,
    RowGrams,
    solve_bounded_features,
    solve_priced_rows,
    sum_grams,
    sum_leverages,
    sum_products,
)
from .._kernels.euclidean.priced_panels import panels_of, solve_priced_panels
from .loop import Info, Stopping

# Noise is found anew after so many rounds, and for the first time after so many.
_EVERY, _FIRST_NOISE = 5, 10
# Each feature's noise counts as so many more cells, as a share of those it has, that have the noise
# of all features alike, in units of the feature: no residuals are too small to be true.
POOLED = 0.02
# At least this share of all cells is left to judge the noise by, however many components there are.
_LEAST_FREEDOM = 0.05
# Variance of the noise that is not gone below, against the mean square of a feature.
_LEAST_VARIANCE = 1e-6
# A mean square below this share of the largest is none; and what it is where there is nothing else.
_NOTHING, _NO_SIZE = 1e-14, 1e-30
# Steps of coordinate descent for the activations of a sample in a round.
_DESCENT = 5
# A ridge that decides where nothing else does, against the squares of activations; and squares that
# are none.
_LEAST_RIDGE, _VANISHING = 1e-9, 1e-100
# A signal-to-noise ratio below this is none.
_INACTIVE = 1e-3
# A search does not end before so many rounds.
_LEAST_ROUNDS = 40
# A cell is an outlier if, by squares, it is more than this of its feature's residuals, and of the
# feature, among so many cells.
_MOST_OF_REST, _MUCH, _MANY_CELLS = 0.5, 0.25, 20
# A square that is less than so many of the cell's known variances is what was to be expected,
# with what the price takes from the cell.
_EXPECTED = 36.0
# A component that is nowhere active starts anew at the sample that is fitted worst, for some time.
_LAST_RESTART = 60


@dataclass(frozen=True)
class SearchData:
    """Samples in which the noise is sought.

    Attributes
    ----------
    X : (n, I) array
        0 in gaps, in the unit of computations.
    observed : (n, I) array of 0 and 1, or (1, I) ones if there are no gaps
    weights : (n,) array
    known : (n, I), (1, I) or (1, 1) array
        Variance that is known of each cell.
    """

    X: NDArray
    observed: NDArray
    weights: NDArray
    known: NDArray

    def without(self, cells: NDArray) -> SearchData:
        """The same data without some cells, by a boolean array (n, I)."""
        observed = np.where(cells, 0.0, self.observed)
        return replace(self, X=np.where(cells, 0.0, self.X), observed=observed)

    @cached_property
    def cells(self) -> Cells:
        """Where observed cells are, or gaps."""
        observed = np.broadcast_to(self.observed > 0, self.X.shape)
        return Cells.of(observed, gaps=len(self.known) == 1)

    @cached_property
    def around_mean(self) -> tuple[NDArray, NDArray, NDArray]:
        """The mean, the sums of squares of the features around it, and the samples less it.

        For complete data; samples are in panels.
        """
        mean = self.mean()
        return mean, self.counts * self.mean_squares(mean), panels_of(self.X - mean)

    @property
    def is_complete(self) -> bool:
        """Whether all features have the same samples, and precisions of their own at most."""
        return len(self.observed) == 1 and len(self.known) == 1

    @cached_property
    def counts(self) -> NDArray:
        """Observed cells of each feature, with the samples' weights."""
        observed = np.broadcast_to(self.observed, self.X.shape)
        return np.einsum("j,ji->i", self.weights, observed)

    def mean(self) -> NDArray:
        """Mean of each feature's observed cells."""
        return np.einsum("j,ji->i", self.weights, self.X) / np.maximum(self.counts, 1e-300)

    def mean_squares(self, centre: NDArray) -> NDArray:
        """Mean square of each feature's observed cells around `centre`."""
        deviations = (self.X - centre) * self.observed
        squares = np.einsum("j,ji,ji->i", self.weights, deviations, deviations)
        return squares / np.maximum(self.counts, 1e-300)


class SearchModel(NamedTuple):
    """What is sought.

    Attributes
    ----------
    frozen : (K,) boolean array
        Components that stay.
    intercept, positive : bool
        Whether there is an intercept; whether components are at least 0.
    noise : {"feature", "same", None}
        Whether features have their own noise, the same, or none beside what is known.
    """

    frozen: NDArray
    intercept: bool
    positive: bool
    noise: str | None


class Search(NamedTuple):
    """The problem that `step` works on."""

    data: SearchData
    model: SearchModel
    # Mean square of each feature, around its mean if there is an intercept; and what is none.
    sizes: NDArray
    least_size: float

    @classmethod
    def of(cls, data: SearchData, model: SearchModel) -> Search:
        """With the features' sizes."""
        nothing = np.zeros(data.X.shape[1])
        squares = data.mean_squares(data.mean() if model.intercept else nothing)
        least = _NOTHING * data.mean_squares(nothing).max() + _NO_SIZE
        return cls(data, model, np.maximum(squares, least), least)

    @property
    def has_values(self) -> NDArray:
        """Which features have any signal or noise; all, if none has."""
        alive = self.sizes > self.least_size
        return alive if alive.any() else np.ones_like(alive)


class Found(NamedTuple):
    """What was found, in the unit of computations.

    Attributes
    ----------
    activations, components : (n, K) and (K, I) arrays
    intercept : (I,) array
    variance : (I,) array
        Of the noise, beside what is known of each cell.
    price : float
        κ.
    age : int
        Rounds so far.
    """

    activations: NDArray
    components: NDArray
    intercept: NDArray
    variance: NDArray
    price: float
    age: int


class SearchStopping(Stopping):
    """Ends a search when the objective stands still: it may fall when the noise is found anew."""

    __slots__ = ()
    least = _LEAST_ROUNDS

    def is_met(self, objectives: list[float]) -> bool:
        """Whether it stands still, after some rounds."""
        if len(objectives) <= max(self.least, self.window):
            return False
        return abs(objectives[-1] - objectives[-1 - self.window]) <= self.tol


class ContinuedStopping(SearchStopping):
    """Ends a search that goes on from where another one has ended: it may do so at once."""

    __slots__ = ()
    least = 0


def first(search: Search, components: NDArray, price: float) -> Found:
    """Where a search starts: all is noise."""
    n_samples, n_features = search.data.X.shape
    centre = search.data.mean() if search.model.intercept else np.zeros(n_features)
    variance = np.zeros(n_features) if search.model.noise is None else search.sizes.copy()
    return Found(
        np.zeros((n_samples, len(components))), components.copy(), centre, variance, price, 0
    )


def start(search: Search, point: Found) -> Found:
    """The point itself."""
    return point


def point(state: Found) -> Found:
    """The state itself."""
    return state


def step(search: Search, state: Found) -> tuple[Found, Info]:
    """One round: activations, components, and now and then the noise."""
    precision, scale = precisions(search, state.variance)
    state, objective = _with_activations(search, state, precision, scale)
    state = _with_components(search, state, precision, scale)
    if state.age < _LAST_RESTART:
        state = _restarted(search, state, precision)
    learns = state.age >= _FIRST_NOISE and state.age % _EVERY == _EVERY - 1
    if learns and search.model.noise is not None:
        state = state._replace(variance=_residual_variance(search, state))
    return state._replace(age=state.age + 1), Info(objective)


def evaluate(search: Search, state: Found) -> float:
    """Minus what is minimised, with the noise's own part."""
    return _with_activations(search, state, *precisions(search, state.variance))[1]


def precisions(search: Search, variance: NDArray) -> tuple[NDArray, NDArray]:
    """1 / variance of each cell, or one row; and the standard deviation of each feature's noise."""
    data = search.data
    variances = data.known + variance
    precision = np.ascontiguousarray(1 / variances)
    if len(variances) == 1:
        scale = np.sqrt(variances[0])
    else:
        totals = np.einsum("j,ji,ji->i", data.weights, precision, data.observed)
        scale = np.sqrt(data.counts / np.maximum(totals, 1e-300))
    # A feature that nothing is known of may have as much noise as any.
    seen = data.counts > 0
    return precision, np.where(seen, scale, np.max(scale, initial=0.0, where=seen) or 1.0)


def lengths(components: NDArray, scale: NDArray) -> NDArray:
    """n_k = √Σ_i (W_ki / σ_i)²."""
    return np.sqrt(np.einsum("ki,ki->k", components / scale, components / scale))


def squared_errors(search: Search, state: Found, weights: NDArray) -> NDArray:
    """Sum of squares of each feature's errors, with weights (n, I) of cells."""
    errors = search.data.X - state.activations @ state.components - state.intercept
    return np.einsum("j,ji,ji,ji->i", search.data.weights, weights, errors, errors)


def _with_activations(
    search: Search, state: Found, precision: NDArray, scale: NDArray
) -> tuple[Found, float]:
    """The activations for the components, and the objective there."""
    data, activations = search.data, state.activations.copy()
    grams = RowGrams.of(state.components.T, precision)
    prices = state.price * lengths(state.components, scale)
    if data.is_complete:
        mean, squares, panels = data.around_mean
        centre = state.intercept - mean
        quadratics = solve_priced_panels(
            panels,
            precision[0],
            centre,
            state.components,
            grams.whole,
            prices,
            _DESCENT,
            activations,
        )
        minimised = 0.5 * float(precision[0] @ (squares + data.counts * centre**2))
        minimised += float(data.weights @ quadratics)
    else:
        minimised = solve_priced_rows(
            data.X,
            data.cells,
            data.weights,
            state.intercept,
            grams,
            prices,
            _DESCENT,
            activations,
        )
    objective = -minimised - 0.5 * _log_variances(search, state.variance)
    return state._replace(activations=activations), objective


def _log_variances(search: Search, variance: NDArray) -> float:
    """Sum of the logarithms of the variances of all observed cells, with the weights."""
    data = search.data
    logarithms = np.log(data.known + variance)
    if len(logarithms) == 1:
        return float(data.counts @ logarithms[0])
    return float(np.einsum("j,ji,ji->", data.weights, data.observed, logarithms))


def _with_components(search: Search, state: Found, precision: NDArray, scale: NDArray) -> Found:
    """Components and intercept for the activations.

    A ridge stands for the price on lengths, n_k ≤ (n² / n_k + n_k) / 2.
    """
    data, model = search.data, search.model
    activations, n_components = state.activations, len(state.components)
    values = activations
    if model.intercept:
        values = np.column_stack([activations, np.ones(len(activations))])
    n_values = values.shape[1]
    # Precisions that are the same for all samples of a feature have no part in it.
    alike = len(data.known) == 1
    precision = np.ones_like(precision) if alike else precision
    weights = (
        data.weights[None] if alike else np.ascontiguousarray((data.weights[:, None] * precision).T)
    )
    products = sum_products(data.X, precision, data.weights, values)
    sums = RowGrams.of(values, weights)
    grams = sums.whole[None].copy() if data.is_complete else sum_grams(data.cells, sums)
    length = np.maximum(lengths(state.components, scale), 1e-300)
    ridge = np.zeros(n_values)
    ridge[:n_components] = state.price * np.einsum("j,jk->k", data.weights, activations) / length
    diagonal = np.arange(n_values)
    grams[:, diagonal, diagonal] += ridge * (1.0 if alike else 1 / scale[:, None] ** 2)
    # Where nothing else decides.
    squares = grams[:, diagonal, diagonal]
    grams[:, diagonal, diagonal] += np.where(squares > _VANISHING, _LEAST_RIDGE * squares, 1.0)
    before = np.vstack([state.components, state.intercept]) if model.intercept else state.components
    solved = _solve_features(model, grams, products, before)
    intercept = solved[-1] if model.intercept else state.intercept
    components = solved[:n_components]
    # Of length 1, but for the frozen ones and those that have none.
    length = lengths(components, scale)
    length = np.where(model.frozen | ~(length > 1e-9), 1.0, length)
    return state._replace(
        activations=activations * length,
        components=components / length[:, None],
        intercept=intercept,
    )


def fitted_components(search: Search, activations: NDArray, components: NDArray) -> NDArray:
    """The components that go with given activations, while all is noise."""
    state = first(search, components, 0.0)._replace(activations=activations)
    return _with_components(search, state, *precisions(search, state.variance)).components


def added_sample(search: Search, state: Found, choose: Callable[[NDArray], int]) -> Found:
    """The state whose last component is what is left of a sample, chosen by how badly it is fitted.

    `choose` sees the misfit of each sample.
    """
    precision, scale = precisions(search, state.variance)
    state, _ = _with_activations(search, state, precision, scale)
    misfit, residual = _misfit(search, state, precision)
    components = state.components.copy()
    components[-1] = _as_component(search, residual, choose(misfit))
    return state._replace(components=components)


def r2(search: Search, state: Found) -> float:
    """R² of the observed cells, around the intercept, in the unit of X."""
    observed = np.broadcast_to(search.data.observed, search.data.X.shape)
    nothing = state._replace(activations=np.zeros_like(state.activations))
    whole = float(squared_errors(search, nothing, observed).sum())
    return 1 - float(squared_errors(search, state, observed).sum()) / whole if whole > 0 else 0.0


def outlier(search: Search, state: Found) -> tuple[int, int] | None:
    """The cell that is most of what is not explained of its feature, and much of the feature.

    The first one, if there are several. A cell whose known error explains it is none.
    """
    data = search.data
    residuals = data.X - state.activations @ state.components - state.intercept
    squares = data.observed * residuals**2
    unexpected = np.where(squares > _EXPECTED * data.known, squares, 0.0)
    largest, total = unexpected.max(axis=0), squares.sum(axis=0)
    alone = (largest > _MOST_OF_REST * total) & (largest > _MUCH * data.counts * search.sizes)
    alone &= search.has_values & (data.counts >= _MANY_CELLS)
    if not alone.any():
        return None
    feature = int(np.argmax(alone))
    return int(np.argmax(unexpected[:, feature])), feature


def is_undecided(search: Search, state: Found) -> bool:
    """Whether there are as many parameters as cells, and nothing tells noise from components."""
    (n_samples, n_components), n_features = state.activations.shape, len(search.sizes)
    return bool(n_components * (n_samples + n_features) >= search.data.counts.sum())


def _solve_features(
    model: SearchModel, grams: NDArray, products: NDArray, before: NDArray
) -> NDArray:
    """The least squares of each feature for what is not frozen."""
    n_values = len(before)
    free = np.ones(n_values, dtype=bool)
    free[: len(model.frozen)] = ~model.frozen
    if not free.any():
        return before
    if not free.all():
        products = products - np.einsum("ikl,li->ki", grams[:, :, ~free], before[~free])
        products, grams = products[free], grams[:, free][:, :, free]
    solved = before.copy()
    if model.positive:
        bounded = np.arange(n_values)[free] < len(model.frozen)
        own = np.ascontiguousarray(before[free])
        solve_bounded_features(
            np.ascontiguousarray(grams), np.ascontiguousarray(products), bounded, 100, own
        )
        solved[free] = own
    elif len(grams) == 1:
        _, found, failed = lapack.dposv(grams[0], products)
        solved[free] = np.linalg.solve(grams[0], products) if failed else found
    else:
        solved[free] = np.linalg.solve(grams, products.T[:, :, None])[:, :, 0].T
    return solved


def _restarted(search: Search, state: Found, precision: NDArray) -> Found:
    """The state, in which components that are nowhere active start at samples fitted badly."""
    dead = np.flatnonzero(~(state.activations.max(axis=0) > 0) & ~search.model.frozen)
    if not len(dead):
        return state
    misfit, residual = _misfit(search, state, precision)
    order = np.argsort(-misfit, kind="stable")
    components = state.components.copy()
    for k, j in zip(dead, order, strict=False):
        components[k] = _as_component(search, residual, j)
    return state._replace(components=components)


def _misfit(search: Search, state: Found, precision: NDArray) -> tuple[NDArray, NDArray]:
    """How badly each sample is fitted, in units of the noise; and the residuals (n, I)."""
    residual = search.data.X - state.intercept - state.activations @ state.components
    seen = search.data.observed * precision
    return np.einsum("ji,ji->j", residual * seen, residual), residual


def _as_component(search: Search, residual: NDArray, j: int) -> NDArray:
    """What is left of sample j, as a component may be."""
    seen = search.data.observed[j if len(search.data.observed) > 1 else 0]
    row = residual[j] * seen
    return np.maximum(row, 0) if search.model.positive else row


class _Residuals(NamedTuple):
    """Of each feature: observed cells, squared residuals, and how many cells the fit uses up."""

    counts: NDArray
    squares: NDArray
    used: NDArray


def _residuals(search: Search, state: Found) -> _Residuals:
    """What the fit leaves, with the samples' weights."""
    data, model = search.data, search.model
    precision, scale = precisions(search, state.variance)
    least = _INACTIVE / np.maximum(lengths(state.components, scale), 1e-300)
    grams = RowGrams.of(state.components.T, precision)
    observed = np.broadcast_to(data.observed, data.X.shape)
    squares = squared_errors(search, state, observed)
    leverages = sum_leverages(data.cells, data.weights, grams, state.activations, least)
    counts = data.counts
    n_active = int((state.activations > least).any(axis=0).sum()) + int(model.intercept)
    used = leverages + n_active * (1 - leverages / np.maximum(counts, 1e-300))
    return _Residuals(counts, squares, used)


def _residual_variance(search: Search, state: Found) -> NDArray:
    """Variance of the noise: squared residuals over what they have of freedom, pooled a little."""
    model, sizes = search.model, search.sizes
    counts, squares, used = _residuals(search, state)
    freedom = max((counts - used).sum(), _LEAST_FREEDOM * counts.sum())
    ratio = min((squares / sizes).sum() / freedom, 1.0)
    if model.noise == "same":
        common = squares.sum() / freedom
        return np.full(len(sizes), max(common, _LEAST_VARIANCE * sizes.mean()))
    left = np.maximum(counts - used, 0) + POOLED * counts
    variance = (squares + POOLED * counts * ratio * sizes) / np.maximum(left, 1e-300)
    return np.clip(variance, _LEAST_VARIANCE * sizes, sizes)
