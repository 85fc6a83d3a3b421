"""Find a quotation that a text does not have word for word."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil

from bedstone.search.quotes.alignment import MAX_CELLS, Segment, align, nearest_windows, split_words
from bedstone.search.quotes.comparison import Comparison
from bedstone.search.quotes.edges import CONTEXT
from bedstone.search.quotes.gaps import is_unspaced
from bedstone.search.quotes.letters import Letters, Span, read_letters
from bedstone.search.quotes.markup import strip_markup
from bedstone.search.quotes.match import ABSENT, MAX_TEXT, Difference, Kind, QuoteMatch
from bedstone.search.quotes.noise import is_misread, is_no_word
from bedstone.search.quotes.omission import (
    MAX_OMITTED,
    MAX_PARTS,
    is_harmless,
    is_long_enough,
    split_parts,
    trim_ellipses,
)
from bedstone.search.terms import STOP_WORDS

BLOCK = 6_000_000  # characters of a text that are read at once
# Places with the letters of a quotation: that are looked at, that are compared, and letters compared in all of them.
MAX_OCCURRENCES = 20_000
MAX_COMPARED = 200
MIN_COMPARED = 8
MAX_COMPARED_LETTERS = 60_000
MAX_BRANCHES = 300  # places that are tried for the parts of a quotation
# Misread words are tolerated in quotations of this size, one in so many words; more often if they are clearly misread.
MIN_TOLERANT_WORDS = 5
MIN_TOLERANT_LETTERS = 12
WORDS_PER_MISREAD = 5
MIN_WORDS_PER_MISREAD = 3
# What a near stretch has at most that differs, and at least in common.
MAX_DISTANCE = 0.6
MIN_WORDS_IN_COMMON = 3
MAX_DIFFERENCES_SHOWN = 8
MARGIN = 200  # characters around a stretch that may have its marks
COMMON_WORDS = frozenset(STOP_WORDS.split())


@dataclass(frozen=True)
class Quotation:
    """A quotation with its letters and words."""

    text: str
    letters: Letters
    words: Sequence[Span]

    @classmethod
    def of(cls, quote: str) -> "Quotation":
        """Read a quotation."""
        letters = read_letters(strip_markup(trim_ellipses(quote)))
        return cls(quote, letters, split_words(letters, 0, len(letters)))


def find_tolerant(text: str, quote: str) -> QuoteMatch:
    """Find a quotation despite typesetting, markup and the damage of a scan, or else the nearest stretch."""
    quotation = Quotation.of(quote)
    nearest = ABSENT
    overlap = 4 * len(quote) + MAX_OMITTED
    for offset in range(0, max(1, len(text) - overlap), BLOCK) if quotation.words else ():
        found = _find_in_block(text[offset : offset + BLOCK + overlap], quotation)
        if offset and found.start < CONTEXT:  # the block before has it too, and what stands before it
            continue
        found = replace(found, start=found.start + offset, end=found.end + offset)
        nearest = min(nearest, found, key=_order)
        if nearest.is_confirmed:
            break
    return nearest


def _find_in_block(text: str, quotation: Quotation) -> QuoteMatch:
    nearest = ABSENT
    for source in _readings(text):
        nearest = min(nearest, Search(text, source, quotation).find(), key=_order)
        if nearest.is_confirmed:
            break
    return nearest


def _readings(text: str) -> Iterator[Letters]:
    """Yield a text as it is, and if that differs, without numbers of list items and the like."""
    plain = strip_markup(text)
    yield read_letters(plain)
    lenient = strip_markup(text, is_lenient=True)
    if lenient.text != plain.text:
        yield read_letters(lenient)


def _order(match: QuoteMatch) -> float:
    """Return what sorts matches: a confirmed one comes first."""
    return -1.0 if match.is_confirmed else match.distance


@dataclass(frozen=True)
class Search:
    """Searches one reading of a text for a quotation."""

    text: str
    source: Letters
    quotation: Quotation

    def find(self) -> QuoteMatch:
        """Return where the quotation is, or the nearest stretch."""
        nearest = ABSENT
        for find in (self._find_same_letters, self._find_parts, self._find_aligned):
            nearest = min(nearest, find(), key=_order)
            if nearest.is_confirmed:
                break
        return nearest

    def _find_same_letters(self) -> QuoteMatch:
        """Find a place with the letters of the quotation where the rest fits too; else the one that fits best."""
        nearest, letters, count = ABSENT, self.quotation.letters, len(self.quotation.words)
        for start in _places(self.source, letters):
            span = start, start + len(letters)
            comparison = _compare(self.source, start, letters)
            self._compare_marks(span, comparison)
            if comparison.allows(count):
                return self._match("normalised", span, 0.0)
            distance = min(1.0, max(1, len(comparison.differences)) / count)
            if distance < nearest.distance:
                nearest = self._match("nearest", span, distance, comparison.differences)
        return nearest

    def _find_parts(self) -> QuoteMatch:
        """Find the parts of a quotation with ellipses in order and near each other."""
        parts = [Quotation.of(part) for part in split_parts(self.quotation.text)]
        if not 1 < len(parts) <= MAX_PARTS or not all(part.words and is_long_enough(part.text) for part in parts):
            return ABSENT
        places = _chains(self.source, parts, (0, len(self.source)), None)
        span = next((place for place in islice(places, MAX_BRANCHES) if place), None)
        return self._match("normalised", span, 0.0) if span else ABSENT

    def _find_aligned(self) -> QuoteMatch:
        """Find the quotation with words that a scan misread, or the stretch with the most words in common."""
        nearest, cells = ABSENT, 0
        letters = self.quotation.letters
        keys = [letters.text[start:end] for start, end in self.quotation.words]
        for window in nearest_windows(self.source, letters):
            words = split_words(self.source, *window)
            cells += len(keys) * len(words)
            if cells > MAX_CELLS and nearest is not ABSENT:
                break
            segments = align(keys, [self.source.text[start:end] for start, end in words])
            nearest = min(nearest, self._judge(words, segments), key=_order)
            if nearest.is_confirmed:
                break
        return nearest

    def _judge(self, words: Sequence[Span], segments: Sequence[Segment]) -> QuoteMatch:
        """Return what an alignment says: a quotation that was misread here and there, a near one, or nothing."""
        first, last = segments[0].source[0], segments[-1].source[1]
        if first == last:
            return ABSENT
        span, count = (words[first][0], words[last - 1][1]), len(self.quotation.words)
        comparison = Comparison(self.source, self.quotation.letters)
        misread = self._compare_segments(words, segments, comparison)
        if not comparison.differences:
            comparison.compare_edges(*span)
            self._compare_marks(span, comparison)
        changes = [part for part in segments if not part.is_same]
        differing = sum(max(_length(part.quote), _length(part.source)) for part in changes)
        total = max(count, last - first)
        if comparison.allows(count) and self._tolerates(misread):
            return self._match("normalised", span, differing / total, misread)
        others = max(0, len(comparison.differences) - len(changes))
        distance = min(1.0, max(1, differing + others) / total)
        if distance > MAX_DISTANCE or not self._has_common_words(segments):
            return ABSENT
        return self._match("nearest", span, distance, comparison.differences or misread)

    def _compare_segments(
        self, words: Sequence[Span], segments: Sequence[Segment], comparison: Comparison
    ) -> list[Difference]:
        """Compare the segments of an alignment and what stands between them; return the words that were misread."""
        misread: list[Difference] = []
        is_after_words = False
        for part in segments:
            mine, other = self.quotation.words[slice(*part.quote)], words[slice(*part.source)]
            if is_after_words and mine and other:
                comparison.compare_gap(other[0][0], mine[0][0])
            is_after_words = bool(mine and other)
            if part.is_same:
                comparison.compare_run(other[0][0], mine[0][0], mine[-1][1] - mine[0][0])
            elif found := self._misread_words(mine, other):
                misread += found
                for here, there in zip(mine[1:], other[1:], strict=False) if len(mine) == len(other) else ():
                    comparison.compare_gap(there[0], here[0])
            else:
                comparison.add(_raw(self.quotation.letters, mine), _raw(self.source, other))
        return misread

    def _misread_words(self, mine: Sequence[Span], other: Sequence[Span]) -> list[Difference]:
        """Return words of the quotation with those of the source that are the same, misread; none if one is not."""
        quote, source = self.quotation.letters, self.source
        if len(mine) == len(other):
            pairs = [Difference(quote.raw(*here), source.raw(*there)) for here, there in zip(mine, other, strict=True)]
        elif len(mine) == 1 and other:
            pairs = [Difference(_raw(quote, mine), _raw(source, other))]
        else:
            pairs = []
        return pairs if all(is_misread(pair.source, pair.quote) for pair in pairs) else []

    def _tolerates(self, misread: Sequence[Difference]) -> bool:
        """Return whether few enough words were misread, and none of them is a word that the text has elsewhere."""
        count, letters = len(self.quotation.words), len(self.quotation.letters)
        if count < MIN_TOLERANT_WORDS or letters < MIN_TOLERANT_LETTERS:
            return not misread
        doubtful = [item.source for item in misread if not is_no_word(item.source, item.quote)]
        if len(doubtful) > max(1, count // WORDS_PER_MISREAD) or len(misread) > count // MIN_WORDS_PER_MISREAD:
            return False
        return not any(_occurs_again(self.source.plain.text, word, doubtful.count(word)) for word in set(doubtful))

    def _has_common_words(self, segments: Sequence[Segment]) -> bool:
        letters, words = self.quotation.letters.text, self.quotation.words
        same = [letters[slice(*words[index])] for part in segments if part.is_same for index in range(*part.quote)]
        return len(same) >= MIN_WORDS_IN_COMMON or any(word not in COMMON_WORDS for word in same)

    def _compare_marks(self, span: Span, comparison: Comparison) -> None:
        """Check that targets of links and page numbers which the quotation has are those of the source."""
        start, end = self._range(span)
        around = self.text[max(0, start - MARGIN) : end + MARGIN]
        for mark in self.quotation.letters.plain.removed:
            if mark not in around:
                comparison.add(mark, "")

    def _match(self, kind: Kind, span: Span, distance: float, differences: Sequence[Difference] = ()) -> QuoteMatch:
        start, end = self._with_signs(*self._range(span))
        text = self.text[start:end][:MAX_TEXT]
        return QuoteMatch(kind, start, end, text, ceil(distance * 1000) / 1000, (*differences[:MAX_DIFFERENCES_SHOWN],))

    def _range(self, span: Span) -> Span:
        """Return where a range of letters is in the original text."""
        first, last = int(self.source.at[span[0]]), self.source.end(span[1] - 1) - 1
        return self.source.plain.original_start(first), self.source.plain.original_end(last)

    def _with_signs(self, start: int, end: int) -> Span:
        """Extend a range by the signs around it that the quotation has too, such as a currency or a full stop."""
        text, letters = self.text, self.quotation.letters
        own = letters.plain.text
        for sign in own[letters.end(len(letters) - 1) :].replace(" ", ""):
            behind = text[end : end + MARGIN]
            if behind.lstrip()[:1] != sign:
                break
            end += behind.index(sign) + 1
        for sign in reversed(own[: int(letters.at[0])].replace(" ", "")):
            before = text[max(0, start - MARGIN) : start]
            if before.rstrip()[-1:] != sign:
                break
            start -= len(before) - before.rindex(sign)
        return start, end


def _compare(source: Letters, start: int, quote: Letters) -> Comparison:
    """Compare a quotation with the same letters of the source, which begin at `start`."""
    comparison = Comparison(source, quote)
    comparison.compare_run(start, 0, len(quote))
    comparison.compare_edges(start, start + len(quote))
    return comparison


def _places(source: Letters, quote: Letters, low: int = 0, high: int | None = None) -> Iterator[int]:
    """Yield the places with the letters of a quotation, and one that cuts a word last."""
    count = max(MIN_COMPARED, min(MAX_COMPARED, MAX_COMPARED_LETTERS // len(quote)))
    start, number, cut = source.text.find(quote.text, low, high), 0, -1
    while start >= 0 and number < MAX_OCCURRENCES and count:
        if _is_boundary(source, start) and _is_boundary(source, start + len(quote)):
            yield start
            count -= 1
        elif cut < 0:
            cut = start
        number += 1
        start = source.text.find(quote.text, start + 1, high)
    if cut >= 0:
        yield cut


def _is_boundary(source: Letters, index: int) -> bool:
    return bool(source.is_start[index]) or is_unspaced(source.text[index]) or is_unspaced(source.text[index - 1])


def _chains(source: Letters, parts: Sequence[Quotation], limits: Span, last: int | None) -> Iterator[Span | None]:
    """Yield the range from the first part to the last where each follows the one before, and None for each failure."""
    part, rest = parts[0], parts[1:]
    yield None
    for start in _places(source, part.letters, *limits):
        end = start + len(part.letters)
        is_good = _compare(source, start, part.letters).allows(len(part.words))
        if not is_good or (last is not None and not _can_omit(source, last, start)):
            yield None
        elif not rest:
            yield start, end
        else:
            limit = min(len(source), end + MAX_OMITTED + len(rest[0].letters))
            yield from (place and (start, place[1]) for place in _chains(source, rest, (end, limit), end))


def _can_omit(source: Letters, end: int, start: int) -> bool:
    begin = int(source.at[start])
    return is_harmless(source.plain.text[source.end(end - 1) : begin], source.plain.text[begin])


def _occurs_again(text: str, word: str, times: int) -> bool:
    found = re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    return sum(1 for _ in islice(found, times + 1)) > times


def _length(span: Span) -> int:
    return span[1] - span[0]


def _raw(letters: Letters, words: Sequence[Span]) -> str:
    return letters.raw(words[0][0], words[-1][1]) if words else ""
