"""What a fit finds out about noise before it starts: levels, the price of activations, a start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._algorithms import noise as search
from .._algorithms.noise import Found, Search, SearchData, SearchModel, SearchStopping
from .._algorithms.start import Filled, from_kmeans, from_svd
from .._data.source import Data
from .._model.model import Background, split_signed
from .._numerics.scaling import power_of_two
from .runs import Runner, compared

# The search looks at so many samples that a round takes about this many multiplications, but at no
# fewer than this, if there are more.
_MOST_WORK, _LEAST_ROWS = 1 << 25, 500
# Rounds of a search from each start, and of the one that goes on; and nats for each cell that count
# as none over ten of them.
_START_ROUNDS, _ROUNDS, _TOLERANCE, _WINDOW = 100, 300, 1e-5, 10
# The price at first, and prices that are compared by how well cells are predicted that were held
# back: this share of all, in more than one part if they are few, after so many rounds.
FIRST_PRICE = 0.3
PRICES = tuple(float(10**exponent) for exponent in np.linspace(-1, 0.25, 6))
_HELD_SHARE, _HELD_CELLS, _MOST_FOLDS, _HELD_ROUNDS = 0.1, 2000, 5, 40
# With fewer cells than this the first price is the last.
_FEWEST_CELLS = 50
# The dispersion where nothing says otherwise, against the least noise of a feature: so small that
# noise is what its component has, and as large as types allow next to the largest noise.
_SMALL = 0.01
_RANGE = {"float32": 1e-3, "float64": 1e-6}
# The intercept takes at most this share of what rates noise has.
_INTERCEPT_SHARE = 0.5


class NoiseOptions(NamedTuple):
    """What is asked for.

    Attributes
    ----------
    dispersion : float or None
        None if it is to be found.
    noise : {"feature", "same", None}
    intercept, positive : bool
    price : float or None
        κ, or None if it is to be found.
    """

    dispersion: float | None
    noise: str | None
    intercept: bool
    positive: bool
    price: float | None


class NoiseLevels(NamedTuple):
    """What the model has besides its factors, in the unit of X.

    Attributes
    ----------
    dispersion : float
    noise, intercept : (I,) arrays
        Standard deviation of the noise of each feature, and what is added to it.
    """

    dispersion: float
    noise: NDArray
    intercept: NDArray

    def background(self, cell_noise: NDArray | None = None) -> Background:
        """The rates without any component, in units of the dispersion.

        `cell_noise` has the standard deviations that are known of cells.
        """
        variance = np.atleast_2d((self.noise / self.dispersion) ** 2)
        if cell_noise is not None:
            variance = variance + (cell_noise / self.dispersion) ** 2
        return Background(variance / 2, self.intercept / self.dispersion)


class Findings(NamedTuple):
    """What a search found, in the unit of X.

    Attributes
    ----------
    levels : NoiseLevels
    price : float
        κ, in nats for a signal-to-noise ratio of 1.
    scale : (I,) array
        Standard deviation of each feature's noise, with what is known of its cells.
    atoms : (2, K, I) array
        To start from.
    stability : (K,) array
        Mean cosine of each component with its match in the other starts; NaN for a single one.
    n_same : int
        Number of starts that found the same components as the best.
    undecided : bool
        Whether hardly any cells are left to tell noise from components.
    interrupted : bool
    """

    levels: NoiseLevels
    price: float
    scale: NDArray
    atoms: NDArray
    stability: NDArray
    n_same: int
    undecided: bool
    interrupted: bool


class Given(NamedTuple):
    """What the search is given.

    Attributes
    ----------
    atoms : (2, K, I) array or None
        Start values, NaN where there are none.
    activations : (J, K) array or None
    frozen : (K,) boolean array
    """

    atoms: NDArray | None
    activations: NDArray | None
    frozen: NDArray


def find_noise(
    data: Data,
    options: NoiseOptions,
    given: Given,
    init: str,
    n_init: int,
    runner: Runner,
    random: RandomState,
) -> Findings:
    """Search from several starts, on some of the samples if they are many, and keep the best."""
    rows = _drawn_rows(data.shape, len(given.frozen), random)
    unit = power_of_two(data.summary.largest)
    problem = Search.of(
        _search_data(data, rows, unit),
        SearchModel(given.frozen, options.intercept, options.positive, options.noise),
    )
    searcher = _Searcher(runner)
    price = FIRST_PRICE if options.price is None else options.price
    states = []
    if given.atoms is not None and not np.isnan(given.atoms).any():
        n_init = 1  # all starts would be the same
    for _ in range(n_init):
        components = _start(data, problem, given, rows, unit, init, random)
        first = search.first(problem, components, price)
        states.append(searcher.run(problem, first, _START_ROUNDS))
        if searcher.interrupted:
            break
    best = _best(problem, states)
    others = [state.components for state in states if state is not best]
    stability = compared(best.components, others)
    if options.price is None:
        price = _chosen_price(problem, best, searcher, random)
    best = searcher.run(problem, best._replace(price=price))
    return _findings(data, problem, options, best, stability, unit, searcher.interrupted)


class _Searcher:
    """Runs searches, and none after Ctrl-C."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.interrupted = False

    def run(self, problem: Search, state: Found, most: int = _ROUNDS) -> Found:
        """Search from a state, for at most so many rounds."""
        if self.interrupted:
            return state
        tolerance = _TOLERANCE * problem.data.counts.sum()
        stopping = SearchStopping(most, tolerance, window=_WINDOW, relative=False)
        result = self._runner.run(search, problem, lambda: state, "noise", stopping)
        self.interrupted = result.interrupted
        return result.state


def _chosen_price(problem: Search, state: Found, searcher: _Searcher, random: RandomState) -> float:
    """The price by which cells that were held back are predicted best."""
    if problem.data.counts.sum() < _FEWEST_CELLS:
        return state.price
    _, scale = search.precisions(problem, state.variance)
    observed = np.broadcast_to(problem.data.observed > 0, problem.data.X.shape)
    n_folds = int(np.clip(_HELD_CELLS / (_HELD_SHARE * observed.sum()), 1, _MOST_FOLDS))
    parts = random.randint(round(1 / _HELD_SHARE), size=observed.shape)
    errors = np.zeros(len(PRICES))
    for fold in range(n_folds):
        cells = observed & (parts == fold)
        rest = problem._replace(data=problem.data.without(cells))
        for n, price in enumerate(PRICES):
            found = searcher.run(rest, state._replace(price=price), _HELD_ROUNDS)
            errors[n] += search.held_errors(problem, found, cells, scale)
    return state.price if searcher.interrupted else PRICES[int(np.argmin(errors))]


def _drawn_rows(shape: tuple[int, int], n_components: int, random: RandomState) -> NDArray:
    """The samples that are looked at."""
    work = 4 * n_components * (shape[1] + 5 * n_components)
    n_rows = max(_LEAST_ROWS, _MOST_WORK // work)
    if shape[0] <= n_rows:
        return np.arange(shape[0])
    return np.sort(random.choice(shape[0], n_rows, replace=False))


def _search_data(data: Data, rows: NDArray, unit: float) -> SearchData:
    X = data.source.take(rows).astype(np.float64) / unit
    observed = ~np.isnan(X)
    known = np.zeros((1, 1))
    if data.cell_noise is not None:
        known = data.cell_noise if len(data.cell_noise) == 1 else data.cell_noise[rows]
        known = (known.astype(np.float64) / unit) ** 2
    complete = bool(observed.all()) and len(known) == 1
    seen = np.ones((1, X.shape[1])) if complete else observed.astype(np.float64)
    return SearchData(np.where(observed, X, 0.0), seen, data.weights[rows], known)


def _start(
    data: Data,
    problem: Search,
    given: Given,
    rows: NDArray,
    unit: float,
    init: str,
    random: RandomState,
) -> NDArray:
    """Components to start from, in the unit of computations; those given, where they are."""
    n_components, n_features = len(given.frozen), data.shape[1]
    if init in ("kmeans", "svd"):
        filled = Filled.from_summary(data.source, data.summary, unit)
        build = from_kmeans if init == "kmeans" else from_svd
        components, _ = build(filled, n_components, random)
    else:
        components = random.normal(size=(n_components, n_features)) * np.sqrt(problem.sizes)
    if given.activations is not None and given.atoms is None:
        # How large they are is left to the components.
        sizes = given.activations.max(axis=0)
        activations = given.activations[rows] / np.where(sizes > 0, sizes, 1.0)
        components = search.fitted_components(problem, activations, components)
    if problem.model.positive:
        components = np.abs(components)
    if given.atoms is not None:
        known = given.atoms[0] - given.atoms[1]
        components = np.where(np.isnan(known), components, known)
    return np.ascontiguousarray(components)


def _best(problem: Search, states: list[Found]) -> Found:
    """The best of some searches, compared at the same noise and price."""
    if len(states) == 1:
        return states[0]
    variance = np.median([state.variance for state in states], axis=0)
    price = float(np.median([state.price for state in states]))
    values = [
        search.evaluate(problem, state._replace(variance=variance, price=price)) for state in states
    ]
    return states[int(np.argmax(values))]


def _findings(
    data: Data,
    problem: Search,
    options: NoiseOptions,
    best: Found,
    stability: tuple[NDArray, int],
    unit: float,
    interrupted: bool,
) -> Findings:
    _, scale = search.precisions(problem, best.variance)
    noise, intercept = np.sqrt(best.variance) * unit, best.intercept * unit
    dispersion = options.dispersion
    if dispersion is None:
        dispersion = _small_dispersion(scale * unit, intercept, problem, data.source.dtype)
    return Findings(
        levels=NoiseLevels(dispersion, noise, intercept),
        price=best.price,
        scale=scale * unit,
        atoms=_atoms(best.components, scale),
        stability=stability[0],
        n_same=stability[1],
        undecided=search.is_undecided(problem, best),
        interrupted=interrupted,
    )


def _small_dispersion(
    scale: NDArray, intercept: NDArray, problem: Search, dtype: np.dtype
) -> float:
    """A dispersion that is small against the noise of all features that have any signal."""
    alive = problem.has_values
    scale, intercept = scale[alive], np.abs(intercept[alive])
    wanted = _SMALL * scale.min()
    # The intercept's part of the rates comes from those of the noise.
    room = _INTERCEPT_SHARE * (scale / np.where(intercept > 0, intercept, scale)) * scale
    wanted = min(wanted, np.min(np.where(intercept > 0, room, np.inf)))
    return float(max(wanted, _RANGE[dtype.name] * scale.max(), 1e-290))


def _atoms(components: NDArray, scale: NDArray) -> NDArray:
    """Atoms of signed components; one without any length is spread as the noise is."""
    atoms = split_signed(components)
    totals = atoms.sum(axis=(0, 2), keepdims=True)
    even = np.broadcast_to(scale / (2 * scale.sum()), atoms.shape)
    return np.where(totals > 0, atoms / np.where(totals > 0, totals, 1.0), even)
