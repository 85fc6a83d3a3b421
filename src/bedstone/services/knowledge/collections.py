"""Collections: named sets of documents. A document may be in several and is stored once."""

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bedstone.errors import InvalidInput
from bedstone.services.knowledge.errors import CollectionNotFound, DocumentNotFound
from bedstone.services.knowledge.records import DEFAULT_COLLECTION, FileDocument
from bedstone.services.knowledge.sharing import ChangeLock
from bedstone.services.knowledge.unfinished import unfinished_documents
from bedstone.store.engine import ALL, Store
from bedstone.store.filters import AttributeHas

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
PREFIX = "context:"


@dataclass(frozen=True)
class Collection:
    """A collection, and how many documents are in it, with those that are being read or failed."""

    name: str
    description: str
    created_at: float | None
    documents: int


def in_collection(name: str) -> AttributeHas:
    """Return the condition for documents of a collection; a document without any is in `default`."""
    return AttributeHas("contexts", (name, None) if name == DEFAULT_COLLECTION else (name,))


class Collections:
    """The collections of one store; `default` always exists."""

    def __init__(self, store: Store, on_moved: Callable[[FileDocument], None] = lambda _: None) -> None:
        """Open the collections; `on_moved` gets each document whose collections change."""
        self._store = store
        self._on_moved = on_moved
        self.changing = ChangeLock(store)  # held by every part that reads a document to write it again

    def all(self) -> list[Collection]:
        """Return every collection, `default` first, then by name."""
        counts: dict[str, int] = {}
        for (names,), count in self._store.count_attributes(["contexts"]).items():
            for name in json.loads(names or "null") or (DEFAULT_COLLECTION,):
                counts[name] = counts.get(name, 0) + count
        for name in (name for item in unfinished_documents(self._store) for name in item.collections):
            counts[name] = counts.get(name, 0) + 1
        stored = {name: json.loads(data) for name, data in self._store.list_values(PREFIX).items()}
        facts = {DEFAULT_COLLECTION: {"description": "Everything that was put nowhere else"}} | stored
        return [
            Collection(name, said.get("description", ""), said.get("created"), counts.get(name, 0))
            for name, said in facts.items()
        ]

    def get(self, name: str) -> Collection:
        """Return one collection."""
        found = next((item for item in self.all() if item.name == name), None)
        if found is None:
            raise _not_found(name)
        return found

    def create(self, name: str, description: str = "") -> Collection:
        """Add a collection."""
        if not NAME.fullmatch(name):
            raise InvalidInput("A name has 1 to 64 letters, digits, _ or -", parameter="name")
        with self.changing:
            if name in self.names():
                raise InvalidInput(f"Context '{name}' already exists", parameter="name")
            self._store.set_value(f"{PREFIX}{name}", json.dumps({"description": description, "created": time.time()}))
        return self.get(name)

    def check(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names, once each, if all of these collections exist; without names, `default`."""
        known = self.names()
        for name in names:
            if name not in known:
                raise _not_found(name)
        return tuple(dict.fromkeys(names)) or (DEFAULT_COLLECTION,)

    def existing(self, names: Iterable[str]) -> list[str]:
        """Return those of the names whose collections still exist."""
        known = self.names()
        return [name for name in names if name in known]

    def documents(self, name: str) -> list[FileDocument]:
        """Return the documents in a collection."""
        self.check([name])
        return [FileDocument.from_stored(item) for item in self._store.documents([in_collection(name)], limit=ALL)]

    def move(self, document_id: str, *, into: Iterable[str] = (), out_of: Iterable[str] = ()) -> FileDocument:
        """Put a document into some collections and take it out of others; one that is in none goes to `default`."""
        added = set(into)
        self.check(sorted(added))
        with self.changing:
            stored = self._store.document(document_id)
            if stored is None:
                raise DocumentNotFound(f"Document with ID '{document_id}' not found", document_id=document_id)
            document = FileDocument.from_stored(stored)
            left = set(out_of) | ({DEFAULT_COLLECTION} if added else set())
            moved = document.with_collections((set(document.collections) - left) | added)
            self._store.update_documents([moved.to_stored()])
        self._on_moved(moved)
        return moved

    def delete(self, name: str) -> int:
        """Delete a collection; documents that are in no other one move to `default`. Return how many it had."""
        if name == DEFAULT_COLLECTION:
            raise InvalidInput("The context 'default' cannot be deleted", parameter="name")
        with self.changing:
            documents = self.documents(name)
            moved = [item.with_collections(set(item.collections) - {name}) for item in documents]
            self._store.update_documents(item.to_stored() for item in moved)
            self._store.delete_value(f"{PREFIX}{name}")
        for item in moved:
            self._on_moved(item)
        return len(documents)

    def names(self) -> set[str]:
        """Return the name of every collection."""
        return {DEFAULT_COLLECTION, *self._store.list_values(PREFIX)}


def _not_found(name: str) -> CollectionNotFound:
    return CollectionNotFound(f"Context '{name}' not found", context=name)
