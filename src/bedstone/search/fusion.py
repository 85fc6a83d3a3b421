"""Combine keyword and vector scores: pure functions."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from math import sqrt

from bedstone.search.hits import Candidate, Ranking

Span = tuple[int, int]
CoverageOf = Callable[[Sequence[int]], float]
# A document's next best chunks each add this share of their score to its support; each further chunk of the document
# keeps a share of its own. Measured on the files of ray_docs and kubefix, cut into chunks: right file in the top 5.
MAX_SUPPORTING_CHUNKS = 3
SUPPORT = 0.15
FURTHER_CHUNK = 0.7
# Where the first keyword hits have less than this share of the query's weight, and the nearest vector stands out by so
# many standard deviations, the share of semantic search rises from 0.5 to 0.7. Fitted with whole sets left out, see
# docs/benchmarks.md. Without the second condition it costs as much as it gains.
COVERING_HITS = 3
MIN_COVERAGE = 0.7
MIN_LEAD = 2.5
TRUST = 7 / 3  # times the odds


def standardize(scores: Mapping[int, float], candidates: Collection[int], absent: float = 0.0) -> dict[int, float]:
    """Return scores as distances from their mean in standard deviations, over all candidates."""
    values = [scores.get(candidate, absent) for candidate in candidates]
    mean = sum(values) / len(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values) / len(values))
    if spread == 0:
        return dict.fromkeys(candidates, 0.0)
    return {candidate: (value - mean) / spread for candidate, value in zip(candidates, values, strict=True)}


def fuse(keyword_scores: Mapping[int, float], cosines: Mapping[int, float], semantic_weight: float) -> dict[int, float]:
    """Return one score per candidate of either side.

    A candidate without a matching term has the keyword score 0; one without a vector is neutral, not far away.
    """
    candidates = keyword_scores.keys() | cosines.keys()
    if not candidates:
        return {}
    keyword = standardize(keyword_scores, candidates)
    semantic = standardize(cosines, cosines.keys()) if cosines else {}
    return _add(keyword, semantic, semantic_weight)


def _add(keyword: Mapping[int, float], semantic: Mapping[int, float], semantic_weight: float) -> dict[int, float]:
    return {
        candidate: semantic_weight * semantic.get(candidate, 0.0) + (1 - semantic_weight) * keyword[candidate]
        for candidate in keyword
    }


def rank(
    keyword_scores: Mapping[int, float],
    cosines: Mapping[int, float],
    semantic_weight: float,
    limit: int,
    nearest_span: Callable[[int], Span | None] | None = None,
    *,
    coverage_of: CoverageOf | None = None,
) -> Ranking:
    """Return the best candidates in order; where one side finds nothing, the other decides alone.

    With `coverage_of`, semantic search counts more where the first keyword hits have little of the query.
    """
    weight = semantic_weight if keyword_scores else 1.0
    nearby = cosines if weight else {}
    scores = keyword_scores
    if nearby:
        semantic = standardize(nearby, nearby.keys())
        if coverage_of and 0 < weight < 1 and max(semantic.values()) > MIN_LEAD:
            first = list(islice(keyword_scores, COVERING_HITS))
            weight = trust_vectors(weight) if coverage_of(first) < MIN_COVERAGE else weight
        scores = _add(standardize(keyword_scores, keyword_scores.keys() | nearby.keys()), semantic, weight)
    best = sorted(scores, key=lambda rowid: (-scores[rowid], rowid))[:limit]
    candidates = [Candidate(rowid, scores[rowid], keyword_scores.get(rowid), nearby.get(rowid)) for rowid in best]
    signals = (*(("keyword",) if keyword_scores else ()), *(("semantic",) if nearby else ()))
    return Ranking(candidates, len(scores), signals, nearest_span)


def trust_vectors(weight: float) -> float:
    """Return the weight of semantic search where keyword search covers little of a question."""
    return weight * TRUST / (weight * TRUST + 1 - weight)


def promote_documents(candidates: Sequence[Candidate], document_of: Callable[[int], int]) -> list[Candidate]:
    """Rank the candidates of a question by what their documents contribute together, and mix the documents."""
    if not candidates:
        return []
    lowest = min(candidate.score for candidate in candidates)
    gains: dict[int, list[float]] = defaultdict(list)
    for candidate in candidates:
        gains[document_of(candidate.rowid)].append(candidate.score - lowest)
    support = {
        document: SUPPORT * sum(nlargest(MAX_SUPPORTING_CHUNKS + 1, scores)[1:])
        for document, scores in gains.items()
        if len(scores) > 1
    }
    seen: Counter[int] = Counter()
    promoted = []
    for candidate in candidates:
        document = document_of(candidate.rowid)
        share = FURTHER_CHUNK ** seen[document]
        seen[document] += 1
        score = lowest + (candidate.score - lowest + support.get(document, 0.0)) * share
        promoted.append(Candidate(candidate.rowid, score, candidate.keyword_score, candidate.cosine))
    return sorted(promoted, key=lambda candidate: (-candidate.score, candidate.rowid))
