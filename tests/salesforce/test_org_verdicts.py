"""What a real org does, as a table with sources: the parser, the validator and the demo org must agree with it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bedstone.salesforce.demo_org.content.objects import demo_schema
from bedstone.salesforce.demo_org.describe import describe
from bedstone.salesforce.demo_org.errors import ApiError
from bedstone.salesforce.demo_org.org import DemoOrg
from bedstone.salesforce.demo_org.schema import FieldType
from bedstone.salesforce.graph.describes import from_describe
from bedstone.salesforce.graph.model import SchemaGraph
from bedstone.salesforce.soql import SyntaxProblem, parse_soql, parse_sosl, write
from bedstone.salesforce.validation import validate

TABLE = json.loads((Path(__file__).resolve().parents[1] / "fixtures" / "org_verdicts.json").read_text())
ROWS: list[dict[str, Any]] = TABLE["rows"]


@pytest.fixture(scope="module")
def org() -> Iterator[DemoOrg]:
    """The demo org, with an encrypted field that it has not."""
    schema = demo_schema()
    contact = schema.objects["contact"]
    secret = FieldType("Passport__c", "encryptedstring", "Passport", filterable=False, sortable=False, groupable=False)
    schema.objects["contact"] = replace(contact, fields=(*contact.fields, secret))
    org = DemoOrg(schema=schema)
    yield org
    org.close()


@pytest.fixture(scope="module")
def graph(org: DemoOrg) -> SchemaGraph:
    return SchemaGraph.of(from_describe(describe(org.schema, item, "/v")) for item in org.schema.objects.values())


def is_search(statement: str) -> bool:
    return statement.startswith("FIND")


def differences(check: Callable[[str], str | None], rows: list[dict[str, Any]]) -> list[str]:
    """Return the statements that a part judges otherwise than an org, with its reason."""
    judged = [(row, check(row["statement"])) for row in rows]
    return [
        f"{row['verdict']}: {row['statement']} -> {reason}"
        for row, reason in judged
        if (reason is None) != (row["verdict"] == "runs")
    ]


def test_every_verdict_has_a_source() -> None:
    assert len(ROWS) >= 80
    assert len({row["statement"] for row in ROWS}) == len(ROWS)
    assert {row["source"] for row in ROWS} == set(TABLE["sources"])
    assert {row["verdict"] for row in ROWS} == {"runs", "refused", "syntax"}


def test_the_parser_knows_the_syntax() -> None:
    def parses(statement: str) -> str | None:
        try:
            (parse_sosl if is_search(statement) else parse_soql)(statement)
        except SyntaxProblem as problem:
            return problem.message
        return None

    refused = [row for row in ROWS if row["verdict"] == "refused"]
    assert differences(parses, [row for row in ROWS if row["verdict"] != "refused"]) == []
    assert [row["statement"] for row in refused if parses(row["statement"]) is not None] == []
    for row in ROWS:
        if row["verdict"] == "runs":
            parse = parse_sosl if is_search(row["statement"]) else parse_soql
            tree: Any = parse(row["statement"])
            assert parse(write(tree)) == tree


def test_the_validator_refuses_what_an_org_refuses(graph: SchemaGraph) -> None:
    def validates(statement: str) -> str | None:
        report = validate(statement, graph)
        return None if report.valid else next(item.message for item in report.messages if item.type == "error")

    assert differences(validates, [row for row in ROWS if not is_search(row["statement"])]) == []


def test_the_demo_org_does_what_an_org_does(org: DemoOrg) -> None:
    codes: dict[str, str] = {}

    def answers(statement: str) -> str | None:
        try:
            (org.searches if is_search(statement) else org.queries).run(statement, "/v")
        except ApiError as refused:
            codes[statement] = refused.code
            return f"{refused.code} {refused.message}"
        return None

    assert differences(answers, ROWS) == []
    wrong = [
        (row["statement"], row["code"], codes[row["statement"]])
        for row in ROWS
        if "code" in row and codes[row["statement"]] != row["code"]
    ]
    assert wrong == []
