"""Find out where the parts of a block stand in its text, from which markup may have been removed."""

import re
from bisect import bisect_right
from functools import cached_property

WORD = re.compile(r"\S+")
LOOK_AHEAD = 4_000  # characters from one part to the next: a long block must not be searched to its end for each part
MAX_MARKUP = 400  # characters between two words, such as the address of a link

Range = tuple[int, int]


class BlockRanges:
    """Ranges in the text of one block; its parts are asked for in order, and may overlap."""

    def __init__(self, text: str, plain: str) -> None:
        self._text = text
        self._plain = plain
        self._last: Range = (0, 0)
        self._last_plain = 0

    def find(self, part: str) -> Range:
        """Return the range of the next part: its own text, its rows and lines, or its words between markup."""
        self._last = self._find_text(part) or self._find_words(part) or self._find_lines(part) or self._rest(part)
        return self._last

    def _find_text(self, part: str) -> Range | None:
        start = self._text.find(part, self._last[0], self._limit(part))
        return (start, start + len(part)) if start >= 0 else None

    def _find_words(self, part: str) -> Range | None:
        """Map a part of the plain text to the original, word by word."""
        limit = self._last_plain + LOOK_AHEAD + 2 * len(part)
        start = self._plain.find(part, self._last_plain, limit)
        if start < 0:
            return None
        self._last_plain = start
        begin, end = self._to_text(start), self._to_text(start + len(part) - 1)
        return (begin[0], end[1]) if begin and end else None

    def _find_lines(self, part: str) -> Range | None:
        """Find the lines of a table or of code; what stands around them is repeated in each part."""
        lines = [line for line in part.splitlines() if line.strip(" `~")]
        at, starts = self._last[1], []
        for line in lines:
            start = self._text.find(line, at, self._limit(part))
            if start >= 0:
                starts.append(start)
                at = start + len(line)
        return (starts[0], at) if starts else None

    def _rest(self, part: str) -> Range:
        return self._last[1], min(self._limit(part), len(self._text))

    def _limit(self, part: str) -> int:
        return self._last[1] + LOOK_AHEAD + len(part)

    def _to_text(self, position: int) -> Range | None:
        """Return where the word at a position of the plain text stands in the original."""
        plain, original = self._words
        before = bisect_right(plain, position)
        return original[before - 1] if before else None

    @cached_property
    def _words(self) -> tuple[list[int], list[Range]]:
        """Where the words of the plain text begin, and their ranges in the original."""
        starts: list[int] = []
        ranges: list[Range] = []
        at = 0
        for word in WORD.finditer(self._plain):
            start = self._text.find(word[0], at, at + MAX_MARKUP + len(word[0]))
            if start < 0:  # written in another way, such as an entity
                continue
            at = start + len(word[0])
            starts.append(word.start())
            ranges.append((start, at))
        return starts, ranges
