"""Gaps of the data, and what the model puts in their place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..subject import Subject
from .components import LEVEL

_MOST_ROWS = 10
# Intervals come from draws for each gap: of more gaps than these only the first are considered.
_MOST_DRAWN = 20_000


@dataclass(frozen=True)
class Gap:
    """A gap, what is predicted for it and, with probability `LEVEL`, within which ends."""

    sample: str
    feature: str
    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Gaps:
    """The gaps.

    Attributes
    ----------
    count, n_cells : int
    rows : list of Gap
        The most uncertain; without posteriors, the first.
    n_considered : int
        Of how many the rows were chosen.
    """

    count: int
    n_cells: int
    rows: list[Gap]
    n_considered: int

    @classmethod
    def of(cls, subject: Subject) -> Gaps | None:
        """Fill the gaps; None without data."""
        if subject.values is None:
            return None
        gaps = np.isnan(subject.values)
        find = _most_uncertain if subject.bayesian else _first
        rows, n_considered = find(subject, gaps) if gaps.any() else ([], 0)
        return cls(int(gaps.sum()), gaps.size, rows, n_considered)


def _first(subject: Subject, gaps: NDArray) -> tuple[list[Gap], int]:
    rows, columns = (cells[:_MOST_ROWS] for cells in np.nonzero(gaps))
    values = np.einsum("nk,kn->n", subject.activations[rows], subject.components[:, columns])
    values += subject.intercept[columns]
    found = [
        Gap(subject.sample_names[j], subject.feature_names[i], value * subject.units[i], None)
        for j, i, value in zip(rows, columns, values.tolist(), strict=True)
    ]
    return found, int(gaps.sum())


def _most_uncertain(subject: Subject, gaps: NDArray) -> tuple[list[Gap], int]:
    """Those with the widest intervals, in the unit of the fit."""
    chosen = _rows_to_draw(gaps)
    data = subject.data.iloc[chosen] if hasattr(subject.data, "iloc") else subject.data[chosen]
    filled, lower, upper = (
        subject.model._of_fit(np.asarray(each, dtype=np.float64))
        for each in subject.model.impute(
            data, return_interval=True, level=LEVEL, n_draws=subject.n_draws(200)
        )
    )
    # A sample without any observed cell has nothing but the prior; concerns tell of it.
    partly = ~gaps[chosen].all(axis=1, keepdims=True)
    rows, columns = np.nonzero(gaps[chosen] & partly)
    widest = np.argsort(-(upper - lower)[rows, columns], kind="stable")[:_MOST_ROWS]
    found = []
    for j, i in zip(rows[widest], columns[widest], strict=True):
        value, low, high = (float(each[j, i] * subject.units[i]) for each in (filled, lower, upper))
        name = subject.sample_names[chosen[j]]
        found.append(Gap(name, subject.feature_names[i], value, (low, high)))
    return found, len(rows)


def _rows_to_draw(gaps: NDArray) -> NDArray:
    """All samples, or the first if they have too many gaps."""
    counts = gaps.sum(axis=1)
    if counts.sum() <= _MOST_DRAWN:
        return np.arange(len(gaps))
    partly = np.flatnonzero((counts > 0) & (counts < gaps.shape[1]))
    return partly[np.cumsum(counts[partly]) <= max(_MOST_DRAWN, gaps.shape[1])]
