"""The folders of documents: the copies of added files, what is known of them, and the pictures of their pages."""

import logging
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING
from uuid import uuid4

from bedstone.errors import Unavailable
from bedstone.ingest.resuming import PageSpool
from bedstone.services.knowledge.errors import ExtractionFailed, StoreMismatch
from bedstone.services.knowledge.ocr_record import OCR
from bedstone.services.knowledge.quarantine import REMOVED, Quarantine
from bedstone.services.knowledge.records import DOCUMENT_ID, AddFile, FileDocument
from bedstone.services.knowledge.sidecar import (
    COPY,
    MAX_SIDECAR_BYTES,
    SIDECAR,
    format_sidecar,
    guess_file,
    parse_sidecar,
)
from bedstone.services.knowledge.texts import TEXT, Texts
from bedstone.store.blob_stores.folder import probe_folder
from bedstone.store.blobs import Blob, Blobs, BlobsUnavailable
from bedstone.store.locks import FileLock
from bedstone.store.opening import open_blobs
from bedstone.tasks import MachineFailure

if TYPE_CHECKING:
    from bedstone.services.knowledge.options import KnowledgeOptions

logger = logging.getLogger(__name__)

MAX_REQUESTS = 8  # at once
SPOOL = "pages.partial.jsonl"
OWNER = ".store-id"
UNFINISHED = "moving "  # in that file, before the id: a move has not ended
DRAFT = ".draft-"
COPIES = "blobs"  # in the index folder: what was fetched from elsewhere


@dataclass(frozen=True)
class StoredFile:
    """The copy of a file on this machine, and the id of the document that it becomes."""

    document_id: str
    path: Path
    size_bytes: int
    digest: str


class FileStorage:
    """One folder for each document, with the copy of its file and its text."""

    def __init__(self, blobs: Blobs, lock: Path, pictures: Path | None = None) -> None:
        """Use a place; `pictures` has a folder for each document too, which goes with it."""
        self._blobs = blobs
        self._lock = lock
        self._pictures = pictures
        self._store_id: str | None = None
        self.texts = Texts(blobs)
        self.aside = Quarantine(blobs, self.delete)

    @property
    def place(self) -> str:
        """Return where the files are, for messages."""
        return self._blobs.place

    @property
    def is_shared(self) -> bool:
        """Return whether other machines store files in the same place."""
        return self._blobs.is_shared

    @property
    def id_lock(self) -> Path:
        """Return the file to lock while the owner is checked and changed."""
        return self._blobs.scratch(f"{OWNER}.lock")

    @property
    def owner_id(self) -> str | None:
        """Return the id of the store that knows these documents; None if no store has claimed them.

        Raise `StoreMismatch` for files that are being moved here.
        """
        owner = read_owner(self._blobs)
        if owner is not None and owner.startswith(UNFINISHED):
            raise StoreMismatch(incomplete_message(self.place))
        return owner

    def set_owner(self, store_id: str) -> None:
        """Record that a store knows these documents."""
        self._store_id = store_id
        if self.owner_id != store_id:
            self._blobs.write(OWNER, f"{store_id}\n".encode())

    def _check_owner(self) -> None:
        """Raise `StoreMismatch` if another store has claimed the place since."""
        if self._store_id is not None and self.owner_id not in (None, self._store_id):
            setting = "storage.blobs" if self.is_shared else "storage.documents_path"
            raise StoreMismatch(
                f"The documents folder {self.place} belongs to another store now. Give each its own folder with "
                f"{setting}."
            )

    def document_ids(self) -> set[str]:
        """Return the ids of the documents that have a folder."""
        return {name for name in self._blobs.folders() if DOCUMENT_ID.fullmatch(name)}

    def has_documents(self) -> bool:
        """Return whether any document has a folder."""
        return any(DOCUMENT_ID.fullmatch(name) for name in self._blobs.folders())

    def has_folder(self, document_id: str) -> bool:
        """Return whether a document has a folder."""
        return self._blobs.has_folder(document_id)

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
        key = self.key_of(document_id, filename)
        with self.deleting_on_error(document_id), _translated_failures():
            self._check_owner()
            blob = self._blobs.put(key, file, check_size)
            path = self._blobs.local(key, blob.digest)
        return StoredFile(document_id, path, blob.size, blob.digest or "")

    def key_of(self, document_id: str, filename: str) -> str:
        """Return the key of a document's copy."""
        return f"{document_id}/{COPY}{Path(filename).suffix.lower()}"

    def check_copy(self, document_id: str, filename: str) -> None:
        """Raise an error if the copy of a file does not exist; without the place of all copies, it may come back."""
        try:
            found = self._blobs.find(self.key_of(document_id, filename))
        except BlobsUnavailable as error:
            raise MachineFailure(error.message) from None
        if found is None:
            raise ExtractionFailed("The stored copy of the file is missing. Add the file again.")

    def local_copy(self, document_id: str, filename: str, digest: str) -> Path:
        """Return a document's copy as a file of this machine; raise `FileNotFoundError` if it does not exist."""
        try:
            return self._blobs.local(self.key_of(document_id, filename), digest or None)
        except FileNotFoundError:
            found = self.find_copy(document_id)  # a renamed file may have another suffix now
            if found is None:
                raise
            return self._blobs.local(found.key, digest or None)

    def find_copy(self, folder: str) -> Blob | None:
        """Return the copy of the original file in a folder: that of a document, or one that was moved aside."""
        return next(iter(self._blobs.list(f"{folder}/{COPY}.")), None)

    def hash_copy(self, copy: Blob) -> str:
        """Return the digest of a copy as it is stored now."""
        digest = sha256()
        for part in self._blobs.stream(copy.key):
            digest.update(part)
        return digest.hexdigest()

    def save_file(self, file: AddFile) -> None:
        """Keep what is known of a file beside its copy."""
        with _translated_failures():
            self._blobs.write(f"{file.document_id}/{SIDECAR}", format_sidecar(file))

    def save_document(self, document: FileDocument, *, durable: bool = True) -> None:
        """Keep what changed in a document beside its copy; the store has it already, so a failure is only logged."""
        try:
            self._update_sidecar(document, durable=durable)
        except (OSError, BlobsUnavailable) as error:
            logger.warning(
                "Cannot write what is known of %s beside its copy: %s",
                document.id,
                error.message if isinstance(error, BlobsUnavailable) else error.strerror,
                extra={"action": "sidecar_not_written"},
            )

    def _update_sidecar(self, document: FileDocument, *, durable: bool) -> None:
        """Write what changed in a document; how its file is read stays as it was."""
        known = self.read_sidecar(document.id)
        force_ocr = known.force_ocr if known else False
        file = replace(AddFile.of_document(document), submitted_at=document.submitted_at, force_ocr=force_ocr)
        if file != known and (known is not None or self.has_folder(document.id)):
            self._blobs.write(f"{document.id}/{SIDECAR}", format_sidecar(file), durable=durable)

    def read_sidecar(self, folder: str) -> AddFile | None:
        """Return what was written about a file; None if that is missing or damaged."""
        try:
            data = self._blobs.read(f"{folder}/{SIDECAR}", size=MAX_SIDECAR_BYTES)
        except OSError:
            return None
        return parse_sidecar(data, folder.rpartition("/")[2])

    def has_sidecar(self, document_id: str) -> bool:
        """Return whether anything was written about a file."""
        return self._blobs.find(f"{document_id}/{SIDECAR}") is not None

    def recall_file(self, folder: str, copy: Blob) -> AddFile | None:
        """Return the file of a folder: from its sidecar, or what the copy itself tells; None if it has no format."""
        if (known := self.read_sidecar(folder)) is not None:
            return known
        return guess_file(folder.rpartition("/")[2], self._blobs.local(copy.key), copy)

    def spool(self, document_id: str, key: str) -> PageSpool:
        """Return the pages of a document that is being read."""
        return PageSpool(self._blobs.scratch(f"{document_id}/{SPOOL}"), key)

    @contextmanager
    def deleting_on_error(self, document_id: str) -> Iterator[None]:
        """Delete a document's folder if the work on it fails."""
        try:
            yield
        except BaseException:
            self.delete(document_id)
            raise

    def delete(self, document_id: str) -> None:
        """Delete a document's folder, and the pictures of its pages; what cannot be deleted now is an orphan."""
        try:
            self._blobs.delete_folder(document_id)
        except BlobsUnavailable as error:
            logger.warning("Cannot delete %s: %s", document_id, error.message, extra={"action": "not_deleted"})
        if self._pictures is not None:
            shutil.rmtree(self._pictures / document_id, ignore_errors=True)

    def mark_removed(self, document_ids: Iterable[str]) -> None:
        """Mark documents before they are removed, so that what an interrupted removal leaves is deleted as well."""

        def mark(document_id: str) -> None:
            if self.is_shared or self.has_folder(document_id):
                self._blobs.write(f"{document_id}/{REMOVED}", b"", durable=False)

        self._for_each(mark, document_ids)

    def delete_all(self, document_ids: Iterable[str]) -> None:
        """Delete the folders of documents."""
        self._for_each(self.delete, document_ids)

    def _for_each(self, work: Callable[[str], None], document_ids: Iterable[str]) -> None:
        """Work on documents; several at once where each costs the time of a request."""
        if not self.is_shared:
            for document_id in document_ids:
                work(document_id)
            return
        with ThreadPoolExecutor(MAX_REQUESTS) as pool:
            for _ in pool.map(work, document_ids):
                pass

    def quarantine_orphans(self, known: Callable[[], Collection[str]]) -> int:
        """Move folders without a document aside, left by processes that ended early; skip while files are added.

        Return how many were moved. A folder that was to be removed is deleted. No lock protects what another machine
        adds; there the age of a folder does.
        """
        lock = FileLock(self._lock)
        if not self.is_shared and not lock.acquire():
            return 0
        try:
            self._check_owner()
            folders, documents = set(self._blobs.folders()), set(known())
            drafts = {name for name in folders if name.startswith(DRAFT)}
            return self.aside.sort_out(set(filter(DOCUMENT_ID.fullmatch, folders)), documents, drafts)
        finally:
            lock.release()

    def files(self, document_id: str) -> Iterator[tuple[str, Path]]:
        """Yield the copy of a document's file, its text, and what OCR knows of it: each name, and a file to read."""
        for blob in self._blobs.list(f"{document_id}/"):
            name = blob.key.rpartition("/")[2]
            if name in (TEXT, OCR) or name.startswith(f"{COPY}."):
                yield name, self._blobs.local(blob.key, blob.digest)

    @contextmanager
    def drafting(self) -> Iterator[str]:
        """Name a folder for the files of a document; delete it unless it gets the document's name."""
        draft = f"{DRAFT}{uuid4()}"
        try:
            with _translated_failures():
                yield draft
        finally:
            self.delete(draft)

    def write_copy(self, file: IO[bytes], key: str, check_size: Callable[[int], None]) -> tuple[int, str]:
        """Copy an open file, and return its size and digest."""
        blob = self._blobs.put(key, file, check_size)
        return blob.size, blob.digest or ""

    def name_draft(self, draft: str, document_id: str) -> None:
        """Make a folder that of a document, in place of one that an interrupted process left."""
        self.delete(document_id)
        self._blobs.move_folder(draft, document_id)

    def write_error(self) -> str | None:
        """Return why nothing can be written, or None."""
        try:
            self._blobs.check_writable()
        except OSError as error:
            return str(error.strerror)
        except BlobsUnavailable as error:
            return error.message
        return None

    def close(self) -> None:
        """Close all connections."""
        self._blobs.close()


def read_owner(blobs: Blobs) -> str | None:
    """Return whose files a place has: the id of a store, after `UNFINISHED` while a move fills it."""
    try:
        return blobs.read(OWNER).decode("utf-8").strip() or None
    except FileNotFoundError:
        return None


def incomplete_message(place: str) -> str:
    """Return what is wrong with the target of a move that has not ended."""
    return (
        f"The files in {place} are incomplete: moving a base there has not ended. Repeat `bedstone migrate-data` until "
        "it says that all counts and digests agree."
    )


def open_storage(options: "KnowledgeOptions", pictures: Path | None = None) -> FileStorage:
    """Return the place for copies and texts: a folder of this machine, or the one that other machines use too."""
    blobs = open_blobs(options.blobs or options.documents_path, options.index_path / COPIES)
    return FileStorage(blobs, options.index_path / ".adding", pictures)


def find_write_error(folder: Path) -> str | None:
    """Write to a folder and undo it; return why that fails, or None."""
    try:
        probe_folder(folder)
    except OSError as error:
        return str(error.strerror)
    return None


@contextmanager
def _translated_failures() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"Cannot store the file: {error.strerror}.") from None
