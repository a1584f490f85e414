"""What sets the likelihoods of integers and of reals apart? The paper's comparison of Sk1 and Sk∞.

Real data are a product of atoms and activations, without noise, and the activations are sought with
the atoms given and no prior. The real likelihood (Sk∞) finds them, slowly; the one of integers
(Sk1) is biased. What acceleration and Newton's method do about the slowness is measured besides.
"""

from __future__ import annotations

import math
import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from .._views.pictures import AMBER, BLACK, BLUE, GREEN, GREY, ORANGE, SKY
from ..divergence import skellam_divergence
from ..skellam import SkellamSNMF
from ..stats import skellam
from ._frame import Findings, Settings
from ._runs import Found, Key, Run
from ._scenarios import draw_seeds
from ._tables import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEFAULT_RUNS = 20
N_SAMPLES, N_FEATURES, N_COMPONENTS = 100, 10, 3
LIKELIHOODS = {"real": "Sk∞", "integer": "Sk1"}
# The paper's mean square errors of the activations, of one draw, and the noise that it had.
PUBLISHED = {"real": 9.0e-8, "integer": 1.2e-1}
PUBLISHED_NOISE = 1e-4
PUBLISHED_ITERATIONS = 1000


class Solver(NamedTuple):
    """An algorithm as parameters of the estimator, and the most iterations that it gets."""

    parameters: dict[str, Any]
    max_iter: int


SOLVERS = {
    "EM": Solver({"solver": "em", "acceleration": None}, 20_000),
    "parabolic EM": Solver({"solver": "em", "acceleration": "parabolic"}, 2_000),
    "SQUAREM": Solver({"solver": "em", "acceleration": "squarem"}, 2_000),
    "Newton": Solver({"solver": "newton"}, 200),
}
# When a solver has arrived: this share of the way from the start to the optimum is left.
NEAR, THERE = 1e-4, 1e-9
# The shortest of so many fits counts, the others were disturbed.
TIMINGS = 3
# Points of a curve.
N_POINTS = 150

COLOURS = {"real": BLUE, "integer": ORANGE}
SOLVER_COLOURS = dict(zip(SOLVERS, (BLACK, AMBER, SKY, GREEN), strict=True))


# --- runs ---------------------------------------------------------------------------------------


def plan(settings: Settings) -> list[list[Run]]:
    """Errors without noise, or with that of the option "noise", and with the published; speed."""
    noise = float(settings.options.get("noise", 0.0))
    draws = draw_seeds(settings.seed, settings.runs)
    works = [(estimate, level) for level in dict.fromkeys((noise, PUBLISHED_NOISE))]
    works += [(race, noise)]
    return [
        [_run(work, draw, level, likelihood, draw == draws[0]) for likelihood in LIKELIHOODS]
        for draw in draws
        for work, level in works
    ]


def _run(work: Any, draw: int, noise: float, likelihood: str, curves: bool) -> Run:
    key: Key = {"draw": draw, "noise": noise, "likelihood": likelihood, "curves": curves}
    return Run({"part": work.__name__} | key, partial(work, **key))


class Problem(NamedTuple):
    """Data (J, I), signed components (K, I) and activations (J, K)."""

    X: NDArray
    components: NDArray
    activations: NDArray

    @classmethod
    def draw(cls, seed: int, noise: float) -> Problem:
        """Components with entries of random sign that sum to 1 without it."""
        random = RandomState(seed)
        sizes = random.dirichlet(np.full(N_FEATURES, 0.9), size=N_COMPONENTS)
        components = sizes * random.choice([-1, 1], size=sizes.shape)
        activations = random.gamma(0.6, 2.0, size=(N_SAMPLES, N_COMPONENTS))
        X = activations @ components
        return cls(X + noise * random.normal(size=X.shape), components, activations)

    def fit(self, likelihood: str, solver: Solver) -> SkellamSNMF:
        """Activations from a start of 1, by exactly so many iterations."""
        model = SkellamSNMF(
            N_COMPONENTS,
            likelihood=likelihood,
            dispersion=0.0 if likelihood == "real" else "auto",
            activation_rate_prior=0.0,
            check_integer=False,
            max_iter=solver.max_iter,
            tol=0,
            n_jobs=1,
            **solver.parameters,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is not asked to converge
            return model.fit(
                self.X,
                atoms=self.components,
                frozen=np.arange(N_COMPONENTS),
                activations=np.ones_like(self.activations),
            )

    def error(self, model: SkellamSNMF) -> float:
        """Mean square error of the activations."""
        return float(np.mean((model.activations_ - self.activations) ** 2))


def estimate(draw: int, noise: float, likelihood: str, curves: bool) -> Found:
    """What the paper's iterations find."""
    problem = Problem.draw(draw, noise)
    plain = SOLVERS["EM"]._replace(max_iter=PUBLISHED_ITERATIONS)
    model = problem.fit(likelihood, plain)
    found: Found = {"mse": problem.error(model)}
    if curves:
        steps = thinned(1, PUBLISHED_ITERATIONS)
        found["true"] = problem.activations[:, 0].tolist()
        found["estimated"] = model.activations_[:, 0].tolist()
        found["steps"] = steps.tolist()
        found["ratios"] = (model.objectives_[steps] / model.objectives_[steps - 1]).tolist()
    return found


def race(draw: int, noise: float, likelihood: str, curves: bool) -> Found:
    """How long each solver takes to the optimum, which is the best that any of them finds.

    The distance is a share of that of the start: Sk∞'s objective is 0 at its optimum, so that it
    has no relative size there.
    """
    problem = Problem.draw(draw, noise)
    objectives = {name: problem.fit(likelihood, SOLVERS[name]).objectives_ for name in SOLVERS}
    optimum = max(values.max() for values in objectives.values())
    found: Found = {}
    for name, values in objectives.items():
        left = (optimum - values) / (optimum - values[0])
        near, there = (first_below(left, share) for share in (NEAR, THERE))
        found |= {f"{name} near": near, f"{name} there": there}
        found[f"{name} seconds"] = seconds_of(problem, likelihood, name, there)
        if curves:
            steps = thinned(0, len(left) - 1)
            found[f"{name} steps"], found[f"{name} left"] = steps.tolist(), left[steps].tolist()
    return found


def first_below(values: NDArray, bound: float) -> float:
    """Where the values are at the bound for the first time; NaN if never."""
    below = values <= bound
    return float(np.argmax(below)) if below.any() else math.nan


def seconds_of(problem: Problem, likelihood: str, name: str, iterations: float) -> float:
    """Time of a fit with so many iterations; NaN if there is no such number."""
    if math.isnan(iterations):
        return math.nan
    solver = SOLVERS[name]._replace(max_iter=max(int(iterations), 1))
    times = []
    for _ in range(TIMINGS):
        begin = time.perf_counter()
        problem.fit(likelihood, solver)
        times.append(time.perf_counter() - begin)
    return min(times)


def thinned(first: int, last: int) -> NDArray:
    """Numbers from first to last, few of them where they are large."""
    return np.unique(np.geomspace(first + 1, last + 1, N_POINTS).astype(int)) - 1


# --- tables -------------------------------------------------------------------------------------


def findings(found: pd.DataFrame, settings: Settings) -> Findings:
    """Errors of the activations, and how fast they were found."""
    races = found[found["part"] == "race"]
    estimates = found[found["part"] == "estimate"]
    shown = estimates[estimates["noise"] == races["noise"].iloc[0]]
    pictures = {
        "activations": activations_picture(shown),
        "convergence": convergence_picture(shown, races),
        "surfaces": surfaces_picture(),
    }
    return Findings([error_table(estimates), speed_table(races)], pictures, remarks(shown, races))


def error_table(estimates: pd.DataFrame) -> Table:
    """Mean square errors of the activations after the paper's iterations."""
    rows = []
    for (noise, likelihood), runs in estimates.groupby(["noise", "likelihood"], sort=False):
        errors = runs["mse"]
        rows.append(
            [
                f"{LIKELIHOODS[likelihood]} ({likelihood})",
                f"{noise:g}",
                f"{PUBLISHED[likelihood]:.1e}" if noise == PUBLISHED_NOISE else "",
                f"{errors.mean():.1e} | {errors.std(ddof=0):.1e}",
                f"{errors.median():.1e}",
                f"{errors.min():.1e} to {errors.max():.1e}",
            ]
        )
    n_draws = estimates["draw"].nunique()
    title = f"Mean square error of the activations after {PUBLISHED_ITERATIONS} plain iterations"
    columns = ["likelihood", "noise", "paper, one draw"]
    columns += [f"here, {n_draws} draws: mean | std", "median", "range"]
    return Table("errors", title, columns, rows)


def speed_table(races: pd.DataFrame) -> Table:
    """Iterations and seconds to the optimum."""
    rows = []
    for likelihood, runs in races.groupby("likelihood", sort=False):
        for name in SOLVERS:
            # Where EM does not arrive it takes more than any time.
            speedup = runs["EM seconds"].fillna(math.inf) / runs[f"{name} seconds"]
            rows.append(
                [
                    f"{LIKELIHOODS[likelihood]} ({likelihood})",
                    name,
                    median_text(runs[f"{name} near"], 0),
                    median_text(runs[f"{name} there"], 0),
                    median_text(1e3 * runs[f"{name} seconds"], 1),
                    f"{speedup.median():.1f}",
                    f"{runs[f'{name} there'].notna().mean():.0%}",
                ]
            )
    columns = ["likelihood", "solver", f"iterations to {NEAR:g}", f"iterations to {THERE:g}"]
    columns += [f"milliseconds to {THERE:g}", "times as fast as EM", "draws that got there"]
    title = "Until so much of the way from the start to the optimum is left: medians over draws"
    return Table("speed", title, columns, rows)


def median_text(values: pd.Series, digits: int) -> str:
    """Median, where NaN is more than any number; a dash if it is that itself."""
    median = values.fillna(math.inf).median()
    return f"{median:.{digits}f}" if math.isfinite(median) else "–"


def remarks(estimates: pd.DataFrame, races: pd.DataFrame) -> list[str]:
    """What the tables come to, and what an iteration is."""
    errors = estimates.groupby("likelihood")["mse"]
    slower = [
        _by_draw(races, "real", column) / _by_draw(races, "integer", column)
        for column in ("EM near", "EM there")
    ]
    return [
        f"The activations' largest error is {errors.max()['real']:.1e} with the real likelihood; "
        f"the smallest is {errors.min()['integer']:.1e} with that of integers.",
        f"Plain EM takes {slower[0].median():.1f} times as many iterations with the real "
        f"likelihood as with that of integers until {NEAR:g} of the way is left, and "
        f"{slower[1].median():.1f} times as many until {THERE:g} is (medians over draws).",
        "The paper's picture has the ratio of consecutive objectives. With the real likelihood the "
        "objective goes to about 0, which keeps that ratio low however near the optimum is; the "
        "pictures of the distance to the optimum do not depend on such a constant.",
        "An iteration is one pass over the data for EM, three or four for parabolic EM, three for "
        "SQUAREM; the first ten of Newton are five of EM each. Compare times.",
    ]


def _by_draw(races: pd.DataFrame, likelihood: str, column: str) -> Any:
    return races[races["likelihood"] == likelihood].set_index("draw")[column]


# --- pictures -----------------------------------------------------------------------------------


def activations_picture(estimates: pd.DataFrame) -> Figure:
    """Estimated against true activations of the first component, for both likelihoods."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.6), layout="constrained")
    axes = figure.subplots(1, len(LIKELIHOODS), sharex=True, sharey=True)
    for axis, likelihood in zip(axes, LIKELIHOODS, strict=True):
        run = first_draw(estimates, likelihood)
        top = 1.05 * max(max(run["true"]), max(run["estimated"]))
        axis.axline((0, 0), (1, 1), color=GREY, linewidth=1, zorder=1)
        axis.plot(run["true"], run["estimated"], "o", color=COLOURS[likelihood], alpha=0.6, ms=5)
        axis.set(xlim=(-0.02 * top, top), ylim=(-0.02 * top, top), aspect="equal")
        axis.set(xlabel="true activation", title=f"{LIKELIHOODS[likelihood]} ({likelihood})")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("estimated activation")
    return figure


def convergence_picture(estimates: pd.DataFrame, races: pd.DataFrame) -> Figure:
    """The paper's ratio of consecutive objectives, and what is left of the way to the optimum."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.4), layout="constrained")
    axes = figure.subplots(1, 1 + len(LIKELIHOODS))
    draw_ratios(axes[0], estimates)
    for axis, likelihood in zip(axes[1:], LIKELIHOODS, strict=True):
        draw_distances(axis, first_draw(races, likelihood))
        axis.set_title(f"{LIKELIHOODS[likelihood]} ({likelihood}): distance to the optimum")
        axis.sharex(axes[1])
    for axis in axes:
        axis.set(xscale="log", xlabel="iteration")
        axis.grid(alpha=0.3)
    return figure


def draw_ratios(axis: Axes, estimates: pd.DataFrame) -> None:
    """The sooner a curve is at 1, the sooner the objective stands still."""
    for likelihood, name in LIKELIHOODS.items():
        run = first_draw(estimates, likelihood)
        axis.plot(run["steps"], run["ratios"], color=COLOURS[likelihood], linewidth=2, label=name)
    axis.set_title("plain EM: ratio of consecutive objectives")
    axis.set_ylabel("objective / the one before")
    axis.legend(loc="lower right")


def draw_distances(axis: Axes, run: pd.Series) -> None:
    """Share of the way from the start to the optimum, down to where rounding decides."""
    lowest = 1e-12
    for name, colour in SOLVER_COLOURS.items():
        left = np.array(run[f"{name} left"])
        end = first_below(left, lowest)
        # From iteration 1: an axis of logarithms has no 0.
        shown = slice(1, None if math.isnan(end) else int(end) + 1)
        axis.plot(run[f"{name} steps"][shown], left[shown], color=colour, lw=1.8, label=name)
    axis.set(yscale="log", ylim=(lowest, 1), ylabel="share of the way that is left")
    axis.legend(loc="upper right")


def first_draw(runs: pd.DataFrame, likelihood: str) -> pd.Series:
    """The run that has curves."""
    return runs[(runs["likelihood"] == likelihood) & runs["curves"]].iloc[0]


def surfaces_picture() -> Figure:
    """The paper's surfaces at x = 1; a line marks where the difference of the rates is 1."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.2), layout="constrained")
    rates = np.linspace(0.2, 5.0, 97)
    rate0, rate1 = np.meshgrid(rates, rates, indexing="ij")
    ridge = np.array([rates[rates <= 4] + 1, rates[rates <= 4]])
    panels = {
        "Sk1: ln P(1 | λ₀, λ₁)": log_probability,
        "Sk∞: −D(1 | λ₀, λ₁)": negative_divergence,
    }
    for number, (title, height) in enumerate(panels.items(), 1):
        # Not sorted by depth, the line stays in front of the surface.
        axis: Any = figure.add_subplot(1, 2, number, projection="3d", computed_zorder=False)
        heights = height(rate0, rate1)
        # Colours for what is near the top, where the surfaces differ.
        colours = {"cmap": "viridis", "vmin": heights.max() - 3, "vmax": heights.max()}
        axis.plot_surface(rate0, rate1, heights, rcount=49, ccount=49, **colours)
        axis.plot(*ridge, height(*ridge), color=ORANGE, linewidth=2.5, label="λ₀ − λ₁ = 1")
        axis.set(xlabel="λ₀", ylabel="λ₁", zlim=(-6.5, 0), xlim=(0, 5), ylim=(0, 5))
        axis.set_title(title, y=1.0)
        axis.view_init(elev=28, azim=-120)
        axis.legend(loc="upper right")
    return figure


def log_probability(rate0: ArrayLike, rate1: ArrayLike) -> NDArray:
    """Basic term of the objective for integers, at x = 1."""
    return np.asarray(skellam.logpmf(1, rate0, rate1))


def negative_divergence(rate0: ArrayLike, rate1: ArrayLike) -> NDArray:
    """Basic term of the objective for reals, at x = 1."""
    return -np.asarray(skellam_divergence(1.0, rate0, rate1))
