"""Which files may be added: each is opened once, and what was opened is checked and copied."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bedstone.ingest.detection import detect, format_of
from bedstone.ingest.page_images import count_page_images
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.errors import FileNotFound, FileTooLarge, PathNotAllowed, unsupported_format
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.records import AddFile, FileDocument
from bedstone.store.engine import Store

MEGABYTE = 2**20


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
        *,
        allowed_roots: Sequence[Path],
        max_file_size_mb: int,
    ) -> None:
        self._store = store
        self._storage = storage
        self._collections = collections
        self._roots = [Path(os.path.realpath(root)) for root in allowed_roots]
        self._max_mb = max_file_size_mb

    def accept(
        self, path: Path, metadata: Mapping[str, Any], *, force_ocr: bool = False, collections: Sequence[str] = ()
    ) -> AcceptedFile:
        """Check a file and copy it; the copy of a duplicate is deleted again."""
        names = self._collections.check(collections)
        filename = storable(path.name)
        if format_of(filename) is None:
            raise unsupported_format(storable(path.suffix or path.name))
        with self._open(path) as file:
            stored = self._storage.import_file(file, filename, self._check_size)
            source = storable(_real_path(file, path))
        found = detect(stored.path, filename)
        if found is None:
            self._storage.delete(stored.document_id)
            raise unsupported_format(path.suffix)
        facts = (stored.document_id, filename, source, found, stored.size_bytes, stored.digest)
        page_images = count_page_images(stored.path) if found == "pdf" else 0
        accepted = AddFile(*facts, metadata, force_ocr, names, page_images)
        duplicate = self._find_duplicate(stored.digest)
        if duplicate is not None:
            self._storage.delete(stored.document_id)
        return AcceptedFile(accepted, duplicate)

    def _find_duplicate(self, digest: str) -> FileDocument | None:
        """Return a completed document with the same content; one in process may fail, so the task waits for it."""
        same = self._store.find_by_digest(digest)
        document = FileDocument.from_stored(same) if same is not None else None
        return document if document is not None and document.status == "completed" else None

    @contextmanager
    def _open(self, path: Path) -> Iterator[IO[bytes]]:
        """Open a file that may be read; errors tell nothing about files elsewhere."""
        shown = storable(str(path))
        try:
            resolved = Path(os.path.realpath(path.expanduser()))
            self._check_place(resolved, shown)
            handle = os.open(resolved, os.O_RDONLY | os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0))
        except (OSError, ValueError, RuntimeError) as error:
            reason = getattr(error, "strerror", None)
            message = f"File not found: {shown}" + (f" ({reason})" if reason else "")
            raise FileNotFound(message, file_path=shown) from None
        with os.fdopen(handle, "rb") as file:
            self._check_place(Path(_real_path(file, resolved)), shown)
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise FileNotFound(f"Not a file: {shown}", file_path=shown)
            self._check_size(status.st_size)
            yield file

    def _check_place(self, place: Path, shown: str) -> None:
        if self._roots and not any(place.is_relative_to(root) for root in self._roots):
            raise PathNotAllowed(f"Reading {shown} is not allowed", file_path=shown)

    def _check_size(self, size: int) -> None:
        if size > self._max_mb * MEGABYTE:
            raise FileTooLarge(
                f"File size ({-(-size // MEGABYTE)} MB) exceeds maximum allowed size ({self._max_mb} MB)",
                max_size_mb=self._max_mb,
            )


def storable(name: str) -> str:
    """Return a name that can be stored and shown, even if the file system has bytes that are not UTF-8."""
    return os.fsencode(name).decode("utf-8", "replace") if not name.isascii() else name


def _real_path(file: IO[bytes], path: Path) -> str:
    """Return the path of an open file, as the system knows it."""
    with suppress(OSError):
        return str(Path(f"/proc/self/fd/{file.fileno()}").readlink())
    return os.path.realpath(path)
