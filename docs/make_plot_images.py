"""Draw the pictures of the page on plotting: ``python docs/make_plot_images.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from seminmf import (
    BayesianSkellamSNMF,
    EuclideanSNMF,
    SkellamSNMF,
    consensus,
    plot,
    sample_skellam_snmf,
    select_n_components,
)
from seminmf._views.pictures import png
from seminmf.datasets import load_ionosphere, load_segment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    """Write all pictures."""
    IMAGES.mkdir(exist_ok=True)
    for pictures in (draw_regions(), draw_radar(), draw_selection()):
        for name, figure in pictures:
            (IMAGES / f"plot_{name}.png").write_bytes(png(figure))
    (IMAGES / "consensus.png").write_bytes(png(draw_consensus()))


def draw_regions() -> Iterator[tuple[str, Figure]]:
    """Regions of images, standardised: all that a model with clusters can show."""
    X, y = load_segment(return_X_y=True, as_frame=True)
    X = X.drop(columns="region-pixel-count")
    X = (X - X.mean()) / X.std()
    model = SkellamSNMF(7, random_state=0).fit(X)
    yield "bars", plot.components(model, scale="each").figure
    yield "activations", plot.activations(model, sort=True).figure
    yield "reconstruction", plot.reconstruction(model, X).figure
    yield "convergence", plot.convergence(model).figure
    yield "clusters", draw_clusters(model, y)


def draw_clusters(model: SkellamSNMF, labels: object) -> Figure:
    """Sizes, and agreement with labels, side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.5, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot.clusters(model, ax=left)
    plot.clusters(model, ax=right, labels=labels)
    return figure


def draw_radar() -> Iterator[tuple[str, Figure]]:
    """Radar returns: a heat map of all, and the intervals that few samples leave."""
    X, _ = load_ionosphere(return_X_y=True, as_frame=True)
    model = SkellamSNMF(5, random_state=0).fit(X)
    yield "heatmap", plot.components(model).figure
    few = BayesianSkellamSNMF(3, random_state=0).fit(X[::10])
    yield "intervals", plot.intervals(few, component=1).figure


def draw_consensus() -> Figure:
    """Components of ten fits by least squares, and of ten with noise."""
    from matplotlib.figure import Figure

    X = load_ionosphere().data[:, 2:]
    figure = Figure(figsize=(11.5, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for ax, estimator in ((left, SkellamSNMF(4)), (right, EuclideanSNMF(4))):
        found = consensus(estimator, X, n_runs=10, random_state=0)
        found.plot(ax).set_title(f"{type(estimator).__name__}, 10 runs", fontsize="medium")
    return figure


def draw_selection() -> Iterator[tuple[str, Figure]]:
    """Simulated counts with three components."""
    X, _, _ = sample_skellam_snmf(60, 10, 3, activation_shape=0.5, random_state=0)
    counts = BayesianSkellamSNMF(likelihood="integer")
    found = select_n_components(X, range(1, 7), estimator=counts, random_state=0)
    yield "selection", plot.selection(found).figure


if __name__ == "__main__":
    main()
