"""Documentation as a source of the search over everything: hits that say where they stand, and the texts they name."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from bedstone.records import CHUNK_SEPARATOR
from bedstone.services.catalog import STEP, FetchedText, FindRequest, Found, FoundItem, Part
from bedstone.services.docs.corpus import ChunkNotFound
from bedstone.services.service import NamedPage, parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bedstone.records import StoredChunk
    from bedstone.search.hits import Hit
    from bedstone.services.docs.library import DocsLibrary

SCHEME = "docs"
MAX_NEAREST = 5


def page_address(library: "DocsLibrary", chunk_id: str, document_id: str, query: str = "") -> str:
    """Return the page that shows a chunk in its file."""
    corpus, path = library.locate(document_id)
    given = {"chunk": chunk_id, "q": query}
    chosen = urlencode({key: value for key, value in given.items() if value})
    anchor = f"#{quote(chunk_id)}" if chunk_id else ""
    return f"/docs/corpora/{quote(corpus)}/{quote(path)}{'?' if chosen else ''}{chosen}{anchor}"


def find_chunks(library: "DocsLibrary", request: FindRequest) -> Found:
    """Return the best chunks, and how many chunks have each value of the facets."""
    known = library.facets
    filters = {key: value for key, value in request.filters.items() if key in known}
    facets: dict[str, Mapping[str, int]] = {}
    if request.with_facets:
        counts = library.count_facets(request.query, filters)
        facets = {key: counts.get(key, {}) for key in sorted(known)}
    hits = library.compare(request.query, filters, request.limit, request.mode)
    items = [_to_item(library, hit, request.query) for hit in hits]
    return Found(items, facets, library.search_notice(request.query, request.mode))


def _to_item(library: "DocsLibrary", hit: "Hit", query: str) -> FoundItem:
    head = hit.head
    corpus, _ = library.locate(head.document_id)
    return FoundItem(
        id=f"{SCHEME}:{head.id}",
        title=head.heading or head.document_id,
        location=STEP.join([head.document_id, *head.breadcrumb[:-1]]),
        address=page_address(library, head.id, head.document_id, query),
        snippet=hit.snippet,
        matched_by=hit.matched_by,
        score=hit.score,
        origin=head.document_id,
        anchor=head.id.partition("#")[2] or None,
        span=head.span,
        section=f"{head.document_id}#{' > '.join(head.breadcrumb[:2])}",
        text=hit.plain,
        changed_at=parse_time(library.metadata[corpus].stats.indexed_at),
    )


def find_files(library: "DocsLibrary", text: str, limit: int) -> list[NamedPage]:
    """Return the files whose titles or paths have a text."""
    found = []
    for corpus in library.metadata:
        for file in library.files(corpus) or ():
            if text in file.title.lower() or text in file.path.lower():
                found.append(
                    NamedPage(file.title or file.path, f"/docs/corpora/{quote(corpus)}/{quote(file.path)}", file.path)
                )
                if len(found) == limit:
                    return found
    return found


def fetch_text(library: "DocsLibrary", name: str) -> FetchedText:
    """Return the text of a file, or of the chunk with an id."""
    corpus, path = library.locate(name)
    if chunks := library.chunks_of(corpus, path):
        return _whole_file(library, chunks)
    chunk = _read_chunk(library, name)
    chunks = library.chunks_of(*library.locate(chunk.head.document_id))
    position = chunk.head.position
    start = sum(len(other.text) + len(CHUNK_SEPARATOR) for other in chunks[:position])
    next_id = f"{SCHEME}:{chunks[position + 1].head.id}" if position + 1 < len(chunks) else None
    address = page_address(library, chunk.head.id, chunk.head.document_id)
    return FetchedText(
        f"{SCHEME}:{chunk.head.id}",
        STEP.join(chunk.head.breadcrumb) or chunk.head.document_id,
        chunk.text,
        address,
        chunk.head.document_id,
        start,
        next_id,
        [Part(0, f"{SCHEME}:{chunk.head.id}", address)],
        dict(chunk.head.facets),
        whole_id=f"{SCHEME}:{chunk.head.document_id}",
    )


def _read_chunk(library: "DocsLibrary", name: str) -> "StoredChunk":
    try:
        found, target, _ = library.read(name)
    except ChunkNotFound:  # whose message names ids without their scheme, and a tool that may not be served
        near = [f"{SCHEME}:{item}" for item in library.nearest_ids(name)[:MAX_NEAREST]]
        guess = f" Nearest: {', '.join(near)}." if near else " Use an id that search returned."
        raise ChunkNotFound(f"Documentation has no {f'{SCHEME}:{name}'!r}.{guess}") from None
    return found[target]


def _whole_file(library: "DocsLibrary", chunks: "Sequence[StoredChunk]") -> FetchedText:
    first = chunks[0].head
    lengths = accumulate((len(chunk.text) + len(CHUNK_SEPARATOR) for chunk in chunks), initial=0)
    parts = [
        Part(start, f"{SCHEME}:{chunk.head.id}", page_address(library, chunk.head.id, first.document_id))
        for chunk, start in zip(chunks, lengths, strict=False)
    ]
    return FetchedText(
        f"{SCHEME}:{first.document_id}",
        first.breadcrumb[0] if first.breadcrumb else first.document_id,
        CHUNK_SEPARATOR.join(chunk.text for chunk in chunks),
        page_address(library, "", first.document_id),
        first.document_id,
        parts=parts,
        facts=dict(first.facets),
    )
