"""What is kept of atoms that were seen: against quadrature, and what must not change it."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma, gammaln

from seminmf._kernels.evidence.log_means import log_mass_beyond_normal
from seminmf._prior_learning.atom_history import AtomHistory, AtomRecord


def moments(shape, best_for, information):
    """E[ln z] and E[z] of z^(α−1) exp(−½ f (z−1)² − α̂ (z−1)), by adaptive quadrature in ln z."""

    def weight(u):
        z = np.exp(u)
        return np.exp(shape * u - 0.5 * information * (z - 1) ** 2 - best_for * (z - 1))

    edges = [-800 if shape < 0.1 else -60, -10, -2, 0, 1, 3, 6]
    mass, first, mean = (
        sum(
            quad(lambda u, g=g: g(u) * weight(u), low, high, limit=200)[0]
            for low, high in itertools.pairwise(edges)
        )
        for g in (lambda u: 1.0, lambda u: u, np.exp)
    )
    return first / mass, mean / mass


def draw_record(seed, n_features=3):
    random = np.random.RandomState(seed)
    shape = (2, 2, n_features)
    log_best = np.log(random.gamma(1.0, size=shape))
    log_best -= np.log(np.exp(log_best).sum(axis=(0, 2), keepdims=True))
    information, best_for = random.gamma(1, 30, size=shape), random.gamma(1, 2, size=shape)
    return AtomRecord(log_best=log_best, information=information, best_for=best_for)


@pytest.mark.parametrize("shape", [0.02, 1.0, 8.0, 300.0])
@pytest.mark.parametrize("best_for", [0.02, 1.0, 20.0])
@pytest.mark.parametrize("information", [0.001, 3.0, 80.0, 5000.0])
def test_expectations_agree_with_quadrature(shape, best_for, information):
    if shape > 100 * (best_for + information):
        pytest.skip("the best value is far from that which the record was made at")
    record = AtomRecord(
        log_best=np.log(np.array([[[0.3]], [[0.7]]])),
        information=np.array([[[information]], [[1e9]]]),
        best_for=np.array([[[best_for]], [[1.0]]]),
    )
    found = AtomHistory.following(record).log_atoms(np.array([[[shape]], [[1.0]]]))
    mean_log, mean = moments(shape, best_for, information)
    expected = np.log(0.3) + mean_log - np.log(0.3 * mean + 0.7)
    np.testing.assert_allclose(found[0, 0, 0], expected, rtol=5e-3, atol=5e-3)


def test_much_information_leaves_the_atoms_where_they_are():
    record = draw_record(0)._replace(information=np.full((2, 2, 3), 1e9))
    for shape in (0.05, 5.0):
        found = AtomHistory.following(record).log_atoms(np.full((2, 2, 3), shape))
        np.testing.assert_allclose(found, record.log_best, atol=1e-6)


def test_without_information_the_prior_is_what_comes_back():
    """A posterior that is its prior: E[ln θ] = ψ(α) − ψ(Σα) for the shapes it was made for."""
    shape = np.random.RandomState(0).gamma(2, 3, size=(2, 2, 3)) + 20
    log_best = np.log(shape / shape.sum(axis=(0, 2), keepdims=True))
    record = AtomRecord(log_best=log_best, information=np.zeros((2, 2, 3)), best_for=shape)
    history = AtomHistory.following(record)
    expected = digamma(shape) - digamma(shape.sum(axis=(0, 2), keepdims=True))
    np.testing.assert_allclose(history.log_atoms(shape), expected, atol=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_expectations_are_those_of_atoms_that_sum_to_one(seed):
    history = AtomHistory.following(draw_record(seed))
    for factor in (0.1, 1, 10, 1000):
        logs = history.log_atoms(np.full((2, 2, 3), factor))
        assert np.all(np.exp(logs).sum(axis=(0, 2)) <= 1 + 1e-9)


def test_histories_add_up_and_forget():
    records = [draw_record(seed) for seed in range(3)]
    shape = np.full((2, 2, 3), 2.0)
    parts = [AtomHistory.following(record) for record in records]
    fixed = AtomHistory.fixed(np.log(np.full((2, 2, 3), 1 / 6)))
    joined = fixed.times(0.4).joined(*(part.times(0.2) for part in parts))
    expected = 0.4 * fixed.settled + 0.2 * sum(part.log_atoms(shape) for part in parts)
    np.testing.assert_allclose(joined.log_atoms(shape), expected)


def test_a_long_history_settles_its_oldest(monkeypatch):
    from seminmf._prior_learning import atom_history

    monkeypatch.setattr(atom_history, "_MOST_RECORDS", 2)
    shape = np.full((2, 2, 3), 2.0)
    first, *others = (AtomHistory.following(draw_record(seed)).times(0.25) for seed in range(4))
    history = first.joined(*others)
    short = history.shortened(shape)
    assert len(short.weights) == 2
    np.testing.assert_allclose(short.log_atoms(shape), history.log_atoms(shape))
    np.testing.assert_array_equal(short.log_best, history.log_best[2:])


@pytest.mark.parametrize("shape", [0.02, 0.5, 5.0, 500.0])
def test_mass_beyond_normal_is_stirlings_error_without_data(shape):
    """∫ z^(α−1) exp(−α(z−1)) dz = Γ(α) e^α / α^α, and Laplace's method has √(2π/α)."""
    exact = gammaln(shape) + shape - shape * np.log(shape)
    expected = exact - 0.5 * np.log(2 * np.pi / shape)
    found = log_mass_beyond_normal(np.array([shape]), np.array([1e-12]))
    np.testing.assert_allclose(found, expected, atol=2e-3)
