"""Values to filters: dates, amounts, picklist values, records, names."""

from typing import Any

import pytest

from bedstone.errors import InvalidInput
from bedstone.salesforce.graph.object_names import ObjectNames
from bedstone.salesforce.questions.grounding import Grounder
from bedstone.salesforce.questions.row_checks import settle, statements_to_count
from bedstone.salesforce.questions.text_grounds import text_grounds
from bedstone.salesforce.questions.values import date_literal, parse_amount
from support.schemas import a_crm_schema

GRAPH = a_crm_schema()
GROUNDER = Grounder(GRAPH, ObjectNames(GRAPH), ["Acme Cycles", "Northwind"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Today", "TODAY"),
        ("last month", "LAST_MONTH"),
        ("in the previous fiscal quarter", "LAST_FISCAL_QUARTER"),
        ("current year", "THIS_YEAR"),
        ("next 3 weeks", "NEXT_N_WEEKS:3"),
        ("the past 007 days", "LAST_N_DAYS:7"),
        ("2 months ago", "N_MONTHS_AGO:2"),
        ("last_n_days:30", "LAST_N_DAYS:30"),
        ("2026-02-28", "2026-02-28"),
        ("2026-02-30", None),
        ("last", None),
    ],
)
def test_periods_become_date_literals(text: str, expected: str | None) -> None:
    assert date_literal(text) == expected


@pytest.mark.parametrize(
    ("text", "number", "money"),
    [
        ("5,000", "5000", None),
        ("$1.5m", "1500000", "1500000"),
        ("2 thousand", "2000", "2000"),
        ("EUR 12.50", "12.5", "12.5"),
        ("3bn", "3000000000", "3000000000"),
        ("five", None, None),
    ],
)
def test_amounts_become_numbers(text: str, number: str | None, money: str | None) -> None:
    assert (parse_amount(text), parse_amount(text, only_money=True)) == (number, money)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("Account.Industry", "bankng", ("Industry = 'Banking'", True, 0.686)),
        ("Account.Industry", "Fishing", ("Industry LIKE '%Fishing%'", False, 0.3)),
        ("Case.Priority", "urgent", ("Priority = 'High'", True, 0.9)),
        ("Opportunity.StageName", "won", ("StageName = 'Closed Won'", True, 0.85)),
        ("Invoice__c.Channels__c", "web", ("Channels__c INCLUDES ('Web')", True, 0.95)),
        ("User.IsActive", "yes", ("IsActive = true", False, 0.9)),
        ("Opportunity.Amount", "at least 5k", ("Amount >= 5000", False, 0.9)),
        ("Opportunity.CloseDate", "before 2026-01-31", ("CloseDate < 2026-01-31", False, 0.9)),
        (
            "Case.CreatedDate",
            "2026-01-31",
            ("(CreatedDate >= 2026-01-31T00:00:00Z AND CreatedDate <= 2026-01-31T23:59:59Z)", False, 0.9),
        ),
        ("Contact.AccountId", "Acme", ("Account.Name LIKE '%Acme%'", False, 0.5)),
        ("Contact.Title", "Head", ("Title LIKE '%Head%'", False, 0.5)),
        ("Opportunity.Amount", "a lot", None),
        ("User.IsActive", "maybe", None),
    ],
)
def test_a_value_becomes_a_filter_on_its_field(name: str, value: str, expected: tuple[str, bool, float] | None) -> None:
    item = GRAPH.get(name.partition(".")[0])
    field = item.field(name.partition(".")[2]) if item else None
    assert item is not None
    assert field is not None
    if expected is None:
        with pytest.raises(InvalidInput, match="Invalid value"):
            GROUNDER.in_field(item, field, value)
    else:
        assert GROUNDER.in_field(item, field, value) == expected


@pytest.mark.parametrize(
    ("value", "target", "kind", "expected"),
    [
        ("banking", "Account", "unknown", ("picklist_value", "Industry = 'Banking'", 0.95)),
        ("Banking", "Contact", "unknown", ("picklist_value", "Account.Industry = 'Banking'", 0.57)),
        ("high priority", "Case", "unknown", ("picklist_value", "Priority = 'High'", 0.9)),
        ("escalated", None, "status", ("picklist_value", "Case.Status = 'Escalated'", 0.95)),
        ("last month", "Opportunity", "unknown", ("date", "CloseDate = LAST_MONTH", 0.98)),
        ("jane@example.com", None, "unknown", ("email", "Contact.Email = 'jane@example.com'", 0.95)),
        ("$50k", "Account", "unknown", ("amount", "AnnualRevenue >= 50000", 0.9)),
        ("001000000000001", "Contact", "unknown", ("record_id", "Account.Id = '001000000000001AAA'", 0.95)),
        ("northwind", "Case", "company", ("account_name", "Account.Name = 'Northwind'", 0.85)),
        ("Jane Doe", None, "person", ("contact_name", "Contact.Name LIKE 'Jane Doe%'", 0.4)),
        ("tickets", None, "unknown", ("object", "FROM Case", 0.85)),
    ],
)
def test_ground(value: str, target: str | None, kind: Any, expected: tuple[str, str, float]) -> None:
    item = GRAPH.get(target) if target is not None else None
    best = GROUNDER.ground(value, target=item, kind=kind)[0]
    assert (best.type, best.filter, best.confidence) == expected


def test_records_of_the_org_are_evidence() -> None:
    records = [
        ("Account", "Globex", "001A"),
        ("Account", "Globex Inc", "001B"),
        ("Account", "Globex", "001C"),
        ("Case", "Globex", "500A"),
    ]
    found = GROUNDER.ground("globex", target=GRAPH.get("Contact"), kind="company", records=records)
    assert [(item.filter, item.confidence, item.evidence["id"]) for item in found] == [
        ("Account.Name = 'Globex'", 0.92, "001A"),
        ("Account.Name LIKE 'globex%'", 0.85, "001B"),
    ]


@pytest.mark.parametrize(
    ("name", "owner", "expected"),
    [
        ("Banking", "Account", "looks like a picklist value, not a field or object. Use Industry = 'Banking'."),
        ("AcmeCycles", "Account", "looks like the name of a company (Acme Cycles), not a field of Account."),
        ("Banking__c", "Account", None),
        ("banking", "Account", None),
        ("Zebra", "Account", None),
    ],
)
def test_an_unknown_name_is_explained_if_it_is_a_value(name: str, owner: str, expected: str | None) -> None:
    item = GRAPH.get(owner)
    assert item is not None
    explanation = GROUNDER.explain_unknown_name(name, item)
    assert (explanation is None) if expected is None else (explanation is not None and expected in explanation)


@pytest.mark.parametrize(
    ("rows", "confidence", "evidence"),
    [
        ({"SELECT COUNT() FROM Contact WHERE Title = 'CEO'": 60}, 0.88, {"checked": True, "rows": 60}),
        ({}, 0.45, {"checked": False}),  # no org to ask
    ],
)
def test_what_records_have_is_claimed_only_when_it_is_counted(
    rows: dict[str, int], confidence: float, evidence: dict[str, Any]
) -> None:
    found = [item for item in text_grounds("CEO", GRAPH, None, lambda _: None) if "Title" in item.filter]
    (best,) = settle(found, rows)
    assert (best.filter, best.confidence) == ("Contact.Title = 'CEO'", confidence)
    assert best.is_grounded is bool(rows)
    assert {key: best.evidence[key] for key in evidence} == evidence


def test_a_claim_without_rows_is_dropped() -> None:
    found = list(text_grounds("Atlantis", GRAPH, None, lambda _: None))
    assert settle(found, dict.fromkeys(statements_to_count(found), 0)) == []


def test_nothing_is_counted_if_the_meaning_is_sure() -> None:
    found = [*GROUNDER.ground("Banking"), *text_grounds("Banking", GRAPH, None, lambda _: None)]
    assert statements_to_count(found) == []
    assert {item.type for item in settle(found, {})} == {"picklist_value"}
