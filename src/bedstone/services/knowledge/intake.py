"""Which files may be added: each is opened once, and what was opened is checked and copied."""

import errno
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from bedstone.errors import BedstoneError, Unavailable
from bedstone.ingest.detection import detect, format_of
from bedstone.ingest.page_images import count_page_images
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.errors import FileNotFound, FileTooLarge, PathNotAllowed, unsupported_format
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.places import Places
from bedstone.services.knowledge.records import AddFile, FileDocument
from bedstone.services.knowledge.versions import Versions, needs_ocr
from bedstone.store.engine import Store

MEGABYTE = 2**20
TICK_SECONDS = 1e-4  # between two versions of a file, even if the clock was set back
NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO, errno.EINVAL})


@dataclass(frozen=True)
class AcceptedFile:
    """A file that was copied; `duplicate` is a completed document with the same content."""

    file: AddFile
    duplicate: FileDocument | None = None


class Intake:
    """Checks and copies files."""

    def __init__(
        self,
        store: Store,
        storage: FileStorage,
        collections: Collections,
        places: Places,
        versions: Versions,
        *,
        max_file_size_mb: int,
    ) -> None:
        self._store = store
        self._storage = storage
        self._collections = collections
        self._places = places
        self._versions = versions
        self._max_mb = max_file_size_mb

    def accept(
        self,
        path: Path,
        metadata: Mapping[str, Any],
        *,
        force_ocr: bool = False,
        collections: Sequence[str] = (),
        is_upload: bool = False,
    ) -> AcceptedFile:
        """Check a file and copy it; the copy of a duplicate is deleted again."""
        names = self._collections.check(collections)
        filename = storable(path.name)
        if format_of(filename) is None:
            self._check_folder(path)
            raise unsupported_format(storable(path.suffix or path.name))
        with self._open(path, is_upload=is_upload) as file:
            source = "" if is_upload else _identifier(_real_path(file.fileno(), path))  # first: it may be replaced
            stored = self._storage.import_file(file, filename, self._check_size)
        with self._storage.deleting_on_error(stored.document_id):
            found = detect(stored.path, filename)
            if found is None:
                raise unsupported_format(path.suffix)
            facts = (stored.document_id, filename, source, found, stored.size_bytes, stored.digest)
            page_images = count_page_images(stored.path) if found == "pdf" else 0
            accepted = AddFile(*facts, metadata, force_ocr, names, page_images, self._next_version(source))
            duplicate = self._find_duplicate(stored.digest, force_ocr=force_ocr)
            if duplicate is None:
                self._storage.save_file(replace(accepted, added_at=time.time()))
        if duplicate is not None:
            self._storage.delete(stored.document_id)
        return AcceptedFile(accepted, duplicate)

    def _next_version(self, source: str) -> float:
        return max([time.time(), *(item.version + TICK_SECONDS for item in self._versions.at(source))])

    def _find_duplicate(self, digest: str, *, force_ocr: bool) -> FileDocument | None:
        """Return a completed document with the same content; one in process may fail, so the task waits for it."""
        same = self._store.find_by_digest(digest)
        document = FileDocument.from_stored(same) if same is not None else None
        if document is None or document.status != "completed" or (force_ocr and needs_ocr(document)):
            return None
        return document

    def _check_folder(self, path: Path) -> None:
        """Raise if a path without a suffix is a folder; a folder elsewhere is not told from a file."""
        with suppress(PathNotAllowed, ValueError):
            resolved = Path(os.path.realpath(path))
            self._places.check(resolved, storable(str(path)))
            if resolved.is_dir():
                raise _not_a_file(storable(str(path)), is_folder=True)

    @contextmanager
    def _open(self, path: Path, *, is_upload: bool) -> Iterator[IO[bytes]]:
        """Open a file that may be read; errors tell nothing about files elsewhere."""
        shown = storable(str(path))
        try:
            resolved = Path(os.path.realpath(path))
            self._places.check(resolved, shown, is_upload=is_upload)
            handle = os.open(resolved, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
        except (OSError, ValueError) as error:
            raise _cannot_open(shown, error) from None
        try:
            self._places.check(Path(_real_path(handle, resolved)), shown, is_upload=is_upload)
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise _not_a_file(shown, is_folder=stat.S_ISDIR(status.st_mode))
            self._check_size(status.st_size)
            with os.fdopen(handle, "rb", closefd=False) as file:
                yield file
        finally:
            os.close(handle)

    def _check_size(self, size: int) -> None:
        if size > self._max_mb * MEGABYTE:
            raise FileTooLarge(
                f"File size ({-(-size // MEGABYTE)} MB) exceeds maximum allowed size ({self._max_mb} MB)",
                max_size_mb=self._max_mb,
            )


def storable(name: str) -> str:
    """Return a name that can be stored and shown, even if the file system has bytes that are not UTF-8."""
    return os.fsencode(name).decode("utf-8", "replace") if not name.isascii() else name


def _identifier(path: str) -> str:
    """Return a path as text; different paths stay different, even with bytes that are not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace") if not path.isascii() else path


def _real_path(handle: int, path: Path) -> str:
    """Return the path of an open file, as the system knows it."""
    with suppress(OSError):
        return str(Path(f"/proc/self/fd/{handle}").readlink())
    return os.path.realpath(path)


def _not_a_file(shown: str, *, is_folder: bool) -> FileNotFound:
    message = f"Not a file: {shown}"
    if is_folder:
        message = f"{shown} is a folder. Add its files one by one, or run: bedstone knowledge add {shown}"
    return FileNotFound(message, file_path=shown)


def _cannot_open(shown: str, error: OSError | ValueError) -> BedstoneError:
    """Return the error for a file that does not exist, that the server may not read, or that cannot be read now."""
    reason = error.strerror if isinstance(error, OSError) else None
    if isinstance(error, PermissionError):
        message = f"{shown} cannot be read: {reason}. Let the user that runs the server read it."
        return PathNotAllowed(message, file_path=shown)
    if isinstance(error, OSError) and error.errno not in NOT_THERE:
        return Unavailable(f"{shown} cannot be read now: {reason}.", file_path=shown)
    return FileNotFound(f"File not found: {shown}" + (f" ({reason})" if reason else ""), file_path=shown)
