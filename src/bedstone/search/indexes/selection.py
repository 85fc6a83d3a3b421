"""Choose among the hits of a keyword query: each chunk once, bare headings lower, few versions of one section."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from bedstone.search.index import Weights
from bedstone.search.indexes.fields import IS_STRETCH, LABEL_BITS, LABELS

STRETCH_WEIGHT = 0.95
# A chunk without a body scores half; an engine can apply weights too, but would then visit every match.
BARE_HEADING_WEIGHT = 0.5
LABEL_WEIGHTS = (1.0, BARE_HEADING_WEIGHT, STRETCH_WEIGHT, STRETCH_WEIGHT)
MAX_DEPTH = 2_000  # hits to read in search of others than bare headings and versions of one section
SPARE_HITS = 20  # read beyond the limit, to replace chunks without a body
BY_SCORE = itemgetter(0)


class Hits(NamedTuple):
    """The first hits of a query, best first; the number of each one's section on demand."""

    scores: Sequence[float]
    labels: Sequence[int]
    sections: Callable[[], Sequence[int]]


def first_depth(limit: int, *, has_stretches: bool) -> int:
    """Return how many hits to read at first: rarely too few, because reading again costs a whole search."""
    return (2 if has_stretches else 1) * limit + SPARE_HITS


def select(read: Callable[[int], Hits], limit: int, weights: Weights, *, has_stretches: bool) -> dict[int, float]:
    """Return the scores of the best chunks, best first; `read` returns the first hits, as many as it is asked for."""
    most = weights.max_versions
    has_stretches = weights.in_stretches and has_stretches
    depth = first_depth(limit, has_stretches=has_stretches)
    while True:
        found = read(depth)
        weighted = [
            (score * LABEL_WEIGHTS[label & LABELS], label >> LABEL_BITS)
            for score, label in zip(found.scores, found.labels, strict=True)
            if weights.in_stretches or not label & IS_STRETCH
        ]
        best = sorted(weighted, key=BY_SCORE, reverse=True)
        best = _best_of_each(best) if has_stretches else best
        is_deepest = len(found.scores) < depth or depth > MAX_DEPTH
        if most is not None and not is_deepest:
            numbers = [label >> LABEL_BITS for label in found.labels]
            best = _few_of_each(best, dict(zip(numbers, found.sections(), strict=True)), most)
        best = best[:limit]
        # Hits that were not read score less than the last of those that were.
        if is_deepest or (len(best) == limit and best[-1][0] >= found.scores[-1]):
            return {rowid: score for score, rowid in best}
        depth = depth * 4 if len(best) == limit else depth * (limit + SPARE_HITS) // max(1, len(best)) + SPARE_HITS


def _best_of_each(hits: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return hits, best first, with each chunk once."""
    best: dict[int, float] = {}
    for score, rowid in hits:
        best.setdefault(rowid, score)
    return [(score, rowid) for rowid, score in best.items()]


def _few_of_each(hits: Sequence[tuple[float, int]], sections: Mapping[int, int], most: int) -> list[tuple[float, int]]:
    """Return hits, best first, without those of a section that has enough better ones."""
    seen: Counter[int] = Counter()
    kept = []
    for hit in hits:
        section = sections[hit[1]]
        seen[section] += 1
        if seen[section] <= most:
            kept.append(hit)
    return kept
