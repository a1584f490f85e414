"""Does a prior that is learned from a real stream help with the next window?

A data set is cut into windows of consecutive rows, in each of which some cells are hidden. Each
window is fitted with the prior that the learner has when it comes, and with a prior that stays as
it was at the start; then the learner learns from what is seen of it. The scores are those of the
hidden cells, which nobody saw: root mean square errors, in standard deviations of a feature. Run it
with ``python benchmarks/stream.py``; it prints a Markdown table and, with ``--out``, draws how the
errors go with time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, PriorLearner
from seminmf.datasets import load_ionosphere, load_segment, load_shuttle

DATA = {
    "shuttle": (load_shuttle, 40, 4),
    "segment": (load_segment, 40, 4),
    "ionosphere": (load_ionosphere, 10, 3),
}
HIDDEN = 0.3
# Windows that are fitted before the scores count, and those over which curves are smooth.
FIRST, SMOOTH = 10, 10


def windows(name: str, most: int) -> list[NDArray]:
    """Windows of a data set, in units of the features' standard deviations."""
    load, n_rows, _ = DATA[name]
    X, _ = load(return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    # Cells far out would decide all scores alone.
    X = np.clip(X, -4, 4)
    if name != "shuttle":  # the others are sorted by class, or have no order
        X = X[RandomState(0).permutation(len(X))]
    n_windows = min(len(X) // n_rows, most)
    return [X[n_rows * n : n_rows * (n + 1)] for n in range(n_windows)]


def errors_of_window(models: list[BayesianSkellamSNMF], seen: NDArray, X: NDArray) -> list[float]:
    """Root mean square error of the hidden cells, for each model and for features' means."""
    hidden = np.isnan(seen)
    fills = []
    for model in models:
        model.fit(seen)
        fills.append(model.inverse_transform(model.activations_))
    fills.append(np.zeros_like(X))
    return [float(np.sqrt(np.mean((fill - X)[hidden] ** 2))) for fill in fills]


def run(name: str, most: int) -> tuple[NDArray, float]:
    """Errors of all windows, and seconds for each that is learned from."""
    warnings.simplefilter("ignore")
    random = RandomState(0)
    parts = windows(name, most)
    start = BayesianSkellamSNMF(DATA[name][2], max_iter=200, random_state=0)
    learner = PriorLearner(start, learning_rate="annealed", posterior="correlated")
    errors, seconds = [], []
    for number, X in enumerate(parts):
        seen = np.where(random.uniform(size=X.shape) < HIDDEN, np.nan, X)
        if number >= FIRST:
            learned = learner.estimator_.set_params(init="prior")
            # The same but for the prior, which does not say where to start.
            fixed = BayesianSkellamSNMF(**start.get_params())
            fixed.set_params(dispersion=learner.dispersion_, noise=None)
            errors.append(errors_of_window([learned, fixed], seen, X))
        begin = time.perf_counter()
        learner.partial_fit(seen)
        seconds.append(time.perf_counter() - begin)
    return np.array(errors), float(np.mean(seconds))


def draw(found: dict[str, NDArray], path: Path) -> None:
    """Errors with time, one plot for each data set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(found), 3.5), layout="constrained")
    for axis, (name, errors) in zip(figure.subplots(1, len(found)), found.items(), strict=True):
        width = min(SMOOTH, len(errors))
        kernel = np.ones(width) / width
        numbers = FIRST + np.arange(len(errors) - width + 1) + width
        for label, values in zip(("learned prior", "fixed prior", "means"), errors.T, strict=True):
            axis.plot(numbers, np.convolve(values, kernel, "valid"), label=label)
        axis.set_title(name)
        axis.set_xlabel("window")
    figure.axes[0].set_ylabel(f"error of hidden cells, mean of {SMOOTH} windows")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--windows", type=int, default=150, help="at most so many of a data set")
    parser.add_argument("--out", type=Path, default=None, help="a picture")
    options = parser.parse_args()
    header = ["data", "windows", "learned prior", "fixed prior", "features' means"]
    header += ["learned / fixed", "windows where learned is better", "s a window"]
    print("\n".join(table_head(header)), flush=True)
    found = {}
    for name in DATA:
        errors, seconds = run(name, options.windows)
        found[name] = errors
        means = errors.mean(axis=0)
        ratios = np.log(errors[:, 0] / errors[:, 1])
        error = ratios.std(ddof=1) / np.sqrt(len(ratios))
        cells: list[object] = [name, len(errors), *(f"{mean:.3f}" for mean in means)]
        cells.append(f"{np.exp(ratios.mean()):.3f} ± {error:.3f}")
        cells += [f"{np.mean(ratios < 0):.0%}", f"{seconds:.2f}"]
        print(row(cells), flush=True)
    if options.out is not None:
        draw(found, options.out)


if __name__ == "__main__":
    main()
