"""Copies of files from elsewhere, for readers on this machine: named by their content, checked, and limited in size."""

import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from bedstone.permissions import FILE_MODE, make_private_folder
from bedstone.store.digests import hash_file

logger = logging.getLogger(__name__)

MAX_BYTES = 2 * 2**30
TARGET_SHARE = 0.75  # of the limit, which is left when files were deleted
USED_SECONDS = 3600.0  # in which a file stays after it was asked for: a reader has its path
NOTE_SECONDS = 60.0  # between two notes that a file was used
STALE_SECONDS = 24 * 3600.0  # after which a file that is not complete was left by a process that ended
SCRATCH_SECONDS = 7 * 24 * 3600.0  # after which another machine has long done the work
NAME = re.compile(r"[0-9a-f]{64}(\.[a-z0-9]{1,16})?")
SUFFIX = re.compile(r"\.[a-z0-9]{1,16}")
DRAFT = ".tmp"


class BlobCache:
    """A folder with copies; several processes share it. The one used longest ago makes room first."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._checked: dict[str, tuple[int, int, int]] = {}  # what this process has compared with its digest
        self._written: int | None = None  # since the sizes were last known
        self._lock = threading.Lock()

    def scratch(self, key: str) -> Path:
        """Return the path of a file for unfinished work."""
        path = self.folder / "scratch" / key
        make_private_folder(path.parent)
        return path

    def delete_scratch(self, folder: str) -> None:
        """Delete the unfinished work of a folder."""
        shutil.rmtree(self.folder / "scratch" / folder, ignore_errors=True)

    def find(self, name: str, digest: str | None) -> Path | None:
        """Return a copy; None if it is missing, or is not what was stored, for example after a power failure."""
        path = self._path(name)
        try:
            status = path.stat()
            seen = (status.st_ino, status.st_size, status.st_mtime_ns)
            if digest is not None and self._checked.get(name) != seen:
                if hash_file(path) != digest:
                    logger.warning(
                        "The copy %s is damaged; it is fetched again", name, extra={"action": "copy_damaged"}
                    )
                    path.unlink(missing_ok=True)
                    return None
                self._checked[name] = seen
            if time.time() - status.st_atime > NOTE_SECONDS:  # the time of the change stays: readers compare it
                os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))
        except FileNotFoundError:
            return None
        return path

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """Yield the path of a new file; it is deleted unless it was kept."""
        make_private_folder(self.folder)
        path = self.folder / f"{uuid4().hex}{DRAFT}"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE))
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def keep(self, draft: Path, name: str, digest: str | None) -> Path:
        """Keep a complete draft under the name of its content; `digest` is what it was found to have."""
        path = self._path(name)
        make_private_folder(path.parent)
        draft.replace(path)
        status = path.stat()
        if digest is not None:
            self._checked[name] = (status.st_ino, status.st_size, status.st_mtime_ns)
        if self._note_written(status.st_size):
            self._make_room(path)
        return path

    def _path(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a copy")
        return self.folder / name[:2] / name

    def _note_written(self, size: int) -> bool:
        """Return whether it is time to look at the sizes of all files."""
        with self._lock:
            is_due = self._written is None or self._written + size > self._max_bytes / 16
            self._written = 0 if is_due else (self._written or 0) + size
            return is_due

    def _make_room(self, newest: Path) -> None:
        """Delete what was used longest ago; what a reader may still have the path of stays."""
        now = time.time()
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        for used, size, path in files:
            age = now - used
            is_stale_draft = path.suffix == DRAFT and age > STALE_SECONDS
            is_room_needed = total > self._max_bytes * TARGET_SHARE
            if is_stale_draft or (is_room_needed and path.suffix != DRAFT and age > USED_SECONDS and path != newest):
                with suppress(OSError):  # Windows keeps files that are open
                    path.unlink(missing_ok=True)
                    self._checked.pop(path.name, None)
                    total -= size
        for scratch in (self.folder / "scratch").glob("*"):
            with suppress(OSError):
                if now - scratch.stat().st_mtime > SCRATCH_SECONDS:
                    shutil.rmtree(scratch, ignore_errors=True)

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """Yield when each file was last used, its size and its path."""
        for path in self.folder.glob("*"):
            for file in path.glob("*") if path.is_dir() and path.name != "scratch" else [path]:
                with suppress(OSError):
                    status = file.stat()
                    if file.is_file():
                        yield max(status.st_atime, status.st_mtime), status.st_size, file


def name_copy(version: str, key: str) -> str:
    """Return the name of a copy: a digest, and the suffix by which readers know the format if it is a plain one."""
    suffix = Path(key).suffix
    return f"{version}{suffix if SUFFIX.fullmatch(suffix) else ''}"
