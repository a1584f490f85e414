"""Sharing maps: which cells of a parameter have the same hyperparameter (the paper's υ, ω and φ).

A map is an integer array of the parameter's shape. Its labels 0, 1, …, n − 1 are positions in the
vector of the n hyperparameter values.
"""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Sharing: TypeAlias = Literal["all", "component", "entry"] | ArrayLike


def labels(
    sharing: Sharing,
    shape: tuple[int, ...],
    component_axis: int,
    *,
    name: str = "sharing",
) -> NDArray[np.intp]:
    """Resolve a sharing map to its array of labels.

    Parameters
    ----------
    sharing : {"all", "component", "entry"} or array-like of int
        "all": one value for all cells; "component": one for each component; "entry": one for each
        cell, in C order; or the labels themselves.
    shape : tuple of int
        The parameter's shape, such as (J, K) for activations and (2, K, I) for atoms.
    component_axis : int
        The axis of `shape` that counts the components.
    name : str
        The argument's name in error messages.

    Returns
    -------
    labels : ndarray of intp, of shape `shape`

    Examples
    --------
    >>> labels("component", (2, 3), component_axis=1)
    array([[0, 1, 2],
           [0, 1, 2]])
    """
    if not isinstance(sharing, str):
        return _checked_labels(sharing, shape, name)
    if sharing == "all":
        return np.zeros(shape, dtype=np.intp)
    if sharing == "component":
        return np.indices(shape, dtype=np.intp)[component_axis]
    if sharing == "entry":
        return np.arange(np.prod(shape, dtype=np.intp), dtype=np.intp).reshape(shape)
    raise ValueError(
        f"{name} must be 'all', 'component', 'entry' or an integer array of labels, "
        f"found {sharing!r}."
    )


def n_labels(labels: NDArray[np.intp]) -> int:
    """Number of hyperparameter values that a resolved map refers to."""
    return int(labels.max()) + 1


def expand(
    values: ArrayLike, labels: NDArray[np.intp], *, name: str = "values"
) -> NDArray[np.float64]:
    """Give each cell of a parameter the value of its label.

    Parameters
    ----------
    values : array-like of shape (n_labels,)
        Hyperparameter values; a scalar serves where there is one label.
    labels : ndarray of int
        A map from `labels`.
    name : str
        The argument's name in error messages.

    Returns
    -------
    cells : ndarray of float, of the shape of `labels`

    Examples
    --------
    >>> expand([0.5, 2.0], np.array([[0, 0, 1]]))
    array([[0.5, 0.5, 2. ]])
    """
    vector = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if vector.shape != (n_labels(labels),):
        raise ValueError(
            f"{name} has shape {vector.shape}, but its sharing map needs a vector of "
            f"{n_labels(labels)} values, one for each label."
        )
    return vector[labels]


def _checked_labels(sharing: ArrayLike, shape: tuple[int, ...], name: str) -> NDArray[np.intp]:
    array = np.asarray(sharing)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, but its parameter has shape {shape}.")
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must hold integer labels, found dtype {array.dtype}.")
    # A label without a cell would be a hyperparameter that nothing can be learned about.
    present = np.unique(array)
    if not np.array_equal(present, np.arange(present.size)):
        raise ValueError(
            f"{name} must use each of the labels 0, 1, ..., n - 1, "
            f"found {present.size} distinct labels from {present[0]} to {present[-1]}."
        )
    return array.astype(np.intp)
