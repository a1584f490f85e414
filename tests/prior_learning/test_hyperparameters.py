"""Updates of the prior: Propositions 1 and 2, against direct maximisation, for any sharing maps."""

import itertools

import numpy as np
import pytest
import reference
from scipy.optimize import minimize
from scipy.special import digamma

from seminmf._model import sharing as sharing_maps
from seminmf._model.model import Priors
from seminmf._prior_learning.hyperparameters import (
    DIRICHLET,
    SHAPE_BOUNDS,
    Objective,
    best_rates,
    incidence,
    maximise,
)
from seminmf._prior_learning.prior_statistics import (
    Expectations,
    Maps,
    Statistics,
    best_order,
    bounds_met,
    update_prior,
)

J, K, I = 7, 3, 4
SHARINGS = ("all", "component", "entry", "labels", None)


def draw_expectations(seed, n_samples=J):
    random = np.random.RandomState(seed)
    return Expectations.of(
        random.gamma(3, 5, size=(n_samples, K)) + 0.1,
        1 + random.gamma(1, 0.5, size=(1, K)),
        random.gamma(2, 5, size=(2, K, I)) + 0.05,
    )


def draw_prior(seed):
    random = np.random.RandomState(seed)
    return Priors.of(*(random.gamma(2, 1, size=size) + 0.1 for size in ((J, K), (J, K), (2, K, I))))


def labels(sharing, shape, seed):
    if sharing is None:
        return None
    if sharing == "labels":
        random = np.random.RandomState(seed)
        sharing = random.permutation(np.arange(np.prod(shape)) % 4).reshape(shape)
    return sharing_maps.labels(sharing, shape, 1)


def on_labels(prior, maps):
    """The prior with one value for each label, which learning starts from."""
    parts = []
    for part, map_ in zip(
        prior.parameters.values(),
        (maps.activation_shape, maps.activation_rate, maps.atom_shape),
        strict=True,
    ):
        values = part
        if map_ is not None:
            sums = np.bincount(map_.ravel(), weights=part.ravel())
            values = (sums / np.bincount(map_.ravel()))[map_]
        parts.append(values)
    return Priors.of(*parts)


@pytest.mark.parametrize(
    ("shape", "rate", "atoms"),
    [
        *itertools.product(SHARINGS, SHARINGS, ["entry"]),
        *itertools.product(["component"], ["component"], SHARINGS),
    ],
)
def test_update_never_lowers_the_bound_and_is_the_best(shape, rate, atoms):
    """No prior with these maps explains the posterior better than the update."""
    maps = Maps(
        activation_shape=labels(shape, (J, K), 1),
        activation_rate=labels(rate, (J, K), 2),
        atom_shape=labels(atoms, (2, K, I), 3),
    )
    # A label that is seen once has no best shape, so several posteriors are averaged.
    parts = [draw_expectations(seed) for seed in range(4)]
    statistics = Statistics.mean([Statistics.of(part, maps) for part in parts])
    before = on_labels(draw_prior(4), maps)
    after = update_prior(before, statistics, maps)

    def total(prior):
        return sum(
            reference.expected_log_prior(prior.parameters.values(), *part[:3]) for part in parts
        )

    assert total(after) >= total(before)
    random = np.random.RandomState(5)
    for size in (1e-3, 1e-1):
        for _ in range(10):
            moved = Priors.of(
                *(
                    part if map_ is None else part * np.exp(size * random.normal(size=n)[map_])
                    for part, map_, n in zip(
                        after.parameters.values(),
                        (maps.activation_shape, maps.activation_rate, maps.atom_shape),
                        maps.sizes,
                        strict=True,
                    )
                )
            )
            assert total(moved) <= total(after) + 1e-9 * abs(total(after))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["dirichlet", "gamma"])
def test_newton_finds_what_direct_maximisation_finds(kind, seed):
    random = np.random.RandomState(seed)
    n_shapes, n_outer, n_cells = random.randint(1, 6), random.randint(1, 4), 60
    shapes = np.concatenate([np.arange(n_shapes), random.randint(n_shapes, size=n_cells)])
    outer = np.concatenate(
        [np.arange(n_outer), random.randint(n_outer, size=shapes.size - n_outer)]
    )
    pairs = incidence(outer, shapes, (n_outer, n_shapes))
    counts = pairs.sum(axis=0)
    if kind == "dirichlet":
        logs = np.empty(shapes.size)
        for component in range(n_outer):
            cells = outer == component
            draws = random.dirichlet(1.0 + shapes[cells], size=5)
            logs[cells] = np.log(draws).mean(axis=0)
        statistic = np.bincount(shapes, weights=logs)
        outer_terms = DIRICHLET
    else:
        draws = random.gamma(3, 2, size=(n_outer, n_shapes)) + 0.2
        statistic = (pairs * np.log(draws)).sum(axis=0) - 0.3 * counts
        outer_terms = best_rates((pairs * draws).sum(axis=1))
    objective = Objective(incidence=pairs, counts=counts, statistic=statistic, outer=outer_terms)
    found = maximise(objective, np.ones(n_shapes))
    direct = minimize(
        lambda logs: -objective.value(np.exp(logs)),
        np.zeros(n_shapes),
        bounds=[tuple(np.log(SHAPE_BOUNDS))] * n_shapes,
        method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 50000, "ftol": 1e-15, "gtol": 1e-10},
    )
    assert objective.value(found) >= -direct.fun - 1e-9 * abs(direct.fun)
    np.testing.assert_allclose(objective.gradient(found) / counts, 0, atol=1e-6)


def test_fixed_point_rises_and_ends_where_newton_ends():
    random = np.random.RandomState(0)
    shapes = np.arange(6)
    pairs = incidence(np.zeros(6, dtype=int), shapes, (1, 6))
    logs = np.log(random.dirichlet([1, 2, 3, 4, 5, 6], size=50)).mean(axis=0)
    objective = Objective(incidence=pairs, counts=np.ones(6), statistic=logs, outer=DIRICHLET)
    point = np.ones(6)
    values = [objective.value(point)]
    for _ in range(3000):
        point = objective.fixed_point(point)
        values.append(objective.value(point))
    assert np.all(np.diff(values) >= -1e-12)
    np.testing.assert_allclose(point, maximise(objective, np.ones(6)), rtol=1e-6)


@pytest.mark.parametrize("start", [SHAPE_BOUNDS[0], 0.1, 1.0, 100.0, SHAPE_BOUNDS[1]])
def test_known_shapes_are_found_from_any_start(start):
    truth = np.array([0.02, 5.0, 50.0, 3000.0])
    pairs = incidence(np.zeros(4, dtype=int), np.arange(4), (1, 4))
    exact = digamma(truth) - digamma(truth.sum())
    objective = Objective(incidence=pairs, counts=np.ones(4), statistic=exact, outer=DIRICHLET)
    np.testing.assert_allclose(maximise(objective, np.full(4, start)), truth, rtol=1e-5)


def test_large_maps_are_kept_sparse_and_solved():
    n = 3000
    random = np.random.RandomState(0)
    truth, rates = random.gamma(2, 3, size=n) + 0.1, random.gamma(2, 1, size=n) + 0.1
    pairs = incidence(np.arange(n), np.arange(n), (n, n))
    assert not isinstance(pairs, np.ndarray)
    objective = Objective(
        incidence=pairs,
        counts=np.ones(n),
        statistic=digamma(truth) - np.log(rates),
        outer=best_rates(truth / rates),
    )
    np.testing.assert_allclose(maximise(objective, np.ones(n)), truth, rtol=1e-4)


def test_matrices_of_unequal_length_count_by_their_samples():
    """Two matrices tell what one matrix of all their samples tells."""
    row = np.arange(K)[None]
    maps = Maps(activation_shape=row, activation_rate=row, atom_shape=None)
    long, short = draw_expectations(0, 50), draw_expectations(1, 10)
    both = Expectations(
        activations=np.concatenate([long.activations, short.activations]),
        log_activations=np.concatenate([long.log_activations, short.log_activations]),
        log_atoms=long.log_atoms,
    )
    prior = Priors.of(np.ones((1, K)), np.ones((1, K)), np.ones((1, 1, 1)))
    apart = Statistics.mean([Statistics.of(part, maps) for part in (long, short)])
    found, expected = (
        update_prior(prior, statistics, maps).parameters
        for statistics in (apart, Statistics.of(both, maps))
    )
    for name, values in found.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-9)


def test_a_bound_that_is_met_is_reported():
    """One observation of each entry: the best prior is a spike."""
    by_entry = labels("entry", (2, K, I), 0)
    maps = Maps(activation_shape=None, activation_rate=None, atom_shape=by_entry)
    statistics = Statistics.of(draw_expectations(0), maps)
    prior = Priors.of(np.ones((1, 1)), np.ones((1, 1)), np.ones((2, K, I)))
    posterior = np.full((2, K, I), 1e9)
    sharp = Statistics.of(Expectations.of(np.ones((1, K)), np.ones((1, K)), posterior), maps)
    update = update_prior(prior, sharp, maps)
    assert update.atoms.shape.max() == SHAPE_BOUNDS[1]
    notes = bounds_met(update, maps)
    assert len(notes) == 1 and "atom_shape_prior reached its bound" in notes[0]
    assert bounds_met(update_prior(prior, statistics, maps), maps) == ()
    held = update_prior(prior, sharp, maps, hyperprior=0.01)
    assert bounds_met(held, maps) == () and held.atoms.shape.max() < 1e4


def test_best_order_undoes_a_permutation():
    expected = draw_expectations(0, 200)
    prior = Priors.of(
        np.array([[1.0, 10.0, 100.0]]), np.array([[0.1, 0.5, 20.0]]), np.ones((1, 1, 1))
    )
    order = best_order(prior, expected)
    shuffled = np.array([2, 0, 1])
    again = best_order(prior, expected.of_components(order).of_components(shuffled))
    np.testing.assert_array_equal(again, np.argsort(shuffled))
    flat = Priors.of(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1, 1)))
    np.testing.assert_array_equal(best_order(flat, expected), np.arange(K))
