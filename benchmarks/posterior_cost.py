"""What do certainty and a choice of K cost? Seconds, over those of one fit of `SkellamSNMF`.

Prints a Markdown table, with the least of some runs on all cores, for real numbers and integers of
500 samples, 20 features and 4 components. Run it on a quiet machine with
``python benchmarks/posterior_cost.py``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

from noise_cost import seconds
from numpy.typing import NDArray
from simulated import PLAIN
from tables import row, table_head

from seminmf import (
    BayesianSkellamSNMF,
    SkellamSNMF,
    bootstrap,
    consensus,
    sample_skellam_snmf,
    select_n_components,
)
from seminmf.experiments._hidden import quiet_and_alone

K, CANDIDATES = 4, (2, 3, 4, 5, 6)
GIVEN = {"activation_shape_prior": 0.5, "activation_rate_prior": 1e-3}


def data(likelihood: str) -> NDArray:
    """Simulated, at a signal / noise of 3 if real."""
    if likelihood == "real":
        return PLAIN.draw(3.0, [0, 0]).X
    return sample_skellam_snmf(500, 20, K, activation_shape=0.5, random_state=0)[0]


def tasks(likelihood: str) -> dict[str, Callable[[], object]]:
    """What is timed."""
    X, kind = data(likelihood), {"likelihood": likelihood, "random_state": 0}
    point = SkellamSNMF(K, **kind).fit(X)
    posterior = BayesianSkellamSNMF(K, **kind)
    given = BayesianSkellamSNMF(K, **kind, **GIVEN)
    select = partial(select_n_components, X, CANDIDATES, estimator=posterior, random_state=0)
    return {
        "`SkellamSNMF`": partial(SkellamSNMF(K, **kind).fit, X),
        "posterior by draws, priors learned": partial(posterior.fit, X),
        "posterior by draws, priors given": partial(given.fit, X),
        "mean field": partial(BayesianSkellamSNMF(K, **kind, posterior="mean-field").fit, X),
        "bootstrap, 200 draws": partial(bootstrap, point, X, random_state=0),
        "consensus, 20 runs": partial(consensus, SkellamSNMF(K, **kind), X, random_state=0),
        "choice of K among 5, evidence": partial(select, criterion="elbo"),
        "choice of K among 5, hidden cells": partial(select, criterion="heldout"),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()
    found: dict[str, list[float]] = {}
    with quiet_and_alone():
        for likelihood in ("real", "integer"):
            for name, task in tasks(likelihood).items():
                found.setdefault(name, []).append(seconds(task, options.runs))
    columns = ["real, s", "over one fit", "integers, s", "over one fit"]
    print("\n".join(table_head(["", *columns])))
    fits = next(iter(found.values()))
    for name, times in found.items():
        cells = [f"{t:.2f} | {t / fit:.1f}" for t, fit in zip(times, fits, strict=True)]
        print(row([name, *cells]), flush=True)


if __name__ == "__main__":
    main()
