"""Alternating Newton steps on activations and atoms, with extrapolation and safeguards.

An iteration is one sweep over the data. At the point proposed it takes a Newton step on the
activations of every sample, with a line search, and collects gradient and Hessian of the atoms.
The Newton step on the atoms that follows is not searched: it is judged by the next sweep, as is the
extrapolation beyond it. A proposal that does not raise the objective is dropped, for a more careful
one: without extrapolation, then with shorter steps on the features that were to blame, in the end
EM's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from .._passes.features import move_features
from .._passes.lanes import TOWARDS_BARRIER
from .._passes.newton import NO_STEP, ONE_STEP, Effort, Sweep, sweep
from .._penalties import Maximum
from .._sources import Columns
from . import em
from .atoms import NOTHING
from .problem import Problem

# The first iterations are EM's, several of them in the place of one, at about the same cost: from a
# random start Newton's method runs into poor optima.
_WARM_UP, _AT_ONCE = 10, 5
# Momentum of the extrapolation: at first and at the most, and what a success and a failure make
# of it.
_FIRST_MOMENTUM, _MOST_MOMENTUM, _GROWTH, _SHRINKAGE = 0.5, 1.0, 1.1, 0.5
# What a failure makes of the step of a feature that was to blame.
_DAMPING = 0.25
# After so many failures in a row, an EM step.
_MOST_FAILURES = 5
# Samples whose last step gained less than this share of the mean are not moved for some sweeps.
_NEGLIGIBLE = 1e-2
# Numbers in the Hessians of the features that are collected in one sweep, and least features.
_HESSIANS = 1 << 18
_LEAST_FEATURES = 16
# An atom below this is 0: it would only get smaller, until the processor has no fast way for it.
_NO_ATOM = 1e-30


class State(NamedTuple):
    """Where the iterations are, and what the next proposal is made of.

    Attributes
    ----------
    activations, atoms : arrays of shape (J, K) and (2, K, I)
        The best point so far.
    objective : float
        At that point.
    moves : (2, K, I) array, float64
        Newton step on the atoms at that point; they are then not normalised.
    features : (I,) array
        What each feature contributes to minus the objective there.
    trust : (I,) array
        Share of its step that a feature takes.
    previous : em.State
        Where the last Newton step led, without extrapolation.
    momentum : float
        The next extrapolation continues from there by this share of the way made.
    failures : int
        Proposals that were dropped since the last success.
    gains : (J,) array
        By how much each sample's last step improved its value.
    gain : float
        By how much the last success did, all in all.
    age : int
        Iterations so far.
    """

    activations: NDArray
    atoms: NDArray
    objective: float
    moves: NDArray
    features: NDArray
    trust: NDArray
    previous: em.State
    momentum: float
    failures: int
    gains: NDArray
    gain: float
    age: int


class Info(NamedTuple):
    """Objective at the state that the step started from."""

    objective: float


class _Terms(NamedTuple):
    """Objective of the unnormalised atoms θ beside the likelihood: price θ − excess ln θ.

    With S = Σ_si θ moved into the activations, the priors' part of minus the objective is

        Σ_j β λ S − Σ_si (α_atom − 1) ln θ + c ln S,    c = Σ_si (α_atom − 1) − Σ_j (α_act − 1).

    ln S couples the features. Where c > 0 it is concave and below its tangent, where c < 0 it is
    below Σ_si c θ' ln(θ / θ'), which is the M-step's argument: both are equal at S = 1.
    """

    price: NDArray
    excess: NDArray

    def by_feature(self, atoms: NDArray) -> NDArray:
        """Its sum over signs and components."""
        values = self.price[:, None] * atoms
        if np.any(self.excess):
            values -= xlogy(self.excess, atoms)
        return values.sum(axis=(0, 1))


def suits(problem: Problem) -> bool:
    """Whether Newton's method can be used: shapes below 1 have no convex penalty."""
    shape, _, atom_shape = problem.prior
    return bool(np.all(shape >= 1) and np.all(atom_shape >= 1))


def start(problem: Problem, point: em.State) -> State:
    """State to start from."""
    n_samples, n_features = problem.source.shape
    return State(
        point.activations,
        point.atoms,
        -np.inf,
        np.zeros(point.atoms.shape),
        np.full(n_features, np.inf),
        np.ones(n_features),
        point,
        _FIRST_MOMENTUM,
        0,
        np.full(n_samples, np.inf),
        0.0,
        0,
    )


def after_warm_up(problem: Problem, point: em.State) -> State:
    """State that starts with Newton steps at once; from there on a state knows its objective."""
    objective = em.evaluate(problem, point)
    return start(problem, point)._replace(objective=objective, age=_WARM_UP + 1)


def point(state: State) -> em.State:
    """Activations and atoms of a state."""
    return em.State(state.activations, state.atoms)


def evaluate(problem: Problem, state: State) -> float:
    """Objective at a state; after the warm-up it is known."""
    return state.objective if state.age > _WARM_UP else em.evaluate(problem, point(state))


def step(problem: Problem, state: State) -> tuple[State, Info]:
    """One iteration: a sweep at the point that the state proposes."""
    if state.age < _WARM_UP:
        return _warm_up(problem, state)
    if state.age == _WARM_UP:
        state = after_warm_up(problem, point(state))
    info = Info(state.objective)
    target = _target(problem, state)
    proposal = _propose(problem, state, target)
    found = _sweep(problem, proposal, state)
    objective = _objective(problem, proposal.atoms, found)
    if not objective >= state.objective:
        return _failed(problem, state, found), info
    momentum = state.momentum
    if state.failures == 0:
        momentum = min(_GROWTH * momentum, _MOST_MOMENTUM)
    terms = _terms(problem, found.activations, proposal.atoms)
    atoms = proposal.atoms.astype(np.float64)
    following = State(
        found.activations,
        proposal.atoms,
        objective,
        _moves(problem, found, terms, atoms),
        found.features + terms.by_feature(atoms),
        np.minimum(2 * state.trust, 1),
        target,
        momentum,
        0,
        found.gains,
        (objective - state.objective) / problem.mass,
        state.age + 1,
    )
    return following, info


def _warm_up(problem: Problem, state: State) -> tuple[State, Info]:
    """A few EM iterations."""
    following, info = em.step(problem, point(state))
    for _ in range(_AT_ONCE - 1):
        following, _ = em.step(problem, following)
    return start(problem, following)._replace(age=state.age + 1), Info(info.objective)


def _propose(problem: Problem, state: State, target: em.State) -> em.State:
    """The boldest proposal that has not failed yet."""
    if state.failures == 0:
        return _extrapolate(problem, target, state)
    if state.failures < _MOST_FAILURES:
        return target
    return em.step(problem, point(state))[0]


def _target(problem: Problem, state: State) -> em.State:
    """Where the Newton step on the atoms leads; their sums go into the activations."""
    atoms = _unnormalised(state)
    totals = atoms.sum(axis=(0, 2))
    changed = ~problem.frozen & (totals > NOTHING) & (totals < np.inf)
    totals = np.where(changed, totals, 1)
    dtype = state.atoms.dtype
    atoms = np.where(changed[:, None], atoms / totals[:, None], state.atoms).astype(dtype)
    return em.State(state.activations * totals.astype(dtype), atoms)


def _extrapolate(problem: Problem, target: em.State, state: State) -> em.State:
    """Beyond the target, by a share of the way from the previous one."""
    if state.momentum == 0:
        return target
    proposals = []
    for to, before in zip(target, state.previous, strict=True):
        proposal = to - before
        proposal *= to.dtype.type(state.momentum)
        proposal += to
        # Not to 0, from where there is hardly a way back.
        proposals.append(np.maximum(proposal, to.dtype.type(TOWARDS_BARRIER) * to, out=proposal))
    activations, atoms = proposals
    totals = atoms.sum(axis=(0, 2))
    usable = ~problem.frozen & (totals > 0)
    atoms = np.where(usable[:, None], atoms / np.where(usable, totals, 1)[:, None], target.atoms)
    return em.State(activations, atoms.astype(target.atoms.dtype, copy=False))


def _sweep(problem: Problem, proposal: em.State, state: State) -> Sweep:
    """Newton steps on all activations but those that had next to nothing to gain."""
    threshold = _NEGLIGIBLE * state.gain / len(state.gains)
    collect = _features_at_once(problem) == problem.source.shape[1]
    return _run_sweep(problem, proposal, ONE_STEP, state.gains.copy(), threshold, collect)


def _look(problem: Problem, point: em.State) -> Sweep:
    """What the atoms need at a point, without a step on the activations."""
    return _run_sweep(problem, point, NO_STEP, np.zeros(len(point.activations)), 0.0, True)


def _run_sweep(
    problem: Problem,
    point: em.State,
    effort: Effort,
    gains: NDArray,
    threshold: float,
    collect: bool,
) -> Sweep:
    shape, rate, _ = problem.prior
    return sweep(
        problem.source,
        problem.likelihood,
        Maximum(problem.mass),
        effort,
        np.array(point.activations, order="C"),
        point.atoms,
        shape,
        rate,
        problem.sample_weight,
        gains=gains,
        threshold=threshold,
        pool=problem.pool,
        collect=collect,
    )


def _features_at_once(problem: Problem) -> int:
    """Number of features whose Hessians, of K (K + 1) · 3 / 2 numbers, are in memory at a time."""
    n_components, n_features = problem.n_components, problem.source.shape[1]
    n_pairs = n_components * (n_components + 1) // 2
    return min(n_features, max(_LEAST_FEATURES, _HESSIANS // (3 * n_pairs)))


def _objective(problem: Problem, atoms: NDArray, found: Sweep) -> float:
    """Objective at the point that a sweep ended with: its values have the activations' prior."""
    value = -problem.mass * float(found.values @ problem.sample_weight)
    state = em.State(found.activations, atoms)
    return em.objective(problem, state, 0.0, value + em.unit_term(problem))


def _moves(problem: Problem, found: Sweep, terms: _Terms, atoms: NDArray) -> NDArray:
    """Newton step on the atoms (2, K, I), by groups of features if all at once are too many."""
    n_features, at_once = atoms.shape[2], _features_at_once(problem)
    moves = np.empty(atoms.shape)
    for first in range(0, n_features, at_once):
        part = slice(first, min(first + at_once, n_features))
        group = atoms[:, :, part]
        collected = found
        if at_once < n_features:
            source = Columns(problem.source, part.start, part.stop)
            activations = found.activations
            point = em.State(activations, group.astype(activations.dtype))
            collected = _look(problem._replace(source=source), point)
        slopes = collected.slopes + terms.price[:, None]
        excess = np.broadcast_to(terms.excess, atoms.shape)[:, :, part]
        moves[:, :, part] = move_features(slopes, collected.grams, group, excess, problem.frozen)
    return moves


def _terms(problem: Problem, activations: NDArray, atoms: NDArray) -> _Terms:
    """What the priors add to each feature's problem."""
    shape, rate, atom_shape = problem.prior
    price = problem.sample_weight @ np.multiply(rate, activations, dtype=np.float64)
    if np.all(shape == 1) and np.all(atom_shape == 1):
        return _Terms(price, np.zeros((1, 1, 1)))
    n_samples = len(activations)
    atom_excess = np.broadcast_to((atom_shape - 1) / problem.mass, atoms.shape)
    excess = np.broadcast_to((shape - 1) / problem.mass, (n_samples, problem.n_components))
    balance = atom_excess.sum(axis=(0, 2)) - problem.sample_weight @ excess
    return _Terms(
        price + np.maximum(balance, 0), atom_excess + np.maximum(-balance, 0)[:, None] * atoms
    )


def _failed(problem: Problem, state: State, found: Sweep) -> State:
    """The state after its proposal was dropped: the next will be more careful."""
    state = state._replace(failures=state.failures + 1, age=state.age + 1)
    if state.failures == 1:
        return state._replace(momentum=_SHRINKAGE * state.momentum)
    terms = _terms(problem, state.activations, state.atoms)
    tried = found.features_before + terms.by_feature(_unnormalised(state))
    risen = ~(tried <= state.features)
    to_blame = risen if risen.any() else ~risen
    return state._replace(trust=np.where(to_blame, _DAMPING * state.trust, state.trust))


def _unnormalised(state: State) -> NDArray:
    """Atoms after their Newton step, before their sums go into the activations."""
    atoms = np.maximum(state.atoms + state.trust * state.moves, 0)
    return np.where(atoms < _NO_ATOM, 0, atoms)
