"""Records as a table: which columns it has, and what stands in them."""

from typing import Any

import pytest

from bedstone.salesforce.rows import column_names, count_row, selected_columns, table_rows

CONTACTS: list[dict[str, Any]] = [{"Name": "Ada", "Account": {"Name": "Acme"}}, {"Name": "Bo", "Account": None}]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT Id, Parent.Name FROM Account", ["Id", "Parent.Name"]),
        ("SELECT a.Id, a.Parent.Name FROM Account a", ["Id", "Parent.Name"]),
        ("SELECT Account.Name FROM Account", ["Name"]),
        ("SELECT c.Id, a.Name FROM Contact c, c.Account a", ["Id", "Account.Name"]),
        (
            "SELECT FORMAT(AnnualRevenue) r, toLabel(Industry), Parent.Name FROM Account",
            ["r", "Industry", "Parent.Name"],
        ),
        ("SELECT Name, (SELECT Id FROM Contacts) FROM Account", ["Name", "Contacts"]),
        ("SELECT Account.Name, COUNT(Id) FROM Contact GROUP BY Account.Name", []),
        ("SELECT MAX(Amount) FROM Opportunity", []),
        ("SELECT FIELDS(ALL) FROM Account LIMIT 2", []),
        ("SELECT FROM", []),
    ],
)
def test_a_query_names_the_columns_that_come_back(query: str, columns: list[str]) -> None:
    assert selected_columns(query) == columns


def test_parents_that_are_nowhere_keep_their_columns() -> None:
    rows = table_rows(CONTACTS)
    assert column_names(rows, ["name", "account.name"]) == ["Name", "Account.Name"]
    assert rows == [{"Name": "Ada", "Account.Name": "Acme"}, {"Name": "Bo"}]
    lonely = table_rows(CONTACTS[1:])
    assert column_names(lonely, ["Name", "Account.Name"]) == ["Name", "Account.Name"]
    assert column_names(lonely) == ["Name", "Account"]


def test_children_are_counted_and_a_count_is_a_row() -> None:
    records = [{"Contacts": {"records": [{"Id": "x"}] * number, "totalSize": number}} for number in (1, 2)]
    assert table_rows(records) == [{"Contacts": "1 row: x"}, {"Contacts": "2 rows: x; x"}]
    assert count_row("select count() from Contact", 7) == [{"COUNT()": 7}]
    assert count_row("SELECT Id FROM Contact", 7) == []
