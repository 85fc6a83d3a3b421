"""SOQL over the demo org beside a plain evaluation of the same records in Python: both must find the same rows."""

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

from bedstone.salesforce.demo_org.org import DemoOrg
from bedstone.salesforce.soql import parse_soql
from bedstone.salesforce.soql.quoting import like_string, soql_string
from bedstone.salesforce.soql.tree import (
    And,
    Boolean,
    Choice,
    Comparison,
    Condition,
    Membership,
    Moment,
    Not,
    Null,
    Number,
    Or,
    Path,
    Text,
)

QUERIES = 600
FIELDS = {
    "Account": ["Name", "Industry", "AnnualRevenue", "NumberOfEmployees", "BillingCity", "Owner.Name", "Parent.Name"],
    "Opportunity": [
        "Name",
        "StageName",
        "Amount",
        "CloseDate",
        "IsWon",
        "Account.Name",
        "Account.Industry",
        "Owner.Name",
    ],
    "Case": ["Subject", "Status", "Priority", "IsClosed", "Reason", "Account.BillingCity", "Contact.LastName"],
    "Bike__c": [
        "Name",
        "Model__c",
        "Price__c",
        "Mileage_km__c",
        "Sold_On__c",
        "In_Warranty__c",
        "Options__c",
        "Dealer__r.Name",
    ],
}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def org() -> Iterator[DemoOrg]:
    org = DemoOrg()
    yield org
    org.close()


class Plain:
    """The rules written down once more, over rows that are dictionaries."""

    def __init__(self, org: DemoOrg) -> None:
        self.org = org
        self.tables: dict[str, dict[str, Row]] = {}

    def table(self, name: str) -> dict[str, Row]:
        if name not in self.tables:
            item = self.org.schema.get(name)
            assert item
            columns = [field.name for field in item.fields if field.is_stored]
            listed = ", ".join(f'"{column}"' for column in columns)
            rows = self.org.database.rows(f'SELECT {listed} FROM "{item.name}"')
            self.tables[name] = {row[0]: dict(zip(columns, row, strict=True)) for row in rows}
        return self.tables[name]

    def value(self, name: str, row: Row | None, path: tuple[str, ...]) -> tuple[Any, str]:
        """The value at the end of a path, and its field's type."""
        item = self.org.schema.get(name)
        assert item
        if len(path) == 1:
            field = item.field(path[0])
            assert field
            return (row[field.name] if row else None), field.type
        link = item.by_relationship[path[0].lower()]
        target_id = row[link.name] if row else None
        target = self.org.schema.of_id(target_id).name if target_id else link.reference_to[0]  # type: ignore[union-attr]
        return self.value(target, self.table(target).get(str(target_id)), path[1:])

    def holds(self, name: str, row: Row, condition: Condition) -> bool:
        match condition:
            case And(terms):
                return all(self.holds(name, row, term) for term in terms)
            case Or(terms):
                return any(self.holds(name, row, term) for term in terms)
            case Not(term):
                return not self.holds(name, row, term)
            case Comparison(Path(parts), operator, right):
                return compared(*self.value(name, row, parts), operator, literal(right))
            case Membership(Path(parts), values, negated):
                held, kind = self.value(name, row, parts)
                assert isinstance(values, tuple)
                return any(compared(held, kind, "=", literal(value)) for value in values) != negated
            case Choice(Path(parts), operator, values):
                held, _ = self.value(name, row, parts)
                have = {part.casefold() for part in (held or "").split(";")}
                found = any(all(part.casefold() in have for part in literal(value).split(";")) for value in values)
                return found == (operator == "INCLUDES")
        raise AssertionError(condition)


def literal(value: Any) -> Any:
    match value:
        case Null():
            return None
        case Text(text):
            return text
        case Number():
            return value.value
        case Boolean(truth):
            return truth
        case Moment(_, written):
            return written
    raise AssertionError(value)


def compared(held: Any, kind: str, operator: str, wanted: Any) -> bool:
    if kind == "boolean":
        held, wanted = bool(held), bool(wanted)
    if isinstance(held, str) and isinstance(wanted, str):
        held, wanted = held.casefold(), wanted.casefold()
    if operator == "=":
        return bool(held == wanted)
    if operator in ("!=", "<>"):
        return bool(held != wanted)
    if held is None or wanted is None:
        return operator == "LIKE" and held is wanted is None
    if operator == "LIKE":
        parts = re.split(r"(\\.|%|_)", wanted)
        pattern = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part.removeprefix("\\")) for part in parts)
        return re.fullmatch(pattern, held, re.DOTALL) is not None
    return bool({"<": held < wanted, ">": held > wanted, "<=": held <= wanted, ">=": held >= wanted}[operator])


class Author:
    """Writes random conditions about values that occur, and some that do not."""

    def __init__(self, plain: Plain, chance: random.Random) -> None:
        self.plain = plain
        self.chance = chance

    def condition(self, name: str, depth: int = 0) -> str:
        roll = self.chance.random()
        if depth < 3 and roll < 0.35:
            joint = self.chance.choice([" AND ", " OR "])
            return joint.join(f"({self.condition(name, depth + 1)})" for _ in range(self.chance.choice([2, 3])))
        if depth < 3 and roll < 0.45:
            return f"NOT ({self.condition(name, depth + 1)})"
        return self.comparison(name)

    def comparison(self, name: str) -> str:
        field = self.chance.choice(FIELDS[name])
        row = self.chance.choice(list(self.plain.table(name).values()))
        held, kind = self.plain.value(name, row, tuple(field.split(".")))
        if kind == "multipicklist":
            chosen = ";".join(
                self.chance.sample(["Rain Cover", "child seat", "GPS Tracker"], self.chance.choice([1, 2]))
            )
            return f"{field} {self.chance.choice(['INCLUDES', 'EXCLUDES'])} ({soql_string(chosen)})"
        if held is None or self.chance.random() < 0.08:
            return f"{field} {self.chance.choice(['=', '!='])} null"
        if kind == "boolean":
            return f"{field} {self.chance.choice(['=', '!='])} {self.chance.choice(['true', 'false'])}"
        if kind in ("int", "double", "currency", "date"):
            return f"{field} {self.chance.choice(['=', '!=', '<', '>', '<=', '>='])} {held}"
        return self.text(field, str(held))

    def text(self, field: str, held: str) -> str:
        held = self.chance.choice([held, held.upper(), held.lower()])
        match self.chance.randrange(4):
            case 0:
                return f"{field} {self.chance.choice(['=', '!='])} {soql_string(held)}"
            case 1:
                others = self.chance.choice([["nothing"], [held[::-1], "x"]])
                values = ", ".join(soql_string(value) for value in [held, *others])
                return f"{field} {self.chance.choice(['IN', 'NOT IN'])} ({values})"
            case 2:
                cut = self.chance.randint(1, max(1, len(held) - 1))
                return f"{field} LIKE {like_string(held[:cut], before=self.chance.random() < 0.3)}"
            case _:
                return (
                    f"{field} {self.chance.choice(['<', '>', '='])} {soql_string(held)}"
                    if held.isascii()
                    else f"{field} != ''"
                )


def test_both_find_the_same(org: DemoOrg) -> None:
    chance = random.Random(7)
    plain = Plain(org)
    author = Author(plain, chance)
    empty = 0
    for _ in range(QUERIES):
        name = chance.choice(list(FIELDS))
        condition = author.condition(name)
        if "!= ''" in condition:
            continue
        statement = f"SELECT Id FROM {name} WHERE {condition}"
        query = parse_soql(statement)
        assert query.where
        expected = {
            record_id
            for record_id, row in plain.table(name).items()
            if not row["IsDeleted"] and plain.holds(name, row, query.where)
        }
        found = {row["Id"] for row in org.queries.run(statement, "/x")["records"]}
        assert found == expected, statement
        empty += not expected
    assert empty < QUERIES / 3
