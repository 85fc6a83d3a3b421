"""Show a thing once: merge hits of one section, and fold hits whose texts are nearly the same."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bedstone.search.relevance import STRONG_SCORE, Band, band_of
from bedstone.services.catalog import FoundItem

WORD = re.compile(r"\w+")
SHINGLE_WORDS = 4
MIN_SHARED = 0.8  # of the shingles of two texts that are nearly the same
MIN_SHINGLES = 6  # shorter texts are alike by chance
MAX_COMPARED = 40  # hits
NO_WORDS = frozenset({""})
UNSCORED = STRONG_SCORE - 0.01  # a source without scores ranks behind probable answers, before improbable ones


@dataclass(frozen=True)
class Hit:
    """A hit of a source; `also` are others of its section, `copies` others with nearly the same text."""

    source: str
    item: FoundItem
    also: tuple[FoundItem, ...] = ()
    copies: tuple[FoundItem, ...] = ()

    @property
    def score(self) -> float:
        """Return its score, also for a source without scores."""
        return UNSCORED if self.item.score is None else self.item.score

    @property
    def band(self) -> Band:
        """Return its score in a word."""
        return band_of(self.score)


def rank(found: Iterable[tuple[str, FoundItem]]) -> list[Hit]:
    """Return the hits of all sources in one order, each section and each text once."""
    hits = sorted((Hit(source, item) for source, item in found), key=lambda hit: -hit.score)
    return fold_copies(merge_sections(hits))


def merge_sections(hits: Iterable[Hit]) -> list[Hit]:
    """Keep the best hit of each section, with the others."""
    merged: dict[object, Hit] = {}
    for number, hit in enumerate(hits):
        key = (hit.source, hit.item.section) if hit.item.section else number
        first = merged.get(key)
        merged[key] = replace(first, also=(*first.also, hit.item)) if first is not None else hit
    return list(merged.values())


def fold_copies(hits: Sequence[Hit]) -> list[Hit]:
    """Keep the best of hits whose texts are nearly the same, with the others."""
    kept: list[tuple[Hit, frozenset[str]]] = []
    for hit in hits[:MAX_COMPARED]:
        shingles = shingles_of(hit.item.text)
        at = next((place for place, (_, other) in enumerate(kept) if are_alike(shingles, other)), None)
        if at is None:
            kept.append((hit, shingles))
        else:
            first, known = kept[at]
            kept[at] = (replace(first, copies=(*first.copies, hit.item)), known)
    return [hit for hit, _ in kept] + list(hits[MAX_COMPARED:])


def shingles_of(text: str) -> frozenset[str]:
    """Return the runs of a few words that a text has."""
    words = WORD.findall(text.lower())
    last = max(1, len(words) - SHINGLE_WORDS + 1)
    return frozenset(" ".join(words[start : start + SHINGLE_WORDS]) for start in range(last))


def are_alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two texts share most of their shingles; short ones must be the same."""
    if min(len(one), len(other)) < MIN_SHINGLES:
        return one == other and one != NO_WORDS
    return len(one & other) >= MIN_SHARED * len(one | other)
