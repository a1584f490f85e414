"""Draws of the priors' parameters, given what they are the priors of."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

# Logarithms of shapes are normal around 0 with this standard deviation, where they are learned.
_SPREAD = 1.0
# Width of the first interval of a slice sampler, for a logarithm.
_WIDTH = 0.3
# Logarithms of shapes stay within this, and an interval as narrow as this is one number.
_FARTHEST, _NARROWEST = 10.0, 1e-12


class GammaPrior(NamedTuple):
    """What is known of the activations' prior.

    Attributes
    ----------
    shape, rate : (K,) arrays or None
        None if they are learned.
    typical : float
        A rate counts as having seen one activation of this size: it does not run away where the
        data say nothing.
    """

    shape: NDArray | None
    rate: NDArray | None
    typical: float


def drawn_gamma(
    given: GammaPrior, n: float, totals: NDArray, shape: NDArray, random: Generator
) -> tuple[NDArray, NDArray]:
    """Shapes and rates, given the sums (2, K) of n activations and of their logarithms.

    `shape` is where the draw starts.
    """
    sums, logarithms = totals[0] + given.typical, totals[1]
    if given.shape is not None:
        shape = given.shape
    else:
        rates = [None] * len(shape) if given.rate is None else given.rate.tolist()
        densities = map(_GammaShape, [n] * len(shape), sums, logarithms, rates)
        drawn = [slice_draw(d.at, s, random) for d, s in zip(densities, shape, strict=True)]
        shape = np.array(drawn)
    rate = random.gamma(n * shape + 1) / sums if given.rate is None else given.rate
    return shape, rate


class _GammaShape(NamedTuple):
    """Log-density of ln α, given n activations by their sum and that of their logarithms.

    The rate is given, or integrated out.
    """

    n: float
    total: float
    logarithms: float
    rate: float | None

    def at(self, log_shape: float) -> float:
        """The log-density, but for a constant."""
        shape = math.exp(log_shape)
        value = shape * self.logarithms - self.n * math.lgamma(shape)
        if self.rate is None:
            value += math.lgamma(self.n * shape + 1) - (self.n * shape + 1) * math.log(self.total)
        else:
            value += self.n * shape * math.log(self.rate)
        return value - log_shape**2 / (2 * _SPREAD**2)


class DirichletShape(NamedTuple):
    """Log-density of ln η, given K atoms of so many entries by the sum of their logarithms."""

    n_atoms: int
    n_entries: int
    logarithms: float

    def at(self, log_shape: float) -> float:
        """The log-density, but for a constant."""
        shape = math.exp(log_shape)
        normaliser = math.lgamma(self.n_entries * shape) - self.n_entries * math.lgamma(shape)
        value = self.n_atoms * normaliser + shape * self.logarithms
        return value - log_shape**2 / (2 * _SPREAD**2)


def slice_draw(density: Callable[[float], float], shape: float, random: Generator) -> float:
    """A draw of a shape by slice sampling (Neal 2003) of its logarithm.

    The shape stays where it is if nothing is known of it: where data are out of range, the density
    is no number.
    """
    here = min(max(math.log(shape), -_FARTHEST), _FARTHEST)
    level = density(here) - random.exponential()
    lower = here - _WIDTH * random.random()
    upper = lower + _WIDTH
    while lower > -_FARTHEST and density(lower) > level:
        lower -= _WIDTH
    while upper < _FARTHEST and density(upper) > level:
        upper += _WIDTH
    while upper - lower > _NARROWEST:
        drawn = random.uniform(lower, upper)
        if density(drawn) > level:
            return math.exp(drawn)
        if drawn < here:
            lower = drawn
        else:
            upper = drawn
    return math.exp(here)
