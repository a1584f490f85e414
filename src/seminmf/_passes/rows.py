"""Activations of each sample, given the atoms, to precision: Newton's method row by row.

The row-wise problem is in `_penalties`. Its Hessian is a sum of rank-one terms, one for each
feature, so that a step is a small quadratic problem with bounds: a few sweeps of coordinate
descent, then a line search on the true objective. Every row is solved alone, from a start that
depends on nothing but the row: the result does not know what else was in the batch.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._likelihoods import SMALLEST_RATE, Integer, Real, cell, curvature, fixed_unit
from .._penalties import Maximum, Posterior, penalty
from .._sources import Source, row_ranges
from .compiled import kernel, part, prefer_wide_vectors
from .pool import Pool

_MAX_STEPS = 200
_MAX_EM_STEPS = 5000
_MAX_SWEEPS = 50
_MAX_HALVINGS = 40
# The slope is a number without unit (1 − U), and so is what counts as none.
_NO_SLOPE = 1e-10
_SMALLEST = SMALLEST_RATE["float64"]
# With a barrier, a row far below the unit of all rows is solved as if it were this large: the
# prior, not the row, then decides how large its activations are.
_LEAST_ROW_UNIT = 2.0**-60
# A barrier in the penalty is approached by this factor a step at the most.
_TOWARDS_BARRIER = 0.1


class Solution(NamedTuple):
    """Activations (J, K), float64, and the value of each row's problem (J,)."""

    activations: NDArray
    values: NDArray


@kernel
def _rates(values, atoms, offset, rates):
    """rates[s, i] = Σ_k values[k] atoms[s, k, i] + offset."""
    prefer_wide_vectors()
    n_components, n_features = atoms.shape[1:]
    for s in range(2):
        for i in range(n_features):
            rates[s, i] = offset
        for k in range(n_components):
            value = values[k]
            if value != 0.0:
                for i in range(n_features):
                    rates[s, i] += value * atoms[s, k, i]


@kernel
def _line_value(likelihood, x, rates, direction, step):
    """Minus the log-likelihood at rates + step · direction."""
    prefer_wide_vectors()
    total = 0.0
    for i in range(x.size):
        rate0 = max(rates[0, i] + step * direction[0, i], _SMALLEST)
        rate1 = max(rates[1, i] + step * direction[1, i], _SMALLEST)
        _, _, value = cell(likelihood, x[i], rate0, rate1)
        total -= value
    return total


@part
def _derivatives(likelihood, x, rates, atoms, slope, hessian, design):
    """Gradient and Hessian of minus the log-likelihood in the activations.

    `design` (K, I) is room for the rows b₀ θ_0k − b₁ θ_1k, whose Gram matrix is the Hessian.
    """
    prefer_wide_vectors()
    n_components, n_features = design.shape
    slope0, slope1 = np.empty(n_features), np.empty(n_features)
    bend0, bend1 = np.empty(n_features), np.empty(n_features)
    for i in range(n_features):
        u0, u1, _ = cell(likelihood, x[i], rates[0, i], rates[1, i])
        observed = x[i] == x[i]
        b0, b1 = curvature(likelihood, x[i], rates[0, i], rates[1, i], u0, u1)
        slope0[i], slope1[i] = 1.0 - u0, 1.0 - u1
        bend0[i] = b0 if observed else 0.0
        bend1[i] = b1 if observed else 0.0
    for k in range(n_components):
        total = 0.0
        for i in range(n_features):
            total += slope0[i] * atoms[0, k, i] + slope1[i] * atoms[1, k, i]
            design[k, i] = bend0[i] * atoms[0, k, i] - bend1[i] * atoms[1, k, i]
        slope[k] = total
        for m in range(k + 1):
            product = 0.0
            for i in range(n_features):
                product += design[k, i] * design[m, i]
            hessian[k, m] = product
            hessian[m, k] = product


@part
def _bounded_quadratic(slope, hessian, lowest, move):
    """Minimise slope·move + ½ move·hessian·move over move ≥ lowest, by coordinate descent."""
    n_components = slope.size
    for k in range(n_components):
        move[k] = 0.0
    for _ in range(_MAX_SWEEPS):
        largest = 0.0
        for k in range(n_components):
            partial = slope[k]
            for m in range(n_components):
                partial += hessian[k, m] * move[m]
            wanted = max(move[k] - partial / hessian[k, k], lowest[k])
            largest = max(largest, abs(wanted - move[k]) * math.sqrt(hessian[k, k]))
            move[k] = wanted
        size = 0.0
        for k in range(n_components):
            size = max(size, abs(move[k]) * math.sqrt(hessian[k, k]))
        if largest <= 1e-9 * size:
            break


@kernel
def _penalties(kind, mass, values, shape, rate, atom_totals, slopes, bends):
    """Fill in slopes and second derivatives of the penalty, and return its level."""
    level = 0.0
    for k in range(values.size):
        at, slopes[k], bends[k] = penalty(kind, mass, values[k], shape[k], rate[k], atom_totals[k])
        level += at
    return level


@part
def _solve_row(likelihood, kind, mass, barrier, x, atoms, atom_totals, shape, rate, values, room):
    """Minimise one row's problem in place, and return its value."""
    rates, direction, slope, hessian, design, lowest, move, trial, slopes, bends = room
    n_components = values.size
    _rates(values, atoms, _SMALLEST, rates)
    value = _line_value(likelihood, x, rates, rates, 0.0)
    value += _penalties(kind, mass, values, shape, rate, atom_totals, slopes, bends)
    for _ in range(_MAX_STEPS):
        _derivatives(likelihood, x, rates, atoms, slope, hessian, design)
        steepest = 0.0
        for k in range(n_components):
            slope[k] += slopes[k]
            steepest = max(steepest, -slope[k] if values[k] == 0.0 else abs(slope[k]))
            # More components than features leave the Hessian singular.
            hessian[k, k] = (hessian[k, k] + max(bends[k], 0.0)) * (1.0 + 1e-12) + 1e-300
            lowest[k] = -values[k] * (1.0 - _TOWARDS_BARRIER if barrier else 1.0)
        if steepest <= _NO_SLOPE:
            break
        _bounded_quadratic(slope, hessian, lowest, move)
        _rates(move, atoms, 0.0, direction)
        decrease = 0.0
        for k in range(n_components):
            decrease += slope[k] * move[k]
        step, before = 1.0, value
        for _ in range(_MAX_HALVINGS):
            for k in range(n_components):
                trial[k] = max(values[k] + step * move[k], 0.0)
            value = _line_value(likelihood, x, rates, direction, step)
            value += _penalties(kind, mass, trial, shape, rate, atom_totals, slopes, bends)
            if value <= before + 1e-4 * step * decrease:
                break
            step *= 0.5
        if not value <= before:
            return before
        for k in range(n_components):
            values[k] = trial[k]
        _rates(values, atoms, _SMALLEST, rates)
        if before - value <= 1e-16 * abs(value):
            break
    return value


@part
def _row_unit(likelihood, barrier, x):
    """Power of two that brings one row of X near 1, in the unit of all; 1 for integers.

    A row may be of quite another size than what was fitted, and its squares out of range.
    """
    largest = 0.0
    for i in range(x.size):
        largest = max(largest, abs(x[i]) / likelihood.unit if x[i] == x[i] else 0.0)
    if fixed_unit(likelihood):
        return 1.0
    least = _LEAST_ROW_UNIT if barrier else 1e-300
    return 2.0 ** math.floor(math.log2(max(largest, least)))


@kernel
def _em_rows(likelihood, kind, floor, X, atoms, atom_totals, shape, rate, activations):
    """EM on consecutive rows, for shapes below 1, whose pole at 0 is cut off by the floor."""
    n_samples, n_features = X.shape
    n_components = atoms.shape[1]
    rates = np.empty((2, n_features))
    x = np.empty(n_features)
    for j in range(n_samples):
        values = activations[j]
        unit = _row_unit(likelihood, True, X[j])
        mass, lowest = kind.mass * unit, floor / unit
        for i in range(n_features):
            x[i] = X[j, i] / (likelihood.unit * unit)
        for k in range(n_components):
            values[k] = max(values[k] / unit, lowest)
        for _ in range(_MAX_EM_STEPS):
            _rates(values, atoms, _SMALLEST, rates)
            for i in range(n_features):
                rates[0, i], rates[1, i], _ = cell(likelihood, x[i], rates[0, i], rates[1, i])
            change = 0.0
            for k in range(n_components):
                expected = 0.0
                for i in range(n_features):
                    expected += rates[0, i] * atoms[0, k, i] + rates[1, i] * atoms[1, k, i]
                count = values[k] * expected + (shape[j, k] - 1.0) / mass
                updated = max(count / (atom_totals[k] + rate[j, k]), lowest)
                change = max(change, abs(updated - values[k]) / updated)
                values[k] = updated
            if change <= _NO_SLOPE:
                break
        for k in range(n_components):
            values[k] *= unit


@kernel
def _solve_rows(likelihood, kind, barrier, X, atoms, atom_totals, shape, rate, activations, values):
    """Solve consecutive rows, from the activations given, in place."""
    n_samples, n_features = X.shape
    n_components = atoms.shape[1]
    room = (
        np.empty((2, n_features)),
        np.empty((2, n_features)),
        np.empty(n_components),
        np.empty((n_components, n_components)),
        np.empty((n_components, n_features)),
        np.empty(n_components),
        np.empty(n_components),
        np.empty(n_components),
        np.empty(n_components),
        np.empty(n_components),
    )
    x = np.empty(n_features)
    for j in range(n_samples):
        unit = _row_unit(likelihood, barrier, X[j])
        for i in range(n_features):
            x[i] = X[j, i] / (likelihood.unit * unit)
        for k in range(n_components):
            activations[j, k] /= unit
        values[j] = unit * _solve_row(
            likelihood,
            kind,
            kind.mass * unit,
            barrier,
            x,
            atoms,
            atom_totals,
            shape[j],
            rate[j],
            activations[j],
            room,
        )
        for k in range(n_components):
            activations[j, k] *= unit


def solve_rows(
    source: Source,
    likelihood: Real | Integer,
    kind: Maximum | Posterior,
    atoms: NDArray,
    shape: NDArray,
    rate: NDArray,
    start: NDArray,
    pool: Pool,
    floor: float = 0.0,
) -> Solution:
    """Solve for all activations, given atoms (2, K, I), or their geometric means.

    `shape` and `rate` are the gamma prior's, and broadcast to (J, K). A shape below 1 has a pole at
    0 and no convex penalty: with a `floor` above 0 the rows are solved by EM, above the floor, and
    have no value.
    """
    activations = np.array(start, dtype=np.float64, order="C")
    values = np.zeros(len(activations))
    atoms = np.ascontiguousarray(atoms, dtype=np.float64)
    atom_totals = atoms.sum(axis=(0, 2))
    shapes = np.broadcast_to(shape, activations.shape)
    rates = np.broadcast_to(rate, activations.shape)
    barrier = isinstance(kind, Posterior) or bool(np.any(shape != 1))

    def task(rows: tuple[int, int]) -> None:
        part = slice(*rows)
        problem = (
            np.ascontiguousarray(source.rows(*rows), dtype=np.float64),
            atoms,
            atom_totals,
            np.ascontiguousarray(shapes[part]),
            np.ascontiguousarray(rates[part]),
            activations[part],
        )
        if floor > 0:
            _em_rows(likelihood, kind, floor, *problem)
        else:
            _solve_rows(likelihood, kind, barrier, *problem, values[part])

    for _ in pool.map(task, row_ranges(source, 16 * atoms.shape[1])):
        pass
    return Solution(activations, values)
