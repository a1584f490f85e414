"""Atoms that maximise the evidence of the samples, with their activations integrated out.

The mean-field posterior drops the correlations of a sample's activations, and its bound then
favours components that lie too far apart, by more than the data can oppose. Here nothing is dropped
but what the rule of integration misses. EM would crawl along the same directions, so the iteration
is Fisher's scoring in ln θ: Newton's method with the observed information, damped where it must be.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from .._algorithms import em
from .._algorithms.problem import Problem
from .activation_prior import ActivationPrior
from .gaussian_potential import GaussianPotential
from .laplace import Found, found_at
from .marginal import Point, Task, derivatives, evaluate, free_parameters, some_samples
from .nodes import standard_nodes
from .prior_statistics import Expectations, Maps, Statistics, update_prior


class Stage(NamedTuple):
    """Samples that are looked at, 0 for all, points on each axis, and when it ends."""

    n_samples: int
    order: int
    max_iter: int
    tol: float


# Most of the way is gone with few samples and few points, which cost little; the end is not, since
# few points on an axis are biased.
STAGES = (Stage(1000, 3, 40, 0.5), Stage(0, 5, 40, 1.0), Stage(0, 7, 20, 0.5))
# From a posterior with nearly the same prior, and so close that evidences can be compared.
LAST_STAGES = (Stage(0, 7, 40, 0.005),)

# No ln θ changes by more than the first of these at once, no ln α or ln β by more than the second.
_LONGEST, _LONGEST_PRIOR = 4.0, 1.0
# An atom is drawn down by the data if by this share of what its prior draws it up.
_LEAST_RATIO = 1e-6
# Damping after a step that did not raise the evidence, its growth, and where the search ends.
_DAMPING, _GROWTH, _MOST_DAMPING = 0.05, 4.0, 20.0
# Share of the diagonal that keeps it positive.
_RIDGE = 1e-9


def maximise(
    problem: Problem,
    maps: Maps,
    potential: GaussianPotential | None,
    start: em.Factors,
    stages: tuple[Stage, ...] = STAGES,
) -> Found:
    """Find atoms, and what the maps say of the activations' prior, from a start near by.

    A prior that is found at the same time needs no second fit: what the matrix says of it and what
    is believed are weighed against each other. Without a potential it stays as it is.
    """
    activations = problem.mass * start.activations.astype(np.float64)
    modes = np.log(np.maximum(activations, np.finfo(np.float64).tiny))
    atoms, own = start.atoms.astype(np.float64), ActivationPrior.of(problem.model.priors, maps)
    starts = [own] if potential is None else [own, _prior_of(modes, problem, maps)]
    for stage in _without_repeats(problem, stages):
        part, rows = some_samples(problem, stage.n_samples)
        unit = problem.model.likelihood.unit / problem.mass
        nodes = standard_nodes(problem.n_components, stage.order)
        task = Task(part, unit, nodes, potential)
        points = [evaluate(task, atoms, own.of_samples(rows), modes[rows]) for own in starts]
        here, objectives = _climb(task, max(points, key=lambda each: each.objective), stage)
        atoms, starts = here.atoms, [own.at(here.activation_prior.logs)]
        modes[rows] = here.marginal.modes
    return found_at(task, here, objectives)


def _prior_of(log_activations: NDArray, problem: Problem, maps: Maps) -> ActivationPrior:
    """The prior that suits the start's activations best, which may be far from the problem's."""
    log_activations = np.maximum(log_activations, log_activations.max() - 20)
    nothing = np.zeros((2, problem.n_components, 0))
    expected = Expectations(np.exp(log_activations), log_activations, nothing)
    best = update_prior(problem.model.priors, Statistics.of(expected, maps), maps)
    return ActivationPrior.of(best, maps)


def _without_repeats(problem: Problem, stages: tuple[Stage, ...]) -> list[Stage]:
    """The stages that differ from the next for these data."""
    kept: list[Stage] = []
    seen = set()
    for stage in reversed(stages):
        n_samples = stage.n_samples if stage.n_samples < problem.data.shape[0] else 0
        nodes = standard_nodes(problem.n_components, stage.order).points.shape
        if (n_samples, nodes) not in seen:
            seen.add((n_samples, nodes))
            kept.insert(0, stage)
    return kept


def _climb(task: Task, here: Point, stage: Stage) -> tuple[Point, list[float]]:
    """Steps of Fisher's scoring until little is to be gained, and the objective after each."""
    objectives = [here.objective]
    damping = 0.0
    for _ in range(stage.max_iter):
        there, damping = _advance(task, here, damping, stage.tol)
        if there is None:
            break
        here = there
        objectives.append(here.objective)
    return here, objectives


def _advance(task: Task, here: Point, damping: float, tol: float) -> tuple[Point | None, float]:
    """The next point, or None if there is nothing to gain, and the damping for the step after."""
    slope, curvature = _step_derivatives(task, here)
    free = free_parameters(task, here)
    slope, curvature = slope[free], curvature[np.ix_(free, free)]
    diagonal = np.diag(curvature)
    # What is to be gained does not depend on how carefully it is approached.
    if slope @ cho_solve(cho_factor(curvature + np.diag(_RIDGE * diagonal)), slope) < tol:
        return None, damping
    while damping < _MOST_DAMPING:
        step = np.zeros(len(free))
        factor = cho_factor(curvature + np.diag((_RIDGE + damping) * diagonal))
        step[free] = cho_solve(factor, slope)
        there = _moved(task, here, step)
        if there.objective > here.objective:
            return there, damping / _GROWTH if damping > 1e-3 else 0.0
        damping = max(_GROWTH * damping, _DAMPING)
    return None, damping


def _moved(task: Task, here: Point, step: NDArray) -> Point:
    """The point a step further, which is cut where it is long."""
    size = here.atoms.size
    # As a whole for the prior: shape, rate and atoms go together.
    step = step / max(1.0, np.abs(step[size:]).max(initial=0.0) / _LONGEST_PRIOR)
    atoms = here.atoms * np.exp(np.clip(step[:size], -_LONGEST, _LONGEST)).reshape(here.atoms.shape)
    own = here.activation_prior
    return evaluate(task, atoms, own.at(own.logs + step[size:]), here.marginal.modes)


def _step_derivatives(task: Task, here: Point) -> tuple[NDArray, NDArray]:
    """Slope, and a curvature that leads to small atoms in few steps, however far they are.

    An entry that the data do not want has the objective α ln θ − r θ/θ', whose slope here, at θ',
    is α − r. Newton's step is its best, ln(α/r), if the curvature is not α but the logarithmic mean
    of α and r.
    """
    slope, curvature = derivatives(task, here)
    size = here.atoms.size
    shape = np.broadcast_to(task.problem.model.atoms.prior.shape, here.atoms.shape).ravel()
    ratio = 1 - slope[:size] / shape
    # Where the data want more, it is their information that limits the step.
    far = (np.abs(ratio - 1) > 1e-4) & (ratio > _LEAST_RATIO)
    mean = np.ones(size)
    mean[far] = (ratio[far] - 1) / np.log(ratio[far])
    curvature[np.arange(size), np.arange(size)] += shape * (mean - 1)
    return slope, curvature
