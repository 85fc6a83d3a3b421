"""Find the stretch of a text with the most in common with a quotation, and align their words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bedstone.search.quotes.gaps import is_unspaced, read_gap
from bedstone.search.quotes.letters import Letters, Span, codes_of
from bedstone.search.terms import UNSPACED

SHINGLE = 5  # letters
MIN_SHINGLE = 2
BUCKET_BITS = 16
MULTIPLIER = np.uint32(2654435761)
MAX_WINDOWS = 6
MAX_CELLS = 3_000_000  # pairs of words compared for one quotation
MARGIN = 30  # letters before and behind a window
# Costs of an alignment: a word of only one side, two words that begin or end alike, two others.
MISSING = 2
SIMILAR = 2
OTHER = 3


@dataclass(frozen=True)
class Segment:
    """Ranges of words, of the quotation and of the source, that are the same or stand for each other."""

    quote: Span
    source: Span
    is_same: bool


def nearest_windows(source: Letters, quote: Letters) -> list[Span]:
    """Return ranges of letters that share the most with a quotation, best first.

    What they share is counted in runs of a few letters, each the less the more often the text has it, so that a text
    that repeats one word of the quotation does not win.
    """
    size = _shingle_size(quote.text)
    if len(source) < size or len(quote) < size:
        return []
    wanted = np.zeros(2**BUCKET_BITS, np.bool_)
    wanted[_shingles(quote.text, size)] = True
    buckets = _shingles(source.text, size)
    places = np.flatnonzero(wanted[buckets])
    if not places.size:
        return []
    found = buckets[places]
    weights = 1.0 / np.bincount(found, minlength=2**BUCKET_BITS)[found]
    return _best_windows(places, weights, len(quote), len(source))


def split_words(letters: Letters, start: int, end: int) -> list[Span]:
    """Return the words and numbers of a range as ranges of letters; in scripts without spaces each letter is one."""
    places: Sequence[int] = range(start + 1, end)
    if not UNSPACED.search(letters.text, start, end):
        places = (np.flatnonzero(letters.is_start[start + 1 : end]) + start + 1).tolist()
    boundaries = [start, *(index for index in places if _is_boundary(letters, index)), end]
    return list(pairwise(boundaries)) if start < end else []


def align(quote: Sequence[str], source: Sequence[str]) -> list[Segment]:
    """Align the words of a quotation with the part of a source that fits best."""
    numbers: dict[str, int] = {}
    words = [_Words.of(side, numbers) for side in (quote, source)]
    return _segments(quote, source, list(_backtrack(_costs(*words), *words))[::-1])


def _shingle_size(letters: str) -> int:
    if is_unspaced(letters[len(letters) // 2 : len(letters) // 2 + 1]) or is_unspaced(letters[:1]):
        return MIN_SHINGLE
    return max(MIN_SHINGLE, min(SHINGLE, len(letters) // 3))


def _shingles(letters: str, size: int) -> NDArray[np.uint32]:
    codes = codes_of(letters)
    count = len(codes) - size + 1
    hashes = codes[:count].copy()
    for offset in range(1, size):
        hashes *= np.uint32(31)
        hashes += codes[offset : offset + count]
    hashes *= MULTIPLIER
    return hashes >> np.uint32(32 - BUCKET_BITS)


def _best_windows(places: NDArray[np.int64], weights: NDArray[np.float64], length: int, end: int) -> list[Span]:
    """Return the windows with the largest weight that do not overlap much, with a margin around them."""
    total = np.concatenate(([0.0], np.cumsum(weights)))
    limits = np.searchsorted(places, places + length + length // 8)
    scores = total[limits] - total[:-1]
    windows: list[Span] = []
    for _ in range(MAX_WINDOWS):
        best = int(np.argmax(scores))
        if scores[best] <= 0:
            break
        place, margin = int(places[best]), MARGIN + length // 4
        windows.append((max(0, place - margin), min(end, place + length + margin)))
        low, high = np.searchsorted(places, (place - length // 2, place + length // 2 + 1))
        scores[low:high] = 0
    return windows


def _is_boundary(letters: Letters, index: int) -> bool:
    before, letter = letters.text[index - 1], letters.text[index]
    if letters.is_start[index]:
        gap = read_gap(letters.gap(index))
        is_split = gap.is_hyphenation and (before + letter).isalpha()
        return bool(gap.joint or gap.is_spaced or gap.symbols) and not is_split
    return is_unspaced(letter) or is_unspaced(before)


@dataclass(frozen=True)
class _Words:
    """Words as numbers, with their first and last letters."""

    ids: NDArray[np.int32]
    edges: NDArray[np.int32]

    @classmethod
    def of(cls, words: Sequence[str], numbers: dict[str, int]) -> "_Words":
        ids = [numbers.setdefault(word, len(numbers)) for word in words]
        return cls(np.array(ids, np.int32), np.array([(ord(word[0]), ord(word[-1])) for word in words], np.int32))

    def at(self, index: int) -> "_Words":
        """Return one of the words."""
        return _Words(self.ids[index : index + 1], self.edges[index : index + 1])


def _replacing(quote: _Words, source: _Words, row: int) -> NDArray[np.int64]:
    """Return the cost of each word of the source in place of a word of the quotation."""
    is_similar = (source.edges == quote.edges[row]).any(axis=1)
    return np.where(source.ids == quote.ids[row], 0, np.where(is_similar, SIMILAR, OTHER))


def _costs(quote: _Words, source: _Words) -> NDArray[np.int16]:
    """Return the least cost from the first words of the quotation to a part of the source that ends at each word."""
    rows, columns = len(quote.ids), len(source.ids)
    offsets = np.arange(columns + 1, dtype=np.int64) * MISSING
    costs = np.zeros((rows + 1, columns + 1), np.int16)
    for row in range(1, rows + 1):
        above = costs[row - 1].astype(np.int64)
        cheapest = above + MISSING
        np.minimum(cheapest[1:], above[:-1] + _replacing(quote, source, row - 1), out=cheapest[1:])
        costs[row] = np.minimum.accumulate(cheapest - offsets) + offsets
    return costs


def _backtrack(costs: NDArray[np.int16], quote: _Words, source: _Words) -> Iterator[tuple[int, int, int, int]]:
    """Yield the cheapest steps from the last word to the first: from and to in the quotation and in the source.

    Where a word may be missing or be another one, it is another one.
    """
    row, column = len(quote.ids), int(np.argmin(costs[-1]))
    while column < len(source.ids) and costs[row, column + 1] == costs[row, column]:
        column += 1
    while row:
        cost = costs[row, column]
        if column and costs[row - 1, column - 1] + _replacing(quote, source.at(column - 1), row - 1)[0] == cost:
            yield row - 1, row, column - 1, column
            row, column = row - 1, column - 1
        elif costs[row - 1, column] + MISSING == cost:
            yield row - 1, row, column, column
            row -= 1
        else:
            yield row, row, column - 1, column
            column -= 1


def _segments(quote: Sequence[str], source: Sequence[str], steps: Sequence[tuple[int, int, int, int]]) -> list[Segment]:
    """Join the steps into segments; neighbours that differ are one, and the same if only spaces differ."""
    spans: list[tuple[Span, Span, bool]] = []
    for mine, mine_end, other, other_end in steps:
        is_same = quote[mine:mine_end] == source[other:other_end]
        if spans and not is_same and not spans[-1][2]:
            (mine, _), (other, _), _ = spans.pop()  # noqa: PLW2901
        spans.append(((mine, mine_end), (other, other_end), is_same))
    if spans:
        spans[0], spans[-1] = _with_word_before(spans[0]), _with_word_behind(spans[-1], len(source))
    return [
        Segment(mine, other, "".join(quote[slice(*mine)]) == "".join(source[slice(*other)])) for mine, other, _ in spans
    ]


def _with_word_before(step: tuple[Span, Span, bool]) -> tuple[Span, Span, bool]:
    """Let words that are missing at the start stand for the word there, so that a difference shows both."""
    mine, (start, end), is_same = step
    return (mine, (start - 1, end), is_same) if start == end > 0 else step


def _with_word_behind(step: tuple[Span, Span, bool], count: int) -> tuple[Span, Span, bool]:
    mine, (start, end), is_same = step
    return (mine, (start, end + 1), is_same) if start == end < count else step
