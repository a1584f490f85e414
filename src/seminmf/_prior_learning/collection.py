"""Learning from a collection: posteriors of all matrices and their prior, in turn."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._algorithms.loop import Info, Progress, Result, Stopping, run
from .._estimators.parallel import run_all
from .._model.model import Priors
from ..bayesian import BayesianSkellamSNMF
from .learned import Learned, Plan, learn_from_all
from .posteriors import Posterior, correlated, variational
from .prior_statistics import best_order
from .stream import next_matrix

# A prior that lowers the total bound is moved half of the way back, so often.
_MOST_HALVINGS = 5


class Collection(NamedTuple):
    """Matrices, and how they are fitted.

    Attributes
    ----------
    matrices : list
    estimator : BayesianSkellamSNMF
    seeds : list of int
        One for each matrix.
    plan : Plan
    n_jobs : int or None
    """

    matrices: list[Any]
    estimator: BayesianSkellamSNMF
    seeds: list[int]
    plan: Plan
    n_jobs: int | None

    def first_posteriors(self, prior: Priors) -> list[Posterior]:
        """Variational posteriors, from the estimator's own starts or from the prior."""
        jobs = (
            partial(self._variational, matrix, prior, random_state=seed)
            for matrix, seed in zip(self.matrices, self.seeds, strict=True)
        )
        return run_all(jobs, self.n_jobs)

    def posteriors(
        self, prior: Priors, before: list[Posterior], *, near: bool = True
    ) -> list[Posterior]:
        """Posteriors with this prior, from those before, whose prior was `near`."""
        jobs = (
            partial(correlated, matrix, posterior, prior, self.plan.known, None, near=near)
            if self.plan.correlated
            else partial(self._variational, matrix, prior, posterior.model)
            for matrix, posterior in zip(self.matrices, before, strict=True)
        )
        return run_all(jobs, self.n_jobs)

    def _variational(self, matrix: Any, prior: Priors, *start: Any, **parameters: Any) -> Posterior:
        settings = {"n_jobs": 1, **parameters}
        return variational(self.estimator, matrix, prior, *start, **settings)


class Round(NamedTuple):
    """A prior, what it was learned from, the posteriors with it, and their total bound."""

    learned: Learned
    posteriors: list[Posterior]
    total: float


class Rounds:
    """The algorithm whose iteration is a round: the best prior for the posteriors, and theirs.

    The total bound never falls by more than `tol`. If no prior near by is better, it stays.
    """

    def __init__(self, start: Learned, tol: float) -> None:
        self._start, self._tol = start, tol

    def start(self, collection: Collection, point: Round) -> Round:
        """The round itself."""
        return point

    def point(self, state: Round) -> Round:
        """The round itself."""
        return state

    def step(self, collection: Collection, here: Round) -> tuple[Round, Info]:
        """The next round, and its total bound."""
        prior = here.learned.prior
        proposed = learn_from_all(self._start, prior, here.posteriors, collection.plan)
        there = _accepted(collection, here, proposed, self._tol)
        return there, Info(there.total)

    def evaluate(self, collection: Collection, state: Round) -> float:
        """The total bound of a round."""
        return state.total


def learn(
    collection: Collection, start: Learned, max_iter: int, tol: float, progress: Progress
) -> Result[Round]:
    """Rounds until the total bound converges."""
    # With a tolerance of 0 a round that gains nothing is the last one, too.
    least = max(tol, np.finfo(np.float64).tiny)
    stopping = Stopping(max_iter, least, window=1, relative=False, of_following=True)
    begin = partial(_first_round, collection, start)
    result = run(Rounds(start, tol), collection, begin, stopping, progress)
    if result.interrupted:
        raise KeyboardInterrupt
    return result


def _first_round(collection: Collection, start: Learned) -> Round:
    """One matrix after the other, as in a stream, which finds its way where all at once do not.

    Then all with the prior that it leads to.
    """
    learned = start
    for matrix, seed in zip(collection.matrices, collection.seeds, strict=True):
        _, learned = next_matrix(
            collection.estimator, matrix, learned, collection.plan, "annealed", random_state=seed
        )
    posteriors = collection.first_posteriors(learned.prior)
    posteriors = [each.ordered(best_order(learned.prior, each.expected)) for each in posteriors]
    posteriors = collection.posteriors(learned.prior, posteriors, near=False)
    return Round(learned, posteriors, _total_bound(posteriors, learned.prior, collection.plan))


def _accepted(collection: Collection, here: Round, proposed: Learned, tol: float) -> Round:
    """The round with the proposed prior, or one nearer to the present, or the present one."""
    prior = proposed.prior
    for _ in range(_MOST_HALVINGS):
        posteriors = collection.posteriors(prior, here.posteriors)
        total = _total_bound(posteriors, prior, collection.plan)
        if total >= here.total - tol:
            return Round(proposed._replace(prior=prior), posteriors, total)
        prior = _between(here.learned.prior, prior)
    return here


def _between(first: Priors, second: Priors) -> Priors:
    """The geometric mean of two priors."""
    pairs = zip(first.parameters.values(), second.parameters.values(), strict=True)
    return Priors.of(*(np.sqrt(old * new) for old, new in pairs))


def _total_bound(posteriors: list[Posterior], prior: Priors, plan: Plan) -> float:
    """Sum of the matrices' bounds, and the logarithm of the hyperprior but for a constant.

    Priors that are found together with the atoms have no hyperprior: all samples speak of them.
    """
    maps = plan.maps.without(plan.known)
    held = [
        (maps.activation_shape, prior.activations.shape),
        (maps.atom_shape, prior.atoms.shape),
    ]
    shapes = 0.0
    for labels, values in held:
        if labels is not None:
            _, first = np.unique(labels, return_index=True)
            shapes += float(np.broadcast_to(values, labels.shape).ravel()[first].sum())
    return sum(p.objective for p in posteriors) - plan.hyperprior * shapes
