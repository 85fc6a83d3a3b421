"""Convert HTML to Markdown, without scripts, styles and hidden elements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

from bedstone.ingest.extraction import ExtractionError, Notes, Page, ReadOptions
from bedstone.ingest.format import Format
from bedstone.ingest.markdown_writer import code_block, collapse_spaces, escape, heading, table

if TYPE_CHECKING:
    from lxml import etree

FORMAT = Format(
    name="html",
    reader=f"{__name__}:read",
    suffixes=(".html", ".htm", ".xhtml"),
    media_type="text/html",
    in_contract=True,
)
MAX_HTML_BYTES = 20_000_000  # 60 MB took 12 s and 1.5 GB
DROPPED = {"script", "style", "template", "noscript", "iframe", "head", "svg", "math", "object", "canvas"}
DRAWN = {"svg", "math"}  # in files their text is kept
SILENT = {"script", "style", "head", "meta", "link"}  # have no text for people
NAVIGATION = {"nav", "form", "button", "header", "footer", "aside"}
BLOCKS = {
    "p", "div", "section", "article", "main", "header", "footer", "aside", "nav", "dl", "dd", "dt", "figure",
    "figcaption", "body", "form", "fieldset", "address", "details", "summary", "center", "li", "td", "tr", "tbody",
}  # fmt: skip
STRUCTURE = ("thead", "tbody", "tfoot", "tr", "form", "colgroup")
CELLS = ("td", "th", "caption")
SPECIAL = {"ul", "ol", "table", "pre", "blockquote", "hr"}
HEADINGS = {f"h{level}": level for level in range(1, 7)}
CHARSET = re.compile(rb"<meta[^>]+charset=[\"']?([\w-]+)", re.IGNORECASE)
DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
CHARSET_BYTES = 2048
MAX_DEPTH = 250
MAX_SPAN = 100
MAX_CELLS = 20_000  # of a table with spans
TAGS = re.compile(r"<(script|style)\b.*?(?:</\1\s*>|$)|<!--.*?(?:-->|$)|<[^>]*>", re.IGNORECASE | re.DOTALL)
PAGE_TAGS = re.compile(r"</?(?:html|body|head)\b[^>]*>", re.IGNORECASE)
LINE_END = "\0"  # never in the text of a page


def read(path: Path, options: ReadOptions, notes: Notes) -> Iterator[Page]:
    """Yield one page without a number."""
    data = path.read_bytes()
    if len(data) > MAX_HTML_BYTES:
        raise ExtractionError("too_large", "The page exceeds the 20 MB limit for HTML.")
    title, text = html_to_markdown(data, notes=notes)
    notes.learn("title", title)
    yield Page(text)


def html_to_markdown(data: bytes, *, contents_only: bool = False, notes: Notes | None = None) -> tuple[str, str]:
    """Return the title of a page, and its text as Markdown; `notes` record what is hidden on it.

    For documentation take `contents_only`: it leaves out menus and escapes what Markdown would treat as markup.
    """
    root = _parse(decode_page(data))
    if root is None:
        return "", ""
    title = collapse_spaces(root.findtext(".//title") or "")
    body = root.find("body")
    start = root if body is None else body
    if contents_only and (main := start.find(".//main")) is not None:
        start = main
    dropped = DROPPED | NAVIGATION if contents_only else DROPPED - DRAWN
    writer = _Writer(dropped, escape if contents_only else str, notes)
    return title, "\n\n".join(block for block in writer.blocks(start, 0) if block.strip())


def _parse(text: str) -> etree._Element | None:
    """Parse a page; one that exceeds a limit of the parser is parsed without it, or refused."""
    from lxml import etree, html  # noqa: PLC0415 - only readers need it

    for is_huge in (False, True):
        parser = html.HTMLParser(huge_tree=is_huge, remove_pis=True)
        try:
            root: etree._Element = html.document_fromstring(text, parser=parser)
        except (etree.ParserError, ValueError):
            return None
        exceeded = [entry.message for entry in parser.error_log if entry.type_name == "ERR_RESOURCE_LIMIT"]
        if not exceeded:
            return root
        if any("depth" in message for message in exceeded):
            raise ExtractionError("too_deep", "The page is nested too deeply.")
    raise ExtractionError("too_large", "The page exceeds a limit of the parser.")


def html_to_text(markup: str) -> str:
    """Convert an HTML fragment to plain text: lists with dashes, cells between bars, links with addresses."""
    root = _fragment(markup)
    if root is None:
        return ""
    try:
        return "\n\n".join(block for block in _TextWriter(DROPPED, str).blocks(root, 0) if block.strip())
    except ExtractionError:  # nested too deeply: keep its words
        return collapse_spaces(unescape(TAGS.sub(" ", markup)))


def fragment_to_markdown(markup: str) -> str:
    """Convert an HTML fragment to Markdown."""
    root = _fragment(markup)
    if root is None:
        return ""
    try:
        return "\n\n".join(block for block in _Writer(DROPPED, str).blocks(root, 0) if block.strip())
    except ExtractionError:
        return html_to_text(markup)


def _fragment(markup: str) -> etree._Element | None:
    """Parse HTML that was typed or pasted; it may be a whole page."""
    from lxml import etree, html  # noqa: PLC0415 - only readers need it

    inner = PAGE_TAGS.sub("", markup)
    try:
        return html.fromstring(f"<div>{inner}</div>", parser=html.HTMLParser(huge_tree=False, remove_pis=True))
    except (etree.ParserError, ValueError):
        return None


def decode_page(data: bytes) -> str:
    """Decode by byte-order mark, as UTF-8, by the declared charset, or as Windows-1252."""
    declared = CHARSET.search(data[:CHARSET_BYTES])
    encodings = ["utf-16"] if data[:2] in (b"\xff\xfe", b"\xfe\xff") else []
    for encoding in (*encodings, "utf-8-sig", declared[1].decode("ascii") if declared else "utf-8"):
        try:
            return DECLARATION.sub("", data.decode(encoding))
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("cp1252", errors="replace")


class _Writer:
    def __init__(self, dropped: set[str], write: Callable[[str], str], notes: Notes | None = None) -> None:
        self._dropped = dropped
        self._write = write
        self._notes = notes

    def blocks(self, element: etree._Element, depth: int) -> Iterator[str]:
        """Yield the blocks of an element; text between them is a paragraph."""
        _check_depth(depth)
        loose: list[str] = []
        for item in self._pieces(element, depth):
            if isinstance(item, str):
                loose.append(item)
                continue
            yield self._paragraph(loose)
            loose = []
            yield from self._block(item, depth)
        yield self._paragraph(loose)

    def _pieces(self, element: etree._Element, depth: int) -> Iterator[str | etree._Element]:
        """Yield running text, and the elements that interrupt it."""
        yield self._write(element.text or "")
        for child in element:
            if not self._is_dropped(child):
                interrupts = child.tag in HEADINGS or child.tag in BLOCKS or child.tag in SPECIAL
                if interrupts or self._has_blocks(child):
                    yield child
                else:
                    yield self._inline(child, depth)
            yield self._write(child.tail or "")

    def _block(self, element: etree._Element, depth: int) -> Iterator[str]:
        tag = element.tag
        if tag in HEADINGS:
            yield self._heading(HEADINGS[tag], self._text(element, depth))
        elif tag == "pre":
            yield self._listing(self._plain(element, depth))
        elif tag in ("ul", "ol"):
            yield "\n".join(self._items(element, depth + 1))
        elif tag == "table":
            yield from self._table(element, depth + 1)
        elif tag == "blockquote":
            quoted = "\n".join(block for block in self.blocks(element, depth + 1) if block.strip())
            yield "\n".join(f"> {line}" for line in quoted.splitlines())
        elif tag != "hr":
            yield from self.blocks(element, depth + 1)

    def _items(self, element: etree._Element, depth: int) -> Iterator[str]:
        yield from filter(None, [collapse_spaces(self._write(element.text or ""))])
        number = 0
        for item in element:
            if not self._is_dropped(item):
                number += 1
                yield from self._item(item, "-" if element.tag == "ul" else f"{number}.", depth)
            yield from filter(None, [collapse_spaces(self._write(item.tail or ""))])

    def _item(self, item: etree._Element, mark: str, depth: int) -> Iterator[str]:
        lines = "\n".join(block for block in self.blocks(item, depth) if block.strip()).splitlines()
        if lines:
            yield f"{mark} {lines[0]}"
            yield from (f"{' ' * (len(mark) + 1)}{line}" for line in lines[1:])

    def _table(self, element: etree._Element, depth: int) -> Iterator[str]:
        """Write a table; spanning cells are repeated, and a table around other tables is layout."""
        _check_depth(depth)
        caption = element.find("caption")
        if caption is not None:
            yield collapse_spaces(self._text(caption, depth))
        yield collapse_spaces(self._write(" ".join(_loose_texts(element))))
        rows = _table_rows(element)
        if next(element.iterdescendants("table"), None) is not None:
            for cell in (cell for row in rows for cell in row):
                yield from self.blocks(cell, depth)
            for inner in element.iterdescendants("table"):
                if next(inner.iterancestors("table", *CELLS), None) is element:
                    yield from self._table(inner, depth + 1)
            return
        grid: dict[tuple[int, int], str] = {}
        for y, row in enumerate(rows):
            x = 0
            for cell in row:
                while (y, x) in grid:
                    x += 1
                text = " ".join(collapse_spaces(block) for block in self.blocks(cell, depth))
                wide, high = _span(cell, "colspan"), min(_span(cell, "rowspan"), len(rows) - y)
                if len(grid) + wide * high > MAX_CELLS:
                    wide = high = 1
                for down in range(high):
                    for right in range(wide):
                        grid[y + down, x + right] = text
                x += wide
        height, width = (1 + max((place[axis] for place in grid), default=-1) for axis in (0, 1))
        yield self._rows([[grid.get((y, x), "") for x in range(width)] for y in range(height)])

    def _paragraph(self, loose: list[str]) -> str:
        return collapse_spaces("".join(loose))

    def _heading(self, level: int, text: str) -> str:
        return heading(level, text)

    def _listing(self, text: str) -> str:
        return code_block(text)

    def _rows(self, rows: list[list[str]]) -> str:
        return table(rows)

    def _inline(self, element: etree._Element, depth: int) -> str:
        if element.tag == "br":
            return "\n"
        if element.tag == "img":
            return f" {element.get('alt') or ''} "
        if element.tag == "input":
            return f" {element.get('value') or element.get('placeholder') or ''} "
        if element.tag == "svg":
            return f" {' '.join(_drawn_texts(element))} "
        if element.tag in ("code", "kbd", "samp", "tt"):
            code = self._plain(element, depth + 1)
            return f"`{code}`" if code.strip() and "`" not in code else self._write(code)
        return self._text(element, depth + 1)

    def _text(self, element: etree._Element, depth: int) -> str:
        _check_depth(depth)
        parts = [self._write(element.text or "")]
        for child in element:
            if not self._is_dropped(child):
                parts.append(self._inline(child, depth))
            parts.append(self._write(child.tail or ""))
        return "".join(parts)

    def _plain(self, element: etree._Element, depth: int) -> str:
        """Return unescaped text, for code."""
        _check_depth(depth)
        parts = [element.text or ""]
        for child in element:
            if not self._is_dropped(child):
                parts.append("\n" if child.tag == "br" else self._plain(child, depth + 1))
            parts.append(child.tail or "")
        return "".join(parts)

    def _has_blocks(self, element: etree._Element) -> bool:
        return next(element.iterdescendants("p", "div", "table", "ul", "ol", "pre", *HEADINGS), None) is not None

    def _is_dropped(self, element: etree._Element) -> bool:
        """Return whether an element is not displayed; its text is noted."""
        if not isinstance(element.tag, str) or element.tag in SILENT:
            return True
        style = (element.get("style") or "").replace(" ", "").lower()
        is_shown = "hidden" not in element.attrib and "display:none" not in style
        if is_shown and (element.tag not in self._dropped or _is_content(element)):
            return False
        if self._notes is not None:
            for line in _lines(element):
                self._notes.leave_out("hidden text", line)
        return True


class _TextWriter(_Writer):
    """Writes plain text; lines end where the page has line breaks."""

    def _paragraph(self, loose: list[str]) -> str:
        return "\n".join(filter(None, map(collapse_spaces, "".join(loose).split(LINE_END))))

    def _heading(self, level: int, text: str) -> str:
        return collapse_spaces(text.replace(LINE_END, " "))

    def _listing(self, text: str) -> str:
        return text.strip("\n")

    def _rows(self, rows: list[list[str]]) -> str:
        return "\n".join(" | ".join(collapse_spaces(cell) for cell in row) for row in rows if any(row))

    def _inline(self, element: etree._Element, depth: int) -> str:
        if element.tag == "br":
            return LINE_END
        if element.tag in ("code", "kbd", "samp", "tt"):
            return self._plain(element, depth + 1)
        text = super()._inline(element, depth)
        address = _address(element)
        return f"{text} ({address})" if address and address not in text else text

    def _block(self, element: etree._Element, depth: int) -> Iterator[str]:
        yield from super()._block(element, depth)
        if element.tag == "a" and (address := _address(element)):
            yield f"({address})"


def _is_content(element: etree._Element) -> bool:
    """Return whether an element of the page's frame is content: the head of an article, or a note inside it."""
    if element.tag not in ("header", "aside"):
        return False
    inside = ("article", "main") if element.tag == "header" else ("article",)
    return next(element.iterancestors(*inside), None) is not None


def _table_rows(element: etree._Element) -> list[list[etree._Element]]:
    """Return the cells of each row; forms may stand between a row and its cells, and cells outside rows."""
    rows: dict[etree._Element | None, list[etree._Element]] = {}
    for child in element.iter("tr", "td", "th"):
        if next(child.iterancestors("table"), None) is not element:
            continue
        if child.tag == "tr":
            rows.setdefault(child, [])
        else:
            rows.setdefault(next(child.iterancestors("tr", "table"), None), []).append(child)
    return list(rows.values())


def _loose_texts(element: etree._Element) -> Iterator[str]:
    """Yield the text of a table that is outside its cells."""
    for node in element.iter("table", *STRUCTURE):
        if node is not element and (
            node.tag == "table" or next(node.iterancestors("table", *CELLS), None) is not element
        ):
            continue
        yield node.text or ""
        for child in node:
            is_other = isinstance(child.tag, str) and child.tag not in {"table", *STRUCTURE, *CELLS, *SILENT}
            if is_other and next(child.iterdescendants("td", "th"), None) is None:
                yield " ".join(_lines(child))
            yield child.tail or ""


def _drawn_texts(element: etree._Element) -> Iterator[str]:
    """Yield the texts of a drawing."""
    for node in element.iter("text", "foreignobject", "foreignObject"):
        yield collapse_spaces(" ".join(str(text) for text in node.itertext()))


def _lines(element: etree._Element) -> list[str]:
    """Return the lines of an element, without markup."""
    from lxml import etree  # noqa: PLC0415 - only readers need it

    parts: list[str] = []
    silent = 0
    for event, node in etree.iterwalk(element, events=("start", "end", "comment")):
        is_silent = node.tag in SILENT
        if event == "start":
            silent += is_silent
            parts.append("" if silent else f"{_line_end(node)}{node.text or ''}")
            continue
        silent -= is_silent and event == "end"
        if node is not element and not silent:
            parts.append(f"{_line_end(node)}{node.tail or ''}")
    return "".join(parts).splitlines()


def _line_end(element: etree._Element) -> str:
    return "\n" if element.tag in BLOCKS or element.tag in SPECIAL or element.tag in HEADINGS else ""


def _address(element: etree._Element) -> str:
    """Return the target of a link, or an empty string for anchors and scripts."""
    address = (element.get("href") or "").strip() if element.tag == "a" else ""
    return "" if address.lower().startswith(("#", "javascript:", "data:", "vbscript:")) else address


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ExtractionError("too_deep", "The page is nested too deeply.")


def _span(cell: etree._Element, name: str) -> int:
    value = (cell.get(name) or "1").strip()
    return min(max(int(value), 1), MAX_SPAN) if value.isdigit() else 1
