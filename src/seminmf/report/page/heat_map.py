"""Tables whose cells are colours: signed values around zero, or amounts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._views.markup import Markup, element
from ..findings.clusters import Clusters
from ..findings.components import HeatMap
from .tables import scroll_box
from .wording import count, number, shortened

LEVELS = 8
_LONGEST_NAME = 24
# Up to so many columns have room for their numbers.
_MOST_NUMBERS = 12


def signed_heat_map(label: str, heat_map: HeatMap, row: str | None = None) -> Markup:
    """Components × features; each row has its own scale of colours. `row` is what a row is."""
    roomy = len(heat_map.features) <= _MOST_NUMBERS
    rows = [
        _row(
            f"{component}",
            [number(value, 2) for value in values],
            np.rint(strengths * LEVELS).astype(int),
        )
        for component, values, strengths in zip(
            heat_map.components, heat_map.values, heat_map.strengths, strict=True
        )
    ]
    table = _table(
        label,
        row or "Component",
        heat_map.features,
        rows,
        "roomy" if roomy else "dense",
        data_row=row or "component",
    )
    return scroll_box(label, table, "tips")


def contingency(label: str, clusters: Clusters) -> Markup:
    """Labels × components, coloured by the part that a label has in a component."""
    totals = np.maximum(clusters.counts.sum(axis=1, keepdims=True), 1)
    levels = np.ceil(clusters.counts / totals * LEVELS).astype(int)
    rows = [
        _row(name, [count(n) for n in counts], -level)  # blue
        for name, counts, level in zip(clusters.labels, clusters.counts, levels, strict=True)
    ]
    names = [f"component {k}" for k in clusters.components]
    return scroll_box(label, _table(label, "Label", names, rows, "roomy"))


def legend() -> Markup:
    """The colours from negative to positive."""
    swatches = [element("i", class_=f"n{level}") for level in range(LEVELS, 0, -1)]
    swatches += [
        element("i"),
        *(element("i", class_=f"p{level}") for level in range(1, LEVELS + 1)),
    ]
    return element(
        "p",
        "negative ",
        element("span", swatches, aria_hidden="true"),
        " positive",
        class_="legend",
    )


def _table(
    label: str,
    corner: str,
    names: list[str],
    rows: list[Markup],
    kind: str,
    data_row: str | None = None,
) -> Markup:
    titles = [
        element("th", element("span", shortened(name, _LONGEST_NAME)), scope="col", data_name=name)
        for name in names
    ]
    return element(
        "table",
        element("caption", label),
        element("thead", element("tr", element("td", corner), titles)),
        element("tbody", rows),
        class_=f"heat {kind}",
        data_row=data_row,
    )


def _row(name: str, texts: list[str], levels: NDArray) -> Markup:
    cells = [
        element("td", text, class_=_level_class(int(level)))
        for text, level in zip(texts, levels, strict=True)
    ]
    return element("tr", element("th", shortened(name, _LONGEST_NAME), scope="row"), cells)


def _level_class(level: int) -> str | None:
    if level == 0:
        return None
    return f"p{level}" if level > 0 else f"n{-level}"
