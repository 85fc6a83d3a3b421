"""The clauses of one query as SQL: FROM, WHERE, ORDER BY, LIMIT."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from bedstone.salesforce.demo_org.conditions import Conditions, Sql
from bedstone.salesforce.demo_org.content.articles import category_names
from bedstone.salesforce.demo_org.database import Database
from bedstone.salesforce.demo_org.errors import malformed_query
from bedstone.salesforce.demo_org.query.checks import check_query, expand_fields
from bedstone.salesforce.demo_org.schema import TEXT_TYPES
from bedstone.salesforce.demo_org.scope import Resolved, Scope
from bedstone.salesforce.soql.tree import Call, DataCategories, Number, Order, Query, Using

MAX_CHILD_DEPTH = 4  # below the root, which is the first of five levels
NOT_SORTABLE = frozenset({"format", "tolabel", "convertcurrency"})
SCOPES = frozenset({"everything", "mine", "team"})


@dataclass(frozen=True)
class Clauses:
    """A checked query with the names it resolves against.

    Resolving a name joins its parent, so `from_sql` comes after the clauses that name fields.
    """

    database: Database
    query: Query
    scope: Scope
    all_rows: bool
    depth: int

    @classmethod
    def of(cls, database: Database, query: Query, *, all_rows: bool, alias: str = "t", depth: int = 0) -> "Clauses":
        """Check a query against the schema; `depth` counts the queries around it."""
        if depth > MAX_CHILD_DEPTH:
            raise malformed_query("Child subqueries cannot be nested more than 5 levels deep", query.span[0])
        scope = Scope.of(database.schema, database.calendar, query.sources, alias)
        query = expand_fields(query, scope.root)
        check_query(query, scope.root, depth)
        return cls(database, query, scope, all_rows, depth)

    @property
    def alias(self) -> str:
        """The name of the object's table in the SQL."""
        return self.scope.alias

    def without_joins(self) -> "Clauses":
        """Return the same clauses with a scope that has joined nothing yet."""
        scope = self.scope
        return replace(self, scope=Scope.of(scope.schema, scope.calendar, self.query.sources, scope.alias))

    def from_sql(self) -> str:
        """Return FROM with every join so far."""
        return f'FROM "{self.scope.root.name}" {self.alias} {" ".join(self.scope.join_sql)}'

    def where(self) -> Sql:
        """Return the conditions; deleted records are excluded unless the query asks for all rows."""
        sql, params = ("1", ())
        if self.query.where is not None:
            sql, params = Conditions(self.scope, nested=self.depth > 0).compile(self.query.where)
        for more, values in self._extra_conditions():
            sql, params = f"{sql} AND {more}", (*params, *values)
        return (sql if self.all_rows else f'{self.alias}."IsDeleted" = 0 AND {sql}'), params

    def _extra_conditions(self) -> Iterator[Sql]:
        """Yield WITH DATA CATEGORY and USING SCOPE as conditions."""
        for option in self.query.options:
            if isinstance(option, DataCategories):
                yield from self._category_conditions(option)
        for using in self.query.sources[0].using:
            yield from self._scope_conditions(using)

    def _category_conditions(self, option: DataCategories) -> Iterator[Sql]:
        for selection in option.selections:
            names = category_names(selection.group, selection.operator, selection.categories)
            marks = ", ".join("?" for _ in names)
            sql = (
                f'{self.alias}."Id" IN (SELECT "ParentId" FROM "Knowledge__DataCategorySelection" '
                f'WHERE "DataCategoryGroupName" = ? AND "DataCategoryName" IN ({marks}))'
            )
            yield sql, (selection.group.removesuffix("__c"), *names)

    def _scope_conditions(self, using: Using) -> Iterator[Sql]:
        name = using.name.lower()
        is_mine = name == "mine"
        if using.kind != "SCOPE" or name not in SCOPES or (is_mine and self.scope.root.field("OwnerId") is None):
            raise malformed_query(f"Scope '{using.name}' is not supported", using.span[0])
        if is_mine:
            yield f'{self.alias}."OwnerId" = ?', (self.database.user,)

    def order(self) -> tuple[str, list[Any]]:
        """Return ORDER BY; without one in the query, records come in the order of their ids."""
        parts: list[str] = []
        params: list[Any] = []
        for order in self.query.order_by:
            if isinstance(order.expression, Call) and order.expression.name.lower() in NOT_SORTABLE:
                raise malformed_query(f"{order.expression.name} can not be sorted in a query call", order.span[0])
            resolved = self.scope.expression(order.expression)
            if not resolved.field.sortable and not resolved.is_aggregate:
                raise malformed_query(f"field '{resolved.field.name}' can not be sorted in a query call", order.span[0])
            parts.append(order_term(sort_key(resolved), order))
            params += resolved.params
        return (f"ORDER BY {', '.join(parts)}" if parts else f'ORDER BY {self.alias}."Id"'), params

    @property
    def limit(self) -> int | None:
        """The LIMIT of the query."""
        return int(self.query.limit.value) if isinstance(self.query.limit, Number) else None

    @property
    def offset(self) -> int:
        """The OFFSET of the query, 0 without one."""
        return int(self.query.offset.value) if isinstance(self.query.offset, Number) else 0

    def limit_sql(self, maximum: int | None = None) -> str:
        """Return LIMIT and OFFSET, with at most `maximum` rows."""
        limits = [limit for limit in (self.limit, maximum) if limit is not None]
        limit_sql = f"LIMIT {min(limits)} " if limits else "LIMIT -1 " if self.offset else ""
        return limit_sql + (f"OFFSET {self.offset}" if self.offset else "")


def order_term(sql: str, order: Order) -> str:
    """Return one term of ORDER BY with its direction and the place of nulls."""
    direction = "DESC" if order.direction == "DESC" else "ASC"
    nulls = "LAST" if order.nulls == "LAST" else "FIRST"
    return f"{sql} {direction} NULLS {nulls}"


def sort_key(resolved: Resolved) -> str:
    """Return what rows are sorted by: the order of a picklist's values, texts without case."""
    field = resolved.field
    if field.type == "picklist" and field.values and not resolved.is_aggregate:
        cases = " ".join(
            f"WHEN '{value.replace(chr(39), chr(39) * 2)}' THEN {number}" for number, value in enumerate(field.values)
        )
        return f"CASE {resolved.sql} {cases} END"
    return f"sorted_as({resolved.sql})" if field.type in TEXT_TYPES else resolved.sql
