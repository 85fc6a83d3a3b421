"""What a hit's score means to a reader: 0 to 1, the same across queries."""

from collections.abc import Callable, Iterable, Mapping
from math import exp, log

# Logistic of the cosine and of the share of the query's weight that stands in the text. Fitted on scifact, cranfield,
# ray_docs and feedbackqa: relevant hits against hits of queries from the other sets (nonsense here) and, at 0.12 of
# the weight, against the hits beside them. Medians: relevant 0.64, beside them 0.44, nonsense 0.02; by words alone
# 0.44, 0.33 and 0.10.
WITH_MEANING = (-5.82, 9.35, 1.16)
BY_WORDS = (-3.01, 4.83)


def term_weights(terms: Iterable[str], total: int, frequency: Callable[[str], int]) -> dict[str, float]:
    """How much each term of a query tells: the rarer, the more."""
    return {term: log(1 + total / (1 + frequency(term))) for term in terms}


def coverage(query: Mapping[str, float], text: Iterable[str]) -> float:
    """How much of a query's weight (terms and how rare they are) a text has."""
    total = sum(query.values())
    present = set(text)
    return sum(weight for term, weight in query.items() if term in present) / total if total else 0.0


def relevance(cosine: float | None, covered: float) -> float:
    """The chance that a reader calls the hit relevant."""
    if cosine is None:
        constant, by_words = BY_WORDS
        return _logistic(constant + by_words * covered)
    constant, by_meaning, by_words = WITH_MEANING
    return _logistic(constant + by_meaning * cosine + by_words * covered)


def falling(values: Iterable[float]) -> list[float]:
    """Values that never rise, so that what is shown agrees with the order."""
    lowest, result = 1.0, []
    for value in values:
        lowest = min(lowest, value)
        result.append(lowest)
    return result


def _logistic(value: float) -> float:
    return 1 / (1 + exp(-value))
