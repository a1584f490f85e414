"""Tables as text, CSV and TSV: which line has the names, which cells are numbers and which gaps."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

# What stands for a gap in text, and for a label that is none.
GAPS = frozenset(
    {"", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan"}
    | {"None", "null", "NULL"}
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
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
    content: bytes, separator: str, missing: Sequence[str], header: bool | None, roles: Roles
) -> Found:
    """The table in a text; `formats.read` has the parameters."""
    content = content.removeprefix(_BYTE_ORDER_MARK)
    first = _first_line(content, separator)
    if header is None:
        header = not _could_be_data(first, missing)
    names: list[Any] = first if header else list(range(len(first)))
    if header:
        check_names(names)
    _check_lines(content, separator, len(names))
    roles = roles if header else roles.of_numbered()
    features = {name for name in names if roles.is_feature(name)}
    # What is no feature stays as it is, to the letter.
    others = {name: object for name in names if name not in features}
    gaps = {name: [*GAPS, *missing] for name in features}
    parse = partial(_parse, content, separator, header, names)
    return Found(parse(dtype=others, na_values=gaps), header, partial(parse, dtype=object))


def _parse(
    content: bytes, separator: str, header: bool, names: list[Any], **options: Any
) -> pd.DataFrame:
    import pandas as pd

    if int(pd.__version__.split(".")[0]) < 3:  # later ones always read numbers exactly
        options["float_precision"] = "round_trip"
    return pd.read_csv(
        # The first line that is not empty has the names.
        BytesIO(content.lstrip(b"\r\n") if header else content),
        sep=separator,
        header=0 if header else None,
        names=names,
        index_col=False,
        keep_default_na=False,
        low_memory=False,
        # In one column an empty line is an empty cell.
        skip_blank_lines=len(names) > 1,
        **options,
    )


def _lines(content: bytes, separator: str) -> Any:
    """The cells of each line; none for one that is empty."""
    text = TextIOWrapper(BytesIO(content), "utf-8", newline="")
    return csv.reader(text, delimiter=separator)


def _first_line(content: bytes, separator: str) -> list[str]:
    """Cells of the first line that is not empty."""
    cells: list[str] = next((line for line in _lines(content, separator) if line), [])
    if not cells:
        raise ValueError("it is empty")
    if len(cells) == 1:
        for other in (";", "\t", ","):
            if other in cells[0]:
                raise ValueError(
                    f"its first line has {other!r} and no {separator!r}, but cells in CSV are "
                    "separated by commas, and in TSV by tabs"
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


def _check_lines(content: bytes, separator: str, n_columns: int) -> None:
    """Refuse lines with other numbers of cells, which pandas would fill up or cut off."""
    lines = _lines(content, separator)
    for line in lines:
        if line and len(line) != n_columns:
            than = "more" if len(line) > n_columns else "fewer"
            raise ValueError(
                f"it has lines with {than} cells than there are columns: line {lines.line_num} has "
                f"{len(line)}, the first has {n_columns}"
            )
