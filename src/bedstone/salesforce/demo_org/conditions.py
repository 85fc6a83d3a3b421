"""Compiles conditions to SQL with bound parameters, by an org's rules for null, case, ids, dates and picklists."""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from bedstone.salesforce.demo_org.dates import format_moment, parse_moment
from bedstone.salesforce.demo_org.errors import ApiError, malformed_query
from bedstone.salesforce.demo_org.schema import ID_TYPES, NUMBER_TYPES, TEXT_TYPES, FieldType
from bedstone.salesforce.demo_org.scope import DATE_FUNCTIONS, Resolved, Scope
from bedstone.salesforce.ids import long_id
from bedstone.salesforce.soql.literals import COUNTED_DATE_LITERALS
from bedstone.salesforce.soql.tree import (
    And,
    Boolean,
    Call,
    Choice,
    Comparison,
    Condition,
    DateLiteral,
    Distance,
    Expression,
    Membership,
    Moment,
    Money,
    Not,
    Null,
    Number,
    Or,
    Path,
    SemiJoin,
    Sum,
    Text,
    Value,
)

Sql = tuple[str, tuple[Any, ...]]
SQL_OPERATORS = {"=": "IS", "!=": "IS NOT", "<>": "IS NOT", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
NO_SEMI_JOIN = frozenset({"activityhistory", "attachment", "event", "note", "openactivity", "task"})
MAX_SEMI_JOINS = 2
SELECT_ONLY = frozenset({"format", "convertcurrency"})
MAX_FLAT_TERMS = 50
MAX_TEXT = 4_000
MAX_DATE_UNITS = 99_999
MIN_YEAR = 1700
MAX_YEAR = 4000


class Conditions:
    """Compiles WHERE or HAVING of one scope."""

    def __init__(self, scope: Scope, *, having: bool = False, nested: bool = False) -> None:
        self._scope = scope
        self._having = having
        self._nested = nested
        self._semi_joins = 0

    def compile(self, condition: Condition) -> Sql:
        """Return a condition as SQL with its parameters."""
        return self._condition(condition, top=True)

    def _condition(self, condition: Condition, *, top: bool, junction: str = "") -> Sql:  # noqa: PLR0911 - one per kind
        match condition:
            case And(terms):
                return self._join(" AND ", terms, top=top, junction="AND")
            case Or(terms):
                return self._join(" OR ", terms, top=False, junction="OR")
            case Not(term):
                sql, params = self._condition(term, top=False, junction="NOT")
                return f"NOT coalesce({sql}, 0)", params
            case Comparison():
                return self._comparison(condition)
            case Choice():
                return self._choice(condition)
            case Membership(values=SemiJoin() as inner):
                return self._semi_join(condition, inner, top=top, junction=junction)
            case Membership():
                return self._membership(condition)

    def _join(self, sign: str, terms: Sequence[Condition], *, top: bool, junction: str) -> Sql:
        parts = [self._condition(term, top=top, junction=junction) for term in terms]
        return _join_balanced(sign, [sql for sql, _ in parts]), tuple(value for _, params in parts for value in params)

    def _resolve(self, expression: Expression | Sum) -> Resolved:
        if isinstance(expression, Sum):
            raise malformed_query(f"unexpected token: '{expression.operator}'", expression.span[0])
        if isinstance(expression, Call) and expression.name.lower() in SELECT_ONLY:
            raise malformed_query(f"{expression.name} can not be used in a filter", expression.span[0])
        found = self._scope.expression(expression)
        if found.is_aggregate and not self._having:
            raise malformed_query(f"Grouped field should not be aggregated: {_name(expression)}", expression.span[0])
        if not found.field.filterable and not found.is_aggregate and isinstance(expression, Path):
            if found.field.type == "address":
                raise ApiError("INVALID_FIELD", "Address fields can only be filtered using Distance expressions")
            raise ApiError(
                "INVALID_FIELD",
                f"field '{found.field.name}' can not be filtered in a query call",
                position=expression.span[0],
            )
        return found

    def _comparison(self, node: Comparison) -> Sql:
        left = self._resolve(node.left)
        field, operator = left.field, node.operator
        if isinstance(node.left, Distance) and operator not in ("<", ">"):
            raise malformed_query("Only < and > are allowed with DISTANCE", node.span[0])
        if field.type in ("address", "location") and not isinstance(node.left, Distance):
            raise ApiError("INVALID_FIELD", "Address fields can only be filtered using Distance expressions")
        if operator == "LIKE":
            return self._like(left, node.right)
        if field.type == "boolean" and operator in ("<", ">", "<=", ">="):
            raise ApiError("INVALID_QUERY_FILTER_OPERATOR", "invalid operator on boolean field", position=node.span[0])
        if isinstance(node.right, Money) and left.is_aggregate:
            raise malformed_query("A currency can not be compared with an aggregate", node.right.span[0])
        if isinstance(node.right, DateLiteral):
            if isinstance(node.left, Call) and node.left.name.lower() in DATE_FUNCTIONS:
                raise malformed_query(f"{node.left.name} can not be compared with a date literal", node.right.span[0])
            return self._in_range(left, operator, node.right)
        value = self.value(field, node.right)
        if field.type == "boolean":
            wanted = bool(value)  # null means false
            return f"coalesce({left.sql}, 0) {SQL_OPERATORS[operator]} ?", (*left.params, int(wanted))
        if value is None:
            if operator not in ("=", "!=", "<>"):
                return "0", ()
            return f"{left.sql} {SQL_OPERATORS[operator]} NULL", left.params
        sql, given = self._fold(left.sql, field, value)
        return f"{sql} {SQL_OPERATORS[operator]} {given}", (*left.params, value)

    @staticmethod
    def _fold(sql: str, field: FieldType, value: Any) -> tuple[str, str]:
        """Return both sides for a comparison without case; beyond ASCII it takes a slower function."""
        if field.type not in TEXT_TYPES or not isinstance(value, str):
            return sql, "?"
        return (f"{sql} COLLATE NOCASE", "? COLLATE NOCASE") if value.isascii() else (f"folded({sql})", "folded(?)")

    def _like(self, left: Resolved, value: Value) -> Sql:
        if left.field.type in ID_TYPES:
            raise ApiError("INVALID_QUERY_FILTER_OPERATOR", "invalid operator on id field")
        if left.owner is not None and left.owner.name.endswith("__x"):
            raise malformed_query("LIKE is not supported on external objects")
        if left.field.type not in TEXT_TYPES or left.field.type == "multipicklist":
            raise ApiError("INVALID_QUERY_FILTER_OPERATOR", f"invalid operator on {left.field.type} field")
        if isinstance(value, Null):
            return f"{left.sql} IS NULL", left.params
        if not isinstance(value, Text):
            raise malformed_query(f"unexpected token: '{_source_text(value)}'", value.span[0])
        if value.value.isascii():
            return f"{left.sql} LIKE ? ESCAPE '\\'", (*left.params, value.value)
        return f"folded({left.sql}) LIKE folded(?) ESCAPE '\\'", (*left.params, value.value)

    def _in_range(self, left: Resolved, operator: str, literal: DateLiteral) -> Sql:
        kind = left.field.type
        if kind not in ("date", "datetime"):
            raise self._wrong_type(left.field, literal)
        is_counted = literal.name in COUNTED_DATE_LITERALS
        if is_counted != (literal.count is not None) or (
            is_counted and not 0 <= (literal.count or 0) <= MAX_DATE_UNITS
        ):
            raise malformed_query(f"unexpected token: '{literal.name}'", literal.span[0])
        calendar = self._scope.calendar
        try:
            first, last = calendar.range(literal)
        except (ValueError, OverflowError):
            raise malformed_query(f"Invalid date literal: {literal.name}", literal.span[0]) from None
        format_day: Callable[[date], str] = date.isoformat if kind == "date" else calendar.start_of
        start, end = format_day(first), format_day(last)
        sql, extra = left.sql, left.params
        match operator:
            case "=":
                return f"({sql} >= ? AND {sql} < ?)", (*extra, start, *extra, end)
            case "!=" | "<>":
                return f"({sql} IS NULL OR {sql} < ? OR {sql} >= ?)", (*extra, *extra, start, *extra, end)
            case "<":
                return f"{sql} < ?", (*extra, start)
            case ">":
                return f"{sql} >= ?", (*extra, end)
            case "<=":
                return f"{sql} < ?", (*extra, end)
            case _:
                return f"{sql} >= ?", (*extra, start)

    def _membership(self, node: Membership) -> Sql:
        left = self._resolve(node.left)
        assert isinstance(node.values, tuple)
        parts = [self._comparison(Comparison(node.left, "=", value, node.span)) for value in node.values]
        simple = left.field.type != "boolean" and all(
            not isinstance(value, DateLiteral | Null) for value in node.values
        )
        if simple:
            values = [self.value(left.field, value) for value in node.values]
            is_text = left.field.type in TEXT_TYPES
            ascii_only = all(not isinstance(value, str) or value.isascii() for value in values)
            sql = (
                f"{left.sql} COLLATE NOCASE"
                if is_text and ascii_only
                else f"folded({left.sql})"
                if is_text
                else left.sql
            )
            marks = ", ".join("folded(?)" if is_text and not ascii_only else "?" for _ in values)
            inside: Sql = (f"{sql} IN ({marks})", (*left.params, *values))
        else:
            inside = (
                _join_balanced(" OR ", [sql for sql, _ in parts]),
                tuple(item for _, params in parts for item in params),
            )
        if not node.negated:
            return inside
        return f"NOT coalesce({inside[0]}, 0)", inside[1]

    def _choice(self, node: Choice) -> Sql:
        left = self._resolve(node.left)
        if left.field.type != "multipicklist":
            raise ApiError(
                "INVALID_QUERY_FILTER_OPERATOR",
                f"{node.operator.lower()} operator only valid on multipicklist field",
                position=node.span[0],
            )
        parts, params = [], []
        for value in node.values:
            if not isinstance(value, Text):
                raise self._wrong_type(left.field, value)
            parts.append(f"includes({left.sql}, ?)")
            params += [*left.params, value.value]
        sql = _join_balanced(" OR ", parts)
        return (sql if node.operator == "INCLUDES" else f"NOT {sql}"), tuple(params)

    def _semi_join(self, node: Membership, inner: SemiJoin, *, top: bool, junction: str) -> Sql:
        where = node.span[0]
        if junction == "OR":
            raise malformed_query("Semi join sub-selects are not allowed with the 'OR' operator", where)
        if self._having:
            raise malformed_query("Semi join sub-selects are only allowed at the top level WHERE expressions.", where)
        if self._nested:
            raise malformed_query("Nesting of semi join sub-selects is not supported", where)
        if not top or junction == "NOT":
            raise malformed_query("Semi join sub-selects are only allowed at the top level WHERE expressions.", where)
        self._semi_joins += 1
        if self._semi_joins > MAX_SEMI_JOINS:
            raise malformed_query("Maximum 2 semi join sub-selects are allowed", where)
        left = self._resolve(node.left)
        if left.field.type not in ID_TYPES or not isinstance(node.left, Path) or len(node.left.parts) > 1:
            raise malformed_query("The left operand of a semi join must be an id or reference field", where)
        scope = Scope.of(self._scope.schema, self._scope.calendar, inner.sources, f"s{self._semi_joins}")
        if scope.root.name.lower() in NO_SEMI_JOIN:
            raise malformed_query(f"Entity '{scope.root.name}' is not supported for semi join inner selects", where)
        if scope.root is self._scope.root:
            raise malformed_query("The inner and outer selects should not be on the same object type", where)
        selected = scope.expression(inner.field)
        if selected.field.type not in ID_TYPES or not isinstance(inner.field, Path) or len(inner.field.parts) > 1:
            raise malformed_query("The selected field of a semi join must be an id or reference field", inner.span[0])
        if not _target_objects(left, self._scope) & _target_objects(selected, scope):
            raise malformed_query(
                f"The selected field '{selected.field.name}' and the filtered field '{left.field.name}' "
                "of a semi join do not hold ids of the same object type",
                inner.span[0],
            )
        sql, params = ("1", ())
        if inner.where is not None:
            sql, params = Conditions(scope, nested=True).compile(inner.where)
        table = f'"{scope.root.name}" {scope.alias} {" ".join(scope.join_sql)}'
        deleted = f'{scope.alias}."IsDeleted" = 0'
        found = f"SELECT {selected.sql} FROM {table} WHERE {deleted} AND {selected.sql} IS NOT NULL AND {sql}"
        if node.negated:
            return f"({left.sql} IS NULL OR {left.sql} NOT IN ({found}))", params
        return f"{left.sql} IN ({found})", params

    def value(self, field: FieldType, value: Value) -> Any:
        """Return a literal as it is stored, if it fits the field."""
        if isinstance(value, Null):
            return None
        kind = field.type
        if kind in ID_TYPES and isinstance(value, Text):
            return self._id(value)
        if kind in TEXT_TYPES | {"anyType", "base64"} and isinstance(value, Text):
            if len(value.value) > MAX_TEXT:
                raise malformed_query("The string literal is longer than 4000 characters", value.span[0])
            return value.value or None
        if kind in NUMBER_TYPES and isinstance(value, Number | Money):
            return float(value.amount) if isinstance(value, Money) else value.value
        if kind == "boolean" and isinstance(value, Boolean):
            return value.value
        if kind in ("date", "datetime", "time") and isinstance(value, Moment) and value.kind == kind:
            return self._moment(value)
        raise self._wrong_type(field, value)

    @staticmethod
    def _id(value: Text) -> str | None:
        if not value.value:
            return None
        found = long_id(value.value)
        if found is None:
            raise ApiError("INVALID_QUERY_FILTER_OPERATOR", f"invalid ID field: {value.value}", position=value.span[0])
        return found

    @staticmethod
    def _moment(value: Moment) -> str:
        if value.kind != "time" and not MIN_YEAR <= int(value.written[:4]) <= MAX_YEAR:
            raise malformed_query(f"Invalid date: {value.written}", value.span[0])
        try:
            if value.kind == "datetime":
                return format_moment(parse_moment(value.written))
            if value.kind == "date":
                return date.fromisoformat(value.written).isoformat()
        except (ValueError, OverflowError):
            raise malformed_query(f"Invalid date: {value.written}", value.span[0]) from None
        return f"{value.written[:8]}.000Z"

    @staticmethod
    def _wrong_type(field: FieldType, value: Value) -> ApiError:
        names = {"datetime": "dateTime", "date": "date", "boolean": "boolean", "time": "time"}
        named = names.get(field.type, "double" if field.type in NUMBER_TYPES else "string")
        quotes = "should be" if named == "string" else "should not be"
        return ApiError(
            "INVALID_FIELD",
            f"value of filter criterion for field '{field.name}' must be of type {named} "
            f"and {quotes} enclosed in quotes",
            position=value.span[0],
        )


def _target_objects(found: Resolved, scope: Scope) -> set[str]:
    """Return the objects whose ids a field holds."""
    return set(found.field.reference_to) or {scope.root.name}


def _join_balanced(sign: str, parts: Sequence[str]) -> str:
    """Join many terms as a balanced tree; the maximum depth of SQLite is 1,000."""
    if len(parts) <= MAX_FLAT_TERMS:
        return f"({sign.join(parts)})"
    half = len(parts) // 2
    return f"({_join_balanced(sign, parts[:half])}{sign}{_join_balanced(sign, parts[half:])})"


def _name(expression: Expression) -> str:
    return expression.name if isinstance(expression, Path) else "expression"


def _source_text(value: Value) -> str:
    return getattr(value, "written", type(value).__name__)
