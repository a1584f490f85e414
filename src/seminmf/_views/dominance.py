"""Whether one feature outweighs all others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# A feature outweighs the others if it has this many times its fair share of all squares: that is
# more than half, and less than all, however many features there are.
_TIMES, _LEAST, _MOST = 3.0, 0.5, 0.9


class Dominant(NamedTuple):
    """The feature that outweighs the others, by its number, and its share of all squares."""

    feature: int
    share: float


def dominant_feature(squares: NDArray) -> Dominant | None:
    """The feature of which most squares are, if there is one; `squares` has a sum for each."""
    if len(squares) <= 2:
        return None
    feature = int(np.argmax(squares))
    share = float(squares[feature] / (squares.sum() or 1.0))
    limit = np.clip(_TIMES / len(squares), _LEAST, _MOST)
    return Dominant(feature, share) if share > limit else None
