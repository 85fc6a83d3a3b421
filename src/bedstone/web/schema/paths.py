"""The way between two objects: what it means, the fields it takes, and ready queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from bedstone.errors import BedstoneError, NotFound
from bedstone.web.forms import parse_form
from bedstone.web.frame import Pages
from bedstone.web.schema.base import OrgViews, SchemaPage, org_routes

if TYPE_CHECKING:
    from bedstone.salesforce.graph.model import ObjectSchema
    from bedstone.web.schema.object_list import OrgView
    from bedstone.web.schema.path_story import Way

MAX_ROWS = 3
MAX_COUNT_SECONDS = 5.0
MAX_QUERY_SECONDS = 10.0


@dataclass(frozen=True)
class End:
    """What was entered for one end of the way, and the object that has this name; else those that were meant."""

    entered: str
    item: "ObjectSchema | None"
    near: "Sequence[ObjectSchema]" = ()

    @property
    def value(self) -> str:
        """Return what the form shows."""
        return self.item.name if self.item is not None else self.entered

    @property
    def is_wrong(self) -> bool:
        return bool(self.entered) and self.item is None


@dataclass(frozen=True)
class Question:
    """What an address asks: the two ends, which way between them, and the shape of its query."""

    view: "OrgView"
    source: End
    target: End
    via: str
    shape: str

    def find_ways(self) -> "tuple[list[Way], bool]":
        """Return the paths between the ends, the nearest first, and whether there may be more."""
        if self.source.item is None or self.target.item is None:
            return [], False
        return self.view.ways(self.source.item.name, self.target.item.name)

    def choose(self, ways: "Sequence[Way]") -> "tuple[Way, str] | None":
        """Return the way that the address names, or the first one, and the shape of its query."""
        from bedstone.web.schema.path_story import name_shapes  # noqa: PLC0415 - with the engine

        if not ways:
            return None
        way = next((way for way in ways if way.key == self.via), ways[0])
        shapes = name_shapes(way)
        return way, self.shape if self.shape in shapes else next(iter(shapes), "rows")


class PathPages(SchemaPage):
    """The page of the way between two objects, and the parts of it that ask the org."""

    def __init__(self, pages: Pages, views: OrgViews) -> None:
        super().__init__(pages)
        self._views = views

    def routes(self) -> list[BaseRoute]:
        """Return the pages with their addresses."""
        return org_routes(
            [
                ("GET", "/paths", self.show_paths),
                ("POST", "/paths/counts", self.count_records),
                ("POST", "/paths/rows", self.show_rows),
            ]
        )

    async def show_paths(self, request: Request) -> Response:
        """Show the paths between two objects, and one of them as a story; before the first sync, the list."""
        from bedstone.services.schema.errors import NotSynced  # noqa: PLC0415 - with the engine

        try:
            question = await self._read(request, request.query_params)
        except NotSynced:
            return RedirectResponse(self.at(request))
        ways, is_cut = await to_thread.run_sync(question.find_ways)
        context: dict[str, Any] = {
            "name": question.view.org.name,
            "view": question.view,
            "source": question.source,
            "target": question.target,
            "ways": ways,
            "is_cut": is_cut,
            **self._describe(question, ways, {}),
        }
        if ways:
            known = await self.schemas.run(lambda schemas: schemas.find_org(question.view.org.name))
            context["can_ask"] = known.org is not None
        return self.render(request, "paths.html", **context)

    async def count_records(self, request: Request) -> Response:
        """Return the way again, with the numbers of records; one call of the org, and not for long."""
        question = await self._read(request, await self._checked_form(request))
        ways, _ = await to_thread.run_sync(question.find_ways)
        chosen = question.choose(ways)
        if chosen is None:
            raise NotFound("There is no such way.")
        counts: Mapping[str, int] = {}
        with anyio.move_on_after(MAX_COUNT_SECONDS):
            schemas = await self.schemas.open()
            counts = await schemas.count_rows(question.view.org, chosen[0].statements())
        context = self._describe(question, ways, counts)
        return self.pages.render_fragment("path_route.html", at=self.at(request), **context)

    async def show_rows(self, request: Request) -> Response:
        """Return the first rows of the query of a way."""
        from bedstone.web.soql.table import build_table  # noqa: PLC0415 - parses

        question = await self._read(request, await self._checked_form(request))
        ways, _ = await to_thread.run_sync(question.find_ways)
        queries = self._describe(question, ways, {}).get("queries", [])
        if len(queries) != 1:
            raise NotFound("No single query has these rows.")
        text = queries[0].with_limit(MAX_ROWS).text
        try:
            with anyio.fail_after(MAX_QUERY_SECONDS):
                found = await (await self.schemas.open()).query(text, question.view.org.name)
        except TimeoutError:
            return self.pages.render_fragment("path_rows.html", problem="The org takes too long to answer.")
        except BedstoneError as error:
            return self.pages.render_fragment("path_rows.html", problem=error.message)
        table = build_table(found.page["records"], text, found.page["totalSize"])
        titles = list(queries[0].selected.values())
        names = titles if len(titles) == len(table.names) else table.names
        return self.pages.render_fragment("path_rows.html", problem=None, table=table, names=names)

    async def _checked_form(self, request: Request) -> dict[str, str]:
        form = await parse_form(request)
        self.pages.forms.check_csrf(request, form.get("csrf"))
        return form

    async def _read(self, request: Request, values: Mapping[str, str]) -> Question:
        """Read the names in the address, which may be labels."""
        view = self._views.of(await self.org_schema(request))
        source, target = [
            await to_thread.run_sync(_find_end, view, values.get(name, "").strip()) for name in ("from", "to")
        ]
        return Question(view, source, target, values.get("via", ""), values.get("shape", ""))

    @staticmethod
    def _describe(question: Question, ways: "Sequence[Way]", counts: Mapping[str, int]) -> dict[str, Any]:
        """Return the chosen way with its stops and hops, its query and what the query does."""
        from bedstone.web.schema.path_story import explain_shape, name_shapes  # noqa: PLC0415 - with the engine

        chosen = question.choose(ways)
        if chosen is None:
            return {"way": None}
        way, shape = chosen
        return {
            "way": way,
            "shape": shape,
            "shapes": name_shapes(way),
            "explanation": explain_shape(way, shape),
            "route": way.route(shape, question.view.org.graph, counts),
            "queries": way.queries(shape),
        }


def _find_end(view: "OrgView", text: str) -> End:
    if not text:
        return End("", None)
    item = view.find_object(text)
    return End(text, item, () if item is not None else view.suggest(text))
