"""The sampler has the moments of the model, and says what is wrong with its arguments."""

import numpy as np
import pytest

from seminmf import sample_skellam_snmf

# Draws are seeded, so that a failure is a fact; five standard errors is where one would be news.
SIGMAS = 5.0


def assert_mean(draws, expected, axis=0):
    """Sample means agree with the expectation, within their standard errors."""
    error = draws.std(axis=axis, ddof=1) / np.sqrt(draws.shape[axis])
    assert (np.abs(draws.mean(axis=axis) - expected) <= SIGMAS * error).all()


def many_atoms(atom_shape, n_draws):
    """Draws of one component's atoms as rows: components are independent."""
    atom_shape = np.asarray(atom_shape)
    _, atoms, _ = sample_skellam_snmf(
        1, atom_shape.shape[1], n_draws, atom_shape=atom_shape[:, np.newaxis, :], random_state=0
    )
    return atoms.swapaxes(0, 1).reshape(n_draws, -1)


@pytest.mark.parametrize("M", [1, 7, np.inf])
def test_shapes_and_constraints(M):
    X, atoms, activations = sample_skellam_snmf(6, 5, 3, M=M, random_state=0)
    assert X.shape == (6, 5) and atoms.shape == (2, 3, 5) and activations.shape == (6, 3)
    assert X.dtype == atoms.dtype == activations.dtype == np.float64
    assert (atoms >= 0).all() and (activations >= 0).all()
    np.testing.assert_allclose(atoms.sum(axis=(0, 2)), 1.0, rtol=1e-14)


@pytest.mark.parametrize(("shape", "rate"), [(0.3, 0.02), (1.0, 0.01), (50.0, 2.0)])
def test_activations_are_gamma(shape, rate):
    _, _, activations = sample_skellam_snmf(
        20_000, 1, 1, activation_shape=shape, activation_rate=rate, random_state=0
    )
    draws = activations[:, 0]
    assert_mean(draws, shape / rate)
    assert_mean((draws - shape / rate) ** 2, shape / rate**2)


@pytest.mark.parametrize(
    "atom_shape", [[[1.0, 1.0], [1.0, 1.0]], [[0.5, 8.0], [2.0, 0.02]], [[0.02, 0.02], [0.02, 3.0]]]
)
def test_atoms_are_dirichlet(atom_shape):
    draws = many_atoms(atom_shape, 20_000)
    concentration = np.ravel(atom_shape)
    total = concentration.sum()
    mean = concentration / total
    assert_mean(draws, mean)
    assert_mean((draws - mean) ** 2, mean * (1 - mean) / (total + 1))


@pytest.mark.parametrize("tiny", [0.02, 1e-3, 1e-12, 1e-310])
def test_tiny_shapes_still_give_distributions(tiny):
    draws = many_atoms(np.full((2, 3), tiny), 3_000)
    assert np.isfinite(draws).all()
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-14)
    assert_mean(draws, 1 / 6)

    X, _, activations = sample_skellam_snmf(50, 3, 2, activation_shape=tiny, random_state=0)
    assert np.isfinite(X).all() and np.isfinite(activations).all()


@pytest.mark.parametrize("M", [1, 10])
@pytest.mark.parametrize("seed", range(3))
def test_data_have_skellam_moments(M, seed):
    X, atoms, activations = sample_skellam_snmf(4_000, 5, 3, M=M, random_state=seed)
    rates = activations @ atoms
    residual = X - (rates[0] - rates[1])
    variance = (rates[0] + rates[1]) / M
    assert_mean(residual, 0.0)
    assert_mean(residual**2 - variance, 0.0)


def test_m_1_gives_integers_and_m_multiples_of_its_inverse():
    X, _, _ = sample_skellam_snmf(30, 4, 2, random_state=0)
    np.testing.assert_array_equal(X, np.round(X))
    assert X.min() < 0 < X.max()

    X, _, _ = sample_skellam_snmf(30, 4, 2, M=8, random_state=0)
    np.testing.assert_array_equal(8 * X, np.round(8 * X))
    assert (X != np.round(X)).any()


def test_converges_to_noise_free_data():
    clean, atoms, activations = sample_skellam_snmf(200, 4, 2, M=np.inf, random_state=0)
    np.testing.assert_allclose(clean, activations @ (atoms[0] - atoms[1]), atol=1e-12)

    def noise(M):
        X, _, _ = sample_skellam_snmf(200, 4, 2, M=M, random_state=0)
        return np.sqrt(np.mean((X - clean) ** 2))

    # The parameters are drawn before the data, so M changes nothing but the noise.
    assert noise(100) == pytest.approx(noise(1) / 10, rel=0.2)
    assert noise(10**12) < 1e-4


def test_missing_share():
    full, *_ = sample_skellam_snmf(40, 25, 2, random_state=0)
    X, *_ = sample_skellam_snmf(40, 25, 2, missing=0.3, random_state=0)
    gaps = np.isnan(X)
    assert gaps.sum() == 300
    assert gaps.any(axis=0).all() and not gaps.all(axis=1).any()
    np.testing.assert_array_equal(X[~gaps], full[~gaps])


def test_reproducible():
    first = sample_skellam_snmf(5, 4, 3, missing=0.2, random_state=3)
    again = sample_skellam_snmf(5, 4, 3, missing=0.2, random_state=np.random.RandomState(3))
    other = sample_skellam_snmf(5, 4, 3, missing=0.2, random_state=4)
    for one, two, three in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one, two)
        assert not np.array_equal(one, three, equal_nan=True)


def test_sharing_maps_are_broadcast_priors():
    """Each map draws the same numbers as the array that it stands for."""
    J, K, I = 4, 3, 2
    rng = np.random.default_rng(0)
    shape, rate = rng.uniform(0.5, 2.0, K), rng.uniform(0.01, 0.02, (J, K))
    atom_shape = rng.uniform(0.5, 2.0, 2)
    by_sign = np.broadcast_to(np.arange(2)[:, np.newaxis, np.newaxis], (2, K, I))

    shared = sample_skellam_snmf(
        J,
        I,
        K,
        activation_shape=shape,
        activation_shape_sharing="component",
        activation_rate=rate.ravel(),
        activation_rate_sharing="entry",
        atom_shape=atom_shape,
        atom_sharing=by_sign,
        random_state=0,
    )
    plain = sample_skellam_snmf(
        J,
        I,
        K,
        activation_shape=shape,
        activation_rate=rate,
        atom_shape=atom_shape[by_sign],
        random_state=0,
    )
    for one, two in zip(shared, plain, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples must be an integer of at least 1, found 0"),
        ({"n_features": 2.0}, "n_features must be an integer of at least 1, found 2.0"),
        ({"n_components": True}, "n_components must be an integer of at least 1, found True"),
        ({"M": 0}, "M must be an integer of at least 1 or np.inf, found 0"),
        ({"M": 1.5}, "M must be an integer of at least 1 or np.inf, found 1.5"),
        ({"M": np.nan}, "M must be an integer of at least 1 or np.inf, found nan"),
        ({"missing": 1.0}, "missing must be a number from 0 up to but not including 1, found 1.0"),
        ({"missing": "few"}, "missing must be a number from 0 .* found 'few'"),
        ({"atom_shape": 0.0}, "atom_shape must be positive and finite, found 0.0"),
        ({"activation_rate": [1.0, np.nan]}, "activation_rate must be positive .* found nan"),
        ({"activation_shape": [1.0, np.inf]}, "activation_shape must be positive .* found inf"),
        ({"activation_shape": "big"}, "activation_shape must be a number .* found 'big'"),
        (
            {"atom_shape": np.ones((2, 4))},
            r"atom_shape has shape \(2, 4\), which does not broadcast to \(2, 2, 3\)",
        ),
        (
            {"activation_rate": 1e-25},
            r"activation_rate is too small for activation_shape: .* M=1 accepts sums up to 9e\+18",
        ),
        (
            {"atom_shape": [1.0, 2.0, 3.0], "atom_sharing": "component"},
            r"atom_shape has shape \(3,\), but its sharing map needs a vector of 2 values",
        ),
        ({"atom_sharing": "row"}, "atom_sharing must be 'all', .* found 'row'"),
        (
            {"activation_shape_sharing": np.zeros((2, 3), dtype=int)},
            r"activation_shape_sharing has shape \(2, 3\), but its parameter has shape \(4, 2\)",
        ),
        (
            {"activation_rate_sharing": np.zeros((4, 2))},
            "activation_rate_sharing must hold integer labels, found dtype float64",
        ),
        (
            {"activation_rate_sharing": np.full((4, 2), 3)},
            "activation_rate_sharing must use each of the labels 0, 1, .* from 3 to 3",
        ),
    ],
)
def test_errors(arguments, message):
    sizes = {"n_samples": 4, "n_features": 3, "n_components": 2}
    with pytest.raises(ValueError, match=message):
        sample_skellam_snmf(**(sizes | arguments))
