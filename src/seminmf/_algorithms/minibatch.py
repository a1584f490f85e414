"""Atoms from batches of samples: a batch tells something of them, and what all told is averaged.

Each batch is solved for its activations, and adds what it says of the atoms to a weighted mean, in
which later batches count more (the weights are those of online LDA). There are two things that it
may say. Stepwise EM and stochastic variational inference average expected counts, from which the
M-step follows. Newton's method averages the quadratic model of each feature's problem, whose
minimum follows: it knows how the unknowns depend on each other, and is many times as fast.

References
----------
O. Cappé and E. Moulines, "On-line expectation-maximization algorithm for latent data models", 2009.
M. Hoffman, D. Blei and F. Bach, "Online learning for latent Dirichlet allocation", 2010.
J. Mairal, "Stochastic majorization-minimization algorithms for large-scale optimization", 2013.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._data.dense import DenseSource
from .._data.source import Data
from .._model.model import Background
from .._model.penalties import Maximum, Posterior
from . import activations as rows
from . import em, newton, vb
from .loop import Info
from .problem import Problem

# Step n has the weight (delay + n)^-forgetting.
_DELAY, _FORGETTING = 1.0, 0.5
# The first batches speak of counts: the quadratic model of random atoms leads to poor optima.
_WARM_UP = 10
# Cells of a sparse batch that is made dense.
_MOST_CELLS = 1 << 22
# Samples of a fit whose quadratic model a stream goes on with.
_MOST_KNOWN = 5000
# Numbers in the quadratic models of all features.
_MOST_NUMBERS = 1 << 24


class QuadraticModel(NamedTuple):
    """The quadratic model ½ θ·hessian_blocks·θ + slopes·θ of a feature's problem, for a sample.

    Attributes
    ----------
    slopes : (2, K, I) array
        Slope at θ = 0.
    hessian_blocks : (3, K (K + 1) / 2, I) array
        As `newton.Sweep` has them.
    rate_sum : (K,) array
        Mean of β λ.
    """

    slopes: NDArray
    hessian_blocks: NDArray
    rate_sum: NDArray

    @property
    def is_empty(self) -> bool:
        """Whether no batch has told anything of it yet."""
        return self.rate_sum.size == 0


NO_MODEL = QuadraticModel(np.empty((0, 0, 0)), np.empty((0, 0, 0)), np.empty(0))


class Stream(NamedTuple):
    """What the batches so far have told.

    Attributes
    ----------
    atoms : (2, K, I) array
        Atoms, or their posterior shapes.
    counts : (2, K, I) array
        Mean of the expected counts of a sample, in the problem's unit.
    model : QuadraticModel
        Empty during the warm-up, and where Newton's method is not used.
    n_steps : int
        Number of batches.
    n_samples : float
        Samples so far, with their weights.
    """

    atoms: NDArray
    counts: NDArray
    model: QuadraticModel = NO_MODEL
    n_steps: int = 0
    n_samples: float = 0.0

    @property
    def solver(self) -> str:
        """The solver of the last batch: during the warm-up Newton's method is not used."""
        return "em" if self.model.is_empty else "newton"

    @classmethod
    def from_atoms(cls, atoms: NDArray) -> Stream:
        """A stream that begins with these atoms, before its first batch."""
        return cls(atoms, np.zeros(atoms.shape))


class BatchResult(NamedTuple):
    """What is known of a batch after its step.

    Attributes
    ----------
    activations : (n, K) array
        Activations, or their posterior shapes.
    objective, data_term : float
        Objective without the atoms' prior, and log-likelihood, for a sample.
    """

    activations: NDArray
    objective: float
    data_term: float


# Learns from one batch, next to what is known and to how many samples there are.
Learn = Callable[[Problem, Stream, float], tuple[Stream, BatchResult]]


class EpochState(NamedTuple):
    """What the batches have told, and how many epochs there were."""

    stream: Stream
    n_epochs: int


class Epochs:
    """The algorithm whose iteration is an epoch: all samples once, in batches.

    Parameters
    ----------
    learn : callable
        Learns from a batch.
    batch_size : int
    random : RandomState
        Source of the batches. A run that goes on from a checkpoint finds it as it was.
    """

    def __init__(self, learn: Learn, batch_size: int, random: RandomState) -> None:
        self._learn, self._batch_size, self._random = learn, batch_size, random
        self._n_drawn = 0

    def start(self, problem: Problem, point: Stream) -> EpochState:
        """State before the first epoch."""
        return EpochState(point, 0)

    def point(self, state: EpochState) -> Stream:
        """What the batches have told."""
        return state.stream

    def step(self, problem: Problem, state: EpochState) -> tuple[EpochState, Info]:
        """One epoch, and the objective that its batches had, in sum."""
        self.skip_to(problem, state.n_epochs)
        stream, objective, total = state.stream, 0.0, problem.data.total_weight
        for samples in self._batches(problem):
            batch = problem.of_samples(samples)
            weight = batch.data.total_weight
            if weight > 0:
                stream, result = self._learn(batch, stream, total)
                objective += weight * result.objective
        return EpochState(stream, state.n_epochs + 1), Info(objective)

    def evaluate(self, problem: Problem, state: EpochState) -> float:
        """Not known: an epoch has the objectives that batches had on the way."""
        return math.nan

    def skip_to(self, problem: Problem, n_epochs: int) -> None:
        """Draw the batches of epochs that were done at an earlier time."""
        while self._n_drawn < n_epochs:
            for _ in self._batches(problem):
                pass

    def _batches(self, problem: Problem) -> Iterator[Any]:
        self._n_drawn += 1
        return problem.data.source.batches(self._batch_size, self._random)


def known(
    problem: Problem, atoms: NDArray, activations: NDArray, *, by_newton: bool = False
) -> Stream:
    """A stream that goes on after a fit, whose counts are those of the reconstruction.

    The problem's batch is to count as much as it should next to the samples of the fit. Next to
    noise counts hardly move, and there is a model as well if `by_newton` says so.
    """
    n_samples = len(activations)
    counts = activations.mean(axis=0, dtype=np.float64)[:, None] * atoms.astype(np.float64)
    ratio = n_samples / max(problem.data.total_weight, 1.0)
    n_steps = max(_WARM_UP + 1, int(ratio ** (1 / _FORGETTING)))
    models = by_newton and problem.model.has_noise and _uses_newton(problem, "newton")
    model = _expected_model(problem, atoms, activations) if models else NO_MODEL
    return Stream(atoms, counts, model, n_steps, float(n_samples))


def _expected_model(problem: Problem, atoms: NDArray, activations: NDArray) -> QuadraticModel:
    """The quadratic model that the samples of a fit are expected to have had, without their data.

    Next to noise its Hessian hardly knows of the data, and its minimum is where the fit is.
    """
    problem = problem.at(atoms)
    atoms = atoms.astype(np.float64)
    components = atoms[0] - atoms[1]
    step = -(-len(activations) // _MOST_KNOWN)
    own = np.ascontiguousarray(activations[::step], dtype=np.float64)
    model = problem.model
    background = Background(
        model.background.noise.mean(axis=0, keepdims=True), model.background.intercept
    )
    X = model.likelihood.unit * (own @ components + background.intercept)
    data = Data(DenseSource(X), problem.data.summary, np.ones(len(own)))
    samples = replace(problem, model=model._replace(background=background), data=data)
    found = newton.look(samples, own, atoms)
    rate_sum, excess = newton.prior_sums(samples, own)
    terms = newton.prior_terms(samples, rate_sum, excess, atoms)
    # What holds the components back at the minimum, but the data.
    slope = -(terms.ridge * components + terms.rate_sum[:, None] * np.sign(components))
    slopes = np.stack([slope, -slope]) - _times(found.hessian_blocks, atoms)
    return QuadraticModel(*(part / len(own) for part in (slopes, found.hessian_blocks, rate_sum)))


def _dense(problem: Problem) -> Problem:
    """The problem of a small sparse batch, made dense, as Newton's method needs it."""
    source = problem.data.source
    if not source.stores_cells or math.prod(source.shape) > _MOST_CELLS:
        return problem
    return replace(problem, data=problem.data._replace(source=source.dense()))


def _uses_newton(problem: Problem, solver: str) -> bool:
    """Whether Newton's method is asked for, and can be used."""
    n_pairs = problem.n_components * (problem.n_components + 1) // 2
    few = 3 * n_pairs * problem.data.shape[1] <= _MOST_NUMBERS
    return solver == "newton" and few and newton.suits(problem)


def learn_maximum(
    problem: Problem, stream: Stream, total: float, solver: str
) -> tuple[Stream, BatchResult]:
    """One batch for the maximum a posteriori; `total` is how many samples there are in all."""
    atoms = stream.atoms
    problem = problem.at(atoms)
    if solver == "newton":
        problem = _dense(problem)
    # A stream that goes on after a fit has no model, and one batch would not do for it. Next to
    # noise counts hardly move: the start is good, and needs no warm-up.
    warm_up = 0 if problem.model.has_noise else _WARM_UP
    is_warm = not stream.model.is_empty or stream.n_steps == warm_up
    by_newton = is_warm and _uses_newton(problem, solver)
    control = rows.batch_control(problem)
    found = rows.solve(problem, Maximum(problem.mass), atoms, control, collect=by_newton)
    activations = found.activations.astype(problem.dtype, copy=False)
    _, sums = em.step_samples(problem, activations, atoms)
    following, result = _counted(problem, stream, atoms, activations, sums)
    if by_newton:
        model = _averaged(stream, _model(problem, atoms, activations, found), warm_up)
        return _minimised(problem, following, model, total), result
    return following._replace(
        atoms=em.update_atoms(problem, atoms, total * following.counts)
    ), result


def learn_posterior(problem: Problem, stream: Stream, total: float) -> tuple[Stream, BatchResult]:
    """One batch for variational Bayes: a step along the natural gradient."""
    atoms, _ = problem.model.atoms.prior.geometric_means(stream.atoms)
    found = rows.solve(problem, Posterior(problem.mass), atoms, rows.batch_control(problem))
    shape = vb.shape_of(problem, found.activations).astype(problem.dtype, copy=False)
    _, sums = vb.step_samples(problem, shape, atoms)
    following, result = _counted(problem, stream, atoms, shape, sums)
    atom_shape = vb.update_atoms(problem, stream.atoms, problem.mass * total * following.counts)
    return following._replace(atoms=atom_shape), result


def step_weight(n_steps: int) -> float:
    """What a batch counts in the mean, after so many others."""
    return (_DELAY + n_steps) ** -_FORGETTING


def _counted(
    problem: Problem, stream: Stream, atoms: NDArray, activations: NDArray, sums: tuple
) -> tuple[Stream, BatchResult]:
    """What an E-step's sums add to the mean of the counts, and tell about the batch."""
    u_atoms, data_term, activation_term = sums
    weight = problem.data.total_weight
    objective = problem.mass * data_term + activation_term
    following = stream._replace(
        counts=_mixed(stream.counts, atoms * u_atoms / weight, step_weight(stream.n_steps)),
        n_steps=stream.n_steps + 1,
        n_samples=stream.n_samples + weight,
    )
    return following, BatchResult(activations, objective / weight, data_term / weight)


def _model(problem: Problem, atoms: NDArray, activations: NDArray, found: Any) -> QuadraticModel:
    """The quadratic model at the batch's activations."""
    rate_sum, _ = newton.prior_sums(problem, activations)
    numbers = found.slopes - _times(found.hessian_blocks, atoms), found.hessian_blocks, rate_sum
    return QuadraticModel(*(part / problem.data.total_weight for part in numbers))


def _averaged(stream: Stream, new: QuadraticModel, warm_up: int) -> QuadraticModel:
    """The mean of the models so far and a new one."""
    if stream.model.is_empty:
        return new
    rate = step_weight(stream.n_steps - warm_up)
    return QuadraticModel(*(_mixed(*pair, rate) for pair in zip(stream.model, new, strict=True)))


def _mixed(before: NDArray, new: NDArray, rate: float) -> NDArray:
    return (1 - rate) * before + rate * new


def _minimised(problem: Problem, stream: Stream, model: QuadraticModel, total: float) -> Stream:
    """The atoms at the minimum of the model; their sums go into the activations to come."""
    atoms = stream.atoms.astype(np.float64)
    excess = problem.model.activations.prior.shape - 1
    excess = np.broadcast_to(total * excess / problem.mass, (1, problem.n_components))[0]
    terms = newton.prior_terms(problem, total * model.rate_sum, excess, atoms)
    slopes = total * (model.slopes + _times(model.hessian_blocks, atoms))
    moves = newton.move(problem, slopes, total * model.hessian_blocks, atoms, terms)
    totals, atoms = newton.normalised(problem, atoms, newton.moved(atoms, moves))
    model = QuadraticModel(
        model.slopes * totals[:, None],
        model.hessian_blocks * _pairs(np.outer(totals, totals))[:, None],
        model.rate_sum * totals,
    )
    return stream._replace(atoms=atoms.astype(stream.atoms.dtype), model=model)


def _pairs(matrix: NDArray) -> NDArray:
    """The part of a matrix (K, K) on and below its diagonal, as `hessian_blocks` have it."""
    return matrix[np.tril_indices(len(matrix))]


def _times(hessian_blocks: NDArray, atoms: NDArray) -> NDArray:
    """hessian_blocks · θ, (2, K, I)."""
    result = np.zeros(atoms.shape)
    blocks = ((0, 0, 0), (1, 0, 1), (1, 1, 0), (2, 1, 1))
    for t, s, u in blocks:
        first = 0
        for k in range(atoms.shape[1]):
            row = hessian_blocks[t, first : first + k + 1]
            result[s, k] += np.einsum("mi,mi->i", row, atoms[u, : k + 1])
            result[s, :k] += row[:k] * atoms[u, k]
            first += k + 1
    return result
