"""What users hand in as X, as a source: arrays, tables, sparse matrices, arrays on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _check_n_features

from . import _validation as check
from ._sources import DenseSource, DiskSource, Source, SparseSource, ZeroFilledSource

ZEROS = ("missing", "observed")
# Bytes from which on a memory map is read in blocks; a smaller one is as good as in memory.
_LARGE = 64 << 20


def open_source(estimator: Any, X: Any, *, fitted: bool) -> Source:
    """X as a source, with the features of the fit if there was one; no look at its values."""
    if sparse.issparse(X):
        return _open_sparse(estimator, X, fitted=fitted)
    if _is_on_disk(X):
        _check_table(estimator, X, fitted=fitted)
        return DiskSource(X)
    return DenseSource(check.check_array(estimator, X, fitted=fitted))


def _is_on_disk(X: Any) -> bool:
    """Whether X is a large memory map, or no array but sliced like one."""
    if isinstance(X, np.memmap):
        return X.nbytes >= _LARGE
    table = hasattr(X, "iloc") or hasattr(X, "__dataframe__") or hasattr(X, "__array_namespace__")
    sliced = all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__"))
    return sliced and not table and not isinstance(X, (np.ndarray, np.generic))


def _check_table(estimator: Any, X: Any, *, fitted: bool) -> None:
    """Refuse what is not a table of numbers, or has other features than the fit."""
    shape = tuple(X.shape)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"X must have samples and features, both at least 1; found shape {shape}.")
    if not (np.issubdtype(X.dtype, np.integer) or np.issubdtype(X.dtype, np.floating)):
        raise ValueError(f"X must hold real numbers, with NaN for gaps; found {X.dtype}.")
    if fitted:
        _check_n_features(estimator, X, reset=False)


def _open_sparse(estimator: Any, X: Any, *, fitted: bool) -> Source:
    zeros = getattr(estimator, "sparse_zeros", None)
    if zeros is None:
        raise TypeError(
            f"X must be dense for {type(estimator).__name__}; found a sparse matrix, which "
            "SkellamSNMF and BayesianSkellamSNMF take."
        )
    check.check_choice("sparse_zeros", zeros, ZEROS)
    _check_table(estimator, X, fitted=fitted)
    _check_indices(X)
    stored = sparse.csr_array(X)
    if not stored.has_canonical_format:
        stored = stored.copy() if stored.data is getattr(X, "data", None) else stored
        stored.sum_duplicates()
    if np.isnan(stored.data).any():
        raise ValueError(
            "X must not store NaN if it is sparse: with sparse_zeros='missing' a cell that is not "
            f"stored is a gap; found {int(np.isnan(stored.data).sum())} NaN."
        )
    return SparseSource(stored) if zeros == "missing" else ZeroFilledSource(stored)


def _check_indices(X: Any) -> None:
    """Refuse indices outside of the matrix, which compiled code would follow anywhere."""
    try:
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
        elif X.format == "coo":
            for indices, size in zip((X.row, X.col), X.shape, strict=True):
                if indices.size and not (0 <= indices.min() and indices.max() < size):
                    raise ValueError(f"index {indices.max()} for {size}")
    except ValueError as error:
        raise ValueError(
            f"X must have its indices within its shape {X.shape}; found a sparse matrix that has "
            f"others ({error})."
        ) from None
