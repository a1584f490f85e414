"""The model: a likelihood, and factors with their priors.

A model is a sum of terms, each a product of factors. Here it is one term, activations times atoms,
and a background: the rates of a cell are λ_s = Σ_k activation_jk θ_ski + background_sji, one for
each sign s.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .likelihoods import Likelihood
from .priors import Dirichlet, Gamma


class Factor(NamedTuple):
    """One factor. Its array is part of an algorithm's state, in the order of the model's factors.

    Attributes
    ----------
    prior : Gamma or Dirichlet
        The latter's entries sum to 1 over its axes.
    frozen : (K,) boolean array
        Components that keep what they have.
    has_samples : bool
        Whether the array has a row for each sample.
    """

    prior: Any
    frozen: NDArray
    has_samples: bool

    @property
    def row_weights(self) -> NDArray:
        """What rows count that are no samples."""
        return np.ones(1)

    def keep_frozen(self, updated: NDArray, before: NDArray) -> NDArray:
        """The updated array (2, K, I) with what was before for frozen components, in place."""
        updated[:, self.frozen] = before[:, self.frozen]
        return updated


def split_signed(components: NDArray) -> NDArray:
    """θ_s ∝ (|W| + (−1)^s W) / 2: positive and negative parts (paper, third experiment)."""
    return np.stack([np.maximum(components, 0), np.maximum(-components, 0)])


class Priors(NamedTuple):
    """The prior of each factor."""

    activations: Gamma
    atoms: Dirichlet

    @classmethod
    def of(cls, activation_shape: Any, activation_rate: Any, atom_shape: Any) -> Priors:
        """From the arrays of `parameters`, or numbers."""
        shape, rate = (np.atleast_2d(part) for part in (activation_shape, activation_rate))
        atoms = np.asarray(atom_shape)
        return cls(
            Gamma(shape, rate), Dirichlet(atoms.reshape((1,) * (3 - atoms.ndim) + atoms.shape))
        )

    @property
    def parameters(self) -> dict[str, NDArray]:
        """All parameters, by the names that estimators have for them, less `_prior`."""
        return dict(zip(PARAMETERS, (*self.activations, *self.atoms), strict=True))

    def tell_components_apart(self, rtol: float = 0.0) -> bool:
        """Whether some parameter differs between components, by more than `rtol` of its size."""
        return any(
            part.shape[1] > 1 and not np.allclose(part, part[:, :1], rtol=rtol, atol=0)
            for part in self.parameters.values()
        )


class Background(NamedTuple):
    """What rates are without any component, in the unit of computations.

    Attributes
    ----------
    noise : (J, I) array
        Of both signs; each axis may be of length 1. It adds twice as much to the variance of a
        cell, and nothing to its mean.
    intercept : (I,) array
        Added to the mean; its length may be 1. It takes its part of the rates from the noise, so
        that it adds nothing to the variance, unless the noise has less.
    """

    noise: NDArray
    intercept: NDArray

    @property
    def rates(self) -> NDArray:
        """Those of both signs, (2, J, I); axes may be of length 1."""
        half = self.intercept / 2
        noise = np.maximum(self.noise, np.abs(half))
        return np.stack([noise + half, noise - half])

    @property
    def least_root(self) -> float:
        """2 √(λ₀λ₁) at the least, over all cells."""
        noise, half = self.noise.min(axis=0), np.abs(self.intercept / 2)
        noise = np.maximum(noise, half)
        return 2 * float(np.min(np.sqrt(noise + half) * np.sqrt(noise - half)))

    @property
    def n_rows(self) -> int:
        """1 if it is the same for all samples, or else their number."""
        return len(self.noise)

    def of_samples(self, rows: Any) -> Background:
        """That of some samples."""
        return self if self.n_rows == 1 else self._replace(noise=self.noise[rows])

    def of_features(self, part: slice) -> Background:
        """That of some features."""
        noise = self.noise[:, part] if self.noise.shape[1] > 1 else self.noise
        intercept = self.intercept[part] if len(self.intercept) > 1 else self.intercept
        return Background(noise, intercept)

    def of_cells(self, samples: NDArray, features: NDArray) -> NDArray:
        """The rates (2, n) of some cells."""
        rates = self.rates
        samples = samples if self.n_rows > 1 else np.zeros_like(samples)
        features = features if rates.shape[2] > 1 else np.zeros_like(features)
        return rates[:, samples, features]


NO_BACKGROUND = Background(np.zeros((1, 1)), np.zeros(1))


class LengthPrice(NamedTuple):
    """A rate of the activations' prior that is in proportion to the length of the component.

    Atoms sum to 1, but what a component's activations should pay for is how far it stands out of
    the noise: its length, when each feature is measured in units of its noise.

    Attributes
    ----------
    price : float
        Rate of an activation whose component has the length 1.
    scale : (I,) array
        Standard deviations of the features' noise, in the unit of computations.
    """

    price: float
    scale: NDArray

    def lengths(self, atoms: NDArray) -> NDArray:
        """√Σ_si (θ_ski / σ_i)² of each component."""
        scaled = atoms.astype(np.float64) / self.scale
        return np.sqrt(np.einsum("ski,ski->k", scaled, scaled))

    def rates(self, atoms: NDArray) -> NDArray:
        """Rates (1, K) of the prior."""
        return self.price * self.lengths(atoms)[None]

    def typical_rate(self) -> float:
        """The rate for atoms that are spread over all features as the noise is."""
        return self.price * math.sqrt(len(self.scale)) / float(self.scale.sum())

    def ridge(self, rate_sum: NDArray, atoms: NDArray) -> NDArray:
        """Weights (K, I) of θ² / 2 that stand for Σ_j rate · λ, as a function of the atoms.

        n ≤ (n² / n₀ + n₀) / 2, with equality at the length n₀ there is.
        """
        squares = np.maximum(self.lengths(atoms), 1e-300) ** 2
        return (rate_sum / squares)[:, None] / self.scale**2


# Names of the priors' parameters; the number of their axes is that of the parameter.
PARAMETERS = ("activation_shape", "activation_rate", "atom_shape")


class Model(NamedTuple):
    """A likelihood, two factors and a background.

    Attributes
    ----------
    likelihood : Likelihood
        It has the unit of computations, and so that of the activations inside.
    activations : Factor
        (J, K), with a gamma prior.
    atoms : Factor
        (2, K, I), with a Dirichlet prior.
    background : Background
    length_price : LengthPrice or None
        Where the activations' rate goes by the lengths of components: `at` has it for some atoms.
    one_signed : bool
        Whether atoms of the negative sign are 0.
    """

    likelihood: Likelihood
    activations: Factor
    atoms: Factor
    background: Background = NO_BACKGROUND
    length_price: LengthPrice | None = None
    one_signed: bool = False

    @classmethod
    def of(cls, likelihood: Likelihood, priors: Priors, frozen: NDArray) -> Model:
        """The model with these priors, in which some components keep their atoms."""
        free = np.zeros(len(frozen), dtype=bool)
        return cls(
            likelihood,
            Factor(priors.activations, free, has_samples=True),
            Factor(priors.atoms, frozen, has_samples=False),
        )

    @property
    def factors(self) -> tuple[Factor, ...]:
        """All factors, in the order in which states have their arrays."""
        return self.activations, self.atoms

    @property
    def n_components(self) -> int:
        """Number of components, K."""
        return len(self.atoms.frozen)

    @property
    def mass(self) -> float:
        """What one unit of computations counts against the priors."""
        return self.likelihood.mass

    @property
    def has_noise(self) -> bool:
        """Whether noise has a component of its own."""
        return bool(np.any(self.background.noise > 0))

    @property
    def fixed_atoms(self) -> NDArray:
        """Which atoms (2, K) keep what they have: frozen ones, and a sign that is not used."""
        fixed = np.stack([self.atoms.frozen, self.atoms.frozen])
        fixed[1] |= self.one_signed
        return fixed

    @property
    def priors(self) -> Priors:
        """Those of the factors."""
        return Priors(self.activations.prior, self.atoms.prior)

    def at(self, atoms: NDArray) -> Model:
        """The model with the rate of the activations' prior that goes with these atoms."""
        if self.length_price is None:
            return self
        prior = self.activations.prior._replace(rate=self.length_price.rates(atoms))
        return self._replace(activations=self.activations._replace(prior=prior))

    def with_priors(self, priors: Priors) -> Model:
        """The same with other priors."""
        return self._replace(
            activations=self.activations._replace(prior=priors.activations),
            atoms=self.atoms._replace(prior=priors.atoms),
        )

    def of_samples(self, rows: Any) -> Model:
        """The model of some samples."""
        prior = self.activations.prior.of_samples(rows)
        return self._replace(
            activations=self.activations._replace(prior=prior),
            background=self.background.of_samples(rows),
        )
