"""The components: signed bars, or a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._estimators import validation as check
from .._views.pictures import BLACK, BLUE, GREY, ORANGE
from ._frame import (
    SIGNED,
    axes_for,
    check_axes,
    colour_bar,
    heat_map,
    inches,
    limit_of,
    round_below,
)
from ._model import check_model, component_order, component_titles, largest_features, relative
from ._names import (
    CHARACTER,
    feature_label,
    feature_names_of,
    height_below,
    name_columns,
    name_rows,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_FEATURES = {"bars": 30, "heatmap": 1000}
_MOST_COLUMNS_OF_BARS = 8
# From zero line to zero line, in units of the longest bar: those of neighbours do not meet.
_SPACING = 2.2
_MEANINGS = {
    "none": "value of the component",
    "data": "added to the mean sample",
    "each": "value, relative to the largest",
}


def components(
    model: Any,
    ax: Axes | None = None,
    *,
    kind: str = "auto",
    order: str = "share",
    feature_names: Any = None,
    max_features: int | None = None,
    scale: str = "none",
) -> Axes:
    """Draw the components.

    Parameters
    ----------
    model : SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF
        Fitted.
    ax : matplotlib Axes or None, default=None
        Where to draw; None makes a new figure, as large as its content needs.
    kind : {"auto", "bars", "heatmap"}, default="auto"
        "bars" has a column for each component, with bars to both sides of its zero line, on one
        scale for all. "heatmap" has a row for each component. "auto" draws bars if there are at
        most 8 components and 30 features.
    order : {"share", "index"}, default="share"
        The components with the largest share of all amounts first, or in the model's order. The
        numbers that are drawn are always those of the model, from 0.
    feature_names : list of str or None, default=None
        None takes the names that the model was fitted with, or numbers from 0.
    max_features : int or None, default=None
        How many features to draw: those with the largest |values|, relative to the largest of
        their component. None is 30 for bars, and 1000 for a heat map.
    scale : {"none", "data", "each"}, default="none"
        "none" draws `components_`. "data" multiplies each component by its mean activation: what it
        adds to the mean sample, in the unit of X. That makes components of `EuclideanSNMF`
        comparable, whose own sizes mean nothing. "each" divides each component by its largest
        |value|, so that the pattern of each can be seen, however small it is.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    The percentages are the components' shares in the total of all amounts (`amounts_`).

    Examples
    --------
    >>> from seminmf import SkellamSNMF, plot
    >>> from seminmf.datasets import load_ionosphere
    >>> X, _ = load_ionosphere(return_X_y=True, as_frame=True)
    >>> model = SkellamSNMF(3, tol=1e-3, random_state=0).fit(X)
    >>> ax = plot.components(model)
    >>> ax.images[0].get_array().shape
    (3, 34)
    """
    check_model(model)
    check_axes(ax)
    check.check_choice("kind", kind, ("auto", "bars", "heatmap"))
    check.check_choice("scale", scale, tuple(_MEANINGS))
    picked = component_order(model, order)
    names = feature_names_of(model, feature_names)
    if max_features is not None:
        check.check_count("max_features", max_features)
    if kind == "auto":
        n_shown = min(max_features or len(names), len(names))
        few = n_shown <= _MOST_FEATURES["bars"] and len(picked) <= _MOST_COLUMNS_OF_BARS
        kind = "bars" if few else "heatmap"
    values = _scaled(model, scale)[picked]
    shown = largest_features(values, max_features or _MOST_FEATURES[kind])
    table = _Table(
        values[:, shown],
        component_titles(model, picked),
        [names[i] for i in shown],
        feature_label(len(shown), len(names)),
        _MEANINGS[scale],
    )
    return _draw_bars(ax, table) if kind == "bars" else _draw_heat_map(ax, table)


class _Table(NamedTuple):
    """What is drawn (K, I), and what is written beside it."""

    values: NDArray
    components: list[str]
    features: list[str]
    feature_label: str
    meaning: str


def _scaled(model: Any, scale: str) -> NDArray:
    """The components (K, I), in the unit that was asked for."""
    values = model.components_.astype(np.float64)
    if scale == "data":
        return values * model.activations_.mean(axis=0)[:, None]
    if scale == "each":
        return relative(values)
    return values


def _draw_heat_map(ax: Axes | None, table: _Table) -> Axes:
    n_components, n_features = table.values.shape
    width = float(np.clip(2.5 + 0.2 * n_features, 6, 15))
    height = max(0.22 * n_components, 1.8)
    ax = axes_for(ax, width, 0.6 + height + height_below(table.features, width - 2))
    limit = limit_of(table.values)
    image = heat_map(ax, table.values, cmap=SIGNED, vmin=-limit, vmax=limit)
    colour_bar(ax, image, table.meaning)
    name_rows(ax, table.components)
    name_columns(ax, table.features)
    ax.set(xlabel=table.feature_label, ylabel="component (share)")
    return ax


def _draw_bars(ax: Axes | None, table: _Table) -> Axes:
    n_components, n_features = table.values.shape
    width = 2.5 + n_components * float(np.clip(9 / n_components, 0.5, 1.5))
    ax = axes_for(ax, width, height=1.5 + 0.22 * n_features)
    limit = limit_of(table.values)
    zeros = _SPACING * limit * np.arange(n_components)
    for zero, row in zip(zeros, table.values, strict=True):
        colours = np.where(row < 0, BLUE, ORANGE)
        ax.barh(np.arange(n_features), row, left=zero, height=0.75, color=colours, zorder=2)
        ax.axvline(zero, color=BLACK, linewidth=0.8, zorder=3)
    for zero in zeros[1::2]:  # so that the eye knows which column it is in
        half = _SPACING / 2 * limit
        ax.axvspan(zero - half, zero + half, color=GREY, alpha=0.1, linewidth=0, zorder=0)
    ax.set_xlim(-_SPACING / 2 * limit, zeros[-1] + _SPACING / 2 * limit)
    ax.set_ylim(n_features - 0.4, -0.6)
    ax.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
    name_rows(ax, table.features)
    ax.set_ylabel(table.feature_label)
    _name_columns_of_bars(ax, zeros, limit, table)
    return ax


def _name_columns_of_bars(ax: Axes, zeros: NDArray, limit: float, table: _Table) -> None:
    """Components on top, values below; where there is no room for these, the label has them."""
    ax.set_title("component (share)", fontsize="medium")
    titles = [title.replace(" ", "\n") for title in table.components]
    ax.set_xticks(zeros, titles, fontsize="small")
    ax.tick_params(axis="x", which="major", bottom=False, labelbottom=False, labeltop=True)
    value = round_below(0.75 * limit)
    numbers = [f"−{value:g}", f"{value:g}"]
    gap = min(2 * value, _SPACING * limit - 2 * value) / (_SPACING * limit)
    has_room = inches(ax)[0] / len(zeros) * gap > CHARACTER * (len(numbers[0]) + 1)
    ax.set_xticks(
        (zeros[:, None] + [-value, value]).ravel(),
        (numbers if has_room else ["", ""]) * len(zeros),
        minor=True,
        fontsize="small",
    )
    ax.set_xlabel(table.meaning + ("" if has_room else f", ticks at ±{value:g}"))
