"""What commands say: results on standard output, all else on standard error."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_VOCABULARY = {
    "check_integer=False": "--any-numbers",
    "max_iter=": "--max-iter ",
    "tol=": "--tol ",
    "Raise max_iter or tol": "Raise --max-iter or --tol",
    "scale_features": "--scale",
}


def say(text: str) -> None:
    """A line for people."""
    print(printable(text), file=sys.stderr)


def printable(text: str) -> str:
    """The text without what could steer a terminal: names may come from anywhere."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def width() -> int | None:
    """How many characters a line of standard output may have, if somebody looks at it."""
    if not os.environ.get("COLUMNS") and not sys.stdout.isatty():
        return None
    return max(shutil.get_terminal_size().columns, 20)


def folded(text: str) -> str:
    """A line in as many as it takes."""
    columns = width()
    if columns is None:
        return text
    return textwrap.fill(text, columns, subsequent_indent="  ", break_on_hyphens=False)


def show_progress() -> bool:
    """Whether somebody is looking."""
    return sys.stderr.isatty()


def in_options(text: str) -> str:
    """A sentence of the library in one line, and in the words of the command line."""
    for words, options in _VOCABULARY.items():
        text = text.replace(words, options)
    return " ".join(text.split())


def print_json(found: dict[str, Any]) -> None:
    """Findings for machines: numbers that JSON does not know are null."""
    print(json.dumps(_plain(found), ensure_ascii=False, indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def spoken_warnings() -> Iterator[list[str]]:
    """Say warnings in a line each, and list them."""
    found: list[str] = []

    def say_warning(message: Any, *others: Any) -> None:
        text = in_options(str(message))
        if text not in found:
            found.append(text)
            say(f"seminmf: warning: {text}")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.showwarning = say_warning  # type: ignore[assignment]
        yield found
