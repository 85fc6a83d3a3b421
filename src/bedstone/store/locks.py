"""Locks between processes: a process that ends, however it ends, no longer holds its locks."""

import sys
from pathlib import Path
from typing import IO, Protocol

if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[bytes], *, is_shared: bool, waits: bool) -> None:
        """Lock the first byte; Windows has no shared locks here, so shared holders take turns."""
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _lock(file: IO[bytes], *, is_shared: bool, waits: bool) -> None:
        kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
        fcntl.flock(file, kind if waits else kind | fcntl.LOCK_NB)


class Lock(Protocol):
    """A lock that one process holds at a time."""

    @property
    def is_held(self) -> bool:
        """Return whether this object holds the lock."""

    def acquire(self) -> bool:
        """Take the lock unless another process holds it; return whether it is held now."""

    def release(self) -> None:
        """Let another process take the lock."""


class FileLock:
    """A lock on a file; the operating system frees it when the process ends.

    As a context manager it waits for the lock. Processes can share a shared lock.
    """

    def __init__(self, path: Path, *, is_shared: bool = False) -> None:
        self._path = path
        self._is_shared = is_shared
        self._file: IO[bytes] | None = None

    @property
    def is_held(self) -> bool:
        """Return whether this object holds the lock."""
        return self._file is not None

    def acquire(self) -> bool:
        """Take the lock unless another process holds it; return whether it is held now."""
        return self._take(waits=False)

    def release(self) -> None:
        """Let another process take the lock."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> "FileLock":
        self._take(waits=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _take(self, *, waits: bool) -> bool:
        if self._file is not None:
            return True
        file = self._path.open("wb")
        try:
            _lock(file, is_shared=self._is_shared, waits=waits)
        except OSError:
            file.close()
            return False
        self._file = file
        return True
