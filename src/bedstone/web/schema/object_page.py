"""The page of one object: those around it as a diagram or a list, and its fields."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from bedstone.services.service import parse_time
from bedstone.web.frame import Pages
from bedstone.web.paging import Pager
from bedstone.web.schema.base import OrgViews, SchemaPage, UnknownObject, change_address, org_routes

if TYPE_CHECKING:
    from bedstone.salesforce.graph.model import Field, ObjectSchema
    from bedstone.services.schema.service import OrgSchema
    from bedstone.web.schema.neighbours import Branch, Group, Neighbour
    from bedstone.web.schema.object_list import OrgView

ROWS_PER_PAGE = 100
BRANCHES_PER_PAGE = 40
MAX_DRAWN = 24
MAX_FIRST = 6  # objects that a phone shows above the diagram
MAX_BEHIND = 8  # objects behind another that a line shows
MAX_ENDING = 40  # objects with nothing behind them
MAX_VALUES = 3  # of a picklist that a line shows
MAX_MORE_VALUES = 40  # below it, in a long list of fields
MAX_COMPLETE_FIELDS = 5  # a list of so few fields has (nearly) all values
MAX_ALL_VALUES = 500
VIEWS = {"diagram": "Diagram", "two-steps": "Two steps", "list": "List"}


class ObjectPages(SchemaPage):
    """The pages of objects, and the page of a name that no object has."""

    def __init__(self, pages: Pages, views: OrgViews) -> None:
        super().__init__(pages)
        self._views = views

    def routes(self) -> list[BaseRoute]:
        """Return the pages with their addresses."""
        return org_routes(
            [
                ("GET", "/objects/{name}", self.show_object),
                ("GET", "/objects/{name}/relationships", self.list_relationships),
            ]
        )

    async def show_object(self, request: Request) -> Response:
        """Show an object; for an unknown name, the nearest one; before the first sync, the list."""
        from bedstone.services.schema.errors import NotSynced  # noqa: PLC0415 - with the engine
        from bedstone.services.schema.sync import SYNCED_AT  # noqa: PLC0415
        from bedstone.web.schema.neighbours import count_relationships  # noqa: PLC0415
        from bedstone.web.schema.object_list import KINDS  # noqa: PLC0415

        try:
            org, item = await self.find_object(request)
        except UnknownObject as unknown:
            return await self._render_missing(request, unknown)
        except NotSynced:
            return RedirectResponse(self.at(request))
        view = self._views.of(org)
        return self.render(
            request,
            "object.html",
            item=item,
            name=org.name,
            kind=KINDS[view.row(item).kind],
            query=_example_query(item),
            relationships=count_relationships(org, item),
            synced_at=parse_time(org.facts.get(SYNCED_AT)),
            view=view,
            **await _around(request, view, item),
            **_fields(request, view, item),
        )

    async def list_relationships(self, request: Request) -> Response:
        """Redirect to the list on the page of the object, which has taken this page's place."""
        text = request.query_params.get("search", "")
        name = quote(request.path_params["name"], safe="")
        query = change_address(request, search="", near=text, view="list")
        return RedirectResponse(f"{self.at(request)}/objects/{name}{query}")

    async def _render_missing(self, request: Request, unknown: UnknownObject) -> Response:
        """Say where a name was looked up, which one is nearest, and what else can be done."""
        from bedstone.salesforce.graph.names import words_of  # noqa: PLC0415 - with the engine
        from bedstone.services.schema.sync import SYNCED_AT  # noqa: PLC0415
        from bedstone.web.schema.object_list import KINDS  # noqa: PLC0415

        asked, org, view = unknown.name, unknown.org, self._views.of(unknown.org)
        near = await to_thread.run_sync(view.suggest, asked)
        if "text/html" not in request.headers.get("accept", ""):
            question = f" Did you mean {near[0].name}?" if near else ""
            raise HTTPException(404, f"{unknown.detail}{question}")
        syncs = await self.schemas.run(lambda schemas: schemas.syncs())
        problems = {name.lower(): text for name, text in org.graph.problems.items()}
        context: dict[str, Any] = {
            "asked": asked,
            "name": org.name,
            "near": [(item, KINDS[view.row(item).kind]) for item in near],
            "total": len(org.graph.objects),
            "synced_at": parse_time(org.facts.get(SYNCED_AT)),
            "sync": next((sync for sync in syncs if sync.name == org.name), None),
            "problem": problems.get(asked.lower()),
            "is_left_out": asked.lower() in org.graph.unsynced,
            "words": " ".join(words_of(asked)) or asked,
            "path": request.url.path,
            "now": datetime.now(UTC),
        }
        return self.render(request, "object_missing.html", status=404, **context)


async def _around(request: Request, view: "OrgView", item: "ObjectSchema") -> dict[str, Any]:
    """Return the objects around one, as the view that the address asks for."""
    from bedstone.web.schema.diagram import draw_neighbours  # noqa: PLC0415 - with the engine
    from bedstone.web.schema.neighbours import (  # noqa: PLC0415
        KIND_NAMES,
        branches,
        choose_drawn,
        count_objects,
        filter_groups,
        kind_of_link,
    )

    chosen = _chosen_view(request)
    near = request.query_params.get("near", "").strip()
    groups = filter_groups(await to_thread.run_sync(view.neighbours, item.name), near)
    context: dict[str, Any] = {
        "chosen": chosen,
        "near": near,
        "total_around": count_objects(view.neighbours(item.name)),
        "found_around": count_objects(groups),
        "views": [(title, change_address(request, depth="", view=key), key == chosen) for key, title in VIEWS.items()],
        "kind_names": KIND_NAMES,
    }
    if chosen == "list":
        links = [
            (group.title, neighbour, edge, kind_of_link(edge))
            for group in groups
            for neighbour in group.neighbours
            for edge in neighbour.edges
        ]
        pages = Pager.of(request, len(links), ROWS_PER_PAGE, parameter="near_page")
        return context | {"links": pages.cut(links), "near_pages": pages}
    if chosen == "two-steps":
        found = await to_thread.run_sync(branches, view.org, item, groups)
        leading = [branch for branch in found if branch.behind]
        ending = [branch.neighbour.name for branch in found if not branch.behind]
        pages = Pager.of(request, len(leading), BRANCHES_PER_PAGE, parameter="near_page")
        return context | {
            "branches": [_describe_branch(branch, view.org) for branch in pages.cut(leading)],
            "ending": ending,
            "near_pages": pages,
            "max_ending": MAX_ENDING,
        }
    drawn = choose_drawn(groups, MAX_DRAWN)
    diagram = draw_neighbours(item.label, len(item.fields), drawn) if drawn else None
    return context | {"diagram": diagram, "drawn": count_objects(drawn), "first": _choose_first(drawn)}


def _describe_branch(branch: "Branch", org: "OrgSchema") -> "tuple[Neighbour, list[tuple[str, str]], int]":
    """Return a neighbour, objects behind it with the way that leads there, and how many there are in all."""
    from bedstone.web.schema.neighbours import order_names  # noqa: PLC0415 - with the engine
    from bedstone.web.schema.path_story import step_key  # noqa: PLC0415

    neighbour = branch.neighbour
    first = step_key(neighbour.edges[0], goes_up=not neighbour.points_here)
    steps = {edge.child: step_key(edge, goes_up=False) for edge in org.graph.children(neighbour.name)}
    steps |= {edge.parent: step_key(edge, goes_up=True) for edge in org.graph.parents(neighbour.name)}
    shown = order_names(branch.behind, org)[:MAX_BEHIND]
    return neighbour, [(name, f"{first},{steps[name]}") for name in shown], len(branch.behind)


def _choose_first(groups: "Sequence[Group]") -> "list[Neighbour]":
    """Return the neighbours that tell most: the first of each group, then the second, and so on."""
    rounds = zip_longest(*(group.neighbours for group in groups))
    return [neighbour for members in rounds for neighbour in members if neighbour is not None][:MAX_FIRST]


def _chosen_view(request: Request) -> str:
    """Return the view that an address asks for; `depth` is how links of earlier versions ask."""
    asked = request.query_params.get("view", "two-steps" if request.query_params.get("depth") == "2" else "")
    return asked if asked in VIEWS else "diagram"


def _example_query(item: "ObjectSchema") -> str:
    from bedstone.salesforce.graph.columns import build_select, default_columns  # noqa: PLC0415 - with the engine

    return build_select(default_columns(item), item.name, ["LIMIT 20"])


def _fields(request: Request, view: "OrgView", item: "ObjectSchema") -> dict[str, Any]:
    """Return the fields that the address asks for; one that is called so comes first and is marked."""
    text, field_type = (request.query_params.get(key, "").strip() for key in ("fields", "type"))
    wanted = text.lower()
    fields = [field for field in item.fields if _matches(field, wanted) and field_type in ("", field.type)]
    fields.sort(key=lambda field: field.name.lower() != wanted)
    pages = Pager.of(request, len(fields), ROWS_PER_PAGE)
    return {
        "fields": pages.cut(fields),
        "pages": pages,
        "text": text,
        "field_type": field_type,
        "types": sorted(Counter(field.type for field in item.fields).items()),
        "is_known": lambda name: view.org.graph.get(name) is not None,
        "max_values": MAX_VALUES,
        "max_more_values": MAX_MORE_VALUES if len(fields) > MAX_COMPLETE_FIELDS else MAX_ALL_VALUES,
    }


def _matches(field: "Field", text: str) -> bool:
    """Return whether a text occurs in the names, the help, the targets or the values of a field."""
    texts = (field.name, field.label, field.help or "", *field.reference_to, *field.values)
    return not text or any(text in item.lower() for item in texts)
