"""Documents: add files and watch them being read, list them, look into one, remove one."""

import json
import secrets
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import anyio
from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from bedstone.errors import InvalidInput, NotFound
from bedstone.ingest.formats import SUFFIXES
from bedstone.services.knowledge.collections import contexts_of
from bedstone.services.knowledge.listing import iso, ordered
from bedstone.toolsets.knowledge.contract import ListedDocument
from bedstone.toolsets.knowledge.views import everything, failure, rows
from bedstone.web.frame import Pager, Pages, form_of, refusal, shown_json

if TYPE_CHECKING:
    from bedstone.records import Document
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.services.service import Handle
    from bedstone.store.engine import TaskRecord

PAGE, PART, MOST_TASKS = 50, 40, 50
FACTS = ("format", "pages", "method", "ocr_confidence", "contexts", "source", "warnings")
SORTS = {"date_added": "added", "filename": "name", "size": "size"}
FILTERS = {"format": "Kind", "status": "State", "method": "Read by"}  # facts of a document, and what people call them
UPLOADS = "uploads"
EVENT_SECONDS = 0.3
TOLD = ("status", "progress", "current_step", "position", "message")
MOST_EVENTS = 20_000  # of one stream: the browser begins another one for what has not ended
MOST_WATCHED = 100  # tasks of one stream: further ones have their turn in the next
OLD_SECONDS = 24 * 3600
NAME_LENGTH = 200


def document_routes(pages: Pages) -> list[BaseRoute]:
    """Return /documents and the pages below it."""
    sweep_uploads(pages.options.data_folder)
    return _Documents(pages).routes()


@dataclass(frozen=True)
class _Wanted:
    """Which documents a list shows, and in which order."""

    sort: str
    name: str
    context: str
    facts: dict[str, str]

    @classmethod
    def of(cls, request: Request) -> "_Wanted":
        given = request.query_params
        sort = given.get("sort", "")
        facts = {key: value for key in FILTERS if (value := given.get(key, ""))}
        return cls(sort if sort in SORTS else "date_added", given.get("name", ""), given.get("context", ""), facts)

    def chosen(self, documents: "list[Document]") -> "list[Document]":
        found = [item for item in documents if self._has(item)]
        return list(ordered(found, self.sort, descending=self.sort != "filename"))

    def _has(self, document: "Document") -> bool:
        facts = document.metadata
        return (
            all(facts.get(key) == value for key, value in self.facts.items())
            and (not self.name or self.name.lower() in facts["filename"].lower())
            and (not self.context or self.context in contexts_of(document))
        )


@dataclass(frozen=True)
class _Listing:
    """A page of documents, what the list can be narrowed by, and what is being read right now."""

    documents: list[ListedDocument]
    pages: Pager
    choices: dict[str, list[tuple[str, int]]]
    contexts: list[str]
    tasks: "list[TaskRecord]"


class _Documents:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._base: Handle[KnowledgeBase] = pages.services["knowledge"]
        self._toolset = pages.toolsets["knowledge"]

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/documents", self.listed, methods=["GET"]),
            Route("/documents", self.added, methods=["POST"]),
            Route("/documents/{id}", self.shown, methods=["GET"]),
            Route("/documents/{id}/metadata", self.described, methods=["POST"]),
            Route("/documents/{id}/remove", self.removed, methods=["POST"]),
            Route("/documents/{id}/retry", self.retried, methods=["POST"]),
            Route("/tasks", self.events, methods=["GET"]),
            Route("/tasks/{id}/cancel", self.cancelled, methods=["POST"]),
        ]

    async def listed(self, request: Request) -> Response:
        wanted = _Wanted.of(request)

        def listing(base: "KnowledgeBase") -> _Listing:
            every = everything(base)
            found = wanted.chosen(every)
            pages = Pager.of(request, len(found), PAGE)
            counts = {key: Counter(item.metadata.get(key, "") for item in every) for key in FILTERS}
            choices = {key: sorted((name, n) for name, n in count.items() if name) for key, count in counts.items()}
            tasks = base.store.tasks({"queued", "running"}, limit=MOST_TASKS)
            return _Listing(rows(base, pages.cut(found)), pages, choices, sorted(base.contexts.names()), tasks)

        return self._pages.render(
            request,
            "documents.html",
            page="documents",
            listing=await self._base.run(listing),
            wanted=wanted,
            filters=FILTERS,
            sorts=SORTS,
            most_mb=await self._most_mb(),
            suffixes=" ".join(SUFFIXES),
        )

    async def added(self, request: Request) -> Response:
        """Files into a folder of ours, checked for their size as they arrive, then by the way agents add them."""
        self._pages.check_change(request, None)
        name = PurePath(request.headers.get("x-filename", "").replace("\\", "/")).name or "file"
        name = _short(_decoded(name))
        most = await self._most_mb() * 1024 * 1024
        folder = self._pages.options.data_folder / UPLOADS / secrets.token_hex(8)
        await to_thread.run_sync(lambda: folder.mkdir(parents=True, mode=0o700))
        file = folder / name
        try:
            await self._received(request, file, most)
            reply = await self._toolset.call("knowledge-add", {"file_path": str(file)})
        finally:
            await to_thread.run_sync(_removed, folder)
        if reply.is_error:
            raise refusal(reply)
        return JSONResponse(reply.payload, 202)

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
            document = await self._base.run(lambda base: base.document(document_id))
            chunks = await self._base.run(lambda base: base.chunks(document_id))
        except NotFound:
            task = await self._base.run(lambda base: base.attempt(document_id))
            if task is None:
                raise
            return self._unread(request, task)
        places = {stored.chunk.id: place for place, stored in enumerate(chunks)}
        pages = Pager.of(request, len(chunks), PART, default=places.get(chosen or "", 0) // PART + 1)
        return self._pages.render(
            request,
            "document.html",
            page="documents",
            document=document,
            facts={key: text for key, text in self._facts(document).items() if text},
            user=shown_json(json.loads(document.metadata.get("user", "{}"))),
            chunks=[stored.chunk for stored in pages.cut(chunks)],
            chosen=chosen,
            pages=pages,
        )

    def _facts(self, document: "Document") -> dict[str, str]:
        """What is known of a document, for people."""
        known = document.metadata
        facts = {key: _fact(known.get(key, "")) for key in FACTS}
        if self._is_upload(facts["source"]):
            facts["source"] = ""
        if known["status"] != "completed":
            facts["state"] = f"{known['status']}: found by words, not by meaning yet"
        return facts

    def _unread(self, request: Request, task: "TaskRecord") -> Response:
        """A file that is still being read, or could not be."""
        source = Path(task.details["source"])
        return self._pages.render(
            request,
            "unread.html",
            page="documents",
            task=task,
            at=iso(task.finished or task.created),
            reason=failure(task).message if task.status == "failed" else None,
            source=source if not self._is_upload(str(source)) and source.is_file() else None,
        )

    async def retried(self, request: Request) -> Response:
        """Read a file again that could not be read, from where it was."""
        form = await form_of(request)
        self._pages.check_change(request, form.get("csrf"))
        document_id = request.path_params["id"]
        task = await self._base.run(lambda base: base.attempt(document_id))
        if task is None or task.status != "failed":
            raise HTTPException(404, "There is nothing here to read again.")
        kept = {key: task.details[key] for key in ("metadata", "contexts") if task.details.get(key)}
        asked = {"file_path": task.details["source"], "force_ocr": bool(form.get("force_ocr")), **kept}
        reply = await self._toolset.call("knowledge-add", asked)
        if reply.is_error:
            raise refusal(reply)
        await self._base.run(lambda base: base.dismiss([task]))
        return RedirectResponse("/documents", 303)

    async def described(self, request: Request) -> Response:
        """What somebody says about a document."""
        form = await form_of(request)
        self._pages.check_change(request, form.get("csrf"))
        document_id = request.path_params["id"]
        try:
            given = json.loads(form.get("metadata", "{}"), parse_constant=_no_number, parse_float=_number)
            json.dumps(given, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            raise InvalidInput("That is not JSON.") from None
        if not isinstance(given, dict):
            raise InvalidInput("Metadata is a JSON object.")
        await self._base.run(lambda base: base.describe(document_id, given))
        return RedirectResponse(f"/documents/{document_id}", 303)

    async def removed(self, request: Request) -> Response:
        form = await form_of(request)
        self._pages.check_change(request, form.get("csrf"))
        document = request.path_params["id"]
        reply = await self._toolset.call("knowledge-remove", {"document_id": document, "confirm": True})
        if reply.is_error:
            raise refusal(reply)
        return RedirectResponse("/documents", 303)

    async def cancelled(self, request: Request) -> Response:
        self._pages.check_change(request, None)
        return JSONResponse({"cancelled": await self._toolset.cancel_task(request.path_params["id"])})

    async def events(self, request: Request) -> Response:
        """How far some tasks are, as it changes, until all have ended."""
        wanted = [name for name in request.query_params.get("ids", "").split(",") if name][:MOST_WATCHED]
        return StreamingResponse(self._told(request, wanted), media_type="text/event-stream")

    async def _told(self, request: Request, wanted: list[str]) -> AsyncIterator[str]:
        said: dict[str, Any] = {}
        open_tasks = set(wanted)
        for _ in range(MOST_EVENTS):
            for name in wanted:
                if name not in open_tasks:
                    continue
                state = await self._call("knowledge-task-status", {"task_id": name})
                news = [state.get(key) for key in TOLD]  # that time goes by is no news
                if said.get(name) != news:
                    said[name] = news
                    yield f"data: {json.dumps({'id': name, **state})}\n\n"
                if state.get("status") not in ("queued", "running"):
                    open_tasks.discard(name)
            if not open_tasks or await request.is_disconnected():
                break
            await anyio.sleep(EVENT_SECONDS)
        yield "event: end\ndata: {}\n\n"

    async def _most_mb(self) -> int:
        return await self._base.run(lambda base: base.options.max_file_size_mb)

    def _is_upload(self, source: str) -> bool:
        """Whether a file came through this page: where it was is gone."""
        return Path(source).is_relative_to(self._pages.options.data_folder.resolve() / UPLOADS)

    async def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        reply = await self._toolset.call(name, arguments)
        return reply.payload if isinstance(reply.payload, dict) else {}


def _fact(value: str) -> str:
    """A fact for people: lists without their signs, nothing for an empty one."""
    if value.startswith("["):
        return ", ".join(str(item) for item in json.loads(value))
    return value


def _number(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def _no_number(text: str) -> float:
    raise ValueError(text)


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
    """Remove what a killed server left behind; what is young may be on its way to another server of this folder."""
    for upload in (folder / UPLOADS).glob("*"):
        if time.time() - upload.stat().st_mtime > OLD_SECONDS:
            _removed(upload)


def _removed(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
