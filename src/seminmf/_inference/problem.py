"""What stays the same during a fit: the data's source, the likelihood, the priors, the weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._likelihoods import Integer, Real
from .._passes.estep import Expectations, estep
from .._passes.pool import Pool
from .._sources import Source
from .loop import UNRECORDED, Recorder
from .summary import Summary


class Prior(NamedTuple):
    """Gamma prior of the activations, Dirichlet prior of the atoms.

    Each array broadcasts to the parameter's shape, (J, K) or (2, K, I), and has as many axes.
    """

    activation_shape: NDArray
    activation_rate: NDArray
    atom_shape: NDArray


class Problem(NamedTuple):
    """All that a step needs besides the state.

    Attributes
    ----------
    source : Source
        The data.
    likelihood : Real or Integer
        Its `unit` is the unit of the activations inside: those of a state are in X's unit / unit.
    mass : float
        What one internal unit counts against the priors: unit / scale of X.
    prior : Prior
    sample_weight : (J,) array
    frozen : (K,) boolean array
        Components that keep their atoms.
    pool : Pool
    prior_constant : float
        The part of the variational bound that depends on the priors alone.
    recorder : Recorder
        Who is told of the iterations.
    """

    source: Source
    likelihood: Real | Integer
    mass: float
    prior: Prior
    sample_weight: NDArray
    frozen: NDArray
    pool: Pool
    prior_constant: float = 0.0
    recorder: Recorder = UNRECORDED

    @property
    def n_components(self) -> int:
        """Number of components, K."""
        return len(self.frozen)

    def expectations(self, activations: NDArray, atoms: NDArray) -> Expectations:
        """Run the E-step at these activations and atoms, or their geometric means."""
        return estep(
            self.source, self.likelihood, activations, atoms, self.sample_weight, self.pool
        )

    def weighted_sum(self, per_activation: NDArray) -> float:
        """Sum of something with one value for each activation, with the samples' weights."""
        rows = np.sum(per_activation, axis=1, dtype=np.float64)
        return float(rows @ self.sample_weight)


def shares(problem: Problem, summary: Summary) -> NDArray:
    """Σ|x| of each sample as if it had no gaps, divided among the components."""
    n_features = problem.source.shape[1]
    mass = summary.row_mass / problem.likelihood.unit
    return mass * n_features / np.maximum(summary.row_count, 1) / problem.n_components
