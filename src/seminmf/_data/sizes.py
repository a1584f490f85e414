"""How large features are, by which they may be scaled."""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._numerics.scaling import powers_of_two
from .source import BlockSource, all_blocks

# Around its mean a feature has a size if that is more of its root mean square than rounding leaves.
_LEAST_SPREAD = 1e-9


class _Moments(NamedTuple):
    """Number, mean and sum of squares around it, of the observed cells of each feature."""

    number: NDArray
    mean: NDArray
    squares: NDArray

    @classmethod
    def of(cls, values: NDArray) -> _Moments:
        """Those of some samples, NaN where not observed."""
        observed = ~np.isnan(values)
        number = observed.sum(axis=0)
        mean = np.sum(values, axis=0, where=observed) / np.maximum(number, 1)
        return cls(number, mean, np.sum((values - mean) ** 2, axis=0, where=observed))

    def joined(self, other: _Moments) -> _Moments:
        """Those of both together."""
        number = self.number + other.number
        share = other.number / np.maximum(number, 1)
        apart = other.mean - self.mean
        between = apart**2 * share * self.number
        return _Moments(number, self.mean + share * apart, self.squares + other.squares + between)


def feature_sizes(source: BlockSource, *, around_mean: bool) -> NDArray:
    """Root mean square (I,) of each feature's observed cells, or their standard deviation.

    It is 1 for features without values, of zeros only, or with what is no number; that of a feature
    that does not vary is its root mean square.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        largest = np.maximum.reduce([_largest(block.X) for block in all_blocks(source)])
        unit = powers_of_two(np.where(np.isfinite(largest), largest, 1.0))
        parts = (_Moments.of(block.X / unit) for block in all_blocks(source))
        moments = reduce(_Moments.joined, parts)
        variance = moments.squares / np.maximum(moments.number, 1)
        size = np.sqrt(variance + moments.mean**2)
        if around_mean:
            spread = np.sqrt(variance)
            size = np.where(spread > _LEAST_SPREAD * size, spread, size)
    return np.where(size > 0, size * unit, 1.0)


def _largest(block: NDArray) -> NDArray:
    return np.max(np.abs(block), axis=0, initial=0.0, where=~np.isnan(block))
