"""The likelihoods, as small objects that answer all that is asked of them.

`Real` is M = ∞ of the paper, `Integer` is M = 1, and `Dispersed` any M between. Kernels take one as
an argument: its type picks the rules of a cell when a kernel is compiled, so that a kernel is
written once and its inner loop has no branch. A class without such a rule is an error at that time.

To add a likelihood: its rules in `cells.py`, a class here, and its name in `LIKELIHOODS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from numba import types
from numpy.random import RandomState
from numpy.typing import NDArray

from .._numerics.bessel import LARGE, MEDIUM
from .._numerics.compilation import rule_of
from .._numerics.linking import handed_to, intrinsic
from .._numerics.scaling import power_of_two, powers_of_two
from . import cells

# Beyond 2^53 neighbouring integers are no longer told apart in float64.
_LARGEST_INTEGER = 2.0**53
# Where x and both rates vanish there is no density: such a cell counts as this share of the noise.
_LEAST_ROOT = 1e-2


class _Scales(NamedTuple):
    unit: float = 1.0
    dispersion: float = 1.0


class Likelihood(_Scales):
    """Base of the likelihoods: two numbers, and what a class says for itself.

    Attributes
    ----------
    unit : float
        Computations see X / unit.
    dispersion : float
        φ = 1/M, in the unit of X: the priors speak of activations in units of it.
    """

    __slots__ = ()

    # What the likelihood is for.
    words: ClassVar[str]
    # Whether X must be integers, and the largest |x| that is accepted.
    integers: ClassVar[bool]
    largest: ClassVar[float]
    # The dispersion, where it is part of the model and not found from the data.
    known_dispersion: ClassVar[float | None]
    # Whether minus the log-likelihood is convex in the rates.
    convex: ClassVar[bool]
    # For kernels: whether the unit of X is part of the model, and the rules of a cell.
    fixed_unit: ClassVar[bool]
    cell_rule: ClassVar[Callable]
    curvature_rule: ClassVar[Callable]

    @property
    def mass(self) -> float:
        """What one unit of computations counts against the priors."""
        return self.unit / self.dispersion

    @classmethod
    def unit_for(cls, largest: float) -> float:
        """A unit for computations with numbers up to `largest`."""
        raise NotImplementedError

    def with_roots_above(self, least: float) -> Likelihood:
        """The likelihood where √(x² + 4λ₀λ₁) is at least so large, in units of computations."""
        return self

    def in_unit_of_data(self) -> Likelihood:
        """The likelihood for computations in the unit of X."""
        return self._replace(unit=1.0)

    def cell_units(self, x: NDArray, rates0: NDArray, rates1: NDArray) -> NDArray:
        """Units in which cells of any size are computed without overflow."""
        raise NotImplementedError

    def in_unit_of_cells(self, log_likelihood: NDArray, units: NDArray) -> NDArray:
        """The log-likelihood of cells that was computed in these units."""
        return log_likelihood

    def log_density(
        self, log_likelihood: NDArray, x: NDArray, rates0: NDArray, rates1: NDArray
    ) -> NDArray:
        """Log-density of cells in the unit of X, whose noise has the dispersion."""
        raise NotImplementedError

    def draw(self, rates0: NDArray, rates1: NDArray, random: RandomState) -> NDArray:
        """Draws of cells with these rates, in the unit of X."""
        raise NotImplementedError


class Real(Likelihood):
    """X is real (M = ∞): the log-likelihood of a cell is −D(x | λ₀, λ₁)."""

    __slots__ = ()

    words = "any numbers"
    integers = False
    largest = math.inf
    known_dispersion = None
    convex = True
    fixed_unit = False
    cell_rule = cells.real_cell
    curvature_rule = cells.real_curvature

    @classmethod
    def unit_for(cls, largest: float) -> float:
        """A power of two, so that nothing is rounded: the model has no unit of its own."""
        return power_of_two(largest)

    def cell_units(self, x: NDArray, rates0: NDArray, rates1: NDArray) -> NDArray:
        """Near 1 the squares of cells, which are homogeneous, are in range whatever the unit."""
        largest = np.fmax(np.abs(x), np.maximum(rates0, rates1))
        return powers_of_two(np.maximum(largest, 1e-300))

    def in_unit_of_cells(self, log_likelihood: NDArray, units: NDArray) -> NDArray:
        """Homogeneous, as D is."""
        return units * log_likelihood

    def log_density(
        self, log_likelihood: NDArray, x: NDArray, rates0: NDArray, rates1: NDArray
    ) -> NDArray:
        """The saddle-point density −D/φ − ½ ln(2πφr)."""
        phi = self.dispersion
        root = np.hypot(x, 2 * np.sqrt(rates0) * np.sqrt(rates1))
        logarithm = np.log(2 * np.pi) + np.log(phi) + np.log(np.maximum(root, _LEAST_ROOT * phi))
        return log_likelihood / phi - 0.5 * logarithm

    def draw(self, rates0: NDArray, rates1: NDArray, random: RandomState) -> NDArray:
        """Normal variables: a cell of X / φ has variance λ₀ + λ₁, in units of φ."""
        noise = np.sqrt(self.dispersion) * np.sqrt(rates0 + rates1)
        return rates0 - rates1 + noise * random.normal(size=np.shape(rates0))


class Integer(Likelihood):
    """X is integer (M = 1): the log-likelihood of a cell is that of the Skellam distribution."""

    __slots__ = ()

    words = "counts and differences of counts"
    integers = True
    largest = _LARGEST_INTEGER
    known_dispersion = 1.0
    convex = False
    fixed_unit = True
    cell_rule = cells.integer_cell
    curvature_rule = cells.integer_curvature

    @classmethod
    def unit_for(cls, largest: float) -> float:
        """1: the unit of counts is part of the model."""
        return 1.0

    def cell_units(self, x: NDArray, rates0: NDArray, rates1: NDArray) -> NDArray:
        """1 for each cell."""
        return np.ones(x.shape)

    def log_density(
        self, log_likelihood: NDArray, x: NDArray, rates0: NDArray, rates1: NDArray
    ) -> NDArray:
        """ln P, which is a density already."""
        return log_likelihood

    def draw(self, rates0: NDArray, rates1: NDArray, random: RandomState) -> NDArray:
        """Differences of Poisson variables."""
        return random.poisson(rates0) - random.poisson(rates1)


class Dispersed(Likelihood):
    """X / φ has the Skellam distribution, continued to numbers between the integers (M = 1 / φ).

    The unit of computations is the dispersion φ.
    """

    __slots__ = ()

    words = "any numbers"
    integers = False
    largest = math.inf
    known_dispersion = None
    convex = False
    fixed_unit = True
    cell_rule = cells.integer_cell
    curvature_rule = cells.integer_curvature

    def with_roots_above(self, least: float) -> Likelihood:
        """One with simpler cells, if they are large.

        All cells of a problem have the same rule, so that none knows of the others.
        """
        if least >= LARGE:
            return DispersedLarge(*self)
        return DispersedMedium(*self) if least >= MEDIUM else Dispersed(*self)

    @classmethod
    def of(cls, dispersion: float) -> Dispersed:
        """With this dispersion, in the unit of X."""
        return cls(dispersion, dispersion)

    def cell_units(self, x: NDArray, rates0: NDArray, rates1: NDArray) -> NDArray:
        """The dispersion, for each cell."""
        return np.full(x.shape, self.dispersion)

    def log_density(
        self, log_likelihood: NDArray, x: NDArray, rates0: NDArray, rates1: NDArray
    ) -> NDArray:
        """ln P of X / φ, in the unit of X."""
        return log_likelihood - np.log(self.dispersion)

    def draw(self, rates0: NDArray, rates1: NDArray, random: RandomState) -> NDArray:
        """Differences of Poisson variables, times the dispersion."""
        phi = self.dispersion
        return phi * (random.poisson(rates0 / phi) - random.poisson(rates1 / phi))


class DispersedLarge(Dispersed):
    """The same, where √(x² + 4λ₀λ₁) is large in all cells: few terms of its expansion are enough.

    So it is where noise is large against the dispersion, whatever the components.
    """

    __slots__ = ()

    cell_rule = cells.large_cell
    curvature_rule = cells.real_curvature


class DispersedMedium(DispersedLarge):
    """The same with more terms, where √(x² + 4λ₀λ₁) is not quite as large."""

    __slots__ = ()

    cell_rule = cells.medium_cell


LIKELIHOODS: dict[str, type[Likelihood]] = {"real": Real, "integer": Integer}


def takes_integers(name: object) -> bool:
    """Whether the likelihood of a name is for integers; not so if there is none."""
    return isinstance(name, str) and name in LIKELIHOODS and LIKELIHOODS[name].integers


@intrinsic
def cell(typing_context, likelihood, x, rate0, rate1):
    """U₀, U₁ and the log-likelihood of one cell under `likelihood`."""
    rule = rule_of(likelihood, "cell_rule")
    return handed_to(typing_context, rule, likelihood, x, rate0, rate1, first=1)


@intrinsic
def curvature(typing_context, likelihood, x, rate0, rate1, u0, u1):
    """q of a cell: q (U₀ dλ₀ − U₁ dλ₁)² is the Hessian of −log-likelihood or stands for it.

    0 in a gap.
    """
    rule = rule_of(likelihood, "curvature_rule")
    return handed_to(typing_context, rule, likelihood, x, rate0, rate1, u0, u1, first=1)


@intrinsic
def fixed_unit(typing_context, likelihood):
    """Whether the unit of X is part of the model, as it is for integers."""
    fixed = rule_of(likelihood, "fixed_unit")

    def codegen(context, builder, signature, args):
        return context.get_constant(types.boolean, fixed)

    return types.boolean(likelihood), codegen
