"""What users hand in as X, as a source: arrays, tables, sparse matrices, arrays on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.utils
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _check_n_features, validate_data

from .dense import DenseSource
from .disk import DiskSource
from .source import Source
from .sparse import SparseSource, ZeroFilledSource

ZEROS = ("missing", "observed")
# Bytes from which on a memory map is read in blocks; a smaller one is as good as in memory.
_LARGE = 64 << 20


def open_source(estimator: Any, X: Any, *, fitted: bool) -> Source:
    """X as a source, with the features of the fit if there was one; no look at its values."""
    if sparse.issparse(X):
        return _open_sparse(estimator, X, fitted=fitted)
    if type(X).__module__.partition(".")[0] == "dask":
        return _open_chunked(estimator, X, fitted=fitted)
    if _is_on_disk(X):
        _check_table(estimator, X, fitted=fitted)
        return DiskSource(X)
    return DenseSource(check_array(estimator, X, fitted=fitted))


def check_array(estimator: Any, X: Any, *, fitted: bool) -> NDArray:
    """X as a two-dimensional float array, with the features of the fit if there was one."""
    accepted: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
    try:
        if fitted:
            return validate_data(estimator, X, reset=False, **accepted)
        return sklearn.utils.check_array(X, estimator=estimator, input_name="X", **accepted)
    except (TypeError, ValueError) as error:
        if "omplex" in str(error):
            found = np.asarray(X).dtype
            raise ValueError(
                f"Complex data not supported: X must be real; found {found}."
            ) from None
        if "could not convert" in str(error):
            raise ValueError(
                f"X must hold numbers, with NaN for gaps; found text ({error})."
            ) from error
        raise


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
    zeros = _zeros_of(estimator, "dense", "a sparse matrix")
    _check_table(estimator, X, fitted=fitted)
    return sparse_source(X, zeros)


def sparse_source(X: Any, zeros: str) -> Source:
    """A sparse matrix as a source, whatever its format."""
    _check_indices(X)
    stored = sparse.csr_array(X)
    if not stored.has_canonical_format:
        stored = stored.copy()  # the user's stays as it is
        stored.sum_duplicates()
    if np.isnan(stored.data).any():
        raise ValueError(
            "X must not store NaN if it is sparse: with sparse_zeros='missing' a cell that is not "
            f"stored is a gap; found {int(np.isnan(stored.data).sum())} NaN."
        )
    return SparseSource(stored) if zeros == "missing" else ZeroFilledSource(stored)


def _open_chunked(estimator: Any, X: Any, *, fitted: bool) -> Source:
    """A Dask array, whose chunks must be samples that can be found."""
    zeros = _zeros_of(estimator, "in memory", "a Dask array")
    if not hasattr(X, "to_delayed") or not hasattr(X, "chunks"):
        raise TypeError(
            f"X must be a Dask array; found {type(X).__name__}, of which "
            "`to_dask_array(lengths=True)` makes one."
        )
    if np.isnan(X.shape[0]):
        raise ValueError(
            "X must have chunks of known sizes; found unknown ones, which "
            "`X.compute_chunk_sizes()` finds out."
        )
    _check_table(estimator, X, fitted=fitted)
    if len(X.chunks[1]) > 1:
        raise ValueError(
            f"X must be chunked over samples only; found {len(X.chunks[1])} chunks over features, "
            "which `X.rechunk({1: -1})` joins."
        )
    _check_client(X)
    from .chunked.source import ChunkedSource

    return ChunkedSource(X, zeros)


def _zeros_of(estimator: Any, wanted: str, found: str) -> str:
    """The estimator's `sparse_zeros`; those that have none take arrays only."""
    if not hasattr(estimator, "sparse_zeros"):
        raise TypeError(
            f"X must be {wanted} for {type(estimator).__name__}; found {found}, which SkellamSNMF "
            "and BayesianSkellamSNMF take."
        )
    return estimator._parameter("sparse_zeros")


def _check_client(X: Any) -> None:
    """Refuse data on a cluster that is gone."""
    try:
        from distributed import futures_of
    except ImportError:  # then there are none
        return
    closed = [future for future in futures_of(X) if future.client.status != "running"]
    if closed:
        raise ValueError(
            "X must be on a cluster that can be reached; found parts of it on one whose client is "
            "closed."
        )


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
