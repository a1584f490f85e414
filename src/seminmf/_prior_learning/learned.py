"""What a learner knows, and how it changes with a matrix, or with all of a collection."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._model.model import Priors
from .activation_prior import ActivationPrior
from .gaussian_potential import GaussianPotential
from .posteriors import Posterior
from .prior_statistics import Expectations, Maps, Statistics, update_prior

# The start is worth so little: a standard deviation of 10 in ln α and ln β.
WEAK = 0.01
# After a matrix that contradicts them, all before it count less: a stream may change.
_AFTER_CONTRADICTION = 0.5


class Plan(NamedTuple):
    """What is to be learned, and from what.

    Attributes
    ----------
    maps : Maps
        The sharing maps.
    correlated : bool
        Whether posteriors keep the correlations of activations.
    hyperprior : float
        Rate of the exponential distribution of each learned shape.
    """

    maps: Maps
    correlated: bool
    hyperprior: float

    @property
    def known(self) -> Maps:
        """Maps of the part of the prior that is found together with the atoms."""
        return self.maps.found_with_atoms() if self.correlated else Maps(None, None, None)


class Learned(NamedTuple):
    """What a learner knows.

    Attributes
    ----------
    prior : Priors
        The prior that has been learned.
    statistics : Statistics
        What it was learned from.
    potential : GaussianPotential
        What the part of it was learned from that is found together with the atoms.
    n_matrices : int
        Matrices that have been seen, without the start, which counts as one more.
    weight : float
        Matrices that the statistics stand for: 1 / Σ of the squared weights of those in them.
    """

    prior: Priors
    statistics: Statistics
    potential: GaussianPotential
    n_matrices: int
    weight: float

    @classmethod
    def nothing(cls, prior: Priors, shape: tuple[int, int, int], plan: Plan) -> Learned:
        """The prior to start from counts as one matrix, of J, K, I, whose posterior it is."""
        n_samples, n_components, n_features = shape
        shapes, rates = (
            np.broadcast_to(part, (n_samples, n_components))
            for part in (prior.activations.shape, prior.activations.rate)
        )
        atoms = np.broadcast_to(prior.atoms.shape, (2, n_components, n_features))
        statistics = Statistics.of(Expectations.of(shapes, rates, atoms), plan.maps)
        potential = GaussianPotential.weak(ActivationPrior.of(prior, plan.known).logs, WEAK)
        return cls(prior, statistics, potential, 0, 1.0)


def learn_from(
    learned: Learned,
    posterior: Posterior,
    plan: Plan,
    rates: tuple[float, float],
    kept: GaussianPotential,
) -> Learned:
    """The paper's online rule: blend what was and what is new, and take the best prior.

    `rates` are the weights c for what is said of activations and of atoms, and `kept` is what is
    still believed when the matrix comes.
    """
    rate, atom_rate = (posterior.weight * c for c in rates)
    new = Statistics.of(posterior.expected, plan.maps)
    statistics = learned.statistics.blend(new, rate, atom_rate)
    if posterior.weight < 1:
        kept = kept.times(_AFTER_CONTRADICTION)
    potential = kept.joined(posterior.own.times(posterior.weight))
    weight = 1 / ((1 - atom_rate) ** 2 / learned.weight + atom_rate**2)
    prior = _best_prior(learned.prior, statistics, potential, plan, weight)
    statistics = statistics._replace(atoms=statistics.atoms.shortened(prior.atoms.shape))
    return Learned(prior, statistics, potential, learned.n_matrices + 1, weight)


def learn_from_all(
    start: Learned, prior: Priors, posteriors: list[Posterior], plan: Plan
) -> Learned:
    """What is learned from matrices that all count the same, with the prior they were fitted by."""
    n_matrices = len(posteriors)
    statistics = Statistics.mean([Statistics.of(p.expected, plan.maps) for p in posteriors])
    potential = start.potential
    for posterior in posteriors:
        potential = potential.joined(posterior.own)
    prior = _best_prior(prior, statistics, potential, plan, n_matrices)
    return Learned(prior, statistics, potential, n_matrices, float(n_matrices))


def _best_prior(
    prior: Priors, statistics: Statistics, potential: GaussianPotential, plan: Plan, weight: float
) -> Priors:
    """What is believed of the activations' prior, and what the statistics say of the rest."""
    best = ActivationPrior.of(prior, plan.known).at(potential.mean)
    prior = prior._replace(activations=best.prior)
    rest = plan.maps.without(plan.known)
    return update_prior(prior, statistics, rest, plan.hyperprior / weight)
