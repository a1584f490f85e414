"""Checkpoints: a fit that was stopped, by whatever, goes on from a file to the same end.

A fit is a few runs of the loop, one after the other, and what is between them takes little time. So
a fit that goes on starts from the beginning, with the same random numbers, and is told how the runs
ended that had ended; the run that was under way goes on from its last state. All else follows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._algorithms.loop import REASONS, Reason, Run
from .._data.fingerprint import fingerprint
from .._data.source import Source
from . import container
from .container import Content
from .locks import FileLock

P = ParamSpec("P")
T = TypeVar("T")

FORMAT = "seminmf checkpoint"
FORMAT_VERSION = 1

# What may differ between a fit and the one that goes on with it: the result does not depend on it.
_FREE = ("n_jobs", "verbose")
_GENERATOR = "MT19937"
# What content raises that is not that of a checkpoint.
_STRANGE = (ValueError, KeyError, TypeError, AttributeError, IndexError)


class Journal:
    """What the loop tells of its runs, in a file; and what an earlier fit told.

    Parameters
    ----------
    path : str or path-like
        File to go on from, if there is one, and to write.
    every : float
        Seconds from one writing to the next.
    fit : dict
        What the result depends on besides the random numbers, see `describe`. A file of any other
        fit is refused.
    random : RandomState
        The fit's generator.
    alone : bool
        Whether no other process can be writing the file. Then what killed ones left is removed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        every: float,
        fit: dict[str, Any],
        random: RandomState,
        alone: bool = False,
    ) -> None:
        self._path, self._every, self._fit = os.fspath(path), every, fit
        self._known: list[_RunRecord] = []  # runs of the earlier fit
        self._runs: list[_RunRecord] = []  # and of this one
        self._stopped = False
        self.random = random
        if os.path.exists(path):
            self.random, self._known = self._read()
            if alone:
                container.remove_parts(path)
        self._start = _generator_state(self.random)
        self._written = time.monotonic()
        if not self._known:
            self._write()  # rather fail now than after the work

    def begin(self, state: Any, point: Any) -> Run:
        """How far the earlier fit was in the run that begins."""
        number = len(self._runs)
        run = Run(state, [])
        if number < len(self._known):
            try:
                run = self._known[number].rebuilt(state, point)
            except _STRANGE as error:
                raise self._refusal(error) from error
        self._runs.append(_RunRecord.of(run))
        return run

    def keep(self, run: Run) -> None:
        """Note how far the run is, if it is time to."""
        if self._is_time():
            self._runs[-1] = _RunRecord.of(run)
            self._write()

    def stop(self, run: Run) -> None:
        """Note how far the run is, and nothing that comes after it."""
        self._runs[-1] = _RunRecord.of(run)
        self._write()
        self._stopped = True

    def end(self, run: Run) -> None:
        """Note how the run ended."""
        self._runs[-1] = _RunRecord.of(run)
        if self._is_time():
            self._write()

    def _is_time(self) -> bool:
        return not self._stopped and time.monotonic() - self._written >= self._every

    # --- the file -------------------------------------------------------------------------------

    def _write(self) -> None:
        header = {
            "format_version": FORMAT_VERSION,
            "fit": self._fit,
            "random": self._start.header,
            "runs": [record.header for record in self._runs],
        }
        arrays = {
            f"{number}/{name}": array
            for number, run in enumerate(self._runs)
            for name, array in run.parts.items()
        }
        container.write(self._path, FORMAT, Content(header, {"random": self._start.key, **arrays}))
        self._written = time.monotonic()

    def _read(self) -> tuple[RandomState, list[_RunRecord]]:
        try:
            header, arrays = container.read(self._path, FORMAT, self._check)
            runs = [
                _RunRecord(record, _with_prefix(arrays, f"{number}/"))
                for number, record in enumerate(header["runs"])
            ]
            return _generator(header["random"], arrays["random"]), runs
        except _STRANGE as error:
            raise self._refusal(error) from error

    def _refusal(self, error: Exception) -> ValueError:
        reason = str(error).rstrip(".")
        return ValueError(f"{self._path} is no checkpoint of this fit: {reason}.")

    def _check(self, header: dict[str, Any]) -> None:
        if header.get("format_version") != FORMAT_VERSION:
            raise ValueError(f"its format version is {header.get('format_version')!r}")
        found = header["fit"]
        for name in dict.fromkeys((*self._fit, *found)):
            mine, other = self._fit.get(name), found.get(name)
            if mine != other and name in ("data", "start values"):
                raise ValueError(f"it was made with other {name}")
            if mine != other:
                raise ValueError(f"it was made with {name}={other!r}, not {mine!r}")


def lock_checkpoint(path: str | os.PathLike[str]) -> FileLock:
    """A lock on the file, for the time of a fit; another fit that has it is a ValueError."""
    lock = FileLock(path)
    if not lock.acquire():
        raise ValueError(
            f"{os.fspath(path)} is in use by another fit: wait until that has ended, or give "
            "another file for the checkpoint."
        )
    return lock


def unlocks_checkpoint(fit: Callable[P, T]) -> Callable[P, T]:
    """Let a fit give back its lock on a checkpoint, however it ends."""

    @wraps(fit)
    def unlocking(*args: P.args, **options: P.kwargs) -> T:
        estimator: Any = args[0]
        try:
            return fit(*args, **options)
        finally:
            lock = vars(estimator).pop("_checkpoint_lock", None)
            if lock is not None:
                lock.release()

    return unlocking


def describe(estimator: Any, source: Source, given: Mapping[str, NDArray | None]) -> dict[str, Any]:
    """What the result of a fit depends on, as JSON has it; data by their fingerprints."""
    from .. import __version__

    parameters = estimator.get_params(deep=False)
    seed = parameters.pop("random_state")
    if isinstance(seed, (int, np.integer)):
        parameters["random_state"] = int(seed)
    return {
        "estimator": type(estimator).__name__,
        **{name: _plain(value) for name, value in parameters.items() if name not in _FREE},
        "version": __version__,
        "data": fingerprint(*source.parts()),
        "start values": {
            name: fingerprint(value) for name, value in given.items() if value is not None
        },
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (tuple, list)) and all(isinstance(one, str) for one in value):
        return list(value)
    if np.ndim(value) > 0:
        return fingerprint(np.asarray(value))
    return value.item() if isinstance(value, (np.generic, np.ndarray)) else value


# --- runs, as a file has them ---------------------------------------------------------------------


class _RunRecord(NamedTuple):
    """A run of the loop: a header, and the arrays of its state."""

    header: dict[str, Any]
    parts: dict[str, NDArray]

    @classmethod
    def of(cls, run: Run) -> _RunRecord:
        """What a file says of a run."""
        values = {
            name: np.asarray(value) if hasattr(value, "scatter") else value
            for name, value in _leaves(run.state)
        }
        kinds = {name: _kind(value) for name, value in values.items()}
        parts = {name: np.asarray(v).transpose(kinds[name]["axes"]) for name, v in values.items()}
        objectives = np.array(run.objectives, dtype=np.float64)
        return cls({"reason": run.reason, "kinds": kinds}, {**parts, "objectives": objectives})

    def rebuilt(self, state: Any, point: Any) -> Run:
        """The run; a state is of the types of `state`, and an end of those of `point`."""
        reason: Reason | None = self.header["reason"]
        if reason is not None and reason not in REASONS:
            raise ValueError(f"a run ended for an unknown reason, {reason!r}")
        value = self._value(state if reason is None else point, "state")
        return Run(value, self.parts["objectives"].tolist(), reason)

    def _value(self, like: Any, name: str) -> Any:
        if hasattr(like, "_fields"):
            parts = (self._value(getattr(like, f), f"{name}.{f}") for f in like._fields)
            return type(like)(*parts)
        kind = self.header["kinds"][name]
        array = self.parts[name].transpose(np.argsort(kind["axes"]))
        if kind["type"] == "array":
            if hasattr(like, "scatter"):  # its rows are elsewhere
                return like.scatter(array)
            # Nothing is known at first of what grows out of nothing.
            if like.size and array.shape != like.shape:
                raise ValueError(f"{name} has the shape {array.shape}, not {like.shape}")
            return array
        return array.item() if kind["type"] == "number" else array[()]


def _leaves(value: Any, name: str = "state") -> Iterator[tuple[str, Any]]:
    """Arrays and numbers in nested NamedTuples, each with its path."""
    if hasattr(value, "_fields"):
        for field in value._fields:
            yield from _leaves(getattr(value, field), f"{name}.{field}")
    else:
        yield name, value


def _kind(value: Any) -> dict[str, Any]:
    """What of a value its numbers do not tell: its type, and how its memory lies.

    Sums depend on both in their last bits.
    """
    if isinstance(value, np.ndarray):
        axes = sorted(range(value.ndim), key=lambda axis: -abs(value.strides[axis]))
        return {"type": "array", "axes": axes}
    return {"type": "scalar" if isinstance(value, np.generic) else "number", "axes": []}


def _with_prefix(arrays: dict[str, NDArray], prefix: str) -> dict[str, NDArray]:
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}


# --- random numbers -------------------------------------------------------------------------------


class _GeneratorState(NamedTuple):
    """State of a generator: the key, and the rest."""

    key: NDArray
    header: dict[str, Any]


def _generator_state(random: RandomState) -> _GeneratorState:
    state: Any = random.get_state(legacy=False)
    if state["bit_generator"] != _GENERATOR:
        raise ValueError(
            f"random_state must be an int or a generator of the kind {_GENERATOR} for a fit with a "
            f"checkpoint; found {random!r}."
        )
    key, position = state["state"]["key"], state["state"]["pos"]
    header = {"position": position, "has_gauss": state["has_gauss"], "gauss": state["gauss"]}
    return _GeneratorState(key.astype(np.int64), header)


def _generator(header: dict[str, Any], key: NDArray) -> RandomState:
    random = RandomState()
    values = (header[name] for name in ("position", "has_gauss", "gauss"))
    random.set_state((_GENERATOR, key.astype(np.uint32), *values))
    return random
