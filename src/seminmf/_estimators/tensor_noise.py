"""Noise and dispersion of tensors, found before a fit, and the factors to start it from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

from .._algorithms.loop import Result
from .._algorithms.tensor_noise import EndStopping, NoiseSearch, NoiseState, NoiseStopping, variance
from .._algorithms.tensor_residuals import residuals
from .._algorithms.tensor_start import start
from .runs import Runner
from .tensor_draft import Draft
from .tensor_fitted import point_of
from .tensor_levels import SAME, Levels, Wanted, unit_of, without_noise

# What a dispersion that is to be found adds to the variance of a typical cell, against its noise:
# at the end, and during the search, which is the faster the more it is.
_SHARE, _SEARCH_SHARE = 0.2, 1.0
_STOPPING = NoiseStopping(max_iter=500, tol=1e-4, window=10)
_END_STOPPING = EndStopping(max_iter=200, tol=1e-4, window=10)


class Found(NamedTuple):
    """What a search found.

    Attributes
    ----------
    levels : dict of Levels
    point : NamedTuple of arrays
        Factors to start from, in units of these levels.
    interrupted : bool
    starts : list
        Where the searches from all starts ended, the best one first.
    """

    levels: dict[str, Levels]
    point: Any
    interrupted: bool
    starts: list[Any]


def find_noise(draft: Draft, n_init: int, runner: Runner, random: RandomState) -> Found:
    """Search from several starts, and keep the one with the least noise."""
    draft = draft._replace(variational=False)
    sizes = _sizes(draft)
    n_observed = sum(own.data.summary.n_observed for own in draft.observed.values())
    first = _levels(draft, sizes, sizes)
    factors = draft.problem(first).model.tensors
    search = NoiseSearch(
        problem_at=lambda variances: draft.problem(_levels(draft, sizes, variances)),
        rescale=partial(_rescaled, draft, sizes),
        letters=tuple(want.letter or "" for want in draft.wants.values()),
        share_fitted=draft.model.n_fitted(factors) / n_observed,
    )
    results: list[Result] = []
    while len(results) < n_init and not (results and results[-1].interrupted):
        begin = partial(_begin, draft, first, sizes, random)
        results.append(runner.run(search, None, begin, "noise", _STOPPING))
    interrupted = results[-1].interrupted
    results.sort(key=lambda result: result.objectives[-1], reverse=True)
    best = results[0].state
    if draft.turned and not interrupted:
        search = replace(search, by_newton=True)
        end = runner.run(search, None, lambda: best, "noise", _END_STOPPING)
        best, interrupted = end.state, end.interrupted
    levels = _levels(draft, sizes, best.variances, _SHARE)
    point = _in_units(draft, best.point, _levels(draft, sizes, best.variances), levels)
    return Found(levels, point, interrupted, [result.state.point for result in results])


def _begin(
    draft: Draft, levels: Mapping[str, Levels], sizes: Any, random: RandomState
) -> NoiseState:
    problem = draft.problem(levels)
    return NoiseState(point_of(start(problem, draft.starts(levels), random)), 1.0, sizes, 0)


def _sizes(draft: Draft) -> Any:
    """Mean square of each value of the letters that have noise; nothing for other tensors."""
    nothing = {
        name: without_noise(
            want._replace(dispersion=want.dispersion or 1.0), own.data, priors_speak=True
        )
        for (name, want), own in zip(draft.wants.items(), draft.observed.values(), strict=True)
    }
    problem = draft.problem(nothing)
    zeros = [np.zeros(factor.layout.shape) for factor in problem.model.tensors]
    found = []
    for table, want in zip(problem.tables, draft.wants.values(), strict=True):
        n_levels = _n_levels(draft, want)
        own = residuals(table, zeros, want.letter or "", n_levels)
        found.append(variance(own, 0.0) if want.letter else np.empty(0))
    return point_of(found)


def _n_levels(draft: Draft, want: Wanted) -> int:
    return 1 if want.letter in (None, SAME) else draft.model.sizes[want.letter]


def _levels(
    draft: Draft,
    sizes: Sequence[NDArray],
    variances: Sequence[NDArray],
    share: float | None = None,
) -> dict[str, Levels]:
    """The levels of all tensors at these variances of their noise."""
    share = _SEARCH_SHARE if share is None else share
    found = {}
    for (name, want), size, own in zip(draft.wants.items(), sizes, variances, strict=True):
        if not own.size:
            data = draft.observed[name].data
            found[name] = without_noise(want, data, priors_speak=draft.priors_speak)
            continue
        dispersion = want.dispersion
        if dispersion is None:
            dispersion = share * float(np.min(own / np.sqrt(size)))
        found[name] = Levels(dispersion, dispersion, want.letter or SAME, np.sqrt(own))
    return found


def _rescaled(draft: Draft, sizes: Any, point: Any, before: Any, after: Any) -> Any:
    """The point at other variances of the noise."""
    return _in_units(draft, point, *(_levels(draft, sizes, own) for own in (before, after)))


def _in_units(
    draft: Draft, point: Any, old: Mapping[str, Levels], new: Mapping[str, Levels]
) -> Any:
    """The point in units of other levels."""
    model = draft.model
    arrays = [
        array
        if name not in model.plan.factors
        else array * array.dtype.type(unit_of(model, name, old) / unit_of(model, name, new))
        for name, array in zip(model.names, point, strict=True)
    ]
    return point._make(arrays)
