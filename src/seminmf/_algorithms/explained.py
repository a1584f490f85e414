"""How much of the data activations and components explain, and each component alone.

One pass over the data, in blocks. All sums are in a unit of their own, a power of two, so that no
square of large numbers overflows and none of small ones vanishes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.executor import per_sample
from .._data.source import row_ranges

# Cells that are looked at at a time: what is computed of them stays in the cache.
_BLOCK = 1 << 14
# The exponent of 0: that of any other number is larger, products of two included.
_NOTHING = -10_000
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Scaled:
    """Numbers that are `values` times two to the power of `exponent`."""

    values: NDArray
    exponent: int

    def __add__(self, other: Scaled) -> Scaled:
        exponent = max(self.exponent, other.exponent)
        parts = (np.ldexp(part.values, part.exponent - exponent) for part in (self, other))
        return Scaled(sum(parts), exponent)

    def over(self, other: Scaled) -> NDArray:
        """These numbers divided by another one; 0 if that is 0, and never infinite.

        Where priors decide and not the data, a fit may be larger than these by any factor.
        """
        if other.values == 0:
            return np.zeros_like(self.values)
        with np.errstate(over="ignore"):
            ratios = np.ldexp(self.values / other.values, self.exponent - other.exponent)
        return np.clip(ratios, -_LARGEST, _LARGEST)


@dataclass(frozen=True)
class Explained:
    """Sums over the observed cells x, of which b + Σ a W is the fit; b is the intercept.

    Attributes
    ----------
    errors : Scaled
        Σ (x − b − Σ a W)².
    whole : Scaled
        Σ (x − b)².
    losses : Scaled of (K,) values
        What the errors would grow by, if a component were taken out.
    amounts : Scaled of (K,) values
        What each component puts into all samples, Σ a |W|, in gaps as well.
    n_observed : int
    """

    errors: Scaled
    whole: Scaled
    losses: Scaled
    amounts: Scaled
    n_observed: int

    def __add__(self, other: Explained) -> Explained:
        return Explained(
            self.errors + other.errors,
            self.whole + other.whole,
            self.losses + other.losses,
            self.amounts + other.amounts,
            self.n_observed + other.n_observed,
        )

    @property
    def r2(self) -> float:
        """1 − errors / whole; 0 if there is nothing to explain, NaN if nothing is observed."""
        if self.n_observed == 0:
            return math.nan
        return float(1 - self.errors.over(self.whole)) if self.whole.values else 0.0

    @property
    def r2_drop(self) -> NDArray:
        """What R² falls by when a component is taken out, and the others stay as they are."""
        if self.n_observed == 0:
            return np.full_like(self.losses.values, math.nan)
        return self.losses.over(self.whole)

    @property
    def shares(self) -> NDArray:
        """Share of each component in all amounts; 0 if there are none."""
        amounts = self.amounts.values
        return amounts / (amounts.sum() or 1.0)


def explain(
    problem: Any, activations: Any, components: NDArray, intercept: NDArray | None
) -> Explained:
    """How much of a problem's data is explained.

    Parameters
    ----------
    problem : Problem or LeastSquares
    activations : (J, K) array, in the form that the problem's executor has
    components : (K, I) array
    intercept : (I,) array or None
        What is added to activations · components. None is 0.
    """
    if intercept is None:
        intercept = np.zeros(components.shape[1])
    shared = components, intercept
    _, (found,) = problem.executor.run(problem, _explain_samples, (activations,), shared)
    return found


class _Factors(NamedTuple):
    """Activations, components that are at most 1 in size, and the units of computations.

    Times 2^`shifts` activations are at most 1 as well. Products are in units of 2^`unit`, of which
    data are at most 1, too. The data alone are so in units of 2^`data_unit`.
    """

    activations: NDArray
    shifts: NDArray
    components: NDArray
    intercept: NDArray
    unit: int
    data_unit: int

    @classmethod
    def of(
        cls, activations: NDArray, components: NDArray, intercept: NDArray, largest: float
    ) -> _Factors:
        components = components.astype(np.float64)
        own = [_exponent(component) for component in components]
        terms = [_exponent(a) + w for a, w in zip(activations.T, own, strict=True)]
        data_unit = max(_exponent(np.array(largest)), _exponent(intercept)) + 1
        unit = max(data_unit, *terms)
        return cls(
            activations,
            np.array(own) - unit,
            np.ldexp(components, -np.array(own)[:, None]),
            intercept,
            unit,
            data_unit,
        )

    def rows(self, samples: Any) -> NDArray:
        """Activations of some samples, at most 1 in size, in float64."""
        return np.ldexp(self.activations[samples].astype(np.float64), self.shifts)

    def totals(self) -> NDArray:
        """Sums (K,) of all samples' activations."""
        step = max(1, _BLOCK // len(self.components))
        parts = (
            self.rows(slice(start, start + step)).sum(axis=0)
            for start in range(0, len(self.activations), step)
        )
        return sum(parts, np.zeros(len(self.components)))


@per_sample(sums=1)
def _explain_samples(
    problem: Any, activations: NDArray, components: NDArray, intercept: NDArray
) -> tuple[tuple, tuple]:
    """The sums of some samples."""
    source, largest = problem.data.source, problem.data.summary.largest
    factors = _Factors.of(activations, components, intercept, largest)
    if source.stores_cells:
        parts = [_of_stored(factors, *cells) for cells in source.stored()]
    else:
        ranges = row_ranges(source, len(components))
        parts = list(problem.executor.map(lambda rows: _of_rows(source, factors, rows), ranges))
    return (), (reduce(add, parts, _nothing_but_amounts(factors)),)


def _nothing_but_amounts(factors: _Factors) -> Explained:
    """What is known before the first cell."""
    amounts = factors.totals() * np.abs(factors.components).sum(axis=1)
    none, zero = np.zeros(len(amounts)), np.zeros(())
    return Explained(
        Scaled(zero, _NOTHING),
        Scaled(zero, _NOTHING),
        Scaled(none, _NOTHING),
        Scaled(amounts, factors.unit),
        0,
    )


def _of_rows(source: Any, factors: _Factors, rows: tuple[int, int]) -> Explained:
    """Sums over a range of samples."""
    return reduce(add, (_of_block(factors, *block) for block in _small_blocks(source, rows)))


def _small_blocks(source: Any, rows: tuple[int, int]) -> Iterator[tuple[slice, NDArray]]:
    """Samples and their data, few at a time: a block of a source may be as large as the data."""
    step = max(1, _BLOCK // source.shape[1])
    for block in source.blocks(*rows):
        for start in range(0, len(block.X), step):
            X = block.X[start : start + step]
            first = block.samples.start + start
            yield slice(first, first + len(X)), X


def _of_block(factors: _Factors, samples: slice, X: NDArray) -> Explained:
    """Sums over some samples, NaN where not observed."""
    own, components = factors.rows(samples), factors.components
    values = np.ldexp(X - factors.intercept, -factors.data_unit)
    observed = ~np.isnan(values)
    values[~observed] = 0.0
    errors = np.ldexp(values, factors.data_unit - factors.unit)
    # Not BLAS, whose sums depend on its number of threads.
    errors -= np.einsum("jk,ki->ji", own, components)
    errors[~observed] = 0.0
    # (e + a W)² − e² = 2 e a W + (a W)², summed over samples first.
    slopes = np.einsum("jk,ji->ki", own, errors)
    squares = np.einsum("jk,ji->ki", own * own, observed.astype(np.float64))
    losses = np.sum(components * (2 * slopes + components * squares), axis=1)
    return _sums(factors, values, errors, losses, int(observed.sum()))


def _of_stored(factors: _Factors, samples: NDArray, features: NDArray, x: NDArray) -> Explained:
    """Sums over some cells of a sparse matrix, whose other cells are gaps."""
    terms = factors.rows(samples) * factors.components.T[features]
    values = np.ldexp(x - factors.intercept[features], -factors.data_unit)
    errors = np.ldexp(values, factors.data_unit - factors.unit) - terms.sum(axis=1)
    losses = np.einsum("nk,nk->k", terms, 2 * errors[:, None] + terms)
    return _sums(factors, values, errors, losses, len(values))


def _sums(
    factors: _Factors, values: NDArray, errors: NDArray, losses: NDArray, n_observed: int
) -> Explained:
    return Explained(
        Scaled(np.sum(errors * errors), 2 * factors.unit),
        Scaled(np.sum(values * values), 2 * factors.data_unit),
        Scaled(losses, 2 * factors.unit),
        Scaled(np.zeros_like(losses), _NOTHING),
        n_observed,
    )


def _exponent(values: NDArray) -> int:
    """The power of two above the size of all values."""
    largest = float(np.max(np.abs(values), initial=0.0))
    return math.frexp(largest)[1] if largest > 0 else _NOTHING
