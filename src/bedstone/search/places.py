"""Find the place in a chunk that answers a query: the page and section with the terms, or nearest in meaning."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from bedstone.records import ChunkHead, Place
from bedstone.search.matching import Match

Span = tuple[int, int]


def matched_place(
    head: ChunkHead, length: int, matches: Sequence[Match], weights: Mapping[str, float], passage: Span | None
) -> Place:
    """Return the place whose terms weigh most, then the one with the closest ones, or most of the nearest passage.

    `matches` are in the order of the text, of which the chunk has `length` characters.
    """
    places = head.all_places
    if len(places) == 1:
        return places[0]
    ends = [following.start for _, following in pairwise(places)] + [length]
    scored = [_score(place.start, end, matches, weights, passage) for place, end in zip(places, ends, strict=True)]
    return places[scored.index(max(scored))]


def _score(
    start: int, end: int, matches: Sequence[Match], weights: Mapping[str, float], passage: Span | None
) -> tuple[float, int, int, int]:
    """Return the weight of the terms between two positions, how close together they are, and what else may decide."""
    inside = [match for match in matches if start <= match[0] < end]
    weight = sum(weights.get(term, 0.0) for term in {term for _, _, term in inside})
    low, high = passage or (0, 0)
    shared = max(0, min(end, high) - max(start, low))
    return weight, -_shortest_span(inside), len(inside), shared


def _shortest_span(matches: Sequence[Match]) -> int:
    """Return the length of the shortest stretch that has every term of the matches."""
    wanted = len({term for _, _, term in matches})
    shortest, first = 0, 0
    counts: Counter[str] = Counter()
    for _, end, term in matches:
        counts[term] += 1
        while len(counts) == wanted:
            start, _, leaving = matches[first]
            shortest = min(shortest or end - start, end - start)
            counts[leaving] -= 1
            if not counts[leaving]:
                del counts[leaving]
            first += 1
    return shortest
