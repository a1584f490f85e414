"""The file in which refits are noted, so that those of a run that was stopped are not lost."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._data.fingerprint import fingerprint
from .._estimators import container
from .._estimators.checkpoint import lock_checkpoint
from .._estimators.container import Content
from .._estimators.locks import FileLock
from .refits import Refit, Refits

FORMAT = "seminmf bootstrap"
FORMAT_VERSION = 1


def describe(refits: Refits) -> dict[str, Any]:
    """What refits depend on, besides their seeds."""
    from .. import __version__

    model, noise = refits.model, refits.data.cell_noise
    own = [model.activations_, model.components_, refits.X, refits.frozen.astype(np.int64)]
    return {
        "format_version": FORMAT_VERSION,
        "version": __version__,
        "estimator": type(model).__name__,
        "kind": refits.kind,
        "data": fingerprint(*own, *(() if noise is None else (noise,))),
    }


class RefitFile:
    """Refits so far, in memory and, if there is a path, on disk.

    Use `open`. A file that is there says which refits are done, and by which seeds.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        every: float,
        header: dict[str, Any],
        seeds: NDArray,
        lock: FileLock | None,
    ) -> None:
        self._path, self._every, self._header = path, every, header
        self._file_lock, self._lock = lock, threading.Lock()
        self.seeds, self._found = seeds, dict[int, Refit]()
        self._written = time.monotonic()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | None,
        every: float,
        header: dict[str, Any],
        seeds: NDArray,
        known: bool,
    ) -> RefitFile:
        """Go on from the file, if there is one; `known` says whether the user gave the seeds."""
        lock = None if path is None else lock_checkpoint(path)
        record = cls(path, every, header, seeds, lock)
        try:
            if path is not None and os.path.exists(path):
                record._read(known)
            record._write()  # rather fail now than after the work
        except BaseException:
            record._release()
            raise
        return record

    def __enter__(self) -> RefitFile:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self._write()
        finally:
            self._release()

    def missing(self) -> list[int]:
        """Numbers of the refits that are to be made."""
        return [number for number in range(len(self.seeds)) if number not in self._found]

    def keep(self, numbered: tuple[int, Refit]) -> None:
        """Note a refit, and write the file if it is time to."""
        number, refit = numbered
        with self._lock:
            self._found[number] = refit
            if time.monotonic() - self._written >= self._every:
                self._write()

    def refits(self) -> list[Refit]:
        """All refits, in the order of their seeds."""
        return [self._found[number] for number in range(len(self.seeds))]

    def _write(self) -> None:
        if self._path is None:
            return
        numbers = sorted(self._found)
        arrays = {"seeds": self.seeds.astype(np.int64), "numbers": np.array(numbers, np.int64)}
        if numbers:
            parts = zip(*(self._found[number] for number in numbers), strict=True)
            named = zip(Refit._fields, parts, strict=True)
            arrays |= {name: np.array(part) for name, part in named}
        container.write(self._path, FORMAT, Content(self._header, arrays))
        self._written = time.monotonic()

    def _read(self, known: bool) -> None:
        assert self._path is not None
        try:
            _, arrays = container.read(self._path, FORMAT, self._check)
            numbers, seeds = arrays["numbers"].tolist(), arrays["seeds"]
            if len(seeds) != len(self.seeds):
                raise ValueError(f"it was made with n_draws={len(seeds)}, not {len(self.seeds)}")
            if known and not np.array_equal(seeds, self.seeds):
                raise ValueError("it was made with another random_state")
            rows = zip(*(arrays[name] for name in Refit._fields), strict=True) if numbers else ()
            self._found = dict(zip(numbers, (Refit(*row) for row in rows), strict=True))
            if not set(numbers) <= set(range(len(seeds))):
                raise ValueError("it numbers refits that it has no seeds for")
            self.seeds = seeds
        except (ValueError, KeyError, TypeError) as error:
            reason = str(error).rstrip(".")
            raise ValueError(
                f"{os.fspath(self._path)} is no checkpoint of this bootstrap: {reason}."
            ) from error

    def _check(self, header: dict[str, Any]) -> set[str]:
        for name, mine in self._header.items():
            if header.get(name) != mine:
                what = "other data, or another model" if name == "data" else f"another {name}"
                raise ValueError(f"it was made with {what}")
        return {"seeds", "numbers", *Refit._fields}

    def _release(self) -> None:
        if self._file_lock is not None:
            self._file_lock.release()
