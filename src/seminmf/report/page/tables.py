"""Tables that are sorted by a click on a column's title."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..._views.markup import Child, Markup, element
from .wording import number, ratio, shortened

_LONGEST_NAME = 40


@dataclass(frozen=True)
class Column:
    """A column's title, whether it holds numbers, and how the table is sorted by it at first."""

    title: str
    numeric: bool = True
    order: str = "none"


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and the number that it is sorted by."""

    content: Child
    key: float | None = None
    hint: str | None = None


def name_cell(name: str) -> Cell:
    """A name, which is whole in the hint if it is long."""
    short = shortened(name, _LONGEST_NAME)
    return Cell(short, hint=None if short == name else name)


def number_cell(value: float) -> Cell:
    """A number to a few digits, which is sorted by all of them."""
    return Cell(number(value), float(value))


def ratio_cell(value: float) -> Cell:
    """A number without unit."""
    return Cell(ratio(value), float(value))


def count_cell(n: int) -> Cell:
    """A number of things."""
    return Cell(f"{n:,}", n)


def sortable(caption: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> Markup:
    """A table in a box of its own, that scrolls if there is no room."""
    titles = [
        element(
            "th",
            element("button", column.title, type="button"),
            scope="col",
            aria_sort=column.order,
            class_="numeric" if column.numeric else None,
        )
        for column in columns
    ]
    body = [
        element("tr", [_cell(*pair) for pair in zip(row, columns, strict=True)]) for row in rows
    ]
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", titles)),
        element("tbody", body),
        class_="sortable",
    )
    return scroll_box(caption, table)


def scroll_box(label: str, content: Markup, kind: str = "") -> Markup:
    """A box that scrolls sideways, also with the keys."""
    return element(
        "div", content, class_=f"scroll {kind}".strip(), role="region", tabindex=0, aria_label=label
    )


def _cell(cell: Cell, column: Column) -> Markup:
    # What is no number stays without a key, and is put last in any order.
    key = cell.key if cell.key is not None and math.isfinite(cell.key) else None
    return element(
        "td",
        cell.content,
        class_="numeric" if column.numeric else None,
        data_key=None if key is None else f"{key:.9g}",
        title=cell.hint,
    )
