"""The original samples of the waveform data, from a folder or from OpenML."""

from http.client import HTTPException
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from seminmf.datasets._folder import FOLDER_VARIABLE, DataHome, find_file, not_found
from seminmf.datasets._table import Table, as_bunch, read_table

_NAME = "waveform21"
_OPENML_ID = 4551
_SHAPE = (5000, 21)
_CLASS_COUNTS = [1657, 1647, 1696]


def fetch_waveform(
    *,
    data_home: DataHome = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
) -> Any:
    """Load the original waveform data from a folder, or download them from OpenML.

    The folder's file is ``waveform21.csv.gz`` or ``waveform21.csv``, with a header, 21 features and
    the class in the last column. If there is none, :func:`sklearn.datasets.fetch_openml` gets data
    set 4551, and keeps it for the next time.

    =================   ==================
    Classes                              3
    Samples per class     1657, 1647, 1696
    Samples                           5000
    Features                            21
    Values              real, -4.2 to 9.06
    =================   ==================

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder. If None, the one that the environment variable ``SEMINMF_DATA`` names, if any.
        A download is kept in `data_home` too; if None, where scikit-learn keeps its downloads.
    download_if_missing : bool, default=True
        If False, do not ask OpenML nor look for an earlier download: raise an OSError if the file
        is not in the folder.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects: ``data`` is a DataFrame and ``target`` a Series.

    Returns
    -------
    data : Bunch
        With the attributes

        data : ndarray of shape (5000, 21), or DataFrame
            The features, float64.
        target : ndarray of shape (5000,), or Series
            The classes, 0 to 2.
        feature_names : list of str
            ``"x1"`` to ``"x21"``.
        target_names : ndarray of shape (3,)
            The distinct classes, sorted.
        frame : DataFrame of shape (5000, 22), or None
            Features and classes together, if `as_frame`.
        DESCR : str
            Description, origin and licence.

    (data, target) : tuple, if `return_X_y`

    Raises
    ------
    OSError
        If the file is not in the folder and there is no download.
    ValueError
        If the number of samples, of features or of samples in a class is not the one above.

    See Also
    --------
    make_waveform : Generate as many samples of this kind as you like; it needs no file.

    Examples
    --------
    >>> from seminmf.datasets import fetch_waveform
    >>> X, y = fetch_waveform(return_X_y=True)  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (5000, 21)
    """
    path = find_file(_NAME, data_home)
    if path is not None:
        found = read_table(path)
        table = _checked(str(path), found.data, found.labels)
    elif download_if_missing:
        table = _checked(f"OpenML's data set {_OPENML_ID}", *_download(data_home))
    else:
        raise OSError(_what_to_do(data_home, "download_if_missing is False"))
    return as_bunch(table, _WAVEFORM, return_X_y=return_X_y, as_frame=as_frame)


def _download(data_home: DataHome) -> tuple[Any, Any]:
    from sklearn.datasets import fetch_openml

    try:
        # The other parser needs pandas, and these data are small enough for this one.
        return fetch_openml(
            data_id=_OPENML_ID,
            data_home=data_home,
            return_X_y=True,
            as_frame=False,
            parser="liac-arff",
        )
    except (OSError, HTTPException) as error:
        message = _what_to_do(data_home, f"the download from OpenML failed ({error})")
        raise OSError(message) from error


def _what_to_do(data_home: DataHome, why: str) -> str:
    return (
        f"{not_found(_NAME, data_home)}, and {why}; connect to the internet once and download the "
        "data, or put that file into a folder and name it by data_home or the environment variable "
        f"{FOLDER_VARIABLE}, or use make_waveform."
    )


def _checked(source: str, data: ArrayLike, labels: ArrayLike) -> Table:
    """The table, if it is the original; whatever the labels are, they become 0, 1 and 2."""
    shape = np.shape(data)
    if shape != _SHAPE:
        raise ValueError(f"{source} must have the shape {_SHAPE} without labels; found {shape}.")
    # As text, since labels can be numbers, or objects that do not compare.
    _, classes, counts = np.unique(
        np.asarray(labels).astype(str), return_inverse=True, return_counts=True
    )
    if counts.tolist() != _CLASS_COUNTS:
        few = counts.tolist() if len(counts) < 10 else f"{len(counts)} classes"
        raise ValueError(f"{source} must have the class counts {_CLASS_COUNTS}; found {few}.")
    names = [f"x{i}" for i in range(1, _SHAPE[1] + 1)]
    return Table(np.asarray(data, dtype=np.float64), classes, names, "class")


_WAVEFORM = """\
Waveform
--------
Noisy mixtures of two of three triangular waves, at 21 places. The classes 0, 1 and 2 (1657, 1647
and 1696 samples) differ in which waves they mix. These are the 5000 samples of the original, to
compare with published results; make_waveform generates new ones.

Origin: L. Breiman, C. Stone. Waveform Database Generator (Version 1). UCI Machine Learning
Repository, 1984. https://doi.org/10.24432/C5CS3C
Licence: Creative Commons Attribution 4.0 International (CC BY 4.0).
"""
