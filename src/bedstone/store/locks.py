"""Which of several processes on one folder does the work: the one that holds a lock the system frees at its end."""

import fcntl
from pathlib import Path
from typing import IO


class Ownership:
    """A lock on a file; a process that ends, however it ends, no longer holds it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None

    @property
    def is_held(self) -> bool:
        """Whether this process is the owner."""
        return self._file is not None

    def acquire(self) -> bool:
        """Become the owner, unless somebody else is."""
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
        """Let somebody else be the owner."""
        if self._file is not None:
            self._file.close()
            self._file = None
