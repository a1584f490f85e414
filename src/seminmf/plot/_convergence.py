"""The way to the optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._views.ending import ending
from .._views.pictures import BLUE, GREY
from ._frame import axes_for, check_axes
from ._model import check_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DOTS = 100


def convergence(model: Any, ax: Axes | None = None) -> Axes:
    """Draw how far the objective was from its end, and say why the fit ended.

    Parameters
    ----------
    model : SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF
        Fitted. For `BayesianSkellamSNMF` the objective is the lower bound.
    ax : matplotlib Axes or None, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    Both axes are logarithmic. A value belongs to the beginning of its iteration: that of iteration
    1 is the start's. What is drawn is the distance from where this fit ended, which is not the
    optimum if it was stopped on its way.

    Examples
    --------
    >>> from seminmf import SkellamSNMF, plot, sample_skellam_snmf
    >>> X, _, _ = sample_skellam_snmf(50, 5, 2, random_state=0)
    >>> model = SkellamSNMF(2, likelihood="integer", random_state=0).fit(X)
    >>> plot.convergence(model).get_title().startswith("converged after")
    True
    """
    check_model(model)
    check_axes(ax)
    bayesian = hasattr(model, "lower_bounds_")
    values = model.lower_bounds_ if bayesian else model.objectives_
    with np.errstate(invalid="ignore"):  # objectives of huge numbers may be infinite
        distances = values[-1] - values[:-1]
    drawn = np.isfinite(distances) & (distances > 0)
    ax = axes_for(ax)
    if drawn.any():
        marker = "." if len(distances) <= _MOST_DOTS else ""
        ax.loglog(np.arange(1, len(values))[drawn], distances[drawn], color=BLUE, marker=marker)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.grid(color=GREY, alpha=0.25)
    else:
        ax.set(xticks=[], yticks=[])
        words = "No iterations" if len(distances) == 0 else "The objective did not change"
        ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center")
    name = "lower bound" if bayesian else "objective"
    ax.set(xlabel="iteration", ylabel=f"{name}: distance from its end")
    ax.set_title(ending(model.stop_reason_, model.n_iter_), fontsize="medium")
    return ax
