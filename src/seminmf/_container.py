"""Files of numbers and text: arrays and a JSON header, in the safetensors format, with a checksum.

Nothing of a file is ever executed, and what it promises is checked before memory is taken for it.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

# How files end that are not whole yet.
_PART = ".part"

DTYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64}


class Content(NamedTuple):
    """What a file says: the header, and the arrays by name."""

    header: dict[str, Any]
    arrays: dict[str, NDArray]


def write(path: str | os.PathLike[str], form: str, content: Content) -> None:
    """Write a file of this form, whole or not at all."""
    from safetensors.numpy import save as serialise

    # safetensors writes the memory as it lies, so it must lie in C order.
    arrays = {name: np.array(array, order="C") for name, array in content.arrays.items()}
    text = json.dumps(content.header, allow_nan=False)
    metadata = {"format": form, "header": text, "checksum": checksum(text, arrays)}
    with written_whole(path) as file:
        file.write(serialise(arrays, metadata=metadata))


def read(
    path: str | os.PathLike[str], form: str, names: Callable[[dict[str, Any]], set[str] | None]
) -> Content:
    """Content of a file of this form.

    Parameters
    ----------
    path : str or path-like
    form : str
    names : callable
        Gets the header, refuses it with a ValueError if it is none, and returns the names of the
        arrays that such a file may hold; None if they may have any names.

    Raises
    ------
    ValueError
        That says why the file is none of this form.
    """
    from safetensors import SafetensorError, safe_open

    with open(path, "rb"):  # clearer errors than safetensors has for what is no file
        pass
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != form:
                raise ValueError(f"its format is {metadata.get('format')!r}, not {form!r}")
            text = metadata.get("header", "")
            header = _parsed(text)
            known = names(header)
            found = set(file.keys())
            if known is not None and found - known:
                raise ValueError(f"it has an unknown array, {min(found - known)!r}")
            for name in found:
                if (dtype := file.get_slice(name).get_dtype()) not in DTYPES:
                    raise ValueError(f"{name} has the type {dtype}")
            # A copy, to own aligned memory as the arrays of a fit do.
            arrays = {name: np.array(file.get_tensor(name)) for name in found}
    except (SafetensorError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if metadata.get("checksum") != checksum(text, arrays):
        raise ValueError("its content was changed after it was written")
    return Content(header, arrays)


def _parsed(text: str) -> dict[str, Any]:
    header = json.loads(text) if text else None
    if not isinstance(header, dict):
        raise ValueError("it has no header")
    return header


def checksum(header: str, arrays: dict[str, NDArray]) -> str:
    """A text that changes with any bit of the header and the arrays."""
    digest = hashlib.sha256(header.encode())
    for name in sorted(arrays):
        update_with(digest, arrays[name], name)
    return digest.hexdigest()


def update_with(digest: Any, array: NDArray, name: str = "") -> None:
    """Let a digest depend on an array: name, type, shape and values, whatever its layout."""
    digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
    if array.flags.c_contiguous:
        digest.update(array.reshape(-1).view(np.uint8))
        return
    for part in array:  # no copy of all at once
        digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8))


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that appears under its name when all of it is on the disk, and else never."""
    # A link keeps its place, and the file that it points to is replaced.
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        # A pipe or a device, which nothing may take the place of.
        with open(target, "wb") as file:
            yield file
        return
    temporary = f"{_beginning_of_parts(target)}{secrets.token_hex(8)}{_PART}"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno and error.filename in (None, temporary):
            error.filename = os.fspath(path)  # the name that users know
        raise


def remove_parts(path: str | os.PathLike[str]) -> None:
    """Remove what is left of writings of this file that were killed."""
    beginning = _beginning_of_parts(os.path.realpath(path))
    for part in glob.glob(f"{glob.escape(beginning)}*{_PART}", include_hidden=True):
        os.unlink(part)


def _beginning_of_parts(target: str) -> str:
    folder, name = os.path.split(target)
    return os.path.join(folder, f".{name}.")
