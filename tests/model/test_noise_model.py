"""Backgrounds, prices on lengths, and atoms with a ridge."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from seminmf._model.model import Background, LengthPrice
from seminmf._model.priors import normalise, normalise_with_ridge


def test_background_has_its_mean_and_variance():
    background = Background(np.array([[4.0, 9.0]]), np.array([2.0, -6.0]))
    positive, negative = background.rates
    assert_allclose(positive - negative, [[2.0, -6.0]])
    assert_allclose(positive + negative, [[8.0, 18.0]])
    assert background.of_samples(slice(3, 5)) is background
    assert_allclose(Background(np.ones((1, 1)), np.array([6.0])).rates, [[[6.0]], [[0.0]]])
    own = Background(np.arange(8.0).reshape(4, 2), np.zeros(2))
    assert_allclose(own.of_samples(slice(1, 3)).noise, [[2, 3], [4, 5]])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("strength", [0.0, 1e-6, 1.0, 1e4])
def test_atoms_with_a_ridge_are_optimal(seed, strength):
    """c / θ − r θ is the same for all entries of a component, and entries sum to 1."""
    rng = np.random.default_rng(seed)
    counts = rng.gamma(0.3, size=(2, 3, 4)) * 10 ** rng.uniform(-3, 3, (1, 3, 1))
    counts[0, 0, 0] = 0.0
    ridge = strength * rng.uniform(0.1, 5, (3, 4))
    atoms = normalise_with_ridge(counts, ridge)
    assert_allclose(atoms.sum(axis=(0, 2)), 1, rtol=1e-12)
    assert atoms[0, 0, 0] == 0
    if strength == 0:
        assert_allclose(atoms, normalise(counts), rtol=1e-10)
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = counts / atoms - ridge * atoms
    for k in range(3):
        own = slopes[:, k][counts[:, k] > 0]
        size = max(np.abs(own).max(), counts[:, k].sum())
        assert np.ptp(own) < 1e-6 * size


def test_a_ridge_touches_the_price_of_lengths():
    """The quadratic form has the slope of the price at the atoms there are, and lies above it."""
    rng = np.random.default_rng(0)
    atoms = rng.dirichlet(np.ones(8), size=3).reshape(3, 2, 4).transpose(1, 0, 2)
    price = LengthPrice(0.7, rng.uniform(0.5, 2, 4))
    totals = np.array([3.0, 5.0, 0.1])

    def paid(theta):
        return float(price.rates(theta)[0] @ totals)

    ridge = price.ridge(price.rates(atoms)[0] * totals, atoms)

    def majorant(theta):
        return 0.5 * float(np.sum(ridge * (theta**2 - atoms**2))) + paid(atoms)

    other = atoms * rng.uniform(0.2, 3, atoms.shape)
    assert majorant(other) >= paid(other)
    step = 1e-6 * (other - atoms)
    assert_allclose(
        majorant(atoms + step) - paid(atoms), paid(atoms + step) - paid(atoms), rtol=1e-4
    )
