"""Sums over chunks, on the scheduler that is current."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import dask.base as dask
from dask.delayed import delayed

# So many sums are added up in one task: they are small, and few tasks are waited for.
_BRANCHES = 8


def branches(parts: Sequence[Any], add: Callable[[Any, Any], Any]) -> list[Any]:
    """Delayed sums of delayed values, few enough to be added up here.

    Which values go together depends on their number alone.
    """
    task = delayed(_add_all, pure=False)
    while len(parts) > _BRANCHES:
        groups = (parts[n : n + _BRANCHES] for n in range(0, len(parts), _BRANCHES))
        parts = [task(add, *group) for group in groups]
    return list(parts)


def total(parts: Sequence[Any], add: Callable[[Any, Any], Any]) -> Any:
    """The sum of some branches, computed."""
    return reduce(add, dask.compute(*parts))


def _add_all(add: Callable[[Any, Any], Any], *parts: Any) -> Any:
    return reduce(add, parts)
