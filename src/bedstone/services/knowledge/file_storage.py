"""The folder with the copies of added files and the text that was read from them."""

import json
import os
import shutil
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO
from uuid import uuid4

from bedstone.errors import Unavailable
from bedstone.ingest.extraction import Page
from bedstone.ingest.resuming import PageSpool
from bedstone.permissions import make_private_folder
from bedstone.store.locks import FileLock

COPY_BYTES = 2**20
TEXT = "text.json.z"
SPOOL = "pages.partial.jsonl"


@dataclass(frozen=True)
class StoredFile:
    """The copy of a file, and the id of the document that it becomes."""

    document_id: str
    path: Path
    size_bytes: int
    digest: str


class FileStorage:
    """One folder for each document, with the copy of its file and its text."""

    def __init__(self, folder: Path, lock: Path) -> None:
        self._folder = folder
        self._lock = lock
        make_private_folder(folder)

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Keep copies whose tasks are not stored yet from being deleted as orphans."""
        with FileLock(self._lock, is_shared=True):
            yield

    def import_file(self, file: IO[bytes], filename: str, check_size: Callable[[int], None]) -> StoredFile:
        """Copy an open file; `check_size` gets the number of bytes so far, because a file may grow meanwhile."""
        document_id = str(uuid4())
        target = self.path_of(document_id, filename)
        try:
            make_private_folder(target.parent)
            size, digest = _copy(file, target, check_size)
        except OSError as error:
            self.delete(document_id)
            raise Unavailable(f"Cannot store the file: {error.strerror}.") from None
        except BaseException:
            self.delete(document_id)
            raise
        return StoredFile(document_id, target, size, digest)

    def path_of(self, document_id: str, filename: str) -> Path:
        """Return the path of a document's copy."""
        return self._folder / document_id / f"content{Path(filename).suffix.lower()}"

    def save_pages(self, document_id: str, pages: Sequence[Page]) -> None:
        """Store the text of a document, page by page."""
        data = json.dumps([(page.number, page.markdown) for page in pages], ensure_ascii=False)
        (self._folder / document_id / TEXT).write_bytes(zlib.compress(data.encode(errors="replace")))

    def load_pages(self, document_id: str) -> list[Page]:
        """Return the text of a document, page by page."""
        try:
            data = (self._folder / document_id / TEXT).read_bytes()
        except FileNotFoundError:
            return []
        return [Page(text, number) for number, text in json.loads(zlib.decompress(data))]

    def spool(self, document_id: str, key: str) -> PageSpool:
        """Return the pages of a document that is being read."""
        return PageSpool(self._folder / document_id / SPOOL, key)

    def delete(self, document_id: str) -> None:
        """Delete a document's folder."""
        shutil.rmtree(self._folder / document_id, ignore_errors=True)

    def delete_orphans(self, known: Callable[[], Collection[str]]) -> None:
        """Delete folders without a document, left by processes that ended early; skip while files are added."""
        lock = FileLock(self._lock)
        if not lock.acquire():
            return
        try:
            folders = [path.name for path in self._folder.iterdir() if path.is_dir()]
            for name in set(folders) - set(known()):
                self.delete(name)
        finally:
            lock.release()

    def files(self, document_id: str) -> list[Path]:
        """Return a document's files."""
        return sorted(path for path in (self._folder / document_id).iterdir() if path.is_file())

    @contextmanager
    def restoring(self, document_id: str) -> Iterator[Path]:
        """Create a folder for a document's files; delete it again if filling it fails."""
        folder = self._folder / document_id
        make_private_folder(folder)
        try:
            yield folder
        except BaseException:
            self.delete(document_id)
            raise

    def write_error(self) -> str | None:
        """Return why nothing can be written, or None."""
        probe = self._folder / f".probe-{os.getpid()}"
        try:
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            return str(error.strerror)
        return None


def _copy(file: IO[bytes], target: Path, check_size: Callable[[int], None]) -> tuple[int, str]:
    digest, size = sha256(), 0
    with target.open("wb") as copy:
        while part := file.read(COPY_BYTES):
            size += len(part)
            check_size(size)
            digest.update(part)
            copy.write(part)
        copy.flush()
        os.fsync(copy.fileno())  # an acknowledged file survives a power failure
    return size, digest.hexdigest()
