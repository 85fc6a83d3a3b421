"""Write rich text from tags and texts: balanced, of bounded depth, with the page's own headings, links and tables."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, unquote

from markupsafe import escape

from bedstone.ingest.chunking.slugs import slug
from bedstone.web.rich_text.markup import EndTag, StartTag, Text, Token

MAX_DEPTH = 40
MAX_HEADING_LEVEL = 6
MAX_SLUG_CHARS = 80
MAX_SPAN = 100  # columns or rows
CARD_COLUMNS = (2, 3)  # of tables whose rows become cards on phones
MAX_MARKS = 2_000
MAX_IMAGE_NAME = 60
OUTSIDE = "noopener noreferrer nofollow"
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
TABLE_PARTS = frozenset({"caption", "thead", "tbody", "tfoot", "tr", "td", "th"})
CELLS = frozenset({"td", "th", "caption"})
# Inside one of the same name they change nothing, and browsers repeat those left open in every paragraph.
FORMATTING = frozenset({"a", "b", "code", "em", "i", "s", "small", "strong", "u"})
INLINE = FORMATTING | {
    "abbr", "br", "button", "cite", "del", "dfn", "ins", "kbd", "mark", "q", "samp", "span", "sub", "sup", "var", "wbr",
}  # fmt: skip
BLOCKS = TABLE_PARTS | {
    "blockquote", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "hr", "li", "ol", "p", "pre", "summary",
    "table", "ul", *HEADINGS,
}  # fmt: skip
TAGS = INLINE | BLOCKS
OWN = frozenset({"mark", "button"})  # written by pages only
RENAMED = {
    "acronym": "abbr", "address": "div", "article": "div", "aside": "div", "center": "div", "dir": "ul",
    "fieldset": "div", "footer": "div", "form": "div", "header": "div", "image": "img", "listing": "pre", "main": "div",
    "menu": "ul", "nav": "div", "section": "div", "strike": "s", "tt": "code", "xmp": "pre",
}  # fmt: skip
VOID = frozenset({"br", "hr", "img", "input", "wbr"})
# What a start tag ends, if it is open, and where the search for it stops.
IMPLIED = {
    "li": ({"li"}, {"ul", "ol", *CELLS}),
    "dt": ({"dt", "dd"}, {"dl", *CELLS}),
    "dd": ({"dt", "dd"}, {"dl", *CELLS}),
    "tr": ({"tr", "td", "th", "caption"}, {"table"}),
    "td": ({"td", "th", "caption"}, {"table"}),
    "th": ({"td", "th", "caption"}, {"table"}),
    **{
        part: ({"thead", "tbody", "tfoot", "tr", "td", "th", "caption"}, {"table"})
        for part in ("thead", "tbody", "tfoot")
    },
    **{heading: ({"p", *HEADINGS}, BLOCKS - {"p", *HEADINGS}) for heading in HEADINGS},
}
PARAGRAPH: tuple[set[str], frozenset[str]] = ({"p"}, BLOCKS - {"p"})
ITEMS = {"ul": "li", "ol": "li", "dl": "dd"}  # what holds content that stands in a list outside its items
LISTS = {"li": ("ul", "ol"), "dt": ("dl",), "dd": ("dl",)}
# What stands before it, and the tags of the outermost one.
FRAMED = {
    "pre": (
        '<div class="code">',
        '<pre tabindex="0">',
        '</pre><button class="btn tight only-icon" type="button" data-copy="" aria-label="Copy"></button></div>',
    ),
    "table": (
        '<div class="scroll" role="region" tabindex="0" aria-label="Table">',
        '<table class="table">',
        "</table></div>",
    ),
}
SCHEMES = frozenset({"http", "https", "mailto"})
SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
IGNORED_IN_ADDRESS = re.compile(r"[\t\n\r]")  # by browsers, wherever they stand
AROUND_ADDRESS = "".join(map(chr, range(0x21)))
OWN_ADDRESS = re.compile(r"(?:/(?![/\\])|[#?]|https?://)")


class Finder(Protocol):
    """Finds words to mark, as `Matcher` does."""

    def find(self, text: str) -> Sequence[tuple[int, int, str]]:
        """Return the start and the end of each match, in order, and what it is a match of."""


@dataclass(slots=True)
class _Open:
    """An element that is open: its name, how it ends, where it began, and how many texts there were before."""

    name: str
    ending: str
    place: int
    texts: int
    level: int = 0  # of a heading
    columns: int = 0  # of a table: the cells of its head
    cells: int = 0  # of a table: those of the current row so far


class RichTextWriter:
    """Writes tokens as markup that needs no correction; `markup` returns it."""

    def __init__(
        self,
        marks: Finder | None,
        link: Callable[[str], str | None] | None,
        min_level: int,
        prefix: str,
        anchor: str = "",
    ) -> None:
        self.size = 0
        self._marks = marks
        self._link = link
        self._min_level = min_level
        self._prefix = prefix  # of ids; empty: no ids
        self._anchor = anchor  # of the first heading, which is on the page already
        self._parts: list[str] = []
        self._open: list[_Open] = []
        self._skipped: Counter[str] = Counter()
        self._texts = 0
        self._marked = 0
        self._levels: list[int] = []
        self._ids: Counter[str] = Counter()  # ids, and how often a name was taken
        self._heading: list[str] = []

    def markup(self) -> str:
        """Return what was written."""
        return "".join(self._parts)

    def write(self, token: Token) -> None:
        """Write one token, or what it becomes."""
        if isinstance(token, Text):
            self._write_text(token.text)
            return
        name = RENAMED.get(token.name, token.name)
        if isinstance(token, EndTag):
            self._end(name)
        elif name in VOID:
            self._write_void(name, token)
        elif name in TAGS and name not in OWN:
            self._start(name, token)

    def end_all(self) -> None:
        """End what is still open."""
        while self._open:
            self._end_last()

    def write_note(self, text: str) -> None:
        """Write a sentence of the page itself."""
        self._put(f'<p class="cut">{escape(text)}</p>')

    def _put(self, markup: str) -> None:
        self._parts.append(markup)
        self.size += len(markup)

    def _write_text(self, text: str) -> None:
        if not text.isspace():
            self._enter_item("")
            self._texts += 1
        self._heading.append(text)
        self._put(self._marked_text(text))

    def _marked_text(self, text: str) -> str:
        """Escape a text and mark the words that the reader looks for."""
        if self._marks is None or self._marked > MAX_MARKS:
            return escape(text)
        parts, done = [], 0
        for start, end, _ in self._marks.find(text):
            if end <= done:
                continue
            begin = max(start, done)
            parts += [escape(text[done:begin]), f"<mark>{escape(text[begin:end])}</mark>"]
            done = end
            self._marked += 1
        return "".join([*parts, escape(text[done:])])

    def _write_void(self, name: str, tag: StartTag) -> None:
        self._end_implied(name)
        self._enter_item(name)
        if name == "img":
            self._write_image(tag.attributes)
        elif name == "input":
            self._write_task(tag.attributes)
        else:
            self._put(f"<{name}>")

    def _write_image(self, attributes: Mapping[str, str]) -> None:
        """Name an image: nothing is loaded from elsewhere."""
        source = attributes.get("src", "")
        file = "" if source.lstrip().lower().startswith("data:") else unquote(re.split(r"[?#]", source)[0])
        name = attributes.get("alt", "").strip() or file.rstrip("/").rpartition("/")[2][:MAX_IMAGE_NAME]
        text = f"Image: {name}" if name else "Image"
        self._texts += 1
        self._heading.append(text)
        self._put(f'<span class="image">{self._marked_text(text)}</span>')

    def _write_task(self, attributes: Mapping[str, str]) -> None:
        if attributes.get("type", "").lower() == "checkbox":
            sign, name = ("\u2611", "Done") if "checked" in attributes else ("\u2610", "To do")
            self._put(f'<span role="img" aria-label="{name}">{sign}</span>')

    def _start(self, name: str, tag: StartTag) -> None:
        self._end_implied(name)
        is_repeated = name in FORMATTING and any(item.name == name for item in self._open)
        if name == "a" and is_repeated:
            self._end("a")
        elif is_repeated or len(self._open) >= MAX_DEPTH:
            self._skipped[name] += 1
            return
        self._enter_item(name)
        before, begin, ending, level = self._element(name, tag.attributes)
        self._put(before)
        self._open.append(_Open(name, ending, len(self._parts), self._texts, level))
        self._put(begin)

    def _begin_row(self) -> None:
        for item in reversed(self._open):
            if item.name == "table":
                item.cells = 0
                return

    def _count_cell(self, name: str) -> bool:
        """Count a cell of the innermost table; return whether phones show it below the others of its row."""
        table = next((item for item in reversed(self._open) if item.name == "table"), None)
        if table is None:
            return False
        table.cells += 1
        if name == "th" and self._is_in("thead"):
            table.columns = table.cells
        return table.cells == table.columns in CARD_COLUMNS

    def _element(self, name: str, attributes: Mapping[str, str]) -> tuple[str, str, str, int]:
        """Return what stands around an element: before it, its tags, and the level of a heading."""
        before, begin, ending, level = "", f"<{name}{self._attributes(name, attributes)}>", f"</{name}>", 0
        if name == "a":
            begin = self._link_tag(attributes.get("href", ""))
            ending = ending if begin else ""
        elif name in HEADINGS:
            level, self._heading = self._heading_level(int(name[1])), []
            begin, ending = f"<h{level}>", f"</h{level}>"
        elif name in FRAMED and not self._is_in(name):
            before, begin, ending = FRAMED[name]
        elif name in LISTS and not self._is_in(*LISTS[name]):
            begin, ending = "<div>", "</div>"
        return before, begin, ending, level

    def _attributes(self, name: str, given: Mapping[str, str]) -> str:
        """Return the attributes that an element keeps."""
        kept: dict[str, str] = {}
        if given.get("dir", "").lower() in ("ltr", "rtl", "auto") and name in BLOCKS | {"span"}:
            kept["dir"] = given["dir"].lower()
        if name in ("td", "th"):
            kept |= {
                span: str(_small(given[span])) for span in ("colspan", "rowspan") if _small(given.get(span, "")) > 1
            }
            is_right = "right" in given.get("style", "") or given.get("align", "").lower() == "right"
            classes = ["right"] * is_right + ["whole"] * (self._count_cell(name) and name == "td")
            kept |= {"class": " ".join(classes)} if classes else {}
        elif name == "tr":
            self._begin_row()
        elif name == "ol" and given.get("start", "").isdecimal():
            kept["start"] = str(int(given["start"][:9]))
        elif name == "abbr" and given.get("title"):
            kept["title"] = given["title"]
        elif name == "details" and "open" in given:
            kept["open"] = ""
        elif name == "div" and given.get("class") == "footnote-definition":
            kept["class"] = "footnote"
            if self._prefix:
                kept["id"] = self._unique(f"note-{slug(given.get('id', ''))}")
        return "".join(f' {key}="{escape(value)}"' for key, value in kept.items())

    def _link_tag(self, href: str) -> str:
        """Return the start of a link, or nothing if it leads nowhere we know."""
        address = IGNORED_IN_ADDRESS.sub("", href).strip(AROUND_ADDRESS)
        if address.startswith("//"):
            address = f"https:{address}"
        scheme = SCHEME.match(address)
        if scheme is not None:
            is_known = scheme[1].lower() in SCHEMES
            return f'<a href="{escape(address)}" rel="{OUTSIDE}">' if is_known else ""
        found = self._resolve(address)
        return f'<a href="{escape(found)}">' if found and OWN_ADDRESS.match(found) else ""

    def _resolve(self, address: str) -> str | None:
        if address.startswith("#") and self._is_in("sup") and self._prefix:
            return f"#{self._prefix}note-{slug(address)}"
        return self._link(address) if self._link and address else None

    def _heading_level(self, level: int) -> int:
        """Return the level of a heading below those around it, without gaps."""
        while self._levels and self._levels[-1] >= level:
            self._levels.pop()
        self._levels.append(level)
        return min(MAX_HEADING_LEVEL, self._min_level + len(self._levels) - 1)

    def _end(self, name: str) -> None:
        if self._skipped[name]:
            self._skipped[name] -= 1
            return
        for item in reversed(self._open):
            if item.name == name:
                while self._end_last() is not item:
                    pass
                return
            if item.name in CELLS and name not in TABLE_PARTS | {"table"}:
                return

    def _end_last(self) -> _Open:
        item = self._open.pop()
        is_empty = self._texts == item.texts
        if is_empty and (item.name == "a" or item.level):
            self._parts[item.place] = ""  # a link without a text cannot be read aloud, nor a heading
        else:
            if item.level and self._prefix:
                self._name_heading(item)
            if item.columns in CARD_COLUMNS:
                self._parts[item.place] = '<table class="table to-cards">'
            self._put(item.ending)
        return item

    def _name_heading(self, item: _Open) -> None:
        """Give a heading an id and a link to itself."""
        text = " ".join("".join(self._heading).split())
        anchor, self._anchor = self._anchor, ""
        if not anchor:
            anchor = self._unique(slug(text)[:MAX_SLUG_CHARS])
            self._parts[item.place] = f'<h{item.level} id="{escape(anchor)}">'
        address = escape(f"#{quote(anchor)}")
        self._put(f' <a class="anchor" href="{address}" aria-label="Link to {escape(text)}">#</a>')

    def _unique(self, name: str) -> str:
        found = f"{self._prefix}{name}"
        while found in self._ids:
            self._ids[name] += 1
            found = f"{self._prefix}{name}-{self._ids[name] + 1}"
        self._ids[found] = 0
        return found

    def _end_implied(self, name: str) -> None:
        """End what a start tag ends: a paragraph, an item, a cell, a row."""
        if name not in BLOCKS:
            return
        for closing, boundary in (IMPLIED.get(name, PARAGRAPH), PARAGRAPH):
            ended = None
            for item in reversed(self._open):
                if item.name in closing:
                    ended = item
                elif item.name in boundary:
                    break
            while ended is not None and self._end_last() is not ended:
                pass

    def _enter_item(self, name: str) -> None:
        """Open an item for what stands in a list outside its items."""
        last = self._open[-1].name if self._open else ""
        item = ITEMS.get(last)
        if item is not None and name not in LISTS:
            self._open.append(_Open(item, f"</{item}>", len(self._parts), self._texts))
            self._put(f"<{item}>")

    def _is_in(self, *names: str) -> bool:
        return any(item.name in names for item in self._open)


def _small(text: str) -> int:
    return min(MAX_SPAN, int(text[:9])) if text.isdecimal() else 1
