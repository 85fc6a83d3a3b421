"""Semantic search counts more where the first keyword hits have little of a question, less where one repeats it."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.records import Chunk, Document
from bedstone.search.embedders.minilm import MiniLm
from bedstone.search.embedding import QueryEmbedder
from bedstone.search.fusion import COVERING_HITS, KEYWORD_TRUST, MIN_REPEATED, VECTOR_TRUST, fuse, rank, trust
from bedstone.search.hits import SearchRequest
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.opening import open_index
from bedstone.search.matching import Matcher
from bedstone.search.question import QuestionCoverage
from bedstone.search.retriever import Retriever
from bedstone.store.engines.memory import MemoryStore

# Ten candidates: keyword search prefers 1, and one vector, that of 9, stands out from the others.
KEYWORDS = {number: 10.0 - number for number in range(1, 9)}
COSINES = dict.fromkeys(range(1, 12), 0.2) | {9: 0.8}
CLOSE = {number: 0.2 + number / 100 for number in range(1, 12)}


class Shares:
    """The same coverage for every chunk; keeps which chunks it is asked about."""

    def __init__(self, mean: float, together: float) -> None:
        self._mean, self._together = mean, together
        self.asked: list[Sequence[int]] = []

    def mean(self, rowids: Sequence[int]) -> float:
        self.asked.append(list(rowids))
        return self._mean

    def together(self, rowid: int) -> float:
        assert rowid == 1
        return self._together


def order(
    cosines: dict[int, float], mean: float, together: float = 0.0, share: float = 0.5
) -> tuple[list[int], list[Sequence[int]]]:
    coverage = Shares(mean, together)
    ranking = rank(KEYWORDS, cosines, share, 11, coverage=coverage)
    return [candidate.rowid for candidate in ranking.candidates], coverage.asked


def plain(cosines: dict[int, float], share: float) -> list[int]:
    scores = fuse(KEYWORDS, cosines, share)
    return sorted(scores, key=lambda rowid: (-scores[rowid], rowid))


def test_little_coverage_and_a_vector_that_stands_out_raise_the_share() -> None:
    found, asked = order(COSINES, 0.3)
    assert found == plain(COSINES, trust(0.5, VECTOR_TRUST))
    assert asked == [list(KEYWORDS)[:COVERING_HITS]]
    assert trust(0.5, VECTOR_TRUST) == pytest.approx(0.7)


def test_a_hit_that_repeats_the_question_lowers_the_share() -> None:
    found, asked = order(COSINES, 0.3, together=0.9)
    assert found == plain(COSINES, trust(0.5, KEYWORD_TRUST)) != plain(COSINES, 0.5)
    assert asked == []
    assert trust(0.5, KEYWORD_TRUST) == pytest.approx(0.2)


@pytest.mark.parametrize(("cosines", "mean"), [(COSINES, 0.9), (CLOSE, 0.3), (COSINES, 0.6)])
def test_otherwise_the_share_stays(cosines: dict[int, float], mean: float) -> None:
    found, asked = order(cosines, mean, together=0.8)
    assert found == plain(cosines, 0.5)
    assert bool(asked) == (cosines is COSINES)  # texts are read only where the answer could matter


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_one_side_alone_is_not_weighed(share: float) -> None:
    _, asked = order(COSINES, 0.1, share=share)
    assert asked == []


SENTENCE = "The lid of the tank stays shut until the pressure gauge of the second boiler shows zero."
ASKED = "must the lid of the tank stay shut until the pressure gauge of the second boiler shows zero"


def coverage_of(question: str, text: str, context: str = "") -> QuestionCoverage:
    return QuestionCoverage(Matcher(question), 100, lambda _: 5, lambda rowids: [(text, context) for _ in rowids])


def test_a_long_question_is_repeated_by_a_sentence_that_has_its_words() -> None:
    filler = "Nothing else of this is about it. " * 30
    assert coverage_of(ASKED, f"{filler}{SENTENCE}{filler}").together(1) >= MIN_REPEATED
    # The same words all over a page are no sentence that somebody has read.
    scattered = f" {filler}".join(SENTENCE.split())
    assert coverage_of(ASKED, scattered).mean([1]) >= MIN_REPEATED > coverage_of(ASKED, scattered).together(1)


@pytest.mark.parametrize("question", ["tank lid pressure", "when is the tank lid shut", "the second boiler shows zero"])
def test_a_short_question_repeats_nothing(question: str) -> None:
    assert coverage_of(question, SENTENCE).mean([1]) >= MIN_REPEATED
    assert coverage_of(question, SENTENCE).together(1) == 0


def test_words_of_the_headings_count_as_repeated() -> None:
    assert coverage_of(ASKED, "It stays shut.", SENTENCE).together(1) >= MIN_REPEATED


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
