"""Arrays that Newton's method works in, by name: for samples in lanes, and for blocks of them.

They come from Python, because the compiler takes long over arrays that a kernel makes. A tuple is
handed to a function only where the function needs nearly all of it: each array costs a call some
time. What is written to is taken out of its tuple first, by a name of its own: where overloads are
inlined, numba takes a write to an attribute for dead code, and drops it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._model.likelihoods import Likelihood
from ..._model.penalties import Penalty
from ..simd.vectors import aligned

# Cells of a block of samples, and of a chunk of features, that stay in the cache; and numbers of
# the rows of a design.
_BLOCK = 20_000
CHUNK = 512
_DESIGN = 1_280
# Rows and columns of a product that are computed at a time.
_TILE = (16, 64)


class Rules(NamedTuple):
    """What the samples' problems have in common besides the atoms.

    Attributes
    ----------
    likelihood : Likelihood
    penalty : Penalty
    barrier : bool
        Whether the penalty has a barrier at 0.
    """

    likelihood: Likelihood
    penalty: Penalty
    barrier: bool


class LaneCells(NamedTuple):
    """The cells of the samples in lanes, (n_cells, width), and what their rates are made of.

    Attributes
    ----------
    x : array
    atoms : array of shape (2, I, K), or Gathered
    background : (2, n_cells, width) array
        What rates are without any component.
    weight : (width,) array
        The samples' weights.
    """

    x: NDArray
    atoms: Any
    background: NDArray
    weight: NDArray


class LanePrior(NamedTuple):
    """The prior of the samples in lanes.

    Attributes
    ----------
    shape, rate : (K, width) arrays
    mass : (width,) array
        What one unit of a sample counts against the prior.
    atom_totals : (K,) array
        Sums of the atoms.
    """

    shape: NDArray
    rate: NDArray
    mass: NDArray
    atom_totals: NDArray


class PriorTerms(NamedTuple):
    """Slopes and curvatures (K, width) of the penalty, where it was evaluated last."""

    slope: NDArray
    curvature: NDArray


class Chunk(NamedTuple):
    """Workspace for the cells of some features.

    Attributes
    ----------
    rates : (2, n, width) array
        Rates, then U.
    curvatures, terms : (n, width) arrays
        q, and x, then the log-likelihood.
    sums : (width,) array
    """

    rates: NDArray
    curvatures: NDArray
    terms: NDArray
    sums: NDArray


class Designs(NamedTuple):
    """Workspace for rows U₀ θ₀ − U₁ θ₁, the same with weights q, and a chunk's slopes."""

    rows: NDArray
    weighted: NDArray
    slope: NDArray


class Trial(NamedTuple):
    """Where the line search is: a point with its level, and what decides whether it is accepted.

    Attributes
    ----------
    values : (K, width) array
    level : (width,) array, float64
    features : (n_cells,) array, float64
        Minus the log-likelihood of each feature.
    step, decrease, noise : (width,) arrays
        Share of the move; the slope along it; and what counts as rounding.
    """

    values: NDArray
    level: NDArray
    features: NDArray
    step: NDArray
    decrease: NDArray
    noise: NDArray


class Columns(NamedTuple):
    """Where in a block the lanes put what the atoms need: 1 − U, and the curvature's products."""

    first: int
    u: NDArray
    curvature: NDArray


class LaneSamples(NamedTuple):
    """What lanes know of their samples, (width,) arrays.

    Attributes
    ----------
    weight : array
    unit, scale : arrays
        Their units, and what cells are multiplied by.
    mass : array
        What one unit counts against the prior.
    before : array
        The level before a step.
    done : boolean array
    """

    weight: NDArray
    unit: NDArray
    scale: NDArray
    mass: NDArray
    before: NDArray
    done: NDArray


class LaneWorkspace(NamedTuple):
    """For one group of samples, one in each lane.

    Attributes
    ----------
    x : (n_cells, width) array
    background : (2, n_cells, width) array
        Rates without any component.
    values, move, slope, lowest : (K, width) arrays
        Activations, the step's move, the slopes there, and how far down the move may go.
    shape, rate : (K, width) arrays
        The prior.
    hessian : (K, K, width) array
    descent : (3 K + 3, width) array
        For the quadratic problem of a step.
    samples, chunk, designs, trial, terms
        As their classes say.
    """

    x: NDArray
    background: NDArray
    values: NDArray
    move: NDArray
    slope: NDArray
    lowest: NDArray
    shape: NDArray
    rate: NDArray
    hessian: NDArray
    descent: NDArray
    samples: LaneSamples
    chunk: Chunk
    designs: Designs
    trial: Trial
    terms: PriorTerms

    @classmethod
    def of_size(cls, n_cells: int, n_components: int, dtype: np.dtype) -> LaneWorkspace:
        """For samples of at most `n_cells` cells, on cache lines."""
        width = lane_width(dtype)
        most = min(max(1, CHUNK // width), n_cells)
        depth = min(max(8, _DESIGN // (n_components * width)), most)

        def lines(*shape: int) -> NDArray:
            return aligned(math.prod(shape) * width, np.empty(0, dtype)).reshape(*shape, width)

        values, trial, move, slope, lowest, prior_slope, prior_curvature, shape, rate = lines(
            9, n_components
        )
        scale, weight, step, decrease, noise = lines(5)
        unit, mass, before, level = np.empty((4, width))
        return cls(
            x=lines(n_cells),
            background=lines(2, n_cells),
            values=values,
            move=move,
            slope=slope,
            lowest=lowest,
            shape=shape,
            rate=rate,
            hessian=lines(n_components, n_components),
            descent=lines(3 * n_components + 3),
            samples=LaneSamples(weight, unit, scale, mass, before, np.empty(width, dtype=bool)),
            chunk=Chunk(lines(2, most), lines(most), lines(most), lines()),
            designs=Designs(
                lines(n_components, depth), lines(n_components, depth), lines(n_components)
            ),
            trial=Trial(trial, level, np.empty(n_cells), step, decrease, noise),
            terms=PriorTerms(prior_slope, prior_curvature),
        )


class BlockWorkspace(NamedTuple):
    """For what the atoms need from a block of samples; empty, if nothing is collected.

    Attributes
    ----------
    values : (K, block) array
    weights : (block,) array
        It has the size of a block in any case.
    weighted, pairs : (1, K, block) and (1, K (K + 1) / 2, block) arrays
        Activations with weights, and their products.
    u, curvature : (1, 2 I, block) and (1, 3 I, block) arrays
        1 − U, and the three products of the curvature.
    tile : (rows, columns) array
        Of a product.
    """

    values: NDArray
    weights: NDArray
    weighted: NDArray
    pairs: NDArray
    u: NDArray
    curvature: NDArray
    tile: NDArray

    @classmethod
    def of_size(
        cls, n_features: int, n_components: int, n_samples: int, dtype: np.dtype, collect: bool
    ) -> BlockWorkspace:
        """For blocks of at most `n_samples` samples."""
        width = lane_width(dtype)
        block = min(max(1, _BLOCK // (n_features * width)), -(-n_samples // width)) * width
        columns = block if collect else 0
        n_pairs = n_components * (n_components + 1) // 2
        weighted, pairs, u, curvature = (
            np.zeros((1, n_rows, columns), dtype=dtype)
            for n_rows in (n_components, n_pairs, 2 * n_features, 3 * n_features)
        )
        values = np.zeros((n_components, columns), dtype=dtype)
        weights, tile = np.zeros(block, dtype=dtype), np.empty(_TILE, dtype=dtype)
        return cls(values, weights, weighted, pairs, u, curvature, tile)


def lane_width(dtype: Any) -> int:
    """Samples in the lanes of two vectors."""
    return 2 * 64 // np.dtype(dtype).itemsize
