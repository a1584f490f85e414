"""The dispersion of real data: how large their noise is, in their unit."""

from __future__ import annotations

from functools import partial
from typing import Any

from numpy.random import RandomState

from .._data.executor import per_sample
from .._model.model import Priors
from . import em
from .loop import Stopping
from .problem import Problem
from .start import start

# The priors of a preliminary fit, and how far it goes.
PRELIMINARY_PRIORS = Priors.of(1.0, 1e-3, 1.0)
_PRELIMINARY = Stopping(max_iter=200, tol=1e-4)
# It has at least this many components.
_GENEROUS = 10
# Below this share of the mean |x| a dispersion is no noise but rounding.
LEAST_DISPERSION = 1e-12
# Posterior rates have the dispersion as their divisor: it must leave room for them.
SMALLEST_DISPERSION = 1e-300


def preliminary_rank(n_observed: float, n_parameters: float, n_components: int) -> int:
    """Components of a preliminary fit, of which each has `n_parameters`.

    Half of the observed cells are left to judge the noise by.
    """
    return max(1, min(max(n_components, _GENEROUS), int(n_observed / (2 * n_parameters))))


def preliminary_dispersion(problem: Problem, run: Any) -> tuple[float, bool]:
    """The dispersion of a point estimate with many components; and whether Ctrl-C ended it.

    `run` iterates an algorithm, as `Runner.run` does.
    """
    begin = partial(start, problem, "random", RandomState(0))
    result = run(em, problem, begin, "dispersion", _PRELIMINARY)
    return dispersion_at(problem, result.state, result.objectives[-1]), result.interrupted


def dispersion_at(problem: Problem, point: em.Factors, objective: float) -> float:
    """The dispersion that the model has, or that a point with this objective leaves."""
    known = problem.model.likelihood.known_dispersion
    if known is not None:
        return known
    return dispersion(problem, em.known_data_term(problem, point, objective))


def dispersion(problem: Problem, data_term: float) -> float:
    """φ = 2 ΣD / (observed cells − K (I + J)), where −ΣD is the data term.

    A sample counts as often as its weight says.
    """
    summary, likelihood = problem.data.summary, problem.model.likelihood
    if likelihood.known_dispersion is not None:
        return likelihood.known_dispersion
    if summary.largest == 0:
        return 1.0
    n_parameters = problem.n_components * (problem.data.shape[1] + problem.data.total_weight)
    freedom = max(count_observed(problem) - n_parameters, 1.0)
    estimate = 2 * (-likelihood.unit * data_term) / freedom
    return max(estimate, LEAST_DISPERSION * summary.mean_size, SMALLEST_DISPERSION)


def count_observed(problem: Problem) -> float:
    """Number of observed cells, with the samples' weights."""
    _, (number,) = problem.over_samples(_count_samples, ())
    return number


@per_sample(sums=1)
def _count_samples(problem: Problem) -> tuple[tuple, tuple]:
    return (), (float(problem.data.summary.row_count @ problem.data.weights),)
