"""Documentation: corpora, their folders, files and headings; a chunk as an agent gets it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import BedstoneError
from bedstone.services.docs.service import DocsService
from bedstone.services.service import Handle
from bedstone.web.frame import Pager, Pages, tokens

if TYPE_CHECKING:
    from bedstone.services.docs.corpus import FileFacts
    from bedstone.services.docs.library import DocsLibrary

PAGE, PART = 200, 40


@dataclass(frozen=True)
class _Place:
    """A chunk's file, and the ids beside it."""

    corpus: str
    file: str
    before: str | None
    after: str | None


def docs_routes(pages: Pages) -> list[BaseRoute]:
    """Return /docs and the pages below it."""
    docs: Handle[DocsService] = pages.services["docs"]
    toolset = pages.toolsets["docs"]

    async def corpora(request: Request) -> Response:
        found = await docs.run(lambda service: service.library.overview())
        return pages.render(request, "docs.html", page="docs", corpora=found)

    async def corpus(request: Request) -> Response:
        """A folder of a corpus: what is in it, and how much."""
        name = request.path_params["corpus"]
        files = await docs.run(lambda service: service.library.files(name))
        if files is None:
            raise HTTPException(404, f"There is no corpus called {name!r}.")
        folder = request.query_params.get("in", "").strip("/")
        entries = _entries(files, folder)
        if folder and not entries:
            raise HTTPException(404, f"There is no folder {folder!r} in {name}.")
        pager = Pager.of(request, len(entries), PAGE)
        return pages.render(
            request,
            "corpus.html",
            page="docs",
            corpus=name,
            above=_above(folder),
            folder=folder,
            entries=pager.cut(entries),
            pages=pager,
        )

    async def file(request: Request) -> Response:
        name, path = request.path_params["corpus"], request.path_params["path"]
        chunks = await docs.run(lambda service: service.library.headings(name, path))
        if not chunks:
            files = await docs.run(lambda service: service.library.files(name))
            if files is None:
                raise HTTPException(404, f"There is no corpus called {name!r}.")
            if _entries(files, path.strip("/")):  # a folder
                return RedirectResponse(f"/docs/corpora/{quote(name)}?in={quote(path.strip('/'))}")
            raise HTTPException(404, f"There is no file {path!r} in {name}.")
        pager = Pager.of(request, len(chunks), PART)
        return pages.render(
            request,
            "file.html",
            page="docs",
            corpus=name,
            file=path,
            above=_above(path),
            headings=[(number // PART + 1, chunk) for number, chunk in enumerate(chunks)],
            chunks=pager.cut(chunks),
            pages=pager,
        )

    async def chunk(request: Request) -> Response:
        """What get_doc answers."""
        tool = next(name for name in toolset.tools if name.endswith("get_doc"))
        wanted = request.query_params.get("id", "")
        context = 1 if request.query_params.get("context") == "1" else 0
        reply = await toolset.call(tool, {"chunk_id": wanted, "context": context})
        try:
            place = await docs.run(lambda service: _place(service.library, wanted))
        except BedstoneError:
            place = None
        if reply.is_error or place is None:
            raise HTTPException(404, reply.text)
        return pages.render(
            request,
            "chunk.html",
            page="docs",
            id=wanted,
            text=reply.text,
            tokens=tokens(reply.text),
            context=context,
            place=place,
        )

    return [
        Route("/docs", corpora),
        Route("/docs/chunk", chunk),
        Route("/docs/corpora/{corpus}", corpus),
        Route("/docs/corpora/{corpus}/{path:path}", file),
    ]


@dataclass
class _Entry:
    """A folder, with how much is below it, or a file."""

    path: str
    name: str
    title: str = ""
    files: int = 0  # none for a file
    chunks: int = 0


def _entries(files: "Sequence[FileFacts]", folder: str) -> list[_Entry]:
    """What a folder holds: folders first."""
    beginning = f"{folder}/" if folder else ""
    folders: dict[str, _Entry] = {}
    inside: list[_Entry] = []
    for item in files:
        if not item.path.startswith(beginning):
            continue
        name, is_below, _ = item.path[len(beginning) :].partition("/")
        if is_below:
            entry = folders.setdefault(name, _Entry(beginning + name, name))
            entry.files += 1
            entry.chunks += item.chunks
        else:
            inside.append(_Entry(item.path, name, item.title, chunks=item.chunks))
    return [*folders.values(), *inside]


def _above(path: str) -> list[tuple[str, str]]:
    """The folders above a path: where each is, and its name."""
    return [(str(item), item.name) for item in reversed(PurePosixPath(path).parents) if item.name]


def _place(library: "DocsLibrary", chunk_id: str) -> _Place:
    chunks, target, _ = library.read(chunk_id, 1)
    before = chunks[target - 1].head.id if target else None
    after = chunks[target + 1].head.id if target + 1 < len(chunks) else None
    return _Place(*library.whereabouts(chunks[target].head.document_id), before, after)
