"""Questions to SOQL: what each pass reads, and which words it leaves for the others."""

from typing import Any

import pytest
from hypothesis import given, settings, strategies

from bedstone.salesforce.graph.object_names import ObjectNames
from bedstone.salesforce.questions.context import Pass, SchemaContext
from bedstone.salesforce.questions.draft import QueryDraft, describe_filters
from bedstone.salesforce.questions.field_names import FieldNames
from bedstone.salesforce.questions.grounding import Grounder
from bedstone.salesforce.questions.interpreter import Interpreter
from bedstone.salesforce.questions.passes.columns import read_columns
from bedstone.salesforce.questions.passes.comparisons import read_comparisons
from bedstone.salesforce.questions.passes.dates import read_dates
from bedstone.salesforce.questions.passes.grade import grade
from bedstone.salesforce.questions.passes.grouping import read_grouping
from bedstone.salesforce.questions.passes.limits import read_limits
from bedstone.salesforce.questions.passes.object import find_object
from bedstone.salesforce.questions.passes.ordering import read_ordering
from bedstone.salesforce.questions.passes.picklists import merge_alternatives, read_picklist_values
from bedstone.salesforce.questions.passes.related import read_related
from bedstone.salesforce.questions.passes.scope import read_companies, read_ownership, read_purpose
from bedstone.salesforce.questions.passes.states import read_states
from bedstone.salesforce.questions.question import Question
from bedstone.salesforce.soql import parse_soql
from support.schemas import a_crm_schema

GRAPH = a_crm_schema()
NAMES = ObjectNames(GRAPH)
GROUNDER = Grounder(GRAPH, NAMES, ["Acme Cycles", "Northwind", "O'Connor & Sons"])
SCHEMA = SchemaContext(GRAPH, NAMES, GROUNDER, FieldNames(GRAPH))
INTERPRETER = Interpreter(GRAPH, NAMES, GROUNDER)


def read(text: str, *passes: Pass) -> tuple[QueryDraft, str]:
    """Find the object and run some passes; the draft, and the words that are left."""
    question = Question.parse(text)
    draft = find_object(question, SCHEMA)
    assert draft is not None, text
    for read_words in passes:
        read_words(question, draft, SCHEMA)
    return draft, " ".join(question.text(place) for place in range(len(question)) if question.is_free(place))


def conditions(draft: QueryDraft) -> str:
    return " AND ".join([*(entry.soql for entry in draft.filters), *(join.soql for join in draft.joins)])


@pytest.mark.parametrize(
    ("text", "name", "confidence", "explanation"),
    [
        ("all accounts", "Account", 0.95, '"accounts" is the name of Account.'),
        ("list opportunities", "Opportunity", 0.95, '"opportunities" is the name of Opportunity.'),
        ("open tickets", "Case", 0.85, "\"tickets\" means Case (synonym 'ticket')."),
        ("deals of our customers", "Opportunity", 0.85, "\"deals\" means Opportunity (synonym 'deal')."),
        ("Invoice__c of last year", "Invoice__c", 0.95, '"Invoice__c" is the name of Invoice__c.'),
        ("number of cases by owner", "Case", 0.95, '"cases" is the name of Case.'),
        ("by account", "Account", 0.95, '"account" is the name of Account.'),
        ("Industry and Website", "Account", 0.6, "No object is named; Account has the fields that are."),
        ("StageName is Negotiation", "Opportunity", 0.6, "No object is named; Opportunity has the fields that are."),
        ("Birthdate", "Contact", 0.6, "No object is named; Contact has the fields that are."),
    ],
)
def test_find_object(text: str, name: str, confidence: float, explanation: str) -> None:
    draft, _ = read(text)
    assert (draft.object.name, draft.confidence, draft.explanation) == (name, confidence, explanation)


@pytest.mark.parametrize("text", ["", "?", "how is the weather", "the and of", "'accounts'"])
def test_no_object_is_guessed(text: str) -> None:
    assert find_object(Question.parse(text), SCHEMA) is None


@pytest.mark.parametrize(
    ("text", "purpose", "left"),
    [
        ("accounts for view", "VIEW", ""),
        ("accounts using for reference", "REFERENCE", ""),
        ("accounts to view", "", "to view"),
    ],
)
def test_read_purpose(text: str, purpose: str, left: str) -> None:
    draft, leftover = read(text, read_purpose)
    assert (draft.purpose, leftover) == (purpose, left)


@pytest.mark.parametrize(
    ("text", "scope", "expected", "left"),
    [
        ("my cases", "mine", "", ""),
        ("cases of mine", "mine", "", "of"),
        ("my users", "", "", "my"),  # users have no such scope
        ("cases owned by Jane Doe today", "", "Owner.Name = 'Jane Doe'", "today"),
        ("accounts owned by 'van der Berg'", "", "Owner.Name = 'van der Berg'", ""),
        ("accounts owned by them", "", "", "owned by them"),
        ("users owned by Jane", "", "", "owned by Jane"),  # users have no owner
    ],
)
def test_read_ownership(text: str, scope: str, expected: str, left: str) -> None:
    draft, leftover = read(text, read_ownership)
    assert (draft.scope, conditions(draft), leftover) == (scope, expected, left)


@pytest.mark.parametrize(
    ("text", "expected", "left"),
    [
        ("cases of Acme Cycles today", "Account.Name = 'Acme Cycles'", "today"),
        ("accounts called Northwind", "Name = 'Northwind'", ""),
        ("contacts at 'acme cycles'", "", "at acme cycles"),
        ("contacts at 'Acme cycles'", "Account.Name = 'Acme Cycles'", ""),
        ("opportunities of O'Connor & Sons", "Account.Name = 'O\\'Connor & Sons'", ""),
        ("cases of Acme", "", "of Acme"),  # not the whole name
        ("cases of northwind", "", "of northwind"),
        ("users from Northwind", "", "from Northwind"),  # users do not point to accounts
    ],
)
def test_read_companies(text: str, expected: str, left: str) -> None:
    draft, leftover = read(text, read_companies)
    assert (conditions(draft), leftover) == (expected, left)


@pytest.mark.parametrize(
    ("text", "limits", "orders", "intent", "left"),
    [
        ("top 5 accounts", (5, None), [], "top", ""),
        ("first 20 contacts", (20, None), [], "list", ""),
        ("50 contacts", (50, None), [], "list", ""),
        ("the 5 most recent cases", (5, None), [], "list", "the most recent"),
        ("latest 3 cases", (3, None), [], "list", "latest"),
        ("last 3 cases", (3, None), ["CreatedDate DESC"], "top", ""),
        ("ten cases", (10, None), [], "list", ""),
        ("cases limit 7", (7, None), [], "list", ""),
        ("accounts skipping first 40", (None, 40), ["Name"], "list", ""),
        ("first 20 accounts after skipping the first 40", (20, 40), ["Name"], "list", "the"),
        ("cases of the last 30 days", (None, None), [], "list", "of the last 30 days"),
        ("over 50 contacts", (None, None), [], "list", "over 50"),
        ("cases 7", (None, None), [], "list", "7"),
    ],
)
def test_read_limits(text: str, limits: tuple[int, int], orders: list[str], intent: str, left: str) -> None:
    draft, leftover = read(text, read_limits)
    assert ((draft.limit, draft.offset), draft.orders, draft.intent, leftover) == (limits, orders, intent, left)


@pytest.mark.parametrize(
    ("text", "aggregates", "groups", "intent", "left"),
    [
        ("how many cases", [("COUNT", "Id")], [], "count", ""),
        ("number of cases by status", [("COUNT", "Id")], ["Status"], "group", "of"),
        ("cases per priority", [("COUNT", "Id")], ["Priority"], "group", ""),
        ("opportunities grouped by stage", [("COUNT", "Id")], ["StageName"], "group", ""),
        ("total amount of opportunities", [("SUM", "Amount")], [], "sum", "of"),
        ("average probability of opportunities by stage", [("AVG", "Probability")], ["StageName"], "group", "of"),
        ("largest annual revenue of accounts per industry", [("MAX", "AnnualRevenue")], ["Industry"], "group", "of"),
        ("average deal size", [("AVG", "Amount")], [], "sum", ""),
        ("count of opportunities for each month", [("COUNT", "Id")], ["CALENDAR_MONTH(CloseDate)"], "group", "of"),
        ("how many cases per year", [("COUNT", "Id")], ["CALENDAR_YEAR(CreatedDate)"], "group", ""),
        ("number of contacts by account", [("COUNT", "Id")], ["Account.Name"], "group", "of"),
        ("cases by status", [], [], "list", "by status"),
        ("total of users", [], [], "list", "total of"),  # users have no amount
    ],
)
def test_read_grouping(text: str, aggregates: list[Any], groups: list[str], intent: str, left: str) -> None:
    draft, leftover = read(text, read_grouping)
    assert (draft.aggregates, draft.groups, draft.intent, leftover) == (aggregates, groups, intent, left)


def test_an_aggregate_without_a_field_says_which_one_is_taken() -> None:
    assert read("average deal size", read_grouping)[0].assumptions == ["no field is named; Amount is taken"]
    assert read("average amount of deals", read_grouping)[0].assumptions == []


@pytest.mark.parametrize(
    ("text", "orders", "left"),
    [
        ("accounts sorted by name", ["Name"], ""),
        ("accounts ordered by annual revenue descending", ["AnnualRevenue DESC"], ""),
        ("sort accounts by name", ["Name"], ""),
        ("cases order by the priority asc", ["Priority"], "the"),
        ("accounts sorted by colour", [], "sorted by colour"),
        ("top 5 accounts by annual revenue", ["AnnualRevenue DESC NULLS LAST"], ""),
        ("newest accounts", ["CreatedDate DESC"], ""),
        ("oldest 3 cases", ["CreatedDate"], ""),
        ("most recently modified contacts", ["LastModifiedDate DESC"], ""),
        ("cases newest first", ["CreatedDate DESC"], ""),
        ("largest deals", ["Amount DESC NULLS LAST"], ""),
        ("smallest accounts by annual revenue", ["AnnualRevenue NULLS LAST"], ""),
        ("accounts with the highest annual revenue", ["AnnualRevenue DESC NULLS LAST"], "with the"),
        ("accounts in alphabetical order", ["Name"], ""),
        ("accounts ordered by rating then by name", ["Rating", "Name"], ""),
    ],
)
def test_read_ordering(text: str, orders: list[str], left: str) -> None:
    draft, leftover = read(text, read_limits, read_ordering, read_grouping)
    assert (draft.orders, leftover) == (orders, left)
    assert draft.columns == [order.split()[0] for order in orders]


@pytest.mark.parametrize(
    ("text", "expected", "left"),
    [
        ("accounts without contacts", "Id NOT IN (SELECT AccountId FROM Contact)", ""),
        ("accounts with no open cases", "Id NOT IN (SELECT AccountId FROM Case WHERE IsClosed = false)", "with"),
        ("contacts without account", "AccountId = null", ""),
        ("accounts that have at least one case", "Id IN (SELECT AccountId FROM Case)", "that"),
        (
            "accounts that have high cases created this year",
            "Id IN (SELECT AccountId FROM Case WHERE Priority = 'High' AND CreatedDate = THIS_YEAR)",
            "that",
        ),
        ("contacts that have accounts in Industry = 'Energy'", "Account.Industry = 'Energy'", "that have in"),
        ("contacts of banking accounts", "Account.Industry = 'Banking'", "of"),
        ("cases whose account is hot", "Account.Rating = 'Hot'", "whose is"),
        ("users without invoices", "", "without invoices"),
    ],
)
def test_read_related_filters(text: str, expected: str, left: str) -> None:
    draft, leftover = read(text, read_related)
    assert (conditions(draft), leftover) == (expected, left)


@pytest.mark.parametrize(
    ("text", "columns", "children", "left"),
    [
        ("contacts with account name", ["Account.Name"], [], "with"),
        ("accounts and their owner", ["Owner.Name"], [], "and their"),
        ("accounts with contacts", [], ["(SELECT Id, Name, Email, Phone FROM Contacts)"], "with"),
        (
            "accounts with their high cases",
            [],
            ["(SELECT Id, CaseNumber, Subject, Status FROM Cases WHERE Priority = 'High')"],
            "with their",
        ),
        ("accounts and invoices", [], ["(SELECT Id, Name, Due_Date__c, Shipped_On__c FROM Invoices__r)"], "and"),
        ("accounts and other accounts", [], [], "and other"),
        ("users with account name", [], [], "with account name"),  # users have accounts, but no account
    ],
)
def test_read_related_columns_and_subqueries(text: str, columns: list[str], children: list[str], left: str) -> None:
    draft, leftover = read(text, read_related)
    assert (draft.columns, [child.soql for child in draft.children], leftover) == (columns, children, left)


@pytest.mark.parametrize(
    ("text", "expected", "left"),
    [
        ("accounts with annual revenue greater than 5 million", "AnnualRevenue > 5000000", "with"),
        ("accounts where industry is banking", "Industry = 'Banking'", "where"),
        ("accounts where industry is not 'energy'", "Industry != 'Energy'", "where"),
        ("accounts with industry in ('Energy', 'Banking')", "Industry IN ('Energy', 'Banking')", "with"),
        ("accounts with industry not in ('Energy')", "Industry NOT IN ('Energy')", "with"),
        ("accounts with more than 100 employees", "NumberOfEmployees > 100", "with"),
        ("accounts where Phone = 'unknown'", "Phone = 'unknown'", "where"),
        ("users where IsActive is true", "IsActive = true", "where"),
        ("opportunities with probability at least 80%", "Probability >= 80", "with"),
        ("contacts where Account.Industry = 'Energy'", "Account.Industry = 'Energy'", "where"),
        ("contacts where title is Manager", "Title = 'Manager'", "where"),
        ("opportunities where close date is tomorrow", "CloseDate = TOMORROW", "where"),
        ("accounts without a phone", "Phone = null", ""),
        ("contacts with no email", "Email = null", "with"),
        ("opportunities over $50k", "Amount > 50000", ""),
        ("opportunities between 10000 and 50000", "Amount >= 10000 AND Amount <= 50000", ""),
        ("deals under 5 thousand", "Amount < 5000", ""),
        ("deals over 30 days", "", "over 30 days"),
        ("deals over 2000 days", "", "over 2000 days"),
        ("deals between here and there", "", "between here and there"),
        ("cases over $50k", "", "over $ 50k"),  # cases have no amount
        ("cases where status is in progress", "Status = 'In Progress'", "where"),
        ("invoices where channels = 'Mail'", "Channels__c = 'Mail'", "where"),
        ("invoices where channels = 'web'", "Channels__c = 'web'", "where"),
        ("accounts whose industry field is 'Energy'", "Industry = 'Energy'", "whose"),
        ("accounts where industry is Fishing", "Industry = 'Fishing'", "where"),
    ],
)
def test_read_comparisons(text: str, expected: str, left: str) -> None:
    draft, leftover = read(text, read_comparisons)
    assert (conditions(draft), leftover) == (expected, left)


@pytest.mark.parametrize(
    ("text", "expected", "left"),
    [
        ("cases created last month", "CreatedDate = LAST_MONTH", ""),
        ("cases updated in the last 7 days", "LastModifiedDate = LAST_N_DAYS:7", ""),
        ("opportunities closing this quarter", "CloseDate = THIS_QUARTER", ""),
        ("opportunities before 2026-01-31", "CloseDate < 2026-01-31", ""),
        ("cases since 2026-01-31", "CreatedDate >= 2026-01-31T00:00:00Z", ""),
        ("cases created after 2026-01-31", "CreatedDate > 2026-01-31T23:59:59Z", ""),
        (
            "cases of 2026-01-31",
            "CreatedDate >= 2026-01-31T00:00:00Z AND CreatedDate <= 2026-01-31T23:59:59Z",
            "",
        ),
        ("cases older than 30 days", "CreatedDate < LAST_N_DAYS:30", ""),
        ("opportunities in 2024", "CALENDAR_YEAR(CloseDate) = 2024", ""),
        ("cases of the past year", "CreatedDate = LAST_N_DAYS:365", ""),
        ("invoices shipped last week", "Shipped_On__c = LAST_WEEK", ""),
        ("contacts with birthdays this month", "Birthdate = THIS_MONTH", "with"),
        ("opportunities won last year", "CloseDate = LAST_YEAR", "won"),
        ("cases in the last 2 dozens", "", "in the last 2 dozens"),
    ],
)
def test_read_dates(text: str, expected: str, left: str) -> None:
    draft, leftover = read(text, read_dates)
    assert (conditions(draft), leftover) == (expected, left)


@pytest.mark.parametrize(
    ("text", "expected", "left"),
    [
        ("closed won opportunities", "StageName = 'Closed Won'", ""),
        ("lost opportunities", "StageName = 'Closed Lost'", ""),
        ("open cases", "IsClosed = false", ""),
        ("closed cases", "IsClosed = true", ""),
        ("cases that are not closed", "IsClosed = false", "that are"),
        ("high priority cases", "Priority = 'High'", ""),
        ("urgent cases", "Priority = 'High'", ""),
        ("cases that are not escalated yet", "Status != 'Escalated'", "that are yet"),
        ("accounts in consulting industry", "Industry = 'Consulting'", "in"),
        ("invoices by fax", "Channels__c INCLUDES ('Fax')", "by"),
        ("purple cases", "", "purple"),
        ("b invoices", "", "b"),  # one letter is too short
    ],
)
def test_read_picklist_values(text: str, expected: str, left: str) -> None:
    draft, leftover = read(text, read_picklist_values)
    assert (conditions(draft), leftover) == (expected, left)


@pytest.mark.parametrize(
    ("text", "expected", "assumptions", "left"),
    [
        ("active users", "IsActive = true", [], ""),
        ("inactive users", "IsActive = false", [], ""),
        ("users that are not active", "IsActive = false", [], "that are"),
        ("active accounts", "", [], "active"),  # accounts have no such field
        ("accounts named 'Acme'", "Name = 'Acme'", [], ""),
        ("accounts called like 'Ac'", "Name LIKE '%Ac%'", [], ""),
        ("accounts named Acme", "Name = 'Acme'", [], ""),
        ("accounts in Germany", "BillingCountry = 'Germany'", ["Germany is taken for a country"], ""),
        ("accounts in New Jersey", "BillingState = 'New Jersey'", ["New Jersey is taken for a state"], ""),
        ("contacts in San Francisco", "MailingCity = 'San Francisco'", ["San Francisco is taken for a city"], ""),
        ("cases in Berlin", "", [], "in Berlin"),  # cases have no city
    ],
)
def test_read_states(text: str, expected: str, assumptions: list[str], left: str) -> None:
    draft, leftover = read(text, read_states)
    assert (conditions(draft), draft.assumptions, leftover) == (expected, assumptions, left)


@pytest.mark.parametrize(
    ("text", "expected", "left"),
    [
        ("high or medium cases", "Priority IN ('High', 'Medium')", ""),
        ("low, medium and high cases", "Priority IN ('Low', 'Medium', 'High')", ","),
        ("high and escalated cases", "Priority = 'High' AND Status = 'Escalated'", "and"),
        ("high cases, all high", "Priority = 'High'", "all"),
        ("not high or low cases", "Priority != 'High' AND Priority = 'Low'", "or"),
    ],
)
def test_merge_alternatives(text: str, expected: str, left: str) -> None:
    draft, leftover = read(text, read_picklist_values, merge_alternatives)
    assert (conditions(draft), leftover) == (expected, left)


@pytest.mark.parametrize(
    ("text", "columns", "left"),
    [
        ("cases", "Id CaseNumber Subject Status Priority Account.Name Owner.Name", ""),
        ("subject of cases", "Id CaseNumber Subject Status Priority Account.Name Owner.Name", "of"),
        ("accounts with website and phone", "+Website Phone", "with and"),
        ("cases with created date", "+CreatedDate", "with"),
        ("cases with number", "+", "with"),
        ("contacts with job", "+Title", "with"),
        ("contacts with account industry", "+Account.Industry", "with"),
    ],
)
def test_read_columns(text: str, columns: str, left: str) -> None:
    draft, leftover = read(text, read_columns)
    usual = read(draft.object.name, read_columns)[0].columns
    expected = [*usual, *columns[1:].split()] if columns.startswith("+") else columns.split()
    assert (draft.columns, leftover) == (expected, left)


@pytest.mark.parametrize(
    ("text", "ungrounded", "confidence"),
    [
        ("show me all accounts", [], 0.95),
        ("nice accounts", ["nice"], 0.87),
        ("nice and round and nice accounts", ["nice", "round"], 0.79),
        ("accounts over", ["over"], 0.3),
        ("accounts without", ["without"], 0.3),
        ("accounts 7", ["7"], 0.3),
        ("accounts 'x'", ["x"], 0.3),
        ("accounts of Peter", ["Peter"], 0.3),
        ("accounts USA", ["USA"], 0.87),
        ("delete accounts", ["delete"], 0.3),
        (
            "accounts " + " ".join(f"word{letter}" for letter in "abcdefghijkl"),
            [f"word{i}" for i in "abcdefghijkl"],
            0.1,
        ),
    ],
)
def test_grade(text: str, ungrounded: list[str], confidence: float) -> None:
    draft, _ = read(text, grade)
    assert (draft.ungrounded, draft.confidence) == (ungrounded, confidence)


def test_a_query_that_leaves_a_word_out_is_not_complete() -> None:
    assert read("show me all accounts", grade)[0].is_complete
    assert not read("nice accounts", grade)[0].is_complete
    assert not read("average fine deal size", read_grouping, grade)[0].is_complete


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Top 3 deals over $50k closing this quarter", " WHERE Amount > 50000 AND CloseDate = THIS_QUARTER LIMIT 3"),
        ("how many open cases of Northwind", " WHERE Account.Name = 'Northwind' AND IsClosed = false"),
        ("total amount of won deals by stage", " WHERE StageName = 'Closed Won' GROUP BY StageName"),
        ("my high cases sorted by subject", " USING SCOPE mine WHERE Priority = 'High' ORDER BY Subject"),
        ("the 2 latest users for view", " ORDER BY CreatedDate DESC LIMIT 2 FOR VIEW"),
        ("first 5 accounts skipping first 10", " ORDER BY Name LIMIT 5 OFFSET 10"),
        ("deals over $50k and over $50k", " WHERE Amount > 50000"),
        ("accounts", ""),
    ],
)
def test_a_whole_question(text: str, expected: str) -> None:
    draft = INTERPRETER.interpret(text)
    assert draft is not None
    assert draft.soql().partition(f" FROM {draft.object.name}")[2] == expected
    assert draft.ungrounded == []
    assert draft.is_complete


def test_a_draft_writes_columns_aggregates_and_subqueries() -> None:
    draft, _ = read("accounts with their high cases", read_related, read_columns)
    assert draft.soql() == (
        "SELECT Id, Name, Industry, AnnualRevenue, NumberOfEmployees, Owner.Name, "
        "(SELECT Id, CaseNumber, Subject, Status FROM Cases WHERE Priority = 'High') FROM Account"
    )
    draft, _ = read("total amount of deals by stage", read_grouping, read_columns)
    assert draft.soql() == "SELECT StageName, SUM(Amount) FROM Opportunity GROUP BY StageName"


WORDS = (
    "accounts cases deals contacts users my open closed won high not no without have over $50k 5 top latest last "  # noqa: SIM905
    "month days in 2024 by per count total amount name owner industry is = 'x' and or between active named Berlin "
    "of Northwind for view sorted skipping first Account.Name ( , )".split()
)


@given(strategies.lists(strategies.sampled_from(WORDS), max_size=10))
@settings(max_examples=80, deadline=None)
def test_any_words_are_read_into_a_query_or_not_at_all(words: list[str]) -> None:
    draft = INTERPRETER.interpret(" ".join(words))
    if draft is not None:
        assert parse_soql(draft.soql()).sources[0].name == draft.object.name
        assert 0.1 <= draft.confidence <= 0.95


def test_filters_are_described_with_those_of_other_objects() -> None:
    draft, _ = read("cases of O'Connor & Sons", read_companies)
    joined, _ = read("accounts that have high cases", read_related)
    rows = describe_filters([*draft.all_filters, *joined.all_filters])
    assert rows == [
        {
            "field": "Case.Account.Name",
            "operator": "=",
            "value": "O'Connor & Sons",
            "source": "company",
            "confidence": 0.9,
        },
        {"field": "Case.Priority", "operator": "=", "value": "High", "source": "picklist", "confidence": 0.95},
    ]
