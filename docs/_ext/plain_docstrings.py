"""Docstrings say |W|, n_iter_ and (2, *sizes), which reStructuredText would take for marks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

# What is in backticks or between stars is left alone, and so are the marks that numpydoc has set.
QUOTED = re.compile(r"(``.+?``|`[^`]+`|\*\*.+?\*\*)")
MARKS = re.compile(r"\||(?<=\w)_(?=[\s,.;:)+\-]|$)|(?:(?<=\()|(?<=, ))\*(?=\w)")
LITERAL = re.compile(r"\s*(>>>|\.\. )")


def escaped(lines: list[str]) -> list[str]:
    r"""Lines of a docstring with the marks escaped, up to and after code.

    >>> escaped(["|W| of `a|b`, (n_iter_ + 1,)", "", ">>> print('|')", "|", "", "(2, *sizes)"])
    ['\\|W\\| of `a|b`, (n_iter\\_ + 1,)', '', ">>> print('|')", '|', '', '(2, \\*sizes)']
    """
    result, in_code = [], False
    for line in lines:
        in_code = bool(LITERAL.match(line)) or (in_code and bool(line.strip()))
        result.append(line if in_code else _escaped(line))
    return result


def _escaped(line: str) -> str:
    parts = QUOTED.split(line)
    parts[::2] = [MARKS.sub(lambda found: "\\" + found[0], part) for part in parts[::2]]
    return "".join(parts)


def escape(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if name.startswith("seminmf"):
        lines[:] = escaped(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    # After numpydoc, which has 500.
    app.connect("autodoc-process-docstring", escape, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
