"""Table 5: clusters in real data, against the classes; then restarts, other starts, and time.

The label of a sample is its largest activation. Accuracy is that of the best matching of clusters
and classes, found by the Hungarian algorithm.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF
from .._views.matching import match
from .._views.pictures import BLUE, ORANGE
from ..datasets import fetch_waveform, load_ionosphere, load_segment, load_shuttle, make_waveform
from ..special import exp_digamma
from ._frame import Findings, Settings
from ._runs import Run, fingerprint
from ._tables import Table, mean_and_spread

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

DEFAULT_RUNS = 100
# Runs of one seed, after which those of the next one begin.
_SEEDS = 1000
# Runs of which the best by its objective is taken.
RESTARTS = 10

# Table 5 of the paper: mean and standard deviation of the accuracy, in %.
DATA = ("Ionosphere", "Wave", "Image", "Shuttle")
PAPER = {
    "dummy": ((64.1, 0.0), (33.9, 0.0), (14.3, 0.0), (79.2, 0.0)),
    "K-means": ((70.8, 1.6), (50.2, 0.0), (52.2, 5.0), (60.8, 9.9)),
    "Ding'10": ((58.7, 4.8), (61.9, 10.1), (46.9, 5.0), (30.0, 5.1)),
    "Sk∞": ((70.6, 0.6), (64.5, 10.8), (48.2, 5.6), (53.1, 12.4)),
    "Sk∞-VB": ((70.7, 0.0), (64.1, 10.2), (50.7, 3.0), (36.8, 7.4)),
}

# The paper's iterations end when the objective changes by less than 1e-7. An iteration here is a
# cycle of three or four passes: 5000 of them cost what 15000 of the paper's do.
_PAPER_RULE: dict[str, Any] = {"tol": 1e-7, "n_jobs": 1}
_PAPER_EM = {"acceleration": "parabolic", "max_iter": 5000, **_PAPER_RULE}
_PAPER_SQUARES = {"solver": "multiplicative", "max_iter": 15000, **_PAPER_RULE}


class Labelled(NamedTuple):
    """Clusters of all samples, and what the algorithm says of itself."""

    labels: NDArray
    objective: float
    n_iter: int = 0
    converged: bool = True


class _AsIterated:
    """Leaves the activations as the last iteration has them, and does not solve for them."""

    @staticmethod
    def _finish(*arguments: Any) -> Any:
        return arguments[-1]


class _Ding(_AsIterated, EuclideanSNMF):
    pass


class _Skellam(_AsIterated, SkellamSNMF):
    pass


class _Bayesian(_AsIterated, BayesianSkellamSNMF):
    pass


def _dummy(X: NDArray, n_clusters: int, seed: int) -> Labelled:
    """All samples in one cluster."""
    return Labelled(np.zeros(len(X), dtype=int), 0.0)


def _kmeans(X: NDArray, n_clusters: int, seed: int, init: str = "random") -> Labelled:
    from sklearn.cluster import KMeans

    model = KMeans(n_clusters, init=init, n_init=1, random_state=seed).fit(X)
    return Labelled(model.labels_, -model.inertia_, model.n_iter_)


def _ding(X: NDArray, n_clusters: int, seed: int) -> Labelled:
    return _fit(_Ding(n_clusters, random_state=seed, **_PAPER_SQUARES), X)


def _skellam(X: NDArray, n_clusters: int, seed: int) -> Labelled:
    model = _Skellam(n_clusters, dispersion=0.0, solver="em", random_state=seed, **_PAPER_EM)
    return _fit(model, X, activations=np.ones((len(X), n_clusters)))


def _bayesian(X: NDArray, n_clusters: int, seed: int) -> Labelled:
    given = {"dispersion": 0.0, "posterior": "mean-field", **_PAPER_EM}
    model = _Bayesian(n_clusters, random_state=seed, **given)
    return _fit(model, X, activation_shape=np.ones((len(X), n_clusters)))


def _default(
    X: NDArray, n_clusters: int, seed: int, estimator: Callable[..., Any], **parameters: Any
) -> Labelled:
    """An estimator as it comes."""
    return _fit(estimator(n_clusters, random_state=seed, n_jobs=1, **parameters), X)


def _fit(model: Any, X: NDArray, **start: Any) -> Labelled:
    # Not `predict`, which solves for the activations of what has not converged.
    labels = np.argmax(membership(model.fit(X, **start)), axis=1)
    objective = getattr(model, "objective_", None)
    objective = model.lower_bound_ if objective is None else objective
    return Labelled(labels, float(objective), model.n_iter_, model.converged_)


def membership(model: Any) -> NDArray:
    """What the paper decides clusters by: activations, or the geometric means of their posterior.

    The estimators go by amounts, on which a component's own size does not tell.
    """
    if not hasattr(model, "activation_shape_"):
        return model.activations_
    return exp_digamma(model.activation_shape_) / model.activation_rate_


PAPER_ALGORITHMS: dict[str, Callable[..., Labelled]] = {
    "dummy": _dummy,
    "K-means": _kmeans,
    "Ding'10": _ding,
    "Sk∞": _skellam,
    "Sk∞-VB": _bayesian,
}
# The estimators of this package, from random starts and from K-means: as they come, and in the
# paper's limit of no dispersion.
_ESTIMATORS: dict[str, Callable[..., Any]] = {
    "EuclideanSNMF": EuclideanSNMF,
    "SkellamSNMF, M = ∞": partial(SkellamSNMF, dispersion=0.0),
    "SkellamSNMF": SkellamSNMF,
    "BayesianSkellamSNMF": BayesianSkellamSNMF,
}
OTHER_ALGORITHMS: dict[str, Callable[..., Labelled]] = {
    "K-means++": partial(_kmeans, init="k-means++"),
    **{
        name if init == "random" else f"{name}, K-means start": partial(
            _default, estimator=estimator, init=init
        )
        for name, estimator in _ESTIMATORS.items()
        for init in ("random", "kmeans")
    },
}
ALGORITHMS = PAPER_ALGORITHMS | OTHER_ALGORITHMS


def accuracy(classes: NDArray, clusters: NDArray) -> float:
    """Share of the samples, in %, that the best matching of clusters and classes gets right."""
    return 100 * match(classes, clusters).accuracy


def load_data(name: str, data_home: Any = None) -> tuple[NDArray, NDArray]:
    """Data and classes, not scaled; a stand-in for the waveform data if they are not there."""
    if name == "Wave":
        try:
            return fetch_waveform(data_home=data_home, download_if_missing=False, return_X_y=True)
        except OSError:
            return make_waveform(5000, random_state=0)
    load = {"Ionosphere": load_ionosphere, "Image": load_segment, "Shuttle": load_shuttle}[name]
    return load(return_X_y=True)


def _run_once(data: str, algorithm: str, seed: int, data_home: Any) -> dict[str, Any]:
    X, classes = load_data(data, data_home)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ALGORITHMS[algorithm](X, len(np.unique(classes)), seed)
    return {
        "accuracy": accuracy(classes, found.labels),
        "objective": found.objective,
        "iterations": int(found.n_iter),
        "converged": bool(found.converged),
        "seconds": time.perf_counter() - begin,
    }


def plan(settings: Settings) -> list[list[Run]]:
    """One run for each data set, algorithm and number; run by run, so that all grow alike."""
    chains = []
    names = settings.options.get("data", DATA)
    rows = {name: fingerprint(load_data(name, settings.data_home)[0]) for name in names}
    for number in range(settings.runs):
        for data in names:
            for algorithm in settings.options.get("algorithms", ALGORITHMS):
                seed = _SEEDS * settings.seed + number
                key = {"data": data, "rows": rows[data], "algorithm": algorithm, "seed": seed}
                work = partial(_run_once, data, algorithm, seed, settings.data_home)
                chains.append([Run(key, work)])
    return chains


def findings(found: pd.DataFrame, settings: Settings) -> Findings:
    """The paper's table side by side with ours, and what lies beyond it."""
    remarks = []
    if fingerprint(make_waveform(5000, random_state=0)[0]) in set(found["rows"]):
        remarks.append(
            "Wave is a new draw by make_waveform, not the paper's rows: see fetch_waveform for how "
            "to get these, and name their folder by --data-home."
        )
    tables = [_paper_table(found), _beyond_table(found)]
    return Findings(tables, {"clustering": _picture(found)}, remarks)


def _cells(found: pd.DataFrame) -> dict[tuple[str, str], pd.DataFrame]:
    """Runs of each algorithm on each data set, in the order of their seeds."""
    return {key: part.sort_values("seed") for key, part in found.groupby(["algorithm", "data"])}


def _paper_table(found: pd.DataFrame) -> Table:
    cells = _cells(found)
    rows = []
    for number, data in enumerate(DATA):
        for algorithm, figures in PAPER.items():
            if (algorithm, data) in cells:
                mean, spread = figures[number]
                here = cells[algorithm, data]["accuracy"]
                distance = abs(here.mean() - mean)
                spread = max(spread, 0.05)  # the paper's figures are rounded
                rows.append(
                    [
                        data,
                        algorithm,
                        f"{mean:.1f} | {figures[number][1]:.1f}",
                        mean_and_spread(here, 1),
                        "yes" if distance <= spread else f"no, {distance / spread:.1f} of it away",
                    ]
                )
    columns = ["data", "algorithm", "paper", "here", "within the paper's spread"]
    title = f"Table 5: accuracy in %, mean | standard deviation ({len(set(found['seed']))} runs)"
    return Table("clustering", title, columns, rows)


def best_of(part: pd.DataFrame, n: int = RESTARTS) -> NDArray:
    """Accuracies of the best run by its objective, of each `n` in a row that are complete."""
    groups = max(len(part) // n, 1)
    chosen = part.head(groups * n)
    number = np.arange(len(chosen)) // n
    best = chosen["objective"].groupby(number).transform("max") == chosen["objective"]
    return chosen[best.to_numpy()].groupby(number[best.to_numpy()])["accuracy"].first().to_numpy()


def _beyond_table(found: pd.DataFrame) -> Table:
    cells = _cells(found)
    rows = [
        [
            data,
            algorithm,
            mean_and_spread(cells[algorithm, data]["accuracy"], 1),
            mean_and_spread(best_of(cells[algorithm, data]), 1),
            f"{cells[algorithm, data]['seconds'].median():.2f}",
            f"{cells[algorithm, data]['iterations'].median():.0f}",
        ]
        for data in DATA
        for algorithm in ALGORITHMS
        if (algorithm, data) in cells
    ]
    n_best = min(RESTARTS, len(set(found["seed"])))
    columns = ["data", "algorithm", "one run", f"best of {n_best}", "s a run", "iterations"]
    title = "Beyond the paper: restarts (the best by its objective), other starts, time"
    return Table("restarts", title, columns, rows)


def _picture(found: pd.DataFrame) -> Figure:
    """Accuracies of all runs, with the paper's mean and standard deviation beside them."""
    from matplotlib.figure import Figure

    cells = _cells(found)
    figure = Figure(figsize=(12, 6.5), layout="constrained")
    names = list(ALGORITHMS)
    for axes, data in zip(figure.subplots(1, len(DATA), sharey=True), DATA, strict=True):
        for place, algorithm in enumerate(names):
            part = cells.get((algorithm, data))
            if part is not None:
                jitter = np.linspace(-0.25, 0.25, len(part)) if len(part) > 1 else np.zeros(1)
                axes.plot(part["accuracy"], place + jitter, ".", color=BLUE, alpha=0.35)
            if algorithm in PAPER:
                mean, spread = PAPER[algorithm][DATA.index(data)]
                axes.errorbar(mean, place, xerr=spread, fmt="D", color=ORANGE, capsize=4)
        axes.set(title=data, xlabel="accuracy in %")
        axes.grid(axis="x", alpha=0.3)
    axes.set(yticks=range(len(names)), yticklabels=names)
    axes.invert_yaxis()
    handles = [
        axes.plot([], [], ".", color=BLUE, label="a run")[0],
        axes.errorbar([], [], xerr=[], fmt="D", color=ORANGE, capsize=4, label="the paper"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure
