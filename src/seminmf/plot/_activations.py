"""The activations: a sequential heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._views.pictures import BLACK
from ._frame import (
    AMOUNTS,
    averaged,
    axes_for,
    check_axes,
    colour_bar,
    heat_map,
    inches,
    limit_of,
    round_below,
)
from ._model import (
    activations_of,
    amounts_of,
    check_flag,
    check_model,
    component_order,
    component_titles,
)
from ._names import CHARACTER, name_columns, name_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Few very large activations would leave all others white.
_DARKEST = 0.99
# About as many as there are pixels.
_MOST_COLUMNS = 500


def activations(
    model: Any,
    ax: Axes | None = None,
    X: Any = None,
    *,
    sort: bool = False,
    order: str = "share",
) -> Axes:
    """Draw the activations: a row for each component, a column for each sample.

    Parameters
    ----------
    model : SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF
        Fitted.
    ax : matplotlib Axes or None, default=None
        Where to draw; None makes a new figure.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Samples whose activations are drawn. None is the training data.
    sort : bool, default=False
        Whether to put the samples of a cluster side by side, the strongest first. A cluster is
        what `predict` returns: the component with the largest amount.
    order : {"share", "index"}, default="share"
        The components with the largest share of all amounts first, or in the model's order. The
        numbers that are drawn are always those of the model, from 0.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    The colour follows the square root of the activation, and the darkest is for the largest
    hundredth: some activations are often much larger than all others. More than 500 samples are
    drawn as means of neighbours.

    Examples
    --------
    >>> from seminmf import SkellamSNMF, plot
    >>> from seminmf.datasets import load_ionosphere
    >>> X, _ = load_ionosphere(return_X_y=True)
    >>> model = SkellamSNMF(3, tol=1e-3, random_state=0).fit(X)
    >>> ax = plot.activations(model, sort=True)
    >>> ax.images[0].get_array().shape
    (3, 351)
    """
    check_model(model)
    check_axes(ax)
    check_flag("sort", sort)
    picked = component_order(model, order)
    values = activations_of(model, X).astype(np.float64)[:, picked]
    n_samples, n_components = values.shape
    ax = axes_for(ax, width=9, height=1.5 + 0.25 * n_components)
    if sort:
        places = np.argsort(picked)
        clusters = places[np.argmax(amounts_of(model, X), axis=1)]
        samples = np.lexsort((-values[np.arange(n_samples), clusters], clusters))
        _draw(ax, values[samples])
        _mark_clusters(ax, clusters[samples], picked)
    else:
        _draw(ax, values)
        name_columns(ax, [str(j) for j in range(n_samples)])
        ax.set_xlabel("sample")
    name_rows(ax, component_titles(model, picked))
    ax.set_ylabel("component (share)")
    return ax


def _draw(ax: Axes, values: NDArray) -> None:
    from matplotlib.colors import PowerNorm

    columns = averaged(values, _MOST_COLUMNS)
    limit = float(np.quantile(columns, _DARKEST, method="higher")) or limit_of(columns)
    image = heat_map(
        ax,
        columns.T,
        cmap=AMOUNTS,
        norm=PowerNorm(0.5, vmin=0, vmax=limit),
        extent=(-0.5, len(values) - 0.5, values.shape[1] - 0.5, -0.5),
    )
    bar = colour_bar(ax, image, "activation", "max" if columns.max() > limit else "neither")
    bar.set_ticks(sorted({0.0, *(round_below(part**2 * limit) for part in (0.25, 0.5, 0.75, 1))}))


def _mark_clusters(ax: Axes, clusters: NDArray, picked: NDArray) -> None:
    """Lines between the clusters of sorted samples, and the number of each below it."""
    starts = np.flatnonzero(np.diff(clusters, prepend=-1))
    ends = np.append(starts[1:], len(clusters))
    for start in starts[1:]:
        ax.axvline(start - 0.5, color=BLACK, linewidth=0.8)
    names = [str(k) for k in picked[clusters[starts]]]
    widths = inches(ax)[0] * (ends - starts) / len(clusters)
    shown = [
        name if width > CHARACTER * (len(name) + 1) else ""
        for name, width in zip(names, widths, strict=True)
    ]
    ax.set_xticks((starts + ends - 1) / 2, shown, fontsize="small")
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel(f"{len(clusters)} samples, by cluster")
