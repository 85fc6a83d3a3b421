"""One document: the original beside the text that agents read, the hits in it, and its facts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import InvalidInput, NotFound
from bedstone.ingest.ocr_quality import LOW_CONFIDENCE
from bedstone.services.knowledge.next_steps import next_step
from bedstone.services.knowledge.ocr_record import PageQuality
from bedstone.services.knowledge.records import DEFAULT_COLLECTION, AddFile, FileDocument
from bedstone.services.knowledge.versions import needs_ocr
from bedstone.toolsets.knowledge.contract import Get
from bedstone.toolsets.knowledge.views import document_text
from bedstone.web.documents.originals import open_original, original_routes, read_rich
from bedstone.web.documents.reading import ViewParams, explain_left_out, left_out_on, open_reading
from bedstone.web.documents.state import METHODS, DocumentState, describe_state, notes_of
from bedstone.web.documents.task_events import task_state
from bedstone.web.forms import parse_form
from bedstone.web.frame import Pages, estimate_tokens, pretty_json

if TYPE_CHECKING:
    from bedstone.records import Task
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.services.service import Handle

MAX_TASKS = 200  # to look at for one that reads this document, or a newer version of it
RAW_CHARACTERS = 20_000  # of the text as agents get it, on one page


def document_view_routes(pages: Pages) -> list[BaseRoute]:
    """Return /documents/{id}, the pictures below it, and what can be changed there."""
    return [*_Document(pages).routes(), *original_routes(pages)]


@dataclass(frozen=True)
class Notes:
    """What a person should know about the text: warnings, what was left out on this page, how sure OCR was."""

    warnings: Sequence[str]
    left_out: Sequence[str]
    confidence: float | None  # on this page
    quality: PageQuality | None  # of this page
    unsure: Sequence[int]  # pages that OCR is not sure of
    can_recognise: bool  # whether OCR would read more
    has_pictures: bool  # on this page, that are not read


@dataclass(frozen=True)
class Progress:
    """How far a document is: its state, the task that reads it, and a newer version that is being read."""

    state: DocumentState
    task_id: str = ""
    newer: str = ""


class _Document:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._base: Handle[KnowledgeBase] = pages.services["knowledge"]

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/documents/{id}", self.show, methods=["GET"]),
            Route("/documents/{id}/metadata", self.update_metadata, methods=["POST"]),
            Route("/documents/{id}/read-again", self.read_again, methods=["POST"]),
            Route("/documents/{id}/remove", self.remove, methods=["POST"]),
            Route("/documents/{id}/retry", self.retry, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """Show a document, or how far a file is that is not read yet."""
        params = ViewParams.of(request)
        try:
            document = await self._base.run(lambda base: base.get_document(params.document_id))
        except NotFound:
            task = await self._base.run(lambda base: base.find_pending_task(params.document_id))
            if task is None:
                raise
            return await self._show_unread(request, task)
        return await self._render(request, params, document)

    async def _render(
        self, request: Request, params: ViewParams, document: FileDocument, status: int = 200, **form: str
    ) -> Response:
        """Render a document; `form` has metadata that were not accepted, with the reason."""
        return self._pages.render(
            request,
            "document.html",
            page="documents",
            status=status,
            document=document,
            methods=METHODS,
            default_collection=DEFAULT_COLLECTION,
            low_confidence=LOW_CONFIDENCE,
            base=str(request.base_url).rstrip("/"),
            form={"metadata": pretty_json(document.metadata), **form},
            **await self._base.run(lambda base: _look(base, document, params)),
        )

    async def _show_unread(self, request: Request, task: "Task") -> Response:
        """Show a file that is in process, or that could not be read."""
        file, document = AddFile.from_payload(task.payload), FileDocument.from_task(task)

        def look(base: "KnowledgeBase") -> tuple[DocumentState, str | None]:
            shown = base.places.shown_path(file.source)
            source = shown if shown is not None and Path(file.source).is_file() else None
            return describe_state(document, task_state(base, task)), source

        state, source = await self._base.run(look)
        return self._pages.render(
            request,
            "unread.html",
            page="documents",
            task=task,
            file=file,
            state_of=state,
            step=next_step(task.error) if task.error else "",
            source=source,
            default_collection=DEFAULT_COLLECTION,
        )

    async def retry(self, request: Request) -> Response:
        """Add a file again that could not be read."""
        form, document_id = await self._parse_change(request)
        force_ocr = bool(form.get("force_ocr"))
        task = await self._base.run(lambda base: base.retry(document_id, force_ocr=force_ocr))
        return RedirectResponse(f"/documents/{AddFile.from_payload(task.payload).document_id}", 303)

    async def read_again(self, request: Request) -> Response:
        """Read a document again with OCR."""
        _, document_id = await self._parse_change(request)
        await self._base.run(lambda base: base.read_again(document_id))
        return RedirectResponse(f"/documents/{document_id}", 303)

    async def update_metadata(self, request: Request) -> Response:
        """Replace the user's metadata of a document; what is refused stays in its form."""
        form, document_id = await self._parse_change(request)
        given = form.get("metadata", "{}")
        try:
            metadata = _parse_metadata(given)
        except InvalidInput as error:
            document = await self._base.run(lambda base: base.get_document(document_id))
            params = replace(ViewParams.of(request), view="facts")
            return await self._render(request, params, document, 400, metadata=given, reason=error.message)
        await self._base.run(lambda base: base.set_metadata(document_id, metadata))
        return RedirectResponse(f"/documents/{document_id}?view=facts", 303)

    async def remove(self, request: Request) -> Response:
        """Remove a document, or a file that could not be read."""
        _, document_id = await self._parse_change(request)
        await self._base.run(lambda base: base.remove(document_id))
        return Response(status_code=204) if "x-part" in request.headers else RedirectResponse("/documents", 303)

    async def _parse_change(self, request: Request) -> tuple[dict[str, str], str]:
        form = await parse_form(request)
        self._pages.forms.check_change(request, form.get("csrf"))
        return form, str(request.path_params["id"]).lower()


def _look(base: "KnowledgeBase", document: FileDocument, params: ViewParams) -> dict[str, Any]:
    """Return everything that the page of a document shows."""
    original = open_original(base, document)
    reading, chosen = open_reading(base, document, len(original.sizes) or document.page_count, params)
    if original.kind == "rich":
        original = read_rich(base, document, params.section, reading, params.query)
    return {
        "params": chosen,
        "original": original,
        "reading": reading,
        "notes": _make_notes(base, document, reading.page if reading.has_pages else None),
        "progress": _make_progress(base, document),
        "sources": base.places.shown_paths(document),
        "collections": base.collections.all() if params.view == "facts" else [],
        "raw": _read_raw(base, chosen, has_pages=document.page_count is not None) if params.view == "text" else None,
    }


def _make_notes(base: "KnowledgeBase", document: FileDocument, page: int | None) -> Notes:
    quality = base.ocr_quality(document.id) if document.ocr is not None else {}
    here = quality.get(page or 1)
    left_out = left_out_on(document, page)
    return Notes(
        notes_of(document),
        [explain_left_out(item) for item in left_out],
        here.confidence if here else None,
        here,
        [number for number, value in quality.items() if value.confidence < LOW_CONFIDENCE],
        document.status == "completed" and needs_ocr(document),
        any(item.kind in ("picture", "scanned page") for item in left_out),
    )


def _make_progress(base: "KnowledgeBase", document: FileDocument) -> Progress:
    """Return how far a document is; tasks are in the order in which they are done."""
    own, newer = None, ""
    for task in base.active_tasks(MAX_TASKS):
        file = AddFile.from_payload(task.payload)
        if file.document_id == document.id:
            own = task
        elif file.source and file.source in document.sources:
            newer = file.document_id
    state = describe_state(document, task_state(base, own) if own is not None else None)
    return Progress(state, own.id if own is not None else "", newer)


def _read_raw(base: "KnowledgeBase", params: ViewParams, *, has_pages: bool) -> dict[str, Any]:
    """Return the text of a page, or a part of the text of a document without pages, letter by letter."""
    pages = {"start_page": max(1, params.page), "end_page": max(1, params.page)} if has_pages else {}
    arguments = Get.model_validate({"offset": params.offset, "max_characters": RAW_CHARACTERS, **pages})
    found = document_text(base, arguments, params.document_id)
    return {"found": found, "tokens": estimate_tokens(found.text), "previous": max(0, params.offset - RAW_CHARACTERS)}


def _parse_metadata(given: str) -> Mapping[str, Any]:
    try:
        metadata = json.loads(given, parse_constant=_reject_constant, parse_float=_parse_float)
        json.dumps(metadata, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise InvalidInput("Not valid JSON. Names and texts stand in double quotes.") from None
    if not isinstance(metadata, dict):
        raise InvalidInput('Not a JSON object. Write it as {"name": "value"}.')
    return metadata


def _parse_float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise ValueError(text)
    return value


def _reject_constant(text: str) -> float:
    raise ValueError(text)
