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
    from bedstone.salesforce.questions.draft import QueryDraft
    from bedstone.salesforce.validation import Report

MAX_CHARACTERS = 100_000
MIN_BATCH_ROWS = 200
MAX_BATCH_ROWS = 2_000
MAX_PAGES = 10  # API calls for one answer
SIZE_NOTE = (
    f"The answer was cut to {{}} records at {MAX_CHARACTERS:,} characters. "
    "Pass nextCursor for the rest, or select fewer fields."
)


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
        from bedstone.services.schema.execution import age_note  # noqa: PLC0415 - with the engine

        report = await (await self._schemas.open()).validate(arguments.query, arguments.org_id)
        note = None if report.valid else age_note(report, (await self._org(arguments.org_id)).facts)
        return _result(report, note)

    @tool(
        "execute-soql",
        "Executes a SOQL query against Salesforce and returns the results.",
        title="Execute SOQL",
        open_world=True,
    )
    async def execute_soql(self, arguments: ExecuteSoql) -> QueryResult:
        """Read-only: SOQL cannot change anything. What is certainly wrong is not sent; a page at a time."""
        schemas = await self._schemas.open()
        known = await to_thread.run_sync(schemas.find_org, arguments.org_id)
        address, skip = _opened_cursor(arguments, known.name)
        notes: tuple[str, ...] = ()
        if address:
            page = await schemas.client(known.name).more(address)
        else:
            run = await schemas.query(arguments.query, known.name, _batch_rows(skip + arguments.max_rows))
            page, notes = run.page, run.notes
        rows = _Rows(known.name, arguments)
        rows.add(page, address, skip)
        while rows.following:
            rows.add(await schemas.client(known.name).more(rows.following), rows.following, rows.skip)
        return rows.result(page["totalSize"], notes)

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
        org = await self._org(arguments.org_id)
        draft = await to_thread.run_sync(org.interpreter.interpret, arguments.question)
        if draft is None or not draft.is_complete:
            raise _not_understood(draft)
        query = draft.soql()
        org.require_valid(query, "question")
        read = [f"{entry.path} {entry.operator} {entry.value} ({entry.source})" for entry in draft.filters]
        return Translated(
            soql=query,
            explanation=draft.explanation,
            confidence=draft.confidence,
            assumptions=[*read, *draft.assumptions],
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


def _not_understood(draft: "QueryDraft | None") -> InvalidInput:
    """The error for a question with words that no part of a query stands for."""
    if draft is None:
        message = "The question cannot be read with confidence: no object was made out. Name one, such as Account."
        return InvalidInput(message, parameter="question")
    words = ", ".join(draft.ungrounded)
    message = f"The question cannot be read with confidence: {words}. Say it in other words, or leave it out."
    return InvalidInput(message, parameter="question", notUnderstood=draft.ungrounded)


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


def _result(report: "Report", note: str | None) -> ValidationResult:
    from bedstone.toolsets.salesforce_graph.views import message  # noqa: PLC0415

    return ValidationResult(
        valid=report.valid,
        messages=[message(item) for item in report.messages],
        corrected_query=report.corrected,
        notes=[note] if note else None,
    )


class _Rows:
    """The records of one answer: page after page, as many as were asked for and as an answer can hold."""

    def __init__(self, org: str, arguments: ExecuteSoql) -> None:
        self._org = org
        self._query = arguments.query
        self._most = arguments.max_rows
        self._shown: list[dict[str, Any]] = []
        self._size = 0
        self._pages = 0
        self._is_cut = False
        self._cursor: str | None = None
        self.following: str | None = None  # the address of the page to add next
        self.skip = 0  # records of that page that were in an earlier answer

    def add(self, page: dict[str, Any], address: str, skip: int = 0) -> None:
        """Take the records of a page; `skip` of them were in an earlier answer."""
        self.following = None
        self._pages += 1
        self.skip = max(0, skip - len(page["records"]))
        for place, record in enumerate(page["records"][skip:], start=skip):
            row = _compact(record)
            self._size += len(json.dumps(row, ensure_ascii=False))
            self._is_cut = self._size > MAX_CHARACTERS and bool(self._shown)
            if self._is_cut or len(self._shown) == self._most:
                # The first page has no address of its own: it is asked for again.
                self._cursor = _made_cursor(self._org, address or self._query, place)
                return
            self._shown.append(row)
        following = page.get("nextRecordsUrl")
        if following and len(self._shown) < self._most and self._pages < MAX_PAGES:
            self.following = str(following)
        elif following:
            self._cursor = _made_cursor(self._org, str(following), self.skip)

    def result(self, total: int, notes: tuple[str, ...]) -> QueryResult:
        """Return the answer; it says why it is shorter than asked for."""
        more = list(notes)
        if self._is_cut:
            more.append(SIZE_NOTE.format(len(self._shown)))
        elif self._cursor is not None and len(self._shown) < self._most:
            more.append(f"The org sends small pages; {self._pages} were read. Pass nextCursor for the rest.")
        return QueryResult(
            total_size=total,
            done=self._cursor is None,
            records=self._shown,
            next_cursor=self._cursor,
            truncated=self._is_cut or None,
            notes=more or None,
        )


def _batch_rows(rows: int) -> int:
    """Return the batch size to ask for, which an org takes as a wish."""
    return min(max(rows, MIN_BATCH_ROWS), MAX_BATCH_ROWS)


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
