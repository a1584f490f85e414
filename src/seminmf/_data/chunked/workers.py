"""Which worker a chunk is kept on.

A scheduler hands out work as workers become free, and leaves it where its data are from then on: so
one worker may have twice the chunks of another in all iterations.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import groupby
from typing import Any

from dask.base import annotate


def workers_of(X: Any) -> list[str | None]:
    """A worker for each chunk of a Dask array; None where there are no workers."""
    keys = [keys[0] for keys in X.__dask_keys__()]
    workers = current_workers()
    if not workers:
        return [None] * len(keys)
    from distributed import futures_of, get_client, wait

    futures = futures_of(X)
    wait(futures)
    holders = get_client().who_has(futures) if futures else {}
    threads = {address: worker["nthreads"] for address, worker in workers.items()}
    return [*share_out([holders.get(key, ()) for key in keys], threads)]


def share_out(holders: Sequence[Collection[str]], threads: Mapping[str, int]) -> list[str]:
    """A worker for each chunk, as many chunks for each of their threads.

    Workers that hold a chunk already keep it, unless they have too many. The others are shared out
    so that consecutive ones, whose sums are added up first, are together.
    """
    share = len(holders) / sum(threads.values())
    room = Counter({worker: math.ceil(share * n) for worker, n in threads.items()})
    found: list[str | None] = []
    for names in holders:
        worker = max(names, key=lambda name: room[name], default=None)
        if worker is not None and room[worker] > 0:
            room[worker] -= 1
            found.append(worker)
        else:
            found.append(None)
    n_others = found.count(None)
    others = iter(sorted(_emptiest(room, threads) for _ in range(n_others)))
    return [worker or next(others) for worker in found]


def _emptiest(room: Counter[str], threads: Mapping[str, int]) -> str:
    """The worker with the most room for each of its threads, which then has one chunk more."""
    worker = max(threads, key=lambda name: room[name] / threads[name])
    room[worker] -= 1
    return worker


def together(workers: Sequence[str | None], most: int) -> list[list[int]]:
    """Consecutive chunks on the same worker, at most so many in a group."""
    groups: list[list[int]] = []
    for _, numbers in groupby(range(len(workers)), key=workers.__getitem__):
        run = list(numbers)
        groups += [run[n : n + most] for n in range(0, len(run), most)]
    return groups


def on_worker(worker: str | None) -> AbstractContextManager:
    """Tasks that are made here run on a worker, or on others if it is no more."""
    if worker is None:
        return nullcontext()
    return annotate(workers=[worker], allow_other_workers=True)


def current_workers() -> dict[str, Any]:
    """What is known of the workers of the client that is current; nothing if there is none."""
    if "distributed" not in sys.modules:
        return {}
    from distributed import get_client

    try:
        client = get_client()
    except ValueError:
        return {}
    return client.scheduler_info(n_workers=-1)["workers"]
