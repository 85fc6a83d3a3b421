"""Documents as a source of the search over everything: hits that say where they stand, and the texts they name."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlencode

from bedstone.ingest.page_marks import mark_pages
from bedstone.search.matching import Matcher
from bedstone.search.snippets import snippet
from bedstone.services.catalog import STEP, FetchedText, FindRequest, Found, FoundItem, Part
from bedstone.services.knowledge.errors import DocumentNotFound, EmptyKnowledgeBase
from bedstone.services.knowledge.listing import ListQuery
from bedstone.services.knowledge.records import DOCUMENT_ID, FileDocument, iso_time
from bedstone.services.knowledge.searching import KnowledgeHit, KnowledgeQuery
from bedstone.services.service import NamedPage
from bedstone.store.filters import AttributeIn

if TYPE_CHECKING:
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.store.engine import Store

SCHEME = "doc"
PLAIN_FORMATS = ("txt", "json")  # where signs like # and < are text
PREVIEW_WIDTH = 640  # pixels
SHORT_ID = 8  # characters of a document's id: enough to tell files of one name apart
KEPT = " !'()*+,;=@&$"  # in ids, for people who read them
NAME = re.compile(rf"(.*)~([0-9a-f]{{{SHORT_ID}}})")
PART = re.compile(r"(page|passage)=([1-9][0-9]{0,8})")


def readable_id(document: FileDocument, *, page: int | None = None, passage: int | None = None) -> str:
    """Return the id of a document, or of a page or passage of it: `doc:manual.pdf~0f0bbaff#page=2`."""
    part = f"#page={page}" if page is not None else f"#passage={passage}" if passage is not None else ""
    return f"{SCHEME}:{quote(document.filename, safe=KEPT)}~{document.id[:SHORT_ID]}{part}"


def page_address(document_id: str, *, page: int | None = None, chunk_id: str = "", query: str = "") -> str:
    """Return the page that shows a passage in its document."""
    given = {"page": page or "", "chunk": chunk_id, "q": query}
    chosen = urlencode({key: value for key, value in given.items() if value})
    anchor = f"#chunk-{chunk_id}" if chunk_id else ""
    return f"/documents/{document_id}{'?' if chosen else ''}{chosen}{anchor}"


def find_passages(base: "KnowledgeBase", request: FindRequest) -> Found:
    """Return the best passages; an empty base has none."""
    filters = {"format": request.filters["format"]} if "format" in request.filters else {}
    facets = {"format": base.count_formats(request.query)} if request.with_facets else {}
    try:
        hits = base.search(KnowledgeQuery(request.query, request.limit, filters=filters, mode=request.mode))
    except EmptyKnowledgeBase:
        return Found(())
    matcher = Matcher(request.query)
    items = [_to_item(base, hit, matcher, request.query) for hit in hits]
    return Found(items, facets, base.search_notice(request.query, request.mode))


def _to_item(base: "KnowledgeBase", hit: "KnowledgeHit", matcher: Matcher, query: str) -> FoundItem:
    document, head, page = hit.document, hit.chunk.head, hit.place.page
    heading = hit.place.breadcrumb[-1] if hit.place.breadcrumb else ""
    passage = head.position + 1
    return FoundItem(
        id=readable_id(document, page=page, passage=passage),
        title=heading or document.filename,
        location=f"{document.filename}{STEP}page {page}" if page else document.filename,
        address=page_address(document.id, page=page, chunk_id=head.id, query=query),
        snippet=snippet(hit.chunk.plain if _is_markdown(document) else hit.chunk.text, matcher),
        matched_by=hit.matched_by,
        score=hit.score,
        origin=next(iter(base.places.shown_paths(document)), document.filename),
        page=page,
        anchor=None if page else f"passage={passage}",
        span=head.span,
        section=f"{document.id}#{page or ' > '.join(hit.place.breadcrumb[:2])}",
        text=hit.chunk.text,
        **_pictures(base, document, page, head.id, query),
        changed_at=datetime.fromtimestamp(document.added_at, UTC),
    )


def _pictures(
    base: "KnowledgeBase", document: FileDocument, page: int | None, chunk_id: str, query: str
) -> dict[str, str]:
    """Return the addresses of the picture of a page and of the passage framed on it, if the original has pages."""
    if page is None or base.originals.kind(document) != "pages":
        return {}
    at = f"/documents/{document.id}/pages/{page}"
    found = urlencode({"chunk": chunk_id, "q": query})
    return {"picture": f"{at}.webp?width={PREVIEW_WIDTH}", "marks": f"{at}/marks.svg?{found}"}


def find_files(base: "KnowledgeBase", text: str, limit: int) -> list[NamedPage]:
    """Return the documents whose names have a text, the newest first."""
    page = base.list_documents(ListQuery(filename=text, limit=limit))
    return [NamedPage(item.filename, page_address(item.id), item.format.upper()) for item in page.documents]


def fetch_text(base: "KnowledgeBase", store: "Store", name: str) -> FetchedText:
    """Return the text of a document, or of one of its pages or passages."""
    title, _, part = name.partition("#")
    document = _resolve(store, title)
    text, starts = mark_pages(base.read_pages(document.id))
    parts = _page_parts(document, starts) or _passage_parts(base, document)
    facts = {
        "format": document.format,
        "pages": str(document.page_count or ""),
        "added": iso_time(document.added_at),
        "collections": ", ".join(document.collections),
    }
    origin = next(iter(base.places.shown_paths(document)), document.filename)
    address = page_address(document.id)
    if not part:
        whole = FetchedText(readable_id(document), document.filename, text, address, origin, parts=parts, facts=facts)
        return replace(whole, is_markdown=_is_markdown(document))
    ends = [following.start for _, following in pairwise(parts)] + [len(text)]
    for number, (found, end) in enumerate(zip(parts, ends, strict=True)):
        if found.id.partition("#")[2] == part:
            next_id = parts[number + 1].id if number + 1 < len(parts) else None
            shifted = [Part(0, found.id, found.address, found.page)]
            inside = text[found.start : end].strip()
            start = found.start + len(text[found.start : end]) - len(text[found.start : end].lstrip())
            label = f"{document.filename}, {part.replace('=', ' ')}"
            fetched = FetchedText(found.id, label, inside, found.address, origin, start, next_id, shifted, facts)
            return replace(fetched, is_markdown=_is_markdown(document), whole_id=readable_id(document))
    raise DocumentNotFound(_explain_part(document, parts, part), document_id=document.id)


def _is_markdown(document: FileDocument) -> bool:
    return document.format not in PLAIN_FORMATS


def _page_parts(document: FileDocument, starts: Sequence[tuple[int, int]]) -> list[Part]:
    return [
        Part(start, readable_id(document, page=page), page_address(document.id, page=page), page)
        for start, page in starts
    ]


def _passage_parts(base: "KnowledgeBase", document: FileDocument) -> list[Part]:
    """Return the passages of a document without pages, as far as their place is known."""
    parts: list[Part] = []
    for stored in base.chunks(document.id):
        head = stored.head
        if head.span is not None:
            identity = readable_id(document, passage=head.position + 1)
            start = max(head.span[0], parts[-1].start + 1 if parts else 0)  # neighbours may overlap
            parts.append(Part(start, identity, page_address(document.id, chunk_id=head.id)))
    return parts


def _resolve(store: "Store", name: str) -> FileDocument:
    """Return the document that an id names; its current version if it was replaced since."""
    document = store.document(name.lower()) if DOCUMENT_ID.fullmatch(name.lower()) else None
    if document is not None:
        return FileDocument.from_stored(document)
    named = NAME.fullmatch(name)
    filename = unquote(named[1] if named else name)
    same_name = [FileDocument.from_stored(item) for item in store.documents([AttributeIn("filename", (filename,))])]
    exact = [item for item in same_name if named and item.id.startswith(named[2])]
    if exact or len(same_name) == 1:
        return (exact or same_name)[0]
    if same_name:
        ids = ", ".join(readable_id(item) for item in same_name)
        raise DocumentNotFound(f"Several documents are called {filename!r}: {ids}.", document_id=name)
    raise DocumentNotFound(f"No document is called {filename!r}. Use an id that search returned.", document_id=name)


def _explain_part(document: FileDocument, parts: Sequence[Part], part: str) -> str:
    if not PART.fullmatch(part):
        return f"Unknown part {part!r} of {document.filename}. Parts are page=N or passage=N."
    if not parts:
        return f"{document.filename} is read whole: use {readable_id(document)}."
    return (
        f"{document.filename} has no {part.replace('=', ' ')}: it has {parts[0].id.partition('#')[2]} to {len(parts)}."
    )
