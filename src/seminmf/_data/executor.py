"""Where arrays with a row for each sample are: in this process, or in parts elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

F = TypeVar("F", bound=Callable)


def per_sample(rows: int = 0, sums: int = 0) -> Callable[[F], F]:
    """Mark a function for `Problem.over_samples`: how many arrays and sums it returns."""

    def mark(function: F) -> F:
        function.n_rows, function.n_sums = rows, sums  # type: ignore[attr-defined]
        return function

    return mark


class Place(Protocol):
    """Does the work on arrays with a row for each sample."""

    def run(self, problem: Any, function: Any, rows: tuple, shared: tuple) -> tuple:
        """Arrays and sums that a function returns for all samples (`Problem.over_samples`)."""
        ...

    def kept(self, array: Any) -> Any:
        """An array that is used more than once: computed, if that was put off."""
        ...

    def placed(self, array: NDArray) -> Any:
        """A NumPy array, where the others are."""
        ...

    def handed_out(self, array: Any, n_columns: int, dtype: np.dtype) -> Any:
        """An array as users get it."""
        ...


class Here:
    """All samples are in this process, and their arrays are NumPy's."""

    def run(self, problem: Any, function: Any, rows: tuple, shared: tuple) -> tuple:
        """What the function returns."""
        return function(problem, *rows, *shared)

    def kept(self, array: NDArray) -> NDArray:
        """The array."""
        return array

    def placed(self, array: NDArray) -> NDArray:
        """The array."""
        return array

    def handed_out(self, array: NDArray, n_columns: int, dtype: np.dtype) -> NDArray:
        """The array."""
        return array


HERE = Here()
