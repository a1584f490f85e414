"""Files of numbers and text: arrays and a JSON header, in the safetensors format, with a checksum.

Nothing of a file is ever executed, and what it promises is checked before memory is taken for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._data.fingerprint import update_with

_ENVELOPE = "seminmf"
# How files end that are not whole yet.
_PART = ".part"
# In bytes. Names have 255 at most on common file systems, 143 on some, and endings take 23.
_LONGEST_NAME = 100

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
    with written_whole(path) as file:
        file.write(serialise(arrays, metadata=envelope(form, content.header, arrays)))


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

    if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
        raise ValueError("it is no file, but a pipe or a device")
    with open(path, "rb"):  # clearer errors than safetensors has for what is no file
        pass
    try:
        with safe_open(path, framework="numpy") as file:
            header, expected = _opened(file.metadata() or {}, form)
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
    if expected != checksum(header, arrays):
        raise ValueError("its content was changed after it was written")
    return Content(header, arrays)


def envelope(form: str, header: dict[str, Any], arrays: dict[str, NDArray]) -> dict[str, str]:
    """What a file says beside its arrays. One text, for safetensors mixes several up."""
    parts = {"format": form, "checksum": checksum(header, arrays), "header": header}
    return {_ENVELOPE: json.dumps(parts, allow_nan=False)}


def _opened(metadata: dict[str, str], form: str) -> tuple[dict[str, Any], Any]:
    """Header and checksum of a file of this form."""
    text = metadata.get(_ENVELOPE)
    parts = json.loads(text) if text else {}
    found = parts.get("format") if isinstance(parts, dict) else None
    if found != form:
        raise ValueError(f"its format is {found!r}, not {form!r}")
    if not isinstance(parts.get("header"), dict):
        raise ValueError("it has no header")
    return parts["header"], parts.get("checksum")


def checksum(header: dict[str, Any], arrays: dict[str, NDArray]) -> str:
    """A text that changes with any bit of the header and the arrays."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        update_with(digest, arrays[name], name)
    return digest.hexdigest()


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that appears under its name when all of it is on the disk, and else never."""
    if os.path.exists(path) and not os.path.isfile(path):
        # A pipe or a device, which nothing may take the place of.
        with open(path, "wb") as file:
            yield file
        return
    # A link keeps its place, and the file that it points to is replaced.
    target = os.path.realpath(path)
    temporary = name_beside(path, f"{secrets.token_hex(8)}{_PART}")
    try:
        with open(temporary, "xb") as file:
            if os.path.exists(target):
                os.chmod(temporary, os.stat(target).st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _sync_folder(os.path.dirname(target))
    except BaseException as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno and error.filename in (None, temporary):
            error.filename = os.fspath(path)  # the name that users know
        raise


def remove_parts(path: str | os.PathLike[str]) -> None:
    """Remove what is left of writings of this file that were killed; nobody may be writing it."""
    beginning = name_beside(path, "")
    pattern = re.compile(f"{re.escape(beginning)}[0-9a-f]{{16}}{re.escape(_PART)}")
    with os.scandir(os.path.dirname(beginning)) as entries:
        parts = [entry.path for entry in entries if pattern.fullmatch(entry.path)]
    for part in parts:
        os.unlink(part)


def _sync_folder(folder: str) -> None:
    """Let the new name survive a power cut, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def name_beside(path: str | os.PathLike[str], ending: str) -> str:
    """Name of a hidden file beside one, or beside what it links to; never too long for a name."""
    folder, name = os.path.split(os.path.realpath(path))
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return os.path.join(folder, f".{name}.{ending}")
