"""Mini-batches against a full fit: `python benchmarks/batches.py`.

200 000 × 100, K = 10, one thread: the share of the full fit's time that fits in batches take, and
how far their objective is behind.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from numpy.typing import NDArray
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, SkellamSNMF

N_SAMPLES, N_FEATURES, N_COMPONENTS = 200_000, 100, 10
SIZES = (500, 2000)


def draw() -> NDArray:
    """Sparse components, and noise."""
    rng = np.random.default_rng(0)
    components = rng.normal(size=(N_COMPONENTS, N_FEATURES))
    components *= rng.random(components.shape) < 0.4
    X = rng.gamma(0.5, 2.0, (N_SAMPLES, N_COMPONENTS)) @ components
    return X + 0.5 * rng.normal(size=X.shape)


def value(model: SkellamSNMF | BayesianSkellamSNMF) -> float:
    """Objective or bound."""
    return model.objective_ if isinstance(model, SkellamSNMF) else model.lower_bound_


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    X = draw()
    common = {"random_state": 0, "n_jobs": 1}
    few = {"max_iter": 3, "tol": 1e-3}
    groups = (
        (
            "SkellamSNMF",
            SkellamSNMF(N_COMPONENTS, dispersion=0.0, **common),
            ({"solver": "newton"}, {"solver": "em"}),
        ),
        (
            "BayesianSkellamSNMF",
            BayesianSkellamSNMF(N_COMPONENTS, dispersion=0.05, noise=None, **common),
            ({"init": "map"}, {"init": "random"}),
        ),
    )
    print("\n".join(table_head(["fit", "batch", "epochs", "seconds", "of the full fit", "behind"])))
    for name, model, variants in groups:
        model.fit(X[:1000])  # compiles
        begin = time.perf_counter()
        model.fit(X)
        full, best = time.perf_counter() - begin, value(model)
        print(row([name, "all", model.n_iter_, f"{full:.1f}", "1", "0"]), flush=True)
        for variant in variants:
            for size in SIZES:
                model.set_params(batch_size=size, **variant, **few)
                begin = time.perf_counter()
                model.fit(X)
                seconds = time.perf_counter() - begin
                behind = (best - value(model)) / abs(best)
                label = f"{name}, {next(iter(variant.values()))}"
                cells = [label, size, model.n_iter_, f"{seconds:.1f}", f"{seconds / full:.3f}"]
                print(row([*cells, f"{behind:.1%}"]), flush=True)


if __name__ == "__main__":
    main()
