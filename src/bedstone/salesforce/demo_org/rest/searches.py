"""Routes that run SOSL: a statement, or parameters that are made into one."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bedstone.salesforce.demo_org.errors import ApiError
from bedstone.salesforce.demo_org.rest.messages import Request, Response
from bedstone.salesforce.demo_org.rest.routes import Routes, route
from bedstone.salesforce.demo_org.search import SNIPPET_LENGTH
from bedstone.salesforce.soql import SyntaxProblem, parse_soql, parse_sosl, write
from bedstone.salesforce.soql.quoting import search_term
from bedstone.salesforce.soql.tree import Query

NAME = re.compile(r"[\w.]+")
FIELD_GROUPS = frozenset({"NAME", "EMAIL", "PHONE"})
CATEGORY_OPERATORS = frozenset({"AT", "ABOVE", "BELOW", "ABOVE_OR_BELOW"})
DEFAULT_OBJECTS = ("Account", "Contact")


class SearchRoutes(Routes):
    """/search and /parameterizedSearch."""

    @route("GET", r"search")
    def _search(self, request: Request, base: str) -> Response:
        if "search-off" in self._state.faults:
            raise ApiError("SERVER_UNAVAILABLE", "Search is temporarily unavailable", status=503)
        return self._run(request.query.get("q", ""), base)

    @route("GET POST", r"parameterizedSearch")
    def _parameterized_search(self, request: Request, base: str) -> Response:
        is_body = request.method == "POST" and isinstance(request.body, dict)
        return self._run(_statement(request.body if is_body else _query_parameters(request)), base)

    def _run(self, statement: str, base: str) -> Response:
        self._state.check_knowledge(lambda: [item.name for item in parse_sosl(statement.strip()).returning])
        return Response(body=self._org.searches.run(statement, base))


def _query_parameters(request: Request) -> dict[str, Any]:
    """Return parameters of an address in the form of a body."""
    fields = {key: value.split(",") for key, value in request.query.items() if key == "fields"}
    return dict(request.query) | fields | {"sobjects": request.names("sobject")}


def _statement(parameters: Mapping[str, Any]) -> str:
    """Return the SOSL statement that parameters stand for."""
    words = str(parameters.get("q", ""))
    objects = [_returning(item, parameters) for item in parameters.get("sobjects") or DEFAULT_OBJECTS]
    group = str(parameters.get("in", "ALL")).upper()
    limit = f" LIMIT {int(parameters['overallLimit'])}" if parameters.get("overallLimit") else ""
    options = _categories(parameters.get("dataCategories") or []) + _snippet(parameters.get("snippet"))
    within = group if group in FIELD_GROUPS else "ALL"
    return f"FIND {{{search_term(words)}}} IN {within} FIELDS RETURNING {', '.join(objects)}{options}{limit}"


def _returning(item: Any, parameters: Mapping[str, Any]) -> str:
    """Return one object of RETURNING with its fields, condition and limit."""
    entry = item if isinstance(item, dict) else {"name": item}
    own, shared = entry.get("fields") or [], parameters.get("fields") or []
    if not all(NAME.fullmatch(str(name)) for name in (entry["name"], *own, *shared)):
        raise ApiError("INVALID_SEARCH", "Objects and fields are names")
    fields = ", ".join(own or shared or ["Id"])
    where = f" WHERE {_condition(entry)}" if entry.get("where") else ""
    limit = entry.get("limit") or parameters.get("defaultLimit")
    return f"{entry['name']}({fields}{where}{f' LIMIT {int(limit)}' if limit else ''})"


def _condition(entry: Mapping[str, Any]) -> str:
    """Return the condition of an entry, and reject anything that is more than a condition."""
    try:
        query = parse_soql(f"SELECT Id FROM {entry['name']} WHERE {entry['where']}")
    except SyntaxProblem as problem:
        raise ApiError("INVALID_SEARCH", f"The condition cannot be read: {problem.message}") from None
    if query != Query(query.columns, query.sources, query.where) or query.where is None:
        raise ApiError("INVALID_SEARCH", "The condition is not one condition")
    return write(query.where)


def _categories(items: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for item in items:
        names = [str(item["groupName"]), *map(str, item["categories"])]
        operator = str(item.get("operator", "AT")).upper()
        if not all(NAME.fullmatch(name) for name in names) or operator not in CATEGORY_OPERATORS:
            raise ApiError("INVALID_SEARCH", "Data categories are names")
        parts.append(f"{names[0]} {operator} ({', '.join(names[1:])})")
    return f" WITH DATA CATEGORY {' AND '.join(parts)}" if parts else ""


def _snippet(snippet: Any) -> str:
    if not snippet:
        return ""
    length = snippet.get("targetLength", SNIPPET_LENGTH) if isinstance(snippet, dict) else snippet
    return f" WITH SNIPPET (target_length={int(length)})"
