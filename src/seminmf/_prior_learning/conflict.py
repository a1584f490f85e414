"""A matrix that contradicts all before it has more often a wrong optimum than news.

With two components that are alike, one start in some hundreds ends with their places exchanged, at
a local optimum. Believed, it would pull the prior by many times what it has learned from others.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from .._algorithms import em
from .._algorithms.problem import Problem
from . import evidence
from .gaussian_potential import GaussianPotential
from .laplace import Found
from .prior_statistics import Maps

# A conflict of so much for each parameter calls for other starts; 1 is expected.
_MOST_CONFLICT = 10.0


def maximise(
    problem: Problem, maps: Maps, potential: GaussianPotential, start: em.Factors
) -> tuple[Found, float]:
    """The best of some starts, and how much it counts: less than 1 if it is still in conflict.

    More conflict counts for no more than the limit.
    """
    found = evidence.maximise(problem, maps, potential, start)
    limit = _MOST_CONFLICT * len(potential.linear)
    if potential.conflict(found.own) <= limit:
        return found, 1.0
    for other in _other_starts(problem, start):
        again = evidence.maximise(problem, maps, potential, other)
        found = max(found, again, key=lambda each: each.objectives[-1])
        if potential.conflict(found.own) <= limit:
            return found, 1.0
    return found, limit / potential.conflict(found.own)


def _other_starts(problem: Problem, start: em.Factors) -> Iterator[em.Factors]:
    """Two components exchanged, for each pair, and the mean of the prior; all activations alike."""
    n_components = problem.n_components
    means = (
        problem.model.activations.prior.shape / problem.model.activations.prior.rate / problem.mass
    )
    activations = np.broadcast_to(means, start.activations.shape)
    for pair in combinations(range(n_components), 2):
        order = np.arange(n_components)
        order[list(pair)] = pair[::-1]
        yield em.Factors(activations, start.atoms[:, order])
    shape = np.broadcast_to(problem.model.atoms.prior.shape, start.atoms.shape)
    yield em.Factors(activations, shape / shape.sum(axis=(0, 2), keepdims=True))
