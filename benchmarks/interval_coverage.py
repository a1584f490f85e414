"""How often do intervals hold the truth? Simulated data, where the truth is known.

Prints a Markdown table of the coverage of `BayesianSkellamSNMF`'s intervals for activations,
components and hidden cells. Run it with ``python benchmarks/interval_coverage.py``.

Atoms and activations are drawn from the generative model, and cells in one of three ways:

- *integer*: Skellam noise, fitted with likelihood "integer": all is as the model has it;
- *real, Skellam noise*: a tenth of Skellam numbers with ten times the rates (M = 10): the variance
  of a cell is a tenth of λ₀ + λ₁, as the model has it, but the factor is for the model to find out;
- *real, Gaussian noise*: normal noise of the same size in every cell, a tenth of the root mean
  square of the data: not what the model assumes, and what data often are like.

A tenth of the cells is hidden from the fit. Components are matched with the true ones by the
Hungarian method, on cosines. "Means of cells" are activations · components, without noise; "hidden
cells" are observations that the fit did not see, and their intervals include the noise.
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from seminmf import BayesianSkellamSNMF, sample_skellam_snmf

KINDS = ("integer", "real, Skellam noise", "real, Gaussian noise")
SIZES = ((200, 10, 2), (500, 20, 3), (1000, 50, 5))
HIDDEN_SHARE = 0.1
COLUMNS = ("activations", "components", "means of cells", "hidden cells", "cosine of components")


class Case(NamedTuple):
    """Simulated data: all cells, which of them are hidden, and the parameters behind them."""

    X: NDArray
    hidden: NDArray
    components: NDArray
    activations: NDArray


def simulate(kind: str, size: tuple[int, int, int], random: RandomState) -> Case:
    """Data of one kind and size (J, I, K)."""
    M = {"integer": 1, "real, Skellam noise": 10, "real, Gaussian noise": np.inf}[kind]
    # Shapes of 0.5: activations are often small, without which no semi-NMF is unique.
    X, atoms, activations = sample_skellam_snmf(
        *size, M=M, activation_shape=0.5, atom_shape=0.5, random_state=random
    )
    if kind == "real, Gaussian noise":
        X = X + 0.1 * np.sqrt(np.mean(X**2)) * random.normal(size=X.shape)
    hidden = random.uniform(size=X.shape) < HIDDEN_SHARE
    return Case(X, hidden, atoms[0] - atoms[1], activations)


def fit(case: Case, kind: str, random: RandomState) -> BayesianSkellamSNMF:
    """The estimator with its default priors, best of three starts."""
    model = BayesianSkellamSNMF(
        len(case.components),
        likelihood=kind.split(",")[0],
        n_init=3,
        max_iter=5000,
        random_state=random,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(np.where(case.hidden, np.nan, case.X))


def match(found: NDArray, true: NDArray) -> tuple[NDArray, float]:
    """Index of the found component for each true one, and the mean cosine of the pairs."""
    lengths = np.outer(np.linalg.norm(true, axis=1), np.linalg.norm(found, axis=1))
    cosines = true @ found.T / np.where(lengths > 0, lengths, 1)
    rows, columns = linear_sum_assignment(-cosines)
    return columns, float(cosines[rows, columns].mean())


def share_inside(truth: NDArray, lower: NDArray, upper: NDArray) -> float:
    """Share of the true values between the two ends."""
    return float(np.mean((lower <= truth) & (truth <= upper)))


def interval_of_means(
    model: BayesianSkellamSNMF, level: float, n_draws: int = 200
) -> tuple[NDArray, NDArray]:
    """Intervals of activations · components, from draws."""
    activations, atoms = model.sample(n_draws, random_state=0)
    means = activations @ (atoms[:, 0] - atoms[:, 1])
    lower, upper = np.quantile(means, ((1 - level) / 2, (1 + level) / 2), axis=0)
    return lower, upper


def coverage(case: Case, model: BayesianSkellamSNMF, level: float) -> list[float]:
    """One number for each of `COLUMNS`."""
    order, cosine = match(model.components_, case.components)
    activations, components = model.interval(level)
    gappy = np.where(case.hidden, np.nan, case.X)
    _, lower, upper = model.impute(gappy, return_interval=True, level=level)
    return [
        share_inside(case.activations, *(end[:, order] for end in activations)),
        share_inside(case.components, *(end[order] for end in components)),
        share_inside(case.activations @ case.components, *interval_of_means(model, level)),
        share_inside(*(array[case.hidden] for array in (case.X, lower, upper))),
        cosine,
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5, help="data sets for each row")
    parser.add_argument("--level", type=float, default=0.9, help="nominal coverage")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"Coverage of {options.level:.0%} intervals, mean of {options.repeats} data sets.\n")
    print("| data | samples, features, components |", " | ".join(COLUMNS), "|")
    print("|---|---|" + "---|" * len(COLUMNS))
    for kind in KINDS:
        for size in SIZES:
            rows = []
            for repeat in range(options.repeats):
                random = RandomState(options.seed + repeat)
                case = simulate(kind, size, random)
                rows.append(coverage(case, fit(case, kind, random), options.level))
            *shares, cosine = np.mean(rows, axis=0)
            cells = [*(f"{share:.0%}" for share in shares), f"{cosine:.3f}"]
            print(f"| {kind} | {', '.join(map(str, size))} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
