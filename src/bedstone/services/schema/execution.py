"""Run queries in an org: the local schema advises, the org decides."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from bedstone.salesforce.client import SalesforceError
from bedstone.salesforce.soql import SyntaxProblem, parse_soql
from bedstone.salesforce.validation import Report
from bedstone.services.schema.errors import InvalidQuery, NotSynced
from bedstone.services.schema.refresh import SchemaRefresh
from bedstone.services.schema.sync import SYNCED_AT

if TYPE_CHECKING:
    from bedstone.services.schema.service import KnownOrg, OrgSchema, SchemaService

# A name that the schema lacks may exist in the org by now.
UNKNOWN_NAMES = frozenset(
    {"OBJECT_UNKNOWN", "FIELD_UNKNOWN", "RELATIONSHIP_UNKNOWN", "CHILD_UNKNOWN", "HALLUCINATED_ENTITY"}
    | {"TYPEOF_TYPE", "SCOPE_UNKNOWN", "FIELDS_EMPTY"}
)
# What follows from the type and the flags of a field, which change rarely: trusted while the schema is fresh.
FIELD_FACTS = frozenset(
    {"LITERAL_QUOTED", "LITERAL_UNQUOTED", "LITERAL_TYPE", "OPERATOR_TYPE", "DATE_FN_TYPE"}
    | {"NOT_FILTERABLE", "NOT_SORTABLE", "NOT_GROUPABLE", "AGGREGATE_TYPE", "FUNCTION_TYPE", "SEMIJOIN_TARGET"}
    | {"POLYMORPHIC_FIELD", "TYPEOF_NOT_POLYMORPHIC", "OBJECT_NOT_QUERYABLE"}
)
FRESH = timedelta(hours=24)
# The org's codes for names that it does not have.
NOT_IN_ORG = frozenset({"INVALID_FIELD", "INVALID_TYPE"})
TOLD = frozenset({"PICKLIST_VALUE", "ID_WRONG_OBJECT"})  # warnings that explain an empty answer

HINT = "The schema may have changed since it was synced: run `bedstone salesforce sync-schema`."


@dataclass(frozen=True)
class QueryRun:
    """The first page of a query, and what to know about it."""

    page: dict[str, Any]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Check:
    """A query with the schema it was checked against."""

    schema: "OrgSchema"
    report: Report

    @property
    def doubts(self) -> frozenset[str]:
        """The errors that another describe may refute."""
        return doubtful_codes(self.schema)


class QueryRunner:
    """Runs the queries of one service. Above `max_share` of the org's daily API calls, nothing is described."""

    def __init__(self, schemas: "SchemaService", *, writes: bool = True, max_share: float = 1.0) -> None:
        self._schemas = schemas
        self._max_share = max_share
        self._refresh = SchemaRefresh(writes=writes)

    async def run(self, soql: str, known: "KnownOrg", batch: int | None = None) -> QueryRun:
        """Return the first page of a query; raise `InvalidQuery` if it is certain that the org would not run it.

        Names that the schema lacks are described in the org first. If they stay unknown, the org answers.
        """
        check = await self._check(soql, known)
        if not check.report.valid:
            _raise_unless_doubtful(check.report, check.doubts if known.org is not None else frozenset())
            check = await self._check_again(soql, check, known)
            _raise_unless_doubtful(check.report, UNKNOWN_NAMES)
        try:
            page = await self._schemas.client(known.name).query(soql, batch=batch)
        except SalesforceError as error:
            raise await self._explain(error, soql, check, known) from None
        return QueryRun(page, tuple(item.message for item in check.report.messages if item.code in TOLD))

    async def _check(self, soql: str, known: "KnownOrg") -> _Check:
        try:
            schema = await self._schemas.org(known.name)
        except NotSynced:
            if known.org is None:
                raise
            schema = await to_thread.run_sync(self._schemas.load_unsynced, known)
        check = _Check(schema, await to_thread.run_sync(schema.validate, soql))
        is_partial = not schema.facts.get(SYNCED_AT)
        has_gaps = any(item.code == "SCHEMA_UNKNOWN" for item in check.report.messages)
        return await self._check_again(soql, check, known) if is_partial and has_gaps and check.report.valid else check

    async def _check_again(self, soql: str, check: _Check, known: "KnownOrg") -> _Check:
        """Describe the objects of a query, and check it against what the org has now."""
        client, before = self._schemas.client(known.name), check.schema.graph
        if client.usage is not None and client.usage.share >= self._max_share:
            return check
        try:
            query = parse_soql(soql)
        except SyntaxProblem:  # of what an org does not accept, nothing is looked up
            return check
        graph = await self._refresh.of_query(query, before, known, client)
        if graph is before:
            return check
        schema = self._schemas.schema_of(known, check.schema.facts, graph)
        return _Check(schema, await to_thread.run_sync(schema.validate, soql))

    async def _explain(
        self, error: SalesforceError, soql: str, check: _Check, known: "KnownOrg"
    ) -> SalesforceError | InvalidQuery:
        """Return the org's error, with what the schema says about the query."""
        answer = error.details.get("details")
        if type(error) is not SalesforceError or answer is None:
            return error
        if check.report.valid and answer.get("errorCode") in NOT_IN_ORG:
            check = await self._check_again(soql, check, known)
        if not check.report.valid:
            return InvalidQuery.of(check.report, "query", salesforce=answer)
        return SalesforceError(error.message, details={**answer, "hint": HINT})


def doubtful_codes(schema: "OrgSchema") -> frozenset[str]:
    """Return the codes of errors that the org may not confirm: with only these, a query is sent."""
    return UNKNOWN_NAMES if _is_fresh(schema) else UNKNOWN_NAMES | FIELD_FACTS


def age_note(report: Report, facts: Mapping[str, str]) -> str | None:
    """Return how old the schema is, if a report is about names that it lacks."""
    unknown = dict.fromkeys(
        item.original for item in report.messages if item.type == "error" and item.code in UNKNOWN_NAMES
    )
    if not unknown:
        return None
    names = ", ".join(f'"{name}"' for name in unknown if name) or "A name"
    when = facts.get(SYNCED_AT)
    return f"{names}: unknown in the synced schema (synced at {when}). If the org has it by now, execute-soql finds it."


def _raise_unless_doubtful(report: Report, doubts: frozenset[str]) -> None:
    """Raise `InvalidQuery` if a report has an error that no describe can refute."""
    if any(item.type == "error" and item.code not in doubts for item in report.messages):
        raise InvalidQuery.of(report, "query")


def _is_fresh(schema: "OrgSchema") -> bool:
    synced = schema.facts.get(SYNCED_AT)
    return bool(synced) and datetime.now(UTC) - datetime.fromisoformat(str(synced)) < FRESH
