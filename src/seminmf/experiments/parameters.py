"""Are parameters found again if the prior is known? The paper's Table 3.

Integers with 5000 samples, 3 features and 2 components are drawn in four scenarios, and each
algorithm gets the prior that they were drawn from. The paper drew hyperparameters once for each
scenario; here they are drawn several times (option "draws"), so that one sees what is due to them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from .._views.pictures import BLUE, GREY, ORANGE
from ..bayesian import BayesianSkellamSNMF
from ..skellam import SkellamSNMF
from ._frame import Findings, Settings
from ._runs import Found, Key, Run
from ._scenarios import PUBLISHED, SCENARIOS, Scenario, Truth, best_order, draw_seeds, mse_m, mse_v
from ._tables import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEFAULT_RUNS = 50
DRAWS = 20
# The dummy costs next to nothing, and ends of a range over 20 draws are noise.
DUMMY_DRAWS = 100
N_SAMPLES = 5000
METRICS = {"mse_m": mse_m, "mse_v": mse_v}
# Errors are shown in thousands.
UNIT = 1e3
# Quantiles of what the draws of hyperparameters give.
RANGE = (0.05, 0.95)
FIT: dict[str, Any] = {
    "likelihood": "integer",
    "acceleration": "parabolic",
    "init": "prior",
    "max_iter": 10_000,
    "tol": 1e-7,
    "n_jobs": 1,
    "random_state": 0,
}
FITTED = {
    "Sk1": partial(SkellamSNMF, solver="em", **FIT),
    "Sk1-VB": partial(BayesianSkellamSNMF, posterior="mean-field", **FIT),
}
ALGORITHMS = ("Dummy", *FITTED)

# Mean and standard deviation of 50 runs, in thousands (tab:results_sk_1_synth_data).
TABLE_3 = {
    (metric, algorithm): dict(zip(SCENARIOS, cells, strict=True))
    for (metric, algorithm), cells in {
        ("mse_m", "Dummy"): ((1.01, 0.54), (1.95, 0.52), (15.74, 6.76), (31.57, 8.33)),
        ("mse_m", "Sk1"): ((0.66, 0.49), (0.18, 0.03), (5.99, 12.27), (0.73, 0.97)),
        ("mse_m", "Sk1-VB"): ((0.90, 0.68), (0.12, 0.03), (6.63, 13.23), (0.57, 1.34)),
        ("mse_v", "Dummy"): ((1.75, 0.36), (1.98, 0.51), (25.42, 5.77), (32.63, 7.27)),
        ("mse_v", "Sk1"): ((3.09, 2.31), (0.19, 0.05), (13.82, 13.38), (1.37, 1.99)),
        ("mse_v", "Sk1-VB"): ((2.84, 2.35), (0.13, 0.06), (13.45, 12.79), (1.43, 3.43)),
    }.items()
}

COLOURS = {"Dummy": GREY, "Sk1": BLUE, "Sk1-VB": ORANGE}


# --- runs ---------------------------------------------------------------------------------------


def plan(settings: Settings) -> list[list[Run]]:
    """One chain for each scenario and draw of hyperparameters, one run for each matrix.

    Then a chain for each scenario with the dummy alone, one run for each of many more draws.
    """
    n_draws = int(settings.options.get("draws", DRAWS))
    n_dummies = int(settings.options.get("dummies", DUMMY_DRAWS))
    n_samples = int(settings.options.get("samples", N_SAMPLES))
    scenarios = PUBLISHED if settings.options.get("published", False) else SCENARIOS
    fits = [
        [_run(name, scenario, draw, n_samples, number) for number in range(settings.runs)]
        for draw in draw_seeds(settings.seed, n_draws)
        for name, scenario in scenarios.items()
    ]
    dummies = [
        [
            _dummy_run(name, scenario, draw, n_samples, settings.runs)
            for draw in draw_seeds(settings.seed, n_dummies)
        ]
        for name, scenario in scenarios.items()
    ]
    return fits + dummies


def _run(name: str, scenario: Scenario, draw: int, n_samples: int, number: int) -> Run:
    key = _key(name, scenario, draw, n_samples) | {"number": number}
    return Run(key, partial(compare, scenario, draw, number, n_samples))


def _dummy_run(name: str, scenario: Scenario, draw: int, n_samples: int, n_runs: int) -> Run:
    key = _key(name, scenario, draw, n_samples) | {"dummies": n_runs}
    return Run(key, partial(compare_dummy, scenario, draw, n_runs, n_samples))


def _key(name: str, scenario: Scenario, draw: int, n_samples: int) -> Key:
    shapes = list(scenario.atom_shapes)
    return {"scenario": name, "draw": draw, "samples": n_samples, "atom_shapes": shapes}


def compare(scenario: Scenario, draw: int, number: int, samples: int) -> Found:
    """What each algorithm makes of one matrix."""
    truth = scenario.draw(draw)
    X, *factors = truth.matrix(draw, number, samples)
    found: Found = errors("Dummy", factors, truth.means(samples))
    for name in FITTED:
        found |= fit(name, X, factors, truth)
    return found


def compare_dummy(scenario: Scenario, draw: int, n_runs: int, samples: int) -> Found:
    """Mean errors of the dummy over the matrices of one draw."""
    truth = scenario.draw(draw)
    means = truth.means(samples)
    matrices = (truth.matrix(draw, number, samples) for number in range(n_runs))
    found = [errors("Dummy", factors, means) for _, *factors in matrices]
    return {name: float(np.mean([run[name] for run in found])) for name in found[0]}


def fit(name: str, X: NDArray, factors: list[NDArray], truth: Truth) -> Found:
    """Errors of one algorithm, in the order of the prior and in the best one, and what it took."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table has a column for it
        model = FITTED[name](len(truth.activation_shape), **truth.parameters()).fit(X)
    seconds = time.perf_counter() - begin
    estimates = model.atoms_, model.activations_
    order = best_order(lambda *found: rate_error(*factors, *found), *estimates)
    return {
        **errors(name, factors, estimates),
        **errors(f"{name} matched", factors, tuple(array[:, order] for array in estimates)),
        f"{name} swapped": order != sorted(order),
        f"{name} iterations": model.n_iter_,
        f"{name} converged": bool(model.converged_),
        f"{name} seconds": seconds,
    }


def errors(name: str, factors: list[NDArray], estimates: tuple[NDArray, ...]) -> Found:
    """Both errors under the algorithm's name."""
    return {f"{name} {metric}": error(*factors, *estimates) for metric, error in METRICS.items()}


def rate_error(*arrays: NDArray) -> float:
    """Both errors together: four times the mean square error of the rates λ_kj θ_ski."""
    return sum(error(*arrays) for error in METRICS.values())


# --- tables -------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """One metric of one algorithm in one scenario, the paper's and ours, in thousands.

    Ours are for each draw of hyperparameters the mean and the standard deviation of its runs.
    """

    scenario: str
    metric: str
    algorithm: str
    paper_mean: float
    paper_spread: float
    means: NDArray
    spreads: NDArray

    @property
    def mean(self) -> float:
        """What an average draw gives."""
        return float(np.median(self.means))

    @property
    def range(self) -> tuple[float, float]:
        """Most draws' means are between these."""
        low, high = np.quantile(self.means, RANGE)
        return float(low), float(high)

    @property
    def paper_in_range(self) -> bool:
        """Whether the paper's mean could be one of ours."""
        low, high = self.range
        return low <= self.paper_mean <= high

    @property
    def in_paper_spread(self) -> bool:
        """Whether our mean is within the paper's mean ± standard deviation."""
        return abs(self.mean - self.paper_mean) <= self.paper_spread


def findings(found: pd.DataFrame, settings: Settings) -> Findings:
    """Our Table 3 beside the paper's, ranges over draws, the order of components, and the cost."""
    alone = found["number"].isna()
    fits, dummies = found[~alone], found[alone]
    cells = list(compared(fits))
    return Findings(
        [side_by_side(cells), dummy_table(dummies), order_table(fits), cost_table(fits)],
        {"parameters": picture(cells)},
        remarks(fits, cells),
    )


def compared(found: pd.DataFrame) -> Iterator[Cell]:
    """All cells of the paper's table."""
    for (metric, algorithm), row in TABLE_3.items():
        for scenario, paper in row.items():
            ours = by_draw(found, scenario)[f"{algorithm} {metric}"]
            statistics = (ours.mean() / UNIT, ours.std(ddof=0) / UNIT)
            yield Cell(scenario, metric, algorithm, *paper, *map(np.asarray, statistics))


def by_draw(found: pd.DataFrame, scenario: str) -> Any:
    """Runs of a scenario, grouped by their hyperparameters."""
    return found[found["scenario"] == scenario].groupby("draw")


def side_by_side(cells: list[Cell]) -> Table:
    """The paper's figures and ours, and how much ours depend on the draw of hyperparameters."""
    order = list(SCENARIOS)
    rows = [
        [
            short(cell.scenario),
            cell.metric,
            cell.algorithm,
            f"{cell.paper_mean:.2f} | {cell.paper_spread:.2f}",
            f"{cell.mean:.2f} | {np.median(cell.spreads):.2f}",
            "{:.2f} to {:.2f}".format(*cell.range),
            yes_or_no(cell.paper_in_range),
            yes_or_no(cell.in_paper_spread),
        ]
        for cell in sorted(cells, key=lambda cell: order.index(cell.scenario))
    ]
    low, high = RANGE
    columns = ["uncertainty", "metric", "algorithm", "paper", "here"]
    columns += [f"{low:.0%} to {high:.0%} of draws", "paper in it", "here in its spread"]
    title = "Table 3: mean | standard deviation over matrices, × 10³; here of the median draw"
    return Table("errors", title, columns, rows)


def dummy_table(found: pd.DataFrame) -> Table:
    """The dummy over many more draws, for its range to be more than that of chance."""
    rows = []
    for scenario in SCENARIOS:
        for metric in METRICS:
            means = found.loc[found["scenario"] == scenario, f"Dummy {metric}"] / UNIT
            low, high = means.quantile(RANGE)
            paper, _ = TABLE_3[metric, "Dummy"][scenario]
            row = [short(scenario), metric, f"{paper:.2f}", f"{low:.2f} to {high:.2f}"]
            rows.append([*row, yes_or_no(low <= paper <= high)])
    low, high = RANGE
    columns = ["uncertainty", "metric", "paper", f"{low:.0%} to {high:.0%} of draws", "paper in it"]
    title = f"The dummy alone, {found['draw'].nunique()} draws: mean errors, × 10³"
    return Table("dummy", title, columns, rows)


def order_table(found: pd.DataFrame) -> Table:
    """What of the errors is due to components that were found in the other order."""
    rows = []
    for scenario in SCENARIOS:
        groups = by_draw(found, scenario)
        for name in FITTED:
            swapped = found.loc[found["scenario"] == scenario, f"{name} swapped"].mean()
            kinds = [f"{name}{kind} {metric}" for metric in METRICS for kind in ("", " matched")]
            medians = [f"{groups[kind].mean().median() / UNIT:.2f}" for kind in kinds]
            rows.append([short(scenario), name, f"{swapped:.0%}", *medians])
    columns = ["uncertainty", "algorithm", "swapped"]
    columns += [f"{metric}{kind}" for metric in METRICS for kind in ("", ", best order")]
    title = "Mean errors of the median draw, × 10³, in the prior's order of components and the best"
    return Table("order", title, columns, rows)


def cost_table(found: pd.DataFrame) -> Table:
    """Iterations and seconds of a fit."""
    rows = []
    for scenario in SCENARIOS:
        runs = found[found["scenario"] == scenario]
        for name in FITTED:
            rows.append(
                [
                    short(scenario),
                    name,
                    f"{runs[f'{name} iterations'].mean():.0f}",
                    f"{runs[f'{name} converged'].mean():.0%}",
                    f"{runs[f'{name} seconds'].mean():.2f}",
                    f"{runs[f'{name} seconds'].median():.2f}",
                ]
            )
    columns = ["uncertainty", "algorithm", "iterations", "converged", "seconds", "median seconds"]
    title = "Cost of a fit on one core: means (a first fit also loads compiled code)"
    return Table("cost", title, columns, rows)


def remarks(found: pd.DataFrame, cells: list[Cell]) -> list[str]:
    """What the tables come to."""
    inside = sum(cell.paper_in_range for cell in cells)
    within = sum(cell.in_paper_spread for cell in cells)
    n_draws, n_runs = found["draw"].nunique(), found["number"].nunique()
    return [
        f"{n_draws} draws of hyperparameters in each scenario, {n_runs} matrices each; the paper "
        f"has 1 draw and 50 matrices. Standard deviations divide by n.",
        f"The paper's mean lies in our range of draws in {inside} of {len(cells)} cells; our "
        f"median draw lies within the paper's mean ± standard deviation in {within}.",
        order_remark(found, "high uncertainty", "Sk1"),
    ]


def order_remark(found: pd.DataFrame, scenario: str, name: str) -> str:
    """Why errors are large where the prior hardly tells the components apart."""
    runs = found[found["scenario"] == scenario]
    plain, matched = (runs[f"{name}{kind} mse_m"].mean() / UNIT for kind in ("", " matched"))
    return (
        f"Components are compared in the order of their priors, as in the paper. With {scenario} "
        f"these are much alike, and {name} finds the other order in "
        f"{runs[f'{name} swapped'].mean():.0%} of all runs: mse_m is {plain:.2f} on average, and "
        f"{matched:.2f} in the best order."
    )


def short(scenario: str) -> str:
    """Its name in a column of uncertainties."""
    return scenario.replace(" uncertainty", "")


def yes_or_no(value: bool) -> str:
    """In words."""
    return "yes" if value else "no"


# --- picture ------------------------------------------------------------------------------------


def picture(cells: list[Cell]) -> Figure:
    """Each draw's mean error as a point, with the paper's mean ± standard deviation beside it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 6.4), layout="constrained")
    axes = figure.subplots(len(METRICS), len(SCENARIOS), sharex=True, sharey="row", squeeze=False)
    for axis_row, metric in zip(axes, METRICS, strict=True):
        for axis, scenario in zip(axis_row, SCENARIOS, strict=True):
            draw_cells(axis, [c for c in cells if (c.metric, c.scenario) == (metric, scenario)])
        axis_row[0].set_ylabel(f"{metric}, × 10³")
    for axis, scenario in zip(axes[0], SCENARIOS, strict=True):
        axis.set_title(scenario, fontsize=10.5)
    legend(figure)
    return figure


def draw_cells(axis: Axes, cells: list[Cell]) -> None:
    """One scenario and metric; points are spread sideways, in the order of the draws."""
    for place, cell in enumerate(cells):
        colour = COLOURS[cell.algorithm]
        sideways = place + np.linspace(-0.3, 0.08, len(cell.means))
        axis.plot(sideways, cell.means, "o", color=colour, alpha=0.65, ms=4.5, mew=0)
        axis.hlines(cell.mean, place - 0.36, place + 0.14, color=colour, linewidth=2.2)
        draw_paper(axis, place + 0.28, cell)
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter("{x:g}")
    axis.set_xlim(-0.55, len(cells) - 0.4)
    axis.set_xticks(range(len(cells)), [cell.algorithm for cell in cells])
    axis.grid(axis="y", alpha=0.3)


def draw_paper(axis: Axes, place: float, cell: Cell) -> None:
    """The paper's mean ± standard deviation."""
    mean, spread = cell.paper_mean, cell.paper_spread
    # On a logarithmic axis there is no place for an end below 0: an arrow says that it is there.
    below = spread >= mean
    axis.errorbar(
        place,
        mean,
        [[0.8 * mean if below else spread], [spread]],
        fmt="D",
        color="black",
        ms=4.5,
        capsize=0 if below else 3,
    )
    if below:
        axis.plot(place, 0.2 * mean, "v", color="black", ms=5)
        axis.plot(place, mean + spread, "_", color="black", ms=7)


def legend(figure: Figure) -> None:
    """What points, lines and diamonds are; the algorithms have their names below."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLOURS["Dummy"], marker="o", linestyle="", ms=5, mew=0),
        Line2D([], [], color=COLOURS["Dummy"], linewidth=2.2),
        Line2D([], [], color="black", marker="D", ms=4.5),
    ]
    labels = ["mean of a draw's matrices", "median draw"]
    labels += ["paper: mean ± standard deviation (arrow: to below 0)"]
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
