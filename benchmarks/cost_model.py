"""What an iteration on a cluster costs: `python benchmarks/cost_model.py [--picture FILE]`.

Seconds of an EM iteration = cells · c / threads + chunks · t + L: c, what a cell costs a thread,
is measured in memory; t, what a chunk costs the scheduler, and L, what an iteration waits for
messages, on chunks that have next to no cells. These three predict other runs, which are then made;
and what is out of reach here.
"""

from __future__ import annotations

import argparse
import contextlib
import warnings
from typing import NamedTuple

import numpy as np
from cluster import ITERATIONS, N_COMPONENTS, N_FEATURES, Place, data, local_cluster, take_turns
from distributed import Client
from tables import row, table_head

FEWEST, MOST = 4, 128
ROUNDS = 3
# Chunks, samples in each, workers.
RUNS = (
    (2, 40_000, 1),
    (2, 40_000, 2),
    (8, 10_000, 1),
    (8, 10_000, 2),
    (8, 40_000, 2),
    (64, 2_000, 2),
)
# Cells, chunks; on 100 machines of 8 threads, each like one here.
FAR = ((1e9, 800), (1e9, 16), (1e12, 125_000), (1e12, 800))
MACHINES, THREADS, FAR_FEATURES = 100, 8, 1000


class Costs(NamedTuple):
    """Seconds: of a cell on a thread, of a chunk, of an iteration."""

    cell: float
    chunk: float
    latency: float

    def computing(self, n_cells: float, n_threads: float) -> float:
        """Seconds in which cells are worked on."""
        return n_cells * self.cell / n_threads

    def iteration(self, n_cells: float, n_chunks: int, n_threads: int) -> float:
        """Seconds in all; some threads have one chunk more than others."""
        rounds = -(-n_chunks // n_threads)
        computing = self.computing(n_cells, n_chunks / rounds)
        return computing + n_chunks * self.chunk + self.latency


def measure(clients: list[Client]) -> Costs:
    """The three numbers."""
    in_memory = data(2, 40_000).compute(scheduler="synchronous")
    places = [Place("", in_memory, 1, None)]
    places += [Place("", clients[1].persist(data(n, 2)), 1, clients[1]) for n in (FEWEST, MOST)]
    take_turns(places, ROUNDS)
    memory, few, many = (place.seconds for place in places)
    chunk = (many - few) / (MOST - FEWEST)
    return Costs(memory / in_memory.size, chunk, few - FEWEST * chunk)


def check(costs: Costs, clients: list[Client]) -> tuple[list[float], list[float]]:
    """Print, and return, what was predicted and what was measured."""
    places = [
        Place("", clients[n_workers - 1].persist(data(*shape)), 1, clients[n_workers - 1])
        for *shape, n_workers in RUNS
    ]
    take_turns(places, ROUNDS)
    measured = [place.seconds for place in places]
    predicted = []
    print("\n".join(table_head(["chunks", "cells", "workers", "predicted, s", "measured, s"])))
    for (n_chunks, n_samples, n_workers), seconds in zip(RUNS, measured, strict=True):
        n_cells = n_chunks * n_samples * N_FEATURES
        predicted.append(costs.iteration(n_cells, n_chunks, n_workers))
        cells = [n_chunks, f"{n_cells / 1e6:.1f}·10⁶", n_workers]
        print(row([*cells, f"{predicted[-1]:.3f}", f"{seconds:.3f}"]))
    return predicted, measured


def look_ahead(costs: Costs) -> None:
    """Print what the model says of larger runs."""
    head = ["cells", "chunks", "computing, s", "scheduler, s", "an iteration, s"]
    head += ["X, GB a machine", "activations, GB a machine", "sums to the client's side, GB"]
    print("\n".join(table_head(head)))
    for n_cells, n_chunks in FAR:
        threads = MACHINES * THREADS
        seconds = costs.iteration(n_cells, n_chunks, threads)
        computing = seconds - n_chunks * costs.chunk - costs.latency
        # Bytes: the data, activations of three iterations, and the chunks' sums.
        X = 8 * n_cells / MACHINES
        activations = 3 * 8 * n_cells / FAR_FEATURES * N_COMPONENTS / MACHINES
        sums = n_chunks * 2 * 8 * N_COMPONENTS * FAR_FEATURES
        gigabytes = [number / 1e9 for number in (X, activations, sums)]
        numbers = [computing, n_chunks * costs.chunk, seconds, *gigabytes]
        cells = [f"10{'⁹' if n_cells < 1e10 else '¹²'}", f"{n_chunks:,}".replace(",", " ")]
        print(row([*cells, *(f"{number:.3g}" for number in numbers)]))


def draw(path: str, predicted: list[float], measured: list[float], costs: Costs) -> None:
    """Predicted against measured; and the best number of chunks."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.loglog(measured, predicted, "o", color="tab:blue")
    ends = np.array([min(measured + predicted), max(measured + predicted)])
    left.loglog(ends, ends, color="0.6", linewidth=1)
    left.set(xlabel="measured, seconds an iteration", ylabel="predicted")
    chunks = np.unique(np.geomspace(1, 1e6, 400).astype(int))
    for n_cells, label in ((1e9, "10⁹ cells"), (1e12, "10¹² cells")):
        times = [costs.iteration(n_cells, int(n), MACHINES * THREADS) for n in chunks]
        right.loglog(chunks, times, label=label)
    right.axvline(MACHINES * THREADS, color="0.6", linewidth=1, linestyle=":")
    right.set(xlabel="chunks", ylabel="predicted, seconds an iteration")
    right.set_title(f"{MACHINES} machines, {THREADS} threads each", fontsize=10)
    right.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure, predict, check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="where to write a picture")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with contextlib.ExitStack() as stack:
        clusters = [stack.enter_context(local_cluster(n)) for n in (1, 2)]
        clients = [
            stack.enter_context(Client(cluster, set_as_default=False)) for cluster in clusters
        ]
        costs = measure(clients)
        print(
            f"A cell {1e9 * costs.cell:.2f} ns, a chunk {1e3 * costs.chunk:.2f} ms, an iteration "
            f"{1e3 * costs.latency:.0f} ms; {ITERATIONS} iterations each.\n"
        )
        predicted, measured = check(costs, clients)
    print()
    look_ahead(costs)
    if options.picture:
        draw(options.picture, predicted, measured, costs)


if __name__ == "__main__":
    main()
