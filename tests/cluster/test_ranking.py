"""The cluster ranks as the embedded index does: the same candidates in the same order, in every language."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bedstone.records import Chunk, Document
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.filters import Filter, OneOf
from bedstone.search.hits import SearchRequest
from bedstone.search.index import IndexQuery, SearchIndex
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.hybrid import HybridIndex
from bedstone.search.indexes.opensearch.index import OpenSearchIndex
from bedstone.search.retriever import Retriever
from bedstone.settings.sections import OpenSearchSettings
from bedstone.store.engines.memory import MemoryStore
from search.test_languages import GERMAN, OTHERS
from support.opensearch import SearchCluster

EMBEDDER = HashingEmbedder()
DOCS = Path(__file__).parents[2] / "docs"
SECTION = re.compile(r"^#+ (.*)$", re.MULTILINE)
QUESTIONS = (
    "how do I keep the password out of the address",
    "what happens when the database does not answer",
    "synchronous_commit",
    "register an entry point for a search index",
    "The password",
    "Imports point down the layers",
    "rate limit of embeddings",
    "serviceNamestring",
    "wie lange ist die Kündigungsfrist",
    "Zimmer im Hotel",
    "Frist",
    "résumé",
    "使用API设置",
    "كلمة السر",
    "ёлка",
    "opzegtermijn woning",
    "why is the vector index copied after every change",
    "which tools does an agent get",
    "nothing of thekind exists zzyzx",
)
FILTERS: tuple[Filter | None, ...] = (None, OneOf("part", ("1", "3")))


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    store = MemoryStore()
    texts = {path.stem: path.read_text() for path in sorted(DOCS.glob("*.md"))} | GERMAN | OTHERS
    store.put((Document(name, name.title(), ""), [*chunks_of(name, text)]) for name, text in texts.items())
    embed_missing(store, EMBEDDER)
    return store


def chunks_of(name: str, text: str) -> Iterator[Chunk]:
    """Cut a page at its headings; some of its sections are long enough for stretches."""
    headings = [("", 0), *((found[1], found.start()) for found in SECTION.finditer(text))]
    for number, (heading, start) in enumerate(headings):
        end = headings[number + 1][1] if number + 1 < len(headings) else len(text)
        if body := text[start:end].strip():
            yield Chunk(f"{name}#{number}", body, body, heading, 1, (heading,), {"part": str(number % 4)})


@pytest.fixture(scope="module", params=[1, 3])
def indexes(
    request: pytest.FixtureRequest, store: MemoryStore, shared_cluster: SearchCluster
) -> Iterator[tuple[SearchIndex, SearchIndex]]:
    settings = OpenSearchSettings(
        hosts=shared_cluster.addresses, prefix=f"ranking-{request.param}", shards=request.param
    )
    ours, theirs = (
        HybridIndex.open(store, None, EMBEDDER),
        OpenSearchIndex.open(store, None, EMBEDDER, settings=settings),
    )
    for index in (ours, theirs):
        index.catch_up()
    yield ours, theirs
    theirs.close()


def agreement(ours: list[int], theirs: list[int]) -> float:
    return len(set(ours) & set(theirs)) / max(1, len(set(ours) | set(theirs)))


ASK: dict[str, Callable[[SearchIndex, str, Filter | None], list[int]]] = {
    "keyword": lambda index, text, filter: [
        item.rowid for item in index.search(IndexQuery(text, filter=filter, limit=10)).candidates
    ],
    "hybrid": lambda index, text, filter: [
        item.rowid
        for item in index.search(IndexQuery(text, EMBEDDER.embed_query(text), filter=filter, limit=10)).candidates
    ],
}


@pytest.mark.parametrize("kind", ASK)
def test_the_first_hits_are_the_same(kind: str, indexes: tuple[SearchIndex, SearchIndex]) -> None:
    shared, firsts, asked = 0.0, 0, 0
    for text in QUESTIONS:
        for condition in FILTERS:
            ours, theirs = (ASK[kind](index, text, condition) for index in indexes)
            assert bool(ours) == bool(theirs), text
            shared += agreement(ours, theirs) if ours else 1
            firsts += ours[:1] == theirs[:1]
            asked += 1
    assert shared / asked >= 0.95
    assert firsts / asked >= 0.95


def test_products_are_exact(indexes: tuple[SearchIndex, SearchIndex]) -> None:
    for text in QUESTIONS[:6]:
        query = IndexQuery(text, EMBEDDER.embed_query(text), limit=50)
        ours, theirs = ({item.rowid: item.cosine for item in index.search(query).candidates} for index in indexes)
        for rowid in ours.keys() & theirs.keys():
            assert ours[rowid] == pytest.approx(theirs[rowid], abs=1e-3), text


def test_what_is_known_of_terms_is_the_same(indexes: tuple[SearchIndex, SearchIndex], store: MemoryStore) -> None:
    ours, theirs = indexes
    for text in QUESTIONS:
        assert ours.is_quotation(text) == theirs.is_quotation(text), text
        for word in text.split():
            assert ours.document_frequency(word.lower()) == theirs.document_frequency(word.lower()), word
    for word in ("databse", "pasword", "indx", "Kündigungsfrit"):
        assert ours.suggest_terms(word)[:1] == theirs.suggest_terms(word)[:1], word
    for counted in (None, "database", "Frist"):
        for condition in FILTERS:
            assert ours.count_facets(counted, condition) == theirs.count_facets(counted, condition), counted
    assert ours.chunk_count == theirs.chunk_count == store.counts().chunks


def test_a_search_through_all_stages_has_the_same_scores(
    indexes: tuple[SearchIndex, SearchIndex], store: MemoryStore
) -> None:
    for text in QUESTIONS:
        ours, theirs = (
            Retriever(store, index, QueryEmbedder(lambda: EMBEDDER)).search(SearchRequest(text, limit=3)).hits
            for index in indexes
        )
        assert [hit.head.id for hit in ours[:1]] == [hit.head.id for hit in theirs[:1]], text
        for one, other in zip(ours[:1], theirs[:1], strict=True):
            assert one.score == pytest.approx(other.score, abs=0.02), text
