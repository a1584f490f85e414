"""What a fitted tensor model says of cells: values, amounts, what is explained, sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from .._algorithms.tensor import Table
from .._algorithms.tensor_residuals import residuals
from .._data.tensors import dense_of
from .._kernels.em.estep import evaluate_cells
from .._model.language import Observation, axis_size
from .tensor_build import Blueprint
from .tensor_fitted import Fitted, Parts, signed_values
from .tensor_samples import Samples, sample_axes

# R² without a component is that of so many cells at the most.
_MOST_CELLS = 1 << 24


def tensors_of(fitted: Fitted, parts: Parts, flat: NDArray) -> dict[str, NDArray]:
    """The tensors that factors of samples stand for; `flat` (n_samples, n_cells) has these."""
    model, axes = fitted.model, sample_axes(fitted.model)
    shapes = {
        name: tuple(np.delete(parts.factors[name].shape[1:], axis)) for name, axis in axes.items()
    }
    widths = [int(np.prod(shape)) for shape in shapes.values()]
    if flat.ndim != 2 or flat.shape[1] != sum(widths):
        raise ValueError(f"X must have the shape (n_samples, {sum(widths)}); found {flat.shape}.")
    factors = dict(parts.factors)
    columns = np.split(flat, np.cumsum(widths)[:-1], axis=1)
    for (name, axis), own in zip(axes.items(), columns, strict=True):
        values = np.moveaxis(own.reshape(len(flat), *shapes[name]), 0, axis)
        both = np.stack([np.maximum(values, 0), np.maximum(-values, 0)])
        factors[name] = both[: len(parts.factors[name])]
    name, axis = next(iter(axes.items()))
    lags = axis_size(model.plan.factors[name][axis], model.sizes) - model.sizes[model.plan.sample]
    sizes = model.sizes | {model.plan.sample: len(flat) - lags}
    own_fit = fitted._replace(model=model.resized(sizes))
    parts = parts._replace(factors=factors)
    return {one.name: own_fit.expected(parts, one) for one in model.plan.observations}


def amounts_of(fitted: Fitted, parts: Parts) -> NDArray:
    """What each cell of the unit puts into each sample (n_samples, n_cells): sums of sizes."""
    model = fitted.model
    unit = model.network.units[0]
    axis = sample_axes(model).get(unit)
    if axis is None:
        raise ValueError(
            f"predict needs the letter of the samples in the factor that has the unit of X; found "
            f"'{unit}' without '{model.plan.sample}'."
        )
    rows = np.moveaxis(signed_values(parts.factors[unit]), axis, 0)
    flat = np.abs(rows.reshape(len(rows), -1))
    return flat * _sizes_of_cells(fitted, parts, unit, axis)


def _sizes_of_cells(fitted: Fitted, parts: Parts, unit: str, axis: int) -> NDArray:
    """Σ |x| of the tensor where one cell of the unit is 1 and all others are 0."""
    model = fitted.model
    one_sample = model.resized(model.sizes | {model.plan.sample: 1})
    shape = one_sample.layout(unit).sizes
    others = tuple(size for n, size in enumerate(shape) if n != axis)
    observation = model.plan.observations[0]
    first = {
        name: own.take([0], axis=sample_axes(model)[name] + 1)
        if name in sample_axes(model)
        else own
        for name, own in parts.factors.items()
    }
    sizes = []
    for cell in np.ndindex(*others):
        own = np.zeros((len(parts.factors[unit]), *shape))
        own[(0, *cell[:axis], slice(None), *cell[axis:])] = 1.0
        tensor = fitted._replace(model=one_sample).expected(
            parts._replace(factors=first | {unit: own}), observation
        )
        sizes.append(np.abs(tensor).sum())
    return np.array(sizes)


def explained(
    tables: Sequence[Table], point: Sequence[NDArray], most_cells: int | None = None
) -> float:
    """R² of the observed cells of all tensors, each in units of its mean square."""
    unexplained, n_observed = 0.0, 0.0
    for table in tables:
        counts, squares, errors = residuals(table, point, most_cells=most_cells)
        n_observed += counts[0]
        unexplained += counts[0] * errors[0] / (squares[0] or 1.0)
    return float(1 - unexplained / n_observed) if n_observed else float("nan")


def drops(
    model: Blueprint, tables: Sequence[Table], point: Sequence[NDArray]
) -> dict[str, NDArray]:
    """What R² falls by when a value of a latent letter is taken out, and the others stay.

    Of large data it is that of some samples.
    """
    whole = explained(tables, point, _MOST_CELLS)
    found = {}
    for letter in _without_lags(model):
        without = (
            _restricted_point(model, point, letter, value) for value in range(model.sizes[letter])
        )
        found[letter] = np.array([whole - explained(tables, own, _MOST_CELLS) for own in without])
    return found


def stability(model: Blueprint, points: Sequence[Sequence[NDArray]]) -> dict[str, NDArray]:
    """By latent letter: mean cosine of its values with their matches at the other points.

    Of the first point; NaN if it is the only one. A cosine is the product of those of all factors
    with this latent letter alone: for CP that of two terms as tensors.
    """
    found = {}
    for letter in _without_lags(model):
        own = _slices(model, points[0], letter)
        cosines = [_matched(own, _slices(model, point, letter)) for point in points[1:]]
        nothing = np.full(model.sizes[letter], np.nan)
        found[letter] = np.mean(cosines, axis=0) if cosines else nothing
    return found


def _matched(own: Sequence[NDArray], others: Sequence[NDArray]) -> NDArray:
    """Cosine of each value with its match, after the best matching."""
    cosines = np.prod([one @ other.T for one, other in zip(own, others, strict=True)], axis=0)
    rows, columns = linear_sum_assignment(-cosines)
    return cosines[rows, columns]


def _slices(model: Blueprint, point: Sequence[NDArray], letter: str) -> list[NDArray]:
    """What belongs to each value of a latent letter, of length 1, in each factor with it alone."""
    carriers = list(_carriers(model, letter))
    alone = [
        (name, axis)
        for name, axis in carriers
        if not any(str(one) in model.plan.latent for one in _others(model, name, axis))
    ]
    found = []
    for name, axis in alone or carriers:
        n = model.names.index(name)
        values = signed_values(model.layout(name).unpack(point[n])).astype(np.float64)
        rows = np.moveaxis(values, axis, 0).reshape(values.shape[axis], -1)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        found.append(rows / np.where(lengths > 0, lengths, 1.0))
    return found


def _others(model: Blueprint, name: str, axis: int) -> list:
    """The other axes of a factor."""
    return [one for n, one in enumerate(model.plan.factors[name]) if n != axis]


def _without_lags(model: Blueprint) -> list[str]:
    """Latent letters that are no lags."""
    lags = {axis.lag for axes in model.plan.factors.values() for axis in axes}
    return [letter for letter in model.plan.latent if letter not in lags]


def _restricted_point(
    model: Blueprint, point: Sequence[NDArray], letter: str, value: int
) -> list[NDArray]:
    """The arrays inside without one value of a latent letter."""
    arrays = list(point)
    for name, axis in _carriers(model, letter):
        n = model.names.index(name)
        parts = model.layouts[n].unpack(arrays[n]).copy()
        parts[(slice(None),) * (axis + 1) + (value,)] = 0
        arrays[n] = model.layouts[n].pack(parts)
    return arrays


def log_densities(fitted: Fitted, parts: Parts, observation: Observation, X: NDArray) -> NDArray:
    """Log-densities of the observed cells of a tensor, one after the other, in the unit of X."""
    x, levels = X.astype(np.float64), fitted.levels[observation.name]
    likelihood = fitted.wants[observation.name].kind(1.0, levels.dispersion)
    rates = fitted.rates(parts, observation) + fitted.noise_rates(observation)
    cells = evaluate_cells(likelihood, x, *rates)
    return likelihood.log_density(cells.log_likelihood, x, *rates)[~np.isnan(x)]


def sources_of(samples: Samples, parts: Parts, letter: str) -> dict[str, NDArray]:
    """E[Z₀ − Z₁ | x] of each value of a letter, in each cell."""
    fitted = samples.fitted
    found = {}
    for one in fitted.model.plan.observations:
        x, levels = dense_of(samples.arrays[one.name]).astype(np.float64), fitted.levels[one.name]
        likelihood = fitted.wants[one.name].kind(1.0, levels.unit)
        rates = fitted.rates(parts, one) + fitted.noise_rates(one)
        cells = evaluate_cells(likelihood, x, *rates)
        values = []
        for value in range(fitted.model.sizes[letter]):
            own = fitted.rates(_restricted(fitted.model, parts, letter, value), one)
            values.append(own[0] * cells.u0 - own[1] * cells.u1)
        found[one.name] = np.stack(values, axis=-1)
    return found


def _restricted(model: Blueprint, parts: Parts, letter: str, value: int) -> Parts:
    """The factors with one value of a latent letter only."""
    factors = dict(parts.factors)
    for name, axis in _carriers(model, letter):
        keep = np.arange(factors[name].shape[axis + 1]) == value
        shape = [-1 if n == axis + 1 else 1 for n in range(factors[name].ndim)]
        factors[name] = factors[name] * keep.reshape(shape)
    return parts._replace(factors=factors)


def _carriers(model: Blueprint, letter: str) -> Iterator[tuple[str, int]]:
    """Factors with a letter, and the axis that it is."""
    for name, axes in model.plan.factors.items():
        letters = [str(axis) for axis in axes]
        if letter in letters:
            yield name, letters.index(letter)
