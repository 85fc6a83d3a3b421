"""Pictures of pages on disk, one folder for each document; those that were not used for longest make room."""

import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from bedstone.permissions import FILE_MODE, make_private_folder

logger = logging.getLogger(__name__)

MAX_BYTES = 256 * 2**20
TARGET_SHARE = 0.75  # of the limit, which is left when files were deleted
SCAN_SHARE = 1 / 16  # of the limit: how much this process writes before it looks at the sizes of all files again
USED_SECONDS = 60  # between two notes that a file was used


class PictureCache:
    """Files that can be made again. Several processes share the folder: each may delete what another one wrote."""

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self.folder = folder
        self._max_bytes = max_bytes
        self._written: int | None = None  # since the sizes were last known
        self._lock = threading.Lock()
        self._has_failed = False

    def get(self, document_id: str, name: str) -> bytes | None:
        """Return a file; None if it does not exist, or is empty because the power failed."""
        path = self.folder / document_id / name
        try:
            with path.open("rb") as file:
                age = time.time() - os.fstat(file.fileno()).st_mtime
                data = file.read()
        except OSError:
            return None
        if age > USED_SECONDS:
            with suppress(OSError):
                os.utime(path)
        return data or None

    def put(self, document_id: str, name: str, data: bytes) -> None:
        """Keep a file; on a disk that is full or read-only nothing is kept."""
        try:
            self._write(self.folder / document_id / name, data)
        except OSError as error:
            if not self._has_failed:
                logger.warning("Cannot keep pictures of pages: %s", error.strerror, extra={"action": "not_cached"})
            self._has_failed = True
            return
        if self._note_written(len(data)):
            self._make_room()

    def delete(self, document_id: str) -> None:
        """Delete the files of a document."""
        shutil.rmtree(self.folder / document_id, ignore_errors=True)

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file that appears when it is complete."""
        for attempt in range(2):
            make_private_folder(path.parent)
            draft = path.with_name(f"{uuid4().hex}.tmp")
            try:
                handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
                with os.fdopen(handle, "wb") as target:
                    target.write(data)
                draft.replace(path)
            except FileNotFoundError:  # another process made room, and the folder was empty
                if attempt:
                    raise
            else:
                return
            finally:
                draft.unlink(missing_ok=True)

    def _note_written(self, size: int) -> bool:
        """Return whether it is time to look at the sizes of all files."""
        with self._lock:
            is_due = self._written is None or self._written + size > SCAN_SHARE * self._max_bytes
            self._written = 0 if is_due else (self._written or 0) + size
            return is_due

    def _make_room(self) -> None:
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        if total <= self._max_bytes * (1 - SCAN_SHARE):
            return
        for _, size, path in files:
            if total <= self._max_bytes * TARGET_SHARE:
                break
            Path(path).unlink(missing_ok=True)
            total -= size
        for folder in self._folders():
            with suppress(OSError):  # it has files
                os.rmdir(folder)  # noqa: PTH106 - a path as scandir has it

    def _files(self) -> Iterator[tuple[float, int, str]]:
        """Yield when each file was last used, its size and its path."""
        for folder in self._folders():
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(OSError):
                        status = entry.stat()
                        yield status.st_mtime, status.st_size, entry.path

    def _folders(self) -> list[str]:
        try:
            with os.scandir(self.folder) as entries:
                return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []
