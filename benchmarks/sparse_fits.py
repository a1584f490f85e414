"""A whole fit to stored cells against one to the same cells in an array with NaN for the others.

`python benchmarks/sparse_fits.py [--share 0.05] [--sizes 10000x400x5 ...] [--fits default ...]`:
the default fit, that at dispersion=0.0 and one of integers; seconds of processors, their ratio, and
how far the objectives are apart.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from tables import row, table_head

from seminmf import SkellamSNMF

SIZES = ("10000x400x5", "3000x1000x10")
FITS = {
    "default": {},
    "dispersion=0.0": {"dispersion": 0.0},
    "integers": {"likelihood": "integer"},
}
ROUNDS = 1


def draw(n_samples: int, n_features: int, n_components: int, share: float) -> sparse.csr_array:
    """Stored cells of sparse components with noise, as large as the signal."""
    rng = np.random.default_rng(0)
    components = rng.normal(size=(n_components, n_features))
    components *= rng.random(components.shape) < 0.4
    activations = rng.gamma(0.5, 2.0, (n_samples, n_components))
    mask = sparse.random_array((n_samples, n_features), density=share, rng=rng).tocoo()
    signal = np.einsum("nk,kn->n", activations[mask.row], components[:, mask.col])
    values = signal + rng.normal(size=len(signal)) * np.std(signal)
    return sparse.csr_array((values, (mask.row, mask.col)), shape=mask.shape)


def with_gaps(X: sparse.csr_array) -> NDArray:
    """The same as an array, NaN where nothing is stored."""
    table, cells = np.full(X.shape, np.nan), X.tocoo()
    table[cells.row, cells.col] = cells.data
    return table


def fitted(X: NDArray | sparse.csr_array, n_components: int, **options: object) -> tuple:
    """The model, and seconds of processors: other work does not count."""
    begin = time.process_time()
    model = SkellamSNMF(n_components, random_state=0, n_jobs=2, **options).fit(X)
    return model, time.process_time() - begin


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=0.05, help="of cells that are stored")
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="samples x features x components")
    parser.add_argument("--fits", nargs="+", default=list(FITS), choices=list(FITS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    head = ["J × I, K", "fit", "stored cells", "dense, CPU s", "sparse, CPU s", "sparse / dense"]
    print("\n".join(table_head([*head, "iterations", "solver", "objectives differ by"])))
    for size in options.sizes:
        n_samples, n_features, n_components = map(int, size.split("x"))
        stored = draw(n_samples, n_features, n_components, options.share)
        for name in options.fits:
            X = stored.copy()
            if name == "integers":
                X.data = np.rint(2 * X.data)
            forms = [with_gaps(X), X]
            for form in forms:  # compiles
                fitted(form[:50], 1, max_iter=12, **FITS[name])
            runs = [
                [fitted(form, n_components, **FITS[name]) for form in forms] for _ in range(ROUNDS)
            ]
            dense, few = (min(run[n][1] for run in runs) for n in range(2))
            models = [model for model, _ in runs[0]]
            apart = abs(models[0].objective_ - models[1].objective_) / abs(models[0].objective_)
            cells = [f"{n_samples} × {n_features}, {n_components}", name, X.nnz]
            cells += [f"{dense:.2f}", f"{few:.2f}", f"{few / dense:.2f}"]
            cells += [f"{models[0].n_iter_}, {models[1].n_iter_}", models[1].solver_]
            print(row([*cells, f"{apart:.0e}"]), flush=True)


if __name__ == "__main__":
    main()
