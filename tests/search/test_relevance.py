"""How the score of a hit follows from what speaks for it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bedstone.search.matching import Matcher
from bedstone.search.relevance import (
    MODELS,
    WINDOW,
    Evidence,
    Kind,
    QueryTerms,
    make_non_increasing,
    nearness,
    relevance,
)

FREQUENCIES = {"brake": 3, "disc": 1, "the": 40}
KINDS: list[Kind] = list(MODELS)


def query(text: str = "brake disc", chunks: int = 50) -> QueryTerms:
    return QueryTerms(Matcher(text).terms, chunks, lambda term: FREQUENCIES.get(term, 0))


def weigh(text: str, context: str = "", asked: str = "brake disc") -> Evidence:
    return query(asked).weigh(Matcher(asked).find(f"{text}\n{context}"), len(text))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("chunks", [3, 50, 100_000])
def test_more_evidence_never_lowers_a_score(kind: Kind, chunks: int) -> None:
    steps = [0.0, 0.25, 0.5, 0.75, 1.0]
    asked = query(chunks=chunks)
    for covered in ([Evidence(step, 1.0, 0.4) for step in steps], [Evidence(step, 1.0) for step in steps]):
        scores = [relevance(asked, evidence, kind) for evidence in covered]
        assert all(first < second for first, second in pairwise(scores))
        assert all(0 < score < 1 for score in scores)
    for evidences in (
        [Evidence(0.5, 4 * step, 0.4) for step in steps],
        [Evidence(0.5, 1.0, step) for step in [-0.5, *steps]],
    ):
        scores = [relevance(asked, evidence, kind) for evidence in evidences]
        assert scores == sorted(scores)


def test_terms_that_stand_together_or_in_a_heading_cover_more() -> None:
    apart = "brake " + "x" * WINDOW + " disc"
    assert weigh("the brake disc").covered == weigh("brake", "disc").covered == pytest.approx(1.0)
    assert weigh(apart).covered == pytest.approx(weigh("disc").covered)
    assert weigh("disc").covered < 1
    assert weigh("brake").covered < weigh("disc").covered  # the rarer term tells more
    assert weigh("wheel").covered == weigh("").covered == 0.0
    assert weigh("disc", asked="disc zebra").covered == pytest.approx(0.5)  # a strange word is not the rarest of all


def test_strength_grows_with_repetition_and_headings_and_falls_with_length() -> None:
    assert weigh("brake brake").strength > weigh("brake").strength > weigh("brake " + "x " * 500).strength
    assert weigh("brake", "brake").strength > weigh("brake brake").strength
    assert weigh("wheel").strength == 0.0


def test_languages_the_model_hardly_knows_rely_on_terms() -> None:
    near, far = Evidence(0.5, 1.0, 0.9), Evidence(0.5, 1.0, 0.0)
    by_terms = relevance(query(), Evidence(0.5, 1.0), "hybrid")
    gaps = [
        relevance(query(), near, "hybrid", share) - relevance(query(), far, "hybrid", share) for share in (1, 0.5, 0)
    ]
    assert gaps[0] > gaps[1] > gaps[2] == 0
    assert relevance(query(), near, "hybrid", 0.0) == by_terms == relevance(query(), near, "keyword")


def test_nearness_is_measured_on_the_scale_of_the_model() -> None:
    assert nearness(None, 0.3) is None
    assert (nearness(0.3, 0.3), nearness(1.0, 0.3), nearness(0.15, 0.15)) == (0.0, 1.0, 0.0)


@given(st.lists(st.floats(0, 1), max_size=50))
def test_scores_fall_with_rank_and_only_equal_evidence_ties(values: list[float]) -> None:
    lowered = make_non_increasing(values)
    assert all(first >= second for first, second in pairwise(lowered))
    assert all(0 <= after <= before for before, after in zip(values, lowered, strict=True))
    for (value, _), (before, after) in zip(pairwise(values), pairwise(lowered), strict=True):
        assert before > after or after == 0 or value >= before == after
