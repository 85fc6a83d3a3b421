"""Resolves the names of a query to columns: fields, joined parents, functions, aggregates."""

import json
from dataclasses import dataclass, field
from typing import Any

from bedstone.salesforce.demo_org.dates import Calendar
from bedstone.salesforce.demo_org.errors import ApiError, malformed_query, no_column, no_object, no_parent
from bedstone.salesforce.demo_org.schema import NUMBER_TYPES, TEXT_TYPES, FieldType, ObjectType, Schema, names_sql
from bedstone.salesforce.soql.tree import Call, Distance, Expression, Geolocation, Path, Source

MAX_PATH_DEPTH = 5
AGGREGATES = frozenset({"count", "count_distinct", "sum", "avg", "min", "max"})
DATE_FUNCTIONS = {
    "calendar_year": "CAST(substr({0}, 1, 4) AS INTEGER)",
    "calendar_month": "CAST(substr({0}, 6, 2) AS INTEGER)",
    "calendar_quarter": "(CAST(substr({0}, 6, 2) AS INTEGER) + 2) / 3",
    "day_in_month": "CAST(substr({0}, 9, 2) AS INTEGER)",
    "day_in_week": "CAST(strftime('%w', substr({0}, 1, 10)) AS INTEGER) + 1",
    "day_in_year": "CAST(strftime('%j', substr({0}, 1, 10)) AS INTEGER)",
    "week_in_month": "(CAST(substr({0}, 9, 2) AS INTEGER) + 6) / 7",
    "week_in_year": "(CAST(strftime('%j', substr({0}, 1, 10)) AS INTEGER) + 6) / 7",
    "hour_in_day": "CAST(substr({0}, 12, 2) AS INTEGER)",
    "day_only": "substr({0}, 1, 10)",
    "fiscal_year": "fiscal(substr({0}, 1, 10), 0)",
    "fiscal_quarter": "fiscal(substr({0}, 1, 10), 1)",
    "fiscal_month": "fiscal(substr({0}, 1, 10), 2)",
}
NOT_AGGREGATED = frozenset(
    {"boolean", "time", "base64", "address", "location", "multipicklist", "encryptedstring", "anyType"}
)
CATEGORY_FIELDS = frozenset({"DataCategoryGroupName", "DataCategoryName"})
HISTORY_FIELDS = frozenset({"Field", "OldValue", "NewValue"})
NUMBER = FieldType("", "double", "", sortable=True)
WHOLE = FieldType("", "int", "")
DAY = FieldType("", "date", "")
TEXT = FieldType("", "string", "")


@dataclass(frozen=True)
class Resolved:
    """An expression as SQL, with the field or type it returns."""

    sql: str
    field: FieldType
    owner: ObjectType | None = None
    is_aggregate: bool = False
    params: tuple[Any, ...] = ()


@dataclass
class Scope:
    """The names of one FROM clause: the object, its alias in SQL, and the parents joined so far."""

    schema: Schema
    calendar: Calendar
    root: ObjectType
    alias: str
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    joins: dict[tuple[str, ...], tuple[str, ObjectType]] = field(default_factory=dict)
    join_sql: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, schema: Schema, calendar: Calendar, sources: tuple[Source, ...], alias: str) -> "Scope":
        """Return the scope of a FROM clause: one object, and further names for its parents."""
        first = sources[0]
        root = schema.get(first.name)
        if root is None or root.name == "Name":
            raise no_object(first.name, first.path.span[0])
        scope = cls(schema, calendar, root, alias)
        scope.names[root.name.lower()] = ()
        if first.alias:
            scope.names[first.alias.lower()] = ()
        for other in sources[1:]:
            parts = other.path.parts
            if parts[0].lower() not in scope.names:
                raise malformed_query(
                    "A driving SObject type has already been set, all other entity types in the FROM clause must be "
                    f"relationships to the initial object.  The driving object is {root.name}"
                )
            relationships = scope.names[parts[0].lower()] + parts[1:]
            if relationships:
                scope.parent(relationships, other.path.span[0])
            scope.names[(other.alias or parts[-1]).lower()] = relationships
        return scope

    def parts(self, path: Path) -> tuple[str, ...]:
        """Return the parts of a path from the root, without aliases."""
        first = path.parts[0].lower()
        if len(path.parts) > 1 and first in self.names:
            return self.names[first] + path.parts[1:]
        return path.parts

    def resolve(self, path: Path) -> Resolved:
        """Resolve a field."""
        *parents, name = self.parts(path)
        owner, alias = self.root, self.alias
        if parents:
            alias, owner = self.parent(tuple(parents), path.span[0])
        found = owner.field(name)
        if found is None:
            raise no_column(name, owner.name, path.span[0])
        return Resolved(self.column(found, alias), found, owner)

    def column(self, item: FieldType, alias: str) -> str:
        """Return the SQL of a field of a joined table."""
        if item.formula is not None:
            return f"({item.formula.replace('{t}', alias)})"
        return f'{alias}."{item.name}"'

    def parent(self, relationships: tuple[str, ...], position: int) -> tuple[str, ObjectType]:
        """Return the alias and object at the end of a chain of relationships; join it if it is new."""
        if len(relationships) > MAX_PATH_DEPTH:
            raise malformed_query("Relationship path cannot exceed 5 levels", position)
        key = tuple(name.lower() for name in relationships)
        if key in self.joins:
            return self.joins[key]
        alias, owner = self.parent(relationships[:-1], position) if len(relationships) > 1 else (self.alias, self.root)
        link = owner.by_relationship.get(key[-1])
        if link is None:
            raise no_parent(relationships[-1], position)
        target = self.schema.get("Name" if link.is_polymorphic else link.reference_to[0])
        if target is None:
            raise no_parent(relationships[-1], position)
        joined = f"{self.alias}_{len(self.joins) + 1}"
        table = f"({names_sql(self.schema, link.reference_to)})" if link.is_polymorphic else f'"{target.name}"'
        self.join_sql.append(f'LEFT JOIN {table} {joined} ON {joined}."Id" = {alias}."{link.name}"')
        self.joins[key] = (joined, target)
        return joined, target

    def expression(self, expression: Expression) -> Resolved:
        """Resolve a field, a function of one, or a distance."""
        match expression:
            case Path():
                return self.resolve(expression)
            case Distance():
                return self._distance(expression)
            case Call():
                return self._call(expression)

    def _call(self, call: Call) -> Resolved:
        name = call.name.lower()
        if name in AGGREGATES:
            return self._aggregate(name, call)
        if name == "converttimezone":
            raise malformed_query("convertTimezone() can only be used inside a date function", call.span[0])
        if name in DATE_FUNCTIONS:
            return self._date_function(name, call)
        inner = self.expression(call.arguments[0])
        if inner.field.parts or (name == "tolabel" and not _has_label(inner)):
            raise malformed_query(f"{call.name} can not be used on {inner.field.name}", call.span[0])
        if name == "convertcurrency" and inner.field.type != "currency":
            raise malformed_query(f"{call.name} can not be used on {inner.field.name}", call.span[0])
        match name:
            case "tolabel" | "convertcurrency":
                return inner
            case "format":
                return Resolved(f"formatted({inner.sql}, '{inner.field.type}')", TEXT, inner.owner, inner.is_aggregate)
            case "grouping":  # each grouping set replaces it by 0 or 1
                argument = call.arguments[0]
                key = ".".join(self.parts(argument)).lower() if isinstance(argument, Path) else ""
                return Resolved(f"<grouping {key}>", WHOLE, None, is_aggregate=True)
        raise malformed_query(f"unexpected token: '{call.name}'", call.span[0])

    def _aggregate(self, name: str, call: Call) -> Resolved:
        if not call.arguments:
            return Resolved("COUNT(*)", WHOLE, None, is_aggregate=True)
        inner = self.expression(call.arguments[0])
        if inner.is_aggregate:
            raise malformed_query("Grouped field should not be aggregated: " + call.name, call.span[0])
        kind = inner.field.type
        if inner.owner is not None and inner.owner.name.endswith("__x"):
            raise malformed_query("Aggregates are not supported on external objects", call.span[0])
        if kind in NOT_AGGREGATED or (name in ("sum", "avg") and kind not in NUMBER_TYPES):
            raise malformed_query(
                f"field {inner.field.name} does not support aggregate operator {name.upper()}", call.span[0]
            )
        if name == "count_distinct":
            counted = f"folded({inner.sql})" if kind in TEXT_TYPES else inner.sql
            return Resolved(f"COUNT(DISTINCT {counted})", WHOLE, None, is_aggregate=True)
        if name == "count":
            return Resolved(f"COUNT({inner.sql})", WHOLE, None, is_aggregate=True)
        if kind in TEXT_TYPES:
            order = json.dumps(inner.field.values).replace("'", "''")
            return Resolved(f"{name.upper()}_TEXT({inner.sql}, '{order}')", inner.field, inner.owner, is_aggregate=True)
        given = inner.field if name in ("min", "max") or kind != "int" else NUMBER
        return Resolved(f"{name.upper()}({inner.sql})", given, inner.owner, is_aggregate=True)

    def _date_function(self, name: str, call: Call) -> Resolved:
        argument = call.arguments[0]
        shifted = isinstance(argument, Call) and argument.name.lower() == "converttimezone"
        inner = self.expression(argument.arguments[0] if isinstance(argument, Call) and shifted else argument)
        kind = inner.field.type
        if kind not in ("date", "datetime") or (name in ("day_only", "hour_in_day") and kind != "datetime"):
            raise malformed_query(f"field {inner.field.name} does not support date function {call.name}", call.span[0])
        sql = f"local_time({inner.sql})" if shifted else inner.sql
        return Resolved(DATE_FUNCTIONS[name].format(sql), DAY if name == "day_only" else WHOLE, inner.owner)

    def _distance(self, distance: Distance) -> Resolved:
        place = self.resolve(distance.field)
        if place.field.type not in ("location", "address"):
            raise ApiError("INVALID_FIELD", f"{place.field.name} is not a geolocation field", position=distance.span[0])
        if not isinstance(distance.point, Geolocation) or distance.unit.lower() not in ("mi", "km"):
            raise malformed_query("Invalid distance unit or location", distance.span[0])
        alias = place.sql.rpartition(".")[0]
        latitude, longitude = (
            f'{alias}."{part}"'
            for part in place.field.parts
            if part.lower().endswith(("latitude__s", "longitude__s", "latitude", "longitude"))
        )
        point = (distance.point.latitude.value, distance.point.longitude.value, distance.unit.lower())
        return Resolved(f"distance({latitude}, {longitude}, ?, ?, ?)", NUMBER, None, params=point)


def _has_label(found: Resolved) -> bool:
    """Return whether values are translated: of picklists, names of record types and categories, histories."""
    owner, name = found.owner.name if found.owner is not None else "", found.field.name
    is_history = owner.endswith("History") and name in HISTORY_FIELDS
    return (
        found.field.type in ("picklist", "multipicklist", "combobox")
        or (owner, name) == ("RecordType", "Name")
        or name in CATEGORY_FIELDS
        or is_history
    )
