"""What a fit finds out about noise before it starts: levels, the price of activations, a start."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import cycle, islice
from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._algorithms import noise as search
from .._algorithms import noise_starts
from .._algorithms.noise import Found, Search, SearchData, SearchModel
from .._algorithms.start import Filled, from_kmeans, from_svd
from .._data.source import Data
from .._model.model import Background, split_signed
from .._numerics.scaling import power_of_two
from .price import FIRST_PRICE, choose_price
from .runs import Runner, compared
from .searcher import Searcher

# The search looks at so many samples that a round takes about this many multiplications, but at no
# fewer than this, if there are more.
_MOST_WORK, _LEAST_ROWS = 1 << 25, 500
# Starts and prices are compared on so many of these that they have about this many cells.
_TRIAL_CELLS = 50_000
# Nats for each cell that two searches may differ by and have found the same.
_ROUNDING = 1e-9
# What several starts are by default: one of the first kind, and the others in turn. One start alone
# is the best of one of each kind, after so many rounds.
_KINDS, _SKETCH_ROUNDS = tuple(noise_starts.METHODS), 30
# Rounds of a search from each start.
_START_ROUNDS = 100
# Steps from the first price to that which is chosen, and rounds in each.
_PRICE_STEPS, _STEP_ROUNDS = 5, 30
# Above this R² noise that is the same in all features would hardly explain more.
_MUCH_EXPLAINED = 0.7
# Features whose sizes differ by less are of about the same size.
_ALIKE = 3.0
# A dispersion is at least so large next to the largest noise, by what types allow.
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
    dispersion_share : float
        What a dispersion that is to be found may add to the variance of cells, against the noise.
    """

    dispersion: float | None
    noise: str | None
    intercept: bool
    positive: bool
    price: float | None
    dispersion_share: float


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
    sizes : (I,) array
        Root mean square of each feature, around the intercept; 0 if it has no values.
    atoms : (2, K, I) array
        To start from.
    stability : (K,) array
        Mean cosine of each component with its match in the other starts; NaN for a single one.
    n_same : int
        Number of starts that found the same components as the best.
    r2_of_same_noise : float
        R² that as many components reach where all features have the same noise; NaN if not asked.
    undecided : bool
        Whether hardly any cells are left to tell noise from components.
    outlier : (sample, feature) or None
        A cell that is out of all proportion to the others of its feature.
    interrupted : bool
    """

    levels: NoiseLevels
    price: float
    scale: NDArray
    sizes: NDArray
    atoms: NDArray
    stability: NDArray
    n_same: int
    r2_of_same_noise: float
    undecided: bool
    outlier: tuple[int, int] | None
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
    # The same samples for every fit: seeds should differ by their starts alone.
    fixed = RandomState(0)
    rows = _drawn_rows(data.shape, len(given.frozen), fixed)
    trial_rows = _trial_rows(rows, data, fixed)
    unit = power_of_two(data.summary.largest)
    model = SearchModel(given.frozen, options.intercept, options.positive, options.noise)
    problem = trial = Search.of(_search_data(data, rows, unit), model)
    if len(trial_rows) < len(rows):
        trial = Search.of(_search_data(data, trial_rows, unit), model)
    searcher = Searcher(runner)
    price = FIRST_PRICE if options.price is None else options.price
    if given.atoms is not None and not np.isnan(given.atoms).any():
        init, n_init = "random", 1  # all starts would be the same
    begin = partial(_start, data, trial, given, trial_rows, unit, random)
    states = _from_starts(trial, begin, init, n_init, price, searcher)
    best = _best(trial, states)
    refits = given.atoms is not None
    r2_of_same_noise = float("nan") if refits else _r2_of_same_noise(trial, best, searcher)
    if options.price is None:
        price = choose_price(trial, best, searcher)
    others = [state.components for state in states if state is not best]
    stability = compared(best.components, others)
    best = _at_price(trial, best, price, searcher)
    if problem is not trial:
        best = best._replace(activations=np.zeros((len(rows), len(best.components))))
        best = searcher.run(problem, best)
    found = _findings(data, problem, options, best, stability, unit, searcher.interrupted)
    alone = search.outlier(problem, best)
    outlier = alone and (int(rows[alone[0]]), alone[1])
    return found._replace(r2_of_same_noise=r2_of_same_noise, outlier=outlier)


def _from_starts(
    problem: Search,
    begin: Callable[[str], NDArray],
    init: str,
    n_init: int,
    price: float,
    searcher: Searcher,
) -> list[Found]:
    """What searches from several starts find; fewer after Ctrl-C."""

    def run(kinds: list[str], n_rounds: int) -> list[Found]:
        states: list[Found] = []
        for kind in kinds:
            state = search.first(problem, begin(kind), price)
            states.append(searcher.run(problem, state, n_rounds))
            if searcher.interrupted:
                break
        return states

    if init != "auto":
        return run([init] * n_init, _START_ROUNDS)
    if n_init > 1:
        others = islice(cycle(_KINDS[1:]), n_init - 1)
        return run([_KINDS[0], *others], _START_ROUNDS)
    sketch = _best(problem, run(list(_KINDS), _SKETCH_ROUNDS))
    return [searcher.go_on(problem, sketch, _START_ROUNDS)]


def _at_price(problem: Search, state: Found, price: float, searcher: Searcher) -> Found:
    """Where a search ends with another price, which is reached in small steps.

    A step that is large may lead to other components, and small differences decide to which.
    """
    steps = np.geomspace(state.price, price, _PRICE_STEPS + 1)[1:-1]
    for step in steps if price != state.price else ():
        state = searcher.go_on(problem, state._replace(price=float(step)), _STEP_ROUNDS)
    return searcher.go_on(problem, state._replace(price=price))


def _r2_of_same_noise(problem: Search, best: Found, searcher: Searcher) -> float:
    """R² that as many components reach, if all features have the same noise.

    Features count by their noise, and those with little of it may be small. Where features are of
    about the same size, nobody asks. If the best search explains much, it is the R² of that: draws
    that start from there may still end where less is explained.
    """
    sizes = problem.sizes[problem.has_values]
    if sizes.max() < _ALIKE**2 * sizes.min() or problem.model.noise != "feature":
        return float("nan")
    own = search.r2(problem, best)
    if own > _MUCH_EXPLAINED:
        return own
    same = problem._replace(model=problem.model._replace(noise="same"))
    n_components = len(best.components)
    worst = noise_starts.worst_samples(same, n_components, RandomState(0))
    starts = best.components, worst
    states = (
        searcher.run(same, search.first(same, start, best.price), _START_ROUNDS) for start in starts
    )
    return max(search.r2(same, state) for state in states)


def _drawn_rows(shape: tuple[int, int], n_components: int, random: RandomState) -> NDArray:
    """The samples that are looked at."""
    work = 4 * n_components * (shape[1] + 5 * n_components)
    n_rows = max(_LEAST_ROWS, _MOST_WORK // work)
    if shape[0] <= n_rows:
        return np.arange(shape[0])
    return np.sort(random.choice(shape[0], n_rows, replace=False))


def _trial_rows(rows: NDArray, data: Data, random: RandomState) -> NDArray:
    """Those of the samples on which starts and prices are compared."""
    cells_each = data.summary.n_observed / data.shape[0]
    n_rows = max(_LEAST_ROWS, int(_TRIAL_CELLS / max(cells_each, 1e-300)))
    if len(rows) <= n_rows:
        return rows
    return np.sort(random.choice(rows, n_rows, replace=False))


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
    random: RandomState,
    init: str,
) -> NDArray:
    """Components to start from, in the unit of computations; those given, where they are."""
    n_components = len(given.frozen)
    if init in ("kmeans", "svd"):
        filled = Filled.from_summary(data.source, data.summary, unit)
        build = from_kmeans if init == "kmeans" else from_svd
        components, _ = build(filled, n_components, random)
    else:
        build_any = noise_starts.METHODS.get(init, noise_starts.random_numbers)
        components = build_any(problem, n_components, random)
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
    """The best of some searches, each compared with the best before it."""
    # In the order of what they reach at the noise of their own, and not in that of the starts.
    values = [search.evaluate(problem, state) for state in states]
    first, *others = np.argsort(np.negative(values), kind="stable")
    best = states[first]
    for number in others:
        best = states[number] if _is_better(problem, states[number], best) else best
    return best


def _is_better(problem: Search, other: Found, best: Found) -> bool:
    """Whether a search is better than another at the larger noise of the two, by feature.

    At the noise of its own one may be ahead for explaining a single feature to the end, whose noise
    is then next to none.
    """
    larger = np.maximum(other.variance, best.variance)
    found, before = (
        search.evaluate(problem, state._replace(variance=larger)) for state in (other, best)
    )
    # Starts may be the same but for rounding, which must not decide.
    return found > before + _ROUNDING * problem.data.counts.sum()


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
        dispersion = _small_dispersion(
            problem, scale * unit, intercept, unit, options.dispersion_share, data.source.dtype
        )
    return Findings(
        levels=NoiseLevels(dispersion, noise, intercept),
        price=best.price,
        scale=scale * unit,
        sizes=np.where(problem.has_values, np.sqrt(problem.sizes), 0.0) * unit,
        atoms=_atoms(best.components, scale),
        stability=stability[0],
        n_same=stability[1],
        r2_of_same_noise=float("nan"),
        undecided=search.is_undecided(problem, best),
        outlier=None,
        interrupted=interrupted,
    )


def _small_dispersion(
    problem: Search,
    scale: NDArray,
    intercept: NDArray,
    unit: float,
    share: float,
    dtype: np.dtype,
) -> float:
    """A dispersion that adds next to nothing to the variance of cells that have any signal.

    It adds φ times the rate of a cell, which is about the size of the cell.
    """
    alive = problem.has_values
    sizes = unit * np.sqrt(problem.sizes[alive])
    scale, intercept = scale[alive], np.abs(intercept[alive])
    wanted = share * np.min(scale * (scale / np.maximum(sizes, scale)))
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
