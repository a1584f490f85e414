"""Stored cells against dense ones: `python benchmarks/sparse_cells.py`; `--ratings` for Jester's.

A random sparse matrix, 100 000 × 20 000 with 10⁷ stored cells, K = 20, one thread: time of an EM
iteration per cell, against a dense matrix in the same run; twice the cells; and memory. Ratings,
from the folder that SEMINMF_DATA names: the error of a tenth of them that is hidden.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from problems import problem_of
from scipy import sparse
from sklearn.decomposition import NMF, TruncatedSVD
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, SkellamSNMF
from seminmf._inference import em
from seminmf._inference.start import start
from seminmf._likelihoods import Real
from seminmf._sources import DenseSource, Source, SparseSource
from seminmf.datasets import load_jester

N_SAMPLES, N_FEATURES, N_STORED, N_COMPONENTS = 100_000, 20_000, 10_000_000, 20
DENSE = (20_000, 200)
REPEATS = 5
HIDDEN = 0.1

MEMORY = """
import json, resource, sys
import numpy as np
from scipy import sparse
from seminmf import SkellamSNMF

sys.path.insert(0, sys.argv[1])
from sparse_cells import N_COMPONENTS, draw

SkellamSNMF(2, solver="em", max_iter=2).fit(sparse.csr_array(np.eye(9)))
X = draw(int(sys.argv[2]))
stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
with open("/proc/self/status") as file:
    now = next(1024 * int(line.split()[1]) for line in file if line.startswith("VmRSS"))
SkellamSNMF(N_COMPONENTS, solver="em", max_iter=3, n_jobs=2, random_state=0).fit(X)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([max(after, before) - now + stored, stored]))
"""


def draw(n_stored: int, seed: int = 0) -> sparse.csr_array:
    """A matrix with normal numbers in cells drawn at random."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, N_SAMPLES, n_stored, dtype=np.int32)
    columns = rng.integers(0, N_FEATURES, n_stored, dtype=np.int32)
    values = rng.normal(size=n_stored)
    X = sparse.coo_array((values, (rows, columns)), shape=(N_SAMPLES, N_FEATURES)).tocsr()
    X.sum_duplicates()
    return X


def seconds_of_an_iteration(source: Source, n_jobs: int = 1) -> float:
    """The least of some times."""
    with problem_of(source, N_COMPONENTS, Real(1.0), n_jobs=n_jobs) as problem:
        state = start(problem, "random", np.random.RandomState(0))
        state, _ = em.step(problem, state)
        times = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            state, _ = em.step(problem, state)
            times.append(time.perf_counter() - begin)
    return min(times)


def print_cells() -> None:
    """Time for each cell, and memory."""
    rng = np.random.default_rng(1)
    dense = seconds_of_an_iteration(DenseSource(rng.normal(size=DENSE))) / np.prod(DENSE)
    print("\n".join(table_head(["cells", "ns a cell", "against dense", "memory / stored matrix"])))
    print(row([f"dense {DENSE}", f"{1e9 * dense:.1f}", "1", "–"]))
    once = 0.0
    for n_stored in (N_STORED, 2 * N_STORED):
        X = draw(n_stored)
        own = seconds_of_an_iteration(SparseSource(X))
        per_cell = own / X.nnz
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", MEMORY, sys.path[0], str(n_stored)],
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
        peak, stored = json.loads(done.stdout)
        print(
            row(
                [
                    f"{X.nnz:,} stored",
                    f"{1e9 * per_cell:.1f}",
                    f"{per_cell / dense:.2f}",
                    f"{peak / stored:.1f}",
                ]
            ),
            flush=True,
        )
        if once:
            print(f"\nTwice the cells take {own / once:.2f} times as long.")
        once = own


# --- ratings ----------------------------------------------------------------------------------


def hide(X: NDArray, rng: np.random.Generator) -> NDArray:
    """Which ratings are hidden: a tenth, and not the only ones of a user or a joke."""
    hidden = ~np.isnan(X) & (rng.random(X.shape) < HIDDEN)
    return hidden & (np.sum(~np.isnan(X) & ~hidden, axis=1) > 0)[:, None]


def means(X: NDArray, axis: int) -> NDArray:
    """Means over users or jokes for all cells."""
    return np.broadcast_to(np.nanmean(X, axis=axis, keepdims=True), X.shape)


def by_svd(X: NDArray, rank: int) -> NDArray:
    """Gaps filled by means of users and jokes, and a truncated SVD of what is left."""
    base = means(X, 1) + means(X, 0) - np.nanmean(X)
    svd = TruncatedSVD(rank, random_state=0)
    left = svd.fit_transform(np.where(np.isnan(X), 0, X - base))
    return base + left @ svd.components_


def by_nmf(X: NDArray, rank: int) -> NDArray:
    """Ratings shifted to be positive, gaps filled by the joke's mean."""
    lowest = np.nanmin(X)
    filled = np.where(np.isnan(X), means(X, 0), X) - lowest
    nmf = NMF(rank, init="nndsvda", max_iter=500, random_state=0)
    return nmf.fit_transform(filled) @ nmf.components_ + lowest


def by_snmf(X: NDArray, rank: int, estimator: type, **options: object) -> NDArray:
    """Semi-NMF of the sparse matrix of ratings around the means of users and jokes."""
    base = means(X, 1) + means(X, 0) - np.nanmean(X)
    rows, columns = np.nonzero(~np.isnan(X))
    residuals = sparse.csr_array(((X - base)[rows, columns], (rows, columns)), shape=X.shape)
    model = estimator(rank, sparse_zeros="missing", random_state=0, **options).fit(residuals)
    return base + model.inverse_transform(model.activations_)


def best_rank(fill: Callable[[NDArray, int], NDArray], X: NDArray, ranks: list[int]) -> int:
    """The rank with the least error on ratings hidden once more."""
    hidden = hide(X, np.random.default_rng(1))
    seen = np.where(hidden, np.nan, X)
    errors = [np.mean((fill(seen, rank) - X)[hidden] ** 2) for rank in ranks]
    return ranks[int(np.argmin(errors))]


def print_ratings() -> None:
    """Errors on hidden ratings, with the rank that each method chooses by itself."""
    X = load_jester().data
    hidden = hide(X, np.random.default_rng(0))
    seen = np.where(hidden, np.nan, X)
    ranks = [2, 4, 6, 8, 12, 16]
    methods: dict[str, Callable[[NDArray, int], NDArray]] = {
        "joke means": lambda X, rank: means(X, 0),
        "user means": lambda X, rank: means(X, 1),
        "user and joke means": lambda X, rank: means(X, 1) + means(X, 0) - np.nanmean(X),
        "TruncatedSVD on filled data": by_svd,
        "NMF on shifted data": by_nmf,
        "SkellamSNMF": lambda X, rank: by_snmf(X, rank, SkellamSNMF, activation_rate_prior=0.1),
        "BayesianSkellamSNMF": lambda X, rank: by_snmf(X, rank, BayesianSkellamSNMF),
    }
    print("\n".join(table_head(["method", "components", "RMSE", "seconds of a fit"])))
    for name, fill in methods.items():
        rank = best_rank(fill, seen, ranks if "means" not in name else [0])
        begin = time.perf_counter()
        error = np.sqrt(np.mean((fill(seen, rank) - X)[hidden] ** 2))
        seconds = time.perf_counter() - begin
        print(row([name, rank or "–", f"{error:.3f}", f"{seconds:.1f}"]), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ratings", action="store_true", help="only Jester's ratings")
    if parser.parse_args().ratings:
        print_ratings()
    else:
        print_cells()


if __name__ == "__main__":
    main()
