"""Snippets, cursors, metrics."""

import pytest

from bedstone.evaluation.metrics import ndcg, recall, reciprocal_rank
from bedstone.search.cursor import InvalidCursor, make_cursor, read_cursor
from bedstone.search.matching import Matcher
from bedstone.search.snippets import snippet

LONG = "Filler words stand here. " * 40 + "The Retry-After header says when. " + "More filler follows now. " * 40


def test_a_snippet_shows_the_densest_matches_in_the_original_text() -> None:
    shown = snippet(LONG, Matcher("retry after header"))
    assert "The Retry-After header says when." in shown.text
    assert shown.text.startswith("...")
    assert shown.text.endswith("...")
    assert len(shown.text) <= 230
    assert [shown.text[start:end] for start, end in shown.highlights] == ["Retry", "After", "header"]


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("retry", "Retries were retried; one retry left.", ["Retries", "retried", "retry"]),
        ("the client", "The CLIENT of the clients", ["CLIENT", "clients"]),
        ("the", "The end of the day", ["The", "the"]),
        ("Café", "a café, two cafés", ["café", "cafés"]),
        ("c++ (x)", "use c++ or x", ["c", "x"]),
        ("log_level", "set LOG_LEVEL, the level of the log", ["LOG", "LEVEL", "level", "log"]),
        ("level", "log_level", ["level"]),
    ],
)
def test_words_are_found_whatever_their_endings(query: str, text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end, _ in Matcher(query).find(text)] == found


def test_a_short_text_is_shown_whole() -> None:
    shown = snippet("Only\n\nthis  text.", Matcher("text"))
    assert (shown.text, shown.highlights) == ("Only this text.", ((10, 14),))
    assert snippet("", Matcher("text")).text == ""
    assert snippet("Only this.", Matcher("")).highlights == ()


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("cafe", "Le Café ouvre.", ["Café"]),
        ("CAFÉ", "the cafe", ["cafe"]),
        ("安装", "请安装程序", ["安装"]),
    ],
)
def test_matches_fold_accents_and_know_scripts_without_spaces(query: str, text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end, _ in Matcher(query).find(text)] == found


def test_without_matches_the_nearest_passage_is_shown() -> None:
    place = LONG.index("The Retry-After")
    assert "Retry-After" in snippet(LONG, Matcher("zebra"), (place, place + 30)).text


@pytest.mark.parametrize("change", [{"query": "other"}, {"filters": {"a": "2"}}, {"key": "k2"}])
def test_a_cursor_fits_only_its_query(change: dict[str, object]) -> None:
    cursor = make_cursor("k", "s", (20, 0.5), " query ", {"a": "1"})
    assert read_cursor(cursor, "k", "s", "query", {"a": "1"}) == (20, 0.5)
    arguments = {"key": "k", "state": "s", "query": "query", "filters": {"a": "1"}} | change
    with pytest.raises(InvalidCursor, match="does not match"):
        read_cursor(cursor, **arguments)  # type: ignore[arg-type]


def test_a_cursor_of_another_state_of_the_index_is_stale() -> None:
    cursor = make_cursor("k", "before", (20, 0.5), "query", {})
    with pytest.raises(InvalidCursor, match="the index has changed since"):
        read_cursor(cursor, "k", "after", "query", {})


def test_metrics() -> None:
    grades = {"a": 1.0, "b": 1.0}
    assert ndcg(["a", "b"], grades, 10) == 1.0
    assert ndcg(["x", "a"], {"a": 1.0}, 10) == pytest.approx(0.6309, abs=1e-4)
    assert reciprocal_rank(["x", "a"], grades, 10) == 0.5
    assert recall(["a", "x"], grades, 10) == 0.5
