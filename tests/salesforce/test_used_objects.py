"""The objects of a query: through aliases, paths, subqueries, semi-joins and TYPEOF, as far as the schema knows."""

import pytest

from bedstone.salesforce.soql import parse_soql
from bedstone.salesforce.validation.used_objects import used_objects
from support.schemas import a_schema_for_rules


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT Id FROM account", ["Account"]),
        ("SELECT Id FROM Unknown__c WHERE Parent__r.Name = 'x'", ["Unknown__c"]),
        ("SELECT Account.Owner.Name, Nothing.Name FROM Contact ORDER BY Account.Parent.Name", "Contact Account User"),
        ("SELECT c.Name, a.Owner.Manager.Name FROM Contact c, c.Account a", "Contact Account User"),
        (
            "SELECT Id, (SELECT Id, Owner.Name FROM Contacts), (SELECT Id FROM Nothings) FROM Account",
            "Account Contact User",
        ),
        (
            "SELECT Id FROM Account WHERE Id IN (SELECT AccountId FROM Case WHERE Contact.Name = 'x')",
            "Account Case Contact",
        ),
        ("SELECT Id FROM Unknown__c WHERE X__c IN (SELECT AccountId FROM Case)", ["Unknown__c", "Case"]),
        ("SELECT What.Name, TYPEOF Who WHEN Contact THEN Email WHEN Lead THEN Name END FROM Task", "Task Contact Lead"),
        ("SELECT Industry, COUNT(Id) FROM Account GROUP BY Industry HAVING MAX(Owner.Name) > 'a'", "Account User"),
    ],
)
def test_objects_of_a_query(query: str, names: str | list[str]) -> None:
    expected = names.split() if isinstance(names, str) else names
    found = used_objects(parse_soql(query), a_schema_for_rules())
    assert (found[0], sorted(found)) == (expected[0], sorted(expected))
