"""SkellamSNMF: invariances, starts, what it does after the fit, and how it behaves as a tool."""

import copy
import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from seminmf import SkellamSNMF
from seminmf._algorithms import em
from seminmf.stats import skellam

LIKELIHOODS = ["real", "integer"]
K = 3


def clusters(n_samples=60, n_features=8, seed=0):
    """Signed, noisy data around K rays, and the ray of each sample."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0.0, 1.0, (K, n_features))
    labels = np.arange(n_samples) % K
    sizes = rng.uniform(20.0, 60.0, (n_samples, 1))
    return sizes * centres[labels] + rng.normal(0.0, 2.0, (n_samples, n_features)), labels


def with_gaps(X, share=0.2, seed=1):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def data_for(likelihood, **options):
    X, _ = clusters(**options)
    return X.round() if likelihood == "integer" else X


def model(likelihood="real", **options):
    """An estimator that converges soon, if not far; EM if an acceleration is given."""
    common = {"n_components": K, "tol": 1e-3, "max_iter": 20_000, "random_state": 0, "n_jobs": 1}
    common["activation_rate_prior"] = 1e-3
    if likelihood == "real":
        common["dispersion"] = 0.0  # with noise: test_noise.py
    if "acceleration" in options:
        common["solver"] = "em"
    return SkellamSNMF(likelihood=likelihood, **(common | options))


def fit_quietly(estimator, X, **options):
    """Fit where the number of iterations is not the point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, **options)


@pytest.fixture(scope="module", params=LIKELIHOODS)
def fitted(request):
    """A converged fit to data with gaps, and the data."""
    X = with_gaps(data_for(request.param))
    return model(request.param, tol=1e-6).fit(X), X


# --- Invariances ---


@pytest.mark.parametrize("factor", [1e-140, 1e-6, 1e-3, 7.0, 1e6, 1e140])
def test_unit_of_real_data_does_not_matter(factor):
    """Without acceleration, which amplifies rounding."""
    X, _ = clusters()
    X = with_gaps(X)
    here, there = (model(acceleration=None).fit(scale * X) for scale in (1.0, factor))
    assert there.n_iter_ == here.n_iter_
    assert_allclose(there.components_, here.components_, rtol=1e-6, atol=1e-12)
    assert_allclose(there.activations_, factor * here.activations_, rtol=1e-6, atol=1e-9 * factor)
    assert_allclose(there.objectives_, factor * here.objectives_, rtol=1e-9)
    assert there.dispersion_ == pytest.approx(factor * here.dispersion_, rel=1e-6)
    assert_array_equal(there.predict(factor * X), here.predict(X))
    shift = np.log(factor)  # of a density
    assert there.score(factor * X) == pytest.approx(here.score(X) - shift, rel=1e-6)


@pytest.mark.parametrize("exponent", [-400, -3, 1, 400])
def test_powers_of_two_change_no_bit(exponent):
    X, _ = clusters()
    factor = 2.0**exponent
    here, there = model().fit(X), model().fit(factor * X)
    assert_array_equal(there.atoms_, here.atoms_)
    assert_array_equal(there.activations_, factor * here.activations_)
    assert_array_equal(there.transform(factor * X), factor * here.transform(X))


@pytest.fixture(params=[(None, 60), ("squarem", 15), ("parabolic", 15)], ids=str)
def few_iterations(request):
    """So few that rounding is not amplified too much."""
    acceleration, max_iter = request.param
    return {"acceleration": acceleration, "max_iter": max_iter, "tol": 0}


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
class TestSymmetry:
    """Symmetries of the problem, from starts that have them too."""

    @pytest.fixture(autouse=True)
    def take_few_iterations(self, few_iterations):
        self.options = few_iterations

    def start(self, n_samples, n_features=8):
        rng = np.random.default_rng(3)
        atoms = rng.dirichlet(np.ones(2 * n_features), K).reshape(K, 2, n_features)
        return atoms.swapaxes(0, 1), rng.gamma(2.0, 20.0, (n_samples, K))

    def fit(self, X, atoms, activations, likelihood, **options):
        estimator = model(likelihood, **self.options)
        return fit_quietly(estimator, X, atoms=atoms, activations=activations, **options)

    def test_signs_flip_together(self, likelihood):
        X = with_gaps(data_for(likelihood))
        atoms, activations = self.start(len(X))
        here = self.fit(X, atoms, activations, likelihood)
        there = self.fit(-X, atoms[::-1], activations, likelihood)
        assert_allclose(there.components_, -here.components_, rtol=1e-9, atol=1e-12)
        assert_allclose(there.activations_, here.activations_, rtol=1e-9)

    def test_order_of_samples(self, likelihood):
        X = with_gaps(data_for(likelihood))
        atoms, activations = self.start(len(X))
        order = np.random.default_rng(4).permutation(len(X))
        here = self.fit(X, atoms, activations, likelihood)
        there = self.fit(X[order], atoms, activations[order], likelihood)
        assert_allclose(there.components_, here.components_, rtol=1e-7, atol=1e-10)
        assert_allclose(there.activations_, here.activations_[order], rtol=1e-7, atol=1e-9)

    def test_order_of_features(self, likelihood):
        X = with_gaps(data_for(likelihood))
        atoms, activations = self.start(len(X))
        order = np.random.default_rng(5).permutation(X.shape[1])
        here = self.fit(X, atoms, activations, likelihood)
        there = self.fit(X[:, order], atoms[:, :, order], activations, likelihood)
        assert_allclose(there.components_, here.components_[:, order], rtol=1e-7, atol=1e-10)
        assert_allclose(there.activations_, here.activations_, rtol=1e-7, atol=1e-9)

    def test_integer_weight_is_a_repeated_sample(self, likelihood):
        X = with_gaps(data_for(likelihood))
        atoms, activations = self.start(len(X))
        weights = np.arange(len(X)) % 3
        rows = np.repeat(np.arange(len(X)), weights)
        here = self.fit(X[rows], atoms, activations[rows], likelihood)
        there = self.fit(X, atoms, activations, likelihood, sample_weight=weights)
        assert_allclose(there.components_, here.components_, rtol=1e-7, atol=1e-10)
        assert_allclose(there.activations_[rows], here.activations_, rtol=1e-7, atol=1e-9)
        assert_allclose(there.objectives_, here.objectives_, rtol=1e-10)
        assert there.dispersion_ == pytest.approx(here.dispersion_, rel=1e-7)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_layout_of_the_array(likelihood):
    X = data_for(likelihood)
    here = model(likelihood).fit(X)
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.tolist()):
        assert_array_equal(model(likelihood).fit(other).atoms_, here.atoms_)


def test_integer_likelihood_tends_to_the_real_one():
    """ln P is −D for large numbers, but for lower orders: the fits agree ever more."""
    X, _ = clusters()
    limit = fit_quietly(model(max_iter=300, tol=0), X)
    errors = []
    for factor in (1.0, 1e2, 1e4):
        integers = (factor * X).round()
        found = fit_quietly(model("integer", max_iter=300, tol=0), integers)
        errors.append(np.abs(found.components_ - limit.components_).max())
    assert errors[0] > 3 * errors[1] > 9 * errors[2]
    assert errors[2] < 1e-3


def test_clusters_are_found():
    X, labels = clusters()
    found = model(n_init=3).fit(X).predict(X)
    assert adjusted_rand_score(labels, found) > 0.95


# --- Starts and frozen components ---


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_given_starts_are_used(likelihood):
    X = data_for(likelihood)
    rng = np.random.default_rng(6)
    atoms = rng.uniform(0.1, 1.0, (2, K, X.shape[1]))
    activations = rng.uniform(1.0, 50.0, (len(X), K))
    with pytest.warns(ConvergenceWarning):
        started = model(likelihood, max_iter=0).fit(X, atoms=atoms, activations=activations)
    assert_allclose(started.atoms_, atoms / atoms.sum(axis=(0, 2), keepdims=True), rtol=1e-14)
    assert_allclose(started.activations_, activations, rtol=1e-14)


def test_layout_of_starts_does_not_matter():
    X, _ = clusters()
    rng = np.random.default_rng(6)
    starts = {
        "atoms": rng.uniform(0.1, 1.0, (2, K, X.shape[1])),
        "activations": rng.uniform(1.0, 50.0, (len(X), K)),
    }
    here = fit_quietly(model(max_iter=5), X, **starts)
    turned = {name: np.asfortranarray(start) for name, start in starts.items()}
    there = fit_quietly(model(max_iter=5), X, **turned)
    assert_allclose(there.objectives_, here.objectives_, rtol=1e-12)
    assert_allclose(there.activations_, here.activations_, rtol=1e-9)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("shape", [0.5, 1.0, 3.0])
def test_start_with_zeros(likelihood, shape):
    """Below shapes of 1 they are lifted to the floor; above, they have a density of 0."""
    X = data_for(likelihood)
    signed = np.random.default_rng(7).normal(size=(K, X.shape[1]))
    activations = np.ones((len(X), K))
    activations[::2, 0] = 0.0
    estimator = model(likelihood, activation_shape_prior=shape, atom_shape_prior=shape, max_iter=20)
    trace = fit_quietly(estimator, X, atoms=signed, activations=activations).objectives_
    assert np.isfinite(trace[1:]).all()
    assert np.isfinite(trace[0]) or (shape > 1 and trace[0] == -np.inf)
    assert np.diff(trace).min() >= -1e-10 * np.abs(trace[1:]).max()


def test_start_arrays_stay_as_they_are():
    X, _ = clusters()
    X = with_gaps(X)
    rng = np.random.default_rng(6)
    arrays = {
        "atoms": rng.uniform(0.1, 1.0, (2, K, X.shape[1])),
        "activations": rng.uniform(1.0, 50.0, (len(X), K)),
        "sample_weight": rng.uniform(0.5, 1.0, len(X)),
        "X": X,
    }
    before = {name: array.copy() for name, array in arrays.items()}
    model().fit(**arrays)
    for name, array in arrays.items():
        assert_array_equal(array, before[name])


def test_signed_atoms_are_split():
    X, _ = clusters()
    signed = np.random.default_rng(7).normal(size=(K, X.shape[1]))
    with pytest.warns(ConvergenceWarning):
        started = model(max_iter=0).fit(X, atoms=signed)
    size = np.abs(signed).sum(axis=1, keepdims=True)
    assert_allclose(started.components_, signed / size, rtol=1e-14)
    assert (started.atoms_.min(axis=0) == 0).all()


def test_nan_atoms_are_initialised():
    X, _ = clusters()
    atoms = np.random.default_rng(8).dirichlet(np.ones(16), K).reshape(K, 2, 8).swapaxes(0, 1)
    atoms[:, 1] = np.nan
    with pytest.warns(ConvergenceWarning):
        started = model(max_iter=0).fit(X, atoms=atoms)
    assert np.isfinite(started.atoms_).all()
    assert_allclose(started.atoms_.sum(axis=(0, 2)), 1.0)
    assert_allclose(started.atoms_[:, [0, 2]], atoms[:, [0, 2]], rtol=1e-14)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("frozen", [[0, 2], np.array([True, False, True])])
def test_frozen_components_keep_their_atoms(likelihood, frozen):
    X = with_gaps(data_for(likelihood))
    counts = np.random.default_rng(9).multinomial(2**20, np.full(16, 1 / 16), K)
    atoms = (counts / 2**20).reshape(K, 2, 8).swapaxes(0, 1)
    atoms[:, 1] = np.nan
    found = model(likelihood).fit(X, atoms=atoms, frozen=frozen)
    assert_array_equal(found.atoms_[:, [0, 2]], atoms[:, [0, 2]])
    free = fit_quietly(model(likelihood, max_iter=0), X, atoms=atoms, frozen=frozen)
    assert np.abs(found.components_ - free.components_)[1].max() > 1e-2


def test_all_components_frozen_leaves_transform():
    X, _ = clusters()
    known = model().fit(X)
    found = model(tol=1e-8).fit(X, atoms=known.atoms_, frozen=range(K))
    assert_allclose(found.atoms_, known.atoms_, rtol=1e-14)
    assert_allclose(found.activations_, known.transform(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("init", ["random", "kmeans", "svd", "prior"])
def test_inits_work(likelihood, init):
    X = with_gaps(data_for(likelihood))
    found = model(likelihood, init=init).fit(X)
    assert found.converged_
    best = model(likelihood, random_state=1, n_init=4).fit(X).objective_
    assert found.objective_ > best - 0.01 * abs(best)
    again = model(likelihood, init=init).fit(X)
    assert_array_equal(again.atoms_, found.atoms_)


@pytest.mark.parametrize("init", ["random", "kmeans", "svd", "prior"])
def test_inits_do_not_depend_on_the_unit(init):
    X, _ = clusters()
    here = fit_quietly(model(init=init, max_iter=0), X)
    there = fit_quietly(model(init=init, max_iter=0), 2.0**20 * X)
    assert_allclose(there.components_, here.components_, rtol=1e-9, atol=1e-12)


def test_more_components_than_distinct_samples():
    X = np.repeat([[3.0, -1.0, 0.5], [-2.0, 4.0, 1.0]], 5, axis=0)
    for init in ("random", "kmeans", "svd", "prior"):
        found = fit_quietly(model(n_components=6, init=init, max_iter=500), X)
        assert_allclose(found.inverse_transform(found.transform(X)), X, atol=0.1)


# --- Several starts ---


def test_best_of_several_starts_is_kept():
    X, _ = clusters()
    singles = []
    random = np.random.RandomState(3)
    for _ in range(4):
        singles.append(fit_quietly(model(random_state=random, max_iter=40), X).objective_)
    best = fit_quietly(model(random_state=3, max_iter=40, n_init=4), X)
    assert len(set(singles)) > 1
    assert best.objective_ == max(singles)


def test_stability():
    X, _ = clusters()
    assert np.isnan(model().fit(X).stability_)
    assert model(n_init=3, tol=1e-4).fit(X).stability_ > 0.95
    noise = np.random.default_rng(0).normal(size=(60, 8))
    found = fit_quietly(model(n_components=5, n_init=4, max_iter=300), noise)
    assert -1 <= found.stability_ < 0.9


# --- Activations of given samples ---


def test_activations_are_those_of_transform(fitted):
    found, X = fitted
    assert found.converged_
    scale = found.activations_.max()
    assert_allclose(found.activations_, found.transform(X), rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("shape", [0.6, 2.5])
def test_activations_are_those_of_transform_for_other_shapes(likelihood, shape):
    X = with_gaps(data_for(likelihood))
    priors = {"activation_shape_prior": shape, "activation_rate_prior": 0.05}
    found = model(likelihood, tol=1e-6, **priors).fit(X)
    scale = found.activations_.max()
    assert found.converged_
    assert_allclose(found.activations_, found.transform(X), rtol=1e-6, atol=1e-6 * scale)


def test_transform_does_not_know_the_batch(fitted):
    found, X = fitted
    whole = found.transform(X)
    scale = whole.max()
    subset = [5, 3, 41]
    assert_allclose(found.transform(X[subset]), whole[subset], rtol=1e-12, atol=1e-12 * scale)
    assert_allclose(found.transform(X[::-1]), whole[::-1], rtol=1e-12, atol=1e-12 * scale)
    for j in (0, 17):
        assert_allclose(found.transform(X[[j]])[0], whole[j], rtol=1e-12, atol=1e-12 * scale)
    # Not even its largest value, which is what the unit of the computation could come from.
    mixed = np.vstack([X[:1], 1e6 * X[1:2]])
    assert_allclose(found.transform(mixed)[0], whole[0], rtol=1e-12, atol=1e-12 * scale)


@pytest.mark.parametrize("factor", [1e-140, 1e-3, 1e3, 1e140])
def test_transform_does_not_know_the_unit(factor):
    """Nor what data were fitted: with shapes of 1, real activations grow with the sample."""
    X = with_gaps(clusters()[0])
    found = fit_quietly(model(max_iter=200), X)
    whole = found.transform(X)
    scale = factor * whole.max()
    assert_allclose(found.transform(factor * X), factor * whole, rtol=1e-6, atol=1e-9 * scale)


def row_problem(found, x):
    """Minus the objective of one sample's activations, with its gradient."""
    observed = ~np.isnan(x)
    atoms, x = found.atoms_[:, :, observed], x[observed]

    def value(activations):
        rate0, rate1 = activations @ atoms
        if found.likelihood == "integer":
            fit = skellam.logpmf(x, rate0, rate1).sum()
        else:
            root = np.sqrt(x**2 + 4 * rate0 * rate1)
            side = np.where(x < 0, rate1, rate0)
            logarithm = np.abs(x) * np.log((np.abs(x) + root) / (2 * side))
            fit = np.sum(root - rate0 - rate1 - logarithm)
        return found.activation_rate_prior * activations.sum() - fit

    return value


def slope_of(found, x, activations):
    """∂(−f)/∂λ_k = Σ_si θ (1 − U) + β, with U from its definition."""
    rate0, rate1 = activations @ found.atoms_
    if found.likelihood == "integer":
        # P'(x)/P(x): the mean of a Poisson count given the difference.
        here = skellam.pmf(x, rate0, rate1)
        u0 = skellam.pmf(x - 1, rate0, rate1) / here
        u1 = skellam.pmf(x + 1, rate0, rate1) / here
    else:
        # Not by 0 / 0 where a rate vanishes.
        big = (np.abs(x) + np.sqrt(x**2 + 4 * rate0 * rate1)) / 2
        side = np.where(x < 0, rate1, rate0)
        u0, u1 = np.where(x < 0, [side / big, big / side], [big / side, side / big])
        u0, u1 = np.where(x < 0, rate1 / big, u0), np.where(x < 0, u1, rate0 / big)
    gap = np.isnan(x)
    slopes = np.where(gap, 0.0, [1 - u0, 1 - u1])
    return np.einsum("si,ski->k", slopes, found.atoms_) + found.activation_rate_prior


def test_transform_reaches_a_stationary_point(fitted):
    found, X = fitted
    activations = found.transform(X)
    for x, values in zip(X[:20], activations, strict=False):
        slope = slope_of(found, x, values)
        free = values > 1e-9 * values.max()
        assert np.abs(slope[free]).max() < 1e-6
        assert slope.min() > -1e-6


def test_nothing_beats_transform_where_the_problem_is_convex():
    X = with_gaps(clusters()[0])
    found = model().fit(X)
    rng = np.random.default_rng(10)
    new = with_gaps(clusters(n_samples=6, seed=2)[0], seed=3)
    for x, values in zip(new, found.transform(new), strict=True):
        problem = row_problem(found, x)
        own = problem(values + 1e-12)
        for _ in range(4):
            start = rng.gamma(1.0, 30.0, K) + 0.1
            other = minimize(problem, start, bounds=[(1e-9, None)] * K, method="L-BFGS-B")
            assert own <= other.fun + 1e-7 * abs(other.fun)


def test_fit_transform_and_fit_predict(fitted):
    found, X = fitted
    for options in ({}, {"max_iter": 7}):
        estimator = clone(found).set_params(**options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            activations, labels = estimator.fit_transform(X), estimator.fit_predict(X)
        scale = activations.max()
        assert_allclose(activations, estimator.transform(X), rtol=1e-6, atol=1e-6 * scale)
        assert_array_equal(labels, estimator.predict(X))


def test_predict_is_the_largest_amount(fitted):
    found, X = fitted
    labels = found.predict(X)
    assert np.issubdtype(labels.dtype, np.integer)
    amounts = found.transform(X) * np.abs(found.components_).sum(axis=1)
    assert_array_equal(labels, amounts.argmax(axis=1))


def test_inverse_transform(fitted):
    found, X = fitted
    activations = found.transform(X)
    expected = activations @ (found.atoms_[0] - found.atoms_[1])
    assert_allclose(found.inverse_transform(activations), expected, rtol=1e-12)


def test_sample_without_data_gets_the_mode_of_its_prior():
    X, _ = clusters()
    X[4] = np.nan
    prior = {"activation_shape_prior": [2.0, 1.0, 4.0], "activation_rate_prior": 0.5}
    with pytest.warns(UserWarning, match="1 samples and 0 features have no observed cell") as seen:
        found = model(**prior, tol=1e-6).fit(X)
    assert len(seen) == 1
    assert_allclose(found.activations_[4], [2.0, 0.0, 6.0], rtol=1e-6, atol=1e-6)


# --- Imputation, shares and scores ---


def test_impute_fills_gaps_only(fitted):
    found, X = fitted
    filled = found.impute(X)
    observed = ~np.isnan(X)
    assert_array_equal(filled[observed], X[observed])
    expected = found.inverse_transform(found.transform(X))
    assert_allclose(filled[~observed], expected[~observed], rtol=1e-9)
    assert np.isnan(X[~observed]).all()


def test_impute_keeps_data_frames(fitted):
    found, X = fitted
    frame = pd.DataFrame(
        X, columns=[f"feature {i}" for i in range(X.shape[1])], index=np.arange(len(X)) + 100
    )
    filled = fit_quietly(clone(found).set_params(max_iter=20), frame).impute(frame)
    assert isinstance(filled, pd.DataFrame)
    assert filled.columns.equals(frame.columns) and filled.index.equals(frame.index)
    assert not filled.isna().any(axis=None)


def test_impute_predicts_hidden_cells():
    X, _ = clusters()
    hidden = with_gaps(X)
    gaps = np.isnan(hidden)
    filled = model(n_init=2, tol=1e-4).fit(hidden).impute(hidden)
    assert np.corrcoef(filled[gaps], X[gaps])[0, 1] > 0.97


def test_sources_sum_to_the_data(fitted):
    found, X = fitted
    shares = found.sources(X)
    assert shares.shape == (*X.shape, K)
    assert_allclose(shares.sum(axis=2), found.impute(X), rtol=1e-9, atol=1e-9)


def test_sources_are_those_of_the_components():
    """With atoms that share no feature, each cell belongs to one component alone."""
    X = np.array([[5.0, -2.0, 0.0, 0.0], [0.0, 0.0, 3.0, -1.0], [4.0, -2.0, 7.0, -2.0]])
    atoms = np.array([[5.0, -2.0, 0.0, 0.0], [0.0, 0.0, 3.0, -1.0]])
    found = model(n_components=2).fit(X, atoms=atoms, frozen=[0, 1])
    shares = found.sources(X)
    assert_allclose(shares[:, :2, 0], X[:, :2], atol=1e-9)
    assert_allclose(shares[:, 2:, 1], X[:, 2:], atol=1e-9)


def test_predict_cells(fitted):
    found, _ = fitted
    table = found.inverse_transform(found.activations_)
    rows, columns = [0, 5, 5], [1, 0, 7]
    assert_allclose(found.predict_cells(rows, columns), table[rows, columns], rtol=1e-9)
    grid = found.predict_cells(np.arange(4)[:, None], np.arange(3))
    assert_allclose(grid, table[:4, :3], rtol=1e-9)


def test_score(fitted):
    """Mean of ln P, or of the saddle-point density −D/φ − ½ ln(2πφr)."""
    found, X = fitted
    X = X[:9]
    rate0, rate1 = np.array([found.transform(X) @ atom for atom in found.atoms_])
    if found.likelihood == "integer":
        cells = skellam.logpmf(X, rate0, rate1)
    else:
        root = np.sqrt(X**2 + 4 * rate0 * rate1)
        side = np.where(X < 0, rate1, rate0)
        divergence = rate0 + rate1 - root + np.abs(X) * np.log((np.abs(X) + root) / (2 * side))
        dispersion = found.dispersion_
        cells = -divergence / dispersion - 0.5 * np.log(2 * np.pi * dispersion * root)
    assert found.score(X) == pytest.approx(np.nanmean(cells), rel=1e-8)


def test_dispersion(fitted):
    """2ΣD over the degrees of freedom; integers bring their own noise."""
    found, X = fitted
    if found.likelihood == "integer":
        assert found.dispersion_ == 1.0
        return
    observed = ~np.isnan(X)
    fit = found.objective_ + found.activation_rate_prior * found.activations_.sum()
    freedom = observed.sum() - K * sum(X.shape)
    assert found.dispersion_ == pytest.approx(-2 * fit / freedom, rel=1e-9)


@pytest.mark.parametrize("method", ["transform", "predict", "impute", "sources", "score"])
def test_layout_does_not_matter_after_the_fit(fitted, method):
    found, X = fitted
    expected = getattr(found, method)(X)
    wide = np.repeat(X, 2, axis=1)
    for other in (np.asfortranarray(X), wide[:, ::2], pd.DataFrame(X), X.tolist()):
        assert_allclose(getattr(found, method)(other), expected, rtol=1e-12, atol=1e-12)


# --- Types, threads, storage ---


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("init", ["random", "kmeans", "svd", "prior"])
def test_float32_stays_and_agrees(likelihood, init):
    X = with_gaps(data_for(likelihood)).round(1)
    if likelihood == "integer":
        X = X.round()
    options = {"init": init, "max_iter": 50, "tol": 0, "acceleration": None}
    double = fit_quietly(model(likelihood, **options), X)
    single = fit_quietly(model(likelihood, **options), X.astype(np.float32))
    small = X.astype(np.float32)
    for value in (
        single.atoms_,
        single.components_,
        single.activations_,
        single.transform(small),
        single.impute(small),
        single.sources(small),
        single.inverse_transform(single.transform(small)),
    ):
        assert value.dtype == np.float32
    assert single.objectives_.dtype == np.float64
    assert_allclose(single.objectives_, double.objectives_, rtol=1e-4)
    assert_allclose(single.components_, double.components_, atol=1e-3)
    scale = double.activations_.max()
    assert_allclose(single.activations_, double.activations_, rtol=1e-3, atol=1e-3 * scale)
    assert single.score(small) == pytest.approx(double.score(X), rel=1e-3)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_float32_trace_is_monotone(likelihood):
    X = data_for(likelihood).astype(np.float32)
    found = model(likelihood).fit(X)
    trace = found.objectives_
    assert np.diff(trace).min() > -1e-6 * np.abs(trace).max()


@pytest.mark.parametrize("solver", ["newton", "em"])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_number_of_threads_changes_no_bit(likelihood, solver, many_tasks):
    X = np.random.default_rng(11).normal(0.0, 9.0, (300, 20)).round()
    X[::7, ::3] = np.nan
    results = []
    for n_jobs in (1, 2, 2):
        options = {"n_components": 6, "solver": solver, "max_iter": 14, "tol": 0}
        found = fit_quietly(model(likelihood, n_jobs=n_jobs, **options), X)
        results.append((found.atoms_, found.activations_, found.objectives_, found.transform(X)))
    for first, other in itertools.product(results[:1], results[1:]):
        for here, there in zip(first, other, strict=True):
            assert_array_equal(here, there)


def test_random_state_decides():
    X, _ = clusters()
    first = fit_quietly(model(max_iter=3), X)
    assert_array_equal(fit_quietly(model(max_iter=3), X).atoms_, first.atoms_)
    other = fit_quietly(model(max_iter=3, random_state=1), X)
    assert not np.array_equal(other.atoms_, first.atoms_)


def test_clone_and_pickle(fitted):
    found, X = fitted
    again = pickle.loads(pickle.dumps(found))
    assert_array_equal(again.transform(X), found.transform(X))
    assert_array_equal(again.objectives_, found.objectives_)
    assert again.score(X) == found.score(X)
    unfitted = pickle.loads(pickle.dumps(clone(found)))
    assert unfitted.get_params() == found.get_params()
    assert not hasattr(unfitted, "atoms_")
    assert_array_equal(unfitted.fit(X).atoms_, found.atoms_)


def test_fit_changes_no_parameter():
    estimator = model(atom_shape_prior=np.full((2, K, 8), 1.5), n_init=np.int64(2))
    before = {name: copy.deepcopy(value) for name, value in estimator.get_params().items()}
    given = estimator.get_params()
    assert estimator.fit(clusters()[0]) is estimator
    for name, value in estimator.get_params().items():
        assert value is given[name]
        assert_array_equal(value, before[name])


def test_pandas_output():
    X, _ = clusters()
    frame = pd.DataFrame(X, columns=list("abcdefgh"), index=np.arange(len(X)) + 7)
    estimator = fit_quietly(model(max_iter=20).set_output(transform="pandas"), frame)
    names = ["skellamsnmf0", "skellamsnmf1", "skellamsnmf2"]
    for table in (estimator.transform(frame), estimator.fit_transform(frame)):
        assert list(table.columns) == names
        assert table.index.equals(frame.index)
    assert list(estimator.feature_names_in_) == list("abcdefgh")
    assert list(estimator.get_feature_names_out()) == names
    # What else rests on transform does not care.
    plain = fit_quietly(model(max_iter=20), X)
    assert estimator.score(frame) == plain.score(X)
    assert_array_equal(estimator.predict(frame), plain.predict(X))
    assert_array_equal(estimator.sources(frame), plain.sources(X))


# --- Ends of a run ---


def test_warns_where_it_did_not_converge():
    X, _ = clusters()
    with pytest.warns(ConvergenceWarning, match="max_iter=5") as seen:
        found = model(max_iter=5).fit(X)
    assert seen[0].filename == __file__
    assert found.n_iter_ == 5 and not found.converged_
    assert found.stop_reason_ == "max_iter"


def test_convergence_is_quiet():
    X, _ = clusters()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = model().fit(X)
    assert found.converged_ and found.n_iter_ < found.max_iter
    assert found.stop_reason_ == "tolerance"


def test_no_tolerance_never_ends_before_its_time():
    """Not even where nothing is left to gain, and rounding makes the objective fall."""
    X = clusters(n_samples=12, n_features=3)[0].round()
    found = fit_quietly(model("integer", n_components=2, max_iter=400, tol=0), X)
    assert found.n_iter_ == 400 and found.stop_reason_ == "max_iter"
    window = found.objectives_[20:] - found.objectives_[:-20]
    assert window.min() <= 0


def test_smaller_tolerance_goes_further():
    X, _ = clusters()
    runs = [model(tol=tol).fit(X) for tol in (1e-2, 1e-3, 1e-4)]
    assert runs[0].n_iter_ < runs[1].n_iter_ < runs[2].n_iter_
    assert runs[0].objective_ < runs[1].objective_ < runs[2].objective_


@pytest.mark.parametrize(
    ("acceleration", "steps", "n_iter"),
    [(None, 0, 0), (None, 1, 1), (None, 6, 6), ("squarem", 8, 2), ("parabolic", 8, 2)],
)
def test_interruption_keeps_what_there_is(monkeypatch, acceleration, steps, n_iter):
    """A cycle of steps that is cut off leaves no trace."""
    X, _ = clusters()
    options = {"acceleration": acceleration}
    uninterrupted = fit_quietly(model(max_iter=n_iter, tol=0, **options), X)
    step, calls = em.step, itertools.count()

    def interrupted(problem, state):
        if next(calls) == steps:
            raise KeyboardInterrupt
        return step(problem, state)

    monkeypatch.setattr(em, "step", interrupted)
    with pytest.warns(ConvergenceWarning, match=f"Interrupted after {n_iter} iterations"):
        found = model(n_init=3, **options).fit(X)
    assert found.n_iter_ == n_iter and len(found.objectives_) == n_iter + 1
    assert not found.converged_ and found.stop_reason_ == "interrupted"
    assert_array_equal(found.atoms_, uninterrupted.atoms_)
    assert_array_equal(found.activations_, uninterrupted.activations_)
    assert found.objective_ == found.objectives_[-1] == uninterrupted.objective_
    assert np.isfinite(found.transform(X)).all()


def test_interruption_of_a_later_run_keeps_the_best(monkeypatch):
    X, _ = clusters()
    first = model(acceleration=None).fit(X)
    step, calls = em.step, itertools.count()

    def interrupted(problem, state):
        # The first run evaluates its last state by a step too; then, the second run's third.
        if next(calls) == first.n_iter_ + 1 + 2:
            raise KeyboardInterrupt
        return step(problem, state)

    monkeypatch.setattr(em, "step", interrupted)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        found = model(n_init=3, acceleration=None).fit(X)
    assert_array_equal(found.atoms_, first.atoms_)
    assert found.converged_ and found.n_iter_ == first.n_iter_
    assert found.stop_reason_ == "tolerance"


def test_verbose_shows_a_bar(capfd):
    X, _ = clusters()
    fit_quietly(model(max_iter=10, verbose=1), X)
    shown = capfd.readouterr()
    assert "Newton" in shown.err and "10/10" in shown.err and "objective" in shown.err
    assert shown.out == ""
    fit_quietly(model(max_iter=10), X)
    assert "Newton" not in capfd.readouterr().err
