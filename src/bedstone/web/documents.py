"""Documents: add files and watch them being read, list them, look into one, remove one."""

import json
import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

import anyio
from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from bedstone.errors import BedstoneError, InvalidInput
from bedstone.toolsets.knowledge.toolset import KnowledgeToolset
from bedstone.web.pages import HEADERS, Pages, form_of, shown_json, whole

PAGE, PART = 50, 40
FACTS = ("format", "pages", "method", "ocr_confidence", "contexts", "source", "warnings")
SORTS = {"date_added": "added", "filename": "name", "size": "size"}
UPLOADS = "uploads"
EVENT_SECONDS = 0.3
MOST_EVENTS = 20_000  # of one stream: the browser begins another one
NAME_LENGTH = 200


def document_routes(pages: Pages) -> list[BaseRoute]:
    """/documents and below; nothing without the knowledge toolset."""
    toolset = pages.toolsets.get("knowledge")
    return _Documents(pages, toolset).routes() if isinstance(toolset, KnowledgeToolset) else []


class _Documents:
    def __init__(self, pages: Pages, toolset: KnowledgeToolset) -> None:
        self._pages = pages
        self._toolset = toolset

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/documents", self.listed, methods=["GET"]),
            Route("/documents", self.added, methods=["POST"]),
            Route("/documents/{id}", self.shown, methods=["GET"]),
            Route("/documents/{id}/metadata", self.described, methods=["POST"]),
            Route("/documents/{id}/remove", self.removed, methods=["POST"]),
            Route("/tasks", self.events, methods=["GET"]),
            Route("/tasks/{id}/cancel", self.cancelled, methods=["POST"]),
        ]

    async def listed(self, request: Request) -> Response:
        number = whole(request.query_params.get("page", "1"))
        context = request.query_params.get("context", "")
        contexts = sorted(await self._toolset.ask(lambda base: base.contexts.names()))
        sort = request.query_params.get("sort", "date_added")
        asked: dict[str, Any] = {
            "limit": PAGE,
            "offset": (number - 1) * PAGE,
            "sort_by": sort if sort in SORTS else "date_added",
            "sort_order": "asc" if sort == "filename" else "desc",
        }
        if context in contexts:
            asked["context"] = context
        answer = await self._call("knowledge-show", asked)
        total = int(answer.get("total_count", 0))
        status = await self._call("knowledge-status", {})
        return self._pages.render(
            request,
            "documents.html",
            page="documents",
            documents=answer.get("documents", []),
            total=total,
            number=number,
            last=max(1, -(-total // PAGE)),
            sort=sort,
            sorts=SORTS,
            context=context,
            contexts=contexts,
            most_mb=status.get("configuration", {}).get("max_file_size_mb", 100),
        )

    async def added(self, request: Request) -> Response:
        """Files into a folder of ours, checked for their size as they arrive, then by the way agents add them."""
        self._pages.check_change(request, None)
        name = PurePath(request.headers.get("x-filename", "").replace("\\", "/")).name or "file"
        name = _short(_decoded(name))
        status = await self._call("knowledge-status", {})
        most = int(status.get("configuration", {}).get("max_file_size_mb", 100)) * 1024 * 1024
        folder = self._pages.options.data_folder / UPLOADS / secrets.token_hex(8)
        await to_thread.run_sync(lambda: folder.mkdir(parents=True, mode=0o700))
        file = folder / name
        try:
            await self._received(request, file, most)
            reply = await self._toolset.call("knowledge-add", {"file_path": str(file)})
        finally:
            await to_thread.run_sync(_removed, folder)
        payload = reply.payload if isinstance(reply.payload, dict) else {"message": reply.text}
        return JSONResponse(payload, 400 if reply.is_error else 202, dict(HEADERS))

    async def _received(self, request: Request, file: Path, most: int) -> None:
        size = 0
        try:
            async with await anyio.open_file(file, "xb") as target:
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        raise HTTPException(413, f"The file has more than {most // 1024 // 1024} MB.")
                    await target.write(part)
        except ClientDisconnect:
            raise HTTPException(400, "The upload was broken off.") from None

    async def shown(self, request: Request) -> Response:
        """A document's text, passage by passage as it is searched."""
        document_id, chosen = request.path_params["id"], request.query_params.get("chunk")
        try:
            document = await self._toolset.ask(lambda base: base.document(document_id))
            chunks = await self._toolset.ask(lambda base: base.chunks(document_id))
        except BedstoneError as error:
            return self._pages.problem(request, error, page="documents")
        number = whole(request.query_params.get("part", "1"))
        places = {stored.chunk.id: place for place, stored in enumerate(chunks)}
        if chosen in places and "part" not in request.query_params:
            number = places[chosen] // PART + 1
        facts = {key: text for key in FACTS if (text := _fact(document.metadata.get(key, "")))}
        return self._pages.render(
            request,
            "document.html",
            page="documents",
            document=document,
            facts=facts,
            user=shown_json(json.loads(document.metadata.get("user", "{}"))),
            chunks=[stored.chunk for stored in chunks[(number - 1) * PART : number * PART]],
            total=len(chunks),
            chosen=chosen,
            number=number,
            last=max(1, -(-len(chunks) // PART)),
        )

    async def described(self, request: Request) -> Response:
        """What somebody says about a document."""
        form = await form_of(request)
        self._pages.check_change(request, form.get("csrf"))
        document_id = request.path_params["id"]
        try:
            given = json.loads(form.get("metadata", "{}"))
            if not isinstance(given, dict):
                raise InvalidInput("Metadata is a JSON object.")
            json.dumps(given, ensure_ascii=False).encode()
            await self._toolset.ask(lambda base: base.describe(document_id, given))
        except (ValueError, RecursionError):
            return self._pages.problem(request, InvalidInput("That is not JSON."), page="documents")
        except BedstoneError as error:
            return self._pages.problem(request, error, page="documents")
        return RedirectResponse(f"/documents/{document_id}", 303)

    async def removed(self, request: Request) -> Response:
        form = await form_of(request)
        self._pages.check_change(request, form.get("csrf"))
        document = request.path_params["id"]
        reply = await self._toolset.call("knowledge-remove", {"document_id": document, "confirm": True})
        if reply.is_error:
            message = reply.payload.get("message", reply.text) if isinstance(reply.payload, dict) else reply.text
            return self._pages.render(request, "problem.html", page="documents", status=404, message=message)
        return RedirectResponse("/documents", 303)

    async def cancelled(self, request: Request) -> Response:
        self._pages.check_change(request, None)
        try:
            was_running = await self._toolset.cancel_task(request.path_params["id"])
        except BedstoneError as error:
            raise HTTPException(404, error.message) from None
        return JSONResponse({"cancelled": was_running}, headers=dict(HEADERS))

    async def events(self, request: Request) -> Response:
        """How far some tasks are, as it changes, until all have ended."""
        wanted = [name for name in request.query_params.get("ids", "").split(",") if name][:100]
        headers = {**HEADERS, "Content-Type": "text/event-stream"}
        return StreamingResponse(self._told(request, wanted), headers=headers)

    async def _told(self, request: Request, wanted: list[str]) -> AsyncIterator[str]:
        said: dict[str, str] = {}
        open_tasks = set(wanted)
        for _ in range(MOST_EVENTS):
            for name in wanted:
                if name not in open_tasks:
                    continue
                state = await self._call("knowledge-task-status", {"task_id": name})
                text = json.dumps({"id": name, **state})
                if said.get(name) != text:
                    said[name] = text
                    yield f"data: {text}\n\n"
                if state.get("status") not in ("queued", "running"):
                    open_tasks.discard(name)
            if not open_tasks or await request.is_disconnected():
                break
            await anyio.sleep(EVENT_SECONDS)
        yield "event: end\ndata: {}\n\n"

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        reply = await self._toolset.call(name, arguments)
        return reply.payload if isinstance(reply.payload, dict) else {}


def _fact(value: str) -> str:
    """A fact for people: lists without their signs, nothing for an empty one."""
    if value.startswith("["):
        return ", ".join(str(item) for item in json.loads(value))
    return "" if f"/{UPLOADS}/" in value else value  # where an upload came through is gone


def _decoded(name: str) -> str:
    """A name as it was before it travelled in a header."""
    plain = PurePath(unquote(name).replace("\\", "/")).name
    return plain if plain not in ("", ".", "..") and "\0" not in plain else "file"


def _short(name: str) -> str:
    """A name a file system takes: its beginning, and always what kind of file it is."""
    path = PurePath(name)
    suffix = path.suffix[:20]
    stem = path.name.removesuffix(path.suffix).encode()[: NAME_LENGTH - len(suffix.encode())].decode(errors="ignore")
    return f"{stem or 'file'}{suffix}"


def sweep_uploads(folder: Path) -> None:
    """Remove what a killed server left behind."""
    _removed(folder / UPLOADS)


def _removed(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
