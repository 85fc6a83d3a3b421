"""Documents: list them, add files, arrange them in collections."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import InvalidInput
from bedstone.ingest.detection import supported_formats
from bedstone.services.knowledge.collections import Collection
from bedstone.services.knowledge.errors import CollectionNotFound
from bedstone.services.knowledge.listing import DocumentPage, ListQuery
from bedstone.services.knowledge.overview import Overview
from bedstone.services.knowledge.records import DEFAULT_COLLECTION, AddFile, FileDocument
from bedstone.web.documents.document import document_view_routes
from bedstone.web.documents.state import METHODS, STATUSES, DocumentState, describe_state, notes_of
from bedstone.web.documents.task_events import task_routes, task_state
from bedstone.web.documents.uploads import receive_upload, sweep_uploads
from bedstone.web.forms import parse_form
from bedstone.web.frame import Pages
from bedstone.web.paging import Pager

if TYPE_CHECKING:
    from bedstone.records import Task
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.services.service import Handle

DOCUMENTS_PER_PAGE = 50
MAX_TASKS = 200  # that are shown with their progress
MAX_CHIPS = 10  # collections; further ones are in a list
SORTS = {"date_added": "Newest first", "filename": "By name", "size": "Largest first"}
FILTERS = {"status": "State", "format": "Format", "method": "Read by"}
LABELS: Mapping[str, Mapping[str, str]] = {"status": STATUSES, "method": METHODS}


def document_routes(pages: Pages) -> list[BaseRoute]:
    """Return /documents and the pages below it."""
    sweep_uploads(pages.options.data_folder)
    return [*_Documents(pages).routes(), *task_routes(pages), *document_view_routes(pages)]


@dataclass(frozen=True)
class ListParams:
    """Which documents a list shows, and in which order, as the address says."""

    sort: str
    name: str
    collection: str
    values: Mapping[str, str]

    @classmethod
    def of(cls, request: Request) -> "ListParams":
        """Read an address."""
        given = request.query_params
        sort = given.get("sort", "")
        values = {key: value for key in FILTERS if (value := given.get(key, ""))}
        return cls(sort if sort in SORTS else "date_added", given.get("name", ""), given.get("context", ""), values)

    @property
    def is_narrowed(self) -> bool:
        """Return whether the list leaves documents out."""
        return bool(self.name or self.collection or self.values)

    def query(self, page: int) -> ListQuery:
        """Return what to ask the service for."""
        return ListQuery(
            self.sort,  # type: ignore[arg-type]
            descending=self.sort != "filename",
            offset=(page - 1) * DOCUMENTS_PER_PAGE,
            limit=DOCUMENTS_PER_PAGE,
            collection=self.collection or None,
            filename=self.name,
            values=self.values,  # type: ignore[arg-type]
        )

    def address(self, **changes: str) -> str:
        """Return the address of the list with changes, from its first page on."""
        sort = "" if self.sort == "date_added" else self.sort
        given = {"context": self.collection, "name": self.name, **self.values, "sort": sort} | changes
        chosen = urlencode({key: value for key, value in given.items() if value})
        return f"/documents?{chosen}" if chosen else "/documents"


@dataclass(frozen=True)
class Row:
    """One document of the list."""

    document: FileDocument
    passages: int
    source: str
    state: DocumentState
    notes: Sequence[str]
    has_namesake: bool  # another document of the page has the same name
    task_id: str = ""


@dataclass(frozen=True)
class Listing:
    """A page of documents, what there is in all, active tasks that are not on the page, and watched folders."""

    rows: Sequence[Row]
    pages: Pager
    overview: Overview
    elsewhere: Sequence[str]
    watched: Sequence[tuple[str, str]]

    @property
    def chips(self) -> Sequence[Collection]:
        """Return the collections to choose from; `default` counts as one only beside others."""
        named = [item for item in self.overview.collections if item.name != DEFAULT_COLLECTION]
        default = [item for item in self.overview.collections if item.name == DEFAULT_COLLECTION and item.documents]
        return [*sorted(named, key=lambda item: item.name.lower()), *default] if named else []

    @property
    def has_many_chips(self) -> bool:
        """Return whether there are more collections than fit above the list."""
        return len(self.chips) > MAX_CHIPS

    def few_chips(self, chosen: str) -> Sequence[Collection]:
        """Return the collections that fit above the list, always with the chosen one."""
        return [item for at, item in enumerate(self.chips) if at < MAX_CHIPS or item.name == chosen]

    @property
    def range(self) -> str:
        """Return which documents of how many are shown."""
        first = (self.pages.number - 1) * self.pages.size + 1
        return f"{first:,} to {first + len(self.rows) - 1:,} of {self.pages.total:,}"


class _Documents:
    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._base: Handle[KnowledgeBase] = pages.services["knowledge"]

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/documents", self.list_documents, methods=["GET"]),
            Route("/documents", self.upload, methods=["POST"]),
            Route("/collections", self.create_collection, methods=["POST"]),
            Route("/collections/{name}/delete", self.delete_collection, methods=["POST"]),
            Route("/documents/{id}/collections", self.move, methods=["POST"]),
        ]

    async def list_documents(self, request: Request) -> Response:
        return await self._render(request)

    async def _render(self, request: Request, status: int = 200, **new_collection: str) -> Response:
        """Render the list; `new_collection` is a form that was not accepted, with the reason."""
        params = ListParams.of(request)
        listing = await self._base.run(lambda base: _list(base, request, params))
        return self._pages.render(
            request,
            "documents.html",
            page="documents",
            status=status,
            listing=listing,
            params=params,
            filters=FILTERS,
            labels=LABELS,
            sorts=SORTS,
            default_collection=DEFAULT_COLLECTION,
            new_collection=new_collection,
            max_mb=await self._max_mb(),
            suffixes=" ".join(suffix for item in supported_formats() for suffix in item.suffixes),
        )

    async def upload(self, request: Request) -> Response:
        """Receive a file and add it as agents do, to the collection that the page shows."""
        self._pages.forms.check_change(request, None)
        collections = [name for name in (request.headers.get("x-collection", ""),) if name]
        async with receive_upload(request, self._pages.options.data_folder, await self._max_mb()) as file:
            task = await self._base.run(lambda base: base.add(file, collections=collections, is_upload=True))
        return JSONResponse({"task_id": task.id}, 202)

    async def create_collection(self, request: Request) -> Response:
        """Add a collection and show it; a name that is refused stays in its form."""
        form = await self._parse_change(request)
        name, description = form.get("name", "").strip(), form.get("description", "").strip()
        try:
            await self._base.run(lambda base: base.collections.create(name, description))
        except InvalidInput as error:
            reason = error.message.replace("Context", "Collection")
            return await self._render(request, 400, name=name, description=description, reason=reason)
        return RedirectResponse(f"/documents?{urlencode({'context': name})}", 303)

    async def delete_collection(self, request: Request) -> Response:
        await self._parse_change(request)
        await self._base.run(lambda base: base.collections.delete(str(request.path_params["name"])))
        return RedirectResponse("/documents", 303)

    async def move(self, request: Request) -> Response:
        """Put a document into a collection, or take it out of one."""
        form = await self._parse_change(request)
        document_id = str(request.path_params["id"]).lower()
        into, out_of = ([form[key]] if form.get(key) else [] for key in ("into", "out_of"))
        try:
            moved = await self._base.run(lambda base: base.collections.move(document_id, into=into, out_of=out_of))
        except CollectionNotFound as error:
            raise InvalidInput(error.message.replace("Context", "Collection")) from None
        if "x-part" in request.headers:
            return JSONResponse({"collections": moved.collections})
        return RedirectResponse(f"/documents/{document_id}?view=facts", 303)

    async def _parse_change(self, request: Request) -> dict[str, str]:
        form = await parse_form(request)
        self._pages.forms.check_change(request, form.get("csrf"))
        return form

    async def _max_mb(self) -> int:
        return await self._base.run(lambda base: base.max_file_size_mb)


def _list(base: "KnowledgeBase", request: Request, params: ListParams) -> Listing:
    overview = base.overview()
    is_known = params.collection in ("", *(item.name for item in overview.collections))
    number = Pager.of(request, 0, DOCUMENTS_PER_PAGE).number
    page = base.list_documents(params.query(number)) if is_known else DocumentPage([], 0)
    tasks = {AddFile.from_payload(task.payload).document_id: task for task in base.active_tasks(MAX_TASKS)}
    names = Counter(item.filename for item in page.documents)
    rows = [
        _row(item, base, tasks.pop(item.id, None), has_namesake=names[item.filename] > 1) for item in page.documents
    ]
    return Listing(
        rows,
        Pager.of(request, page.total, DOCUMENTS_PER_PAGE),
        overview,
        elsewhere=[task.id for task in tasks.values()],
        watched=[(_short_path(item.origin), item.origin) for item in base.syncs()],
    )


def _row(document: FileDocument, base: "KnowledgeBase", task: "Task | None", *, has_namesake: bool) -> Row:
    source = next(iter(base.places.shown_paths(document)), "")
    state: Mapping[str, Any] | None = task_state(base, task) if task is not None else None
    return Row(
        document,
        base.chunk_count(document.id),
        source,
        describe_state(document, state),
        notes_of(document),
        has_namesake,
        task.id if task is not None else "",
    )


def _short_path(path: str) -> str:
    """Return the end of a path, which tells folders apart."""
    return "/".join(PurePath(path).parts[-2:])
