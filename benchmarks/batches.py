"""Batches against a full fit: `python benchmarks/batches.py [--samples 20000] [--groups default]`.

100 features, K = 10, half of the variance noise, one thread: the share of the full fit's time that
fits in batches take, how far their objective is behind, how much they explain, and how near their
components are to the true ones (mean cosine after matching). `partial_fit` sees each sample once.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, SkellamSNMF
from seminmf._estimators.runs import matched_cosines

N_FEATURES, N_COMPONENTS = 100, 10
SIZES = (500, 2000)
COMMON = {"random_state": 0, "n_jobs": 1}
# Each makes an estimator from further parameters; and what differs between its fits in batches.
GROUPS: dict[str, tuple[Callable[..., Any], tuple[dict[str, Any], ...]]] = {
    "default": (lambda **given: SkellamSNMF(N_COMPONENTS, **COMMON, **given), ({},)),
    "dispersion=0.0": (
        lambda **given: SkellamSNMF(N_COMPONENTS, dispersion=0.0, **COMMON, **given),
        ({"solver": "newton"}, {"solver": "em"}),
    ),
    "Bayesian": (
        lambda **given: BayesianSkellamSNMF(
            N_COMPONENTS, posterior="mean-field", **COMMON, **given
        ),
        ({},),
    ),
    "Bayesian, noise=None": (
        lambda **given: BayesianSkellamSNMF(
            N_COMPONENTS, dispersion=1.0, noise=None, **COMMON, **given
        ),
        ({"init": "map"},),
    ),
}


def draw(n_samples: int) -> tuple[NDArray, NDArray]:
    """Sparse components with as much noise, and the components."""
    rng = np.random.default_rng(0)
    components = rng.normal(size=(N_COMPONENTS, N_FEATURES))
    components *= rng.random(components.shape) < 0.4
    signal = rng.gamma(0.5, 2.0, (n_samples, N_COMPONENTS)) @ components
    return signal + rng.normal(size=signal.shape) * signal.std(axis=0), components


def value(model: Any) -> float:
    """Objective or bound."""
    return model.lower_bound_ if hasattr(model, "lower_bound_") else model.objective_


def in_a_stream(model: Any, X: NDArray, size: int) -> Any:
    """Each sample once, batch by batch."""
    for start in range(0, len(X), size):
        model.partial_fit(X[start : start + size])
    return model


def fits(
    X: NDArray, make: Callable[..., Any], variants: tuple[dict[str, Any], ...]
) -> Iterator[tuple[str, object, Any, float]]:
    """Words, size of batches, the model and CPU seconds of each fit, the full one first."""

    def timed(words: str, size: object, fit: Callable[[], Any]) -> tuple[str, object, Any, float]:
        begin = time.process_time()
        model = fit()
        return words, size, model, time.process_time() - begin

    yield timed("all at once", "all", lambda: make().fit(X))
    for variant in variants:
        words = "".join(f', {name}="{given}"' for name, given in variant.items())
        few = {"max_iter": 3, "tol": 1e-3, **variant}
        for size in SIZES:
            yield timed(
                f"batch_size{words}", size, lambda n=size, own=few: make(batch_size=n, **own).fit(X)
            )
        size = SIZES[0]
        yield timed(
            f"partial_fit{words}", size, lambda own=variant: in_a_stream(make(**own), X, SIZES[0])
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--groups", nargs="+", default=list(GROUPS), choices=list(GROUPS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X, components = draw(options.samples)
    head = ["model", "fit", "batch", "epochs", "CPU seconds", "of the full fit", "behind"]
    print("\n".join(table_head([*head, "R²", "cosine"])))
    for name in options.groups:
        make, variants = GROUPS[name]
        for variant in ({}, *variants):  # compiles
            in_a_stream(make(**variant), X[:1200], 100)
            make(batch_size=100, max_iter=2, **variant).fit(X[:600])
        full = best = 0.0
        for words, size, model, seconds in fits(X, make, variants):
            if not full:
                full, best = seconds, value(model)
            behind = (best - value(model)) / abs(best)
            cells = [name, words, size, model.n_iter_, f"{seconds:.1f}", f"{seconds / full:.2f}"]
            # A stream has no objective of all samples.
            cells += ["–" if words.startswith("partial") else f"{behind:.1%}"]
            cosine = matched_cosines(model.components_, components).mean()
            print(row([*cells, f"{model.r2(X):.3f}", f"{cosine:.3f}"]), flush=True)


if __name__ == "__main__":
    main()
