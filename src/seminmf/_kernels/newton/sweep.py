"""A sweep over the data with Newton steps on the activations, and what the atoms' step needs.

At the activations it ends with, the sweep collects gradient and Hessian in the atoms: per feature a
problem with 2K unknowns, whose Hessian needs Σ_j q U_s U_t λ_jk λ_jm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._data.executor import LocalExecutor
from ..._data.source import BlockSource, row_ranges
from ..._model.likelihoods import Likelihood
from ..._model.model import NO_BACKGROUND, Background
from ..._model.penalties import Penalty
from ..._model.priors import Gamma
from ..._numerics.arguments import check_arrays, spread
from ..._numerics.compiled import kernel, part
from ..em.estep import start_rates
from ..simd.products import dots
from .lane_atoms import Gathered, blocks_of_rows, n_cells
from .lanes import derivatives, load_lanes, load_prior, penalties, quadratic_step, search
from .workspace import (
    CHUNK,
    BlockWorkspace,
    Columns,
    LaneCells,
    LanePrior,
    LaneWorkspace,
    Rules,
    Trial,
    lane_width,
)

# Tasks of a sweep, and numbers in the sums of all of them.
_FEWEST_TASKS, _MOST_TASKS = 8, 64
_WAITING = 1 << 21
# Activations below this have no part in the atoms' Hessian: their squares may be out of range.
LEAST_ACTIVATION = np.float32(1e-12)
# A sample that gained less than this share of the threshold is taken for one that gained it.
_LEAST_GAIN = 1 / 64


class NewtonControl(NamedTuple):
    """How far a sweep goes.

    Attributes
    ----------
    max_steps : int
        Most Newton steps of a sample.
    max_sweeps, sweep_tolerance : int, float
        Most sweeps of coordinate descent in a step, and the relative change that ends them.
    slope : float
        A sample whose slope is below this has converged. Slopes have no unit (1 − U).
    own_units : bool
        Whether every sample is computed in its own unit: it may be of quite another size than what
        was fitted, and its squares out of range.
    """

    max_steps: int
    max_sweeps: int
    sweep_tolerance: float
    slope: float
    own_units: bool


NO_STEP = NewtonControl(0, 0, 0.0, 0.0, False)
ONE_STEP = NewtonControl(1, 20, 1e-2, 0.0, False)
PRECISE = NewtonControl(200, 50, 1e-9, 1e-10, True)


@part
def _add_dots(left, right, tile, sums):
    """sums[r, k] += Σ_l left[0, r, l] right[0, k, l], in tiles whose factors stay in the cache."""
    n_rows, n_columns = left.shape[1], right.shape[1]
    most_left, most_right = tile.shape
    for column in range(0, n_columns, most_right):
        n_right = min(most_right, n_columns - column)
        for row in range(0, n_rows, most_left):
            n_left = min(most_left, n_rows - row)
            lefts, rights = left[:, row : row + n_left], right[:, column : column + n_right]
            dots(lefts, rights, n_left, tile)
            for r in range(n_left):
                for k in range(n_right):
                    sums[row + r, column + k] += tile[r, k]


class RowArrays(NamedTuple):
    """Consecutive samples: values of X, activations, weights, gains and levels."""

    X: Any
    activations: NDArray
    weights: NDArray
    gains: NDArray
    levels: NDArray


class AtomSums(NamedTuple):
    """Sums over samples for the atoms: `features` (2, n_cells), and as `Sweep` has them."""

    features: NDArray
    slopes: NDArray
    hessian_blocks: NDArray


@part
def _collect(block, n_samples, sums):
    """Add a block's Σ_j λ (1 − U) and Σ_j λ λ q U U, with the samples' weights."""
    values, weights, weighted, pairs, u, curvature, tile = block
    n_components, size = values.shape
    for l in range(n_samples, size):
        weights[l] = 0
    pair = 0
    for k in range(n_components):
        for l in range(size):
            value = values[k, l]
            weighted[0, k, l] = value * weights[l]
            values[k, l] = value if value > LEAST_ACTIVATION else 0
        for m in range(k + 1):
            for l in range(size):
                pairs[0, pair, l] = values[k, l] * values[m, l] * weights[l]
            pair += 1
    _add_dots(u, weighted, tile, sums.slopes)
    _add_dots(curvature, pairs, tile, sums.hessian_blocks)


@part
def _load_group(rules, control, rows, start, stop, prior, background, cells, lanes):
    """Bring samples and their priors to the lanes; priors that all samples share stay there."""
    load_lanes(
        rules.likelihood,
        rules.barrier,
        control.own_units,
        rows,
        background,
        start,
        stop,
        cells,
        lanes.values,
        lanes.samples,
    )
    if start == 0 or prior.shape.shape[0] > 1:
        load_prior(prior.shape, start, stop, lanes.shape)
    if start == 0 or prior.rate.shape[0] > 1:
        load_prior(prior.rate, start, stop, lanes.rate)


@part
def _begin_group(mass, weights, gains, threshold, start, stop, samples):
    """Set what lanes know of their samples before a step; returns whether any of them is to move.

    That is each sample's own affair: whether it moves must not depend on who is beside it.
    """
    weight, unit, _, own_mass, before, done = samples
    n_moving = 0
    for l in range(weight.size):
        own_mass[l] = mass * unit[l]
        weight[l] = weights[start + l] if start + l < stop else 0
        before[l] = np.inf
        done[l] = start + l >= stop or not gains[start + l] >= threshold
        n_moving += not done[l]
    return n_moving > 0


@part
def _take_steps(rules, control, n_steps, cells, prior, lanes, trial, first_features, columns):
    """Newton steps in all lanes until each is done; without any, the point is evaluated."""
    values, move, slope, terms = lanes.values, lanes.move, lanes.slope, lanes.terms
    hessian, chunk, designs = lanes.hessian, lanes.chunk, lanes.designs
    before, done = lanes.samples.before, lanes.samples.done
    level = trial.level
    n_components, width = values.shape
    for n in range(max(n_steps, 1)):
        if n_steps > 0:
            # What the features are worth is of interest at the start alone.
            features = first_features if n == 0 else trial.features
            likelihood = rules.likelihood
            derivatives(likelihood, cells, values, chunk, designs, before, features, slope, hessian)
            penalties(rules, prior, values, before, terms)
            quadratic_step(
                control,
                rules.barrier,
                values,
                terms,
                slope,
                hessian,
                lanes.lowest,
                lanes.descent,
                done,
                move,
            )
        else:
            for k in range(n_components):
                for l in range(width):
                    move[k, l] = 0
                    slope[k, l] = 0
        search(rules, cells, prior, values, before, move, slope, chunk, trial, terms, columns)
        n_left = 0
        for l in range(width):
            done[l] = done[l] or before[l] - level[l] <= 1e-16 * abs(level[l])
            n_left += not done[l]
        if n_left == 0:
            break


@part
def _add_features(tried, stepped, features):
    """What the features are worth at the end, and at the start if no step was taken."""
    for i in range(tried.size):
        features[1, i] += tried[i]
        if not stepped:
            features[0, i] += tried[i]


@part
def _store_group(rows, start, stop, threshold, values, unit, before, level):
    """Bring the samples' activations and levels back from the lanes."""
    _, activations, _, gains, levels = rows
    for l in range(stop - start):
        # A sample that is skipped moves again after a few sweeps, though it had nothing to gain.
        if gains[start + l] >= threshold:
            gains[start + l] = max(before[l] - level[l], _LEAST_GAIN * threshold)
        else:
            gains[start + l] *= 4.0
        levels[start + l] = unit[l] * level[l]
        for k in range(values.shape[0]):
            activations[start + l, k] = values[k, l] * unit[l]


@part
def _keep_group(values, weight, first, block_values, block_weights):
    """Weights and activations of the lanes, into a block's columns from `first` on."""
    n_components, width = values.shape
    for l in range(width):
        block_weights[first + l] = weight[l]
    for k in range(n_components):
        for l in range(width):
            block_values[k, first + l] = values[k, l]


@kernel
def _newton_rows(rules, control, rows, atoms, prior, background, threshold, lanes, block, sums):
    """Steps of consecutive samples, in place; and what atoms need, unless its arrays are empty.

    `atoms` are those that the lanes see, and their sums.
    """
    samples, values, features = lanes.samples, lanes.values, sums.features
    n_samples = rows.weights.size
    width, block_size = samples.weight.size, block.weights.size
    collects = sums.hessian_blocks.size > 0
    lane_prior = LanePrior(lanes.shape, lanes.rate, samples.mass, atoms[1])
    point, level, all_tried, step, decrease, noise = lanes.trial
    for block_start in range(0, n_samples, block_size):
        block_stop = min(block_start + block_size, n_samples)
        for start in range(block_start, block_stop, width):
            stop = min(start + width, block_stop)
            first, n_features = start - block_start, max(n_cells(rows.X, start, stop), 1)
            tried = all_tried[:n_features]
            cells = LaneCells(lanes.x[:n_features], atoms[0], lanes.background, samples.weight)
            trial = Trial(point, level, tried, step, decrease, noise)
            columns = Columns(first, block.u, block.curvature)
            _load_group(rules, control, rows, start, stop, prior, background, cells, lanes)
            mass, weights, gains = rules.penalty.mass, rows.weights, rows.gains
            moves = _begin_group(mass, weights, gains, threshold, start, stop, samples)
            n_steps = control.max_steps if moves else 0
            at_start = features[0, :n_features]
            _take_steps(rules, control, n_steps, cells, lane_prior, lanes, trial, at_start, columns)
            _add_features(tried, n_steps > 0, features)
            _store_group(rows, start, stop, threshold, values, samples.unit, samples.before, level)
            if collects:
                _keep_group(values, samples.weight, first, block.values, block.weights)
        if collects:
            _collect(block, block_stop - block_start, sums)


class Sweep(NamedTuple):
    """What a sweep returns.

    Attributes
    ----------
    activations : (J, K) array
    values : (J,) array, float64
        Value of each sample's problem at them.
    gains : (J,) array, float64
        By how much the last step lowered each value.
    features_before, features : (I,) arrays, float64
        Minus the log-likelihood of each feature, with the samples' weights, at the activations
        given and at those returned; without meaning if samples have their own units.
    slopes : (2, K, I) array, float64
        Σ_j λ (1 − U_s): gradient of minus the log-likelihood in the atoms.
    hessian_blocks : (3, K (K + 1) / 2, I) array, float64
        Σ_j q U_s U_t λ_k λ_m for (s, t) = (0, 0), (0, 1), (1, 1) and m ≤ k, row by row; signs
        included.
    """

    activations: NDArray
    values: NDArray
    gains: NDArray
    features_before: NDArray
    features: NDArray
    slopes: NDArray
    hessian_blocks: NDArray


class RowProblems(NamedTuple):
    """The problems of samples, one each: their activations are sought with the atoms given.

    Attributes
    ----------
    likelihood : Likelihood
    penalty : Penalty
        What activations pay to their prior.
    prior : Gamma
    atoms : (2, K, I) array
        Computations are done in its type.
    weights : (J,) array
        How much samples count in sums over them.
    background : Background
    """

    likelihood: Likelihood
    penalty: Penalty
    prior: Gamma
    atoms: NDArray
    weights: NDArray
    background: Background = NO_BACKGROUND

    def check(self, shape: tuple[int, ...], activations: NDArray) -> None:
        """Refuse arrays that do not go with data of this shape, or with each other."""
        check_arrays(
            {"J": shape[0], "K": self.atoms.shape[1], "I": shape[1]},
            activations=("JK", activations),
            atoms=("2KI", self.atoms),
            weights=("J", self.weights),
            prior_shape=("?JK", self.prior.shape),
            prior_rate=("?JK", self.prior.rate),
            noise=("?JI", self.background.noise),
            intercept=("?I", self.background.intercept),
        )

    def start_rates(self, samples: Any) -> NDArray:
        """Rates of some samples without any component, (2, n, I) or the same for all, (2, 1, I)."""
        own = self.background.of_samples(samples)
        rates = start_rates(own, self.atoms.dtype)
        return spread(rates, (2, own.n_rows, self.atoms.shape[2]))


def sweep(
    source: BlockSource,
    problems: RowProblems,
    activations: NDArray,
    control: NewtonControl,
    executor: LocalExecutor,
    *,
    gains: NDArray,
    threshold: float = 0.0,
    collect: bool = False,
) -> Sweep:
    """Take Newton steps on the activations of all samples; `activations` is overwritten.

    Samples whose `gains` are below `threshold` are only evaluated. `collect` says whether what the
    atoms' step needs is summed up.
    """
    problems.check(source.shape, activations)
    check_arrays({"J": len(activations)}, gains=("J", gains))
    atoms, dtype = problems.atoms, problems.atoms.dtype
    n_components, n_features = atoms.shape[1:]
    n_pairs = n_components * (n_components + 1) // 2
    layout = _choose_layout(source, atoms)
    atom_totals = atoms.sum(axis=(0, 2), dtype=np.float64)
    values = np.empty(len(activations))
    barrier = problems.penalty.has_barrier or not problems.prior.is_exponential
    rules = Rules(problems.likelihood, problems.penalty, barrier)
    prior = Gamma(*(spread(part, (len(part), n_components)) for part in problems.prior))
    # A task's sums wait in memory until it is their turn.
    n_sums = 3 * n_pairs * n_features if collect else 1
    most = min(_MOST_TASKS, max(_FEWEST_TASKS, _WAITING // n_sums))
    ranges = row_ranges(source, 8 * n_components, most)
    longest = max(stop - start for start, stop in ranges)

    def empty_sums() -> AtomSums:
        n_collected = n_features if collect else 0
        return AtomSums(
            np.zeros((2, layout.n_cells)),
            np.zeros((2 * n_collected, n_components)),
            np.zeros((3 * n_collected, n_pairs)),
        )

    def task(rows: tuple[int, int]) -> AtomSums:
        sums = empty_sums()
        block = BlockWorkspace.of_size(n_features, n_components, longest, dtype, collect)
        for samples, X, lane_atoms in layout.blocks(*rows):
            own = RowArrays(
                X, activations[samples], problems.weights[samples], gains[samples], values[samples]
            )
            _newton_rows(
                rules,
                control,
                own,
                (lane_atoms, atom_totals),
                prior.of_samples(samples),
                problems.start_rates(samples),
                threshold,
                LaneWorkspace.of_size(layout.n_cells, n_components, dtype),
                block,
                sums,
            )
            if not isinstance(samples, slice):  # then they are copies
                activations[samples], gains[samples], values[samples] = (
                    own.activations,
                    own.gains,
                    own.levels,
                )
        return sums

    totals = empty_sums()
    for sums in executor.map(task, ranges):
        for whole, partial in zip(totals, sums, strict=True):
            whole += partial
    return Sweep(
        activations=activations,
        values=values,
        gains=gains,
        features_before=totals.features[0],
        features=totals.features[1],
        slopes=totals.slopes.reshape(2, -1, n_components).transpose(0, 2, 1),
        hessian_blocks=totals.hessian_blocks.reshape(3, -1, n_pairs).transpose(0, 2, 1),
    )


class _Dense:
    """How blocks of a dense source are handed to the kernel, with their atoms."""

    def __init__(self, source: BlockSource, atoms: NDArray) -> None:
        self._source, self._dtype = source, atoms.dtype
        self._atoms = np.ascontiguousarray(atoms.transpose(0, 2, 1))
        self.n_cells = source.shape[1]

    def blocks(self, start: int, stop: int) -> Iterator[tuple[Any, Any, Any]]:
        """Samples, their values and the atoms that they see."""
        for block in self._source.blocks(start, stop):
            yield block.samples, block.X.astype(self._dtype, copy=False), self._atoms


class _Sparse:
    """The same for the stored cells of a sparse source."""

    def __init__(self, source: BlockSource, atoms: NDArray) -> None:
        self._source = source
        self._atoms = np.ascontiguousarray(atoms.transpose(2, 0, 1), dtype=np.float64)
        self.n_cells = source.longest_row

    def blocks(self, start: int, stop: int) -> Iterator[tuple[Any, Any, Any]]:
        """One block: samples with about as many cells are next to each other."""
        [(_, block)] = blocks_of_rows(self._source, start, stop)
        order = np.argsort(block.ends - block.starts, kind="stable")
        block = block._replace(starts=block.starts[order], ends=block.ends[order])
        width = lane_width(self._atoms.dtype)
        gathered = np.empty((2, max(1, CHUNK // width), self._atoms.shape[2], width))
        features = np.zeros((self.n_cells, width), dtype=np.int32)
        yield start + order, block, Gathered(features, self._atoms, gathered)


def _choose_layout(source: BlockSource, atoms: NDArray) -> _Dense | _Sparse:
    return _Sparse(source, atoms) if source.stores_cells else _Dense(source, atoms)
