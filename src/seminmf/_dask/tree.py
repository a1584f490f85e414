"""Sums over chunks, on the scheduler that is current."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from dask.delayed import delayed

# So many sums are added up in one task: they are small, and few tasks are waited for.
_BRANCHES = 8


def tree_sum(parts: Sequence[Any], add: Callable[[Any, Any], Any]) -> Any:
    """The sum of delayed values, in an order that depends on their number alone."""
    task = delayed(_add_all, pure=False)
    while len(parts) > 1:
        groups = (parts[n : n + _BRANCHES] for n in range(0, len(parts), _BRANCHES))
        parts = [task(add, *group) for group in groups]
    return parts[0]


def _add_all(add: Callable[[Any, Any], Any], *parts: Any) -> Any:
    return reduce(add, parts)
