"""How much faster is coordinate descent than the multiplicative rule, for the same squared errors?

Both solvers of `EuclideanSNMF` run from the same starts on one thread. Time is that of the process,
until the squared error is within a share of the best that any run of the data set found. Run it
with ``python benchmarks/euclidean.py``; it prints a Markdown table of medians over the starts.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from numpy.typing import NDArray
from tables import row, table_head

from seminmf import EuclideanSNMF
from seminmf.datasets import load_ionosphere, load_segment, load_shuttle, make_waveform

DATA = {
    "Ionosphere": (lambda: load_ionosphere(return_X_y=True), 2),
    "Ionosphere, K = 10": (lambda: load_ionosphere(return_X_y=True), 10),
    "Wave": (lambda: make_waveform(random_state=0), 3),
    "Image": (lambda: load_segment(return_X_y=True), 7),
    "Shuttle": (lambda: load_shuttle(return_X_y=True), 7),
}
SOLVERS = ("hals", "multiplicative")
SHARES = (0.1, 0.01)


def run(X: NDArray, n_components: int, solver: str, seed: int, most: int) -> tuple[NDArray, float]:
    """Squared errors after each iteration, and seconds an iteration."""
    model = EuclideanSNMF(
        n_components, solver=solver, max_iter=most, tol=1e-8, random_state=seed, n_jobs=1
    )
    begin = time.process_time()
    model.fit(X)
    seconds = time.process_time() - begin
    return -2 * model.objectives_, seconds / model.n_iter_


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=5000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    header = ["data", "solver", "ms an iteration", "error at the end / best"]
    header += [f"s to within {share:.0%}" for share in SHARES]
    print("\n".join(table_head(header)), flush=True)
    for name, (load, n_components) in DATA.items():
        X, _ = load()
        for solver in SOLVERS:  # compiled
            run(X[:100], n_components, solver, 0, 3)
        runs = {
            solver: [
                run(X, n_components, solver, seed, options.iterations)
                for seed in range(options.starts)
            ]
            for solver in SOLVERS
        }
        best = min(errors[-1] for found in runs.values() for errors, _ in found)
        for solver, found in runs.items():
            cells: list[object] = [name, solver]
            cells.append(f"{1e3 * np.median([seconds for _, seconds in found]):.2f}")
            cells.append(f"{np.median([errors[-1] for errors, _ in found]) / best:.3f}")
            for share in SHARES:
                cells.append(_time_to(found, (1 + share) * best))
            print(row(cells), flush=True)


def _time_to(found: list[tuple[NDArray, float]], goal: float) -> str:
    """Median seconds until the error is at the goal, and how many starts got there."""
    times = [
        np.argmax(errors <= goal) * seconds if np.any(errors <= goal) else np.inf
        for errors, seconds in found
    ]
    reached = int(np.isfinite(times).sum())
    if reached <= len(times) // 2:
        return f"never ({reached} of {len(times)} starts)"
    return f"{np.median(times):.3f} ({reached} of {len(times)})"


if __name__ == "__main__":
    main()
