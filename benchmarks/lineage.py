"""What a scheduler keeps during a fit: `python benchmarks/lineage.py [--iterations 160]`.

EM iterations on 8 chunks and two workers, with atoms of 64 kB; the scheduler is in this process.
Its tasks, and the memory that this process has more than before, with arrays of samples that are
made anew now and then (after 4 MB here), and without. The logs of messages, of which distributed
keeps the last thousand, are off.
"""

from __future__ import annotations

import argparse
import gc
import logging
import warnings

import dask
import dask.array as da
import numpy as np
from tables import row, table_head

from seminmf import SkellamSNMF
from seminmf._algorithms import em
from seminmf._data.chunked import executor

N_CHUNKS, N_SAMPLES, N_FEATURES, N_COMPONENTS = 8, 200, 200, 20
LIMITS = {"yes": 4 << 20, "no": 1 << 60}
REPORTS = 4


def megabytes() -> float:
    """Memory of this process."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def measure(name: str, n_iter: int) -> None:
    """Print the rows of a fit."""
    from distributed import Client, LocalCluster

    X = np.random.default_rng(0).normal(size=(N_CHUNKS * N_SAMPLES, N_FEATURES))
    executor._MOST_KEPT = LIMITS[name]
    plain, n_done = em.step, 0
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=None
        ) as cluster,
        Client(cluster) as client,
    ):
        data = client.persist(da.from_array(X, chunks=(N_SAMPLES, -1)))
        options = {"dispersion": 0.0, "solver": "em", "acceleration": None, "tol": 0}
        model = SkellamSNMF(N_COMPONENTS, random_state=0, **options)
        model.set_params(max_iter=3).fit(data)
        before = megabytes()

        def step(problem: object, state: object) -> object:
            nonlocal n_done
            n_done += 1
            if n_done % (n_iter // REPORTS) == 0:
                gc.collect()
                kept = megabytes() - before
                cells = [name, n_done, len(cluster.scheduler.tasks), f"{kept:.0f}"]
                print(row(cells), flush=True)
            return plain(problem, state)

        em.step = step
        try:
            model.set_params(max_iter=n_iter).fit(data)
        finally:
            em.step = plain


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=160)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    dask.config.set({"distributed.admin.low-level-log-length": 0})
    print("\n".join(table_head(["made anew", "iterations", "tasks", "MB more"])))
    for name in LIMITS:
        measure(name, options.iterations)


if __name__ == "__main__":
    main()
