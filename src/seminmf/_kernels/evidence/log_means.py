"""E[ln θ] of entries of atoms for another prior than that their posterior was found with.

The density of z = θ/θ̂ is z^(α−1) exp(−½ f (z−1)² − α̂ (z−1)), as in `_prior_learning.atom_history`.
The entries of a component sum to 1 when all are divided by their sum.
"""

import math

import numpy as np

from ..._numerics.compiled import kernel, part
from ..._numerics.elementary import exp

# From this precision of ln z on, its density is that of a normal variable with some skewness.
_NARROW = 30.0
# The grid in ln z around the mode, whose step resolves what is not narrow.
_LOWEST, _STEP = -12.0, 0.18
_LOGS = _LOWEST + _STEP * np.arange(101)
_VALUES = np.exp(_LOGS)


@part
def _moments(shape, best_for, information):
    """E[ln z] and E[z] of the density above, and the logarithm of its integral over its largest.

    The largest value is that of z^α times the rest, since z is a scale.
    """
    slack = information - best_for
    root = math.sqrt(slack * slack + 4.0 * information * shape)
    mode = (slack + root) / (2.0 * information) if slack > 0.0 else 2.0 * shape / (root - slack)
    pull = information * mode * mode
    precision = pull + shape
    if precision > _NARROW:
        mean_log = math.log(mode) - (3.0 * pull + shape) / (2.0 * precision * precision)
        return mean_log, exp(mean_log + 0.5 / precision), 0.5 * math.log(2.0 * math.pi / precision)
    log_mode = math.log(mode)
    largest = shape * log_mode + _rest(mode - 1.0, best_for, information)
    mass, first, mean = 0.0, 0.0, 0.0
    for i in range(_LOGS.size):
        u, z = log_mode + _LOGS[i], mode * _VALUES[i]
        weight = exp(shape * u + _rest(z - 1.0, best_for, information) - largest)
        weight *= 0.5 * _STEP if i == 0 else _STEP
        mass += weight
        first += weight * u
        mean += weight * z
    # Below the grid only z^(α−1) is left, whose integrals are known.
    edge = log_mode + _LOWEST
    below = exp(shape * edge + _rest(-1.0, best_for, information) - largest) / shape
    mass += below
    return (first + below * (edge - 1.0 / shape)) / mass, mean / mass, math.log(mass)


@part
def _rest(excess, best_for, information):
    """The logarithm of the density less that of z^(α−1), at z − 1."""
    return -excess * (0.5 * information * excess + best_for)


@kernel
def add_log_means(weights, log_best, information, best_for, shape, total):
    """Add to `total` (2, K, I) the weighted sum over records of E[ln θ] with other shapes."""
    n_signs, n_components, n_features = total.shape
    for t in range(len(weights)):
        for k in range(n_components):
            mass = 0.0
            for s in range(n_signs):
                for i in range(n_features):
                    cell = t, s, k, i
                    log_mean, mean, _ = _moments(shape[s, k, i], best_for[cell], information[cell])
                    total[s, k, i] += weights[t] * (log_best[cell] + log_mean)
                    mass += exp(log_best[cell]) * mean
            for s in range(n_signs):
                for i in range(n_features):
                    total[s, k, i] -= weights[t] * math.log(mass)


@kernel
def log_mass_beyond_normal(shape, information):
    """Σ over entries, at the prior they are best for, of what a normal density of ln z misses."""
    total = 0.0
    for n in range(shape.size):
        _, _, log_mass = _moments(shape[n], shape[n], information[n])
        total += log_mass - 0.5 * math.log(2.0 * math.pi / (shape[n] + information[n]))
    return total
