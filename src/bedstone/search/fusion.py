"""Combine keyword and vector scores: pure functions."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from math import sqrt
from operator import itemgetter, mul
from typing import Protocol

from bedstone.search.hits import Candidate, Ranking

Span = tuple[int, int]
# A document's next best chunks each add this share of their score to its support; each further chunk of the document
# keeps a share of its own. Measured on the files of ray_docs and kubefix, cut into chunks: right file in the top 5.
MAX_SUPPORTING_CHUNKS = 3
SUPPORT = 0.15
FURTHER_CHUNK = 0.7
# Which side to trust more; fitted with whole sets left out, see docs/benchmarks.md. Where the first keyword hits have
# less than this share of the query's weight, and the nearest vector stands out by so many standard deviations, the
# share of semantic search rises from 0.5 to 0.7. Without the second condition it costs as much as it gains.
COVERING_HITS = 3
MIN_COVERAGE = 0.6
MIN_LEAD = 2.5
VECTOR_TRUST = 7 / 3  # times the odds
# Where this share of a long question stands together in the first keyword hit, the question repeats its text: the share
# falls from 0.5 to 0.2. A few words stand together by accident.
MIN_REPEATED = 0.85
MIN_REPEATED_TERMS = 7
KEYWORD_TRUST = 1 / 4
DEMOTED = 0.3  # share of the score that release notes keep; less changes nothing (docs/benchmarks.md)


class Coverage(Protocol):
    """Tells how much of a question's weight chunks have, from 0 to 1."""

    def mean(self, rowids: Sequence[int]) -> float:
        """Return the share that chunks have anywhere, on average."""

    def together(self, rowid: int) -> float:
        """Return the share that stands together in one chunk; 0 for a question of fewer than `MIN_REPEATED_TERMS`."""


def fuse(keyword_scores: Mapping[int, float], cosines: Mapping[int, float], semantic_weight: float) -> dict[int, float]:
    """Return one score per candidate of either side: both scores as distances from their means, in standard deviations.

    A candidate without a matching term has the keyword score 0; one without a vector is neutral, not far away.
    """
    candidates = [*keyword_scores, *(rowid for rowid in cosines if rowid not in keyword_scores)]
    if not candidates:
        return {}
    absent = [0.0] * (len(candidates) - len(keyword_scores))
    mean, factor = _scale([*keyword_scores.values(), *absent], 1 - semantic_weight)
    near_mean, near_factor = _scale([*cosines.values()], semantic_weight)
    fused = {rowid: factor * (score - mean) for rowid, score in keyword_scores.items()}
    none = factor * (0.0 - mean)
    for rowid, cosine in cosines.items():
        fused[rowid] = fused.get(rowid, none) + near_factor * (cosine - near_mean)
    return fused


def _scale(values: Sequence[float], weight: float) -> tuple[float, float]:
    """Return the mean, and what a distance from it is multiplied by; 0 where all values are equal."""
    if not values:
        return 0.0, 0.0
    mean = sum(values) / len(values)
    distances = [value - mean for value in values]
    spread = sqrt(sum(map(mul, distances, distances)) / len(values))
    return mean, weight / spread if spread else 0.0


def _lead(values: Sequence[float]) -> float:
    """Return how many standard deviations the highest value is above the mean."""
    mean, factor = _scale(values, 1.0)
    return (max(values) - mean) * factor


def rank(
    keyword_scores: Mapping[int, float],
    cosines: Mapping[int, float],
    semantic_weight: float,
    limit: int,
    nearest_span: Callable[[int], Span | None] | None = None,
    *,
    coverage: Coverage | None = None,
) -> Ranking:
    """Return the best candidates in order; where one side finds nothing, the other decides alone.

    With `coverage`, semantic search counts more where the first keyword hits have little of the query, and less where
    the first one has nearly all of it in one place.
    """
    weight = semantic_weight if keyword_scores else 1.0
    nearby = cosines if weight else {}
    if nearby and coverage and 0 < weight < 1:
        weight = _weigh(weight, list(islice(keyword_scores, COVERING_HITS)), nearby, coverage)
    scores = fuse(keyword_scores, nearby, weight) if nearby else keyword_scores
    best = sorted([(-score, rowid) for rowid, score in scores.items()])[:limit]
    candidates = [Candidate(rowid, -score, keyword_scores.get(rowid), nearby.get(rowid)) for score, rowid in best]
    signals = (*(("keyword",) if keyword_scores else ()), *(("semantic",) if nearby else ()))
    return Ranking(candidates, len(scores), signals, nearest_span)


def _weigh(weight: float, first: Sequence[int], cosines: Mapping[int, float], coverage: Coverage) -> float:
    """Return the weight of semantic search beside the first keyword hits."""
    if coverage.together(first[0]) >= MIN_REPEATED:
        return trust(weight, KEYWORD_TRUST)
    if _lead([*cosines.values()]) > MIN_LEAD and coverage.mean(first) < MIN_COVERAGE:
        return trust(weight, VECTOR_TRUST)
    return weight


def trust(weight: float, odds: float) -> float:
    """Return a weight with its odds multiplied."""
    return weight * odds / (weight * odds + 1 - weight)


def promote_documents(
    candidates: Sequence[Candidate], document_of: Callable[[int], int], demoted: Collection[int] = ()
) -> list[Candidate]:
    """Rank the candidates of a question by what their documents contribute together, and mix the documents.

    Chunks of `demoted` documents keep a share of their score: they repeat what others explain.
    """
    if not candidates:
        return []
    lowest = min([candidate.score for candidate in candidates])
    documents = [document_of(candidate.rowid) for candidate in candidates]
    gains: dict[int, list[float]] = {}
    for document, candidate in zip(documents, candidates, strict=True):
        gains.setdefault(document, []).append(candidate.score - lowest)
    support = {
        document: SUPPORT * sum(sorted(scores, reverse=True)[1 : MAX_SUPPORTING_CHUNKS + 1])
        for document, scores in gains.items()
        if len(scores) > 1
    }
    # Of the next chunk of each document.
    shares = {document: DEMOTED if document in demoted else 1.0 for document in gains}
    promoted = []
    for document, (rowid, old, keyword_score, cosine) in zip(documents, candidates, strict=True):
        share = shares[document]
        shares[document] = share * FURTHER_CHUNK
        score = lowest + (old - lowest + support.get(document, 0.0)) * share
        promoted.append((-score, rowid, keyword_score, cosine))
    promoted.sort(key=itemgetter(0, 1))
    return [Candidate(rowid, -score, keyword_score, cosine) for score, rowid, keyword_score, cosine in promoted]
