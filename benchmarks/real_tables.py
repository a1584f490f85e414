"""Real tables that need no download, standardised: scikit-learn's and ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_iris,
    load_linnerud,
    load_wine,
)

from seminmf.datasets import load_ionosphere, load_segment, load_shuttle, make_waveform


class Table(NamedTuple):
    """Where a table comes from, and a number of components that suits it: that of its classes."""

    load: Callable[[], Any]
    n_components: int


def _linnerud() -> NDArray:
    """Exercises and bodies of 20 men."""
    bunch = load_linnerud()
    return np.hstack([bunch.data, bunch.target])


def _waveform() -> NDArray:
    return make_waveform(1000, random_state=0)[0]


TABLES: dict[str, Table] = {
    "iris": Table(lambda: load_iris().data, 3),
    "wine": Table(lambda: load_wine().data, 3),
    "cancer": Table(lambda: load_breast_cancer().data, 2),
    "digits": Table(lambda: load_digits().data, 10),
    "diabetes": Table(lambda: load_diabetes(scaled=False).data, 3),
    "linnerud": Table(_linnerud, 2),
    "ionosphere": Table(lambda: load_ionosphere().data, 2),
    "segment": Table(lambda: load_segment().data, 7),
    "shuttle": Table(lambda: load_shuttle().data, 7),
    "waveform": Table(_waveform, 3),
}


def load_table(name: str, most_rows: int) -> NDArray:
    """Some rows, drawn at random; each feature with mean 0 and variance 1, or left out if constant.

    A feature that is constant but for a few rows says nothing when those are hidden: it is left out
    as well.
    """
    return standardised(load_raw(name, most_rows))


def load_raw(name: str, most_rows: int) -> NDArray:
    """The same in its own units."""
    X = np.asarray(TABLES[name].load(), dtype=float)
    rows = RandomState(0).permutation(len(X))[:most_rows]
    X = X[np.sort(rows)]
    return X[:, [varies(column) for column in X.T]]


def varies(column: NDArray) -> bool:
    """Whether no value has more than 98 % of the rows."""
    return np.unique(column, return_counts=True)[1].max() <= 0.98 * len(column)


def standardised(X: NDArray) -> NDArray:
    """Means 0 and standard deviations 1, by the cells that are there."""
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
