"""The price of activations, by how well cells are predicted that were held back.

Too small a price lets activations and components follow the noise, too large a price shrinks them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._algorithms import noise as search
from .._algorithms.noise import POOLED, Found, Search
from .searcher import Searcher

# The price of the first searches; with fewer cells than this it is the last one, too.
FIRST_PRICE, _FEWEST_CELLS = 0.6, 50
# Prices that are compared, and what is believed of them before: the centre of a log-normal
# distribution and its standard deviation. It decides where there are few cells to tell.
PRICES = tuple(float(10**exponent) for exponent in np.linspace(-1, 0.25, 6))
_CENTRE, _SPREAD = 1.5, 0.5
# A tenth of the cells is held back at a time, until so many have been, or all.
_N_PARTS, _HELD_CELLS = 10, 2000
# What is left is searched with the first price, for so many rounds, before prices are compared, for
# so many rounds each: what the cells that are held back had said is then forgotten.
_FORGETFUL_ROUNDS, _ROUNDS = 60, 40
# Components want a smaller price than predictions: their errors fall with the number of samples,
# and what a price does to them does not. Where there are more cells than this for each number that
# is fitted, they get less, down to this share.
_FEW_CELLS, _MANY_CELLS, _LEAST_SHARE = 1.0, 2.0, 0.7


def choose_price(problem: Search, state: Found, searcher: Searcher) -> float:
    """The price for the components and activations of a problem, near a state of it."""
    if problem.data.counts.sum() < _FEWEST_CELLS:
        return state.price
    held = HeldCells.of(problem, state, searcher)
    best = _highest(lambda number: held.nats(PRICES[number]) - _doubts(PRICES[number]))
    if searcher.interrupted:
        return state.price
    return _share_for_components(problem, state) * PRICES[best]


def _doubts(price: float) -> float:
    """Minus the logarithm of what is believed of a price before."""
    return float(np.log(price / _CENTRE) ** 2) / (2 * _SPREAD**2)


def _highest(nats: Callable[[int], float]) -> int:
    """Number of the best price: up and down from the first one, until it gets worse."""
    best = int(np.argmin(np.abs(np.log(np.array(PRICES) / FIRST_PRICE))))
    known = {best: nats(best)}
    for direction in (1, -1):
        while 0 <= best + direction < len(PRICES) and best + direction not in known:
            known[best + direction] = nats(best + direction)
            if known[best + direction] <= known[best]:
                break
            best += direction
    return best


class HeldCells(NamedTuple):
    """Some cells, held back a part at a time, and searches for what is left.

    Attributes
    ----------
    problem : Search
        With all cells.
    parts : list of (boolean array, Search, Found)
        The cells held back, the problem without them, and a state of it that has forgotten them.
    relative : (n, I) array
        Precision of each cell against those of its feature.
    searcher : Searcher
    """

    problem: Search
    parts: list[tuple[NDArray, Search, Found]]
    relative: NDArray
    searcher: Searcher

    @classmethod
    def of(cls, problem: Search, state: Found, searcher: Searcher) -> HeldCells:
        """Near a state of the problem."""
        data = problem.data
        observed = np.broadcast_to(data.observed > 0, data.X.shape)
        # The same cells for every fit: seeds should differ by their starts alone.
        part_of = RandomState(0).randint(_N_PARTS, size=observed.shape)
        n_parts = int(np.clip(_N_PARTS * _HELD_CELLS / observed.sum(), 1, _N_PARTS))
        precision, _ = search.precisions(problem, state.variance)
        parts = []
        for part in range(n_parts):
            cells = observed & (part_of == part)
            rest = problem._replace(data=data.without(cells))
            start = state._replace(activations=np.zeros_like(state.activations), price=FIRST_PRICE)
            parts.append((cells, rest, searcher.run(rest, start, _FORGETFUL_ROUNDS)))
        return cls(problem, parts, precision / precision.mean(axis=0), searcher)

    def nats(self, price: float) -> float:
        """Log-likelihood of the cells that were held back, with a price."""
        squares, held = np.zeros((2, self.problem.data.X.shape[1]))
        for cells, rest, start in self.parts:
            found = self.searcher.go_on(rest, start._replace(price=price), _ROUNDS)
            squares += search.squared_errors(self.problem, found, cells * self.relative)
            held += self.problem.data.weights @ cells
        sizes, has_values = self.problem.sizes, self.problem.has_values
        return float(_log_likelihood(squares[None], sizes, held, has_values)[0])


def _log_likelihood(
    squares: NDArray, sizes: NDArray, counts: NDArray, has_values: NDArray
) -> NDArray:
    """Of normal errors, each feature's noise at its best, pooled a little with that of all.

    With one noise for all, or that of the fit, a single feature with next to none would decide.
    """
    seen = has_values & (counts > 0)
    squares, counts = (squares / sizes)[:, seen], counts[seen]
    pooled = counts * (squares.sum(axis=1, keepdims=True) / counts.sum())
    variances = (squares + POOLED * pooled) / ((1 + POOLED) * counts)
    return -0.5 * np.log(np.maximum(variances, 1e-300)) @ counts


def _share_for_components(problem: Search, state: Found) -> float:
    """What share of the price that predicts best the components get.

    Components that are at least 0 are held by that bound, and the price does less to them.
    """
    if problem.model.positive:
        return 1.0
    n_fitted = state.activations.size + state.components.size
    n_observed = np.broadcast_to(problem.data.observed > 0, problem.data.X.shape).sum()
    cells_each = n_observed / n_fitted
    many = np.clip((cells_each - _FEW_CELLS) / (_MANY_CELLS - _FEW_CELLS), 0, 1)
    return float(1 - (1 - _LEAST_SHARE) * many)
