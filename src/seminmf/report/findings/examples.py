"""The samples that are nearest to a component alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..subject import Subject
from .components import MOST_COMPONENTS

_MOST_EXAMPLES = 5


@dataclass(frozen=True)
class Example:
    """A sample, and the component's share of all amounts in it."""

    sample: str
    share: float


@dataclass(frozen=True)
class Examples:
    """The nearest samples of each component, by its index, in the order of the shares.

    `from_data` tells samples of the data given from those of the fit.
    """

    nearest: dict[int, list[Example]]
    from_data: bool

    @classmethod
    def of(cls, subject: Subject, order: NDArray) -> Examples:
        """Find the samples in which a component has the largest part."""
        amounts = subject.amounts
        totals = amounts.sum(axis=1, keepdims=True)
        parts = np.divide(amounts, totals, out=np.zeros_like(amounts), where=totals > 0)
        nearest = {}
        for k in order[:MOST_COMPONENTS]:
            # Where the parts are equal, the larger amount is the better example.
            first = np.lexsort((-amounts[:, k], -parts[:, k]))[:_MOST_EXAMPLES]
            nearest[int(k)] = [
                Example(subject.sample_names[j], float(parts[j, k]))
                for j in first
                if parts[j, k] > 0
            ]
        return cls(nearest, from_data=subject.data is not None)
