"""How a table in text is written: what is between cells, and what in numbers."""

from __future__ import annotations

import csv
import re
from io import TextIOWrapper
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .inputs import Text

# What may be between cells, besides what the suffix says.
_SEPARATORS = (",", ";", "\t", "|")
_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
# Lines that are looked at, to tell separators apart and commas in numbers.
_LINES, _LINES_OF_NUMBERS = 10, 500
_WITH_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WITH_POINT = re.compile(r"[+-]?\d*\.\d+(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


class Dialect(NamedTuple):
    """What is between cells, and between the digits of a number; None is not known."""

    separator: str | None = None
    decimal: str | None = None

    @classmethod
    def of(cls, separator: str | None, decimal: str | None) -> Dialect:
        """That which options name, after a check."""
        separator = None if separator is None else _NAMES.get(separator.lower(), separator)
        if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
            raise ValueError(
                "--sep must be one character, or tab, comma, semicolon, pipe or space; "
                f"found {separator!r}."
            )
        if decimal not in (None, ".", ","):
            raise ValueError(f"--decimal must be . or , (a point or a comma); found {decimal!r}.")
        if separator is not None and separator == decimal:
            raise ValueError(f"--sep and --decimal must differ; found {separator!r} for both.")
        return cls(separator, decimal)

    def says_more_than(self, told: Dialect, usual: str) -> bool:
        """Whether something was found that is neither told nor as usual."""
        other = told.separator is None and self.separator != usual
        return other or (told.decimal is None and self.decimal != ".")

    def as_number(self, text: str) -> str:
        """A number with a point."""
        return text.replace(",", ".") if self.decimal == "," else text

    def __str__(self) -> str:
        words = f"{self.separator!r} between cells and {self.decimal!r} in numbers"
        return f"{words} (--sep and --decimal say so for certain)"


UNKNOWN = Dialect()


def detect(content: Text, told: Dialect, usual: str) -> Dialect:
    """The dialect of a text, by its first lines, where it is not told.

    A separator is one that all lines have equally often, and cells have the least of the others in
    them; if that leaves several, the usual one.
    """
    separator = told.separator
    if separator is None:
        others = [mark for mark in _SEPARATORS if mark not in (usual, told.decimal)]
        marks = [usual, *others] if usual != told.decimal else others
        possible = [mark for mark in marks if _separates(content, mark)]
        separator = min(possible or marks[:1], key=lambda mark: _n_strange(content, mark))
    decimal = told.decimal
    if decimal is None:
        decimal = "," if separator != "," and _has_commas(content, separator) else "."
    return Dialect(separator, decimal)


def _separates(content: Text, separator: str) -> bool:
    numbers = {len(line) for line in _first_lines(content, separator, _LINES)}
    return len(numbers) == 1 and numbers.pop() > 1


def _n_strange(content: Text, separator: str) -> int:
    """Number of cells that have other separators in them and are no numbers."""
    lines = _first_lines(content, separator, _LINES)
    return sum(
        any(mark in cell for mark in _SEPARATORS) and not _WITH_COMMA.fullmatch(cell.strip())
        for line in lines
        for cell in line
    )


def _has_commas(content: Text, separator: str) -> bool:
    """Whether there are numbers with a comma, and none with a point."""
    commas = False
    for line in _first_lines(content, separator, _LINES_OF_NUMBERS):
        cells = [cell.strip() for cell in line]
        if any(_WITH_POINT.fullmatch(cell) for cell in cells):
            return False
        commas = commas or any(_WITH_COMMA.fullmatch(cell) for cell in cells)
    return commas


def _first_lines(content: Text, separator: str, most: int) -> list[list[str]]:
    """The cells of the first lines that have any."""
    with content.open() as file, TextIOWrapper(file, "utf-8", newline="") as text:
        lines = (line for line in csv.reader(text, delimiter=separator) if line)
        try:
            return list(islice(lines, most))
        except csv.Error:  # of a cell without an end, for instance
            return []
