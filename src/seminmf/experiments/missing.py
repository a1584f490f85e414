"""What the paper left for later: gaps in an image, in ratings and in a football season.

`_hidden` has the first two, where cells are hidden at random, and `_football` the third, where the
gaps are matches to come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..datasets import load_bundesliga
from . import _football, _hidden
from ._frame import Findings, Settings
from ._runs import Run

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_RUNS = _hidden.DEFAULT_RUNS


def plan(settings: Settings) -> list[list[Run]]:
    """All runs for which the data are there."""
    football = [] if _without_football(settings) else _football.plan(settings)
    return [*_hidden.plan(settings), *football]


def findings(found: pd.DataFrame, settings: Settings) -> Findings:
    """Tables, pictures and remarks of all three."""
    tables, pictures, remarks = _hidden.findings(found, settings)
    missing = _without_football(settings)
    if missing:
        return Findings(tables, pictures, [*remarks, f"Without football: {missing}"])
    table, picture = _football.findings(found[found["task"] == _football.TASK])
    return Findings([*tables, table], {**pictures, "football": picture}, remarks)


def _without_football(settings: Settings) -> str:
    """Why there is no football; nothing if there is."""
    try:
        load_bundesliga(data_home=settings.data_home)
    except FileNotFoundError as error:
        return str(error)
    return ""
