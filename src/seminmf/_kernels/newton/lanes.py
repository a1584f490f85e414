"""Newton's method on the activations of some samples, one in each lane of two vectors.

With the atoms given, the samples are problems of their own (`_penalties`). The Hessian of a cell
has rank one, q (U₀ dλ₀ − U₁ dλ₁)², so that a sample's is the Gram matrix of its features' rows
U₀ θ₀ − U₁ θ₁ with weights q. A step is a small quadratic problem with bounds, then a line search on
the true objective. The lanes take their steps together, but each goes its own way: the result does
not know what else was in the batch.

Arrays end with the axis of the lanes (`workspace.py`). The pieces are compiled one by one: as one
function they would take the compiler twice the time.
"""

from __future__ import annotations

import math

import numpy as np

from ..._model.likelihoods import cell, curvature, fixed_unit
from ..._model.penalties import cancelled, penalty
from ..._numerics.compilation import by_precision, flat
from ..._numerics.compiled import part
from ..simd.vectors import (
    add,
    greatest,
    lanes,
    least,
    load,
    multiply_add,
    negative,
    splat,
    store,
    total,
)
from .lane_atoms import (
    cell_of,
    gather,
    lane_atom,
    lane_rates,
    lane_slopes,
    load_background,
    load_cells,
    n_cells,
)
from .quadratic import add_squares, bounded_quadratic

# 0 is approached by this factor a step at the most: where a barrier is in the penalty, and where
# none is. Cells that only one component explains are a barrier too, though one that the quadratic
# model does not see. An activation that is nothing beside the sample's largest may become 0.
TOWARDS_BARRIER = 0.1
_TOWARDS_ZERO = 0.01
_VANISHING = 1e-12
# No activation grows in a step by more than this factor times the sample's largest: where there is
# no curvature, as in cells of 0 under atoms of both signs, a Newton step has no end.
_LARGEST_GROWTH = 1e6
# A line search halves its step this many times, then the sample stays where it is.
_MAX_HALVINGS = 30
# With a barrier, a row far below the unit of all rows is solved as if it were this large: the
# prior, not the row, then decides how large its activations are.
_LEAST_ROW_UNIT = 2.0**-60
# Relative and absolute, for float32 and float64: keep a singular Hessian from being divided by.
_RIDGE = (1e-6, 1e-12)
_NOTHING = (1e-37, 1e-300)
# What the line search takes for rounding, against the value of a row.
_ROUNDING = (1e-7, 1e-15)
# What is collected for the atoms must not leave the range of float32, where data are of that type.
LARGEST_U = np.float32(1e6)
LARGEST_Q = np.float32(1e12)


@part
def row_unit(likelihood, barrier, X, j):
    """Power of two that brings one row of X near 1, in the unit of all; 1 for integers."""
    largest = 0.0
    for i in range(n_cells(X, j, j + 1)):
        x = cell_of(X, j, i)
        largest = max(largest, abs(x) / likelihood.unit if x == x else 0.0)
    if fixed_unit(likelihood):
        return 1.0
    lowest = _LEAST_ROW_UNIT if barrier else 1e-300
    return 2.0 ** math.floor(math.log2(max(largest, lowest)))


@part
def load_lanes(
    likelihood, barrier, own_units, rows, background, start, stop, cells, values, samples
):
    """Samples `start` to `stop` into lanes, in their units; what is left over holds a gap."""
    X, activations, _, _, _ = rows
    x, atoms, lane_background, _ = cells
    _, unit, scale, _, _, _ = samples
    width = x.shape[1]
    n_components = values.shape[0]
    for l in range(width):
        unit[l] = 1.0
        if own_units and start + l < stop:
            unit[l] = row_unit(likelihood, barrier, X, start + l)
        scale[l] = 1 / (likelihood.unit * unit[l])
    load_cells(X, start, stop, atoms, scale, x)
    load_background(atoms, start, stop, background, lane_background)
    for l in range(width):
        if start + l < stop:
            inverse = 1 / unit[l]
            for k in range(n_components):
                values[k, l] = activations[start + l, k] * inverse
        else:
            for k in range(n_components):
                values[k, l] = 1


@part
def load_prior(prior, start, stop, out):
    """Rows of a prior's array, which has one for all samples or one for each, into lanes."""
    for l in range(out.shape[1]):
        j = min(start + l, stop - 1, prior.shape[0] - 1)
        for k in range(out.shape[0]):
            out[k, l] = prior[j, k]


@part
def curved_cells(likelihood, x, u0, u1, q):
    """x becomes its log-likelihood, the rates in u0 and u1 become U₀ and U₁; and the curvature."""
    for n in range(x.size):
        rate0, rate1 = u0[n], u1[n]
        u0[n], u1[n], level = cell(likelihood, x[n], rate0, rate1)
        q[n] = curvature(likelihood, x[n], rate0, rate1, u0[n], u1[n])
        x[n] = level


@part
def _evaluate(likelihood, cells, first, last, values, chunk, level, features):
    """Cells of the features `first` to `last`, into `chunk`.

    Minus their log-likelihood is added to `level`, by sample, and to `features`, with the samples'
    weights.
    """
    x, atoms, background, weight = cells
    rates, curvatures, terms, sums = chunk
    width = values.shape[1]
    lane = lanes(values)
    size = (last - first) * width
    for n in range(0, size, lane):
        store(terms, n, load(x, first * width + n))
    gather(atoms, first, last)
    lane_rates(atoms, first, last, values, background, rates)
    curved_cells(
        likelihood,
        flat(terms)[:size],
        flat(rates[0])[:size],
        flat(rates[1])[:size],
        flat(curvatures)[:size],
    )
    weight0, weight1 = load(weight, 0), load(weight, lane)
    sum0 = sum1 = zero = splat(type(values[0, 0])(0))
    for i in range(last - first):
        term0, term1 = load(terms, i * width), load(terms, i * width + lane)
        sum0, sum1 = add(sum0, term0), add(sum1, term1)
        weighted = multiply_add(term0, weight0, multiply_add(term1, weight1, zero))
        features[first + i] -= total(weighted)
    store(sums, 0, sum0), store(sums, lane, sum1)
    for l in range(width):
        level[l] -= sums[l]


@part
def _design_rows(atoms, first, offset, count, chunk, design, weighted):
    """Rows U₀ θ₀ − U₁ θ₁ of some features, for each component, and the same with weights q.

    They are those of the chunk from `offset` on; the chunk starts with the feature `first`. U is
    replaced by 1 − U, whose products with the atoms are the slopes.
    """
    rates, curvatures, _, _ = chunk
    most, width = curvatures.shape
    n_components, depth = design.shape[:2]
    lane = lanes(design)
    one = type(design[0, 0, 0])(1)
    ones, zero = splat(one), splat(one - one)
    for i in range(offset, offset + count):
        for half in range(0, width, lane):
            at0, at1 = i * width + half, (most + i) * width + half
            u0, u1, q = load(rates, at0), load(rates, at1), load(curvatures, at0)
            store(rates, at0, add(ones, negative(u0)))
            store(rates, at1, add(ones, negative(u1)))
            w0, w1 = multiply_add(u0, q, zero), multiply_add(u1, q, zero)
            for k in range(n_components):
                atom0 = lane_atom(atoms, 0, first, i, k, half)
                atom1 = negative(lane_atom(atoms, 1, first, i, k, half))
                at = (k * depth + i - offset) * width + half
                store(design, at, multiply_add(u0, atom0, multiply_add(u1, atom1, zero)))
                store(weighted, at, multiply_add(w0, atom0, multiply_add(w1, atom1, zero)))


@part
def _clear(array):
    """Fill with 0."""
    zero = splat(type(array[0])(0))
    for at in range(0, array.size, lanes(array)):
        store(array, at, zero)


@part
def derivatives(likelihood, cells, values, chunk, designs, level, features, slope, hessian):
    """Value, gradient and Hessian (below its diagonal) of minus the log-likelihood."""
    atoms, rates = cells.atoms, chunk.rates
    design, weighted, part_slope = designs
    n_components, width = values.shape
    n_features, most, depth = cells.x.shape[0], rates.shape[1], design.shape[1]
    for l in range(width):
        level[l] = 0.0
    _clear(flat(slope))
    _clear(flat(hessian))
    for first in range(0, n_features, most):
        last = min(first + most, n_features)
        count = last - first
        _evaluate(likelihood, cells, first, last, values, chunk, level, features)
        for offset in range(0, count, depth):
            n_rows = min(depth, count - offset)
            _design_rows(atoms, first, offset, n_rows, chunk, design, weighted)
            add_squares(design, weighted, n_rows, hessian)
        lane_slopes(atoms, first, last, rates, part_slope)
        for at in range(0, n_components * width, lanes(slope)):
            store(slope, at, add(load(slope, at), load(part_slope, at)))


@part
def penalties(rules, prior, values, level, terms):
    """Add the penalty's values to `level`; its slopes and curvatures into `terms`."""
    kind = rules.penalty
    shape, rate, mass, atom_totals = prior
    slope, curvature = terms
    n_components, width = values.shape
    for k in range(n_components):
        if rules.barrier:
            for l in range(width):
                at, slope[k, l], curvature[k, l] = penalty(
                    kind, mass[l], values[k, l], shape[k, l], rate[k, l], atom_totals[k]
                )
                level[l] += at
        else:
            for l in range(width):
                slope[k, l] = rate[k, l]
                curvature[k, l] = 0
            for l in range(width):
                level[l] += rate[k, l] * values[k, l]


@part
def quadratic_step(control, barrier, values, terms, slope, hessian, lowest, workspace, done, move):
    """Move of a Newton step in every lane that is not done; the prior's is added to `slope`."""
    prior_slope, prior_curvature = terms
    n_components, width = values.shape
    lane = lanes(values)
    real = type(values[0, 0])
    one, zero = real(1), splat(real(0))
    ridge, nothing = (
        splat(real(1 + by_precision(one, _RIDGE))),
        splat(real(by_precision(one, _NOTHING))),
    )
    far = splat(real(1 - (TOWARDS_BARRIER if barrier else _TOWARDS_ZERO)))
    vanishing = splat(real(0 if barrier else _VANISHING))
    for half in range(0, width, lane):
        largest = zero
        for k in range(n_components):
            largest = greatest(largest, load(values, k * width + half))
        store(lowest, half, multiply_add(largest, vanishing, zero))
    nothing0, nothing1 = load(lowest, 0), load(lowest, lane)
    for k in range(n_components):
        for half in range(0, width, lane):
            at, diagonal = k * width + half, (k * n_components + k) * width + half
            store(slope, at, add(load(slope, at), load(prior_slope, at)))
            value = load(values, at)
            down = least(value, nothing0 if half == 0 else nothing1)
            store(lowest, at, negative(greatest(multiply_add(value, far, zero), down)))
            # More components than features leave the Hessian singular.
            total_curvature = add(
                greatest(load(prior_curvature, at), zero), load(hessian, diagonal)
            )
            store(hessian, diagonal, multiply_add(total_curvature, ridge, nothing))
    if control.slope > 0:
        for l in range(width):
            steepest = 0.0
            for k in range(n_components):
                steepest = max(steepest, -slope[k, l] if values[k, l] == 0 else abs(slope[k, l]))
            done[l] = done[l] or steepest <= control.slope
    bounded_quadratic(
        slope, hessian, lowest, workspace, control.max_sweeps, control.sweep_tolerance, move
    )
    for l in range(width):
        if done[l]:
            for k in range(n_components):
                move[k, l] = 0
        else:
            _keep_in_reach(values, slope, lowest, move, l)


@part
def _keep_in_reach(values, slope, lowest, move, l):
    """Mend a lane's move where the quadratic problem is next to singular.

    A move that leads uphill becomes one like EM's, λ (1 − slope), and no move goes too far.
    """
    descent = largest = farthest = 0.0
    n_components = values.shape[0]
    for k in range(n_components):
        descent += slope[k, l] * move[k, l]
    if not descent <= 0:
        for k in range(n_components):
            move[k, l] = max(lowest[k, l], -slope[k, l] * values[k, l])
    for k in range(n_components):
        largest, farthest = max(largest, values[k, l]), max(farthest, move[k, l])
    reach = _LARGEST_GROWTH * largest
    if farthest > reach > 0:
        for k in range(n_components):
            move[k, l] *= reach / farthest


@part
def _keep(chunk, first, count, columns):
    """1 − U and the three products of the curvature, from a chunk of features into the block."""
    rates, curvatures, _, _ = chunk
    offset, u_block, s_block = columns
    most, width = curvatures.shape
    n_features, block = u_block.shape[1] // 2, u_block.shape[2]
    lane = lanes(curvatures)
    one = type(curvatures[0, 0])(1)
    ones, zero = splat(one), splat(one - one)
    most_u, least_u = splat(one * LARGEST_U), splat(one / LARGEST_U)
    most_q = splat(one * LARGEST_Q)
    below = n_features * block
    for i in range(count):
        for half in range(0, width, lane):
            at0, at1 = i * width + half, (most + i) * width + half
            # Cut before they are multiplied, so that the Hessian has no negative part.
            u0 = greatest(least(load(rates, at0), most_u), least_u)
            u1 = greatest(least(load(rates, at1), most_u), least_u)
            q = least(load(curvatures, at0), most_q)
            to = (first + i) * block + offset + half
            store(u_block, to, add(ones, negative(u0)))
            store(u_block, to + below, add(ones, negative(u1)))
            w0, w1 = multiply_add(u0, q, zero), multiply_add(u1, q, zero)
            store(s_block, to, multiply_add(w0, u0, zero))
            store(s_block, to + below, negative(multiply_add(w0, u1, zero)))
            store(s_block, to + 2 * below, multiply_add(w1, u1, zero))


@part
def _try_step(values, move, step, trial):
    """trial = values + step · move, not below 0."""
    width = step.size
    lane = lanes(values)
    zero = splat(type(step[0])(0))
    for k in range(values.shape[0]):
        for half in range(0, width, lane):
            at = k * width + half
            moved = multiply_add(load(step, half), load(move, at), load(values, at))
            store(trial, at, greatest(moved, zero))


@part
def search(rules, cells, prior, values, before, move, slope, chunk, trial, terms, columns):
    """Line search from `values` along `move` in each lane, against the levels in `before`.

    Leaves the point in `values`, the level there in the trial's, and, if there is a block, what
    the atoms need from the point, in its columns.
    """
    point, level, features, step, decrease, noise = trial
    kind, atom_totals = rules.penalty, prior.atom_totals
    n_components, width = values.shape
    n_features, most = cells.x.shape[0], chunk.terms.shape[0]
    rounding = by_precision(step[0], _ROUNDING)
    for l in range(width):
        step[l] = 1
        decrease[l] = 0
        noise[l] = rounding * abs(before[l])
    for k in range(n_components):
        for l in range(width):
            decrease[l] += slope[k, l] * move[k, l]
            noise[l] += rounding * cancelled(kind, values[k, l], atom_totals[k])
    for halving in range(_MAX_HALVINGS):
        _try_step(values, move, step, point)
        for i in range(n_features):
            features[i] = 0.0
        for l in range(width):
            level[l] = 0.0
        for first in range(0, n_features, most):
            last = min(first + most, n_features)
            _evaluate(rules.likelihood, cells, first, last, point, chunk, level, features)
            if columns.u.size > 0:
                _keep(chunk, first, last - first, columns)
        penalties(rules, prior, point, level, terms)
        n_bad = 0
        for l in range(width):
            slack = 1e-4 * step[l] * decrease[l] + noise[l]
            if step[l] > 0 and not level[l] <= before[l] + slack:
                step[l] = step[l] / 2 if halving < _MAX_HALVINGS - 2 else 0
                n_bad += 1
        if n_bad == 0:
            break
    for at in range(0, n_components * width, lanes(values)):
        store(values, at, load(point, at))
