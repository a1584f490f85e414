"""What an iteration on a cluster costs: `python benchmarks/cost_model.py [--picture FILE]`.

Seconds of an EM iteration = cells · c / threads + chunks · t + L: c, what a cell costs a thread
while the other cores rest or work too, is measured in memory; t, what a chunk costs the scheduler,
and L, what an iteration waits for messages, on chunks that have next to no cells. Bytes and memory
follow from what is sent and kept. All three are then compared with other runs, by Linux's own
counts; and predict what is out of reach here.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from cluster import ITERATIONS, N_COMPONENTS, N_FEATURES, Place, data, local_cluster, take_turns
from distributed import Client, wait
from tables import row, table_head

from seminmf._data.chunked.reduction import BRANCHES

FEWEST, MOST = 4, 128
ROUNDS = 3
# Activations of a chunk that are kept at a time: those before, those after, and one array more.
KEPT = 3
MEGABYTE = 1e6


class Costs(NamedTuple):
    """Seconds: of a cell on a thread that works alone, and beside others; of a chunk; of an
    iteration."""

    alone: float
    beside: float
    chunk: float
    latency: float


class Run(NamedTuple):
    """Data, and who works on them. Workers have a thread each, or as many as told."""

    n_chunks: int
    n_samples: int
    n_workers: int
    n_features: int = N_FEATURES
    n_threads: int = 1

    @property
    def n_cells(self) -> float:
        """In all."""
        return float(self.n_chunks) * self.n_samples * self.n_features

    def computing(self, costs: Costs) -> float:
        """Seconds in which cells are worked on; some threads have one chunk more than others."""
        n_threads = self.n_workers * self.n_threads
        cell = costs.alone if n_threads == 1 else costs.beside
        return self.n_cells / self.n_chunks * math.ceil(self.n_chunks / n_threads) * cell

    def seconds(self, costs: Costs) -> float:
        """Of an iteration."""
        return self.computing(costs) + self.n_chunks * costs.chunk + costs.latency

    def bytes_moved(self) -> float:
        """In an iteration, all over the network.

        Atoms go from the client to the scheduler, and from worker to worker. Sums of the same size
        are added up by eights, first where they are, until eight or less are left; those that are
        not where they are added up move there, and the last ones move by way of the scheduler.
        """
        n_holders = min(self.n_workers, self.n_chunks)
        sums = n_holders * math.ceil(self.n_chunks / n_holders / BRANCHES)
        moved = 0.0
        while sums > BRANCHES:
            moved += sums * (1 - 1 / self.n_workers)
            sums = math.ceil(sums / BRANCHES)
        return 16.0 * N_COMPONENTS * self.n_features * (n_holders + 1 + moved + 2 * sums)

    def memory(self) -> float:
        """Bytes that a worker needs beside its share of X."""
        n_samples = self.n_samples * self.n_chunks / self.n_workers
        return 8.0 * KEPT * n_samples * N_COMPONENTS


RUNS = (
    Run(2, 40_000, 1),
    Run(2, 40_000, 2),
    Run(8, 10_000, 1),
    Run(8, 10_000, 2),
    Run(8, 40_000, 2),
    Run(64, 2_000, 2),
    Run(24, 40_000, 1),
    Run(24, 40_000, 2),
)
MEMORY_RUNS = (Run(8, 20_000, 2), Run(8, 40_000, 2), Run(8, 80_000, 2))
# On 100 machines of 8 threads, each like one here, with 1000 features.
FAR = (
    Run(800, 1_250, 100, 1000, 8),
    Run(100, 10_000, 100, 1000, 8),
    Run(125_000, 8_000, 100, 1000, 8),
    Run(800, 1_250_000, 100, 1000, 8),
)


# --- what was seen ------------------------------------------------------------------------------


class Seen(NamedTuple):
    """Seconds of an iteration, and bytes that it moved."""

    seconds: float
    bytes_moved: float


def loopback() -> int:
    """Bytes that this machine has sent to itself."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return int(next(line for line in lines if line.strip().startswith("lo:")).split()[1])


def bytes_moved(place: Place) -> float:
    """In an iteration, of all kinds."""
    counts = [loopback()]
    for n_iter in place.times:
        place.fit_once(n_iter)
        counts.append(loopback())
    few, many = np.diff(counts)
    return (many - few) / ITERATIONS


def most_memory(run: Run) -> float:
    """Bytes that the hungriest of new workers needs beside its share of X."""
    with local_cluster(run.n_workers) as cluster, Client(cluster) as client:
        Place("", client.persist(data(run.n_chunks, 2)), 1, client).fit_once(2)
        X = client.persist(data(run.n_chunks, run.n_samples))
        wait(X)
        before = client.run(memory_of_process, "VmRSS")
        Place("", X, 1, client).fit_once(2 + ITERATIONS)
        after = client.run(memory_of_process, "VmHWM")
    return max(after[name] - before[name] for name in after)


def memory_of_process(name: str) -> int:
    """Bytes: those of now, or the most since it was asked for."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = int(next(line for line in lines if line.startswith(name)).split()[1])
    Path("/proc/self/clear_refs").write_text("5")
    return 1024 * kilobytes


def measure(client: Client) -> Costs:
    """What all predictions come from; the client has two workers."""
    in_memory = data(2, 40_000).compute(scheduler="synchronous")
    places = [Place("", in_memory, n_threads, None) for n_threads in (1, 2)]
    places += [Place("", client.persist(data(n, 2)), 1, client) for n in (FEWEST, MOST)]
    take_turns(places, ROUNDS)
    one, two, few, many = (place.seconds for place in places)
    chunk = (many - few) / (MOST - FEWEST)
    return Costs(one / in_memory.size, 2 * two / in_memory.size, chunk, few - FEWEST * chunk)


def see() -> Iterator[Seen]:
    """What the runs took.

    Each has workers of its own: a scheduler that has seen quite different tasks of the same name
    misjudges how long they take, and moves chunks.
    """
    for run in RUNS:
        with local_cluster(run.n_workers) as cluster, Client(cluster) as client:
            place = Place("", client.persist(data(run.n_chunks, run.n_samples)), 1, client)
            take_turns([place], ROUNDS)
            yield Seen(place.seconds, bytes_moved(place))


# --- what is told -------------------------------------------------------------------------------


def compare(costs: Costs, seen: list[Seen]) -> None:
    """Print what was predicted, and what was seen."""
    head = ["chunks", "cells", "workers", "s: predicted", "seen", "MB moved: predicted", "seen"]
    print("\n".join(table_head(head)))
    for run, found in zip(RUNS, seen, strict=True):
        cells = [run.n_chunks, f"{run.n_cells / 1e6:.1f}·10⁶", run.n_workers]
        cells += [f"{run.seconds(costs):.3f}", f"{found.seconds:.3f}"]
        cells += [f"{number / MEGABYTE:.1f}" for number in (run.bytes_moved(), found.bytes_moved)]
        print(row(cells))


def compare_memory() -> None:
    """Print how much memory was predicted, and how much was seen."""
    print("\n".join(table_head(["chunks", "cells", "MB beside X: predicted", "seen"])))
    for run in MEMORY_RUNS:
        numbers = (f"{number / MEGABYTE:.0f}" for number in (run.memory(), most_memory(run)))
        print(row([run.n_chunks, f"{run.n_cells / 1e6:.1f}·10⁶", *numbers]), flush=True)


def look_ahead(costs: Costs) -> None:
    """Print what the model says of larger runs."""
    head = ["cells", "chunks", "computing, s", "scheduler, s", "an iteration, s", "GB moved"]
    print("\n".join(table_head([*head, "X, GB a machine", "beside X, GB a machine"])))
    for run in FAR:
        scheduler = run.n_chunks * costs.chunk
        sizes = run.bytes_moved(), 8 * run.n_cells / run.n_workers, run.memory()
        numbers = [run.computing(costs), scheduler, run.seconds(costs), *np.array(sizes) / 1e9]
        cells = [f"10{'⁹' if run.n_cells < 1e10 else '¹²'}", f"{run.n_chunks:,}".replace(",", " ")]
        print(row([*cells, *(f"{number:.2g}" for number in numbers)]))


def draw(path: str, costs: Costs, seen: list[Seen]) -> None:
    """Predicted against seen; and the best number of chunks."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullLocator

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    predicted, measured = [run.seconds(costs) for run in RUNS], [found.seconds for found in seen]
    left.loglog(measured, predicted, "o", color="tab:blue")
    ends = np.array([min(measured + predicted), max(measured + predicted)])
    left.loglog(ends, ends, color="0.6", linewidth=1, zorder=0)
    left.set(xlabel="seen, seconds an iteration", ylabel="predicted, seconds an iteration")
    for axis in (left.xaxis, left.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(NullLocator())
    far = FAR[0]
    machines, threads = far.n_workers, far.n_threads
    chunks = np.unique(np.geomspace(1, 1e6, 400).astype(int)).tolist()
    for n_samples, label in ((1e6, "10⁹ cells"), (1e9, "10¹² cells")):
        runs = [far._replace(n_chunks=n, n_samples=n_samples / n) for n in chunks]
        right.loglog(chunks, [run.seconds(costs) for run in runs], label=label)
    label = "a chunk for each thread"
    right.axvline(machines * threads, color="0.6", linewidth=1, linestyle=":", label=label)
    right.set(xlabel="chunks", ylabel="predicted, seconds an iteration")
    right.set_title(f"{machines} machines, {threads} threads each", fontsize=10)
    right.legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure, predict, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", help="where to write a picture")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with local_cluster(2) as cluster, Client(cluster) as client:
        costs = measure(client)
    print(
        f"A cell {1e9 * costs.alone:.2f} ns on one core, {1e9 * costs.beside:.2f} ns on each of "
        f"two; a chunk {1e3 * costs.chunk:.2f} ms, an iteration {1e3 * costs.latency:.0f} ms; "
        f"{ITERATIONS} iterations each.\n"
    )
    seen = list(see())
    compare(costs, seen)
    print()
    compare_memory()
    print()
    look_ahead(costs)
    if options.picture:
        draw(options.picture, costs, seen)


if __name__ == "__main__":
    main()
