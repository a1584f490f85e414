"""Questions that need no truth: other seeds, hidden cells, other units, and is a model empty?

``python benchmarks/recovery.py`` asks them with ``--stability``, ``--gaps``, ``--units`` and
``--empty``; the tables are those of ``real_tables.py``, standardised but for the last question.
``--gaps --bayes`` is that of `BayesianSkellamSNMF`, whose priors are learned with its draws.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.random import RandomState
from numpy.typing import NDArray
from real_tables import TABLES, load_raw, load_table
from recovery_peers import factors_of, ours, paper_settings
from recovery_scores import Factors, agreement, matched_cosines
from simulated import PLAIN
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF
from seminmf._selection.heldout import hide
from seminmf.experiments._hidden import quiet_and_alone
from seminmf.experiments._imputers import column_means, root_mean_square, soft_svd

N_SEEDS = 5
# Number of components of all tables, beside each one's own.
COMMON_NUMBER = 4
SHARES = (0.2, 0.5)
NUMBERS = range(2, 21)
# The same for the posterior, which takes longer.
NUMBERS_OF_BAYES = (4, 8, 14)
# Of the question whether a model is empty.
NUMBERS_OF_EMPTY = (2, 5)
# Thresholds of soft SVD, as shares of the largest singular value.
THRESHOLDS = np.geomspace(0.7, 0.002, 18)
POWERS = (-6, -3, 3, 6)
PLAIN_RATIO = 3.0


def is_asked(options: argparse.Namespace) -> bool:
    """Whether there is a question."""
    return options.stability or options.gaps or options.units or options.empty


def answer(options: argparse.Namespace) -> None:
    """Print the tables of the question."""
    questions = {"stability": stability, "gaps": gaps, "units": units, "empty": empty}
    lines = next(lines for name, lines in questions.items() if getattr(options, name))
    for line in lines(options):
        print(line, flush=True)


def fit(X: NDArray, n_components: int, seed: int, **settings: object) -> SkellamSNMF:
    """One thread, no warnings."""
    with quiet_and_alone():
        return ours(SkellamSNMF, n_components, seed, **settings).fit(X)


def in_parallel(function: object, tasks: list[tuple], options: argparse.Namespace) -> Iterator:
    """Results in the order of the tasks."""
    parallel = Parallel(n_jobs=options.jobs, return_as="generator")
    return parallel(delayed(function)(*task) for task in tasks)


def plain_draw(options: argparse.Namespace, number: int = 0) -> NDArray:
    """Simulated data, for comparison."""
    return PLAIN.draw(PLAIN_RATIO, [options.seed, number]).X


# --- seeds --------------------------------------------------------------------------------------


def stability(options: argparse.Namespace) -> Iterator[str]:
    """Mean cosine between the components of fits from different seeds."""
    tasks = [(f"plain, signal / noise {PLAIN_RATIO:g}", plain_draw(options), COMMON_NUMBER)]
    for name in options.tables:
        X = load_table(name, options.most_rows)
        numbers = sorted({COMMON_NUMBER, TABLES[name].n_components})
        tasks += [(name, X, number) for number in numbers if number <= X.shape[1]]
    yield f"Mean cosine of matched components of {N_SEEDS} seeds, one fit each.\n"
    yield from table_head(["data", "samples, features", "K", "seminmf", "paper, M = ∞"])
    fits = [(X, number, options.seed) for _, X, number in tasks]
    found = []
    for (name, X, number), cosines in zip(
        tasks, in_parallel(seeds_agree, fits, options), strict=True
    ):
        found.append(cosines)
        yield row([name, f"{len(X)}, {X.shape[1]}", number, *(f"{x:.3f}" for x in cosines)])
    yield row(["mean", "", "", *(f"{x:.3f}" for x in np.mean(found, axis=0))])


def seeds_agree(X: NDArray, n_components: int, seed: int) -> list[float]:
    """For the default and for the paper's model."""
    seeds = range(seed, seed + N_SEEDS)
    return [
        agreement([fit(X, n_components, each, **settings).components_ for each in seeds])
        for settings in ({}, paper_settings())
    ]


# --- hidden cells -------------------------------------------------------------------------------


class Errors(NamedTuple):
    """In hidden cells: column means', soft SVD's by threshold, ours by number of components."""

    means: float
    soft_svd: dict[float, float]
    own: dict[int, float]

    @property
    def best_number(self) -> int:
        """The number of components with the least error."""
        return min(self.own, key=self.own.__getitem__)

    @property
    def over_soft_svd(self) -> float:
        """Ours at the best number, over soft SVD's at the best threshold."""
        return self.own[self.best_number] / min(self.soft_svd.values())

    @property
    def over_means(self) -> dict[int, float]:
        """Ours over those of column means."""
        return {number: error / self.means for number, error in self.own.items()}


def gaps(options: argparse.Namespace) -> Iterator[str]:
    """Errors in hidden cells, over those of column means and of soft SVD at its best."""
    for share in SHARES:
        yield (
            f"\n{share:.0%} of the cells hidden, mean of {options.draws} choices: root mean square "
            "error over that of column means, by number of components; the best of these over soft "
            "SVD's at its best threshold\n"
        )
        numbers = NUMBERS_OF_BAYES if options.bayes else NUMBERS
        columns = ["data", "column means / std", *map(str, numbers), "best K", "/ soft SVD"]
        yield from table_head(columns)
        tasks = [(name, share, options) for name in options.tables]
        found = []
        for name, errors in zip(
            options.tables, in_parallel(mean_errors, tasks, options), strict=True
        ):
            found.append(errors)
            yield gaps_row(name, errors, numbers)
        median = np.median([errors.over_soft_svd for errors in found])
        worst = max(max(errors.over_means.values()) for errors in found)
        yield f"\nMedian of the last column {median:.3f}; worst over column means {worst:.3f}."


def gaps_row(name: str, errors: Errors, numbers: Sequence[int]) -> str:
    """One table's."""
    ratios = errors.over_means
    cells = (f"{ratios[number]:.3f}" if number in ratios else "" for number in numbers)
    last = [errors.best_number, f"{errors.over_soft_svd:.3f}"]
    return row([name, f"{errors.means:.3f}", *cells, *last])


def mean_errors(name: str, share: float, options: argparse.Namespace) -> Errors:
    """Means over choices of the hidden cells."""
    X = load_table(name, options.most_rows)
    seeds = range(options.seed, options.seed + options.draws)
    found = (hidden_errors(X, share, seed, options.bayes) for seed in seeds)
    means, soft, own = zip(*found, strict=True)
    return Errors(float(np.mean(means)), mean_by_key(soft), mean_by_key(own))


def mean_by_key(found: Sequence[dict]) -> dict:
    """Mean of dictionaries with the same keys."""
    return {key: float(np.mean([each[key] for each in found])) for key in found[0]}


def hidden_errors(X: NDArray, share: float, seed: int, bayes: bool) -> Errors:
    """For one choice of the hidden cells.

    Features of X have variance 1, so that errors are in units of their standard deviations. All
    methods get features standardised by the cells that are left.
    """
    hidden = hide(np.ones(X.shape, dtype=bool), share, RandomState(seed))
    gappy = np.where(hidden, np.nan, X)
    means, spreads = column_means(gappy), np.nanstd(gappy, axis=0)
    spreads = np.where(spreads > 0, spreads, 1.0)
    seen = (gappy - means) / spreads

    def error(filled: NDArray) -> float:
        return root_mean_square((filled * spreads + means - X)[hidden])

    most = X.shape[1] - 1
    # A table of few features has at least one number.
    numbers = {min(number, most) for number in NUMBERS_OF_BAYES} if bayes else NUMBERS
    fill = posterior_fill if bayes else own_fill
    own = {number: error(fill(seen, number, seed)) for number in numbers if number <= most}
    soft = zip(THRESHOLDS, map(error, soft_svd_path(seen)), strict=True)
    return Errors(error(np.zeros(X.shape)), dict(soft), own)


def own_fill(gappy: NDArray, n_components: int, seed: int) -> NDArray:
    """The default, with an intercept if there is one."""
    return fit(gappy, n_components, seed, fit_intercept=True).impute(gappy)


def posterior_fill(gappy: NDArray, n_components: int, seed: int) -> NDArray:
    """Means of the posterior, whose priors are learned."""
    with quiet_and_alone():
        model = BayesianSkellamSNMF(n_components, fit_intercept=True, random_state=seed)
        return model.fit(gappy).impute(gappy)


def soft_svd_path(gappy: NDArray) -> Iterator[NDArray]:
    """Soft SVD from the largest threshold to the smallest, each from the one before."""
    largest = float(np.linalg.norm(np.nan_to_num(gappy), 2))
    Z = np.zeros(gappy.shape)
    with quiet_and_alone():
        for threshold in THRESHOLDS:
            Z = soft_svd(gappy, threshold * largest, start=Z).values
            yield Z


# --- empty models -------------------------------------------------------------------------------


def empty(options: argparse.Namespace) -> Iterator[str]:
    """Least R² of posteriors, over that of least squares, raw and with means taken out."""
    yield f"Least R² of {N_SEEDS} seeds over that of least squares; fits that warn in brackets.\n"
    heads = [f"{kind}, K = {number}" for kind in ("raw", "centred") for number in NUMBERS_OF_EMPTY]
    yield from table_head(["data", *heads])
    tasks = [(name, options) for name in options.tables]
    for name, cells in zip(options.tables, in_parallel(least_r2, tasks, options), strict=True):
        yield row([name, *cells])


def least_r2(name: str, options: argparse.Namespace) -> list[str]:
    """For one table."""
    raw = load_raw(name, options.most_rows)
    cells = []
    for X in (raw, raw - raw.mean(axis=0)):
        for number in NUMBERS_OF_EMPTY:
            found = [r2_ratio(X, min(number, X.shape[1]), seed) for seed in range(N_SEEDS)]
            ratios, warned = zip(*found, strict=True)
            cells.append(f"{min(ratios):.3f}" + (f" ({sum(warned)})" if any(warned) else ""))
    return cells


def r2_ratio(X: NDArray, n_components: int, seed: int) -> tuple[float, bool]:
    """R² over that of least squares, and whether the fit warned that it explains nothing."""
    with quiet_and_alone():
        best = EuclideanSNMF(n_components, n_init=3, random_state=0).fit(X).r2_
        model = BayesianSkellamSNMF(n_components, random_state=seed, n_jobs=1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X)
    words = ("explained", "is empty", "are empty", "could reach")
    warned = any(word in str(each.message) for each in caught for word in words)
    return float(model.r2_ / best), warned


# --- units --------------------------------------------------------------------------------------


def units(options: argparse.Namespace) -> Iterator[str]:
    """Whether the unit of the data, or of each feature, changes what is found."""
    data = [
        (f"plain, draw {n}", plain_draw(options, n), COMMON_NUMBER) for n in range(options.draws)
    ]
    data += [
        (name, load_table(name, options.most_rows), TABLES[name].n_components)
        for name in options.tables
    ]
    yield (
        "Share of the labels that stay the same, and the lowest cosine of a component with the one "
        "before, its unit undone: all of X times a number, and features times 0.01 to 100.\n"
    )
    yield from table_head(["data", "K", *(f"10^{power}" for power in POWERS), "features"])
    tasks = [(X, number, options.seed) for _, X, number in data]
    for (name, _, number), cells in zip(data, in_parallel(changes, tasks, options), strict=True):
        yield row([name, number, *cells])


def changes(X: NDArray, n_components: int, seed: int) -> list[str]:
    """For each power of ten, and for features that have each another unit."""
    found = partial(factors_in, X, n_components, seed)
    before = found(1.0)
    spread = RandomState(seed).permutation(np.geomspace(0.01, 100, X.shape[1]))
    return [change(before, found(unit)) for unit in (*(10.0**p for p in POWERS), spread)]


def factors_in(X: NDArray, n_components: int, seed: int, unit: NDArray | float) -> Factors:
    """Factors of X · unit, the unit undone."""
    return factors_of(fit(X * unit, n_components, seed)).with_features_over(unit)


def change(before: Factors, after: Factors) -> str:
    """Share of equal labels, and the lowest cosine."""
    order = after.matched(before.components)
    labels = [found.amounts.argmax(axis=1) for found in (before, order)]
    cosine = matched_cosines(before.components, after.components).min()
    return f"{np.mean(labels[0] == labels[1]):.3f} {cosine:.3f}"
