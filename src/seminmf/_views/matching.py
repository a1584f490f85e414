"""Clusters against classes: which belong together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment


class Matching(NamedTuple):
    """How clusters and classes meet.

    Attributes
    ----------
    classes, clusters : arrays
        Names in the order of the counts. Each class is beside its cluster, the largest first; those
        that stay alone come last.
    counts : (n_classes, n_clusters) array
        Samples of each class in each cluster.
    accuracy : float
        Share of the samples that are on the diagonal: in the cluster of their class.
    """

    classes: NDArray
    clusters: NDArray
    counts: NDArray
    accuracy: float


def match(classes: Any, clusters: Any, n_clusters: int | None = None) -> Matching:
    """Match clusters with classes, so that as many samples as can be are where they belong.

    That is the Hungarian algorithm; a class or a cluster may stay alone.

    Parameters
    ----------
    classes : array-like of shape (n_samples,)
    clusters : array-like of shape (n_samples,)
    n_clusters : int or None, default=None
        If clusters are numbers from 0: how many there are, with or without samples. None takes
        those that have any.
    """
    class_names, class_index = np.unique(np.asarray(classes), return_inverse=True)
    if n_clusters is None:
        cluster_names, cluster_index = np.unique(np.asarray(clusters), return_inverse=True)
    else:
        cluster_names, cluster_index = np.arange(n_clusters), np.asarray(clusters)
    counts = np.zeros((len(class_names), len(cluster_names)), dtype=int)
    np.add.at(counts, (class_index, cluster_index), 1)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    largest_first = np.argsort(-counts[rows].sum(axis=1), kind="stable")
    order = (
        _with_the_rest(chosen[largest_first], size)
        for chosen, size in zip((rows, columns), counts.shape, strict=True)
    )
    rows, columns = order
    counts = counts[np.ix_(rows, columns)]
    accuracy = float(np.trace(counts) / counts.sum())
    return Matching(class_names[rows], cluster_names[columns], counts, accuracy)


def _with_the_rest(chosen: NDArray, size: int) -> NDArray:
    return np.concatenate([chosen, np.setdiff1d(np.arange(size), chosen)])


def is_known(label: Any) -> bool:
    """Whether it is a label: not None, nor NaN or pandas' NA, which are not equal to themselves."""
    return not (label is None or type(label).__name__ == "NAType" or bool(label != label))
