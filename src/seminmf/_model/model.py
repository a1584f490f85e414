"""The model: a likelihood, and factors with their priors.

A model is a sum of terms, each a product of factors. Here it is one term, activations times atoms:
the rates of a cell are λ_s = Σ_k activation_jk θ_ski, one for each sign s.
"""

from __future__ import annotations

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


# Names of the priors' parameters; the number of their axes is that of the parameter.
PARAMETERS = ("activation_shape", "activation_rate", "atom_shape")


class Model(NamedTuple):
    """A likelihood and two factors.

    Attributes
    ----------
    likelihood : Likelihood
        It has the unit of computations, and so that of the activations inside.
    activations : Factor
        (J, K), with a gamma prior.
    atoms : Factor
        (2, K, I), with a Dirichlet prior.
    """

    likelihood: Likelihood
    activations: Factor
    atoms: Factor

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
    def priors(self) -> Priors:
        """Those of the factors."""
        return Priors(self.activations.prior, self.atoms.prior)

    def with_priors(self, priors: Priors) -> Model:
        """The same with other priors."""
        return self._replace(
            activations=self.activations._replace(prior=priors.activations),
            atoms=self.atoms._replace(prior=priors.atoms),
        )

    def of_samples(self, rows: Any) -> Model:
        """The model of some samples."""
        prior = self.activations.prior.of_samples(rows)
        return self._replace(activations=self.activations._replace(prior=prior))
