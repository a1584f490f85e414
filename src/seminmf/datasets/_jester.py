"""The Jester data, from a folder."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from seminmf.datasets._folder import DataHome, require_file
from seminmf.datasets._table import Table, read_table

_NAME = "jester5k"
_LARGEST = 10
_COLUMNS = (
    "a column of ratings from -10 to 10 for each joke (empty for gaps) and the column user last"
)


def load_jester(*, data_home: DataHome = None, as_frame: bool = False) -> Any:
    """Load the Jester data from a folder: jokes that users rated from -10 to 10, with gaps.

    The file is ``jester5k.csv.gz`` or ``jester5k.csv``, with a header, a column of ratings for each
    joke and the user's name in the last column, ``user``. An empty field is a gap. The usual sample
    has 5000 users and 100 jokes; others are welcome. In R, the package recommenderlab has it::

        m <- as(recommenderlab::Jester5k, "matrix")
        write.csv(data.frame(m, user = rownames(m)), "jester5k.csv", row.names = FALSE, na = "")

    Parameters
    ----------
    data_home : str or path-like, default=None
        The folder. If None, the one that the environment variable ``SEMINMF_DATA`` names.
    as_frame : bool, default=False
        Return ``data`` as a DataFrame, with the users as its index.

    Returns
    -------
    data : Bunch
        With the attributes

        data : ndarray of shape (n_users, n_jokes), or DataFrame
            The ratings, float64, NaN where a user has not rated a joke. A 0 is a rating.
        feature_names : list of str
            The names of the jokes.
        sample_names : list of str
            The names of the users.
        frame : DataFrame, or None
            The same as ``data``, if `as_frame`.
        DESCR : str
            Description and origin.

        There is no target, and so no ``return_X_y``.

    Raises
    ------
    FileNotFoundError
        If the file is not in the folder.
    ValueError
        If its columns or values are not as above.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from seminmf.datasets import load_jester
    >>> with TemporaryDirectory() as folder:
    ...     text = "j1,j2,j3,user\\n-1.5,,7,Ann\\n,0,-9.25,Bob\\n"
    ...     _ = Path(folder, "jester5k.csv").write_text(text)
    ...     jester = load_jester(data_home=folder)
    >>> jester.data
    array([[-1.5 ,   nan,  7.  ],
           [  nan,  0.  , -9.25]])
    >>> jester.sample_names
    ['Ann', 'Bob']
    """
    path = require_file(
        _NAME, data_home, source="Jester5k of the R package recommenderlab", columns=_COLUMNS
    )
    table = read_table(path)
    _check(str(path), table)
    frame = _frame(table) if as_frame else None
    return Bunch(
        data=frame if as_frame else table.data,
        frame=frame,
        feature_names=table.feature_names,
        sample_names=table.labels.tolist(),
        DESCR=_JESTER,
    )


def _check(source: str, table: Table) -> None:
    if table.label_name != "user" or not table.feature_names:
        names = ", ".join([*table.feature_names, table.label_name][-3:])
        raise ValueError(f"{source} must have {_COLUMNS}; found the last columns {names}.")
    outside = table.data[np.abs(table.data) > _LARGEST]
    if outside.size:
        raise ValueError(f"{source} must have {_COLUMNS}; found the rating {outside[0]:g}.")


def _frame(table: Table) -> Any:
    import pandas as pd

    users = pd.Index(table.labels, name=table.label_name)
    return pd.DataFrame(table.data, index=users, columns=table.feature_names)


_JESTER = """\
Jester
------
Ratings of jokes from -10 to 10, continuous, by users of a recommender on the web from April 1999 to
May 2003. The usual sample has 5000 users, each with at least 36 of the 100 jokes rated; 27 percent
of the ratings are missing.

Origin: K. Goldberg, T. Roeder, D. Gupta, C. Perkins. Eigentaste: A Constant Time Collaborative
Filtering Algorithm. Information Retrieval 4(2), 133-151, 2001. The sample is Jester5k of the R
package recommenderlab.
Licence: none is stated; the data do not come with this package.
"""
