"""Gibbs sampling of the model with noise: draws of everything, from the joint posterior.

In the limit of a small dispersion the model with a component for noise is X ≈ A W + b with normal
noise. Activations have gamma priors, a_jk ~ G(α_k, ρ_k), and components, in units of the noise, no
direction that they prefer, W_ki ~ N(0, σ_i²): how large they are is left to ρ_k. A sweep draws the
activations of each sample, the components, the noise, and what is not given of the priors, each
from its distribution given all else. Unlike a mean field, draws keep that activations of a sample
depend on each other, and that components turn together with all activations.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .._data.source import Data, all_blocks, row_ranges
from .._kernels.gibbs.features import draw_positive_features
from .._kernels.gibbs.rows import CellNoise, Conditions, RowSums, draw_rows
from .loop import Info
from .noise_growth import NoiseGrowth, ShareSums, typical_signal
from .prior_draws import GammaPrior, drawn_gamma

# Each feature's noise counts as so many more cells, as a share of those it has, that have the noise
# of all features alike, in units of the feature: no residuals are too small to be true.
_POOLED = 0.02
# What is believed of a feature's noise before the data: this share of its mean square.
_BELIEVED = 0.5
# Between these the variance of the noise stays, against the mean square of a feature.
_LEAST_VARIANCE, _MOST_VARIANCE = 1e-6, 2.0
# Precision of an intercept's prior, in cells: it decides nothing.
_FLAT = 1e-9
# Rounds through the components of a feature, where these are bounded.
_BOUNDED_SCANS = 2
# A rate is at least this and at most that, for an activation of a typical size.
_LEAST_RATE, _MOST_RATE = 1e-6, 1e30
# An activation of this size, in units of the noise, is typical of data that have no size.
_LEAST_TYPICAL = 1e-100
# Diagonals of matrices to be inverted are larger by this share: weights may differ by any factor.
_RIDGE = 1e-13
# Sweeps that draw activations alone, from a start that has none.
_FIRST_SWEEPS = 20


class Schedule(NamedTuple):
    """How long a chain is: sweeps before the first draw, draws, and sweeps for each of them."""

    n_first: int
    n_draws: int
    every: int
    n_scans: int

    @property
    def n_sweeps(self) -> int:
        """All sweeps."""
        return self.n_first + self.n_draws * self.every

    @property
    def n_late(self) -> int:
        """Number of sweeps before the first draw that count for means: the later half."""
        return self.n_first // 2

    def is_late(self, age: int) -> bool:
        """Whether a sweep is among these."""
        return self.n_first - self.n_late <= age < self.n_first

    def number_after(self, age: int) -> int | None:
        """Number of the draw that a sweep ends with, if it does."""
        number, rest = divmod(age - self.n_first, self.every)
        return number if rest == self.every - 1 and number >= 0 else None


class SampledModel(NamedTuple):
    """What is sampled.

    Attributes
    ----------
    frozen : (K,) boolean array
        Components that stay.
    intercept, positive : bool
        Whether there is an intercept; whether components are at least 0.
    noise : {"feature", "same", None}
        Whether features have their own noise, the same, or none that is to be drawn.
    shape, rate : (K,) arrays or None
        Of the activations' priors; None if they are learned. Rates are those of amounts.
    """

    frozen: NDArray
    intercept: bool
    positive: bool
    noise: str | None
    shape: NDArray | None
    rate: NDArray | None


@dataclass(frozen=True)
class Sampling:
    """The problem of a chain.

    Attributes
    ----------
    data : Data
        In memory, dense.
    unit : float
        Of computations.
    known : (J, I), (1, I) or (0, 0) array
        Variances that are known of cells, in the unit.
    scale : (I,) array
        Standard deviation of each feature's noise, by and large: the unit of components.
    sizes : (I,) array
        Mean squares of the features, in the unit.
    model : SampledModel
    schedule : Schedule
    executor : LocalExecutor
    growth : NoiseGrowth or None
        How the noise of cells differs from that of their feature, if it does.
    """

    data: Data
    unit: float
    known: NDArray
    scale: NDArray
    sizes: NDArray
    model: SampledModel
    schedule: Schedule
    executor: Any
    growth: NoiseGrowth | None = None

    @property
    def by_cell(self) -> bool:
        """Whether cells of a feature differ in their noise."""
        return self.known.size > 0 or self.growth is not None

    @property
    def typical(self) -> float:
        """An activation that a sample needs whose mean square is that of X."""
        ratio = math.sqrt(np.mean(self.sizes / self.scale**2) / len(self.model.frozen))
        return max(ratio, _LEAST_TYPICAL)


class Kept(NamedTuple):
    """Draws of what all samples share, S of each."""

    components: NDArray
    intercept: NDArray
    variance: NDArray
    shape: NDArray
    rate: NDArray

    @classmethod
    def empty(cls, n_draws: int, n_components: int, n_features: int) -> Kept:
        """Room for them."""
        return cls(
            np.zeros((n_draws, n_components, n_features)),
            np.zeros((n_draws, n_features)),
            np.ones((n_draws, n_features)),
            np.ones((n_draws, n_components)),
            np.ones((n_draws, n_components)),
        )


class Chain(NamedTuple):
    """Where a chain is, in the unit of computations.

    Attributes
    ----------
    activations, components : (J, K) and (K, I) arrays
    intercept, variance : (I,) arrays
    shape, rate : (K,) arrays
    kept : Kept
    activation_sums, size_sums : (J, K) and (K, I) arrays
        Of activations and |components|, over the later half of the sweeps before the first draw.
    age : int
        Sweeps so far.
    seed : int
    """

    activations: NDArray
    components: NDArray
    intercept: NDArray
    variance: NDArray
    shape: NDArray
    rate: NDArray
    kept: Kept
    activation_sums: NDArray
    size_sums: NDArray
    age: int
    seed: int


def first(
    problem: Sampling, components: NDArray, intercept: NDArray, variance: NDArray, seed: int
) -> Chain:
    """Where a chain starts, at components and noise that were found."""
    # What is 0 everywhere has no direction yet.
    nowhere = ~components.any(axis=1, keepdims=True) & ~problem.model.frozen[:, None]
    random = np.random.default_rng(seed)
    components = np.where(nowhere, np.abs(random.normal(size=components.shape)), components)
    lengths = np.sqrt(np.mean((components / problem.scale) ** 2, axis=1))
    sizes = np.where(problem.model.frozen | ~(lengths > 0), 1.0, lengths)
    components = components / sizes[:, None]
    n_components, n_features = components.shape
    shape = np.ones(n_components) if problem.model.shape is None else problem.model.shape
    typical = problem.typical
    state = Chain(
        np.full((problem.data.shape[0], n_components), typical),
        components,
        intercept,
        variance,
        shape,
        shape / typical,
        Kept.empty(problem.schedule.n_draws, n_components, n_features),
        np.zeros((problem.data.shape[0], n_components)),
        np.zeros((n_components, n_features)),
        0,
        seed,
    )
    for number in range(_FIRST_SWEEPS):
        random = np.random.default_rng([seed, number, 1])
        activations, sums = _drawn_activations(problem, state, random)
        state = state._replace(activations=activations)
        shape, rate = _drawn_prior(problem, state, sums, random)
        state = state._replace(shape=shape, rate=rate)
    return state


def start(problem: Sampling, point: Chain) -> Chain:
    """The point itself."""
    return point


def point(state: Chain) -> Chain:
    """The state itself."""
    return state


def step(problem: Sampling, state: Chain) -> tuple[Chain, Info]:
    """One sweep; the objective is the log-likelihood after it."""
    random = np.random.default_rng([state.seed, state.age])
    activations, sums = _drawn_activations(problem, state, random)
    state = state._replace(activations=activations)
    values = _drawn_values(problem, state, sums, random)
    residuals = _residual_squares(sums, values)
    if problem.growth is not None:
        residuals = residuals * state.variance
    components = values[: len(state.components)]
    intercept = values[-1] if problem.model.intercept else state.intercept
    variance = _drawn_variance(problem, state, sums, residuals, components, random)
    state = state._replace(components=components, intercept=intercept, variance=variance)
    shape, rate = _drawn_prior(problem, state, sums, random)
    state = state._replace(shape=shape, rate=rate)
    number = problem.schedule.number_after(state.age)
    if number is not None:
        own = (components, intercept, variance, shape, rate)
        for kept, drawn in zip(state.kept, own, strict=True):
            kept[number] = drawn
    if problem.growth is None and problem.schedule.is_late(state.age):
        state.activation_sums[:] += activations
        state.size_sums[:] += np.abs(components)
    objective = _log_likelihood(problem, variance, sums.counts, residuals)
    return state._replace(age=state.age + 1), Info(objective)


def evaluate(problem: Sampling, state: Chain) -> float:
    """Log-likelihood of the data."""
    counts, squares = np.zeros((2, len(state.variance)))
    for block in all_blocks(problem.data.source):
        rows = block.samples
        fitted = state.activations[rows] @ state.components + state.intercept
        errors = block.X / problem.unit - fitted
        weights = problem.data.weights[rows]
        noise = _cell_noise(problem, state.variance, rows)
        precision = 1 / (noise.features + noise.known) if problem.by_cell else np.ones((1, 1))
        squares += weights @ np.nan_to_num(errors**2 * precision)
        counts += weights @ ~np.isnan(errors)
    if problem.growth is not None:
        squares *= state.variance
    return _log_likelihood(problem, state.variance, counts, squares)


def with_growth(problem: Sampling, state: Chain) -> Sampling:
    """The problem with noise that grows with the signal, if that is clearly more probable.

    The state is that before the first draw. A draw's residuals are as large as the noise.
    """
    n_late = problem.schedule.n_late
    if problem.known.size > 0 or problem.model.noise is None or n_late == 0:
        return problem
    activations, sizes = state.activation_sums / n_late, state.size_sums / n_late
    typical = typical_signal(activations, problem.data.weights, sizes)
    sizes = sizes / typical
    sums, counts = ShareSums.empty(len(state.variance)), np.zeros(len(state.variance))
    for block in all_blocks(problem.data.source):
        rows, weights = block.samples, problem.data.weights[block.samples]
        noise = np.sqrt(state.variance)
        fitted = state.activations[rows] @ state.components / noise
        errors = (block.X / problem.unit - state.intercept) / noise - fitted
        sums.add(errors, fitted, activations[rows] @ sizes, weights)
        counts += weights @ ~np.isnan(errors)
    share, log_total = sums.best(counts)
    if share == 0:
        return problem
    return replace(problem, growth=NoiseGrowth(share, activations, sizes, typical, log_total))


def _cell_noise(problem: Sampling, variance: NDArray, rows: slice) -> CellNoise:
    """The variances of the cells of some samples."""
    known = problem.known if len(problem.known) <= 1 else problem.known[rows]
    if problem.growth is None:
        return CellNoise(variance, known)
    relative = problem.growth.relative(rows)
    return CellNoise(np.zeros_like(variance), np.ascontiguousarray(variance * relative))


def _drawn_activations(
    problem: Sampling, state: Chain, random: Generator
) -> tuple[NDArray, RowSums]:
    """New activations of all samples, and the sums over them."""
    source, weights = problem.data.source, problem.data.weights
    n_components, n_features = state.components.shape
    n_values = n_components + problem.model.intercept
    ranges = row_ranges(source, 4 * n_components)
    seeds = dict(zip(ranges, random.integers(2**32, size=len(ranges)), strict=True))
    components = state.components
    # Where cells have their own noise, no two samples have the same Gram matrix.
    precision = np.zeros(n_features) if problem.by_cell else 1 / state.variance
    gram = (components * precision) @ components.T
    conditions = Conditions(components, state.intercept, state.shape, state.rate, gram)
    activations = state.activations.copy()

    def task(rows: tuple[int, int]) -> RowSums:
        sums, seed = RowSums.empty(n_components, n_values, n_features), seeds[rows]
        for number, block in enumerate(source.blocks(*rows)):
            draw_rows(
                block.X,
                1 / problem.unit,
                _cell_noise(problem, state.variance, block.samples),
                conditions,
                weights[block.samples],
                problem.schedule.n_scans,
                np.uint32((int(seed) + number) % 2**32),
                activations[block.samples],
                sums,
            )
        return sums

    totals = RowSums.empty(n_components, n_values, n_features)
    for sums in problem.executor.map(task, ranges):
        for whole, part in zip(totals, sums, strict=True):
            whole += part
    return activations, totals.symmetric()


def _drawn_values(problem: Sampling, state: Chain, sums: RowSums, random: Generator) -> NDArray:
    """New components, (V, I), with the intercept behind them if there is one.

    All in units of the noise, where the prior of a component is N(0, 1).
    """
    model, variance = problem.model, state.variance
    own_noise = problem.by_cell
    n_values, n_features = sums.products.shape
    precision = np.full(n_values, 1.0)
    precision[len(state.components) :] = _FLAT
    scale = problem.scale if own_noise else np.sqrt(variance)
    alike = not own_noise and not sums.grams.any()
    grams = sums.whole[:, :, None] + (0.0 if alike else sums.grams)
    factor = scale**2 if own_noise else np.ones(1)
    grams = grams * factor
    diagonal = np.arange(n_values)
    grams[diagonal, diagonal] = (1 + _RIDGE) * grams[diagonal, diagonal] + precision[:, None]
    products = sums.products * factor
    before = np.vstack([state.components, state.intercept])[:n_values]
    free = np.ones(n_values, dtype=bool)
    free[: len(model.frozen)] = ~model.frozen
    if not free.all():
        products = products - np.einsum("kli,li->ki", grams[:, ~free], before[~free])
        products, grams = products[free], grams[np.ix_(free, free)]
    values = before.copy()
    if model.positive:
        own = np.ascontiguousarray(before[free])
        bounded = np.arange(n_values)[free] < len(model.frozen)
        seed = np.uint32(random.integers(2**32))
        draw_positive_features(
            np.ascontiguousarray(grams),
            np.ascontiguousarray(products),
            scale,
            bounded,
            _BOUNDED_SCANS,
            seed,
            own,
        )
        values[free] = own
    elif free.any():
        systems = grams.transpose(2, 0, 1)
        roots = np.linalg.cholesky(systems)
        normal = random.normal(size=(n_features, len(products), 1)) * scale[:, None, None]
        means = np.linalg.solve(systems, products.T[:, :, None])
        spread = np.linalg.solve(roots.transpose(0, 2, 1), normal)
        values[free] = (means + spread)[:, :, 0].T
    return values


def _residual_squares(sums: RowSums, values: NDArray) -> NDArray:
    """Σ_j q (x − a W − b)² of each feature."""
    grams = sums.whole[:, :, None] + sums.grams
    quadratic = np.einsum("ki,kli,li->i", values, grams, values)
    squares = sums.squares - 2 * np.einsum("ki,ki->i", values, sums.products) + quadratic
    return np.maximum(squares, 1e-14 * sums.squares)


def _drawn_variance(
    problem: Sampling,
    state: Chain,
    sums: RowSums,
    residuals: NDArray,
    components: NDArray,
    random: Generator,
) -> NDArray:
    """New variances of the noise; the components' prior, which is in units of it, has its part."""
    noise, sizes, counts = problem.model.noise, problem.sizes, sums.counts
    if noise is None or problem.known.size > 0:
        return state.variance
    free = components[~problem.model.frozen]
    squares, freedom = residuals, counts
    if problem.growth is None:
        squares, freedom = residuals + np.sum(free**2, axis=0), counts + len(free)
    belief = _cells_of_belief(problem, counts)
    squares, freedom = squares + _BELIEVED * belief * sizes, freedom + belief
    seen = counts > 0
    if noise == "same":
        common = squares[seen].sum() / random.chisquare(freedom[seen].sum())
        least, most = _LEAST_VARIANCE * sizes.mean(), _MOST_VARIANCE * sizes.mean()
        return np.full(len(sizes), min(max(common, least), most))
    ratio = min(np.sum(residuals / sizes) / max(counts.sum(), 1e-300), 1.0)
    squares = squares + _POOLED * counts * ratio * sizes
    variance = squares / random.chisquare(freedom + _POOLED * counts)
    variance = np.clip(variance, _LEAST_VARIANCE * sizes, _MOST_VARIANCE * sizes)
    return np.where(seen, variance, state.variance)


def _cells_of_belief(problem: Sampling, counts: NDArray) -> float:
    """How many cells of a feature the belief in its noise counts as.

    As many as there are components, where there are as many parameters as cells: then all could be
    explained without any noise. It falls with the square of their ratio.
    """
    n_components = len(problem.model.frozen)
    n_parameters = n_components * (problem.data.weights.sum() + len(counts))
    return float(n_components * min(n_parameters / max(counts.sum(), 1e-300), 1.0) ** 2)


def _drawn_prior(
    problem: Sampling, state: Chain, sums: RowSums, random: Generator
) -> tuple[NDArray, NDArray]:
    """New shapes and rates of the activations' priors, as far as they are learned."""
    model, rate = problem.model, problem.model.rate
    if rate is not None:
        # It is given for amounts.
        lengths = np.abs(state.components).sum(axis=1)
        least, most = _LEAST_RATE / problem.typical, _MOST_RATE / problem.typical
        rate = np.clip(rate * lengths, least, most)
    given = GammaPrior(model.shape, rate, problem.typical)
    return drawn_gamma(given, problem.data.weights.sum(), sums.totals, state.shape, random)


def _log_likelihood(
    problem: Sampling, variance: NDArray, counts: NDArray, residuals: NDArray
) -> float:
    """That of the observed cells, but for a constant where the noise of cells is known."""
    if problem.known.size > 0:
        return float(-0.5 * residuals.sum())
    seen = counts > 0
    terms = residuals[seen] / variance[seen] + counts[seen] * np.log(2 * np.pi * variance[seen])
    log_relative = 0.0 if problem.growth is None else problem.growth.log_total
    return float(-0.5 * (terms.sum() + log_relative))
