"""Peak memory of a fit above import, against X and its factors: `python benchmarks/memory.py`.

Every fit runs in a process of its own, after one that fills the cache of compiled kernels.
"""

from __future__ import annotations

import json
import subprocess
import sys

MEGABYTE = 2**20
FIT = """
import json, resource, sys
import numpy as np
from seminmf import BayesianSkellamSNMF, SkellamSNMF

name, n_samples, n_features, n_components, dtype = json.loads(sys.argv[1])
estimator = {
    "Newton": lambda *sizes, **options: SkellamSNMF(*sizes, dispersion=0.0, **options),
    "EM": lambda *sizes, **options: SkellamSNMF(*sizes, dispersion=0.0, solver="em", **options),
    "VBEM": lambda *sizes, **options: BayesianSkellamSNMF(
        *sizes, posterior="mean-field", **options
    ),
}[name]
# The smallest fit imports what fits need.
estimator(1, max_iter=2, n_jobs=2).fit(np.eye(3, n_features, dtype=dtype))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
X = np.random.default_rng(0).random((n_samples, n_features), dtype=dtype) - np.float32(0.5)
model = estimator(n_components, max_iter=25, tol=1, n_jobs=2, random_state=0).fit(X)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
factors = model.atoms_.nbytes + model.activations_.nbytes
print(json.dumps([after - before, X.nbytes, factors]))
"""


def run(*case: object) -> tuple[float, float, float]:
    """Peak above import, size of X, size of the factors, in bytes."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FIT, json.dumps(case)],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return tuple(json.loads(done.stdout))


def main() -> None:
    """Print the table."""
    print("| fit, (J, I, K) | peak above import, MB | X + 6 factors + 64 MB |")
    print("| --- | --- | --- |")
    for name in ("Newton", "EM", "VBEM"):
        for sizes in ((20000, 200, 10), (200000, 50, 5), (1000, 5000, 20)):
            for dtype in ("float64", "float32"):
                run(name, 100, sizes[1], 2, dtype)
                peak, data, factors = run(name, *sizes, dtype)
                limit = data + 6 * factors + 64 * MEGABYTE
                print(
                    f"| {name}, {sizes}, {dtype} | {peak / MEGABYTE:.0f} "
                    f"| {limit / MEGABYTE:.0f} {'' if peak <= limit else '(above)'} |"
                )


if __name__ == "__main__":
    main()
