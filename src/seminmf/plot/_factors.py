"""The factors of a tensor model, beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._estimators import validation as check
from .._estimators.tensor import BaseSNTF
from .._estimators.tensor_tables import FactorTable, factor_tables, texts_of
from .._views.pictures import AMBER, BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY
from ._frame import AMOUNTS, SIGNED, averaged, heat_map, limit_of
from ._names import LINE, PLAIN, name_columns, name_rows, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KINDS = ("auto", "heatmap", "lines")
_COLOURS = (BLUE, ORANGE, GREEN, PINK, AMBER, SKY, BLACK)
# More columns are no lines that one can tell apart, and fewer rows make no line.
_MOST_LINES, _LEAST_POINTS = len(_COLOURS), 8
# More rows are drawn as means of neighbours.
_MOST_ROWS = 1000
_PANELS_ACROSS = 4
# Inches of a panel.
_LEAST_WIDTH, _MOST_WIDTH, _LINES_WIDTH = 2.4, 9.0, 4.0
_LEAST_HEIGHT, _MOST_HEIGHT = 3.2, 9.0
_COLUMN = 0.14


def factors(model: Any, names: Any = None, *, kind: Any = "auto") -> NDArray:
    """Draw the factors of a tensor model, each as lines or as a heat map.

    The axis of the samples goes down, or else that of lags or of the data, and latent cells go
    across. Signed factors are red above 0 and blue below; others are the darker the larger.

    Parameters
    ----------
    model : SkellamSNTF or BayesianSkellamSNTF
        A fitted model.
    names : str, list of str or None, default=None
        Which factors to draw; None draws all.
    kind : {"auto", "heatmap", "lines"} or dict of them, default="auto"
        For all factors, or by their names. "auto" draws lines where the axis of the data is one of
        lags, or has labels that are rising numbers or dates, with no more than 7 latent cells; and
        for a factor of one axis without names.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        One for each factor.

    Notes
    -----
    Names of axes and of their values are those of X, where it has any. More than 1000 rows are
    drawn as means of neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from seminmf import SkellamSNTF, plot
    >>> X = np.random.RandomState(0).poisson(2, size=(9, 5, 4))
    >>> model = SkellamSNTF("nr,jr,kr->njk", 2, likelihood="integer", random_state=0).fit(X)
    >>> [ax.get_title() for ax in plot.factors(model)]
    ['nr', 'jr', 'kr']
    """
    if not isinstance(model, BaseSNTF):
        raise ValueError(
            "model must be a SkellamSNTF or BayesianSkellamSNTF; "
            f"found an object of type {type(model).__name__}."
        )
    check_is_fitted(model)
    tables = factor_tables(model)
    chosen = _check_names(names, tables)
    kinds = _kinds(kind, tables)
    panels = _panels([tables[name] for name in chosen], [kinds[name] for name in chosen])
    for name, ax in zip(chosen, panels, strict=True):
        draw = _draw_lines if kinds[name] == "lines" else _draw_heat_map
        draw(ax, tables[name])
        ax.set_title(tidy(name), **PLAIN)
    return panels


def _check_names(names: Any, tables: dict[str, FactorTable]) -> list[str]:
    chosen = [names] if isinstance(names, str) else list(tables if names is None else names)
    unknown = [name for name in chosen if name not in tables]
    if unknown or not chosen:
        found = repr(unknown[0]) if unknown else "none"
        raise ValueError(
            f"names must be names of factors ({', '.join(map(repr, tables))}); found {found}."
        )
    return chosen


def _kinds(kind: Any, tables: dict[str, FactorTable]) -> dict[str, str]:
    """How each factor is drawn."""
    given = kind if isinstance(kind, dict) else dict.fromkeys(tables, kind)
    for name, one in given.items():
        if name not in tables:
            raise ValueError(
                f"kind must have names of factors ({', '.join(map(repr, tables))}); found {name!r}."
            )
        check.check_choice("kind", one, _KINDS)
    found = {}
    for name, table in tables.items():
        found[name] = given.get(name, "auto")
        if found[name] == "auto":
            found[name] = "lines" if _are_lines(table) else "heatmap"
    return found


def _are_lines(table: FactorTable) -> bool:
    """Whether lines say more than colours do."""
    n_rows, n_columns = table.values.shape
    if n_rows < _LEAST_POINTS or n_columns > _MOST_LINES:
        return False
    return table.is_ordered or (n_columns == 1 and not _has_names(table))


def _has_names(table: FactorTable) -> bool:
    return np.asarray(table.rows.values).dtype.kind in "OU"


def _panels(tables: list[FactorTable], kinds: list[str]) -> NDArray:
    """Axes of a new figure, up to four beside each other, as large as their content needs."""
    from matplotlib.figure import Figure

    sizes = [_size(*each) for each in zip(tables, kinds, strict=True)]
    across = min(len(tables), _PANELS_ACROSS)
    rows = [sizes[n : n + across] for n in range(0, len(sizes), across)]
    width = max(sum(w for w, _ in row) for row in rows)
    heights = [max(h for _, h in row) for row in rows]
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    outer = figure.add_gridspec(len(rows), 1, height_ratios=heights)
    panels = []
    for n, row in enumerate(rows):
        ratios = [w for w, _ in row]
        spare = width - sum(ratios)
        if spare > 1e-9:
            ratios.append(spare)  # an empty place
        inner = outer[n].subgridspec(1, len(ratios), width_ratios=ratios)
        panels += [figure.add_subplot(inner[m]) for m in range(len(row))]
    return np.array(panels, dtype=object)


def _size(table: FactorTable, kind: str) -> tuple[float, float]:
    """Inches of a panel."""
    n_rows, n_columns = table.values.shape
    if kind == "lines":
        return _LINES_WIDTH, _LEAST_HEIGHT
    height = 1.4 + LINE * n_rows if _has_names(table) else _LEAST_HEIGHT
    width = 1.6 + _COLUMN * n_columns
    return (
        float(np.clip(width, _LEAST_WIDTH, _MOST_WIDTH)),
        float(np.clip(height, _LEAST_HEIGHT, _MOST_HEIGHT)),
    )


def _draw_heat_map(ax: Axes, table: FactorTable) -> None:
    n_rows, n_columns = table.values.shape
    limit = limit_of(table.values)
    low, colours = (-limit, SIGNED) if table.signed else (0.0, AMOUNTS)
    drawn = heat_map(
        ax,
        averaged(table.values, _MOST_ROWS),
        cmap=colours,
        vmin=low,
        vmax=limit,
        extent=(-0.5, n_columns - 0.5, n_rows - 0.5, -0.5),
    )
    name_rows(ax, [tidy(text) for text in texts_of(table.rows)])
    ax.set_ylabel(tidy(table.rows.name), **PLAIN)
    if n_columns == 1:
        ax.set_xticks([])
    else:
        name_columns(ax, [tidy(name) for name in table.columns])
    ax.set_xlabel(tidy(table.column_title), **PLAIN)
    bar = ax.figure.colorbar(drawn, ax=ax, location="bottom")
    bar.ax.locator_params(nbins=4)


def _draw_lines(ax: Axes, table: FactorTable) -> None:
    places = np.asarray(table.rows.values)
    if not table.is_ordered:
        places = np.arange(len(table.values))
    for values, name, colour in zip(table.values.T, table.columns, _cycled(table), strict=True):
        ax.plot(places, values, color=colour, linewidth=1.2, label=tidy(name))
    if table.signed:
        ax.axhline(0, color=GREY, linewidth=0.8)
    else:
        ax.set_ylim(bottom=0)
    ax.set_xlabel(tidy(table.rows.name), **PLAIN)
    ax.margins(x=0)
    ax.tick_params(axis="x", rotation=30 if places.dtype.kind == "M" else 0)
    if table.values.shape[1] > 1:
        legend = ax.legend(title=tidy(table.column_title), fontsize="small", ncols=2)
        for text in (*legend.get_texts(), legend.get_title()):
            text.set(**PLAIN)


def _cycled(table: FactorTable) -> list[str]:
    return [_COLOURS[n % len(_COLOURS)] for n in range(table.values.shape[1])]
