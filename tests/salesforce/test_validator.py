"""The validator against queries broken in known ways, and against what the demo org itself runs and refuses."""

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bedstone.salesforce.demo_org.describe import describe
from bedstone.salesforce.demo_org.errors import ApiError
from bedstone.salesforce.demo_org.org import DemoOrg, open_org
from bedstone.salesforce.graph.describes import from_describe, from_row, to_row
from bedstone.salesforce.graph.model import SchemaGraph
from bedstone.salesforce.soql import parse_soql
from bedstone.salesforce.validation import Report, validate
from salesforce.queries import Queries

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "soql.json"
DEV = Path(__file__).resolve().parents[3] / "shared" / "data" / "salesforce" / "soql_dev.json"
GOOD = [
    "SELECT Id, Name FROM Account LIMIT 10",
    "SELECT Id, Name, Owner.Name FROM Account WHERE Industry = 'Banking' AND AnnualRevenue > 1000 LIMIT 5",
    "SELECT Id, (SELECT Id, Email FROM Contacts WHERE Email != null) FROM Account WHERE CreatedDate = LAST_N_DAYS:30",
    "SELECT StageName, COUNT(Id) n, SUM(Amount) total FROM Opportunity GROUP BY StageName HAVING COUNT(Id) > 1",
    "SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Opportunity WHERE IsWon = true) ORDER BY Name",
    "SELECT Id, What.Name, TYPEOF Who WHEN Contact THEN Email ELSE Name END FROM Task WHERE What.Type = 'Account'",
    "SELECT Id FROM Case WHERE Status = 'New' AND (Priority = 'High' OR IsEscalated = true) LIMIT 20",
    "SELECT CALENDAR_YEAR(CloseDate) y, COUNT(Id) FROM Opportunity GROUP BY CALENDAR_YEAR(CloseDate)",
    "SELECT Id, Account.Owner.Name FROM Contact WHERE Account.Industry LIKE 'B%' ORDER BY LastName NULLS LAST LIMIT 5",
    "SELECT COUNT() FROM Lead WHERE Status = 'Open - Not Contacted'",
    "SELECT FIELDS(STANDARD) FROM Contact LIMIT 3",
    "SELECT Name, COUNT(Id) FROM Account GROUP BY ROLLUP(Name) ORDER BY GROUPING(Name)",
    "SELECT Id FROM Account WHERE Name = 'working as intended' AND Site = 'a:b -- 001 Main St' LIMIT 1",
    "SELECT FORMAT(Amount) a, toLabel(StageName) s FROM Opportunity WHERE CloseDate >= 2024-01-01 LIMIT 2",
]
# A query, and the code an expert would give for what is wrong with it.
BROKEN = [
    ("SELECT Id FROM", "SYNTAX"),
    ("SELECT FROM Account", "SYNTAX"),
    ("SELECT Id FROM Account WHERE Name =", "SYNTAX"),
    ("SELECT Id FROM Account WHERE Name = 'x' Industry = 'y'", "SYNTAX"),
    ("SELECT Id FROM Account WHERE Name = 'x' AND Site = 'y' OR Fax = 'z'", "MIXED_LOGIC"),
    ("SELECT Id FROM Account WHERE Name = 'x' AND NOT Site = 'y'", "MIXED_LOGIC"),
    ("SELECT * FROM Account", "SQL_STAR"),
    ("SELECT DISTINCT Name FROM Account", "SQL_KEYWORD"),
    ("SELECT TOP 10 Name FROM Account", "SQL_KEYWORD"),
    ("SELECT Id FROM Contact JOIN Account ON AccountId = Id", "SQL_KEYWORD"),
    ("SELECT Id FROM Account UNION SELECT Id FROM Contact", "SQL_KEYWORD"),
    ("SELECT CASE WHEN Name = 'x' THEN 1 END FROM Account", "SQL_KEYWORD"),
    ("SELECT Id FROM Account WHERE Name IS NULL", "SQL_FORM"),
    ("SELECT Id FROM Account WHERE Name IS NOT NULL", "SQL_FORM"),
    ("SELECT Id FROM Account WHERE Name NOT LIKE 'a%'", "SQL_FORM"),
    ("SELECT Id FROM Opportunity WHERE Amount BETWEEN 1 AND 5", "SQL_FORM"),
    ("SELECT COUNT(*) FROM Account", "SQL_FORM"),
    ("SELECT COUNT(Id) AS n FROM Account", "SQL_FORM"),
    ('SELECT Id FROM Account WHERE Name = "x"', "SQL_FORM"),
    ("SELECT Id FROM Account;", "SQL_FORM"),
    ("SELECT Id FROM Account -- all of them", "SQL_FORM"),
    ("SELECT Id FROM Account ORDER BY Name WHERE Name = 'x'", "SQL_FORM"),
    ("SELECT Id FROM Account WHERE Name == 'x'", "SQL_FORM"),
    ("SELECT Id FROM Account WHERE (SELECT Id FROM Contacts)", "SUBQUERY_CONDITION"),
    ("SELECT Id FROM Account WHERE Id = :accountId", "APEX_ONLY"),
    ("SELECT Id FROM Account FOR UPDATE", "APEX_ONLY"),
    ("SELECT Id FROM Account ALL ROWS", "APEX_ONLY"),
    ("SELECT Id FROM Acount", "OBJECT_UNKNOWN"),
    ("SELECT Id FROM Zebra", "OBJECT_UNKNOWN"),
    ("SELECT Id FROM Bike", "OBJECT_UNKNOWN"),
    ("SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Opportunityy)", "OBJECT_UNKNOWN"),
    ("SELECT Id, Nmae FROM Account", "FIELD_UNKNOWN"),
    ("SELECT Id FROM Account WHERE Industri = 'x'", "FIELD_UNKNOWN"),
    ("SELECT Id FROM Account ORDER BY Naem", "FIELD_UNKNOWN"),
    ("SELECT Industy, COUNT(Id) FROM Account GROUP BY Industy", "FIELD_UNKNOWN"),
    ("SELECT SUM(Amout) FROM Opportunity", "FIELD_UNKNOWN"),
    ("SELECT Id, (SELECT Emial FROM Contacts) FROM Account", "FIELD_UNKNOWN"),
    ("SELECT Id FROM Account WHERE Id IN (SELECT AcountId FROM Contact)", "FIELD_UNKNOWN"),
    ("SELECT TYPEOF What WHEN Account THEN Nmae END FROM Task", "FIELD_UNKNOWN"),
    ("SELECT Name FROM Account GROUP BY Name HAVING COUNT(Idd) > 1", "FIELD_UNKNOWN"),
    ("SELECT Id, Acount.Name FROM Contact", "RELATIONSHIP_UNKNOWN"),
    ("SELECT Id FROM Contact WHERE Acct.Name = 'x'", "RELATIONSHIP_UNKNOWN"),
    ("SELECT AccountId.Name FROM Contact", "ID_FOR_RELATIONSHIP"),
    ("SELECT Id FROM Case WHERE OwnerId.Name = 'x'", "ID_FOR_RELATIONSHIP"),
    ("SELECT Id, (SELECT Id FROM Contact) FROM Account", "CHILD_UNKNOWN"),
    ("SELECT Id, (SELECT Id FROM Opportunity) FROM Account", "CHILD_UNKNOWN"),
    ("SELECT What.Industry FROM Task", "POLYMORPHIC_FIELD"),
    ("SELECT Id FROM Task WHERE What.Industry = 'x'", "POLYMORPHIC_FIELD"),
    ("SELECT Account.Parent.Parent.Parent.Parent.Parent.Name FROM Contact", "DEPTH_UP"),
    ("SELECT Id, " + ", ".join(["(SELECT Id FROM Contacts)"] * 21) + " FROM Account", "TOO_MANY_SUBQUERIES"),
    ("SELECT Id, Name, Id FROM Account", "DUPLICATE_FIELD"),
    ("SELECT Name n, COUNT(Id) n FROM Account GROUP BY Name", "DUPLICATE_ALIAS"),
    ("SELECT Name n FROM Account", "ALIAS_NOT_ALLOWED"),
    ("SELECT FIELDS(ALL) FROM Account", "FIELDS_LIMIT"),
    ("SELECT FIELDS(ALL) FROM Account LIMIT 500", "FIELDS_LIMIT"),
    ("SELECT Id FROM Account WHERE Description = 'x'", "NOT_FILTERABLE"),
    ("SELECT Id FROM Account ORDER BY Description", "NOT_SORTABLE"),
    ("SELECT Description, COUNT(Id) FROM Account GROUP BY Description", "NOT_GROUPABLE"),
    ("SELECT Id FROM Account WHERE BillingAddress = 'Hamburg'", "ADDRESS_FILTER"),
    ("SELECT Id FROM Opportunity WHERE Amount LIKE '5%'", "OPERATOR_TYPE"),
    ("SELECT Id FROM Opportunity WHERE IsWon > true", "OPERATOR_TYPE"),
    ("SELECT Id FROM Account WHERE Industry INCLUDES ('Banking')", "OPERATOR_TYPE"),
    ("SELECT Id FROM Account WHERE OwnerId LIKE 'A%'", "LIKE_ON_ID"),
    ("SELECT Id FROM Opportunity WHERE Amount > '5'", "LITERAL_QUOTED"),
    ("SELECT Id FROM Opportunity WHERE IsWon = 'true'", "LITERAL_QUOTED"),
    ("SELECT Id FROM Opportunity WHERE CloseDate > '2024-01-01'", "LITERAL_QUOTED"),
    ("SELECT Id FROM Opportunity WHERE CloseDate = 'TODAY'", "LITERAL_QUOTED"),
    ("SELECT Id FROM Account WHERE Name = 5", "LITERAL_UNQUOTED"),
    ("SELECT Id FROM Account WHERE Name = Acme", "LITERAL_UNQUOTED"),
    ("SELECT Id FROM Account WHERE CreatedDate > 2024-01-01", "LITERAL_TYPE"),
    ("SELECT Id FROM Opportunity WHERE CloseDate = 2024-01-01T00:00:00Z", "LITERAL_TYPE"),
    ("SELECT Id FROM Opportunity WHERE Amount = true", "LITERAL_TYPE"),
    ("SELECT Id FROM Opportunity WHERE IsWon = 1", "LITERAL_TYPE"),
    ("SELECT Id FROM Account WHERE Id = '001XXXXXXXXXXXX'", "ID_INVALID"),
    ("SELECT Id FROM Account WHERE Id = 'abc'", "ID_INVALID"),
    ("SELECT Id FROM Account WHERE CreatedDate > LAST_365_DAYS", "DATE_LITERAL_UNKNOWN"),
    ("SELECT Id FROM Account WHERE CreatedDate = THIS_DECADE", "DATE_LITERAL_UNKNOWN"),
    ("SELECT Id FROM Account WHERE CreatedDate = LAST_N_DAYS", "DATE_LITERAL_N"),
    ("SELECT Id FROM Opportunity WHERE CloseDate = 9999-01-01", "DATE_RANGE"),
    ("SELECT Id FROM Account WHERE Name = TODAY", "DATE_LITERAL_MISUSE"),
    ("SELECT Id FROM Opportunity WHERE CALENDAR_YEAR(CloseDate) = THIS_YEAR", "DATE_LITERAL_MISUSE"),
    ("SELECT SUM(Name) FROM Account", "AGGREGATE_TYPE"),
    ("SELECT MAX(IsWon) FROM Opportunity", "AGGREGATE_TYPE"),
    ("SELECT Id FROM Account WHERE COUNT(Id) > 5", "AGGREGATE_IN_WHERE"),
    ("SELECT Name, COUNT(Id) FROM Account", "NOT_GROUPED"),
    ("SELECT Name, Industry, COUNT(Id) FROM Account GROUP BY Name", "NOT_GROUPED"),
    ("SELECT Name FROM Account GROUP BY Name ORDER BY Industry", "ORDER_NOT_GROUPED"),
    ("SELECT Id FROM Account HAVING COUNT(Id) > 1", "HAVING_WITHOUT_GROUP"),
    ("SELECT Name FROM Account GROUP BY Name HAVING Industry = 'x'", "HAVING_FIELD"),
    ("SELECT COUNT(), Name FROM Account", "COUNT_ALONE"),
    ("SELECT SUM(Amount) FROM Opportunity LIMIT 5", "AGGREGATE_LIMIT"),
    ("SELECT Id, (SELECT COUNT(Id) FROM Contacts) FROM Account", "AGGREGATE_IN_SUBQUERY"),
    ("SELECT COUNT(Id) FROM Account GROUP BY ROLLUP(Name, Industry, Type, Rating)", "ROLLUP_SIZE"),
    ("SELECT Name, GROUPING(Name) FROM Account GROUP BY Name", "GROUPING_USE"),
    ("SELECT CALENDAR_YEAR(CreatedDate) FROM Account", "DATE_FN_GROUP"),
    ("SELECT convertTimezone(CreatedDate) c FROM Account", "CONVERT_TZ"),
    (
        "SELECT Id FROM Account WHERE "
        + " AND ".join(f"Id IN (SELECT AccountId FROM {name})" for name in ("Contact", "Case", "Opportunity")),
        "SEMIJOIN_COUNT",
    ),
    ("SELECT Id FROM Account WHERE Name = 'x' OR Id IN (SELECT AccountId FROM Contact)", "SEMIJOIN_OR"),
    ("SELECT Id FROM Account WHERE NOT Id IN (SELECT AccountId FROM Contact)", "SEMIJOIN_NOT"),
    (
        "SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Contact WHERE Id IN (SELECT ContactId FROM Case))",
        "SEMIJOIN_NESTED",
    ),
    ("SELECT Id FROM Account WHERE Id IN (SELECT LastName FROM Contact)", "SEMIJOIN_FIELD"),
    ("SELECT Id FROM Account WHERE Name IN (SELECT AccountId FROM Contact)", "SEMIJOIN_LEFT"),
    ("SELECT Id FROM Account WHERE Id IN (SELECT ParentId FROM Account)", "SEMIJOIN_SAME"),
    ("SELECT Id FROM Account WHERE Id IN (SELECT WhatId FROM Task)", "SEMIJOIN_OBJECT"),
    ("SELECT Id FROM Account WHERE Id IN (SELECT OwnerId FROM Contact)", "SEMIJOIN_TARGET"),
    ("SELECT TYPEOF Account WHEN Account THEN Name END FROM Contact", "TYPEOF_NOT_POLYMORPHIC"),
    ("SELECT TYPEOF What WHEN User THEN Name END FROM Task", "TYPEOF_TYPE"),
    ("SELECT TYPEOF What WHEN Account THEN Name ELSE Industry END FROM Task", "TYPEOF_ELSE"),
    ("SELECT Id FROM Account WHERE DISTANCE(Name, GEOLOCATION(1, 2), 'mi') < 5", "DISTANCE_FORM"),
    ("SELECT Id FROM Account WHERE DISTANCE(BillingAddress, GEOLOCATION(1, 2), 'mi') = 5", "DISTANCE_OPERATOR"),
    ("SELECT Id FROM Account USING SCOPE nobody", "SCOPE_UNKNOWN"),
    ("SELECT Id FROM Knowledge__kav WITH DATA CATEGORY Models__c AT Porter__c", "WITH_CATEGORY"),
    ("SELECT Id FROM Account LIMIT 5 OFFSET 3000", "OFFSET_MAX"),
    ("SELECT Id FROM Account LIMIT -1", "LIMIT_RANGE"),
    ("SELECT Id, (SELECT Id FROM Contacts LIMIT 1 OFFSET 1) FROM Account", "OFFSET_SUBQUERY"),
    (f"SELECT Id FROM Account WHERE Name = '{'x' * 5000}'", "STRING_LENGTH"),
    (f"SELECT Id FROM Account WHERE Name IN ('{'x' * 100_000}')", "QUERY_LENGTH"),
    ("SELECT Id FROM ContentDocumentLink", "REQUIRED_FILTER"),
    ("SELECT UPPER(Name) u FROM Account", "FUNCTION_UNKNOWN"),
    ("SELECT Id FROM Account WHERE YEAR(CreatedDate) = 2024", "FUNCTION_UNKNOWN"),
]


@pytest.fixture(scope="module")
def org(tmp_path_factory: pytest.TempPathFactory) -> DemoOrg:
    return open_org(tmp_path_factory.mktemp("org"))


@pytest.fixture(scope="module")
def graph(org: DemoOrg) -> SchemaGraph:
    described = [describe(org.schema, item, "/v") for item in org.schema.objects.values() if item.name != "Name"]
    return SchemaGraph.of(from_describe(item) for item in described)


def errors(report: Report) -> list[str]:
    return [item.code for item in report.messages if item.type == "error"]


def test_a_row_is_what_it_was_made_from(graph: SchemaGraph) -> None:
    for item in graph.objects.values():
        assert from_row(to_row(item)) == item


@pytest.mark.parametrize("query", GOOD)
def test_what_is_right_is_called_right(graph: SchemaGraph, org: DemoOrg, query: str) -> None:
    org.queries.run(query, "/v")
    assert errors(validate(query, graph)) == []


def test_precision_and_recall_over_queries_broken_in_known_ways(graph: SchemaGraph) -> None:
    """Each of the broken ones as it stands, and typing errors in the good ones: the code, and nothing besides."""
    cases = [*BROKEN, *((query, None) for query in GOOD), *_typing_errors(graph)]
    right = found = wanted = 0
    wrong = []
    for query, code in cases:
        codes = set(errors(validate(query, graph)))
        expected = {code} if code else set()
        right += len(codes & expected)
        found += len(codes)
        wanted += len(expected)
        if codes != expected:
            wrong.append((query, code, codes))
    assert len(cases) > 250
    assert right / found >= 0.98, wrong
    assert right / wanted >= 0.98, wrong


def _typing_errors(graph: SchemaGraph) -> list[tuple[str, str]]:
    """One field, object or value of a good query, misspelt."""
    chance = random.Random(7)
    made: list[tuple[str, str]] = []
    for name in ("Account", "Contact", "Opportunity", "Case", "Lead", "Bike__c"):
        item = graph.get(name)
        assert item is not None
        names = {field.name.lower() for field in item.fields}
        long = [field.name for field in item.fields if len(field.name) > 6]
        for _ in range(24):
            field = chance.choice(long)
            place = chance.randrange(1, len(field) - 1)
            slips: list[Callable[[], str]] = [
                lambda field=field, place=place: field[:place] + field[place + 1 :],  # type: ignore[misc]
                lambda field=field, place=place: field[:place] + "q" + field[place:],  # type: ignore[misc]
            ]
            bad = chance.choice(slips)()
            if bad.lower() not in names and bad[0].isalpha():
                made.append((f"SELECT Id, {bad} FROM {name} LIMIT 5", "FIELD_UNKNOWN"))
    return made


def test_corrections_are_themselves_right(graph: SchemaGraph, org: DemoOrg) -> None:
    mended = Counter[bool]()
    for query, _ in [*BROKEN, *_typing_errors(graph)]:
        report = validate(query, graph)
        mended[report.corrected is not None] += 1
        if report.corrected is not None:
            assert errors(validate(report.corrected, graph)) == []
            parse_soql(report.corrected)
            org.queries.run(report.corrected, "/v")
    assert mended[True] > 100


@pytest.mark.parametrize(
    ("query", "corrected"),
    [
        ("SELECT Id, Acount.Name FROM Contact", "SELECT Id, Account.Name FROM Contact"),
        ("SELECT Id, (SELECT Id FROM Contact) FROM Account", "SELECT Id, (SELECT Id FROM Contacts) FROM Account"),
        ("SELECT AccountId.Name FROM Contact", "SELECT Account.Name FROM Contact"),
        (
            "SELECT Id FROM Account WHERE CreatedDate > LAST_365_DAYS",
            "SELECT Id FROM Account WHERE CreatedDate > LAST_N_DAYS:365",
        ),
        ("SELECT Id FROM Account WHERE OwnerId LIKE 'A%'", "SELECT Id FROM Account WHERE Owner.Name LIKE 'A%'"),
        (
            "SELECT Id FROM Account WHERE Name = 'a' AND Site = 'b' OR Fax = 'c'",
            "SELECT Id FROM Account WHERE (Name = 'a' AND Site = 'b') OR Fax = 'c'",
        ),
        ("SELECT SUM(Amount) FROM Opportunity LIMIT 5", "SELECT SUM(Amount) FROM Opportunity"),
        ("SELECT Id Name FROM Account LIMIT 5", "SELECT Id, Name FROM Account LIMIT 5"),
        (
            "SELECT Id, (SELECT LastNme FROM Contact) FROM Account",
            "SELECT Id, (SELECT LastName FROM Contacts) FROM Account",
        ),
        ("SELECT a.Name FROM Contact c, c.Acount a", "SELECT a.Name FROM Contact c, c.Account a"),
        ("SELECT Id FROM Account WHERE CreatedDate = 2024-01-01", None),
        ("SELECT Id FROM Account WHERE OwnerId LIKE '005%'", None),
    ],
)
def test_what_was_meant_is_written(graph: SchemaGraph, query: str, corrected: str | None) -> None:
    assert validate(query, graph).corrected == corrected


def test_what_a_correction_lays_bare_is_said_too(graph: SchemaGraph) -> None:
    report = validate("SELECT Nme, COUNT(Id) FROM Account", graph)
    assert [item.code for item in report.messages] == ["FIELD_UNKNOWN", "NAME_CORRECTED", "NOT_GROUPED"]
    assert (report.corrected, report.messages[-1].message.startswith("With that corrected: ")) == (None, True)


def test_messages_say_where(graph: SchemaGraph) -> None:
    (finding, *_) = validate("SELECT Id,\n  Nmae FROM Account LIMIT 1", graph).messages
    assert (finding.line, finding.column, finding.clause, finding.original) == (2, 3, "SELECT", "Nmae")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT Id FROM Account WHERE Name = '" + "a\\'" * 33_000,
        "SELECT " + ", ".join(f"Zzq{number}x" for number in range(5_000)) + " FROM Account",
        "SELECT Id FROM Account WHERE " + " OR ".join(f"Nme{number} = 'x'" for number in range(4_000)),
        "SELECT Id FROM Opportunity WHERE CloseDate = LAST_N_DAYS:" + "9" * 5_000,
        "SELECT Id FROM Account LIMIT 5 OFFSET " + "9" * 400,
        "SELECT Id FROM Account WHERE " + "(" * 50_000,
    ],
)
def test_monstrous_queries_are_refused_in_a_moment(graph: SchemaGraph, query: str) -> None:
    """Quickly enough not to be noticed: what grew with the square of the length would take minutes."""
    report = validate(query, graph)
    assert not report.valid
    assert len(report.messages) <= 60


def test_an_unknown_schema_leaves_the_syntax(graph: SchemaGraph) -> None:
    report = validate("SELECT Foo FROM Bar", SchemaGraph())
    assert (report.valid, [item.code for item in report.messages]) == (True, ["SCHEMA_UNKNOWN"])
    assert not validate("SELECT FROM Bar", SchemaGraph()).valid


def test_advice_is_no_error(graph: SchemaGraph) -> None:
    def advice(query: str) -> set[str]:
        report = validate(query, graph)
        assert report.valid
        return {item.code for item in report.messages}

    assert advice("SELECT Id FROM Account") == {"NO_LIMIT"}
    assert advice("SELECT COUNT() FROM Account") == set()
    assert advice("SELECT Id FROM Account WHERE Id = '001000000000001AAA'") == set()
    assert advice("SELECT Id FROM Account WHERE Name LIKE '%x' LIMIT 1") == {"LEADING_WILDCARD"}
    assert advice("SELECT Id FROM Account WHERE Name != 'x' LIMIT 1") == {"NEGATIVE_FILTER"}
    assert advice("SELECT Id FROM Account WHERE Name = null LIMIT 1") == {"NULL_FILTER"}
    assert advice("SELECT Id FROM Account WHERE OwnerId = '001000000000001AAA' LIMIT 1") == {"ID_WRONG_OBJECT"}
    assert advice("SELECT Id FROM Account WHERE Industry = 'Bankin' LIMIT 1") == {"PICKLIST_VALUE"}
    assert advice("SELECT Id FROM Account WITH SECURITY_ENFORCED LIMIT 1") == {"APEX_ONLY"}


def test_the_org_and_the_validator_agree(graph: SchemaGraph, org: DemoOrg) -> None:
    queries = Queries(graph, seed=11)
    runs = Counter[bool]()
    for _ in range(2_000):
        query = queries.make()
        try:
            org.queries.run(query, "/v")
            is_run, reason = True, ""
        except ApiError as refused:
            is_run, reason = False, refused.message
        codes = errors(validate(query, graph))
        assert (not codes) == is_run, (query, reason, codes)
        runs[is_run] += 1
    assert min(runs.values()) > 500


def test_what_parses_and_is_refused_for_another_reason(graph: SchemaGraph) -> None:
    statements = list(json.loads(FIXTURES.read_text())["invalid_by_schema"])
    if DEV.exists():
        cases = json.loads(DEV.read_text())["cases"]
        statements += [case["soql"] for case in cases if case.get("semantic", {}).get("valid") is False]
    assert len(statements) >= 10
    for statement in statements:
        assert errors(validate(statement, graph)), statement
