"""How sure the posterior is: intervals of a component, or of the activations of a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._estimators import validation as check
from .._estimators.posteriors import Intervals
from .._estimators.tensor_tables import as_table, factor_tables, texts_of
from .._resampling.bootstrap import Bootstrap, check_bootstrap
from .._views.pictures import BLACK, BLUE, GREY, ORANGE
from ..bayesian import BayesianSkellamSNMF
from ..tensor import BayesianSkellamSNTF
from ._frame import axes_for, check_axes
from ._model import check_flag, check_index, check_model, largest_features
from ._names import PLAIN, feature_label, feature_names_of, name_rows, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def intervals(
    model: Any,
    ax: Axes | None = None,
    *,
    bootstrap: Bootstrap | None = None,
    component: int = 0,
    sample: int | None = None,
    level: float = 0.9,
    sort: bool = False,
    feature_names: Any = None,
    max_features: int = 40,
    factor: str | None = None,
) -> Axes:
    """Draw means of the posterior, or estimates, with their intervals.

    Parameters
    ----------
    model : BayesianSkellamSNMF, BayesianSkellamSNTF, SkellamSNMF or EuclideanSNMF
        Fitted. The last two have no intervals of their own.
    ax : matplotlib Axes or None, default=None
        Where to draw; None makes a new figure.
    bootstrap : Bootstrap or None, default=None
        What `seminmf.bootstrap` found for the model: its intervals are drawn, in the place of the
        model's own.
    component : int, default=0
        Component whose entries are drawn.
    sample : int or None, default=None
        Sample of the training data whose activations are drawn, in the place of a component.
    level : float, default=0.9
        Probability of each interval.
    sort : bool, default=False
        Whether the largest values come first. False keeps the order of the model.
    feature_names : list of str or None, default=None
        None takes the names that the model was fitted with, or numbers from 0.
    max_features : int, default=40
        How many features to draw, those with the largest |means|.
    factor : str or None, default=None
        Of a tensor model, the factor of which `component` is a latent cell; `bootstrap`, `sample`
        and `feature_names` are for matrices.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    Intervals that hold 0 are grey. Those of a mean field are too narrow as statements about true
    values; see the page on intervals in the documentation.

    Examples
    --------
    >>> from seminmf import BayesianSkellamSNMF, plot, sample_skellam_snmf
    >>> X, _, _ = sample_skellam_snmf(50, 5, 2, random_state=0)
    >>> model = BayesianSkellamSNMF(2, likelihood="integer", random_state=0).fit(X)
    >>> plot.intervals(model, component=1).get_title()
    'component 1: means and 90% intervals'
    """
    check_model(model, tensors=isinstance(model, BayesianSkellamSNTF))
    check_axes(ax)
    level = check.check_share("level", level)
    if isinstance(model, BayesianSkellamSNTF):
        rows = _factor(model, factor, component, level, max_features)
        return _draw(ax, rows.sorted() if sort else rows, level)
    if factor is not None:
        raise ValueError(f"factor must be None for a {type(model).__name__}; found {factor!r}.")
    ends = _intervals_of(model, bootstrap, level)
    check_flag("sort", sort)
    check.check_count("max_features", max_features)
    names = feature_names_of(model, feature_names)
    if sample is None:
        k = check_index("component", component, len(model.components_))
        rows = _entries(model, k, ends, names, max_features)
    else:
        rows = _activations(model, check_index("sample", sample, len(model.activations_)), ends)
    return _draw(ax, rows.sorted() if sort else rows, level)


def _intervals_of(model: Any, bootstrap: Bootstrap | None, level: float) -> Intervals:
    """Those of the bootstrap, or the model's own."""
    if bootstrap is not None:
        check_bootstrap(bootstrap, model)
        return bootstrap.at(level)
    if not isinstance(model, BayesianSkellamSNMF):
        raise ValueError(
            "model must be a BayesianSkellamSNMF, or bootstrap be given: point estimates have no "
            f"intervals; found a {type(model).__name__} alone."
        )
    return model.interval(level)


class _Rows(NamedTuple):
    """Means with the ends of their intervals, and what is written beside them."""

    means: NDArray
    lower: NDArray
    upper: NDArray
    names: list[str]
    label: str
    title: str
    meaning: str

    def sorted(self) -> _Rows:
        order = np.argsort(-self.means, kind="stable")
        names = [self.names[i] for i in order]
        return self._replace(
            means=self.means[order], lower=self.lower[order], upper=self.upper[order], names=names
        )


def _entries(model: Any, k: int, ends: Intervals, names: list[str], most: int) -> _Rows:
    """The entries of a component, those with the largest means."""
    means = model.components_[k]
    shown = largest_features(means[None], most)
    lower, upper = (end[k, shown] for end in ends.components)
    label = feature_label(len(shown), len(means))
    names = [names[i] for i in shown]
    meaning = "value of the component"
    return _Rows(means[shown], lower, upper, names, label, f"component {k}", meaning)


def _factor(model: Any, factor: str | None, column: int, level: float, most: int) -> _Rows:
    """A latent cell of a factor of a tensor model, its entries with the largest means."""
    tables = factor_tables(model)
    if factor not in tables:
        accepted = ", ".join(map(repr, tables))
        raise ValueError(f"factor must be one of {accepted}; found {factor!r}.")
    check.check_count("max_features", most)
    table = tables[factor]
    k = check_index("component", column, table.values.shape[1])
    means = table.values[:, k]
    shown = largest_features(means[None], most)
    lower, upper = (
        as_table(model, factor, np.asarray(end))[shown, k] for end in model.interval(level)[factor]
    )
    names = texts_of(table.rows)
    label = tidy(table.rows.name)
    if len(shown) < len(means):
        label += f" (the {len(shown)} largest of {len(means)})"
    title = f"{factor}, {table.column_title} {table.columns[k]}" if table.column_title else factor
    own = [tidy(names[i]) for i in shown]
    return _Rows(means[shown], lower, upper, own, label, tidy(title), "value of the factor")


def _activations(model: Any, j: int, ends: Intervals) -> _Rows:
    """The activations of a sample."""
    lower, upper = (end[j] for end in ends.activations)
    means = model.activations_[j]
    names = [str(k) for k in range(len(means))]
    return _Rows(means, lower, upper, names, "component", f"sample {j}", "activation")


def _draw(ax: Axes | None, rows: _Rows, level: float) -> Axes:
    """Dots and bars: orange above 0, blue below, grey where the sign is not sure."""
    n_rows = len(rows.means)
    ax = axes_for(ax, height=1.4 + 0.2 * n_rows)
    colours = np.where(rows.lower > 0, ORANGE, np.where(rows.upper < 0, BLUE, GREY)).tolist()
    places = np.arange(n_rows)
    ax.axvline(0, color=BLACK, linewidth=0.8)
    ax.hlines(places, rows.lower, rows.upper, colors=colours, linewidth=2)
    ax.scatter(rows.means, places, c=colours, s=14, zorder=3)
    ax.set_ylim(n_rows - 0.4, -0.6)
    name_rows(ax, rows.names)
    ax.grid(color=GREY, alpha=0.25, linewidth=0.6)
    ax.set_xlabel(rows.meaning)
    ax.set_ylabel(rows.label, **PLAIN)
    title = f"{rows.title}: means and {100 * level:.4g}% intervals"
    ax.set_title(title, fontsize="medium", **PLAIN)
    return ax
