"""`seminmf demo`: hide a part of the Ionosphere data, predict it, and say how well that went."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from ._estimators.container import written_whole
from ._views.pictures import BLUE, GREY, ORANGE, png
from ._views.shares import shares
from .bayesian import BayesianSkellamSNMF
from .datasets import load_ionosphere

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.console import Console

# Five was best, or close to it, for cells hidden with the seeds 0 to 4.
N_COMPONENTS = 5
HIDDEN_SHARE = 0.2
LEVEL = 0.9


class Outcome(NamedTuple):
    """The data, what was hidden of it, and what the model made of the rest.

    Attributes
    ----------
    X : (J, I) array
        All values.
    hidden : (J, I) boolean array
    model : BayesianSkellamSNMF
        Fitted to the cells that are not hidden.
    filled, lower, upper : (J, I) arrays
        Predictions of the hidden cells, and the ends of their intervals.
    """

    X: NDArray
    hidden: NDArray
    model: BayesianSkellamSNMF
    filled: NDArray
    lower: NDArray
    upper: NDArray

    @property
    def observed(self) -> NDArray:
        """The data with gaps, as the model got it."""
        return np.where(self.hidden, np.nan, self.X)

    @property
    def errors(self) -> dict[str, float]:
        """Root mean square error on the hidden cells, by the way of filling them."""
        fills = {
            "zero": np.zeros_like(self.X),
            "mean of the column": np.broadcast_to(np.nanmean(self.observed, axis=0), self.X.shape),
            "seminmf": self.filled,
        }
        return {name: self._error(fill) for name, fill in fills.items()}

    def _error(self, fill: NDArray) -> float:
        return float(np.sqrt(np.mean((fill - self.X)[self.hidden] ** 2)))

    @property
    def inside(self) -> NDArray:
        """Whether the values of the hidden cells lie in their intervals."""
        return ((self.lower <= self.X) & (self.X <= self.upper))[self.hidden]


def run(folder: Path, seed: int) -> None:
    """Run the demo, print its findings and write its files."""
    from rich.console import Console

    folder.mkdir(parents=True, exist_ok=True)  # rather fail now than after the work
    outcome = study(seed, progress=sys.stderr.isatty())
    console = Console(highlight=False)
    report(outcome, console)
    content = png(draw(outcome))
    picture, model = folder / "demo.png", folder / "demo.safetensors"
    with written_whole(picture) as file:
        file.write(content)
    outcome.model.save(model)
    files = f"\nPicture: {picture}\nModel:   {model} (seminmf.load reads it)"
    console.print(files, markup=False, soft_wrap=True)


def study(seed: int, *, progress: bool = False) -> Outcome:
    """Hide cells, fit a model to the others, and predict the hidden ones."""
    X, _ = load_ionosphere(return_X_y=True)
    hidden = choose_cells(X.shape, HIDDEN_SHARE, RandomState(seed))
    gappy = np.where(hidden, np.nan, X)
    model = BayesianSkellamSNMF(
        N_COMPONENTS, max_iter=5000, random_state=seed, verbose=int(progress)
    ).fit(gappy)
    filled, lower, upper = model.impute(gappy, return_interval=True, level=LEVEL, random_state=seed)
    return Outcome(X, hidden, model, filled, lower, upper)


def choose_cells(shape: tuple[int, int], share: float, random: RandomState) -> NDArray:
    """Mask with this share of the cells, chosen at random."""
    mask = np.zeros(shape, dtype=bool)
    mask.flat[random.choice(mask.size, round(share * mask.size), replace=False)] = True
    return mask


# --- words --------------------------------------------------------------------------------------


def report(outcome: Outcome, console: Console) -> None:
    """Say in plain words what was found, and how good it is."""
    model, errors = outcome.model, outcome.errors
    n_samples, n_features = outcome.X.shape
    gain = 1 - errors["seminmf"] / errors["mean of the column"]
    end = "settled" if model.converged_ else "not settled"
    bar = "█" if console.encoding.startswith("utf") else "#"
    lines = [
        f"[bold]Ionosphere[/]: {n_samples} radar returns with {n_features} numbers each, from -1 "
        f"to 1. {outcome.hidden.sum()} cells ({HIDDEN_SHARE:.0%}) were hidden at random, and "
        f"predicted from the others with {model.n_components} components "
        f"(draws from the posterior, {model.n_iter_} sweeps, {end}).",
        "",
        "[bold]How far from the hidden values?[/] Root mean square error, if they are filled with",
        *(f"  {name:<20}{error:.3f}" for name, error in errors.items()),
        f"The components take {gain:.0%} off the error of the column means.",
        "",
        f"[bold]Does it know how far?[/] {outcome.inside.mean():.1%} of the hidden values lie in "
        f"their {LEVEL:.0%} intervals.",
        "",
        "[bold]How large are the components?[/] Share of all that they add up to:",
        *(
            f"  {k + 1}  {size:4.0%}  {bar * round(40 * size)}"
            for k, size in enumerate(np.sort(shares(model))[::-1])
        ),
    ]
    for line in lines:
        console.print(line)


# --- picture ------------------------------------------------------------------------------------


def draw(outcome: Outcome) -> Figure:
    """Components, one sample, hidden cells against predictions, and the chain of draws."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.6))
    figure.set_layout_engine("constrained", hspace=0.07, wspace=0.03)
    axes = figure.subplots(2, 2, width_ratios=(1.1, 1))
    draw_components(axes[0, 0], outcome)
    draw_sample(axes[0, 1], outcome)
    draw_predictions(axes[1, 0], outcome)
    draw_draws(axes[1, 1], outcome)
    for axis in axes.flat:
        axis.title.set(fontsize="medium", fontweight="bold")
    return figure


def real_then_imaginary(features: NDArray) -> NDArray:
    """Put the last axis in this order; in the data the two parts of a pulse are neighbours."""
    return np.concatenate([features[..., ::2], features[..., 1::2]], axis=-1)


def mark_parts(axes: Axes, n_features: int) -> None:
    """Say on the horizontal axis which features are real and which are imaginary parts."""
    n_pulses = n_features // 2
    axes.axvline(n_pulses - 0.5, color="black", linewidth=0.8)
    axes.set(
        xlim=(-0.5, n_features - 0.5),
        xticks=[n_pulses / 2 - 0.5, 1.5 * n_pulses - 0.5],
        xticklabels=[f"real parts of pulses 1 to {n_pulses}", "imaginary parts"],
    )
    axes.tick_params(axis="x", length=0)


def draw_components(axes: Axes, outcome: Outcome) -> None:
    """Each component as it adds to a mean sample: colours for signs, white at 0."""
    model = outcome.model
    order = np.argsort(shares(model))[::-1]
    rows = (model.components_ * model.activations_.mean(axis=0)[:, None])[order]
    limit = np.abs(rows).max()
    image = axes.imshow(
        real_then_imaginary(rows), cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto"
    )
    mark_parts(axes, rows.shape[1])
    axes.set(
        title="The components, times their mean activations",
        ylabel="component",
        yticks=range(len(rows)),
        yticklabels=range(1, len(rows) + 1),
    )
    axes.figure.colorbar(image, ax=axes, pad=0.02)


def draw_sample(axes: Axes, outcome: Outcome) -> None:
    """The sample with the most hidden cells: what was seen, hidden and predicted."""
    j = int(np.argmax(outcome.hidden.sum(axis=1)))
    hidden, x, filled, lower, upper = (
        real_then_imaginary(array[j])
        for array in (outcome.hidden, outcome.X, outcome.filled, outcome.lower, outcome.upper)
    )
    position = np.arange(len(x))
    axes.axhline(0, color="black", linewidth=0.6)
    axes.vlines(position[hidden], lower[hidden], upper[hidden], color=BLUE, linewidth=5, alpha=0.35)
    axes.plot(position[~hidden], x[~hidden], ".", color=GREY, label="seen")
    axes.plot(
        position[hidden], filled[hidden], "_", color=BLUE, label=f"predicted, {LEVEL:.0%} interval"
    )
    axes.plot(
        position[hidden], x[hidden], "o", color=ORANGE, markerfacecolor="none", label="hidden"
    )
    mark_parts(axes, len(x))
    axes.set(title=f"Sample {j}: it had the most cells hidden", ylabel="value")
    axes.legend(fontsize="small", loc="lower left")


def draw_predictions(axes: Axes, outcome: Outcome) -> None:
    """All hidden cells: predicted against true."""
    true, predicted = outcome.X[outcome.hidden], outcome.filled[outcome.hidden]
    for chosen, colour, label in (
        (outcome.inside, BLUE, "inside"),
        (~outcome.inside, ORANGE, "outside"),
    ):
        axes.plot(
            true[chosen],
            predicted[chosen],
            ".",
            markersize=4,
            alpha=0.4,
            color=colour,
            label=f"{label} the {LEVEL:.0%} interval ({chosen.mean():.0%})",
        )
    axes.axline((0, 0), slope=1, color="black", linewidth=1)
    axes.set(title="All hidden cells", xlabel="true", ylabel="predicted", xlim=(-1.08, 1.08))
    axes.legend(fontsize="small", loc="upper left")


def draw_draws(axes: Axes, outcome: Outcome) -> None:
    """Log-likelihood of the draws, without the first sweeps."""
    values = outcome.model.lower_bounds_
    first = len(values) // 5
    axes.plot(np.arange(first, len(values)), values[first:], color=BLUE, linewidth=0.5)
    axes.set(
        title="Draws from the posterior: all of the same level?",
        xlabel="sweep",
        ylabel="log-likelihood",
    )
    axes.grid(alpha=0.3)
