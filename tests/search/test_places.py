"""The place of a chunk that answers a query."""

from bedstone.records import ChunkHead, Place
from bedstone.search.matching import Matcher
from bedstone.search.places import matched_place

FIRST, SECOND, THIRD = "Notices of article 2 are kept for 3 years.", "Article 3", "The keel is laid."
PLAIN = f"{FIRST}\n{SECOND}\n{THIRD}"
PLACES = (
    Place(0, 0, 1),
    Place(len(FIRST) + 1, 0, 2, ("Article 3",)),
    Place(len(FIRST) + len(SECOND) + 2, 0, 3, ("Article 3",)),
)
HEAD = ChunkHead(1, "d", 0, "c", "", 0, (), {}, 1, PLACES)


def page_of(query: str, passage: tuple[int, int] | None = None) -> int | None:
    matcher = Matcher(query)
    weights = dict.fromkeys(matcher.terms, 1.0)
    return matched_place(HEAD, len(PLAIN), matcher.find(PLAIN), weights, passage).page


def test_the_place_with_most_terms_matches() -> None:
    assert page_of("when is the keel laid") == 3
    assert page_of("how many years are notices kept") == 1


def test_of_two_places_with_all_terms_the_one_where_they_are_closest_matches() -> None:
    assert page_of("article 3") == 2


def test_without_terms_the_place_with_most_of_the_nearest_passage_matches() -> None:
    start = PLACES[2].start
    assert page_of("beginning of construction", (start - 5, len(PLAIN))) == 3
    assert page_of("beginning of construction", (0, len(PLAIN))) == 1
    assert page_of("beginning of construction") == 1


def test_a_chunk_without_places_is_in_one() -> None:
    head = ChunkHead(1, "d", 0, "c", "B", 0, ("A", "B"), {}, 7)
    assert matched_place(head, 3, [], {}, None) == Place(0, 0, 7, ("A", "B"))
