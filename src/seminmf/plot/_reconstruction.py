"""The data against what the factorization makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._data.opening import check_array
from .._estimators.tensor import BaseSNTF
from .._views.misfit import explained, root_mean_square
from .._views.pictures import BLACK, BLUE
from ._frame import AMOUNTS, axes_for, check_axes, colour_bar, limit_of
from ._model import check_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS = 2000
# Axes reach no further from these quantiles than by half of what is between them.
_CENTRE = (0.001, 0.999)
_REACH = 0.5
# Differences below this share of the largest cell are none.
_ROUNDING = 1e-9


def reconstruction(
    model: Any, X: Any, ax: Axes | None = None, *, tensor: str | None = None
) -> Axes:
    """Draw reconstructed against observed cells.

    Parameters
    ----------
    model : SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF, SkellamSNTF or BayesianSkellamSNTF
        Fitted.
    X : array-like of shape (n_samples, n_features), or what tensor models take
        Data; gaps (NaN) are left out.
    ax : matplotlib Axes or None, default=None
        Where to draw; None makes a new figure.
    tensor : str or None, default=None
        Of several tensors, the one to draw; None is the first that X has.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    Reconstructed is ``inverse_transform(transform(X))``. On the diagonal it equals X. Up to 2000
    cells are points; more of them are counted in hexagons. R² is that of the method `r2`. If a few
    cells are far from all others, they are not drawn, and their number is.

    Examples
    --------
    >>> from seminmf import SkellamSNMF, plot
    >>> from seminmf.datasets import load_ionosphere
    >>> X, _ = load_ionosphere(return_X_y=True)
    >>> model = SkellamSNMF(5, tol=1e-3, random_state=0).fit(X)
    >>> plot.reconstruction(model, X).get_title()
    'R² = 0.69..., RMSE = 0.34...'
    """
    from matplotlib.ticker import MaxNLocator

    check_model(model, tensors=True)
    check_axes(ax)
    if isinstance(model, BaseSNTF):
        data, approximation = _of_tensor(model, X, tensor)
    elif tensor is not None:
        raise ValueError(f"tensor must be None for a {type(model).__name__}; found {tensor!r}.")
    else:
        approximation = model.inverse_transform(np.asarray(model.transform(X))).astype(np.float64)
        data = check_array(model, X, fitted=True).astype(np.float64)
    observed = ~np.isnan(data)
    x, fitted = data[observed], approximation[observed]
    ax = axes_for(ax, width=5.3, height=4.6)
    ends = _ends(x, fitted)
    if len(x) <= _MOST_POINTS:
        ax.plot(x, fitted, ".", color=BLUE, alpha=0.5, markeredgewidth=0)
    else:
        _draw_counts(ax, x, fitted, ends)
    ax.axline((0, 0), slope=1, color=BLACK, linewidth=0.8)
    ax.set(xlim=ends, ylim=ends, box_aspect=1, xlabel="observed", ylabel="reconstructed")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(6))
    deviations = data - getattr(model, "intercept_", 0.0)
    quality = _quality(data - approximation, deviations)
    ax.set_title(quality + _outside(x, fitted, ends), fontsize="medium")
    return ax


def _of_tensor(model: Any, X: Any, tensor: str | None) -> tuple[NDArray, NDArray]:
    """A tensor of X, and what the model makes of it."""
    cells = model._cells(X)
    name = next(iter(cells)) if tensor is None else tensor
    if name not in cells:
        names = ", ".join(map(repr, cells))
        raise ValueError(f"tensor must be a tensor of X ({names}); found {tensor!r}.")
    data, approximation = cells[name]
    return data.astype(np.float64), approximation.astype(np.float64)


def _ends(x: NDArray, fitted: NDArray) -> tuple[float, float]:
    """Ends of both axes, with a margin: cells far out would make a dot of all others."""
    cells = np.concatenate([x, fitted])
    low, high = float(cells.min()), float(cells.max())
    first, last = np.quantile(x, _CENTRE)
    if first < last:
        reach = _REACH * (last - first)
        low, high = max(low, first - reach), min(high, last + reach)
    size = limit_of(cells)
    margin = 0.03 * (high - low) if high - low > _ROUNDING * size else size
    return low - margin, high + margin


def _quality(residuals: NDArray, deviations: NDArray) -> str:
    """R², unless there is nothing to explain, and RMSE."""
    r2 = explained(residuals, deviations)
    words = "" if np.isnan(r2) else f"R² = {r2:.3f}, "
    return f"{words}RMSE = {root_mean_square(residuals):.3g}"


def _outside(x: NDArray, fitted: NDArray, ends: tuple[float, float]) -> str:
    """How many cells are not drawn."""
    low, high = ends
    n_outside = np.sum((np.minimum(x, fitted) < low) | (np.maximum(x, fitted) > high))
    return f"\n{n_outside} of {len(x)} cells are further out" if n_outside else ""


def _draw_counts(ax: Axes, x: NDArray, fitted: NDArray, ends: tuple[float, float]) -> None:
    """Hexagons, the darker the more cells; one cell alone is not white."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    colours = ListedColormap(colormaps[AMOUNTS](np.linspace(0.2, 1, 256)))
    extent = (*ends, *ends)
    counts = ax.hexbin(
        x, fitted, gridsize=50, bins="log", mincnt=1, cmap=colours, extent=extent, linewidths=0.1
    )
    colour_bar(ax, counts, "cells")
