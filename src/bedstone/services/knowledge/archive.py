"""A whole knowledge base as one file: every document with its text, and the contexts. Vectors are made anew."""

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
from bedstone.records import Document
from bedstone.services.knowledge.collections import DEFAULT
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.engine import TaskRecord

VERSION = 1
MANIFEST = "bedstone-knowledge.json"
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Told = Callable[[str], None]


def export_base(base: KnowledgeBase, target: Path, on_document: Told = lambda _: None) -> int:
    """Write every finished document; how many there were. The file appears when it is complete."""
    if not target.absolute().parent.is_dir():
        raise InvalidInput(f"There is no folder {target.absolute().parent}.")
    draft = target.with_name(f"{target.name}.tmp")
    documents = [item for item in base.documents() if item.metadata["status"] == "completed"]
    manifest = {
        "version": VERSION,
        "contexts": {item.name: item.description for item in base.contexts.all() if item.name != DEFAULT},
        "documents": [vars_of(item) for item in documents],
    }
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1))
            for document in documents:
                on_document(document.metadata["filename"])
                for path in base.shelf.files(document.id):
                    archive.write(path, f"documents/{document.id}/{path.name}")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return len(documents)


def import_base(base: KnowledgeBase, source: Path, on_document: Told = lambda _: None) -> Iterator[TaskRecord]:
    """Add what a file has and the base has not: found by words at once, by meaning when each task is done."""
    try:
        with zipfile.ZipFile(source) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            if manifest.get("version") != VERSION:
                raise InvalidInput(f"{source} was written by another version of Bedstone.")
            for name, description in manifest["contexts"].items():
                if not base.contexts.existing([name]):
                    base.contexts.create(name, description)
            known = set(base.store.digests().values())
            for data in manifest["documents"]:
                document = Document(**data)
                if document.digest not in known and base.store.document(document.id) is None:
                    on_document(document.metadata["filename"])
                    yield _restored(base, archive, document)
    except (zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, OSError) as error:
        raise InvalidInput(f"{source} is not an export of a knowledge base: {error}") from error


def vars_of(document: Document) -> dict[str, Any]:
    """A document as JSON."""
    return {
        "id": document.id,
        "title": document.title,
        "digest": document.digest,
        "metadata": dict(document.metadata),
    }


def _restored(base: KnowledgeBase, archive: zipfile.ZipFile, document: Document) -> TaskRecord:
    if not ID.fullmatch(document.id):
        raise InvalidInput(f"Not the id of a document: {document.id!r}")
    prefix = f"documents/{document.id}/"
    with base.shelf.restoring(document.id) as folder:
        for entry in archive.infolist():
            name = entry.filename.removeprefix(prefix)
            if entry.filename.startswith(prefix) and re.fullmatch(r"(content\.[a-z0-9]+|text\.json\.z)", name):
                with archive.open(entry) as packed, (folder / name).open("wb") as file:
                    shutil.copyfileobj(packed, file)
        return base.restore(replace(document, metadata={**document.metadata, "status": "processing"}))
