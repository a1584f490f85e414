"""Results of German football, from a folder."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from seminmf.datasets._folder import DataHome, require_file
from seminmf.datasets._table import MISSING, read_csv

_NAME = "bundesliga"
_WHOLE_NUMBERS = ("year", "round", "home_goals", "away_goals")
_COLUMNS = ("year", "round", "date", "home", "away", "home_goals", "away_goals")

_Matches = dict[str, NDArray[Any]]  # a column by its name


def load_bundesliga(
    *, data_home: DataHome = None, season: int | None = None, as_frame: bool = False
) -> Any:
    """Load a season of the Bundesliga from a folder: goal differences of teams by teams.

    The file is ``bundesliga.csv.gz`` or ``bundesliga.csv``, with one row for each match and the
    columns year (in which the season starts), round, date, home, away, home_goals and away_goals;
    others do not matter. In R, the package vcd has the results from 1963 to 2008::

        write.csv(with(vcd::Bundesliga, data.frame(
            year = Year, round = Round, date = format(Date, "%Y-%m-%d"), home = HomeTeam,
            away = AwayTeam, home_goals = HomeGoals, away_goals = AwayGoals
        )), "bundesliga.csv", row.names = FALSE, na = "", fileEncoding = "UTF-8")

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder. If None, the one that the environment variable ``SEMINMF_DATA`` names.
    season : int, default=None
        The year in which the season starts. If None, the last one in the file.
    as_frame : bool, default=False
        Return ``data`` and ``rounds`` as DataFrames, with the teams as their index and columns.

    Returns
    -------
    data : Bunch
        With the attributes

        data : ndarray of shape (n_teams, n_teams), or DataFrame
            Goals of the home team (by row) minus goals of the away team (by column), float64; NaN
            on the diagonal and where no match is recorded.
        rounds : ndarray of shape (n_teams, n_teams), or DataFrame
            The round of each match, NaN where ``data`` is. To predict results from earlier ones,
            hide those of later rounds.
        sample_names, feature_names : list of str
            The names of the home and of the away teams: the same, sorted.
        season : int
            The season that was loaded.
        seasons : ndarray of shape (n_seasons,)
            All seasons in the file, sorted.
        frame : DataFrame of shape (n_matches, 8), or None
            The matches of the season, with the columns above and goal_diff, if `as_frame`.
        DESCR : str
            Description and origin.

        There is no target, and so no ``return_X_y``.

    Raises
    ------
    FileNotFoundError
        If the file is not in the folder.
    ValueError
        If its columns are not as above, or if it does not have the season.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from seminmf.datasets import load_bundesliga
    >>> text = '''year,round,date,home,away,home_goals,away_goals
    ... 2030,1,2030-08-10,Foxes,Bears,3,1
    ... 2030,2,2030-08-17,Bears,Foxes,0,1
    ... '''
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "bundesliga.csv").write_text(text)
    ...     league = load_bundesliga(data_home=folder)
    >>> league.feature_names
    ['Bears', 'Foxes']
    >>> league.data
    array([[nan, -1.],
           [ 2., nan]])
    """
    path = require_file(
        _NAME,
        data_home,
        source="Bundesliga of the R package vcd",
        columns=f"the columns {', '.join(_COLUMNS)}",
    )
    matches = _read(path)
    seasons = np.unique(matches["year"])
    if season is None:
        season = int(seasons[-1])
    if season not in seasons.tolist():
        raise ValueError(
            f"season must be a year in which a season in {path} starts, from {seasons[0]} to "
            f"{seasons[-1]}; found {season!r}."
        )
    chosen = {name: column[matches["year"] == season] for name, column in matches.items()}
    return _season(chosen, as_frame=as_frame, season=int(season), seasons=seasons)


def _read(path: Path) -> _Matches:
    header, rows = read_csv(path)
    missing = [name for name in _COLUMNS if name not in header]
    if missing:
        raise ValueError(
            f"{path} must have the columns {', '.join(_COLUMNS)}; it lacks {', '.join(missing)}."
        )
    columns = {name: [row[header.index(name)] for row in rows] for name in _COLUMNS}
    matches = {
        name: _whole_numbers(path, name, column) if name in _WHOLE_NUMBERS else np.array(column)
        for name, column in columns.items()
    }
    matches["goal_diff"] = matches["home_goals"] - matches["away_goals"]
    counts = Counter(zip(columns["year"], columns["home"], columns["away"], strict=True))
    (match, count), *_ = counts.most_common(1)
    if count > 1:
        raise ValueError(
            f"{path} must have each match of a season once; found {' '.join(match)} {count} times."
        )
    return matches


def _whole_numbers(path: Path, name: str, fields: list[str]) -> NDArray[np.int64]:
    try:
        return np.array([int(field) for field in fields], dtype=np.int64)
    except ValueError as error:
        raise ValueError(
            f"{path} must have whole numbers in the column {name}; {error}."
        ) from error


def _season(matches: _Matches, *, as_frame: bool, **more: Any) -> Any:
    teams = np.unique([matches["home"], matches["away"]])
    data: Any = _by_teams(matches, "goal_diff", teams)
    rounds: Any = _by_teams(matches, "round", teams)
    frame = None
    if as_frame:
        import pandas as pd

        home, away = pd.Index(teams, name="home"), pd.Index(teams, name="away")
        data = pd.DataFrame(data, index=home, columns=away)
        rounds = pd.DataFrame(rounds, index=home, columns=away)
        frame = pd.DataFrame(matches)
        frame["date"] = pd.to_datetime(frame["date"].where(~frame["date"].isin(MISSING)))
    return Bunch(
        data=data,
        rounds=rounds,
        frame=frame,
        feature_names=teams.tolist(),
        sample_names=teams.tolist(),
        DESCR=_BUNDESLIGA,
        **more,
    )


def _by_teams(matches: _Matches, name: str, teams: NDArray[Any]) -> NDArray[np.float64]:
    """A column of the matches as a matrix: home team by row, away team by column."""
    matrix = np.full((len(teams), len(teams)), np.nan)
    home, away = (np.searchsorted(teams, matches[side]) for side in ("home", "away"))
    matrix[home, away] = matches[name]
    return matrix


_BUNDESLIGA = """\
Bundesliga
----------
Results of the first German football league. In a season, each team plays against each other team
once at home and once away: the goal differences are a square matrix of small signed whole numbers
without a diagonal. There are 18 teams and 34 rounds, but 16 and 30 in the seasons that began in
1963 and 1964, and 20 and 38 in the one that began in 1991.

Origin: Deutscher Fussball-Bund; collected by D. Dekic, T. Hothorn and A. Zeileis as Bundesliga of
the R package vcd, 1963 to 2008.
Licence: none is stated; the data do not come with this package.
"""
