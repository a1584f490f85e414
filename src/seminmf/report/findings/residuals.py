"""What the model leaves over: data minus fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._views.misfit import explained, root_mean_square
from ..subject import Subject

_MOST_ROWS = 10
_N_BINS = 41
# The histogram reaches this far; a few cells far out would leave nothing to see of the others.
_REACH = 0.995


@dataclass(frozen=True)
class Misfit:
    """How well one feature or sample is fitted.

    Attributes
    ----------
    name : str
    rmse : float
        Root mean square of the residuals; of a feature in the unit of the data, of a sample in
        that of the model.
    r_squared : float
        Share of the squares that is explained, NaN if there is nothing to explain.
    q_ratio : float
        Q over its expectation, as for `Residuals`.
    n_observed : int
    """

    name: str
    rmse: float
    r_squared: float
    q_ratio: float
    n_observed: int


@dataclass(frozen=True)
class Histogram:
    """Cells by residual, in the unit of the fit; `n_outside` are beyond the last edges."""

    edges: NDArray
    counts: NDArray
    n_outside: int


@dataclass(frozen=True)
class Residuals:
    """Data minus fit.

    Attributes
    ----------
    rmse : float
        In the unit of the data.
    r_squared : float
        As `r2` returns it: features count as in the fit. NaN if there is nothing to explain.
    q_ratio : float
        Q, the sum of squares of the residuals in units of what noise and dispersion say of their
        cells, over its expectation: the number of cells less that of fitted numbers. NaN if the
        model says nothing of noise, or as many numbers are fitted as observed.
    n_observed : int
    features, samples : lists of Misfit
        The worst, the worst first.
    histogram : Histogram or None
        None if all residuals are 0.
    scaled : bool
        Whether the unit of the fit is not that of the data.
    """

    rmse: float
    r_squared: float
    q_ratio: float
    n_observed: int
    features: list[Misfit]
    samples: list[Misfit]
    histogram: Histogram | None
    scaled: bool

    @classmethod
    def of(cls, subject: Subject) -> Residuals | None:
        """Compare data and fit; None without data."""
        residuals, deviations = subject.residuals, subject.deviations
        if residuals is None or deviations is None:
            return None
        standardised = _standardised(subject, residuals)
        return cls(
            rmse=float(root_mean_square(residuals * subject.units)),
            r_squared=float(explained(residuals, deviations)),
            q_ratio=float(root_mean_square(standardised) ** 2),
            n_observed=int(np.sum(~np.isnan(residuals))),
            features=_worst_features(subject, residuals, deviations, standardised),
            samples=_worst_samples(subject, residuals, deviations, standardised),
            histogram=_histogram(residuals),
            scaled=subject.scaled,
        )


def _standardised(subject: Subject, residuals: NDArray) -> NDArray:
    """Residuals whose mean squares should be 1: what is fitted leaves less than the noise.

    NaN in gaps, and everywhere if nothing can be said.
    """
    expected, n_observed = subject.standard_deviations, np.sum(~np.isnan(residuals))
    n_left = n_observed - subject.n_fitted
    if expected is None or n_left <= 0:
        return np.full(residuals.shape, np.nan)
    ratio = residuals / np.where(expected > 0, expected, np.nan)
    return ratio * np.sqrt(n_observed / n_left)


def _worst_features(
    subject: Subject, residuals: NDArray, deviations: NDArray, standardised: NDArray
) -> list[Misfit]:
    """Those of which the least is explained: their units may differ."""
    shares = explained(residuals, deviations, axis=0)
    errors = root_mean_square(residuals, axis=0) * subject.units
    ratios = root_mean_square(standardised, axis=0) ** 2
    counts = np.sum(~np.isnan(residuals), axis=0)
    order = np.argsort(np.where(np.isnan(shares), np.inf, shares), kind="stable")
    return [
        Misfit(
            subject.feature_names[i],
            float(errors[i]),
            float(shares[i]),
            float(ratios[i]),
            int(counts[i]),
        )
        for i in order[:_MOST_ROWS]
    ]


def _worst_samples(
    subject: Subject, residuals: NDArray, deviations: NDArray, standardised: NDArray
) -> list[Misfit]:
    """Those with the largest residuals."""
    errors = root_mean_square(residuals, axis=1)
    order = np.argsort(np.where(np.isnan(errors), np.inf, -errors), kind="stable")[:_MOST_ROWS]
    shares = explained(residuals[order], deviations[order], axis=1)
    ratios = root_mean_square(standardised[order], axis=1) ** 2
    counts = np.sum(~np.isnan(residuals[order]), axis=1)
    return [
        Misfit(subject.sample_names[j], float(errors[j]), float(part), float(ratio), int(count))
        for j, part, ratio, count in zip(order, shares, ratios, counts, strict=True)
        if count
    ]


def _histogram(residuals: NDArray) -> Histogram | None:
    cells = residuals[~np.isnan(residuals)]
    limit = float(np.quantile(np.abs(cells), _REACH))
    if limit == 0:
        return None
    counts, edges = np.histogram(cells, bins=_N_BINS, range=(-limit, limit))
    return Histogram(edges, counts, n_outside=int(cells.size - counts.sum()))
