"""Measure a ranking: pure functions over ranked ids and the grade of each relevant id."""

from collections.abc import Iterable, Mapping, Sequence
from math import log2


def list_gains(ranked: Sequence[str], grades: Mapping[str, float]) -> list[float]:
    """Return the grade of each ranked id; an id that repeats counts once."""
    return [0.0 if item in ranked[:place] else float(grades.get(item, 0.0)) for place, item in enumerate(ranked)]


def ndcg(ranked: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Return the normalised discounted cumulative gain, with linear gains as in trec_eval and BEIR."""
    ideal = _discount(sorted(grades.values(), reverse=True)[:depth])
    return _discount(list_gains(ranked[:depth], grades)) / ideal if ideal else 0.0


def first_relevant_rank(ranked: Sequence[str], grades: Mapping[str, float]) -> int | None:
    """Return the rank of the first relevant id, counted from one."""
    return next((rank for rank, item in enumerate(ranked, 1) if grades.get(item, 0) > 0), None)


def reciprocal_rank(ranked: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Return one over the rank of the first relevant id, or zero."""
    rank = first_relevant_rank(ranked[:depth], grades)
    return 1 / rank if rank else 0.0


def recall(ranked: Sequence[str], grades: Mapping[str, float], depth: int) -> float:
    """Return the share of the relevant ids among the first results."""
    relevant = {item for item, grade in grades.items() if grade > 0}
    return len(relevant & set(ranked[:depth])) / len(relevant) if relevant else 0.0


def _discount(gains: Iterable[float]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, 1))
