"""The compiler's cache on the disk, for kernels: what is damaged or not to be had is done without.

Numba keeps what it has compiled as pickles: in `NUMBA_CACHE_DIR`, beside the sources, or in the
user's own folder for caches. Where they are is left to it.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.serialize import dumps

_said: set[str] = set()


def say_once(topic: str, sentence: str) -> None:
    """Print a sentence for the user, unless one on its topic has been said in this process."""
    if topic not in _said:
        _said.add(topic)
        print(f"seminmf: {sentence}", file=sys.stderr, flush=True)


class _CheckedFiles(IndexDataCacheFile):
    """The files of a kernel's cache, each with a checksum and the key that it is for.

    Machine code must be whole before it is loaded: part of it may end the process. And two
    processes that compile at the same time may give their files the same name.
    """

    def save(self, key: Any, data: Any) -> None:
        content = dumps((key, data))
        super().save(key, (hashlib.sha256(content).digest(), content))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        if found is None:
            return None
        checksum, content = found
        if hashlib.sha256(content).digest() != checksum:
            return None
        written_for, data = pickle.loads(content)
        return data if written_for == key else None

    def _load_index(self) -> dict[Any, str]:
        try:
            return super()._load_index()
        except Exception:  # a damaged pickle may raise anything
            return {}


class _KernelCache(FunctionCache):
    """A cache whose damaged files are made anew, and which may fail to write them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        files = self._cache_file
        self._cache_file = _CheckedFiles(
            self.cache_path, self._impl.filename_base, files._source_stamp
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged pickle may raise anything
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            say_once(
                "storing",
                f"compiled code could not be written to {self.cache_path} ({error.strerror}), and "
                "is compiled again by the next process.",
            )


class _NoCache(NullCache):
    """For kernels that each process has to compile for itself."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        say_once(
            "compiling",
            "compiling for this machine, as each process will, because no folder for the "
            "compiler's cache can be written to; NUMBA_CACHE_DIR may name one.",
        )


def cache_of(function: Callable[..., Any]) -> _KernelCache | _NoCache:
    """The cache of a function that is to be compiled."""
    try:
        return _KernelCache(function)
    except (RuntimeError, OSError):  # numba has no place for it
        return _NoCache()
