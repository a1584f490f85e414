"""The conclusion, in numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Verdict(NamedTuple):
    """The chosen number, whether no other comes close, the same in words, and the table."""

    best: int
    clear: bool
    sentence: str
    table: Any


def judge(numbers: Sequence[int], table: Any, best: int, close: NDArray, unit: str) -> Verdict:
    """The verdict for the row that was chosen and those that come `close` to the best."""
    chosen = int(numbers[best])
    rivals = [str(k) for k, near in zip(numbers, close, strict=True) if near and k != chosen]
    clear = not rivals and len(numbers) > 1
    if len(numbers) == 1:
        sentence = f"{chosen} is the only candidate, there was nothing to compare."
    elif clear:
        lead = float(np.sort(table["behind"].to_numpy())[1])
        distance = f"{lead:.0f}" if lead >= 10 else f"{lead:.2g}"
        sentence = f"{chosen} is the clear winner, the next is {distance} {unit} behind."
    else:
        sentence = (
            f"No clear winner: {chosen} is chosen, but {', '.join(rivals)} cannot be ruled out."
        )
    if len(numbers) > 1 and best == len(numbers) - 1:
        sentence += " It is the largest candidate: try larger ones."
    return Verdict(chosen, clear, sentence, table)


def standard_error(values: NDArray) -> NDArray:
    """Standard error of the mean over the last axis; NaN for a single value."""
    n = values.shape[-1]
    if n == 1:
        return np.full(values.shape[:-1], np.nan)
    return values.std(axis=-1, ddof=1) / np.sqrt(n)
