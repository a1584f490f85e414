"""The gamma prior of activations: what maximises, what bounds, and what is drawn."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad
from scipy.special import digamma, polygamma

from seminmf._model.priors import Gamma

J, K = 6, 3
MASS = 2.5
random = np.random.default_rng(0)
# Shapes and rates, the same for all samples or with a row for each.
PRIORS = {
    "exponential": Gamma(shape=np.ones((1, 1)), rate=np.full((1, 1), 0.3)),
    "above 1": Gamma(shape=random.uniform(1.0, 5.0, (1, K)), rate=random.uniform(0.1, 2, (1, K))),
    "by sample": Gamma(shape=random.uniform(1.0, 5.0, (J, K)), rate=random.uniform(0.1, 2, (J, K))),
    "mixed rows": Gamma(shape=random.uniform(1.0, 5.0, (J, K)), rate=np.full((1, 1), 0.3)),
    "below 1": Gamma(shape=random.uniform(0.2, 0.9, (J, K)), rate=random.uniform(0.1, 2, (1, K))),
}


@pytest.fixture(params=PRIORS)
def prior(request):
    return PRIORS[request.param]


def draw_state():
    """Values, expected counts over them, and weights of the samples."""
    rng = np.random.default_rng(1)
    values = rng.gamma(1.0, 2.0, (J, K)) + 1e-3
    return values, rng.uniform(0.0, 2.0, (J, K)), rng.uniform(0.0, 2.0, J)


def integrate(function, distribution):
    """E[function] under a distribution of positive numbers, in their logarithms."""

    def integrand(log):
        value = np.exp(log)
        return function(value) * distribution.pdf(value) * value

    edges = np.log(distribution.ppf([1e-14, 1e-3, 0.5, 1 - 1e-3, 1 - 1e-14]))
    options = {"epsabs": 1e-12, "epsrel": 1e-11, "limit": 200}
    return sum(quad(integrand, *pair, **options)[0] for pair in pairwise(edges))


# --- maximum a posteriori -------------------------------------------------------------------------


def test_m_step_maximises(prior):
    """mass (n ln λ − λ) + (α − 1) ln λ − β mass λ with n = λ_old U, over λ ≥ floor."""
    values, expected, weights = draw_state()
    counts = values * expected
    updated = expected.copy()
    prior.m_step(values, updated, weights, MASS)

    def objective(new):
        gain = MASS * (counts * np.log(new) - new)
        return gain + (prior.shape - 1) * np.log(new) - prior.rate * MASS * new

    assert (updated >= prior.floor).all() and (updated > 0).all()
    best = objective(updated)
    for factor in (1 - 1e-2, 1 - 1e-4, 1 + 1e-4, 1 + 1e-2, 3.0):
        other = np.maximum(updated * factor, prior.floor)
        assert (objective(other) <= best + 1e-12 * np.abs(best)).all()


def test_m_step_returns_the_log_prior_before(prior):
    values, expected, weights = draw_state()
    assert prior.m_step(values, expected.copy(), weights, MASS) == prior.log_prior(
        values, weights, MASS
    )


def test_log_prior_is_the_density_but_for_its_constants(prior):
    """In the unit of the prior: one unit of values counts as `mass`."""
    values, other, weights = draw_state()
    unit = prior.log_unit(K, weights, MASS)

    def density(values):
        logs = stats.gamma.logpdf(MASS * values, prior.shape, scale=1 / prior.rate)
        return weights @ logs.sum(axis=1)

    found = [MASS * prior.log_prior(part, weights, MASS) + unit for part in (values, other)]
    assert found[1] - found[0] == pytest.approx(density(other) - density(values), rel=1e-11)
    constant = weights @ np.broadcast_to(prior.log_normaliser(), (J, K)).sum(axis=1)
    assert found[0] + constant == pytest.approx(density(values), rel=1e-11)


def test_values_stay_above_a_floor_where_the_density_has_a_pole():
    for name, prior in PRIORS.items():
        assert (prior.floor > 0) == (name == "below 1") == (not prior.is_log_concave)
        assert prior.is_exponential == (name == "exponential")
    poles = PRIORS["below 1"]
    values, nothing = np.ones((J, K)), np.zeros((J, K))
    poles.m_step(values, nothing, np.ones(J), MASS)
    assert_array_equal(nothing, poles.floor)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_row_stands_for_all(dtype):
    one = PRIORS["above 1"]
    each = Gamma(*(np.tile(part, (J, 1)) for part in one))
    values, expected, weights = draw_state()
    values, expected = values.astype(dtype), expected.astype(dtype)
    results = []
    for prior in (one, each):
        updated, means = expected.copy(), np.empty((J, K), dtype)
        before = prior.m_step(values, updated, weights, MASS)
        bound = prior.geometric_means(values + dtype(1), weights, MASS, means)
        assert updated.dtype == means.dtype == dtype
        results.append((before, updated, bound, means))
    for here, there in zip(*results, strict=True):
        assert_array_equal(here, there)


def test_the_prior_of_some_samples():
    rows = np.array([4, 1])
    values, _, weights = draw_state()
    for prior in PRIORS.values():
        own = prior.of_samples(rows)
        alone = own.log_prior(values[rows], weights[rows], MASS)
        counted = np.zeros(J)
        counted[rows] = weights[rows]
        assert alone == pytest.approx(prior.log_prior(values, counted, MASS), rel=1e-12)
        assert own.n_rows in (1, 2)
        assert (own.n_rows == 1) == (prior.n_rows == 1)


# --- variational Bayes ----------------------------------------------------------------------------


def draw_posterior(prior):
    """Counts, and the posterior that they lead to."""
    counts = np.random.default_rng(2).gamma(1.0, 4.0, (J, K))
    shape = prior.posterior(counts.copy())
    assert_allclose(shape - prior.shape, counts, rtol=1e-12)
    return shape, np.broadcast_to(prior.posterior_rate(), (J, K))


def test_geometric_means_are_those_of_the_posterior(prior):
    shape, rate = draw_posterior(prior)
    means = np.empty((J, K))
    prior.geometric_means(shape, np.ones(J), MASS, means)
    for j, k in ((0, 0), (3, 1), (5, 2)):
        posterior = stats.gamma(shape[j, k], scale=1 / (MASS * rate[j, k]))
        assert means[j, k] == pytest.approx(np.exp(integrate(np.log, posterior)), rel=1e-8)


def test_bound_is_minus_the_divergence_from_the_prior(prior):
    """The terms add up to −KL − E[λ]: the mean belongs to the data term (g_Z of the appendix)."""
    shape, rate = draw_posterior(prior)
    weights = np.random.default_rng(3).uniform(0.0, 2.0, J)
    term = prior.geometric_means(shape, weights, 1.0, np.empty((J, K)))
    constants = np.broadcast_to(prior.bound_constant(), (J, K)).sum(axis=1)
    full = Gamma(*(np.broadcast_to(part, (J, K)) for part in prior))
    expected = 0.0
    for j, k in np.ndindex(J, K):
        posterior = stats.gamma(shape[j, k], scale=1 / rate[j, k])
        before = stats.gamma(full.shape[j, k], scale=1 / full.rate[j, k])

        def gain(value, before=before, posterior=posterior):
            return before.logpdf(value) - posterior.logpdf(value)

        expected += weights[j] * (integrate(gain, posterior) - posterior.mean())
    assert term + weights @ constants == pytest.approx(expected, rel=1e-7)


# --- density and draws ----------------------------------------------------------------------------


def test_density_of_logarithms(prior):
    values, _, _ = draw_state()
    logs = np.log(values)
    expected = stats.gamma.logpdf(values, prior.shape, scale=1 / prior.rate) + logs
    assert_allclose(prior.log_density(logs, values), expected, rtol=1e-11)


def test_density_of_sums_is_that_of_all_entries():
    prior = Gamma(shape=np.array(2.5), rate=np.array(0.4))
    values = np.random.default_rng(0).gamma(1.0, 5.0, (4, K))
    together = prior.log_density(np.log(values).sum(axis=1), values.sum(axis=1), count=K)
    assert_allclose(together, prior.log_density(np.log(values), values).sum(axis=1), rtol=1e-12)


def test_scores_are_derivatives_by_logarithms(prior):
    values, _, _ = draw_state()
    logs = np.log(values)
    step = 1e-6
    found = prior.scores(values, logs)
    for name, scores in zip(("shape", "rate"), found, strict=True):
        above, below = (
            prior._replace(**{name: getattr(prior, name) * np.exp(sign * step)}).log_density(
                logs, values
            )
            for sign in (1, -1)
        )
        numeric = (above - below) / (2 * step)
        assert_allclose(np.broadcast_to(scores, (J, K)), numeric, rtol=1e-5, atol=1e-6)


def test_draws_have_the_moments_of_the_prior(prior):
    rng = np.random.RandomState(0)
    shape, rate = np.broadcast_arrays(*prior)
    n = 20_000
    draws = prior.draw(rng, (n, *shape.shape))
    logs = np.array([prior.draw_logs(rng) for _ in range(n)])
    deviations = np.sqrt(shape) / rate
    error = 5 / np.sqrt(n)
    assert_allclose(draws.mean(axis=0), prior.mean, atol=error * deviations.max())
    assert_allclose(draws.std(axis=0), deviations, rtol=0.1)
    spread = np.sqrt(polygamma(1, shape))
    assert_allclose(logs.mean(axis=0), digamma(shape) - np.log(rate), atol=error * spread.max())
    assert_allclose(logs.std(axis=0), spread, rtol=0.1)


def test_logarithms_of_draws_are_finite_for_any_shape():
    prior = Gamma(shape=np.array([[1e-300, 1e-8, 1e8]]), rate=np.ones((1, 3)))
    logs = np.array([prior.draw_logs(np.random.RandomState(seed)) for seed in range(100)])
    assert np.isfinite(logs).all()
    assert (logs[:, 0, 0] < -1e200).all()
