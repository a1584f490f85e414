"""What is said of single cells, given the factors: densities, shares of components, fills."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.executor import per_sample
from .._data.source import BlockSource, all_blocks
from .._kernels.em.estep import Cells, evaluate_cells
from .problem import Problem


class Levels(NamedTuple):
    """What is added to activations · components, and how far cells may then be from it.

    Attributes
    ----------
    intercept, reach : (I,) arrays
    """

    intercept: NDArray
    reach: NDArray

    def values(self, products: NDArray) -> NDArray:
        """Values of cells whose activations · components are given."""
        return self.intercept + np.clip(products, -self.reach, self.reach)

    def of_features(self, features: NDArray) -> Levels:
        """Those of some features."""
        return Levels(self.intercept[features], self.reach[features])


class Evaluated(NamedTuple):
    """Some cells in the unit of X, their samples' activations, their rates, and U and level.

    `samples` are the numbers of their samples, and broadcast to x.
    """

    samples: NDArray
    x: NDArray
    activations: NDArray
    rates: Any
    cells: Cells


def _evaluated(
    problem: Problem, activations: NDArray, atoms: NDArray, *, dense: bool = False
) -> Iterator[Evaluated]:
    """Cells in blocks of samples.

    Those of a sparse matrix with gaps come as rows of stored cells, unless `dense`.
    """
    source, model = problem.data.source, problem.model
    likelihood = model.likelihood.in_unit_of_data()
    activations, atoms = activations.astype(np.float64), atoms.astype(np.float64)
    unit = model.likelihood.unit
    if source.stores_cells and not dense:
        for samples, features, x in source.stored():
            own = activations[samples]
            rates = np.einsum("nk,skn->sn", own, atoms[:, :, features])
            background = np.broadcast_to(model.background.rates, (2, 1, source.shape[1]))
            rates += unit * background[:, 0, features]
            yield Evaluated(samples, x, own, rates, evaluate_cells(likelihood, x, *rates))
        return
    for block in all_blocks(source):
        samples = np.arange(block.samples.start, block.samples.stop)[:, None]
        own = activations[block.samples]
        rates = own @ atoms + unit * model.background.of_samples(block.samples).rates
        cells = evaluate_cells(likelihood, block.X, *rates)
        yield Evaluated(samples, block.X, own, rates, cells)


@per_sample(sums=2)
def score_samples(
    problem: Problem, activations: NDArray, weights: NDArray, atoms: NDArray, dispersion: float
) -> tuple[tuple, tuple]:
    """Log-density of the observed cells, and their number, each cell as its sample's weight."""
    likelihood = problem.model.likelihood.in_unit_of_data()._replace(dispersion=dispersion)
    total, n_observed = 0.0, 0.0
    for samples, x, _, rates, cells in _evaluated(problem, activations, atoms):
        observed = ~np.isnan(x)
        terms = likelihood.log_density(cells.log_likelihood, x, *rates)[observed]
        own = np.broadcast_to(weights[samples], x.shape)[observed]
        total += float(np.sum(own * terms))
        n_observed += float(own.sum())
    return (), (total, n_observed)


@per_sample(rows=1)
def source_samples(problem: Problem, activations: NDArray, atoms: NDArray) -> tuple[tuple, tuple]:
    """E[Z_0k − Z_1k | x] = λ_k (θ_0k U_0 − θ_1k U_1): the diffnomial's mean."""
    blocks = []
    for _, x, own, _, cells in _evaluated(problem, activations, atoms, dense=True):
        positive = np.einsum("ji,ki->jik", cells.u0, atoms[0])
        negative = np.einsum("ji,ki->jik", cells.u1, atoms[1])
        blocks.append((own[:, None, :] * (positive - negative)).astype(x.dtype, copy=False))
    return (np.concatenate(blocks),), ()


@per_sample(rows=1)
def fill_samples(
    problem: Problem, activations: NDArray, components: NDArray, levels: Levels
) -> tuple[tuple, tuple]:
    """X with its gaps filled."""
    return (fill(problem.data.source, activations, components, levels),), ()


def fill(source: BlockSource, activations: NDArray, components: NDArray, levels: Levels) -> NDArray:
    """X with its gaps filled by activations · components + intercept."""
    filled = np.empty(source.shape, dtype=source.dtype)
    for block in all_blocks(source):
        fitted = levels.values(activations[block.samples] @ components)
        filled[block.samples] = np.where(np.isnan(block.X), fitted, block.X)
    return filled
