"""A whole knowledge base as one file: its collections and every document with its text. Vectors are made again."""

import json
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.ingest.extraction import Page
from bedstone.records import Document, Task
from bedstone.services.knowledge.archive_reader import MANIFEST, MAX_ENTRIES, ArchiveReader, RefusedEntry, UnsafeArchive
from bedstone.services.knowledge.archive_records import check_collections, check_document, check_pages
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.ocr_record import OCR
from bedstone.services.knowledge.records import DEFAULT_COLLECTION, AddFile, FileDocument
from bedstone.services.knowledge.texts import TEXT
from bedstone.services.knowledge.unfinished import pending_tasks
from bedstone.store.engine import ALL, Store
from bedstone.store.filters import AttributeIn

VERSION = 1
MEGABYTE = 2**20
MIN_TEXT_BYTES = 128 * MEGABYTE  # that are accepted, even where files must be smaller
OnDocument = Callable[[str], None]
OnRefused = Callable[[str], None]
Restore = Callable[[FileDocument, Sequence[Page]], Task]


class Archive:
    """Writes and reads exports of a knowledge base."""

    def __init__(self, store: Store, storage: FileStorage, collections: Collections, max_file_size_mb: int) -> None:
        self._store = store
        self._storage = storage
        self._collections = collections
        self._max_bytes = max_file_size_mb * MEGABYTE

    def export_to(self, target: Path, on_document: OnDocument) -> int:
        """Write every completed document, and return how many; the file appears when it is complete."""
        if not target.absolute().parent.is_dir():
            raise InvalidInput(f"Folder not found: {target.absolute().parent}.")
        draft = target.with_name(f"{target.name}.tmp")
        documents = self._store.documents([AttributeIn("status", ("completed",))], limit=ALL)
        manifest = {
            "version": VERSION,
            "contexts": {
                item.name: item.description for item in self._collections.all() if item.name != DEFAULT_COLLECTION
            },
            "documents": [_encode(item) for item in documents],
        }
        try:
            with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1))
                for document in documents:
                    on_document(FileDocument.from_stored(document).filename)
                    for name, path in self._storage.files(document.id):
                        archive.write(path, f"documents/{document.id}/{name}")
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        return len(documents)

    def import_from(
        self, source: Path, restore: Restore, on_document: OnDocument, on_refused: OnRefused
    ) -> Iterator[Task]:
        """Unpack new documents one by one, and yield the tasks that `restore` submits.

        An archive that is unsafe as a whole is refused before anything is stored. Documents that are not valid are
        passed to `on_refused`, and the others are imported. It can be repeated after any interruption.
        """
        with ArchiveReader(source) as reader:
            contexts = self._check_manifest(source, reader)
            for name, description in contexts.items():
                if not self._collections.existing([name]):
                    self._collections.create(name, description)
            known = set(self._store.digests().values())
            pending = {AddFile.from_payload(task.payload).document_id for task in pending_tasks(self._store)}
            for member, value in reader.manifest():
                if member != "document":
                    continue
                try:
                    document = check_document(value)
                    if document.digest in known:
                        continue
                    self._check_id(document.id, pending)
                    on_document(document.filename)
                    yield self._import(reader, document, restore)
                    known.add(document.digest)
                except (RefusedEntry, zipfile.BadZipFile, zlib.error, EOFError) as error:
                    on_refused(str(error))

    def _check_manifest(self, source: Path, reader: ArchiveReader) -> Mapping[str, str]:
        """Read the whole manifest, and return its collections; raise `UnsafeArchive` if it is not one."""
        members: dict[str, Any] = {}
        for count, (member, value) in enumerate(reader.manifest()):
            if member != "document":
                members[member] = value
            if count > MAX_ENTRIES:
                raise UnsafeArchive(f"{source} has more than {MAX_ENTRIES:,} documents.")
        if members.get("version") != VERSION:
            raise UnsafeArchive(f"{source} was written by another version of Bedstone.")
        try:
            return check_collections(members.get("contexts"))
        except RefusedEntry as error:
            raise UnsafeArchive(f"{source} is not an export of a knowledge base: {error}.") from None

    def _check_id(self, document_id: str, pending: Collection[str]) -> None:
        if document_id in pending or self._store.document(document_id) is not None:
            raise RefusedEntry(f"document {document_id}: another document has this id")

    def _import(self, reader: ArchiveReader, document: FileDocument, restore: Restore) -> Task:
        with self._storage.adding(), self._storage.drafting() as draft:
            prefix = f"documents/{document.id}"
            key = self._storage.key_of(draft, document.filename)
            entry = key.replace(draft, prefix, 1)
            with reader.open(entry) as packed:
                size, digest = self._storage.write_copy(packed, key, self._check_size(packed.name))
            if digest != document.digest:
                raise RefusedEntry(f"{entry} ({document.filename}) has another digest than its record")
            pages = self._read_text(reader, f"{prefix}/{TEXT}")
            self._storage.texts.save(draft, pages)
            self._import_record(reader, f"{prefix}/{OCR}", f"{draft}/{OCR}")
            self._storage.name_draft(draft, document.id)
            names = self._collections.existing(document.collections) or [DEFAULT_COLLECTION]
            restored = replace(document, size_bytes=size).with_collections(names)
            with self._storage.deleting_on_error(document.id):
                self._storage.save_document(restored)
                return restore(restored, pages)

    def _import_record(self, reader: ArchiveReader, name: str, key: str) -> None:
        """Copy what OCR knew of a document, if the export has it; it is checked when it is read."""
        with suppress(RefusedEntry, zipfile.BadZipFile, zlib.error, EOFError), reader.open(name) as packed:
            self._storage.write_copy(packed, key, self._check_size(name))

    def _read_text(self, reader: ArchiveReader, name: str) -> list[Page]:
        data = reader.read_packed(name, max(MIN_TEXT_BYTES, self._max_bytes * 5 // 4))
        try:
            return check_pages(data)
        except RefusedEntry as error:
            raise RefusedEntry(f"{name}: {error}") from None

    def _check_size(self, name: str) -> Callable[[int], None]:
        def check(size: int) -> None:
            if size > self._max_bytes:
                raise RefusedEntry(f"{name} exceeds {self._max_bytes // MEGABYTE} MB (processing.max_file_size_mb)")

        return check


def _encode(document: Document) -> dict[str, Any]:
    facts = dict(document.attributes)
    return {"id": document.id, "title": document.title, "digest": document.digest, "metadata": facts}
