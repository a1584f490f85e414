"""How long does a whole fit take, beside scikit-learn's NMF on the same data?

The data have components ≥ 0 and noise, as much as a third of the signal; what is below 0 is set to
0, so that NMF takes them. All fits are by default but for the number of components (NMF has more
iterations, so that it converges), and go on until their own tolerance. Prints a Markdown table of
seconds of one core, the least of some runs: ``python benchmarks/beside_nmf.py``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from simulated import KINDS
from sklearn.decomposition import NMF
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF
from seminmf.experiments._hidden import quiet_and_alone

# Samples, features, components.
SIZES = ((500, 20, 4), (2000, 50, 5))
RATIO = 3.0


def fits(X: NDArray, K: int) -> dict[str, Callable[[], object]]:
    """A fit of each estimator."""
    return {
        "NMF": lambda: NMF(K, max_iter=2000, random_state=0).fit(X),
        "EuclideanSNMF": lambda: EuclideanSNMF(K, random_state=0, n_jobs=1).fit(X),
        "SkellamSNMF": lambda: SkellamSNMF(K, random_state=0, n_jobs=1).fit(X),
        "n_init=1": lambda: SkellamSNMF(K, n_init=1, random_state=0, n_jobs=1).fit(X),
        "positive_components": lambda: SkellamSNMF(
            K, positive_components=True, random_state=0, n_jobs=1
        ).fit(X),
        "BayesianSkellamSNMF": lambda: BayesianSkellamSNMF(K, random_state=0, n_jobs=1).fit(X),
    }


def seconds(fit: Callable[[], object], n_runs: int) -> float:
    """Of one core, which others that work there hardly change; after a fit that compiles."""
    fit()
    found = []
    for _ in range(n_runs):
        begin = time.process_time()
        fit()
        found.append(time.process_time() - begin)
    return min(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    names = list(fits(np.zeros((1, 1)), 1))
    print("\n".join(table_head(["samples, features, components", *names])))
    for J, I, K in SIZES:
        kind = KINDS["positive-W"]._replace(n_samples=J, n_features=I, n_components=K)
        X = np.maximum(kind.draw(RATIO, [0, 0]).X, 0)
        with quiet_and_alone():
            times = [seconds(fit, options.runs) for fit in fits(X, K).values()]
        print(row([f"{J}, {I}, {K}", *(f"{time:.2f}" for time in times)]), flush=True)


if __name__ == "__main__":
    main()
