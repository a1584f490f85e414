"""Runs that are done once: each result is kept in a file, and a later call goes on from there."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import active_children, connection, get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Key = dict[str, Any]
Found = dict[str, Any]


class Run(NamedTuple):
    """One piece of work.

    Attributes
    ----------
    key : dict
        What tells it from all others: names, numbers and all settings that its result depends on,
        as JSON has them.
    work : callable without arguments
        Returns the result, a dict of numbers, texts and lists of them. Other processes must be able
        to call it: a `functools.partial` of a function of a module.
    """

    key: Key
    work: Callable[[], Found]


def fingerprint(*arrays: NDArray) -> str:
    """A short text that tells data from others, for the key of a run that depends on them."""
    content = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)
    return hashlib.sha256(content).hexdigest()[:12]


def run_all(
    chains: Sequence[Sequence[Run]], path: Path, jobs: int, *, progress: bool = False
) -> pd.DataFrame:
    """Results of all runs, one row each: the columns are those of the keys and of the results.

    The runs of a chain are done one after the other, the chains at the same time. What `path` has
    from an earlier call is not done again; a run that was stopped is.
    """
    import pandas as pd
    from tqdm.auto import tqdm

    known = _read(path)
    keys = [_text(run.key) for chain in chains for run in chain]
    if len(set(keys)) != len(keys):
        raise ValueError("Two runs have the same key.")
    left = [[run for run in chain if _text(run.key) not in known] for chain in chains]
    n_left = sum(len(chain) for chain in left)
    with (
        tqdm(total=len(keys), initial=len(keys) - n_left, unit="run", disable=not progress) as bar,
        path.open("a", encoding="utf-8") as file,
    ):
        if file.tell() and not path.read_bytes().endswith(b"\n"):
            print(file=file)  # after a line that a stop cut off
        for run, found in _results([chain for chain in left if chain], jobs):
            known[_text(run.key)] = found
            print(json.dumps([run.key, found]), file=file, flush=True)
            os.fsync(file.fileno())
            bar.update()
    rows = [run.key | known[_text(run.key)] for chain in chains for run in chain]
    return pd.DataFrame(rows)


def _results(chains: Sequence[Sequence[Run]], jobs: int) -> Iterator[tuple[Run, Found]]:
    """Each run with its result, as they come in."""
    if jobs == 1:
        with _interruptions() as interruptions:
            for run in (run for chain in chains for run in chain):
                found = run.work()
                if interruptions:  # which a fit takes as the wish to end it
                    raise KeyboardInterrupt
                yield run, found
        return
    # Fresh processes: threads and compiled code do not survive a fork.
    others = set(active_children())
    executor = ProcessPoolExecutor(jobs, get_context("spawn"), _live_as_long_as_the_parent)
    pending: dict[Future[Found], tuple[Run, Iterator[Run]]] = {}

    def submit(rest: Iterator[Run]) -> None:
        for run in rest:
            pending[executor.submit(run.work)] = run, rest
            return

    try:
        for chain in chains:
            submit(iter(chain))
        while pending:
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                run, rest = pending.pop(future)
                found = future.result()
                submit(rest)
                yield run, found
    except BaseException:
        # What runs now may run for minutes; it will be done again.
        executor.shutdown(wait=False, cancel_futures=True)
        for child in set(active_children()) - others:
            child.kill()
        raise
    executor.shutdown()


@contextmanager
def _interruptions() -> Iterator[list[int]]:
    """A list of the interruptions by Ctrl-C, which do what they always do."""
    seen: list[int] = []

    def handle(number: int, frame: Any) -> None:
        seen.append(number)
        signal.default_int_handler(number, frame)

    try:
        before = signal.signal(signal.SIGINT, handle)
    except ValueError:  # not in the main thread, which alone is interrupted
        yield seen
        return
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _live_as_long_as_the_parent() -> None:
    """Leave Ctrl-C to the parent, and end when it has ended, however that was."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            connection.wait([parent.sentinel])
            os._exit(1)

    Thread(target=watch, daemon=True).start()


def _read(path: Path) -> dict[str, Found]:
    """Results by key; a line that a stop cut off is no result."""
    if not path.exists():
        return {}
    found = {}
    with path.open(encoding="utf-8") as file:
        for line in file:
            try:
                key, result = json.loads(line)
            except ValueError:
                continue
            found[_text(key)] = result
    return found


def _text(key: Key) -> str:
    return json.dumps(key, sort_keys=True)
