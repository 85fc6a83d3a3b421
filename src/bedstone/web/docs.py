"""Documentation: corpora, their files and headings; a chunk as an agent gets it."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.toolsets.docs.toolset import DocsToolset
from bedstone.web.pages import Pages, tokens, whole

PAGE, PART = 200, 40


def docs_routes(pages: Pages) -> list[BaseRoute]:
    """/docs and below; nothing without the docs toolset."""
    toolset = pages.toolsets.get("docs")
    if not isinstance(toolset, DocsToolset):
        return []

    async def corpora(request: Request) -> Response:
        found = await toolset.ask(lambda library: library.overview())
        return pages.render(request, "docs.html", page="docs", corpora=found)

    async def corpus(request: Request) -> Response:
        name = request.path_params["corpus"]
        start = whole(request.query_params.get("start", "0"), 0)
        files = await toolset.ask(lambda library: library.files(name))
        if files is None:
            return _missing(request, f"There is no corpus called {name!r}.")
        return pages.render(
            request,
            "corpus.html",
            page="docs",
            corpus=name,
            files=files[start : start + PAGE],
            total=len(files),
            following=start + PAGE if start + PAGE < len(files) else None,
            before=max(0, start - PAGE) if start else None,
        )

    async def file(request: Request) -> Response:
        name, path = request.path_params["corpus"], request.path_params["path"]
        chunks = await toolset.ask(lambda library: library.headings(name, path))
        if not chunks:
            return _missing(request, f"There is no file {path!r} in {name}.")
        start = whole(request.query_params.get("start", "0"), 0)
        return pages.render(
            request,
            "file.html",
            page="docs",
            corpus=name,
            file=path,
            chunks=chunks[start : start + PART],
            following=start + PART if start + PART < len(chunks) else None,
            before=max(0, start - PART) if start else None,
        )

    async def chunk(request: Request) -> Response:
        """What get_doc answers."""
        tool = next(name for name in toolset.tools if name.endswith("get_doc"))
        wanted = request.query_params.get("id", "")
        context = 1 if request.query_params.get("context") == "1" else 0
        reply = await toolset.call(tool, {"chunk_id": wanted, "context": context})
        if reply.is_error:
            return _missing(request, reply.text)
        return pages.render(
            request, "chunk.html", page="docs", id=wanted, text=reply.text, tokens=tokens(reply.text), context=context
        )

    def _missing(request: Request, message: str) -> Response:
        return pages.render(request, "problem.html", page="docs", status=404, message=message)

    return [
        Route("/docs", corpora),
        Route("/docs/chunk", chunk),
        Route("/docs/{corpus}", corpus),
        Route("/docs/{corpus}/{path:path}", file),
    ]
