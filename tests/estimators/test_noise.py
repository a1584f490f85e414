"""Noise that is found with the fit: the truth is found again, and nothing runs away."""

import warnings

import numpy as np
import pandas as pd
import pytest
from kinds import KINDS
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from seminmf import BayesianSkellamSNMF, SkellamSNMF, load

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def draw(signal=3.0, J=300, I=20, K=4, seed=0, positive=False, noise=None):
    """X = A W + noise whose root mean square is 1 / signal of that of A W; and A and W."""
    rng = np.random.default_rng(seed)
    A = rng.gamma(0.5, size=(J, K))
    W = rng.normal(size=(K, I))
    W = np.abs(W) if positive else W
    W /= np.abs(W).sum(axis=1, keepdims=True)
    means = A @ W
    deviation = np.ones((1, I)) if noise is None else noise
    deviation = deviation / np.sqrt(np.mean(np.broadcast_to(deviation, means.shape) ** 2))
    deviation = deviation * np.sqrt(np.mean(means**2)) / signal
    return means + deviation * rng.normal(size=means.shape), A, W, deviation


def cosines(true, found):
    """Cosines of true components with their matches, in the order of the true ones."""
    a = true / np.linalg.norm(true, axis=1, keepdims=True)
    b = found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-300)
    rows, columns = linear_sum_assignment(-(a @ b.T))
    return (a @ b.T)[rows, columns], columns


def hidden(X, share, seed=0):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


# --- the truth is found again -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("signal", "least", "slope"), [(1.0, 0.97, 0.75), (3.0, 0.995, 0.9), (10.0, 0.999, 0.95)]
)
def test_components_and_amounts_are_found_again(signal, least, slope):
    X, A, W, deviation = draw(signal, J=500)
    model = SkellamSNMF(4, random_state=0).fit(X)
    found, order = cosines(W, model.components_)
    assert found.mean() > least
    assert_allclose(model.noise_, np.broadcast_to(deviation, (1, 20))[0], rtol=0.15)
    # Components are pure, so that activations are amounts.
    assert_allclose(np.abs(model.components_).sum(axis=1), 1, atol=1e-3)
    amounts = model.activations_[:, order]
    assert slope < np.sum(amounts * A) / np.sum(A * A) < 1.1


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_gaps(share):
    X, _, W, _ = draw(3.0, J=400)
    model = SkellamSNMF(4, random_state=0).fit(hidden(X, share))
    assert cosines(W, model.components_)[0].min() > 0.98


def test_noise_that_differs_by_feature():
    deviation = 25.0 ** np.linspace(-0.5, 0.5, 20)
    X, _, W, deviation = draw(3.0, noise=deviation)
    model = SkellamSNMF(4, random_state=0).fit(X)
    assert cosines(W, model.components_)[0].mean() > 0.98
    # The least noise is pooled with that of all features, and so is too large.
    assert_allclose(np.log(model.noise_)[8:], np.log(deviation)[8:], atol=0.2)
    assert np.all(model.noise_ > 0.9 * deviation)
    same = SkellamSNMF(4, noise="same", random_state=0).fit(X)
    assert len(np.unique(same.noise_)) == 1


def test_features_in_other_units():
    X, _, _, _ = draw(3.0)
    units = 100.0 ** np.linspace(-1, 1, 20)
    before = SkellamSNMF(4, random_state=0).fit(X).components_
    after = SkellamSNMF(4, random_state=0).fit(X * units).components_ / units
    assert cosines(before, after)[0].min() > 0.98


@pytest.mark.parametrize("unit", [2.0**-20, 1e-6, 1e6, 2.0**20])
def test_any_unit(unit):
    X, _, _, _ = draw(3.0)
    model, other = (SkellamSNMF(4, random_state=0).fit(x) for x in (X, X * unit))
    assert_array_equal(model.predict(X), other.predict(X * unit))
    assert_allclose(other.components_, model.components_, atol=1e-3)
    assert_allclose(other.noise_, unit * model.noise_, rtol=1e-3)
    assert_allclose(other.dispersion_, unit * model.dispersion_, rtol=1e-3)


def test_other_seeds_find_the_same():
    X, _, _, _ = draw(3.0)
    fits = [SkellamSNMF(4, n_init=1, random_state=seed).fit(X).components_ for seed in range(4)]
    assert min(cosines(fits[0], other)[0].mean() for other in fits[1:]) > 0.98


def test_starts_are_compared():
    X, _, _, _ = draw(3.0)
    model = SkellamSNMF(4, n_init=4, random_state=0).fit(X)
    assert model.component_stability_.shape == (4,)
    assert 1 <= model.n_same_starts_ <= 4
    assert model.stability_ == pytest.approx(model.component_stability_.mean())
    one = SkellamSNMF(4, n_init=1, random_state=0).fit(X)
    assert np.isnan(one.component_stability_).all() and one.n_same_starts_ == 1


def test_positive_components_under_noise():
    X, _, W, _ = draw(3.0, positive=True)
    model = SkellamSNMF(4, positive_components=True, random_state=0).fit(X)
    assert (X < 0).any() and (model.components_ >= 0).all()
    assert cosines(W, model.components_)[0].mean() > 0.95


@pytest.mark.parametrize("options", [{"dispersion": 0.0}, {"likelihood": "integer"}])
@pytest.mark.parametrize("solver", ["newton", "em"])
def test_positive_components_without_noise(options, solver):
    X = np.round(20 * np.abs(draw(3.0, J=60, I=8, K=2, positive=True)[0]))
    options = {**options, "solver": solver, "max_iter": 50, "random_state": 0}
    model = SkellamSNMF(2, positive_components=True, **options).fit(X)
    assert (model.components_ >= 0).all() and not model.atoms_[1].any()
    assert np.diff(model.objectives_).min() >= -1e-9 * abs(model.objective_)


def test_an_intercept():
    X, _, W, _ = draw(3.0, J=500)
    shift = np.linspace(-50, 50, 20) * X.std()
    model = SkellamSNMF(4, fit_intercept=True, random_state=0).fit(X + shift)
    assert cosines(W, model.components_)[0].mean() > 0.98
    assert_allclose(model.intercept_, shift, atol=0.5 * X.std())
    fitted = model.activations_ @ model.components_ + model.intercept_
    assert_allclose(model.inverse_transform(model.activations_), fitted)
    gaps = hidden(X + shift, 0.1)
    assert np.nanmean((model.impute(gaps) - (X + shift)) ** 2) < X.var()
    assert_allclose(model.predict_cells([3], [5]), fitted[3, 5])


# --- noise that is known ----------------------------------------------------------------------


def test_known_noise_of_cells():
    rng = np.random.default_rng(1)
    deviation = 100.0 ** rng.uniform(-0.5, 0.5, (300, 20))
    X, _, W, deviation = draw(1.0, noise=deviation)
    knows = SkellamSNMF(4, random_state=0).fit(X, cell_noise=deviation)
    does_not = SkellamSNMF(4, random_state=0).fit(X)
    assert cosines(W, knows.components_)[0].mean() > 0.97
    assert cosines(W, knows.components_)[0].mean() > cosines(W, does_not.components_)[0].mean()
    assert not knows.noise_.any()
    assert_allclose(knows.transform(X, cell_noise=deviation), knows.activations_, rtol=1e-6)


def test_infinite_noise_is_a_gap():
    X, _, _, _ = draw(3.0, J=100)
    gaps = hidden(X, 0.2)
    deviation = np.where(np.isnan(gaps), np.inf, 0.05)
    one = SkellamSNMF(4, random_state=0).fit(X, cell_noise=deviation)
    other = SkellamSNMF(4, random_state=0).fit(gaps, cell_noise=np.full(X.shape, 0.05))
    assert_array_equal(one.components_, other.components_)


def test_tables_of_noise_are_aligned():
    X, _, _, _ = draw(3.0, J=50, I=6, K=2)
    names = list("abcdef")
    table = pd.DataFrame(X, columns=names)
    noise = pd.DataFrame(0.1 + np.arange(6) * np.ones((50, 1)), columns=names)
    one = SkellamSNMF(2, random_state=0).fit(table, cell_noise=noise)
    other = SkellamSNMF(2, random_state=0).fit(table, cell_noise=noise[names[::-1]].iloc[::-1])
    assert_array_equal(one.components_, other.components_)


# --- one model for all sources, solvers and files ---------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["newton", "em"])
def test_all_sources_and_solvers(kind, solver):
    X, _, W, _ = draw(3.0, J=120, I=8, K=2)
    X = hidden(X, 0.1)
    model = SkellamSNMF(2, solver=solver, random_state=0).fit(KINDS[kind](X))
    assert cosines(W, model.components_)[0].min() > 0.97
    assert np.diff(model.objectives_).min() >= 0
    assert_allclose(
        np.asarray(model.transform(KINDS[kind](X))), np.asarray(model.activations_), rtol=1e-6
    )
    again = model.score(KINDS[kind](X))
    assert again == pytest.approx(SkellamSNMF(2, random_state=0).fit(X).score(X), abs=0.02)


@pytest.mark.parametrize("acceleration", [None, "squarem", "parabolic"])
def test_the_objective_never_falls(acceleration):
    X, _, _, _ = draw(1.0, J=60, I=8, K=3)
    for options in ({}, {"positive_components": True}, {"fit_intercept": True}):
        model = SkellamSNMF(
            3, solver="em", acceleration=acceleration, max_iter=30, random_state=0, **options
        ).fit(X)
        assert np.diff(model.objectives_).min() >= -1e-9 * abs(model.objective_)


def test_float32():
    X, _, W, _ = draw(3.0)
    model = SkellamSNMF(4, random_state=0).fit(X.astype(np.float32))
    assert model.components_.dtype == model.activations_.dtype == np.float32
    assert cosines(W, model.components_)[0].mean() > 0.99


def test_batches():
    X, _, W, _ = draw(3.0, J=600, I=10, K=3)
    model = SkellamSNMF(3, batch_size=100, max_iter=5, random_state=0).fit(X)
    assert cosines(W, model.components_)[0].mean() > 0.99
    stream = SkellamSNMF(3, random_state=0)
    for start in range(0, 600, 100):
        stream.partial_fit(X[start : start + 100])
    assert cosines(W, stream.components_)[0].mean() > 0.98


def test_files(tmp_path):
    X, _, _, _ = draw(3.0, J=80, I=6, K=2)
    gaps = hidden(X, 0.1)
    model = SkellamSNMF(2, fit_intercept=True, random_state=0).fit(gaps)
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    for name in ("noise_", "intercept_", "dispersion_", "activation_rate_prior_"):
        assert_array_equal(getattr(again, name), getattr(model, name))
    assert_array_equal(again.transform(gaps), model.transform(gaps))
    assert_array_equal(again.impute(gaps), model.impute(gaps))
    assert again.score(gaps) == model.score(gaps)


def test_a_checkpoint_goes_on(tmp_path):
    X, _, _, _ = draw(3.0, J=80, I=6, K=2)
    path = tmp_path / "fit"
    whole = SkellamSNMF(2, random_state=0).fit(X)
    SkellamSNMF(2, random_state=0).fit(X, checkpoint=path, checkpoint_every=0)
    again = SkellamSNMF(2, random_state=0).fit(X, checkpoint=path, checkpoint_every=0)
    assert_array_equal(again.components_, whole.components_)
    assert_array_equal(again.activations_, whole.activations_)


def test_parts_sum_to_x_without_noise_and_intercept():
    X, _, _, _ = draw(3.0, J=60, I=8, K=3)
    gaps = hidden(X, 0.2)
    model = SkellamSNMF(3, fit_intercept=True, random_state=0).fit(gaps)
    parts = model.sources(gaps).sum(axis=2)
    fitted = model.activations_ @ model.components_
    assert_allclose(parts[np.isnan(gaps)], fitted[np.isnan(gaps)], rtol=1e-6, atol=1e-9)
    # The noise has nearly all of the residual, and the components the rest.
    seen = ~np.isnan(gaps)
    residual = (gaps - model.intercept_)[seen] - fitted[seen]
    rest = (gaps - model.intercept_)[seen] - parts[seen]
    assert np.corrcoef(rest, residual)[0, 1] > 0.99
    assert np.mean((rest - residual) ** 2) < 0.1 * np.mean(residual**2)


# --- nothing runs away ------------------------------------------------------------------------


def outlier(X):
    X = X.copy()
    X[3, 4] = 1e6
    return X


def with_constant_features(X):
    X = X.copy()
    X[:, 0], X[:, 1] = 0.0, 7.0
    return X


STRANGE = {
    "few samples": lambda X: X[:3],
    "one sample": lambda X: X[:1],
    "as many components as features": lambda X: X[:, :4],
    "an outlier": outlier,
    "constant features": with_constant_features,
    "gaps nearly everywhere": lambda X: hidden(X, 0.9),
    "integers": lambda X: np.round(X / X.std() * 3),
    "no noise": lambda X: np.outer(np.arange(1.0, 61.0), np.linspace(-1, 1, 20)),
    "noise alone": lambda X: np.random.default_rng(0).normal(size=X.shape),
    "zeros": lambda X: np.zeros(X.shape),
    "small numbers": lambda X: X * 1e-200,
    "large numbers": lambda X: X * 1e200,
}


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("strange", STRANGE)
def test_nothing_runs_away(strange, intercept):
    X = STRANGE[strange](draw(3.0, J=60)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        if intercept and np.isnan(X).all(axis=0).any():
            return
        model = SkellamSNMF(4, fit_intercept=intercept, random_state=0).fit(X)
        filled = model.impute(X)
    largest = np.nanmax(np.abs(X))
    for array in (model.components_, model.activations_, model.noise_, model.intercept_, filled):
        assert np.isfinite(array).all()
    sizes = np.sqrt(np.nanmean((X / max(largest, 1.0)) ** 2, axis=0)) * max(largest, 1.0)
    assert np.all(model.noise_ <= 2 * np.maximum(sizes, max(1e-6 * sizes.max(), 1e-12)))
    assert np.abs(filled).max() <= 10 * largest


def test_what_cannot_be_told_is_said():
    X, _, _, _ = draw(3.0, J=30, I=6, K=2)
    with pytest.warns(UserWarning, match="as many parameters as there are observed cells"):
        SkellamSNMF(6, random_state=0).fit(X)


def test_a_cell_out_of_all_proportion_is_named():
    """It costs its feature, and no other."""
    X, _, components, _ = draw(3.0)
    Y = X.copy()
    Y[17, 3] = 1e6
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SkellamSNMF(4, random_state=0).fit(Y)
    assert any("sample 17 and feature 3 is out of all proportion" in str(w.message) for w in caught)
    others = np.arange(X.shape[1]) != 3
    assert cosines(components[:, others], model.components_[:, others])[0].min() > 0.95
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SkellamSNMF(4, random_state=0).fit(X)


def test_a_cell_whose_error_is_known_is_not_out_of_proportion():
    """Nothing has to be said of a wild cell that was handed in as one."""
    X, _, _, deviation = draw(3.0)
    errors = np.broadcast_to(deviation, X.shape).copy()
    Y = X.copy()
    Y[17, 3], errors[17, 3] = 10.0, 10.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SkellamSNMF(4, random_state=0).fit(Y, cell_noise=errors)


def test_what_the_search_explains_is_known():
    """So that draws which end where far less is explained can say so."""
    X, *_ = draw(10.0, J=100)
    model = SkellamSNMF(4, random_state=0).fit(X * np.geomspace(0.01, 100, X.shape[1]))
    assert model._r2_of_same_noise == pytest.approx(model.r2_, abs=0.05)


# --- what is refused --------------------------------------------------------------------------

GOOD = np.arange(12.0).reshape(4, 3) - 5


@pytest.mark.parametrize(
    ("options", "fit", "message"),
    [
        ({"dispersion": -1.0}, {}, "dispersion must be 'auto' or a number of at least 0"),
        ({"dispersion": np.nan}, {}, "dispersion must be 'auto' or a number"),
        ({"dispersion": "small"}, {}, "dispersion must be 'auto' or a number"),
        ({"likelihood": "integer", "dispersion": 2.0}, {}, "dispersion must be 'auto' or 1"),
        ({"likelihood": "integer", "noise": "feature"}, {}, "noise must be 'auto' or None"),
        ({"dispersion": 0.0, "noise": "same"}, {}, "noise must be 'auto' or None"),
        ({"noise": "some"}, {}, "noise must be one of"),
        ({"dispersion": 0.0, "positive_components": True}, {}, "positive_components must be False"),
        ({"dispersion": 0.0, "fit_intercept": True}, {}, "fit_intercept must be False"),
        ({"fit_intercept": 1}, {}, "fit_intercept must be True or False"),
        ({}, {"cell_noise": np.ones(5)}, "cell_noise must broadcast"),
        ({}, {"cell_noise": -np.ones((4, 3))}, "cell_noise must be above 0"),
        ({}, {"cell_noise": np.zeros(3)}, "cell_noise must be above 0"),
        ({}, {"cell_noise": np.full((4, 3), np.nan)}, "cell_noise must be above 0"),
        ({"likelihood": "integer"}, {"cell_noise": np.ones(3)}, "cell_noise must be None"),
        (
            {"positive_components": True},
            {"atoms": np.array([[1.0, -1, 1], [1, 1, 1]])},
            "atoms must have no negative part",
        ),
    ],
)
def test_bad_input_is_one_sentence_before_any_work(options, fit, message):
    model = SkellamSNMF(2, **options)
    with pytest.raises(ValueError, match=message):
        model.fit(GOOD, **fit)
    assert not hasattr(model, "atoms_")


def test_no_intercept_for_a_feature_of_gaps():
    X = GOOD.copy()
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match="only gaps in feature 1"):
        SkellamSNMF(2, fit_intercept=True).fit(X)


# --- the posterior ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_posteriors_of_all_sources(kind):
    X, _, W, _ = draw(3.0, J=120, I=8, K=2)
    X = hidden(X, 0.1)
    model = BayesianSkellamSNMF(2, posterior="mean-field", random_state=0).fit(KINDS[kind](X))
    assert cosines(W, model.components_)[0].min() > 0.97
    assert np.diff(model.lower_bounds_).min() >= -1e-9 * abs(model.lower_bound_)
    point = SkellamSNMF(2, random_state=0).fit(X)
    assert_allclose(model.noise_, point.noise_, rtol=1e-9)
    activations = np.asarray(model.activations_)
    assert_allclose(np.asarray(model.transform(KINDS[kind](X))), activations, rtol=1e-5)


@pytest.mark.parametrize("signal", [1.0, 3.0, 10.0])
def test_posterior_means_are_near_the_truth(signal):
    X, A, W, _ = draw(signal, J=500)
    model = BayesianSkellamSNMF(4, random_state=0).fit(X)
    found, order = cosines(W, model.components_)
    assert found.mean() > {1.0: 0.93, 3.0: 0.985, 10.0: 0.998}[signal]
    amounts = model.amounts_[:, order]
    assert np.sum(amounts * A) / np.sum(A * A) == pytest.approx(1.0, abs=0.2)


def test_posterior_with_all_options(tmp_path):
    X, _, W, deviation = draw(3.0, J=200, I=10, K=2, positive=True)
    offset = np.linspace(-1, 1, 10)
    options = {"positive_components": True, "fit_intercept": True, "noise": "same"}
    model = BayesianSkellamSNMF(2, random_state=0, **options).fit(hidden(X + offset, 0.1))
    assert cosines(W, model.components_)[0].min() > 0.95
    assert model.components_.min() >= 0 and np.abs(model.intercept_ - offset).max() < 0.2
    assert np.ptp(model.noise_) == 0
    assert_allclose(model.noise_, deviation[0], rtol=0.15)
    model.save(tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert_array_equal(again.transform(X), model.transform(X))
    assert_array_equal(again.noise_, model.noise_)


def test_predictive_intervals_have_the_noise():
    """Of the feature, or of the cell where it is known."""
    X, _, _, deviation = draw(3.0, J=400, I=12, noise=np.geomspace(1, 9, 12)[None])
    gappy = hidden(X, 0.2)
    gaps = np.isnan(gappy)
    for options in ({}, {"cell_noise": deviation}):
        model = BayesianSkellamSNMF(4, random_state=0).fit(gappy, **options)
        _, lower, upper = model.impute(gappy, return_interval=True, level=0.9, **options)
        widths = np.where(gaps, upper - lower, np.nan)
        ratio = np.nanmean(widths, axis=0) / (deviation[0] if options else model.noise_)
        assert ratio.min() > 3
        assert 0.85 < np.mean((lower <= X) & (X <= upper), where=gaps) < 0.95


def test_posterior_batches():
    X, _, W, _ = draw(3.0, J=600, I=10, K=3)
    model = BayesianSkellamSNMF(3, batch_size=100, max_iter=5, random_state=0).fit(X)
    assert cosines(W, model.components_)[0].mean() > 0.98
    stream = BayesianSkellamSNMF(3, random_state=0)
    for start in range(0, 600, 100):
        stream.partial_fit(X[start : start + 100])
    assert cosines(W, stream.components_)[0].mean() > 0.97


# --- the price, and fills -----------------------------------------------------------------------


def test_the_price_follows_the_noise():
    """What stands out of the noise is priced less, and little that does, more."""
    prices = [SkellamSNMF(4, random_state=0).fit(draw(s, J=500)[0])._price for s in (1.0, 3.0, 10)]
    assert prices[0] > prices[1] >= prices[2]


def test_held_back_cells_are_forgotten():
    """A table of hardly more cells than parameters would else have the smallest price."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    assert SkellamSNMF(5, random_state=0).fit(X)._price > 0.3


def test_other_seeds_differ_by_their_starts_alone():
    X, _, _, _ = draw(3.0, J=200)
    prices = {SkellamSNMF(4, random_state=seed).fit(X)._price for seed in range(4)}
    assert len(prices) == 1


@pytest.mark.parametrize("estimator", [SkellamSNMF, BayesianSkellamSNMF])
def test_a_wild_cell_does_not_fill_in_the_absurd(estimator, tmp_path):
    X, _, _, _ = draw(3.0, J=200, I=8, K=2)
    X = hidden(X, 0.2)
    X[7] = [np.nan, 1e3, np.nan, 0.0, np.nan, 0.0, np.nan, 0.0]
    model = estimator(3, random_state=0).fit(X)
    size = np.sqrt(np.nanmean(X**2, axis=0))
    model.save(tmp_path / "model.safetensors")
    for same in (model, load(tmp_path / "model.safetensors")):
        filled = same.impute(X)
        assert (
            np.abs(filled[np.isnan(X)]) <= 10.01 * np.broadcast_to(size, X.shape)[np.isnan(X)]
        ).all()
        assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    rows, columns = np.nonzero(np.isnan(X))
    found = model.predict_cells(rows, columns)
    assert_allclose(found, filled[rows, columns], rtol=1e-6, atol=1e-9)
