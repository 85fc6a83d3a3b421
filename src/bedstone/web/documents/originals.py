"""The originals of documents: pictures of their pages, rich text, and the file itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import BedstoneError
from bedstone.search.matching import Matcher
from bedstone.web.documents.page_marks import draw_marks
from bedstone.web.documents.rich_parts import cut, find_part, mark_passage
from bedstone.web.frame import Pages
from bedstone.web.paging import parse_page_number
from bedstone.web.rich_text.rendering import render_html, render_markdown

if TYPE_CHECKING:
    from bedstone.services.knowledge.records import FileDocument
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.services.service import Handle
    from bedstone.web.documents.reading import Reading

Kind = Literal["pages", "rich", "text"]
# What a browser cannot run even if it opens the file itself; everything else is sent as bytes.
SAFE_TYPES = {"pdf": "application/pdf"}
DEFAULT_WIDTH = 640  # pixels
MAX_QUERY_CHARACTERS = 500
MAX_RICH_CHARACTERS = 1_000_000  # 0.1 s to cut them into parts, once
TOO_LONG = "Only the beginning of the original is shown. Download it to read the rest; agents read all of it."
PICTURE_CACHE = "private, max-age=31536000, immutable"  # the file of a document never changes


@dataclass(frozen=True)
class Original:
    """What stands beside the text: the size of each page, or a part of the rich text."""

    kind: Kind
    sizes: Sequence[tuple[float, float]] = ()
    note: str = ""  # what is not shown
    rich: Markup | None = None
    part: int = 1
    parts: int = 1


def original_routes(pages: Pages) -> list[BaseRoute]:
    """Return the pictures of pages, what is marked on them, and the file itself."""
    base: Handle[KnowledgeBase] = pages.services["knowledge"]

    async def show_picture(request: Request) -> Response:
        document = await _document(base, request)
        page, width = _page_number(request), _round_width(request.query_params.get("width", ""))
        etag = f'"{document.digest[:32]}-{page}-{width}"'
        headers = {"ETag": etag, "Cache-Control": PICTURE_CACHE}
        if etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        picture = await base.run(lambda base: base.originals.picture(document, page, width))
        return Response(picture, media_type="image/webp", headers=headers)

    async def show_marks(request: Request) -> Response:
        document, given = await _document(base, request), request.query_params
        page, chunk = _page_number(request), given.get("chunk", "")
        query = given.get("q", "").strip()[:MAX_QUERY_CHARACTERS]
        drawing = await base.run(lambda base: draw_marks(base, document, page, chunk, query))
        return Response(drawing, media_type="image/svg+xml")

    async def download(request: Request) -> Response:
        document = await _document(base, request)
        path = await base.run(lambda base: base.originals.path(document))
        media_type = SAFE_TYPES.get(document.format, "application/octet-stream")
        return FileResponse(path, media_type=media_type, filename=document.filename)

    return [
        Route("/documents/{id}/pages/{page}.webp", show_picture),
        Route("/documents/{id}/pages/{page}/marks.svg", show_marks),
        Route("/documents/{id}/original", download),
    ]


async def _document(base: "Handle[KnowledgeBase]", request: Request) -> "FileDocument":
    document_id = str(request.path_params["id"]).lower()
    return await base.run(lambda base: base.get_document(document_id))


def _page_number(request: Request) -> int:
    """Return the page that an address asks for; 0, which does not exist, for what is not a number."""
    return parse_page_number(str(request.path_params["page"]), 0)


def _round_width(given: str) -> int:
    """Return the next width that pages are drawn in."""
    from bedstone.services.knowledge.page_images import WIDTHS  # noqa: PLC0415 - loads the engine

    wanted = parse_page_number(given, 0) or DEFAULT_WIDTH
    return next((width for width in WIDTHS if width >= wanted), WIDTHS[-1])


def open_original(base: "KnowledgeBase", document: "FileDocument") -> Original:
    """Return how an original can be shown, or why its pages cannot."""
    kind = base.originals.kind(document)
    if kind != "pages":
        return Original(kind)
    try:
        return Original(kind, base.originals.page_sizes(document), "".join(base.originals.notices(document)))
    except BedstoneError as error:
        return Original("text", note=f"The pages cannot be shown. {error.message}")


def read_rich(base: "KnowledgeBase", document: "FileDocument", wanted: int, reading: "Reading", query: str) -> Original:
    """Return the page or part of a rich original that stands beside the passages; a cited one is marked."""
    try:
        media, text = (
            _read_page(base, document, reading.page) if reading.has_pages else base.originals.rich_html(document)
        )
    except BedstoneError as error:
        return Original("text", note=f"The original cannot be shown. {error.message}")
    note = TOO_LONG if len(text) > MAX_RICH_CHARACTERS else ""
    parts = cut(media, text[:MAX_RICH_CHARACTERS])
    passage = reading.shown.plain if reading.shown is not None else ""
    share = reading.shown.head.position / reading.total if reading.shown is not None else 0.0
    at = min(wanted, len(parts)) - 1 if wanted else find_part(parts, passage, share)
    render = render_html if media == "html" else render_markdown
    markup = render(parts[at], marks=Matcher(query) if query else None)
    markup = mark_passage(markup, passage) if reading.is_cited else markup
    return Original("rich", note=note, rich=markup, part=at + 1, parts=len(parts))


def _read_page(base: "KnowledgeBase", document: "FileDocument", number: int) -> tuple[Literal["markdown"], str]:
    """Return a slide or sheet, which has no other form than its text."""
    return "markdown", "\n\n".join(page.markdown for page in base.read_pages(document.id) if page.number == number)
