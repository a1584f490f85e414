"""How far a fit is from the data, gaps left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def root_mean_square(values: NDArray, axis: int | None = None) -> NDArray:
    """Of the values that are not NaN; NaN if there are none, and no overflow on the way."""
    largest = np.max(np.abs(values), initial=0.0, where=~np.isnan(values))
    unit = largest if largest > 0 else 1.0
    counts = np.sum(~np.isnan(values), axis=axis)
    squares = np.asarray(np.nansum((values / unit) ** 2, axis=axis))
    means = np.divide(squares, counts, out=np.full(squares.shape, np.nan), where=counts > 0)
    return unit * np.sqrt(means)


def explained(residuals: NDArray, deviations: NDArray, axis: int | None = None) -> NDArray:
    """R² = 1 − Σ residual² / Σ deviation²; NaN if nothing deviates.

    Deviations are data minus the intercept of the model, if it has one.
    """
    left, whole = (root_mean_square(values, axis) for values in (residuals, deviations))
    ratio = np.divide(left, whole, out=np.full(np.shape(left), np.nan), where=whole > 0)
    return 1 - ratio**2
