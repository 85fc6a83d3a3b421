"""Which chunks a document has, remembered between the pages of it that are looked at."""

import pytest

from bedstone.records import Chunk, Document
from bedstone.services.knowledge import contents
from bedstone.services.knowledge.contents import Contents
from bedstone.store.engines.memory import MemoryStore


def put(store: MemoryStore, name: str, *texts: str) -> None:
    chunks = [Chunk(f"{name}_{number}_{text}", text, text) for number, text in enumerate(texts)]
    store.put([(Document(name, name, name), chunks)])


def texts_of(known: Contents, name: str) -> list[str]:
    return [stored.text for stored in known.read(known.heads(name))]


def test_a_document_that_is_read_again_has_its_new_chunks() -> None:
    store = MemoryStore()
    known = Contents(store)
    put(store, "manual", "one", "two")
    assert texts_of(known, "manual") == ["one", "two"]
    put(store, "manual", "three", "four")
    assert texts_of(known, "manual") == ["three", "four"]
    store.delete(["manual"])
    assert texts_of(known, "manual") == []


def test_heads_are_read_once_and_forgotten_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "MAX_KEPT_HEADS", 3)
    store = MemoryStore()
    known = Contents(store)
    put(store, "first", "one", "two")
    put(store, "second", "three", "four")
    first = known.heads("first")
    assert known.heads("first") is first
    known.heads("second")
    assert known.heads("first") is not first
    assert texts_of(known, "first") == ["one", "two"]
