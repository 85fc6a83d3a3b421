"""Cut the snippet to show: where the terms of the query are densest, in the original text."""

import re
from bisect import bisect_left
from collections.abc import Sequence

from bedstone.search.hits import Snippet
from bedstone.search.matching import Match, Matcher

LENGTH = 220  # characters
MAX_HIGHLIGHTS = 8
DOTS = "..."
SPACES = re.compile(r"\s+")


def snippet(
    plain: str, matcher: Matcher, passage: tuple[int, int] | None = None, matches: Sequence[Match] | None = None
) -> Snippet:
    """Return the stretch with the most matches, preferably inside the passage nearest in meaning.

    `matches` are known matches, perhaps of a longer text that begins with this one.
    """
    found = matcher.find(plain) if matches is None else matches
    starts = [start for start, _, _ in found if start < len(plain)]
    low, high = passage or (0, len(plain))
    inside = starts[bisect_left(starts, low) : bisect_left(starts, high)] or starts
    begin, end = _window(plain, _densest(inside) if inside else low)
    shown = found[bisect_left(found, (begin,)) : bisect_left(found, (end,))]
    return _cut(plain, begin, end, _merge([place for place in shown if place[1] <= end])[:MAX_HIGHLIGHTS])


def _merge(matches: Sequence[Match]) -> list[tuple[int, int]]:
    """Return the places of matches in order; pairs of characters that overlap are one place."""
    places: list[tuple[int, int]] = []
    for start, end, _ in matches:
        if places and start < places[-1][1]:
            places[-1] = (places[-1][0], max(end, places[-1][1]))
        else:
            places.append((start, end))
    return places


def _cut(plain: str, begin: int, end: int, places: Sequence[tuple[int, int]]) -> Snippet:
    """Return a stretch of a text with folded white space and dots for what is omitted, and the places in it."""
    text, at = "", begin
    highlights: list[tuple[int, int]] = []
    for start, stop in places:
        text += _fold(plain[at:start]) if highlights else _fold(plain[at:start]).lstrip()
        highlights.append((len(text), len(text) + stop - start))
        text += plain[start:stop]
        at = stop
    text = f"{text}{_fold(plain[at:end])}".strip()
    if begin > 0:
        text = f"{DOTS}{text}"
        highlights = [(start + len(DOTS), stop + len(DOTS)) for start, stop in highlights]
    return Snippet(f"{text}{DOTS}" if end < len(plain) else text, tuple(highlights))


def _fold(text: str) -> str:
    """Return a text with a space for each run of white space."""
    inner = " ".join(text.split())
    if not inner:
        return " " if text else ""
    return f"{' ' if text[0].isspace() else ''}{inner}{' ' if text[-1].isspace() else ''}"


def _densest(starts: list[int]) -> int:
    """Return the first place from which the most matches are in view."""
    counts = [bisect_left(starts, start + LENGTH) - index for index, start in enumerate(starts)]
    return starts[counts.index(max(counts))]


def _window(plain: str, first: int) -> tuple[int, int]:
    """Return where to cut: at words, from a little before the first match."""
    begin = max(0, min(first - LENGTH // 6, len(plain) - LENGTH))
    end = min(len(plain), begin + LENGTH)
    if begin > 0:
        begin = next((found.end() for found in SPACES.finditer(plain, begin, first)), begin)
    if end < len(plain):
        end = max(plain.rfind(" ", begin, end), plain.rfind("\n", begin, end), begin + LENGTH // 2)
    return begin, end
