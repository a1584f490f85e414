"""The paper's four scenarios of synthetic integers, and the errors of what is found in them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from ..generate import sample_skellam_snmf

N_FEATURES = 3
MEAN_ACTIVATION = 300.0
# Shape of the sign that an entry hardly has, where hidden sources have a low variance.
RARE_SIGN = 0.02
# Draws of one seed, after which those of the next one begin.
_DRAWS_OF_A_SEED = 100


class Truth(NamedTuple):
    """Hyperparameters: shapes and rates (K,) of activations, and shapes (2, K, I) of atoms."""

    activation_shape: NDArray
    activation_rate: NDArray
    atom_shape: NDArray

    def matrix(self, seed: int, number: int, n_samples: int) -> tuple[NDArray, NDArray, NDArray]:
        """Data, atoms and activations of one matrix."""
        _, n_components, n_features = self.atom_shape.shape
        return sample_skellam_snmf(
            n_samples,
            n_features,
            n_components,
            **self._asdict(),
            random_state=(10**5 * seed + number) % 2**32,
        )

    def parameters(self) -> dict[str, NDArray]:
        """As those of an estimator."""
        return {f"{name}_prior": value for name, value in self._asdict().items()}

    def means(self, n_samples: int) -> tuple[NDArray, NDArray]:
        """Prior means of atoms (2, K, I) and activations (J, K)."""
        atoms = self.atom_shape / self.atom_shape.sum(axis=(0, 2), keepdims=True)
        activations = self.activation_shape / self.activation_rate
        return atoms, np.tile(activations, (n_samples, 1))


class Scenario(NamedTuple):
    """How hyperparameters are drawn.

    Attributes
    ----------
    atom_shapes : tuple of two floats
        Shapes of the atoms are uniform between these.
    activation_shapes : tuple of floats
        One for each component.
    low_variance : bool
        Whether each entry of an atom has one sign only, but for traces of the other.
    """

    atom_shapes: tuple[float, float]
    activation_shapes: tuple[float, ...]
    low_variance: bool

    def draw(self, seed: int) -> Truth:
        """Hyperparameters of a seed."""
        low, high = self.atom_shapes
        activation_shape = np.array(self.activation_shapes)
        uniform = RandomState(seed).uniform(size=(2, len(activation_shape), N_FEATURES))
        atom_shape = low + (high - low) * uniform
        if self.low_variance:
            atom_shape[atom_shape == atom_shape.min(axis=0)] = RARE_SIGN
        return Truth(activation_shape, activation_shape / MEAN_ACTIVATION, atom_shape)


def _scenarios(largest_shape: float) -> dict[str, Scenario]:
    low, high = ((1.0, largest_shape), (5.0, 50.0)), ((0.5, 1.0), (0.8, 0.5))
    return {
        "low uncertainty": Scenario(*low, low_variance=False),
        "low uncertainty, low variance": Scenario(*low, low_variance=True),
        "high uncertainty": Scenario(*high, low_variance=False),
        "high uncertainty, low variance": Scenario(*high, low_variance=True),
    }


# As the paper's text has them, and as they were in the runs that it publishes.
SCENARIOS, PUBLISHED = _scenarios(10.0), _scenarios(11.0)


def draw_seeds(seed: int, n_draws: int) -> range:
    """Seeds of the draws that belong to the seed of an experiment."""
    first = _DRAWS_OF_A_SEED * seed
    return range(first, first + n_draws)


def mse_m(
    atoms: NDArray, activations: NDArray, found_atoms: NDArray, found_activations: NDArray
) -> float:
    """Mean square error of the means of the hidden sources, λ_kj (θ_0ki − θ_1ki)."""
    true = activations[:, :, None] * (atoms[0] - atoms[1])
    found = found_activations[:, :, None] * (found_atoms[0] - found_atoms[1])
    return float(np.mean((true - found) ** 2))


def mse_v(
    atoms: NDArray, activations: NDArray, found_atoms: NDArray, found_activations: NDArray
) -> float:
    """Mean square error of their variances, λ_kj (θ_0ki + θ_1ki)."""
    true = activations[:, :, None] * (atoms[0] + atoms[1])
    found = found_activations[:, :, None] * (found_atoms[0] + found_atoms[1])
    return float(np.mean((true - found) ** 2))


def best_order(error: Callable[..., float], *arrays: NDArray) -> list[int]:
    """The order of the components, which are on the second axis, that has the smallest error."""
    orders = map(list, itertools.permutations(range(arrays[0].shape[1])))
    return min(orders, key=lambda order: error(*(array[:, order] for array in arrays)))


def in_best_order(error: Callable[..., float], *arrays: NDArray) -> float:
    """The smallest error over all orders of the components, which are on the second axis."""
    order = best_order(error, *arrays)
    return error(*(array[:, order] for array in arrays))
