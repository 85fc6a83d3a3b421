"""The folder with the copies of added files, and the check of what may be copied there."""

import json
import os
import shutil
import stat
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO
from uuid import uuid4

from bedstone.ingest.detection import detect, format_of
from bedstone.ingest.extraction import Page
from bedstone.library.knowledge.errors import FileNotFound, FileTooLarge, PathNotAllowed, unsupported

MEGABYTE = 2**20
COPY_BYTES = MEGABYTE
TEXT = "text.json.z"


@dataclass(frozen=True)
class Copy:
    """A file that was copied: under which id, and what it is."""

    document_id: str
    filename: str
    source: str
    format: str
    size: int
    digest: str


class Shelf:
    """One folder for each document: the copy of its file, and the text that was read from it."""

    def __init__(self, folder: Path, allowed_roots: Sequence[Path], max_file_size_mb: int) -> None:
        self._folder = folder
        self._roots = [Path(os.path.realpath(root)) for root in allowed_roots]
        self._most = max_file_size_mb
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, path: Path) -> Copy:
        """Check a file and copy it; the open file is what is checked and read, so nobody can swap it meanwhile."""
        if format_of(path.name) is None:
            raise unsupported(path.suffix or path.name)
        resolved = self._allowed(path)
        document_id = str(uuid4())
        try:
            with resolved.open("rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise FileNotFound(f"Not a file: {path}", file_path=str(path))
                self._check_size(status.st_size)
                size, digest = self._copy(file, self.file(document_id, path.name))
        except OSError as error:
            self.drop(document_id)
            raise FileNotFound(f"File not found: {path} ({error.strerror})", file_path=str(path)) from None
        except FileTooLarge:
            self.drop(document_id)
            raise
        found = detect(self.file(document_id, path.name), path.name)
        if found is None:
            self.drop(document_id)
            raise unsupported(path.suffix)
        return Copy(document_id, path.name, str(resolved), found, size, digest)

    def file(self, document_id: str, filename: str) -> Path:
        """Where a document's copy is."""
        return self._folder / document_id / f"content{Path(filename).suffix.lower()}"

    def keep_text(self, document_id: str, pages: Sequence[Page]) -> None:
        """Keep what was read of a document, page by page."""
        data = json.dumps([(page.number, page.markdown) for page in pages], ensure_ascii=False)
        (self._folder / document_id / TEXT).write_bytes(zlib.compress(data.encode(errors="replace")))

    def text(self, document_id: str) -> list[Page]:
        """What was read of a document."""
        try:
            data = (self._folder / document_id / TEXT).read_bytes()
        except FileNotFoundError:
            return []
        return [Page(text, number) for number, text in json.loads(zlib.decompress(data))]

    def drop(self, document_id: str) -> None:
        """Remove a document's folder."""
        shutil.rmtree(self._folder / document_id, ignore_errors=True)

    def sweep(self, known: Collection[str]) -> None:
        """Remove folders nobody knows: of files that were copied when the process ended."""
        for path in list(self._folder.iterdir()):
            if path.is_dir() and path.name not in known:
                self.drop(path.name)

    def files(self, document_id: str) -> list[Path]:
        """A document's files."""
        return sorted(path for path in (self._folder / document_id).iterdir() if path.is_file())

    @contextmanager
    def restoring(self, document_id: str) -> Iterator[Path]:
        """A folder to put a document's files into; it is gone again if that fails."""
        folder = self._folder / document_id
        folder.mkdir(parents=True, exist_ok=True)
        try:
            yield folder
        except BaseException:
            self.drop(document_id)
            raise

    def probe(self) -> str | None:
        """What keeps it from being written, if anything does."""
        probe = self._folder / f".probe-{os.getpid()}"
        try:
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            return str(error.strerror)
        return None

    def _allowed(self, path: Path) -> Path:
        """The real path, if it may be read; what lies elsewhere is not told."""
        resolved = Path(os.path.realpath(path))
        if self._roots and not any(resolved.is_relative_to(root) for root in self._roots):
            raise PathNotAllowed(f"Reading {path} is not allowed", file_path=str(path))
        if not resolved.is_file():
            raise FileNotFound(f"File not found: {path}", file_path=str(path))
        return resolved

    def _check_size(self, size: int) -> None:
        if size > self._most * MEGABYTE:
            raise FileTooLarge(
                f"File size ({-(-size // MEGABYTE)} MB) exceeds maximum allowed size ({self._most} MB)",
                max_size_mb=self._most,
            )

    def _copy(self, file: IO[bytes], target: Path) -> tuple[int, str]:
        target.parent.mkdir(parents=True)
        digest, size = sha256(), 0
        with target.open("wb") as copy:
            while part := file.read(COPY_BYTES):
                size += len(part)
                self._check_size(size)  # a file may grow while it is read
                digest.update(part)
                copy.write(part)
            copy.flush()
            os.fsync(copy.fileno())  # whoever is told that a file was taken may rely on it
        return size, digest.hexdigest()
