"""How much of all that is put into the samples comes from each component."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def shares(model: Any) -> NDArray[np.float64]:
    """Share of each component in the total of all amounts (`amounts_`).

    Parameters
    ----------
    model : fitted estimator
        With `activations_` (J, K) and `_components_of_fit` (K, I).

    Returns
    -------
    ndarray of shape (n_components,)
        They sum to 1; where all amounts are 0, they are 0.
    """
    totals = _relative_sums(model.activations_.T) * _relative_sums(model._components_of_fit)
    total = totals.sum()
    return totals / total if total > 0 else totals


def _relative_sums(rows: NDArray) -> NDArray[np.float64]:
    """Sums of |values| in each row, in units of the largest: no overflow, whatever their size.

    Rows that are elsewhere, in chunks, are summed there.
    """
    sizes = np.abs(rows.astype(np.float64))
    largest = sizes.max()
    return np.asarray((sizes / largest if largest > 0 else sizes).sum(axis=1))
