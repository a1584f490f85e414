"""Tables of text: on the screen, as CSV and as Markdown."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rich.console import Console


class Table(NamedTuple):
    """A table; its name is also that of its CSV file."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def mean_and_spread(values: Sequence[float] | NDArray, digits: int) -> str:
    """Mean | standard deviation, which divides by n, as in the paper's tables."""
    values = np.asarray(values, dtype=np.float64)
    return f"{np.mean(values):.{digits}f} | {np.std(values):.{digits}f}"


def show(table: Table, console: Console) -> None:
    """Print a table."""
    import rich.table
    from rich.text import Text

    grid = rich.table.Table(title=Text(table.title), title_justify="left")
    for number, column in enumerate(table.columns):
        grid.add_column(Text(column), justify="right" if number else "left", overflow="fold")
    for row in table.rows:
        grid.add_row(*(Text(cell) for cell in row))
    console.print(grid)


def as_csv(table: Table) -> str:
    """The content of a CSV file."""
    buffer = StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([table.columns, *table.rows])
    return buffer.getvalue()


def as_markdown(table: Table) -> str:
    """A Markdown table under its title."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    head = [f"**{table.title}**", "", line(table.columns), line(["---"] * len(table.columns))]
    return "\n".join([*head, *map(line, table.rows)])
