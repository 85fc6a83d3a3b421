"""Parse one page: decode it, split off its front matter, and tell how to split the rest into blocks."""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from bedstone.errors import InvalidInput
from bedstone.ingest.extraction import ExtractionError, Notes
from bedstone.ingest.markdown import Block
from bedstone.ingest.page_markup import page_blocks
from bedstone.services.docs.source.front_matter import FrontMatter, split_front_matter
from bedstone.services.docs.source.listing import HTML_SUFFIXES, MARKDOWN_SUFFIXES, has_suffix

BINARY = re.compile(r"[\x00-\x08\x0e-\x1f\ufffd]")
MAX_BINARY_SHARE = 0.02  # of the characters; a page may show a control character


class UnreadableFile(InvalidInput):
    """A file is not text, or no longer exists."""

    code = "unreadable_file"


@dataclass(frozen=True)
class Page:
    """A page as text, how to split it, and what could not be used of it."""

    front: FrontMatter
    blocks: Callable[[str], list[Block]]
    problems: tuple[str, ...] = ()


def parse_page(path: str, data: bytes) -> Page:
    """Parse the content of a file; a page with problems stays a page, unless it is not text at all."""
    if has_suffix(path, HTML_SUFFIXES):
        return Page(_parse_html(path, data), page_blocks)
    source, problems = _decode(path, data)
    page = _parse_text(path, source)
    return replace(page, problems=(*problems, *page.front.problems))


def _parse_text(path: str, source: str) -> Page:
    markup = _markup_of(path, source)
    if markup == "text":
        from bedstone.ingest.formats.text import text_blocks  # noqa: PLC0415 - load a format only when it occurs

        return Page(FrontMatter(source), text_blocks)
    if markup == "rst":
        from bedstone.ingest.formats.rst import rst_blocks, rst_to_markdown  # noqa: PLC0415

        return Page(FrontMatter(rst_to_markdown(source)), rst_blocks)
    return Page(split_front_matter(source), partial(page_blocks, is_mdx=has_suffix(path, (".mdx",))))


def _markup_of(path: str, source: str) -> str:
    if has_suffix(path, (".rst",)):
        return "rst"
    if has_suffix(path, MARKDOWN_SUFFIXES):
        return "markdown"
    from bedstone.ingest.text_markup import detect_markup  # noqa: PLC0415 - for text files and a bare README

    return detect_markup(source)


def _decode(path: str, data: bytes) -> tuple[str, list[str]]:
    """Decode a page: UTF-8, what its byte-order mark says, or the most plausible encoding, which is a problem."""
    try:
        source = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        source = ""
    has_mark = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if (source or not data) and "\0" not in source and not has_mark:
        return source, []
    from bedstone.ingest.encodings import decode  # noqa: PLC0415 - most pages are UTF-8

    notes = Notes()
    try:
        source = decode(data, notes)
    except ExtractionError:
        source = "\0"
    broken = len(BINARY.findall(source))
    if "\0" in source or broken > MAX_BINARY_SHARE * len(source):
        reason = "contains NUL bytes" if b"\0" in data else "its bytes are not characters of any known encoding"
        raise UnreadableFile(f"{path}: not a text file ({reason})")
    lost = [f"{broken} characters could not be decoded"] if broken else []
    return source, [*(f"{warning[0].lower()}{warning[1:]}" for warning in notes.warnings), *lost]


def _parse_html(path: str, data: bytes) -> FrontMatter:
    from bedstone.ingest.formats.html import MAX_HTML_BYTES, html_to_markdown  # noqa: PLC0415

    if len(data) > MAX_HTML_BYTES:
        raise UnreadableFile(f"{path}: HTML exceeds the {MAX_HTML_BYTES // 1_000_000} MB limit")
    try:
        title, body = html_to_markdown(data, contents_only=True)
    except ExtractionError as error:
        raise UnreadableFile(f"{path}: {error.message}") from None
    return FrontMatter(body, title=title)
