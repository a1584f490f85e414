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
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._data.dense import DenseSource
from .._data.disk import DiskSource
from .._data.source import Source
from .._data.sparse import SparseSource
from .._kernels.newton.features import move_features
from .._kernels.newton.sweep import Effort
from .._model.penalties import Maximum, Posterior
from . import activations as rows
from . import em, newton, vb
from .problem import Problem

# Step n has the weight (delay + n)^-forgetting.
_DELAY, _FORGETTING = 1.0, 0.5
# How far a batch is solved for its activations: with fewer steps the atoms are biased.
_ROUGH = Effort(20, 20, 1e-2, 1e-3, False)
# The first batches speak of counts: the quadratic model of random atoms leads to poor optima.
_WARM_UP = 10
# Cells of a sparse batch that is made dense.
_MOST_CELLS = 1 << 22
# Numbers in the quadratic models of all features.
_MOST_NUMBERS = 1 << 24


class Model(NamedTuple):
    """The quadratic model ½ θ·grams·θ + slopes·θ of a feature's problem, for a sample.

    Attributes
    ----------
    slopes : (2, K, I) array
        Slope at θ = 0.
    grams : (3, K (K + 1) / 2, I) array
        As `newton.Sweep` has them.
    price : (K,) array
        Mean of β λ.
    """

    slopes: NDArray
    grams: NDArray
    price: NDArray


class Stream(NamedTuple):
    """What the batches so far have told.

    Attributes
    ----------
    atoms : (2, K, I) array
        Atoms, or their posterior shapes.
    counts : (2, K, I) array
        Mean of the expected counts of a sample, in the problem's unit.
    model : Model or None
        None during the warm-up, and where Newton's method is not used.
    n_steps : int
        Number of batches.
    n_samples : float
        Samples so far, with their weights.
    """

    atoms: NDArray
    counts: NDArray
    model: Model | None = None
    n_steps: int = 0
    n_samples: float = 0.0


class Told(NamedTuple):
    """What a batch told about itself.

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


def known(problem: Problem, atoms: NDArray, activations: NDArray) -> Stream:
    """A stream that goes on after a fit, whose counts are those of the reconstruction.

    The problem's batch is to count as much as it should next to the samples of the fit.
    """
    n_samples = len(activations)
    counts = activations.mean(axis=0, dtype=np.float64)[:, None] * atoms.astype(np.float64)
    ratio = n_samples / max(float(problem.sample_weight.sum()), 1.0)
    n_steps = max(_WARM_UP + 1, int(ratio ** (1 / _FORGETTING)))
    return Stream(atoms, counts, None, n_steps, float(n_samples))


def batches(source: Source, size: int, random: RandomState) -> Iterator[NDArray | slice]:
    """All samples once, some at a time: drawn at random, or as they lie on a disk."""
    n_samples = source.shape[0]
    starts = range(0, n_samples, size)
    if isinstance(source, DiskSource):
        for number in random.permutation(len(starts)):
            yield slice(starts[number], min(starts[number] + size, n_samples))
        return
    order = random.permutation(n_samples)
    for start in starts:
        yield np.sort(order[start : start + size])


def _dense(problem: Problem) -> Problem:
    """The problem of a small sparse batch, made dense, as Newton's method needs it."""
    source = problem.source
    if not isinstance(source, SparseSource) or math.prod(source.shape) > _MOST_CELLS:
        return problem
    return problem._replace(source=DenseSource(source.rows(0, source.shape[0])))


def _uses_newton(problem: Problem, solver: str) -> bool:
    """Whether Newton's method is asked for, and can be used."""
    n_pairs = problem.n_components * (problem.n_components + 1) // 2
    few = 3 * n_pairs * problem.source.shape[1] <= _MOST_NUMBERS
    return solver == "newton" and few and newton.suits(problem)


def learn_maximum(
    problem: Problem, stream: Stream, total: float, solver: str
) -> tuple[Stream, Told]:
    """One batch for the maximum a posteriori; `total` is how many samples there are in all."""
    atoms = stream.atoms
    if solver == "newton":
        problem = _dense(problem)
    # A stream that goes on after a fit has no model, and one batch would not do for it.
    is_warm = stream.model is not None or stream.n_steps == _WARM_UP
    by_newton = is_warm and _uses_newton(problem, solver)
    found = rows.solve(problem, Maximum(problem.mass), atoms, _ROUGH, collect=by_newton)
    activations = found.activations.astype(problem.source.dtype, copy=False)
    _, sums = em.step_samples(problem, activations, atoms)
    following, told = _counted(problem, stream, atoms, activations, sums)
    if by_newton:
        model = _averaged(stream, _model(problem, atoms, activations, found))
        return _minimised(problem, following, model, total), told
    return following._replace(atoms=em.update_atoms(problem, atoms, total * following.counts)), told


def learn_posterior(problem: Problem, stream: Stream, total: float) -> tuple[Stream, Told]:
    """One batch for variational Bayes: a step along the natural gradient."""
    atoms, _ = vb.geometric_atoms(stream.atoms, problem.prior.atom_shape)
    found = rows.solve(problem, Posterior(problem.mass), atoms, _ROUGH)
    shape = vb.shape_of(problem, found.activations).astype(problem.source.dtype, copy=False)
    _, sums = vb.step_samples(problem, shape, atoms)
    following, told = _counted(problem, stream, atoms, shape, sums)
    atom_shape = problem.mass * total * following.counts + problem.prior.atom_shape
    atom_shape[:, problem.frozen] = stream.atoms[:, problem.frozen]
    return following._replace(atoms=atom_shape.astype(stream.atoms.dtype)), told


def step_weight(n_steps: int) -> float:
    """What a batch counts in the mean, after so many others."""
    return (_DELAY + n_steps) ** -_FORGETTING


def _counted(
    problem: Problem, stream: Stream, atoms: NDArray, activations: NDArray, sums: tuple
) -> tuple[Stream, Told]:
    """What an E-step's sums add to the mean of the counts, and tell about the batch."""
    u_atoms, data_term, activation_term = sums
    weight = float(problem.sample_weight.sum())
    objective = problem.mass * data_term + activation_term
    following = stream._replace(
        counts=_mixed(stream.counts, atoms * u_atoms / weight, step_weight(stream.n_steps)),
        n_steps=stream.n_steps + 1,
        n_samples=stream.n_samples + weight,
    )
    return following, Told(activations, objective / weight, data_term / weight)


def _model(problem: Problem, atoms: NDArray, activations: NDArray, found: Any) -> Model:
    """The quadratic model at the batch's activations."""
    price, _ = newton.prior_sums(problem, activations)
    numbers = found.slopes - _times(found.grams, atoms), found.grams, price
    return Model(*(part / float(problem.sample_weight.sum()) for part in numbers))


def _averaged(stream: Stream, new: Model) -> Model:
    """The mean of the models so far and a new one."""
    if stream.model is None:
        return new
    rate = step_weight(stream.n_steps - _WARM_UP)
    return Model(*(_mixed(*pair, rate) for pair in zip(stream.model, new, strict=True)))


def _mixed(before: NDArray, new: NDArray, rate: float) -> NDArray:
    return (1 - rate) * before + rate * new


def _minimised(problem: Problem, stream: Stream, model: Model, total: float) -> Stream:
    """The atoms at the minimum of the model; their sums go into the activations to come."""
    atoms = stream.atoms.astype(np.float64)
    excess = problem.prior.activation_shape - 1
    excess = np.broadcast_to(total * excess / problem.mass, (1, problem.n_components))[0]
    terms = newton.prior_terms(problem, total * model.price, excess, atoms)
    slopes = total * (model.slopes + _times(model.grams, atoms)) + terms.price[:, None]
    moves = move_features(slopes, total * model.grams, atoms, terms.excess, problem.frozen)
    totals, atoms = newton.normalised(problem, atoms, newton.moved(atoms, moves))
    model = Model(
        model.slopes * totals[:, None],
        model.grams * _pairs(np.outer(totals, totals))[:, None],
        model.price * totals,
    )
    return stream._replace(atoms=atoms.astype(stream.atoms.dtype), model=model)


def _pairs(matrix: NDArray) -> NDArray:
    """The part of a matrix (K, K) on and below its diagonal, as `grams` have it."""
    return matrix[np.tril_indices(len(matrix))]


def _times(grams: NDArray, atoms: NDArray) -> NDArray:
    """grams · θ, (2, K, I)."""
    result = np.zeros(atoms.shape)
    blocks = ((0, 0, 0), (1, 0, 1), (1, 1, 0), (2, 1, 1))
    for t, s, u in blocks:
        first = 0
        for k in range(atoms.shape[1]):
            row = grams[t, first : first + k + 1]
            result[s, k] += np.einsum("mi,mi->i", row, atoms[u, : k + 1])
            result[s, :k] += row[:k] * atoms[u, k]
            first += k + 1
    return result
