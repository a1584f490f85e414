"""Which way to take for data of some size and with some gaps: `python benchmarks/ways.py`.

EM iterations on 200 000 × 100, K = 20, two threads: an array, a file, Dask's threads, two worker
processes. Then the same with more and more gaps, as NaN in an array and as a sparse matrix. All
take turns, several times, and of each the fastest fits count.
"""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
from cluster import Place, local_cluster, take_turns
from distributed import Client
from numpy.typing import NDArray
from scipy import sparse
from tables import row, table_head

N_SAMPLES, N_FEATURES = 200_000, 100
CHUNK = 50_000
GAPS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.99)
ROUNDS = 4


def draw() -> NDArray:
    """A low rank and noise."""
    rng = np.random.default_rng(0)
    activations = rng.gamma(0.5, 2.0, (N_SAMPLES, 5))
    X = activations @ rng.normal(size=(5, N_FEATURES))
    return X + rng.normal(size=X.shape)


def print_places(X: NDArray) -> None:
    """Where the data are."""
    with contextlib.ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "X.npy"
        np.save(path, X)
        cluster = stack.enter_context(local_cluster(2))
        client = stack.enter_context(Client(cluster, set_as_default=False))
        chunked = da.from_array(X, chunks=(CHUNK, -1))
        places = [
            Place("an array", X, 2, None),
            Place("a file (`mmap_mode`)", np.load(path, mmap_mode="r"), 2, None),
            Place("a Dask array, threads", chunked, 2, None),
            Place("a Dask array, two workers", client.persist(chunked), 1, client),
        ]
        take_turns(places, ROUNDS)
    print("\n".join(table_head(["data", "ms an iteration", "against an array"])))
    for place in places:
        ratio = place.seconds / places[0].seconds
        print(row([place.name, f"{1e3 * place.seconds:.0f}", f"{ratio:.2f}"]), flush=True)


def print_gaps(X: NDArray) -> None:
    """How many cells are gaps."""
    rng = np.random.default_rng(1)
    print()
    print("\n".join(table_head(["gaps", "NaN in an array, ms", "sparse, ms", "sparse / array"])))
    for share in GAPS:
        with_gaps = np.where(rng.random(X.shape) < share, np.nan, X)
        rows, columns = np.nonzero(~np.isnan(with_gaps))
        stored = sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)
        places = [Place("", with_gaps, 2, None), Place("", stored, 2, None)]
        take_turns(places, ROUNDS)
        dense, few = (place.seconds for place in places)
        cells = [f"{share:.0%}", f"{1e3 * dense:.0f}", f"{1e3 * few:.0f}", f"{few / dense:.2f}"]
        print(row(cells), flush=True)


def main() -> None:
    """Print both tables."""
    warnings.simplefilter("ignore")
    X = draw()
    print_places(X)
    print_gaps(X)


if __name__ == "__main__":
    main()
