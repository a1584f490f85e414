"""A Dask array on one and on two workers: `python benchmarks/cluster.py`.

Workers are processes with one thread each. Chunks have 64 MB. EM iterations are compared with those
in memory, on one thread and on two; and in five fits a worker is killed. All take turns, several
times, and of each the fastest fits count: what else runs on a machine makes some of them slow.
"""

from __future__ import annotations

import contextlib
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

N_FEATURES, N_COMPONENTS = 200, 20
FEW, MANY = 8, 24
CHUNK = 64 * 2**20 // (8 * N_FEATURES)
ITERATIONS = 12
ROUNDS = 4
KILLS = 5


def draw_chunk(block: NDArray, block_id: tuple[int, int]) -> NDArray:
    """Some samples of a low rank and noise."""
    components = np.random.default_rng(0).normal(size=(5, N_FEATURES))
    rng = np.random.default_rng([1, block_id[0]])
    return rng.gamma(0.5, 2.0, (len(block), 5)) @ components + rng.normal(size=block.shape)


def data(n_chunks: int, n_samples: int = CHUNK) -> da.Array:
    """The array, to be drawn where its chunks are."""
    zeros = da.zeros((n_chunks * n_samples, N_FEATURES), chunks=(n_samples, N_FEATURES))
    return zeros.map_blocks(draw_chunk, dtype=float)


def model_of(n_iter: int, n_jobs: int = 1) -> SkellamSNMF:
    return SkellamSNMF(
        N_COMPONENTS,
        dispersion=0.0,
        solver="em",
        acceleration=None,
        tol=0,
        max_iter=n_iter,
        random_state=0,
        n_jobs=n_jobs,
    )


class Place:
    """Somewhere to fit, and the shortest times that fits took there."""

    def __init__(self, name: str, X: da.Array | NDArray, n_jobs: int, client: Client | None):
        self.name, self.X, self.n_jobs, self.client = name, X, n_jobs, client
        self.times = {2: np.inf, 2 + ITERATIONS: np.inf}

    def fit_once(self, n_iter: int) -> NDArray:
        """Fit; the atoms."""
        with self.client.as_current() if self.client else contextlib.nullcontext():
            return model_of(n_iter, self.n_jobs).fit(self.X).atoms_

    def fit(self) -> NDArray:
        """Fit with few and with many iterations; the atoms."""
        for n_iter, before in self.times.items():
            begin = time.perf_counter()
            atoms = self.fit_once(n_iter)
            self.times[n_iter] = min(before, time.perf_counter() - begin)
        return atoms

    @property
    def seconds(self) -> float:
        """Of an iteration."""
        few, many = self.times.values()
        return (many - few) / ITERATIONS


def take_turns(places: list[Place], rounds: int) -> list[NDArray]:
    """Fit everywhere, so many times, once everything is loaded that is compiled; the atoms."""
    for _ in range(1 + rounds):
        atoms = [place.fit() for place in places]
    return atoms


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
        X = client.persist(data(FEW))
        pids = list(client.run(os.getpid).values())
        killer = multiprocessing.get_context("spawn").Process(
            target=kill_after, args=(pids[0], seconds)
        )
        killer.start()
        model = model_of(2 + ITERATIONS)
        begin = time.perf_counter()
        model.fit(X)
        spent = time.perf_counter() - begin
        killer.join()
        assert spent > seconds, "the worker was killed after the fit"
        np.testing.assert_allclose(model.atoms_, expected, rtol=1e-9, atol=1e-15)
        return spent


def measure(n_chunks: int) -> NDArray:
    """Print what iterations take on one thread and on two, in memory and on workers; the atoms."""
    array = data(n_chunks).compute(scheduler="synchronous")
    with contextlib.ExitStack() as stack:
        clients = []
        for n_workers in (1, 2):
            cluster = stack.enter_context(local_cluster(n_workers))
            clients.append(stack.enter_context(Client(cluster, set_as_default=False)))
        places = [Place(f"{n} in memory", array, n, None) for n in (1, 2)]
        for n, client in enumerate(clients, start=1):
            places.append(Place(f"{n} on workers", client.persist(data(n_chunks)), 1, client))
        atoms = take_turns(places, ROUNDS)
    for other in atoms[1:]:
        np.testing.assert_allclose(other, atoms[0], rtol=1e-9, atol=1e-15)
    print(f"\n{n_chunks} chunks\n")
    head = ["threads", "seconds an iteration", "one thread's / it", "it / in memory"]
    print("\n".join(table_head(head)))
    for n, place in enumerate(places):
        gain = places[n - n % 2].seconds / place.seconds
        cost = place.seconds / places[n % 2].seconds
        print(row([place.name, f"{place.seconds:.3f}", f"{gain:.2f}", f"{cost:.2f}"]))
    return atoms[0]


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    expected = measure(FEW)
    measure(MANY)
    spent = [survives(expected, 3.0 + kill) for kill in range(KILLS)]
    print(
        f"\nA worker was killed in {KILLS} fits, and all ended with the same atoms, after ", end=""
    )
    print(", ".join(f"{seconds:.0f}" for seconds in spent), "seconds.")


if __name__ == "__main__":
    main()
