"""Headings of several words have a vector of their own, which counts less than those of passages."""

from collections.abc import Sequence

import numpy as np
import pytest

from bedstone.records import Chunk, Document
from bedstone.search.coverage import MIN_LEARNED, embed_first_passages
from bedstone.search.embedder import Vectors
from bedstone.search.embedders import ESTIMATOR
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.hits import SearchRequest
from bedstone.search.indexer import embed_missing, is_heading
from bedstone.search.indexes.opening import open_index
from bedstone.search.retriever import Retriever
from bedstone.store.engine import Store
from bedstone.store.engines.memory import MemoryStore

LEDGER = "Entries of the ledger are numbered from one, and each page of it is signed by two clerks before it is filed. "
HEADINGS = ("How to get your money back", "Where the archive is kept", "Opening hours", "Notes")
QUESTION = "obtain a refund"


def make_store(headings: tuple[str, ...] = HEADINGS, text: str = LEDGER * 8) -> MemoryStore:
    """Return chunks that differ in their headings alone."""
    store = MemoryStore()
    store.put(
        (Document(f"d{number}", "Ledger", ""), [Chunk(f"d{number}#0", text, text, heading, 1, ("Ledger", heading))])
        for number, heading in enumerate(headings)
    )
    return store


def heading_vectors(store: Store) -> dict[int, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    found = {item.id: item.passage for item in store.passages_between(0, 2**62) if is_heading(item.passage)}
    vectors = store.vectors(list(found))
    return {
        found[number].chunk_rowid: np.frombuffer(vectors[number], np.float16).astype(np.float32) for number in found
    }


def cosines(store: Store, query: str) -> dict[str, float]:
    embedder = MiniLm()
    index = open_index(store, None, embedder)
    index.catch_up()
    retriever = Retriever(store, index, QueryEmbedder(lambda: embedder))
    candidates = retriever.select(SearchRequest(query, mode="semantic"), 10).candidates
    heads = retriever.heads(candidates)
    return {heads[item.rowid].heading: item.cosine or 0.0 for item in candidates}


def test_a_section_is_near_to_what_its_heading_says_however_long_its_text_is() -> None:
    store = make_store()
    embed_missing(store, MiniLm())
    near = cosines(store, QUESTION)
    assert max(near, key=near.__getitem__) == HEADINGS[0]
    alone = float(np.prod(MiniLm().embed([HEADINGS[0], QUESTION]), 0).sum())
    assert near[HEADINGS[0]] == pytest.approx(MiniLm.heading_share * alone, abs=0.01)


def test_short_headings_have_none_and_passages_that_are_nearer_count() -> None:
    store = make_store()
    embed_missing(store, MiniLm())
    assert heading_vectors(store).keys() == {1, 2}
    near = cosines(store, "how are the entries of the ledger numbered")
    assert np.ptp(list(near.values())) < 0.1, "what the heading says is not what is asked"
    assert min(near.values()) > 0.5


def test_an_embedder_without_a_share_for_headings_gives_them_no_vectors() -> None:
    store = make_store()
    embed_missing(store, HashingEmbedder())
    assert store.counts().passages
    assert not heading_vectors(store)


def test_both_ways_to_embed_store_the_same_vectors_of_headings() -> None:
    headings = tuple(f"How to read report number {number}" for number in range(12))
    whole, part = make_store(headings), make_store(headings)
    embed_missing(whole, MiniLm())
    embed_first_passages(part, MiniLm(), workers=1)
    expected, found = heading_vectors(whole), heading_vectors(part)
    assert found.keys() == expected.keys() == set(range(1, 13))
    for rowid, vector in found.items():
        assert np.linalg.norm(vector) == pytest.approx(MiniLm.heading_share, abs=0.01)
        assert np.array_equal(vector, expected[rowid])


class Interrupted(MiniLm):
    """Embeds so many texts, and then no more."""

    def __init__(self, texts: int) -> None:
        self.left = texts

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.left <= 0:
            raise KeyboardInterrupt
        self.left -= len(texts)
        return super().embed(texts)


def test_an_interrupted_run_goes_on_with_headings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bedstone.search.coverage.MIN_LEARNED", 10)
    headings = tuple(f"How to read report number {number}" for number in range(24))
    store = make_store(headings, "A short report about the weather of the week.")
    with pytest.raises(KeyboardInterrupt):
        embed_first_passages(store, Interrupted(16), workers=1)
    done = store.counts().passages
    assert 0 < done < 48
    rest = Interrupted(10**6)
    embed_first_passages(store, rest, workers=1)
    assert 10**6 - rest.left == 48 - done
    assert store.counts().passages == 48
    assert len(heading_vectors(store)) == 24


def test_estimates_are_learned_from_passages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bedstone.search.coverage.MIN_LEARNED", 10)
    headings = tuple(f"How to read report number {number}" for number in range(12))
    store = make_store(headings, "A short report about the weather of the week.")
    embed_first_passages(store, MiniLm(), workers=1)
    assert len(heading_vectors(store)) == 12 < MIN_LEARNED
    assert (store.get_value(ESTIMATOR) or "").split()[0] == "12"
