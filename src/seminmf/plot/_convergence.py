"""The way to the optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._views.ending import ending_of, is_drawn
from .._views.pictures import BLUE, GREY
from ._frame import axes_for, check_axes
from ._model import check_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DOTS = 100


def convergence(model: Any, ax: Axes | None = None) -> Axes:
    """Draw how far the objective was from its end, and say why the fit ended.

    For draws from a posterior, draw the log-likelihood after each sweep.

    Parameters
    ----------
    model : SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF, SkellamSNTF or BayesianSkellamSNTF
        Fitted. For a mean field the objective is the lower bound.
    ax : matplotlib Axes or None, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    Both axes are logarithmic. A value belongs to the beginning of its iteration: that of iteration
    1 is the start's. What is drawn is the distance from where this fit ended, which is not the
    optimum if it was stopped on its way. A log-likelihood of draws rises at first, if at all, and
    should then look like noise around a level.

    Examples
    --------
    >>> from seminmf import SkellamSNMF, plot, sample_skellam_snmf
    >>> X, _, _ = sample_skellam_snmf(50, 5, 2, random_state=0)
    >>> model = SkellamSNMF(2, likelihood="integer", random_state=0).fit(X)
    >>> plot.convergence(model).get_title().startswith("converged after")
    True
    """
    check_model(model, tensors=True)
    check_axes(ax)
    bayesian = hasattr(model, "lower_bounds_")
    values = model.lower_bounds_ if bayesian else model.objectives_
    ax = axes_for(ax)
    if is_drawn(model):
        ax.plot(np.arange(len(values)), values, color=BLUE, lw=0.6)
        ax.grid(color=GREY, alpha=0.25)
        ax.set(xlabel="sweep", ylabel="log-likelihood")
    else:
        _draw_distances(ax, values, "lower bound" if bayesian else "objective")
    ax.set_title(ending_of(model), fontsize="medium")
    return ax


def _draw_distances(ax: Axes, values: NDArray, name: str) -> None:
    """Distances of the objective from its end."""
    with np.errstate(invalid="ignore"):  # objectives of huge numbers may be infinite
        distances = values[-1] - values[:-1]
    drawn = np.isfinite(distances) & (distances > 0)
    if drawn.any():
        marker = "." if len(distances) <= _MOST_DOTS else ""
        ax.loglog(np.arange(1, len(values))[drawn], distances[drawn], color=BLUE, marker=marker)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.grid(color=GREY, alpha=0.25)
    else:
        ax.set(xticks=[], yticks=[])
        words = "No iterations" if len(distances) == 0 else "The objective did not change"
        ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center")
    ax.set(xlabel="iteration", ylabel=f"{name}: distance from its end")
