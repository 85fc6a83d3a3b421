"""An org's schema to look at, ways between objects to see, and SOQL to try."""

import csv
import io
from collections import Counter
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.errors import BedstoneError
from bedstone.toolkit import Reply
from bedstone.toolsets.salesforce_graph.toolset import SalesforceGraphToolset
from bedstone.web.pages import HEADERS, Pager, Pages, form_of

if TYPE_CHECKING:
    from bedstone.salesforce.graph.model import Field

PAGE, MOST_CSV, MOST_PATHS = 100, 50_000, 6
CATEGORIES = ("standard", "custom", "external", "metadata_type", "platform_event", "big_object", "system")


def salesforce_routes(pages: Pages) -> list[BaseRoute]:
    """/salesforce and below; only what its toolsets can answer."""
    toolset = pages.toolsets.get("salesforce_graph")
    routes = _Salesforce(pages, toolset).routes() if isinstance(toolset, SalesforceGraphToolset) else []
    return [*_article_routes(pages), *routes]


def _article_routes(pages: Pages) -> list[BaseRoute]:
    toolset = pages.toolsets.get("salesforce_knowledge")
    if toolset is None:
        return []

    async def article(request: Request) -> Response:
        reply = await toolset.call("get_article_by_id", {"article_id": request.path_params["id"]})
        if reply.is_error or not isinstance(reply.payload, dict):
            return pages.render(request, "problem.html", page="salesforce", status=404, message=_message(reply))
        return pages.render(
            request,
            "article.html",
            page="salesforce",
            article=reply.payload["article"],
            mirrored_at=reply.payload.get("mirrored_at"),
        )

    return [Route("/salesforce/articles/{id}", article)]


class _Salesforce:
    def __init__(self, pages: Pages, toolset: SalesforceGraphToolset) -> None:
        self._pages = pages
        self._toolset = toolset

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/salesforce", self.objects),
            Route("/salesforce/objects/{name}", self.object),
            Route("/salesforce/objects/{name}/relationships", self.relationships),
            Route("/salesforce/paths", self.paths),
            Route("/salesforce/soql", self.workbench),
            Route("/salesforce/soql/check", self.check, methods=["POST"]),
            Route("/salesforce/soql/run", self.run, methods=["POST"]),
            Route("/salesforce/soql/rows.csv", self.rows, methods=["POST"]),
        ]

    async def objects(self, request: Request) -> Response:
        search, category = (request.query_params.get(name, "").strip() for name in ("search", "category"))
        reply = await self._toolset.call("list-objects", {"search": search} if search else {})
        if reply.is_error or not isinstance(reply.payload, list):
            return self._refused(request, reply)
        counts = Counter(row["category"] for row in reply.payload)
        rows = [row for row in reply.payload if not category or row["category"] == category]
        pages = Pager.of(request, len(rows), PAGE)
        return self._pages.render(
            request,
            "salesforce.html",
            page="salesforce",
            rows=pages.cut(rows),
            pages=pages,
            search=search,
            category=category,
            categories=[(name, counts[name]) for name in CATEGORIES if counts[name]],
            has_articles="salesforce_knowledge" in self._pages.toolsets,
        )

    async def object(self, request: Request) -> Response:
        from bedstone.web.graph_picture import neighbourhood  # noqa: PLC0415 - with the engine

        name = request.path_params["name"]
        org = await self._toolset.graph()
        item = org.graph.get(name)
        if item is None:  # the tool says it best, with names that may have been meant
            return self._refused(request, await self._toolset.call("get-object", {"apiName": name}))
        depth = 2 if request.query_params.get("depth") == "2" else 1
        text, kind = (request.query_params.get(key, "").strip() for key in ("fields", "type"))
        chosen = [field for field in item.fields if _has(field, text.lower()) and kind in ("", field.type)]
        pages = Pager.of(request, len(chosen), PAGE)
        return self._pages.render(
            request,
            "object.html",
            page="salesforce",
            item=item,
            picture=await to_thread.run_sync(neighbourhood, org, item.name, depth),
            depth=depth,
            fields=pages.cut(chosen),
            pages=pages,
            total=len(item.fields),
            text=text,
            kind=kind,
            types=sorted(Counter(field.type for field in item.fields).items()),
        )

    async def relationships(self, request: Request) -> Response:
        """Everything an object points to and that points to it."""
        org = await self._toolset.graph()
        item = org.graph.get(request.path_params["name"])
        if item is None:
            message = f"There is no object called {request.path_params['name']!r}."
            return self._pages.render(request, "problem.html", page="salesforce", status=404, message=message)
        text = request.query_params.get("search", "").strip().lower()
        up = [(edge.parent, edge, "points to") for edge in org.graph.parents(item.name)]
        down = [(edge.child, edge, "is pointed to by") for edge in org.graph.children(item.name)]
        found = [row for row in (*up, *down) if text in row[0].lower() or text in row[1].field.name.lower()]
        pages = Pager.of(request, len(found), PAGE)
        rows = pages.cut(found)
        return self._pages.render(
            request, "relationships.html", page="salesforce", item=item, rows=rows, pages=pages, text=text
        )

    async def paths(self, request: Request) -> Response:
        from bedstone.web.graph_picture import paths_picture  # noqa: PLC0415 - with the engine

        source, target = (request.query_params.get(name, "").strip() for name in ("from", "to"))
        found: Any = None
        picture = None
        problem = None
        if source and target:
            asked = {"sourceObjectApiName": source, "targetObjectApiName": target, "maxPaths": MOST_PATHS}
            reply = await self._toolset.call("explore-relationships", asked)
            if reply.is_error:
                problem = _message(reply)
            else:
                found = reply.payload
                assert isinstance(found, dict)
                picture = paths_picture(found["paths"]) if found["paths"] else None
        return self._pages.render(
            request,
            "paths.html",
            page="salesforce",
            source=source,
            target=target,
            found=found,
            picture=picture,
            problem=problem,
        )

    async def workbench(self, request: Request) -> Response:
        query = request.query_params.get("q", "SELECT Id, Name FROM Account ORDER BY Name LIMIT 20")
        return self._pages.render(request, "soql.html", page="salesforce", query=query)

    async def check(self, request: Request) -> Response:
        """What the validator says, while somebody types."""
        form = await form_of(request)
        self._pages.check_csrf(request, None)
        reply = await self._toolset.call("validate-soql", {"query": form.get("query", "")})
        answer = reply.payload if isinstance(reply.payload, dict) else {}
        return self._pages.part("soql_check.html", answer=answer, problem=_message(reply) if reply.is_error else None)

    async def run(self, request: Request) -> Response:
        form = await form_of(request)
        self._pages.check_csrf(request, None)
        cursor = form.get("cursor", "")
        query = form.get("query", "")
        asked = {"query": query, "maxRows": PAGE, **({"cursor": cursor} if cursor else {})}
        reply = await self._toolset.call("execute-soql", asked)
        if reply.is_error or not isinstance(reply.payload, dict):
            return self._pages.part("soql_rows.html", problem=_message(reply), answer=None)
        names, rows = _table(reply.payload["records"], query, reply.payload["totalSize"])
        return self._pages.part("soql_rows.html", problem=None, answer=reply.payload, rows=rows, names=names)

    async def rows(self, request: Request) -> Response:
        """The same as CSV, up to a bearable number of rows; the file's name says if there are more."""
        form = await form_of(request)
        self._pages.check_csrf(request, form.get("csrf"))
        query = form.get("query", "")
        try:
            records, total = await self._toolset.records(query, MOST_CSV)
        except BedstoneError as error:
            return self._pages.problem(request, error, page="salesforce")
        names, rows = _table(records, query, total)
        text = io.StringIO()
        writer = csv.DictWriter(text, names, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows({key: _safe(value) for key, value in row.items()} for row in rows)
        name = f"rows-first-{MOST_CSV}-of-{total}.csv" if total > len(records) > 0 else "rows.csv"
        headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text.getvalue(), media_type="text/csv", headers=headers)

    def _refused(self, request: Request, reply: Reply) -> Response:
        status = 404 if '"NOT_FOUND"' in reply.text else 400
        return self._pages.render(request, "problem.html", page="salesforce", status=status, message=_message(reply))


def _message(reply: Reply) -> str:
    error = reply.payload.get("error") if isinstance(reply.payload, dict) else None
    return str(error.get("message")) if isinstance(error, dict) else reply.text


def _table(records: list[dict[str, Any]], query: str, total: int) -> tuple[list[str], list[dict[str, Any]]]:
    """What a query found, as columns and rows."""
    from bedstone.salesforce.rows import column_names, counted, selected_columns, table_rows  # noqa: PLC0415 - parses

    rows = table_rows(records) or counted(query, total)
    return column_names(rows, selected_columns(query)), rows


def _has(field: "Field", text: str) -> bool:
    """Whether a field is called like that, or helps with it, or holds it as a value."""
    said = (field.name, field.label, field.help or "", *field.reference_to, *field.values)
    return not text or any(text in item.lower() for item in said)


def _safe(value: Any) -> Any:
    """A text that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
