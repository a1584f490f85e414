"""What does it cost to find the noise? A whole default fit against one that is told.

Prints a Markdown table of seconds, of the least of some runs on all cores. "Told" knows noise,
dispersion and rate of the activations' prior, and has one start: what is left is the fit and a way
to it. "Ten starts, told" knows the same and compares as many starts as the default does. Run it on
a quiet machine with ``python benchmarks/noise_cost.py``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from simulated import PLAIN
from tables import row, table_head

from seminmf import SkellamSNMF
from seminmf.experiments._hidden import quiet_and_alone

# Samples, features, components.
SIZES = ((500, 20, 4), (2000, 50, 5), (5000, 100, 8), (20000, 200, 10))
RATIO = 3.0


def seconds(fit: Callable[[], object], n_runs: int) -> float:
    """The least of some runs, after one that compiles."""
    fit()
    found = []
    for _ in range(n_runs):
        begin = time.perf_counter()
        fit()
        found.append(time.perf_counter() - begin)
    return min(found)


def compare(J: int, I: int, K: int, n_runs: int) -> list[str]:
    """One size."""
    kind = PLAIN._replace(n_samples=J, n_features=I, n_components=K)
    X = kind.draw(RATIO, [0, J]).X
    with quiet_and_alone():
        default = SkellamSNMF(K, random_state=0).fit(X)
        known = {
            "dispersion": default.dispersion_,
            "activation_rate_prior": float(np.mean(default.activation_rate_prior_)),
        }
        times = [seconds(lambda: SkellamSNMF(K, random_state=0).fit(X), n_runs)]
        for n_init in (10, 1):
            model = SkellamSNMF(K, n_init=n_init, random_state=0, **known)
            times.append(seconds(lambda m=model: m.fit(X, cell_noise=default.noise_), n_runs))
    ratios = [f"{times[0] / other:.1f}" for other in times[1:]]
    return [f"{J}, {I}, {K}", *(f"{t:.2f}" for t in times), *ratios]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    columns = ["samples, features, components", "default", "ten starts, told", "told"]
    print("\n".join(table_head([*columns, "ratio to ten starts", "ratio to told"])))
    for size in SIZES:
        print(row(compare(*size, options.runs)), flush=True)


if __name__ == "__main__":
    main()
