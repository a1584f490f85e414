"""Tables in files: CSV, TSV, Parquet, NPY and NPZ, by suffix, or on standard input and output.

Files may come from anywhere: nothing in them is executed, and an array is believed to be as large
as it says only if the file is.
"""

from __future__ import annotations

import csv
import errno
import lzma
import math
import os
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .._data.memory import available_memory
from .._data.reading import integers_with_gaps
from .._estimators.container import written_whole
from .._estimators.notices import warn_user
from . import compression
from .compression import check_compression, compression_of, without_suffix
from .dialect import UNKNOWN, Dialect, detect
from .inputs import STANDARD as STANDARD
from .inputs import Text, opened
from .options import Format
from .text import ALL_FEATURES, Found, Roles, check_names, is_number, read_text

if TYPE_CHECKING:
    import pandas as pd

SEPARATORS = {"csv": ",", "tsv": "\t"}
FORMATS = tuple(kind.value for kind in Format)
# What readers raise for a file that is broken: NumPy, pandas and Python's zip.
_BROKEN = (
    ValueError,
    KeyError,
    TypeError,
    EOFError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    csv.Error,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
)
# Kinds of types that are numbers.
_NUMBERS = "biuf"
# Members of a file that scipy.sparse.save_npz wrote.
_SPARSE = {"format", "shape", "data"}


def format_of(path: str) -> str:
    """The format that the suffix says; CSV on standard input and output."""
    suffix = Path(without_suffix(path)).suffix.lower().removeprefix(".")
    if path == STANDARD:
        return "csv"
    if suffix not in FORMATS:
        known = ", ".join(f".{known}" for known in FORMATS)
        more = ", ".join(f".{kind}" for kind in compression.KINDS)
        raise ValueError(f"{path} must end in one of {known}, and may then have one of {more}.")
    return suffix


# --- reading ------------------------------------------------------------------------------------


def read(
    path: str,
    given: str | None = None,
    *,
    missing: Sequence[str] = (),
    header: bool | None = None,
    zeros: str | None = None,
    roles: Roles = ALL_FEATURES,
    dialect: Dialect = UNKNOWN,
) -> Found:
    """The table in a file.

    Parameters
    ----------
    path : str
        "-" is standard input.
    given : str or None
        Its format; None goes by the suffix.
    missing : sequence of str
        What stands for a gap, besides the usual; numbers also in files that have no text.
    header : bool or None
        Whether the first line of text has the names. None takes it so, unless it is all numbers.
    zeros : {"observed", "missing"} or None
        What the cells are that a sparse matrix does not store.
    roles : Roles
        Which columns are features; the others are read as the text that they are.
    dialect : Dialect
        What is known of how text is written.
    """
    kind = given or format_of(path)
    name = "standard input" if path == STANDARD else path
    try:
        if kind in SEPARATORS:
            text = Text(path)
            found_dialect = detect(text, dialect, SEPARATORS[kind])
            if found_dialect.says_more_than(dialect, SEPARATORS[kind]):
                warn_user(f"{name} is read with {found_dialect}.")
            return read_text(text, found_dialect, missing, header, roles)
        with opened(path, kind) as file:
            found = _READERS[kind](file, zeros)
            if isinstance(found, np.ndarray):
                return Found(_with_gaps(_numbered(found), missing, roles.of_numbered()), False)
            return Found(_with_gaps(found, missing, roles), True)
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is no table in {kind.upper()}: it is not in UTF-8.") from error
    except _BROKEN as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{name} is no table in {kind.upper()}: {reason}.") from error


def _numbered(array: NDArray) -> pd.DataFrame:
    import pandas as pd

    if array.ndim != 2:
        raise ValueError(f"it has {array.ndim} axes, and a table has 2")
    return pd.DataFrame(array)


def _read_parquet(file: IO[bytes], zeros: str | None) -> pd.DataFrame:
    _need_parquet()
    from pyarrow.lib import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        content = ParquetFile(file)
        check_names(content.schema_arrow.names)
        _check_memory(8 * content.metadata.num_rows * content.metadata.num_columns)
        frame = content.read().to_pandas(types_mapper=integers_with_gaps().get)
    except ArrowException as error:
        raise ValueError(str(error)) from error
    named = [name for name in frame.index.names if name is not None]
    return frame.reset_index(level=named) if named else frame


def _need_parquet() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise ValueError('Parquet needs pyarrow: pip install "seminmf[parquet]"') from None


def _read_npy(file: IO[bytes], zeros: str | None) -> NDArray:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return _read_array(file, size)


def _read_npz(file: IO[bytes], zeros: str | None) -> NDArray:
    with zipfile.ZipFile(file) as archive:
        members = {name.removesuffix(".npy"): name for name in archive.namelist()}
        if members.keys() >= _SPARSE:
            return _read_sparse(archive, members, zeros)
        if len(members) != 1:
            raise ValueError(f"it has {len(members)} arrays, not one: {', '.join(members)}")
        return _read_member(archive, *members.values())


def _read_sparse(archive: zipfile.ZipFile, members: dict[str, str], zeros: str | None) -> NDArray:
    from scipy import sparse

    if zeros is None:
        raise ValueError(
            "it is sparse, so say by --zeros whether the cells that it does not store are 0 "
            '("observed") or unknown ("missing")'
        )
    parts = {
        name: _read_member(archive, member, "SU" if name == "format" else _NUMBERS)
        for name, member in members.items()
    }
    kind = parts["format"].item()
    kind = kind.decode() if isinstance(kind, bytes) else kind
    shape = tuple(int(size) for size in parts["shape"])
    if len(shape) != 2 or min(shape) < 0:
        raise ValueError(f"its shape is {shape}")
    _check_memory(8 * math.prod(shape))
    if kind == "coo":
        matrix = sparse.coo_array((parts["data"], (parts["row"], parts["col"])), shape=shape)
    elif kind in ("csr", "csc"):
        build = {"csr": sparse.csr_array, "csc": sparse.csc_array}[kind]
        matrix = build((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
        matrix.check_format(full_check=True)
        matrix = matrix.tocoo()
    else:
        raise ValueError(f"its kind of sparse matrix is {kind!r}, not csr, csc or coo")
    matrix.sum_duplicates()
    if zeros == "observed":
        return matrix.toarray().astype(np.float64)
    table = np.full(shape, np.nan)
    table[matrix.row, matrix.col] = matrix.data
    return table


def _read_member(archive: zipfile.ZipFile, name: str, kinds: str = _NUMBERS) -> NDArray:
    with archive.open(name) as file:
        return _read_array(file, archive.getinfo(name).file_size, kinds)


def _read_array(file: IO[bytes], size: int, kinds: str = _NUMBERS) -> NDArray:
    """An array in NumPy's format from a file of this size, which must hold all of it."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"its version of the format is {version}")
    reader = np.lib.format.read_array_header_1_0
    reader = np.lib.format.read_array_header_2_0 if version == (2, 0) else reader
    shape, by_columns, dtype = reader(file)
    if dtype.kind not in kinds:
        raise ValueError(f"it holds no numbers, but {dtype}")
    if 0 in shape:
        raise ValueError(f"it has no cells, but the shape {shape}")
    needed = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or needed > size - file.tell():
        raise ValueError(f"it promises an array of shape {shape}, and is too short for it")
    _check_memory(needed)
    values = np.frombuffer(file.read(needed), dtype=dtype)
    return values.reshape(shape[::-1]).T if by_columns else values.reshape(shape)


def _check_memory(n_bytes: int) -> None:
    """Refuse what the memory here could not hold, before it is tried."""
    available = available_memory()
    if n_bytes > available:
        raise ValueError(f"it needs {n_bytes / 1e9:.1f} GB, and there are {available / 1e9:.1f} GB")


_READERS = {"parquet": _read_parquet, "npy": _read_npy, "npz": _read_npz}


def _with_gaps(table: pd.DataFrame, missing: Sequence[str], roles: Roles) -> pd.DataFrame:
    """The table with a gap for what stands for one in its features."""
    marks = [*missing, *(float(mark) for mark in missing if is_number(mark))]
    if not marks:
        return table
    table = table.copy()
    for place, name in enumerate(table.columns):
        column = table.iloc[:, place]
        gaps = column.isin(marks)
        if roles.is_feature(name) and gaps.any():
            # Integers stay integers beside gaps.
            column = column.convert_dtypes() if column.dtype.kind in "iu" else column
            table.isetitem(place, column.mask(gaps))
    return table


# --- writing ------------------------------------------------------------------------------------


def check_tables(outputs: Sequence[str | None], inputs: Sequence[str], as_json: bool) -> None:
    """Refuse tables, before the work, that cannot be written as and where they are wanted."""
    if as_json and STANDARD in outputs:
        raise ValueError("--json and the table cannot both go to standard output; give -o a file.")
    for path in outputs:
        if path is not None:
            format_of(path)
            check_compression(path)
    check_places(outputs, inputs)


def check_places(outputs: Sequence[str | None], inputs: Sequence[str | None] = ()) -> None:
    """Refuse, before the work, places where nothing can be written, or something would be lost."""
    read = {os.path.realpath(path) for path in inputs if path not in (None, STANDARD)}
    taken: set[str] = set()
    for path in outputs:
        if path is None:
            continue
        place = path if path == STANDARD else os.path.realpath(path)
        if place in read:
            raise ValueError(f"{path} is read by this command, and cannot be its output as well.")
        if place in taken:
            name = "Standard output" if path == STANDARD else path
            raise ValueError(f"{name} cannot be two outputs at a time.")
        taken.add(place)
        if path != STANDARD:
            _check_folder(path)


def _check_folder(path: str) -> None:
    folder = os.path.dirname(os.path.realpath(path))
    with suppress(FileNotFoundError):
        os.lstat(path)  # a name that is too long, for instance
    if os.path.isdir(path):
        raise ValueError(f"{path} cannot be written: it is a folder.")
    if not os.path.isdir(folder):
        raise ValueError(f"{path} cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def has_numbers_only(path: str) -> bool:
    """Whether the format has no place for text and names."""
    return format_of(path) in ("npy", "npz")


def is_text(path: str) -> bool:
    """Whether the format is text, in which a column may have cells of any kind."""
    return format_of(path) in SEPARATORS


def write(path: str, table: pd.DataFrame | NDArray) -> None:
    """Write a table to a file, whole or not at all, or to standard output."""
    kind = format_of(path)
    content = _WRITERS[kind](table) if kind in _WRITERS else _as_text(table, kind)
    write_bytes(path, compression.compress(content, compression_of(path)))


def write_bytes(path: str, content: bytes) -> None:
    """Write a file, whole or not at all, or to standard output."""
    if path == STANDARD:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    with written_whole(path) as file:
        file.write(content)


def _as_text(table: pd.DataFrame | NDArray, kind: str) -> bytes:
    import pandas as pd

    named = isinstance(table, pd.DataFrame)
    text = pd.DataFrame(table).to_csv(sep=SEPARATORS[kind], index=False, header=named)
    return text.encode()


def _as_parquet(table: pd.DataFrame | NDArray) -> bytes:
    _need_parquet()
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        table = pd.DataFrame(table, columns=[f"column_{i}" for i in range(table.shape[1])])
    buffer = BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _as_npy(table: pd.DataFrame | NDArray) -> bytes:
    buffer = BytesIO()
    np.save(buffer, _numbers(table), allow_pickle=False)
    return buffer.getvalue()


def _as_npz(table: pd.DataFrame | NDArray) -> bytes:
    buffer = BytesIO()
    np.savez_compressed(buffer, data=_numbers(table))
    return buffer.getvalue()


def _numbers(table: pd.DataFrame | NDArray) -> NDArray:
    """The numbers alone: these formats have no place for names."""
    if isinstance(table, np.ndarray):
        return table
    return table.select_dtypes("number").to_numpy()


_WRITERS = {"parquet": _as_parquet, "npy": _as_npy, "npz": _as_npz}
