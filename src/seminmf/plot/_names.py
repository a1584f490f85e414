"""Names of features and labels in pictures: they are text of others, and never markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._frame import inches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LONGEST = 24
# Inches that a label of the size below needs: from line to line, and for a character.
_FONT_SIZE = 8
LINE, CHARACTER = 0.15, 0.07
# No mathematics between dollar signs, and no TeX.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}


def tidy(name: Any) -> str:
    """A name on one line, without what cannot be printed, and shortened in its middle."""
    printable = "".join(letter if letter.isprintable() else " " for letter in str(name))
    text = " ".join(printable.split())
    if len(text) <= _LONGEST:
        return text
    end = _LONGEST // 2 - 1
    return f"{text[: _LONGEST - end - 1]}…{text[-end:]}"


def feature_names_of(model: Any, given: Any) -> list[str]:
    """Names to draw: those given, those of the fit, or numbers from 0."""
    n_features = model.components_.shape[1]
    if given is None:
        given = getattr(model, "feature_names_in_", range(n_features))
    elif isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise ValueError(
            f"feature_names must be a list of {n_features} names; found {tidy(repr(given))}."
        )
    names = list(given)
    if len(names) != n_features:
        raise ValueError(
            f"feature_names must have a name for each of the {n_features} features; "
            f"found {len(names)}."
        )
    return [tidy(name) or str(i) for i, name in enumerate(names)]


def feature_label(n_shown: int, n_features: int) -> str:
    """What the axis of the features says."""
    if n_shown == n_features:
        return "feature"
    return f"feature (the {n_shown} largest of {n_features})"


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Write the names of rows 0, 1, … on the vertical axis, or every n-th if they are many."""
    places = _thinned(len(names), LINE, inches(ax)[1])
    ax.set_yticks(places, [names[i] for i in places], fontsize=_FONT_SIZE, **PLAIN)


def name_columns(ax: Axes, names: Sequence[str]) -> None:
    """Write the names of columns 0, 1, … on the horizontal axis, upright if they are too long.

    If they are too many, every n-th is written.
    """
    width = inches(ax)[0]
    upright = are_upright(names, width)
    places = _thinned(len(names), LINE if upright else _length(names), width)
    ax.set_xticks(
        places,
        [names[i] for i in places],
        rotation=90 if upright else 0,
        fontsize=_FONT_SIZE,
        **PLAIN,
    )


def height_below(names: Sequence[str], width: float) -> float:
    """Inches that the names of columns need below axes of this width."""
    return _length(names) if are_upright(names, width) else LINE


def are_upright(names: Sequence[str], width: float) -> bool:
    """Whether names have no room side by side; numbers may be thinned, and are never turned."""
    return len(names) * _length(names) > width and not all(name.isdigit() for name in names)


def _length(names: Sequence[str]) -> float:
    """Inches of the longest name, and of a space."""
    return CHARACTER * (max(map(len, names)) + 1)


def _thinned(n: int, needed: float, available: float) -> range:
    """Every place, or every second, fifth, tenth, … so that the labels have room."""
    least = n * needed / available
    power = 10 ** int(np.log10(max(least, 1)))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= min(least, n) or m == 10)
    return range(0, n, step)
