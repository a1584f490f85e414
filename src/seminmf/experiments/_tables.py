"""Tables of text: on the screen, as CSV and as Markdown."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, NamedTuple

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
    """Print a table: in several, each with the first column, if the console is not wide enough."""
    import rich.table
    from rich.text import Text

    for part, columns in enumerate(_parts(table, console.width)):
        title = table.title if part == 0 else f"{table.title} (continued)"
        grid = rich.table.Table(title=Text(title), title_justify="left")
        for number in columns:
            justify: Any = "right" if number else "left"
            grid.add_column(Text(table.columns[number]), justify=justify, overflow="fold")
        for row in table.rows:
            grid.add_row(*(Text(row[number]) for number in columns))
        console.print(grid)


def _parts(table: Table, width: int) -> list[list[int]]:
    """Numbers of the columns of each part of a table that fits into so many characters."""
    columns = zip(table.columns, *table.rows, strict=True)
    cells = [[str(cell) for cell in column] for column in columns]
    # Each column has a space on both sides and a line.
    sizes = [max(map(len, column)) + 3 for column in cells]
    parts, room = [[0]], width - 1 - sizes[0]
    for number, size in enumerate(sizes[1:], start=1):
        if size > room and len(parts[-1]) > 1:
            parts.append([0])
            room = width - 1 - sizes[0]
        parts[-1].append(number)
        room -= size
    return parts


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
