"""The E-step with each sample's activations integrated out, correlations included.

In the cube root of λ, as in Wilson and Hilferty's rule for gamma variables, a sample's posterior is
nearly normal around its mode; for shapes α below 1, in λ^p with p = α/3. In a unit in which
λ^p = λ̂^p (1 + p z), its precision is

    H = diag(α − p) + Σ_i (λ̂ g_i)(λ̂ g_i)ᵀ q_i,    g_ki = U₀ θ_0ki − U₁ θ_1ki,

which is not diagonal: what one component takes, another gives. Variational Bayes drops that. Here
the integrals over the posterior are sums over nodes that stand for the normal distribution, each
with the ratio of the posterior to it as its weight: a Gauss-Hermite rule for few components, points
of a low-discrepancy sequence for more. In ln λ, whose posterior is skew, the same rules were biased
by so much that it showed in thousands of samples; in √λ they were so for small shapes.

The likelihood is Skellam's (M = 1) for real data as well, in units of their dispersion: that of
M = ∞ is no density, and would be raised by larger rates for ever.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._data.executor import LocalExecutor
from ..._data.source import BlockSource, row_ranges
from ..._model.cells import SMALLEST_RATE, integer_cell, integer_curvature
from ..._numerics.arguments import check_arrays
from ..._numerics.compiled import kernel_with_arrays, part
from ..._numerics.elementary import exp

# The power of λ whose posterior is taken for normal, for shapes from 1 on; in proportion below.
_POWER = 1 / 3
# No Newton step towards the mode is longer than this in ln λ.
_LONGEST = 1.0
# Steps end with one that is shorter than this, with which H has hardly changed, or after so many.
_SHORT = 0.02
_MOST_STEPS = 12
# Nodes with λ^p below this share of its mode do not count.
_LEAST_ROOT = 0.02
_SMALLEST = SMALLEST_RATE["float64"]


class Nodes(NamedTuple):
    """Points (K, N) in the coordinates in which the normal distribution is standard.

    `log_weights` (N,) are those of the rule less the logarithm of the density.
    """

    points: NDArray
    log_weights: NDArray


class Marginal(NamedTuple):
    """What the pass returns.

    Attributes
    ----------
    modes : (J, K) array
        ln λ at the modes of λ^p.
    activations, log_activations : (J, K) arrays
        Posterior means of λ / unit and of its logarithm.
    slopes : (P,) array
        Derivatives of the evidence by ln θ, and by what `extend` adds to each sample's own.
    information : (P, P) array
        Σ_j of the products of each sample's own derivatives: Fisher's information, observed.
    evidence : float
        Σ_j ln ∫ p(x | λ) λ^α e^(−β λ) dλ/λ, with the samples' weights.
    """

    modes: NDArray
    activations: NDArray
    log_activations: NDArray
    slopes: NDArray
    information: NDArray
    evidence: float


@part
def _power(shape):
    """The power p of λ that is taken for normal."""
    return _POWER * min(1.0, shape)


@part
def _decompose(H):
    """Replace the lower triangle of H by L with H = L Lᵀ."""
    n = len(H)
    for k in range(n):
        for m in range(k + 1):
            total = H[k, m]
            for l in range(m):
                total -= H[k, l] * H[m, l]
            H[k, m] = math.sqrt(max(total, 1e-300)) if k == m else total / H[m, m]


@part
def _newton_step(x, atoms, atom_totals, shape, rate, modes, values, g, H, slope):
    """One Newton step of the modes, whose length it returns; leaves the factor L of H behind."""
    n_components, n_features = atoms.shape[1:]
    for k in range(n_components):
        values[k] = exp(modes[k])
        for m in range(k + 1):
            H[k, m] = 0.0
        H[k, k] = shape[k] - _power(shape[k])
        slope[k] = H[k, k] - values[k] * (atom_totals[k] + rate[k])
    for i in range(n_features):
        rate0, rate1 = _SMALLEST, _SMALLEST
        for k in range(n_components):
            rate0 += values[k] * atoms[0, k, i]
            rate1 += values[k] * atoms[1, k, i]
        u0, u1, _ = integer_cell(x[i], rate0, rate1)
        q = integer_curvature(x[i], rate0, rate1, u0, u1)
        for k in range(n_components):
            slope[k] += values[k] * (u0 * atoms[0, k, i] + u1 * atoms[1, k, i])
            g[k] = values[k] * (u0 * atoms[0, k, i] - u1 * atoms[1, k, i])
            for m in range(k + 1):
                H[k, m] += q * g[k] * g[m]
    _decompose(H)
    for k in range(n_components):
        for m in range(k):
            slope[k] -= H[k, m] * slope[m]
        slope[k] /= H[k, k]
    for k in range(n_components - 1, -1, -1):
        for m in range(k + 1, n_components):
            slope[k] -= H[m, k] * slope[m]
        slope[k] /= H[k, k]
    longest = 0.0
    for k in range(n_components):
        step = min(max(slope[k], -_LONGEST), _LONGEST)
        modes[k] += step
        longest = max(longest, abs(step))
    return longest


@part
def _place(points, shape, modes, H, logs, weights):
    """ln λ at the nodes, ln λ̂ + ln(1 + p z)/p with z = L⁻ᵀ points, and the density's logarithm."""
    n_components, n_nodes = points.shape
    for k in range(n_components - 1, -1, -1):
        for n in range(n_nodes):
            logs[k, n] = points[k, n]
        for m in range(k + 1, n_components):
            for n in range(n_nodes):
                logs[k, n] -= H[m, k] * logs[m, n]
        for n in range(n_nodes):
            logs[k, n] /= H[k, k]
    for k in range(n_components):
        power = _power(shape[k])
        for n in range(n_nodes):
            root = 1.0 + power * logs[k, n]
            log_root = math.log(max(root, _LEAST_ROOT))
            weights[n] -= log_root if root > _LEAST_ROOT else math.inf
            logs[k, n] = modes[k] + log_root / power


@part
def _weigh(x, atoms, shape, rate, logs, values, u, weights):
    """Add to `weights` the log-density at each node; leaves λ in `values` and U in `u`."""
    n_components, n_nodes = logs.shape
    for k in range(n_components):
        for n in range(n_nodes):
            values[k, n] = exp(logs[k, n])
            weights[n] += shape[k] * logs[k, n] - rate[k] * values[k, n]
    for i in range(x.size):
        for n in range(n_nodes):
            u[0, i, n] = _SMALLEST
            u[1, i, n] = _SMALLEST
        for k in range(n_components):
            for n in range(n_nodes):
                u[0, i, n] += values[k, n] * atoms[0, k, i]
                u[1, i, n] += values[k, n] * atoms[1, k, i]
        for n in range(n_nodes):
            u[0, i, n], u[1, i, n], value = integer_cell(x[i], u[0, i, n], u[1, i, n])
            weights[n] += value


@part
def _normalise(weights):
    """Replace logarithms of weights by weights that sum to 1; returns the logarithm of the sum."""
    largest = -math.inf
    for n in range(weights.size):
        largest = max(largest, weights[n])
    total = 0.0
    for n in range(weights.size):
        weights[n] = math.exp(weights[n] - largest)
        total += weights[n]
    for n in range(weights.size):
        weights[n] /= total
    return largest + math.log(total)


@part
def _collect(weights, logs, values, atoms, u, means, log_means, slopes):
    """Posterior means of a sample, and its derivatives by ln θ."""
    n_components, n_nodes = logs.shape
    n_features = u.shape[1]
    for k in range(n_components):
        mean, log_mean = 0.0, 0.0
        for n in range(n_nodes):
            log_mean += weights[n] * logs[k, n]
            values[k, n] *= weights[n]
            mean += values[k, n]
        means[k] = mean
        log_means[k] = log_mean
        for s in range(2):
            for i in range(n_features):
                total = -mean
                for n in range(n_nodes):
                    total += values[k, n] * u[s, i, n]
                slopes[s, k, i] = atoms[s, k, i] * total


@kernel_with_arrays
def _marginal_rows(
    unit,
    points,
    log_weights,
    X,
    atoms,
    atom_totals,
    shape,
    rate,
    sample_weight,
    modes,
    means,
    log_means,
    slopes,
):
    """Consecutive samples; `modes` holds the starts. Returns their evidence."""
    n_samples, n_features = X.shape
    n_components, n_nodes = points.shape
    x = np.empty(n_features)
    H = np.empty((n_components, n_components))
    mode_values, g, slope = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    logs, values = np.empty((n_components, n_nodes)), np.empty((n_components, n_nodes))
    u, weights = np.empty((2, n_features, n_nodes)), np.empty(n_nodes)
    evidence = 0.0
    for j in range(n_samples):
        for i in range(n_features):
            x[i] = X[j, i] / unit
        for _ in range(_MOST_STEPS):
            length = _newton_step(
                x, atoms, atom_totals, shape[j], rate[j], modes[j], mode_values, g, H, slope
            )
            if length < _SHORT:
                break
        for n in range(n_nodes):
            weights[n] = log_weights[n]
        _place(points, shape[j], modes[j], H, logs, weights)
        _weigh(x, atoms, shape[j], rate[j], logs, values, u, weights)
        value = _normalise(weights)
        for k in range(n_components):
            value -= math.log(H[k, k])
        evidence += sample_weight[j] * value
        _collect(weights, logs, values, atoms, u, means[j], log_means[j], slopes[j])
    return evidence


def integrate(
    source: BlockSource,
    unit: float,
    atoms: NDArray,
    shape: NDArray,
    rate: NDArray,
    sample_weight: NDArray,
    modes: NDArray,
    nodes: Nodes,
    extend: Callable[[NDArray, NDArray], NDArray],
    executor: LocalExecutor,
) -> Marginal:
    """Integrate over the activations of all samples of X / unit, from modes near `modes`.

    `shape` and `rate` of the prior broadcast to the activations (J, K). `extend` takes some
    samples' posterior means of λ and ln λ, and returns their derivatives by other parameters.
    """
    atoms = np.ascontiguousarray(atoms, dtype=np.float64)
    atom_totals = atoms.sum(axis=(0, 2))
    modes = np.array(modes, dtype=np.float64, order="C")
    check_arrays(
        {"J": source.shape[0], "K": atoms.shape[1], "I": source.shape[1]},
        modes=("JK", modes),
        atoms=("2KI", atoms),
        sample_weight=("J", sample_weight),
    )
    means, log_means = np.empty_like(modes), np.empty_like(modes)
    shapes, rates = (np.broadcast_to(part, modes.shape) for part in (shape, rate))

    def task(rows: tuple[int, int]) -> tuple[NDArray, NDArray, float]:
        part = slice(*rows)
        own = np.empty((rows[1] - rows[0], *atoms.shape))
        evidence = _marginal_rows(
            unit,
            *nodes,
            np.ascontiguousarray(source.rows(*rows), dtype=np.float64),
            atoms,
            atom_totals,
            np.ascontiguousarray(shapes[part]),
            np.ascontiguousarray(rates[part]),
            sample_weight[part],
            modes[part],
            means[part],
            log_means[part],
            own,
        )
        # The atoms of a component sum to 1: a sample's slopes do not change what they have in sum.
        own -= atoms * own.sum(axis=(1, 3), keepdims=True)
        others = extend(means[part], log_means[part])
        own = np.concatenate([own.reshape(len(own), -1), others], axis=1)
        weighted = sample_weight[part, None] * own
        return weighted.sum(axis=0), weighted.T @ own, evidence

    work = len(nodes.log_weights) * atoms.shape[1]
    slopes, information, evidence = zip(*executor.map(task, row_ranges(source, work)), strict=True)
    return Marginal(
        modes,
        means,
        log_means,
        np.sum(slopes, axis=0),
        np.sum(information, axis=0),
        float(np.sum(evidence)),
    )
