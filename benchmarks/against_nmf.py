"""How long does a fit take next to scikit-learn's ``NMF``? Nonnegative data, to its own tolerance.

Prints a Markdown table of seconds of the processor, the least of some runs after one that compiles:
``NMF`` as it comes (coordinate descent); ``SkellamSNMF`` as it comes, which looks for the noise
from ten starts, with a single start, and with ``positive_components=True``; and
``BayesianSkellamSNMF``, with a posterior of all factors. All run on one thread. R² is of the
reconstruction. Run it with ``python benchmarks/against_nmf.py``; ``--runs``, ``--sizes`` and
``--methods`` choose.
"""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import NMF
from tables import row, table_head
from threadpoolctl import threadpool_limits

from seminmf import BayesianSkellamSNMF, SkellamSNMF
from seminmf.experiments._hidden import quiet_and_alone

# Features, samples, components.
SIZES = ((200, 20_000, 10), (50, 2_000, 5), (1_000, 5_000, 50))
RATIO = 5.0
METHODS: dict[str, Callable[[int], Any]] = {
    "NMF": lambda k: NMF(k, random_state=0),
    "default": lambda k: SkellamSNMF(k, random_state=0, n_jobs=1),
    "one start": lambda k: SkellamSNMF(k, n_init=1, random_state=0, n_jobs=1),
    "positive": lambda k: SkellamSNMF(k, positive_components=True, random_state=0, n_jobs=1),
    "posterior": lambda k: BayesianSkellamSNMF(k, random_state=0, n_jobs=1),
}


def matrix(n_features: int, n_samples: int, n_components: int) -> NDArray:
    """Gamma activations times gamma components, with noise, and what is below 0 made 0."""
    random = np.random.default_rng(0)
    activations = random.gamma(0.5, size=(n_samples, n_components))
    components = random.gamma(0.5, size=(n_components, n_features))
    signal = activations @ components
    noise = random.normal(size=signal.shape) * signal.std() / RATIO
    return np.maximum(signal + noise, 0)


def seconds(model: Any, X: NDArray, n_runs: int) -> tuple[float, float]:
    """The least of some runs, and the R² of the last."""
    found = []
    for _ in range(n_runs):
        begin = time.process_time()
        activations = model.fit_transform(X)
        found.append(time.process_time() - begin)
    fitted = activations @ model.components_
    return min(found), 1 - float(np.sum((X - fitted) ** 2) / np.sum(X**2))


def main() -> None:
    """Print the table."""
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--sizes", nargs="+", type=int, default=range(len(SIZES)))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    print("\n".join(table_head(["features, samples, components", "", "s", "× NMF", "R²"])))
    for number in options.sizes:
        X = matrix(*SIZES[number])
        unit = None
        for name in options.methods:
            model = METHODS[name](SIZES[number][2])
            with quiet_and_alone(), threadpool_limits(1):
                model.fit(X[: 2 * SIZES[number][2] + 10])
                took, r2 = seconds(model, X, options.runs)
            unit = unit or took
            sizes = ", ".join(map(str, SIZES[number]))
            print(row([sizes, name, f"{took:.2f}", f"{took / unit:.1f}", f"{r2:.4f}"]), flush=True)


if __name__ == "__main__":
    main()
