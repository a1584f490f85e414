"""EuclideanSNMF: semi-NMF by least squares."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from squares_in_gaps import cost_of_gaps, row_problem

from seminmf import EuclideanSNMF, load
from seminmf._data.dense import DenseSource
from seminmf._data.source import row_ranges
from seminmf._kernels.euclidean.least_squares import GAP_WEIGHT
from seminmf.datasets import load_ionosphere, load_segment, load_shuttle

SOLVERS = ["hals", "multiplicative"]
STARTS = ["random", "kmeans", "svd"]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data(J=60, I=8, K=3, gaps=0.0, noise=0.3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.7, 2.0, (J, K)) @ rng.normal(size=(K, I)) + noise * rng.normal(size=(J, I))
    X[rng.random(X.shape) < gaps] = np.nan
    return X.astype(dtype)


def loss(X, activations, components, weights=1.0):
    errors = np.where(np.isnan(X), 0.0, X - activations @ components)
    return 0.5 * float(np.sum(np.reshape(weights, (-1, 1)) * errors**2))


def ding(X, activations, n_iter):
    """The algorithm as its authors write it, on samples by features, for data without gaps."""
    for _ in range(n_iter):
        components = np.linalg.pinv(activations) @ X
        product, gram = X @ components.T, components @ components.T
        positive, negative = (abs(product) + product) / 2, (abs(product) - product) / 2
        gram_positive, gram_negative = (abs(gram) + gram) / 2, (abs(gram) - gram) / 2
        ratio = (positive + activations @ gram_negative) / (negative + activations @ gram_positive)
        activations = activations * np.sqrt(ratio)
    return activations, np.linalg.pinv(activations) @ X


def test_the_rule_of_its_authors():
    X = data()
    start = np.random.default_rng(1).uniform(0.1, 1.0, (60, 3))
    model = EuclideanSNMF(3, solver="multiplicative", max_iter=25, tol=0.0)
    model.fit(X, activations=start)
    activations, components = ding(X, start, 25)
    np.testing.assert_allclose(model.activations_, activations, rtol=1e-8)
    np.testing.assert_allclose(model.components_, components, rtol=1e-8)
    assert model.n_iter_ == 25 and len(model.objectives_) == 26


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_objective_never_falls_and_is_what_it_says(solver, init, gaps):
    X = data(gaps=gaps)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = EuclideanSNMF(3, solver=solver, init=init, max_iter=60, tol=0.0, random_state=0)
    model.fit(X, sample_weight=weights)
    assert np.diff(model.objectives_).min() >= 0
    assert model.objectives_[-1] > model.objectives_[0]
    assert (model.activations_ >= 0).all()
    factors = model.activations_, model.components_
    found = loss(X, *factors, weights) + 0.5 * cost_of_gaps(X, *factors, weights)
    assert -model.objective_ == pytest.approx(found, rel=1e-10)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize(
    ("solver", "tol", "flat"), [("hals", 1e-10, 1e-5), ("multiplicative", 1e-5, 1e-2)]
)
def test_a_converged_fit_is_optimal_in_each_factor(solver, tol, flat, gaps):
    X = data(J=30, gaps=gaps)
    model = EuclideanSNMF(3, solver=solver, tol=tol, max_iter=20000, random_state=0).fit(X)
    assert model.converged_
    observed = ~np.isnan(X)
    for x, activations in zip(X, model.activations_, strict=True):
        expected, _ = nnls(*row_problem(x, model.components_))
        np.testing.assert_allclose(activations, expected, rtol=1e-6, atol=1e-8)
    errors = np.where(observed, X - model.activations_ @ model.components_, 0.0)
    in_gaps = model.activations_.T**2 @ ~observed
    slope = model.activations_.T @ errors - GAP_WEIGHT * in_gaps * model.components_
    scale = model.activations_.T @ np.where(observed, abs(X), 0.0)
    assert np.max(abs(slope) / scale) < flat


@pytest.mark.parametrize("gaps", [0.0, 0.4])
def test_transform_is_nonnegative_least_squares(gaps):
    X = data(gaps=gaps)
    components = np.random.default_rng(2).normal(size=(5, 8))
    components[4] = components[0] - 2 * components[1]  # a singular Gram matrix
    components[3] = 0.0
    X[np.isnan(X).all(axis=1), 0] = 1.0
    model = EuclideanSNMF(5, max_iter=1).fit(X, components=components, frozen=range(5))
    activations = model.transform(X)
    assert (activations >= 0).all() and (activations[:, 3] == 0).all()
    for x, row in zip(X, activations, strict=True):
        design, target = row_problem(x, components)
        _, distance = nnls(design, target)
        found = np.linalg.norm(target - design @ row)
        assert found == pytest.approx(distance, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(model.transform(X[7:9]), activations[7:9])


def test_hals_is_ahead_of_the_multiplicative_rule():
    """On real data, from the same starts, with the same number of sweeps."""
    for loader, n_components in ((load_ionosphere, 5), (load_segment, 7)):
        X, _ = loader(return_X_y=True)
        fast, slow = (
            EuclideanSNMF(n_components, solver=solver, max_iter=100, tol=0.0, random_state=0)
            .fit(X)
            .objective_
            for solver in SOLVERS
        )
        assert fast > slow


@pytest.mark.parametrize("solver", SOLVERS)
def test_singular_normal_equations(solver):
    """Equal activations, no activations, and more components than features or samples."""
    X = data(J=20, I=4, K=2)
    start = np.random.default_rng(0).uniform(size=(20, 6))
    start[:, 1] = start[:, 0]
    start[:, 2] = 0.0
    model = EuclideanSNMF(6, solver=solver, max_iter=50, tol=0.0).fit(X, activations=start)
    assert np.isfinite(model.components_).all() and np.isfinite(model.activations_).all()
    assert np.diff(model.objectives_).min() >= 0
    few = EuclideanSNMF(6, solver=solver, random_state=0).fit(X[:3])
    assert few.objective_ == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("unit", [1e-150, 1e-30, 1.0, 1e30, 1e140])
def test_the_unit_of_x_does_not_matter(unit):
    X = data()
    model, other = (EuclideanSNMF(3, random_state=0).fit(s * X) for s in (1.0, unit))
    np.testing.assert_allclose(other.components_ / unit, model.components_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.activations_, model.activations_, rtol=1e-6, atol=1e-9)


def test_a_weight_of_two_is_a_sample_twice():
    X = data(gaps=0.1)
    start = np.random.default_rng(3).uniform(0.1, 1.0, (60, 3))
    twice = np.arange(60) % 3 == 0
    settings = {"solver": "hals", "max_iter": 30, "tol": 0.0}
    weighted = EuclideanSNMF(3, **settings).fit(X, activations=start, sample_weight=1.0 + twice)
    repeated = np.concatenate([np.arange(60), np.flatnonzero(twice)])
    doubled = EuclideanSNMF(3, **settings).fit(X[repeated], activations=start[repeated])
    np.testing.assert_allclose(weighted.components_, doubled.components_, rtol=1e-6, atol=1e-9)
    assert weighted.objective_ == pytest.approx(doubled.objective_)


def test_frozen_components_stay_and_the_others_fit():
    X = data()
    known = np.random.default_rng(4).normal(size=(3, 8))
    known[1:] = np.nan
    model = EuclideanSNMF(3, random_state=0).fit(X, components=known, frozen=[0])
    np.testing.assert_array_equal(model.components_[0], known[0])
    assert np.isfinite(model.components_).all()
    # One component more than two, though not any.
    two, three = (EuclideanSNMF(k, random_state=0).fit(X).objective_ for k in (2, 3))
    assert two < model.objective_ < three


@pytest.mark.parametrize("gaps", [0.0, 0.02])
def test_same_bits_for_any_number_of_threads(gaps):
    X = data(J=12000, I=60, K=4, gaps=gaps)
    assert len(row_ranges(DenseSource(X), 4)) > 1  # or there would be nothing to share
    models = [EuclideanSNMF(4, tol=1e-2, random_state=0, n_jobs=jobs).fit(X) for jobs in (1, 2, 3)]
    for model in models:
        assert model.converged_
        np.testing.assert_array_equal(model.activations_, models[0].activations_)
        np.testing.assert_array_equal(model.components_, models[0].components_)
        np.testing.assert_array_equal(model.transform(X), models[0].transform(X))


def test_convergence_is_no_halt():
    """Where coordinate descent creeps, an exact solve gets it going again."""
    X, _ = load_shuttle(return_X_y=True)
    model = EuclideanSNMF(7, random_state=0, max_iter=2000).fit(X)
    assert model.converged_ and np.diff(model.objectives_).min() >= 0
    start = {"components": model.components_, "activations": model.activations_}
    again = EuclideanSNMF(7).fit(X, **start)
    assert again.objective_ == pytest.approx(model.objective_, rel=1e-2)


@pytest.mark.parametrize(
    ("J", "I", "K", "gaps"),
    [(1, 5, 3, 0.0), (2, 5, 3, 0.0), (40, 4, 6, 0.0), (40, 4, 6, 0.3), (40, 8, 6, 0.4)],
)
@pytest.mark.parametrize("seed", range(3))
def test_transform_agrees_where_solutions_are_not_unique(J, I, K, gaps, seed):
    X = data(J=J, I=I, K=min(K, 3), gaps=gaps, seed=seed)
    X[np.isnan(X).all(axis=1), 0] = 1.0
    # With more components than features the objective goes on towards 0, where nothing is left.
    model = EuclideanSNMF(K, max_iter=20_000, random_state=seed).fit(X)
    assert model.converged_
    np.testing.assert_allclose(model.activations_, model.transform(X), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("size", [1e-150, 1e-8, 1e4, 1e8, 1e150])
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_unit_of_frozen_components_does_not_matter(solver, size):
    X = data()
    known = np.full((3, 8), np.nan)
    known[0] = np.random.default_rng(4).normal(size=8)
    one, other = (
        EuclideanSNMF(3, solver=solver, random_state=0).fit(X, components=c * known, frozen=[0])
        for c in (1.0, size)
    )
    assert other.objective_ == pytest.approx(one.objective_, rel=2e-2)
    np.testing.assert_array_equal(other.components_[0], size * known[0])


@pytest.mark.parametrize("size", [1e-210, 1e-5, 1e307])
def test_the_size_of_all_weights_does_not_matter(size):
    X = data()
    one, other = (
        EuclideanSNMF(3, random_state=0).fit(X, sample_weight=np.full(60, w)) for w in (1.0, size)
    )
    np.testing.assert_allclose(other.components_, one.components_, rtol=1e-9)


@pytest.mark.parametrize("size", [1e-110, 1e160])
def test_the_size_of_start_activations_does_not_matter(size):
    X = data()
    start = np.random.default_rng(1).uniform(size=(60, 3))
    one, other = (EuclideanSNMF(3).fit(X, activations=s * start) for s in (1.0, size))
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-3)
    assert np.isfinite(other.activations_).all() and np.isfinite(other.components_).all()


def test_data_whose_squares_overflow():
    model = EuclideanSNMF(3, random_state=0).fit(1e155 * data())
    assert np.isfinite(model.components_).all() and model.objective_ == -np.inf


def test_float32_stays_and_agrees():
    X = data(dtype=np.float32)
    model = EuclideanSNMF(3, random_state=0).fit(X)
    other = EuclideanSNMF(3, random_state=0).fit(X.astype(np.float64))
    for name in ("components_", "activations_"):
        assert getattr(model, name).dtype == np.float32
        np.testing.assert_allclose(getattr(model, name), getattr(other, name), rtol=1e-3, atol=1e-4)
    assert model.transform(X).dtype == np.float32


def test_more_starts_are_no_worse():
    X, _ = load_ionosphere(return_X_y=True)
    one, five = (EuclideanSNMF(5, n_init=n, random_state=0).fit(X) for n in (1, 5))
    assert five.objective_ >= one.objective_
    assert np.isnan(one.stability_) and 0 < five.stability_ <= 1


def test_fills_gaps_and_keeps_what_is_seen():
    full = data(J=200, noise=0.0)
    X = np.where(np.random.default_rng(5).random(full.shape) < 0.2, np.nan, full)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = EuclideanSNMF(3, tol=1e-9, n_init=3, random_state=0).fit(frame)
    filled = model.impute(frame)
    assert isinstance(filled, pd.DataFrame) and list(filled.columns) == list(frame.columns)
    np.testing.assert_array_equal(filled.to_numpy()[~np.isnan(X)], X[~np.isnan(X)])
    # Some samples have hardly more cells than there are components.
    assert np.quantile(np.abs(filled - full)[np.isnan(X)], 0.95) < 0.05
    assert -model.score(frame) == pytest.approx(
        2 * loss(X, model.transform(frame), model.components_) / np.sum(~np.isnan(X))
    )


def test_nothing_observed_gives_zeros_with_a_warning():
    X = data()
    X[3], X[:, 2] = np.nan, np.nan
    with pytest.warns(UserWarning, match=r"1 samples and 1 features .* they get zeros\."):
        model = EuclideanSNMF(3, random_state=0).fit(X)
    assert (model.transform(X)[3] == 0).all()
    assert (model.components_[:, 2] == 0).all()
    with pytest.warns(UserWarning, match="they get zeros"):
        model = EuclideanSNMF(3, max_iter=3, random_state=0).fit(X)  # not converged
    assert (model.activations_[3] == 0).all()


def test_saved_and_loaded(tmp_path):
    X = data(gaps=0.1, dtype=np.float32)
    model = EuclideanSNMF(3, init="svd", random_state=0).fit(X)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_array_equal(loaded.objectives_, model.objectives_)
    assert loaded.components_.dtype == np.float32


def test_a_file_with_infinite_components_is_refused(tmp_path):
    model = EuclideanSNMF(3, random_state=0).fit(data())
    model.components_[0, 0] = np.inf
    with pytest.raises(ValueError, match=r"cannot be saved: components_ has values"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("parameters", "arguments", "sentence"),
    [
        (
            {"solver": "newton"},
            {},
            "solver must be one of 'hals', 'multiplicative'; found 'newton'",
        ),
        ({"init": "prior"}, {}, "init must be one of 'random', 'kmeans', 'svd'; found 'prior'"),
        ({}, {"components": np.ones((2, 8))}, r"components must have the shape \(3, 8\); found"),
        ({}, {"components": np.full((3, 8), np.inf)}, "components must be finite; found inf"),
        ({}, {"frozen": [0]}, "frozen components must have their components given"),
        ({}, {"activations": -np.ones((60, 3))}, "activations must be finite and at least 0"),
        ({}, {"sample_weight": -np.ones(60)}, "sample_weight must be at least 0, and above 0"),
    ],
)
def test_refuses(parameters, arguments, sentence):
    model = EuclideanSNMF(3, **parameters)
    with pytest.raises(ValueError, match=sentence):
        model.fit(data(), **arguments)
    with pytest.raises(NotFittedError):
        model.transform(data())


def test_a_start_that_is_partly_missing_is_refused():
    components = np.ones((3, 8))
    components[1, 2] = np.nan
    with pytest.raises(ValueError, match="NaN for all of a component or for nothing of it"):
        EuclideanSNMF(3).fit(data(), components=components)


def test_warns_without_convergence():
    with pytest.warns(ConvergenceWarning, match="No convergence after max_iter=2"):
        EuclideanSNMF(3, max_iter=2, random_state=0).fit(data())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EuclideanSNMF(3, random_state=0).fit(data())


def test_a_file_of_two_types_is_refused(tmp_path):
    model = EuclideanSNMF(3, random_state=0).fit(data())
    model._components_of_fit = model.components_.astype(np.float32)
    with pytest.raises(ValueError, match="activations_ has the type float64, not float32"):
        model.save(tmp_path / "model")
