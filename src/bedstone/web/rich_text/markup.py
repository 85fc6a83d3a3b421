"""Read HTML as a browser does, tag by tag, in one pass that never looks back.

A tree would be dangerous here: parsers take quadratic time and memory for markup that is nested deeply on purpose.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape

SPACE = "[ \t\n\r\f]"
TAG_NAME = re.compile(r"[a-zA-Z][^ \t\n\r\f/>]*")
BETWEEN = re.compile(r"[ \t\n\r\f/]*")
ATTRIBUTE_NAME = re.compile(r"[^ \t\n\r\f/>][^ \t\n\r\f/>=]*")
EQUALS = re.compile(rf"{SPACE}*={SPACE}*")
UNQUOTED = re.compile(r"[^ \t\n\r\f>]*")
ENTITY = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);")
# To the parser, all of their content is text.
RAW = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "textarea", "title"})
UNSEEN = frozenset({"script", "style", "iframe", "noembed", "noframes"})  # no reader ever sees what is in them


@dataclass(frozen=True, slots=True)
class Text:
    """Characters that a reader sees, without entities."""

    text: str


@dataclass(frozen=True, slots=True)
class StartTag:
    """The start of an element; names are in lower case, values are without entities."""

    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndTag:
    """The end of an element."""

    name: str


Token = Text | StartTag | EndTag


def tokens(html: str) -> Iterator[Token]:
    """Yield tags and texts in order, without comments, scripts and styles."""
    position = 0
    while position < len(html):
        opened = html.find("<", position)
        if opened != position:
            end = opened if opened >= 0 else len(html)
            yield Text(unescape(html[position:end]))
            position = end
            continue
        token, position = _read_tag(html, position)
        if token is not None:
            yield token
        if isinstance(token, StartTag) and token.name in RAW:
            content, position = _read_raw(html, position, token.name)
            if content and token.name not in UNSEEN:
                yield Text(unescape(content))


def _read_tag(html: str, start: int) -> tuple[Token | None, int]:
    """Read what begins with `<`; comments and broken tags are nothing."""
    if html.startswith("<!--", start):
        return None, _skip_past(html, "-->", start + 2)  # `<!-->` is a whole comment
    if html.startswith(("<!", "<?"), start):
        return None, _skip_past(html, ">", start)
    is_end = html.startswith("</", start)
    found = TAG_NAME.match(html, start + 1 + is_end)
    if found is None:
        return (None, _skip_past(html, ">", start)) if is_end else (Text("<"), start + 1)
    attributes, position = _read_attributes(html, found.end())
    if position > len(html):
        return None, position  # the tag never ends: there is nothing behind it
    name = found[0].lower()
    return EndTag(name) if is_end else StartTag(name, attributes), position


def _read_attributes(html: str, position: int) -> tuple[dict[str, str], int]:
    """Read up to the `>` of a tag; return a position behind the end if it is missing."""
    attributes: dict[str, str] = {}
    while True:
        position = BETWEEN.match(html, position).end()  # type: ignore[union-attr]  # it always matches
        if position >= len(html):
            return attributes, len(html) + 1
        if html[position] == ">":
            return attributes, position + 1
        name = ATTRIBUTE_NAME.match(html, position)
        assert name is not None  # any other character than a space, a slash and `>` begins a name
        value, position = _read_value(html, name.end())
        attributes.setdefault(name[0].lower(), value)


def _read_value(html: str, position: int) -> tuple[str, int]:
    equals = EQUALS.match(html, position)
    if equals is None:
        return "", position
    position = equals.end()
    quote = html[position : position + 1]
    if quote in ('"', "'"):
        end = html.find(quote, position + 1)
        if end < 0:
            return "", len(html) + 1
        return _decode(html[position + 1 : end]), end + 1
    found = UNQUOTED.match(html, position)
    assert found is not None
    return _decode(found[0]), found.end()


def _decode(value: str) -> str:
    """Replace entities; in an address `&copy=1` is a parameter, not a sign."""
    return ENTITY.sub(lambda found: unescape(found[0]), value)


def _read_raw(html: str, start: int, name: str) -> tuple[str, int]:
    """Return the content of an element that has no tags inside, and where its end tag begins."""
    found = re.compile(rf"</{name}(?=[ \t\n\r\f/>])", re.IGNORECASE).search(html, start)
    end = found.start() if found else len(html)
    return html[start:end], end


def _skip_past(html: str, mark: str, start: int) -> int:
    found = html.find(mark, start)
    return len(html) if found < 0 else found + len(mark)
