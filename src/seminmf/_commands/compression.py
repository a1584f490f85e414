"""Files that are compressed, by their last suffix: read in parts, written whole."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

KINDS = ("gz", "bz2", "xz", "zst")


def compression_of(path: str) -> str | None:
    """How a file is compressed, if it is."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    return suffix if suffix in KINDS else None


def without_suffix(path: str) -> str:
    """The name without the suffix that says how the file is compressed."""
    return path if compression_of(path) is None else str(Path(path).with_suffix(""))


def decompressed(file: IO[bytes], kind: str) -> IO[bytes]:
    """What is in a compressed file, to be read in parts."""
    return _module(kind).open(file, "rb")


def compress(content: bytes, kind: str | None) -> bytes:
    """The same in another form; the same bytes for the same content."""
    if kind is None:
        return content
    options: dict[str, Any] = {"mtime": 0} if kind == "gz" else {}
    return _module(kind).compress(content, **options)


def check_compression(path: str) -> None:
    """Refuse a path, before the work, for which there is no package."""
    kind = compression_of(path)
    if kind is not None:
        _module(kind)


def _module(kind: str) -> Any:
    import bz2
    import gzip
    import lzma

    return {"gz": gzip, "bz2": bz2, "xz": lzma}.get(kind) or _zstandard()


def _zstandard() -> Any:
    """That of Python from 3.14 on, or the package."""
    try:
        from compression import zstd

        return zstd
    except ImportError:
        pass
    try:
        import zstandard

        return zstandard
    except ImportError:
        raise ValueError("Files in .zst need zstandard: pip install zstandard.") from None
