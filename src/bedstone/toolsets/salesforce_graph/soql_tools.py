"""Tools about SOQL: write it, check it, run it; and records to try it on."""

import base64
import json
import re
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from bedstone.errors import InvalidInput
from bedstone.toolkit import tool
from bedstone.toolsets.salesforce_graph.base import GraphTools, object_of
from bedstone.toolsets.salesforce_graph.contract import (
    AntiPattern,
    AntiPatterns,
    DetectAntiPatterns,
    ExecuteSoql,
    GenerateSamples,
    GenerateSoql,
    QueryResult,
    SampleData,
    ToSoql,
    Translated,
    ValidateSoql,
    ValidationResult,
)

if TYPE_CHECKING:
    from bedstone.salesforce.validation import Report

MAX_CHARACTERS = 100_000
PAGE_ROWS = 200


class SoqlTools(GraphTools):
    """Queries."""

    @tool("generate-soql", "Generates a SOQL query for a Salesforce object.", title="Generate SOQL")
    async def generate_soql(self, arguments: GenerateSoql) -> str:
        """A query that validates, or an error that names what does not."""
        from bedstone.salesforce.graph.columns import build_select, default_columns  # noqa: PLC0415 - with the engine

        org = await self._org(arguments.org_id)
        item = object_of(org, arguments.object_api_name)
        columns = arguments.fields or default_columns(item)
        clauses = [_where(arguments.where_clause, item.name)] if arguments.where_clause else []
        if arguments.limit is not None:
            clauses.append(f"LIMIT {arguments.limit}")
        for column in columns:
            if not column.replace(".", "").replace("_", "").isalnum():
                raise InvalidInput(f"{column!r} is not a field", parameter="fields")
        query = build_select(columns, item.name, clauses)
        org.require_valid(query, "fields" if arguments.fields else "whereClause")
        return query

    @tool(
        "validate-soql",
        "Validates a SOQL query against the schema, active picklist values, and aggregation rules.",
        title="Validate SOQL",
    )
    async def validate_soql(self, arguments: ValidateSoql) -> ValidationResult:
        """Every clause against the schema; nothing is run."""
        return _result(await (await self._schemas.open()).validate(arguments.query, arguments.org_id))

    @tool(
        "execute-soql",
        "Executes a SOQL query against Salesforce and returns the results.",
        title="Execute SOQL",
        open_world=True,
    )
    async def execute_soql(self, arguments: ExecuteSoql) -> QueryResult:
        """Read-only: SOQL cannot change anything. Validated first, a page at a time."""
        org = await self._org(arguments.org_id)
        address, skip = _opened_cursor(arguments, org.name)
        if address:
            page = await self._schemas.get().client(org.name).more(address)
        else:
            page = await self._schemas.get().query(arguments.query, org, PAGE_ROWS)
        return _page(page, org.name, address, skip, arguments)

    @tool("generate-sample-data", "Generates sample data for a Salesforce object.", title="Generate sample data")
    async def generate_samples(self, arguments: GenerateSamples) -> SampleData:
        """Records that are valid against the schema; the same for the same seed."""
        from bedstone.salesforce.samples import SampleMaker  # noqa: PLC0415

        org = await self._org(arguments.org_id)
        item = object_of(org, arguments.object_api_name)
        maker = SampleMaker(org.graph, arguments.seed)
        made = await to_thread.run_sync(lambda: maker.make(item, arguments.count, related=arguments.include_related))
        return SampleData(object=made.object, records=made.records, related=made.related)

    # Additions

    @tool(
        "natural-language-to-soql",
        "Writes a SOQL query for a question in plain English; refuses rather than guesses.",
        title="Question to SOQL",
    )
    async def to_soql(self, arguments: ToSoql) -> Translated:
        """By rules, validated; with what was assumed."""
        from bedstone.salesforce.questions.interpreter import MIN_CONFIDENCE  # noqa: PLC0415 - with the engine

        org = await self._org(arguments.org_id)
        draft = await to_thread.run_sync(org.interpreter.interpret, arguments.question)
        if draft is None or draft.confidence < MIN_CONFIDENCE:
            unknown = ", ".join(draft.ungrounded) if draft is not None else "no object was made out"
            raise InvalidInput(f"The question cannot be read with confidence: {unknown}.", parameter="question")
        query = draft.soql()
        org.require_valid(query, "question")
        read = [f"{entry.path} {entry.operator} {entry.value} ({entry.source})" for entry in draft.filters]
        ignored = [f"not understood and left out: {word}" for word in draft.ungrounded]
        return Translated(
            soql=query,
            explanation=draft.explanation,
            confidence=draft.confidence,
            assumptions=[*read, *draft.assumptions, *ignored],
        )

    @tool(
        "detect-anti-patterns",
        "Looks at a SOQL query for what makes it slow, brittle or misleading.",
        title="Detect anti-patterns",
    )
    async def anti_patterns(self, arguments: DetectAntiPatterns) -> AntiPatterns:
        """Warnings of the validator, and some of the query's shape."""
        from bedstone.salesforce.validation.advice import anti_patterns  # noqa: PLC0415 - with the engine

        org = await self._org(arguments.org_id)
        report = await to_thread.run_sync(org.require_valid, arguments.query)
        found = anti_patterns(arguments.query, report, org.graph)
        return AntiPatterns(
            patterns=[AntiPattern(pattern=item.name, message=item.message, severity=item.severity) for item in found]
        )


def _where(clause: str, name: str) -> str:
    """Parse the condition of a caller and write it anew; never paste it."""
    from bedstone.salesforce.soql import SyntaxProblem, parse_soql, write  # noqa: PLC0415
    from bedstone.salesforce.soql.tree import Query  # noqa: PLC0415

    text = clause.strip()
    if text.lower().startswith("where "):
        text = text[6:]
    try:
        query = parse_soql(f"SELECT Id FROM {name} WHERE {text}")
    except SyntaxProblem as problem:
        raise InvalidInput(f"whereClause cannot be read: {problem.message}", parameter="whereClause") from None
    if query != Query(query.columns, query.sources, query.where) or query.where is None:
        raise InvalidInput("whereClause holds more than a condition", parameter="whereClause")
    return f"WHERE {write(query.where)}"


def _result(report: "Report") -> ValidationResult:
    from bedstone.toolsets.salesforce_graph.views import message  # noqa: PLC0415

    return ValidationResult(
        valid=report.valid,
        messages=[message(item) for item in report.messages],
        corrected_query=report.corrected,
    )


def _page(page: dict[str, Any], org: str, address: str, skip: int, arguments: ExecuteSoql) -> QueryResult:
    """Some records of what Salesforce sent, as many as are bearable."""
    most = arguments.max_rows
    rows = [_compact(row) for row in page["records"][skip:]]
    shown: list[dict[str, Any]] = []
    size = 0
    for row in rows[:most]:
        size += len(json.dumps(row, ensure_ascii=False))
        if size > MAX_CHARACTERS and shown:
            break
        shown.append(row)
    following = page.get("nextRecordsUrl")
    rest = len(rows) - len(shown)
    cursor = None
    if rest:  # the first page has no address of its own: it is asked for again
        cursor = _made_cursor(org, address or arguments.query, skip + len(shown))
    elif following:
        cursor = _made_cursor(org, str(following), 0)
    return QueryResult(
        total_size=page["totalSize"],
        done=cursor is None,
        records=shown,
        next_cursor=cursor,
        truncated=True if rest and len(shown) < most else None,
    )


def _compact(record: Any) -> Any:
    """A record without the addresses Salesforce adds."""
    if isinstance(record, dict):
        return {key: _compact(value) for key, value in record.items() if key != "attributes"}
    return [_compact(item) for item in record] if isinstance(record, list) else record


def _made_cursor(org: str, address: str, skip: int) -> str:
    return base64.urlsafe_b64encode(json.dumps([org, address, skip]).encode()).decode()


def _opened_cursor(arguments: ExecuteSoql, org: str) -> tuple[str, int]:
    """The address of a page, or none for the first one; and how many of its records were shown."""
    if arguments.cursor is None:
        return "", 0
    try:
        name, where, skip = json.loads(base64.urlsafe_b64decode(arguments.cursor.encode()))
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput("Invalid cursor. Pass the nextCursor of an earlier answer.", parameter="cursor") from None
    if name == org and isinstance(skip, int) and skip >= 0 and isinstance(where, str):
        if where == arguments.query:
            return "", skip
        if re.fullmatch(r"/services/data/v\d+\.0/query/[\w-]+", where):
            return where, skip
    raise InvalidInput("Invalid cursor: it belongs to another query.", parameter="cursor")
