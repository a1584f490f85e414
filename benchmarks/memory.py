"""Peak memory of a fit above import, against X and its factors: `python benchmarks/memory.py`.

`--fits` and `--sizes` (samples x features x components) take some of the rows. "default" has the
search for noise, "posterior" draws from the joint posterior. Every fit runs in a process of its
own, after one that fills the cache of compiled kernels.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

MEGABYTE = 2**20
FITS = ("default", "Newton", "EM", "EM, SQUAREM", "VBEM", "VBEM, SQUAREM", "posterior")
SIZES = ("20000x200x10", "200000x50x5", "1000x5000x20")
FIT = """
import json, resource, sys
import numpy as np
from seminmf import BayesianSkellamSNMF, SkellamSNMF

name, n_samples, n_features, n_components, dtype = json.loads(sys.argv[1])
few = {"max_iter": 25, "tol": 1}
plain = {"dispersion": 0.0} | few
estimator, options = {
    "default": (SkellamSNMF, few),
    "Newton": (SkellamSNMF, {"solver": "newton"} | plain),
    "EM": (SkellamSNMF, {"solver": "em", "acceleration": None} | plain),
    "EM, SQUAREM": (SkellamSNMF, {"solver": "em"} | plain),
    "VBEM": (BayesianSkellamSNMF, {"posterior": "mean-field", "acceleration": None} | few),
    "VBEM, SQUAREM": (BayesianSkellamSNMF, {"posterior": "mean-field"} | few),
    "posterior": (BayesianSkellamSNMF, {"posterior": "correlated", "max_iter": 200}),
}[name]
# The smallest fit imports what fits need.
estimator(1, n_jobs=2, random_state=0, **options).fit(
    np.random.default_rng(1).normal(size=(30, n_features)).astype(dtype)
)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
X = np.random.default_rng(0).random((n_samples, n_features), dtype=dtype) - np.float32(0.5)
model = estimator(n_components, n_jobs=2, random_state=0, **options).fit(X)
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", nargs="+", default=FITS, choices=FITS)
    parser.add_argument("--sizes", nargs="+", default=SIZES)
    options = parser.parse_args()
    print("| fit, (J, I, K) | peak above import, MB | X + 6 factors + 64 MB |")
    print("| --- | --- | --- |")
    for name in options.fits:
        for given in options.sizes:
            sizes = tuple(map(int, given.split("x")))
            for dtype in ("float64", "float32"):
                run(name, 100, sizes[1], 2, dtype)
                peak, data, factors = run(name, *sizes, dtype)
                limit = data + 6 * factors + 64 * MEGABYTE
                print(
                    f"| {name}, {sizes}, {dtype} | {peak / MEGABYTE:.0f} "
                    f"| {limit / MEGABYTE:.0f} {'' if peak <= limit else '(above)'} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
