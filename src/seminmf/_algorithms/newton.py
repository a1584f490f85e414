"""Alternating Newton steps on activations and atoms, with extrapolation and safeguards.

An iteration is one sweep over the data. At the point proposed it takes a Newton step on the
activations of every sample, with a line search, and collects gradient and Hessian of the atoms.
The Newton step on the atoms that follows is not searched: it is judged by the next sweep, as is the
extrapolation beyond it. A proposal that does not raise the objective is dropped, for a more careful
one: without extrapolation, then with shorter steps on the features that were to blame, in the end
EM's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from .._data.executor import per_sample
from .._kernels.euclidean.priced import RowGrams
from .._kernels.newton.features import move_features
from .._kernels.newton.lanes import TOWARDS_BARRIER
from .._kernels.newton.stored import columns_of, stored_sums
from .._kernels.newton.sweep import NO_STEP, ONE_STEP, NewtonControl, RowProblems, Sweep, sweep
from .._model.penalties import Maximum
from .._model.priors import NOTHING
from . import em
from .acceleration import accelerate
from .loop import Info
from .problem import Problem

# The first iterations are EM's, several of them in the place of one, at about the same cost: from a
# random start Newton's method runs into poor optima.
_WARM_UP, _AT_ONCE = 10, 5
# From so many components on, an iteration takes as long as tens of EM's, and these are cycles of
# SQUAREM, so many at once: it is ahead until both are near an optimum.
_MANY_COMPONENTS, _CYCLES_AT_ONCE = 30, 15
# Features share a Hessian where at least this share of the cells is observed.
_LEAST_OBSERVED = 0.5
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


class NewtonState(NamedTuple):
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
    previous : em.Factors
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
    previous: em.Factors
    momentum: float
    failures: int
    gains: NDArray
    gain: float
    age: int


class Terms(NamedTuple):
    """Objective of the unnormalised atoms θ beside the likelihood.

    It is rate_sum θ − excess ln θ + ½ ridge θ², where the ridge stands for a price on lengths.

    With S = Σ_si θ moved into the activations, the priors' part of minus the objective is

        Σ_j β λ S − Σ_si (α_atom − 1) ln θ + c ln S,    c = Σ_si (α_atom − 1) − Σ_j (α_act − 1).

    ln S couples the features. Where c > 0 it is concave and below its tangent, where c < 0 it is
    below Σ_si c θ' ln(θ / θ'), which is the M-step's argument: both are equal at S = 1.
    """

    rate_sum: NDArray
    excess: NDArray
    ridge: NDArray

    def by_feature(self, atoms: NDArray) -> NDArray:
        """Its sum over signs and components."""
        values = self.rate_sum[:, None] * atoms + 0.5 * self.ridge * atoms * atoms
        if np.any(self.excess):
            values -= xlogy(self.excess, atoms)
        return values.sum(axis=(0, 1))

    def of_features(self, shape: tuple[int, ...], part: slice) -> Terms:
        """Those of some features, for atoms of a shape (2, K, I)."""
        return Terms(
            self.rate_sum,
            np.broadcast_to(self.excess, shape)[:, :, part],
            np.broadcast_to(self.ridge, shape[1:])[:, part],
        )


def suits(problem: Problem) -> bool:
    """Whether Newton's method can be used: shapes below 1 have no convex penalty."""
    return all(factor.prior.is_log_concave for factor in problem.model.factors)


def start(problem: Problem, point: em.Factors) -> NewtonState:
    """State to start from; next to noise EM hardly moves, and there is no warm-up."""
    if problem.model.has_noise:
        return after_warm_up(problem, point)
    return _first(problem, point)


def _first(problem: Problem, point: em.Factors) -> NewtonState:
    n_features = problem.data.shape[1]
    (gains,), _ = problem.over_samples(_unknown_gains, (point.activations,))
    return NewtonState(
        activations=point.activations,
        atoms=point.atoms,
        objective=-np.inf,
        moves=np.zeros(point.atoms.shape),
        features=np.full(n_features, np.inf),
        trust=np.ones(n_features),
        previous=point,
        momentum=_FIRST_MOMENTUM,
        failures=0,
        gains=gains,
        gain=0.0,
        age=0,
    )


@per_sample(rows=1)
def _unknown_gains(problem: Problem, activations: NDArray) -> tuple[tuple, tuple]:
    return (np.full(len(activations), np.inf),), ()


def after_warm_up(problem: Problem, point: em.Factors) -> NewtonState:
    """State that starts with Newton steps at once; from there on a state knows its objective."""
    objective = em.evaluate(problem, point)
    return _first(problem, point)._replace(objective=objective, age=_WARM_UP + 1)


def point(state: NewtonState) -> em.Factors:
    """Activations and atoms of a state."""
    return em.Factors(state.activations, state.atoms)


def evaluate(problem: Problem, state: NewtonState) -> float:
    """Objective at a state; after the warm-up it is known."""
    return state.objective if state.age > _WARM_UP else em.evaluate(problem, point(state))


def step(problem: Problem, state: NewtonState) -> tuple[NewtonState, Info]:
    """One iteration: a sweep at the point that the state proposes."""
    if state.age < _WARM_UP:
        return _warm_up(problem, state)
    if state.age == _WARM_UP:
        state = after_warm_up(problem, point(state))
    info = Info(state.objective)
    proposal = _propose(problem, state)
    problem = problem.at(proposal.atoms)
    (activations, gains, target), found = _sweep(problem, proposal, state)
    objective = em.objective(problem, proposal.atoms, 0.0, -problem.mass * found.value)
    if not objective >= state.objective:
        return _failed(problem.at(state.atoms), state, proposal, found), info
    momentum = state.momentum
    if state.failures == 0:
        momentum = min(_GROWTH * momentum, _MOST_MOMENTUM)
    atoms = proposal.atoms.astype(np.float64, copy=False)
    terms = prior_terms(problem, found.rate_sum, found.excess, atoms)
    moves, features = _moves(problem, activations, found, terms, atoms)
    following = NewtonState(
        activations=activations,
        atoms=proposal.atoms,
        objective=objective,
        moves=moves,
        features=features + terms.by_feature(atoms),
        trust=np.minimum(2 * state.trust, 1),
        previous=em.Factors(target, proposal.target),
        momentum=momentum,
        failures=0,
        gains=gains,
        gain=(objective - state.objective) / problem.mass,
        age=state.age + 1,
    )
    return following, info


def _warm_up(problem: Problem, state: NewtonState) -> tuple[NewtonState, Info]:
    """A few EM iterations, accelerated where components are many."""
    many = problem.n_components >= _MANY_COMPONENTS
    algorithm = accelerate(em, "squarem" if many else None)
    reached = algorithm.start(problem, point(state))
    reached, info = algorithm.step(problem, reached)
    for _ in range((_CYCLES_AT_ONCE if many else _AT_ONCE) - 1):
        reached, _ = algorithm.step(problem, reached)
    following = algorithm.point(reached)
    return start(problem, following)._replace(age=state.age + 1), Info(info.objective)


class _Proposal(NamedTuple):
    """Where to go: atoms, and how to get the activations there.

    Attributes
    ----------
    activations : (J, K) array
        Those to start from; times `totals`, they are the target.
    totals : (K,) array
    momentum : float
        Share of the way from the previous target by which the activations go beyond.
    target, atoms : (2, K, I) arrays
        Atoms of the target, and those beyond it.
    """

    activations: NDArray
    totals: NDArray
    momentum: float
    target: NDArray
    atoms: NDArray


def _propose(problem: Problem, state: NewtonState) -> _Proposal:
    """The boldest proposal that has not failed yet."""
    if state.failures >= _MOST_FAILURES:
        activations, atoms = em.step(problem, point(state))[0]
        return _Proposal(activations, np.ones(len(problem.model.atoms.frozen)), 0.0, atoms, atoms)
    totals, target = _target(problem, state)
    if state.failures > 0 or state.momentum == 0:
        return _Proposal(state.activations, totals, 0.0, target, target)
    atoms = _beyond(target, state.previous.atoms, state.momentum)
    sums = atoms.sum(axis=(0, 2))
    usable = ~problem.model.atoms.frozen & (sums > 0)
    atoms = np.where(usable[:, None], atoms / np.where(usable, sums, 1)[:, None], target)
    atoms = atoms.astype(target.dtype, copy=False)
    return _Proposal(state.activations, totals, state.momentum, target, atoms)


def _target(problem: Problem, state: NewtonState) -> tuple[NDArray, NDArray]:
    """Where the Newton step on the atoms leads: sums, for the activations; and atoms."""
    totals, atoms = normalised(problem, state.atoms, _unnormalised(state))
    return totals, atoms.astype(state.atoms.dtype)


def normalised(problem: Problem, before: NDArray, atoms: NDArray) -> tuple[NDArray, NDArray]:
    """Sums of the atoms after a step, and the atoms over them; what cannot move is as before."""
    totals = atoms.sum(axis=(0, 2))
    changed = ~problem.model.atoms.frozen & (totals > NOTHING) & (totals < np.inf)
    totals = np.where(changed, totals, 1)
    return totals, np.where(changed[:, None], atoms / totals[:, None], before)


def _beyond(target: NDArray, previous: NDArray, momentum: float) -> NDArray:
    """Beyond the target, by a share of the way from the previous one."""
    beyond = target - previous
    beyond *= target.dtype.type(momentum)
    beyond += target
    # Not to 0, from where there is hardly a way back.
    return np.maximum(beyond, target.dtype.type(TOWARDS_BARRIER) * target, out=beyond)


class _Sums(NamedTuple):
    """What a sweep sums up over the samples.

    Attributes
    ----------
    value : float
        Value of all samples' problems: minus the objective but for the atoms' prior, over the mass.
    features_before, features, slopes, hessian_blocks
        As `newton.Sweep` has them; NaN, where they were not summed up.
    rate_sum, excess : (K,) arrays
        Σ_j β λ and Σ_j (α − 1), the latter in the unit of λ.
    """

    value: float
    features_before: NDArray
    features: NDArray
    slopes: NDArray
    hessian_blocks: NDArray
    rate_sum: NDArray
    excess: NDArray


def _sweep(problem: Problem, proposal: _Proposal, state: NewtonState) -> tuple[tuple, _Sums]:
    """Newton steps on all activations but those that had next to nothing to gain."""
    rows, sums = problem.over_samples(
        _sweep_samples,
        (proposal.activations, state.previous.activations, state.gains),
        proposal.totals,
        proposal.momentum,
        proposal.atoms,
        _NEGLIGIBLE * state.gain / problem.data.total_weight,
        _collects(problem),
    )
    return rows, _Sums(*sums)


@per_sample(rows=3, sums=7)
def _sweep_samples(
    problem: Problem,
    activations: NDArray,
    previous: NDArray,
    gains: NDArray,
    totals: NDArray,
    momentum: float,
    atoms: NDArray,
    threshold: float,
    collect: bool,
) -> tuple[tuple, tuple]:
    """New activations, their gains, and the target; and what `_Sums` has."""
    target, proposed = _proposed(activations, previous, totals, momentum)
    stores = problem.data.source.stores_cells
    by_sample = collect and not stores
    found = _run_sweep(problem, proposed, atoms, ONE_STEP, gains.copy(), threshold, by_sample)
    value = float(found.values @ problem.data.weights) - em.unit_term(problem) / problem.mass
    if stores:
        found = _with_stored_sums(problem, found, atoms, collect)
    sums = (value, *found[-4:], *prior_sums(problem, found.activations))
    return (found.activations, found.gains, target), sums


def _proposed(
    activations: NDArray, previous: NDArray, totals: NDArray, momentum: float
) -> tuple[NDArray, NDArray]:
    """The target of some samples, and the point beyond it."""
    target = activations * totals.astype(activations.dtype)
    return target, _beyond(target, previous, momentum) if momentum else target.copy()


def _with_stored_sums(problem: Problem, found: Sweep, atoms: NDArray, collect: bool) -> Sweep:
    """The sweep over a sparse matrix, with what it did not sum up by feature.

    NaN is what is asked for later: what features were worth before if a proposal fails, and what
    they are worth, if the sums of all at once are too many, with the others.
    """
    unknown = np.full(atoms.shape[2], np.nan)
    if not collect:
        return found._replace(features_before=unknown, features=unknown)
    columns = columns_of(problem.data.source.by_feature)
    sums = stored_sums(columns, _row_problems(problem, atoms), found.activations, problem.executor)
    return found._replace(features_before=unknown, **sums._asdict())


@per_sample(sums=1)
def _worth_samples(
    problem: Problem,
    activations: NDArray,
    previous: NDArray,
    totals: NDArray,
    momentum: float,
    atoms: NDArray,
) -> tuple[tuple, tuple]:
    """What features contribute to minus the objective at a proposal, before a step from there."""
    _, proposed = _proposed(activations, previous, totals, momentum)
    source = problem.data.source
    if source.stores_cells:
        problems = _row_problems(problem, atoms)
        columns = columns_of(source.by_feature)
        sums = stored_sums(columns, problems, proposed, problem.executor, collect=False)
        return (), (sums.features,)
    return (), (look(problem, proposed, atoms, collect=False).features,)


@per_sample(sums=3)
def _look_samples(
    problem: Problem, activations: NDArray, atoms: NDArray, first: int, last: int
) -> tuple[tuple, tuple]:
    """What features contribute at a point, and what their atoms need; no step is taken."""
    source, own = problem.data.source, slice(first, last)
    background = problem.model.background.of_features(own)
    part = replace(problem, model=problem.model._replace(background=background))
    group = np.ascontiguousarray(atoms[:, :, own], dtype=activations.dtype)
    if source.stores_cells:
        sums = stored_sums(
            columns_of(source.by_feature),
            _row_problems(part, group),
            activations,
            problem.executor,
            first=first,
        )
        return (), tuple(sums)
    part = replace(part, data=problem.data._replace(source=source.columns(first, last)))
    found = look(part, activations, group)
    return (), (found.features, found.slopes, found.hessian_blocks)


def prior_sums(problem: Problem, activations: NDArray) -> tuple[NDArray, NDArray]:
    """Σ_j β λ and Σ_j (α − 1) for each component, with the samples' weights."""
    prior = problem.model.activations.prior
    rate_sum = problem.data.component_sums(activations, prior.rate)
    if prior.is_exponential:
        return rate_sum, np.zeros(problem.n_components)
    excess = np.broadcast_to(prior.shape - 1, activations.shape)
    return rate_sum, problem.data.component_sums(excess) / problem.mass


@per_sample(sums=2)
def _prior_samples(problem: Problem, activations: NDArray) -> tuple[tuple, tuple]:
    return (), prior_sums(problem, activations)


def _run_sweep(
    problem: Problem,
    activations: NDArray,
    atoms: NDArray,
    control: NewtonControl,
    gains: NDArray,
    threshold: float,
    collect: bool,
) -> Sweep:
    """A sweep over the samples, whose activations are overwritten."""
    return sweep(
        problem.data.source,
        _row_problems(problem, atoms),
        np.ascontiguousarray(activations),
        control,
        problem.executor,
        gains=gains,
        threshold=threshold,
        collect=collect,
    )


def look(problem: Problem, activations: NDArray, atoms: NDArray, *, collect: bool = True) -> Sweep:
    """What features contribute at a point, and what their atoms need; no step is taken."""
    still = np.zeros(len(activations))
    return _run_sweep(problem, activations.copy(), atoms, NO_STEP, still, 0.0, collect)


def _row_problems(problem: Problem, atoms: NDArray) -> RowProblems:
    """The problems of the samples, with these atoms."""
    model = problem.model
    return RowProblems(
        model.likelihood,
        Maximum(problem.mass),
        model.activations.prior,
        atoms,
        problem.data.weights,
        model.background,
    )


def _collects(problem: Problem) -> bool:
    """Whether a sweep over samples collects what the atoms need; if not, features do in groups."""
    all_at_once = _features_at_once(problem) == problem.data.shape[1]
    return all_at_once and not _shares_curvature(problem)


def _shares_curvature(problem: Problem) -> bool:
    """Whether the Hessians of all features are taken for multiples of one matrix.

    Next to noise U is near 1, and q near 1 over the variance of the cell. Where that is the noise
    of its feature, it differs little between samples, and what makes up the Hessians' sums over
    samples is Σ_j λ_jk λ_jm. The slopes are differences of sums, for which float32 is too coarse.
    """
    source, summary, model = problem.data.source, problem.data.summary, problem.model
    if problem.n_components < _MANY_COMPONENTS or not model.has_noise or source.stores_cells:
        return False
    n_cells = problem.data.shape[0] * problem.data.shape[1]
    seen = summary.n_observed >= _LEAST_OBSERVED * n_cells
    return seen and model.background.n_rows == 1 and problem.dtype == np.float64


def _features_at_once(problem: Problem) -> int:
    """Number of features whose Hessians, of K (K + 1) · 3 / 2 numbers, are in memory at a time."""
    n_components, n_features = problem.n_components, problem.data.shape[1]
    n_pairs = n_components * (n_components + 1) // 2
    return min(n_features, max(_LEAST_FEATURES, _HESSIANS // (3 * n_pairs)))


def _moves(
    problem: Problem, activations: NDArray, found: _Sums, terms: Terms, atoms: NDArray
) -> tuple[NDArray, NDArray]:
    """Newton step on the atoms (2, K, I), by groups of features if all at once are too many.

    And what each feature contributes to minus the log-likelihood.
    """
    n_features, at_once = atoms.shape[2], _features_at_once(problem)
    moves, features = np.empty(atoms.shape), found.features.copy()
    shared = _shared(problem, activations, atoms) if _shares_curvature(problem) else None
    for first in range(0, n_features, at_once):
        part = slice(first, min(first + at_once, n_features))
        slopes, hessian_blocks = found.slopes, found.hessian_blocks
        if shared is not None:
            slopes, hessian_blocks = shared.of_features(part)
        elif not _collects(problem):
            group = (atoms, part.start, part.stop)
            _, (seen, slopes, hessian_blocks) = problem.over_samples(
                _look_samples, (activations,), *group
            )
            features[part] = np.where(np.isnan(features[part]), seen, features[part])
        group_terms = terms.of_features(atoms.shape, part)
        moves[:, :, part] = move(problem, slopes, hessian_blocks, atoms[:, :, part], group_terms)
    return moves, features


class _Shared(NamedTuple):
    """What the atoms need where features share a Hessian, but for a factor each.

    Attributes
    ----------
    slopes : (2, K, I) array
    pairs : (K (K + 1) / 2,) array
        Σ_j λ_jk λ_jm for m ≤ k, row by row.
    curvatures : (I,) array
    """

    slopes: NDArray
    pairs: NDArray
    curvatures: NDArray

    def of_features(self, part: slice) -> tuple[NDArray, NDArray]:
        """Slopes and Hessian blocks of some features."""
        same = self.pairs[:, None] * self.curvatures[part]
        return self.slopes[:, :, part], np.stack([same, -same, same])


def _shared(problem: Problem, activations: NDArray, atoms: NDArray) -> _Shared:
    """At a point: from the E-step, which costs I · J · K, and one sum of K · K numbers."""
    given = np.ascontiguousarray(atoms, dtype=problem.dtype)
    _, sums = problem.over_samples(_shared_samples, (activations,), given)
    expected, totals, gram = sums
    data, background = problem.data, problem.model.background
    signal = (totals / data.total_weight) @ atoms.sum(axis=0)
    variances = background.rates.sum(axis=0) + signal
    observed = data.summary.column_count / data.shape[0]
    curvatures = observed * np.mean(1 / variances, axis=0)
    return _Shared(totals[:, None] - expected, gram[np.tril_indices(len(gram))], curvatures)


@per_sample(sums=3)
def _shared_samples(problem: Problem, activations: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    """U^atoms, Σ_j λ and Σ_j λ λ, with the samples' weights."""
    values = np.ascontiguousarray(activations)
    expected = problem.expectations(values, atoms)
    values, weights = values.astype(np.float64), problem.data.weights
    gram = RowGrams.of(values, weights[None]).whole
    return (), (expected.atoms, weights @ values, gram)


def move(
    problem: Problem, slopes: NDArray, hessian_blocks: NDArray, atoms: NDArray, terms: Terms
) -> NDArray:
    """Newton step on the atoms (2, K, n) of some features, with the priors' part."""
    slopes = slopes + terms.rate_sum[:, None] + terms.ridge * atoms
    fixed = problem.model.fixed_atoms
    return move_features(slopes, hessian_blocks, atoms, terms.excess, terms.ridge, fixed)


def prior_terms(problem: Problem, rate_sum: NDArray, excess: NDArray, atoms: NDArray) -> Terms:
    """What the priors add to each feature's problem."""
    priors, price = problem.model.priors, problem.model.length_price
    if price is not None:
        nothing = np.zeros_like(rate_sum)
        return Terms(nothing, np.zeros((1, 1, 1)), price.ridge(rate_sum, atoms))
    if priors.activations.is_exponential and priors.atoms.is_flat:
        return Terms(rate_sum, np.zeros((1, 1, 1)), np.zeros((1, 1)))
    atom_excess = np.broadcast_to((priors.atoms.shape - 1) / problem.mass, atoms.shape)
    balance = atom_excess.sum(axis=(0, 2)) - excess
    return Terms(
        rate_sum + np.maximum(balance, 0),
        atom_excess + np.maximum(-balance, 0)[:, None] * atoms,
        np.zeros((1, 1)),
    )


def _failed(problem: Problem, state: NewtonState, proposal: _Proposal, found: _Sums) -> NewtonState:
    """The state after its proposal was dropped: the next will be more careful."""
    state = state._replace(failures=state.failures + 1, age=state.age + 1)
    if state.failures == 1:
        return state._replace(momentum=_SHRINKAGE * state.momentum)
    _, (rate_sum, excess) = problem.over_samples(_prior_samples, (state.activations,))
    terms = prior_terms(problem, rate_sum, excess, state.atoms)
    before = found.features_before
    if np.isnan(before).any():
        rows = proposal.activations, state.previous.activations
        point = proposal.totals, proposal.momentum, proposal.atoms
        _, (before,) = problem.over_samples(_worth_samples, rows, *point)
    tried = before + terms.by_feature(_unnormalised(state))
    risen = ~(tried <= state.features)
    to_blame = risen if risen.any() else ~risen
    return state._replace(trust=np.where(to_blame, _DAMPING * state.trust, state.trust))


def _unnormalised(state: NewtonState) -> NDArray:
    """Atoms after their Newton step, before their sums go into the activations."""
    return moved(state.atoms, state.trust * state.moves)


def moved(atoms: NDArray, moves: NDArray) -> NDArray:
    """Atoms after a step, not below 0."""
    atoms = atoms + moves
    atoms[atoms < _NO_ATOM] = 0
    return atoms
