"""The SOQL workbench: write a query with completion and checks, run it, and take its rows along."""

import csv
import io
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute

from bedstone.errors import BedstoneError
from bedstone.web.forms import parse_form
from bedstone.web.frame import Pages
from bedstone.web.schema.base import SchemaPage, org_routes

if TYPE_CHECKING:
    from bedstone.salesforce.graph.model import ObjectSchema, SchemaGraph
    from bedstone.services.schema.service import KnownOrg, OrgSchema
    from bedstone.web.soql.check import Check
    from bedstone.web.soql.problems import Problem
    from bedstone.web.soql.table import Table

ROWS_PER_PAGE = 100
MAX_CSV_ROWS = 50_000
MAX_FIELDS = 100  # of an object at once; the filter finds the others
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run what follows
FIRST_OBJECT = "Account"


def soql_routes(pages: Pages) -> list[BaseRoute]:
    """Return the workbench of each org, and what its script asks for."""
    return SoqlPage(pages).routes()


@dataclass(frozen=True)
class Run:
    """The answer of an org."""

    table: "Table"
    total: int
    milliseconds: int
    cursor: str | None
    notes: list[str]
    at: float
    is_first: bool = True


class SoqlPage(SchemaPage):
    """The workbench. Every form works without a script and then returns the whole page."""

    key = "soql"

    def routes(self) -> list[BaseRoute]:
        """Return the pages with their addresses."""
        return org_routes(
            [
                ("GET", "/soql", self.show),
                ("GET", "/soql/complete", self.complete),
                ("GET", "/soql/fields", self.list_fields),
                ("POST", "/soql/check", self.check),
                ("POST", "/soql/format", self.format),
                ("POST", "/soql/run", self.run),
                ("POST", "/soql/rows.csv", self.download),
            ]
        )

    async def show(self, request: Request) -> Response:
        """Show the workbench with the query of the address."""
        return await self._render_page(request, request.query_params.get("q"))

    async def check(self, request: Request) -> Response:
        """Validate a query while one types; the fields are sent only for another object than the one shown."""
        form = await self._parse(request)
        if "x-part" not in request.headers:
            return await self._render_page(request, form["query"])
        known, org = await self._open(request)
        check = await self._check(form["query"], known, org)
        item = _find_object(form["query"], org.graph) if org is not None else None
        is_shown = item is not None and item.name != form.get("object")
        return self.pages.render_fragment(
            "soql_check.html", check=check, known=known, fields=_fields(item) if is_shown else None, at=self.at(request)
        )

    async def format(self, request: Request) -> Response:
        """Write a query with a clause per line."""
        from bedstone.salesforce.soql import SyntaxProblem, parse_soql  # noqa: PLC0415 - with the engine
        from bedstone.salesforce.soql.layout import lay_out  # noqa: PLC0415

        query = (await self._parse(request))["query"]
        try:
            text = await to_thread.run_sync(lambda: lay_out(parse_soql(query)))
        except SyntaxProblem as problem:
            if "x-part" in request.headers:
                raise HTTPException(
                    400, f"Only a query without syntax errors can be formatted. {problem.message}"
                ) from None
            text = query
        return PlainTextResponse(text) if "x-part" in request.headers else await self._render_page(request, text)

    async def complete(self, request: Request) -> Response:
        """Suggest how the query can go on at the caret."""
        from bedstone.salesforce.soql.completion import complete  # noqa: PLC0415 - with the engine

        text, at = request.query_params.get("q", ""), request.query_params.get("at", "")
        org = await self.org_schema(request)
        position = int(at) if at.isascii() and at.isdigit() and len(at) < 9 else len(text)  # noqa: PLR2004
        found = complete(text, position, org.graph)
        return self.pages.render_fragment("soql_complete.html", found=found)

    async def list_fields(self, request: Request) -> Response:
        """List the fields of an object that match a filter."""
        org = await self.org_schema(request)
        item = org.graph.get(request.query_params.get("object", ""))
        if item is None:
            raise HTTPException(404, "The schema has no such object.")
        fields = _fields(item, request.query_params.get("filter", "").strip())
        return self.pages.render_fragment("soql_fields.html", fields=fields, at=self.at(request), only_list=True)

    async def run(self, request: Request) -> Response:
        """Run a query, or return its next rows."""
        form = await self._parse(request)
        query, cursor = form["query"], form.get("cursor") or None
        run, problem = await self._run(request, query, cursor)
        if "x-part" not in request.headers:
            return await self._render_page(request, query, run=run, problem=problem)
        return self.pages.render_fragment("soql_rows.html", run=run, problem=problem, at=self.at(request))

    async def download(self, request: Request) -> Response:
        """Return the rows of a query as CSV; the name of the file says if there are more."""
        from bedstone.web.soql.problems import IMPORTED, Problem  # noqa: PLC0415

        query = (await self._parse(request))["query"]
        if not await self._has_org(request):
            return await self._render_page(request, query, problem=IMPORTED, status=400)
        schemas = await self.schemas.open()
        try:
            records, total = await schemas.query_all(query, MAX_CSV_ROWS, self.org_name(request))
        except BedstoneError as error:
            problem = Problem("The rows cannot be downloaded", error.message, "Change the query, and try again.")
            return await self._render_page(request, query, problem=problem, status=400)
        text = await to_thread.run_sync(_write_csv, records, query, total)
        name = f"rows-first-{MAX_CSV_ROWS}-of-{total}.csv" if total > len(records) > 0 else "rows.csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="text/csv", headers=headers)

    async def _parse(self, request: Request) -> dict[str, str]:
        """Return the fields of a form; browsers send line ends as two characters, and places count one."""
        form = await parse_form(request)
        self.pages.forms.check_csrf(request, form.get("csrf"))
        return form | {"query": form.get("query", "").replace("\r\n", "\n")}

    async def _open(self, request: Request) -> "tuple[KnownOrg, OrgSchema | None]":
        """Return the org of a page, and its schema if it is synced."""
        from bedstone.services.schema.errors import NotSynced  # noqa: PLC0415 - with the engine

        schemas = await self.schemas.open()
        known = await to_thread.run_sync(schemas.find_org, self.org_name(request))
        try:
            return known, await schemas.org(known.name)
        except NotSynced:
            return known, None

    async def _check(self, query: str, known: "KnownOrg", org: "OrgSchema | None") -> "Check":
        """Return what there is to say about a query."""
        from bedstone.web.soql.check import Check, describe_check  # noqa: PLC0415 - with the engine

        if org is None:
            return Check("warn", "Not checked: the schema is not synced yet")
        report = await (await self.schemas.open()).validate(query, known.name)
        return describe_check(query, report, org, is_imported=known.org is None)

    async def _has_org(self, request: Request) -> bool:
        """Return whether there is an org to ask; a schema from files has none."""
        schemas = await self.schemas.open()
        known = await to_thread.run_sync(schemas.find_org, self.org_name(request))
        return known.org is not None

    async def _run(self, request: Request, query: str, cursor: str | None) -> "tuple[Run | None, Problem | None]":
        from bedstone.web.soql.problems import IMPORTED, describe_problem  # noqa: PLC0415
        from bedstone.web.soql.table import build_table  # noqa: PLC0415 - with the engine

        if not await self._has_org(request):
            return None, IMPORTED
        begun = time.perf_counter()
        more = {"cursor": cursor} if cursor else {}
        reply = await self.call(request, "execute-soql", query=query, maxRows=ROWS_PER_PAGE, **more)
        took = round((time.perf_counter() - begun) * 1000)
        if reply.is_error or not isinstance(reply.payload, dict):
            return None, describe_problem(reply)
        answer: dict[str, Any] = reply.payload
        table = await to_thread.run_sync(build_table, answer["records"], query, answer["totalSize"])
        notes = [note for note in answer.get("notes") or [] if "nextCursor" not in note]  # the page has a button
        return Run(table, answer["totalSize"], took, answer.get("nextCursor"), notes, time.time(), not cursor), None

    async def _render_page(self, request: Request, query: str | None, *, status: int = 200, **result: Any) -> Response:
        """Render the workbench; without a default org, the orgs to choose from."""
        from bedstone.services.schema.errors import OrgNotFound  # noqa: PLC0415 - with the engine

        try:
            known, org = await self._open(request)
        except OrgNotFound:
            names = [known.name for known in await self.schemas.run(lambda schemas: schemas.known_orgs())]
            if self.org_name(request) is not None or len(names) < 2:  # noqa: PLR2004 - one is the default
                raise
            return self.render(request, "soql_orgs.html", names=names, query=query or "")
        if query is None:
            query = _first_query(org.graph) if org is not None else ""
        context = {
            "run": None,
            "problem": None,
            "query": query,
            "known": known,
            "check": await self._check(query, known, org),
            "fields": _fields(_find_object(query, org.graph)) if org is not None else None,
        }
        return self.render(request, "soql.html", status=status, **context | result)


@dataclass(frozen=True)
class Fields:
    """Fields of an object to choose from: name, detail, label and the text to insert of each."""

    object: str
    label: str
    total: int
    found: int
    rows: list[tuple[str, str, str, str]]


def _fields(item: "ObjectSchema | None", text: str = "") -> Fields | None:
    """Return the fields of an object whose name or label contains a text."""
    from bedstone.salesforce.soql.suggestions import order_fields, suggest_field, suggest_parent  # noqa: PLC0415

    if item is None:
        return None
    found = [
        entry
        for field in order_fields(item)
        for entry in (
            suggest_field(field),
            *([suggest_parent(field)] if field.relationship and field.reference_to else []),
        )
        if text.lower() in entry.name.lower() or text.lower() in entry.label.lower()
    ]
    rows = [(entry.name, entry.detail, entry.label, entry.insert) for entry in found[:MAX_FIELDS]]
    return Fields(item.name, item.label, len(item.fields), len(found), rows)


def _find_object(query: str, graph: "SchemaGraph") -> "ObjectSchema | None":
    from bedstone.salesforce.soql.completion import find_main_object  # noqa: PLC0415 - with the engine

    return find_main_object(query, graph)


def _first_query(graph: "SchemaGraph") -> str:
    """Return a query to begin with: of accounts, or of an object that this schema has."""
    item = graph.get(FIRST_OBJECT) or next((item for item in graph.objects.values() if item.queryable), None)
    if item is None:
        return ""
    name = item.name_field.name if item.name_field is not None else ""
    columns = f"Id, {name}" if name else "Id"
    order = f"\nORDER BY {name}" if name else ""
    return f"SELECT {columns}\nFROM {item.name}{order}\nLIMIT 20"


def _write_csv(records: list[dict[str, Any]], query: str, total: int) -> str:
    from bedstone.salesforce.rows import column_names, count_row, selected_columns, table_rows  # noqa: PLC0415 - parses

    rows = table_rows(records, None) or count_row(query, total)
    text = io.StringIO()
    names = column_names(rows, selected_columns(query))
    writer = csv.DictWriter(text, names, restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows({key: _escape_formula(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _escape_formula(value: Any) -> Any:
    """Quote a text that a spreadsheet would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_SIGNS) else value
