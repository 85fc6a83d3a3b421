"""Queries that follow a path: one row per record of the object that points both ways, or nested by the one on top."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from bedstone.salesforce.graph.columns import default_columns
from bedstone.salesforce.graph.model import Edge, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.paths import MAX_CHILD_LEVELS, MAX_PARENT_LEVELS, Path, Step

Shape = Literal["rows", "nested"]
MAX_COLUMNS = 3  # of the object that a query is about; of the others, the name
ROW_LIMIT = 200
NESTED_LIMIT = 50
INDENT = 7  # of the columns below SELECT


@dataclass(frozen=True)
class PathQuery:
    """A query in parts. `selected` has its columns, each with a title for people.

    `columns` has the fields that it takes of each object, by the place of the object in the path.

    `keys` are its columns by which the rows of another query are joined to its own, with the place of that object.
    """

    source: ObjectSchema
    selected: Mapping[str, str]
    conditions: Sequence[str] = ()
    order: str = ""
    limit: int = ROW_LIMIT
    columns: dict[int, list[str]] = field(default_factory=dict)
    keys: Sequence[tuple[int, str]] = ()

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Return the query line by line, each with the word that it begins with."""
        own = [name for name in self.selected if name.isidentifier()]
        first, *rest = [", ".join(own), *(name for name in self.selected if name not in own)]
        head = [("SELECT", f" {first}{',' if rest else ''}")]
        more = [("", f"{' ' * INDENT}{part}{',' if place < len(rest) else ''}") for place, part in enumerate(rest, 1)]
        where = [("WHERE" if not place else "  AND", f" {part}") for place, part in enumerate(self.conditions)]
        order = [("ORDER BY", f" {self.order}")] if self.order else []
        return [*head, *more, ("FROM", f" {self.source.name}"), *where, *order, ("LIMIT", f" {self.limit}")]

    @property
    def text(self) -> str:
        return "\n".join(word + rest for word, rest in self.lines)

    def with_limit(self, limit: int) -> "PathQuery":
        """Return the query for fewer rows."""
        return replace(self, limit=limit)


def joins(queries: Sequence[PathQuery]) -> list[str]:
    """Return by which columns the rows of several queries belong together."""
    keys: dict[int, list[str]] = {}
    for query in queries:
        for place, key in query.keys:
            keys.setdefault(place, []).append(f"{query.source.name}.{key}")
    return [" = ".join(keys[place]) for place in sorted(keys)]


def row_queries(path: Path, graph: SchemaGraph) -> list[PathQuery]:
    """Return the queries whose rows together follow a path; more than one if no single query can.

    Each starts at an object from which the path goes up on both sides, so that every step is one dot.
    """
    queries: list[PathQuery] = []
    for start, end in _split_at_peaks(path.steps):
        bottom = next((place for place in range(start, end) if path.steps[place].direction == "up"), end)
        to_start = [(place, path.steps[place].edge) for place in reversed(range(start, bottom))]
        to_end = [(place + 1, path.steps[place].edge) for place in range(bottom, end)]
        is_joined = (start > 0, end < len(path.steps))
        queries += _queries_from(_name_at(path, bottom), bottom, (to_start, to_end), is_joined, graph)
    return queries


def nested_query(path: Path, graph: SchemaGraph) -> PathQuery | None:
    """Return one query from the object on top of a path, with the others in subqueries; None if it is impossible."""
    if len(_split_at_peaks(path.steps)) > 2:  # noqa: PLR2004 - from one object on top, it goes down on two sides
        return None
    top = sum(step.direction == "up" for step in path.steps)
    if any(step.direction == "up" for step in path.steps[top:]):
        return None
    sides = (
        [(place, path.steps[place].edge) for place in reversed(range(top))],
        [(place + 1, path.steps[place].edge) for place in range(top, len(path.steps))],
    )
    item = graph.get(_name_at(path, top))
    if item is None or any(len(side) > MAX_CHILD_LEVELS for side in sides):
        return None
    columns = {top: [_name_column(item)]}
    selected = {_name_column(item): item.label}
    for side in sides:
        if any(not edge.child_relationship for _, edge in side):
            return None
        child = graph.get(side[0][1].child) if side else None
        if child is not None:
            selected[_subquery(side, graph, columns)] = child.plural or child.label
    return PathQuery(item, selected, order=_order(item), limit=NESTED_LIMIT, columns=columns)


def count_all(name: str) -> str:
    """Return the statement that counts the records of an object."""
    return f"SELECT COUNT() FROM {name}"


def count_filled(edge: Edge) -> str:
    """Return the statement that counts the records whose field points to the object at its other end."""
    field = edge.field
    if len(field.reference_to) > 1 and field.relationship:
        return f"SELECT COUNT() FROM {edge.child} WHERE {field.relationship}.Type = '{edge.parent}'"
    return f"SELECT COUNT() FROM {edge.child} WHERE {field.name} != null"


def _split_at_peaks(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """Return the parts of a path between the objects to which it goes up and from which it goes down."""
    peaks = [
        place
        for place in range(1, len(steps))
        if (steps[place - 1].direction, steps[place].direction) == ("up", "down")
    ]
    ends = [0, *peaks, len(steps)]
    return list(pairwise(ends))


Chain = list[tuple[int, Edge]]  # steps up, each with the place of the object that it reaches


def _queries_from(
    name: str, place: int, chains: tuple[Chain, Chain], is_joined: tuple[bool, bool], graph: SchemaGraph
) -> Iterator[PathQuery]:
    """Yield the query from an object along two chains of parents, and those for what its dots cannot reach."""
    item = graph.get(name)
    if item is None:
        return
    query = PathQuery(item, _titles(item), order=_order(item), columns={place: _main_columns(item)})
    rest: list[tuple[int, Edge, Chain, bool]] = []
    for chain, is_key in zip(chains, is_joined, strict=True):
        reached, cut = _cut(chain)
        query = _follow(query, reached, graph, is_key=is_key or bool(cut)) if reached else query
        if cut:
            rest.append((*reached[-1], cut, is_key))
    yield query
    for at, edge, chain, is_key in rest:
        first, *others = _queries_from(edge.parent, at, ([], chain), (False, is_key), graph)
        yield replace(first, selected={"Id": "Id", **first.selected}, keys=[(at, "Id"), *first.keys])
        yield from others


def _follow(query: PathQuery, chain: Chain, graph: SchemaGraph, *, is_key: bool) -> PathQuery:
    """Return a query that also takes the parents along a chain; `is_key` if its end joins another query."""
    selected, columns, prefix = dict(query.selected), dict(query.columns), ""
    for at, edge in chain:
        parent = graph.get(edge.parent)
        if edge.field.relationship and parent is not None:
            columns[at] = ["Name"] if len(edge.field.reference_to) > 1 else [_name_column(parent)]
            title = parent.label if parent.label not in selected.values() else edge.field.label
            selected[f"{prefix}{edge.field.relationship}.{columns[at][0]}"] = title
        path, prefix = prefix, f"{prefix}{edge.field.relationship}."
    at, edge = chain[-1]
    key = f"{path}{edge.field.name}"
    return replace(
        query,
        selected=selected | ({key: edge.field.label} if is_key else {}),
        columns=columns,
        conditions=[*query.conditions, *_condition(path, [edge for _, edge in chain])],
        keys=[*query.keys, (at, key)] if is_key else query.keys,
    )


def _cut(chain: Chain) -> tuple[Chain, Chain]:
    """Divide a chain where dots end: after five, at a field without a name, behind one that may point elsewhere."""
    for position, (_, edge) in enumerate(chain, 1):
        is_end = not edge.field.relationship or len(edge.field.reference_to) > 1 or position == MAX_PARENT_LEVELS
        if is_end and (position < len(chain) or not edge.field.relationship):
            return chain[:position], chain[position:]
    return chain, []


def _condition(prefix: str, edges: Sequence[Edge]) -> list[str]:
    """Return what keeps rows out that do not follow the chain: an empty field, or one that points elsewhere."""
    last = edges[-1].field
    if len(last.reference_to) > 1 and last.relationship:
        return [f"{prefix}{last.relationship}.Type = '{edges[-1].parent}'"]
    return [f"{prefix}{last.name} != null"] if any(edge.field.nillable for edge in edges) else []


def _subquery(side: Chain, graph: SchemaGraph, columns: dict[int, list[str]]) -> str:
    """Return the subquery of a chain of children, each below its parent."""
    (place, edge), *rest = side
    child = graph.get(edge.child)
    columns[place] = [_name_column(child)] if rest or child is None else _main_columns(child)
    inner = [*columns[place], *([_subquery(rest, graph, columns)] if rest else [])]
    return f"(SELECT {', '.join(inner)} FROM {edge.child_relationship})"


def _name_at(path: Path, place: int) -> str:
    return path.steps[0].source if place == 0 else path.steps[place - 1].target


def _main_columns(item: ObjectSchema) -> list[str]:
    """Return the name and the fields that tell most."""
    name = item.name_field.name if item.name_field is not None else None
    usual = [item.field(column) for column in default_columns(item, MAX_COLUMNS + 4)]  # None for those of parents
    useful = [found.name for found in usual if found is not None and found.type != "id" and found.compound != "Name"]
    return list(dict.fromkeys([*([name] if name else []), *useful]))[:MAX_COLUMNS] or ["Id"]


def _titles(item: ObjectSchema) -> dict[str, str]:
    """Return the columns of an object with their titles: the name is called like the object."""
    labels = {name: found.label for name in _main_columns(item) if (found := item.field(name)) is not None}
    return labels | {_name_column(item): item.label} if _name_column(item) in labels else labels


def _name_column(item: ObjectSchema | None) -> str:
    return item.name_field.name if item is not None and item.name_field is not None else "Id"


def _order(item: ObjectSchema) -> str:
    name = item.name_field
    return name.name if name is not None and name.sortable else ""
