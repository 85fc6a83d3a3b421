"""Documentation: corpora with their folders and files, each file as rich text with what an agent gets of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import BedstoneError
from bedstone.services.docs.metadata import CORPUS
from bedstone.services.docs.service import DocsService
from bedstone.services.service import Handle
from bedstone.web.docs.state import CorpusRow, CorpusStates
from bedstone.web.docs.tree import build_tree, list_entries, list_parents, match_files
from bedstone.web.frame import Pages, estimate_tokens
from bedstone.web.paging import Pager, parse_page_number

if TYPE_CHECKING:
    from bedstone.services.docs.library import DocsLibrary
    from bedstone.web.docs.reading import DocsFile, FileView

ENTRIES_PER_PAGE = 200
MAX_FILTERS = 24
MAX_ANSWER_CHARACTERS = 8_000
MAX_NEAREST = 2


def docs_routes(pages: Pages) -> list[BaseRoute]:
    """Return /docs and the pages below it."""
    return _Docs(pages).routes()


@dataclass(frozen=True)
class AgentAnswer:
    """What get_doc answers for a passage: the literal text, or its beginning, and what it costs."""

    id: str
    text: str
    tokens: int
    context: int
    left_out: int  # characters


class _Docs:
    """The pages of the documentation: corpora, their folders and files."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._docs: Handle[DocsService] = pages.services["docs"]
        self._toolset = pages.toolsets["docs"]
        self._states = CorpusStates(pages.services.context.settings)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/docs", self.list_corpora),
            Route("/docs/chunk", self.show_chunk),
            Route("/docs/answer", self.show_answer),
            Route("/docs/corpora/{corpus}", self.show_folder),
            Route("/docs/corpora/{corpus}/{path:path}", self.show_file),
        ]

    async def list_corpora(self, request: Request) -> Response:
        rows = await self._states.describe(await self._docs.open())
        context: dict[str, Any] = {
            "corpora": rows,
            "filters": _filters(rows),
            "max_filters": MAX_FILTERS,
            "commands": self._states.commands(),
            "tools": {_short(name): name for name in self._toolset.tools},
            "list_tokens": sum(_list_tokens(tool) for tool in self._toolset.tools.values()),
        }
        return self._pages.render(request, "docs.html", page="docs", **context)

    async def show_folder(self, request: Request) -> Response:
        """Show a folder of a corpus, or its files with a text in their name."""
        name, folder = request.path_params["corpus"], request.query_params.get("in", "").strip("/")
        text = request.query_params.get("name", "").strip()
        library = await self._library()
        self._require_corpus(library, name)
        files = await self._docs.run(lambda _: library.corpora[name].files)
        entries = match_files(files, text) if text else list_entries(files, folder)
        if folder and not entries and not text:
            raise HTTPException(404, f"The corpus {name!r} has no folder {folder!r}.")
        pager = Pager.of(request, len(entries), ENTRIES_PER_PAGE)
        (row,) = await self._states.describe(await self._docs.open(), only=name)
        context: dict[str, Any] = {
            "corpus": row,
            "folder": folder,
            "above": list_parents(folder),
            "text": text,
            "entries": pager.cut(entries),
            "is_single": CORPUS not in library.facets,
        }
        return self._pages.render(request, "corpus.html", page="docs", pages=pager, **context)

    async def show_file(self, request: Request) -> Response:
        """Show a file as rich text; the address of a folder leads to the folder."""
        name, path = request.path_params["corpus"], request.path_params["path"]
        library = await self._library()
        self._require_corpus(library, name)
        file = await self._docs.run(lambda _: _open_file(library, name, path))
        if file is None:
            return await self._docs.run(lambda _: self._folder_or_nothing(library, name, path.strip("/")))
        given = request.query_params
        if anchor := given.get("at"):
            chunk = file.find_anchor(anchor)
            page = file.page_of(chunk) if chunk else 1
            passage = f"#{quote(chunk.head.id)}" if chunk else ""
            return RedirectResponse(f"{request.url.path}{f'?page={page}' if page > 1 else ''}{passage}")
        return await self._render_file(request, library, name, file)

    async def _render_file(self, request: Request, library: "DocsLibrary", name: str, file: "DocsFile") -> Response:
        given, query = request.query_params, request.query_params.get("q", "").strip()
        view: FileView = await self._docs.run(
            lambda _: _read(file, given.get("chunk", ""), given.get("page", "1"), query)
        )
        context = _context(request)
        passage = view.chosen or view.passages[0]
        rest = urlencode([("q", query), ("page", "")] if query else [("page", "")])
        before, after = file.neighbours()
        corpus = library.corpora[name]
        context_of_page: dict[str, Any] = {
            "corpus": name,
            "corpus_title": corpus.metadata.given_description or name,
            "indexed_at": corpus.metadata.stats.indexed_at,
            "file": file.path,
            "name": file.path.rpartition("/")[2],
            "above": list_parents(file.path),
            "view": view,
            "labels": {key: value for key, value in view.facets.items() if key != CORPUS},
            "is_missing": bool(given.get("chunk")) and view.chosen is None,
            "query": query,
            "tree": build_tree(corpus.files, file.path),
            "before": before,
            "after": after,
            "pages": Pager(view.page, view.pages, 1, f"?{rest}"),
            "passage": passage,
            "answer": await self._answer(passage.id, context),
            "tool": self._get_doc,
        }
        return self._pages.render(request, "file.html", page="docs", **context_of_page)

    async def show_chunk(self, request: Request) -> Response:
        """Lead to the file of a passage, with the passage framed and what an agent gets beside it."""
        chunk_id, context = request.query_params.get("id", ""), _context(request)
        library = await self._library()
        try:
            chunks, target, _ = await self._docs.run(lambda _: library.read(chunk_id))
        except BedstoneError:
            reply = await self._toolset.call(self._get_doc, {"chunk_id": chunk_id, "context": 0})
            raise HTTPException(404, reply.text) from None
        head = chunks[target].head
        corpus, path = library.locate(head.document_id)
        chosen = urlencode({"chunk": head.id, "context": context} if context else {"chunk": head.id})
        return RedirectResponse(f"/docs/corpora/{quote(corpus)}/{quote(path)}?{chosen}#{quote(head.id)}")

    async def show_answer(self, request: Request) -> Response:
        """Return what an agent gets of another passage; a script puts it in place of the old one."""
        library = await self._library()
        chunk_id = request.query_params.get("id", "")
        chunks, target, total = await self._docs.run(lambda _: library.read(chunk_id))
        head = chunks[target].head
        passage = {"id": head.id, "number": head.position + 1, "heading": head.heading or head.document_id}
        answer = await self._answer(head.id, _context(request))
        return self._pages.render_fragment(
            "docs_answer.html", passage=passage, view={"total": total}, answer=answer, tool=self._get_doc
        )

    async def _library(self) -> "DocsLibrary":
        return await self._docs.run(lambda service: service.library)

    def _require_corpus(self, library: "DocsLibrary", name: str) -> None:
        if name in library.unavailable:
            raise HTTPException(503, library.unavailable[name])
        if name not in library.corpora:
            raise HTTPException(404, f"Unknown corpus {name!r}. The Documentation page lists every corpus.")

    def _folder_or_nothing(self, library: "DocsLibrary", name: str, path: str) -> Response:
        if list_entries(library.corpora[name].files, path):
            return RedirectResponse(f"/docs/corpora/{quote(name)}?in={quote(path)}")
        near = dict.fromkeys(item.partition("#")[0] for item in library.corpora[name].nearest_ids(path))
        hint = f" Did you mean {' or '.join(list(near)[:MAX_NEAREST])}?" if near else ""
        raise HTTPException(404, f"The corpus {name!r} has no file {path!r}.{hint}")

    @property
    def _get_doc(self) -> str:
        return next(name for name in self._toolset.tools if name.endswith("get_doc"))

    async def _answer(self, chunk_id: str, context: int) -> AgentAnswer:
        reply = await self._toolset.call(self._get_doc, {"chunk_id": chunk_id, "context": context})
        text = reply.text
        left_out = max(0, len(text) - MAX_ANSWER_CHARACTERS)
        return AgentAnswer(chunk_id, text[:MAX_ANSWER_CHARACTERS], estimate_tokens(text), context, left_out)


def _open_file(library: "DocsLibrary", corpus: str, path: str) -> "DocsFile | None":
    from bedstone.web.docs.reading import DocsFile  # noqa: PLC0415 - loads the engine

    file = DocsFile(library, corpus, path)
    return file if file.chunks else None


def _read(file: "DocsFile", chunk_id: str, page: str, query: str) -> "FileView":
    from bedstone.search.matching import Matcher  # noqa: PLC0415 - loads the engine

    chosen = file.find(chunk_id) if chunk_id else None
    return file.view(parse_page_number(page), chosen, Matcher(query) if query else None)


def _context(request: Request) -> int:
    return 1 if request.query_params.get("context") == "1" else 0


def _filters(rows: Sequence[CorpusRow]) -> list[tuple[str, str, int]]:
    """Return the filters that agents can use, with the number of passages of each value."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        for facet, values in row.taxonomy.items():
            for value, count in values.items():
                counts[facet, value] = counts.get((facet, value), 0) + count
    return [(facet, value, count) for (facet, value), count in sorted(counts.items())]


def _short(name: str) -> str:
    """Return the name of a tool without the prefix that an administrator may have given it."""
    return next((known for known in ("search_docs", "get_doc") if name.endswith(known)), name)


def _list_tokens(tool: Any) -> int:
    return estimate_tokens(tool.name + tool.description + json.dumps(tool.input_schema))
