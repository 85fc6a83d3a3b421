"""Salesforce: the schema of an org, paths between objects, a SOQL workbench, articles."""

import csv
import io
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import BedstoneError
from bedstone.toolkit import Reply
from bedstone.web.forms import parse_form
from bedstone.web.frame import Pages, tool_error
from bedstone.web.paging import Pager

if TYPE_CHECKING:
    from bedstone.salesforce.graph.model import Field, ObjectSchema
    from bedstone.services.articles.service import ArticleService
    from bedstone.services.schema.service import OrgSchema, SchemaService
    from bedstone.services.service import Handle

ROWS_PER_PAGE = 100
MAX_CSV_ROWS = 50_000
MAX_PATHS = 6
CATEGORIES = ("standard", "custom", "external", "metadata_type", "platform_event", "big_object", "system")
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run what follows


def schema_routes(pages: Pages) -> list[BaseRoute]:
    """Return /salesforce and the pages of each org below it."""
    return _SchemaPages(pages).routes()


def article_routes(pages: Pages) -> list[BaseRoute]:
    """Return the list of articles and the page of one."""
    service: Handle[ArticleService] = pages.services["salesforce_knowledge"]
    toolset = pages.toolsets["salesforce_knowledge"]

    async def list_articles(request: Request) -> Response:
        """List the articles of the mirror; without one, say how to get it."""
        text = request.query_params.get("title", "").strip()
        mirrored, problem = [], None
        try:
            mirrored = await service.run(lambda articles: articles.mirror.list_articles())
        except BedstoneError as error:
            problem = error.message
        found = [item for item in mirrored if text.lower() in item.title.lower()]
        pager = Pager.of(request, len(found), ROWS_PER_PAGE)
        context: dict[str, Any] = {"articles": pager.cut(found), "pages": pager, "text": text, "problem": problem}
        return pages.render(request, "articles.html", page="articles", **context)

    async def show_article(request: Request) -> Response:
        reply = await toolset.call("get_article_by_id", {"article_id": request.path_params["id"]})
        if reply.is_error or not isinstance(reply.payload, dict):
            raise tool_error(reply)
        article, mirrored_at = reply.payload["article"], reply.payload.get("mirrored_at")
        return pages.render(request, "article.html", page="articles", article=article, mirrored_at=mirrored_at)

    return [Route("/salesforce/articles", list_articles), Route("/salesforce/articles/{id}", show_article)]


class _SchemaPages:
    """The pages of an org: of the default org at /salesforce, of any org below /salesforce/orgs."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._schemas: Handle[SchemaService] = pages.services["salesforce_graph"]
        self._toolset = pages.toolsets["salesforce_graph"]

    def routes(self) -> list[BaseRoute]:
        return [
            Route(f"{prefix}{path}", endpoint, methods=[method])
            for prefix in ("/salesforce", "/salesforce/orgs/{org}")
            for method, path, endpoint in (
                ("GET", "", self.list_objects),
                ("GET", "/objects/{name}", self.show_object),
                ("GET", "/objects/{name}/relationships", self.list_relationships),
                ("GET", "/paths", self.show_paths),
                ("GET", "/soql", self.show_workbench),
                ("POST", "/soql/check", self.check_query),
                ("POST", "/soql/run", self.run_query),
                ("POST", "/soql/rows.csv", self.download_rows),
            )
        ]

    async def list_objects(self, request: Request) -> Response:
        orgs = await self._schemas.run(lambda schemas: [org.name for org in schemas.known_orgs()])
        if _org(request) is None and len(orgs) > 1:
            try:
                await self._org_schema(request)
            except BedstoneError:  # none of them is the default
                return self._render(request, "orgs.html", orgs=orgs)
        search, category = (request.query_params.get(name, "").strip() for name in ("search", "category"))
        objects = await self._list_all(request, {"search": search} if search else {})
        counts = Counter(row["category"] for row in objects)
        rows = [row for row in objects if not category or row["category"] == category]
        pages = Pager.of(request, len(rows), ROWS_PER_PAGE)
        categories = [(name, counts[name]) for name in CATEGORIES if counts[name]]
        context: dict[str, Any] = {"search": search, "category": category, "categories": categories, "orgs": orgs}
        return self._render(request, "salesforce.html", rows=pages.cut(rows), pages=pages, **context)

    async def _list_all(self, request: Request, arguments: dict[str, str]) -> list[dict[str, str]]:
        """Return every object, answer by answer."""
        rows: list[dict[str, str]] = []
        while True:
            reply = await self._call(request, "list-objects", **arguments)
            if reply.is_error or reply.structured is None:
                raise tool_error(reply)
            rows += reply.structured["items"]
            if not reply.structured["nextCursor"]:
                return rows
            arguments = {**arguments, "cursor": reply.structured["nextCursor"]}

    async def show_object(self, request: Request) -> Response:
        from bedstone.web.diagram import draw_neighbours  # noqa: PLC0415 - with the engine

        org, item = await self._find_object(request)
        depth = 2 if request.query_params.get("depth") == "2" else 1
        text, field_type = (request.query_params.get(key, "").strip() for key in ("fields", "type"))
        fields = [field for field in item.fields if _matches(field, text.lower()) and field_type in ("", field.type)]
        pages = Pager.of(request, len(fields), ROWS_PER_PAGE)
        return self._render(
            request,
            "object.html",
            item=item,
            diagram=await to_thread.run_sync(draw_neighbours, org, item.name, depth),
            depth=depth,
            fields=pages.cut(fields),
            is_known=lambda other: org.graph.get(other) is not None,
            pages=pages,
            total=len(item.fields),
            text=text,
            field_type=field_type,
            types=sorted(Counter(field.type for field in item.fields).items()),
        )

    async def list_relationships(self, request: Request) -> Response:
        """List the objects that an object references, and those that reference it."""
        org, item = await self._find_object(request)
        text = request.query_params.get("search", "").strip().lower()
        parents = [(edge.parent, edge, "references") for edge in org.graph.parents(item.name)]
        children = [(edge.child, edge, "is referenced by") for edge in org.graph.children(item.name)]
        rows = [row for row in (*parents, *children) if text in row[0].lower() or text in row[1].field.name.lower()]
        pages = Pager.of(request, len(rows), ROWS_PER_PAGE)
        return self._render(request, "relationships.html", item=item, rows=pages.cut(rows), pages=pages, text=text)

    async def show_paths(self, request: Request) -> Response:
        from bedstone.web.diagram import draw_paths  # noqa: PLC0415 - with the engine

        source, target = (request.query_params.get(name, "").strip() for name in ("from", "to"))
        found: Any = None
        diagram = problem = None
        if source and target:
            objects = {"sourceObjectApiName": source, "targetObjectApiName": target}
            try:
                found = await self._answer(request, "explore-relationships", **objects, maxPaths=MAX_PATHS)
                diagram = draw_paths(found["paths"]) if found["paths"] else None
            except HTTPException as error:
                problem = error.detail
        return self._render(
            request, "paths.html", source=source, target=target, found=found, diagram=diagram, problem=problem
        )

    async def show_workbench(self, request: Request) -> Response:
        query = request.query_params.get("q", "SELECT Id, Name FROM Account ORDER BY Name LIMIT 20")
        return self._render(request, "soql.html", query=query)

    async def check_query(self, request: Request) -> Response:
        """Validate a query while the user types."""
        form = await parse_form(request)
        self._pages.forms.check_csrf(request)
        reply = await self._call(request, "validate-soql", query=form.get("query", ""))
        problem = tool_error(reply).detail if reply.is_error else None
        return self._pages.render_fragment("soql_check.html", answer=reply.payload, problem=problem)

    async def run_query(self, request: Request) -> Response:
        form = await parse_form(request)
        self._pages.forms.check_csrf(request)
        query, cursor = form.get("query", ""), form.get("cursor")
        more = {"cursor": cursor} if cursor else {}
        reply = await self._call(request, "execute-soql", query=query, maxRows=ROWS_PER_PAGE, **more)
        if reply.is_error or not isinstance(reply.payload, dict):
            return self._pages.render_fragment("soql_rows.html", problem=tool_error(reply).detail)
        names, rows = _table(reply.payload["records"], query, reply.payload["totalSize"])
        return self._pages.render_fragment(
            "soql_rows.html", problem=None, answer=reply.payload, rows=rows, names=names, is_first=not cursor
        )

    async def download_rows(self, request: Request) -> Response:
        """Return the rows of a query as CSV; the name of the file says if there are more."""
        form = await parse_form(request)
        self._pages.forms.check_csrf(request, form.get("csrf"))
        query = form.get("query", "")
        schemas = await self._schemas.open()
        records, total = await schemas.query_all(query, MAX_CSV_ROWS, _org(request))
        names, rows = _table(records, query, total, all_children=True)
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows({key: _escape_formula(value) for key, value in row.items()} for row in rows)
        name = f"rows-first-{MAX_CSV_ROWS}-of-{total}.csv" if total > len(records) > 0 else "rows.csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text.getvalue(), media_type="text/csv", headers=headers)

    async def _org_schema(self, request: Request) -> "OrgSchema":
        return await (await self._schemas.open()).org(_org(request))

    async def _find_object(self, request: Request) -> "tuple[OrgSchema, ObjectSchema]":
        """Return the object of an address; for an unknown one, raise the error of the tool, which suggests names."""
        org, name = await self._org_schema(request), request.path_params["name"]
        item = org.graph.get(name)
        if item is None:
            raise tool_error(await self._call(request, "get-object", apiName=name))
        return org, item

    def _render(self, request: Request, template: str, **context: Any) -> Response:
        """Render a page whose links stay with its org."""
        org = _org(request)
        at = f"/salesforce/orgs/{quote(org, safe='')}" if org else "/salesforce"
        return self._pages.render(request, template, page="salesforce", at=at, org=org, **context)

    async def _answer(self, request: Request, tool: str, **arguments: Any) -> Any:
        """Return the answer of a tool, or raise its error."""
        reply = await self._call(request, tool, **arguments)
        if reply.is_error:
            raise tool_error(reply)
        return reply.payload

    async def _call(self, request: Request, tool: str, **arguments: Any) -> Reply:
        org = _org(request)
        return await self._toolset.call(tool, arguments | ({"orgId": org} if org else {}))


def _org(request: Request) -> str | None:
    return request.path_params.get("org")


def _table(
    records: list[dict[str, Any]], query: str, total: int, *, all_children: bool = False
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the columns and rows of a result."""
    from bedstone.salesforce.rows import column_names, count_row, selected_columns, table_rows  # noqa: PLC0415 - parses

    rows = (table_rows(records, None) if all_children else table_rows(records)) or count_row(query, total)
    return column_names(rows, selected_columns(query)), rows


def _matches(field: "Field", text: str) -> bool:
    """Return whether a text occurs in the names, the help, the targets or the values of a field."""
    texts = (field.name, field.label, field.help or "", *field.reference_to, *field.values)
    return not text or any(text in item.lower() for item in texts)


def _escape_formula(value: Any) -> Any:
    """Quote a text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_SIGNS) else value
