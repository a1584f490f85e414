"""The clusters: how large and how clear they are, or how they agree with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._data.opening import check_array
from .._views.matching import Matching, is_known, match
from .._views.pictures import BLUE, GREY, SKY
from ._frame import AMOUNTS, axes_for, check_axes, colour_bar, heat_map, inches
from ._model import amounts_of, check_model
from ._names import CHARACTER, LINE, name_columns, name_rows, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def clusters(model: Any, ax: Axes | None = None, X: Any = None, *, labels: Any = None) -> Axes:
    """Draw the clusters, or compare them with labels.

    A sample's cluster is the component that puts the largest amount into it, as in `predict`.

    Parameters
    ----------
    model : SkellamSNMF, BayesianSkellamSNMF or EuclideanSNMF
        Fitted.
    ax : matplotlib Axes or None, default=None
        Where to draw; None makes a new figure.
    X : array-like of shape (n_samples, n_features) or None, default=None
        Samples to look at. None is the training data.
    labels : array-like of shape (n_samples,) or None, default=None
        Known labels of the samples, of any kind. None and NaN are no label.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    Without labels, there is a bar for each cluster. Its dark part are the samples that are clear:
    their largest amount is at least twice the next.

    With labels, there is a row for each label and a column for each cluster that has samples. The
    numbers count samples; the colour is their share of the label. Each label is matched with one
    cluster so that as many samples as possible are where they belong (the Hungarian method). The
    title says how many that are. They are on the diagonal, the largest label first.

    Examples
    --------
    >>> from seminmf import SkellamSNMF, plot
    >>> from seminmf.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> model = SkellamSNMF(2, tol=1e-3, random_state=0).fit(X)
    >>> plot.clusters(model, labels=y).get_title()
    '...% of the samples are in matching clusters'
    """
    check_model(model)
    check_axes(ax)
    if labels is not None:
        data = model.activations_ if X is None else check_array(model, X, fitted=True)
        labels = _check_labels(labels, len(data))
    amounts = amounts_of(model, X)
    if labels is None:
        return _draw_sizes(ax, amounts)
    known = np.array([is_known(label) for label in labels], dtype=bool)
    if not known.any():
        raise ValueError("labels must name at least one class; found None or NaN only.")
    # Objects of different types have no order; their names have.
    names = labels[known].astype(str) if labels.dtype == object else labels[known]
    return _draw_table(ax, match(names, np.argmax(amounts, axis=1)[known]))


def _draw_sizes(ax: Axes | None, amounts: NDArray) -> Axes:
    n_samples, n_clusters = amounts.shape
    found = np.argmax(amounts, axis=1)
    clear = _are_clear(amounts)
    n_clear, n_mixed = (
        np.bincount(found[chosen], minlength=n_clusters) for chosen in (clear, ~clear)
    )
    ax = axes_for(ax, height=1.6 + 0.3 * n_clusters)
    places = np.arange(n_clusters)
    ax.barh(places, n_clear, color=BLUE, label="clear: twice the next amount or more")
    ax.barh(places, n_mixed, left=n_clear, color=SKY, label="mixed")
    for place, size in zip(places, n_clear + n_mixed, strict=True):
        ax.annotate(
            f"{size} ({size / n_samples:.0%})",
            (size, place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize="small",
        )
    ax.margins(x=0.2)  # room for the numbers
    ax.set_ylim(n_clusters - 0.4, -0.6)
    name_rows(ax, [str(k) for k in places])
    ax.set(xlabel="samples", ylabel="cluster")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, frameon=False, fontsize="small")
    return ax


def _are_clear(amounts: NDArray) -> NDArray:
    """Whether the largest amount of a sample is at least twice the next."""
    ordered = np.sort(amounts, axis=1)
    second = ordered[:, -2] if amounts.shape[1] > 1 else 0.0
    return (ordered[:, -1] > 0) & (ordered[:, -1] >= 2 * second)


def _check_labels(labels: Any, n_samples: int) -> NDArray:
    array = np.asarray(labels)
    if array.shape != (n_samples,):
        raise ValueError(
            f"labels must have the shape ({n_samples},), one for each sample; found {array.shape}."
        )
    return array


def _draw_table(ax: Axes | None, table: Matching) -> Axes:
    n_labels, n_clusters = table.counts.shape
    ax = axes_for(ax, width=max(4.0, 2.8 + 0.6 * n_clusters), height=1.6 + 0.45 * n_labels)
    shares = table.counts / table.counts.sum(axis=1, keepdims=True)
    image = heat_map(ax, shares, cmap=AMOUNTS, vmin=0, vmax=1)
    colour_bar(ax, image, "share of the label")
    _write_numbers(ax, table.counts, shares)
    name_rows(ax, [tidy(name) for name in table.classes])
    name_columns(ax, [str(k) for k in table.clusters])
    ax.set(xlabel="cluster", ylabel="label")
    title = f"{table.accuracy:.0%} of the samples are in matching clusters"
    ax.set_title(title, fontsize="medium")
    return ax


def _write_numbers(ax: Axes, counts: NDArray, shares: NDArray) -> None:
    """The counts in their cells, if these have room for them."""
    width, height = inches(ax)
    n_labels, n_clusters = counts.shape
    needed = CHARACTER * (len(str(counts.max())) + 1)
    if width / n_clusters < needed or height / n_labels < LINE:
        return
    for (i, k), count in np.ndenumerate(counts):
        colour = GREY if count == 0 else "white" if shares[i, k] > 0.6 else "black"
        ax.text(k, i, str(count), ha="center", va="center", color=colour, fontsize="small")
