"""How good an order is: pure functions over ids in the order they were found, and grades by id."""

from collections.abc import Mapping, Sequence
from math import log2


def ndcg(found: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Normalised discounted cumulative gain."""
    gain = sum(grades.get(item, 0.0) / log2(rank + 2) for rank, item in enumerate(found[:depth]))
    ideal = sum(grade / log2(rank + 2) for rank, grade in enumerate(sorted(grades.values(), reverse=True)[:depth]))
    return gain / ideal if ideal else 0.0


def reciprocal_rank(found: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """One over the rank of the first relevant id."""
    return next((1 / (rank + 1) for rank, item in enumerate(found[:depth]) if grades.get(item, 0) > 0), 0.0)


def recall(found: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """The share of the relevant ids that were found."""
    relevant = {item for item, grade in grades.items() if grade > 0}
    return len(relevant & set(found[:depth])) / len(relevant) if relevant else 0.0
