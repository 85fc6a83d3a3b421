"""An org's schema to look at, ways between objects to see, and SOQL to try."""

import csv
import io
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bedstone.salesforce.rows import column_names, table_rows
from bedstone.toolkit import Reply
from bedstone.toolsets.salesforce_graph.toolset import SalesforceGraphToolset
from bedstone.web.pages import HEADERS, Pages, form_of, whole

PAGE, MOST_CSV, MOST_PATHS = 100, 2_000, 6


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
            Route("/salesforce/paths", self.paths),
            Route("/salesforce/soql", self.workbench),
            Route("/salesforce/soql/check", self.check, methods=["POST"]),
            Route("/salesforce/soql/run", self.run, methods=["POST"]),
            Route("/salesforce/soql/rows.csv", self.rows, methods=["POST"]),
        ]

    async def objects(self, request: Request) -> Response:
        search, category = (request.query_params.get(name, "").strip() for name in ("search", "category"))
        start = whole(request.query_params.get("start", "0"), 0)
        asked = {"search": search, "category": category or None}
        reply = await self._toolset.call("list-objects", {key: value for key, value in asked.items() if value})
        if reply.is_error:
            return self._refused(request, reply)
        rows = reply.payload if isinstance(reply.payload, list) else []
        return self._pages.render(
            request,
            "salesforce.html",
            page="salesforce",
            rows=rows[start : start + PAGE],
            total=len(rows),
            start=start,
            following=start + PAGE if start + PAGE < len(rows) else None,
            before=max(0, start - PAGE) if start else None,
            search=search,
            category=category,
            categories=("standard", "custom", "external", "metadata_type", "platform_event", "big_object", "system"),
        )

    async def object(self, request: Request) -> Response:
        from bedstone.web.graph_picture import neighbourhood  # noqa: PLC0415 - with the engine

        name = request.path_params["name"]
        reply = await self._toolset.call("get-object", {"apiName": name})
        if reply.is_error or not isinstance(reply.payload, dict):
            return self._refused(request, reply)
        depth = 2 if request.query_params.get("depth") == "2" else 1
        org = await self._toolset.graph()
        real = reply.payload["object"]["apiName"]
        picture = await to_thread.run_sync(neighbourhood, org, real, depth)
        return self._pages.render(
            request, "object.html", page="salesforce", details=reply.payload, picture=picture, depth=depth
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
        reply = await self._toolset.call("validate-soql", {"query": str(form.get("query", ""))})
        answer = reply.payload if isinstance(reply.payload, dict) else {}
        return self._pages.part("soql_check.html", answer=answer, problem=_message(reply) if reply.is_error else None)

    async def run(self, request: Request) -> Response:
        form = await form_of(request)
        self._pages.check_csrf(request, None)
        cursor = str(form.get("cursor", ""))
        asked = {"query": str(form.get("query", "")), "maxRows": PAGE, **({"cursor": cursor} if cursor else {})}
        reply = await self._toolset.call("execute-soql", asked)
        if reply.is_error or not isinstance(reply.payload, dict):
            return self._pages.part("soql_rows.html", problem=_message(reply), answer=None)
        rows = table_rows(reply.payload["records"])
        names = column_names(rows)
        return self._pages.part("soql_rows.html", problem=None, answer=reply.payload, rows=rows, names=names)

    async def rows(self, request: Request) -> Response:
        """The same as CSV, up to a bearable number of rows."""
        form = await form_of(request)
        self._pages.check_csrf(request, str(form.get("csrf", "")))
        reply = await self._toolset.call("execute-soql", {"query": str(form.get("query", "")), "maxRows": MOST_CSV})
        if reply.is_error or not isinstance(reply.payload, dict):
            return self._refused(request, reply)
        rows = table_rows(reply.payload["records"])
        text = io.StringIO()
        writer = csv.DictWriter(text, column_names(rows), restval="")
        writer.writeheader()
        writer.writerows({key: _safe(value) for key, value in row.items()} for row in rows)
        headers = {**HEADERS, "Content-Disposition": 'attachment; filename="rows.csv"'}
        return Response(text.getvalue(), media_type="text/csv", headers=headers)

    def _refused(self, request: Request, reply: Reply) -> Response:
        status = 404 if '"NOT_FOUND"' in reply.text else 400
        return self._pages.render(request, "problem.html", page="salesforce", status=status, message=_message(reply))


def _message(reply: Reply) -> str:
    error = reply.payload.get("error") if isinstance(reply.payload, dict) else None
    return str(error.get("message")) if isinstance(error, dict) else reply.text


def _safe(value: Any) -> Any:
    """A text that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
