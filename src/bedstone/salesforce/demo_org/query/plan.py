"""Queries for records: what SELECT names becomes SQL columns and the shape of a record; children and TYPEOF follow."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from bedstone.salesforce.demo_org.database import Database
from bedstone.salesforce.demo_org.errors import ApiError, malformed_query, no_child, no_column
from bedstone.salesforce.demo_org.query.checks import is_aggregate
from bedstone.salesforce.demo_org.query.clauses import Clauses
from bedstone.salesforce.demo_org.query.shapes import (
    ReadRow,
    Record,
    Row,
    SelectedColumn,
    Shape,
    compound_reader,
    value_reader,
)
from bedstone.salesforce.demo_org.schema import FieldType, ObjectType
from bedstone.salesforce.demo_org.scope import DATE_FUNCTIONS
from bedstone.salesforce.soql.tree import Call, Column, Distance, Expression, Path, Query, Source, TypeOf

MAX_CHILD_QUERIES = 20
AGGREGATE_CHILD = "only root queries support aggregate expressions"


class RecordPlan:
    """A query for records, ready to run; `base` is the path of the API version, for the addresses of records."""

    def __init__(self, clauses: Clauses, base: str) -> None:
        self._clauses = clauses
        self._database = clauses.database
        self._base = base
        self._select = SelectList(clauses, base)

    def columns(self) -> list[SelectedColumn]:
        """Return the columns of the answer in their order."""
        return self._select.describe()

    def ids(self) -> list[str]:
        """Return the id of every record the query finds, joining only what conditions and order need."""
        clauses = self._clauses.without_joins()
        where, params = clauses.where()
        order, order_params = clauses.order()
        sql = f'SELECT {clauses.alias}."Id" {clauses.from_sql()} WHERE {where} {order} {clauses.limit_sql()}'
        return [row[0] for row in self._database.rows(sql, [*params, *order_params])]

    def records(self, maximum: int) -> list[Record]:
        """Return the first records the query finds."""
        where, params = self._clauses.where()
        order, order_params = self._clauses.order()
        sql = f"{self._select_from()} WHERE {where} {order} {self._clauses.limit_sql(maximum)}"
        return self._build(self._database.rows(sql, [*self._select.params, *params, *order_params]))

    def records_by_id(self, ids: Sequence[str]) -> list[Record]:
        """Return certain records in the order of their ids."""
        sql = f'{self._select_from()} WHERE {self._clauses.alias}."Id" IN (SELECT value FROM json_each(?))'
        rows = {row[0]: row for row in self._database.rows(sql, [*self._select.params, json.dumps(list(ids))])}
        return self._build([rows[record_id] for record_id in ids if record_id in rows])

    def records_by_parent(self, link: str, parents: Sequence[str]) -> dict[str, list[Record]]:
        """Return the child records of each parent; LIMIT and OFFSET count per parent."""
        where, params = self._clauses.where()
        order, order_params = self._clauses.order()
        column = f'{self._clauses.alias}."{link}"'
        number = f"ROW_NUMBER() OVER (PARTITION BY {column} {order}) AS _n"
        sql = f"{self._select_from(column, number)} WHERE {column} IN (SELECT value FROM json_each(?)) AND {where}"
        values = [*self._select.params, *order_params, json.dumps(list(parents)), *params]
        first, limit = self._clauses.offset, self._clauses.limit
        rows = [
            row
            for row in self._database.rows(f"SELECT * FROM ({sql}) ORDER BY _n", values)
            if row[-1] > first and (limit is None or row[-1] <= first + limit)
        ]
        by_parent: dict[str, list[Record]] = {}
        for row, record in zip(rows, self._build(rows), strict=True):
            by_parent.setdefault(row[-2], []).append(record)
        return by_parent

    def _select_from(self, *more: str) -> str:
        return f"SELECT {', '.join((*self._select.columns, *more))} {self._clauses.from_sql()}"

    def _build(self, rows: Sequence[Row]) -> list[Record]:
        shape = self._select.shape
        for child in self._select.children:
            child.fetch([row[shape.id_at] for row in rows])
        records = [shape.build(row, self._base) for row in rows]
        return [record for record in records if record is not None]


class SelectList:
    """What a query selects: columns in SQL with their parameters, and the shape of a record."""

    def __init__(self, clauses: Clauses, base: str) -> None:
        self._clauses = clauses
        self._scope = clauses.scope
        self._base = base
        self.columns: list[str] = []
        self.params: list[Any] = []
        self.children: list[ChildQuery] = []
        root = self._scope.root
        self.shape = Shape(root.name, self._add(self._scope.column(root.by_name["id"], clauses.alias)))
        self._add_columns()

    def _add_columns(self) -> None:
        paths: set[str] = set()
        typed: set[str] = set()
        for column in self._clauses.query.columns:
            expression = column.expression
            match expression:
                case Query():
                    self._add_child(expression)
                case TypeOf():
                    typed.add(".".join(self._scope.parts(expression.relationship)).lower())
                    self._add_typeof(expression)
                case Path():
                    self._add_path(column, expression, paths)
                case _:
                    self._add_function(column, expression, paths)
        for relationship in typed:
            if any(path.startswith(f"{relationship}.") for path in paths):
                raise malformed_query(f"The relationship '{relationship}' is selected by TYPEOF and by a path")

    def _add(self, sql: str, params: Sequence[Any] = ()) -> int:
        """Add a column; return its place in a row."""
        self.columns.append(sql)
        self.params += params
        return len(self.columns) - 1

    def _add_path(self, column: Column, path: Path, known: set[str]) -> None:
        """Add a field inside the shapes of its parents."""
        if column.alias:
            raise malformed_query("only aggregate expressions use field aliasing", column.span[0])
        parts = self._check_new(path, known)
        shape, owner, alias = self.shape, self._scope.root, self._clauses.alias
        for depth in range(1, len(parts)):
            alias, target = self._scope.parent(parts[:depth], path.span[0])
            link = owner.by_relationship[parts[depth - 1].lower()]
            shape, owner = self._parent_shape(shape, link, target, alias), target
        item = owner.field(parts[-1])
        if item is None:
            raise no_column(parts[-1], owner.name, path.span[0])
        shape.leaves.append((item.name, self._reader(item, alias)))

    def _check_new(self, path: Path, known: set[str]) -> tuple[str, ...]:
        """Return the parts of a path that is not selected yet."""
        parts = self._scope.parts(path)
        key = ".".join(parts).lower()
        if key in known:
            raise ApiError("INVALID_FIELD", f"duplicate field selected: {parts[-1]}", position=path.span[0])
        known.add(key)
        return parts

    def _parent_shape(self, shape: Shape, link: FieldType, target: ObjectType, alias: str) -> Shape:
        assert link.relationship
        parent = shape.parent(link.relationship)
        if parent is None:
            parent = Shape(target.name, self._add(f'{alias}."Id"'))
            if target.name == "Name":
                parent.type_at = self._add(f'{alias}."Type"')
            shape.leaves.append((link.relationship, parent))
        return parent

    def _reader(self, item: FieldType, alias: str) -> ReadRow:
        if item.parts:
            return compound_reader(item, {part: self._add(f'{alias}."{part}"') for part in item.parts})
        return value_reader(item, self._add(self._scope.column(item, alias)))

    def _add_function(self, column: Column, expression: Expression, known: set[str]) -> None:
        resolved = self._scope.expression(expression)
        if isinstance(expression, Call) and expression.name.lower() in DATE_FUNCTIONS:
            raise malformed_query(f"Field must be grouped or aggregated: {expression.name}", expression.span[0])
        name = column.alias
        if name is None:
            inner = _innermost(expression)
            name = resolved.field.name or (inner.parts[-1] if inner is not None else "expr0")
            if inner is not None:
                self._check_new(inner, known)
        place = self._add(resolved.sql, resolved.params)
        self.shape.leaves.append((name, value_reader(resolved.field, place)))

    def _add_child(self, query: Query) -> None:
        outer = self._clauses
        if len(self.children) >= MAX_CHILD_QUERIES:
            raise malformed_query("Maximum 20 child subqueries are allowed", query.span[0])
        if query.offset is not None and outer.limit != 1:
            raise malformed_query("OFFSET in a subquery needs LIMIT 1 on the outer query", query.offset.span[0])
        source = query.sources[0]
        parts = source.path.parts
        if len(parts) > 1 and parts[0].lower() in self._scope.names:
            parts = parts[1:]
        relation = self._scope.schema.child(self._scope.root.name, parts[-1]) if len(parts) == 1 else None
        if relation is None:
            raise no_child(source.name, source.path.span[0])
        name = relation.name or parts[-1]
        if any(child.name == name for child in self.children):
            raise malformed_query(f"duplicate alias: {relation.name}", source.path.span[0])
        child_source = replace(source, path=Path((relation.child,), source.path.span))
        inner = Clauses.of(
            outer.database,
            replace(query, sources=(child_source, *query.sources[1:])),
            all_rows=outer.all_rows,
            alias=f"{outer.alias}c{len(self.children)}",
            depth=outer.depth + 1,
        )
        if is_aggregate(inner.query):
            raise malformed_query(AGGREGATE_CHILD, query.span[0])
        child = ChildQuery(name, RecordPlan(inner, self._base), relation.field)
        self.children.append(child)
        self.shape.leaves.append((name, partial(child.read, self.shape.id_at)))

    def _add_typeof(self, node: TypeOf) -> None:
        *parents, name = self._scope.parts(node.relationship)
        alias, owner = self._clauses.alias, self._scope.root
        if parents:
            alias, owner = self._scope.parent(tuple(parents), node.span[0])
        link = owner.by_relationship.get(name.lower())
        if link is None or not link.is_polymorphic:
            raise malformed_query(f"Invalid TYPEOF relationship: {name}", node.span[0])
        place = self._add(f'{alias}."{link.name}"')
        typed = TypeOfQueries(self._clauses.database, node, link, self._base)
        self.shape.leaves.append((link.relationship or name, partial(typed.read, place)))

    def describe(self) -> list[SelectedColumn]:
        """Return the columns as a client sees them: parents and children hold columns of their own."""
        columns: list[SelectedColumn] = []
        children = iter(self.children)
        for column in self._clauses.query.columns:
            match column.expression:
                case Query():
                    child = next(children)
                    columns.append(SelectedColumn(child.name, inner=child.plan.columns(), is_child=True))
                case TypeOf(relationship):
                    columns.append(SelectedColumn(relationship.parts[-1]))
                case Path() as path:
                    self._describe_path(columns, path)
                case Call() | Distance() as call:
                    inner = call.arguments[0] if isinstance(call, Call) and call.arguments else None
                    name = inner.parts[-1] if isinstance(inner, Path) else "expr0"
                    columns.append(SelectedColumn(column.alias or name))
        return columns

    def _describe_path(self, columns: list[SelectedColumn], path: Path) -> None:
        owner = self._scope.root
        parts = self._scope.parts(path)
        for depth, part in enumerate(parts[:-1], 1):
            name = owner.by_relationship[part.lower()].relationship or part
            _, owner = self._scope.parent(parts[:depth], path.span[0])
            parent = next((column for column in columns if column.name == name), None)
            if parent is None:
                parent = SelectedColumn(name)
                columns.append(parent)
            columns = parent.inner
        item = owner.field(parts[-1])
        columns.append(SelectedColumn(item.name if item else parts[-1], item))


@dataclass
class ChildQuery:
    """A child subquery, run once for all parents of a page."""

    name: str
    plan: RecordPlan
    link: str
    _by_parent: dict[str, list[Record]] = field(default_factory=dict)

    def fetch(self, parents: Sequence[str]) -> None:
        """Read the children of a page of parents."""
        self._by_parent = self.plan.records_by_parent(self.link, parents)

    def read(self, id_at: int, row: Row) -> Record | None:
        """Return the children of the parent in a row."""
        records = self._by_parent.get(row[id_at])
        return {"totalSize": len(records), "done": True, "records": records} if records else None


class TypeOfQueries:
    """TYPEOF: which fields are read depends on the object a reference points to."""

    def __init__(self, database: Database, node: TypeOf, link: FieldType, base: str) -> None:
        self._database = database
        self._base = base
        self._otherwise = node.otherwise
        self._plans: dict[str, RecordPlan] = {}
        targets = {name.lower() for name in link.reference_to}
        for branch in node.branches:
            if branch.type.lower() not in targets:
                raise malformed_query(f"Invalid TYPEOF type: {branch.type}", branch.span[0])
            self._plans[branch.type.lower()] = self._plan(branch.type, branch.fields)
        if len(self._plans) < len(node.branches):
            raise malformed_query("A type stands in two branches of TYPEOF", node.span[0])
        name_object = database.schema.get("Name")
        assert name_object is not None
        for path in node.otherwise or ():
            if len(path.parts) > 1 or name_object.field(path.parts[-1]) is None:
                raise no_column(path.name, "Name", path.span[0])

    def _plan(self, name: str, fields: Iterable[Path]) -> RecordPlan:
        columns = tuple(Column(path, None, path.span) for path in fields)
        query = Query(columns, (Source(Path((name,))),))
        return RecordPlan(Clauses.of(self._database, query, all_rows=True), self._base)

    def read(self, place: int, row: Row) -> Record | None:
        """Return the record a reference points to, with the fields of its branch."""
        record_id = row[place]
        item = self._database.schema.of_id(record_id) if record_id else None
        if item is None:
            return None
        plan = self._plans.get(item.name.lower())
        if plan is None and self._otherwise is not None:
            paths = [_name_path(item, path) for path in self._otherwise]
            plan = self._plans[item.name.lower()] = self._plan(item.name, [path for path in paths if path])
        return next(iter(plan.records_by_id([record_id])), None) if plan else None


def _innermost(expression: Expression) -> Path | None:
    """Return the field that an expression is about, without the functions around it."""
    while isinstance(expression, Call) and expression.arguments:
        expression = expression.arguments[0]
    return expression if isinstance(expression, Path) else None


def _name_path(item: ObjectType, path: Path) -> Path | None:
    """Return a field of Name as one object has it."""
    name = path.parts[-1]
    if name.lower() == "name" and item.name_field:
        return Path((item.name_field.name,))
    return path if item.field(name) else None
