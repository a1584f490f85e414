"""Start values of tensor models: random factors, of the size of the data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._model.priors import normalise
from .tensor import Table, TensorProblem

# EM cannot leave a zero: a sample starts with at least this share of the mean.
_LEAST_SHARE = 1e-3


def start(
    problem: TensorProblem, given: Mapping[int, NDArray], random: RandomState
) -> list[NDArray]:
    """Arrays to start from; where values are given that are not NaN, these."""
    arrays = []
    for n, factor in enumerate(problem.model.tensors):
        values = random.uniform(0.5, 1.5, size=factor.layout.shape)
        if not factor.is_free:
            values = random.uniform(size=factor.layout.shape)
        elif factor.layout.sample is not None:
            values *= _sample_shares(problem, len(values))[:, None]
        if n in given:
            values = np.where(np.isnan(given[n]), values, given[n])
        if not factor.is_free:
            values = normalise(values, factor.prior.floor)
        arrays.append(factor.keep_frozen(values, factor.known))
    return _of_size(problem, arrays, given)


def _of_size(
    problem: TensorProblem, arrays: list[NDArray], given: Mapping[int, NDArray]
) -> list[NDArray]:
    """The arrays, with free factors such that all rates sum to Σ|x|."""
    open_ones = [
        n
        for n, factor in enumerate(problem.model.tensors)
        if factor.is_free and not factor.is_frozen and n not in given
    ]
    total, mass = problem.total(arrays), sum(_mass(table) for table in problem.tables)
    if open_ones and total > 0:
        scale = (mass / total if mass > 0 else 1 / total) ** (1 / len(open_ones))
        for n in open_ones:
            factor = problem.model.tensors[n]
            arrays[n] = factor.keep_frozen(scale * arrays[n], arrays[n])
    return [array.astype(problem.dtype) for array in arrays]


def _mass(table: Table) -> float:
    """Σ|x| in units of computations, as if there were no gaps."""
    data, unit = table.problem.data, table.problem.model.likelihood.unit
    mass = float(data.weights @ (data.summary.row_mass / unit))
    seen = float(data.weights @ data.summary.row_count)
    return mass * data.weights.sum() * data.shape[1] / max(seen, 1.0)


def _sample_shares(problem: TensorProblem, n_samples: int) -> NDArray:
    """Σ|x| of each sample, relative to the mean of all."""
    shares = np.zeros(n_samples)
    for table in problem.tables:
        summary, n_cells = table.problem.data.summary, table.split.shape[0]
        if n_cells == n_samples:
            mass = summary.row_mass.reshape(n_cells, -1).sum(axis=1)
            count = summary.row_count.reshape(n_cells, -1).sum(axis=1)
            shares += mass / np.maximum(count, 1) / max(summary.mean_size, 1e-300)
    mean = shares.mean()
    return np.maximum(shares / mean, _LEAST_SHARE) if mean > 0 else np.ones(n_samples)
