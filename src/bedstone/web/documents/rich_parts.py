"""Cut a long original into parts of rich text, and mark in one of them the passage that a reader came for."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import unescape
from typing import Literal

from markupsafe import Markup

PART_CHARACTERS = 50_000  # of the source
EDGE = 60  # letters and digits that tell where a passage begins or ends
MIN_KEY = 12  # letters and digits of a block that is found on its own
FENCE = re.compile(r"^ {0,3}(?:```|~~~)")
# What never ends reaches to the end, so that no text is looked at twice.
TAG = re.compile(
    r"<!--(?:.*?-->|.*)|<(script|style)\b(?:.*?</\1\s*>|.*)|<(/?)([a-z][a-z0-9]*)\b[^<>]*>", re.DOTALL | re.IGNORECASE
)
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
CUTTABLE = frozenset({"p", "div", "section", "article", "table", "tr", "ul", "ol", "dl", "pre", "blockquote", "li"})
MAX_DEPTH = 40  # of elements that begin again in the next part
# A tag as the sanitiser writes it; a value may have the signs of a tag.
CLEAN_TAG = re.compile(r"</?([a-z][a-z0-9]*)((?: [a-z-]+=\"[^\"]*\")*)>")
# They hold text and, but for lists in lists, no other block.
BLOCKS = frozenset(
    {"p", "li", "td", "th", "dt", "dd", "pre", "blockquote", "figcaption", "summary", "h2", "h3", "h4", "h5", "h6"}
)
IMAGE = re.compile(r'<span class="image">[^<]*</span>')  # stands for a picture, which passages do not have
ANY_TAG = re.compile(r"<[^<>]*>")
NOT_WORD = re.compile(r"[\W_]+")


@lru_cache(maxsize=8)  # a reader goes from part to part
def cut(media: Literal["html", "markdown"], text: str) -> Sequence[str]:
    """Return an original in parts that a page can show."""
    return cut_html(text) if media == "html" else cut_markdown(text)


def cut_markdown(text: str, size: int = PART_CHARACTERS) -> list[str]:
    """Cut Markdown between its blocks, never inside a fence."""
    parts, lines, length, is_fenced = [], list[str](), 0, False
    for line in text.splitlines(keepends=True):
        is_fenced ^= bool(FENCE.match(line))
        lines.append(line)
        length += len(line)
        if length >= size and not is_fenced and not line.strip():
            parts.append("".join(lines))
            lines, length = [], 0
    return [*parts, "".join(lines)] if lines or not parts else parts


def cut_html(html: str, size: int = PART_CHARACTERS) -> list[str]:
    """Cut HTML behind the end of a block; what is open there begins again in the next part."""
    parts, begin, opened = [], 0, list[tuple[str, str]]()
    prefix = ""
    for tag in TAG.finditer(html):
        name = (tag[3] or "").lower()
        if not name or name in VOID:
            continue
        if not tag[2]:
            if len(opened) < MAX_DEPTH:
                opened.append((name, tag[0]))
            continue
        at = next((at for at in reversed(range(len(opened))) if opened[at][0] == name), None)
        if at is not None:
            del opened[at:]
        if name in CUTTABLE and tag.end() - begin >= size:
            parts.append(prefix + html[begin : tag.end()])
            begin, prefix = tag.end(), "".join(start for _, start in opened)
    rest = html[begin:]
    return [*parts, prefix + rest] if rest.strip() or not parts else parts


def find_part(parts: Sequence[str], passage: str, share: float) -> int:
    """Return which part has a passage; if none has it word for word, the one at this share of the text."""
    if len(parts) == 1:
        return 0
    key = _key(passage)
    for edge in (key[:EDGE], key[-EDGE:]):
        found = next((at for at, part in enumerate(parts) if edge and edge in _key(_text(part))), None)
        if found is not None:
            return found
    return min(int(share * len(parts)), len(parts) - 1)


def mark_passage(markup: Markup, passage: str) -> Markup:
    """Return rich text in which the blocks of a passage have the class `found`, and the first one the id `found`."""
    blocks = list(_blocks(str(markup)))
    chosen = _overlapping([key for _, _, key in blocks], _key(passage))
    pieces, last = [], 0
    for number, (at, attributes, _) in enumerate(blocks):
        if number in chosen:
            name = ' id="found"' if number == min(chosen) else ""
            pieces += [markup[last:at], f"{name}{_with_class(attributes)}"]
            last = at + len(attributes)
    return Markup("").join([*map(Markup, pieces), markup[last:]]) if pieces else markup


def _blocks(html: str) -> Iterator[tuple[int, str, str]]:
    """Yield where the attributes of each block begin, what they are, and its letters and digits."""
    starts = [tag for tag in CLEAN_TAG.finditer(html) if tag[1] in BLOCKS and not tag[0].startswith("</")]
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        text = html[start.end() : following.start() if following else len(html)]
        yield start.start(2), start[2], _key(unescape(CLEAN_TAG.sub(" ", IMAGE.sub(" ", text))))


def _overlapping(keys: Sequence[str], passage: str) -> set[int]:
    """Return the blocks that a passage covers: all from its first words to its last, or those it has whole."""
    joined = "".join(keys)
    start = joined.find(passage) if passage else -1
    end = start + len(passage)
    if start < 0 and len(passage) > EDGE:
        start, last = joined.find(passage[:EDGE]), joined.find(passage[-EDGE:])
        end = last + EDGE if start <= last < start + 2 * len(passage) else start + EDGE
    if start < 0:
        return {number for number, key in enumerate(keys) if len(key) >= MIN_KEY and key in passage}
    chosen, at = set(), 0
    for number, key in enumerate(keys):
        if key and at < end and at + len(key) > start:
            chosen.add(number)
        at += len(key)
    return chosen


def _with_class(attributes: str) -> str:
    if 'class="' in attributes:
        return attributes.replace('class="', 'class="found ', 1)
    return f'{attributes} class="found"'


def _text(html: str) -> str:
    return unescape(ANY_TAG.sub(" ", html))


def _key(text: str) -> str:
    return NOT_WORD.sub("", text).casefold()
