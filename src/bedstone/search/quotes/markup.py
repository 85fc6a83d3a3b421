"""Remove the markup that has letters or digits of its own, and remember where everything was."""

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

INLINE_TAGS = "a|abbr|b|bdi|cite|code|del|dfn|em|font|i|ins|kbd|mark|q|s|samp|small|span|strong|sub|sup|tt|u|var|wbr"
BLOCK_TAGS = "br|div|h[1-6]|hr|li|ol|p|pre|blockquote|table|tbody|td|th|thead|tr|ul|section|article"
# For each kind of markup how it begins, which is quick to look for, and a pattern that begins with the same character.
MARKUP = {
    kind: (beginning, re.compile(pattern))
    for kind, beginning, pattern in (
        ("page", "[page ", r"\[page \d{1,6}\]"),
        ("target", "](", r"\]\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:[ ]\"[^\"\n]{0,300}\")?\)"),
        ("reference", "][", r"\]\[[^\]\[\s]{1,80}\]"),
        ("footnote", "[^", r"\[\^[\w-]{1,40}\]"),
        ("picture", "![", r"!\["),
        ("entity", "&", r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,31}\d{0,2});"),
        ("comment", "<!--", r"<!--[^<]{0,300}?-->"),
        ("address", "://", r"<https?://[^<>\s]{1,500}>"),
        ("inline", "<", rf"<(?i:/?(?:{INLINE_TAGS})(?:\s[^<>]{{0,500}})?/?)>"),
        ("block", "<", rf"<(?i:/?(?:{BLOCK_TAGS})(?:\s[^<>]{{0,500}})?/?)>"),
        ("fence", "```", r"\n[ \t]{0,8}`{3,}[^\n`]{0,60}(?=\n|\Z)"),
    )
}
# The same for characters outside ASCII.
CHARACTERS = re.compile(
    r"(?P<fraction>[\u00bc-\u00be\u2150-\u215e])"
    r"|(?P<superscript>[\u00b2\u00b3\u00b9\u2070\u2074-\u207b]+)"
    r"|(?P<degrees>[\u2103\u2109\u00ba])"
    r"|(?P<trademark>\u2122)"
    r"|(?P<jamo>[\u1100-\u115f][\u1160-\u11a7][\u11a8-\u11ff]?)"
)
ANY_CHARACTER = re.compile(
    r"[\u00b2\u00b3\u00b9\u00ba\u00bc-\u00be\u1100-\u115f\u2070-\u207b\u2103\u2109\u2122\u2150-\u215e]"
)
# What a quotation may leave out, but not change.
COMPARED_KINDS = frozenset({"page", "target", "reference", "footnote", "comment"})
EMPTY_KINDS = frozenset({"target", "reference", "footnote", "comment", "inline", "trademark"})
LIST_MARK = re.compile(r"\n[ \t>]{0,20}(?:\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|[eo\u00a2](?=[ \t]+[A-Z]))[ \t]+")
LIST_LINE = re.compile(r"[ \t>]{0,20}(?:\(?\d{1,3}[.)]|\(?[a-zA-Z][.)]|[eo\u00a2]|[-*+\u2022#]+)[ \t]")
# A capital I, as a scan may have it.
BAR = re.compile(r"(?<![^\s(\"\u201c])\|(?=,|\s+[a-z])")
ENDS_BEFORE_LIST = frozenset(".:;!?)]>|\n\u3002\uff1a\uff1b\uff01\uff1f")
BEFORE_NOTE = re.compile(r"[a-z][.,;:)]?\Z")
PAGE_NUMBER = re.compile(r"\n[ \t]*(?:[-\u2013][ \t]*)?(\d{1,6})(?:[ \t]*[-\u2013])?\Z")
PAGE_NUMBER_ENDS = frozenset("0123456789-\u2013")
MAX_LINE_BEFORE = 200  # characters looked at before a mark

Edit = tuple[int, int, str]  # from, to, and what stands there instead


@dataclass(frozen=True)
class PlainText:
    """A text without markup, in pieces that are in turn copied from the original and in place of something else.

    Piece number i begins at `starts[i]` in it and at `originals[i]` in the original. `removed` are the marks that have
    a meaning of their own, such as the target of a link.
    """

    text: str
    starts: Sequence[int]
    originals: Sequence[int]
    removed: tuple[str, ...] = ()

    def original_start(self, position: int) -> int:
        """Return where the character at a position begins in the original text."""
        piece = bisect_right(self.starts, position) - 1
        return self.originals[piece] + (0 if piece % 2 else position - self.starts[piece])

    def original_end(self, position: int) -> int:
        """Return where the character at a position ends in the original text."""
        piece = bisect_right(self.starts, position) - 1
        return self.originals[piece + 1] if piece % 2 else self.originals[piece] + position - self.starts[piece] + 1


def strip_markup(text: str, *, is_lenient: bool = False) -> PlainText:
    """Return a text without markup.

    A lenient reading also drops the numbers of list items and footnotes, and takes a bar before a word for a capital I.
    """
    found: list[Edit] = []
    removed: list[str] = []
    for kind, match in _find_markup(text):
        if kind in COMPARED_KINDS:
            removed.append(match[0])
        found.append(_edit(text, kind, match, is_lenient))
    if is_lenient:
        found += [(mark.start() + 1, mark.end(), "") for mark in LIST_MARK.finditer(text) if _begins_item(text, mark)]
        found += [(bar.start(), bar.end(), "I") for bar in BAR.finditer(text)]
    return _apply(text, sorted(found), tuple(removed))


def _find_markup(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    for kind, (beginning, pattern) in MARKUP.items():
        if beginning in text:
            yield from ((kind, match) for match in pattern.finditer(text))
    if not text.isascii() and ANY_CHARACTER.search(text):
        yield from ((match.lastgroup or "", match) for match in CHARACTERS.finditer(text))


def _edit(text: str, kind: str, match: re.Match[str], is_lenient: bool) -> Edit:
    old, start = match[0], match.start()
    new = old
    if kind in EMPTY_KINDS:
        new = ""
    elif kind == "page":
        start, new = _start_of_page_break(text, start, int(old[6:-1])), "\n"
    elif kind in ("block", "fence"):
        new = "\n"
    elif kind == "picture":
        new = "["
    elif kind == "entity":
        new = html.unescape(old)
    elif kind == "address":
        new = old[1:-1]
    elif kind == "fraction":
        new = (" " if text[max(0, start - 1) : start].isdigit() else "") + _compatible(old).replace("\u2044", "/")
    elif kind == "superscript":
        is_note = is_lenient and BEFORE_NOTE.search(text, max(0, start - 2), start)
        new = "" if is_note else "^" + _compatible(old).replace("\u2212", "-")
    elif kind == "degrees":
        new = {"\u2103": "°C", "\u2109": "°F"}.get(old, "°")
    elif kind == "jamo":
        new = _compatible(old)
    return start, match.end(), new


def _compatible(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _start_of_page_break(text: str, start: int, page: int) -> int:
    """Return where the break before a page begins: at the number at the foot of the page before, if it has one."""
    low = max(0, start - MAX_LINE_BEFORE)
    before = text[low:start].rstrip()
    number = (
        PAGE_NUMBER.search(before, before.rfind("\n")) if before[-1:] in PAGE_NUMBER_ENDS and "\n" in before else None
    )
    return low + number.start() if number and int(number[1]) in (page - 1, page) else start


def _begins_item(text: str, mark: re.Match[str]) -> bool:
    """Return whether a number at the start of a line is one of a list: a sentence may be broken before a number."""
    before = text[max(0, mark.start() - MAX_LINE_BEFORE) : mark.start()].rstrip(" \t")
    return before[-1:] in ENDS_BEFORE_LIST or not before or bool(LIST_LINE.match(before, before.rfind("\n") + 1))


def _apply(text: str, edits: Sequence[Edit], removed: tuple[str, ...]) -> PlainText:
    pieces: list[str] = []
    starts, originals = [0], [0]
    length = position = 0
    for start, end, new in edits:
        if start < position:  # inside the one before
            continue
        pieces += (text[position:start], new)
        length += start - position
        starts.append(length)
        originals.append(start)
        length += len(new)
        starts.append(length)
        originals.append(end)
        position = end
    pieces.append(text[position:])
    return PlainText("".join(pieces), starts, originals, removed)
