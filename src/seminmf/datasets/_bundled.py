"""Loaders of the data sets in ``data/``, with the conventions of scikit-learn's loaders."""

from importlib.resources import files
from typing import Any

from seminmf.datasets._table import as_bunch, read_table


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
            The names of the features.
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


def load_segment(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Image Segmentation data: regions of outdoor images, by what they show.

    =================   =======================
    Classes                                   7
    Samples per class                       330
    Samples                                2310
    Features                                 19
    Values              real, -49.7 to 1386.3
    =================   =======================

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

        data : ndarray of shape (2310, 19), or DataFrame
            The features, float64, each in its own unit. The third, region-pixel-count, is 9 in
            every sample.
        target : ndarray of shape (2310,), or Series
            The labels, from ``"brickface"`` to ``"window"``.
        feature_names : list of str
            The names of the features.
        target_names : ndarray of shape (7,)
            The distinct labels, sorted.
        frame : DataFrame of shape (2310, 20), or None
            Features and labels together, if `as_frame`.
        DESCR : str
            Description, origin and licence.

    (data, target) : tuple, if `return_X_y`

    Examples
    --------
    >>> from seminmf.datasets import load_segment
    >>> X, y = load_segment(return_X_y=True)
    >>> X.shape
    (2310, 19)
    >>> print(y[:3])
    ['path' 'foliage' 'path']
    """
    return _load("segment", _SEGMENT, return_X_y=return_X_y, as_frame=as_frame)


def load_shuttle(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Shuttle data, test part: sensors of a space shuttle, by the state of a radiator.

    =================   ====================================
    Classes                                                7
    Samples per class   11478, 13, 39, 2155, 809, 4, 2
    Samples                                            14500
    Features                                               9
    Values                         integer, -26739 to 15164
    =================   ====================================

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

        data : ndarray of shape (14500, 9), or DataFrame
            The features, float64. Most values are below 130 in size; the second, fourth and sixth
            feature have outliers in the thousands.
        target : ndarray of shape (14500,), or Series
            The labels, ``"1"`` to ``"7"``; the description names them.
        feature_names : list of str
            The names of the features.
        target_names : ndarray of shape (7,)
            The distinct labels, sorted.
        frame : DataFrame of shape (14500, 10), or None
            Features and labels together, if `as_frame`.
        DESCR : str
            Description, origin and licence.

    (data, target) : tuple, if `return_X_y`

    Examples
    --------
    >>> from seminmf.datasets import load_shuttle
    >>> X, y = load_shuttle(return_X_y=True)
    >>> X.shape
    (14500, 9)
    >>> print(y[:3])
    ['4' '4' '1']
    """
    return _load("shuttle", _SHUTTLE, return_X_y=return_X_y, as_frame=as_frame)


def _load(name: str, description: str, *, return_X_y: bool, as_frame: bool) -> Any:
    table = read_table(files("seminmf.datasets") / "data" / f"{name}.csv.gz")
    return as_bunch(table, description, return_X_y=return_X_y, as_frame=as_frame)


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

_SEGMENT = """\
Image segmentation
------------------
Regions of 3 × 3 pixels, drawn at random from 7 outdoor images that were segmented by hand. The 19
features describe a region's place, its edges and its colours, each in its own unit; the classes are
brickface, cement, foliage, grass, path, sky and window, 330 samples each. Feature
region-pixel-count is constant 9, and 224 samples occur twice. The training and the test part of the
original (210 and 2100 samples) are together.

Origin: Vision Group, University of Massachusetts (donor: C. Brodley). Image Segmentation. UCI
Machine Learning Repository, 1990. https://doi.org/10.24432/C5GP4N
Licence: Creative Commons Attribution 4.0 International (CC BY 4.0).
"""

_SHUTTLE = """\
Shuttle
-------
Nine integer features from sensors of a space shuttle, the test part of the original (14500 of 58000
samples). The classes are 1 Rad Flow (11478 samples), 2 Fpv Close (13), 3 Fpv Open (39), 4 High
(2155), 5 Bypass (809), 6 Bpv Close (4) and 7 Bpv Open (2). Outliers range from -26739 to 15164.

Origin: J. Catlett. Statlog (Shuttle). UCI Machine Learning Repository.
https://doi.org/10.24432/C5WS31
Licence: Creative Commons Attribution 4.0 International (CC BY 4.0).
"""
