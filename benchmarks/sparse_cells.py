"""Stored cells against dense ones: `python benchmarks/sparse_cells.py`.

A random sparse matrix, 100 000 × 20 000 with 10⁷ stored cells, K = 20, one thread: time of an EM
iteration per cell, against a dense matrix in the same run; twice the cells; and memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
from problems import problem_of
from scipy import sparse
from tables import row, table_head

from seminmf._algorithms import em
from seminmf._algorithms.start import start
from seminmf._data.dense import DenseSource
from seminmf._data.source import BlockSource
from seminmf._data.sparse import SparseSource
from seminmf._model.likelihoods import Real

N_SAMPLES, N_FEATURES, N_STORED, N_COMPONENTS = 100_000, 20_000, 10_000_000, 20
DENSE = (20_000, 200)
REPEATS = 5

MEMORY = """
import json, resource, sys
import numpy as np
from scipy import sparse
from seminmf import SkellamSNMF

sys.path.insert(0, sys.argv[1])
from sparse_cells import N_COMPONENTS, draw

SkellamSNMF(2, dispersion=0.0, solver="em", max_iter=2).fit(sparse.csr_array(np.eye(9)))
X = draw(int(sys.argv[2]))
stored = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
with open("/proc/self/status") as file:
    now = next(1024 * int(line.split()[1]) for line in file if line.startswith("VmRSS"))
SkellamSNMF(N_COMPONENTS, dispersion=0.0, solver="em", max_iter=3, n_jobs=2, random_state=0).fit(X)
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


def seconds_of_an_iteration(source: BlockSource, n_jobs: int = 1) -> float:
    """The least of some times."""
    with problem_of(source, N_COMPONENTS, Real(), n_jobs=n_jobs) as problem:
        state = start(problem, "random", np.random.RandomState(0))
        state, _ = em.step(problem, state)
        times = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            state, _ = em.step(problem, state)
            times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    """Print time for each cell, and memory."""
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


if __name__ == "__main__":
    main()
