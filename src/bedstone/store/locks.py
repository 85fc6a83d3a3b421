"""Locks between processes: a process that ends, however it ends, no longer holds its locks."""

import fcntl
from pathlib import Path
from typing import IO, Protocol


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
    """A lock on a file; the operating system frees it when the process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    @property
    def is_held(self) -> bool:
        """Return whether this object holds the lock."""
        return self._file is not None

    def acquire(self) -> bool:
        """Take the lock unless another process holds it; return whether it is held now."""
        if self._file is not None:
            return True
        file = self._path.open("wb")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            return False
        self._file = file
        return True

    def release(self) -> None:
        """Let another process take the lock."""
        if self._file is not None:
            self._file.close()
            self._file = None
