"""Calibrated scores: 0 to 1, with the same meaning for every query."""

from collections.abc import Callable, Iterable, Mapping
from math import exp, log

# Logistic of the cosine and of the share of the query's weight that the text has. Fitted on scifact, cranfield,
# ray_docs and feedbackqa: relevant hits against hits of queries from the other sets (nonsense here) and, at 0.12 of
# the weight, against the hits beside them. Medians: relevant 0.64, beside them 0.44, nonsense 0.02; with keywords
# alone 0.44, 0.33 and 0.10.
HYBRID_COEFFICIENTS = (-5.82, 9.35, 1.16)
KEYWORD_COEFFICIENTS = (-3.01, 4.83)


def term_weights(terms: Iterable[str], total: int, document_frequency: Callable[[str], int]) -> dict[str, float]:
    """Return how informative each term of a query is: the rarer, the more."""
    return {term: log(1 + total / (1 + document_frequency(term))) for term in terms}


def coverage(weights: Mapping[str, float], text_terms: Iterable[str]) -> float:
    """Return the share of a query's weight that a text covers."""
    total = sum(weights.values())
    present = set(text_terms)
    return sum(weight for term, weight in weights.items() if term in present) / total if total else 0.0


def relevance(cosine: float | None, covered: float) -> float:
    """Return the probability that a reader calls the hit relevant."""
    if cosine is None:
        constant, keyword = KEYWORD_COEFFICIENTS
        return _logistic(constant + keyword * covered)
    constant, semantic, keyword = HYBRID_COEFFICIENTS
    return _logistic(constant + semantic * cosine + keyword * covered)


def make_non_increasing(values: Iterable[float]) -> list[float]:
    """Lower each value to the ones before it, so that scores agree with the order of hits."""
    lowest, result = 1.0, []
    for value in values:
        lowest = min(lowest, value)
        result.append(lowest)
    return result


def _logistic(value: float) -> float:
    return 1 / (1 + exp(-value))
