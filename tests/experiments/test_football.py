"""Matches to come as gaps."""

import numpy as np
import pandas as pd
import pytest
from leagues import N_TEAMS, league

from seminmf import BayesianSkellamSNMF, SkellamSNMF
from seminmf.experiments import Settings, _football
from seminmf.experiments._runs import run_all


@pytest.fixture
def folder(tmp_path):
    league(4).to_csv(tmp_path / "bundesliga.csv", index=False)
    return tmp_path


@pytest.fixture
def quick(monkeypatch):
    """One setting of each method, and one season to choose it by."""
    few = {
        method: dict(list(settings.items())[:1]) for method, settings in _football.METHODS.items()
    }
    monkeypatch.setattr(_football, "METHODS", few)
    monkeypatch.setattr(_football, "N_FIRST", 1)


def test_a_season_is_judged_by_what_was_hidden(folder, quick):
    found = _football._season(2001, folder)
    for share in _football.SEEN:
        for method in _football.METHODS:
            setting = next(iter(_football.METHODS[method]))
            assert 0 <= found[f"{share}/{method}/{setting}"] <= 1
    matches = league(4)
    later = matches[(matches["year"] == 2001) & (matches["round"] > 5)]
    home_wins = np.mean(later["home_goals"] > later["away_goals"])
    assert found["0.5/always home/"] == pytest.approx(home_wins)


def test_hidden_results_reach_no_method(tmp_path, monkeypatch):
    """Other results in the rest of the season: methods see the same."""
    matches = league(1)
    other = matches.copy()
    other.loc[other["round"] > 5, "home_goals"] += 3
    shown = []

    def remember(gappy):
        shown.append(gappy)
        return np.ones_like(gappy)

    monkeypatch.setattr(_football, "METHODS", {"method": {"": remember}})
    for name, season in (("first", matches), ("second", other)):
        (tmp_path / name).mkdir()
        season.to_csv(tmp_path / name / "bundesliga.csv", index=False)
        _football._season(2000, tmp_path / name)
    half, later, half_again, later_again = shown
    np.testing.assert_array_equal(half, half_again)
    assert not np.array_equal(later, later_again, equal_nan=True)  # of which more is seen


@pytest.mark.parametrize("method", _football.METHODS)
def test_every_method_predicts_all_matches(method):
    rng = np.random.default_rng(0)
    gappy = rng.integers(-4, 5, (N_TEAMS, N_TEAMS)).astype(float)
    gappy[rng.random(gappy.shape) < 0.4] = np.nan
    np.fill_diagonal(gappy, np.nan)
    predict = next(iter(_football.METHODS[method].values()))
    predicted = predict(gappy)
    assert predicted.shape == gappy.shape and np.isfinite(predicted).all()
    np.testing.assert_array_equal(predict(gappy.copy()), predicted)


@pytest.mark.parametrize("estimator", [SkellamSNMF, BayesianSkellamSNMF])
def test_the_prior_says_what_a_match_is_like(estimator):
    prior = _football.football_prior(estimator, 18, 20.0, 10.0)
    home, away = prior["activation_shape_prior"] / prior["activation_rate_prior"] / 18
    assert 1 < away < home < 3  # goals of a match
    shape = prior["atom_shape_prior"]
    assert shape.shape == (2, 2, 18)
    assert (shape[0, 0] == 10).all() and (shape[1, 1] == 10).all()
    assert (shape[1, 0] <= 1).all() and (shape[0, 1] <= 1).all()


@pytest.mark.parametrize("estimator", [SkellamSNMF, BayesianSkellamSNMF])
def test_strong_teams_are_found(estimator):
    """In a league whose teams differ much, the factorization beats a bet on the home team."""
    matches = league(6, seed=1, spread=1.2)
    right, home = [], []
    for _, season in matches.groupby("year"):
        goals = season["home_goals"] - season["away_goals"]
        rows, columns = (season[side].str[1:].astype(int) for side in ("home", "away"))
        X = np.full((N_TEAMS, N_TEAMS), np.nan)
        X[rows, columns] = goals
        hidden = np.zeros(X.shape, dtype=bool)
        hidden[rows, columns] = season["round"] > 6
        gappy = np.where(hidden, np.nan, X)
        predicted = _football._factorize(gappy, estimator, (10.0, 5.0))
        right.append(np.mean(np.sign(predicted[hidden]) == np.sign(X[hidden])))
        home.append(np.mean(X[hidden] > 0))
    assert np.mean(right) > np.mean(home) + 0.1


def test_settings_are_chosen_by_the_seasons_before():
    settings = list(_football.METHODS["Ridge"])
    names = [f"0.5/Ridge/{setting}" for setting in settings]
    found = pd.DataFrame(0.5, index=range(4), columns=names)
    found["season"] = [3, 2, 1, 0]  # rows in another order
    found.loc[3, names[1]] = 0.9  # season 0
    found.loc[2, names[2]] = 0.95  # season 1
    found.loc[1, names[1]] = 0.1  # season 2
    accuracy = _football.chosen(found, 0.5, "Ridge", n_first=1)
    # In season 1 the second is the best so far, in season 2 the third, in season 3 the third.
    np.testing.assert_allclose(accuracy, [0.5, 0.5, 0.5])
    found.loc[0, names[2]] = 0.7
    assert _football.chosen(found, 0.5, "Ridge", n_first=1)[-1] == 0.7


def test_table_and_picture(folder, quick, tmp_path):
    settings = Settings(tmp_path, 1, data_home=folder)
    found = run_all(_football.plan(settings), tmp_path / "runs", 1)
    assert sorted(found["season"]) == [2000, 2001, 2002, 2003]
    table, figure = _football.findings(found)
    assert [row[0] for row in table.rows] == list(_football.METHODS)
    assert all(len(row) == len(table.columns) for row in table.rows)
    assert table.rows[0][2] == "+0.0 ± 0.0"
    assert len(figure.axes) == len(_football.SEEN)
