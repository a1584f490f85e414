"""Draws from the posterior, in an order of components that all share, and what follows from them.

A draw of a model with noise has components whose absolute values sum to 1, so that an activation is
an amount. With the components of a draw given, samples do not depend on each other: activations of
any samples, those of the fit or others, are drawn in the same way, from random numbers that a
sample's own values decide. So they are the same for a sample wherever it stands.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from .._data.executor import per_sample
from .._data.source import Block, row_ranges
from .._kernels.gibbs import counts, rows
from .._kernels.gibbs.rows import Drawn
from .._model.model import split_signed
from .gibbs import Kept, Sampling
from .gibbs_counts import KeptCounts
from .noise_growth import relative_variances
from .problem import Problem

# Draws that a sample goes through before those that count, and scans in each.
_FIRST, _SCANS = 30, 2


class Draws(NamedTuple):
    """Draws of what all samples share, in units of the dispersion; S of each.

    Attributes
    ----------
    atoms : (S, 2, K, I) array
    intercept, noise : (S, I) arrays
        `noise` has standard deviations; it is 0 for integers.
    shape, rate : (S, K) arrays
        Of the activations' priors.
    growing : float
        Share of the noise that grows with the signal (`noise_growth`).
    typical : (I,) array
        The signal at which noise is as large as `noise` says.
    """

    atoms: NDArray
    intercept: NDArray
    noise: NDArray
    shape: NDArray
    rate: NDArray
    growing: float
    typical: NDArray

    @property
    def components(self) -> NDArray:
        """Those of all draws, (S, K, I)."""
        return self.atoms[:, 0] - self.atoms[:, 1]

    def noise_of(self, number: int, features: NDArray, signal: NDArray) -> NDArray:
        """Standard deviations of the noise of some cells in a draw, by what is put into them."""
        relative = relative_variances(self.growing, signal / self.typical[features])
        return self.noise[number, features] * np.sqrt(relative)

    def conditions(self) -> rows.Draws:
        """As the kernel for real numbers has them."""
        components = np.ascontiguousarray(self.components, dtype=np.float64)
        variances = np.ascontiguousarray(self.noise**2, dtype=np.float64)
        return rows.Draws(
            components,
            np.ascontiguousarray(self.intercept, dtype=np.float64),
            np.ascontiguousarray(self.shape, dtype=np.float64),
            np.ascontiguousarray(self.rate, dtype=np.float64),
            (components / variances[:, None]) @ components.transpose(0, 2, 1),
            variances,
            self.growing,
            np.ascontiguousarray(self.typical, dtype=np.float64),
        )


def from_chain(kept: Kept, problem: Sampling, unit: float) -> Draws:
    """The draws of a chain, normalised and matched.

    `unit` is that of the chain, in units of the dispersion.
    """
    frozen = problem.model.frozen
    lengths = np.abs(kept.components).sum(axis=2)
    sizes = np.where(frozen | ~(lengths > 0), 1.0, lengths)
    components = kept.components / sizes[:, :, None]
    rate = kept.rate / sizes / unit
    order = _matching(components, frozen)
    turned = np.arange(len(order))[:, None], order
    noise = np.sqrt(kept.variance)
    if problem.known.size > 0:  # it was not drawn
        noise = np.tile(problem.scale, (len(order), 1))
    atoms = np.moveaxis(split_signed(components[turned]), 0, 1)
    growing, typical = 0.0, np.ones(noise.shape[1])
    if problem.growth is not None:
        growing, typical = problem.growth.share, problem.growth.typical * unit
    return Draws(
        atoms,
        kept.intercept * unit,
        noise * unit,
        kept.shape[turned],
        rate[turned],
        growing,
        typical,
    )


def from_counts(kept: KeptCounts, frozen: NDArray) -> Draws:
    """The draws of a chain for integers, matched."""
    order = _matching(kept.atoms[:, 0] - kept.atoms[:, 1], frozen)
    numbers = np.arange(len(order))[:, None]
    nothing = np.zeros((len(order), kept.atoms.shape[3]))
    atoms = np.moveaxis(kept.atoms, 1, 2)[numbers, order]
    return Draws(
        np.ascontiguousarray(np.moveaxis(atoms, 2, 1)),
        nothing,
        nothing.copy(),
        kept.shape[numbers, order],
        kept.rate[numbers, order],
        0.0,
        nothing[0],
    )


def _matching(components: NDArray, frozen: NDArray) -> NDArray:
    """Which component of each draw (S, K) stands for which, by cosines with the mean of all."""
    n_draws, n_components = components.shape[:2]
    order = np.tile(np.arange(n_components), (n_draws, 1))
    free = np.flatnonzero(~frozen)
    lengths = np.linalg.norm(components, axis=2, keepdims=True)
    directions = components / np.where(lengths > 0, lengths, 1)
    for _ in range(2):
        mean = directions[np.arange(n_draws)[:, None], order].mean(axis=0)
        for number in range(n_draws):
            cosines = mean[free] @ directions[number][free].T
            order[number, free] = free[linear_sum_assignment(-cosines)[1]]
    return order


@per_sample(rows=1)
def means_of_samples(problem: Problem, draws: Draws, told: bool) -> tuple[tuple, tuple]:
    """Mean activations of each sample, in the unit of X."""
    means, _, _ = drawn_activations(problem, draws, told)
    return (means.astype(problem.dtype),), ()


def drawn_activations(
    problem: Problem, draws: Draws, told: bool, keep: bool = False
) -> tuple[NDArray, NDArray, NDArray]:
    """Means and standard deviations of all activations, and all draws (S, J, K) of them, or none.

    All are in the unit of X. `told` says whether the noise of cells is known, and not that of the
    draws.
    """
    unit, source = problem.model.likelihood.unit, problem.data.source
    n_samples, n_components = source.shape[0], draws.atoms.shape[2]
    n_kept = len(draws.atoms) if keep else 0
    means, squares = np.empty((2, n_samples, n_components))
    kept = np.empty((n_kept, n_samples, n_components), dtype=problem.dtype)
    most = np.finfo(problem.dtype).max / max(2 * unit, 1.0)
    draw = _Counts(draws) if problem.model.likelihood.integers else _Cells(draws, told)

    def task(own: tuple[int, int]) -> None:
        for block in source.blocks(*own):
            size = (len(block.X), n_components)
            part = Drawn(np.empty(size), np.empty(size), np.empty((n_kept, *size)))
            draw(problem, block, part)
            means[block.samples], squares[block.samples] = part.means, part.squares
            kept[:, block.samples] = np.minimum(part.kept, most) * unit

    list(problem.executor.map(task, row_ranges(source, 4 * n_components)))
    deviations = np.sqrt(np.maximum(squares - means**2, 1e-12 * squares))
    return np.minimum(means, most) * unit, np.minimum(deviations, most) * unit, kept


class _Cells:
    """Draws activations of real numbers."""

    def __init__(self, draws: Draws, told: bool) -> None:
        self._draws, self._told = draws.conditions(), told
        self._start = self._draws.shape.mean(axis=0) / self._draws.rate.mean(axis=0)
        if told:
            variances = np.zeros_like(self._draws.variances)
            self._draws = self._draws._replace(variances=variances, growing=0.0)

    def __call__(self, problem: Problem, block: Block, out: Drawn) -> None:
        known = np.empty((0, 0))
        if self._told:
            own = problem.model.background.of_samples(block.samples)
            shape = (own.n_rows, block.X.shape[1])
            known = np.ascontiguousarray(np.broadcast_to(2 * own.noise, shape))
        scale = 1 / problem.model.likelihood.unit
        rows.draw_rows_given(block.X, scale, known, self._draws, _FIRST, _SCANS, self._start, out)


class _Counts:
    """Draws activations of integers."""

    def __init__(self, draws: Draws) -> None:
        self._atoms = np.ascontiguousarray(draws.atoms, dtype=np.float64)
        self._shape, self._rate = draws.shape, draws.rate
        self._start = draws.shape.mean(axis=0) / draws.rate.mean(axis=0)

    def __call__(self, problem: Problem, block: Block, out: Drawn) -> None:
        counts.draw_count_rows_given(
            block.X,
            rows.seeds_of(block.X),
            self._atoms,
            self._shape,
            self._rate,
            _FIRST,
            _SCANS,
            self._start,
            out,
        )
