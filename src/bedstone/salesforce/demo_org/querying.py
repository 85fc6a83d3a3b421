"""Runs SOQL: one statement to SQL, rows to records as an org's JSON shows them, further pages by cursor."""

import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, combinations
from typing import Any

from bedstone.salesforce.demo_org.conditions import Conditions
from bedstone.salesforce.demo_org.content.articles import category_names
from bedstone.salesforce.demo_org.database import Database
from bedstone.salesforce.demo_org.errors import Refused, malformed, no_child, no_column
from bedstone.salesforce.demo_org.schema import TEXT_TYPES, FieldType, ObjectType
from bedstone.salesforce.demo_org.scope import DATE_FUNCTIONS, Resolved, Scope
from bedstone.salesforce.soql import SyntaxProblem, parse_soql, write
from bedstone.salesforce.soql.tree import (
    And,
    Call,
    Column,
    Comparison,
    Condition,
    DataCategories,
    Distance,
    Expression,
    Membership,
    Not,
    Number,
    Order,
    Path,
    Query,
    Source,
    TypeOf,
)

BATCH, MOST_GROUPS, MOST_OFFSET, MOST_FIELDS_ROWS = 2_000, 2_000, 2_000, 200
MOST_SUBQUERIES, DEEPEST_CHILDREN, CURSOR_SECONDS = 20, 5, 2 * 24 * 3600
MOST_ROLLUP, MOST_CATEGORIES, MOST_LIMIT = 3, 3, 2**31 - 1
AGGREGATE_CALL = re.compile(r"((?:COUNT|SUM|AVG|MIN|MAX|MIN_TEXT|MAX_TEXT)\((?:[^()']|'[^']*'|\([^()]*\))*\))")
NOT_SORTED = frozenset({"format", "tolabel", "convertcurrency"})
AGGREGATE = {"type": "AggregateResult"}
Record = dict[str, Any]
Convert = Callable[[Any], Any]


@dataclass
class Shape:
    """How a row becomes a record: values by place, parents inside, an id for the attributes."""

    type: str
    id_at: int = -1
    type_at: int | None = None
    leaves: list[tuple[str, Any]] = field(default_factory=list)  # name, and a reader of the row or another shape

    def record(self, row: Sequence[Any], base: str) -> Record | None:
        record_id = row[self.id_at]
        if record_id is None:
            return None
        kind = row[self.type_at] if self.type_at is not None else self.type
        made: Record = {"attributes": {"type": kind, "url": f"{base}/sobjects/{kind}/{record_id}"}}
        for name, leaf in self.leaves:
            made[name] = leaf.record(row, base) if isinstance(leaf, Shape) else leaf(row)
        return made


@dataclass
class Selected:
    """A column of an answer: a value, a parent with columns of its own, or children."""

    name: str
    kind: FieldType | None = None
    inner: "list[Selected]" = field(default_factory=list)
    is_child: bool = False


@dataclass
class Selection:
    """The columns of an answer, and what they are of."""

    object: ObjectType
    columns: list[Selected]
    is_aggregate: bool


class QueryEngine:
    """The org's /query."""

    def __init__(self, database: Database, *, batch: int = BATCH) -> None:
        self._database = database
        self._batch = batch

    def run(self, statement: str, base: str, *, all_rows: bool = False, batch: int | None = None) -> Record:
        """The first page of an answer; `base` is the address of the API's version."""
        try:
            query = parse_soql(statement.strip())
        except SyntaxProblem as problem:
            raise _refusal(problem) from None
        planned = _Planned(self._database, query, base, all_rows=all_rows)
        if planned.is_aggregate:
            return planned.aggregate()
        return self._paged(planned, statement.strip(), batch or self._batch, base)

    def selected(self, statement: str, base: str) -> "Selection":
        """What a statement selects, without its rows."""
        try:
            query = parse_soql(statement.strip())
        except SyntaxProblem as problem:
            raise _refusal(problem) from None
        return _Planned(self._database, query, base, all_rows=False).selection()

    def more(self, locator: str, base: str) -> Record:
        """A further page."""
        name, _, start = locator.partition("-")
        found = self._database.rows("SELECT statement, ids, made FROM _cursor WHERE locator = ?", (name,))
        if not found or not start.isdigit() or found[0][2] < time.time() - CURSOR_SECONDS:
            raise Refused("INVALID_QUERY_LOCATOR", "invalid query locator")
        kept = json.loads(found[0][1])
        planned = _Planned(self._database, parse_soql(found[0][0]), base, all_rows=kept["all"])
        return self._page(planned, kept, int(start), name, base)

    def _paged(self, planned: "_Planned", statement: str, batch: int, base: str) -> Record:
        records = planned.records(limit=batch + 1)
        if len(records) <= batch:
            return {"totalSize": len(records), "done": True, "records": records}
        ids = planned.ids()
        locator = f"01g{secrets.token_hex(7)}AAA"
        kept = json.dumps({"ids": ids, "batch": batch, "all": planned.all_rows})
        self._database.keep_cursor(locator, statement, kept, time.time())
        answer: Record = {"totalSize": len(ids), "done": False}
        answer["nextRecordsUrl"] = f"{base}/query/{locator}-{batch}"
        return answer | {"records": records[:batch]}

    @staticmethod
    def _page(planned: "_Planned", kept: Record, start: int, locator: str, base: str) -> Record:
        ids, following = kept["ids"], start + kept["batch"]
        answer: Record = {"totalSize": len(ids), "done": following >= len(ids)}
        if following < len(ids):
            answer["nextRecordsUrl"] = f"{base}/query/{locator}-{following}"
        return answer | {"records": planned.records(ids=ids[start:following])}


def _refusal(problem: SyntaxProblem) -> Refused:
    """A parser's finding in the org's words."""
    if problem.found == ":":
        return malformed("Bind variables only allowed in Apex code", problem.position)
    if problem.expected == '")"' and problem.found:
        return malformed(f"expecting a right parentheses, found '{problem.found}'", problem.position)
    found = problem.found or ("<EOF>" if problem.expected else "")
    return malformed(f"unexpected token: '{found or '<EOF>'}'", problem.position)


class _Planned:
    """A query, resolved against the schema, ready to run."""

    def __init__(
        self, database: Database, query: Query, base: str, *, all_rows: bool, alias: str = "t", depth: int = 0
    ) -> None:
        self._database = database
        self._schema = database.schema
        self.all_rows = all_rows
        self._base = base
        self._depth = depth
        if depth > DEEPEST_CHILDREN:
            raise malformed("Child subqueries cannot be nested more than 5 levels deep", query.span[0])
        self._alias = alias
        self._scope = Scope.of(self._schema, database.calendar, query.sources, alias)
        self._query = self._expanded(query)
        self._columns: list[str] = []
        self._params: list[Any] = []  # of the columns
        self._children: list[tuple[str, _Child]] = []
        self._check()
        self.is_aggregate = self._is_aggregate()
        if not self.is_aggregate:
            self._shape = self._selection()

    # Checks

    def _expanded(self, query: Query) -> Query:
        """FIELDS(...) as the fields it stands for."""
        columns: list[Column] = []
        for column in query.columns:
            call = column.expression
            if not (isinstance(call, Call) and call.name.lower() == "fields"):
                columns.append(column)
                continue
            kind = call.arguments[0].name.lower() if call.arguments and isinstance(call.arguments[0], Path) else ""
            limit = query.limit.value if isinstance(query.limit, Number) else None
            is_bounded = (limit is not None and limit <= MOST_FIELDS_ROWS) or _names_few_ids(query.where)
            if kind in ("all", "custom") and not is_bounded:
                raise malformed("The SOQL FIELDS function must have a LIMIT of at most 200", call.span[0])
            wanted = {"all": (True, False), "custom": (True,), "standard": (False,)}.get(kind)
            if wanted is None:
                raise malformed(f"unexpected token: '{kind}'", call.span[0])
            names = [item.name for item in self._scope.root.fields if item.is_custom in wanted]
            if not names:
                raise malformed(
                    "'FIELDS(...)' expansion function must result in at least one field being selected.", call.span[0]
                )
            columns += [Column(Path((name,), call.span), None, call.span) for name in names]
        return replace(query, columns=tuple(columns))

    def _check(self) -> None:
        query = self._query
        offset = query.offset.value if isinstance(query.offset, Number) else 0
        if offset > MOST_OFFSET:
            raise Refused("NUMBER_OUTSIDE_VALID_RANGE", "Maximum SOQL offset allowed is 2000")
        if any(isinstance(part, Number) and part.value < 0 for part in (query.limit, query.offset)):
            raise malformed("unexpected token: '-'")
        if isinstance(query.limit, Number) and query.limit.value > MOST_LIMIT:
            raise malformed(f"unexpected token: '{query.limit.written[:20]}'", query.limit.span[0])
        if self._depth and query.sources[0].using:
            raise malformed("USING SCOPE is not allowed in a child subquery", query.sources[0].span[0])
        needs_filter = self._scope.root.name == "ContentDocumentLink" and not self._depth
        if needs_filter and not self._has_filter(("id", "contentdocumentid", "linkedentityid"), exactly=True):
            raise malformed(
                "Implementation restriction: ContentDocumentLink requires a filter by a single Id on ContentDocumentId "
                "or LinkedEntityId using the equals operator or multiple Id's using the IN operator."
            )
        for option in query.options:
            if isinstance(option, DataCategories):
                self._check_categories(option)
            if getattr(option, "name", "").upper() not in ("", "SECURITY_ENFORCED", "USER_MODE", "SYSTEM_MODE"):
                raise malformed(f"unexpected token: '{getattr(option, 'name', '')}'", option.span[0])

    def _check_categories(self, option: DataCategories) -> None:
        if self._scope.root.feature is None:
            raise malformed("unexpected token: 'DATA'", option.span[0])
        groups = [selection.group.lower() for selection in option.selections]
        if len(groups) > MOST_CATEGORIES or len(set(groups)) < len(groups):
            raise malformed("A category group can be named once, and three groups at most", option.span[0])
        if not self._has_filter(("publishstatus", "id")):
            raise malformed("A filter on PublishStatus is needed with data categories", option.span[0])

    def _has_filter(self, names: tuple[str, ...], *, exactly: bool = False) -> bool:
        where = self._query.where
        terms = where.terms if isinstance(where, And) else (where,)
        return any(
            isinstance(term, Comparison | Membership)
            and isinstance(term.left, Path)
            and term.left.parts[-1].lower() in names
            and (not exactly or _is_exact(term))
            for term in terms
        )

    def _is_aggregate(self) -> bool:
        return self._query.group_by is not None or any(
            isinstance(column.expression, Call) and self._calls_aggregate(column.expression)
            for column in self._query.columns
        )

    def _calls_aggregate(self, call: Call) -> bool:
        if call.name.lower() in ("count", "count_distinct", "sum", "avg", "min", "max", "grouping"):
            return True
        return any(isinstance(item, Call) and self._calls_aggregate(item) for item in call.arguments)

    # Plain selects

    def _selection(self) -> Shape:
        shape = Shape(self._scope.root.name, self._add(self._scope.column(self._scope.root.by_name["id"], self._alias)))
        seen: set[str] = set()
        typed: set[str] = set()
        for column in self._query.columns:
            expression = column.expression
            match expression:
                case Query():
                    self._add_child(shape, expression)
                case TypeOf():
                    typed.add(".".join(self._scope.parts(expression.relationship)).lower())
                    self._add_typed(shape, expression)
                case Path():
                    self._check_alias(column)
                    parts = self._scope.parts(expression)
                    key = ".".join(parts).lower()
                    if key in seen:
                        raise Refused(
                            "INVALID_FIELD", f"duplicate field selected: {parts[-1]}", position=expression.span[0]
                        )
                    seen.add(key)
                    self._add_path(shape, parts, expression)
                case _:
                    self._add_function(shape, column, expression)
        for relationship in typed:
            if any(key.startswith(f"{relationship}.") for key in seen):
                raise malformed(f"The relationship '{relationship}' is selected by TYPEOF and by a path")
        return shape

    def selection(self) -> Selection:
        """The columns, in their order."""
        columns: list[Selected] = []
        if self.is_aggregate:
            columns = [Selected(name, found.field) for name, found in self._outputs(self._group_keys())]
            return Selection(self._scope.root, columns, is_aggregate=True)
        children = iter(self._children)
        for column in self._query.columns:
            match column.expression:
                case Query():
                    name, child = next(children)
                    columns.append(Selected(name, inner=child.planned.selection().columns, is_child=True))
                case TypeOf(relationship):
                    columns.append(Selected(relationship.parts[-1]))
                case Path() as path:
                    self._select_path(columns, path)
                case Call() | Distance() as call:
                    inner = call.arguments[0] if isinstance(call, Call) and call.arguments else None
                    named = inner.parts[-1] if isinstance(inner, Path) else "expr0"
                    columns.append(Selected(column.alias or named))
        return Selection(self._scope.root, columns, is_aggregate=False)

    def _select_path(self, columns: list[Selected], path: Path) -> None:
        owner = self._scope.root
        parts = self._scope.parts(path)
        for depth, part in enumerate(parts[:-1], 1):
            name = owner.by_relationship[part.lower()].relationship or part
            _, owner = self._scope.parent(parts[:depth], path.span[0])
            parent = next((column for column in columns if column.name == name), None)
            if parent is None:
                parent = Selected(name)
                columns.append(parent)
            columns = parent.inner
        item = owner.field(parts[-1])
        columns.append(Selected(item.name if item else parts[-1], item))

    def _check_alias(self, column: Column) -> None:
        if column.alias:
            raise malformed("only aggregate expressions use field aliasing", column.span[0])

    def _add(self, sql: str, params: Sequence[Any] = ()) -> int:
        self._columns.append(sql)
        self._params += params
        return len(self._columns) - 1

    def _add_path(self, shape: Shape, parts: tuple[str, ...], path: Path) -> None:
        """A value, inside the shapes of its parents."""
        owner, alias = self._scope.root, self._alias
        for depth in range(1, len(parts)):
            alias, target = self._scope.parent(parts[:depth], path.span[0])
            link = owner.by_relationship[parts[depth - 1].lower()]
            assert link.relationship
            inner = next(
                (leaf for name, leaf in shape.leaves if name == link.relationship and isinstance(leaf, Shape)), None
            )
            if inner is None:
                inner = Shape(target.name, self._add(f'{alias}."Id"'))
                if target.name == "Name":
                    inner.type_at = self._add(f'{alias}."Type"')
                shape.leaves.append((link.relationship, inner))
            shape, owner = inner, target
        item = owner.field(parts[-1])
        if item is None:
            raise no_column(parts[-1], owner.name, path.span[0])
        shape.leaves.append((item.name, self._reader(item, alias)))

    def _reader(self, item: FieldType, alias: str) -> Convert:
        if item.parts:
            places = {part: self._add(f'{alias}."{part}"') for part in item.parts}
            return partial(_compound, item, places)
        place = self._add(self._scope.column(item, alias))
        return partial(_converted, converter(item), place)

    def _add_function(self, shape: Shape, column: Column, expression: Expression) -> None:
        found = self._scope.expression(expression)
        name = column.alias
        if isinstance(expression, Call) and expression.name.lower() in DATE_FUNCTIONS:
            raise malformed(f"Field must be grouped or aggregated: {expression.name}", expression.span[0])
        if name is None:
            inner = expression.arguments[0] if isinstance(expression, Call) else None
            name = found.field.name or (inner.parts[-1] if isinstance(inner, Path) else "expr0")
        place = self._add(found.sql, found.params)
        shape.leaves.append((name, partial(_converted, converter(found.field), place)))

    def _add_child(self, shape: Shape, query: Query) -> None:
        if len(self._children) >= MOST_SUBQUERIES:
            raise malformed("Maximum 20 child subqueries are allowed", query.span[0])
        if query.offset is not None and not (isinstance(self._query.limit, Number) and self._query.limit.value == 1):
            raise malformed("OFFSET in a subquery needs LIMIT 1 on the outer query", query.offset.span[0])
        source = query.sources[0]
        parts = source.path.parts
        if len(parts) > 1 and parts[0].lower() in self._scope.names:
            parts = parts[1:]
        relation = self._schema.child(self._scope.root.name, parts[-1]) if len(parts) == 1 else None
        if relation is None:
            raise no_child(source.name, source.path.span[0])
        if any(name == (relation.name or parts[-1]) for name, _ in self._children):
            raise malformed(f"duplicate alias: {relation.name}", source.path.span[0])
        child_source = Source(Path((relation.child,), source.path.span), source.alias, source.using, source.span)
        inner = _Planned(
            self._database,
            replace(query, sources=(child_source, *query.sources[1:])),
            self._base,
            all_rows=self.all_rows,
            alias=f"{self._alias}c{len(self._children)}",
            depth=self._depth + 1,
        )
        if inner.is_aggregate:
            raise malformed("only root queries support aggregate expressions", query.span[0])
        child = _Child(inner, relation.field)
        self._children.append((relation.name or parts[-1], child))
        shape.leaves.append((relation.name or parts[-1], partial(_looked_up, child, shape.id_at)))

    def _add_typed(self, shape: Shape, node: TypeOf) -> None:
        *parents, name = self._scope.parts(node.relationship)
        alias, owner = self._scope.parent(tuple(parents), node.span[0]) if parents else (self._alias, self._scope.root)
        link = owner.by_relationship.get(name.lower())
        if link is None or not link.is_polymorphic:
            raise malformed(f"Invalid TYPEOF relationship: {name}", node.span[0])
        place = self._add(f'{alias}."{link.name}"')
        typed = _Typed(self._database, node, link, self._base)
        shape.leaves.append((link.relationship or name, partial(typed.read, place)))

    # Running

    def _from(self, scope: Scope | None = None) -> str:
        used = scope or self._scope
        return f'FROM "{used.root.name}" {self._alias} {" ".join(used.join_sql)}'

    def _where(self, scope: Scope | None = None) -> tuple[str, tuple[Any, ...]]:
        sql, params = ("1", ())
        if self._query.where is not None:
            sql, params = Conditions(scope or self._scope, nested=self._depth > 0).compile(self._query.where)
        for more, values in self._narrowings():
            sql, params = f"{sql} AND {more}", (*params, *values)
        return (sql if self.all_rows else f'{self._alias}."IsDeleted" = 0 AND {sql}'), params

    def _narrowings(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """WITH DATA CATEGORY and USING SCOPE as conditions."""
        for option in self._query.options:
            if isinstance(option, DataCategories):
                for selection in option.selections:
                    names = category_names(selection.group, selection.operator, selection.categories)
                    marks = ", ".join("?" for _ in names)
                    inside = (
                        f'{self._alias}."Id" IN (SELECT "ParentId" FROM "Knowledge__DataCategorySelection" '
                        f'WHERE "DataCategoryGroupName" = ? AND "DataCategoryName" IN ({marks}))'
                    )
                    yield inside, (selection.group.removesuffix("__c"), *names)
        for using in self._query.sources[0].using:
            if using.kind != "SCOPE" or using.name.lower() not in ("everything", "mine", "team"):
                raise malformed(f"Scope '{using.name}' is not supported", using.span[0])
            if using.name.lower() == "mine":
                if self._scope.root.field("OwnerId") is None:
                    raise malformed(f"Scope '{using.name}' is not supported", using.span[0])
                yield f'{self._alias}."OwnerId" = ?', (self._database.user,)

    def _order(self, scope: Scope | None = None) -> tuple[str, list[Any]]:
        parts: list[str] = []
        params: list[Any] = []
        for order in self._query.order_by:
            if isinstance(order.expression, Call) and order.expression.name.lower() in NOT_SORTED:
                raise malformed(f"{order.expression.name} can not be sorted in a query call", order.span[0])
            found = (scope or self._scope).expression(order.expression)
            if not found.field.sortable and not found.is_aggregate:
                raise malformed(f"field '{found.field.name}' can not be sorted in a query call", order.span[0])
            parts.append(_sorted(_sort_key(found), order))
            params += found.params
        return (f"ORDER BY {', '.join(parts)}" if parts else f'ORDER BY {self._alias}."Id"'), params

    def _limits(self, most: int | None) -> str:
        query = self._query
        limit = int(query.limit.value) if isinstance(query.limit, Number) else None
        offset = int(query.offset.value) if isinstance(query.offset, Number) else 0
        if most is not None:
            limit = most if limit is None else min(limit, most)
        return (f"LIMIT {limit} " if limit is not None else "LIMIT -1 " if offset else "") + (
            f"OFFSET {offset}" if offset else ""
        )

    def ids(self) -> list[str]:
        """Every record the query finds; only what conditions and order need is joined."""
        scope = Scope.of(self._schema, self._database.calendar, self._query.sources, self._alias)
        where, params = self._where(scope)
        order, more = self._order(scope)
        sql = f'SELECT {self._alias}."Id" {self._from(scope)} WHERE {where} {order} {self._limits(None)}'
        return [row[0] for row in self._database.rows(sql, [*params, *more])]

    def records(self, *, limit: int | None = None, ids: Sequence[str] | None = None) -> list[Record]:
        """The records: the first of all, or certain ones in their order."""
        if ids is not None:
            where, params = f'{self._alias}."Id" IN (SELECT value FROM json_each(?))', (json.dumps(list(ids)),)
            sql = f"SELECT {', '.join(self._columns)} {self._from()} WHERE {where}"
            found = {row[0]: row for row in self._database.rows(sql, [*self._params, *params])}
            return self._made([found[record_id] for record_id in ids if record_id in found])
        where, condition = self._where()
        order, more = self._order()
        sql = f"SELECT {', '.join(self._columns)} {self._from()} WHERE {where} {order} {self._limits(limit)}"
        return self._made(self._database.rows(sql, [*self._params, *condition, *more]))

    def _made(self, rows: Sequence[Sequence[Any]]) -> list[Record]:
        for _, child in self._children:
            child.fetch([row[self._shape.id_at] for row in rows])
        made = [self._shape.record(row, self._base) for row in rows]
        return [record for record in made if record is not None]

    def children_of(self, field_name: str, parents: Sequence[str]) -> dict[str, list[Record]]:
        """As a child subquery: the records of each parent."""
        where, condition = self._where()
        order, more = self._order()
        place = self._add(f'{self._alias}."{field_name}"')
        inner = f'{self._alias}."{field_name}" IN (SELECT value FROM json_each(?))'
        number = f'ROW_NUMBER() OVER (PARTITION BY {self._alias}."{field_name}" {order})'
        sql = f"SELECT {', '.join(self._columns)}, {number} AS _n {self._from()} WHERE {inner} AND {where}"
        params = [*self._params, *more, json.dumps(list(parents)), *condition]
        self._columns.pop()
        query = self._query
        first = int(query.offset.value) if isinstance(query.offset, Number) else 0
        last = first + int(query.limit.value) if isinstance(query.limit, Number) else None
        rows = [
            row
            for row in self._database.rows(f"SELECT * FROM ({sql}) ORDER BY _n", params)
            if row[-1] > first and (last is None or row[-1] <= last)
        ]
        made = self._made(rows)
        by_parent: dict[str, list[Record]] = {}
        for row, record in zip(rows, made, strict=True):
            by_parent.setdefault(row[place], []).append(record)
        return by_parent

    # Aggregates

    def aggregate(self) -> Record:
        """Grouped rows, or one for all."""
        query = self._query
        only = query.columns[0].expression
        if len(query.columns) == 1 and isinstance(only, Call) and only.name.lower() == "count" and not only.arguments:
            return self._count()
        if query.group_by is None and (query.limit is not None or query.offset is not None):
            word = "LIMIT" if query.limit is not None else "OFFSET"
            raise malformed(f"Non-grouped query that uses overall aggregate functions cannot also use {word}")
        keys = self._group_keys()
        outputs = self._outputs(keys)
        rows = self._grouped_rows(keys, [found for _, found in outputs])
        if len(rows) > MOST_GROUPS:
            raise Refused(
                "EXCEEDED_ID_LIMIT",
                "Aggregate query does not support queryMore(), use LIMIT to restrict the results to a single batch",
            )
        names = [name for name, _ in outputs]
        readers = [converter(found.field) for _, found in outputs]
        records = [
            {
                "attributes": dict(AGGREGATE),
                **{name: read(value) for name, read, value in zip(names, readers, row, strict=False)},
            }
            for row in rows
        ]
        return {"totalSize": len(records), "done": True, "records": records}

    def _count(self) -> Record:
        if self._query.group_by is not None:
            raise malformed("COUNT() can not be grouped", self._query.group_by.span[0])
        if self._query.order_by:
            raise malformed("Ordered field must be grouped or aggregated: " + write(self._query.order_by[0].expression))
        where, params = self._where()
        sql = f'SELECT count(*) FROM (SELECT {self._alias}."Id" {self._from()} WHERE {where} {self._limits(None)})'
        ((count,),) = self._database.rows(sql, params)
        return {"totalSize": count, "done": True, "records": []}

    def _group_keys(self) -> dict[str, Resolved]:
        keys: dict[str, Resolved] = {}
        group = self._query.group_by
        if group is not None and group.kind and len(group.expressions) > MOST_ROLLUP:
            raise malformed(f"GROUP BY {group.kind} takes at most three fields", group.span[0])
        for expression in group.expressions if group else ():
            found = self._scope.expression(expression)
            if found.is_aggregate:
                raise malformed(f"Grouped field should not be aggregated: {write(expression)}", expression.span[0])
            if not found.field.groupable and isinstance(expression, Path):
                raise malformed(f"field '{found.field.name}' can not be grouped in a query call", expression.span[0])
            keys[self._key(expression)] = found
        return keys

    def _key(self, expression: Expression) -> str:
        if isinstance(expression, Path):
            return ".".join(self._scope.parts(expression)).lower()
        if isinstance(expression, Call):
            return f"{expression.name.lower()}({', '.join(self._key(item) for item in expression.arguments)})"
        return write(expression).lower()

    def _outputs(self, keys: dict[str, Resolved]) -> list[tuple[str, Resolved]]:
        outputs: list[tuple[str, Resolved]] = []
        unnamed = 0
        for column in self._query.columns:
            expression = column.expression
            if isinstance(expression, Query | TypeOf):
                raise malformed("only root queries support aggregate expressions", column.span[0])
            found = self._grouping(expression, keys) or self._scope.expression(expression)
            is_key = self._key(expression) in keys
            if not found.is_aggregate and not is_key and not self._formats_key(expression, keys):
                raise malformed(f"Field must be grouped or aggregated: {self._shown(expression)}", column.span[0])
            name = column.alias
            if name is None and isinstance(expression, Path):
                name = found.field.name
            if name is None:
                name, unnamed = f"expr{unnamed}", unnamed + 1
            if any(name.lower() == other.lower() for other, _ in outputs):
                raise malformed(f"duplicate alias: {name}", column.span[0])
            outputs.append((name, found))
        return outputs

    def _check_having(self, condition: Condition, keys: dict[str, Resolved]) -> None:
        """Only what is grouped or aggregated can be asked of a group."""
        inner = getattr(condition, "terms", None) or ([condition.term] if isinstance(condition, Not) else [])
        for term in inner:
            self._check_having(term, keys)
        left = getattr(condition, "left", None)
        if isinstance(left, Path | Call) and self._key(left) not in keys:
            found = self._scope.expression(left)
            if not found.is_aggregate:
                raise malformed(f"Field must be grouped or aggregated: {self._shown(left)}", left.span[0])

    def _formats_key(self, expression: Expression, keys: dict[str, Resolved]) -> bool:
        return (
            isinstance(expression, Call) and bool(expression.arguments) and self._key(expression.arguments[0]) in keys
        )

    def _grouping(self, expression: Expression, keys: dict[str, Resolved]) -> Resolved | None:
        if not (isinstance(expression, Call) and expression.name.lower() == "grouping"):
            return None
        if self._query.group_by is None or not self._query.group_by.kind:
            raise malformed("GROUPING() can only be used with ROLLUP or CUBE", expression.span[0])
        key = self._key(expression.arguments[0])
        if key not in keys:
            raise malformed(
                f"Field must be grouped or aggregated: {write(expression.arguments[0])}", expression.span[0]
            )
        return Resolved(f"<grouping {key}>", FieldType("", "int", ""), None, is_aggregate=True)

    def _shown(self, expression: Expression) -> str:
        return self._scope.expression(expression).field.name or write(expression)

    def _grouped_rows(self, keys: dict[str, Resolved], outputs: list[Resolved]) -> list[tuple[Any, ...]]:
        where, params = self._where()
        having, having_params = ("", ())
        if self._query.having is not None:
            self._check_having(self._query.having, keys)
            sql, having_params = Conditions(self._scope, having=True).compile(self._query.having)
            having = f"HAVING {sql}"
        orders = [(self._scope.expression(order.expression), order) for order in self._query.order_by]
        for found, order in orders:
            if not found.is_aggregate and self._key(order.expression) not in keys:
                raise malformed(f"Ordered field must be grouped or aggregated: {found.field.name}", order.span[0])
        kind = self._query.group_by.kind if self._query.group_by else ""
        branches, values = [], []
        for group in _grouping_sets(list(keys), kind):
            out = [_in_group(item.sql, keys, group) for item in outputs]
            out += [_in_group(_sort_key(found), keys, group) for found, _ in orders]
            # Texts that differ in case alone are one group.
            by = ", ".join(_folded_key(keys[name]) for name in group)
            branches.append(
                f"SELECT {', '.join(out)} {self._from()} WHERE {where} "
                f"{f'GROUP BY {by}' if by else ''} {_in_group(having, keys, group)}"
            )
            values += [*(value for item in outputs for value in item.params), *params, *having_params]
        sql = " UNION ALL ".join(branches)
        if orders:
            places = range(len(outputs) + 1, len(outputs) + len(orders) + 1)
            sql = f"SELECT * FROM ({sql}) ORDER BY " + ", ".join(
                _sorted(str(place), order) for place, (_, order) in zip(places, orders, strict=True)
            )
        elif keys:
            sql = f"SELECT * FROM ({sql})"
        limited = f"{sql} {self._limits(MOST_GROUPS + 1)}"
        return self._database.rows(limited, values)


@dataclass
class _Child:
    """A child subquery, fetched once for all parents of a page."""

    planned: _Planned
    link: str
    found: dict[str, list[Record]] = field(default_factory=dict)

    def fetch(self, parents: Sequence[str]) -> None:
        self.found = self.planned.children_of(self.link, parents)


class _Typed:
    """TYPEOF: what is read depends on what is pointed to."""

    def __init__(self, database: Database, node: TypeOf, link: FieldType, base: str) -> None:
        self._database = database
        self._base = base
        self._plans: dict[str, _Planned] = {}
        for branch in node.branches:
            if branch.type.lower() not in (name.lower() for name in link.reference_to):
                raise malformed(f"Invalid TYPEOF type: {branch.type}", branch.span[0])
            self._plans[branch.type.lower()] = self._plan(branch.type, branch.fields)
        if len({branch.type.lower() for branch in node.branches}) < len(node.branches):
            raise malformed("A type stands in two branches of TYPEOF", node.span[0])
        if node.otherwise is not None:
            for path in node.otherwise:
                if len(path.parts) > 1 or database.schema.get("Name").field(path.parts[-1]) is None:  # type: ignore[union-attr]
                    raise no_column(path.name, "Name", path.span[0])
        self._otherwise = node.otherwise

    def _plan(self, name: str, fields: Iterable[Path]) -> _Planned:
        columns = tuple(Column(path, None, path.span) for path in fields)
        return _Planned(self._database, Query(columns, (Source(Path((name,))),)), self._base, all_rows=True)

    def read(self, place: int, row: Sequence[Any]) -> Record | None:
        record_id = row[place]
        item = self._database.schema.of_id(record_id) if record_id else None
        if item is None:
            return None
        planned = self._plans.get(item.name.lower())
        if planned is None and self._otherwise is not None:
            wanted = [_name_path(item, path) for path in self._otherwise]
            planned = self._plans[item.name.lower()] = self._plan(item.name, [path for path in wanted if path])
        if planned is None:
            return None
        return next(iter(planned.records(ids=[record_id])), None)


def _name_path(item: ObjectType, path: Path) -> Path | None:
    """A field of Name as this object has it."""
    name = path.parts[-1]
    if name.lower() == "name" and item.name_field:
        return Path((item.name_field.name,))
    return path if item.field(name) else None


def _looked_up(child: _Child, id_at: int, row: Sequence[Any]) -> Record | None:
    records = child.found.get(row[id_at])
    return {"totalSize": len(records), "done": True, "records": records} if records else None


def _converted(convert: Convert, place: int, row: Sequence[Any]) -> Any:
    return convert(row[place])


def _compound(item: FieldType, places: dict[str, int], row: Sequence[Any]) -> Record | None:
    """An address or a place as one value."""
    values = {part: row[place] for part, place in places.items()}
    if item.type == "location":
        latitude, longitude = values.values()
        return None if latitude is None or longitude is None else {"latitude": latitude, "longitude": longitude}
    if all(value is None for value in values.values()):
        return None
    prefix = item.name.removesuffix("Address")
    named = {part.removeprefix(prefix): value for part, value in values.items()}
    keys = ("City", "Country", "GeocodeAccuracy", "Latitude", "Longitude", "PostalCode", "State", "Street")
    return {key[0].lower() + key[1:]: named.get(key) for key in keys}


def converter(item: FieldType) -> Convert:
    """How a stored value is shown."""
    if item.type == "boolean":
        return lambda value: bool(value) if value is not None else None
    if item.type == "int":
        return lambda value: int(value) if value is not None else None
    return lambda value: value


def _is_exact(term: Comparison | Membership) -> bool:
    """By equality, or by a list."""
    if isinstance(term, Comparison):
        return term.operator == "="
    return not term.negated and isinstance(term.values, tuple)


def _names_few_ids(condition: Condition | None) -> bool:
    """Whether a condition leaves at most 200 records, by their ids."""
    match condition:
        case And(terms):
            return any(_names_few_ids(term) for term in terms)
        case Comparison(Path((name,)), "="):
            return name.lower() == "id"
        case Membership(Path((name,)), tuple() as values, negated=False):
            return name.lower() == "id" and len(values) <= MOST_FIELDS_ROWS
    return False


def _sorted(sql: str, order: Order) -> str:
    direction = "DESC" if order.direction == "DESC" else "ASC"
    nulls = "LAST" if order.nulls == "LAST" else "FIRST"
    return f"{sql} {direction} NULLS {nulls}"


def _grouping_sets(keys: list[str], kind: str) -> list[tuple[str, ...]]:
    if kind == "ROLLUP":
        return [tuple(keys[:count]) for count in range(len(keys), -1, -1)]
    if kind == "CUBE":
        return list(chain.from_iterable(combinations(keys, count) for count in range(len(keys), -1, -1)))
    return [tuple(keys)]


def _in_group(sql: str, keys: dict[str, Resolved], group: tuple[str, ...]) -> str:
    """An expression in one grouping: keys that are not in it are null outside of aggregates, and GROUPING says so."""
    for name in keys:
        sql = sql.replace(f"<grouping {name}>", "0" if name in group else "1")
    parts = AGGREGATE_CALL.split(sql)
    for name, found in keys.items():
        if name not in group:
            parts[::2] = [part.replace(found.sql, "NULL") for part in parts[::2]]
    return "".join(parts)


def _sort_key(found: Resolved) -> str:
    """What rows are sorted by: picklists by their order, texts without case."""
    if found.field.type == "picklist" and found.field.values and not found.is_aggregate:
        cases = " ".join(
            f"WHEN '{value.replace(chr(39), chr(39) * 2)}' THEN {number}"
            for number, value in enumerate(found.field.values)
        )
        return f"CASE {found.sql} {cases} END"
    return f"sorted_as({found.sql})" if found.field.type in TEXT_TYPES else found.sql


def _folded_key(found: Resolved) -> str:
    return f"folded({found.sql})" if found.field.type in TEXT_TYPES else found.sql
