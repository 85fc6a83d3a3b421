"""An org's schema to look at, ways between objects to see, SOQL to try, articles to read."""

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
from bedstone.web.frame import Pager, Pages, form_of, refusal

if TYPE_CHECKING:
    from bedstone.salesforce.graph.model import Field
    from bedstone.services.articles.service import ArticleService
    from bedstone.services.schema.service import OrgSchema, SchemaService
    from bedstone.services.service import Handle

PAGE, MOST_CSV, MOST_PATHS = 100, 50_000, 6
CATEGORIES = ("standard", "custom", "external", "metadata_type", "platform_event", "big_object", "system")


def schema_routes(pages: Pages) -> list[BaseRoute]:
    """Return /salesforce and the pages of each org below it."""
    return _Salesforce(pages).routes()


def article_routes(pages: Pages) -> list[BaseRoute]:
    """Return the list of articles and the page of one."""
    service: Handle[ArticleService] = pages.services["salesforce_knowledge"]
    toolset = pages.toolsets["salesforce_knowledge"]

    async def listed(request: Request) -> Response:
        """What the mirror holds; without one, articles are found by searching."""
        text = request.query_params.get("title", "").strip()
        found, problem = [], None
        try:
            found = await service.run(lambda articles: articles.mirror.listed())
        except BedstoneError as error:
            problem = error.message
        chosen = [item for item in found if text.lower() in item.title.lower()]
        pager = Pager.of(request, len(chosen), PAGE)
        return pages.render(
            request,
            "articles.html",
            page="articles",
            articles=pager.cut(chosen),
            pages=pager,
            text=text,
            problem=problem,
        )

    async def article(request: Request) -> Response:
        reply = await toolset.call("get_article_by_id", {"article_id": request.path_params["id"]})
        if reply.is_error or not isinstance(reply.payload, dict):
            raise refusal(reply)
        return pages.render(
            request,
            "article.html",
            page="articles",
            article=reply.payload["article"],
            mirrored_at=reply.payload.get("mirrored_at"),
        )

    return [Route("/salesforce/articles", listed), Route("/salesforce/articles/{id}", article)]


class _Salesforce:
    """The pages of an org: the only one or the default at /salesforce, any by its name below /salesforce/orgs."""

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._schemas: Handle[SchemaService] = pages.services["salesforce_graph"]
        self._toolset = pages.toolsets["salesforce_graph"]

    def routes(self) -> list[BaseRoute]:
        return [
            Route(f"{beginning}{path}", endpoint, methods=[method])
            for beginning in ("/salesforce", "/salesforce/orgs/{org}")
            for method, path, endpoint in (
                ("GET", "", self.objects),
                ("GET", "/objects/{name}", self.object),
                ("GET", "/objects/{name}/relationships", self.relationships),
                ("GET", "/paths", self.paths),
                ("GET", "/soql", self.workbench),
                ("POST", "/soql/check", self.check),
                ("POST", "/soql/run", self.run),
                ("POST", "/soql/rows.csv", self.rows),
            )
        ]

    async def objects(self, request: Request) -> Response:
        orgs = await self._schemas.run(lambda schemas: [org.name for org in schemas.known()])
        if _org(request) is None and len(orgs) > 1:
            try:
                await self._org_schema(None)
            except BedstoneError:
                return self._render(request, "orgs.html", orgs=orgs)
        search, category = (request.query_params.get(name, "").strip() for name in ("search", "category"))
        found: Any = await self._called(request, "list-objects", **({"search": search} if search else {}))
        counts = Counter(row["category"] for row in found)
        rows = [row for row in found if not category or row["category"] == category]
        pages = Pager.of(request, len(rows), PAGE)
        return self._render(
            request,
            "salesforce.html",
            rows=pages.cut(rows),
            pages=pages,
            search=search,
            category=category,
            categories=[(name, counts[name]) for name in CATEGORIES if counts[name]],
            orgs=orgs,
        )

    async def object(self, request: Request) -> Response:
        from bedstone.web.diagram import neighbourhood  # noqa: PLC0415 - with the engine

        name = request.path_params["name"]
        org = await self._org_schema(_org(request))
        item = org.graph.get(name)
        if item is None:  # the tool says it best, with names that may have been meant
            raise refusal(await self._asked(request, "get-object", apiName=name))
        depth = 2 if request.query_params.get("depth") == "2" else 1
        text, kind = (request.query_params.get(key, "").strip() for key in ("fields", "type"))
        chosen = [field for field in item.fields if _has(field, text.lower()) and kind in ("", field.type)]
        pages = Pager.of(request, len(chosen), PAGE)
        return self._render(
            request,
            "object.html",
            item=item,
            picture=await to_thread.run_sync(neighbourhood, org, item.name, depth),
            depth=depth,
            fields=pages.cut(chosen),
            is_known=lambda other: org.graph.get(other) is not None,
            pages=pages,
            total=len(item.fields),
            text=text,
            kind=kind,
            types=sorted(Counter(field.type for field in item.fields).items()),
        )

    async def relationships(self, request: Request) -> Response:
        """Everything an object points to and that points to it."""
        org = await self._org_schema(_org(request))
        item = org.graph.get(request.path_params["name"])
        if item is None:
            raise HTTPException(404, f"There is no object called {request.path_params['name']!r}.")
        text = request.query_params.get("search", "").strip().lower()
        up = [(edge.parent, edge, "points to") for edge in org.graph.parents(item.name)]
        down = [(edge.child, edge, "is pointed to by") for edge in org.graph.children(item.name)]
        found = [row for row in (*up, *down) if text in row[0].lower() or text in row[1].field.name.lower()]
        pages = Pager.of(request, len(found), PAGE)
        return self._render(request, "relationships.html", item=item, rows=pages.cut(found), pages=pages, text=text)

    async def paths(self, request: Request) -> Response:
        from bedstone.web.diagram import paths_picture  # noqa: PLC0415 - with the engine

        source, target = (request.query_params.get(name, "").strip() for name in ("from", "to"))
        found: Any = None
        picture = problem = None
        if source and target:
            asked = {"sourceObjectApiName": source, "targetObjectApiName": target, "maxPaths": MOST_PATHS}
            try:
                found = await self._called(request, "explore-relationships", **asked)
                picture = paths_picture(found["paths"]) if found["paths"] else None
            except HTTPException as error:
                problem = error.detail
        return self._render(
            request, "paths.html", source=source, target=target, found=found, picture=picture, problem=problem
        )

    async def workbench(self, request: Request) -> Response:
        query = request.query_params.get("q", "SELECT Id, Name FROM Account ORDER BY Name LIMIT 20")
        return self._render(request, "soql.html", query=query)

    async def check(self, request: Request) -> Response:
        """What the validator says, while somebody types."""
        form = await form_of(request)
        self._pages.check_csrf(request, None)
        reply = await self._asked(request, "validate-soql", query=form.get("query", ""))
        problem = refusal(reply).detail if reply.is_error else None
        return self._pages.part("soql_check.html", answer=reply.payload, problem=problem)

    async def run(self, request: Request) -> Response:
        form = await form_of(request)
        self._pages.check_csrf(request, None)
        query, cursor = form.get("query", ""), form.get("cursor")
        more = {"cursor": cursor} if cursor else {}
        reply = await self._asked(request, "execute-soql", query=query, maxRows=PAGE, **more)
        if reply.is_error or not isinstance(reply.payload, dict):
            return self._pages.part("soql_rows.html", problem=refusal(reply).detail)
        names, rows = _table(reply.payload["records"], query, reply.payload["totalSize"])
        return self._pages.part(
            "soql_rows.html", problem=None, answer=reply.payload, rows=rows, names=names, is_first=not cursor
        )

    async def rows(self, request: Request) -> Response:
        """The same as CSV, up to a bearable number of rows; the file's name says if there are more."""
        form = await form_of(request)
        self._pages.check_csrf(request, form.get("csrf"))
        query = form.get("query", "")
        schemas = await self._schemas.open()
        records, total = await schemas.query_all(query, MOST_CSV, _org(request))
        names, rows = _table(records, query, total, all_children=True)
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows({key: _safe(value) for key, value in row.items()} for row in rows)
        name = f"rows-first-{MOST_CSV}-of-{total}.csv" if total > len(records) > 0 else "rows.csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text.getvalue(), media_type="text/csv", headers=headers)

    async def _org_schema(self, name: str | None) -> "OrgSchema":
        return await (await self._schemas.open()).org(name)

    def _render(self, request: Request, template: str, **context: Any) -> Response:
        """A page whose links stay with the org they are of."""
        org = _org(request)
        at = f"/salesforce/orgs/{quote(org, safe='')}" if org else "/salesforce"
        return self._pages.render(request, template, page="salesforce", at=at, org=org, **context)

    async def _called(self, request: Request, tool: str, **arguments: Any) -> Any:
        reply = await self._asked(request, tool, **arguments)
        if reply.is_error:
            raise refusal(reply)
        return reply.payload

    async def _asked(self, request: Request, tool: str, **arguments: Any) -> Reply:
        org = _org(request)
        return await self._toolset.call(tool, arguments | ({"orgId": org} if org else {}))


def _org(request: Request) -> str | None:
    return request.path_params.get("org")


def _table(
    records: list[dict[str, Any]], query: str, total: int, *, all_children: bool = False
) -> tuple[list[str], list[dict[str, Any]]]:
    """What a query found, as columns and rows."""
    from bedstone.salesforce.rows import column_names, counted, selected_columns, table_rows  # noqa: PLC0415 - parses

    rows = (table_rows(records, None) if all_children else table_rows(records)) or counted(query, total)
    return column_names(rows, selected_columns(query)), rows


def _has(field: "Field", text: str) -> bool:
    """Whether a field is called like that, or helps with it, or holds it as a value."""
    said = (field.name, field.label, field.help or "", *field.reference_to, *field.values)
    return not text or any(text in item.lower() for item in said)


def _safe(value: Any) -> Any:
    """A text that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
