"""Documentation: corpora with their folders and files, and a chunk as agents see it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import BedstoneError
from bedstone.services.docs.service import DocsService
from bedstone.services.service import Handle
from bedstone.web.frame import Pages, estimate_tokens
from bedstone.web.paging import Pager

if TYPE_CHECKING:
    from bedstone.services.docs.corpus import FileFacts
    from bedstone.services.docs.library import DocsLibrary

ENTRIES_PER_PAGE = 200
CHUNKS_PER_PAGE = 40


@dataclass(frozen=True)
class _Place:
    """The file of a chunk, and the ids of the chunks before and after it."""

    corpus: str
    file: str
    before: str | None
    after: str | None


def docs_routes(pages: Pages) -> list[BaseRoute]:
    """Return /docs and the pages below it."""
    return _Docs(pages).routes()


class _Docs:
    """The pages of the documentation: corpora, their folders, files and chunks."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._docs: Handle[DocsService] = pages.services["docs"]
        self._toolset = pages.toolsets["docs"]

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/docs", self.list_corpora),
            Route("/docs/chunk", self.show_chunk),
            Route("/docs/corpora/{corpus}", self.show_folder),
            Route("/docs/corpora/{corpus}/{path:path}", self.show_file),
        ]

    async def list_corpora(self, request: Request) -> Response:
        corpora = await self._docs.run(lambda service: service.library.overview())
        return self._pages.render(request, "docs.html", page="docs", corpora=corpora)

    async def show_folder(self, request: Request) -> Response:
        name, folder = request.path_params["corpus"], request.query_params.get("in", "").strip("/")
        entries = await self._list_files(name, folder)
        if folder and not entries:
            raise HTTPException(404, f"Folder {folder!r} not found in corpus {name!r}.")
        pager = Pager.of(request, len(entries), ENTRIES_PER_PAGE)
        context: dict[str, Any] = {
            "corpus": name,
            "folder": folder,
            "above": _parents(folder),
            "entries": pager.cut(entries),
        }
        return self._pages.render(request, "corpus.html", page="docs", pages=pager, **context)

    async def show_file(self, request: Request) -> Response:
        """Show the chunks of a file; the address of a folder leads to the folder."""
        name, path = request.path_params["corpus"], request.path_params["path"]
        chunks = await self._docs.run(lambda service: service.library.chunks_of(name, path))
        if not chunks:
            if await self._list_files(name, path.strip("/")):
                return RedirectResponse(f"/docs/corpora/{quote(name)}?in={quote(path.strip('/'))}")
            raise HTTPException(404, f"File {path!r} not found in corpus {name!r}.")
        pager = Pager.of(request, len(chunks), CHUNKS_PER_PAGE)
        headings = [(number // CHUNKS_PER_PAGE + 1, chunk) for number, chunk in enumerate(chunks)]
        context: dict[str, Any] = {"corpus": name, "file": path, "above": _parents(path), "headings": headings}
        return self._pages.render(request, "file.html", page="docs", chunks=pager.cut(chunks), pages=pager, **context)

    async def show_chunk(self, request: Request) -> Response:
        """Show the answer of get_doc."""
        tool = next(name for name in self._toolset.tools if name.endswith("get_doc"))
        chunk_id = request.query_params.get("id", "")
        context = 1 if request.query_params.get("context") == "1" else 0
        reply = await self._toolset.call(tool, {"chunk_id": chunk_id, "context": context})
        try:
            place = await self._docs.run(lambda service: _place(service.library, chunk_id))
        except BedstoneError:
            place = None
        if reply.is_error or place is None:
            raise HTTPException(404, reply.text)
        chunk: dict[str, Any] = {
            "id": chunk_id,
            "text": reply.text,
            "tokens": estimate_tokens(reply.text),
            "place": place,
        }
        return self._pages.render(request, "chunk.html", page="docs", context=context, **chunk)

    async def _list_files(self, name: str, folder: str) -> "list[_Entry]":
        files = await self._docs.run(lambda service: service.library.files(name))
        if files is None:
            raise HTTPException(404, f"Unknown corpus {name!r}. The Docs page lists every corpus.")
        return _entries(files, folder)


@dataclass
class _Entry:
    """A folder with the number of files and chunks in it, or a file."""

    path: str
    name: str
    title: str = ""
    files: int = 0  # 0 for a file
    chunks: int = 0


def _entries(files: "Sequence[FileFacts]", folder: str) -> list[_Entry]:
    """Return the folders and files in a folder, folders first."""
    prefix = f"{folder}/" if folder else ""
    folders: dict[str, _Entry] = {}
    inside: list[_Entry] = []
    for item in files:
        if not item.path.startswith(prefix):
            continue
        name, is_below, _ = item.path[len(prefix) :].partition("/")
        if is_below:
            entry = folders.setdefault(name, _Entry(prefix + name, name))
            entry.files += 1
            entry.chunks += item.chunks
        else:
            inside.append(_Entry(item.path, name, item.title, chunks=item.chunks))
    return [*folders.values(), *inside]


def _parents(path: str) -> list[tuple[str, str]]:
    """Return the path and the name of each folder above a path."""
    return [(str(item), item.name) for item in reversed(PurePosixPath(path).parents) if item.name]


def _place(library: "DocsLibrary", chunk_id: str) -> _Place:
    chunks, target, _ = library.read(chunk_id, 1)
    before = chunks[target - 1].head.id if target else None
    after = chunks[target + 1].head.id if target + 1 < len(chunks) else None
    return _Place(*library.locate(chunks[target].head.document_id), before, after)
