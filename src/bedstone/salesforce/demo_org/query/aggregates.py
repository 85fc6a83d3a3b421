"""Queries for groups: COUNT(), aggregate functions, GROUP BY with ROLLUP and CUBE, HAVING."""

import re
from itertools import chain, combinations
from typing import Any

from bedstone.salesforce.demo_org.conditions import Conditions, Sql
from bedstone.salesforce.demo_org.errors import ApiError, malformed_query
from bedstone.salesforce.demo_org.query.clauses import Clauses, order_term, sort_key
from bedstone.salesforce.demo_org.query.shapes import Record, SelectedColumn, value_converter
from bedstone.salesforce.demo_org.schema import TEXT_TYPES, FieldType
from bedstone.salesforce.demo_org.scope import Resolved
from bedstone.salesforce.soql import write
from bedstone.salesforce.soql.tree import Call, Column, Condition, Expression, Not, Order, Path, Query, TypeOf

MAX_GROUPS = 2_000
MAX_ROLLUP_FIELDS = 3
AGGREGATE_CALL = re.compile(r"((?:COUNT|SUM|AVG|MIN|MAX|MIN_TEXT|MAX_TEXT)\((?:[^()']|'[^']*'|\([^()]*\))*\))")
Keys = dict[str, Resolved]  # what a query groups by, under one spelling


class AggregatePlan:
    """A query whose answer has groups, ready to run."""

    def __init__(self, clauses: Clauses) -> None:
        self._clauses = clauses
        self._query = clauses.query
        self._scope = clauses.scope

    def columns(self) -> list[SelectedColumn]:
        """Return the columns of the answer in their order."""
        return [SelectedColumn(name, resolved.field) for name, resolved in self._outputs(self._group_keys())]

    def run(self) -> Record:
        """Return the groups, or one for all records."""
        query = self._query
        only = query.columns[0].expression
        if len(query.columns) == 1 and isinstance(only, Call) and only.name.lower() == "count" and not only.arguments:
            return self._count()
        if query.group_by is None and (query.limit is not None or query.offset is not None):
            word = "LIMIT" if query.limit is not None else "OFFSET"
            raise malformed_query(f"Non-grouped query that uses overall aggregate functions cannot also use {word}")
        keys = self._group_keys()
        outputs = self._outputs(keys)
        rows = self._rows(keys, [resolved for _, resolved in outputs])
        if len(rows) > MAX_GROUPS:
            raise ApiError(
                "EXCEEDED_ID_LIMIT",
                "Aggregate query does not support queryMore(), use LIMIT to restrict the results to a single batch",
            )
        columns = [(name, value_converter(resolved.field)) for name, resolved in outputs]
        records = [
            {"attributes": {"type": "AggregateResult"}}
            | {name: convert(value) for (name, convert), value in zip(columns, row, strict=False)}
            for row in rows
        ]
        return {"totalSize": len(records), "done": True, "records": records}

    def _count(self) -> Record:
        """Return what `SELECT COUNT()` finds: a number without records."""
        query, clauses = self._query, self._clauses
        if query.group_by is not None:
            raise malformed_query("COUNT() can not be grouped", query.group_by.span[0])
        if query.order_by:
            raise malformed_query("Ordered field must be grouped or aggregated: " + write(query.order_by[0].expression))
        where, params = clauses.where()
        inner = f'SELECT {clauses.alias}."Id" {clauses.from_sql()} WHERE {where} {clauses.limit_sql()}'
        ((count,),) = clauses.database.rows(f"SELECT count(*) FROM ({inner})", params)
        return {"totalSize": count, "done": True, "records": []}

    # What is grouped by, and what comes out

    def _group_keys(self) -> Keys:
        keys: Keys = {}
        group = self._query.group_by
        if group is not None and group.kind and len(group.expressions) > MAX_ROLLUP_FIELDS:
            raise malformed_query(f"GROUP BY {group.kind} takes at most three fields", group.span[0])
        for expression in group.expressions if group else ():
            resolved = self._scope.expression(expression)
            if resolved.is_aggregate:
                raise malformed_query(
                    f"Grouped field should not be aggregated: {write(expression)}", expression.span[0]
                )
            if not resolved.field.groupable and isinstance(expression, Path):
                raise malformed_query(
                    f"field '{resolved.field.name}' can not be grouped in a query call", expression.span[0]
                )
            keys[self._key(expression)] = resolved
        return keys

    def _key(self, expression: Expression) -> str:
        """Return one spelling for expressions that mean the same."""
        if isinstance(expression, Path):
            return ".".join(self._scope.parts(expression)).lower()
        if isinstance(expression, Call):
            return f"{expression.name.lower()}({', '.join(self._key(item) for item in expression.arguments)})"
        return write(expression).lower()

    def _outputs(self, keys: Keys) -> list[tuple[str, Resolved]]:
        """Return the columns with their names; those without an alias are expr0, expr1 and so on."""
        outputs: dict[str, tuple[str, Resolved]] = {}
        unnamed = 0
        for column in self._query.columns:
            resolved = self._output(column, keys)
            name = column.alias or (resolved.field.name if isinstance(column.expression, Path) else None)
            if name is None:
                name, unnamed = f"expr{unnamed}", unnamed + 1
            if name.lower() in outputs:
                raise malformed_query(f"duplicate alias: {name}", column.span[0])
            outputs[name.lower()] = (name, resolved)
        return list(outputs.values())

    def _output(self, column: Column, keys: Keys) -> Resolved:
        expression = column.expression
        if isinstance(expression, Query | TypeOf):
            raise malformed_query("only root queries support aggregate expressions", column.span[0])
        resolved = self._grouping(expression, keys) or self._scope.expression(expression)
        if not resolved.is_aggregate and self._key(expression) not in keys and not self._formats_key(expression, keys):
            raise self._not_grouped(expression, column.span[0])
        return resolved

    def _formats_key(self, expression: Expression, keys: Keys) -> bool:
        if not isinstance(expression, Call) or not expression.arguments:
            return False
        return self._key(expression.arguments[0]) in keys

    def _grouping(self, expression: Expression, keys: Keys) -> Resolved | None:
        """Resolve GROUPING(field); what it is, each grouping set says."""
        if not (isinstance(expression, Call) and expression.name.lower() == "grouping"):
            return None
        if self._query.group_by is None or not self._query.group_by.kind:
            raise malformed_query("GROUPING() can only be used with ROLLUP or CUBE", expression.span[0])
        argument = expression.arguments[0]
        key = self._key(argument)
        if key not in keys:
            raise malformed_query(f"Field must be grouped or aggregated: {write(argument)}", expression.span[0])
        return Resolved(f"<grouping {key}>", FieldType("", "int", ""), None, is_aggregate=True)

    def _not_grouped(self, expression: Expression, position: int) -> ApiError:
        name = self._scope.expression(expression).field.name or write(expression)
        return malformed_query(f"Field must be grouped or aggregated: {name}", position)

    # Rows

    def _rows(self, keys: Keys, outputs: list[Resolved]) -> list[tuple[Any, ...]]:
        where, params = self._clauses.where()
        having, having_params = self._having(keys)
        orders = self._orders(keys)
        columns = [resolved.sql for resolved in outputs] + [sort_key(resolved) for resolved, _ in orders]
        sets = _grouping_sets(list(keys), self._query.group_by.kind if self._query.group_by else "")
        selects = []
        for group in sets:
            # Texts that differ in case alone are one group.
            by = ", ".join(_fold_case(keys[name]) for name in group)
            if not by and keys and not any(map(AGGREGATE_CALL.search, columns)):
                by = "NULL"  # the row of the total, which SQLite does not make without an aggregate
            selects.append(
                f"SELECT {', '.join(_in_group(sql, keys, group) for sql in columns)} {self._clauses.from_sql()} "
                f"WHERE {where} {f'GROUP BY {by}' if by else ''} {_in_group(having, keys, group)}"
            )
        sql = " UNION ALL ".join(selects)
        if orders:
            places = enumerate((order for _, order in orders), len(outputs) + 1)
            terms = ", ".join(order_term(str(place), order) for place, order in places)
            sql = f"SELECT * FROM ({sql}) ORDER BY {terms}"
        elif keys:
            sql = f"SELECT * FROM ({sql})"
        values = [*(value for resolved in outputs for value in resolved.params), *params, *having_params]
        return self._clauses.database.rows(f"{sql} {self._clauses.limit_sql(MAX_GROUPS + 1)}", values * len(sets))

    def _having(self, keys: Keys) -> Sql:
        if self._query.having is None:
            return "", ()
        self._check_having(self._query.having, keys)
        sql, params = Conditions(self._scope, having=True).compile(self._query.having)
        return f"HAVING {sql}", params

    def _check_having(self, condition: Condition, keys: Keys) -> None:
        """Reject fields that are neither grouped nor aggregated."""
        inner = getattr(condition, "terms", None) or ([condition.term] if isinstance(condition, Not) else [])
        for term in inner:
            self._check_having(term, keys)
        left = getattr(condition, "left", None)
        if not isinstance(left, Path | Call) or self._key(left) in keys:
            return
        if not self._scope.expression(left).is_aggregate:
            raise self._not_grouped(left, left.span[0])

    def _orders(self, keys: Keys) -> list[tuple[Resolved, Order]]:
        orders = [(self._scope.expression(order.expression), order) for order in self._query.order_by]
        for resolved, order in orders:
            if not resolved.is_aggregate and self._key(order.expression) not in keys:
                raise malformed_query(
                    f"Ordered field must be grouped or aggregated: {resolved.field.name}", order.span[0]
                )
        return orders


def _grouping_sets(keys: list[str], kind: str) -> list[tuple[str, ...]]:
    if kind == "ROLLUP":
        return [tuple(keys[:count]) for count in range(len(keys), -1, -1)]
    if kind == "CUBE":
        return list(chain.from_iterable(combinations(keys, count) for count in range(len(keys), -1, -1)))
    return [tuple(keys)]


def _in_group(sql: str, keys: Keys, group: tuple[str, ...]) -> str:
    """Return an expression for one grouping set: keys outside of it are null except inside aggregates."""
    for name in keys:
        sql = sql.replace(f"<grouping {name}>", "0" if name in group else "1")
    parts = AGGREGATE_CALL.split(sql)
    for name, resolved in keys.items():
        if name not in group:
            parts[::2] = [part.replace(resolved.sql, "NULL") for part in parts[::2]]
    return "".join(parts)


def _fold_case(resolved: Resolved) -> str:
    return f"folded({resolved.sql})" if resolved.field.type in TEXT_TYPES else resolved.sql
