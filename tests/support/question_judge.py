"""Judge questions by running the expected query and ours on the demo org, and comparing what they find."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from bedstone.salesforce.demo_org.dates import Calendar
from bedstone.salesforce.demo_org.describe import describe
from bedstone.salesforce.demo_org.errors import ApiError
from bedstone.salesforce.demo_org.org import DemoOrg, open_org
from bedstone.salesforce.graph.describes import from_describe
from bedstone.salesforce.graph.model import SchemaGraph
from bedstone.salesforce.graph.object_names import ObjectNames
from bedstone.salesforce.questions.grounding import Grounder
from bedstone.salesforce.questions.interpreter import Interpreter
from bedstone.salesforce.soql import parse_soql, write
from bedstone.salesforce.soql.tree import Query

BASE = "/services/data/v65.0"
NOW = datetime(2026, 6, 15, 18, tzinfo=UTC)
MAX_NAMES = 10_000
Outcome = Literal["right", "wrong", "refused"]


@dataclass(frozen=True)
class Judgement:
    """What became of one question; `soql` is our query, or the words that were not understood."""

    question: str
    outcome: Outcome
    soql: str
    expected: str


@contextmanager
def a_judge(folder: Path) -> Iterator["Judge"]:
    """Yield a judge over a fresh demo org whose clock stands where its records end."""
    org = open_org(folder)
    org.use_calendar(Calendar(now=lambda: NOW))
    try:
        yield Judge(org)
    finally:
        org.close()


class Judge:
    """Interprets questions against the schema of a demo org, and runs queries there."""

    def __init__(self, org: DemoOrg) -> None:
        self._org = org
        self.graph = SchemaGraph.of(
            from_describe(describe(org.schema, item, BASE))
            for item in org.schema.objects.values()
            if item.name != "Name"
        )
        accounts = self.rows(f"SELECT Name FROM Account LIMIT {MAX_NAMES}")
        names = ObjectNames(self.graph)
        self.grounder = Grounder(self.graph, names, [row["Name"] for row in accounts])
        self.interpreter = Interpreter(self.graph, names, self.grounder)

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Return every row of a query."""
        page = self._org.queries.run(statement, BASE, batch=50_000)
        found: list[dict[str, Any]] = page["records"]
        return found

    def judge(self, question: str, expected: str | None) -> Judgement:
        """Compare our reading of a question with the expected query; None expects a refusal."""
        draft = self.interpreter.interpret(question)
        if draft is None or not draft.is_complete:
            unknown = ", ".join(draft.ungrounded) if draft is not None else "no object"
            return Judgement(
                question, "right" if expected is None else "refused", f"not understood: {unknown}", str(expected)
            )
        soql = draft.soql()
        is_right = expected is not None and self._is_same(parse_soql(expected), expected, soql)
        return Judgement(question, "right" if is_right else "wrong", soql, str(expected))

    def _is_same(self, gold: Query, expected: str, soql: str) -> bool:
        try:
            wanted, found = self.rows(_with_nulls_last(expected.replace("COUNT()", "COUNT(Id)"))), self.rows(soql)
        except ApiError:
            return False
        ours = parse_soql(soql)
        if not _is_same_order(gold, ours) or gold.sources[0].name.lower() != ours.sources[0].name.lower():
            return False
        if not wanted and not found:  # nothing was compared: the conditions must be the same
            return _conditions(gold) == _conditions(ours)
        is_ordered = gold.limit is not None and bool(gold.order_by)
        wanted_rows, found_rows = [_identity(row) for row in wanted], [_identity(row) for row in found]
        if wanted_rows and wanted_rows[0][0] == "":
            return Counter(map(_figures, wanted)) == Counter(map(_figures, found))
        if is_ordered and wanted_rows != found_rows:
            return False
        return Counter(wanted_rows) == Counter(found_rows)


def count(judgements: Sequence[Judgement]) -> Mapping[str, int]:
    """Return how many questions were read right, wrong, and not at all."""
    counts = Counter(item.outcome for item in judgements)
    return {outcome: counts[outcome] for outcome in ("right", "wrong", "refused")}


def _identity(row: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    """Return the address of a record with those of its children."""
    return str(row["attributes"].get("url", "")), tuple(sorted(_children(row)))


def _children(row: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, value in row.items():
        if isinstance(value, dict) and "records" in value:
            yield name, tuple(sorted(str(child["attributes"].get("url", "")) for child in value["records"]))


def _figures(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the aggregates of a row; a group has the same ones, whether by name or by id."""
    return tuple(
        sorted(
            round(value, 4) if isinstance(value, float) else value
            for name, value in row.items()
            if name.startswith("expr") and value is not None
        )
    )


def _with_nulls_last(statement: str) -> str:
    """Sort empty values last in the largest or latest records: nobody asks for those."""
    return re.sub(r" DESC(?= LIMIT)", " DESC NULLS LAST", statement)


def _is_same_order(gold: Query, ours: Query) -> bool:
    wanted, found = ([write(item).split()[0] for item in query.order_by] for query in (gold, ours))
    return not wanted or wanted[:1] == found[:1]


def _conditions(query: Query) -> set[str]:
    text = write(query.where) if query.where is not None else ""
    return {part.strip("() ").lower() for part in re.split(r" AND ", text)}
