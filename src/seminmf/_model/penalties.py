"""What a sample's activation pays for its value: the prior's part of the row-wise problem.

With the atoms given, the activations v of one sample minimise

    Σ_observed −log-likelihood(x_i | λ₀, λ₁) + Σ_k penalty(v_k),    λ_s = Σ_k v_k θ_sk,

for the maximum a posteriori (`Maximum`) and for variational Bayes (`Posterior`, where v = ℓ is the
geometric mean and h stands for θ): the two differ in the penalty alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from .._numerics.compilation import rule_of, scalar_function
from .._numerics.gamma import gamma_terms, inverse_digamma, trigamma
from .._numerics.linking import handed_to, intrinsic


@scalar_function
def _maximum(mass, value, shape, rate, atom_total):
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
    curvature = (1.0 / trigamma(alpha) - (alpha - shape)) / (mass * value * value)
    return level, slope, curvature


@scalar_function
def _nothing_cancelled(value, atom_total):
    return 0.0 * value


@scalar_function
def _rates_cancelled(value, atom_total):
    return atom_total * value


class _Mass(NamedTuple):
    mass: float


class Penalty(_Mass):
    """Base of the penalties: what one unit of an activation counts against the prior."""

    __slots__ = ()

    # For kernels: level, slope and curvature, and what cancels in the level.
    penalty_rule: ClassVar[Callable]
    cancelled_rule: ClassVar[Callable]
    # What is added to the prior's shape α in a sample's counts.
    excess: ClassVar[float]
    # Whether the penalty has a barrier at 0 for a shape of 1, and whether it has a pole there, of
    # the wrong sign, for shapes below 1.
    has_barrier: ClassVar[bool]
    has_pole: ClassVar[bool]


class Maximum(Penalty):
    """Penalty βv − (α − 1) ln v of a gamma prior."""

    __slots__ = ()

    penalty_rule = _maximum
    cancelled_rule = _nothing_cancelled
    excess = -1.0
    has_barrier = False
    has_pole = True


class Posterior(Penalty):
    """Penalty whose slope is (α̂ − α) / v − Σ_si h, where exp ψ(α̂) = (1 + β) v.

    At its stationary points the fixed point α̂ = α + ℓ U^act of the paper's Algorithm 2 holds.
    """

    __slots__ = ()

    penalty_rule = _posterior
    cancelled_rule = _rates_cancelled
    excess = 0.0
    has_barrier = True
    has_pole = False


@intrinsic
def cancelled(typing_context, kind, value, atom_total):
    """Size of what cancels in the level of the penalty, and leaves its rounding there."""
    rule = rule_of(kind, "cancelled_rule")
    return handed_to(typing_context, rule, kind, value, atom_total, first=1)


@intrinsic
def penalty(typing_context, kind, mass, value, shape, rate, atom_total):
    """Level, slope and curvature of the penalty at `value` > 0.

    `mass` is what one unit of `value` counts against the prior.
    """
    rule = rule_of(kind, "penalty_rule")
    return handed_to(typing_context, rule, kind, mass, value, shape, rate, atom_total, first=1)
