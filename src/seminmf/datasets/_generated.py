"""Generators of data sets, with the conventions of scikit-learn's."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from seminmf.datasets._table import Table, as_bunch

_N_FEATURES = 21
_HEIGHT = 6
_PEAKS = (7, 15, 11)  # of the base waves, counted from 1
_CLASSES = ((0, 1), (0, 2), (1, 2))  # the two base waves of each class


def make_waveform(
    n_samples: int = 5000,
    *,
    random_state: Any = None,
    return_X_y: bool = True,
    as_frame: bool = False,
) -> Any:
    """Generate the waveform data: noisy mixtures of two of three triangular waves.

    A sample of a class is ``u * a + (1 - u) * b`` plus normal noise of variance 1 in each of the 21
    features, where ``u`` is uniform on [0, 1] and ``a`` and ``b`` are the class's two base waves.
    The waves have the height 6, and their peaks are at the features 7, 15 and 11; the classes 0, 1
    and 2 mix the first and second, the first and third, and the second and third.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of samples. Classes are drawn with equal probability.
    random_state : int, RandomState instance or None, default=None
        Pass an int for reproducible data.
    return_X_y : bool, default=True
        Return ``(X, y)``; otherwise a Bunch.
    as_frame : bool, default=False
        Return pandas objects: ``X`` is a DataFrame and ``y`` a Series.

    Returns
    -------
    X : ndarray of shape (n_samples, 21), or DataFrame
    y : ndarray of shape (n_samples,), or Series
        The classes, 0 to 2.
    data : Bunch, if not `return_X_y`
        With the attributes ``data``, ``target``, ``feature_names``, ``target_names``, ``DESCR``,
        ``frame`` (data and target together if `as_frame`, otherwise None), and ``waves`` of shape
        (3, 21): the base waves.

    See Also
    --------
    fetch_waveform : 5000 samples that were generated in this way once, for comparisons.

    References
    ----------
    L. Breiman, J. H. Friedman, R. A. Olshen, C. J. Stone. Classification and Regression Trees.
    Wadsworth, 1984, section 2.6.1.

    Examples
    --------
    >>> from seminmf.datasets import make_waveform
    >>> X, y = make_waveform(6, random_state=0)
    >>> X.shape
    (6, 21)
    >>> y
    array([0, 1, 0, 1, 1, 2])
    """
    _check_count(n_samples)
    random = check_random_state(random_state)
    waves = _base_waves()
    target = random.randint(len(_CLASSES), size=n_samples)
    first, second = np.array(_CLASSES)[target].T
    share = random.uniform(size=(n_samples, 1))
    data = share * waves[first] + (1 - share) * waves[second]
    data += random.normal(size=data.shape)
    return as_bunch(
        Table(data, target, [f"x{i}" for i in range(1, _N_FEATURES + 1)], "class"),
        make_waveform.__doc__ or "",
        return_X_y=return_X_y,
        as_frame=as_frame,
        waves=waves,
    )


def _base_waves() -> NDArray[np.float64]:
    """The three triangles, (3, 21)."""
    position = np.arange(1, _N_FEATURES + 1)
    return np.maximum(_HEIGHT - np.abs(position - np.array(_PEAKS)[:, None]), 0).astype(float)


def _check_count(n_samples: Any) -> None:
    if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
        raise ValueError(f"n_samples must be an integer of at least 1; found {n_samples!r}.")
