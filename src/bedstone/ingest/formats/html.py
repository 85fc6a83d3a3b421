"""HTML to Markdown: headings, paragraphs, lists, tables and listings; scripts, styles and navigation are left out."""

import re
from collections.abc import Iterator

from lxml import etree, html

DROPPED = {"script", "style", "template", "noscript", "nav", "svg", "iframe", "form", "button", "head"}
BLOCKS = {"p", "div", "section", "article", "main", "header", "footer", "aside", "dl", "dd", "dt", "figure", "body"}
HEADINGS = {f"h{level}": level for level in range(1, 7)}
SPACES = re.compile(r"\s+")
CHARSET = re.compile(rb"<meta[^>]+charset=[\"']?([\w-]+)", re.IGNORECASE)
SNIFFED_BYTES = 2048


def html_to_markdown(data: bytes) -> tuple[str, str]:
    """A page's title, and its text as Markdown."""
    try:
        root = html.document_fromstring(_decoded(data), parser=html.HTMLParser(huge_tree=True))
    except (etree.ParserError, ValueError):
        return "", ""
    title = _squeezed(root.findtext(".//title") or "")
    body = root.find("body")
    main = body.find(".//main") if body is not None else None
    start = main if main is not None else body
    return title, "\n\n".join(_blocks(start)) if start is not None else ""


def _decoded(data: bytes) -> str:
    """By byte-order mark, by what the page declares, as UTF-8, and at last as Windows does."""
    declared = CHARSET.search(data[:SNIFFED_BYTES])
    for encoding in ("utf-8-sig", declared[1].decode("ascii") if declared else "utf-8"):
        try:
            text = data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        return re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    return data.decode("cp1252", errors="replace")


def _blocks(element: etree._Element) -> Iterator[str]:
    """An element's blocks; text between them is a paragraph."""
    loose: list[str] = []
    for item in _pieces(element):
        if isinstance(item, str):
            loose.append(item)
            continue
        yield from _paragraph(loose)
        loose = []
        yield from _block(item)
    yield from _paragraph(loose)


def _pieces(element: etree._Element) -> Iterator[str | etree._Element]:
    """Running text, and the elements that interrupt it."""
    yield element.text or ""
    for child in element:
        if _is_dropped(child):
            pass
        elif child.tag in HEADINGS or child.tag in BLOCKS or child.tag in ("ul", "ol", "table", "pre", "blockquote"):
            yield child
        else:
            yield _inline(child)
        yield child.tail or ""


def _block(element: etree._Element) -> Iterator[str]:
    tag = element.tag
    if tag in HEADINGS:
        if text := _squeezed(_text(element)):
            yield f"{'#' * HEADINGS[tag]} {text}"
    elif tag == "pre":
        yield f"```\n{_text(element).strip(chr(10))}\n```"
    elif tag in ("ul", "ol"):
        yield "\n".join(_items(element))
    elif tag == "table":
        if table := _table(element):
            yield table
    elif tag == "blockquote":
        yield "\n".join(f"> {line}" for block in _blocks(element) for line in block.splitlines())
    else:
        yield from _blocks(element)


def _paragraph(loose: list[str]) -> Iterator[str]:
    if text := _squeezed("".join(loose)):
        yield text


def _items(element: etree._Element) -> Iterator[str]:
    for number, item in enumerate(element.iterchildren("li"), start=1):
        mark = "-" if element.tag == "ul" else f"{number}."
        lines = "\n".join(_blocks(item)).splitlines() or [""]
        yield f"{mark} {lines[0]}"
        yield from (f"{' ' * (len(mark) + 1)}{line}" for line in lines[1:])


def _table(element: etree._Element) -> str:
    rows = [
        [_squeezed(_text(cell)).replace("|", "\\|") for cell in row if cell.tag in ("td", "th")]
        for row in element.iter("tr")
    ]
    rows = [row for row in rows if row]
    if not rows:
        return ""
    width = max(map(len, rows))
    first, *rest = [row + [""] * (width - len(row)) for row in rows]
    lines = [first, ["---"] * width, *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _inline(element: etree._Element) -> str:
    if not isinstance(element.tag, str):
        return ""
    if element.tag == "br":
        return "\n"
    if element.tag == "img":
        return element.get("alt") or ""
    text = _text(element)
    if element.tag in ("code", "kbd", "samp", "tt") and text.strip():
        return f"`{text}`"
    return text


def _text(element: etree._Element) -> str:
    parts = [element.text or ""]
    for child in element:
        if not _is_dropped(child):
            parts.append(_inline(child))
        parts.append(child.tail or "")
    return "".join(parts)


def _is_dropped(element: etree._Element) -> bool:
    if not isinstance(element.tag, str) or element.tag in DROPPED:
        return True
    return "hidden" in element.attrib or "display:none" in (element.get("style") or "").replace(" ", "")


def _squeezed(text: str) -> str:
    return SPACES.sub(" ", text).strip()
