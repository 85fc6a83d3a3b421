"""Word and vector scores to one: pure functions."""

from collections.abc import Collection, Mapping
from math import sqrt


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
