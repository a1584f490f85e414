"""Loaders of the data sets in ``data/``, with the conventions of scikit-learn's loaders."""

import csv
import gzip
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch


class _Table(NamedTuple):
    """A file of ``data/``: numeric features, and the class label in the last column."""

    data: NDArray[np.float64]
    target: NDArray[np.str_]
    feature_names: list[str]
    target_column: str


def load_ionosphere(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Ionosphere data: radar returns, good or bad.

    =================   ==============
    Classes                          2
    Samples per class     225 g, 126 b
    Samples                        351
    Features                        34
    Values               real, -1 to 1
    =================   ==============

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects: ``data`` is a DataFrame and ``target`` a Series.

    Returns
    -------
    data : Bunch
        With the attributes

        data : ndarray of shape (351, 34), or DataFrame
            The features, float64. The second, V2, is 0 in every sample.
        target : ndarray of shape (351,), or Series
            The labels, ``"g"`` (good) and ``"b"`` (bad).
        feature_names : list of str
        target_names : ndarray of shape (2,)
            The distinct labels, sorted.
        frame : DataFrame of shape (351, 35), or None
            Features and labels together, if `as_frame`.
        DESCR : str
            Description, origin and licence.

    (data, target) : tuple, if `return_X_y`

    Examples
    --------
    >>> from seminmf.datasets import load_ionosphere
    >>> X, y = load_ionosphere(return_X_y=True)
    >>> X.shape
    (351, 34)
    >>> print(y[:3])
    ['g' 'b' 'g']
    """
    return _load("ionosphere", _IONOSPHERE, return_X_y=return_X_y, as_frame=as_frame)


def _load(name: str, description: str, *, return_X_y: bool, as_frame: bool) -> Any:
    table = _read(name)
    data: Any = table.data
    target: Any = table.target
    frame = None
    if as_frame:
        frame = _frame(table)
        data = frame[table.feature_names]
        target = frame[table.target_column]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        frame=frame,
        feature_names=table.feature_names,
        target_names=np.unique(table.target),
        DESCR=description,
    )


def _read(name: str) -> _Table:
    path = files("seminmf.datasets") / "data" / f"{name}.csv.gz"
    with path.open("rb") as raw, gzip.open(raw, "rt", encoding="utf-8", newline="") as text:
        header, *rows = csv.reader(text)
    features = [[float(field) if field else np.nan for field in row[:-1]] for row in rows]
    return _Table(
        data=np.array(features, dtype=np.float64),
        target=np.array([row[-1] for row in rows]),
        feature_names=header[:-1],
        target_column=header[-1],
    )


def _frame(table: _Table) -> Any:
    import pandas as pd

    frame = pd.DataFrame(table.data, columns=table.feature_names)
    frame[table.target_column] = table.target
    return frame


_IONOSPHERE = """\
Ionosphere
----------
Radar returns from the ionosphere: 17 pulses, each described by the real and the imaginary part of
its autocorrelation function, make 34 features from -1 to 1. "Good" returns (g, 225 samples) show
structure in the ionosphere, "bad" ones (b, 126 samples) do not. Feature V2 is constant 0.

Origin: V. Sigillito, S. Wing, L. Hutton, K. Baker. Ionosphere. UCI Machine Learning Repository,
1989. https://doi.org/10.24432/C5W01B
Licence: Creative Commons Attribution 4.0 International (CC BY 4.0).
"""
