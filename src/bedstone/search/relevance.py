"""Calibrated scores: 0 to 1, the same meaning for every query; above 0.5 a first hit is more often right than not."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import exp, expm1, log
from typing import Literal, NamedTuple

from bedstone.search.matching import Match

Kind = Literal["hybrid", "semantic", "keyword", "quotation", "unspaced"]

# Terms count as together within this many characters: about two sentences.
WINDOW = 150
# BM25 with these constants; a term of title or headings counts as if the body had it so many times more.
SATURATION = 2.0
LENGTH_SHARE = 0.4
USUAL_LENGTH = 500  # characters
CONTEXT_TIMES = 3
SUBSTITUTE_SHARE = 0.8  # of the weight of a term
TIE_STEP = 0.0001
STRONG_SCORE = 0.5  # from it on, a hit probably answers the query
GOOD_SCORE = 0.2  # below it, a hit shares words with the query, and little more

Band = Literal["strong", "good", "weak"]


@dataclass(frozen=True, slots=True)
class Model:
    """A logistic regression: the weight of each piece of evidence.

    `relative` is the strength of a hit as a share of the highest that its query can have.
    """

    constant: float
    covered: float
    strength: float = 0.0
    nearness: float = 0.0
    terms: float = 0.0
    chunks: float = 0.0
    relative: float = 0.0


# Fitted by `benchmarks/fit_relevance.py`, which prints these lines; docs/benchmarks.md has the reliability.
MODELS: Mapping[Kind, Model] = {
    "hybrid": Model(constant=-0.89, covered=2.38, strength=1.24, nearness=3.57, terms=-0.72, chunks=-0.32),
    "semantic": Model(constant=-0.48, covered=2.55, strength=1.26, nearness=1.82, terms=-0.53, chunks=-0.38),
    "keyword": Model(constant=-3.47, covered=4.54, strength=1.33, terms=0.29, chunks=-0.31),
    "quotation": Model(constant=-6.24, covered=9.33),
    "unspaced": Model(constant=-11.48, covered=15.94, terms=2.49, chunks=-0.09),
}
# A hit must be good by both: one rare term of a long question weighs much, and is a small part of the query.
RELATIVE_MODELS: Mapping[Kind, Model] = {
    "hybrid": Model(constant=-1.11, covered=1.89, nearness=3.5, terms=0.41, chunks=-0.31, relative=3.02),
    "semantic": Model(constant=-1.65, covered=2.07, nearness=1.66, terms=0.74, chunks=-0.26, relative=3.68),
    "keyword": Model(constant=-3.58, covered=2.97, terms=1.4, chunks=-0.23, relative=4.75),
}


class Evidence(NamedTuple):
    """What a hit has of a query.

    `covered` is the share of the query's weight that stands together, `strength` grows with the weight that is there at
    all, `nearness` is 0 for unrelated and 1 for the same meaning.
    """

    covered: float
    strength: float
    nearness: float | None = None


class QueryTerms:
    """The terms of a query, each with a weight: the fewer chunks have it, the more it tells."""

    def __init__(
        self,
        terms: Iterable[str],
        chunks: int,
        document_frequency: Callable[[str], int],
        substitutes: Iterable[str] = (),
    ) -> None:
        """Weigh terms; `substitutes` stand for some of them where these are missing, and are not asked for."""

        # A word that no chunk has tells no more than one of a single chunk, or small bases would ask for every word.
        def weigh(term: str) -> float:
            return log(1 + chunks / (1 + max(1, document_frequency(term))))

        self.weights = {term: weigh(term) for term in terms}
        self.total = sum(self.weights.values())
        self.log_terms = log(1 + len(self.weights))
        self.weights |= {term: SUBSTITUTE_SHARE * weigh(term) for term in substitutes}
        self.log_chunks = log(max(1, chunks))

    def weigh(self, matches: Sequence[Match], length: int, nearness: float | None = None) -> Evidence:
        """Weigh the matches of a text, of which the first `length` characters are the body and the rest its context."""
        body_end = bisect_left(matches, (length,))
        body, context = matches[:body_end], {term for _, _, term in matches[body_end:]}
        together = sum([self.weights[term] for term in context])
        together += self._densest([match for match in body if match[2] not in context] if context else body)
        covered = together / self.total if self.total else 0.0
        return Evidence(covered, log(1 + self._bm25(body, context, length)), nearness)

    def relative_strength(self, evidence: Evidence) -> float:
        """Return the strength of a hit as a share of the highest: every term, as often as it counts."""
        return expm1(evidence.strength) / (self.total * (1 + SATURATION)) if self.total else 0.0

    def share(self, terms: Iterable[str]) -> float:
        """Return the share of the query's weight that some of its terms have."""
        return sum(self.weights[term] for term in terms) / self.total if self.total else 1.0

    def _densest(self, places: Sequence[Match]) -> float:
        """Return the largest weight of different terms within one window."""
        best = current = 0.0
        first, counts = 0, dict.fromkeys([term for _, _, term in places], 0)
        absent = len(counts)
        for start, _, term in places:
            if not counts[term]:
                current += self.weights[term]
                absent -= 1
            counts[term] += 1
            while start - places[first][0] > WINDOW:
                left = places[first][2]
                counts[left] -= 1
                if not counts[left]:
                    current -= self.weights[left]
                    absent += 1
                first += 1
            best = max(best, current)
            if not absent:  # no window can have more
                break
        return best

    def _bm25(self, body: Sequence[Match], context: Set[str], length: int) -> float:
        counts = dict.fromkeys(context, CONTEXT_TIMES)
        for _, _, term in body:
            counts[term] = counts.get(term, 0) + 1
        norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / USUAL_LENGTH)
        return sum(self.weights[term] * count * (1 + SATURATION) / (count + norm) for term, count in counts.items())


def relevance(query: QueryTerms, evidence: Evidence, kind: Kind, semantic_share: float = 1.0) -> float:
    """Return how probably a hit answers a query.

    `semantic_share` is how far nearness can be trusted: 1 in a language of the model, less in others.
    """
    if kind == "quotation":  # what is not there word for word may still answer
        return _logistic(max(_logit(query, evidence, kind), _logit(query, evidence, "keyword")))
    if kind not in ("hybrid", "semantic"):
        return _logistic(_logit(query, evidence, kind))
    share = semantic_share if evidence.nearness is not None else 0.0
    logit = share * _logit(query, evidence, kind) if share else 0.0
    if share < 1:
        logit += (1 - share) * _logit(query, evidence, "keyword")
    return _logistic(logit)


def band_of(score: float) -> Band:
    """Return a score in a word."""
    return "strong" if score >= STRONG_SCORE else "good" if score >= GOOD_SCORE else "weak"


def nearness(cosine: float | None, min_similarity: float) -> float | None:
    """Return a cosine on the scale of its model: 0 where texts are unrelated, 1 where they are equal."""
    return None if cosine is None else (cosine - min_similarity) / (1 - min_similarity)


def make_non_increasing(values: Iterable[float]) -> list[float]:
    """Lower each value that is above the ones before it, so that scores agree with the order of hits.

    It ends a little below them: the same score would say that two hits are equally good.
    """
    lowest, result = 1.0, []
    for value in values:
        lowest = value if value <= lowest else max(0.0, lowest - TIE_STEP)
        result.append(lowest)
    return result


def _logit(query: QueryTerms, evidence: Evidence, kind: Kind) -> float:
    logit = _apply(MODELS[kind], query, evidence)
    return min(logit, _apply(RELATIVE_MODELS[kind], query, evidence)) if kind in RELATIVE_MODELS else logit


def _apply(model: Model, query: QueryTerms, evidence: Evidence) -> float:
    return (
        model.constant
        + model.covered * evidence.covered
        + model.strength * evidence.strength
        + model.nearness * (evidence.nearness or 0.0)
        + model.terms * query.log_terms
        + model.chunks * query.log_chunks
        + model.relative * query.relative_strength(evidence)
    )


def _logistic(value: float) -> float:
    return 1 / (1 + exp(-value))
