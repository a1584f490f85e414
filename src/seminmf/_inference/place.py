"""Where arrays with a row for each sample are: in this process, or in parts elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Place(Protocol):
    """Does the work on arrays with a row for each sample."""

    def run(self, problem: Any, function: Callable, rows: tuple, shared: tuple) -> tuple:
        """Arrays and sums that a function returns for all samples (`Problem.over_samples`)."""
        ...


class Here:
    """All samples are in this process, and their arrays are NumPy's."""

    def run(self, problem: Any, function: Callable, rows: tuple, shared: tuple) -> tuple:
        """What the function returns."""
        return function(problem, *rows, *shared)


HERE = Here()
