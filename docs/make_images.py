"""Draw the pictures of the README and of these pages: ``python docs/make_images.py``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from seminmf import SkellamSNMF, demo
from seminmf._algorithms import em, loop, newton
from seminmf._algorithms.acceleration import accelerate
from seminmf._algorithms.start import start
from seminmf._model.model import Priors
from seminmf._views.pictures import png
from seminmf.datasets import load_ionosphere, load_segment, load_shuttle, make_waveform

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IMAGES = Path(__file__).parent / "images"
GAP = "#BBBBBB"


def main() -> None:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    for name, figure in (
        ("factorization", draw_factorization(*signals())),
        ("demo", demo.draw(demo.study(seed=0))),
        ("solvers", draw_solvers()),
    ):
        (IMAGES / f"{name}.png").write_bytes(png(figure))


def signals(n_samples: int = 36, n_features: int = 60) -> tuple[NDArray, NDArray]:
    """Mixtures of three signed shapes, with noise, and the same with gaps."""
    random = RandomState(0)
    t = np.linspace(0, 1, n_features)
    shapes = np.array(
        [
            np.sin(4 * np.pi * t) * (1 - t),
            np.exp(-(((t - 0.35) / 0.1) ** 2)) - 0.8 * np.exp(-(((t - 0.6) / 0.12) ** 2)),
            np.where(t < 0.75, -0.35, 1.0) * (t > 0.15),
        ]
    )
    main = np.arange(n_samples) * 3 // n_samples
    activations = random.uniform(0.4, 1.0, n_samples)[:, None] * np.eye(3)[main]
    activations += random.gamma(0.4, 0.4, size=(n_samples, 3))
    X = activations @ shapes + 0.05 * random.normal(size=(n_samples, n_features))
    gappy = np.where(random.uniform(size=X.shape) < 0.1, np.nan, X)
    gappy[4:10, 15:30] = gappy[20:27, 40:52] = np.nan
    return X, gappy


def draw_factorization(X: NDArray, gappy: NDArray) -> Figure:
    """X with gaps ≈ activations · components, and the gaps filled."""
    from matplotlib.figure import Figure

    model = SkellamSNMF(3, init="kmeans", random_state=0).fit(gappy)
    limit = float(np.quantile(np.abs(X), 0.99))
    figure = Figure(figsize=(11, 3.1))
    figure.set_layout_engine("constrained", wspace=0.02)
    axes = figure.subplots(1, 7, width_ratios=(10, 1.2, 1.6, 1.2, 10, 1.2, 10))
    signed(axes[0], gappy, limit, "X: signed, with gaps")
    # In the order in which the samples, from top to bottom, use them.
    order = np.argsort(np.arange(len(X)) @ (model.activations_ / model.activations_.sum(axis=0)))
    activations(axes[2], model.activations_[:, order])
    components = model.components_[order]
    signed(axes[4], components, np.abs(components).max(), "components: signed")
    axes[4].set(yticks=range(3), yticklabels=(1, 2, 3))
    signed(axes[6], model.impute(gappy), limit, "X with its gaps filled")
    for index, symbol in ((1, "≈"), (3, "·"), (5, "→")):
        axes[index].axis("off")
        axes[index].text(0.5, 0.5, symbol, fontsize=22, ha="center", va="center")
    return figure


def signed(axes: Axes, values: NDArray, limit: float, title: str) -> None:
    """Red above 0, blue below, white at 0, grey in gaps."""
    axes.imshow(
        values,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        interpolation="none",
    )
    axes.set_facecolor(GAP)
    axes.set(xticks=[], yticks=[], xlabel="features")
    axes.set_title(title, fontsize="medium")


def activations(axes: Axes, values: NDArray) -> None:
    """White at 0, the darker the larger."""
    axes.imshow(values, cmap="Greys", vmin=0, aspect="auto", interpolation="none")
    axes.set(xticks=range(3), xticklabels=(1, 2, 3), yticks=[], ylabel="samples")
    axes.set_title("activations: ≥ 0", fontsize="medium")


class Recorder:
    """In the place of a progress bar: notes time and objective, and ends a run in time."""

    def __init__(self, limit: float) -> None:
        self.points: list[tuple[float, float]] = []
        self._limit, self._begin = limit, time.perf_counter()

    def update(self, objective: float) -> None:
        """One more iteration."""
        self.points.append((time.perf_counter() - self._begin, objective))
        if self.points[-1][0] > self._limit:
            raise KeyboardInterrupt  # which ends a run, and not the session


def record(X: NDArray, n_components: int, limit: float) -> dict[str, NDArray]:
    """Seconds and objectives (2, n) of every solver, from the same start, on one thread."""
    solvers: dict[str, Any] = {"EM": em}
    solvers |= {f"EM, {method}": accelerate(em, method) for method in ("parabolic", "squarem")}
    solvers["Newton"] = newton
    model = SkellamSNMF(n_components, dispersion=0.0, n_jobs=1)
    data = model._check_data(X, fitted=False)
    model._choose_unit(data)
    priors = Priors.of(activation_shape=1.0, activation_rate=1e-3, atom_shape=1.0)
    compiling, measuring = loop.Stopping(15, tol=0), loop.Stopping(10**6, tol=1e-7)
    curves = {}
    with model._problem(data, priors, 1.0) as problem:
        point = start(problem, "random", RandomState(0))
        for name, solver in solvers.items():
            for stopping in (compiling, measuring):
                recorder = Recorder(limit)
                loop.run(solver, problem, lambda: point, stopping, recorder)
            curves[name] = np.array(recorder.points).T
    return curves


def draw_solvers(limit: float = 6.0) -> Figure:
    """Distance from the best objective over time, on the paper's four data sets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.4))
    figure.set_layout_engine("constrained")
    cases = {
        "Ionosphere, 351 × 34, K = 2": (load_ionosphere(return_X_y=True)[0], 2),
        "Waveform, 5000 × 21, K = 3": (make_waveform(random_state=0)[0], 3),
        "Image segmentation, 2310 × 19, K = 7": (load_segment(return_X_y=True)[0], 7),
        "Shuttle, 14500 × 9, K = 7": (load_shuttle(return_X_y=True)[0], 7),
    }
    styles = {"EM": "#999999", "EM, parabolic": "#E69F00", "EM, squarem": "#56B4E9"}
    for axes, (title, (X, n_components)) in zip(
        figure.subplots(2, 2).flat, cases.items(), strict=True
    ):
        curves = record(X, n_components, limit)
        best = max(objectives.max() for _, objectives in curves.values())
        for name, (seconds, objectives) in curves.items():
            distance = (best - objectives) / abs(best)
            axes.loglog(
                seconds,
                np.maximum(distance, 1e-7),
                color=styles.get(name, "#000000"),
                label=name,
                linewidth=1.8,
            )
        axes.set(title=title, ylim=(1e-6, 10), xlabel="seconds", ylabel="below the best, relative")
        axes.grid(alpha=0.3)
    figure.axes[0].legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
