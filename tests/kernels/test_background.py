"""Rates that cells have without any component, in all passes: against plain NumPy."""

import numpy as np
import pytest
from kinds import stored
from numpy.testing import assert_allclose
from scipy.special import gammaln, ive

from seminmf._data.dense import DenseSource
from seminmf._data.executor import LocalExecutor
from seminmf._data.sparse import SparseSource
from seminmf._kernels.em.estep import estep
from seminmf._kernels.em.sparse_estep import estep_of_cells
from seminmf._kernels.newton.sweep import NO_STEP, PRECISE, RowProblems, sweep
from seminmf._model.likelihoods import Dispersed, Real
from seminmf._model.model import Background
from seminmf._model.penalties import Maximum
from seminmf._model.priors import Gamma

K = 3
PHI = 0.4


def log_density(x, rate0, rate1):
    """ln P of the Skellam distribution, continued to all real x; NaN counts as 0."""
    z = 2 * np.sqrt(rate0 * rate1)
    order = np.abs(x)
    log_bessel = np.log(ive(order, z)) + z
    value = log_bessel - rate0 - rate1 + x / 2 * (np.log(rate0) - np.log(rate1))
    return np.where(np.isnan(x), 0.0, value)


def expected_shares(x, rate0, rate1):
    """U₀ and U₁ = E[Z | x] / rate, 1 in a gap."""
    z = 2 * np.sqrt(rate0 * rate1)
    order = np.abs(x)
    smaller = z / 2 * ive(order + 1, z) / ive(order, z)
    larger = smaller + order
    u0 = np.where(x >= 0, larger, smaller) / rate0
    u1 = np.where(x >= 0, smaller, larger) / rate1
    return np.where(np.isnan(x), 1.0, u0), np.where(np.isnan(x), 1.0, u1)


def make(J, I, by_sample, seed=0):
    rng = np.random.default_rng(seed)
    X = PHI * rng.normal(0, 6, (J, I))
    X[rng.random(X.shape) < 0.2] = np.nan
    activations = rng.gamma(1.0, 3.0, (J, K))
    atoms = rng.gamma(1.0, size=(2, K, I))
    atoms /= atoms.sum(axis=(0, 2), keepdims=True)
    noise = rng.uniform(1, 9, (J if by_sample else 1, I))
    intercept = rng.uniform(-1, 1, I)
    weights = rng.uniform(0.5, 2, J)
    return X, activations, atoms, Background(noise, intercept), weights


# With few features samples run through the lanes of vectors, with many the features do.
SIZES = [(5, 3), (40, 5), (7, 64), (150, 30)]


@pytest.mark.parametrize("by_sample", [False, True])
@pytest.mark.parametrize(("J", "I"), SIZES)
def test_estep(J, I, by_sample):
    X, activations, atoms, background, weights = make(J, I, by_sample)
    found = estep(
        DenseSource(X),
        Dispersed.of(PHI),
        activations,
        atoms,
        weights,
        LocalExecutor(),
        background,
    )
    check_expectations(found, X, activations, atoms, background, weights)


@pytest.mark.parametrize(("J", "I"), SIZES)
def test_estep_of_stored_cells(J, I):
    X, activations, atoms, background, weights = make(J, I, by_sample=False)
    source = SparseSource(stored(X))
    arguments = source, Dispersed.of(PHI), activations, atoms, weights, LocalExecutor()
    found = estep_of_cells(*arguments, background)
    check_expectations(found, X, activations, atoms, background, weights)
    with pytest.raises(ValueError, match="the same for all samples"):
        estep_of_cells(*arguments, background._replace(noise=np.ones((J, I))))


def check_expectations(found, X, activations, atoms, background, weights):
    rates = activations @ atoms + np.broadcast_to(background.rates, (2, *X.shape))
    u = np.array(expected_shares(X / PHI, *rates))
    assert_allclose(found.activations, np.einsum("sji,ski->jk", u, atoms), rtol=1e-9)
    assert_allclose(found.atoms, np.einsum("j,sji,jk->ski", weights, u, activations), rtol=1e-9)
    levels = log_density(X / PHI, *rates)
    assert_allclose(found.data_term, np.sum(weights[:, None] * levels), rtol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "by sample", "sparse"])
def test_newton_sees_the_background(kind):
    """Levels of the samples, and activations at which the slope is 0 or points below 0."""
    X, activations, atoms, background, _ = make(40, 12, kind == "by sample")
    source = SparseSource(stored(X)) if kind == "sparse" else DenseSource(X)
    prior = Gamma(np.ones((1, 1)), np.full((1, K), 0.2))
    problems = RowProblems(
        Dispersed.of(PHI), Maximum(1.0), prior, atoms, np.ones(len(X)), background
    )
    gains = np.full(len(X), np.inf)
    still = sweep(
        source, problems, activations.copy(), NO_STEP, LocalExecutor(), gains=gains.copy()
    )
    base = np.broadcast_to(background.rates, (2, *X.shape))
    levels = -log_density(X / PHI, *(activations @ atoms + base)).sum(axis=1)
    assert_allclose(still.values, levels + 0.2 * activations.sum(axis=1), rtol=1e-9)

    found = sweep(source, problems, activations.copy(), PRECISE, LocalExecutor(), gains=gains)
    rates = found.activations @ atoms + base
    u = np.array(expected_shares(X / PHI, *rates))
    slopes = np.einsum("sji,ski->jk", 1 - u, atoms) + 0.2
    assert np.all(np.where(found.activations > 1e-9, np.abs(slopes), -slopes) < 1e-6)


def test_no_background_is_as_before():
    X, activations, atoms, _, weights = make(20, 6, by_sample=False)
    arguments = DenseSource(X), Real(1.0, 1.0), activations, atoms, weights, LocalExecutor()
    nothing = Background(np.zeros((1, 1)), np.zeros(1))
    assert estep(*arguments).data_term == estep(*arguments, nothing).data_term


def test_density_of_the_distribution():
    """At whole numbers it is the Skellam distribution, in units of the dispersion."""
    x = np.array([-3.0, 0.0, 2.0])
    series = [
        np.log(
            np.sum(
                [
                    2.0 ** (n + m) * 1.5**m / np.exp(gammaln(n + m + 1) + gammaln(m + 1))
                    for m in range(60)
                ]
            )
        )
        - 3.5
        for n in (0, 2)
    ]
    assert_allclose(log_density(x, 2.0, 1.5)[1:], series, rtol=1e-10)
    likelihood = Dispersed.of(PHI)
    values = likelihood.log_density(np.array([-1.0]), *np.zeros((3, 1)))
    assert_allclose(values, -1.0 - np.log(PHI))
