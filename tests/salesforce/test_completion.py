"""Suggestions for half-typed queries, by the place of the caret, and for hostile texts."""

import random
import time

import pytest

from bedstone.salesforce.graph.model import Choice, Field, SchemaGraph
from bedstone.salesforce.soql import SyntaxProblem, parse_soql
from bedstone.salesforce.soql.completion import MAX_SUGGESTIONS, Completion, complete, find_main_object
from bedstone.salesforce.soql.layout import WIDTH, lay_out
from salesforce.test_validator import GOOD
from support.schemas import a_crm_schema, a_field, a_lookup, a_name, a_schema, an_object

MAX_SECONDS = 0.5  # for the worst text that is still completed; a typical one takes below a millisecond


@pytest.fixture(scope="module")
def graph() -> SchemaGraph:
    return a_crm_schema()


def suggest(marked: str, graph: SchemaGraph) -> Completion:
    """Complete a query at the sign |."""
    return complete(marked.replace("|", "", 1), marked.index("|"), graph)


def accept(marked: str, graph: SchemaGraph, name: str) -> str:
    """Return the query after the suggestion with this name was accepted, with the caret as |."""
    found = suggest(marked, graph)
    item = next(item for item in found.suggestions if item.name == name)
    text = marked.replace("|", "", 1)
    inserted = item.insert[: len(item.insert) - item.back] + "|" + item.insert[len(item.insert) - item.back :]
    return text[: found.start] + inserted + text[found.end :]


def names(marked: str, graph: SchemaGraph) -> list[str]:
    return [item.name for item in suggest(marked, graph).suggestions]


# A query with the caret, and what must be among the suggestions.
SUGGESTED = [
    ("|", ["SELECT"]),
    ("sel|", ["SELECT"]),
    ("SELECT | FROM Account", ["Id", "Name", "Industry", "Owner", "Contacts", "COUNT()", "TYPEOF"]),
    ("SELECT Id, ind| FROM Account", ["Industry"]),
    ("SELECT employees| FROM Account", ["NumberOfEmployees"]),  # by its label
    ("SELECT Owner.| FROM Account", ["Id", "Username", "IsActive"]),
    ("SELECT Account.Owner.us| FROM Contact", ["Username"]),
    ("SELECT a.Ind| FROM Account a", ["Industry"]),
    ("SELECT o.user| FROM Contact c, c.Account a, a.Owner o", ["Username"]),
    ("SELECT Customer__r.| FROM Invoice__c", ["Industry"]),
    ("SELECT Owner.| FROM Case", ["Name", "Type", "Email"]),  # the owner is a user or a group
    ("SELECT Id |", ["FROM"]),
    ("SELECT Id FR| WHERE", ["FROM"]),
    ("SELECT Id FROM |", ["Invoice__c", "Account"]),
    ("SELECT Id FROM Acc|", ["Account"]),
    ("SELECT Id FROM voice|", ["Invoice__c"]),
    ("SELECT Id FROM Account |", ["WHERE", "ORDER BY", "LIMIT", "USING SCOPE"]),
    ("SELECT Id FROM Case USING SCOPE |", ["everything", "mine"]),
    ("SELECT Id FROM Account WHERE |", ["Industry", "NOT", "CALENDAR_YEAR()"]),
    ("SELECT Id FROM Account WHERE Industry |", ["=", "IN", "LIKE"]),
    ("SELECT Id FROM Invoice__c WHERE Channels__c |", ["INCLUDES", "EXCLUDES"]),
    ("SELECT Id FROM Account WHERE AnnualRevenue |", ["<=", ">"]),
    ("SELECT Id FROM Account WHERE Industry = |", ["Banking", "null"]),
    ("SELECT Id FROM Account WHERE Industry = '|", ["Banking", "Energy", "Consulting"]),
    ("SELECT Id FROM Account WHERE Industry = 'ba|", ["Banking"]),
    ("SELECT Id FROM Account WHERE Industry IN ('Banking', '|", ["Energy"]),
    ("SELECT Id FROM Account WHERE Industry NOT IN ('|') LIMIT 5", ["Energy"]),
    ("SELECT Id FROM Account WHERE Industry IN (|", ["Banking", "SELECT"]),
    ("SELECT Id FROM Account WHERE Industry IN |", ["("]),
    ("SELECT Id FROM Account WHERE Industry NOT |", ["IN"]),
    ("SELECT Id FROM Contact WHERE Account.Industry = 'en|", ["Energy"]),
    ("SELECT Id FROM Case WHERE toLabel(Status) = 'In|", ["In Progress"]),
    ("SELECT Id FROM Contact WHERE Birthdate > last_|", ["LAST_YEAR", "LAST_N_DAYS:n"]),
    ("SELECT Id FROM Case WHERE IsClosed = |", ["true", "false"]),
    ("SELECT Id FROM Case WHERE IsClosed = true |", ["AND", "OR", "ORDER BY"]),
    ("SELECT Id FROM Case WHERE (IsClosed = true o|", ["OR"]),
    ("SELECT Id FROM Case WHERE (IsClosed = true OR |", ["Status"]),
    ("SELECT Id FROM Case WHERE CALENDAR_YEAR(|", ["CreatedDate"]),
    ("SELECT Id FROM Case WHERE CALENDAR_YEAR(CreatedDate) |", ["=", ">="]),
    ("SELECT Id, (SELECT | FROM Contacts) FROM Account", ["Birthdate"]),
    ("SELECT Id, (SELECT Id FROM |) FROM Account", ["Contacts", "Opportunities"]),
    ("SELECT Id, (SELECT Id FROM | FROM Account", ["Contacts"]),  # not closed yet
    ("SELECT Id, (sel| FROM Account", ["SELECT"]),
    ("SELECT Id FROM Account WHERE Id IN (SELECT acc| FROM Contact)", ["AccountId"]),
    ("SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM |", ["Contact"]),
    ("SELECT COUNT(|) FROM Account", ["Id"]),
    ("SELECT FIELDS(|) FROM Account", ["ALL", "STANDARD"]),
    ("SELECT Industry FROM Account GROUP |", ["BY"]),
    ("SELECT Industry FROM Account GROUP BY |", ["Industry", "ROLLUP()"]),
    ("SELECT Industry FROM Account GROUP BY Industry |", ["HAVING", "ORDER BY"]),
    ("SELECT Industry FROM Account GROUP BY Industry HAVING |", ["COUNT()"]),
    ("SELECT Industry FROM Account GROUP BY Industry ORDER BY c|", ["COUNT()"]),
    ("SELECT Id FROM Account ORDER BY nam|", ["Name"]),
    ("SELECT Id FROM Account ORDER BY Name |", ["DESC", "NULLS LAST", "LIMIT"]),
    ("SELECT Id FROM Account ORDER BY Name NULLS |", ["FIRST", "LAST"]),
    ("SELECT Id FROM Account LIMIT 5 |", ["OFFSET", "FOR VIEW"]),
    ("SELECT TYPEOF | FROM Case", ["Owner"]),
    ("SELECT TYPEOF Owner WHEN | FROM Case", ["User", "Group"]),
    ("SELECT TYPEOF Owner WHEN User THEN user| FROM Case", ["Username"]),
    ("SELECT TYPEOF Owner WHEN User |  FROM Case", ["THEN"]),
    ("SELECT TYPEOF Owner WHEN User THEN Id | FROM Case", ["END", "ELSE"]),
    ("SELECT TYPEOF Owner WHEN User THEN Id ELSE na| END FROM Case", ["Name"]),
    ("select id -- all\nfrom acc|", ["Account"]),
]
# Places where a suggestion would be wrong.
SILENT = [
    "SELECT Id FROM Account WHERE Name = 'ba|",  # any text
    "SELECT Id FROM Account LIMIT |",
    "SELECT Id FROM Account LIMIT 20|",
    "SELECT Id FROM Account -- wh|",
    "SELECT Id FROM Account /* wh| */",
    "SELECT Nowhere.| FROM Account",
    "SELECT Id FROM Nowhere WHERE |x",
    "SELECT Parent.Parent.Parent.Parent.Parent.Parent.| FROM Account",  # more than five levels up
    "hello wor|",
]


@pytest.mark.parametrize(("marked", "expected"), SUGGESTED, ids=[marked for marked, _ in SUGGESTED])
def test_what_can_stand_at_the_caret_is_suggested(marked: str, expected: list[str], graph: SchemaGraph) -> None:
    assert set(expected) <= set(names(marked, graph))


@pytest.mark.parametrize("marked", SILENT)
def test_nothing_is_suggested_where_nothing_is_known(marked: str, graph: SchemaGraph) -> None:
    found = names(marked, graph)
    assert [name for name in found if name != "NOT" and not name.endswith(")")] == []


@pytest.mark.parametrize(
    ("marked", "name", "result"),
    [
        ("SELECT Id, in| FROM Account", "Industry", "SELECT Id, Industry| FROM Account"),
        ("SELECT Id, Nu|mberOf FROM Account", "NumberOfEmployees", "SELECT Id, NumberOfEmployees| FROM Account"),
        ("SELECT Own| FROM Account", "Owner", "SELECT Owner.| FROM Account"),
        ("SELECT Ac|.Name FROM Contact", "AccountId", "SELECT AccountId|.Name FROM Contact"),
        ("SELECT cou| FROM Account", "COUNT()", "SELECT COUNT(|) FROM Account"),
        ("SELECT con| FROM Account", "Contacts", "SELECT (SELECT Id FROM Contacts)| FROM Account"),
        ("SELECT Id fr|", "FROM", "SELECT Id FROM |"),
        (
            "SELECT Id FROM Account WHERE Industry = 'Ba|",
            "Banking",
            "SELECT Id FROM Account WHERE Industry = 'Banking'|",
        ),
        (
            "SELECT Id FROM Account WHERE Industry = 'Ba|n' LIMIT 1",
            "Banking",
            "SELECT Id FROM Account WHERE Industry = 'Banking'| LIMIT 1",
        ),
        (
            "SELECT Id FROM Account WHERE Industry = '| AND Name = 'x'",
            "Energy",
            "SELECT Id FROM Account WHERE Industry = 'Energy'| AND Name = 'x'",
        ),
        (
            "SELECT Id FROM Account WHERE Industry = |",
            "Banking",
            "SELECT Id FROM Account WHERE Industry = 'Banking'|",
        ),
        (
            "SELECT Id FROM Contact WHERE Birthdate = last_n|",
            "LAST_N_DAYS:n",
            "SELECT Id FROM Contact WHERE Birthdate = LAST_N_DAYS:|",
        ),
    ],
)
def test_an_accepted_suggestion_replaces_what_was_typed(
    marked: str, name: str, result: str, graph: SchemaGraph
) -> None:
    assert accept(marked, graph, name) == result


def test_values_are_quoted_and_inactive_ones_left_out() -> None:
    choices = (Choice("O'Neil \\ Co", "O'Neil"), Choice("Gone", "Gone", is_active=False))
    field = Field("Brand__c", "Brand", "picklist", choices=choices)
    graph = a_schema(an_object("Thing__c", a_name(), field))
    assert names("SELECT Id FROM Thing__c WHERE Brand__c = '|", graph) == ["O'Neil \\ Co"]
    query = accept("SELECT Id FROM Thing__c WHERE Brand__c = '|", graph, "O'Neil \\ Co").replace("|", "")
    where = parse_soql(query).where
    assert getattr(where, "right").value == "O'Neil \\ Co"  # noqa: B009 - of one of several nodes


def test_the_best_match_comes_first(graph: SchemaGraph) -> None:
    assert names("SELECT nam| FROM Account", graph)[0] == "Name"
    assert names("SELECT | FROM Account", graph)[:2] == ["Id", "Name"]
    assert names("SELECT bill| FROM Account", graph) == ["BillingCity", "BillingState", "BillingCountry"]  # by length
    found = names("SELECT c| FROM Account", graph)
    assert found.index("CreatedDate") < found.index("BillingCity")  # it begins with the letter
    assert names("SELECT Id FROM |", graph)[0] == "Invoice__c"  # custom objects first


def test_a_word_that_is_complete_is_not_suggested_again(graph: SchemaGraph) -> None:
    assert names("SELECT Id FROM Invoice__c|", graph) == []
    assert names("SELECT Id from|", graph) == []


def test_fields_that_cannot_be_filtered_or_sorted_are_left_out() -> None:
    flags = {"filterable": False, "sortable": False, "groupable": False}
    graph = a_schema(an_object("Thing__c", a_name(), a_field("Long__c", "textarea", **flags)))
    assert "Long__c" in names("SELECT | FROM Thing__c", graph)
    for clause in ("WHERE |", "ORDER BY |", "GROUP BY |"):
        assert "Long__c" not in names(f"SELECT Id FROM Thing__c {clause}", graph)


def test_the_object_of_a_query_is_known_before_the_query_is_complete(graph: SchemaGraph) -> None:
    for text in (
        "SELECT FROM Account",
        "SELECT Id, (SELECT Id FROM Contacts) FROM account WHERE",
        "select from Account x",
    ):
        item = find_main_object(text, graph)
        assert item is not None
        assert item.name == "Account"
    assert find_main_object("SELECT Id", graph) is None
    assert find_main_object("", graph) is None


def test_characters_beyond_the_first_plane_do_not_shift_places(graph: SchemaGraph) -> None:
    marked = "SELECT Id FROM Account WHERE Name = '\N{GRINNING FACE}' AND Ind|"
    assert accept(marked, graph, "Industry").endswith("AND Industry|")


HOSTILE = [
    "(" * 20_000,
    "SELECT (" * 2_500,
    "(SELECT Id FROM Account WHERE Id IN " * 500,
    "SELECT Id FROM Account WHERE " + "(" * 10_000 + "Name = 'x' AND ",
    "SELECT " + "a." * 9_000,
    "SELECT " + ", ".join(["Account"] * 2_000) + " FROM Contact",
    "'" * 19_999,
    "/*" * 9_999,
    "--\n" * 6_000,
    "SELECT Id FROM Account WHERE Name IN (" + "'x'," * 4_000,
    "TYPEOF " * 2_800,
    "SELECT TYPEOF Owner " + "WHEN User THEN Id " * 1_000,
    "SELECT Id FROM " + "Account," * 2_400,
    "\0" * 20_000,
    "SELECT Id FROM Account WHERE COUNT" + ")" * 15_000,
    "x" * 1_000_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=[text[:20] for text in HOSTILE])
def test_hostile_texts_cost_little(text: str, graph: SchemaGraph) -> None:
    begun = time.process_time()
    complete(text, len(text), graph)
    complete(text, len(text) // 2, graph)
    find_main_object(text, graph)
    assert time.process_time() - begun < 3 * MAX_SECONDS


def test_any_cut_of_any_query_can_be_completed(graph: SchemaGraph) -> None:
    """Cut good queries anywhere, with noise: no place is out of range and no suggestion leaves the text."""
    chance = random.Random(7)
    for _ in range(2_000):
        text = chance.choice(GOOD)
        text = text[: chance.randrange(len(text) + 1)] + chance.choice(
            ["", " ", "(", "'", ",", ".", "FROM ", ")", "\n"]
        )
        position = chance.randrange(len(text) + 1)
        found = complete(text, position, graph)
        assert 0 <= found.start <= position <= found.end <= len(text)
        assert len(found.suggestions) <= min(MAX_SUGGESTIONS, found.total)
    for position in (-1, 10**9):
        assert complete("SELECT Id", position, graph).suggestions == ()


def test_five_thousand_objects_are_searched_in_milliseconds() -> None:
    objects = [an_object(f"Thing_{number}__c", a_name(), a_lookup("Owner__c", "Thing_1__c")) for number in range(5_000)]
    graph = SchemaGraph.of(objects)
    begun = time.process_time()
    found = complete("SELECT Id FROM thing_49", 23, graph)
    assert time.process_time() - begun < 0.2
    assert found.total > MAX_SUGGESTIONS == len(found.suggestions)
    assert found.suggestions[0].name == "Thing_49__c"


@pytest.mark.parametrize(
    "query", [*GOOD, "SELECT COUNT() FROM Lead USING SCOPE mine LIMIT 5 OFFSET 5 FOR VIEW UPDATE TRACKING"]
)
def test_a_laid_out_query_means_the_same(query: str) -> None:
    try:
        tree = parse_soql(query)
    except SyntaxProblem:
        pytest.fail(f"not a query: {query}")
    text = lay_out(tree)
    assert parse_soql(text) == tree
    assert lay_out(parse_soql(text)) == text
    assert text.count("\n") >= 1


def test_long_clauses_are_laid_out_over_several_lines() -> None:
    columns = ", ".join(f"Field_With_A_Name_{number}__c" for number in range(6))
    conditions = " AND ".join(f"Field_With_A_Name_{number}__c = 'value'" for number in range(3))
    where = f"{conditions} AND (Name = 'a' OR Name = 'b')"
    query = f"SELECT {columns}, (SELECT Id FROM Contacts), Name FROM Account WHERE {where}"
    lines = lay_out(parse_soql(query)).split("\n")
    assert max(map(len, lines)) <= WIDTH
    assert "  (SELECT Id FROM Contacts)," in lines
    assert lines[-1] == "  AND (Name = 'a' OR Name = 'b')"
