"""Known noise of cells, from a table."""

from __future__ import annotations

from typing import Any

from .options import TableOptions
from .tables import Table, read_table


def read_cell_noise(path: str, data: Table, options: TableOptions, names: list[str] | None) -> Any:
    """The table of known standard deviations, read as the data are, in the order of their rows."""
    found = read_table(path, options, names)
    if data.ids is None or found.ids is None:
        return found.X
    rows = {name: row for row, name in enumerate(found.ids)}
    missing = [name for name in data.ids if name not in rows]
    if missing or len(rows) < len(found.ids):
        raise ValueError(
            "--cell-noise must have one row for each name in the data; found "
            + (f"none for {missing[0]!r}." if missing else "a name more than once.")
        )
    values: Any = found.X  # a DataFrame: not all of its columns are features
    return values.iloc[[rows[name] for name in data.ids]].reset_index(drop=True)
