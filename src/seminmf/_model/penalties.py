"""What a sample's activation pays for its value: the prior's part of the row-wise problem.

With the atoms given, the activations v of one sample minimise

    Σ_observed −log-likelihood(x_i | λ₀, λ₁) + Σ_k penalty(v_k),    λ_s = Σ_k v_k θ_sk,

for the maximum a posteriori (`Maximum`) and for variational Bayes (`Posterior`, where v = ℓ is the
geometric mean and h stands for θ): the two differ in the penalty alone.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numba.extending import overload

from .._numerics.compilation import scalar_function
from .._numerics.gamma import gamma_terms, inverse_digamma, trigamma


class Maximum(NamedTuple):
    """Penalty βv − (α − 1) ln v of a gamma prior."""

    mass: float


class Posterior(NamedTuple):
    """Penalty whose slope is (α̂ − α) / v − Σ_si h, where exp ψ(α̂) = (1 + β) v.

    At its stationary points the fixed point α̂ = α + ℓ U^act of the paper's Algorithm 2 holds.
    """

    mass: float


@scalar_function
def _maximum(mass, value, shape, rate):
    excess = (shape - 1.0) / mass
    if excess == 0.0:
        return rate * value, rate, 0.0
    quotient = excess / value
    return rate * value - excess * math.log(value), rate - quotient, quotient / value


@scalar_function
def posterior_shape(mass, value, rate):
    """α̂ of the gamma posterior whose geometric mean is `value`."""
    return inverse_digamma(math.log(mass * (1.0 + rate) * value))


@scalar_function
def _posterior(mass, value, shape, rate, atom_total):
    alpha = posterior_shape(mass, value, rate)
    _, digamma, entropy = gamma_terms(alpha)
    level = (alpha - shape * digamma - entropy) / mass - atom_total * value
    slope = (alpha - shape) / (mass * value) - atom_total
    bend = (1.0 / trigamma(alpha) - (alpha - shape)) / (mass * value * value)
    return level, slope, bend


def cancelled(kind, value, atom_total):
    """Size of what cancels in the level of the penalty, and leaves its rounding there."""
    raise NotImplementedError("cancelled exists in compiled code only")


@overload(cancelled, inline="always")
def _cancelled(kind, value, atom_total):
    if kind.instance_class is Posterior:
        return lambda kind, value, atom_total: atom_total * value
    return lambda kind, value, atom_total: 0.0 * value


def penalty(kind, mass, value, shape, rate, atom_total):
    """Level, slope and second derivative of the penalty at `value` > 0.

    `mass` is what one unit of `value` counts against the prior.
    """
    raise NotImplementedError("penalty exists in compiled code only")


@overload(penalty, inline="always")
def _penalty(kind, mass, value, shape, rate, atom_total):
    if kind.instance_class is Posterior:
        return lambda kind, mass, value, shape, rate, atom_total: _posterior(
            mass, value, shape, rate, atom_total
        )
    return lambda kind, mass, value, shape, rate, atom_total: _maximum(mass, value, shape, rate)
