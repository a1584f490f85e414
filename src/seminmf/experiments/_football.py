"""Matches to come as gaps: who wins in the rest of a football season?

A season is a matrix of goal differences, home team by row and away team by column; matches after
some round are hidden. The integer likelihood is made for it: the difference of two Poisson counts,
goals of the home team and of the away team. With two components, one of them mostly positive and
the other mostly negative, the first says how many goals teams score and let in when the row's team
plays at home, and the second what the guests do.

A method has some settings to choose from, and takes the one with the best accuracy in all seasons
before; so nothing is known of the season that is judged.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import BayesianSkellamSNMF, SkellamSNMF
from .._views.pictures import BLUE, ORANGE
from ..datasets import load_bundesliga
from ._frame import Settings
from ._runs import Run, fingerprint
from ._tables import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TASK = "football"
# Shares of a season that are seen.
SEEN = (0.5, 0.75)
# Seasons that only serve to choose settings.
N_FIRST = 10
# Goals of a home team and of an away team in a match, in the seasons that are not judged.
_GOALS = np.array([2.0, 1.2])
# Shape of the sign that a component should not have; MAP has no maximum for shapes below 1.
_OTHER_SIGN: dict[type, float] = {SkellamSNMF: 1.0, BayesianSkellamSNMF: 0.05}
_BASIC: dict[str, Any] = {"likelihood": "integer", "n_jobs": 1, "random_state": 0}

Predictor = Callable[[NDArray], NDArray]


def football_prior(estimator: type, n_teams: int, activation: float, atom: float) -> dict[str, Any]:
    """Parameters of a prior: two components, one of each sign, and how much teams differ."""
    atoms = np.full((2, 2, n_teams), _OTHER_SIGN[estimator])
    atoms[0, 0] = atoms[1, 1] = atom
    shape = np.full(2, activation)
    return {
        "activation_shape_prior": shape,
        "activation_rate_prior": shape / (_GOALS * n_teams),
        "atom_shape_prior": atoms,
    }


def _always_home(gappy: NDArray) -> NDArray:
    return np.ones_like(gappy)


def _factorize(gappy: NDArray, estimator: type, shapes: tuple[float, float] | None) -> NDArray:
    """Goal differences that a factorization expects, with the prior for football or without."""
    basic = dict(_BASIC)
    if estimator is BayesianSkellamSNMF:
        basic["posterior"] = "mean-field"
    if shapes is None:
        model = estimator(2, n_init=5, **basic)
    else:
        prior = football_prior(estimator, len(gappy), *shapes)
        model = estimator(2, init="prior", **basic, **prior)
    model.fit(gappy)
    return model.activations_ @ model.components_


def _scikit_learn(gappy: NDArray, model: str, setting: float) -> NDArray:
    """A regression of the difference, or a classification of its sign, on both teams."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression, Ridge

    build: Any = {
        "Ridge": lambda: Ridge(alpha=setting),
        "LogisticRegression": lambda: LogisticRegression(C=setting, max_iter=1000),
        "RandomForest": lambda: RandomForestClassifier(
            100, min_samples_leaf=int(setting), random_state=0
        ),
    }[model]
    n_teams = len(gappy)
    home, away = (index.ravel() for index in np.indices(gappy.shape))
    teams = np.hstack([np.eye(n_teams)[home], np.eye(n_teams)[away]])
    seen = ~np.isnan(gappy.ravel())
    goals = gappy.ravel()[seen]
    predictor = build().fit(teams[seen], goals if model == "Ridge" else np.sign(goals))
    return predictor.predict(teams).reshape(gappy.shape)


_SHAPES = [(shape, atom) for shape in (10.0, 20.0, 40.0) for atom in (5.0, 10.0, 20.0)]
# Method → setting → prediction of all cells.
METHODS: dict[str, dict[str, Predictor]] = {
    "always home": {"": _always_home},
    **{
        name: {str(value): partial(_scikit_learn, model=name, setting=value) for value in settings}
        for name, settings in {
            "Ridge": (3.0, 5.0, 10.0, 20.0, 40.0),
            "LogisticRegression": (0.03, 0.1, 0.3, 1.0),
            "RandomForest": (1.0, 5.0),
        }.items()
    },
    **{
        f"{estimator.__name__}{label}": {
            str(choice): partial(_factorize, estimator=estimator, shapes=choice)
            for choice in choices
        }
        for estimator in (SkellamSNMF, BayesianSkellamSNMF)
        for label, choices in ((", neutral", [None]), (", football", _SHAPES))
    },
}


def _season(season: int, data_home: Any) -> dict[str, Any]:
    """Accuracies of all methods and settings in one season, and the seconds that each took."""
    data = load_bundesliga(data_home=data_home, season=season)
    found: dict[str, Any] = {}
    for share in SEEN:
        hidden = data.rounds > share * np.nanmax(data.rounds)
        gappy = np.where(hidden, np.nan, data.data)
        signs = np.sign(data.data[hidden])
        for method, settings in METHODS.items():
            begin = time.perf_counter()
            for setting, predict in settings.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    predicted = np.sign(predict(gappy)[hidden])
                found[f"{share}/{method}/{setting}"] = float(np.mean(predicted == signs))
            found[f"{share}/{method}/seconds"] = (time.perf_counter() - begin) / len(settings)
    return found


def plan(settings: Settings) -> list[list[Run]]:
    """One run for each season."""
    seasons = load_bundesliga(data_home=settings.data_home).seasons
    chains = []
    for season in map(int, seasons[: settings.options.get("seasons", len(seasons))]):
        data = load_bundesliga(data_home=settings.data_home, season=season)
        key = {"task": TASK, "season": season, "rows": fingerprint(data.data, data.rounds)}
        chains.append([Run(key, partial(_season, season, settings.data_home))])
    return chains


def chosen(found: pd.DataFrame, share: float, method: str, n_first: int = N_FIRST) -> NDArray:
    """Accuracy of a method in each season after the first, with the best setting before it."""
    names = [f"{share}/{method}/{setting}" for setting in METHODS[method]]
    table = found.sort_values("season")[names].to_numpy(dtype=float)
    return np.array(
        [row[np.argmax(table[:n].mean(axis=0))] for n, row in enumerate(table) if n >= n_first]
    )


def findings(found: pd.DataFrame) -> tuple[Table, Figure]:
    """Accuracies, and how far they are from always betting on the home team."""
    n_first = min(N_FIRST, len(found) - 1)
    values = {
        (share, method): 100 * chosen(found, share, method, n_first)
        for share in SEEN
        for method in METHODS
    }
    rows = []
    for method in METHODS:
        row = [method]
        for share in SEEN:
            gain = values[share, method] - values[share, "always home"]
            error = gain.std() / np.sqrt(len(gain))
            row += [f"{values[share, method].mean():.1f}", f"{gain.mean():+.1f} ± {error:.1f}"]
        row.append(f"{found[f'{SEEN[0]}/{method}/seconds'].median():.3f}")
        rows.append(row)
    columns = ["method"]
    for share in SEEN:
        columns += [f"after {share:.0%} of a season", "more than always home"]
    n_seasons = len(found) - n_first
    title = f"Sign of the results to come: accuracy in %, mean of {n_seasons} seasons; s a fit"
    return Table("football", title, [*columns, "s"], rows), _picture(values)


def _picture(values: dict[tuple[float, str], NDArray]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    methods = [method for method in METHODS if method != "always home"]
    for axes, share in zip(figure.subplots(1, len(SEEN), sharey=True), SEEN, strict=True):
        for place, method in enumerate(methods):
            gain = values[share, method] - values[share, "always home"]
            colour = BLUE if "SNMF" in method else ORANGE
            error = gain.std() / np.sqrt(len(gain))
            axes.errorbar(gain.mean(), place, xerr=error, fmt="o", color=colour, capsize=4)
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set(title=f"after {share:.0%} of a season", yticks=range(len(methods)))
        axes.set_yticklabels(methods)
        axes.grid(axis="x", alpha=0.3)
    axes.invert_yaxis()
    figure.supxlabel(
        "accuracy beyond always home, in % points (± standard error)", fontsize="medium"
    )
    return figure
