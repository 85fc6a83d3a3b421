"""The knowledge file: the one text that agents read whole, to read, to search and to copy."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.services.service import Handle
from bedstone.web.frame import Pages, estimate_tokens, pretty_json
from bedstone.web.paging import Pager, parse_page_number

if TYPE_CHECKING:
    from bedstone.services.text_file import Snapshot, TextFile
    from bedstone.web.knowledge_file.reading import TextView

ADDRESS = "/knowledge-file"
MAX_QUERY_CHARACTERS = 200
MAX_ANSWER_CHARACTERS = 1_500
LARGE_TOKENS = 20_000  # from here on, agents are better off with passages


@dataclass(frozen=True)
class TextParams:
    """What the address asks for: a view, words to find, a match, a section or a page."""

    query: str = ""
    is_stored: bool = False
    match: int = 0
    section: str = ""
    page: int = 0
    shows_text: bool = False  # of what an agent gets

    @classmethod
    def of(cls, request: Request) -> "TextParams":
        """Read the parameters of an address."""
        given = request.query_params
        query = " ".join((given.get("q") or given.get("find") or "").split())[:MAX_QUERY_CHARACTERS]
        return cls(
            query,
            given.get("view") == "stored",
            parse_page_number(given.get("match", ""), 0),
            given.get("section", ""),
            parse_page_number(given.get("page", ""), 0),
            given.get("agent") == "text",
        )

    def address(self, **changes: str | int) -> str:
        """Return the address of this view with changes."""
        parts: dict[str, str | int] = {
            "q": self.query,
            "view": "stored" if self.is_stored else "",
            "agent": "text" if self.shows_text else "",
        }
        chosen = {key: value for key, value in (parts | changes).items() if value}
        return f"{ADDRESS}?{urlencode(chosen)}" if chosen else ADDRESS


def knowledge_file_routes(pages: Pages) -> list[BaseRoute]:
    """Return /knowledge-file and the file itself."""
    return _KnowledgeFile(pages).routes()


class _KnowledgeFile:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._file: Handle[TextFile] = pages.services["kb"]
        self._toolset = pages.toolsets["kb"]

    def routes(self) -> list[BaseRoute]:
        return [Route(ADDRESS, self.show), Route(f"{ADDRESS}/original", self.download)]

    async def show(self, request: Request) -> Response:
        """Show a part of the text, with the matches marked."""
        params = TextParams.of(request)
        service = await self._file.open()
        snapshot = await service.read()
        view = await to_thread.run_sync(_read, service.name, snapshot, params)
        context: dict[str, Any] = {
            "file": snapshot,
            "name": service.name or "Knowledge file",
            "params": params,
            "view": view,
            "answer": await self._answer(snapshot, params),
            "tokens": estimate_tokens(snapshot.text),
            "is_large": estimate_tokens(snapshot.text) > LARGE_TOKENS,
            "documents": "/documents" if "knowledge" in self._pages.toolsets else "",
            "pages": Pager(
                view.page, view.pages, 1, f"{params.address()}{'&' if '?' in params.address() else '?'}page="
            ),
        }
        return self._pages.render(request, "knowledge_file.html", page="kb", **context)

    async def download(self, request: Request) -> Response:
        """Send the file; a browser saves it and never shows it."""
        service = await self._file.open()
        snapshot = await service.readable()
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(service.name)}"}
        return Response(snapshot.text, media_type="text/plain; charset=utf-8", headers=headers)

    async def _answer(self, snapshot: "Snapshot", params: TextParams) -> "Answer":
        if params.shows_text:
            shown = snapshot.text[:MAX_ANSWER_CHARACTERS]
            return Answer("get_kb_content", shown, estimate_tokens(snapshot.text), len(snapshot.text) - len(shown))
        reply = await self._toolset.call("get_kb_info", {})
        return Answer("get_kb_info", pretty_json(reply.payload), estimate_tokens(reply.text))


@dataclass(frozen=True)
class Answer:
    """What a tool answers, or the beginning of it, and what all of it costs."""

    tool: str
    text: str
    tokens: int
    left_out: int = 0  # characters


def _read(name: str, snapshot: "Snapshot", params: TextParams) -> "TextView":
    from bedstone.web.knowledge_file.reading import Place, read_text  # noqa: PLC0415 - loads the engine

    place = Place(params.page, params.section, params.match)
    return read_text(name, snapshot.text, params.query, place, is_stored=params.is_stored)
