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
        Names in the order of the counts. Clusters come in the order of the classes that they match
        best, those that match none last.
    counts : (n_classes, n_clusters) array
        Samples of each class in each cluster.
    accuracy : float
        Share of the samples whose cluster is the one that their class is matched with.
    """

    classes: NDArray
    clusters: NDArray
    counts: NDArray
    accuracy: float


def match(classes: Any, clusters: Any) -> Matching:
    """Match clusters with classes, so that as many samples as can be are where they belong.

    That is the Hungarian algorithm; a class or a cluster may stay alone.
    """
    class_names, class_index = np.unique(np.asarray(classes), return_inverse=True)
    cluster_names, cluster_index = np.unique(np.asarray(clusters), return_inverse=True)
    counts = np.zeros((len(class_names), len(cluster_names)), dtype=int)
    np.add.at(counts, (class_index, cluster_index), 1)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    accuracy = float(counts[rows, columns].sum() / counts.sum())
    alone = np.setdiff1d(np.arange(len(cluster_names)), columns)
    order = np.concatenate([columns, alone])
    return Matching(class_names, cluster_names[order], counts[:, order], accuracy)
