"""The price of activations, by how well cells are predicted that were held back.

Too small a price lets activations and components follow the noise, too large a price shrinks them.
"""

from __future__ import annotations

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
    nats = _nats_of_held_cells(problem, state, searcher)
    nats -= np.log(np.array(PRICES) / _CENTRE) ** 2 / (2 * _SPREAD**2)
    if searcher.interrupted:
        return state.price
    return _share_for_components(problem, state) * PRICES[int(np.argmax(nats))]


def _nats_of_held_cells(problem: Search, state: Found, searcher: Searcher) -> NDArray:
    """Log-likelihood of cells that were held back, for each price."""
    data = problem.data
    observed = np.broadcast_to(data.observed > 0, data.X.shape)
    # The same cells for every fit: seeds should differ by their starts alone.
    parts = RandomState(0).randint(_N_PARTS, size=observed.shape)
    n_parts = int(np.clip(_N_PARTS * _HELD_CELLS / observed.sum(), 1, _N_PARTS))
    # Cells whose noise is known count by it, within their feature.
    precision, _ = search.precisions(problem, state.variance)
    relative = precision / precision.mean(axis=0)
    squares = np.zeros((len(PRICES), data.X.shape[1]))
    for part in range(n_parts):
        cells = observed & (parts == part)
        rest = problem._replace(data=data.without(cells))
        start = state._replace(activations=np.zeros_like(state.activations), price=FIRST_PRICE)
        start = searcher.run(rest, start, _FORGETFUL_ROUNDS)
        found = (searcher.run(rest, start._replace(price=price), _ROUNDS) for price in PRICES)
        squares += [search.squared_errors(problem, each, cells * relative) for each in found]
    held = observed & (parts < n_parts)
    return _log_likelihood(squares, problem.sizes, data.weights @ held, problem.has_values)


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
