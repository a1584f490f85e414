"""Hidden cells, which the paper left for later: the gaps of an image, and ratings not yet given.

A share of the cells is hidden at random, all ways of filling gaps see the others, and the hidden
ones tell how well each did: how far it was, how often its intervals held, and how long it took.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._selection.heldout import hide
from .._views.pictures import AMBER, BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY
from ..datasets import load_jester
from ._frame import Findings, Settings
from ._imputers import LEVEL, Fill, Method, methods, root_mean_square
from ._runs import Found, Key, Run, fingerprint
from ._tables import Table, mean_and_spread

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEFAULT_RUNS = 3
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
# Without their middle, grey levels are signed.
MIDDLE = 128
GREY_LEVELS = (0 - MIDDLE, 255 - MIDDLE)
RATINGS = (-10, 10)
# The image with so much of it hidden is shown, as these methods fill it.
SHOWN_SHARE = 0.7
SHOWN_METHODS = ("KNN imputer", "soft SVD", "Skellam SNMF, real", "Bayesian SNMF, real")
HIDDEN_COLOUR = SKY

REMARK = (
    "The imputers are scikit-learn's KNNImputer and IterativeImputer; soft SVD is softImpute; SNMF "
    "is SkellamSNMF and BayesianSkellamSNMF. All but means have chosen their settings by a tenth "
    "of the cells that were not hidden; runs.csv has them. Fills were cut to the range of the "
    "data. In ratings, all but means fill what the means of rows and columns leave."
)

STYLES: dict[str, dict[str, Any]] = {
    "column means": {"color": GREY, "marker": "."},
    "row and column means": {"color": BLACK, "marker": "."},
    "KNN imputer": {"color": AMBER, "marker": "s"},
    "iterative imputer": {"color": PINK, "marker": "^"},
    "soft SVD": {"color": GREEN, "marker": "D"},
    "Skellam SNMF, real": {"color": ORANGE, "marker": "o"},
    "Bayesian SNMF, real": {"color": BLUE, "marker": "o"},
    "Skellam SNMF, integer": {"color": ORANGE, "marker": "x", "linestyle": "--"},
    "Bayesian SNMF, integer": {"color": BLUE, "marker": "x", "linestyle": "--"},
}


# --- data ---------------------------------------------------------------------------------------


def load_image(size: int, seed: int, data_home: Path | None) -> NDArray:
    """A photograph that comes with scikit-learn, in about `size` rows: grey levels minus 128."""
    from sklearn.datasets import load_sample_image

    grey = load_sample_image("china.jpg") @ [0.299, 0.587, 0.114]
    block = max(len(grey) // size, 1)
    n_rows, n_columns = (length // block for length in grey.shape)
    cut = grey[: n_rows * block, : n_columns * block]
    return np.round(cut.reshape(n_rows, block, n_columns, block).mean(axis=(1, 3))) - MIDDLE


def load_ratings(size: int, seed: int, data_home: Path | None) -> NDArray:
    """Ratings of jokes by `size` users, drawn at random, or by all if there are fewer."""
    ratings = load_jester(data_home=data_home).data
    chosen = RandomState(seed).permutation(len(ratings))[:size]
    return ratings[np.sort(chosen)]


class Task(NamedTuple):
    """Data, methods to fill them, and how to speak of them.

    Attributes
    ----------
    title : str
    load : callable
        Takes the size, a seed and a folder; returns the data, with NaN for their own gaps.
    option : str
        Name of the option that is the size.
    size : int
        Its default.
    methods : dict of str to Method
    digits : int
        Digits of errors in tables.
    """

    title: str
    load: Callable[[int, int, Path | None], NDArray]
    option: str
    size: int
    methods: dict[str, Method]
    digits: int


# The same for both tasks.
_CHOICES: dict[str, Sequence[float]] = {
    "n_neighbors": (2, 10, 30, 100),
    "n_nearest_features": (5, 20),
}
_IMAGE_CHOICES: dict[str, Sequence[float]] = {
    "threshold": (0.1, 0.05, 0.02, 0.01),
    "n_components": (2, 5, 10, 20),
    "atom_shape_prior": (1, 10),
}
_RATING_CHOICES: dict[str, Sequence[float]] = {
    "threshold": (0.9, 0.7, 0.5, 0.3),
    "n_components": (1, 4, 8),
    "atom_shape_prior": (10, 100),
}
TASKS = {
    "image": Task(
        "Image, grey levels from 0 to 255",
        load_image,
        "size",
        106,
        methods(_CHOICES | _IMAGE_CHOICES, ("real", "integer"), GREY_LEVELS, residuals=False),
        digits=1,
    ),
    "ratings": Task(
        "Jester, ratings from -10 to 10",
        load_ratings,
        "users",
        1000,
        methods(_CHOICES | _RATING_CHOICES, ("real",), RATINGS, residuals=True),
        digits=2,
    ),
}


@cache
def load(task: str, size: int, seed: int, data_home: Path | None) -> NDArray:
    """The data of a task; a process reads them once."""
    data = TASKS[task].load(size, seed, data_home)
    data.flags.writeable = False
    return data


def left_out(settings: Settings) -> dict[str, str]:
    """Tasks whose data are not there, with what their loader says of it."""
    try:
        load_jester(data_home=settings.data_home)
    except FileNotFoundError as error:
        return {"ratings": str(error)}
    return {}


# --- runs ---------------------------------------------------------------------------------------


def plan(settings: Settings) -> list[list[Run]]:
    """A run for each task, choice of hidden cells, share of them, and method."""
    shares = [float(share) for share in settings.options.get("shares", SHARES)]
    without = left_out(settings)
    runs = []
    for name, task in TASKS.items():
        if name in without:
            continue
        size = int(settings.options.get(task.option, task.size))
        key: Key = {"task": name, "size": size, "seed": settings.seed}
        rows = fingerprint(load(name, size, settings.seed, settings.data_home))
        for number, share, method in product(range(settings.runs), shares, task.methods):
            own = key | {"number": number, "share": share, "method": method}
            work = partial(fill_hidden, **own, data_home=settings.data_home)
            runs.append([Run(own | {"rows": rows}, work)])
    return runs


def problem(
    task: str, size: int, share: float, number: int, seed: int, data_home: Path | None
) -> tuple[NDArray, NDArray]:
    """Data, and which cells are hidden; each row and column keeps one or more."""
    X = load(task, size, seed, data_home)
    random = RandomState([seed, number, round(1000 * share)])
    return X, hide(~np.isnan(X), share, random)


def fill_hidden(task: str, method: str, number: int, **key: Any) -> Found:
    """Hide cells, choose settings by the others, fill what is hidden, and compare."""
    X, hidden = problem(task, number=number, **key)
    gappy = np.where(hidden, np.nan, X)
    filler = TASKS[task].methods[method]
    with quiet_and_alone():
        warm_up(task, method)
        begin = time.perf_counter()
        chosen = filler.choose(gappy, seed=number)
        fill = filler.fill(gappy, seed=number, intervals=True, **chosen)
        seconds = time.perf_counter() - begin
    return measure(fill, X, hidden) | {"seconds": seconds, "chosen": json.dumps(chosen)}


@contextmanager
def quiet_and_alone() -> Iterator[None]:
    """No warnings of fits that could go on, and one thread, as runs share the cores."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@cache
def warm_up(task: str, method: str) -> None:
    """Fill a little matrix, so that no run is timed with imports and compilation."""
    filler = TASKS[task].methods[method]
    gappy = np.array([[1.0, 2, -3, 4], [np.nan, 4, 5, 6], [2, 3, np.nan, 5], [4, -3, 2, 1]])
    settings = {name: values[0] for name, values in filler.choices.items()}
    filler.fill(gappy, seed=0, intervals=True, **settings)


def measure(fill: Fill, X: NDArray, hidden: NDArray) -> Found:
    """Errors in the hidden cells, the share of them in their intervals, and the mean width."""
    errors = (fill.values - X)[hidden]
    coverage = width = None
    if fill.lower is not None and fill.upper is not None:
        coverage = float(np.mean(((fill.lower <= X) & (X <= fill.upper))[hidden]))
        width = float(np.mean((fill.upper - fill.lower)[hidden]))
    return {
        "rmse": root_mean_square(errors),
        "mae": float(np.mean(np.abs(errors))),
        "coverage": coverage,
        "width": width,
    }


# --- tables -------------------------------------------------------------------------------------


def findings(found: pd.DataFrame, settings: Settings) -> Findings:
    """Tables of each task, the image as some methods fill it, and curves of errors and coverage."""
    tasks = {name: found[found["task"] == name] for name in TASKS}
    tasks = {name: runs for name, runs in tasks.items() if len(runs)}
    pictures = {
        "inpainting": inpainting_picture(tasks["image"], settings.data_home),
        "errors": curves_picture(tasks, draw_errors),
        "coverage": curves_picture(tasks, draw_coverage),
    }
    remarks = [REMARK]
    remarks += [f"Without the {name}: {reason}" for name, reason in left_out(settings).items()]
    tables = [table for name, runs in tasks.items() for table in tables_of(name, runs)]
    return Findings(tables, pictures, remarks)


def tables_of(name: str, runs: pd.DataFrame) -> list[Table]:
    """Errors, coverage and width of intervals, seconds."""
    task = TASKS[name]
    groups = dict(list(runs.groupby(["method", "share"])))
    shares = sorted(set(runs["share"]))

    def table(kind: str, title: str, cell: Callable[[pd.DataFrame], str]) -> Table:
        rows = [
            [method, *(cell(groups[method, share]) for share in shares)] for method in task.methods
        ]
        columns = ["cells hidden", *(f"{share:.0%}" for share in shares)]
        return Table(f"{name}_{kind}", f"{task.title}: {title}", columns, rows)

    spread = "mean | standard deviation"
    intervals = f"share of hidden cells in their {LEVEL:.0%} intervals | mean width"
    return [
        table("rmse", f"root mean square error, {spread}", partial(_error, task, "rmse")),
        table("mae", f"mean absolute error, {spread}", partial(_error, task, "mae")),
        table("coverage", intervals, _coverage_and_width),
        table("seconds", "seconds of one core, with the choice of settings", _seconds),
    ]


def _error(task: Task, measure: str, runs: pd.DataFrame) -> str:
    return mean_and_spread(runs[measure], task.digits)


def _coverage_and_width(runs: pd.DataFrame) -> str:
    coverage, width = (runs[name].astype(float).mean() for name in ("coverage", "width"))
    return "–" if np.isnan(coverage) else f"{coverage:.0%} | {width:.3g}"


def _seconds(runs: pd.DataFrame) -> str:
    return f"{runs['seconds'].mean():.1f}"


# --- pictures -----------------------------------------------------------------------------------


def inpainting_picture(runs: pd.DataFrame, data_home: Path | None) -> Figure:
    """The image, what is left of it, and what some methods make of that."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    runs = runs[runs["number"] == 0]
    share = min(runs["share"], key=lambda share: abs(share - SHOWN_SHARE))
    runs = runs[runs["share"] == share].set_index("method")
    size, seed = (int(runs[name].iloc[0]) for name in ("size", "seed"))
    X, hidden = problem("image", size, share, 0, seed, data_home)
    gappy = np.where(hidden, np.nan, X)
    panels = {"the image": X, f"{share:.0%} of it hidden": gappy}
    for method in SHOWN_METHODS:
        chosen = json.loads(runs["chosen"][method])
        with quiet_and_alone():
            fill = TASKS["image"].methods[method].fill(gappy, seed=0, intervals=False, **chosen)
        title = f"{method}: error {runs['rmse'][method]:.1f}"
        panels[title] = np.where(hidden, fill.values, X)
    figure = Figure(figsize=(11, 5.15), layout="constrained")
    colours = colormaps["gray"].with_extremes(bad=HIDDEN_COLOUR)
    for axis, (title, values) in zip(figure.subplots(2, 3).flat, panels.items(), strict=True):
        axis.imshow(values + MIDDLE, cmap=colours, vmin=0, vmax=255)
        axis.set_title(title, fontsize="medium")
        axis.set_axis_off()
    return figure


def curves_picture(
    tasks: dict[str, pd.DataFrame], draw: Callable[[Axes, str, pd.DataFrame], None]
) -> Figure:
    """A panel for each task, and one legend for all."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 + 4 * len(tasks), 5.2), layout="constrained")
    panels = figure.subplots(1, len(tasks), squeeze=False)[0]
    handles: dict[str, Any] = {}
    for axis, (name, runs) in zip(panels, tasks.items(), strict=True):
        draw(axis, name, runs)
        shares = sorted(set(runs["share"]))
        axis.set_xticks(shares, [f"{share:.0%}" for share in shares])
        axis.set_xlabel("share of cells hidden")
        axis.set_title(TASKS[name].title, fontsize="medium")
        axis.grid(alpha=0.3)
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    labels = [method for method in STYLES if method in handles]
    ordered = [handles[label] for label in labels]
    figure.legend(ordered, labels, loc="outside lower center", ncols=1 + len(tasks))
    return figure


def draw_errors(axis: Axes, name: str, runs: pd.DataFrame) -> None:
    """Mean over the runs, and from the smallest to the largest."""
    for method in TASKS[name].methods:
        draw_curve(axis, method, runs[runs["method"] == method].groupby("share")["rmse"])
    axis.set(ylabel="root mean square error in hidden cells")
    if runs["rmse"].max() > 3 * runs["rmse"].min():
        axis.set_yscale("log")
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("{x:g}")


def draw_coverage(axis: Axes, name: str, runs: pd.DataFrame) -> None:
    """Share of the hidden cells that lie in their intervals, where there are some."""
    axis.axhline(100 * LEVEL, color="black", linewidth=0.8)
    for method in TASKS[name].methods:
        own = runs[runs["method"] == method]
        if own["coverage"].notna().any():
            percent = own.assign(coverage=100 * own["coverage"].astype(float))
            draw_curve(axis, method, percent.groupby("share")["coverage"])
    axis.set(
        ylabel=f"% of hidden cells in their {LEVEL:.0%} intervals",
        ylim=(min(50, axis.get_ylim()[0]), 102),
    )


def draw_curve(axis: Axes, method: str, groups: Any) -> None:
    """Means of groups of runs by share, with their range."""
    mean = groups.mean()
    reach = [mean - groups.min(), groups.max() - mean]
    axis.errorbar(mean.index, mean, yerr=reach, capsize=2, label=method, **STYLES[method])
