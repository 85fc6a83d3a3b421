"""Where the words of a page stand: what OCR or a text layer knows of it, packed into a short text."""

import base64
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 10_000  # of every page, in the unit of all measures here
MAX_WORDS = 20_000
MAX_PACKED_CHARS = 2**21
MAX_UNPACKED_BYTES = 2**22


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its box: from the upper left corner of the page, in ten-thousandths of the page's width."""

    text: str
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class PageWords:
    """The words of a page in reading order, and the height of the page."""

    height: int
    words: Sequence[Word] = ()

    def pack(self) -> str:
        """Return the words as a short text, "" for a page without words."""
        words = self.words[:MAX_WORDS]
        if not words:
            return ""
        boxes = [side for word in words for side in (word.x, word.y, word.width, word.height)]
        data = json.dumps([self.height, " ".join(word.text for word in words), boxes], ensure_ascii=False)
        return base64.b64encode(zlib.compress(data.encode(errors="replace"))).decode()

    @classmethod
    def unpack(cls, packed: str) -> "PageWords | None":
        """Return the words of a page; None for a page without words, or for a text that `pack` did not write."""
        try:
            height, text, sides = json.loads(_inflate(packed))
            return cls(_positive(height), list(_words(str(text).split(" "), sides)))
        except (ValueError, TypeError, zlib.error):
            return None

    def place(self, x: float, y: float, share: float, height: int) -> "PageWords":
        """Return the words of a picture as words of the page that it is on; it covers a share of the page's width."""
        words = [
            Word(
                word.text,
                round(x + word.x * share),
                round(y + word.y * share),
                round(word.width * share),
                round(word.height * share),
            )
            for word in self.words
        ]
        return PageWords(height, words)


def join_words(readings: Iterable[PageWords]) -> PageWords:
    """Return the words of several readings of the same page, one behind the other."""
    found = [reading for reading in readings if reading.words]
    height = found[0].height if found else 1
    return PageWords(height, [word for reading in found for word in reading.words])


def _inflate(packed: str) -> bytes:
    if not packed or len(packed) > MAX_PACKED_CHARS:
        raise ValueError("no words")
    data = zlib.decompressobj()
    return data.decompress(base64.b64decode(packed), MAX_UNPACKED_BYTES)


def _words(texts: Sequence[str], sides: Any) -> Iterable[Word]:
    if len(texts) > MAX_WORDS or len(sides) != 4 * len(texts) or not all(type(side) is int for side in sides):
        raise ValueError("not a box for each word")
    for number, text in enumerate(texts):
        yield Word(text, *sides[4 * number : 4 * number + 4])


def _positive(height: Any) -> int:
    if type(height) is not int or height < 1:
        raise ValueError("not a height")
    return height
