"""The bytes of files and streams, with bounds: what is read may come from anywhere, without end."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from io import BytesIO
from typing import IO

from .._data.memory import available_memory
from .compression import compression_of, decompressed

STANDARD = "-"
# How files begin, by format. Text has no such mark.
_MARKS = {"npy": b"\x93NUMPY", "npz": b"PK", "parquet": b"PAR1"}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
# A longer line is none.
_LONGEST_LINE = 1 << 26
# Seconds until a pipe must have a writer.
_PATIENCE = 5.0


def opened(path: str, kind: str) -> IO[bytes]:
    """A file of this format, to be read at any place; streams are in memory, as a whole.

    Parameters
    ----------
    path : str
        "-" is standard input.
    kind : str
        A format. What is none of it from its beginning on is refused there.
    """
    if _is_file(path):
        return open(path, "rb")
    return BytesIO(_content(_marked(_chunks(path), _MARKS[kind])))


def _content(chunks: Iterator[bytes]) -> bytes:
    """A stream as a whole."""
    return b"".join(_bounded(chunks, kept=True))


def _bounded(chunks: Iterator[bytes], *, kept: bool) -> Iterator[bytes]:
    """The same, unless there is not the memory to read them, and to keep them as they are."""
    available, needed = available_memory(), 0
    for part in chunks:
        needed += _memory_of(part) + (2 * len(part) if kept else 0)
        if needed > available:
            raise ValueError(f"it needs more than the {available / 1e9:.1f} GB of memory there are")
        yield part


def _memory_of(part: bytes) -> int:
    """Bytes that the cells take that a parser makes of a text: three words for each."""
    return 24 * sum(part.count(end) for end in (b",", b"\t", b"\n"))


def _is_file(path: str) -> bool:
    """Whether a path is of a file that can be read as it is, at any place."""
    return path != STANDARD and os.path.isfile(path) and compression_of(path) is None


class Text:
    """A text that is read more than once: a file where it is, others from memory.

    Parameters
    ----------
    path : str
        "-" is standard input. What is no text is refused.
    """

    def __init__(self, path: str) -> None:
        self._path = path if _is_file(path) else None
        self._version = self._content = None
        if self._path is None:
            self._content = _content(_checked_text(_chunks(path)))
            return
        with open(self._path, "rb") as file:
            self._version = _version_of(file)
            for _ in _bounded(_checked_text(_parts(file)), kept=False):
                pass

    def open(self) -> IO[bytes]:
        """The text from its beginning on, without the mark of its encoding."""
        file: IO[bytes]
        if self._path is None:
            file = BytesIO(self._content or b"")
        else:
            file = open(self._path, "rb")  # noqa: SIM115
            if _version_of(file) != self._version:
                file.close()
                raise ValueError(f"{self._path} has changed while it was read.")
        if file.read(len(_BYTE_ORDER_MARK)) != _BYTE_ORDER_MARK:
            file.seek(0)
        return file


def _version_of(file: IO[bytes]) -> tuple[int, int, int, int]:
    """What is another once a file has changed, or is another one."""
    found = os.fstat(file.fileno())
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _chunks(path: str) -> Iterator[bytes]:
    if path == STANDARD:
        yield from _parts(sys.stdin.buffer)
    elif stat.S_ISFIFO(os.stat(path).st_mode):
        # Opened so that nothing is waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            first = _first_of_pipe(descriptor)
            os.set_blocking(descriptor, True)
            yield first + file.read(_CHUNK)  # longer than the mark of any format
            yield from _parts(file)
    elif (kind := compression_of(path)) is not None:
        with open(path, "rb") as file, decompressed(file, kind) as content:
            yield from _parts(content)
    else:
        with open(path, "rb") as file:
            yield from _parts(file)


def _parts(file: IO[bytes]) -> Iterator[bytes]:
    return iter(lambda: file.read(_CHUNK), b"")


def _first_of_pipe(descriptor: int) -> bytes:
    """What a pipe has by now, if it has a writer; without one it would be waited for forever."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            if first := os.read(descriptor, _CHUNK):
                return first
        except BlockingIOError:  # there is a writer, who has not written yet
            return b""
        time.sleep(0.02)
    raise ValueError("it is a pipe that nobody writes to")


def _marked(chunks: Iterator[bytes], mark: bytes) -> Iterator[bytes]:
    """The same, unless they begin otherwise."""
    first = next(chunks, b"")
    if not first.startswith(mark):
        raise ValueError("it does not begin as such files do")
    yield first
    yield from chunks


def _checked_text(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The same, unless it is no text, or a line of it does not end."""
    length = 0
    for part in chunks:
        if b"\0" in part:
            raise ValueError("it is not in UTF-8, for it has zero bytes")
        end = max(part.rfind(b"\n"), part.rfind(b"\r"))
        length = len(part) - end - 1 if end >= 0 else length + len(part)
        if length > _LONGEST_LINE:
            raise ValueError(f"it has a line of more than {_LONGEST_LINE >> 20} MB")
        yield part
