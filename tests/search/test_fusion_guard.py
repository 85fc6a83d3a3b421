"""Semantic search counts more where the first keyword hits have little of a question."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.records import Chunk, Document
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.fusion import COVERING_HITS, fuse, rank, trust_vectors
from bedstone.search.hits import SearchRequest
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.opening import open_index
from bedstone.search.matching import Matcher
from bedstone.search.retriever import Retriever
from bedstone.store.engines.memory import MemoryStore

# Ten candidates: keyword search prefers 1, and one vector, that of 9, stands out from the others.
KEYWORDS = {number: 10.0 - number for number in range(1, 9)}
COSINES = dict.fromkeys(range(1, 12), 0.2) | {9: 0.8}
CLOSE = {number: 0.2 + number / 100 for number in range(1, 12)}


def order(cosines: dict[int, float], coverage: float, share: float = 0.5) -> tuple[list[int], list[Sequence[int]]]:
    asked: list[Sequence[int]] = []

    def coverage_of(rowids: Sequence[int]) -> float:
        asked.append(rowids)
        return coverage

    ranking = rank(KEYWORDS, cosines, share, 11, coverage_of=coverage_of)
    return [candidate.rowid for candidate in ranking.candidates], asked


def plain(cosines: dict[int, float], share: float) -> list[int]:
    scores = fuse(KEYWORDS, cosines, share)
    return sorted(scores, key=lambda rowid: (-scores[rowid], rowid))


def test_little_coverage_and_a_vector_that_stands_out_shift_the_share() -> None:
    found, asked = order(COSINES, 0.3)
    assert found == plain(COSINES, trust_vectors(0.5))
    assert [list(rowids) for rowids in asked] == [list(KEYWORDS)[:COVERING_HITS]]
    assert trust_vectors(0.5) == pytest.approx(0.7)


@pytest.mark.parametrize(("cosines", "coverage"), [(COSINES, 0.9), (CLOSE, 0.3), (COSINES, 0.7)])
def test_otherwise_the_share_stays(cosines: dict[int, float], coverage: float) -> None:
    found, asked = order(cosines, coverage)
    assert found == plain(cosines, 0.5)
    assert bool(asked) == (cosines is COSINES)  # texts are read only where the answer could matter


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_one_side_alone_is_not_weighed(share: float) -> None:
    _, asked = order(COSINES, 0.1, share)
    assert asked == []


def test_coverage_is_read_from_the_first_keyword_hits() -> None:
    """A page in other words than the question comes first, although other pages share a word with it."""
    store = MemoryStore()
    pages = {
        f"town-{number}": f"The town hall of place {number} opens at nine. Bring your papers." for number in range(30)
    }
    pages["engine"] = "Renew the lubricant of the motor after 15,000 kilometres of driving."
    pages["park"] = "The car park behind the station costs two euros."
    pages["ferry"] = "A car on the ferry costs eighteen euros."
    store.put((Document(name, name, ""), [Chunk(name, text, text)]) for name, text in pages.items())
    embedder = MiniLm()
    embed_missing(store, embedder)
    index = open_index(store, None, embedder)
    index.catch_up()
    retriever = Retriever(store, index, QueryEmbedder(lambda: embedder))
    candidates = retriever.select(SearchRequest("how often must the oil of a car be changed"), 3).candidates
    heads = retriever.heads(candidates)
    assert heads[candidates[0].rowid].id == "engine"


WORDS = st.sampled_from(["run", "runs", "running", "prune", "pruned", "array", "ray", "ray_get", "RAY", "x", "run_id"])


@given(st.lists(WORDS, min_size=1, max_size=6), st.lists(WORDS, max_size=12))
def test_terms_are_found_like_matches(query: list[str], text: list[str]) -> None:
    matcher = Matcher(" ".join(query))
    written = ", ".join(text)
    assert matcher.find_terms(written) == {term for _, _, term in matcher.find(written)}
