"""Draws of activations from their posterior, for integers: each cell is a difference of counts.

Given the rates of a cell, the counts of its two signs are drawn (a Bessel distribution, since their
difference is known), then divided among the components. Given all counts, activations are gamma
distributed, and atoms follow a Dirichlet distribution (paper, Algorithm 2, with draws in the place
of means).
"""

from __future__ import annotations

import math

import numpy as np

from ..._numerics.compiled import kernel_with_arrays, part

# A term below this share of the sum is none.
_NEGLIGIBLE = 1e-17
# Activations do not become 0: logarithms of them are summed up.
_LEAST = 1e-200


@part
def _draw_smaller(difference, product):
    """The smaller of two Poisson counts, given their difference ≥ 0 and the product of their rates.

    P(n) ∝ product^n / (n! (n + difference)!), by inversion from the mode outwards.
    """
    mode = math.floor(0.5 * (math.sqrt(difference * difference + 4.0 * product) - difference))
    total = above = term = 1.0
    n = mode
    while term > _NEGLIGIBLE * total:
        n += 1.0
        term *= product / (n * (n + difference))
        above += term
        total += term
    below, term, n = 0.0, 1.0, mode
    while n > 0.0 and term > _NEGLIGIBLE * total:
        term *= n * (n + difference) / product
        below += term
        total += term
        n -= 1.0
    level = np.random.random() * total
    if level < above:
        term, n = 1.0, mode
        while level >= term:
            level -= term
            n += 1.0
            term *= product / (n * (n + difference))
            if term < _NEGLIGIBLE:
                break
        return n
    level -= above
    term, n = 1.0, mode
    while n > 0.0:
        term *= n * (n + difference) / product
        n -= 1.0
        if level < term:
            break
        level -= term
    return n


@part
def _divide(count, atoms, i, weight, values, rate, own, counts):
    """Divide a count of one sign among the components, by their shares of its rate."""
    left, rate_left = count, rate
    n_components = values.size
    for k in range(n_components):
        if left <= 0.0:
            break
        share = values[k] * atoms[k, i]
        drawn = left
        if k < n_components - 1:
            drawn = np.random.binomial(np.int64(left), min(share / rate_left, 1.0))
        own[k] += drawn
        counts[k, i] += weight * drawn
        left -= drawn
        rate_left = max(rate_left - share, 1e-300)


@part
def _rate(values, atoms, i):
    """Rate of one sign of a cell."""
    total = 0.0
    for k in range(values.size):
        total += values[k] * atoms[k, i]
    return total


@part
def _draw_counts(row, atoms, weight, values, own, counts):
    """Counts of all cells of a sample: by component in `own`, and added to `counts` (2, K, I)."""
    own[:] = 0.0
    for i in range(row.size):
        x = row[i]
        if x != x:
            # A gap may be anything: its counts come from the model.
            for s in range(2):
                for k in range(values.size):
                    drawn = np.random.poisson(values[k] * atoms[s, k, i])
                    own[k] += drawn
                    counts[s, k, i] += weight * drawn
            continue
        rate0, rate1 = _rate(values, atoms[0], i), _rate(values, atoms[1], i)
        smaller = _draw_smaller(abs(x), rate0 * rate1)
        count0, count1 = smaller + max(x, 0.0), smaller + max(-x, 0.0)
        _divide(count0, atoms[0], i, weight, values, rate0, own, counts[0])
        _divide(count1, atoms[1], i, weight, values, rate1, own, counts[1])


@part
def _draw_activations(shape, rate, own, values):
    """Activations, given the counts of a sample."""
    for k in range(values.size):
        drawn = np.random.standard_gamma(shape[k] + own[k]) / (1.0 + rate[k])
        values[k] = max(drawn, _LEAST)


@kernel_with_arrays
def draw_count_rows(X, atoms, shape, rate, weights, seed, activations, counts, totals):
    """Draw the activations of samples, in place, and add up what the atoms and priors need.

    `counts` (2, K, I) has those of atoms, `totals` (2, K) has Σ_j a and Σ_j ln a.
    """
    n_components = shape.size
    own = np.empty(n_components)
    np.random.seed(seed)
    for j in range(X.shape[0]):
        values = activations[j]
        _draw_counts(X[j], atoms, weights[j], values, own, counts)
        _draw_activations(shape, rate, own, values)
        for k in range(n_components):
            totals[0, k] += weights[j] * values[k]
            totals[1, k] += weights[j] * math.log(values[k])


@kernel_with_arrays
def draw_count_rows_given(X, seeds, atoms, shape, rate, n_first, n_scans, start, out):
    """Activations of each sample for each of some draws; `out` is as for real numbers.

    `atoms` (S, 2, K, I), `shape` and `rate` (S, K) are draws; each sample has its seed.
    """
    means, squares, kept = out
    n_draws, _, n_components, n_features = atoms.shape
    own, values = np.empty(n_components), np.empty(n_components)
    unused = np.zeros((2, n_components, n_features))
    for j in range(X.shape[0]):
        np.random.seed(seeds[j])
        values[:] = start
        means[j] = 0.0
        squares[j] = 0.0
        for turn in range(-n_first, n_draws):
            s = turn if turn >= 0 else (-turn) % n_draws
            for _ in range(n_scans):
                _draw_counts(X[j], atoms[s], 0.0, values, own, unused)
                _draw_activations(shape[s], rate[s], own, values)
            if turn < 0:
                continue
            for k in range(n_components):
                means[j, k] += values[k] / n_draws
                squares[j, k] += values[k] * values[k] / n_draws
            if kept.shape[0] > 0:
                kept[s, j] = values
