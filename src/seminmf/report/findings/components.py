"""The components: how large they are, and what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..._views.shares import shares
from ..subject import Subject

LEVEL = 0.9
MOST_COMPONENTS = 60
_MOST_BARS = 10
_MOST_COLUMNS = 400


@dataclass(frozen=True)
class Bar:
    """What a component adds to one feature of the mean sample.

    Attributes
    ----------
    feature : str
    value : float
        In the unit of the data.
    interval : pair of float or None
        Where `value` lies with probability `LEVEL`.
    unit : float
        Values divided by it can be compared between features.
    """

    feature: str
    value: float
    interval: tuple[float, float] | None
    unit: float


@dataclass(frozen=True)
class Component:
    """One component.

    Attributes
    ----------
    index : int
        Its place in `components_`.
    share : float
        Its share of all amounts.
    r2_drop : float
        What R² falls by without it.
    cluster_size : int
        Samples of the fit that belong to it.
    mean_amount : float
        What it puts into a sample, in the mean; in the unit of the fit.
    positive : float
        Part of its positive entries in the sum of all |entries|; NaN if that is 0.
    returned : float
        Share of the bootstrap's draws in which it came back; NaN without one.
    bars : list of Bar
        Its strongest features, the strongest first.
    """

    index: int
    share: float
    r2_drop: float
    cluster_size: int
    mean_amount: float
    positive: float
    returned: float
    bars: list[Bar]


@dataclass(frozen=True)
class HeatMap:
    """Components × features: what they add to the mean sample.

    Attributes
    ----------
    components : list of int or of str
    features : list of str
    values : (n, m) array
        In the unit of the data.
    strengths : (n, m) array
        From −1 to 1: relative to the strongest of the row, in the unit of the fit.
    """

    components: Sequence[int | str]
    features: list[str]
    values: NDArray
    strengths: NDArray


@dataclass(frozen=True)
class Components:
    """The components in the order of their shares; the last of very many are not `shown`.

    `n_draws` is that of the bootstrap, 0 without one.
    """

    order: NDArray
    shown: list[Component]
    heat_map: HeatMap
    n_features: int
    with_intervals: bool
    n_draws: int
    scaled: bool

    @classmethod
    def of(cls, subject: Subject) -> Components:
        """Describe the components."""
        share = shares(subject.model)
        order = np.argsort(-share, kind="stable")
        means = np.asarray(subject.model.activations_, dtype=np.float64).mean(axis=0)
        sizes = np.bincount(subject.fitted_clusters(), minlength=len(share))
        positive = _positive_shares(subject.components)
        bars = _strongest_bars(subject, means)
        returned = np.full(len(share), np.nan)
        if subject.bootstrap is not None:
            returned = subject.bootstrap.n_returned / subject.bootstrap.n_draws
        drops, amounts = subject.model.r2_drop_, subject.model._amounts(means)
        shown = [
            Component(
                index=int(k),
                share=share[k],
                r2_drop=drops[k],
                cluster_size=int(sizes[k]),
                mean_amount=amounts[k],
                positive=positive[k],
                returned=float(returned[k]),
                bars=bars[k],
            )
            for k in order[:MOST_COMPONENTS]
        ]
        return cls(
            order=order,
            shown=shown,
            heat_map=_heat_map(subject, means, [component.index for component in shown]),
            n_features=len(subject.feature_names),
            with_intervals=subject.bayesian or subject.bootstrap is not None,
            n_draws=0 if subject.bootstrap is None else subject.bootstrap.n_draws,
            scaled=subject.scaled,
        )


def _positive_shares(components: NDArray) -> NDArray:
    totals = np.abs(components).sum(axis=1)
    positive = np.maximum(components, 0).sum(axis=1)
    return np.divide(positive, totals, out=np.full(len(totals), np.nan), where=totals > 0)


def _strongest_bars(subject: Subject, means: NDArray) -> list[list[Bar]]:
    """For each component its strongest features."""
    units = subject.units
    factors = means[:, None] * units
    values = subject.components * factors
    interval = subject.component_interval(LEVEL)
    ends = None if interval is None else [end * factors for end in interval]
    bars = []
    for k, component in enumerate(subject.components):
        strongest = np.argsort(-np.abs(component), kind="stable")[:_MOST_BARS]
        bars.append(
            [
                Bar(
                    subject.feature_names[i],
                    float(values[k, i]),
                    None if ends is None else (float(ends[0][k, i]), float(ends[1][k, i])),
                    float(units[i]),
                )
                for i in strongest
            ]
        )
    return bars


def _heat_map(subject: Subject, means: NDArray, components: list[int]) -> HeatMap:
    chosen = subject.components[components]
    largest = np.abs(chosen).max(axis=1, keepdims=True)
    strengths = chosen / np.where(largest > 0, largest, 1.0)
    # Of very many features those that stand out somewhere, in the order that they have.
    columns = np.sort(np.argsort(-np.abs(strengths).max(axis=0), kind="stable")[:_MOST_COLUMNS])
    values = chosen * means[components][:, None] * subject.units
    return HeatMap(
        components=components,
        features=[subject.feature_names[i] for i in columns],
        values=values[:, columns],
        strengths=strengths[:, columns],
    )
