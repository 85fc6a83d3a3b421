"""Schema: the objects of an org."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from bedstone.services.service import State, SyncFacts, format_count, parse_time
from bedstone.web.forms import parse_form
from bedstone.web.frame import Pages
from bedstone.web.paging import Pager
from bedstone.web.schema.base import OrgViews, SchemaPage, change_address, org_routes
from bedstone.web.schema.object_page import ObjectPages
from bedstone.web.schema.paths import PathPages
from bedstone.web.soql.pages import soql_routes

if TYPE_CHECKING:
    from bedstone.services.schema.service import KnownOrg, OrgSchema

ROWS_PER_PAGE = 100
MAX_COMPLETIONS = 50
FRESH = timedelta(hours=24)


def schema_routes(pages: Pages) -> list[BaseRoute]:
    """Return /salesforce and the pages of each org below it."""
    views = OrgViews()
    return [
        *SchemaPages(pages, views).routes(),
        *ObjectPages(pages, views).routes(),
        *PathPages(pages, views).routes(),
        *soql_routes(pages),
    ]


class SchemaPages(SchemaPage):
    """The list of objects, and the sync that brings it up to date."""

    def __init__(self, pages: Pages, views: OrgViews) -> None:
        super().__init__(pages)
        self._views = views

    def routes(self) -> list[BaseRoute]:
        """Return the pages with their addresses."""
        return org_routes(
            [
                ("GET", "", self.list_objects),
                ("GET", "/names", self.complete_name),
                ("POST", "/sync", self.sync),
            ]
        )

    async def list_objects(self, request: Request) -> Response:
        """List the objects; without a default org, the orgs; without a sync, the way to the first one."""
        from bedstone.services.schema.errors import NotSynced, OrgNotFound  # noqa: PLC0415 - with the engine

        orgs = await self.schemas.run(lambda schemas: schemas.known_orgs())
        try:
            org = await self.org_schema(request)
        except NotSynced as error:
            known = await self.schemas.run(lambda schemas: schemas.find_org(self.org_name(request)))
            sync = await self._find_sync(known.name)
            return self.render(request, "schema_empty.html", name=known.name, sync=sync, problem=error.message)
        except OrgNotFound:
            if self.org_name(request) is not None or len(orgs) < 2:  # noqa: PLR2004 - one is the default
                raise
            return await self._choose_org(request, orgs)
        return await self._render_list(request, org, [known.name for known in orgs])

    async def _render_list(self, request: Request, org: "OrgSchema", orgs: list[str]) -> Response:
        from bedstone.web.schema.object_list import KINDS, SORTS  # noqa: PLC0415 - with the engine

        view = self._views.of(org)
        text, kind, sort = (request.query_params.get(name, "").strip() for name in ("search", "category", "sort"))
        rows, counts = await to_thread.run_sync(view.find_rows, text, kind, sort)
        pages = Pager.of(request, len(rows), ROWS_PER_PAGE)
        sync = await self._find_sync(org.name)
        context: dict[str, Any] = {
            "name": org.name,
            "orgs": orgs,
            "rows": pages.cut(rows),
            "pages": pages,
            "sync": sync,
            "health": _describe_health(org, sync),
            "synced_at": _synced_at(org),
            "chips": _chips(request, kind, counts, KINDS),
            "kinds": {name: (title, count) for name, count in counts for title in [KINDS[name]]},
            "sorts": SORTS,
            "view": view,
            "text": text,
            "kind": kind,
            "sort": sort if sort in SORTS else "label",
        }
        return self.render(request, "schema.html", **context)

    async def _choose_org(self, request: Request, orgs: "list[KnownOrg]") -> Response:
        syncs = {sync.name: sync for sync in await self.schemas.run(lambda schemas: schemas.syncs())}
        return self.render(request, "orgs.html", orgs=orgs, syncs=syncs)

    async def complete_name(self, request: Request) -> Response:
        """Return objects for what one types, as the options of a list."""
        view = self._views.of(await self.org_schema(request))
        rows = await to_thread.run_sync(view.complete, request.query_params.get("text", "").strip(), MAX_COMPLETIONS)
        return self.pages.render_fragment("object_options.html", rows=rows)

    async def sync(self, request: Request) -> Response:
        """Begin a sync in the background, and return to the page that asked for it."""
        form = await parse_form(request)
        self.pages.forms.check_change(request, form.get("csrf"))
        schemas = await self.schemas.open()
        known = await to_thread.run_sync(schemas.find_org, self.org_name(request))
        await schemas.sync_now(known.name)
        return RedirectResponse(self.at(request), 303)

    async def _find_sync(self, name: str) -> SyncFacts | None:
        """Return the sync of an org; None for a schema that cannot be synced."""
        syncs = await self.schemas.run(lambda schemas: schemas.syncs())
        return next((sync for sync in syncs if sync.name == name), None)


def _chips(request: Request, kind: str, counts: list[tuple[str, int]], titles: Any) -> list[tuple[str, int, str, bool]]:
    """Return title, count and address of each kind, and whether it is chosen."""
    total = sum(count for _, count in counts)
    return [
        ("All", total, change_address(request, category=""), not kind),
        *((titles[name], count, change_address(request, category=name), name == kind) for name, count in counts),
    ]


def _describe_health(org: "OrgSchema", sync: SyncFacts | None) -> State | None:
    """Return in a word or two whether the schema is what the org has; None for one that came from files."""
    if sync is not None and sync.is_running:
        return State("busy", f"Syncing, {sync.progress} objects" if sync.progress else "Syncing", "/activity")
    if sync is not None and sync.problem:
        return State("bad", "The last sync failed", "/activity")
    if org.graph.problems:
        return State("warn", f"{format_count(len(org.graph.problems), 'object')} could not be read")
    if sync is None:
        return None
    synced_at = _synced_at(org)
    is_fresh = synced_at is not None and datetime.now(UTC) - synced_at < FRESH
    return State("good", "In step") if is_fresh else State("warn", "May be out of date")


def _synced_at(org: "OrgSchema") -> datetime | None:
    from bedstone.services.schema.sync import SYNCED_AT  # noqa: PLC0415 - with the engine

    return parse_time(org.facts.get(SYNCED_AT))
