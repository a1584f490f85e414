"""Posteriors by draws: what they hold, and that they are the same wherever a sample stands."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning

from seminmf import BayesianSkellamSNMF, SkellamSNMF, load, sample_skellam_snmf
from seminmf._algorithms import gibbs
from seminmf._estimators import sampled
from seminmf._estimators.runs import matched_cosines
from seminmf._kernels.gibbs.counts import draw_count_rows

K = 3


def simulated(seed=0, n_samples=150, n_features=12, noise=0.5, shape=0.5, gaps=0.0, centre=0.0):
    """X, and the amounts, components of sum 1 and means behind it."""
    rng = np.random.default_rng(seed)
    amounts = rng.gamma(shape, 5.0, (n_samples, K))
    components = rng.normal(size=(K, n_features))
    components /= np.abs(components).sum(axis=1, keepdims=True)
    means = amounts @ components + centre
    X = means + noise * rng.normal(size=means.shape)
    hidden = rng.random(X.shape) < gaps
    return np.where(hidden, np.nan, X), amounts, components, means


def growing(seed=0, n_samples=300, n_features=12, gaps=0.0, M=3.0):
    """The same, where cells are differences of counts over M, and so is their noise."""
    _, amounts, components, means = simulated(seed, n_samples, n_features)
    rng = np.random.default_rng([seed, 1])
    rates = (amounts @ np.maximum(sign * components, 0) for sign in (1, -1))
    positive, negative = (rng.poisson(M * rate) for rate in rates)
    hidden = rng.random(means.shape) < gaps
    return np.where(hidden, np.nan, (positive - negative) / M), amounts, components, means


def model(**options):
    return BayesianSkellamSNMF(K, **{"random_state": 0, "n_jobs": 1, "max_iter": 800, **options})


@pytest.fixture(scope="module")
def plain():
    X, *truth = simulated()
    return model().fit(X), X, truth


def order_of(found, components):
    lengths = np.linalg.norm(found, axis=1)[:, None] * np.linalg.norm(components, axis=1)
    return np.argmax(found @ components.T / lengths, axis=1)


def share_inside(interval, truth):
    return np.mean((interval.lower <= truth) & (truth <= interval.upper))


def test_it_is_the_default_for_real_data(plain):
    fitted, *_ = plain
    assert fitted.posterior_ == "correlated"
    assert fitted.converged_
    assert fitted.activation_shape_prior_.shape == (K,)
    assert np.all(np.abs(np.log(fitted.activation_shape_prior_ / 0.5)) < np.log(2))


def test_truth_is_found_and_held():
    """Of 90 % intervals of several data sets, about so many hold the truth."""
    held = []
    for seed in range(4):
        X, amounts, components, means = simulated(seed)
        fitted = model().fit(X)
        assert matched_cosines(fitted.components_, components).min() > 0.98
        order = order_of(fitted.components_, components)
        intervals = fitted.interval(0.9)
        held.append(
            [
                share_inside(intervals.activations, amounts[:, order]),
                share_inside(intervals.amounts, amounts[:, order]),
                share_inside(intervals.components, components[order]),
                share_inside(intervals.cells, means),
            ]
        )
    shares = np.mean(held, axis=0)
    assert np.all(shares > 0.82)
    assert np.all(shares < 0.97)


def test_hidden_cells_are_held():
    X, *_, means = simulated(5, gaps=0.2)
    fitted = model().fit(X)
    filled, lower, upper = fitted.impute(X, return_interval=True)
    assert_array_equal(filled, fitted.impute(X))
    gaps = np.isnan(X)
    rng = np.random.default_rng(0)
    new = means + 0.5 * rng.normal(size=means.shape)
    assert 0.84 < np.mean((lower <= new) & (new <= upper), where=gaps) < 0.95
    assert np.sqrt(np.mean((filled - means)[gaps] ** 2)) < 0.5


def test_samples_know_nothing_of_each_other(plain):
    fitted, X, _ = plain
    assert_array_equal(fitted.transform(X), fitted.activations_)
    order = np.random.default_rng(0).permutation(len(X))
    assert_array_equal(fitted.transform(X[order]), fitted.activations_[order])
    assert_array_equal(fitted.transform(X[:7]), fitted.activations_[:7])


def test_threads_change_nothing():
    X, *_ = simulated(1, n_samples=3000, n_features=6)
    alone, together = (model(max_iter=20, n_jobs=n_jobs).fit(X) for n_jobs in (1, 2))
    assert_array_equal(alone.activations_, together.activations_)
    assert_array_equal(alone.components_, together.components_)


def test_units_change_nothing():
    X, *_ = simulated(2)
    here, there = model(max_iter=100).fit(X), model(max_iter=100).fit(2.0**-40 * X)
    assert_allclose(there.components_, here.components_, rtol=1e-6, atol=1e-9)
    assert_allclose(there.activations_ * 2.0**40, here.activations_, rtol=1e-6, atol=1e-9)
    assert_allclose(there.noise_ * 2.0**40, here.noise_, rtol=1e-6)


def test_float32_gives_almost_the_same():
    X, *_ = simulated(2)
    single = model().fit(X.astype(np.float32))
    assert single.activations_.dtype == single.components_.dtype == np.float32
    assert matched_cosines(single.components_, model().fit(X).components_).min() > 0.995


@pytest.mark.parametrize("grows", [False, True])
def test_the_objective_is_that_of_the_state(monkeypatch, grows):
    """What a sweep says by its sums is what the cells say one by one."""
    told, original = [], sampled._sampled

    def watched(*arguments):
        result, sampling = original(*arguments)
        told.append((result.objectives[-1], gibbs.evaluate(sampling, result.state)))
        assert (sampling.growth is not None) == grows
        return result, sampling

    monkeypatch.setattr(sampled, "_sampled", watched)
    X, *_ = growing(3, gaps=0.1) if grows else simulated(3, gaps=0.1, centre=2.0)
    model(max_iter=60, fit_intercept=True).fit(X)
    assert told[0][0] == pytest.approx(told[0][1], rel=1e-9)


def test_components_are_held_where_noise_grows():
    """Noise like that of counts: intervals of components would hold far less without it."""
    held, without = [], []
    for seed in range(6):
        X, _, components, _ = growing(seed, 400)
        found = model().fit(X)
        assert found._growing_noise > 0.2
        held.append(components_held(found, components))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gibbs, "with_growth", lambda sampling, state: sampling)
            without.append(components_held(model().fit(X), components))
    assert 0.84 < np.mean(held) < 0.97
    assert np.mean(without) < np.mean(held) - 0.05


def components_held(found, components):
    """Share of the entries in 90 % intervals."""
    order = order_of(found.components_, components)
    return share_inside(found.interval(0.9).components, components[order])


def test_constant_features_tell_nothing():
    """Also where an intercept leaves nothing of them."""
    X, _, components, _ = simulated(4)
    constant = np.column_stack([X, np.full(len(X), 7.0)])
    found = model(fit_intercept=True).fit(constant)
    own = np.column_stack([components, np.zeros(K)])
    assert matched_cosines(found.components_, own).min() > 0.98
    assert found.intercept_[-1] == pytest.approx(7.0)


def test_noise_that_does_not_grow_is_told():
    assert [model(max_iter=300).fit(simulated(seed)[0])._growing_noise for seed in range(4)] == [
        0.0
    ] * 4


def test_growing_noise_is_kept_in_files_and_units(tmp_path):
    X, *_ = growing(1)
    found = model(max_iter=300).fit(X)
    found.save(tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    assert found._growing_noise > 0
    assert_array_equal(loaded.transform(X), found.transform(X))
    gappy = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    for one, other in zip(
        *(each.impute(gappy, return_interval=True, random_state=0) for each in (found, loaded)),
        strict=True,
    ):
        assert_array_equal(one, other)
    large = model(max_iter=300).fit(1024 * X)
    assert_allclose(large.transform(1024 * X), 1024 * found.transform(X), rtol=1e-6)
    assert_allclose(found.transform(X)[5:6], found.transform(X[5:6]))


def test_intercept_is_found():
    centre = np.linspace(-8, 8, 12)
    X, *_, means = simulated(4, centre=centre, noise=0.2)
    fitted = model(fit_intercept=True).fit(X)
    assert_allclose(fitted.intercept_, centre, atol=0.5)
    assert share_inside(fitted.interval(0.9).cells, means) > 0.8


def test_positive_components_are_positive():
    X, _, components, _ = simulated(6)
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, 5.0, (150, K)) @ np.abs(components) + 0.2 * rng.normal(size=X.shape)
    fitted = model(positive_components=True).fit(X)
    assert fitted.posterior_ == "correlated"
    assert fitted.components_.min() >= 0
    assert fitted.interval().components.lower.min() >= 0
    assert matched_cosines(fitted.components_, np.abs(components)).min() > 0.97


def test_frozen_components_stay():
    X, amounts, components, _ = simulated(7)
    atoms = np.full((2, K, 12), np.nan)
    atoms[:, 0] = np.maximum([components[0], -components[0]], 1e-12) * 100
    fitted = model().fit(X, atom_shape=atoms, frozen=[0])
    assert_allclose(fitted.components_[0], components[0], atol=1e-6)
    interval = fitted.interval(0.9)
    assert_allclose(interval.components.upper[0], interval.components.lower[0], atol=1e-9)
    assert np.corrcoef(fitted.activations_[:, 0], amounts[:, 0])[0, 1] > 0.9


def test_known_noise_of_cells_counts():
    rng = np.random.default_rng(8)
    _, amounts, components, means = simulated(8)
    noise = 10 ** rng.uniform(-1.3, 0.7, size=means.shape)
    X = means + noise * rng.normal(size=means.shape)
    fitted = model().fit(X, cell_noise=noise)
    order = order_of(fitted.components_, components)
    assert matched_cosines(fitted.components_, components).min() > 0.98
    assert 0.8 < share_inside(fitted.interval(0.9).activations, amounts[:, order]) < 0.97
    assert_array_equal(fitted.transform(X, cell_noise=noise), fitted.activations_)
    X[0, 0] = np.nan
    _, lower, upper = fitted.impute(X, return_interval=True, cell_noise=noise)
    assert upper[0, 0] - lower[0, 0] > 2 * noise[0, 0]


def test_given_priors_stay():
    X, *_ = simulated(9)
    fitted = model(activation_shape_prior=2.0, activation_rate_prior=0.01).fit(X)
    assert_allclose(fitted.activation_shape_prior_, 2.0)
    assert_allclose(fitted.activation_rate_prior_, 0.01, rtol=1e-6)


def test_weights_count_as_samples():
    X, *_ = simulated(10)
    weights = np.ones(len(X))
    weights[:50] = 0
    fitted = model().fit(X, sample_weight=weights)
    assert matched_cosines(fitted.components_, model().fit(X[50:]).components_).min() > 0.99


def test_draws_are_of_one_order(plain):
    """Components of all draws look like their mean."""
    fitted, *_ = plain
    activations, atoms = fitted.sample(50, random_state=0)
    assert activations.shape == (50, 150, K)
    components = atoms[:, 0] - atoms[:, 1]
    assert_allclose(np.abs(components).sum(axis=2), 1.0)
    for draw in components:
        cosines = np.diag(draw @ fitted.components_.T)
        cosines = cosines / np.linalg.norm(draw, axis=1)
        assert np.all(cosines / np.linalg.norm(fitted.components_, axis=1) > 0.9)


def test_files_have_the_draws(plain, tmp_path):
    fitted, X, _ = plain
    fitted.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.posterior_ == "correlated"
    assert_array_equal(again.transform(X), fitted.activations_)
    for name in ("activations", "components", "amounts", "cells"):
        assert_array_equal(getattr(again.interval(), name), getattr(fitted.interval(), name))


def test_checkpoints_lead_to_the_same_draws(tmp_path, monkeypatch):
    X, *_ = simulated(11)
    expected = model(max_iter=60).fit(X)
    steps, step = [], gibbs.step

    def interrupted(problem, state):
        steps.append(state.age)
        if len(steps) == 40:
            raise KeyboardInterrupt
        return step(problem, state)

    monkeypatch.setattr(gibbs, "step", interrupted)
    path = tmp_path / "fit.checkpoint"
    with pytest.warns(ConvergenceWarning, match="Interrupted after 39 sweeps"):
        cut = model(max_iter=60).fit(X, checkpoint=path)
    assert cut.stop_reason_ == "interrupted"
    assert cut.posterior_ == "correlated"
    assert np.isfinite(cut.interval().activations.upper).all()
    found = model(max_iter=60).fit(X, checkpoint=path)
    assert_array_equal(found.components_, expected.components_)
    assert_array_equal(found.activations_, expected.activations_)
    assert len(steps) < 90


def test_draws_that_have_not_settled_are_said():
    X, *_ = simulated(12, shape=8.0, noise=2.0)
    with pytest.warns(ConvergenceWarning, match="have not settled"):
        model(max_iter=6).fit(X)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"noise": None}, "for real numbers in a model without a component for noise"),
        ({"likelihood": "integer", "check_integer": False}, "with check_integer=False"),
        ({"batch_size": 10}, "with batch_size"),
        ({"atom_shape_prior": 2.0}, "with an atom_shape_prior other than 1"),
        ({"activation_shape_prior": np.ones((30, K))}, "for each sample"),
    ],
)
def test_where_it_cannot_be_had(options, why):
    X = simulated(0, n_samples=30)[0].round()
    with pytest.raises(ValueError, match=f"posterior must be .*{why}; found 'correlated'"):
        model(posterior="correlated", **options).fit(X)
    assert model(max_iter=5, **options).fit(X).posterior_ == "mean-field"


def test_batches_go_on_with_a_mean_field():
    X, *_ = simulated(13)
    fitted = model(max_iter=50).fit(X)
    fitted.partial_fit(X[:20])
    assert fitted.posterior_ == "mean-field"
    assert fitted.interval().activations.upper.shape == (20, K)


# --- integers -----------------------------------------------------------------------------------


def test_integers_are_held():
    """How much of a component cancels is known least, and the chain is slow to find out."""
    held = []
    for seed in range(4):
        X, atoms, activations = sample_skellam_snmf(
            150, 10, 2, activation_shape=0.5, atom_shape=0.5, missing=0.1, random_state=seed
        )
        fitted = counts_model(2, max_iter=1500).fit(X)
        assert fitted.posterior_ == "correlated"
        components = atoms[0] - atoms[1]
        order = order_of(fitted.components_, components)
        intervals = fitted.interval(0.9)
        held.append(
            [
                share_inside(intervals.activations, activations[:, order]),
                share_inside(intervals.components, components[order]),
                share_inside(intervals.cells, activations @ components),
            ]
        )
        assert_array_equal(fitted.transform(X), fitted.activations_)
    shares = np.mean(held, axis=0)
    assert np.all(shares > [0.8, 0.72, 0.82])
    assert np.all(shares < 0.97)


def counts_model(n_components, **options):
    options = {"random_state": 0, "n_jobs": 1, "max_iter": 800, **options}
    return BayesianSkellamSNMF(n_components, likelihood="integer", **options)


def test_hidden_integers_are_held():
    X, *_ = sample_skellam_snmf(200, 10, 2, activation_shape=0.5, random_state=5)
    hidden = np.random.default_rng(0).random(X.shape) < 0.2
    _, lower, upper = (
        counts_model(2)
        .fit(np.where(hidden, np.nan, X))
        .impute(np.where(hidden, np.nan, X), return_interval=True)
    )
    # Intervals of integers hold more than they say.
    assert 0.88 < np.mean((lower <= X) & (X <= upper), where=hidden) < 0.98


def test_ranks_of_the_truth_are_uniform():
    """Simulation-based calibration: with the prior given, the sampler is exact (Talts 2018)."""
    n_problems, ranks = 60, []
    given = {"activation_shape_prior": 1.5, "activation_rate_prior": 0.1, "atom_shape_prior": 1.0}
    for seed in range(n_problems):
        X, atoms, activations = sample_skellam_snmf(
            6, 3, 1, activation_shape=1.5, activation_rate=0.1, atom_shape=1.0, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = counts_model(1, max_iter=500, **given).fit(X)
        drawn, drawn_atoms = fitted.sample(200, random_state=0)
        ranks.append(
            [
                np.mean(drawn.sum(axis=1)[:, 0] < activations.sum()),
                np.mean(drawn[:, 0, 0] < activations[0, 0]),
                np.mean(drawn_atoms[:, 0, 0, 0] < atoms[0, 0, 0]),
                np.mean(drawn_atoms[:, 1, 0, 2] < atoms[1, 0, 2]),
            ]
        )
    for quantity in np.array(ranks).T:
        assert kstest(quantity, "uniform").pvalue > 1e-3


def test_what_a_difference_of_counts_is_made_of():
    """The smaller of two counts, given their difference, has a Bessel distribution."""
    rng = np.random.default_rng(0)
    rates = np.array([3.0, 2.0])
    first, second = rng.poisson(rates[:, None], (2, 400_000))
    atoms = rates[:, None, None] / rates.sum()
    found = np.zeros(12)
    X = np.full((1, 1), 2.0)
    for seed in range(20_000):
        counts, totals = np.zeros((2, 1, 1)), np.zeros((2, 1))
        row = np.full((1, 1), rates.sum())
        arguments = (atoms, np.ones(1), np.ones(1), np.ones(1))
        draw_count_rows(X, *arguments, seed, row, counts, totals)
        found[min(int(counts[1, 0, 0]), 11)] += 1
    positive = np.bincount(second[first - second == 2], minlength=12)[:12]
    assert_allclose(found / found.sum(), positive / positive.sum(), atol=0.02)


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e30, 1e200])
def test_known_noise_out_of_all_proportion(size):
    """Cells that are known exactly, or not at all: nothing is endless, and all is finite."""
    X, *_ = simulated(n_samples=30)
    for estimator in (SkellamSNMF, BayesianSkellamSNMF):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = estimator(2, max_iter=100, random_state=0).fit(X, cell_noise=size)
        assert np.isfinite(model.activations_).all() and np.isfinite(model.components_).all()
        assert np.isfinite(model.impute(X, cell_noise=size)).all()


def test_components_that_are_nearly_alike():
    """One feature outweighs all: activations must not grow from one draw to the next."""
    X = load_wine().data
    X = X - X.mean(axis=0)
    found = BayesianSkellamSNMF(5, max_iter=400, random_state=0, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found.fit(X)
    assert found.r2_ > 0.5
    assert found.activations_.max() < 100 * np.abs(X).max()
