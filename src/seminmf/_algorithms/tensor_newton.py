"""Newton's method for tensors: after an EM step, the factors of one letter after the other.

Rates are linear in the factors of a letter, if each term has one of them, and every value of the
letter is then a convex problem of its own: that of a row of a matrix. One Newton step with a line
search is taken for each, so the objective never falls. A factor that sums to 1 is freed for its
step; what it sums to then goes into the factors next to it, up to the unit, whose price it pays.
From a random start this runs into poor optima: the first cycles are EM's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.source import Data
from .._kernels.newton.sweep import ONE_STEP, RowProblems, sweep
from .._model.factors import Layout
from .._model.penalties import Maximum
from .._model.priors import Gamma
from . import tensor_em
from .acceleration import AcceleratedState, accelerate
from .loop import Info
from .tensor import Table, TensorProblem
from .tensor_rows import RowColumns, as_rows, from_rows, row_atoms, row_problem

# Cycles of EM before the first Newton step.
_WARM_UP = 15
# Sums below this are as good as none.
_NOTHING = 1e-300


class Receiver(NamedTuple):
    """Where the scale of a factor that sums to 1 can go.

    Attributes
    ----------
    factor : int
    axes : tuple of int
        Its axes, one for each axis that the sums of the other factor have.
    picks : tuple of int or None
        Of its last axis, what takes the scale: of shares, those of some terms.
    """

    factor: int
    axes: tuple[int, ...]
    picks: tuple[int, ...] | None = None


class Push(NamedTuple):
    """A factor that sums to 1, and all places that its scale goes to together."""

    factor: int
    receivers: tuple[Receiver, ...]


class Mode(NamedTuple):
    """The factors of one letter, of which each value is a row problem.

    Attributes
    ----------
    columns : RowColumns
        The factors, and where their cells are.
    tables : tuple of Table
        All observed tensors that have the letter, with it as rows and these factors on the left.
    data : Data
        All of them as one matrix.
    pushes : tuple of Push
        For those of the factors that sum to 1, up to the unit: far ones first.
    constant : frozenset of int
        Factors that stay, and are the same for all values of the letter: they are background.
    """

    columns: RowColumns
    tables: tuple[Table, ...]
    data: Data
    pushes: tuple[Push, ...]
    constant: frozenset[int] = frozenset()

    def parts(self, widths: Mapping[int, int]) -> dict[int, slice]:
        """Which columns each factor has."""
        return {n: slice(at, at + widths[n]) for n, at in self.columns.first.items()}


class NewtonState(NamedTuple):
    """A point, how far the acceleration goes from it, and the iterations so far."""

    point: Any
    reach: float
    age: int


@dataclass(frozen=True)
class TensorNewton:
    """An algorithm of the loop: cycles of an acceleration, of EM and then of Newton steps.

    What is extrapolated later is an EM step with a Newton step for the factors of each letter.
    """

    acceleration: str | None

    def start(self, problem: TensorProblem, point: Any) -> NewtonState:
        """State to start from."""
        return NewtonState(point, 1.0 if self.acceleration == "squarem" else 0.0, 0)

    def point(self, state: NewtonState) -> Any:
        """Where a state is."""
        return state.point

    def evaluate(self, problem: TensorProblem, state: NewtonState) -> float:
        """The objective at a state."""
        return tensor_em.evaluate(problem, state.point)

    def step(self, problem: TensorProblem, state: NewtonState) -> tuple[NewtonState, Info]:
        """One cycle; the first ones are EM's."""
        algorithm: Any = tensor_em if state.age < _WARM_UP else Sweeps()
        method = accelerate(algorithm, self.acceleration)
        if self.acceleration is None:
            following, info = method.step(problem, state.point)
            return NewtonState(following, state.reach, state.age + 1), info
        cycle = AcceleratedState(state.point, state.reach)
        (following, reach), info = method.step(problem, cycle)
        return NewtonState(following, reach, state.age + 1), info


class Sweeps:
    """What is extrapolated: one EM step, and one Newton step for each letter."""

    def step(self, problem: TensorProblem, point: Any) -> tuple[Any, Info]:
        """Both of them."""
        return sweep_all(problem, point)

    def start(self, problem: TensorProblem, point: Any) -> Any:
        """The point itself."""
        return point

    point = staticmethod(tensor_em.point)
    evaluate = staticmethod(tensor_em.evaluate)
    project = staticmethod(tensor_em.project)


def sweep_all(problem: TensorProblem, point: Any) -> tuple[Any, Info]:
    """One EM step, for factors that have no rows as well, and one Newton step for each letter."""
    following, info = tensor_em.step(problem, point)
    for mode in problem.modes:
        following = following._make(_sweep(problem, mode, list(following)))
    return following, info


def _sweep(problem: TensorProblem, mode: Mode, arrays: list[NDArray]) -> list[NDArray]:
    """The arrays after one Newton step in each row of a mode."""
    tensors, columns = problem.model.tensors, mode.columns
    prices = _prices(problem, mode, arrays)
    own = {n: tensors[n].layout for n in columns.first}
    rows = {n: as_rows(layout, columns.letter, arrays[n]) for n, layout in own.items()}
    parts = mode.parts({n: values.shape[1] for n, values in rows.items()})
    moving = [n for n in own if n not in mode.constant]
    rates = [
        as_rows(own[n], columns.letter, np.broadcast_to(prices[n], own[n].shape)) for n in moving
    ]
    prior = Gamma(np.ones((1, 1)), _one_row(np.concatenate(rates, axis=1)))
    atoms = row_atoms(mode.tables, columns, arrays)
    known = np.zeros((2, atoms.shape[2]))
    for n in mode.constant:
        known += np.einsum("c,sci->si", rows[n][0], atoms[:, parts[n]])
    rest = row_problem(mode.tables, columns.n_columns, mode.data, prior, known)
    atoms = np.concatenate([atoms[:, parts[n]] for n in moving], axis=1)
    values = np.concatenate([rows[n] for n in moving], axis=1)
    found = sweep(
        mode.data.source,
        RowProblems(
            rest.model.likelihood,
            Maximum(1.0),
            prior,
            np.ascontiguousarray(atoms, dtype=problem.dtype),
            np.ones(len(values)),
            rest.model.background,
        ),
        np.array(values, dtype=problem.dtype, order="C"),
        ONE_STEP,
        rest.executor,
        gains=np.full(len(values), np.inf),
    ).activations
    before, at = list(arrays), 0
    for n in moving:
        width = rows[n].shape[1]
        arrays[n] = from_rows(own[n], columns.letter, found[:, at : at + width])
        at += width
    for push in mode.pushes:
        _normalise(problem, push, arrays, before)
    return arrays


def _one_row(rates: NDArray) -> NDArray:
    """One row if all are the same."""
    return rates[:1] if np.all(rates == rates[0]) else rates


def _normalise(
    problem: TensorProblem, push: Push, arrays: list[NDArray], before: Sequence[NDArray]
) -> None:
    """Divide a factor by its sums, in place, and multiply the receivers by them."""
    tensors, n = problem.model.tensors, push.factor
    sums = arrays[n].sum(axis=(0, 2), dtype=np.float64)
    alive = sums > _NOTHING
    whole = arrays[n] / np.where(alive, sums, 1)[:, None]
    arrays[n] = np.where(alive[:, None], whole, before[n]).astype(before[n].dtype)
    for receiver in push.receivers:
        m, layout = receiver.factor, tensors[receiver.factor].layout
        scale = _along(tensors[n].layout, layout, receiver, sums)
        scaled = arrays[m].reshape(layout.full_shape) * scale
        arrays[m] = scaled.reshape(layout.shape).astype(before[m].dtype)


def _prices(
    problem: TensorProblem, mode: Mode, arrays: Sequence[NDArray]
) -> dict[int, NDArray | float]:
    """What each entry of the mode's factors pays, as arrays of their layouts: its own rate, or
    that of what its scale goes into.
    """
    tensors = problem.model.tensors
    # What the price grows by, for each entry of a factor, when it is multiplied by a number.
    paid: dict[int, NDArray] = {}
    prices: dict[int, NDArray | float] = {}

    def of(n: int) -> NDArray:
        if n not in paid:
            paid[n] = arrays[n] * tensors[n].prior.rate
        return paid[n]

    for push in reversed(mode.pushes):
        layout = tensors[push.factor].layout
        price = np.zeros(layout.shape[1])
        for receiver in push.receivers:
            price += _across(layout, tensors[receiver.factor].layout, receiver, of(receiver.factor))
        prices[push.factor] = np.broadcast_to(price[:, None], layout.shape)
        paid[push.factor] = arrays[push.factor] * price[:, None]
    for n in mode.columns.first:
        if tensors[n].is_free and n not in mode.constant:
            prices[n] = tensors[n].prior.rate
    return prices


def _along(layout: Layout, other: Layout, receiver: Receiver, sums: NDArray) -> NDArray:
    """Sums of a factor as a multiplier of its receiver, that broadcasts to its full shape."""
    places = [other.order.index(axis) for axis in receiver.axes]
    cells = sums.reshape([layout.sizes[n] for n in layout.role.given])
    shape = [1] * len(other.order)
    for place in places:
        shape[place] = other.full_shape[place]
    scale = cells.transpose(np.argsort(places)).reshape(shape)
    if receiver.picks is None:
        return scale
    whole = np.ones((*shape[:-1], other.full_shape[-1]))
    whole[..., list(receiver.picks)] = scale
    return whole


def _across(layout: Layout, other: Layout, receiver: Receiver, values: NDArray) -> NDArray:
    """Sums of a receiver's values over all that takes the same scale: `_along` turned round."""
    full = values.reshape(other.full_shape)
    if receiver.picks is not None:
        full = full[..., list(receiver.picks)]
    places = [other.order.index(axis) for axis in receiver.axes]
    sums = full.sum(axis=tuple(n for n in range(full.ndim) if n not in places), dtype=np.float64)
    kept = sorted(places)
    return sums.transpose([kept.index(place) for place in places]).reshape(-1)
