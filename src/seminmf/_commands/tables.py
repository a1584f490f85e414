"""From a table in a file to samples × features, and back."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._estimators.notices import warn_user
from . import formats
from .dialect import Dialect
from .text import GAPS, Roles, is_blank, is_number

if TYPE_CHECKING:
    import pandas as pd

    from .options import TableOptions

# How pandas names a column that has no name.
_NAMELESS = re.compile(r"Unnamed: \d+")
# Floats have all integers up to here.
_EXACT = 2**53
# A feature of such a name and with so few values may be classes.
_CLASS_NAMES = frozenset(
    {"class", "classes", "label", "labels", "target", "species", "group", "cluster", "category"}
    | {"y", "outcome", "diagnosis"}
)
_MOST_CLASSES = 20


@dataclass(frozen=True)
class Table:
    """A table, and which of its columns are features.

    Attributes
    ----------
    frame : DataFrame
        All of it. Columns of a table without names are numbered from 0.
    features : list
        Names of the columns that are features.
    ids, labels : Series or None
    named : bool
        Whether the columns have names.
    letters : callable or None
        Returns the same table as the text that the file has; None if that has numbers.
    plain : bool
        Whether the features are wanted without names.
    """

    frame: pd.DataFrame
    features: list[Any]
    ids: pd.Series | None
    labels: pd.Series | None
    named: bool
    letters: Callable[[], pd.DataFrame] | None = None
    plain: bool = False

    @property
    def X(self) -> pd.DataFrame | NDArray:
        """The features: a DataFrame with names, if there are any, else an array.

        Columns without names that are not all features have their numbers as names.
        """
        columns = list(self.frame.columns)
        values = _numbers(self.frame if columns == self.features else self.frame[self.features])
        if self.plain or (not self.named and len(self.features) == len(columns)):
            return values
        import pandas as pd

        return pd.DataFrame(values, columns=[str(name) for name in self.features])

    @property
    def gaps(self) -> NDArray:
        """Which cells of the features are not observed."""
        return np.isnan(np.asarray(self.X))

    def filled(self, values: NDArray, *, as_text: bool) -> pd.DataFrame | NDArray:
        """The whole table, with these values in the gaps of its features; no other cell changes.

        In a table that is wanted as text, cells that are text stay so to the letter.
        """
        frame = self.frame.copy()
        if as_text and self.letters is not None:
            frame = self.letters().set_axis(frame.columns, axis=1)
        for name, gaps, column in zip(self.features, self.gaps.T, values.T, strict=True):
            if gaps.any():
                fill = _fill_text if as_text else _fill_numbers
                frame[name] = fill(frame[name], gaps, column)
        if self.named:
            return frame
        plain = as_text or all(isinstance(dtype, np.dtype) for dtype in frame.dtypes)
        return frame.to_numpy() if plain else _numbers(frame)

    def with_ids(self, columns: dict[str, Any], *, labels: bool = False) -> pd.DataFrame:
        """A new table of these columns, after the ids and before the labels, if there are any."""
        import pandas as pd

        frame = pd.DataFrame(columns)
        for place, part in ((len(columns), self.labels if labels else None), (0, self.ids)):
            if part is None:
                continue
            if part.name in frame:
                raise ValueError(f"The output has a column {part.name!r} of its own: rename yours.")
            frame.insert(place, str(part.name), part.to_numpy())
        return frame


def read_table(path: str, options: TableOptions, wanted: Sequence[str] | None = None) -> Table:
    """Read a table, and find its features.

    Parameters
    ----------
    path : str
    options : TableOptions
    wanted : sequence of str or None
        Names of the features that a model has; columns beside them are left out. None takes all
        columns but those that the options name.
    """
    ids, labels = (_only(f"--{name}", getattr(options, name)) for name in ("id", "label"))
    others = [name for name in (ids, labels, *options.drop) if name is not None]
    frame, named, letters = formats.read(
        path,
        options.format,
        missing=options.missing,
        header=options.header,
        zeros=None if options.zeros is None else options.zeros.value,
        roles=Roles(others, wanted),
        dialect=Dialect.of(options.sep, options.decimal),
    )
    columns = {name: _column(frame, name, path) for name in others}
    first = frame.columns[0] if named and len(frame.columns) else None
    nameless = first is not None and is_blank(first)
    rest = [name for name in frame.columns[int(nameless) :] if name not in columns.values()]
    numbered = not named and wanted is not None and set(wanted) <= {str(name) for name in rest}
    features = rest
    if wanted is not None and (named or numbered):
        features = _wanted(rest, wanted, path)
    if not features or not len(frame):
        raise ValueError(f"{path} has no cells: {len(frame)} rows, {len(features)} features.")
    _check_features(frame, features, path)
    _warn_of_indices(path, nameless, ids, [] if wanted is not None else features)
    if wanted is None and named:
        _warn_of_classes(path, frame, features)
    return Table(
        frame,
        features,
        frame[first] if nameless and ids is None else _series(frame, columns, ids),
        _series(frame, columns, labels),
        named,
        letters,
    )


def is_label(value: Any) -> bool:
    """Whether a cell of a column of labels has one."""
    return str(value) not in GAPS


def _only(option: str, given: Sequence[str]) -> str | None:
    """What was given by an option that names one column."""
    if len(given) > 1:
        raise ValueError(f"{option} names one column; found {_listed(given)}.")
    return given[0] if given else None


def _series(frame: pd.DataFrame, columns: dict[str, Any], name: str | None) -> pd.Series | None:
    return None if name is None else frame[columns[name]]


def _warn_of_indices(path: str, nameless: bool, ids: str | None, features: list[Any]) -> None:
    """Say what becomes of columns that pandas may have written to number the rows."""
    said = []
    if nameless:
        use = "taken for ids" if ids is None else f"left out: {_short(ids)} has the ids"
        said.append(f"{path}: the first column has no name, and is {use}.")
    said += [
        f"{path}: the column {_short(name)} is taken for a feature; if it numbers the rows, name "
        "it by --id or --drop."
        for name in features
        if _NAMELESS.fullmatch(str(name))
    ]
    for text in said:
        warnings.warn(text, UserWarning, stacklevel=3)


def _column(frame: pd.DataFrame, name: str, path: str) -> Any:
    """A column by its name, or by its number if columns have none."""
    if name in frame.columns:
        return name
    if name.isascii() and name.isdecimal() and int(name) in frame.columns:
        return int(name)
    raise ValueError(f"{path} has no column {name!r}; its columns are {_listed(frame.columns)}.")


def _wanted(columns: list[Any], wanted: Sequence[str], path: str) -> list[Any]:
    """The model's features, in its order, whatever else there is and in whatever order."""
    by_name = {str(name): name for name in columns}
    absent = [name for name in wanted if name not in by_name]
    if absent:
        raise ValueError(f"{path} lacks features of the model: {_listed(absent)}.")
    return [by_name[name] for name in wanted]


def _check_features(frame: pd.DataFrame, features: list[Any], path: str) -> None:
    for name in features:
        column = frame[name]
        if column.dtype.kind in "biuf":
            continue
        text = next((cell for cell in column if not _is_number(cell)), None)
        if text is not None:
            raise ValueError(
                f"{path} has {_short(text)} in the column {_short(name)}, which is no number; if "
                "it is no feature, name it by --id, --label or --drop, and if it stands for a gap, "
                "by --missing."
            )


def _is_number(cell: Any) -> bool:
    import pandas as pd

    if isinstance(cell, str):
        return is_number(cell)
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return cell is None or cell is pd.NA
    return True


def _numbers(frame: pd.DataFrame) -> NDArray:
    if all(dtype == np.float32 for dtype in frame.dtypes):
        return frame.to_numpy()
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _fill_text(column: pd.Series, gaps: NDArray, values: NDArray) -> NDArray:
    """Cells for a text, where a column may have cells of any kind."""
    if column.dtype.kind == "f":
        return _fill_numbers(column, gaps, values)
    cells = column.to_numpy(dtype=object, copy=True)
    cells[gaps] = values[gaps].tolist()
    return cells


def _fill_numbers(column: pd.Series, gaps: NDArray, values: NDArray) -> NDArray:
    """Numbers for a format where a column has one type."""
    dtype = np.float32 if column.dtype == np.float32 else np.float64
    numbers = column.to_numpy(dtype=dtype, na_value=np.nan)
    if column.dtype.kind in "iu" and np.any(np.abs(numbers[~gaps]) >= _EXACT):
        raise ValueError(
            f"The column {_short(column.name)} has integers that are not exact as the floats that "
            "its gaps are filled with; write a table in CSV or TSV."
        )
    return np.where(gaps, values.astype(dtype), numbers)


def _listed(names: Any, most: int = 8) -> str:
    shown = ", ".join(_short(name) for name in list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _short(value: Any, most: int = 40) -> str:
    text = repr(str(value))
    return text if len(text) <= most else f"{text[:most]}…'"


def _warn_of_classes(path: str, frame: pd.DataFrame, features: list[Any]) -> None:
    """Say so if a feature looks like classes that are numbered."""
    for name in features:
        column = frame[name]
        if column.dtype.kind not in "iuf" or str(name).strip().casefold() not in _CLASS_NAMES:
            continue
        values = column.dropna().unique()
        if 1 < len(values) <= _MOST_CLASSES and all(float(value).is_integer() for value in values):
            warn_user(
                f"{path}: the column {_short(name)} has {len(values)} whole numbers and is taken "
                "for a feature; if they are classes, name it by --label or --drop."
            )
