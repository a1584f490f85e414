"""Memory of a fit to a tensor that is large: how far it goes above the data.

    python benchmarks/tensor_memory.py [--sizes 500,500,2000] [--rank 20] [--on-disk]

Prints the size of X, the peak of resident memory before the fit and after it, and the seconds. On
disk the pages of the file that the system keeps count as resident, too.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seminmf import SkellamSNTF


def peak() -> float:
    """Largest resident memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def filled(X: NDArray, rank: int) -> NDArray:
    """Data of a CP model with noise, written slice by slice."""
    random = np.random.default_rng(0)
    n, j, k = X.shape
    activations, courses = random.gamma(0.7, size=(n, rank)), random.gamma(0.7, size=(k, rank))
    maps = random.normal(size=(j, rank))
    for sample in range(n):
        X[sample] = (activations[sample] * maps) @ courses.T
        X[sample] += random.standard_normal(size=(j, k), dtype=np.float32)
    return X


def main() -> None:
    """Fit once, with few iterations."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="500,500,2000")
    parser.add_argument("--rank", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--on-disk", action="store_true")
    options = parser.parse_args()
    sizes = tuple(map(int, options.sizes.split(",")))
    warnings.simplefilter("ignore")
    own = {"signed": "jr", "acceleration": None, "tol": 0, "dispersion": 0.0, "random_state": 0}
    small = SkellamSNTF("nr,jr,kr->njk", options.rank, max_iter=1, **own)
    small.fit(filled(np.empty((30, 30, 30), dtype=np.float32), options.rank))  # compiles
    with tempfile.TemporaryDirectory() as folder:
        X = np.empty(sizes, dtype=np.float32)
        if options.on_disk:
            path = Path(folder) / "X.npy"
            X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=sizes)
        filled(X, options.rank)
        before, start = peak(), time.perf_counter()
        model = SkellamSNTF("nr,jr,kr->njk", options.rank, max_iter=options.iterations, **own)
        model.fit(X)
        seconds = time.perf_counter() - start
        print(f"X {X.nbytes / 2**20:.0f} MB, peak before {before:.0f} MB, after {peak():.0f} MB")
        print(f"{options.iterations} iterations, {seconds:.0f} s, R² {model.r2_:.3f}")


if __name__ == "__main__":
    main()
