"""Check the edges of a quotation: it must not cut a word or a number, nor leave out a negation beside it."""

# ruff: noqa: RUF001 - apostrophes, dashes and digits that look alike are what this is about

import re

from bedstone.search.quotes.gaps import is_unspaced, symbols_of
from bedstone.search.quotes.markup import strip_markup
from bedstone.search.quotes.words import (
    LINKING,
    NEGATIONS,
    NEGATIVE_ENDINGS,
    NEGATIVE_PREFIXES,
    RESTRICTIONS,
    TRAILING_NEGATIONS,
    UNITS,
)
from bedstone.search.terms import MARKS

CONTEXT = 60  # characters
MAX_LINKING = 3  # words between a negation and what it negates
MAX_GROUP = 3  # digits between separators of thousands
HAN_DIGITS = frozenset("0123456789零〇一二三四五六七八九十百千万萬亿億两兩")
NARROW_SPACES = "\u00a0\u2007\u2009\u200a\u202f"

LAST_WORD = re.compile(rf"([^\W\d_][\w{MARKS}]*)['’]?[\s*_`\"“”„«»‘~()]*\Z")
FIRST_WORD = re.compile(rf"[\s*_`~]*([^\W\d_][\w{MARKS}]*)")
CONTRACTED_NEGATION = re.compile(r"(?:n['’]t[\s*_`]*|\bn['’])\Z", re.IGNORECASE)
# Ways to join the first or last word with what the quotation cuts off.
EMPHASIS_BEFORE = re.compile(r"\w[*_`~]+\Z")
EMPHASIS_BEHIND = re.compile(r"[*_`~]+\w")
HYPHENATION_BEFORE = re.compile(r"[^\W\d_][-\u2010\u00ad\u00ac]\s*\n\s*\Z|\u00ad\Z")
HYPHENATION_BEHIND = re.compile(r"[-\u2010\u00ac]\s*\n\s*[^\W\d_]|\u00ad")
JOINT_BEFORE = re.compile(r"\w(?:[-\u2010\u2011/@_\\=:.+#&]|://)\Z")
JOINT_BEHIND = re.compile(r"(?:[-\u2010\u2011/@_\\=&]|://|\()\w|[+#^]")
POINT_BEHIND = re.compile(r"\.[a-z0-9]")
APOSTROPHE_BEFORE = re.compile(r"\w['’]\Z")
APOSTROPHE_BEHIND = re.compile(r"['’]\w")
ELISION = re.compile(
    r"(?:\A|[^\w])(?:[cdjlmst]|qu|lorsqu|puisqu|jusqu|dell|all|nell|sull|un|dall|quest)['’]\Z", re.IGNORECASE
)
NUMBER_BEFORE = re.compile(rf"\d[.,:\u2013'’{NARROW_SPACES}]\Z")
NUMBER_BEHIND = re.compile(rf"[.,:\u2013'’]\d|[{NARROW_SPACES}]\d{{3}}(?!\d)")
# With an ordinary space it may be two numbers, so that it is left to the reader.
SPACED_BEFORE = re.compile(r"(?<!\d)\d{1,3} \Z")
SPACED_BEHIND = re.compile(r" \d{3}(?!\d)")
GROUP = re.compile(r"\d{3}(?!\d)")
SHORT_NUMBER = re.compile(rf"(?<!\d)\d{{1,{MAX_GROUP}}}\Z")
BRACKETED_NUMBER = re.compile(r"[\d.,]+\)")
SIGN_BEFORE = re.compile(r"(?:\n[ \t]*)?(?:(?<![\w.])[-\u2212+]|#|[<>≤≥≈~±$€£¥₹]=?\s{0,3})+\Z")
SIGN_BEHIND = re.compile(r"\s{0,3}[%‰°€$£¥₹]")


def cut_before(text: str, first: int, lead: str) -> str | None:
    """Return what a quotation cuts off before its first letter, or None.

    `first` is the place of that letter in the source, `lead` what the quotation itself has before it.
    """
    before, letter = _unescape(text[max(0, first - CONTEXT) : first]), text[first]
    if not before:
        return None
    if is_unspaced(letter) and (negation := _negation_of_unspaced(before.rstrip(), letter)):
        return negation
    number = text[first : first + CONTEXT] if letter.isdigit() else ""
    if _cuts_word_before(before, letter) or (number and _cuts_number_before(before, number, lead)):
        return before.split()[-1]
    return _negation_before(before)


def cut_behind(text: str, end: int, trail: str) -> str | None:
    """Return what a quotation cuts off behind its last letter, which ends at `end`, or None."""
    behind, letter = _unescape(text[end : end + CONTEXT]), text[end - 1]
    if not behind:
        return None
    number = text[max(0, end - CONTEXT) : end] if letter.isdigit() else ""
    if _cuts_word_behind(behind, letter, trail) or (number and _cuts_number_behind(number, behind, trail)):
        return behind.split()[0]
    return _negation_behind(behind)


def _unescape(context: str) -> str:
    return strip_markup(context).text if "&" in context or "<" in context else context


def _cuts_word_before(before: str, letter: str) -> bool:
    if is_unspaced(letter) or is_unspaced(before[-1]):
        return False
    is_joined = JOINT_BEFORE.search(before) and not _is_new_sentence(before, letter)
    is_contracted = APOSTROPHE_BEFORE.search(before) and not ELISION.search(before)
    is_split = EMPHASIS_BEFORE.search(before) or HYPHENATION_BEFORE.search(before)
    return before[-1].isalnum() or bool(is_joined or is_contracted or is_split)


def _cuts_word_behind(behind: str, letter: str, trail: str) -> bool:
    if is_unspaced(letter) or is_unspaced(behind[0]):
        return {behind[0], letter} <= HAN_DIGITS
    joint = JOINT_BEHIND.match(behind)
    if joint and joint[0] in trail:
        joint = None
    is_split = EMPHASIS_BEHIND.match(behind) or HYPHENATION_BEHIND.match(behind)
    is_joined = joint or APOSTROPHE_BEHIND.match(behind) or POINT_BEHIND.match(behind)
    return behind[0].isalnum() or bool(is_split or is_joined)


def _is_new_sentence(before: str, letter: str) -> bool:
    """Return whether a point or colon without a space ends what is before it."""
    return before[-1] in ".:" and before[-2:-1].isalpha() and (letter.isupper() or before[-1] == ":")


def _cuts_number_before(before: str, number: str, lead: str) -> bool:
    if NUMBER_BEFORE.search(before) or (SPACED_BEFORE.search(before) and GROUP.match(number)):
        return True
    if before[-1] == "(" and "(" not in lead and BRACKETED_NUMBER.match(number):  # a minus sign in a balance
        return True
    return _sign_before(before) != _sign_before(lead)


def _sign_before(before: str) -> str:
    sign = SIGN_BEFORE.search(before)
    return symbols_of(f" {sign[0]}", before_digit=True) if sign else ""


def _cuts_number_behind(number: str, behind: str, trail: str) -> bool:
    if NUMBER_BEHIND.match(behind) or (SPACED_BEHIND.match(behind) and SHORT_NUMBER.search(number)):
        return True
    sign = SIGN_BEHIND.match(behind)
    if sign:
        return not symbols_of(trail).startswith(symbols_of(sign[0]))
    unit = FIRST_WORD.match(behind)
    is_unit = bool(unit and unit[1].lower() in UNITS) or behind[0] in UNITS
    return is_unit and not trail.strip(" .")


def _negation_before(before: str) -> str | None:
    """Return the negation before a quotation, also behind words that link it."""
    skipped = ""
    for _ in range(MAX_LINKING + 1):
        if CONTRACTED_NEGATION.search(before):
            return before.rsplit(maxsplit=1)[-1] + skipped
        word = LAST_WORD.search(before)
        lower = word[1].lower() if word else ""
        is_negation = lower in NEGATIONS or (lower in RESTRICTIONS and not skipped)
        if word and is_negation and not _is_name(word[1], before[: word.start()]):
            return word[1] + skipped
        if not word or lower not in LINKING:
            return None
        before, skipped = before[: word.start()], f" {word[1]}{skipped}"
    return None


def _is_name(word: str, before: str) -> bool:
    """Return whether a word is a noun or name: it has a capital inside a line, after another word."""
    return word.istitle() and before.rstrip(" \t")[-1:].isalnum()


def _negation_behind(behind: str) -> str | None:
    word = FIRST_WORD.match(behind)
    if word and word[1].lower() in TRAILING_NEGATIONS:
        return word[1]
    start = behind.lstrip()
    return next((ending for ending in NEGATIVE_ENDINGS if start.startswith(ending)), None)


def _negation_of_unspaced(before: str, letter: str) -> str | None:
    if {before[-1:], letter} <= HAN_DIGITS:
        return before[-1]
    return next((prefix for prefix in NEGATIVE_PREFIXES if before.endswith(prefix)), None)
