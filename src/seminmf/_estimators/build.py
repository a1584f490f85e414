"""From an estimator's parameters to a problem: the unit of computations, the model, the threads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._algorithms.dispersion import (
    PRELIMINARY_PRIORS,
    count_observed,
    preliminary_dispersion,
    preliminary_rank,
)
from .._algorithms.problem import Problem
from .._data.source import Data
from .._model.likelihoods import Likelihood
from .._model.model import Model
from .._numerics.compiled import announced
from .runs import Runner

# Computations run in a unit of at least this, in the unit of the priors.
_LEAST_UNIT = {"float32": 1e-3, "float64": 1e-12}
# The inverse of a unit is a factor of the same type.
_LEAST_FLOAT32 = 2.0**-120


def choose_unit(likelihood: Any, data: Data, dispersion: float | None = None) -> float:
    """The unit that computations run in: no overflow, whatever the unit of X.

    Where priors speak in units of `dispersion`, X may be nothing against them; they are then what
    must not overflow.
    """
    largest, name = data.summary.largest, data.source.dtype.name
    if largest == 0:
        return likelihood.unit_for(largest)
    least = _LEAST_UNIT[name] * dispersion if dispersion else 0.0
    if name == "float32":
        least = max(least, _LEAST_FLOAT32)
    return likelihood.unit_for(max(largest, least))


@contextmanager
def open_problem(model: Model, data: Data, n_jobs: int | None) -> Iterator[Problem]:
    """The problem that algorithms see, with its threads, for a while."""
    with announced(), data.source.executor(n_jobs) as executor:
        yield Problem(model, data, executor)


def find_dispersion(
    likelihood: Likelihood, data: Data, n_components: int, n_jobs: int | None, runner: Runner
) -> tuple[float, bool]:
    """The dispersion of the data, and whether Ctrl-C ended the search for it."""
    model = Model.of(likelihood, PRELIMINARY_PRIORS, np.zeros(1, dtype=bool))
    with open_problem(model, data, n_jobs) as problem:
        n_parameters = data.total_weight + data.shape[1]
        rank = preliminary_rank(count_observed(problem), n_parameters, n_components)
        model = Model.of(likelihood, PRELIMINARY_PRIORS, np.zeros(rank, dtype=bool))
        return preliminary_dispersion(Problem(model, data, problem.executor), runner.run)
