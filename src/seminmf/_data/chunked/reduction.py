"""Sums over chunks, on the scheduler that is current."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import dask.base as dask
from dask.delayed import delayed

# So many sums are added up in one task: they are small, and few tasks are waited for.
BRANCHES = 8


def branches(parts: Sequence[Any], add: Callable[[Any, Any], Any]) -> list[Any]:
    """Delayed sums of delayed values, few enough to be added up here.

    Which values go together depends on their number alone.
    """
    task = delayed(_add_all, pure=False)
    while len(parts) > BRANCHES:
        groups = (parts[n : n + BRANCHES] for n in range(0, len(parts), BRANCHES))
        parts = [task(add, *group) for group in groups]
    return list(parts)


def total(parts: Sequence[Any], add: Callable[[Any, Any], Any]) -> Any:
    """The sum of some branches, here."""
    return reduce(add, _values(parts))


def _values(parts: Sequence[Any]) -> Sequence[Any]:
    """What delayed values are; those that are on their way on a cluster are only waited for."""
    if "distributed" in sys.modules:
        from distributed import futures_of

        futures = [future for part in parts for future in futures_of(part)]
        if [future.key for future in futures] == [part.key for part in parts]:
            return futures[0].client.gather(futures)
    return dask.compute(*parts)


def _add_all(add: Callable[[Any, Any], Any], *parts: Any) -> Any:
    return reduce(add, parts)
