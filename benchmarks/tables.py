"""Markdown tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def row(cells: Iterable[object]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table_head(header: Sequence[str]) -> list[str]:
    """The first two rows."""
    return [row(header), row(["---"] * len(header))]
