"""The search for the noise of tensors: the noise is found anew from the residuals of the factors.

It begins with all being noise. A round is a cycle of SQUAREM on the factors, or for the best of
several starts a Newton step; every few rounds the variance of the noise is that of the residuals,
and the dispersion follows it. What is maximised is −½ Σ ln σ² over all observed cells, by which
starts can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import tensor_em, tensor_newton
from .acceleration import AcceleratedState, squarem
from .loop import Info, Stopping
from .tensor import Table, TensorProblem
from .tensor_residuals import Residuals, residuals

# Rounds between two looks at the residuals, and before a search may end.
_EVERY, _LEAST_ROUNDS = 5, 80
# The noise of each value of a letter is pooled with that of all by this share of its cells. In the
# first rounds it is that of all: what is not fitted yet would else be taken for noise, and stay so.
_POOLED, _POOLED_FIRST, _FIRST_ROUNDS = 0.02, 1e6, 60
# Variance of noise, against that of the data, that is as good as none.
_LEAST_VARIANCE = 1e-9
# At least this share of the cells is left to tell noise from what was fitted.
_LEAST_FREEDOM = 0.1


class NoiseState(NamedTuple):
    """Where a search is: factors, how far SQUAREM goes, variances of the tensors, rounds."""

    point: Any
    reach: float
    variances: Any
    age: int


class NoiseStopping(Stopping):
    """Ends a search when the noise stands still, after some rounds."""

    __slots__ = ()

    least_rounds: ClassVar[int] = _LEAST_ROUNDS

    def is_met(self, objectives: list[float]) -> bool:
        """Whether it does."""
        return len(objectives) > max(self.least_rounds, self.window) and abs(
            objectives[-1] - objectives[-1 - self.window]
        ) <= self.tol * abs(objectives[-1] - objectives[0] + 1.0)


class EndStopping(NoiseStopping):
    """The same for a search that goes on from where another one ended."""

    __slots__ = ()

    least_rounds: ClassVar[int] = 0


@dataclass(frozen=True)
class NoiseSearch:
    """An algorithm of the loop.

    Attributes
    ----------
    problem_at : callable
        The problem with these variances.
    rescale : callable
        The point at these variances, from that at others: units follow the noise.
    letters : tuple of str
        Of each tensor, the letter whose values have their own noise; "" for those that have none.
    share_fitted : float
        How many numbers are fitted for each observed cell.
    by_newton : bool
        Whether a round is a Newton step, for factors that have rows.
    """

    problem_at: Callable[[Any], TensorProblem]
    rescale: Callable[[Any, Any, Any], Any]
    letters: tuple[str, ...]
    share_fitted: float
    by_newton: bool = False

    def start(self, problem: Any, point: NoiseState) -> NoiseState:
        """The point itself."""
        return point

    def point(self, state: NoiseState) -> NoiseState:
        """The state itself."""
        return state

    def step(self, problem: Any, state: NoiseState) -> tuple[NoiseState, Info]:
        """One round."""
        own = self.problem_at(state.variances)
        reach = state.reach
        if self.by_newton:
            point, _ = tensor_newton.sweep_all(own, state.point)
        else:
            (point, reach), _ = squarem(tensor_em, own, AcceleratedState(state.point, reach))
        objective = self.evaluate(problem, state)
        variances = state.variances
        if state.age % _EVERY == _EVERY - 1:
            found = [
                self._variance(table, point, letter, before, state.age)
                for table, letter, before in zip(own.tables, self.letters, variances, strict=True)
            ]
            point = self.rescale(point, variances, found)
            variances = type(variances)(*found)
        return NoiseState(point, reach, variances, state.age + 1), Info(objective)

    def evaluate(self, problem: Any, state: NoiseState) -> float:
        """−½ mean ln σ² of the cells."""
        total = sum(float(np.log(one).mean()) for one in state.variances if one.size)
        return -0.5 * total

    def _variance(
        self, table: Table, point: Sequence[NDArray], letter: str, before: NDArray, age: int
    ) -> NDArray:
        if not letter:
            return before
        pooled = _POOLED_FIRST if age < _FIRST_ROUNDS else _POOLED
        return variance(residuals(table, point, letter, len(before)), self.share_fitted, pooled)


def variance(found: Residuals, share_fitted: float, pooled: float = _POOLED) -> NDArray:
    """Variance of the noise: squared residuals over what they have of freedom, pooled a little."""
    counts, squares, errors = found
    freedom = max(1 - share_fitted, _LEAST_FREEDOM)
    sizes = squares / np.maximum(counts, 1e-300)
    whole = squares.sum() / max(counts.sum(), 1e-300)
    sizes = np.where(counts > 0, np.maximum(sizes, _LEAST_VARIANCE * whole), whole)
    ratio = min(errors.sum() / max(freedom * squares.sum(), 1e-300), 1.0)
    left = (freedom + pooled) * counts
    found_now = (errors + pooled * counts * ratio * sizes) / np.maximum(left, 1e-300)
    found_now = np.where(counts > 0, found_now, ratio * sizes)
    return np.clip(found_now, _LEAST_VARIANCE * sizes, sizes)
