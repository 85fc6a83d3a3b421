"""The folder with the copies of added files, and the check of what may be copied there."""

import fcntl
import json
import os
import shutil
import stat
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO
from uuid import uuid4

from bedstone.errors import Unavailable
from bedstone.ingest.detection import detect, format_of
from bedstone.ingest.extraction import Page
from bedstone.services.knowledge.errors import FileNotFound, FileTooLarge, PathNotAllowed, unsupported

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

    def __init__(self, folder: Path, lock: Path, allowed_roots: Sequence[Path], max_file_size_mb: int) -> None:
        self._folder = folder
        self._lock = lock
        self._roots = [Path(os.path.realpath(root)) for root in allowed_roots]
        self._most = max_file_size_mb
        folder.mkdir(parents=True, exist_ok=True)

    def take(self, path: Path) -> Copy:
        """Check a file and copy it; the open file is what is checked and read, so nobody can swap it meanwhile."""
        name = storable(path.name)
        if format_of(name) is None:
            raise unsupported(storable(path.suffix or path.name))
        document_id = str(uuid4())
        target = self.file(document_id, name)
        with self._opened(path) as file:
            try:
                size, digest = self._copy(file, target)
            except OSError as error:
                self.drop(document_id)
                raise Unavailable(f"The file cannot be kept: {error.strerror}.") from None
            except FileTooLarge:
                self.drop(document_id)
                raise
            source = _real_path(file, path)
        found = detect(target, name)
        if found is None:
            self.drop(document_id)
            raise unsupported(path.suffix)
        return Copy(document_id, name, storable(source), found, size, digest)

    @contextmanager
    def adding(self) -> Iterator[None]:
        """While files are copied and their tasks written down, nobody takes the copies for forgotten ones."""
        with self._lock_file() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield

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

    def sweep(self, known: Callable[[], Collection[str]]) -> None:
        """Remove folders nobody knows: of files that were copied when a process ended; not while somebody adds."""
        with self._lock_file() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return
            folders = [path.name for path in self._folder.iterdir() if path.is_dir()]
            for name in set(folders) - set(known()):
                self.drop(name)

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

    @contextmanager
    def _opened(self, path: Path) -> Iterator[IO[bytes]]:
        """A file that may be read; what lies elsewhere is not told. What was opened is what is checked."""
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

    def _lock_file(self) -> IO[bytes]:
        return self._lock.open("wb")

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


def storable(name: str) -> str:
    """A name that can be kept and shown, whatever bytes a file system has for it."""
    return os.fsencode(name).decode("utf-8", "replace") if not name.isascii() else name


def _real_path(file: IO[bytes], path: Path) -> str:
    """Where an open file really is, as the system tells it."""
    with suppress(OSError):
        return str(Path(f"/proc/self/fd/{file.fileno()}").readlink())
    return os.path.realpath(path)
