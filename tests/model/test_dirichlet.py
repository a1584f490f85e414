"""The Dirichlet prior of atoms: what maximises, what bounds, and what is drawn."""

from itertools import pairwise

import numpy as np
import pytest
import reference
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad

from seminmf._model.priors import Dirichlet, normalise

K, I = 3, 4
SHAPE = (2, K, I)
MASS = 2.5
random = np.random.default_rng(0)
PRIORS = {
    "flat": Dirichlet(np.ones((1, 1, 1))),
    "above 1": Dirichlet(random.uniform(1.0, 5.0, (1, K, 1))),
    "by entry": Dirichlet(random.uniform(1.0, 5.0, SHAPE)),
    "below 1": Dirichlet(random.uniform(0.2, 0.9, SHAPE)),
}


@pytest.fixture(params=PRIORS)
def prior(request):
    return PRIORS[request.param]


def draw_atoms(seed=1):
    atoms = np.random.default_rng(seed).dirichlet(np.ones(2 * I), K)
    return atoms.reshape(K, 2, I).transpose(1, 0, 2).copy()


def draw_counts(seed=2):
    """Some of them 0."""
    rng = np.random.default_rng(seed)
    return rng.gamma(1.0, 4.0, SHAPE) * (rng.random(SHAPE) < 0.8)


def entries(array, k):
    """Those of a component, which sum to 1."""
    return np.broadcast_to(array, SHAPE)[:, k].ravel()


# --- maximum a posteriori -------------------------------------------------------------------------


def test_m_step_maximises(prior):
    """Σ (n mass + α − 1) ln θ among all θ that sum to 1 and are not below the floor."""
    atoms, counts = draw_atoms(), draw_counts()
    updated = prior.m_step(atoms, counts.copy(), MASS)
    assert (updated >= prior.floor).all()
    assert_allclose(updated.sum(axis=(0, 2)), 1.0, rtol=1e-12)
    exponents = MASS * counts + prior.shape - 1
    rng = np.random.default_rng(3)
    for k in range(K):
        best, weights = entries(updated, k), entries(exponents, k)
        possible = best > 0  # a weight of 0 takes nothing

        def objective(theta, weights=weights, possible=possible):
            return weights[possible] @ np.log(theta[possible])

        for size in (1e-6, 1e-3, 0.1, 1.0):
            for _ in range(10):
                other = (1 - size) * best + size * rng.dirichlet(np.ones(2 * I))
                other = prior.floor + (1 - 2 * I * prior.floor) * other
                assert objective(other) <= objective(best) + 1e-10 * abs(objective(best))


def test_m_step_is_that_of_the_reference():
    """The floor included: shapes below 1 leave some entries there."""
    prior = Dirichlet(np.full((1, 1, 1), 0.4))
    found = prior.m_step(draw_atoms(), draw_counts(), mass=1.0)
    expected = reference.normalise_with_floor(draw_counts() - 0.6, prior.floor)
    assert_allclose(found, expected, rtol=1e-12)
    assert (found == prior.floor).any()


@pytest.mark.parametrize("floor", [1e-3, 0.03])
def test_normalised_counts_with_a_floor_are_those_of_the_reference(floor):
    counts = draw_counts()
    counts[:, 1] *= 1e-4
    found = normalise(counts, floor)
    assert_allclose(found, reference.normalise_with_floor(counts, floor), rtol=1e-12)
    assert_allclose(found.sum(axis=(0, 2)), 1.0, rtol=1e-12)


def test_a_component_without_counts_keeps_its_atoms():
    atoms, counts = draw_atoms().astype(np.float32), draw_counts()
    counts[:, 1] = 0
    updated = PRIORS["flat"].m_step(atoms, counts, MASS)
    assert updated.dtype == np.float32
    assert_array_equal(updated[:, 1], atoms[:, 1])
    assert not np.allclose(updated[:, 0], atoms[:, 0])


def test_log_density_is_that_of_scipy_but_for_its_constant(prior):
    def density(atoms):
        exact = (stats.dirichlet(entries(prior.shape, k)) for k in range(K))
        return sum(own.logpdf(entries(atoms, k)) for k, own in enumerate(exact))

    one, other = draw_atoms(1), draw_atoms(2)
    found = prior.log_density(one) - prior.log_density(other)
    assert found == pytest.approx(density(one) - density(other), rel=1e-10, abs=1e-12)


def test_an_atom_of_zero_has_a_density_where_its_shape_is_one():
    atoms = draw_atoms()
    atoms[0, 0, 0] = 0.0
    shape = np.full(SHAPE, 2.0)
    assert Dirichlet(shape).log_density(atoms) == -np.inf
    shape[0, 0, 0] = 1.0
    assert np.isfinite(Dirichlet(shape).log_density(atoms))


def test_atoms_stay_above_a_floor_where_the_density_has_a_pole():
    for name, prior in PRIORS.items():
        assert (prior.floor > 0) == (name == "below 1") == (not prior.is_log_concave)
        assert prior.is_flat == (name == "flat")


# --- variational Bayes ----------------------------------------------------------------------------


def test_geometric_means_are_those_of_the_marginals(prior):
    """An entry of a Dirichlet distribution is beta distributed."""
    counts = draw_counts()
    shape = prior.posterior(counts)
    assert_allclose(shape - counts, np.broadcast_to(prior.shape, SHAPE), rtol=1e-12)
    means, _ = prior.geometric_means(shape)
    for k in range(K):
        own, found = entries(shape, k), entries(means, k)
        for i in (0, 3, 6):
            marginal = stats.beta(own[i], own.sum() - own[i])
            assert found[i] == pytest.approx(np.exp(expected_log(marginal)), rel=1e-6)


def expected_log(marginal):
    """E[ln θ], in ln θ."""
    low = np.log(marginal.ppf(1e-13))
    edges = [low, *np.log(marginal.ppf([1e-3, 0.5])), 0.0]
    return sum(
        quad(lambda t: t * marginal.pdf(np.exp(t)) * np.exp(t), *pair, epsrel=1e-10, limit=200)[0]
        for pair in pairwise(edges)
    )


@pytest.mark.parametrize("prior_shape", [(1.0, 1.0), (0.5, 0.7), (3.0, 1.5)])
def test_bound_is_minus_the_divergence_from_the_prior(prior_shape):
    """Two entries: the distributions are beta, and their divergence is an integral."""
    prior = Dirichlet(np.reshape(prior_shape, (2, 1, 1)))
    shape = np.array([[[4.0], [1.2]], [[0.9], [7.0]]])  # two components of one feature
    _, term = prior.geometric_means(shape)
    before = stats.beta(*prior_shape)
    divergence = 0.0
    for k in range(2):
        posterior = stats.beta(*shape[:, k, 0])
        divergence += quad(
            lambda x, q=posterior: q.pdf(x) * (q.logpdf(x) - before.logpdf(x)), 0, 1, limit=200
        )[0]
    assert term + prior.bound_constant(shape.shape) == pytest.approx(-divergence, rel=1e-6)


def test_bound_is_zero_at_the_prior_and_below_elsewhere(prior):
    full = np.broadcast_to(prior.shape, SHAPE)
    constant = prior.bound_constant(SHAPE)
    assert prior.geometric_means(full)[1] + constant == pytest.approx(0.0, abs=1e-10)
    assert prior.geometric_means(full + draw_counts())[1] + constant < -0.1


# --- mean and draws -------------------------------------------------------------------------------


def test_mean_sums_to_one(prior):
    mean = prior.mean(SHAPE)
    assert_allclose(mean.sum(axis=(0, 2)), 1.0)
    for k in range(K):
        assert_allclose(entries(mean, k), stats.dirichlet(entries(prior.shape, k)).mean())


def test_draws_have_the_moments_of_the_prior(prior):
    n = 20_000
    full = Dirichlet(np.broadcast_to(prior.shape, SHAPE))
    draws = full.draw(np.random.RandomState(0), n)
    assert draws.shape == (n, *SHAPE)
    assert_allclose(draws.sum(axis=(1, 3)), 1.0, rtol=1e-12)
    for k in range(K):
        exact = stats.dirichlet(entries(prior.shape, k))
        own = draws[:, :, k].reshape(n, -1)
        deviations = np.sqrt(exact.var())
        assert (np.abs(own.mean(axis=0) - exact.mean()) < 5 * deviations / np.sqrt(n)).all()
        assert_allclose(own.std(axis=0), deviations, rtol=0.1)


def test_draws_of_small_shapes_are_atoms():
    draws = Dirichlet(np.full(SHAPE, 1e-5)).draw(np.random.RandomState(0), 100)
    assert np.isfinite(draws).all()
    assert_allclose(draws.sum(axis=(1, 3)), 1.0, rtol=1e-12)
