"""Keyword and semantic search together, with a real model."""

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bedstone.errors import Unavailable
from bedstone.records import Chunk, Document
from bedstone.search.embedder import Embedder
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.embedding import RETRY_SECONDS, QueryEmbedder
from bedstone.search.embedding_cache import CachedEmbedder
from bedstone.search.filters import OneOf
from bedstone.search.fusion import fuse, promote_documents
from bedstone.search.hits import Candidate, SearchRequest
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.opening import open_index
from bedstone.search.language import semantic_weight
from bedstone.search.retriever import Profile, Retriever, Selection
from bedstone.store.engines.memory import MemoryStore
from support.noise import noisy_variants

EMBEDDERS: dict[str, Callable[[], Embedder]] = {"minilm": MiniLm, "hash": HashingEmbedder}
TEXTS = {
    "battery": "A full charge of the accumulator takes four hours.",
    "brakes": "If the bicycle does not stop, have the pads replaced.",
    "refund": "Customers get their money back within ten days of the return.",
    "orders": "Error E21 means that the engine is too hot.",
}
NOISY_VARIANTS = 60


@pytest.fixture(scope="module")
def model() -> MiniLm:
    return MiniLm()


@pytest.fixture(params=EMBEDDERS)
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return EMBEDDERS[request.param]()


def retriever_for(
    texts: dict[str, str], embedder: Embedder | None, clock: Callable[[], float] = time.monotonic
) -> tuple[Retriever, MemoryStore]:
    store = MemoryStore()
    store.put(
        (Document(name, "", ""), [Chunk(id=name, text=text, plain=text, facets={"letter": name[0]})])
        for name, text in texts.items()
    )
    if embedder:
        embed_missing(store, embedder)
    index = open_index(store, None, embedder)
    index.catch_up()
    return Retriever(store, index, QueryEmbedder(lambda: embedder, clock=clock)), store


def select(retriever: Retriever, query: str, count: int = 10, **options: Any) -> Selection:
    return retriever.select(SearchRequest(query, **options), count)


def names(retriever: Retriever, query: str, limit: int = 10, **options: Any) -> list[str]:
    return [hit.head.document_id for hit in retriever.search(SearchRequest(query, limit=limit, **options)).hits]


def signals(retriever: Retriever, query: str, **options: Any) -> tuple[str, ...]:
    return retriever.search(SearchRequest(query, **options)).signals


def test_vectors_are_unit_and_repeatable(embedder: Embedder) -> None:
    texts = ["short", "a much longer text about cargo bikes " * 20, "", "ünïcödé 電池"]
    vectors = embedder.embed(texts)
    assert vectors.shape == (4, embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors[[0, 1, 3]], axis=1), 1, atol=1e-3)
    assert np.allclose(embedder.embed(texts[::-1])[::-1], vectors, atol=1e-5)
    assert np.allclose(embedder.embed_query("short"), vectors[0], atol=1e-5)
    assert embedder.embed([]).shape == (0, embedder.dimensions)


@pytest.mark.parametrize("text", ["", "one", "word " * 150, "word " * 900, "電池" * 700, "x" * 5000])
def test_passages_cover_the_text_in_order(embedder: Embedder, text: str) -> None:
    spans = embedder.split("Guide > Batteries", text)
    assert spans[0][0] == 0
    assert spans[-1][1] >= len(text.rstrip())
    for (_, end), (start, _) in pairwise(spans):
        assert start <= end + 1
    assert len(spans) < 60


def test_meaning_finds_what_words_miss(model: MiniLm) -> None:
    for embedder in noisy_variants(model, NOISY_VARIANTS):
        retriever, _ = retriever_for(TEXTS, embedder)
        assert names(retriever, "how long until it is loaded with electricity")[0] == "battery"
        assert names(retriever, "reimbursement after sending goods back")[0] == "refund"
        assert names(retriever, "E21")[0] == "orders"


def test_each_mode_uses_its_own_signal(model: MiniLm) -> None:
    retriever, _ = retriever_for(TEXTS, model)
    assert signals(retriever, "engine hot", mode="keyword") == ("keyword",)
    assert signals(retriever, "engine hot", mode="semantic") == ("semantic",)
    assert signals(retriever, "engine hot") == ("keyword", "semantic")
    assert names(retriever, "reimbursement", mode="keyword") == []
    selection = select(retriever, "engine hot")
    best = selection.candidates[0]
    assert best.keyword_score
    assert best.cosine
    assert selection.ranking.passage(best.rowid) == (0, len(TEXTS["orders"]))


def test_without_an_embedder_words_do_it_alone() -> None:
    retriever, _ = retriever_for(TEXTS, None)
    assert names(retriever, "the engine")[0] == "orders"
    assert signals(retriever, "the engine") == ("keyword",)


def test_filters_hold_on_both_sides(model: MiniLm) -> None:
    retriever, _ = retriever_for(TEXTS, model)
    only = names(retriever, "reimbursement for a full engine", filter=OneOf("letter", ("b",)))
    assert set(only) == {"battery", "brakes"}


def test_the_best_passage_of_a_long_chunk_counts(model: MiniLm) -> None:
    filler = "The committee discussed the minutes of the previous meeting at some length. " * 40
    texts = {"long": f"{filler}Penguins live in Antarctica. {filler}", "other": filler}
    for embedder in noisy_variants(model, NOISY_VARIANTS):
        retriever, store = retriever_for(texts, embedder)
        selection = select(retriever, "penguins of Antarctica", mode="semantic")
        (stored,) = store.chunks([selection.candidates[0].rowid]).values()
        assert stored.head.document_id == "long"
        passage = selection.ranking.passage(stored.head.rowid)
        assert passage
        assert "Penguins" in stored.plain[slice(*passage)]


def test_a_quotation_is_looked_up_by_words_alone(model: MiniLm) -> None:
    retriever, _ = retriever_for(TEXTS, model)
    assert signals(retriever, "takes four hours means that") == ("keyword", "semantic")
    assert signals(retriever, "full charge of the accumulator takes") == ("keyword",)


def test_vectors_without_meaning_never_decide() -> None:
    retriever, _ = retriever_for(TEXTS, HashingEmbedder())
    assert retriever.index.has_vectors
    assert signals(retriever, "engine money") == ("keyword",)


def test_a_failing_model_costs_meaning_but_not_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    class Moody(MiniLm):
        is_down = False

        def embed_query(self, text):  # type: ignore[no-untyped-def]
            if self.is_down:
                raise Unavailable("The service did not answer")
            return super().embed_query(text)

    moody, now = Moody(), 100.0
    retriever, _ = retriever_for(TEXTS, moody, lambda: now)
    moody.is_down = True
    with caplog.at_level("INFO"):
        assert [signals(retriever, "engine hot") for _ in range(2)] == [("keyword",), ("keyword",)]
        moody.is_down = False
        assert signals(retriever, "engine hot") == ("keyword",)  # it is left alone for a while
        now += RETRY_SECONDS
        assert signals(retriever, "engine hot") == ("keyword", "semantic")
    assert [record.getMessage() for record in caplog.records] == [
        "Semantic search failed, using keyword search: The service did not answer",
        "Semantic search works again",
    ]


def test_deep_pages_keep_the_order_of_the_first_ones(model: MiniLm) -> None:
    texts = {f"n{number}": f"Bolt number {number} holds plate {number % 7}." for number in range(400)}
    retriever, _ = retriever_for(texts, None)
    first = [item.rowid for item in select(retriever, "bolt plate 3", 20).candidates]
    deep = [item.rowid for item in select(retriever, "bolt plate 3", 400).candidates]
    assert deep[:20] == first
    assert len(deep) == len(set(deep)) == 400


def test_what_was_embedded_once_is_remembered(tmp_path: Path, model: MiniLm) -> None:
    class Counting(MiniLm):
        count = 0

        def embed(self, texts):  # type: ignore[no-untyped-def]
            Counting.count += len(texts)
            return super().embed(texts)

    texts = ["one", "two", "one"]
    first = CachedEmbedder(Counting(), tmp_path / "cache.sqlite").embed(texts)
    assert Counting.count == 2
    assert np.allclose(CachedEmbedder(Counting(), tmp_path / "cache.sqlite").embed(texts), first)
    assert Counting.count == 2
    assert np.allclose(first, model.embed(texts), atol=1e-3)


@pytest.mark.parametrize(
    ("text", "weight"),
    [
        ("how do I pay", 0.5),
        ("RATE_LIMIT", 0.5),
        ("如何安装", 0.0),
        ("как это работает", 0.0),
        ("wie wird das gemacht", 0.25),
        ("¿qué es una cuenta?", 0.25),
        ("configure 設定 of the server please", 0.5),
    ],
)
def test_meaning_counts_less_in_languages_the_model_does_not_know(text: str, weight: float) -> None:
    assert semantic_weight(text, {"en"}) == weight
    assert semantic_weight(text, {"*"}) == 0.5


def test_fusion_is_neutral_to_what_is_missing() -> None:
    assert fuse({}, {}, 0.5) == {}
    assert fuse({1: 3.0}, {}, 0.0) == {1: 0.0}
    scores = fuse({1: 4.0, 2: 2.0, 3: 0.5}, {1: 0.9, 2: 0.2}, 0.5)
    assert scores[1] > scores[2]
    assert sorted(scores) == [1, 2, 3]


def test_chunks_of_one_document_speak_for_each_other_and_give_way() -> None:
    hits = [
        Candidate(11, 10.0),
        Candidate(21, 9.8),
        Candidate(22, 9.0),
        Candidate(31, 8.5),
        Candidate(12, 8.0),
        Candidate(23, 7.0),
        Candidate(99, 0.0),
    ]
    moved = promote_documents(hits, lambda rowid: rowid // 10)
    assert [hit.rowid for hit in moved] == [21, 11, 31, 22, 12, 23, 99]
    assert [hit.score for hit in moved] == sorted((hit.score for hit in moved), reverse=True)
    assert min(hit.score for hit in moved) >= 0.0  # what comes after them still does
    assert [hit.rowid for hit in promote_documents(hits, lambda rowid: rowid)] == [hit.rowid for hit in hits]
    assert promote_documents([], lambda rowid: rowid) == []


def test_questions_are_answered_by_documents_and_quotations_by_chunks() -> None:
    store = MemoryStore()
    pages = {
        "brakes": [
            "A bicycle with worn pads needs long to stop, so replace them.",
            "Which pads fit which bicycle.",
            "Worn pads squeal when you stop.",
        ],
        "rain": ["A bicycle with worn pads does not stop.", "Wear a coat.", "Mind the tram."],
        "shop": [
            "We sell every kind of bicycle, also used ones, and take yours in part exchange if it is not too old."
        ],
    }
    for name, texts in pages.items():
        chunks = [Chunk(id=f"{name}#{at}", text=text, plain=text) for at, text in enumerate(texts)]
        store.put([(Document(name, "", ""), chunks)])
    index = open_index(store, None, None)
    index.catch_up()
    alone, together = (
        Retriever(store, index, QueryEmbedder(lambda: None), Profile(promotes_documents=promotes))
        for promotes in (False, True)
    )
    question = "does my bicycle stop on worn pads?"
    assert names(alone, question, limit=2)[0] == "rain"
    assert names(together, question, limit=2) == ["brakes", "rain"]
    assert names(together, question, limit=1) == ["brakes"]
    quotation = "with worn pads does not stop"
    assert names(together, quotation) == names(alone, quotation)
