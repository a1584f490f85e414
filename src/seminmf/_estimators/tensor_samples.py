"""New samples of a fitted tensor model: their factors, given all others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._algorithms import tensor_em, tensor_vb
from .._algorithms import vb as matrix_vb
from .._algorithms.acceleration import accelerate
from .._algorithms.loop import Stopping
from .._algorithms.tensor import TensorModel, TensorProblem
from .._algorithms.tensor_rows import solve_samples
from .._algorithms.tensor_start import start
from .._model.factors import TensorFactor
from .._model.language import Plan
from .._model.likelihoods import Real
from .._model.penalties import Maximum, Penalty, Posterior
from .runs import Runner
from .tensor_build import Blueprint
from .tensor_draft import observe
from .tensor_fitted import Fitted, point_of

# Numbers of atoms up to which samples are solved for by Newton's method.
_MOST_ATOMS = 1 << 22
# How far factors are sought that are not rows of a matrix.
_SOLVING = Stopping(3000, 1e-9)


class Samples(NamedTuple):
    """A fitted model with the factors of other samples, and their tensors."""

    fitted: Fitted
    arrays: dict[str, Any]


def sample_factors(plan: Plan) -> list[str]:
    """Names of the factors that have the letter of the samples, or a refusal."""
    uses = [use for term in plan.terms for use in term.uses]
    found = []
    for name in plan.factors:
        own = [use for use in uses if use.factor == name]
        having = [use for use in own if plan.sample in (axis.letter for axis in use.axes)]
        if having and len(having) < len(own):
            raise ValueError(
                f"transform needs factors that belong to the samples in all places; found '{name}' "
                f"both with and without their letter, '{plan.sample}'."
            )
        if having:
            found.append(name)
    return found  # never empty: each term has the letter


def sample_axes(model: Blueprint) -> dict[str, int]:
    """The axis of samples of each factor that has one."""
    plan = model.plan
    return {
        name: [axis.letter for axis in plan.factors[name]].index(plan.sample)
        for name in sample_factors(plan)
    }


def can_solve(fitted: Fitted) -> bool:
    """Whether the factors of the samples are free to be solved for, and the same for any sample."""
    try:
        names = sample_factors(fitted.model.plan)
    except ValueError:
        return False
    own = [factor for factor in fitted.factors if factor.name in names]
    alone = all(len(part) == 1 for factor in own if factor.is_free for part in factor.prior)
    return alone and not any(factor.frozen.any() for factor in own)


def solved(
    fitted: Fitted, arrays: Mapping[str, Any], executor: Any, *, variational: bool
) -> Samples:
    """The model with the factors of these samples; tensors that are not there are all gaps."""
    names = sample_factors(fitted.model.plan)
    model = fitted.model.resized(_sizes(fitted.model, arrays))
    whole = {
        observation.name: arrays.get(observation.name, _gaps(model, observation.output))
        for observation in model.plan.observations
    }
    factors = tuple(
        _for_samples(factor, layout) if factor.name in names else factor
        for factor, layout in zip(fitted.factors, model.layouts, strict=True)
    )
    fitted = fitted._replace(model=model, factors=factors)
    # The row problem of a posterior is for atoms that sum to 1.
    exposed = variational and any(factor.exposed for factor in factors if factor.name in names)
    by_rows = _are_rows(model, names) and not exposed and not is_large(model, names)
    by_rows = by_rows and _cells_are_alike(fitted)
    solve = _solve_rows if by_rows else _solve_by_steps
    state = solve(fitted, whole, names, executor, variational)
    return Samples(fitted._replace(state=state), whole)


def _gaps(model: Blueprint, letters: Sequence[str]) -> NDArray:
    return np.full([model.sizes[letter] for letter in letters], np.nan)


def _sizes(model: Blueprint, arrays: Mapping[str, Any]) -> dict[str, int]:
    """Sizes of all letters; only the number of samples may be another than in the fit."""
    plan, sizes = model.plan, dict(model.sizes)
    numbers: dict[str, int] = {}
    for observation in plan.observations:
        if observation.name not in arrays:
            continue
        shape = arrays[observation.name].shape
        if len(shape) != len(observation.output):
            raise ValueError(
                f"X must have an axis for each letter of '{''.join(observation.output)}'; found "
                f"the shape {shape}."
            )
        for letter, size in zip(observation.output, shape, strict=True):
            wanted = numbers.setdefault(letter, size) if letter == plan.sample else sizes[letter]
            if size != wanted:
                raise ValueError(
                    f"X must have {wanted} values of letter '{letter}', as "
                    f"{'in its other tensors' if letter == plan.sample else 'in the fit'}; found "
                    f"{size}."
                )
    return sizes | numbers


def _for_samples(factor: TensorFactor, layout: Any) -> TensorFactor:
    """A factor of other samples: nothing of it is known."""
    rows = max(len(part) for part in factor.prior)
    if rows > 1 and layout.sample is not None:
        raise ValueError(
            f"transform needs priors that hold for any sample; found one of '{factor.name}' with a "
            f"row for each of the {rows} samples of the fit."
        )
    return factor._replace(
        layout=layout,
        frozen=np.zeros(layout.shape, dtype=bool),
        known=np.zeros(layout.shape),
        row_weights=np.ones(1 if layout.sample is None else layout.shape[0]),
    )


def _are_rows(model: Blueprint, names: Sequence[str]) -> bool:
    """Whether every sample is a row, of the problem that matrices have."""
    for observation in model.plan.observations:
        for term in observation.terms:
            own = [use.factor for use in term.uses if use.factor in names]
            if model.plan.sample in observation.output and len(own) != 1:
                return False
    layouts = [model.layout(name) for name in names]
    return all(one.role.is_free and one.sample is not None and one.signs == 1 for one in layouts)


def _cells_are_alike(fitted: Fitted) -> bool:
    """Whether the tensors of the samples are all of infinite M, or none is."""
    plan = fitted.model.plan
    with_samples = [one.name for one in plan.observations if plan.sample in one.output]
    return len({issubclass(fitted.wants[name].kind, Real) for name in with_samples}) == 1


def is_large(model: Blueprint, names: Sequence[str]) -> bool:
    """Whether what the samples' factors are multiplied by would not go into memory."""
    columns = sum(math.prod(model.layout(name).shape[1:]) for name in names)
    features = max(
        math.prod(model.sizes[letter] for letter in one.output if letter != model.plan.sample)
        for one in model.plan.observations
    )
    return columns * features > _MOST_ATOMS


def tables_of(
    fitted: Fitted,
    arrays: Mapping[str, Any],
    executor: Any,
    rows: tuple[str, ...] | None = None,
    left: frozenset[str] | None = None,
) -> list:
    """Observed tensors that have samples, as algorithms see them."""
    model = fitted.model
    plan = model.plan
    weights = np.ones(model.sizes[plan.sample])
    return [
        observe(model, one, arrays[one.name], weights, rows, left).table(
            model, fitted.wants[one.name], fitted.levels[one.name], executor
        )
        for one in plan.observations
        if plan.sample in one.output
    ]


def _solve_rows(
    fitted: Fitted,
    arrays: Mapping[str, Any],
    names: Sequence[str],
    executor: Any,
    variational: bool,
) -> Any:
    """Precise values: Newton's method for each sample."""
    model, state = fitted.model, list(fitted.state)
    tables = tables_of(fitted, arrays, executor, (model.plan.sample,), frozenset(names))
    numbers = {model.names.index(name): fitted.factors[model.names.index(name)] for name in names}
    for n, factor in numbers.items():
        state[n] = np.ones(factor.layout.shape, dtype=state[n].dtype)
    point: list[NDArray] = state
    kind: Penalty = Maximum(1.0)
    if variational:
        tensors = TensorModel(fitted.factors, has_rates=True)
        point = tensor_vb.moments_of(TensorProblem(tensors, ()), state).geometric
        kind = Posterior(1.0)
    problem, values = solve_samples(tables, numbers, point, kind)
    if variational:
        joint = matrix_vb.shape_of(problem, np.concatenate(list(values.values()), axis=1))
        edges = np.cumsum([value.shape[1] for value in values.values()])[:-1]
        values = dict(zip(values, np.split(joint, edges, axis=1), strict=True))
    for n, value in values.items():
        state[n] = value.astype(state[n].dtype)
    return point_of(state)


def _solve_by_steps(
    fitted: Fitted,
    arrays: Mapping[str, Any],
    names: Sequence[str],
    executor: Any,
    variational: bool,
) -> Any:
    """EM or VBEM in which all other factors stay."""
    model = fitted.model
    held = frozenset(n for n, name in enumerate(model.names) if name not in names)
    tensors = TensorModel(fitted.factors, held, variational)
    problem = TensorProblem(tensors, tuple(tables_of(fitted, arrays, executor)))
    means = fitted.means(variational)
    first = start(problem, {n: means[n] for n in held}, RandomState(0))
    if variational:
        first = tensor_vb.state_from(problem, first)
        rates = [n for n in tensors.exposed]
        for n in held:
            first[n] = fitted.state[n]
        for place, n in enumerate(rates, len(model.names)):
            if n in held:
                first[place] = fitted.state[place]
    algorithm = accelerate(tensor_vb if variational else tensor_em, "squarem")
    return Runner.silent().run(algorithm, problem, lambda: point_of(first), "", _SOLVING).state
