"""Versions of a file: adding a changed file from the same path replaces the document of the earlier content."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bedstone.ingest.detection import find_format
from bedstone.services.knowledge.collections import Collections
from bedstone.services.knowledge.file_storage import FileStorage
from bedstone.services.knowledge.records import DEFAULT_COLLECTION, AddFile, FileDocument
from bedstone.store.engine import ALL, Store
from bedstone.store.filters import AttributeIn

COPY_PREFIX = "copy:"  # the store's value for a further path of a document: its id


@dataclass(frozen=True)
class Replacement:
    """What one transaction does: `document` takes over, `kept` lose the path but have others, `removed` go."""

    document: FileDocument
    kept: Sequence[FileDocument] = ()
    removed: Sequence[FileDocument] = ()

    @property
    def removed_id(self) -> str | None:
        """Return the id of the latest version that is removed."""
        return max(self.removed, key=lambda item: item.version).id if self.removed else None


class Versions:
    """Finds the documents that came from a path. Uploads have no path, so they never replace each other."""

    def __init__(self, store: Store, storage: FileStorage, collections: Collections) -> None:
        self._store = store
        self._storage = storage
        self._collections = collections

    def at(self, source: str) -> list[FileDocument]:
        """Return the documents that came from a path."""
        if not source:
            return []
        found = [
            FileDocument.from_stored(item)
            for item in self._store.documents([AttributeIn("source", (source,))], limit=ALL)
        ]
        copied = self._document(self._store.get_value(f"{COPY_PREFIX}{source}"))
        return [*found, copied] if copied is not None and source in copied.other_sources else found

    def earlier(self, file: AddFile) -> list[FileDocument]:
        """Return the versions that a file replaces; a file of an import or an earlier release replaces nothing."""
        given = file.submitted_at
        return [item for item in self._others(file) if given is not None and item.version < given]

    def later(self, file: AddFile) -> FileDocument | None:
        """Return a version that was handed in after a file."""
        given = file.submitted_at
        found = [item for item in self._others(file) if given is not None and item.version > given]
        return max(found, key=lambda item: item.version, default=None)

    def _others(self, file: AddFile) -> list[FileDocument]:
        return [item for item in self.at(file.source) if item.id != file.document_id]

    def take_over(self, document: FileDocument, file: AddFile) -> Replacement:
        """Return how a document takes the place of the earlier versions of its file."""
        marked = (self._document(item) for item in document.replaces)
        same = [item for item in marked if item is not None and item.digest == document.digest]
        changed = [item for item in self.earlier(file) if item.digest != document.digest and item.id != document.id]
        sources = [*document.sources, file.source, *(source for item in same for source in item.sources)]
        kept, removed = [], list(same)
        for item in changed:
            rest = [source for source in item.sources if source != file.source]
            if rest:
                kept.append(item.with_sources(rest))
            else:
                removed.append(item)
        following = self._inherit(document, file, [*same, *changed]) if same or changed else document
        return Replacement(following.with_sources(sources), kept, removed)

    def apply(self, change: Replacement) -> None:
        """Change a document and its earlier versions in one transaction; their copies are deleted afterwards."""
        document, removed = change.document, [item.id for item in change.removed]
        self._storage.mark_removed(removed)
        self._store.update_and_delete([item.to_stored() for item in (document, *change.kept)], removed)
        for source in filter(None, document.other_sources):  # so that `at` finds it
            if self._store.get_value(f"{COPY_PREFIX}{source}") != document.id:
                self._store.set_value(f"{COPY_PREFIX}{source}", document.id)
        for item in (document, *change.kept):
            self._storage.save_document(item)
        for document_id in removed:
            self._storage.delete(document_id)

    def rename(self, document_id: str, origin: str, path: str) -> None:
        """Record that the file of a document was moved from one path to another."""
        with self._collections.changing:
            self._rename(document_id, origin, path)

    def _rename(self, document_id: str, origin: str, path: str) -> None:
        document = self._document(document_id)
        if document is None:
            return
        others = [source for source in document.sources if source not in (origin, path)]
        if document.source in (origin, path):
            name = Path(path).name
            title = name if document.title == document.filename else document.title
            moved = replace(document, title=title, filename=name).with_sources([path, *others])
        else:
            moved = document.with_sources([*others, path])
        self.apply(Replacement(moved))

    def forget_source(self, document_id: str, source: str) -> bool:
        """Record that a path no longer has the content of a document; return True if it was the only one."""
        with self._collections.changing:
            document = self._document(document_id)
            if document is None or source not in document.sources:
                return False
            others = [item for item in document.sources if item != source]
            if others:
                self.apply(Replacement(document.with_sources(others)))
            return not others

    def _inherit(self, document: FileDocument, file: AddFile, earlier: Sequence[FileDocument]) -> FileDocument:
        """Return a document with the metadata and the collections of its earlier versions, and what was given now."""
        inherited = {key: value for item in earlier for key, value in item.metadata.items()}
        metadata = {**inherited, **document.metadata, **file.metadata}
        title = str(metadata.get("title") or document.title)
        names = {name for item in earlier for name in item.collections}
        is_new = document.id == file.document_id
        if not is_new or file.collections != (DEFAULT_COLLECTION,):
            names |= set(document.collections)
        known = self._collections.existing(names)
        return replace(document, metadata=metadata, title=title).with_collections(known)

    def _document(self, document_id: str | None) -> FileDocument | None:
        document = self._store.document(document_id) if document_id is not None else None
        return FileDocument.from_stored(document) if document is not None else None


def needs_ocr(document: FileDocument) -> bool:
    """Return whether `force_ocr` reads more of a document than was read before."""
    declaration = find_format(document.format)
    if declaration is None or not declaration.uses_ocr or document.is_ocr_forced:
        return False
    return document.ocr is None or document.ocr.pages < (document.page_count or 1)
