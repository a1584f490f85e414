"""The E-step: the one pass that EM and variational Bayes share.

Given activations and atoms (or their geometric means), it returns the sums that the paper's
Algorithms 1 and 2 call U^act and U^atoms, and the data term of the objective.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._data.executor import LocalExecutor
from ..._data.source import BlockSource, row_ranges
from ..._model.cells import SMALLEST_RATE
from ..._model.likelihoods import Likelihood, cell
from ..._model.model import NO_BACKGROUND, Background
from ..._numerics.arguments import check_arrays
from ..._numerics.compilation import flat
from ..._numerics.compiled import kernel, part, part_optimised
from ..simd.products import dots, multiply, outer
from ..simd.vectors import aligned

# Cells of a block: with their rates they stay in the cache between the products and the loop.
_BLOCK = 1 << 14
# Features are padded to whole vectors as long as that makes at most this factor.
_MOST_PADDING = 1.2


class Expectations(NamedTuple):
    """What the E-step returns.

    Attributes
    ----------
    activations : (J, K) array
        U^act: Σ_si U_sij θ_sik, with U = 1 in gaps.
    atoms : (2, K, I) array, float64
        U^atoms: Σ_j U_sij λ_kj, with the samples' weights.
    data_term : float
        Log-likelihood of the observed cells, with the samples' weights.
    """

    activations: NDArray
    atoms: NDArray
    data_term: float


@part_optimised
def replace_cells(likelihood, x, rates0, rates1):
    """In every cell, replace x by its log-likelihood and the rates by U₀ and U₁."""
    for n in range(x.size):
        rates0[n], rates1[n], x[n] = cell(likelihood, x[n], rates0[n], rates1[n])


@kernel
def evaluate_rates(likelihood, x, rates0, rates1):
    """The same, for others than kernels."""
    replace_cells(likelihood, x, rates0, rates1)


@kernel
def _estep_features(
    likelihood,
    X,
    inverse_unit,
    background,
    activations,
    weights,
    atoms,
    block,
    workspace,
    u_act,
    u_atoms,
):
    """E-step of consecutive samples with features in the lanes; `atoms` is (2, K, width).

    `background` (2, n, width) has a row for each sample, or one for all.
    """
    n_samples, n_features = X.shape
    n_components, width = atoms.shape[1:]
    own_background = background.shape[1] > 1
    x = workspace[: block * width].reshape((block, width))
    rates = workspace[block * width : 3 * block * width].reshape((2, block, width))
    rest = workspace[3 * block * width :]
    product = rest[: n_components * width].reshape((n_components, width))
    weighted = rest[n_components * width :].reshape((1, block, n_components))
    data_term = 0.0
    for start in range(0, n_samples, block):
        n_rows = min(block, n_samples - start)
        size = n_rows * width
        for j in range(n_rows):
            for i in range(n_features):
                x[j, i] = X[start + j, i] * inverse_unit
            for i in range(n_features, width):
                x[j, i] = np.nan
            for k in range(n_components):
                weighted[0, j, k] = activations[start + j, k] * weights[start + j]
        for s in range(2):
            first = start if own_background else 0
            multiply(activations[start : start + n_rows], atoms[s], background[s, first:], rates[s])
        replace_cells(likelihood, flat(x)[:size], flat(rates[0])[:size], flat(rates[1])[:size])
        dots(rates, atoms, n_rows, u_act[start : start + n_rows])
        for s in range(2):
            outer(weighted, rates[s : s + 1], n_rows, product)
            _add(u_atoms[s], product)
        for j in range(n_rows):
            data_term += weights[start + j] * _sum(x[j])
    return data_term


@kernel
def _estep_samples(
    likelihood,
    X,
    inverse_unit,
    background,
    activations,
    weights,
    atoms,
    block,
    workspace,
    u_act,
    u_atoms,
):
    """The same with samples in the lanes, for few features; `atoms` is (2 I, K).

    `background` is (2, n, I).
    """
    n_samples, n_features = X.shape
    n_components = atoms.shape[1]
    size = n_features * block
    x = workspace[:size].reshape((n_features, block))
    rates = workspace[size : 3 * size].reshape((2 * n_features, block))
    both = rates.reshape((1, 2 * n_features, block))
    size_of_factors = n_components * block
    rest = workspace[3 * size :]
    factors = rest[:size_of_factors].reshape((n_components, block))
    expected = rest[size_of_factors : 2 * size_of_factors].reshape((n_components, block))
    weighted = rest[2 * size_of_factors : 3 * size_of_factors].reshape((1, n_components, block))
    rest = rest[3 * size_of_factors :]
    product = rest[: atoms.size].reshape((2 * n_features, n_components))
    start_rates = rest[atoms.size :].reshape((2 * n_features, block))
    one = type(inverse_unit)(1.0)
    data_term = 0.0
    for start in range(0, n_samples, block):
        n_rows = min(block, n_samples - start)
        _transpose(X[start : start + n_rows], inverse_unit, x)
        _transpose(activations[start : start + n_rows], one, factors)
        for j in range(n_rows, block):
            for i in range(n_features):
                x[i, j] = np.nan
            for k in range(n_components):
                factors[k, j] = 0.0
        for k in range(n_components):
            for j in range(n_rows):
                weighted[0, k, j] = factors[k, j] * weights[start + j]
            for j in range(n_rows, block):
                weighted[0, k, j] = 0.0
        if start == 0 or background.shape[1] > 1:
            _take_background(background, start, start_rates)
        multiply(atoms, factors, start_rates, rates)
        replace_cells(likelihood, flat(x), flat(rates)[:size], flat(rates)[size:])
        dots(both, weighted, 2 * n_features, product)
        _add(u_atoms, product)
        outer(atoms.reshape((1, 2 * n_features, n_components)), both, 2 * n_features, expected)
        for j in range(n_rows):
            for k in range(n_components):
                u_act[start + j, k] = expected[k, j]
        for i in range(n_features):
            data_term += _weighted_sum(x[i], weights[start : start + n_rows])
    return data_term


@part
def _take_background(background, first, start_rates):
    """The rates that samples from `first` on have without any component, (2 I, block)."""
    _, n_samples, n_features = background.shape
    for s in range(2):
        for j in range(start_rates.shape[1]):
            row = background[s, min(first + j, n_samples - 1)]
            for i in range(n_features):
                start_rates[s * n_features + i, j] = row[i]


@part_optimised
def _transpose(rows, scale, columns):
    """columns[i, j] = scale rows[j, i], in small squares, which share their cache lines."""
    n_rows, n_columns = rows.shape
    for first in range(0, n_rows, 8):
        last = min(first + 8, n_rows)
        if last - first == 8:
            for i in range(n_columns):
                for j in range(8):
                    columns[i, first + j] = rows[first + j, i] * scale
        else:
            for i in range(n_columns):
                for j in range(first, last):
                    columns[i, j] = rows[j, i] * scale


@part
def _add(sums, terms):
    """sums += terms, in the sums' precision."""
    flat_sums, flat_terms = flat(sums), flat(terms)
    for n in range(flat_sums.size):
        flat_sums[n] += flat_terms[n]


@part
def _sum(values):
    total = 0.0
    for n in range(values.size):
        total += values[n]
    return total


@part
def _weighted_sum(values, weights):
    total = 0.0
    for n in range(weights.size):
        total += values[n] * weights[n]
    return total


class _Layout(NamedTuple):
    """How a block lies in memory: which kernel, its atoms, its sizes, and that of its workspace.

    Features run through the lanes of a vector, or, where they are too few to fill whole vectors,
    samples do.
    """

    kernel: Callable
    atoms: NDArray
    width: int
    block: int
    workspace: int

    def background(self, background: Background, n_features: int) -> NDArray:
        """The rates (2, n, width) that there are without any component."""
        padded = np.ones((2, background.n_rows, self.width), dtype=self.atoms.dtype)
        padded[:, :, :n_features] = start_rates(background, self.atoms.dtype)
        return padded


def _choose_layout(atoms: NDArray, n_samples: int) -> _Layout:
    n_components, n_features = atoms.shape[1:]
    lanes = 64 // atoms.dtype.itemsize
    width = -(-n_features // lanes) * lanes
    if width > _MOST_PADDING * n_features:
        block = max(1, _BLOCK // (4 * lanes * n_features)) * lanes
        block = min(block, -(-n_samples // lanes) * lanes)
        by_feature = atoms.transpose(0, 2, 1).reshape(2 * n_features, n_components)
        workspace = (5 * n_features + 3 * n_components) * block + by_feature.size
        return _Layout(
            _estep_samples, np.ascontiguousarray(by_feature), n_features, block, workspace
        )
    padded = aligned(2 * n_components * width, atoms).reshape(2, n_components, width)
    padded[:, :, :n_features] = atoms
    padded[:, :, n_features:] = 0
    block = min(max(4, _BLOCK // width), n_samples)
    workspace = (3 * block + n_components) * width + block * n_components
    return _Layout(_estep_features, padded, width, block, workspace)


def checked_factors(
    source: BlockSource,
    activations: NDArray,
    atoms: NDArray,
    sample_weight: NDArray,
    background: Background,
) -> tuple[NDArray, NDArray]:
    """Both factors, C-contiguous, if they, the weights and the background go with the data."""
    activations, atoms = np.ascontiguousarray(activations), np.ascontiguousarray(atoms)
    check_arrays(
        {"J": source.shape[0], "K": atoms.shape[1], "I": source.shape[1]},
        activations=("JK", activations),
        atoms=("2KI", atoms),
        sample_weight=("J", sample_weight),
        noise=("?JI", background.noise),
        intercept=("?I", background.intercept),
    )
    return activations, atoms


def start_rates(background: Background, dtype: np.dtype) -> NDArray:
    """Rates (2, n, I) without any component, above 0; axes may be of length 1."""
    return (background.rates + SMALLEST_RATE[dtype.name]).astype(dtype)


def estep(
    source: BlockSource,
    likelihood: Likelihood,
    activations: NDArray,
    atoms: NDArray,
    sample_weight: NDArray,
    executor: LocalExecutor,
    background: Background = NO_BACKGROUND,
) -> Expectations:
    """Run the E-step over all samples of a source."""
    dtype = source.dtype
    n_components, n_features = atoms.shape[1:]
    activations, atoms = checked_factors(source, activations, atoms, sample_weight, background)
    layout = _choose_layout(atoms.astype(dtype, copy=False), source.shape[0])
    shared = layout.background(background, n_features) if background.n_rows == 1 else None
    inverse_unit = dtype.type(1 / likelihood.unit)
    u_activations = np.empty_like(activations)
    # One task after the other uses the same workspace: memory that was just given back to the
    # system, and is asked for again, takes longer than a tenth of the computation.
    workspaces: list[NDArray] = []

    def task(rows: tuple[int, int]) -> tuple[NDArray, float]:
        workspace = workspaces.pop() if workspaces else aligned(layout.workspace, layout.atoms)
        u_atoms = np.zeros(layout.atoms.shape)
        data_term = 0.0
        for block in source.blocks(*rows):
            span = block.samples
            data_term += layout.kernel(
                likelihood,
                block.X,
                inverse_unit,
                shared
                if shared is not None
                else layout.background(background.of_samples(span), n_features),
                activations[span],
                sample_weight[span],
                layout.atoms,
                layout.block,
                workspace,
                u_activations[span],
                u_atoms,
            )
        workspaces.append(workspace)
        return u_atoms, data_term

    u_atoms: NDArray = np.zeros(layout.atoms.shape)
    data_term = 0.0
    for partial_atoms, partial_term in executor.map(task, row_ranges(source, n_components)):
        u_atoms += partial_atoms
        data_term += partial_term
    if layout.kernel is _estep_samples:
        u_atoms = u_atoms.reshape(2, n_features, n_components).transpose(0, 2, 1)
    return Expectations(u_activations, u_atoms[:, :, :n_features], data_term)


class Cells(NamedTuple):
    """U₀, U₁ and the log-likelihood of every cell, in float64; 1, 1 and 0 in gaps."""

    u0: NDArray
    u1: NDArray
    log_likelihood: NDArray


def evaluate_cells(likelihood: Likelihood, X: NDArray, rates0: NDArray, rates1: NDArray) -> Cells:
    """Evaluate cells one by one; X and the rates, of any shape, are in the same unit."""
    x = np.array(X, dtype=np.float64, order="C")
    units = likelihood.cell_units(x, rates0, rates1)
    x /= units
    u0, u1 = (
        np.ascontiguousarray(np.broadcast_to(rates / units, x.shape) + SMALLEST_RATE["float64"])
        for rates in (rates0, rates1)
    )
    evaluate_rates(likelihood, x.reshape(-1), u0.reshape(-1), u1.reshape(-1))
    return Cells(u0, u1, likelihood.in_unit_of_cells(x, units))
