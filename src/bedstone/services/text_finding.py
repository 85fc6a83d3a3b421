"""The knowledge file as a source of the search over everything."""

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlencode

from bedstone.errors import NotFound
from bedstone.services.catalog import FetchedText, FindRequest, Found, FoundItem, Part
from bedstone.services.text_file import Snapshot, TextFile
from bedstone.services.text_sections import split_sections

if TYPE_CHECKING:
    from bedstone.search.hits import Hit

SCHEME = "kb"
PAGE = "/knowledge-file"


class SectionNotFound(NotFound):
    """The knowledge file has no such section."""


def find_sections(file: TextFile, snapshot: Snapshot, request: FindRequest) -> Found:
    """Return the best sections of the text."""
    hits = file.search_of(snapshot).search(request.query, request.mode, request.limit)
    return Found([_to_item(file.name, snapshot, hit, request.query) for hit in hits])


def _to_item(name: str, snapshot: Snapshot, hit: "Hit", query: str) -> FoundItem:
    head = hit.head
    return FoundItem(
        id=_id(name, head.id),
        title=head.heading,
        location=name,
        address=_address(head.id, query),
        snippet=hit.snippet,
        matched_by=hit.matched_by,
        score=hit.score,
        origin=name,
        anchor=head.id,
        span=head.span,
        section=head.id,
        text=hit.plain,
        changed_at=snapshot.modified,
    )


def fetch_section(filename: str, snapshot: Snapshot, name: str) -> FetchedText:
    """Return the whole text, or the section with an anchor."""
    file, _, anchor = name.partition("#")
    if unquote(file) != filename:
        raise SectionNotFound(f"The knowledge file is {_id(filename)}, not {SCHEME}:{file}.")
    sections = split_sections(snapshot.text)
    parts = [Part(section.start, _id(filename, section.anchor), _address(section.anchor)) for section in sections]
    if not anchor:
        return FetchedText(_id(filename), filename, snapshot.text, PAGE, filename, parts=parts, is_markdown=False)
    for number, section in enumerate(sections):
        if section.anchor == anchor:
            next_id = parts[number + 1].id if number + 1 < len(parts) else None
            text = snapshot.text[section.start : section.end]
            whole = [Part(0, parts[number].id, parts[number].address)]
            return FetchedText(
                parts[number].id,
                section.title,
                text,
                parts[number].address,
                filename,
                section.start,
                next_id,
                whole,
                is_markdown=False,
                whole_id=_id(filename),
            )
    raise SectionNotFound(f"{filename} has no section {anchor!r}. Use an id that search returned, or {_id(filename)}.")


def _id(filename: str, anchor: str = "") -> str:
    return f"{SCHEME}:{quote(filename, safe=' ')}{'#' if anchor else ''}{anchor}"


def _address(anchor: str, query: str = "") -> str:
    """Return the page at a section; a long text is shown part by part, so the address names the section too."""
    given = {"q": query, "section": anchor}
    return f"{PAGE}?{urlencode({key: value for key, value in given.items() if value})}#{quote(anchor)}"
