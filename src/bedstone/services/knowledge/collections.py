"""Contexts: named collections of documents. A document may be in several and is kept once."""

import json
import re
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bedstone.errors import InvalidInput
from bedstone.records import Document
from bedstone.services.knowledge.errors import ContextNotFound
from bedstone.store.engine import StoreEngine

DEFAULT = "default"
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
PREFIX = "context:"
EVERY = 2**31


@dataclass(frozen=True)
class Context:
    """A collection, and how many documents are in it."""

    name: str
    description: str
    created: float | None
    documents: int


def contexts_of(document: Document) -> tuple[str, ...]:
    """The contexts a document is in."""
    return tuple(json.loads(document.metadata.get("contexts", "null")) or (DEFAULT,))


def in_contexts(document: Document, names: Iterable[str]) -> Document:
    """The document, in these contexts and no others."""
    listed = json.dumps(sorted(set(names)) or [DEFAULT])
    return replace(document, metadata={**document.metadata, "contexts": listed})


class Contexts:
    """The collections of one store; `default` always exists."""

    def __init__(self, store: StoreEngine) -> None:
        self._store = store
        self._lock = threading.Lock()

    def all(self) -> list[Context]:
        """Every context, `default` first, then by name."""
        counts: dict[str, int] = {}
        for document in self._store.documents(limit=EVERY):
            for name in contexts_of(document):
                counts[name] = counts.get(name, 0) + 1
        made = {name: json.loads(data) for name, data in self._store.settings(PREFIX).items()}
        facts = {DEFAULT: {"description": "Everything that was put nowhere else"}} | made
        return [
            Context(name, said.get("description", ""), said.get("created"), counts.get(name, 0))
            for name, said in facts.items()
        ]

    def get(self, name: str) -> Context:
        """One context."""
        return next((item for item in self.all() if item.name == name), None) or self._missing(name)

    def create(self, name: str, description: str = "") -> Context:
        """Add a context."""
        if not NAME.fullmatch(name):
            raise InvalidInput("A name has 1 to 64 letters, digits, _ or -", parameter="name")
        with self._lock:
            if name in self.names():
                raise InvalidInput(f"There is a context '{name}' already", parameter="name")
            self._store.set_setting(f"{PREFIX}{name}", json.dumps({"description": description, "created": time.time()}))
        return self.get(name)

    def check(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names as they were given, once each, if all of them exist; none means `default`."""
        known = self.names()
        for name in names:
            if name not in known:
                self._missing(name)
        return tuple(dict.fromkeys(names)) or (DEFAULT,)

    def existing(self, names: Iterable[str]) -> list[str]:
        """Those of the names that still exist."""
        known = self.names()
        return [name for name in names if name in known]

    def documents(self, name: str) -> list[Document]:
        """The documents in a context."""
        self.check([name])
        return [item for item in self._store.documents(limit=EVERY) if name in contexts_of(item)]

    def delete(self, name: str) -> int:
        """Remove a context; documents that were nowhere else are in `default` then. How many it had."""
        if name == DEFAULT:
            raise InvalidInput("The context 'default' cannot be deleted", parameter="name")
        with self._lock:
            held = self.documents(name)
            self._store.update_documents(in_contexts(item, set(contexts_of(item)) - {name}) for item in held)
            self._store.delete_setting(f"{PREFIX}{name}")
        return len(held)

    def names(self) -> set[str]:
        """Every context's name."""
        return {DEFAULT, *self._store.settings(PREFIX)}

    @staticmethod
    def _missing(name: str) -> Context:
        raise ContextNotFound(f"Context '{name}' not found", context=name)
