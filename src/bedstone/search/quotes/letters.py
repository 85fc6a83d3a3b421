"""Reduce a text to its letters and digits, each with its position: typesetting and line breaks do not change them."""

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from bedstone.search.quotes.markup import PlainText
from bedstone.search.terms import MARKS

Positions = NDArray[np.int64]
Span = tuple[int, int]
CODES = 0x110000
UNREAD = np.uint32(0xFFFFFFFF)
SEVERAL = np.uint32(0x80000000)  # several letters: a length in the lowest bits, then where they are in the list
LENGTH_BITS = 5
MARK = re.compile(rf"[{MARKS}]*")
# A letter by Unicode's count, but written between letters or to stretch them.
NOT_LETTERS = frozenset("\u02bc\u02b9\u0640")
SAME_LETTERS = str.maketrans({"\u03c2": "\u03c3", "\u00d7": "x"})  # sigma at the end of a word, multiplication
HANGUL = re.compile(r"[\uac00-\ud7a3]")


@dataclass(frozen=True)
class Letters:
    """The letters of a text in lower case without accents; `at` is where each stands in the plain text."""

    plain: PlainText
    text: str
    at: Positions

    def __len__(self) -> int:
        return len(self.text)

    def gap(self, index: int) -> str:
        """Return what stands between a letter and the one before it."""
        return self.plain.text[int(self.at[index - 1]) + 1 : int(self.at[index])]

    def end(self, index: int) -> int:
        """Return where a letter ends in the plain text, with its accents."""
        position = int(self.at[index]) + 1
        return position if self.plain.text.isascii() else MARK.match(self.plain.text, position).end()  # type: ignore[union-attr]

    def raw(self, start: int, end: int) -> str:
        """Return the plain text of a range of letters."""
        return self.plain.text[int(self.at[start]) : self.end(end - 1)] if start < end else ""

    @cached_property
    def is_start(self) -> NDArray[np.bool_]:
        """For each letter whether something stands between it and the one before."""
        starts = np.ones(len(self.text) + 1, np.bool_)
        starts[1:-1] = np.diff(self.at) > 1
        return starts


def read_letters(plain: PlainText) -> Letters:
    """Return the letters of a text without markup."""
    folded = _fold_codes(_codes(plain.text))
    at = np.flatnonzero(folded)
    letters = folded[at]
    if letters.size and letters.max() >= SEVERAL:
        letters, at = _expand(letters, at)
    return Letters(plain, letters.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass"), at)


def codes_of(letters: str) -> NDArray[np.uint32]:
    """Return the code points of a text."""
    return _codes(letters).astype(np.uint32)


def fold(character: str) -> str:
    """Return the letters of a character in lower case without accents; nothing if it is not a letter or digit."""
    if HANGUL.match(character):
        return character
    parts = unicodedata.normalize("NFKD", character.lower())
    return "".join(_fold_part(part) for part in parts)


def _fold_part(part: str) -> str:
    part = part.translate(SAME_LETTERS)
    if not part.isalnum() or part in NOT_LETTERS:
        return ""
    digit = unicodedata.decimal(part, None)
    return part if digit is None else str(digit)


def _codes(text: str) -> NDArray[np.uint32] | NDArray[np.uint8]:
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


def _fold_codes(codes: NDArray[np.uint32] | NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return each character's letter, 0 for those without; the table is filled with the characters that occur."""
    if not codes.size:
        return np.zeros(0, np.uint32)
    highest = int(codes.max()) + 1
    present = np.zeros(highest, np.bool_)
    present[codes] = True
    with _LOCK:
        for code in np.flatnonzero(present & (_TABLE[:highest] == UNREAD)):
            _TABLE[code] = _encode(fold(chr(code)))
    return _TABLE[codes]


def _encode(letters: str) -> int:
    if len(letters) <= 1:
        return ord(letters or "\0")
    code = int(SEVERAL) | (len(_EXPANSIONS) << LENGTH_BITS) | len(letters)
    _EXPANSIONS.extend(map(ord, letters))
    return code


def _expand(letters: NDArray[np.uint32], at: Positions) -> tuple[NDArray[np.uint32], Positions]:
    """Return the letters with each character that stands for several, such as a ligature, in its parts."""
    several = letters >= SEVERAL
    lengths = np.where(several, letters & (2**LENGTH_BITS - 1), 1).astype(np.int64)
    offsets = ((letters & ~SEVERAL) >> LENGTH_BITS).astype(np.int64)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    letters, offsets = np.repeat(letters, lengths), np.repeat(offsets, lengths)
    parts = letters >= SEVERAL
    letters[parts] = np.array(_EXPANSIONS, np.uint32)[offsets[parts] + within[parts]]
    return letters, np.repeat(at, lengths)


_TABLE = np.full(CODES, UNREAD, np.uint32)
_EXPANSIONS: list[int] = []
_LOCK = Lock()
