"""A whole knowledge base as one file: its collections and every document with its text. Vectors are made again."""

import json
import re
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.records import Document, Task
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.records import DEFAULT_COLLECTION, FileDocument
from bedstone.store.engine import ALL, Store
from bedstone.store.filters import AttributeIn

VERSION = 1
MANIFEST = "bedstone-knowledge.json"
DOCUMENT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DOCUMENT_FILE = re.compile(r"(content\.[a-z0-9]+|text\.json\.z)")
OnDocument = Callable[[str], None]


class Archive:
    """Writes and reads exports of a knowledge base."""

    def __init__(self, store: Store, storage: FileStorage, collections: Collections) -> None:
        self._store = store
        self._storage = storage
        self._collections = collections

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
                    for path in self._storage.files(document.id):
                        archive.write(path, f"documents/{document.id}/{path.name}")
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        return len(documents)

    def import_from(
        self, source: Path, restore: Callable[[FileDocument], Task], on_document: OnDocument
    ) -> Iterator[Task]:
        """Unpack the files of new documents one by one, and yield the tasks that `restore` submits."""
        try:
            with zipfile.ZipFile(source) as archive:
                manifest = json.loads(archive.read(MANIFEST))
                if manifest.get("version") != VERSION:
                    raise InvalidInput(f"{source} was written by another version of Bedstone.")
                for name, description in manifest["contexts"].items():
                    if not self._collections.existing([name]):
                        self._collections.create(name, description)
                known = set(self._store.digests().values())
                for data in manifest["documents"]:
                    document = FileDocument.from_stored(_decode(data))
                    if document.digest not in known and self._store.document(document.id) is None:
                        on_document(document.filename)
                        yield self._unpack(archive, document, restore)
        except (zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, OSError) as error:
            raise InvalidInput(f"{source} is not an export of a knowledge base: {error}") from error

    def _unpack(
        self, archive: zipfile.ZipFile, document: FileDocument, restore: Callable[[FileDocument], Task]
    ) -> Task:
        if not DOCUMENT_ID.fullmatch(document.id):
            raise InvalidInput(f"Not the id of a document: {document.id!r}")
        prefix = f"documents/{document.id}/"
        with self._storage.restoring(document.id) as folder:
            for entry in archive.infolist():
                name = entry.filename.removeprefix(prefix)
                if entry.filename.startswith(prefix) and DOCUMENT_FILE.fullmatch(name):
                    with archive.open(entry) as packed, (folder / name).open("wb") as file:
                        shutil.copyfileobj(packed, file)
            return restore(replace(document, status="processing", seconds=None))


def _encode(document: Document) -> dict[str, Any]:
    facts = dict(document.attributes)
    return {"id": document.id, "title": document.title, "digest": document.digest, "metadata": facts}


def _decode(data: dict[str, Any]) -> Document:
    return Document(data["id"], data["title"], data["digest"], data["metadata"])
