"""Word and vector scores to one: pure functions."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest
from math import sqrt

from bedstone.search.hits import Found, Hit

Span = tuple[int, int]
# Of the next best chunks of a document, so much of each speaks for the document; each further chunk of it is shown
# later by so much. Measured on the files of ray_docs and kubefix, cut into chunks: the right file among the first five.
SUPPORTING, SUPPORT = 3, 0.15
FURTHER_CHUNK = 0.7


def standardise(scores: Mapping[int, float], candidates: Collection[int], absent: float = 0.0) -> dict[int, float]:
    """Scores as distances from their mean in standard deviations, over all candidates."""
    values = [scores.get(candidate, absent) for candidate in candidates]
    mean = sum(values) / len(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    if spread == 0:
        return dict.fromkeys(candidates, 0.0)
    return {candidate: (value - mean) / spread for candidate, value in zip(candidates, values, strict=True)}


def fuse(words: Mapping[int, float], cosines: Mapping[int, float], vector_weight: float) -> dict[int, float]:
    """One score per candidate of either side.

    A candidate no word found has the word score 0; one without a vector is neutral, not far away.
    """
    candidates = words.keys() | cosines.keys()
    if not candidates:
        return {}
    by_words = standardise(words, candidates)
    by_meaning = standardise(cosines, cosines.keys()) if cosines else {}
    return {
        candidate: vector_weight * by_meaning.get(candidate, 0.0) + (1 - vector_weight) * by_words[candidate]
        for candidate in candidates
    }


def ranked(
    words: Mapping[int, float],
    cosines: Mapping[int, float],
    vector_weight: float,
    limit: int,
    span: Callable[[int], Span | None] | None = None,
) -> Found:
    """The best candidates in order; where one side found nothing, the other decides alone."""
    weight = vector_weight if words else 1.0
    nearby = cosines if weight else {}
    scores = fuse(words, nearby, weight) if nearby else words
    best = sorted(scores, key=lambda rowid: (-scores[rowid], rowid))[:limit]
    hits = [Hit(rowid, scores[rowid], words.get(rowid), nearby.get(rowid)) for rowid in best]
    signals = (*(("words",) if words else ()), *(("vectors",) if nearby else ()))
    return Found(hits, len(scores), signals, span)


def by_document(hits: Sequence[Hit], document_of: Callable[[int], int]) -> list[Hit]:
    """Hits of a question in the order of what their documents say together, and not all from one of them."""
    if not hits:
        return []
    lowest = min(hit.score for hit in hits)
    above: dict[int, list[float]] = defaultdict(list)
    for hit in hits:
        above[document_of(hit.rowid)].append(hit.score - lowest)
    support = {
        document: SUPPORT * sum(nlargest(SUPPORTING + 1, scores)[1:])
        for document, scores in above.items()
        if len(scores) > 1
    }
    before: Counter[int] = Counter()
    moved = []
    for hit in hits:
        document = document_of(hit.rowid)
        share = FURTHER_CHUNK ** before[document]
        before[document] += 1
        score = lowest + (hit.score - lowest + support.get(document, 0.0)) * share
        moved.append(Hit(hit.rowid, score, hit.words, hit.cosine))
    return sorted(moved, key=lambda hit: (-hit.score, hit.rowid))
