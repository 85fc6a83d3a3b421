"""Routes that run SOQL, and that describe the columns of a query."""

import re
from collections.abc import Iterator
from typing import Any

from bedstone.salesforce.demo_org.errors import ApiError
from bedstone.salesforce.demo_org.faults import SMALL_BATCH
from bedstone.salesforce.demo_org.query.shapes import SelectedColumn
from bedstone.salesforce.demo_org.rest.messages import Request, Response
from bedstone.salesforce.demo_org.rest.routes import Routes, route
from bedstone.salesforce.demo_org.schema import NUMBER_TYPES, TEXT_TYPES
from bedstone.salesforce.soql import parse_soql
from bedstone.salesforce.soql.tree import And, Condition, Membership, Not, Or, Query, SemiJoin

MIN_BATCH = 200
MAX_BATCH = 2_000
BATCH_HEADER = re.compile(r"batchSize=(\d+)")
# Objects of the Tooling API that clients ask for and that are always empty here.
EMPTY_OBJECTS = re.compile(
    r"\bFROM\s+(SandboxProcess|ScratchOrgInfo|ApexTestResult|DebugLevel|TraceFlag)\b", re.IGNORECASE
)


class QueryRoutes(Routes):
    """/query, /queryAll and /tooling/query."""

    @route("GET", r"query|queryAll")
    def _query(self, request: Request, base: str) -> Response:
        statement = request.query.get("q")
        if not statement:
            raise ApiError("MALFORMED_QUERY", "A query string has to be specified")
        self._state.check_knowledge(lambda: _source_names(parse_soql(statement.strip())))
        if request.query.get("columns") == "true":
            return Response(body=self._describe_columns(statement, base))
        is_all = request.path.rstrip("/").endswith("queryAll")
        return Response(body=self._org.queries.run(statement, base, all_rows=is_all, batch=self._batch_size(request)))

    def _batch_size(self, request: Request) -> int | None:
        if "small-batches" in self._state.faults:
            return SMALL_BATCH
        found = BATCH_HEADER.search(request.headers.get("sforce-query-options", ""))
        return min(max(int(found[1]), MIN_BATCH), MAX_BATCH) if found else None

    @route("GET", r"(?:tooling/)?query/(?P<locator>[\w-]+)")
    def _more(self, request: Request, base: str, locator: str) -> Response:
        return Response(body=self._org.queries.more(locator, base))

    def _describe_columns(self, statement: str, base: str) -> dict[str, Any]:
        """Describe the columns of a query, which the sf command asks for."""
        selection = self._org.queries.describe(statement, base)
        return {
            "columnMetadata": [_column_metadata(column) for column in selection.columns],
            "entityName": "AggregateResult" if selection.is_aggregate else selection.object.name,
            "groupBy": selection.is_aggregate,
            "idSelected": any(column.name == "Id" for column in selection.columns),
            "keyPrefix": None if selection.is_aggregate else selection.object.prefix,
        }

    @route("GET", r"tooling/query")
    def _tooling_query(self, request: Request, base: str) -> Response:
        statement = request.query.get("q", "")
        if EMPTY_OBJECTS.search(statement):
            empty = {"size": 0, "totalSize": 0, "done": True, "queryLocator": None, "entityTypeName": None}
            return Response(body=empty | {"records": []})
        answer = self._org.queries.run(statement, base)
        return Response(body={"size": len(answer["records"]), "queryLocator": None, "entityTypeName": None} | answer)


def _source_names(query: Query) -> Iterator[str]:
    """Yield what a query and its subqueries name after FROM."""
    yield query.sources[0].name
    for column in query.columns:
        if isinstance(column.expression, Query):
            yield from _source_names(column.expression)
    yield from _semi_join_names(query.where)


def _semi_join_names(condition: Condition | None) -> Iterator[str]:
    match condition:
        case And(terms) | Or(terms):
            for term in terms:
                yield from _semi_join_names(term)
        case Not(term):
            yield from _semi_join_names(term)
        case Membership(values=SemiJoin() as inner):
            yield inner.sources[0].name


def _column_metadata(column: SelectedColumn) -> dict[str, Any]:
    item = column.type
    is_writable = item is not None and not item.read_only
    kind = item.type if item is not None else "string"
    return {
        "aggregate": column.is_child,
        "apexType": None,
        "booleanType": kind == "boolean",
        "columnName": column.name,
        "custom": column.name.endswith("__c"),
        "displayName": column.name,
        "foreignKeyName": None,
        "insertable": is_writable,
        "joinColumns": [_column_metadata(inner) for inner in column.inner],
        "numberType": kind in NUMBER_TYPES,
        "textType": kind in TEXT_TYPES - {"multipicklist", "combobox"},
        "updatable": is_writable,
    }
