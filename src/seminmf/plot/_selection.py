"""The choice of the number of components."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..selection import Selection
from ._frame import check_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def selection(result: Selection, ax: Axes | None = None) -> Axes:
    """Draw the scores of the candidates and mark the choice.

    Parameters
    ----------
    result : Selection
        What `select_n_components` returned.
    ax : matplotlib Axes or None, default=None
        Where to draw; None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from seminmf import BayesianSkellamSNMF, plot, sample_skellam_snmf, select_n_components
    >>> X, _, _ = sample_skellam_snmf(60, 10, 2, activation_shape=0.5, random_state=0)
    >>> counts = BayesianSkellamSNMF(likelihood="integer")
    >>> found = select_n_components(X, [1, 2, 3], estimator=counts, random_state=0)
    >>> plot.selection(found).get_xlabel()
    'number of components'
    """
    if not isinstance(result, Selection):
        raise ValueError(
            "result must be what select_n_components returned; "
            f"found an object of type {type(result).__name__}."
        )
    check_axes(ax)
    return result.plot(ax)
