"""Clusters of the samples against classes that are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from ..._views.matching import is_known, match
from ..subject import Subject, tidy

_MOST_LABELS = 40


@dataclass(frozen=True)
class Clusters:
    """How clusters and labels go together.

    Attributes
    ----------
    labels : list of str
        Rows of the table: first those that have a component to themselves.
    components : list of int
        Its columns: first the component of the first label, and so on.
    counts : (n, K) array
        Samples by label and component.
    accuracy : float
        Share of the samples in the component of their label.
    adjusted_rand : float
    n_samples, n_without, n_labels : int
        Samples with a label, samples without, and different labels, of which the table may show the
        first only.
    """

    labels: list[str]
    components: list[int]
    counts: NDArray
    accuracy: float
    adjusted_rand: float
    n_samples: int
    n_without: int
    n_labels: int

    @classmethod
    def of(cls, subject: Subject) -> Clusters | None:
        """Compare clusters and labels; None without labels."""
        if subject.labels is None:
            return None
        known = np.array([is_known(label) for label in subject.labels], dtype=bool)
        if not known.any():
            raise ValueError("labels must name at least one class; found None or NaN only.")
        clusters = subject.clusters()[known]
        names = np.array([tidy(label) for label in subject.labels[known]])
        table = match(names, clusters, len(subject.components))
        return cls(
            labels=[str(name) for name in table.classes[:_MOST_LABELS]],
            components=table.clusters.tolist(),
            counts=table.counts[:_MOST_LABELS],
            accuracy=table.accuracy,
            adjusted_rand=float(adjusted_rand_score(names, clusters)),
            n_samples=len(clusters),
            n_without=int(np.sum(~known)),
            n_labels=len(table.classes),
        )
