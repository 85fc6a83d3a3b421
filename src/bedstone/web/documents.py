"""Documents: add files and follow their tasks, list documents, show one, remove one."""

import json
import secrets
import shutil
import time
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

from bedstone.errors import InvalidInput, NotFound, UnknownTask
from bedstone.ingest.detection import supported_formats
from bedstone.permissions import make_private_folder
from bedstone.services.knowledge.listing import DocumentPage, ListQuery
from bedstone.services.knowledge.records import AddFile, FileDocument, iso_time
from bedstone.settings.layout import UPLOADS
from bedstone.web.forms import parse_form
from bedstone.web.frame import Pages, pretty_json
from bedstone.web.paging import Pager

if TYPE_CHECKING:
    from bedstone.records import Task
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.services.service import Handle

DOCUMENTS_PER_PAGE = 50
CHUNKS_PER_PAGE = 40
MAX_TASKS = 50
SORTS = {"date_added": "added", "filename": "name", "size": "size"}
FILTERS = {"format": "Format", "status": "Status", "method": "Method"}
EVENT_SECONDS = 0.3  # at least, between two looks at the tasks of a stream
EVENT_KEYS = ("status", "progress", "current_step", "position", "message")
MAX_EVENTS = 20_000  # of one stream: the browser opens another one for tasks that are still active
MAX_WATCHED = 100  # tasks of one stream: further ones have their turn in the next
MAX_STREAMS = 1_000  # threads that wait for tasks; they leave those of other requests free
UPLOAD_SECONDS = 24 * 3600  # what is older was left by a server that was killed
MAX_NAME_BYTES = 200


def document_routes(pages: Pages) -> list[BaseRoute]:
    """Return /documents and the pages below it."""
    sweep_uploads(pages.options.data_folder)
    return _Documents(pages).routes()


@dataclass(frozen=True)
class _ListParams:
    """Which documents a list shows, and in which order, as the address says."""

    sort: str
    name: str
    collection: str
    values: dict[str, str]

    @classmethod
    def of(cls, request: Request) -> "_ListParams":
        given = request.query_params
        sort = given.get("sort", "")
        values = {key: value for key in FILTERS if (value := given.get(key, ""))}
        return cls(sort if sort in SORTS else "date_added", given.get("name", ""), given.get("context", ""), values)

    def query(self, page: int) -> ListQuery:
        return ListQuery(
            self.sort,  # type: ignore[arg-type]
            descending=self.sort != "filename",
            offset=(page - 1) * DOCUMENTS_PER_PAGE,
            limit=DOCUMENTS_PER_PAGE,
            collection=self.collection or None,
            filename=self.name,
            values=self.values,  # type: ignore[arg-type]
        )


@dataclass(frozen=True)
class _Listing:
    """A page of documents, each with its number of chunks, day and path; what to filter by; active tasks."""

    documents: list[tuple[FileDocument, int, str, str]]
    pages: Pager
    choices: dict[str, list[tuple[str, int]]]
    collections: list[str]
    tasks: list[tuple[str, str]]


class _Documents:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._base: Handle[KnowledgeBase] = pages.services["knowledge"]
        self._streams = anyio.CapacityLimiter(MAX_STREAMS)

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/documents", self.list_documents, methods=["GET"]),
            Route("/documents", self.upload, methods=["POST"]),
            Route("/documents/{id}", self.show, methods=["GET"]),
            Route("/documents/{id}/metadata", self.update_metadata, methods=["POST"]),
            Route("/documents/{id}/remove", self.remove, methods=["POST"]),
            Route("/documents/{id}/retry", self.retry, methods=["POST"]),
            Route("/tasks", self.events, methods=["GET"]),
            Route("/tasks/{id}/cancel", self.cancel, methods=["POST"]),
        ]

    async def list_documents(self, request: Request) -> Response:
        params = _ListParams.of(request)
        number = Pager.of(request, 0, DOCUMENTS_PER_PAGE).number

        def listing(base: "KnowledgeBase") -> _Listing:
            collections = sorted(base.collections.names())
            is_known = params.collection in ("", *collections)
            page = base.list_documents(params.query(number)) if is_known else DocumentPage([], 0)
            return _Listing(
                documents=[_row(item, base) for item in page.documents],
                pages=Pager.of(request, page.total, DOCUMENTS_PER_PAGE),
                choices={key: sorted(counts.items()) for key, counts in base.count_values().items()},
                collections=collections,
                tasks=[(task.id, AddFile.from_payload(task.payload).filename) for task in base.active_tasks(MAX_TASKS)],
            )

        return self._pages.render(
            request,
            "documents.html",
            page="documents",
            listing=await self._base.run(listing),
            params=params,
            filters=FILTERS,
            sorts=SORTS,
            max_mb=await self._max_mb(),
            suffixes=" ".join(suffix for item in supported_formats() for suffix in item.suffixes),
        )

    async def upload(self, request: Request) -> Response:
        """Receive a file into a temporary folder, checking its size on the way, and add it as agents do."""
        self._pages.forms.check_change(request, None)
        name = PurePath(request.headers.get("x-filename", "").replace("\\", "/")).name or "file"
        max_bytes = await self._max_mb() * 1024 * 1024
        folder = self._pages.options.data_folder / UPLOADS / secrets.token_hex(8)
        await to_thread.run_sync(make_private_folder, folder)
        file = folder / _shorten(_decode_name(name))
        try:
            await self._receive(request, file, max_bytes)
            task = await self._base.run(lambda base: base.add(file, is_upload=True))
        finally:
            await to_thread.run_sync(_delete, folder)
        return JSONResponse({"task_id": task.id}, 202)

    @staticmethod
    async def _receive(request: Request, file: Path, max_bytes: int) -> None:
        size = 0
        try:
            async with await anyio.open_file(file, "xb") as target:
                async for part in request.stream():
                    size += len(part)
                    if size > max_bytes:
                        raise HTTPException(413, f"The file is larger than {max_bytes // 1024 // 1024} MB.")
                    await target.write(part)
        except ClientDisconnect:
            raise HTTPException(400, "Upload interrupted.") from None

    async def show(self, request: Request) -> Response:
        """Show the chunks of a document, as they are searched."""
        document_id, chosen = _id_of(request), request.query_params.get("chunk")
        try:
            document = await self._base.run(lambda base: base.get_document(document_id))
            chunks = await self._base.run(lambda base: base.chunks(document_id))
        except NotFound:
            task = await self._base.run(lambda base: base.find_pending_task(document_id))
            if task is None:
                raise
            return self._show_pending(request, task, await self._base.open())
        positions = {stored.head.id: position for position, stored in enumerate(chunks)}
        default = positions.get(chosen or "", 0) // CHUNKS_PER_PAGE + 1
        pages = Pager.of(request, len(chunks), CHUNKS_PER_PAGE, default=default)
        return self._pages.render(
            request,
            "document.html",
            page="documents",
            document=document,
            facts={key: text for key, text in _facts(document, await self._base.open()).items() if text},
            user=pretty_json(document.metadata),
            chunks=pages.cut(chunks),
            chosen=chosen,
            pages=pages,
        )

    def _show_pending(self, request: Request, task: "Task", base: "KnowledgeBase") -> Response:
        """Show a file that is in process, or that could not be read."""
        file = AddFile.from_payload(task.payload)
        source, shown = Path(file.source), base.places.shown_path(file.source)
        return self._pages.render(
            request,
            "unread.html",
            page="documents",
            task=task,
            file=file,
            at=iso_time(task.finished_at or task.created_at),
            reason=task.error.message if task.error else None,
            source=shown if shown is not None and source.is_file() else None,
        )

    async def retry(self, request: Request) -> Response:
        """Add a file again that could not be read."""
        form = await parse_form(request)
        self._pages.forms.check_change(request, form.get("csrf"))
        document_id, force_ocr = _id_of(request), bool(form.get("force_ocr"))
        await self._base.run(lambda base: base.retry(document_id, force_ocr=force_ocr))
        return RedirectResponse("/documents", 303)

    async def update_metadata(self, request: Request) -> Response:
        """Replace the user's metadata of a document."""
        form = await parse_form(request)
        self._pages.forms.check_change(request, form.get("csrf"))
        document_id = _id_of(request)
        try:
            given = json.loads(form.get("metadata", "{}"), parse_constant=_reject_constant, parse_float=_parse_float)
            json.dumps(given, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            raise InvalidInput("Metadata is not valid JSON.") from None
        if not isinstance(given, dict):
            raise InvalidInput("Metadata must be a JSON object.")
        await self._base.run(lambda base: base.set_metadata(document_id, given))
        return RedirectResponse(f"/documents/{document_id}", 303)

    async def remove(self, request: Request) -> Response:
        form = await parse_form(request)
        self._pages.forms.check_change(request, form.get("csrf"))
        await self._base.run(lambda base: base.remove(_id_of(request)))
        return RedirectResponse("/documents", 303)

    async def cancel(self, request: Request) -> Response:
        self._pages.forms.check_change(request, None)
        task = await self._base.run(lambda base: base.task(_id_of(request)))
        return JSONResponse({"cancelled": await self._base.run(lambda base: base.cancel(task.id))})

    async def events(self, request: Request) -> Response:
        """Stream the states of some tasks as they change, until all have finished."""
        wanted = [name for name in request.query_params.get("ids", "").split(",") if name][:MAX_WATCHED]
        return StreamingResponse(self._stream(request, wanted), media_type="text/event-stream")

    async def _stream(self, request: Request, wanted: list[str]) -> AsyncIterator[str]:
        sent: dict[str, Any] = {}
        active = list(dict.fromkeys(wanted))
        base = await self._base.open()
        revision: int | None = None
        for _ in range(MAX_EVENTS):
            revision, states = await to_thread.run_sync(
                _next_states, base, active, revision, abandon_on_cancel=True, limiter=self._streams
            )
            for name, state in states.items():
                news = [state.get(key) for key in EVENT_KEYS]
                if sent.get(name) != news:
                    sent[name] = news
                    yield f"data: {json.dumps({'id': name, **state})}\n\n"
            active = [name for name in active if states[name].get("status") in ("queued", "running")]
            if not active or await request.is_disconnected():
                break
            await anyio.sleep(EVENT_SECONDS)
        yield "event: end\ndata: {}\n\n"

    async def _max_mb(self) -> int:
        return await self._base.run(lambda base: base.max_file_size_mb)


def _id_of(request: Request) -> str:
    return str(request.path_params["id"]).lower()


def _row(document: FileDocument, base: "KnowledgeBase") -> tuple[FileDocument, int, str, str]:
    source = next(iter(base.places.shown_paths(document)), "")
    return document, base.chunk_count(document.id), iso_time(document.added_at)[:10], source


def _facts(document: FileDocument, base: "KnowledgeBase") -> dict[str, str]:
    is_complete = document.status == "completed"
    state = f"{document.status}: found by keyword search, not by semantic search yet"
    if document.replaces:
        state = f"{document.status}: the earlier version is found until this one is complete"
    return {
        "format": document.format,
        "pages": str(document.page_count or ""),
        "method": document.method or "",
        "ocr_confidence": str(document.ocr.confidence) if document.ocr else "",
        "collections": ", ".join(document.collections),
        "source": ", ".join(base.places.shown_paths(document)),
        "warnings": ", ".join(document.warnings),
        "left_out": document.left_out.summary(),
        "state": "" if is_complete else state,
    }


def _next_states(
    base: "KnowledgeBase", task_ids: list[str], after: int | None
) -> tuple[int, dict[str, dict[str, Any]]]:
    return base.next_revision(after), {task_id: _task_state(base, task_id) for task_id in task_ids}


def _task_state(base: "KnowledgeBase", task_id: str) -> dict[str, Any]:
    try:
        task = base.task(task_id)
    except UnknownTask as error:
        return {"message": error.message}
    state: dict[str, Any] = {"status": task.status, "progress": 1.0 if task.status == "completed" else 0.0}
    if task.status == "queued":
        state["position"] = base.position(task)
    elif task.status == "running" and task.progress is not None:
        state |= {"progress": round(task.progress.share, 4), "current_step": task.progress.step or "Extracting text"}
    if task.error is not None:
        state["message"] = task.error.message
    if task.result is not None:
        state["result"] = dict(task.result)
    return state


def _parse_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def _reject_constant(text: str) -> float:
    raise ValueError(text)


def _decode_name(name: str) -> str:
    """Return a file name as it was before it became a header."""
    plain = PurePath(unquote(name).replace("\\", "/")).name
    return plain if plain not in ("", ".", "..") and "\0" not in plain else "file"


def _shorten(name: str) -> str:
    """Return a file name that file systems accept: its beginning, and always its suffix."""
    path = PurePath(name)
    suffix = path.suffix[:20]
    stem = path.name.removesuffix(path.suffix).encode()[: MAX_NAME_BYTES - len(suffix.encode())].decode(errors="ignore")
    return f"{stem or 'file'}{suffix}"


def sweep_uploads(folder: Path) -> None:
    """Delete what a killed server left; recent files may be on their way to another server of this folder."""
    for upload in (folder / UPLOADS).glob("*"):
        if time.time() - upload.stat().st_mtime > UPLOAD_SECONDS:
            _delete(upload)


def _delete(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
