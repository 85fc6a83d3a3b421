"""Compare what stands between two letters in the source and in a quotation: spaces, punctuation, markup, symbols."""

# ruff: noqa: RUF001 - characters that look alike are what this is about

import re
import unicodedata
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from bedstone.search.quotes.numbers import same_number
from bedstone.search.terms import MARKS, UNSPACED

MAX_GAP = 400  # characters that are read; a longer gap is a drawn line or the like

IGNORED = re.compile(rf"[{MARKS}\u200b-\u200f\u2060-\u2064\u202a-\u202e\u2066-\u2069\ufeff\u00ae\u00a9\u0640]+")
HYPHENATION = re.compile(r"[-\u2010\u00ad\u00ac]\s+\Z")
BLOCK = re.compile(r"\n[ \t]*\n|[|\t\f]|\n[ \t]*(?:[#>*+\u2022\u25aa\u25cf\u25e6\u2023-][ \t]|#{2,}|`{3,}|~{3,})")
# Markdown: ruled lines and rows of dots, marks at the start of a line, escapes, emphasis and the like.
RULES = re.compile(r"[-=*_]{3,}|\.{4,}|(?:\. ){3,}|:?-{2,}:?(?=[ \t]*\|)|(?<=\|)[ \t]*:?-+:?(?=[ \t]*\|)")
LINE_MARKS = re.compile(r"(?<=\n)[ \t]*(?:(?:>[ \t]*)+(?=[^\d=>])[ \t]*)?(?:#{1,6}(?=\s)|[-*+](?=\s))?")
ESCAPES = re.compile(r"\\(?=[^\w\s])|(?<=\s)\\(?=\n)")
MARKDOWN = re.compile(r"[`|\[\]{}]|~~|\*{2,}|(?<!\s)\*|\*(?!\s)|_(?=\W)|(?<=\W)_|_{2}")

BULLETS = frozenset("•▪●◦‣■□○◆◇►▶⁃∙·†‡¶")
APOSTROPHES = frozenset("'’‘‛′`´ʼ＇")
HYPHENS = frozenset("-‐‑﹣－–−")
LONG_DASHES = frozenset("—―‒⸺─")
STOPS = {
    **dict.fromkeys(".。．｡۔։।…", "."),
    **dict.fromkeys("!！¡", "!"),
    **dict.fromkeys("?？؟¿\u037e", "?"),
    **dict.fromkeys(";；؛", ";"),
    **dict.fromkeys(":：", ":"),
    **dict.fromkeys(",，、､،‚", ","),
}
SENTENCE_STOPS = frozenset(".!?")
STOP_RANKS = {stop: rank for rank, stop in enumerate(("", ",", "-", ":", ";", ".", "!", "?"))}
SYMBOLS = frozenset("/\\@&#%_^~")  # and all that Unicode counts as symbols
SAME_SYMBOLS = str.maketrans("＝＜﹤＞＋％﹪∕⁄／º˚∼～＆＠＃＄￥￡⩽⩾⇒➔➜＿✔✅✘❌", "=<<>+%%///°°~~&@#$¥£≤≥→→→_✓✓✗✗")
COMBINED_SYMBOLS = (("<=", "≤"), (">=", "≥"), ("!=", "≠"), ("->", "→"), ("=>", "→"), ("+/-", "±"), ("...", "…"))
CURRENCIES = "([$€£¥"


class Fit(IntEnum):
    """How well two gaps agree. Whether a space on one side only matters depends on the words around it."""

    SAME = 0
    PUNCTUATION = 1
    SPACE = 2
    DIFFERENT = 3


@dataclass(frozen=True)
class Place:
    """What stands between two letters, with the word or number before and behind it."""

    before: str
    gap: str
    behind: str

    def __str__(self) -> str:
        return f"{self.before}{self.gap}{self.behind}"


@dataclass(frozen=True)
class Gap:
    """What a gap says.

    `joint` joins two letters without white space: "-", "'", "." or nothing. `stop` is the strongest punctuation, and
    `symbols` are signs with a meaning: a currency, a sign of comparison. A block is a cell, list item, paragraph or
    heading.
    """

    joint: str = ""
    stop: str = ""
    symbols: str = ""
    is_spaced: bool = False
    is_block: bool = False
    is_hyphenation: bool = False


def is_unspaced(character: str) -> bool:
    """Return whether a letter is of a script without spaces."""
    return UNSPACED.match(character) is not None


def symbols_of(raw: str, *, before_digit: bool = False) -> str:
    """Return the signs with a meaning in a stretch without letters."""
    return read_gap(raw, before_digit=before_digit).symbols


def read_gap(raw: str, *, before_digit: bool = False) -> Gap:
    """Return what a gap says; `before_digit` tells a minus sign from a dash."""
    if raw == " ":
        return Gap(is_spaced=True)
    half = MAX_GAP // 2
    return _read_gap(raw if len(raw) <= MAX_GAP else raw[:half] + raw[-half:], before_digit)


def compare_gaps(source: Place, quote: Place) -> Fit:
    """Return how well the gap of a quotation agrees with the gap of the source."""
    left, right = source.before[-1:], source.behind[:1]
    first, second = (read_gap(place.gap, before_digit=right.isdigit()) for place in (source, quote))
    if left.isdigit() and right.isdigit():
        return _compare_in_number(first, second, source, quote)
    if first == second:
        return Fit.SAME
    if not _same_symbols(first, second, left) or _is_minus_missing(first, second, right):
        return Fit.DIFFERENT
    if is_unspaced(left) or is_unspaced(right):
        return _compare_stops(first, second, right)
    if first.is_spaced and second.is_spaced:
        return _compare_wide(first, second, left, right)
    return _compare_joints(first, second, is_number=left.isdigit() or right.isdigit())


@lru_cache(maxsize=8192)
def _read_gap(raw: str, before_digit: bool) -> Gap:
    text = IGNORED.sub("", raw)
    if HYPHENATION.match(text):
        return Gap(joint="-", is_spaced=True, is_hyphenation=True)
    # What stands around it tells a mark at the start of a line from a sign, and a joint from emphasis.
    text = "a" + text.replace("\u00ad", "") + ("0" if before_digit else "a")
    is_block = BLOCK.search(text) is not None
    for pattern in (RULES, LINE_MARKS, ESCAPES, MARKDOWN):
        text = pattern.sub("", text)
    text = text[1:-1]
    for old, new in COMBINED_SYMBOLS:
        text = text.replace(old, new)
    is_spaced = is_block or any(character.isspace() or character in LONG_DASHES for character in text)
    return _read_signs(text, before_digit, is_spaced, is_block)


def _read_signs(text: str, before_digit: bool, is_spaced: bool, is_block: bool) -> Gap:
    joint, stop, symbols = "", "", ""
    for index, character in enumerate(text.translate(SAME_SYMBOLS)):
        if character in HYPHENS and is_spaced and before_digit and not text[index + 1 :].strip(CURRENCIES):
            symbols += "-"
        elif character in HYPHENS | LONG_DASHES:
            joint += "-"
            stop = _stronger(stop, "-") if is_spaced else stop
        elif character in STOPS:
            joint += STOPS[character]
            stop = _stronger(stop, STOPS[character])
        elif character in APOSTROPHES:
            joint += "'"
        elif character in "(（" and before_digit and index == len(text) - 1:
            symbols += "("  # a minus sign in a balance
        elif character in "()（）":
            joint += "("
        elif character not in BULLETS and (character in SYMBOLS or unicodedata.category(character)[0] == "S"):
            symbols += character
    return Gap("" if is_spaced else joint, stop, symbols, is_spaced, is_block)


def _stronger(first: str, second: str) -> str:
    return max(first, second, key=STOP_RANKS.__getitem__)


def _same_symbols(source: Gap, quote: Gap, left: str) -> bool:
    if left.isdigit():
        return source.symbols == quote.symbols
    return source.symbols.replace("^", "") == quote.symbols.replace("^", "")  # m², m^2 and m2


def _is_minus_missing(source: Gap, quote: Gap, right: str) -> bool:
    has_dash = source.stop == "-", quote.stop == "-"
    return right.isdigit() and has_dash[0] != has_dash[1] and not (source.is_block or quote.is_block)


def _compare_wide(source: Gap, quote: Gap, left: str, right: str) -> Fit:
    """Compare two gaps with white space."""
    if source.is_hyphenation == quote.is_hyphenation:
        return _compare_stops(source, quote, right)
    return Fit.PUNCTUATION if (left + right).isalpha() else Fit.DIFFERENT


def _compare_stops(source: Gap, quote: Gap, right: str) -> Fit:
    """Compare punctuation. A sentence that ends must not go on in the quotation, and one that goes on must not end."""
    if source.stop == quote.stop:
        return Fit.SAME
    is_question = "?" in source.stop + quote.stop
    if source.is_block or quote.is_block:
        return Fit.PUNCTUATION if is_question else Fit.SAME
    is_joined = source.stop in SENTENCE_STOPS and not quote.stop and not right.islower()
    is_divided = quote.stop in SENTENCE_STOPS and not source.stop and not right.isupper()
    return Fit.DIFFERENT if is_question or is_joined or is_divided else Fit.PUNCTUATION


def _compare_joints(source: Gap, quote: Gap, *, is_number: bool) -> Fit:
    """Compare gaps of which at least one has no white space."""
    if not source.is_spaced and not quote.is_spaced:
        return _compare_tight(source, quote, is_number)
    tight, wide = (quote, source) if source.is_spaced else (source, quote)
    if not tight.joint:
        return _compare_with_nothing(tight, wide, is_number)
    if tight.joint == "-":
        return Fit.SAME if wide.is_hyphenation or wide.stop == "-" else Fit.DIFFERENT
    if not tight.joint.strip("('"):
        return Fit.PUNCTUATION
    if wide.stop and wide.stop in tight.joint:
        return Fit.DIFFERENT if is_number and wide.stop == "." else Fit.SAME
    return Fit.DIFFERENT if is_number or not wide.stop else Fit.PUNCTUATION


def _compare_with_nothing(tight: Gap, wide: Gap, is_number: bool) -> Fit:
    """Compare two letters that touch with two that white space separates."""
    if wide.is_hyphenation:
        return Fit.DIFFERENT if is_number else Fit.SAME
    if wide.stop or (wide.is_block and not is_number and not wide.symbols):
        return Fit.DIFFERENT
    return Fit.SAME if is_number or tight.symbols else Fit.SPACE


def _compare_tight(source: Gap, quote: Gap, is_number: bool) -> Fit:
    """Compare two gaps without white space."""
    if source.joint == quote.joint:
        return Fit.SAME
    if source.symbols:  # brackets and the like around a symbol in code
        return Fit.PUNCTUATION if source.joint.strip("('") == quote.joint.strip("('") else Fit.DIFFERENT
    is_confused = bool(source.joint and quote.joint) and {source.joint, quote.joint} <= {".", ",", ":", ";"}
    return Fit.PUNCTUATION if is_confused and not is_number else Fit.DIFFERENT


def _compare_in_number(first: Gap, second: Gap, source: Place, quote: Place) -> Fit:
    """Compare gaps between two digits, where a point or a space makes another number."""
    if first.symbols != second.symbols:
        return Fit.DIFFERENT
    is_wide = first.is_spaced and second.is_spaced and first.is_hyphenation == second.is_hyphenation
    if is_wide and (first.stop == second.stop or first.is_block or second.is_block):
        return Fit.SAME
    is_range = {first.joint or first.stop, second.joint or second.stop} == {"-"}
    is_apart = (first.symbols or first.joint == ":") and (first.joint, first.stop) == (second.joint, second.stop)
    is_same = is_range or is_apart or source.gap == quote.gap or same_number(str(source), str(quote))
    return Fit.SAME if is_same else Fit.DIFFERENT
