"""A file that is larger than what a fit may take of the memory: `python benchmarks/on_disk.py`.

Writes a file of float32, 8 GB, into a temporary folder, sweeps it, and sweeps some of its samples
in memory; then fits it in a process of its own and watches the memory that is not the file's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from problems import problem_of
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, SkellamSNMF
from seminmf._algorithms import em
from seminmf._algorithms.start import start
from seminmf._data.dense import DenseSource
from seminmf._data.disk import DiskSource
from seminmf._data.source import BlockSource
from seminmf._model.likelihoods import Real

N_FEATURES, N_COMPONENTS = 1000, 20
IN_MEMORY = 200_000
REPEATS = 3
MEGABYTE = 2**20
FITS = {
    "Newton": SkellamSNMF(N_COMPONENTS, dispersion=0.0, max_iter=12, tol=0, random_state=0),
    "EM, SQUAREM": SkellamSNMF(
        N_COMPONENTS, dispersion=0.0, solver="em", max_iter=2, tol=0, random_state=0
    ),
    "VBEM, SQUAREM": BayesianSkellamSNMF(
        N_COMPONENTS, dispersion=0.1, noise=None, max_iter=2, tol=0, random_state=0
    ),
}


def write(path: Path, n_samples: int) -> None:
    """A low rank and noise, block by block."""
    rng = np.random.default_rng(0)
    components = rng.normal(size=(5, N_FEATURES)).astype(np.float32)
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n_samples, N_FEATURES))
    for first in range(0, n_samples, 20_000):
        block = X[first : first + 20_000]
        activations = rng.gamma(0.5, 2.0, (len(block), 5)).astype(np.float32)
        block[:] = activations @ components + 0.5 * rng.standard_normal(block.shape, np.float32)
    X.flush()


def nanoseconds_a_cell(source: BlockSource, n_jobs: int) -> float:
    """Of an EM iteration, the least of some."""
    with problem_of(source, N_COMPONENTS, Real(unit=16.0), n_jobs=n_jobs) as problem:
        state = start(problem, "random", np.random.RandomState(0))
        times = []
        for _ in range(REPEATS + 1):
            begin = time.perf_counter()
            state, _ = em.step(problem, state)
            times.append(time.perf_counter() - begin)
    return 1e9 * min(times[1:]) / source.n_cells


def anonymous_memory() -> int:
    """Bytes of this process that are not those of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("RssAnon")).split()[1])


def fit_and_watch(path: str, name: str) -> None:
    """Print the largest memory of a fit, and the size of its factors."""
    X = np.load(path, mmap_mode="r")
    peak, done = [anonymous_memory()], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], anonymous_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    model = FITS[name].fit(X)
    done.set()
    watcher.join()
    print(json.dumps([peak[0], model.atoms_.nbytes + model.activations_.nbytes]))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--folder", default=None, help="where the file is written")
    parser.add_argument("--fit", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        fit_and_watch(*options.fit)
        return
    n_samples = int(options.gigabytes * 1e9) // (4 * N_FEATURES)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "X.npy"
        write(path, n_samples)
        X = np.load(path, mmap_mode="r")
        print("\n".join(table_head(["threads", "in memory, ns a cell", "on disk", "rate"])))
        for n_jobs in (1, 2):
            memory = nanoseconds_a_cell(DenseSource(np.array(X[:IN_MEMORY])), n_jobs)
            disk = nanoseconds_a_cell(DiskSource(X), n_jobs)
            print(row([n_jobs, f"{memory:.2f}", f"{disk:.2f}", f"{memory / disk:.0%}"]), flush=True)
        print()
        print("\n".join(table_head(["fit", "RssAnon, MB", "6 factors + 512 MB"])))
        for name in FITS:
            command = [sys.executable, "-W", "ignore", __file__, "--fit", str(path), name]
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            peak, factors = json.loads(done.stdout)
            limit = 6 * factors / MEGABYTE + 512
            print(row([name, f"{peak / MEGABYTE:.0f}", f"{limit:.0f}"]), flush=True)


if __name__ == "__main__":
    main()
