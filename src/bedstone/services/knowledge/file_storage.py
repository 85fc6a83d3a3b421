"""The folder with the copies of added files, the text that was read from them and the pictures of their pages."""

import json
import logging
import os
import shutil
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO
from uuid import uuid4

from bedstone.errors import Unavailable
from bedstone.ingest.extraction import Page
from bedstone.ingest.resuming import PageSpool
from bedstone.permissions import make_private_folder
from bedstone.services.knowledge.errors import ExtractionFailed, StoreMismatch, TextMissing
from bedstone.services.knowledge.ocr_record import (
    OCR,
    PageQuality,
    add_record,
    read_confidence,
    read_quality,
    read_words,
    write_record,
)
from bedstone.services.knowledge.records import DOCUMENT_ID, AddFile, FileDocument
from bedstone.services.knowledge.sidecar import COPY, update_sidecar, write_durably, write_sidecar
from bedstone.store.locks import FileLock
from bedstone.tasks import MachineFailure

logger = logging.getLogger(__name__)

COPY_BYTES = 2**20
PROBE_BYTES = 2**16
TEXT = "text.json.z"
SPOOL = "pages.partial.jsonl"
OWNER = ".store-id"
ORPHANS = ".orphaned"
DRAFT = ".draft-"
REMOVED = "removed"  # marks a document that is being removed: what is left of it is deleted


@dataclass(frozen=True)
class StoredFile:
    """The copy of a file, and the id of the document that it becomes."""

    document_id: str
    path: Path
    size_bytes: int
    digest: str


class FileStorage:
    """One folder for each document, with the copy of its file and its text."""

    def __init__(self, folder: Path, lock: Path, pictures: Path | None = None) -> None:
        """Use a folder; `pictures` has one for each document too, which goes with it."""
        self.folder = folder
        self._lock = lock
        self._pictures = pictures
        self._store_id: str | None = None
        make_private_folder(folder)

    @property
    def id_lock(self) -> Path:
        """Return the file to lock while the owner is checked and changed."""
        return self.folder / f"{OWNER}.lock"

    @property
    def owner_id(self) -> str | None:
        """Return the id of the store that knows these documents; None if no store has claimed them."""
        try:
            return (self.folder / OWNER).read_text(encoding="utf-8").strip() or None
        except FileNotFoundError:
            return None

    def set_owner(self, store_id: str) -> None:
        """Record that a store knows these documents."""
        self._store_id = store_id
        if self.owner_id != store_id:
            write_durably(self.folder / OWNER, f"{store_id}\n")

    def _check_owner(self) -> None:
        """Raise `StoreMismatch` if another store has claimed the folder since."""
        if self._store_id is not None and self.owner_id not in (None, self._store_id):
            raise StoreMismatch(
                f"The documents folder {self.folder} belongs to another store now. Give each its own folder with "
                "storage.documents_path."
            )

    def document_ids(self) -> set[str]:
        """Return the ids of the documents that have a folder."""
        return {path.name for path in self.folder.iterdir() if DOCUMENT_ID.fullmatch(path.name) and path.is_dir()}

    def folder_of(self, document_id: str) -> Path:
        """Return the folder of a document."""
        return self.folder / document_id

    @contextmanager
    def adding(self) -> Iterator[None]:
        """Keep copies whose tasks are not stored yet from being deleted as orphans."""
        with ExitStack() as held:
            with _translated_failures():
                held.enter_context(FileLock(self._lock, is_shared=True))
            yield

    def import_file(self, file: IO[bytes], filename: str, check_size: Callable[[int], None]) -> StoredFile:
        """Copy an open file; `check_size` gets the number of bytes so far, because a file may grow meanwhile."""
        document_id = str(uuid4())
        target = self.path_of(document_id, filename)
        with self.deleting_on_error(document_id), _translated_failures():
            self._check_owner()
            make_private_folder(target.parent)
            size, digest = _copy(file, target, check_size)
        return StoredFile(document_id, target, size, digest)

    def path_of(self, document_id: str, filename: str) -> Path:
        """Return the path of a document's copy."""
        return self.folder_of(document_id) / f"{COPY}{Path(filename).suffix.lower()}"

    def check_copy(self, document_id: str, filename: str) -> None:
        """Raise an error if the copy of a file does not exist; without the folder of all copies, it may come back."""
        try:
            self.path_of(document_id, filename).stat()
        except FileNotFoundError:
            if not self.folder.is_dir():
                raise MachineFailure(f"The documents folder {self.folder} does not exist") from None
            raise ExtractionFailed("The stored copy of the file is missing. Add the file again.") from None

    def save_pages(self, document_id: str, pages: Sequence[Page]) -> None:
        """Store the text of a document, page by page, and what OCR knows of it."""
        folder = self.folder_of(document_id)
        data = json.dumps([(page.number, page.markdown) for page in pages], ensure_ascii=False)
        write_record(folder, pages)
        (folder / TEXT).write_bytes(zlib.compress(data.encode(errors="replace")))

    def load_pages(self, document_id: str) -> list[Page]:
        """Return the text of a document, page by page; without the places of words."""
        try:
            data = (self.folder_of(document_id) / TEXT).read_bytes()
            pages = [Page(text, number) for number, text in json.loads(zlib.decompress(data))]
            return list(add_record(self.folder_of(document_id), pages))
        except (OSError, zlib.error, ValueError, TypeError) as error:
            logger.error("Cannot read the text of %s: %s", document_id, error, extra={"action": "text_missing"})  # noqa: TRY400 - the reason is enough
            raise TextMissing(
                f"The stored text of document {document_id} is missing or damaged. Read the document again with: "
                "bedstone knowledge rebuild",
                document_id=document_id,
            ) from error

    def load_confidence(self, document_id: str) -> Mapping[int, float]:
        """Return how confident OCR is of each page that it read, from 0 to 1."""
        return read_confidence(self.folder_of(document_id))

    def load_quality(self, document_id: str) -> Mapping[int, PageQuality]:
        """Return how well OCR read each page that it read."""
        return read_quality(self.folder_of(document_id))

    def load_words(self, document_id: str, page: int) -> tuple[str, bool]:
        """Return the words that OCR found on a page, packed, and whether it read the page as a whole."""
        return read_words(self.folder_of(document_id), page)

    def save_file(self, file: AddFile) -> None:
        """Keep what is known of a file beside its copy."""
        with _translated_failures():
            write_sidecar(self.folder_of(file.document_id), file)

    def save_document(self, document: FileDocument, *, durable: bool = True) -> None:
        """Keep what changed in a document beside its copy; the store has it already, so a failure is only logged."""
        try:
            update_sidecar(self.folder_of(document.id), document, durable=durable)
        except OSError as error:
            logger.warning(
                "Cannot write what is known of %s beside its copy: %s",
                document.id,
                error.strerror,
                extra={"action": "sidecar_not_written"},
            )

    def find_text_error(self, document_id: str) -> str | None:
        """Read the beginning of a document's text; return why that fails, or None."""
        try:
            with (self.folder_of(document_id) / TEXT).open("rb") as file:
                is_text = bool(zlib.decompressobj().decompress(file.read(PROBE_BYTES), PROBE_BYTES))
        except OSError as error:
            return str(error.strerror)
        except zlib.error as error:
            return str(error)
        return None if is_text else "it is empty"

    def spool(self, document_id: str, key: str) -> PageSpool:
        """Return the pages of a document that is being read."""
        return PageSpool(self.folder_of(document_id) / SPOOL, key)

    @contextmanager
    def deleting_on_error(self, document_id: str) -> Iterator[None]:
        """Delete a document's folder if the work on it fails."""
        try:
            yield
        except BaseException:
            self.delete(document_id)
            raise

    def delete(self, document_id: str) -> None:
        """Delete a document's folder, and the pictures of its pages."""
        shutil.rmtree(self.folder_of(document_id), ignore_errors=True)
        if self._pictures is not None:
            shutil.rmtree(self._pictures / document_id, ignore_errors=True)

    def mark_removed(self, document_ids: Iterable[str]) -> None:
        """Mark documents before they are removed, so that what an interrupted removal leaves is deleted as well."""
        for document_id in document_ids:
            with suppress(FileNotFoundError):
                (self.folder_of(document_id) / REMOVED).touch()

    def quarantine_orphans(self, known: Callable[[], Collection[str]]) -> int:
        """Move folders without a document aside, left by processes that ended early; skip while files are added.

        Return how many were moved. A folder that was to be removed is deleted.
        """
        lock = FileLock(self._lock)
        if not lock.acquire():
            return 0
        try:
            self._check_owner()
            folders, documents = self.document_ids(), set(known())
            for name in folders & documents:
                (self.folder_of(name) / REMOVED).unlink(missing_ok=True)
            orphans = sorted(folders - documents)
            removed = [name for name in orphans if (self.folder_of(name) / REMOVED).exists()]
            drafts = [path.name for path in self.folder.glob(f"{DRAFT}*")]  # no caller was told that these are stored
            for name in (*removed, *drafts):
                self.delete(name)
            for name in orphans:
                if name not in removed:
                    self.quarantine(name)
            return len(orphans) - len(removed)
        finally:
            lock.release()

    def quarantine(self, document_id: str) -> None:
        """Move the folder of a document aside, where nothing uses it and `bedstone knowledge rebuild` finds it."""
        source = self.folder_of(document_id)
        if not source.is_dir():
            return
        today = datetime.now(UTC).strftime("%Y-%m-%d")
        days = chain([today], (f"{today}-{number}" for number in count(2)))  # it may have been there today already
        target = next(path for day in days if not (path := self.folder / ORPHANS / day / document_id).exists())
        make_private_folder(target.parent)
        source.rename(target)
        logger.warning("Moved %s, which has no document, to %s", document_id, target, extra={"action": "quarantined"})

    def orphans(self) -> dict[str, Path]:
        """Return the folders that were moved aside, by document."""
        found = sorted((self.folder / ORPHANS).glob("*/*"))
        return {path.name: path for path in found if DOCUMENT_ID.fullmatch(path.name) and path.is_dir()}

    def delete_orphan(self, document_id: str) -> None:
        """Delete what was moved aside of a document that is removed: a rebuild must not bring it back."""
        for orphan in (self.folder / ORPHANS).glob(f"*/{document_id}"):
            shutil.rmtree(orphan, ignore_errors=True)

    def delete_orphans(self) -> None:
        """Delete everything that was moved aside."""
        shutil.rmtree(self.folder / ORPHANS, ignore_errors=True)

    def bring_back(self, document_id: str) -> None:
        """Move the folder of a document back, if it was moved aside."""
        orphan = self.orphans().get(document_id)
        if orphan is None or self.folder_of(document_id).exists():
            return
        orphan.rename(self.folder_of(document_id))
        with suppress(OSError):  # others of that day are still there
            orphan.parent.rmdir()

    def files(self, document_id: str) -> list[Path]:
        """Return the copy of a document's file, its text, and what OCR knows of it."""
        folder = self.folder_of(document_id)
        return sorted(path for path in (*folder.glob(f"{COPY}.*"), folder / TEXT, folder / OCR) if path.is_file())

    @contextmanager
    def drafting(self) -> Iterator[str]:
        """Create a folder for the files of a document; delete it unless it gets the document's name."""
        draft = f"{DRAFT}{uuid4()}"
        try:
            with _translated_failures():
                make_private_folder(self.folder / draft)
                yield draft
        finally:
            self.delete(draft)

    def write_copy(self, file: IO[bytes], target: Path, check_size: Callable[[int], None]) -> tuple[int, str]:
        """Copy an open file, and return its size and digest."""
        return _copy(file, target, check_size)

    def name_draft(self, draft: str, document_id: str) -> None:
        """Make a folder that of a document, in place of one that an interrupted process left."""
        self.delete(document_id)
        (self.folder / draft).rename(self.folder_of(document_id))

    def write_error(self) -> str | None:
        """Return why nothing can be written, or None."""
        return find_write_error(self.folder)


def find_write_error(folder: Path) -> str | None:
    """Write to a folder and undo it; return why that fails, or None."""
    try:
        with TemporaryFile(dir=folder) as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
    except OSError as error:
        return str(error.strerror)
    return None


@contextmanager
def _translated_failures() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"Cannot store the file: {error.strerror}.") from None


def hash_file(path: Path) -> str:
    """Return the digest of a file, as documents have it."""
    digest = sha256()
    with path.open("rb") as file:
        while part := file.read(COPY_BYTES):
            digest.update(part)
    return digest.hexdigest()


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
