"""BayesianSkellamSNMF: the bound, the posterior and its intervals, the unit of the data."""

import itertools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from one_feature import (
    ONE_FEATURE_DATA,
    ONE_FEATURE_PRIORS,
    converged_bound,
    evidence_rate,
    log_evidence,
)
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from seminmf import BayesianSkellamSNMF, SkellamSNMF, sample_skellam_snmf
from seminmf._algorithms import em, vb
from seminmf._algorithms import noise as search

LIKELIHOODS = ["real", "integer"]
K = 3


def draw(n_samples=60, n_features=8, seed=0, size=100.0):
    """Integer data from the model, with the atoms and activations behind them."""
    return sample_skellam_snmf(
        n_samples, n_features, K, activation_rate=1 / size, atom_shape=0.4, random_state=seed
    )


def noisy(n_samples=60, n_features=8, seed=0):
    """Real data: a product of K components, and normal noise."""
    rng = np.random.default_rng(seed)
    signal = rng.gamma(0.5, 40.0, (n_samples, K)) @ rng.normal(size=(K, n_features))
    return signal + rng.normal(0.0, 3.0, signal.shape)


def with_gaps(X, share=0.2, seed=1):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def data_for(likelihood, **options):
    return noisy(**options) if likelihood == "real" else draw(**options)[0]


def model(likelihood="real", **options):
    """With the paper's mean field; `test_sampled` has the other posterior."""
    defaults = {"n_components": K, "random_state": 0, "n_jobs": 1, "max_iter": 20_000}
    options = {**defaults, "posterior": "mean-field", **options}
    return BayesianSkellamSNMF(likelihood=likelihood, **options)


def fit_quietly(estimator, X, **options):
    """Fit where the number of iterations is not the point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, **options)


def without_noise(likelihood):
    """Parameters of the paper's model."""
    return {"dispersion": 0.0} if likelihood == "real" else {}


def background_of(found):
    """Rates (2, 1, I) that cells have without any component, in units of the dispersion."""
    noise = (found.noise_ / found.dispersion_) ** 2 / 2
    half = found.intercept_ / found.dispersion_ / 2
    return np.array([noise + half, noise - half])[:, np.newaxis]


def likelihood_of(found):
    """The name of the reference's likelihood: that of counts, unless M is infinite."""
    return "real" if found.dispersion == 0 else "integer"


@pytest.fixture(scope="module", params=["noise", "real", "integer"])
def fitted(request):
    """A converged fit to data with gaps, and the data."""
    likelihood = "real" if request.param == "noise" else request.param
    options = {} if request.param == "noise" else without_noise(likelihood)
    X = with_gaps(data_for(likelihood))
    return model(likelihood, tol=1e-6, **options).fit(X), X


@pytest.mark.parametrize("prior", [1.0, 0.5])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_start_from_the_mode(likelihood, prior):
    """A far better start than a random one, and an end that is as good."""
    X = with_gaps(data_for(likelihood))
    options = {"tol": 1e-5, "activation_shape_prior": prior, **without_noise(likelihood)}
    random, mode = (model(likelihood, init=init, **options).fit(X) for init in ("random", "map"))
    assert mode.lower_bounds_[0] > random.lower_bounds_[0]
    assert mode.converged_
    assert mode.lower_bound_ > random.lower_bound_ - 0.02 * abs(random.lower_bound_)


# --- The bound ---


@pytest.mark.parametrize("prior", ONE_FEATURE_PRIORS[1:])
@pytest.mark.parametrize("x", ONE_FEATURE_DATA[1:])
@pytest.mark.parametrize(
    ("likelihood", "exact"), [("integer", log_evidence), ("real", evidence_rate)]
)
@pytest.mark.filterwarnings("ignore:.*have no observed cell")
def test_bound_lies_below_the_evidence(prior, x, likelihood, exact):
    found = model(
        likelihood,
        n_components=1,
        **without_noise(likelihood),
        activation_shape_prior=prior["activation_shape"],
        activation_rate_prior=prior["activation_rate"],
        atom_shape_prior=np.reshape(prior["atom_shape"], (2, 1, 1)),
        tol=1e-9,
    ).fit(np.reshape(x, (-1, 1)))
    assert found.lower_bound_ <= exact(x, prior) + 1e-7
    # Not by being empty: it is the best that the paper's iterations reach.
    assert found.lower_bound_ == pytest.approx(converged_bound(x, prior, likelihood), abs=1e-6)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_prior_as_the_start(likelihood):
    X = with_gaps(data_for(likelihood))
    rng = np.random.default_rng(2)
    prior = {
        "activation_shape": rng.uniform(0.5, 3.0, K),
        "activation_rate": 0.02,
        "atom_shape": rng.uniform(0.5, 3.0, (2, K, X.shape[1])),
    }
    priors = {f"{name}_prior": value for name, value in prior.items()}
    found = fit_quietly(
        model(likelihood, init="prior", max_iter=4, **priors, **without_noise(likelihood)), X
    )
    shape = np.broadcast_to(prior["activation_shape"], (len(X), K))
    expected = reference.vb_bound(X, shape, prior["atom_shape"], likelihood=likelihood, **prior)
    assert found.lower_bounds_[0] == pytest.approx(expected, rel=1e-10)
    assert found.lower_bound_ > found.lower_bounds_[0]


def test_prior_that_tells_no_component_apart_still_learns():
    X = noisy()
    found = model(init="prior").fit(X)
    cosines = np.corrcoef(found.components_)
    assert np.abs(cosines[np.triu_indices(K, 1)]).max() < 0.99


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_shapes_are_a_fixed_point_of_the_paper(likelihood):
    """After convergence an iteration of the reference changes next to nothing."""
    X = with_gaps(data_for(likelihood, n_samples=20))
    found = model(likelihood, tol=1e-9, **without_noise(likelihood)).fit(X)
    activation_shape, atom_shape = reference.vb_iteration(
        X, found.activation_shape_, found.atom_shape_, likelihood=likelihood
    )
    assert_allclose(activation_shape, found.activation_shape_, rtol=1e-4, atol=1e-4)
    assert_allclose(atom_shape, found.atom_shape_, rtol=1e-2, atol=1e-2)


# --- The unit of the data ---


@pytest.mark.parametrize("noise", ["auto", None])
@pytest.mark.parametrize("factor", [2.0**-465, 2.0**-20, 2.0**20, 2.0**465])
def test_unit_does_not_matter(factor, noise):
    X = with_gaps(noisy())
    here, there = model(noise=noise).fit(X), model(noise=noise).fit(factor * X)
    assert there.dispersion_ == pytest.approx(factor * here.dispersion_, rel=1e-6)
    assert_allclose(there.noise_, factor * here.noise_, rtol=1e-6)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-6)
    assert_array_equal(there.predict(factor * X), here.predict(X))
    assert_allclose(there.components_, here.components_, rtol=1e-5, atol=1e-8)
    assert_allclose(there.activations_, factor * here.activations_, rtol=1e-5)
    assert_allclose(there.activation_shape_, here.activation_shape_, rtol=1e-5)
    for ours, theirs in zip(here.interval(), there.interval(), strict=True):
        relative = [(i.upper - i.lower) / np.abs(i.upper).max() for i in (ours, theirs)]
        assert_allclose(relative[1], relative[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("factor", [1e-140, 1e-6, 1e6, 1e140])
def test_decimal_units_change_roundings_only(factor):
    """They decide when a search ends, so that results differ by more than that."""
    X = with_gaps(noisy())
    here, there = model(tol=1e-9).fit(X), model(tol=1e-9).fit(factor * X)
    assert_allclose(there.noise_, factor * here.noise_, rtol=1e-2)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-3)
    assert_array_equal(there.predict(factor * X), here.predict(X))
    assert_allclose(there.components_, here.components_, atol=1e-3)


def test_same_number_of_components_in_every_unit():
    X = noisy(n_samples=60, n_features=10)
    candidates = [1, 2, 3, 4, 6]
    chosen = []
    for factor in (1e-6, 1.0, 1e6):
        estimators = [model(n_components=k, noise=None, tol=1e-3) for k in candidates]
        bounds = [each.fit(factor * X).lower_bound_ for each in estimators]
        chosen.append(candidates[int(np.argmax(bounds))])
    assert chosen[0] == chosen[1] == chosen[2]
    assert 1 < chosen[0] < 6


def test_dispersion_is_a_unit():
    """X / φ with a dispersion of 1 is X with the dispersion φ."""
    X = with_gaps(noisy())
    options = {"max_iter": 40, "tol": 0, "noise": None}
    dispersed = fit_quietly(model(dispersion=8.0, **options), X)
    divided = fit_quietly(model(dispersion=1.0, **options), X / 8.0)
    assert dispersed.dispersion_ == 8.0
    assert_allclose(dispersed.lower_bounds_, divided.lower_bounds_, rtol=1e-12)
    assert_allclose(dispersed.atom_shape_, divided.atom_shape_, rtol=1e-9)
    assert_allclose(dispersed.activation_shape_, divided.activation_shape_, rtol=1e-9)
    assert_allclose(dispersed.activation_rate_, divided.activation_rate_ / 8.0, rtol=1e-12)
    assert_allclose(dispersed.activations_, 8.0 * divided.activations_, rtol=1e-9)
    assert_allclose(dispersed.transform(X), 8.0 * divided.transform(X / 8.0), rtol=1e-9)


def test_integers_handed_in_as_real():
    """A dispersion of 1 without noise is the integer likelihood."""
    X = draw()[0]
    counts = fit_quietly(model("integer", max_iter=10), X)
    assert counts.dispersion_ == 1.0
    real = fit_quietly(model(dispersion=1.0, noise=None, max_iter=10), X)
    assert_allclose(real.lower_bounds_, counts.lower_bounds_, rtol=1e-12)
    assert_allclose(real.atom_shape_, counts.atom_shape_, rtol=1e-9)


@pytest.mark.parametrize("noise", ["auto", None])
def test_noise_that_is_found_follows_the_noise(noise):
    """Without a component for it, the dispersion grows with it."""
    rng = np.random.default_rng(3)
    signal = rng.gamma(2.0, 30.0, (120, K)) @ rng.normal(size=(K, 15))
    found = []
    for size in (1.0, 4.0):
        X = signal + rng.normal(0.0, size, signal.shape)
        estimator = fit_quietly(model(noise=noise, max_iter=20), X)
        found.append(estimator.noise_.mean() if noise else estimator.dispersion_)
    ratio = found[1] / found[0]
    assert (3.0 < ratio < 4.5) if noise else (4.0 < ratio < 16.0)


def test_dispersion_counts_weights():
    X = with_gaps(noisy())
    weights = np.arange(len(X)) % 3
    options = {"noise": None, "max_iter": 2}
    weighted = fit_quietly(model(**options), X, sample_weight=weights)
    repeated = fit_quietly(model(**options), np.repeat(X, weights, axis=0))
    assert weighted.dispersion_ == pytest.approx(repeated.dispersion_, rel=1e-7)


# --- The posterior ---


def test_means_are_those_of_the_posterior(fitted):
    found, _ = fitted
    assert_allclose(found.activations_, found.activation_shape_ / found.activation_rate_)
    total = found.atom_shape_.sum(axis=(0, 2), keepdims=True)
    assert_allclose(found.atoms_, found.atom_shape_ / total)
    assert_allclose(found.components_, found.atoms_[0] - found.atoms_[1])
    expected = np.broadcast_to(1 + found.activation_rate_prior_, found.activations_.shape)
    expected = expected / found.dispersion_
    assert_allclose(found.activation_rate_, expected)


def test_draws_have_the_moments_of_the_posterior(fitted):
    found, X = fitted
    n = 4000
    activations, atoms = found.sample(n, random_state=0)
    assert activations.shape == (n, len(X), K) and atoms.shape == (n, 2, K, X.shape[1])
    assert_allclose(atoms.sum(axis=(1, 3)), 1.0)
    assert activations.min() >= 0 and atoms.min() >= 0

    shape, rate = found.activation_shape_, found.activation_rate_
    error = (activations.mean(axis=0) - shape / rate) / np.sqrt(shape / rate**2 / n)
    assert np.abs(error).max() < 5
    assert_allclose(activations.var(axis=0), shape / rate**2, rtol=0.2)
    assert activations.var(axis=0).sum() == pytest.approx(np.sum(shape / rate**2), rel=0.05)

    total = found.atom_shape_.sum(axis=(0, 2), keepdims=True)
    mean = found.atom_shape_ / total
    variance = mean * (1 - mean) / (total + 1)
    assert np.abs((atoms.mean(axis=0) - mean) / np.sqrt(variance / n)).max() < 5
    assert atoms.var(axis=0).sum() == pytest.approx(variance.sum(), rel=0.05)


def test_draws_follow_the_random_state(fitted):
    found, _ = fitted
    first, again, other = (found.sample(2, random_state=seed)[0] for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_of_activations_are_quantiles(fitted, level):
    found, _ = fitted
    lower, upper = found.interval(level).activations
    posterior = stats.gamma(found.activation_shape_, scale=1 / found.activation_rate_)
    assert_allclose(posterior.cdf(lower), (1 - level) / 2, rtol=1e-6)
    assert_allclose(posterior.cdf(upper), (1 + level) / 2, rtol=1e-6)


def test_intervals_of_components(fitted):
    found, _ = fitted
    lower, upper = found.interval(0.9).components
    assert lower.shape == upper.shape == found.components_.shape
    assert (lower < found.components_).all() and (found.components_ < upper).all()
    draws = found.sample(4000, random_state=5)[1]
    draws = draws[:, 0] - draws[:, 1]
    coverage = np.mean((lower <= draws) & (draws <= upper), axis=0)
    assert 0.86 < coverage.min() and coverage.max() < 0.94
    inner = found.interval(0.5).components
    assert (lower < inner.lower).all() and (inner.upper < upper).all()


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_intervals_of_components_shrink_with_more_data(likelihood):
    X = data_for(likelihood, n_samples=400)
    options = without_noise(likelihood)
    start = fit_quietly(model(likelihood, max_iter=200, **options), X)
    widths = []
    for n_samples in (25, 100, 400):
        found = model(likelihood, **options).fit(X[:n_samples], atom_shape=start.atom_shape_)
        lower, upper = found.interval().components
        widths.append(np.mean(upper - lower))
    assert widths[0] > 1.4 * widths[1] > 1.4**2 * widths[2]


def test_posterior_mean_tends_to_the_maximum():
    """The prior and the spread of the posterior matter less, the larger the numbers."""
    X = noisy(n_samples=30)
    options = {"dispersion": 0.0, "tol": 1e-6, "max_iter": 50_000}
    maximum = SkellamSNMF(K, n_jobs=1, random_state=0, **options).fit(X)
    errors = []
    for factor in (1.0, 1e2, 1e4):
        totals = factor * maximum.activations_.sum(axis=0)[:, np.newaxis]
        found = model(dispersion=0.0, tol=1e-6).fit(
            factor * X,
            atom_shape=1 + totals * maximum.atoms_,
            activation_shape=1 + factor * maximum.activations_,
        )
        errors.append(np.abs(found.components_ - maximum.components_).max())
    assert errors[2] < errors[1] < errors[0]
    assert errors[2] < 5e-3


# --- After the fit ---


def test_activations_are_those_of_transform(fitted):
    found, X = fitted
    assert found.converged_
    assert_allclose(found.activations_, found.transform(X), rtol=1e-6)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("shape", [0.5, 3.0])
def test_activations_are_those_of_transform_for_other_shapes(likelihood, shape):
    X = with_gaps(data_for(likelihood))
    priors = {"activation_shape_prior": shape, "activation_rate_prior": 0.05}
    found = model(likelihood, tol=1e-6, **priors).fit(X)
    assert found.converged_
    assert_allclose(found.activations_, found.transform(X), rtol=1e-6)


def test_transform_does_not_know_the_batch(fitted):
    found, X = fitted
    whole = found.transform(X)
    assert_allclose(found.transform(X[[5, 3, 41]]), whole[[5, 3, 41]], rtol=1e-12)
    assert_allclose(found.transform(X[::-1]), whole[::-1], rtol=1e-12)
    assert_allclose(found.transform(X[[7]])[0], whole[7], rtol=1e-12)
    mixed = np.vstack([X[:1], 1e6 * X[1:2]])
    assert_allclose(found.transform(mixed)[0], whole[0], rtol=1e-12)


def test_transform_is_a_fixed_point_of_the_paper(fitted):
    """Posterior shapes of the activations that one more iteration with these atoms repeats."""
    found, X = fitted
    rate = found.activation_rate_prior_
    shape = found.transform(X) * (1 + rate) / found.dispersion_
    again, _ = reference.vb_iteration(
        X / found.dispersion_,
        shape,
        found.atom_shape_,
        likelihood=likelihood_of(found),
        activation_rate=rate,
        background=background_of(found),
    )
    assert_allclose(again, shape, rtol=1e-6)


def test_bound_is_that_of_the_reference(fitted):
    found, X = fitted
    expected = reference.vb_bound(
        X / found.dispersion_,
        found.activation_shape_,
        found.atom_shape_,
        likelihood=likelihood_of(found),
        activation_rate=found.activation_rate_prior_,
        background=background_of(found),
    )
    assert found.lower_bound_ == pytest.approx(expected, rel=1e-9)


def test_predict_goes_by_the_amounts_of_the_means(fitted):
    found, X = fitted
    means = found.activation_shape_ / found.activation_rate_
    amounts = means * np.abs(found.components_).sum(axis=1)
    assert_array_equal(found.predict(X), amounts.argmax(axis=1))
    assert_array_equal(clone(found).fit_predict(X), found.predict(X))


def test_fit_transform(fitted):
    found, X = fitted
    assert_allclose(clone(found).fit_transform(X), found.transform(X), rtol=1e-6)
    short = clone(found).set_params(max_iter=3)
    with pytest.warns(ConvergenceWarning):
        activations = short.fit_transform(X)
    assert_allclose(activations, short.transform(X), rtol=1e-6)


def test_sources_sum_to_the_data(fitted):
    found, X = fitted
    parts, filled, gaps = found.sources(X).sum(axis=2), found.impute(X), np.isnan(X)
    assert_allclose(parts[gaps], filled[gaps], rtol=1e-9, atol=1e-9)
    if found.noise_.any():  # which has its part
        signal = found.activations_ @ found.components_
        noise = X - parts
        assert_allclose(noise[~gaps], (X - signal)[~gaps], rtol=0.1, atol=0.1 * found.noise_.max())
    else:
        assert_allclose(parts, filled, rtol=1e-9, atol=1e-9)


def test_score_is_that_of_the_posterior_means(fitted):
    found, X = fitted
    rate0, rate1 = np.array([found.transform(X) @ atom for atom in found.atoms_])
    if found.likelihood == "integer":
        cells = stats.skellam.logpmf(X, rate0, rate1)
    elif found.dispersion != 0:
        rates = np.array([rate0, rate1]) / found.dispersion_ + background_of(found)
        cells = np.array(
            [
                [reference.log_likelihood(X[j, i] / found.dispersion_, rates[:, j, i], "integer")]
                for j, i in np.argwhere(~np.isnan(X))
            ]
        ) - np.log(found.dispersion_)
    else:
        root = np.sqrt(X**2 + 4 * rate0 * rate1)
        side = np.where(X < 0, rate1, rate0)
        divergence = rate0 + rate1 - root + np.abs(X) * np.log((np.abs(X) + root) / (2 * side))
        dispersion = found.dispersion_
        cells = -divergence / dispersion - 0.5 * np.log(2 * np.pi * dispersion * root)
    assert found.score(X) == pytest.approx(np.nanmean(cells), rel=1e-8)


@pytest.mark.parametrize("method", ["transform", "predict", "impute", "sources", "score"])
def test_layout_does_not_matter_after_the_fit(fitted, method):
    found, X = fitted
    expected = getattr(found, method)(X)
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        assert_allclose(getattr(found, method)(other), expected, rtol=1e-12, atol=1e-12)


# --- Intervals of gaps ---


def test_imputation_intervals_equal_the_data_where_observed(fitted):
    found, X = fitted
    filled, lower, upper = found.impute(X, return_interval=True)
    observed = ~np.isnan(X)
    for values in (filled, lower, upper):
        assert_array_equal(values[observed], X[observed])
    assert_array_equal(filled, found.impute(X))
    assert (lower[~observed] < upper[~observed]).all()
    assert np.mean((lower <= filled)[~observed] & (filled <= upper)[~observed]) > 0.95


def test_imputation_intervals_keep_data_frames():
    X = with_gaps(noisy())
    frame = pd.DataFrame(X, columns=list("abcdefgh"), index=np.arange(len(X)) + 7)
    results = fit_quietly(model(max_iter=20), frame).impute(frame, return_interval=True)
    for table in results:
        assert isinstance(table, pd.DataFrame)
        assert table.columns.equals(frame.columns) and table.index.equals(frame.index)
        assert not table.isna().any(axis=None)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_imputation_intervals_cover_hidden_cells(likelihood):
    """A mean field's are a little too narrow: one table alone may be off by more."""
    held = {0.9: [], 0.5: []}
    for seed in range(4):
        X = data_for(likelihood, n_samples=150, n_features=12, seed=seed)
        hidden = with_gaps(X)
        gaps = np.isnan(hidden)
        found = model(likelihood, n_init=3).fit(hidden)
        for level, coverage in held.items():
            _, lower, upper = found.impute(hidden, return_interval=True, level=level)
            coverage.append(np.mean((lower <= X)[gaps] & (X <= upper)[gaps]))
    for level, coverage in held.items():
        assert np.mean(coverage) == pytest.approx(level, abs=0.08)


# --- Starts, weights, types, threads ---


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_given_starts_are_used(likelihood):
    X = data_for(likelihood)
    rng = np.random.default_rng(6)
    atom_shape = rng.uniform(0.1, 5.0, (2, K, X.shape[1]))
    activation_shape = rng.uniform(1.0, 50.0, (len(X), K))
    with pytest.warns(ConvergenceWarning):
        started = model(likelihood, max_iter=0).fit(
            X, atom_shape=atom_shape, activation_shape=activation_shape
        )
    assert_array_equal(started.atom_shape_, atom_shape)
    assert_array_equal(started.activation_shape_, activation_shape)


def test_layout_of_starts_does_not_matter():
    X = noisy()
    rng = np.random.default_rng(6)
    starts = {
        "atom_shape": rng.uniform(0.1, 5.0, (2, K, X.shape[1])),
        "activation_shape": rng.uniform(1.0, 50.0, (len(X), K)),
    }
    here = fit_quietly(model(max_iter=5), X, **starts)
    turned = {name: np.asfortranarray(start) for name, start in starts.items()}
    there = fit_quietly(model(max_iter=5), X, **turned)
    assert_allclose(there.lower_bounds_, here.lower_bounds_, rtol=1e-12)
    assert_allclose(there.activation_shape_, here.activation_shape_, rtol=1e-9)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_frozen_components_keep_their_posterior(likelihood):
    X = with_gaps(data_for(likelihood))
    atom_shape = np.random.default_rng(7).uniform(0.1, 30.0, (2, K, X.shape[1]))
    atom_shape[:, 1] = np.nan
    found = model(likelihood).fit(X, atom_shape=atom_shape, frozen=[0, 2])
    assert_array_equal(found.atom_shape_[:, [0, 2]], atom_shape[:, [0, 2]])
    start = fit_quietly(model(likelihood, max_iter=0), X, atom_shape=atom_shape, frozen=[0, 2])
    assert np.isfinite(start.atom_shape_).all()
    assert np.abs(found.components_ - start.components_)[1].max() > 1e-2


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_integer_weight_is_a_repeated_sample(likelihood):
    X = with_gaps(data_for(likelihood))
    rng = np.random.default_rng(8)
    atom_shape = rng.uniform(0.5, 9.0, (2, K, X.shape[1]))
    shape = rng.gamma(2.0, 20.0, (len(X), K))
    weights = np.arange(len(X)) % 3
    rows = np.repeat(np.arange(len(X)), weights)
    estimator = model(likelihood, max_iter=40, tol=0, **without_noise(likelihood))
    repeated = fit_quietly(
        clone(estimator), X[rows], atom_shape=atom_shape, activation_shape=shape[rows]
    )
    weighted = fit_quietly(
        clone(estimator), X, atom_shape=atom_shape, activation_shape=shape, sample_weight=weights
    )
    assert_allclose(weighted.atom_shape_, repeated.atom_shape_, rtol=1e-7)
    assert_allclose(weighted.activation_shape_[rows], repeated.activation_shape_, rtol=1e-7)
    assert_allclose(weighted.lower_bounds_, repeated.lower_bounds_, rtol=1e-10)


@pytest.mark.parametrize("init", ["random", "kmeans", "svd", "prior"])
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_float32_stays_and_agrees(likelihood, init):
    X = with_gaps(data_for(likelihood)).round()
    small = X.astype(np.float32)
    options = {"init": init, "max_iter": 40, "tol": 0, "acceleration": None}
    double = fit_quietly(model(likelihood, **options), X)
    single = fit_quietly(model(likelihood, **options), small)
    for value in (
        single.atoms_,
        single.atom_shape_,
        single.activations_,
        single.activation_shape_,
        single.activation_rate_,
        single.transform(small),
        single.impute(small),
    ):
        assert value.dtype == np.float32
    assert single.lower_bounds_.dtype == np.float64
    assert_allclose(single.lower_bounds_, double.lower_bounds_, rtol=1e-3)
    assert_allclose(single.components_, double.components_, atol=2e-3)
    scale = double.activations_.max()
    assert_allclose(single.activations_, double.activations_, rtol=1e-3, atol=1e-3 * scale)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_number_of_threads_changes_no_bit(likelihood, many_tasks):
    X = np.random.default_rng(11).normal(0.0, 9.0, (300, 20)).round()
    X[::7, ::3] = np.nan
    results = []
    for n_jobs in (1, 2):
        estimator = model(likelihood, n_components=6, n_jobs=n_jobs, max_iter=3, tol=0)
        found = fit_quietly(estimator, X)
        results.append(
            (found.atom_shape_, found.activation_shape_, found.lower_bounds_, found.transform(X))
        )
    for here, there in zip(*results, strict=True):
        assert_array_equal(here, there)


def test_best_of_several_starts_is_kept():
    X = noisy()
    random, options = np.random.RandomState(3), {"dispersion": 0.0, "max_iter": 30}
    singles = [fit_quietly(model(random_state=random, **options), X).lower_bound_ for _ in range(4)]
    best = fit_quietly(model(random_state=3, n_init=4, **options), X)
    assert len(set(singles)) > 1
    assert best.lower_bound_ == max(singles)
    assert np.isfinite(best.stability_)
    assert np.isnan(fit_quietly(model(**options), X).stability_)


def test_pickle(fitted):
    found, X = fitted
    copy = pickle.loads(pickle.dumps(found))
    assert_array_equal(copy.transform(X), found.transform(X))
    assert_array_equal(copy.sample(2, random_state=0)[1], found.sample(2, random_state=0)[1])


@pytest.mark.parametrize(
    ("acceleration", "steps", "n_iter"),
    [(None, 0, 0), (None, 5, 5), ("squarem", 8, 2), ("parabolic", 8, 2)],
)
def test_interruption_keeps_what_there_is(monkeypatch, acceleration, steps, n_iter):
    """A cycle of steps that is cut off leaves no trace."""
    X = noisy()
    options = {"dispersion": 2.0, "noise": None, "acceleration": acceleration}
    uninterrupted = fit_quietly(model(max_iter=n_iter, tol=0, **options), X)
    step, calls = vb.step, itertools.count()

    def interrupted(problem, state):
        if next(calls) == steps:
            raise KeyboardInterrupt
        return step(problem, state)

    monkeypatch.setattr(vb, "step", interrupted)
    with pytest.warns(ConvergenceWarning, match=f"Interrupted after {n_iter} iterations"):
        found = model(**options).fit(X)
    assert found.n_iter_ == n_iter and len(found.lower_bounds_) == n_iter + 1
    assert found.stop_reason_ == "interrupted"
    assert_array_equal(found.atom_shape_, uninterrupted.atom_shape_)
    assert found.lower_bound_ == uninterrupted.lower_bound_


@pytest.mark.parametrize(("sought", "noise"), [(em, None), (search, "auto")])
def test_interruption_while_the_noise_level_is_sought(monkeypatch, sought, noise):
    """Ctrl-C ends the whole fit, not only the preliminary one."""
    step, calls = sought.step, itertools.count()

    def interrupted(problem, state):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return step(problem, state)

    monkeypatch.setattr(sought, "step", interrupted)
    X = noisy()
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        found = model(noise=noise).fit(X)
    assert found.n_iter_ == 0 and not found.converged_
    assert found.stop_reason_ == "interrupted"
    assert np.isfinite(found.transform(X)).all()


@pytest.mark.filterwarnings("ignore:.*have no observed cell")
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_sample_without_data_stays_near_its_prior(likelihood):
    """It is where α̂ = α + ℓ Σ h: hidden counts in gaps are those that the posterior expects, which
    only narrows it."""
    X = data_for(likelihood)
    X[4] = np.nan
    shape, rate = 4.0, 0.5
    priors = {"activation_shape_prior": shape, "activation_rate_prior": rate}
    found = model(likelihood, tol=1e-6, **priors).fit(X)
    own = found.activation_shape_[4]
    totals = reference.geometric_atoms(found.atom_shape_).sum(axis=(0, 2))
    assert_allclose(own, shape + reference.geometric_activations(own, rate) * totals, rtol=1e-6)
    mean = found.activations_[4] / found.dispersion_
    assert (mean < shape / rate).all()


def test_verbose_shows_a_bar(capfd):
    X = noisy()
    fit_quietly(model(max_iter=10, verbose=1), X)
    shown = capfd.readouterr()
    assert "VBEM" in shown.err and "10/10" in shown.err and "objective" in shown.err
