"""What stays the same during a fit: the data's source, the likelihood, the priors, the weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.executor import HERE, Place
from .._data.source import Source
from .._data.sparse import SparseSource
from .._data.summary import Summary
from .._data.threads import Pool
from .._kernels.em.estep import Expectations, estep
from .._kernels.em.sparse_estep import estep_of_cells
from .._model.likelihoods import Integer, Real
from .loop import UNRECORDED, Recorder


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
    summary : Summary
        The same, summed up.
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
    place : Place
        Where arrays with a row for each sample are, and the work on them is done.
    """

    source: Source
    summary: Summary
    likelihood: Real | Integer
    mass: float
    prior: Prior
    sample_weight: NDArray
    frozen: NDArray
    pool: Pool
    prior_constant: float = 0.0
    recorder: Recorder = UNRECORDED
    place: Place = HERE

    @property
    def n_components(self) -> int:
        """Number of components, K."""
        return len(self.frozen)

    def over_samples(self, function: Callable, rows: tuple, *shared: Any) -> tuple[tuple, tuple]:
        """Call a function for all samples, or for one part of them after the other.

        Parameters
        ----------
        function : callable
            Of a problem, the `rows` of its samples and `shared`; it returns two tuples: arrays with
            rows for these samples, and sums over them (`per_sample`). It has its name in a module,
            so that it can be sent elsewhere.
        rows : tuple of arrays
            With a row for each sample.
        *shared
            The same for all samples.

        Returns
        -------
        rows, sums : tuples
            Those of all samples.
        """
        return self.place.run(self, function, rows, shared)

    def expectations(self, activations: NDArray, atoms: NDArray) -> Expectations:
        """Run the E-step at these activations and atoms, or their geometric means."""
        others = self.likelihood, activations, atoms, self.sample_weight, self.pool
        if isinstance(self.source, SparseSource):
            return estep_of_cells(self.source, *others)
        return estep(self.source, *others)

    def of_samples(self, rows: NDArray | slice) -> Problem:
        """The problem of some samples."""
        shape, rate = (
            part if len(part) == 1 else part[rows]
            for part in (self.prior.activation_shape, self.prior.activation_rate)
        )
        summary = self.summary._replace(
            row_mass=self.summary.row_mass[rows], row_count=self.summary.row_count[rows]
        )
        return self._replace(
            source=self.source.subset(rows),
            summary=summary,
            prior=self.prior._replace(activation_shape=shape, activation_rate=rate),
            sample_weight=self.sample_weight[rows],
        )

    def component_sums(self, per_activation: NDArray, times: NDArray | None = None) -> NDArray:
        """Sums over the samples, with their weights, of something for each activation.

        `times` is a factor, the same for all samples or for each activation.
        """
        # Not BLAS, whose sums depend on its number of threads and on where arrays lie.
        if times is None or len(times) == 1:
            sums = np.einsum("j,jk->k", self.sample_weight, per_activation, dtype=np.float64)
            return sums if times is None else times[0] * sums
        factors = self.sample_weight, np.broadcast_to(times, per_activation.shape), per_activation
        return np.einsum("j,jk,jk->k", *factors, dtype=np.float64)

    def weighted_sum(self, per_activation: NDArray) -> float:
        """Sum of something with one value for each activation, with the samples' weights."""
        rows = np.sum(per_activation, axis=1, dtype=np.float64)
        return float(rows @ self.sample_weight)


def shares(problem: Problem) -> NDArray:
    """Σ|x| of each sample as if it had no gaps, divided among the components."""
    summary, n_features = problem.summary, problem.source.shape[1]
    mass = summary.row_mass / problem.likelihood.unit
    return mass * n_features / np.maximum(summary.row_count, 1) / problem.n_components
