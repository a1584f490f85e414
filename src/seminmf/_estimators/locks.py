"""Locks: one at a time works on a file, whoever started it."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

from .container import name_beside

# What is said where nothing can be written.
_READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
# What is said of a lock that another has.
_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _let_go(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _let_go(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


class FileLock:
    """A lock on a file, there or not, that ends with the process at the latest.

    It is a lock of the system on a file beside: the file itself is another one each time that it is
    written. Who has the lock removes that file at the end; what a killed process left is used
    again.

    Parameters
    ----------
    path : str or path-like

    Attributes
    ----------
    held : bool
        Whether it is taken. Where nothing can be written, or the system has no locks, it never is.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._beside = name_beside(path, "lock")
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether it is taken."""
        return self._descriptor is not None

    def acquire(self) -> bool:
        """Take the lock if it is free; False if another has it."""
        while True:
            try:
                descriptor = os.open(self._beside, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                if error.errno in _READ_ONLY:
                    return True  # then nothing can be lost either, and writing says why
                error.filename = self._path  # the name that users know
                raise
            try:
                _take(descriptor)
            except OSError as error:
                os.close(descriptor)
                if error.errno in _TAKEN:
                    return False
                self._remove()
                return True  # file systems without locks: as well as it can be done there
            if self._is_beside(descriptor):
                self._descriptor = descriptor
                return True
            os.close(descriptor)  # its last owner has removed it meanwhile

    def release(self) -> None:
        """Let it go, if it is taken."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        if sys.platform != "win32":
            self._remove()  # as long as nobody else can have it
        _let_go(descriptor)  # for processes as well that were forked off
        os.close(descriptor)
        if sys.platform == "win32":
            self._remove()  # which fails if another has it open

    def _is_beside(self, descriptor: int) -> bool:
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(descriptor), os.stat(self._beside))
        return False

    def _remove(self) -> None:
        with suppress(OSError):
            os.unlink(self._beside)
