"""Is the number of components found? Simulated data, where it is known, and real data.

Prints Markdown tables of how often `select_n_components` finds the true number, and of the
criteria on the data sets that come with the library. Run it with
``python benchmarks/selection.py``. A row is printed as soon as it is known; ``--kinds``,
``--numbers`` and ``--criteria`` choose rows, so that a table can be put together in parts.

Atoms are drawn from a Dirichlet distribution with shape 0.5 and activations from a gamma
distribution with shape 0.5, so that the components can be told apart in principle. Noise is one of

- *integer*: Skellam noise, fitted with likelihood "integer";
- *real, noise grows*: normal noise whose variance is proportional to λ₀ + λ₁, as the library has it
  for real data;
- *real, constant noise*: normal noise of the same variance in all cells around a product of
  nonnegative activations and signed components;
- *real, noise by feature*: the same, with standard deviations that differ 25-fold by feature.

The signal-to-noise ratio is the variance of the mean over the mean variance of the noise, over all
cells. The data sets of a row have ratios from 1 to 10, equally spaced on a logarithmic scale.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, select_n_components
from seminmf.datasets import load_ionosphere, load_segment, load_shuttle
from seminmf.selection import Selection

KINDS = ("integer", "real, noise grows", "real, constant noise", "real, noise by feature")
TRUE_NUMBERS = (2, 4, 7)
CRITERIA = ("elbo", "heldout", "relevance")
N_SAMPLES, N_FEATURES = 200, 50
# Candidates on either side of the true number.
REACH = 2
REAL_CANDIDATES = (1, 2, 3, 4, 5, 6, 8, 10, 12)
MOST_ROWS = 300


def simulate(kind: str, n_components: int, ratio: float, seed: int) -> NDArray:
    """A matrix of one kind with this signal-to-noise ratio."""
    random = RandomState(seed)
    atoms = random.dirichlet(np.full(2 * N_FEATURES, 0.5), size=n_components)
    atoms = atoms.reshape(n_components, 2, N_FEATURES).transpose(1, 0, 2)
    rates = random.gamma(0.5, size=(N_SAMPLES, n_components)) @ atoms
    mean, total = rates[0] - rates[1], rates[0] + rates[1]
    variance = mean.var() / ratio
    scale = variance / total.mean()
    if kind == "integer":
        positive, negative = random.poisson(rates / scale)
        return (positive - negative).astype(float)
    if kind == "real, constant noise":
        return mean + np.sqrt(variance) * random.normal(size=mean.shape)
    if kind == "real, noise by feature":
        levels = 5 ** random.uniform(-1, 1, size=N_FEATURES)
        levels *= np.sqrt(variance / np.mean(levels**2))
        return mean + levels * random.normal(size=mean.shape)
    return mean + np.sqrt(scale * total) * random.normal(size=mean.shape)


def choose(
    X: NDArray, candidates: Iterable[int], criterion: str, likelihood: str, folds: int, jobs: int
) -> Selection:
    """`select_n_components` with default settings."""
    estimator = BayesianSkellamSNMF(likelihood=likelihood)
    return select_n_components(
        X,
        candidates,
        estimator=estimator,
        criterion=criterion,
        n_folds=folds,
        n_jobs=jobs,
        random_state=0,
    )


def choices(kind: str, true: int, criterion: str, options: argparse.Namespace) -> list[Selection]:
    """What a criterion chose, for one data set after the other."""
    likelihood = kind.split(",")[0]
    candidates = range(max(1, true - REACH), true + REACH + 1)
    ratios = list(enumerate(np.geomspace(1, 10, options.repeats)))
    return [
        choose(
            simulate(kind, true, ratio, options.seed + repeat),
            candidates,
            criterion,
            likelihood,
            options.folds,
            options.jobs,
        )
        for repeat, ratio in ratios[:: options.step]
    ]


def simulated_table(options: argparse.Namespace) -> None:
    """How often each criterion is right, and what it chose from the lowest ratio to the highest.

    Each row is printed as soon as it is known.
    """
    print(f"\n{N_SAMPLES} samples, {N_FEATURES} features, candidates K ± {REACH}.\n")
    header = ["data", "K", "criterion", "right", "clear", "wrong but clear"]
    header += ["chosen, ratio 1 to 10", "CPU seconds each"]
    print("\n".join(table_head(header)), flush=True)
    for kind in options.kinds:
        for true in options.numbers:
            for criterion in options.criteria:
                begin = time.process_time()
                found = choices(kind, true, criterion, options)
                seconds = (time.process_time() - begin) / len(found)
                chosen = [each.best for each in found]
                right = f"{chosen.count(true)} of {len(chosen)}"
                clear = sum(each.clear for each in found)
                wrong = sum(each.clear and each.best != true for each in found)
                cells = [kind, true, criterion, right, clear, wrong, " ".join(map(str, chosen))]
                print(row([*cells, f"{seconds:.1f}"]), flush=True)


def bundled() -> Iterator[tuple[str, NDArray]]:
    """The library's data sets, each feature in units of its standard deviation."""
    for load in (load_ionosphere, load_segment, load_shuttle):
        X, _ = load(return_X_y=True)
        rows = RandomState(0).permutation(len(X))[:MOST_ROWS]
        X = X[np.sort(rows)]
        X = X[:, X.std(axis=0) > 0]
        yield load.__name__.removeprefix("load_"), (X - X.mean(axis=0)) / X.std(axis=0)


def bundled_table(options: argparse.Namespace) -> None:
    """The criteria side by side on data whose number of components nobody knows."""
    print(f"\nStandardised, {MOST_ROWS} rows, candidates {REAL_CANDIDATES}.\n")
    print("\n".join(table_head(["data", "criterion", "chosen", "verdict"])), flush=True)
    for name, X in bundled():
        for criterion in options.criteria:
            found = choose(X, REAL_CANDIDATES, criterion, "real", options.folds, options.jobs)
            print(row([name, criterion, found.best, found.verdict]), flush=True)


def picture(path: str, options: argparse.Namespace) -> None:
    """What `Selection.plot` draws for each criterion, on one matrix with four components."""
    from matplotlib.figure import Figure

    X = simulate("real, constant noise", 4, ratio=2.0, seed=options.seed)
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for criterion, ax in zip(CRITERIA, figure.subplots(1, len(CRITERIA)), strict=True):
        found = choose(X, range(1, 8), criterion, "real", options.folds, options.jobs)
        found.plot(ax).set_title(f'criterion="{criterion}"')
    figure.savefig(path, dpi=100)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=10, help="data sets for each row")
    parser.add_argument("--step", type=int, default=1, help="2 takes every other data set")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", choices=KINDS, nargs="+", default=KINDS)
    parser.add_argument("--numbers", type=int, nargs="+", default=TRUE_NUMBERS)
    parser.add_argument("--criteria", choices=CRITERIA, nargs="+", default=CRITERIA)
    parser.add_argument("--only", choices=("simulated", "bundled"), default=None)
    parser.add_argument("--picture", metavar="PATH", help="draw the plots instead")
    options = parser.parse_args()
    if options.picture:
        picture(options.picture, options)
        return
    begin = time.perf_counter()
    if options.only != "bundled":
        simulated_table(options)
    if options.only != "simulated":
        bundled_table(options)
    print(f"\n{(time.perf_counter() - begin) / 60:.0f} minutes.")


if __name__ == "__main__":
    main()
