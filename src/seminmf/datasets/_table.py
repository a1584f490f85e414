"""CSV files as tables, and tables as what scikit-learn's loaders return."""

import csv
import gzip
import io
import zlib
from importlib.resources.abc import Traversable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

MISSING = ("", "NA")  # R writes NA


class Table(NamedTuple):
    """Numeric features, and one label for each sample: its class or its name."""

    data: NDArray[np.float64]
    labels: NDArray[Any]
    feature_names: list[str]
    label_name: str


def read_csv(path: Traversable) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a file, packed with gzip if its name says so."""
    try:
        rows = [row for row in csv.reader(io.StringIO(_text(path), newline="")) if row]
    except csv.Error as error:
        raise ValueError(f"{path} must be a table in CSV format; {error}.") from error
    if len(rows) < 2:
        raise ValueError(f"{path} must have a header and at least one row; found {len(rows)} rows.")
    header, *rows = rows
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise ValueError(
                f"{path} must have {len(header)} fields in each row, as in its header; "
                f"found {len(row)} in row {number}."
            )
    return header, rows


def read_table(path: Traversable) -> Table:
    """A file of numeric features with the label in the last column; an empty field is NaN."""
    header, rows = read_csv(path)
    try:
        features = [[_number(field) for field in row[:-1]] for row in rows]
    except ValueError as error:
        raise ValueError(
            f"{path} must have numbers in all columns but the last; {error}."
        ) from error
    return Table(
        data=np.array(features, dtype=np.float64),
        labels=np.array([row[-1] for row in rows]),
        feature_names=header[:-1],
        label_name=header[-1],
    )


def as_bunch(
    table: Table, description: str, *, return_X_y: bool, as_frame: bool, **more: Any
) -> Any:
    """The table as a Bunch with `more` in it, or as ``(data, target)``; as pandas objects or not.

    The labels are the target.
    """
    data: Any = table.data
    target: Any = table.labels
    frame = None
    if as_frame:
        frame = _frame(table)
        data = frame[table.feature_names]
        target = frame[table.label_name]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=table.feature_names,
        target_names=np.unique(table.labels),
        DESCR=description,
        **more,
    )


def _text(path: Traversable) -> str:
    content = path.read_bytes()
    try:
        if path.name.endswith(".gz"):
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")  # some spreadsheets begin UTF-8 files with a mark
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise ValueError(f"{path} must be a CSV file in UTF-8; found: {error}.") from error


def _number(field: str) -> float:
    return np.nan if field in MISSING else float(field)


def _frame(table: Table) -> Any:
    import pandas as pd

    frame = pd.DataFrame(table.data, columns=table.feature_names)
    frame[table.label_name] = table.labels
    return frame
