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
from .reading import as_meant, is_xarray, library_of, named, refuse_rounded
from .source import Source
from .sparse import SparseSource, ZeroFilledSource

ZEROS = ("missing", "observed")
# Bytes from which on a memory map is read in blocks; a smaller one is as good as in memory.
_LARGE = 64 << 20


def open_source(estimator: Any, X: Any, *, fitted: bool) -> Source:
    """X as a source, with the features of the fit if there was one; no look at its values."""
    if library_of(X) == "anndata":
        raise TypeError(
            f"X must hold numbers; found an {type(X).__name__} object, which seminmf.fit_anndata "
            "takes."
        )
    if is_xarray(X) and library_of(X.data) == "dask":
        X = X.data
    if sparse.issparse(X):
        return _open_sparse(estimator, X, fitted=fitted)
    if library_of(X) == "dask":
        return _open_chunked(estimator, X, fitted=fitted)
    if _is_on_disk(X):
        _check_table(estimator, X, fitted=fitted)
        return DiskSource(X)
    return DenseSource(check_array(estimator, X, fitted=fitted))


def check_array(estimator: Any, X: Any, *, fitted: bool) -> NDArray:
    """X as a two-dimensional float array, with the features of the fit if there was one."""
    accepted: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}
    table = as_meant(X)
    try:
        with np.errstate(over="ignore"):  # what is too large for float64 is refused as infinite
            array = sklearn.utils.check_array(
                table, estimator=estimator, input_name="X", **accepted
            )
    except (TypeError, ValueError) as error:
        _refuse_objects(table, str(error))
        raise
    if fitted:
        validate_data(estimator, named(X), reset=False, skip_check_array=True)
    return array


def _refuse_objects(table: Any, error: str) -> None:
    """Refuse what NumPy could not make numbers of, for the reason that it gave."""
    if "omplex" in error:
        found = np.asarray(table).dtype
        raise ValueError(f"Complex data not supported: X must be real; found {found}.") from None
    wanted = "X must hold numbers, with NaN for gaps"
    if "could not convert" in error:
        raise ValueError(f"{wanted}; found text ({error}).") from None
    if "float() argument" in error:
        raise TypeError(f"{wanted}; found a cell that is none ({error}).") from None


def _is_on_disk(X: Any) -> bool:
    """Whether X is a large memory map, or no array but sliced like one."""
    if isinstance(X, np.memmap):
        return X.nbytes >= _LARGE
    if is_xarray(X):
        return False
    in_memory = ("iloc", "__dataframe__", "__array_namespace__", "__dlpack__")
    if isinstance(X, (np.ndarray, np.generic)) or any(hasattr(X, name) for name in in_memory):
        return False
    return all(hasattr(X, name) for name in ("shape", "dtype", "__getitem__"))


def _check_table(estimator: Any, X: Any, *, fitted: bool) -> None:
    """Refuse what is not a table of numbers, or has other features than the fit."""
    shape = tuple(X.shape)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"X must have samples and features, both at least 1; found shape {shape}.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, with NaN for gaps; found {X.dtype}.")
    if fitted:
        _check_n_features(estimator, X, reset=False)


def _open_sparse(estimator: Any, X: Any, *, fitted: bool) -> Source:
    zeros = _zeros_of(estimator, "dense", "a sparse matrix")
    _check_table(estimator, X, fitted=fitted)
    return sparse_source(X, zeros)


def sparse_source(X: Any, zeros: str, first_row: int = 0) -> Source:
    """A sparse matrix as a source, whatever its format; samples count from `first_row`."""
    _check_indices(X)
    stored = sparse.csr_array(X.astype(np.float64) if X.dtype == np.float16 else X)
    if not stored.has_canonical_format:
        stored = stored.copy()  # the user's stays as it is
        stored.sum_duplicates()
    stored = _in_compiled_type(stored, first_row)
    if np.isnan(stored.data).any():
        raise ValueError(
            "X must not store NaN if it is sparse: with sparse_zeros='missing' a cell that is not "
            f"stored is a gap; found {int(np.isnan(stored.data).sum())} NaN."
        )
    return SparseSource(stored) if zeros == "missing" else ZeroFilledSource(stored)


def _in_compiled_type(stored: Any, first_row: int) -> Any:
    """A sparse matrix of integers, float32 or float64, which are what kernels are compiled for."""
    if stored.dtype.kind in "iu":

        def place(index: tuple[int, ...]) -> str:
            row, column = SparseSource(stored).cell(index[0])
            return f"in row {first_row + row}, column {column}"

        refuse_rounded(stored.data, "X", place)
    elif stored.dtype not in (np.float32, np.float64):
        with np.errstate(over="ignore"):  # what is too large is refused as infinite
            return stored.astype(np.float64)
    return stored


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
