"""From a table in a file to samples × features, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import formats

if TYPE_CHECKING:
    import pandas as pd

    from .options import TableOptions


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
    plain : bool
        Whether the features are wanted without names.
    """

    frame: pd.DataFrame
    features: list[Any]
    ids: pd.Series | None
    labels: pd.Series | None
    named: bool
    plain: bool = False

    @property
    def X(self) -> pd.DataFrame | NDArray:
        """The features: a DataFrame with names, if there are any, else an array.

        Columns without names that are not all features have their numbers as names.
        """
        values = _numbers(self.frame[self.features])
        whole = not self.named and len(self.features) == len(self.frame.columns)
        if self.plain or whole:
            return values
        import pandas as pd

        return pd.DataFrame(values, columns=[str(name) for name in self.features])

    @property
    def gaps(self) -> NDArray:
        """Which cells of the features are not observed."""
        return np.isnan(np.asarray(self.X))

    def filled(self, values: NDArray) -> pd.DataFrame | NDArray:
        """The whole table, with these values in the gaps of its features; no other cell changes."""
        frame = self.frame.copy()
        for name, gaps, column in zip(self.features, self.gaps.T, values.T, strict=True):
            if gaps.any():
                observed = frame[name].to_numpy(dtype=np.float64, na_value=np.nan)
                frame[name] = np.where(gaps, column, observed)
        return frame if self.named else frame.to_numpy()

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
    import pandas as pd

    others = [name for name in (options.id, options.label, *options.drop) if name is not None]
    found = formats.read(
        path,
        options.format,
        missing=options.missing,
        header=options.header,
        zeros=None if options.zeros is None else options.zeros.value,
        roles=formats.Roles(others, wanted),
    )
    named = isinstance(found, pd.DataFrame)
    frame = found if isinstance(found, pd.DataFrame) else _numbered(path, found)
    columns = {name: _column(frame, name, path) for name in others}
    rest = [name for name in frame.columns if name not in columns.values()]
    numbered = not named and wanted is not None and set(wanted) <= {str(name) for name in rest}
    features = rest
    if wanted is not None and (named or numbered):
        features = _wanted(rest, wanted, path)
    if not features or not len(frame):
        raise ValueError(f"{path} has no cells: {len(frame)} rows, {len(features)} features.")
    ids, labels = (
        None if name is None else frame[columns[name]] for name in (options.id, options.label)
    )
    _check_features(frame, features, path)
    return Table(frame, features, ids, labels, named)


def is_label(value: Any) -> bool:
    """Whether a cell of a column of labels has one."""
    return str(value) not in formats.GAPS


def _numbered(path: str, array: NDArray) -> pd.DataFrame:
    import pandas as pd

    if array.ndim != 2:
        raise ValueError(f"{path} has {array.ndim} axes, and a table has 2.")
    return pd.DataFrame(array)


def _column(frame: pd.DataFrame, name: str, path: str) -> Any:
    """A column by its name, or by its number if columns have none."""
    if name in frame.columns:
        return name
    if name.isdecimal() and int(name) in frame.columns:
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

    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return cell is None or cell is pd.NA
    return True


def _numbers(frame: pd.DataFrame) -> NDArray:
    if all(dtype == np.float32 for dtype in frame.dtypes):
        return frame.to_numpy()
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def _listed(names: Any, most: int = 8) -> str:
    shown = ", ".join(_short(name) for name in list(names)[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _short(value: Any, most: int = 40) -> str:
    text = repr(str(value))
    return text if len(text) <= most else f"{text[:most]}…'"
