"""Words and meaning together, with a real model."""

from bisect import bisect_right
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bedstone.errors import Unavailable
from bedstone.records import Chunk, Document
from bedstone.search.embedder import Embedder
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.embedding_cache import CachedEmbedder
from bedstone.search.fusion import by_document, fuse
from bedstone.search.hits import Hit, Is
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.keyword import WordIndex
from bedstone.search.indexes.vector import VectorIndex
from bedstone.search.language import vector_weight
from bedstone.search.retriever import SearchEngine
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


def engine_for(texts: dict[str, str], embedder: Embedder | None) -> tuple[SearchEngine, MemoryStore]:
    store = MemoryStore()
    store.put(
        (Document(name, "", ""), [Chunk(id=name, text=text, plain=text, facets={"letter": name[0]})])
        for name, text in texts.items()
    )
    if embedder:
        embed_missing(store, embedder)
    index = HybridIndex(
        store, WordIndex(), VectorIndex(store, embedder.dimensions, embedder.reach) if embedder else None
    )
    index.catch_up()
    return SearchEngine(index, embedder), store


def names(engine: SearchEngine, store: MemoryStore, query: str, **options: object) -> list[str]:
    hits = engine.search(query, **options).hits  # type: ignore[arg-type]
    stored = store.chunks([hit.rowid for hit in hits])
    return [stored[hit.rowid].head.document_id for hit in hits]


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
    spans = embedder.passages("Guide > Batteries", text)
    assert spans[0][0] == 0
    assert spans[-1][1] >= len(text.rstrip())
    for (_, end), (start, _) in pairwise(spans):
        assert start <= end + 1
    assert len(spans) < 60


def test_meaning_finds_what_words_miss(model: MiniLm) -> None:
    for embedder in noisy_variants(model, NOISY_VARIANTS):
        engine, store = engine_for(TEXTS, embedder)
        assert names(engine, store, "how long until it is loaded with electricity")[0] == "battery"
        assert names(engine, store, "reimbursement after sending goods back")[0] == "refund"
        assert names(engine, store, "E21")[0] == "orders"


def test_each_mode_uses_its_own_signal(model: MiniLm) -> None:
    engine, store = engine_for(TEXTS, model)
    assert engine.search("engine hot", mode="words").signals == ("words",)
    assert engine.search("engine hot", mode="vectors").signals == ("vectors",)
    assert engine.search("engine hot").signals == ("words", "vectors")
    assert names(engine, store, "reimbursement", mode="words") == []
    found = engine.search("engine hot")
    assert found.hits[0].words
    assert found.hits[0].cosine
    assert found.passage(found.hits[0].rowid) == (0, len(TEXTS["orders"]))


def test_without_an_embedder_words_do_it_alone() -> None:
    engine, store = engine_for(TEXTS, None)
    assert names(engine, store, "the engine")[0] == "orders"
    assert engine.search("the engine").signals == ("words",)


def test_filters_hold_on_both_sides(model: MiniLm) -> None:
    engine, store = engine_for(TEXTS, model)
    only = names(engine, store, "reimbursement for a hot engine", condition=Is("letter", ("b",)))
    assert set(only) == {"battery", "brakes"}


def test_the_best_passage_of_a_long_chunk_counts(model: MiniLm) -> None:
    filler = "The committee discussed the minutes of the previous meeting at some length. " * 40
    texts = {"long": f"{filler}Penguins live in Antarctica. {filler}", "other": filler}
    for embedder in noisy_variants(model, NOISY_VARIANTS):
        engine, store = engine_for(texts, embedder)
        found = engine.search("Which birds live near the south pole?", mode="vectors")
        (stored,) = store.chunks([found.hits[0].rowid]).values()
        assert stored.head.document_id == "long"
        passage = found.passage(stored.head.rowid)
        assert passage
        assert "Penguins" in stored.plain[slice(*passage)]


def test_a_quotation_is_looked_up_by_words_alone(model: MiniLm) -> None:
    engine, _ = engine_for(TEXTS, model)
    assert engine.search("takes four hours means that").signals == ("words", "vectors")
    assert engine.search("full charge of the accumulator takes").signals == ("words",)


def test_vectors_without_meaning_never_decide() -> None:
    engine, _ = engine_for(TEXTS, HashingEmbedder())
    assert engine.index.has_vectors
    assert engine.search("engine money").signals == ("words",)


def test_a_failing_model_costs_meaning_but_not_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    class Moody(MiniLm):
        is_down = False

        def embed_query(self, text):  # type: ignore[no-untyped-def]
            if self.is_down:
                raise Unavailable("The service did not answer")
            return super().embed_query(text)

    moody = Moody()
    engine, _ = engine_for(TEXTS, moody)
    moody.is_down = True
    with caplog.at_level("INFO"):
        assert [engine.search("engine hot").signals for _ in range(2)] == [("words",), ("words",)]
        moody.is_down = False
        assert engine.search("engine hot").signals == ("words", "vectors")
    assert [record.getMessage() for record in caplog.records] == [
        "vector search degraded to lexical-only: The service did not answer",
        "vector search is back",
    ]


def test_deep_pages_keep_the_order_of_the_first_ones(model: MiniLm) -> None:
    texts = {f"n{number}": f"Bolt number {number} holds plate {number % 7}." for number in range(400)}
    engine, _ = engine_for(texts, None)
    first = [hit.rowid for hit in engine.search("bolt plate 3", limit=20).hits]
    deep = [hit.rowid for hit in engine.search("bolt plate 3", limit=400).hits]
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
    assert vector_weight(text, {"en"}) == weight
    assert vector_weight(text, {"*"}) == 0.5


def test_fusion_is_neutral_to_what_is_missing() -> None:
    assert fuse({}, {}, 0.5) == {}
    assert fuse({1: 3.0}, {}, 0.0) == {1: 0.0}
    scores = fuse({1: 4.0, 2: 2.0, 3: 0.5}, {1: 0.9, 2: 0.2}, 0.5)
    assert scores[1] > scores[2]
    assert sorted(scores) == [1, 2, 3]


def test_chunks_of_one_document_speak_for_each_other_and_give_way() -> None:
    hits = [Hit(11, 10.0), Hit(21, 9.8), Hit(22, 9.0), Hit(31, 8.5), Hit(12, 8.0), Hit(23, 7.0), Hit(99, 0.0)]
    moved = by_document(hits, lambda rowid: rowid // 10)
    assert [hit.rowid for hit in moved] == [21, 11, 31, 22, 12, 23, 99]
    assert [hit.score for hit in moved] == sorted((hit.score for hit in moved), reverse=True)
    assert min(hit.score for hit in moved) >= 0.0  # what comes after them still does
    assert [hit.rowid for hit in by_document(hits, lambda rowid: rowid)] == [hit.rowid for hit in hits]
    assert by_document([], lambda rowid: rowid) == []


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
    index = HybridIndex(store, WordIndex())
    index.catch_up()
    starts = store.first_chunks()
    alone, together = SearchEngine(index), SearchEngine(index, document_of=lambda rowid: bisect_right(starts, rowid))
    question = "does my bicycle stop on worn pads?"
    assert names(alone, store, question, limit=2)[0] == "rain"
    assert names(together, store, question, limit=2) == ["brakes", "rain"]
    assert names(together, store, question, limit=1) == ["brakes"]
    quotation = "with worn pads does not stop"
    assert names(together, store, quotation) == names(alone, store, quotation)
