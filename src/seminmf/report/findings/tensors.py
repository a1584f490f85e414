"""What a report shows of a tensor model, as numbers and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._estimators.tensor_labels import label_of
from ..._estimators.tensor_tables import FactorTable, factor_tables, texts_of
from ..._model.language import ONLY, Observation
from ..._views.concerns import Concern, about_tensors
from ..._views.misfit import explained, root_mean_square
from ..subject import tidy
from .components import Bar, HeatMap
from .convergence import Convergence
from .fit import changed_settings, in_words

_MOST_CELLS = 60
_MOST_COLUMNS = 400
_MOST_LINES, _LEAST_POINTS = 7, 8
_MOST_BARS, _MOST_FILLED, _MOST_WORST = 30, 10, 5
# Settings that have a place of their own, or change nothing in the result.
_ELSEWHERE = ("model", "n_components", "likelihood", "random_state", "n_jobs", "verbose")


@dataclass(frozen=True)
class TensorSubject:
    """A tensor model, and the cells of the data that a report is about.

    Attributes
    ----------
    model : SkellamSNTF or BayesianSkellamSNTF
    cells : dict of pairs of arrays
        The tensors that were given, NaN where not observed, and what the model makes of them.
    title, source : str or None
    """

    model: Any
    cells: dict[str, tuple[NDArray, NDArray]]
    title: str | None
    source: str | None

    @property
    def bayesian(self) -> bool:
        """Whether there are posteriors."""
        return hasattr(self.model, "lower_bounds_")

    def observation(self, name: str) -> Observation:
        """The tensor of this name, as the model was written."""
        observations = self.model._fitted.model.plan.observations
        return next(one for one in observations if one.name == name)

    def axis(self, letter: str, size: int) -> tuple[str, list[str]]:
        """What a letter is called, and its values."""
        labels, sample = self.model._fitted.labels, self.model._fitted.model.plan.sample
        fitted = self.model._fitted.model.sizes.get(letter)
        if letter == sample and size != fitted:  # other samples than those of the fit
            labels = {name: own for name, own in labels.items() if name != letter}
        label = label_of(letter, size, labels)
        return tidy(label.name), [tidy(text) for text in texts_of(label)]


@dataclass(frozen=True)
class TensorFit:
    """The model, its sizes and its settings.

    Attributes
    ----------
    estimator, version, seed : str
    models : dict of str
        By tensor, as they were written.
    letters : list of str
        Each letter with what it is and how long.
    likelihood : str
    dispersion : dict of float
        By tensor.
    r2 : float
    settings : dict of str
    """

    estimator: str
    version: str
    seed: str
    models: dict[str, str]
    letters: list[str]
    likelihood: str
    dispersion: dict[str, float]
    r2: float
    settings: dict[str, str]


@dataclass(frozen=True)
class FactorView:
    """A factor, to be drawn.

    Attributes
    ----------
    name, about : str
    title, column_title : str
        What the axis of the data is called, and what the latent one.
    heat_map : HeatMap
        A row for each latent cell.
    places : (n,) array or None
        Where the columns are, for a chart of lines; None if they have no order.
    n_cells : int
        How many latent cells there are, of which the first are shown.
    n_averaged : int
        How many neighbours a column is the mean of.
    """

    name: str
    about: str
    title: str
    column_title: str
    heat_map: HeatMap
    places: NDArray | None
    n_cells: int
    n_averaged: int


@dataclass(frozen=True)
class Drop:
    """A value of a latent letter: what R² falls by without it, and where factors are largest."""

    value: str
    r2_drop: float
    peaks: list[str]


@dataclass(frozen=True)
class Drops:
    """All values of a latent letter, and the factors in which they have peaks."""

    letter: str
    factors: list[str]
    rows: list[Drop]


@dataclass(frozen=True)
class NoiseView:
    """The noise of a tensor for each value of a letter: all bars, or the largest."""

    tensor: str
    letter: str
    bars: list[Bar]
    n_levels: int


@dataclass(frozen=True)
class Worst:
    """A value of a letter of the data: how it is fitted."""

    letter: str
    value: str
    r_squared: float
    rmse: float
    n_gaps: int


@dataclass(frozen=True)
class TensorCells:
    """A tensor of the data: its gaps, and what is explained of it.

    Attributes
    ----------
    name : str
    shape : str
    n_cells, n_gaps : int
    r_squared, rmse : float
    worst : list of Worst
    filled : list of (str, float)
        The first gaps, with what the model puts there.
    """

    name: str
    shape: str
    n_cells: int
    n_gaps: int
    r_squared: float
    rmse: float
    worst: list[Worst]
    filled: list[tuple[str, float]]


@dataclass(frozen=True)
class TensorFindings:
    """All that a page says of a tensor model."""

    title: str
    source: str | None
    fit: TensorFit
    concerns: list[Concern]
    convergence: Convergence
    factors: list[FactorView]
    drops: list[Drops]
    noise: list[NoiseView]
    cells: list[TensorCells]

    @classmethod
    def of(cls, subject: TensorSubject) -> TensorFindings:
        """Find out all about a tensor model."""
        tables = factor_tables(subject.model)
        model = subject.model._parameter("model")
        written = model if isinstance(model, str) else "; ".join(model.values())
        return cls(
            title=subject.title or tidy(f"{type(subject.model).__name__} of {written}"),
            source=subject.source,
            fit=_fit(subject),
            concerns=about_tensors(subject.model),
            convergence=Convergence.of(subject),
            factors=[_factor(subject, table) for table in tables.values()],
            drops=_drops(subject, tables),
            noise=_noise(subject),
            cells=[_cells(subject, name) for name in subject.cells],
        )


def by_tensor(model: Any, value: Any) -> dict[str, Any]:
    """What is one value, or a dict by tensors, as a dict."""
    plan = model._fitted.model.plan
    several = isinstance(value, Mapping)
    return {one.name: value[one.name] if several else value for one in plan.observations}


def tensor_title(name: str) -> str:
    """The name of a tensor; the only one has none."""
    return "" if name == ONLY else tidy(name)


def _fit(subject: TensorSubject) -> TensorFit:
    from ... import __version__

    model = subject.model
    plan, sizes = model._fitted.model.plan, model._fitted.model.sizes
    named = {x: subject.axis(x, sizes[x])[0] for x in (*plan.observed, *plan.latent)}
    letters = [
        f"{x}{'' if name == x else f', {name}'}: {sizes[x]}"
        + (" samples" if x == plan.sample else " latent" if x in plan.latent else "")
        for x, name in named.items()
    ]
    wants = model._fitted.wants
    kinds = dict.fromkeys(want.kind.words for want in wants.values())
    return TensorFit(
        estimator=type(model).__name__,
        version=__version__,
        seed=in_words(model.random_state),
        models={x: tidy(y) for x, y in by_tensor(model, model._parameter("model")).items()},
        letters=letters,
        likelihood="; ".join(kinds),
        dispersion={x: float(y) for x, y in by_tensor(model, model.dispersion_).items()},
        r2=float(model.r2_),
        settings=changed_settings(model, {"model": model.model}, _ELSEWHERE),
    )


def _factor(subject: TensorSubject, table: FactorTable) -> FactorView:
    values = table.values.T[:_MOST_CELLS]
    texts = [tidy(text) for text in texts_of(table.rows)]
    n_averaged = -(-values.shape[1] // _MOST_COLUMNS)
    if n_averaged > 1:
        edges = np.arange(0, values.shape[1], n_averaged)
        widths = np.diff(np.append(edges, values.shape[1]))
        values = np.add.reduceat(values, edges, axis=1) / widths
        texts = [f"{texts[a]} to {texts[a + w - 1]}" for a, w in zip(edges, widths, strict=True)]
    largest = np.abs(values).max(axis=1, keepdims=True)
    n_cells = table.values.shape[1]
    drawn = table.is_ordered and n_cells <= _MOST_LINES and len(table.values) >= _LEAST_POINTS
    places = np.asarray(table.rows.values) if drawn and n_averaged == 1 else None
    if places is not None and places.dtype.kind == "M":
        places = None  # the heat map has the dates
    return FactorView(
        name=tidy(table.name),
        about=_about_factor(subject, table),
        title=tidy(table.rows.name),
        column_title=tidy(table.column_title) or "all",
        heat_map=HeatMap(
            components=[tidy(name) for name in table.columns[:_MOST_CELLS]],
            features=texts,
            values=values,
            strengths=values / np.where(largest > 0, largest, 1.0),
        ),
        places=None if places is None else places.astype(np.float64),
        n_cells=n_cells,
        n_averaged=n_averaged,
    )


def _about_factor(subject: TensorSubject, table: FactorTable) -> str:
    """What a factor is: its scale, its sign, and what of it was known."""
    model = subject.model._fitted.model
    role, plan = model.network.roles[table.name], model.plan
    axes = plan.factors[table.name]
    words = ["signed" if table.signed else "at least 0"]
    if role.is_free:
        words.append("in the unit of the data" if table.is_unit else "free")
    else:
        own = ", ".join(str(axes[n]) for n in role.new)
        given = ", ".join(str(axes[n]) for n in role.given)
        sizes = "sizes sum to 1" if table.signed else "sums to 1"
        words.append(f"{sizes} over {own}" + (f" for each {given}" if given else ""))
    frozen = subject.model._fitted.factors[model.names.index(table.name)].frozen
    if frozen.all():
        words.append("known")
    elif frozen.any():
        words.append(f"{frozen.mean():.0%} of its entries known")
    return ", ".join(words)


def _drops(subject: TensorSubject, tables: Mapping[str, FactorTable]) -> list[Drops]:
    """What R² falls by, by latent letter; with the largest entry of each factor of that letter."""
    model = subject.model
    plan = model._fitted.model.plan
    found = []
    for letter, drops in model.r2_drop_.items():
        name, values = subject.axis(letter, len(drops))
        own = [
            factor
            for factor, axes in plan.factors.items()
            if [str(axis) for axis in axes if str(axis) in plan.latent] == [letter]
            and plan.sample not in [axis.letter for axis in axes]
            and len(axes) == 2
        ]
        rows = [
            Drop(value, float(drop), [_peak(tables[factor], n) for factor in own])
            for n, (value, drop) in enumerate(zip(values, drops, strict=True))
        ]
        order = np.argsort([-row.r2_drop for row in rows], kind="stable")
        title = letter if name == letter else f"{letter}, {name}"
        found.append(Drops(title, [tidy(factor) for factor in own], [rows[n] for n in order]))
    return found


def _peak(table: FactorTable, column: int) -> str:
    """Where a factor is largest."""
    values = table.values[:, column]
    if not values.any():
        return "all 0"
    place = int(np.argmax(np.abs(values)))
    sign = "−" if values[place] < 0 else "+" if table.signed else ""
    return f"{sign}{tidy(texts_of(table.rows)[place])}"


def _noise(subject: TensorSubject) -> list[NoiseView]:
    found = []
    for name, levels in subject.model._fitted.levels.items():
        noise = np.asarray(levels.noise, dtype=np.float64)
        if not noise.size:
            continue
        title, values = "all cells", ["all cells"]
        if len(noise) > 1:
            title, values = subject.axis(levels.letter, len(noise))
        largest = np.argsort(-noise, kind="stable")[:_MOST_BARS]
        bars = [Bar(values[n], float(noise[n]), None, 1.0) for n in largest]
        found.append(NoiseView(tensor_title(name), title, bars, len(noise)))
    return found


def _cells(subject: TensorSubject, name: str) -> TensorCells:
    x, fitted = (array.astype(np.float64) for array in subject.cells[name])
    letters = subject.observation(name).output
    axes = [subject.axis(letter, size) for letter, size in zip(letters, x.shape, strict=True)]
    residuals, gaps = x - fitted, np.isnan(x)
    filled = [
        (", ".join(values[n] for (_, values), n in zip(axes, place, strict=True)), fitted[*place])
        for place in np.argwhere(gaps)[:_MOST_FILLED]
    ]
    sizes = " × ".join(f"{size} {title}" for size, (title, _) in zip(x.shape, axes, strict=True))
    return TensorCells(
        name=tensor_title(name),
        shape=sizes,
        n_cells=x.size,
        n_gaps=int(gaps.sum()),
        r_squared=float(explained(residuals, x)),
        rmse=float(root_mean_square(residuals)),
        worst=_worst(x, residuals, axes),
        filled=[(place, float(value)) for place, value in filled],
    )


def _worst(x: NDArray, residuals: NDArray, axes: list[tuple[str, list[str]]]) -> list[Worst]:
    """Of each axis the values with the largest residuals."""
    found = []
    for n, (title, values) in enumerate(axes):
        rows, data = (np.moveaxis(array, n, 0).reshape(x.shape[n], -1) for array in (residuals, x))
        rmse, r2 = root_mean_square(rows, axis=1), explained(rows, data, axis=1)
        for j in np.argsort(-np.nan_to_num(rmse), kind="stable")[:_MOST_WORST]:
            n_gaps = int(np.isnan(data[j]).sum())
            found.append(Worst(title, values[j], float(r2[j]), float(rmse[j]), n_gaps))
    return found
