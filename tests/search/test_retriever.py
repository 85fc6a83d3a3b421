"""The stages of the retrieval pipeline, with hand-made candidates."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.records import Chunk, ChunkHead, Document
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.filters import Filter
from bedstone.search.fusion import rank
from bedstone.search.hits import Candidate, Ranking, SearchRequest
from bedstone.search.index import IndexQuery, OnProgress
from bedstone.search.relevance import make_non_increasing
from bedstone.search.retriever import (
    Plan,
    Profile,
    Retriever,
    break_ties,
    collect,
    count_settled,
    is_unrelated,
    plan_query,
)
from bedstone.store.engines.memory import MemoryStore

PLAN = Plan("text", None, 0.0, is_question=False)


@dataclass
class ScriptedIndex:
    """An index with fixed keyword scores by rowid, which proposes no more candidates than it is asked for."""

    scores: Mapping[int, float]
    quotations: Sequence[str] = ()
    queries: list[IndexQuery] = field(default_factory=list)
    applied_seq: int = 1
    has_vectors: bool = False

    @property
    def chunk_count(self) -> int:
        return len(self.scores)

    def verify(self) -> None:
        """There are no files."""

    def problem(self) -> str | None:
        return None

    def catch_up(self, on_progress: OnProgress | None = None, *, in_batches: bool = False) -> None:
        pass

    def search(self, query: IndexQuery) -> Ranking:
        self.queries.append(query)
        best = sorted(self.scores, key=lambda rowid: (-self.scores[rowid], rowid))[: query.depth]
        return rank({rowid: self.scores[rowid] for rowid in best}, {}, 0.0, query.limit)

    def is_quotation(self, text: str) -> bool:
        return text in self.quotations

    def count_facets(self, text: str | None, filter: Filter | None) -> Mapping[str, Mapping[str, int]]:
        return {}

    def document_frequency(self, term: str) -> int:
        return 1

    def suggest_terms(self, word: str) -> list[str]:
        return []

    def close(self) -> None:
        pass


def candidates(*scores: float) -> list[Candidate]:
    return [Candidate(rowid, score, score) for rowid, score in enumerate(scores, 1)]


def heads(names: Mapping[int, str]) -> dict[int, ChunkHead]:
    return {rowid: ChunkHead(rowid, name, 0, name, "", 0, (), {}, None) for rowid, name in names.items()}


def first_letter(head: ChunkHead, request: SearchRequest) -> str:
    return head.id[0]


def own_id(head: ChunkHead, request: SearchRequest) -> str:
    return head.id


def retriever(ids: Iterable[str], scores: Sequence[float], profile: Profile) -> Retriever:
    """Return a retriever over one document per id, with these scores."""
    store = MemoryStore()
    store.put((Document(name, "", ""), [Chunk(name, text="brake", plain="brake")]) for name in ids)
    index = ScriptedIndex(dict(enumerate(scores, 1)))
    return Retriever(store, index, QueryEmbedder(lambda: None), profile)


def page(searched: Retriever, offset: int, limit: int) -> list[str]:
    response = searched.search(SearchRequest("brake", offset=offset, limit=limit))
    return [hit.head.id for hit in response.hits]


@pytest.mark.parametrize(
    ("ranking", "unrelated"),
    [
        (Ranking([Candidate(1, 0.5, None, 0.29)], 1, ("semantic",)), True),
        (Ranking([Candidate(1, 0.5, None, 0.2), Candidate(2, 0.4, None, 0.3)], 2, ("semantic",)), False),
        (Ranking([Candidate(1, 0.5, 2.0, 0.1)], 1, ("keyword", "semantic")), False),
        (Ranking([], 0, ()), True),
    ],
)
def test_without_a_matching_term_distant_neighbours_are_cut(ranking: Ranking, unrelated: bool) -> None:
    assert is_unrelated(ranking, 0.3) is unrelated
    assert not is_unrelated(ranking, 0.0)


def test_collecting_goes_deeper_only_while_there_are_too_few() -> None:
    index = ScriptedIndex({rowid: 1 / rowid for rowid in range(1, 2_001)})
    assert len(collect(PLAN, None, 50, index).candidates) == 50
    assert [query.depth for query in index.queries] == [100]
    deep = collect(PLAN, None, 500, index).candidates
    assert [candidate.rowid for candidate in deep] == list(range(1, 501))
    assert [query.depth for query in index.queries] == [100, 100, 1_000]


def test_promoted_documents_keep_their_place_in_longer_lists() -> None:
    index = ScriptedIndex({rowid: 1 / rowid for rowid in range(1, 301)})
    short, long = (collect(PLAN, None, limit, index, lambda rowid: rowid // 3).candidates for limit in (40, 300))
    assert [item.rowid for item in short] == [item.rowid for item in long[:40]]
    assert [item.rowid for item in short] != list(range(1, 41))
    assert sorted(item.rowid for item in long) == list(range(1, 301))


def test_a_quotation_is_neither_embedded_nor_answered_by_documents() -> None:
    index = ScriptedIndex({}, quotations=["Rate limits"], has_vectors=True)
    embedding = QueryEmbedder(lambda: pytest.fail("embedded"))
    plan = plan_query("Rate limits", "hybrid", index, embedding, Profile().weights)
    assert (plan.text, plan.vector, plan.semantic_weight, plan.is_question) == ("Rate limits", None, 0.0, False)


def test_candidates_that_tie_with_the_last_are_not_settled() -> None:
    assert count_settled(candidates(3, 2, 1)) == 2
    assert count_settled(candidates(3, 2, 2, 2)) == 1
    assert count_settled(candidates(2, 2)) == 0


def test_ties_are_in_the_order_of_ids_wherever_a_step_ends() -> None:
    names = {1: "m", 2: "z", 3: "a", 4: "k", 5: "b"}
    tied = candidates(9, 5, 5, 5, 1)
    for step in range(1, 6):
        found = [head.id for _, head in break_ties(tied, step, lambda _: heads(names))]
        assert found == ["m", "a", "k", "z", "b"]


def test_deleted_chunks_are_left_out() -> None:
    found = break_ties(candidates(3, 2, 1), 3, lambda _: heads({1: "a", 3: "c"}))
    assert [head.id for _, head in found] == ["a", "c"]


def test_the_best_of_each_group_is_a_hit_and_all_groups_are_counted() -> None:
    ids = ["a1", "b1", "a2", "c1", "b2"]
    profile = Profile(windows=(200,), group_key=first_letter, counts_all=True)
    response = retriever(ids, [5, 4, 3, 2, 1], profile).search(SearchRequest("brake", limit=2))
    assert [hit.head.id for hit in response.hits] == ["a1", "b1"]
    assert (response.has_more, response.matched, response.is_lower_bound) == (True, 3, False)


def test_a_full_window_makes_the_count_a_lower_bound() -> None:
    profile = Profile(windows=(3,), group_key=own_id, counts_all=True)
    response = retriever("abcde", [5, 4, 3, 2, 1], profile).search(SearchRequest("brake", limit=2))
    assert (response.matched, response.is_lower_bound) == (3, True)


def test_scores_never_rise_and_low_ones_can_be_left_out() -> None:
    assert make_non_increasing([0.4, 0.9, 0.3, 0.35]) == pytest.approx([0.4, 0.3999, 0.3, 0.2999])
    store = MemoryStore()
    texts = {"a": "brake", "b": "brake disc", "c": "wheel"}
    store.put((Document(name, "", ""), [Chunk(name, text, text)]) for name, text in texts.items())
    searched = Retriever(store, ScriptedIndex({1: 3.0, 2: 2.0, 3: 1.0}), QueryEmbedder(lambda: None))
    scores = [hit.score for hit in searched.search(SearchRequest("brake disc")).hits]
    assert all(first >= second for first, second in pairwise(scores))
    kept = searched.search(SearchRequest("brake disc", min_score=scores[1] - 0.001)).hits
    assert [hit.head.id for hit in kept] == ["a", "b"]


def test_the_parts_of_identifiers_count_for_the_score() -> None:
    store = MemoryStore()
    texts = {"a": "RateLimitError says when to retry", "b": "NotFoundError says what is missing"}
    store.put((Document(name, "", ""), [Chunk(name, text, text)]) for name, text in texts.items())
    searched = Retriever(store, ScriptedIndex({1: 2.0, 2: 1.0}), QueryEmbedder(lambda: None))
    first, second = searched.search(SearchRequest("rate limits")).hits
    assert first.score > 0.5 > second.score


@given(
    scores=st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]) | st.floats(0, 9), max_size=60),
    sizes=st.lists(st.integers(1, 25), min_size=1, max_size=8),
    windows=st.lists(st.integers(1, 80), min_size=1, max_size=4, unique=True).map(lambda items: tuple(sorted(items))),
    letters=st.integers(1, 20),
)
def test_pages_of_any_size_form_one_list(
    scores: list[float], sizes: list[int], windows: tuple[int, ...], letters: int
) -> None:
    ids = [f"{chr(97 + number * 7 % letters)}{number * 31 % 61:02}" for number in range(len(scores))]
    searched = retriever(ids, scores, Profile(windows=windows, group_key=first_letter))
    everything = page(searched, 0, 100)
    assert len({name[0] for name in everything}) == len(everything)
    found: list[str] = []
    while len(found) < len(everything):
        size = sizes[len(found) % len(sizes)]
        found += page(searched, len(found), size)
    assert found == everything
    assert page(searched, len(everything), 5) == []
