"""The org's /query: one statement in, pages of records out."""

import json
import secrets
import time

from bedstone.salesforce.demo_org.database import Database
from bedstone.salesforce.demo_org.errors import ApiError, malformed_query
from bedstone.salesforce.demo_org.query.aggregates import AggregatePlan
from bedstone.salesforce.demo_org.query.checks import is_aggregate
from bedstone.salesforce.demo_org.query.clauses import Clauses
from bedstone.salesforce.demo_org.query.plan import RecordPlan
from bedstone.salesforce.demo_org.query.shapes import Record, Selection
from bedstone.salesforce.soql import SyntaxProblem, parse_soql

BATCH_SIZE = 2_000
CURSOR_SECONDS = 2 * 24 * 3600


class QueryEngine:
    """Runs SOQL; `base` is the path of the API version, which every address in an answer begins with."""

    def __init__(self, database: Database, *, batch: int = BATCH_SIZE) -> None:
        self._database = database
        self._batch = batch

    def run(self, statement: str, base: str, *, all_rows: bool = False, batch: int | None = None) -> Record:
        """Return the first page of an answer."""
        clauses = self._parse(statement, all_rows=all_rows)
        if is_aggregate(clauses.query):
            return AggregatePlan(clauses).run()
        return self._first_page(RecordPlan(clauses, base), clauses, statement.strip(), batch or self._batch, base)

    def describe(self, statement: str, base: str) -> Selection:
        """Return the columns a statement selects, without its rows."""
        clauses = self._parse(statement)
        is_grouped = is_aggregate(clauses.query)
        plan = AggregatePlan(clauses) if is_grouped else RecordPlan(clauses, base)
        return Selection(clauses.scope.root, plan.columns(), is_grouped)

    def more(self, locator: str, base: str) -> Record:
        """Return a further page."""
        name, _, start = locator.partition("-")
        rows = self._database.rows("SELECT statement, ids, made FROM _cursor WHERE locator = ?", (name,))
        if not rows or not start.isdigit() or rows[0][2] < time.time() - CURSOR_SECONDS:
            raise ApiError("INVALID_QUERY_LOCATOR", "invalid query locator")
        statement, saved, _ = rows[0]
        cursor = json.loads(saved)
        ids, first, last = cursor["ids"], int(start), int(start) + cursor["batch"]
        plan = RecordPlan(self._parse(statement, all_rows=cursor["all"]), base)
        page: Record = {"totalSize": len(ids), "done": last >= len(ids)}
        if last < len(ids):
            page["nextRecordsUrl"] = f"{base}/query/{name}-{last}"
        return page | {"records": plan.records_by_id(ids[first:last])}

    def _parse(self, statement: str, *, all_rows: bool = False) -> Clauses:
        try:
            query = parse_soql(statement.strip())
        except SyntaxProblem as problem:
            raise _translate(problem) from None
        return Clauses.of(self._database, query, all_rows=all_rows)

    def _first_page(self, plan: RecordPlan, clauses: Clauses, statement: str, batch: int, base: str) -> Record:
        records = plan.records(batch + 1)
        if len(records) <= batch:
            return {"totalSize": len(records), "done": True, "records": records}
        ids = plan.ids()
        locator = f"01g{secrets.token_hex(7)}AAA"
        cursor = json.dumps({"ids": ids, "batch": batch, "all": clauses.all_rows})
        self._database.save_cursor(locator, statement, cursor, time.time())
        next_url = f"{base}/query/{locator}-{batch}"
        return {"totalSize": len(ids), "done": False, "nextRecordsUrl": next_url, "records": records[:batch]}


def _translate(problem: SyntaxProblem) -> ApiError:
    """Return a problem of our parser in the words of an org."""
    if problem.found == ":":
        return malformed_query("Bind variables only allowed in Apex code", problem.position)
    if problem.expected == '")"' and problem.found:
        return malformed_query(f"expecting a right parentheses, found '{problem.found}'", problem.position)
    return malformed_query(f"unexpected token: '{problem.found or '<EOF>'}'", problem.position)
