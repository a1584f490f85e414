"""What users hand in, as NumPy arrays that say what was meant.

A mask is a gap, and so is the missing value of any library. Dates are refused, and integers that
float64 cannot hold: they would be read as other numbers.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from .source import float_type

# Up to this size float64 holds all integers.
_EXACT_BITS = 53
_EXACT = 2**_EXACT_BITS
_DATES = (np.datetime64, np.timedelta64, datetime.date, datetime.timedelta)

Place = Callable[[tuple[int, ...]], str]


def as_meant(X: Any, name: str = "X") -> Any:
    """Tables, tensors, lists and arrays as plain arrays; anything else as it is."""
    if library_of(X) == "torch":
        return as_numbers_only(_from_torch(X, name), name)
    if library_of(X) == "polars":
        return _from_polars(X, name)
    if library_of(X) == "pyarrow" and hasattr(X, "to_pandas"):
        return _from_pandas(X.to_pandas(types_mapper=integers_with_gaps().get), name)
    if is_pandas(X):
        return _from_pandas(X, name)
    if is_xarray(X):
        X = X.data
    if isinstance(X, (list, tuple)):
        X = _from_rows(X, name)
    return as_numbers_only(X, name) if isinstance(X, np.ndarray) else X


def library_of(X: Any) -> str:
    """The name of the package that X is from."""
    return type(X).__module__.partition(".")[0]


def is_pandas(X: Any) -> bool:
    """Whether X is a DataFrame of pandas, or like one."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def is_xarray(X: Any) -> bool:
    """Whether X is a DataArray of xarray."""
    return library_of(X) == "xarray" and hasattr(X, "dims") and hasattr(X, "data")


def named(X: Any) -> Any:
    """X, or an empty DataFrame with the names of its features where scikit-learn sees none."""
    if not is_xarray(X) or X.ndim != 2 or X.dims[1] not in X.coords:
        return X
    import pandas as pd

    names = X.coords[X.dims[1]].values
    return pd.DataFrame(columns=names) if names.dtype.kind in "UOS" else X


def integers_with_gaps() -> dict[Any, Any]:
    """Types of pandas for Arrow's integers, which else are floats beside gaps, and not exact."""
    import pandas as pd
    import pyarrow as pa

    return {
        getattr(pa, f"{sign}int{bits}")(): getattr(pd, f"{sign.upper()}Int{bits}Dtype")()
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    }


def within(first_row: int = 0, first_column: int = 0) -> Place:
    """Says where a cell is, in X, that is at an index of a part of it."""

    def place(index: tuple[int, ...]) -> str:
        if len(index) != 2:
            return f"at index {', '.join(map(str, index))}"
        return f"in row {first_row + index[0]}, column {first_column + index[1]}"

    return place


_IN_X = within()


def as_numbers_only(array: NDArray, name: str = "X", place: Place = _IN_X) -> NDArray:
    """The array with NaN for what it masks; refuses dates, and integers that would be rounded."""
    masked = isinstance(array, np.ma.MaskedArray)
    kind = array.dtype.kind
    if kind in "mM":
        _refuse_dates(name, f"an array of {array.dtype}")
    if kind in "iu":
        refuse_rounded(np.ma.filled(array, 0) if masked else array, name, place)
    if masked:
        array = array if kind in "fcO" else array.astype(np.float64)
        array = np.ma.filled(array, np.nan)
    return _from_objects(array, name, place) if kind == "O" else array


def refuse_rounded(array: NDArray, name: str, place: Place) -> None:
    """Refuse integers that float64 cannot hold."""
    if array.dtype.itemsize < 8 or array.size == 0:
        return
    if int(array.min()) >= -_EXACT and int(array.max()) <= _EXACT:
        return
    sizes = np.abs(array).astype(np.uint64)  # also right for the smallest, whose size is no int64
    lowest_bit = sizes & (~sizes + np.uint64(1))
    wrong = (sizes >> np.uint64(_EXACT_BITS) >= lowest_bit) & (sizes > 0)
    if wrong.any():
        index = tuple(np.argwhere(wrong)[0].tolist())
        _refuse_integer(name, array[index], place(index))


def _from_objects(array: NDArray, name: str, place: Place) -> NDArray:
    """Objects with NaN for missing values; refuses dates, and integers that would be rounded."""
    types = set(map(type, array.flat))
    if any(issubclass(each, _DATES) for each in types):
        index = _first(array, lambda value: isinstance(value, _DATES))
        _refuse_dates(name, f"{array[index]} {place(index)}")
    if any(issubclass(each, (int, np.integer)) for each in types):
        index = _first(array, _is_rounded)
        if index:
            _refuse_integer(name, array[index], place(index))
    missing = tuple(each for each in types if each.__name__ in ("NAType", "MaskedConstant"))
    if missing:
        array = array.copy()
        array[_where(array, lambda value: isinstance(value, missing))] = np.nan
    return array


def _where(array: NDArray, test: Callable[[Any], bool]) -> NDArray:
    return np.frompyfunc(test, 1, 1)(array).astype(bool)


def _first(array: NDArray, test: Callable[[Any], bool]) -> tuple[int, ...]:
    """Where the first object is that passes a test; empty if there is none."""
    found = np.argwhere(_where(array, test))
    return tuple(found[0].tolist()) if len(found) else ()


def _is_rounded(value: Any) -> bool:
    if not isinstance(value, (int, np.integer)):
        return False
    try:
        return int(float(value)) != int(value)
    except OverflowError:
        return True


def _from_rows(rows: list | tuple, name: str) -> Any:
    """A list of rows, which may be tensors or masked arrays."""
    rows = [_from_torch(row, name) if library_of(row) == "torch" else row for row in rows]
    try:
        masked = any(isinstance(row, np.ma.MaskedArray) for row in rows)
        array = np.ma.array(rows) if masked else np.asarray(rows)
    except ValueError:  # rows of several lengths
        return rows
    if array.dtype.kind == "f" and (np.abs(array) >= _EXACT).any():
        # Integers among other numbers, which are rounded already.
        _from_objects(np.asarray(rows, dtype=object), name, _IN_X)
    return array


def _from_torch(tensor: Any, name: str) -> NDArray:
    """A tensor of any type and device, with or without a gradient."""
    if str(tensor.layout) != "torch.strided":
        raise TypeError(
            f"{name} must be dense if it is a tensor; found {tensor.layout}, of which `to_dense()` "
            "makes one."
        )
    try:
        return tensor.numpy(force=True)
    except TypeError:  # a type that NumPy does not have
        return tensor.double().numpy(force=True)


def _from_pandas(frame: Any, name: str) -> NDArray:
    """A DataFrame, with NaN where a column of any type has a gap."""
    types = list(frame.dtypes)
    for label, dtype in zip(frame.columns, types, strict=True):
        if dtype.kind in "mM":
            _refuse_dates(name, f"{dtype} in column {label!r}")
    if len(set(types)) <= 1 and all(isinstance(dtype, np.dtype) for dtype in types):
        return as_numbers_only(frame.to_numpy(), name)
    return _joined(
        _from_series(column, name, within(0, n)) for n, (_, column) in enumerate(frame.items())
    )


def _from_series(column: Any, name: str, place: Place) -> NDArray:
    """A column of a DataFrame, as an array of that one column."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) or hasattr(column, "sparse"):
        values = np.asarray(column, dtype=getattr(dtype, "subtype", dtype))
        return as_numbers_only(_upright(values), name, place)
    if dtype.kind not in "biuf":
        return as_numbers_only(_upright(column.to_numpy(dtype=object)), name, place)
    if dtype.kind in "iu":
        refuse_rounded(_upright(column.fillna(0).to_numpy(dtype=dtype.numpy_dtype)), name, place)
    return _upright(column.to_numpy(dtype=float_type(dtype.numpy_dtype), na_value=np.nan))


def _from_polars(frame: Any, name: str) -> NDArray:
    """A DataFrame of polars, with NaN for null."""
    if type(frame).__name__ == "LazyFrame":
        raise TypeError(
            f"{name} must be a DataFrame; found a LazyFrame, of which `collect()` makes one."
        )
    if not hasattr(frame, "get_columns"):
        return as_numbers_only(frame.to_numpy(), name)
    columns = frame.get_columns()
    for n, column in enumerate(columns):
        if column.dtype.is_temporal():
            _refuse_dates(name, f"{column.dtype} in column {column.name!r}")
        if column.dtype.is_integer() and column.null_count():
            refuse_rounded(_upright(column.fill_null(0).to_numpy()), name, within(0, n))
    return _joined(
        as_numbers_only(_upright(column.to_numpy()), name, within(0, n))
        for n, column in enumerate(columns)
    )


def _upright(values: NDArray) -> NDArray:
    return values.reshape(-1, 1)


def _joined(columns: Iterator[NDArray]) -> NDArray:
    """Columns as one array: of numbers if all are, or of objects."""
    arrays = list(columns)
    dtype = np.result_type(*{values.dtype for values in arrays})
    if dtype.kind in "biuf":
        dtype = float_type(dtype)
    joined = np.empty((len(arrays[0]), len(arrays)), dtype=dtype)
    for n, values in enumerate(arrays):
        joined[:, n : n + 1] = values
    return joined


def _refuse_dates(name: str, found: str) -> NoReturn:
    raise ValueError(
        f"{name} must hold numbers, with NaN for gaps; found dates or spans of time ({found})."
    )


def _refuse_integer(name: str, value: Any, place: str) -> NoReturn:
    n_bits = int(value).bit_length()
    found = f"an integer of {n_bits} bits" if n_bits > 64 else str(value)
    raise ValueError(
        f"{name} must hold numbers that float64 can hold, as it does all integers within "
        f"±2^{_EXACT_BITS}; found {found} {place}."
    )
