"""The factors of a tensor model, beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._estimators.tensor import BaseSNTF
from ._frame import AMOUNTS, SIGNED, heat_map, limit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches of a panel.
_WIDTH, _HEIGHT = 2.4, 3.6


def factors(model: Any, names: list[str] | None = None) -> NDArray:
    """Draw the factors of a tensor model, each as a heat map.

    Rows are the first axis, columns all others. Signed factors are red above 0 and blue below;
    others are the darker the larger.

    Parameters
    ----------
    model : SkellamSNTF or BayesianSkellamSNTF
        A fitted model.
    names : list of str or None, default=None
        Which factors to draw; None draws all.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One for each factor.

    Examples
    --------
    >>> import numpy as np
    >>> from seminmf import SkellamSNTF, plot
    >>> X = np.random.RandomState(0).poisson(2, size=(9, 5, 4))
    >>> model = SkellamSNTF("nr,jr,kr->njk", 2, likelihood="integer", random_state=0).fit(X)
    >>> [ax.get_title() for ax in plot.factors(model)]
    ['nr', 'jr', 'kr']
    """
    from matplotlib.figure import Figure

    if not isinstance(model, BaseSNTF):
        raise ValueError(
            "model must be a SkellamSNTF or BayesianSkellamSNTF; "
            f"found an object of type {type(model).__name__}."
        )
    check_is_fitted(model)
    parts = model.parts_
    unknown = [name for name in names or () if name not in parts]
    if unknown:
        raise ValueError(
            f"names must be names of factors ({', '.join(map(repr, parts))}); found {unknown[0]!r}."
        )
    chosen = names or list(parts)
    figure = Figure(figsize=(_WIDTH * len(chosen), _HEIGHT), layout="constrained")
    panels = figure.subplots(1, len(chosen), squeeze=False)[0]
    for name, ax in zip(chosen, panels, strict=True):
        _draw(ax, name, model._fitted.model.plan.factors[name], parts[name])
    return panels


def _draw(ax: Axes, name: str, axes: tuple, parts: NDArray) -> None:
    """One factor."""
    values = parts[0] - parts[1] if len(parts) == 2 else parts[0]
    flat = values.reshape(len(values), -1)
    limit = limit_of(flat)
    low, colours = (-limit, SIGNED) if len(parts) == 2 else (0.0, AMOUNTS)
    drawn = heat_map(ax, flat, cmap=colours, vmin=low, vmax=limit)
    ax.set_title(name)
    ax.set_ylabel(str(axes[0]))
    ax.set_xlabel("".join(map(str, axes[1:])))
    if len(axes) == 1:
        ax.set_xticks([])
    elif flat.shape[1] <= 10:
        ax.set_xticks(np.arange(flat.shape[1]))
    ax.figure.colorbar(drawn, ax=ax, location="bottom")
