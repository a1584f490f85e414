"""Clusters of the samples against classes that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

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
        known = np.array([not _is_missing(label) for label in subject.labels], dtype=bool)
        if not known.any():
            raise ValueError("labels must name at least one class; found None or NaN only.")
        clusters = subject.clusters()[known]
        names, codes = np.unique(
            [tidy(label) for label in subject.labels[known]], return_inverse=True
        )
        table = np.zeros((len(names), len(subject.components)), dtype=int)
        np.add.at(table, (codes, clusters), 1)
        rows, columns, n_matched = _best_order(table)
        return cls(
            labels=[str(names[row]) for row in rows[:_MOST_LABELS]],
            components=columns.tolist(),
            counts=table[np.ix_(rows[:_MOST_LABELS], columns)],
            accuracy=n_matched / len(clusters),
            adjusted_rand=float(adjusted_rand_score(codes, clusters)),
            n_samples=len(clusters),
            n_without=int(np.sum(~known)),
            n_labels=len(names),
        )


def _best_order(table: NDArray) -> tuple[NDArray, NDArray, int]:
    """Rows and columns so that the best matching is the diagonal, and the sum along it."""
    rows, columns = linear_sum_assignment(table, maximize=True)
    largest_first = np.argsort(-table[rows].sum(axis=1), kind="stable")
    rows, columns = rows[largest_first], columns[largest_first]
    n_matched = int(table[rows, columns].sum())
    return _with_the_rest(rows, len(table)), _with_the_rest(columns, table.shape[1]), n_matched


def _with_the_rest(chosen: NDArray, size: int) -> NDArray:
    return np.concatenate([chosen, np.setdiff1d(np.arange(size), chosen)])


def _is_missing(label: Any) -> bool:
    """None, NaN, and the missing values of pandas, which are not equal to themselves."""
    return label is None or type(label).__name__ == "NAType" or bool(label != label)
