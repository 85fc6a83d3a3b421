"""What the page of a document shows of its text: passages of a page, outline, what was left out, the hits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from os.path import commonprefix
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request

from bedstone.errors import BedstoneError
from bedstone.records import ChunkHead, StoredChunk
from bedstone.search.hits import MODES_BY_NAME, Mode
from bedstone.search.matching import Matcher
from bedstone.search.relevance import Band, band_of
from bedstone.services.service import format_count
from bedstone.web.frame import estimate_tokens
from bedstone.web.paging import parse_page_number
from bedstone.web.rich_text.rendering import render_markdown

if TYPE_CHECKING:
    from bedstone.ingest.left_out import LeftOutItem
    from bedstone.services.knowledge.records import FileDocument
    from bedstone.services.knowledge.searching import KnowledgeHit
    from bedstone.services.knowledge.service import KnowledgeBase

VIEWS = ("outline", "facts", "text")  # beside the passages; `text` is what agents get, letter by letter
PASSAGES_PER_PART = 30
MAX_QUERY_CHARACTERS = 500
MAX_OUTLINE = 300
MAX_LEFT_OUT = 80  # characters of one text
MIN_SCORE = 0.05  # as in a search over everything
# What was left out, for people: what it is, and how to get it.
LEFT_OUT: Mapping[str, str] = {
    "repeated line": "the same on {pages}, kept once",
    "hidden text": "hidden in the file",
    "deleted text": "deleted by a tracked change",
    "other version": "another version of text that is kept",
    "uncertain OCR": "recognised with too little certainty",
    "picture": "a picture whose text is not read",
    "scanned page": "a scan that is not read, because OCR is off",
    "attachment": "an attachment; add it as a file of its own",
    "embedded file": "a file inside the file; add it as a file of its own",
    "front matter": "front matter",
}


@dataclass(frozen=True)
class ViewParams:
    """Which part of a document an address asks for, and the search that led to it."""

    document_id: str
    page: int = 0  # 0: the page of the passage, or the first one
    part: int = 0  # of the passages of a page
    section: int = 0  # of the rich text of an original
    chunk: str = ""
    query: str = ""
    mode: Mode = "hybrid"
    view: str = ""
    offset: int = 0

    @classmethod
    def of(cls, request: Request) -> "ViewParams":
        """Read an address."""
        given = request.query_params
        view = given.get("view", "")
        return cls(
            str(request.path_params["id"]).lower(),
            parse_page_number(given.get("page", ""), 0),
            parse_page_number(given.get("part", ""), 0),
            parse_page_number(given.get("section", ""), 0),
            given.get("chunk", ""),
            given.get("q", "").strip()[:MAX_QUERY_CHARACTERS],
            MODES_BY_NAME.get(given.get("mode", ""), "hybrid"),
            view if view in VIEWS else "",
            parse_page_number(given.get("offset", ""), 0),
        )

    def address(self, *, anchor: str = "", **changes: object) -> str:
        """Return the address of the document with changes; parts of a page and of its text are not kept."""
        mode = "" if self.mode == "hybrid" else self.mode
        given = {"page": self.page, "chunk": self.chunk, "q": self.query, "mode": mode, "view": self.view} | changes
        chosen = urlencode({key: value for key, value in given.items() if value})
        return f"/documents/{self.document_id}{'?' if chosen else ''}{chosen}{anchor}"


@dataclass(frozen=True)
class PassagePart:
    """What a passage has of one page; `is_here` on the page that is shown."""

    page: int | None
    text: Markup
    is_here: bool


@dataclass(frozen=True)
class Passage:
    """A passage as agents read it, with what is said below it."""

    id: str
    number: int
    parts: Sequence[PassagePart]
    tokens: int
    is_found: bool
    source: str
    address: str


@dataclass(frozen=True)
class FoundPassage:
    """What a search found in a document: the chosen passage with its score, and the ones before and after it."""

    query: str
    results: str
    total: int = 0
    number: int = 0
    band: Band = "weak"
    score: float = 0.0
    matched_by: str = ""
    address: str = ""
    page: int | None = None
    previous: str = ""
    following: str = ""


@dataclass(frozen=True)
class OutlineEntry:
    """A heading: its level from 0, and where it stands."""

    title: str
    level: int
    page: int | None
    chunk: str
    is_current: bool = False


@dataclass(frozen=True)
class Outline:
    """The headings of a document; `total` counts those of deeper levels too, which a long one leaves out."""

    entries: Sequence[OutlineEntry] = field(default_factory=list)
    total: int = 0


class Passages:
    """The passages of a document by page. A document without pages is cut into parts of some passages each."""

    def __init__(self, heads: Sequence[ChunkHead], page_count: int | None) -> None:
        self.heads = heads
        self.has_pages = page_count is not None
        self.last = page_count or max(1, -(-len(heads) // PASSAGES_PER_PART))

    def find(self, chunk_id: str) -> ChunkHead | None:
        """Return a passage of this document."""
        return next((head for head in self.heads if head.id == chunk_id), None) if chunk_id else None

    def page_of(self, head: ChunkHead | None) -> int:
        """Return the page, or the part, on which a passage begins."""
        if head is None:
            return 1
        return (head.page or 1) if self.has_pages else head.position // PASSAGES_PER_PART + 1

    def on(self, page: int) -> Sequence[ChunkHead]:
        """Return the passages with text on a page, or those of a part."""
        if not self.has_pages:
            return self.heads[(page - 1) * PASSAGES_PER_PART : page * PASSAGES_PER_PART]
        return [head for head in self.heads if any((place.page or 1) == page for place in head.places or (head,))]


@dataclass(frozen=True)
class Reading:
    """What is shown of the text of a document, and where that is in it."""

    passages: Sequence[Passage]
    total: int  # passages of the whole document
    page: int
    last: int
    has_pages: bool
    part: int  # of the passages of a page that has too many of them
    parts: int
    found: FoundPassage | None
    outline: Outline
    shown: StoredChunk | None  # the passage that is cited, or the first one that is shown
    is_cited: bool


def open_reading(
    base: "KnowledgeBase", document: "FileDocument", page_count: int | None, params: ViewParams
) -> tuple[Reading, ViewParams]:
    """Return the passages that an address asks for, and the parameters with the page and the passage chosen."""
    passages = Passages(base.contents.heads(document.id), page_count)
    hits = find_in_document(base, params)
    if not params.chunk:
        best = next((hit for hit in hits if params.page in (0, hit.place.page)), None)
        params = params if best is None else replace(params, chunk=best.chunk.head.id, page=best.place.page or 0)
    chosen = passages.find(params.chunk)
    page = min(params.page or passages.page_of(chosen), passages.last)
    params = replace(params, page=page if passages.last > 1 else 0)
    shown = passages.on(page)
    at = next((at for at, head in enumerate(shown) if head is chosen), None)
    parts = max(1, -(-len(shown) // PASSAGES_PER_PART))
    part = min(params.part or (at or 0) // PASSAGES_PER_PART + 1, parts)
    chunks = base.contents.read(shown[(part - 1) * PASSAGES_PER_PART : part * PASSAGES_PER_PART])
    cited = next((stored for stored in chunks if chosen is not None and stored.head.id == chosen.id), None)
    reading = Reading(
        make_passages(chunks, params, page, document.filename) if not params.view else [],
        len(passages.heads),
        page,
        passages.last,
        passages.has_pages,
        part,
        parts,
        make_found(hits, params),
        make_outline(passages.heads, chosen, page if passages.has_pages else None),
        cited or (chunks[0] if chunks else None),
        cited is not None,
    )
    return reading, params


def make_passages(chunks: Sequence[StoredChunk], params: ViewParams, page: int, filename: str) -> list[Passage]:
    """Return passages as rich text, with the words of the query marked."""
    matcher = Matcher(params.query) if params.query else None
    return [_make_passage(stored, params, page, filename, matcher) for stored in chunks]


def _make_passage(
    stored: StoredChunk, params: ViewParams, page: int, filename: str, matcher: Matcher | None
) -> Passage:
    head, texts = stored.head, page_texts(stored)
    pages = [number for number, _ in texts if number is not None]
    where = f", page {pages[0]}" if len(pages) == 1 else f", pages {pages[0]} to {pages[-1]}" if pages else ""
    return Passage(
        head.id,
        head.position + 1,
        [
            PassagePart(number, render_markdown(text, marks=matcher), is_here=number in (None, page))
            for number, text in texts
        ],
        estimate_tokens(stored.text),
        head.id == params.chunk,
        f"{filename}{where}",
        f"/documents/{params.document_id}?{urlencode({'chunk': head.id})}",
    )


def page_texts(stored: StoredChunk) -> list[tuple[int | None, str]]:
    """Return what a chunk has of each page; all of it in a document without pages."""
    places = stored.head.all_places
    ends = [place.text_start for place in places[1:]] + [len(stored.text)]
    parts = zip(places, ends, strict=True)
    by_page = groupby(parts, key=lambda part: part[0].page)
    return [(page, "".join(stored.text[place.text_start : end] for place, end in group)) for page, group in by_page]


def find_in_document(base: "KnowledgeBase", params: ViewParams) -> "list[KnowledgeHit]":
    """Return what the search that led here finds in the document, the best first."""
    if not params.query:
        return []
    try:
        hits = base.search_document(params.document_id, params.query, params.mode)
    except BedstoneError:  # the text is shown all the same
        return []
    return [hit for hit in hits if hit.score >= MIN_SCORE or hit.chunk.head.id == params.chunk]


def make_found(hits: "Sequence[KnowledgeHit]", params: ViewParams) -> FoundPassage | None:
    """Return the chosen hit, and the way to the others."""
    if not params.query:
        return None
    mode = "" if params.mode == "hybrid" else params.mode
    results = f"/search?{urlencode({key: value for key, value in {'q': params.query, 'mode': mode}.items() if value})}"
    at = next((at for at, hit in enumerate(hits) if hit.chunk.head.id == params.chunk), None)
    addresses = [_hit_address(item, params) for item in hits]
    if at is None:
        return FoundPassage(params.query, results, len(hits), following=addresses[0] if addresses else "")
    hit = hits[at]
    return FoundPassage(
        params.query,
        results,
        len(hits),
        at + 1,
        band_of(hit.score),
        hit.score,
        hit.matched_by,
        addresses[at],
        hit.place.page,
        previous=addresses[at - 1] if at else "",
        following=addresses[at + 1] if at + 1 < len(addresses) else "",
    )


def _hit_address(hit: "KnowledgeHit", params: ViewParams) -> str:
    chunk_id = hit.chunk.head.id
    return params.address(page=hit.place.page or 0, chunk=chunk_id, anchor=f"#chunk-{chunk_id}")


def make_outline(heads: Sequence[ChunkHead], chosen: ChunkHead | None, page: int | None) -> Outline:
    """Return the headings of a document; a long one without its deepest levels."""
    found = list(_headings(heads, chosen, page))
    deepest = max((entry.level for entry in found), default=0)
    shown = found
    while len(shown) > MAX_OUTLINE and deepest:
        deepest -= 1
        shown = [entry for entry in found if entry.level <= deepest]
    return Outline(shown[:MAX_OUTLINE], len(found))


def _headings(heads: Sequence[ChunkHead], chosen: ChunkHead | None, page: int | None) -> list[OutlineEntry]:
    entries: list[OutlineEntry] = []
    current, before = -1, tuple[str, ...]()
    places = [(head, place) for head in heads for place in head.places or (head,)]
    for head, place in places:
        if place.breadcrumb != before:
            same = len(commonprefix([before, place.breadcrumb]))  # noqa: RUF071 - of two lists
            new = enumerate(place.breadcrumb[same:], same)
            entries += [OutlineEntry(title, level, place.page, head.id) for level, title in new]
            before = place.breadcrumb
        if place.page <= page if page and place.page else chosen is None or head.position <= chosen.position:
            current = len(entries) - 1
    if current >= 0:
        entries[current] = replace(entries[current], is_current=True)
    return entries


def left_out_on(document: "FileDocument", page: int | None) -> "list[LeftOutItem]":
    """Return what was left out on a page; of a document without pages, all of it."""
    if page is None:
        return list(document.left_out.items)
    return [
        item
        for item in document.left_out.items
        if any(first <= page <= last for first, last in item.ranges) or (not item.ranges and page == 1)
    ]


def explain_left_out(item: "LeftOutItem") -> str:
    """Return what was left out, and why."""
    pages = format_count(item.count, "page")
    if item.kind == "page number":
        return f"Page numbers, on {pages}"
    text = item.text if len(item.text) <= MAX_LEFT_OUT else f"{item.text[:MAX_LEFT_OUT]}…"
    return f"“{text}”, {LEFT_OUT.get(item.kind, item.kind).format(pages=pages)}"
