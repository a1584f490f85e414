"""Ratings that nobody saw: `SEMINMF_DATA=FOLDER python benchmarks/ratings.py [--seeds 3]`.

A tenth of Jester's ratings is hidden. All methods but means fill what means of users and jokes
leave, and choose their settings by a tenth of the ratings that they see. Ours take them as a sparse
matrix, once with one start, and once as the mean over some: no two starts err alike.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import NMF, TruncatedSVD
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, SkellamSNMF
from seminmf._selection.heldout import hide
from seminmf.datasets import load_jester
from seminmf.experiments._imputers import (
    Fill,
    Method,
    column_means,
    fill_residuals,
    fill_with_means,
    fill_within,
    root_mean_square,
    row_and_column_means,
)

HIDDEN = 0.1
RANGE = (-10.0, 10.0)
RANKS = (2, 4, 6, 8, 10, 12, 16)
SHAPES = (10, 30)
# Activations around some value rather than near zero; fixed on other hidden ratings than these.
ACTIVATIONS = {"activation_shape_prior": 2.0, "activation_rate_prior": 0.03}
STARTS = 5


def user_means(gappy: NDArray) -> NDArray:
    """Mean of each row, in the shape of the data."""
    return column_means(gappy.T).T


def fill_by_svd(gappy: NDArray, seed: int, intervals: bool, n_components: int) -> Fill:
    """scikit-learn's TruncatedSVD, with zeros for gaps."""
    svd = TruncatedSVD(n_components, random_state=seed)
    return Fill(svd.inverse_transform(svd.fit_transform(np.nan_to_num(gappy))))


def fill_by_nmf(gappy: NDArray, seed: int, intervals: bool, n_components: int) -> Fill:
    """scikit-learn's NMF, with zeros for gaps, shifted so that nothing is negative."""
    filled = np.nan_to_num(gappy)
    nmf = NMF(n_components, init="nndsvda", max_iter=500, random_state=seed)
    activations = nmf.fit_transform(filled - filled.min())
    return Fill(nmf.inverse_transform(activations) + filled.min())


def fill_by_sparse_fits(
    gappy: NDArray, seed: int, intervals: bool, estimator: type, n_starts: int = 1, **settings: Any
) -> Fill:
    """The mean over starts of one of our estimators, which has stored ratings only."""
    rows, columns = np.nonzero(~np.isnan(gappy))
    ratings = sparse.csr_array((gappy[rows, columns], (rows, columns)), shape=gappy.shape)
    total = np.zeros(gappy.shape)
    for start in range(n_starts):
        model = estimator(random_state=seed + start, **ACTIVATIONS, **settings).fit(ratings)
        total += model.inverse_transform(model.activations_)
    return Fill(total / n_starts)


class Entry(NamedTuple):
    """A method that chooses its settings once, and what is added to them in each row."""

    method: Method
    rows: dict[str, dict[str, Any]]


def entries() -> Iterator[Entry]:
    """All methods."""
    means = {"jokes": column_means, "users": user_means, "users and jokes": row_and_column_means}
    for name, function in means.items():
        yield Entry(Method(partial(fill_with_means, means=function)), {f"means of {name}": {}})
    ranks = {"n_components": RANKS}
    for name, fill in (("TruncatedSVD", fill_by_svd), ("NMF, shifted", fill_by_nmf)):
        yield Entry(Method(fill, ranks).wrapped(fill_residuals), {name: {}})
    for estimator in (SkellamSNMF, BayesianSkellamSNMF):
        fill = partial(fill_by_sparse_fits, estimator=estimator)
        method = Method(fill, ranks | {"atom_shape_prior": SHAPES}).wrapped(fill_residuals)
        name = estimator.__name__
        yield Entry(method, {name: {}, f"{name}, {STARTS} starts": {"n_starts": STARTS}})


class Score(NamedTuple):
    """Errors on hidden ratings, seconds of a fit, and the number of components."""

    root_mean_square: float
    mean_absolute: float
    seconds: float
    n_components: int


def scores(X: NDArray, seed: int, entry: Entry) -> dict[str, Score]:
    """Hide ratings, choose settings by the others, and fill."""
    hidden = hide(~np.isnan(X), HIDDEN, RandomState(seed))
    seen = np.where(hidden, np.nan, X)
    method = entry.method.wrapped(fill_within, RANGE)
    chosen = method.choose(seen, seed=100 + seed)
    found = {}
    for name, options in entry.rows.items():
        begin = time.perf_counter()
        fill = method.fill(seen, seed=seed, intervals=False, **chosen, **options)
        seconds = time.perf_counter() - begin
        misses = (fill.values - X)[hidden]
        error = root_mean_square(misses), float(np.mean(np.abs(misses)))
        found[name] = Score(*error, seconds, int(chosen.get("n_components", 0)))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="how often ratings are hidden")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X = load_jester().data
    head = ["method", "RMSE", "its range", "mean absolute error", "seconds of a fit", "components"]
    print("\n".join(table_head(head)))
    for entry in entries():
        runs = [scores(X, seed, entry) for seed in range(options.seeds)]
        for name in entry.rows:
            squares, absolute, seconds, ranks = zip(*(run[name] for run in runs), strict=True)
            spread = f"{min(squares):.3f}–{max(squares):.3f}"
            cells = [name, f"{np.mean(squares):.3f}", spread, f"{np.mean(absolute):.3f}"]
            used = ", ".join(str(rank or "–") for rank in ranks)
            print(row([*cells, f"{np.mean(seconds):.1f}", used]), flush=True)


if __name__ == "__main__":
    main()
