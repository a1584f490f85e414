"""Tables as text, CSV and TSV: which line has the names, which cells are numbers and which gaps."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._estimators.notices import warn_user

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.parsers import TextFileReader

    from .dialect import Dialect
    from .inputs import Text

# What stands for a gap in text, and for a label that is none.
GAPS = frozenset(
    {"", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan"}
    | {"None", "null", "NULL"}
)
# So many cells are parsed at a time: what a parser needs for them is several times what they are.
_PARSED = 1 << 19
# Floats have all integers up to here.
_EXACT = 2**53
# Python's own `float` takes 2020_01 as well, and the digits of all scripts.
_NUMBER = re.compile(
    r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|infinity|nan)", re.ASCII | re.IGNORECASE
)


class Roles(NamedTuple):
    """Which columns are features.

    Attributes
    ----------
    others : collection of str
        Columns that are none.
    features : collection of str or None
        Those that are; None if all the others are.
    """

    others: Collection[str] = ()
    features: Collection[str] | None = None

    def is_feature(self, name: Any) -> bool:
        """Whether a column is a feature, by its name; one without a name is none."""
        name = str(name)
        if is_blank(name) or name in self.others:
            return False
        return self.features is None or name in self.features

    def of_numbered(self) -> Roles:
        """The same for columns without names, which names of features say nothing of."""
        return Roles(self.others)


ALL_FEATURES = Roles()


class Found(NamedTuple):
    """A table as a file has it.

    Attributes
    ----------
    frame : DataFrame
    named : bool
        Whether its columns have names; else they are numbered from 0.
    letters : callable or None
        Returns the same table with all cells as the text that they are in the file. None if the
        file has no text, but numbers.
    """

    frame: pd.DataFrame
    named: bool
    letters: Callable[[], pd.DataFrame] | None = None


def is_number(text: str) -> bool:
    """Whether a text is a number as tables have them."""
    return _NUMBER.fullmatch(text.strip()) is not None


def is_blank(name: Any) -> bool:
    """Whether a name is none."""
    return not str(name).strip()


def check_names(names: Sequence[Any]) -> None:
    """Refuse names that do not tell columns apart; the first column may have none."""
    counts = Counter(str(name) for name in names)
    for name, count in counts.items():
        if count > 1 and not is_blank(name):
            raise ValueError(f"{count} of its columns have the name {name!r}")
    for number, name in enumerate(names[1:], start=2):
        if is_blank(name):
            raise ValueError(
                f"column {number} of {len(names)} has no name; only the first may have none "
                "(is there a separator too many at the end of the first line?)"
            )


def read_text(
    content: Text, dialect: Dialect, missing: Sequence[str], header: bool | None, roles: Roles
) -> Found:
    """The table in a text; `formats.read` has the parameters."""
    separator = dialect.separator or ","
    first = _first_line(content, separator)
    if header is None:
        header = not _could_be_data([dialect.as_number(cell) for cell in first], missing)
    names: list[Any] = _told_apart(first) if header else list(range(len(first)))
    if header:
        check_names(names)
    n_rows = _checked_lines(content, separator, len(names)) - header
    roles = roles if header else roles.of_numbered()
    features = {name for name in names if roles.is_feature(name)}
    # What is no feature stays as it is, to the letter.
    others = {name: object for name in names if name not in features}
    gaps = {name: [*GAPS, *missing] for name in features}
    parse = partial(_parse, content, dialect, header, names)
    own = {"dtype": others, "na_values": gaps}
    with parse(chunksize=max(1, _PARSED // len(names)), **own) as parts:
        frame = _joined(parts, names, features, n_rows)
    if frame is None:
        frame = _whole(parse, **own)
    # Numbers with a comma are not those of the tables that are written.
    letters = None if dialect.decimal == "," else partial(_whole, parse, dtype=object)
    return Found(frame, header, letters)


def _told_apart(names: list[str]) -> list[str]:
    """Names of which some are there more than once, with numbers, as pandas has them."""
    counts = Counter(name for name in names if not is_blank(name))
    again = [name for name, count in counts.items() if count > 1]
    if not again:
        return names
    taken, seen = set(names), Counter[str]()
    found = []
    for name in names:
        number, other = seen[name], name
        while number and other in taken:
            other, number = f"{name}.{number}", number + 1
        seen[name] = number or 1
        taken.add(other)
        found.append(name if is_blank(name) else other)
    warn_user(
        f"{counts[again[0]]} columns have the name {again[0]!r}, and are told apart as "
        + ", ".join(repr(new) for old, new in zip(names, found, strict=True) if old == again[0])
        + "."
    )
    return found


def _whole(parse: Callable[..., Any], **options: Any) -> pd.DataFrame:
    with parse(**options) as parts:
        return parts.read()


@contextmanager
def _parse(
    content: Text, dialect: Dialect, header: bool, names: list[Any], **options: Any
) -> Iterator[TextFileReader]:
    """What reads the table in a text, in parts or as a whole."""
    import pandas as pd

    if int(pd.__version__.split(".")[0]) < 3:  # later ones always read numbers exactly
        options["float_precision"] = "round_trip"
    with content.open() as file:
        if header:
            _skip_empty_lines(file)  # the first line that is not empty has the names
        with pd.read_csv(
            file,
            sep=dialect.separator,
            decimal=dialect.decimal,
            header=0 if header else None,
            names=names,
            index_col=False,
            keep_default_na=False,
            low_memory=False,
            # In one column an empty line is an empty cell.
            skip_blank_lines=len(names) > 1,
            iterator=True,
            **options,
        ) as parts:
            yield parts


def _skip_empty_lines(file: IO[bytes]) -> None:
    begin = file.tell()
    while file.read(1) in (b"\r", b"\n"):
        begin += 1
    file.seek(begin)


def _joined(
    parts: Iterable[pd.DataFrame], names: list[Any], features: Collection[Any], n_rows: int
) -> pd.DataFrame | None:
    """The table of these parts, as it would be had it been parsed as a whole.

    It takes the memory that its numbers do, and no more. None if the type of a feature is another
    in the whole than in parts, or text.
    """
    import pandas as pd

    places = [place for place, name in enumerate(names) if name in features]
    others: dict[int, list] = {
        place: [] for place, name in enumerate(names) if name not in features
    }
    values, integral, begin = np.empty((n_rows, len(places))), np.ones(len(places), dtype=bool), 0
    for part in parts:
        kinds = np.array([part.dtypes.iloc[place].kind for place in places])
        end = begin + len(part)
        if end > n_rows or not np.isin(kinds, ["f", "i"]).all():
            return None
        values[begin:end] = part.iloc[:, places].to_numpy(dtype=np.float64)
        integers = kinds == "i"
        if np.any(np.abs(values[begin:end, integers]) >= _EXACT):
            return None
        for place, cells in others.items():
            cells.append(part.iloc[:, place].to_numpy())
        integral, begin = integral & integers, end
    if begin < n_rows or n_rows == 0:
        return None
    frame = pd.DataFrame(values, columns=[names[place] for place in places])
    if integral.all():
        frame = frame.astype(np.int64)
    for number in np.flatnonzero(integral & ~integral.all()):
        frame.isetitem(number, values[:, number].astype(np.int64))
    for place, cells in others.items():
        frame.insert(place, names[place], np.concatenate(cells))
    return frame


@contextmanager
def _lines(content: Text, separator: str) -> Iterator[Any]:
    """The cells of each line; none for one that is empty."""
    with content.open() as file, TextIOWrapper(file, "utf-8", newline="") as text:
        yield csv.reader(text, delimiter=separator)


def _first_line(content: Text, separator: str) -> list[str]:
    """Cells of the first line that is not empty."""
    with _lines(content, separator) as lines:
        cells: list[str] = next((line for line in lines if line), [])
    if not cells:
        raise ValueError("it is empty")
    if len(cells) == 1:
        for other in (";", "\t", ","):
            if other in cells[0]:
                raise ValueError(
                    f"its first line has {other!r} and no {separator!r}, and it is not clear what "
                    "is between cells, so say it by --sep"
                )
    return cells


def _could_be_data(cells: Sequence[str], missing: Sequence[str]) -> bool:
    """Whether the first line may be data; then one must say what it is."""
    values = [cell.strip() for cell in cells]
    numbers = [value for value in values if value not in GAPS and value not in missing]
    if not numbers or not all(is_number(number) for number in numbers):
        return False
    raise ValueError(
        "its first line has only numbers, so say --header if they are names, and --no-header if "
        "they are data"
    )


def _checked_lines(content: Text, separator: str, n_columns: int) -> int:
    """How many lines there are that have cells.

    Lines with other numbers of cells are refused, which pandas would fill up or cut off.
    """
    count = 0
    with _lines(content, separator) as lines:
        for line in lines:
            # In one column an empty line is an empty cell.
            count += bool(line) or n_columns == 1
            if line and len(line) != n_columns:
                than = "more" if len(line) > n_columns else "fewer"
                raise ValueError(
                    f"it has lines with {than} cells than there are columns: line "
                    f"{lines.line_num} has {len(line)}, the first has {n_columns}"
                )
    return count
