"""Random SOQL over a schema: most of it right, some of it wrong in every way an org knows to refuse."""

import random
from collections.abc import Iterable
from typing import TypeVar

from bedstone.salesforce.graph.model import NUMBER_TYPES, Field, ObjectSchema, SchemaGraph

Item = TypeVar("Item")
COMPARISONS = ("=", "!=", "<", ">", "<=", ">=")
DATE_FUNCTIONS = ("CALENDAR_YEAR", "DAY_IN_WEEK", "DAY_ONLY", "HOUR_IN_DAY", "FISCAL_QUARTER")
LITERALS = {
    "text": ("'x'", "'Banking'", "''", "'it\\'s'"),
    "number": ("5", "-2.5", "USD500"),
    "boolean": ("true", "false"),
    "date": ("2024-03-01", "2026-12-31"),
    "datetime": ("2024-03-01T10:00:00Z",),
    "literal": ("TODAY", "LAST_N_DAYS:5", "THIS_YEAR", "LAST_N_DAYS"),
    "id": ("'001000000000001AAA'", "'001000000000001'"),
    "null": ("null",),
}
FITTING = {
    "boolean": "boolean",
    "date": "date",
    "datetime": "datetime",
    "id": "id",
    "reference": "id",
}


class Queries:
    """Makes queries from a seed; `wrong` is the chance that a choice is made without looking at the schema."""

    def __init__(self, graph: SchemaGraph, seed: int, wrong: float = 0.06) -> None:
        self._graph = graph
        self._objects = [item for item in graph.objects.values() if item.queryable]
        self._chance = random.Random(seed)
        self._wrong = wrong

    def make(self) -> str:
        item = self._pick(self._objects)
        return self._grouped(item) if self._is(0.25) else self._plain(item)

    def _plain(self, item: ObjectSchema) -> str:
        columns = [self._column(item) for _ in range(self._chance.randint(1, 4))]
        if self._is(0.9):
            columns = list(dict.fromkeys(columns))
        children = [child for child in item.children if child.relationship and self._graph.get(child.object)]
        if children and self._is(0.2):
            child = self._pick(children)
            inner = self._graph.get(child.object)
            assert inner is not None
            where = f" WHERE {self._term(inner)}" if self._is(0.3) else ""
            offset = " OFFSET 1" if self._is(0.1) else ""
            limit = f" LIMIT 3{offset}" if self._is(0.4) else ""
            columns.append(
                f"(SELECT {self._column(inner)} FROM {self._misspelt(str(child.relationship))}{where}{limit})"
            )
        polymorphic = [field for field in item.fields if len(field.reference_to) > 1 and field.relationship]
        if polymorphic and self._is(0.2):
            link = self._pick(polymorphic)
            kind = self._pick(list(link.reference_to)) if not self._slips() else "Product2"
            columns.append(f"TYPEOF {link.relationship} WHEN {kind} THEN Id ELSE Name END")
        if self._is(0.05):
            columns = [f"FIELDS({self._pick(['ALL', 'STANDARD', 'CUSTOM', 'NONE'])})"]
        scope = f" USING SCOPE {self._pick(['mine', 'everything', 'nobody'])}" if self._is(0.04) else ""
        text = f"SELECT {', '.join(columns)} FROM {self._misspelt(item.name)}{scope}"
        return text + self._where(item) + self._order(item) + self._limits()

    def _grouped(self, item: ObjectSchema) -> str:
        keys = [self._key(item) for _ in range(self._chance.randint(0, 2))]
        kind = self._pick(["", "", "ROLLUP", "CUBE"])
        aggregates = [self._aggregate(item) for _ in range(self._chance.randint(0, 2))] or ["COUNT(Id)"]
        shown = keys if not self._slips() else [*keys, self._column(item)]
        columns = [*shown, *(f"{part} a{place}" for place, part in enumerate(aggregates))]
        if not keys and self._is(0.3):
            columns = ["COUNT()"]
        if kind and keys and self._is(0.3):
            columns.append(f"GROUPING({keys[0]})")
        text = f"SELECT {', '.join(columns)} FROM {item.name}{self._where(item)}"
        if keys:
            joined = ", ".join(keys)
            text += f" GROUP BY {f'{kind}({joined})' if kind else joined}"
            if self._is(0.3):
                text += f" HAVING {self._aggregate(item)} > 1" if not self._slips() else f" HAVING {self._term(item)}"
            if self._is(0.3):
                text += f" ORDER BY {self._pick([*keys, self._aggregate(item)])}"
        return text + (" LIMIT 5" if self._is(0.2) else "")

    def _where(self, item: ObjectSchema) -> str:
        if self._is(0.4):
            return ""
        terms = [self._term(item) for _ in range(self._chance.randint(1, 3))]
        joint = self._pick([" AND ", " AND ", " OR "])
        if self._is(0.15):
            terms[-1] = f"(NOT {terms[-1]})"
        return f" WHERE {joint.join(terms)}"

    def _term(self, item: ObjectSchema) -> str:  # noqa: PLR0911 - one for each kind
        if self._is(0.12):
            return self._semi_join(item)
        field = self._pick(item.fields)
        path = self._path(item, field)
        roll = self._chance.random()
        if field.type in ("date", "datetime") and roll < 0.2:
            function = self._pick(DATE_FUNCTIONS)
            value = "2024-01-01" if function == "DAY_ONLY" else "3"
            return f"{function}({path}) = {value if not self._slips() else 'TODAY'}"
        if field.type in ("location", "address") and roll < 0.7:
            sign = "<" if not self._slips() else "="
            return f"DISTANCE({path}, GEOLOCATION(53.5, 10), 'km') {sign} 100"
        if field.type == "multipicklist" and roll < 0.6:
            return f"{path} INCLUDES ('A;B')"
        if field.type in ("string", "picklist", "email", "phone", "url") and roll < 0.3:
            return f"{path} LIKE 'a%'"
        if roll < 0.36:
            return f"{path} {self._pick(['LIKE', 'INCLUDES', '<'])} 'x'"
        if roll < 0.5:
            return f"{path} {self._pick(['IN', 'NOT IN'])} ({self._value(field)}, {self._value(field)})"
        signs = COMPARISONS if field.type not in ("id", "reference", "boolean") or self._slips() else ("=", "!=")
        return f"{path} {self._pick(signs)} {self._value(field)}"

    def _semi_join(self, item: ObjectSchema) -> str:
        children = [child for child in item.children if (found := self._graph.get(child.object)) and found is not item]
        if not children:
            return "Id = null"
        child = self._pick(children)
        inner = self._graph.get(child.object)
        assert inner is not None
        field = child.field if not self._slips() else self._pick(inner.fields).name
        left = "Id" if not self._slips() else self._pick(item.fields).name
        where = f" WHERE {self._term(inner)}" if self._is(0.4) else ""
        return f"{left} {self._pick(['IN', 'NOT IN'])} (SELECT {field} FROM {inner.name}{where})"

    def _order(self, item: ObjectSchema) -> str:
        if self._is(0.6):
            return ""
        field = self._pick([field for field in item.fields if field.sortable or self._slips()] or item.fields)
        return f" ORDER BY {self._path(item, field)}{self._pick(['', ' DESC', ' NULLS LAST'])}"

    def _limits(self) -> str:
        limit = f" LIMIT {self._pick([0, 1, 50, 200, 201])}" if self._is(0.7) else ""
        return limit + (f" OFFSET {self._pick([1, 2000, 2001])}" if limit and self._is(0.1) else "")

    def _column(self, item: ObjectSchema) -> str:
        links = [field for field in item.fields if field.relationship and field.reference_to]
        if links and self._is(0.3):
            link = self._pick(links)
            target = self._graph.get(link.reference_to[0]) if len(link.reference_to) == 1 else None
            name = (
                self._misspelt(self._pick(target.fields).name) if target else self._pick(["Name", "Type", "Industry"])
            )
            return f"{self._misspelt(str(link.relationship))}.{name}"
        name = self._misspelt(self._pick(item.fields).name)
        return f"{self._pick(['FORMAT', 'toLabel'])}({name}) f" if self._is(0.05) else name

    def _key(self, item: ObjectSchema) -> str:
        groupable = [field.name for field in item.fields if field.groupable or self._slips()]
        return self._pick(groupable or ["Id"])

    def _aggregate(self, item: ObjectSchema) -> str:
        name = self._pick(["COUNT", "COUNT_DISTINCT", "SUM", "AVG", "MIN", "MAX"])
        wanted = NUMBER_TYPES if name in ("SUM", "AVG") else None
        fields = [
            field.name
            for field in item.fields
            if self._slips() or (field.type in wanted if wanted else field.aggregatable)
        ]
        return f"{name}({self._pick(fields)})" if fields else "COUNT(Id)"

    def _path(self, item: ObjectSchema, field: Field) -> str:
        """A field of an object, or by way of a parent that is of the same kind."""
        mine = [link for link in item.fields if link.relationship and link.reference_to == (item.name,)]
        prefix = f"{self._pick(mine).relationship}." if mine and self._is(0.15) else ""
        return prefix + self._misspelt(field.name)

    def _value(self, field: Field) -> str:
        kind = FITTING.get(field.type, "number" if field.type in NUMBER_TYPES else "text")
        if self._is(0.1):
            kind = "null"
        elif field.type in ("date", "datetime") and self._is(0.4):
            kind = "literal"
        if self._slips():
            kind = self._pick(list(LITERALS))
        return self._pick(LITERALS[kind])

    def _misspelt(self, name: str) -> str:
        return name if not self._slips() else f"{name[:-1]}q"

    def _slips(self) -> bool:
        return self._chance.random() < self._wrong

    def _is(self, share: float) -> bool:
        return self._chance.random() < share

    def _pick(self, items: Iterable[Item]) -> Item:
        return self._chance.choice(list(items))
