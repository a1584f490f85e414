"""Extrapolation alone, on algorithms that have nothing to do with factorization."""

import math
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from seminmf._algorithms import acceleration, loop
from seminmf._algorithms.acceleration import AcceleratedState, Parabola, accelerate
from seminmf._estimators.runs import Progress

METHODS = [method for method in acceleration.METHODS if method is not None]


class Plain:
    """An algorithm whose state is the point; it counts its steps."""

    def __init__(self):
        self.n_steps = 0

    def start(self, problem, point):
        return point

    def point(self, state):
        return state

    def step(self, problem, state):
        self.n_steps += 1
        return self.move(problem, state), loop.Info(self.evaluate(problem, state))

    def project(self, problem, point):
        return point


class Samples(NamedTuple):
    """What is known of samples, the rows of a point's first array: how much they count."""

    weights: np.ndarray


class Setting:
    """A problem: something to know, samples, and a model of two factors, samples in the first."""

    def __init__(self, known, n_samples):
        self.known = known
        self.data = Samples(np.ones(n_samples))
        self.model = SimpleNamespace(
            factors=[
                SimpleNamespace(has_samples=own, row_weights=np.ones(1)) for own in (True, False)
            ]
        )

    def over_samples(self, function, rows, *shared):
        return function(self, *rows, *shared)


class Shares(NamedTuple):
    """Weights of a mixture's components; a mixture that has no second array has it all the same."""

    weights: np.ndarray
    unmoved: np.ndarray


class Mixture(Plain):
    """EM for the weights of a mixture of known densities; the problem has those of each sample."""

    def move(self, problem, state):
        joint = problem.known * state.weights
        return state._replace(weights=(joint / joint.sum(axis=1, keepdims=True)).mean(axis=0))

    def evaluate(self, problem, state):
        return float(np.sum(np.log(problem.known @ state.weights)))

    def project(self, problem, point):
        return point._replace(weights=point.weights / point.weights.sum())


def mixture(seed=0, n_components=4):
    """Densities of normal components that overlap much, and a start with a weight of 0."""
    rng = np.random.default_rng(seed)
    centres = np.linspace(-1.0, 1.0, n_components)
    X = rng.choice(centres, 200, p=rng.dirichlet(np.ones(n_components))) + rng.normal(size=200)
    densities = np.exp(-0.5 * (X[:, None] - centres) ** 2)
    weights = rng.dirichlet(np.ones(n_components))
    weights[1] = 0.0
    point = Shares(weights / weights.sum(), rng.uniform(size=3))
    return Setting(densities, n_components), point


class Pair(NamedTuple):
    first: np.ndarray
    second: np.ndarray


class Contraction(Plain):
    """ln x → ln x · rates, towards 1: the problem has a rate for each number of each array."""

    def move(self, problem, state):
        return Pair(*(x**rate for x, rate in zip(state, problem.known, strict=True)))

    def evaluate(self, problem, state):
        return -sum(float(np.sum(np.log(x) ** 2)) for x in state)


CONTRACTION = Setting(Pair(np.array([0.999, 0.9, 0.5]), np.array([[0.99], [0.2]])), 3)
FAR = Pair(np.array([30.0, 0.2, 4.0]), np.array([[0.01], [3.0]]))


def trace(algorithm, problem, state, n_iter):
    values = []
    for _ in range(n_iter):
        state, info = algorithm.step(problem, state)
        values.append(info.objective)
    return np.array(values), state


def steps_to(method, plain, problem, point, objective, most=20_000):
    """How many steps of the plain algorithm it takes to reach an objective."""
    algorithm = accelerate(plain, method)
    state = algorithm.start(problem, point)
    while plain.n_steps < most:
        before = plain.n_steps
        state, info = algorithm.step(problem, state)
        if info.objective >= objective:
            return before
    return most


# --- What it is for ---


@pytest.mark.parametrize("method", METHODS)
def test_contraction_is_faster(method):
    plain = steps_to(None, Contraction(), CONTRACTION, FAR, -1e-8)
    assert plain > 5000
    assert steps_to(method, Contraction(), CONTRACTION, FAR, -1e-8) < plain / 5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(3))
def test_mixture_is_faster(method, seed):
    densities, point = mixture(seed)
    best = trace(Mixture(), densities, point, 20_000)[0][-1]
    goal = best - 1e-6 * abs(best)
    plain = steps_to(None, Mixture(), densities, point, goal)
    assert plain > 30
    assert steps_to(method, Mixture(), densities, point, goal) < 0.5 * plain


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(20))
def test_objective_never_falls(method, seed):
    densities, point = mixture(seed, n_components=2 + seed % 5)
    algorithm = accelerate(Mixture(), method)
    values, state = trace(algorithm, densities, algorithm.start(densities, point), 200)
    assert np.diff(values).min() >= -1e-13 * abs(values[-1])
    final = algorithm.point(state)
    assert final.weights.sum() == pytest.approx(1.0, rel=1e-12)
    assert algorithm.evaluate(densities, state) >= values[-1] - 1e-13 * abs(values[-1])


# --- Extrapolations that fail ---


class OffTrack(Contraction):
    """The objective is that of a contraction on its own track, and something else off it."""

    def __init__(self, elsewhere):
        super().__init__()
        self.elsewhere = elsewhere
        self.track = [FAR]
        for _ in range(40):
            self.track.append(self.move(CONTRACTION, self.track[-1]))

    def evaluate(self, problem, state):
        on_track = any(np.array_equal(state.first, point.first) for point in self.track)
        return super().evaluate(problem, state) if on_track else self.elsewhere


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("elsewhere", [-1e9, -math.inf, math.nan, math.inf])
def test_what_fails_falls_back_to_the_second_step(method, elsewhere):
    plain = OffTrack(elsewhere)
    algorithm = accelerate(plain, method)
    state = algorithm.start(CONTRACTION, FAR)
    if method == "squarem":
        # Its first cycle has t = 1: three steps of the plain algorithm.
        state, _ = algorithm.step(CONTRACTION, state)
        assert_array_equal(state.point.first, plain.track[3].first)
        place = 3
    else:
        place = 0
    for _ in range(5):
        plain.n_steps = 0
        state, info = algorithm.step(CONTRACTION, state._replace(reach=20.0))
        assert info.objective == plain.evaluate(CONTRACTION, plain.track[place])
        place += 2
        for found, expected in zip(state.point, plain.track[place], strict=True):
            assert_array_equal(found, expected)
        assert plain.n_steps == (3 if method == "squarem" else 4)
        assert state.reach < 20


@pytest.mark.parametrize("method", METHODS)
def test_reach_grows_with_success(method):
    """Where the path itself suggests a shorter step, it stays as it is."""
    algorithm = accelerate(Contraction(), method)
    state = algorithm.start(CONTRACTION, FAR)
    reaches = [state.reach]
    for _ in range(3):
        state, _ = algorithm.step(CONTRACTION, state)
        reaches.append(state.reach)
    assert np.diff(reaches).min() >= 0
    assert reaches[-1] > 2 * reaches[1] > 2 * reaches[0]


@pytest.mark.parametrize("method", METHODS)
def test_reach_shrinks_with_failure_to_where_it_began(method):
    spoiled = accelerate(OffTrack(math.nan), method)
    first = spoiled.start(CONTRACTION, FAR).reach
    reaches = [30.0]
    while reaches[-1] > first and len(reaches) < 100:
        state, _ = spoiled.step(CONTRACTION, AcceleratedState(FAR, reaches[-1]))
        reaches.append(state.reach)
    assert np.diff(reaches).max() < 0
    assert reaches[-1] == first


@pytest.mark.parametrize("method", METHODS)
def test_reach_stays_in_bounds_on_a_long_run(method):
    """Where there are both, successes and failures."""
    algorithm = accelerate(Contraction(), method)
    state, reaches = algorithm.start(CONTRACTION, FAR), []
    first = state.reach
    for _ in range(200):
        state, _ = algorithm.step(CONTRACTION, state)
        reaches.append(state.reach)
    assert min(reaches) >= first and math.isfinite(max(reaches))
    assert np.diff(reaches).min() < 0 < np.diff(reaches).max()


@pytest.mark.parametrize("method", METHODS)
def test_fixed_point_stays(method):
    algorithm = accelerate(Contraction(), method)
    ones = Pair(np.ones(3), np.ones((2, 1)))
    with np.errstate(all="raise"):
        values, state = trace(algorithm, CONTRACTION, algorithm.start(CONTRACTION, ones), 1000)
    assert not values.any()
    assert_array_equal(state.point.first, ones.first)
    assert math.isfinite(state.reach)


# --- Numbers that must not move ---


class Given(Plain):
    """An algorithm that goes from each of the points given to the next."""

    def move(self, points, state):
        places = [k for k, point in enumerate(points) if point is state]
        return points[places[0] + 1] if places else state

    def evaluate(self, points, state):
        return 0.0


def parabola(*points: Any) -> Parabola:
    pairs = [Pair(np.asarray(first), np.asarray(second)) for first, second in points]
    return Parabola.from_steps(Given(), pairs, pairs[0])[0]


@pytest.mark.parametrize("t", [1.5, 30.0, 1e6])
def test_zeros_stay_where_they_are(t):
    path = parabola(
        ([0.0, 1.0, 3.0, 0.0, 2.0], [0.0]),
        ([1.0, 0.0, 2.0, 0.0, 1.5], [0.0]),
        ([2.0, 4.0, 0.0, 0.0, 1.4], [0.0]),
    )
    with np.errstate(all="raise"):
        found = path.at(Setting(None, 5), t)
        assert math.isfinite(path.step_length(Setting(None, 5)))
    assert_array_equal(found.first[:4], path.end.first[:4])
    assert found.first[4] != 1.4
    assert_array_equal(found.second, [0.0])


@pytest.mark.parametrize("method", METHODS)
def test_zeros_of_a_fit_stay_zero(method):
    densities, point = mixture()
    algorithm = accelerate(Mixture(), method)
    with np.errstate(all="raise"):
        _, state = trace(algorithm, densities, algorithm.start(densities, point), 50)
    assert state.point.weights[1] == 0
    assert (state.point.weights[[0, 2, 3]] > 0).any()
    assert_array_equal(state.point.unmoved, point.unmoved)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_does_not_move_keeps_its_bits(dtype):
    kept = np.array([0.1, 1 / 3, 1e-30, 7.0, np.finfo(dtype).tiny / 8], dtype=dtype)
    moving = [np.array([value], dtype=dtype) for value in (1.0, 1.5, 1.8)]
    path = parabola(*((kept, value) for value in moving))
    for t in (1.1, 17.0, 1e6):
        found = path.at(Setting(None, 5), t)
        assert found.first.dtype == found.second.dtype == dtype
        assert_array_equal(found.first, kept)
        assert found.second != moving[2]


def test_parabola_goes_through_its_points():
    rng = np.random.default_rng(0)
    points = [(rng.gamma(5.0, size=4), rng.gamma(5.0, size=(2, 3))) for _ in range(3)]
    path = parabola(*points)
    for t, expected in ((0.0, points[0]), (1.0, points[2])):
        for found, array in zip(path.at(Setting(None, 4), t), expected, strict=True):
            assert_allclose(found, array, rtol=1e-12)
    # Berlinet and Roland's form: (1 − t)² x₀ + 2t(1 − t) x₁ + t² x₂, here for logarithms.
    t = 1.3
    x0, x1, x2 = (np.log(first) for first, _ in points)
    expected = np.exp((1 - t) ** 2 * x0 + 2 * t * (1 - t) * x1 + t**2 * x2)
    assert_allclose(path.at(Setting(None, 4), t).first, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_step_is_too_bold(dtype):
    """One number at a time changes by a limited factor, the same in both directions."""
    points = [np.array(x, dtype=dtype) for x in ([1.0, 1.0], [9.0, 0.1], [90.0, 0.01])]
    path = parabola(*((x, x) for x in points))
    with np.errstate(all="raise"):
        near, far, farther = (
            path.at(Setting(None, 2), t).first / points[2] for t in (1.2, 1e6, 1e9)
        )
    assert_array_equal(far, farther)
    assert far[0] > near[0] > 1 > near[1] > far[1]
    assert far[0] * far[1] == pytest.approx(1.0, rel=1e-6)


def test_step_length_counts_repeated_numbers():
    rng = np.random.default_rng(1)
    points = [(rng.gamma(5.0, size=4), rng.gamma(5.0, size=3)) for _ in range(3)]
    times = np.array([2, 1, 3, 0])
    repeated = parabola(*((np.repeat(first, times), second) for first, second in points))
    weighted = parabola(*points)
    expected = repeated.step_length(Setting(None, times.sum()))
    setting = Setting(None, 4)
    setting.data = Samples(times.astype(float))
    assert weighted.step_length(setting) == pytest.approx(expected, rel=1e-12)


def test_step_length_of_a_contraction():
    """ln x → ρ ln x has its fixed point at t = 1 / (1 − ρ)."""
    rates = Setting(Pair(np.full(3, 0.99), np.full((2, 1), 0.99)), 3)
    path, _, _ = Parabola.from_steps(Contraction(), rates, FAR)
    t = path.step_length(rates)
    assert t == pytest.approx(100.0, rel=1e-9)
    near = Pair(*(x**1e-3 for x in FAR))  # so that the change is not too bold
    path, _, _ = Parabola.from_steps(Contraction(), rates, near)
    for array in path.at(rates, t):
        assert_allclose(array, 1.0, rtol=1e-9)


# --- As the loop sees it ---


def test_no_method_is_the_algorithm_itself():
    plain = Mixture()
    assert accelerate(plain, None) is plain


@pytest.mark.parametrize("method", METHODS)
def test_a_step_is_a_function_of_the_state(method):
    """Nothing is kept elsewhere, and nothing is written over."""
    algorithm = accelerate(Contraction(), method)
    _, state = trace(algorithm, CONTRACTION, algorithm.start(CONTRACTION, FAR), 5)
    before = [array.copy() for array in state.point]
    first, again = (
        accelerate(Contraction(), method).step(
            CONTRACTION, AcceleratedState(state.point, state.reach)
        )
        for _ in range(2)
    )
    assert type(first[0].reach) is float and first[0].reach == again[0].reach
    for here, there in zip(first[0].point, again[0].point, strict=True):
        assert_array_equal(here, there)
    for array, copy in zip(state.point, before, strict=True):
        assert_array_equal(array, copy)


@pytest.mark.parametrize("method", acceleration.METHODS)
def test_the_loop_returns_the_plain_point(method):
    densities, point = mixture()
    algorithm = accelerate(Mixture(), method)
    with Progress(500, "", shown=False) as progress:
        stopping = loop.Stopping(max_iter=500, tol=1e-6)
        result = loop.run(algorithm, densities, lambda: point, stopping, progress)
    assert isinstance(result.state, Shares)
    assert result.reason == "tolerance" and result.converged and not result.interrupted
    assert result.objectives[-1] == Mixture().evaluate(densities, result.state)


@pytest.mark.parametrize("method", acceleration.METHODS)
def test_the_loop_says_why_it_ended(method):
    densities, point = mixture()

    def run(algorithm, max_iter):
        with Progress(max_iter, "", shown=False) as progress:
            stopping = loop.Stopping(max_iter=max_iter, tol=0.0)
            return loop.run(algorithm, densities, lambda: point, stopping, progress)

    assert run(accelerate(Mixture(), method), max_iter=3).reason == "max_iter"

    class Interrupted(Mixture):
        def move(self, problem, state):
            if self.n_steps == 10:
                raise KeyboardInterrupt
            return super().move(problem, state)

    result = run(accelerate(Interrupted(), method), max_iter=99)
    assert result.reason == "interrupted" and result.interrupted and not result.converged
    assert result.n_iter == (9 if method is None else 3)
    assert result.objectives[-1] == Mixture().evaluate(densities, result.state)
