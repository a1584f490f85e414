"""The mathematics itself, checked on the reference implementation.

Formulas are compared with independent ones, objective and bound must never fall, and the bound
must lie below the evidence, which on problems of one component and one feature is an integral.
"""

from functools import partial

import mpmath
import numpy as np
import pytest
import reference
from one_feature import (
    ONE_FEATURE_DATA,
    ONE_FEATURE_PRIORS,
    converged_bound,
    evidence_rate,
    log_evidence,
    settings_of,
)
from scipy import stats
from scipy.optimize import approx_fprime
from scipy.special import xlogy

LIKELIHOODS = ["integer", "real"]
CELLS = [(0, 0.3, 0.7), (3, 2.5, 1.0), (-4, 0.2, 6.0), (12, 20.0, 31.0), (-1, 150.0, 40.0)]

J, I, K = 7, 5, 3


def problem(likelihood, *, gaps=False, seed=0):
    """Data of a few samples, and a start for activations and atoms."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0.0, 6.0, (J, I))
    if likelihood == "integer":
        X = X.round()
    if gaps:
        X[rng.random((J, I)) < 0.3] = np.nan
    activations = rng.gamma(2.0, 5.0, (J, K))
    atoms = rng.dirichlet(np.ones(2 * I), K).reshape(K, 2, I).swapaxes(0, 1)
    return X, activations, atoms


def priors(kind):
    """Hyperparameters in each of the shapes that a user may give."""
    rng = np.random.default_rng(1)
    if kind == "default":
        return {"activation_shape": 1.0, "activation_rate": 1e-3, "atom_shape": 1.0}
    if kind == "broadcast":
        return {
            "activation_shape": rng.uniform(1.0, 3.0, K),
            "activation_rate": rng.uniform(0.1, 1.0, (J, 1)),
            "atom_shape": rng.uniform(1.0, 2.0, (2, 1, I)),
        }
    return {
        "activation_shape": rng.uniform(0.2, 1.5, (J, K)),
        "activation_rate": rng.uniform(0.01, 1.0, (J, K)),
        "atom_shape": rng.uniform(0.2, 1.5, (2, K, I)),
    }


def iterate(step, state, n_iter):
    """The states of an iteration, the start included."""
    states = [state]
    for _ in range(n_iter):
        states.append(step(*states[-1]))
    return states


def assert_never_falls(values):
    values = np.array(values)
    assert np.isfinite(values).all()
    assert (np.diff(values) >= -1e-11 * np.abs(values[:-1])).all()
    assert values[-1] > values[0]


# --- One cell ---


@pytest.mark.parametrize(("x", "rate0", "rate1"), CELLS)
def test_integer_likelihood_is_skellam(x, rate0, rate1):
    value = reference.log_likelihood(x, np.array([rate0, rate1]), "integer")
    assert value == pytest.approx(stats.skellam.logpmf(x, rate0, rate1), rel=1e-9)


@pytest.mark.parametrize(("x", "rate0", "rate1"), CELLS)
def test_hypergeometric_term_and_expectation_follow_the_paper(x, rate0, rate1):
    """The sums over hidden counts are the paper's 0F1 and ratio of Bessel functions."""
    sigma = rate0 * rate1
    n = abs(x)
    exact = mpmath.log(mpmath.hyp0f1(n + 1, sigma) / mpmath.gamma(n + 1))
    assert reference.log_hyp(x, sigma, "integer") == pytest.approx(float(exact), rel=1e-12)

    z = 2 * mpmath.sqrt(sigma)
    ratio = mpmath.besseli(n + 2, z) / mpmath.besseli(n + 1, z)
    exact = sigma / (n + 1 + mpmath.sqrt(sigma) * ratio)
    assert reference.smaller_side(x, sigma, "integer") == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize(("x", "rate0", "rate1"), CELLS)
def test_gradient_is_multiplier_minus_one(x, rate0, rate1, likelihood):
    rates = np.array([rate0, rate1])
    U = reference.multipliers(x, rates, likelihood)
    for s in (0, 1):
        step = np.zeros(2)
        step[s] = 1e-5 * rates[s]
        slope = (
            reference.log_likelihood(x, rates + step, likelihood)
            - reference.log_likelihood(x, rates - step, likelihood)
        ) / (2 * step[s])
        assert slope == pytest.approx(U[s] - 1, rel=1e-6, abs=1e-7)
    assert U[0] * rate0 - U[1] * rate1 == pytest.approx(x, abs=1e-10)


@pytest.mark.parametrize(("x", "rate0", "rate1"), CELLS)
def test_real_likelihood_is_the_limit_of_means(x, rate0, rate1):
    """(1/M) ln P(M x) for M-fold rates tends to −D, with an error of order ln(M)/M."""
    rates = np.array([rate0, rate1])
    limit = reference.log_likelihood(x, rates, "real")
    for M in (100, 10_000):
        mean = reference.log_likelihood(M * x, M * rates, "integer") / M
        assert mean == pytest.approx(limit, abs=2 * np.log(100 * M) / M)


@pytest.mark.parametrize(("x", "rate0", "rate1"), CELLS)
def test_divergence_is_a_projection_of_kl(x, rate0, rate1):
    """D(x | λ) is the least KL(z | λ) with z₀ − z₁ = x, and the E-step is where it is reached."""
    rates = np.array([rate0, rate1])

    def kl(z):
        return np.sum(xlogy(z, z / rates) - z + rates)

    expected = reference.multipliers(x, rates, "real") * rates
    least = kl(expected)
    assert least == pytest.approx(-reference.log_likelihood(x, rates, "real"), abs=1e-11)
    for change in (-0.9, -0.01, 0.01, 2.0):
        assert kl(expected + change * expected.min()) > least


def test_divergence():
    """D ≥ 0 with equality where x = λ₀ − λ₁; it is the KL divergence for λ₁ = 0."""

    def divergence(x, rate0, rate1):
        return -reference.log_likelihood(x, np.array([rate0, rate1]), "real")

    for x, rate0, rate1 in CELLS:
        assert divergence(x, rate0, rate1) > 0
        assert divergence(rate0 - rate1, rate0, rate1) == pytest.approx(0.0, abs=1e-12)
        assert divergence(rate0, rate1, 0.0) == pytest.approx(
            xlogy(rate0, rate0 / rate1) - rate0 + rate1, abs=1e-12
        )
        assert divergence(3 * x, 3 * rate0, 3 * rate1) == pytest.approx(
            3 * divergence(x, rate0, rate1)
        )


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_zero_data_and_zero_rates_are_harmless(likelihood):
    for rates in ([0.0, 0.0], [0.0, 2.0], [2.0, 0.0]):
        U = reference.multipliers(0.0, np.array(rates), likelihood)
        assert np.isfinite(U).all()
        assert reference.log_likelihood(0.0, np.array(rates), likelihood) == -sum(rates)


# --- EM ---


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("prior", ["default", "broadcast", "small shapes"])
@pytest.mark.parametrize("frozen", [None, [1]])
def test_em_objective_never_falls(likelihood, gaps, prior, frozen):
    X, activations, atoms = problem(likelihood, gaps=gaps)
    settings = {
        "likelihood": likelihood,
        "sample_weight": np.linspace(0.5, 3.0, J),
        **priors(prior),
    }
    floors = {"activation_floor": 1e-6, "atom_floor": 1e-5} if prior == "small shapes" else {}

    states = iterate(
        lambda a, t: reference.em_iteration(X, a, t, frozen=frozen, **settings, **floors),
        (activations, atoms),
        25,
    )
    assert_never_falls([reference.em_objective(X, a, t, **settings) for a, t in states])
    for _, theta in states[1:]:
        np.testing.assert_allclose(theta.sum(axis=(0, 2)), 1.0, rtol=1e-12)
        assert (theta >= 0).all()
        if frozen:
            np.testing.assert_array_equal(theta[:, frozen], atoms[:, frozen])


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_em_ends_at_a_stationary_point(likelihood):
    X, activations, atoms = problem(likelihood, gaps=True)
    settings = {"likelihood": likelihood, **priors("broadcast")}
    step = partial(reference.em_iteration, X, **settings)
    activations, atoms = iterate(step, (activations, atoms), 300)[-1]

    def in_logarithms(log_change):
        """f of changed parameters; renormalisation keeps the atoms on the simplex."""
        a = activations * np.exp(log_change[: J * K].reshape(J, K))
        t = atoms * np.exp(log_change[J * K :].reshape(2, K, I))
        return reference.em_objective(X, a, t / t.sum(axis=(0, 2), keepdims=True), **settings)

    gradient = approx_fprime(np.zeros(activations.size + atoms.size), in_logarithms, 1e-6)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-3)


@pytest.mark.parametrize(
    "counts",
    [
        [[2.0, 1.0], [3.0, 0.5]],
        [[-0.5, 2.0], [1.0, 1e-9]],
        [[-0.5, -0.2], [-0.4, 0.0]],
        [[-0.5, -0.2], [-0.4, 1e-6]],
    ],
)
def test_floor_rule_is_the_optimal_m_step(counts):
    """With a fixed floor, nothing feasible beats θ = max(c/ν, ε): that keeps EM monotone."""
    c, floor = np.array(counts), 1e-3
    theta = reference.floored_distribution(c, floor)
    assert theta.sum() == pytest.approx(1.0) and theta.min() >= floor
    np.testing.assert_array_equal(theta[c < 0][theta[c < 0] < 0.5], floor)

    best = np.sum(c * np.log(theta))
    for draw in np.random.default_rng(0).dirichlet(np.full(c.size, 0.2), 2000):
        rival = floor + (1 - floor * c.size) * draw.reshape(c.shape)
        assert np.sum(c * np.log(rival)) <= best + 1e-12


# --- Variational Bayes ---


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("prior", ["default", "broadcast", "small shapes"])
@pytest.mark.parametrize("frozen", [None, [1]])
def test_vb_bound_never_falls(likelihood, gaps, prior, frozen):
    X, activations, atoms = problem(likelihood, gaps=gaps)
    settings = {
        "likelihood": likelihood,
        "sample_weight": np.linspace(0.5, 3.0, J),
        **priors(prior),
    }
    states = iterate(
        lambda a, t: reference.vb_iteration(X, a, t, frozen=frozen, **settings),
        (activations, 20 * atoms),
        25,
    )
    assert_never_falls([reference.vb_bound(X, a, t, **settings) for a, t in states])


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_vb_ends_at_a_stationary_point(likelihood):
    X, activations, atoms = problem(likelihood, gaps=True)
    settings = {"likelihood": likelihood, **priors("broadcast")}
    step = partial(reference.vb_iteration, X, **settings)
    activation_shape, atom_shape = iterate(step, (activations, 20 * atoms), 300)[-1]

    def in_logarithms(log_change):
        a = activation_shape * np.exp(log_change[: J * K].reshape(J, K))
        t = atom_shape * np.exp(log_change[J * K :].reshape(2, K, I))
        return reference.vb_bound(X, a, t, **settings)

    gradient = approx_fprime(np.zeros(activations.size + atoms.size), in_logarithms, 1e-6)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-3)


# --- Weights ---


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_integer_weight_is_a_repeated_sample(likelihood):
    X, activations, atoms = problem(likelihood, gaps=True)
    weights = np.arange(J) % 3
    rows = np.repeat(np.arange(J), weights)

    settings = {"likelihood": likelihood, **priors("default")}
    weighted, repeated = settings | {"sample_weight": weights}, settings
    for step, value, t in [
        (reference.em_iteration, reference.em_objective, atoms),
        (reference.vb_iteration, reference.vb_bound, 20 * atoms),
    ]:
        a_weighted, t_weighted = step(X, activations, t, **weighted)
        a_repeated, t_repeated = step(X[rows], activations[rows], t, **repeated)
        np.testing.assert_allclose(a_weighted[rows], a_repeated, rtol=1e-12)
        np.testing.assert_allclose(t_weighted, t_repeated, rtol=1e-12)
        assert value(X, activations, t, **weighted) == pytest.approx(
            value(X[rows], activations[rows], t, **repeated), rel=1e-12
        )


# --- The bound and the evidence ---


def arbitrary_bounds(x, prior, likelihood):
    """Bounds of random posteriors: each must hold, converged or not."""
    X = np.reshape(x, (-1, 1))
    rng = np.random.default_rng(0)
    for _ in range(20):
        activation_shape = 0.05 + rng.gamma(1.0, 5.0, X.shape)
        atom_shape = 0.05 + rng.gamma(1.0, 3.0, (2, 1, 1))
        yield reference.vb_bound(X, activation_shape, atom_shape, **settings_of(prior, likelihood))


def exact_pmf(x, prior):
    """P(x) of one cell: the total count is negative binomial, the positive one beta-binomial."""
    smaller = np.arange(2000)
    positive = smaller + max(x, 0)
    total = 2 * smaller + abs(x)
    rate = prior["activation_rate"]
    counts = stats.nbinom.pmf(total, prior["activation_shape"], rate / (1 + rate))
    return np.sum(counts * stats.betabinom.pmf(positive, total, *prior["atom_shape"]))


@pytest.mark.parametrize("prior", ONE_FEATURE_PRIORS)
@pytest.mark.parametrize("x", [0, 3, -5])
def test_quadrature_is_right(prior, x):
    assert log_evidence((x,), prior) == pytest.approx(np.log(exact_pmf(x, prior)), abs=1e-6)


@pytest.mark.parametrize("x", [0.5, 3.0])
def test_evidence_rate_is_right(x):
    """Against P(M x) itself, from the M-fold convolution of the prior predictive distribution."""
    prior = ONE_FEATURE_PRIORS[1]
    M, reach = 64, 60
    pmf = np.array([exact_pmf(n, prior) for n in range(-reach, reach + 1)])
    for _ in range(int(np.log2(M))):
        pmf = np.convolve(pmf, pmf)
    log_probability = np.log(pmf[int(M * (reach + x))])
    # P(M x) has a factor of order 1/sqrt(M) besides the exponential one.
    assert log_probability / M == pytest.approx(
        evidence_rate((x,), prior), abs=np.log(100 * M) / (2 * M)
    )


@pytest.mark.parametrize("prior", ONE_FEATURE_PRIORS)
@pytest.mark.parametrize("x", ONE_FEATURE_DATA)
@pytest.mark.parametrize(
    ("likelihood", "exact"), [("integer", log_evidence), ("real", evidence_rate)]
)
def test_bound_lies_below_the_evidence(prior, x, likelihood, exact):
    evidence = exact(x, prior)
    bound = converged_bound(x, prior, likelihood)
    assert bound <= evidence + 1e-7
    # Not by being empty; for real data the evidence is that of many draws of the parameters.
    assert bound > evidence - (1.5 if likelihood == "integer" else 4.0)
    assert max(arbitrary_bounds(x, prior, likelihood)) <= bound + 1e-9
