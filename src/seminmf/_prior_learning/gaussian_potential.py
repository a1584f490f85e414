"""What matrices say of shapes and rates: a normal density of their logarithms, which adds up."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class GaussianPotential(NamedTuple):
    """The density exp(−½ ηᵀ P η + hᵀ η), not normalised, so that P and h of two matrices add.

    Attributes
    ----------
    precision : (P, P) array
    linear : (P,) array
        h, which is the precision times the mean.
    """

    precision: NDArray
    linear: NDArray

    @classmethod
    def around(cls, point: NDArray, slope: NDArray, information: NDArray) -> GaussianPotential:
        """The density whose logarithm has this slope at a point, and minus this curvature."""
        return cls(information, information @ point + slope)

    @classmethod
    def weak(cls, point: NDArray, precision: float) -> GaussianPotential:
        """Hardly more than a place to start from."""
        return cls(precision * np.eye(len(point)), precision * point)

    @property
    def mean(self) -> NDArray:
        """The most probable point."""
        return np.linalg.solve(self.precision, self.linear)

    def times(self, weight: float) -> GaussianPotential:
        """The density to the power of `weight`: less of it is remembered."""
        return GaussianPotential(weight * self.precision, weight * self.linear)

    def joined(self, other: GaussianPotential) -> GaussianPotential:
        """The product of two densities."""
        return GaussianPotential(self.precision + other.precision, self.linear + other.linear)

    def log_density(self, point: NDArray) -> float:
        """Its logarithm, but for a constant."""
        return float(point @ (self.linear - 0.5 * self.precision @ point))

    def slope(self, point: NDArray) -> NDArray:
        """Its derivatives."""
        return self.linear - self.precision @ point

    def conflict(self, new: GaussianPotential) -> float:
        """How far `new` pulls the mean, squared, in units of how far it may be expected to.

        It is χ² with as many degrees of freedom as there are parameters if both speak of the same
        ones.
        """
        both = self.joined(new)
        moved = both.mean - self.mean
        expected = np.linalg.inv(self.precision) - np.linalg.inv(both.precision)
        variances, axes = np.linalg.eigh(0.5 * (expected + expected.T))
        counted = variances > 1e-9 * variances.max(initial=0.0)
        return float(np.sum((axes.T @ moved)[counted] ** 2 / variances[counted]))
