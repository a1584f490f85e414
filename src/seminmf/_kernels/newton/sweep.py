"""A sweep over the data with Newton steps on the activations, and what the atoms' step needs.

At the activations it ends with, the sweep collects gradient and Hessian in the atoms: per feature a
problem with 2K unknowns, whose Hessian needs Σ_j q U_s U_t λ_jk λ_jm.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._data.source import Source, row_ranges
from ..._data.sparse import SparseSource
from ..._data.threads import Pool
from ..._model.likelihoods import SMALLEST_RATE, Integer, Real
from ..._model.penalties import Maximum, Posterior
from ..compiled import kernel, prefer_wide_vectors
from ..simd.products import dots
from ..simd.vectors import aligned
from .lane_atoms import Gathered, blocks_of_rows, longest_row, n_cells
from .lanes import derivatives, load_lanes, load_prior, penalties, quadratic_step, search

# Cells of a block of samples, and of a chunk of features, that stay in the cache; and numbers of
# the rows of a design.
_BLOCK = 20_000
_CHUNK = 512
_DESIGN = 1_280
# Tasks of a sweep, and numbers in the sums of all of them.
_FEWEST_TASKS, _MOST_TASKS = 8, 64
_WAITING = 1 << 21
# Rows and columns of a product that are computed at a time.
_ROWS, _COLUMNS = 16, 64
# Activations below this have no part in the atoms' Hessian: their squares may be out of range.
_LEAST_ACTIVATION = np.float32(1e-12)


class Effort(NamedTuple):
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


NO_STEP = Effort(0, 0, 0.0, 0.0, False)
ONE_STEP = Effort(1, 20, 1e-2, 0.0, False)
PRECISE = Effort(200, 50, 1e-9, 1e-10, True)


@kernel
def _add_dots(left, right, sums):
    """sums[r, k] += Σ_l left[0, r, l] right[0, k, l], in tiles whose factors stay in the cache."""
    prefer_wide_vectors()
    n_rows, n_columns = left.shape[1], right.shape[1]
    product = np.empty((_ROWS, _COLUMNS), dtype=left.dtype)
    for column in range(0, n_columns, _COLUMNS):
        n_right = min(_COLUMNS, n_columns - column)
        for row in range(0, n_rows, _ROWS):
            n_left = min(_ROWS, n_rows - row)
            lefts, rights = left[:, row : row + n_left], right[:, column : column + n_right]
            dots(lefts, rights, n_left, product)
            for r in range(n_left):
                for k in range(n_right):
                    sums[row + r, column + k] += product[r, k]


@kernel
def _collect(values, weights, factors, u_block, s_block, slopes, grams):
    """Add a block's Σ_j λ (1 − U) and Σ_j λ λ q U U, with the samples' weights."""
    prefer_wide_vectors()
    n_components, block = values.shape
    weighted, pairs = factors
    pair = 0
    for k in range(n_components):
        for l in range(block):
            value = values[k, l]
            weighted[0, k, l] = value * weights[l]
            values[k, l] = value if value > _LEAST_ACTIVATION else 0
        for m in range(k + 1):
            for l in range(block):
                pairs[0, pair, l] = values[k, l] * values[m, l] * weights[l]
            pair += 1
    _add_dots(u_block, weighted, slopes)
    _add_dots(s_block, pairs, grams)


@kernel
def _newton_rows(
    likelihood,
    kind,
    effort,
    barrier,
    X,
    activations,
    weights,
    atoms,
    atom_totals,
    prior_shape,
    prior_rate,
    smallest,
    lane_room,
    block_room,
    threshold,
    gains,
    row_values,
    feature_values,
    slopes,
    grams,
):
    """Steps of consecutive samples, in place; where `grams` has room, what atoms need, added."""
    (all_x, chunk, designs, tall, hessian, descent, flat, double, all_tried, done) = lane_room
    values, trial, move, slope, lowest = tall[0], tall[1], tall[2], tall[3], tall[4]
    prior_slope, bend, shape, rate = tall[5], tall[6], tall[7], tall[8]
    scale, weight, step, decrease, noise = flat[0], flat[1], flat[2], flat[3], flat[4]
    unit, mass, before, level = double[0], double[1], double[2], double[3]
    block_values, block_weights, factors, u_block, s_block = block_room
    n_samples = weights.size
    n_components, width = values.shape
    block = block_weights.size
    collects = grams.size > 0

    for block_start in range(0, n_samples, block):
        block_stop = min(block_start + block, n_samples)
        for start in range(block_start, block_stop, width):
            stop = min(start + width, block_stop)
            n_features = n_cells(X, start, stop)
            x, tried = all_x[:n_features], all_tried[:n_features]
            load_lanes(
                likelihood,
                barrier,
                effort.own_units,
                X,
                start,
                stop,
                activations,
                atoms,
                x,
                values,
                unit,
                scale,
            )
            if start == 0 or prior_shape.shape[0] > 1:
                load_prior(prior_shape, start, stop, shape)
            if start == 0 or prior_rate.shape[0] > 1:
                load_prior(prior_rate, start, stop, rate)
            largest_gain = 0.0
            for l in range(width):
                mass[l] = kind.mass * unit[l]
                done[l] = start + l >= stop
                weight[l] = 0 if done[l] else weights[start + l]
                before[l] = np.inf
                if not done[l]:
                    largest_gain = max(largest_gain, gains[start + l])
            n_steps = effort.max_steps if largest_gain >= threshold else 0

            for n in range(max(n_steps, 1)):
                if n_steps > 0:
                    # What the features are worth is of interest at the start alone.
                    features = feature_values[0, :n_features] if n == 0 else tried
                    derivatives(
                        likelihood,
                        x,
                        atoms,
                        values,
                        smallest,
                        weight,
                        chunk,
                        designs,
                        before,
                        features,
                        slope,
                        hessian,
                    )
                    penalties(
                        kind,
                        barrier,
                        mass,
                        values,
                        shape,
                        rate,
                        atom_totals,
                        before,
                        prior_slope,
                        bend,
                    )
                    quadratic_step(
                        effort,
                        barrier,
                        values,
                        prior_slope,
                        bend,
                        slope,
                        hessian,
                        (lowest, descent),
                        done,
                        move,
                    )
                else:
                    for k in range(n_components):
                        for l in range(width):
                            move[k, l] = 0
                            slope[k, l] = 0
                search(
                    likelihood,
                    kind,
                    barrier,
                    x,
                    atoms,
                    values,
                    smallest,
                    weight,
                    chunk,
                    mass,
                    (shape, rate),
                    atom_totals,
                    move,
                    slope,
                    before,
                    trial,
                    (prior_slope, bend, step, decrease, noise),
                    level,
                    tried,
                    start - block_start,
                    u_block,
                    s_block,
                )
                n_left = 0
                for l in range(width):
                    done[l] = done[l] or before[l] - level[l] <= 1e-16 * abs(level[l])
                    n_left += not done[l]
                if n_left == 0:
                    break

            for i in range(n_features):
                feature_values[1, i] += tried[i]
                if n_steps == 0:
                    feature_values[0, i] += tried[i]
            for l in range(stop - start):
                # A sample that was skipped is looked at again after a few sweeps.
                gain = before[l] - level[l] if n_steps > 0 else 4.0 * gains[start + l]
                gains[start + l] = gain
                row_values[start + l] = unit[l] * level[l]
                for k in range(n_components):
                    activations[start + l, k] = values[k, l] * unit[l]
            if collects:
                at = start - block_start
                for l in range(width):
                    block_weights[at + l] = weight[l]
                for k in range(n_components):
                    for l in range(width):
                        block_values[k, at + l] = values[k, l]
        if collects:
            for l in range(block_stop - block_start, block):
                block_weights[l] = 0
            _collect(block_values, block_weights, factors, u_block, s_block, slopes, grams)


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
    grams : (3, K (K + 1) / 2, I) array, float64
        Σ_j q U_s U_t λ_k λ_m for (s, t) = (0, 0), (0, 1), (1, 1) and m ≤ k, row by row; signs
        included.
    """

    activations: NDArray
    values: NDArray
    gains: NDArray
    features_before: NDArray
    features: NDArray
    slopes: NDArray
    grams: NDArray


def sweep(
    source: Source,
    likelihood: Real | Integer,
    kind: Maximum | Posterior,
    effort: Effort,
    activations: NDArray,
    atoms: NDArray,
    shape: NDArray,
    rate: NDArray,
    sample_weight: NDArray,
    gains: NDArray,
    threshold: float,
    pool: Pool,
    collect: bool,
) -> Sweep:
    """Take Newton steps on the activations of all samples; `activations` is overwritten.

    Groups of samples whose `gains` are all below `threshold` are only evaluated.
    """
    dtype = atoms.dtype
    n_components, n_features = atoms.shape[1:]
    n_pairs = n_components * (n_components + 1) // 2
    layout = _choose_layout(source, atoms)
    atom_totals = atoms.sum(axis=(0, 2), dtype=np.float64)
    values = np.empty(len(activations))
    barrier = isinstance(kind, Posterior) or bool(np.any(shape != 1))
    shape, rate = (
        np.ascontiguousarray(np.broadcast_to(a, (len(a), n_components))) for a in (shape, rate)
    )
    # A task's sums wait in memory until it is their turn.
    n_sums = 3 * n_pairs * n_features if collect else 1
    most = min(_MOST_TASKS, max(_FEWEST_TASKS, _WAITING // n_sums))
    ranges = row_ranges(source, 8 * n_components, most)
    longest = max(stop - start for start, stop in ranges)

    def empty_sums() -> tuple[NDArray, NDArray, NDArray]:
        n_collected = n_features if collect else 0
        return (
            np.zeros((2, layout.n_cells)),
            np.zeros((2 * n_collected, n_components)),
            np.zeros((3 * n_collected, n_pairs)),
        )

    def task(rows: tuple[int, int]) -> tuple[NDArray, NDArray, NDArray]:
        sums = empty_sums()
        block_room = _block_room(n_features, n_components, longest, dtype, collect)
        for part, block, lane_atoms in layout.blocks(*rows):
            own = activations[part], gains[part], values[part]
            _newton_rows(
                likelihood,
                kind,
                effort,
                barrier,
                block,
                own[0],
                sample_weight[part],
                lane_atoms,
                atom_totals,
                shape if len(shape) == 1 else shape[part],
                rate if len(rate) == 1 else rate[part],
                dtype.type(SMALLEST_RATE[dtype.name]),
                _lane_room(layout.n_cells, n_components, dtype),
                block_room,
                threshold,
                *own[1:],
                *sums,
            )
            if not isinstance(part, slice):  # then they are copies
                activations[part], gains[part], values[part] = own
        return sums

    totals = empty_sums()
    for sums in pool.map(task, ranges):
        for whole, partial in zip(totals, sums, strict=True):
            whole += partial
    features, slopes, grams = totals
    return Sweep(
        activations,
        values,
        gains,
        features[0],
        features[1],
        slopes.reshape(2, -1, n_components).transpose(0, 2, 1),
        grams.reshape(3, -1, n_pairs).transpose(0, 2, 1),
    )


class _Dense:
    """How blocks of a dense source are handed to the kernel, with their atoms."""

    def __init__(self, source: Source, atoms: NDArray) -> None:
        self._source, self._dtype = source, atoms.dtype
        self._atoms = np.ascontiguousarray(atoms.transpose(0, 2, 1))
        self.n_cells = source.shape[1]

    def blocks(self, start: int, stop: int) -> Iterator[tuple[Any, Any, Any]]:
        """Samples, their values and the atoms that they see."""
        for part, block in self._source.blocks(start, stop):
            yield part, block.astype(self._dtype, copy=False), self._atoms


class _Sparse:
    """The same for the stored cells of a sparse source."""

    def __init__(self, source: SparseSource, atoms: NDArray) -> None:
        self._source = source
        self._atoms = np.ascontiguousarray(atoms.transpose(2, 0, 1), dtype=np.float64)
        self.n_cells = longest_row(source)

    def blocks(self, start: int, stop: int) -> Iterator[tuple[Any, Any, Any]]:
        """One block: samples with about as many cells are next to each other."""
        [(_, block)] = blocks_of_rows(self._source, start, stop)
        order = np.argsort(block.ends - block.starts, kind="stable")
        block = block._replace(starts=block.starts[order], ends=block.ends[order])
        width = 2 * 64 // self._atoms.itemsize
        room = np.empty((2, max(1, _CHUNK // width), self._atoms.shape[2], width))
        features = np.zeros((self.n_cells, width), dtype=np.int32)
        yield start + order, block, Gathered(features, self._atoms, room)


def _choose_layout(source: Source, atoms: NDArray) -> _Dense | _Sparse:
    return _Sparse(source, atoms) if isinstance(source, SparseSource) else _Dense(source, atoms)


def _lane_room(n_features: int, n_components: int, dtype: np.dtype) -> tuple:
    """Room for one group of samples, on cache lines.

    It comes from here because the compiler takes long over arrays that a kernel makes.
    """
    width = 2 * 64 // dtype.itemsize
    most = min(max(1, _CHUNK // width), n_features)
    depth = min(max(8, _DESIGN // (n_components * width)), most)

    def lines(*shape: int) -> NDArray:
        return aligned(math.prod(shape) * width, np.empty(0, dtype)).reshape(*shape, width)

    chunk = lines(2, most), lines(most), lines(most), lines()
    designs = lines(n_components, depth), lines(n_components, depth), lines(n_components)
    return (
        lines(n_features),
        chunk,
        designs,
        lines(9, n_components),
        lines(n_components, n_components),
        lines(3 * n_components + 3),
        lines(5),
        np.empty((4, width)),
        np.empty(n_features),
        np.empty(width, dtype=bool),
    )


def _block_room(
    n_features: int, n_components: int, n_samples: int, dtype: np.dtype, collect: bool
) -> tuple:
    """Room for what the atoms need from a block of at most `n_samples` samples.

    Without `collect` there is none, and blocks have the same size.
    """
    width = 2 * 64 // dtype.itemsize
    block = min(max(1, _BLOCK // (n_features * width)), -(-n_samples // width)) * width
    columns = block if collect else 0
    n_pairs = n_components * (n_components + 1) // 2
    weighted, pairs, slopes, grams = (
        np.zeros((1, n_rows, columns), dtype=dtype)
        for n_rows in (n_components, n_pairs, 2 * n_features, 3 * n_features)
    )
    values = np.zeros((n_components, columns), dtype=dtype)
    return values, np.zeros(block, dtype=dtype), (weighted, pairs), slopes, grams
