"""Source apportionment: are the sources of simulated receptor data found again?

Run it with ``python benchmarks/receptor.py``; it takes about two minutes, and prints a Markdown
table. With EPA's toolkit installed (``pip install esat``), its least-squares NMF is compared, the
best of twenty models as its batches have it; scikit-learn's ``NMF``, which knows no errors, always.

The data are those of docs/examples/plot_source_apportionment.py: 12 species on 200 days, four
sources, errors of 10 % and a detection limit, a tenth of the values missing; "spare instrument" has
ten times the error on a fifth of the days. ESAT needs all cells, positive: missing ones are the
median of their species with an error of four times that, negative ones a tenth of the error. "cos"
is the mean cosine of profiles, "corr" the mean correlation of amounts.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from recovery_scores import Factors, score
from sklearn.decomposition import NMF
from tables import row, table_head

from seminmf import BayesianSkellamSNMF, SkellamSNMF
from seminmf.experiments._hidden import quiet_and_alone

PROFILES = np.array(
    [
        [34, 40, 8, 2, 2, 0, 0, 0, 2, 7, 3, 2],
        [66, 14, 4, 2, 2, 0, 2, 9, 0, 0, 0, 1],
        [1, 0, 4, 9, 0, 33, 50, 1, 2, 0, 0, 0],
        [12, 1, 2, 4, 1, 1, 0, 4, 42, 32, 0, 1],
    ]
)
DAYS, SHAPES, DETECTION = 200, np.array([2.0, 1.5, 0.4, 1.0]), 0.03


class Receptor(NamedTuple):
    """Measured values, their errors, and what they were made of."""

    X: NDArray
    errors: NDArray
    truth: Factors


def draw(number: int, spare_instrument: bool) -> Receptor:
    """One campaign."""
    rng = np.random.default_rng(number)
    profiles = PROFILES / PROFILES.sum(axis=1, keepdims=True)
    day = np.arange(DAYS)
    season = 0.5 + 0.5 * np.cos(2 * np.pi * day / DAYS)
    strength = np.array([6 - 4 * (day % 7 > 4), 8 * season, 2 + 0 * day, 5 * (1 - season)]).T
    amounts = strength * rng.gamma(SHAPES, 1 / SHAPES, (DAYS, len(SHAPES)))
    true = amounts @ profiles
    errors = np.sqrt((0.1 * true) ** 2 + DETECTION**2)
    if spare_instrument:
        errors[rng.random(DAYS) < 0.2] *= 10
    X = true + errors * rng.normal(size=true.shape)
    X[rng.random(X.shape) < 0.1] = np.nan
    return Receptor(X, errors, Factors(amounts, profiles))


def filled(data: Receptor) -> tuple[NDArray, NDArray]:
    """Values and errors for methods that need all cells, and none below 0."""
    medians = np.nanmedian(data.X, axis=0)
    gaps = np.isnan(data.X)
    X = np.where(gaps, medians, data.X)
    errors = np.where(gaps, 4 * np.abs(medians), data.errors)
    return np.maximum(X, 0.1 * errors), errors


def ours(data: Receptor) -> Factors:
    """The errors are known, and gaps stay gaps."""
    model = SkellamSNMF(4, positive_components=True, random_state=0, n_jobs=1)
    model.fit(data.X, cell_noise=np.where(np.isnan(data.X), np.inf, data.errors))
    return Factors(model.activations_, model.components_)


def posterior(data: Receptor) -> Factors:
    """The same, with means of the posterior."""
    model = BayesianSkellamSNMF(4, positive_components=True, random_state=0, n_jobs=1)
    model.fit(data.X, cell_noise=np.where(np.isnan(data.X), np.inf, data.errors))
    return Factors(model.activations_, model.components_)


def toolkit(data: Receptor) -> Factors:
    """Twenty models of EPA's toolkit, and the one with the least Q."""
    from esat.model.batch_sa import BatchSA

    # In this order of memory: with the other, version 2025.0.1 ends at a thousand times the Q.
    X, errors = map(np.asfortranarray, filled(data))
    batch = BatchSA(V=X, U=errors, factors=4, models=20, method="ls-nmf", seed=0, parallel=False)
    batch.train()
    best = batch.results[batch.best_model]
    return Factors(np.asarray(best.W), np.asarray(best.H))


def without_errors(data: Receptor) -> Factors:
    """scikit-learn's."""
    model = NMF(4, max_iter=2000, random_state=0)
    return Factors(model.fit_transform(filled(data)[0]), model.components_)


def methods() -> dict[str, Callable[[Receptor], Factors]]:
    """Those that are installed."""
    known = {
        "SkellamSNMF": ours,
        "BayesianSkellamSNMF": posterior,
        "ESAT, LS-NMF": toolkit,
        "NMF": without_errors,
    }
    if importlib.util.find_spec("esat") is None:
        del known["ESAT, LS-NMF"]
    return known


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    print("\n".join(table_head(["errors", "method", "cos", "least cos", "corr", "seconds"])))
    for name, spare in (("one instrument", False), ("spare instrument", True)):
        for method, fit in methods().items():
            found = []
            for number in range(options.draws):
                data = draw(number, spare)
                with quiet_and_alone():
                    begin = time.perf_counter()
                    factors = fit(data)
                    seconds = time.perf_counter() - begin
                scores = score(factors, data.truth)
                found.append((scores.cosine, scores.correlation, seconds))
            cosines, correlations, times = np.array(found).T
            cells = [f"{cosines.mean():.3f}", f"{cosines.min():.3f}", f"{correlations.mean():.3f}"]
            print(row([name, method, *cells, f"{np.median(times):.1f}"]), flush=True)


if __name__ == "__main__":
    main()
