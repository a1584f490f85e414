"""A Dask array on one and on two workers: `python benchmarks/cluster.py`.

Workers are processes with one thread each. Chunks have 64 MB. EM iterations are compared with those
in memory on one thread; and in five fits a worker is killed.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
import warnings

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from tables import row, table_head

from seminmf import SkellamSNMF

N_FEATURES, N_COMPONENTS, N_CHUNKS = 200, 20, 8
CHUNK = 64 * 2**20 // (8 * N_FEATURES)
ITERATIONS = 20
KILLS = 5


def draw_chunk(block: NDArray, block_id: tuple[int, int]) -> NDArray:
    """Some samples of a low rank and noise."""
    components = np.random.default_rng(0).normal(size=(5, N_FEATURES))
    rng = np.random.default_rng([1, block_id[0]])
    return rng.gamma(0.5, 2.0, (len(block), 5)) @ components + rng.normal(size=block.shape)


def data() -> da.Array:
    """The array, to be drawn where its chunks are."""
    shape = (N_CHUNKS * CHUNK, N_FEATURES)
    return da.zeros(shape, chunks=(CHUNK, N_FEATURES)).map_blocks(draw_chunk, dtype=float)


def seconds_of_an_iteration(X: da.Array | NDArray) -> tuple[float, NDArray]:
    """From fits with many and with few iterations; and the atoms."""
    times = {}
    for n_iter in (1, 2, 2 + ITERATIONS):  # the first one loads what is compiled
        model = SkellamSNMF(
            N_COMPONENTS,
            solver="em",
            acceleration=None,
            tol=0,
            max_iter=n_iter,
            random_state=0,
            n_jobs=1,
        )
        begin = time.perf_counter()
        model.fit(X)
        times[n_iter] = time.perf_counter() - begin
    return (times[2 + ITERATIONS] - times[2]) / ITERATIONS, model.atoms_


def local_cluster(n_workers: int) -> LocalCluster:
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        dashboard_address=None,
        memory_limit=None,
        silence_logs=logging.CRITICAL,
    )


def kill_after(pid: int, seconds: float) -> None:
    """End a process at once."""
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)


def survives(expected: NDArray, seconds: float) -> float:
    """Seconds of a fit in which a worker is killed, after some of them."""
    with local_cluster(2) as cluster, Client(cluster) as client:
        X = client.persist(data())
        pids = list(client.run(os.getpid).values())
        killer = multiprocessing.get_context("spawn").Process(
            target=kill_after, args=(pids[0], seconds)
        )
        killer.start()
        model = SkellamSNMF(
            N_COMPONENTS,
            solver="em",
            acceleration=None,
            tol=0,
            max_iter=2 + ITERATIONS,
            random_state=0,
        )
        begin = time.perf_counter()
        model.fit(X)
        spent = time.perf_counter() - begin
        killer.join()
        assert spent > seconds, "the worker was killed after the fit"
        np.testing.assert_allclose(model.atoms_, expected, rtol=1e-9, atol=1e-15)
        return spent


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    array = data().compute(scheduler="synchronous")
    memory, expected = seconds_of_an_iteration(array)
    del array
    print(
        "\n".join(table_head(["workers", "seconds an iteration", "against one", "against memory"]))
    )
    print(row(["in memory", f"{memory:.3f}", "", "1"]))
    one = 0.0
    for n_workers in (1, 2):
        with local_cluster(n_workers) as cluster, Client(cluster) as client:
            X = client.persist(data())
            seconds, atoms = seconds_of_an_iteration(X)
            np.testing.assert_allclose(atoms, expected, rtol=1e-9, atol=1e-15)
        one = one or seconds
        cells = [n_workers, f"{seconds:.3f}", f"{one / seconds:.2f}", f"{seconds / memory:.2f}"]
        print(row(cells), flush=True)
    spent = [survives(expected, 3.0 + kill) for kill in range(KILLS)]
    print(
        f"\nA worker was killed in {KILLS} fits, and all ended with the same atoms, after ", end=""
    )
    print(", ".join(f"{seconds:.0f}" for seconds in spent), "seconds.")


if __name__ == "__main__":
    main()
