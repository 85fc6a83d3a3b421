"""A path between two objects in words: what it means, what it costs, and the queries that follow it."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bedstone.salesforce.graph.model import Edge, ObjectSchema, SchemaGraph
from bedstone.salesforce.graph.names import squeeze
from bedstone.salesforce.graph.path_queries import (
    PathQuery,
    count_all,
    count_filled,
    joins,
    nested_query,
    row_queries,
)
from bedstone.salesforce.graph.paths import Path, Step
from bedstone.services.schema.service import OrgSchema
from bedstone.services.service import State, format_count
from bedstone.web.schema.neighbours import KIND_NAMES, kind_of_link

NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
LIKE_YOU = re.compile(r"(?i)(uni([^n]|$)|us[aeiu]|ut[ei]|eu|one\b)")  # spoken with a consonant first
MORE_QUERIES_COST = 1.5  # more than another step
QUOTE = "“"
END_QUOTE = "”"
NO_NOUN = re.compile(r"(?i)(\b(by|to|from|for|of|on|in|at|with|who|what)|ed)$")  # the end of a label
ID_WORD = re.compile(r"(?i)\s+(id|name)$")


@dataclass(frozen=True)
class Stop:
    """An object on the way, the fields that the query takes of it, and how many more it has."""

    item: ObjectSchema
    columns: Sequence[str]
    records: int | None = None

    @property
    def more(self) -> int:
        return len(self.item.fields) - len(self.columns)


@dataclass(frozen=True)
class Hop:
    """The field between two objects; `goes_up` if it points to the next one. `filled` records of `total` have it."""

    edge: Edge
    goes_up: bool
    filled: int | None = None
    total: int | None = None

    @property
    def kind(self) -> str:
        return KIND_NAMES[kind_of_link(self.edge)]

    @property
    def share(self) -> str:
        """Return how many records have the field, in words."""
        if self.filled is None or self.total is None:
            return ""
        if not self.filled:
            return "never filled"
        return "all filled" if self.filled == self.total else f"{self.filled:,} of {self.total:,}"


@dataclass(frozen=True)
class Way:
    """A path with its words. `rows` are the queries that follow it row by row, `nested` is one with subqueries.

    Without rows, `problem` says why the org would not run them.
    """

    path: Path
    title: str
    sentence: str
    rows: Sequence[PathQuery]
    nested: PathQuery | None
    problem: str = ""

    @property
    def key(self) -> str:
        """Return what names this way in an address: its fields, those of the next object with its name."""
        return ",".join(step_key(step.edge, goes_up=step.direction == "up") for step in self.path.steps)

    @property
    def heading(self) -> str:
        return self.title if len(self.path.steps) == 1 else f"Through {self.title}"

    @property
    def steps(self) -> str:
        return format_count(len(self.path.steps), "step")

    @property
    def cost(self) -> str:
        """Return its length, and by how many queries it is followed, in words."""
        if len(self.rows) == 1:
            return f"{self.steps}, one query"
        return f"{self.steps}, one nested query" if self.nested else self.steps

    @property
    def state(self) -> State | None:
        """Return what keeps it from being one query."""
        if len(self.rows) == 1 or self.nested is not None:
            return None
        if not self.rows:
            return State("warn", "No query can follow it")
        return State("warn", f"Needs {NUMBERS[len(self.rows)]} queries")

    def queries(self, shape: str) -> Sequence[PathQuery]:
        """Return the queries of a shape."""
        return [self.nested] if shape == "nested" and self.nested is not None else self.rows

    def route(self, shape: str, graph: SchemaGraph, counts: Mapping[str, int]) -> list[Stop | Hop]:
        """Return the stops and hops in order, with what is counted of them."""
        columns = {place: names for query in self.queries(shape) for place, names in query.columns.items()}
        route: list[Stop | Hop] = []
        for place, name in enumerate(_names(self.path)):
            item = graph.get(name)
            assert item is not None  # the path was found in this graph
            if place:
                step = self.path.steps[place - 1]
                filled, total = counts.get(count_filled(step.edge)), counts.get(count_all(step.edge.child))
                route.append(Hop(step.edge, step.direction == "up", filled, total))
            route.append(Stop(item, columns.get(place, []), counts.get(count_all(name))))
        return route

    def statements(self) -> list[str]:
        """Return the statements that count its records, and how many have its fields filled."""
        counted_objects = [count_all(name) for name in _names(self.path)]
        return list(dict.fromkeys([*counted_objects, *(count_filled(step.edge) for step in self.path.steps)]))


def step_key(edge: Edge, *, goes_up: bool) -> str:
    """Return what names a step in an address."""
    return edge.field.name if goes_up else f"{edge.child}.{edge.field.name}"


def tell_ways(paths: Iterable[Path], org: OrgSchema) -> list[Way]:
    """Return paths in words, the nearest first; ways that would have the same name also name their fields."""
    ways = sorted((_tell(path, org) for path in paths), key=_distance)
    often = Counter(way.title for way in ways)
    return [
        replace(way, title=f"{way.title} ({_field_names(way.path)})") if often[way.title] > 1 else way for way in ways
    ]


def explain_shape(way: Way, shape: str) -> str:
    """Return how the query, or the queries, of a way work."""
    if shape == "nested" and way.nested is not None:
        return f"It starts at {a(way.nested.source.label)}; the others are listed below each one."
    if len(way.rows) > 1:
        return f"No single query gives such rows. Run each, then join what they return: {', '.join(joins(way.rows))}."
    if not way.rows:
        return ""
    source = way.rows[0].source
    ends = _names(way.path)
    where = "the far end" if source.name == ends[-1] else "the near end" if source.name == ends[0] else "the middle"
    return f"It starts at {where}: from there each step is one dot, and every {lower(source.label)} is one row."


def name_shapes(way: Way) -> dict[str, str]:
    """Return the shapes of a way's query with their names."""
    shapes = {}
    if len(way.rows) == 1:
        shapes["rows"] = f"One row per {lower(way.rows[0].source.label)}"
    elif way.rows:
        shapes["rows"] = f"{NUMBERS[len(way.rows)].capitalize()} queries"
    if way.nested is not None:
        shapes["nested"] = f"Nested by {lower(way.nested.source.label)}"
    return shapes if len(way.rows) <= 1 or "nested" not in shapes else dict(reversed(shapes.items()))


def a(label: str) -> str:
    """Return a label within a sentence, with its article."""
    word = lower(label)
    is_vowel = word[:1].lower() in "aeiou" and not LIKE_YOU.match(word)
    return f"{'an' if is_vowel else 'a'} {word}"


def lower(label: str) -> str:
    """Return a label within a sentence; abbreviations and names in one word keep their capitals."""
    return " ".join(word if word[1:] != word[1:].lower() else word.lower() for word in label.split())


def _distance(way: Way) -> float:
    return way.path.cost + (MORE_QUERIES_COST if way.state is not None else 0.0)


def _tell(path: Path, org: OrgSchema) -> Way:
    rows, nested = row_queries(path, org.graph), nested_query(path, org.graph)
    problem = next((text for query in rows if (text := _find_problem(query, org))), "")
    return Way(
        path,
        _title(path, org.graph),
        _sentence(path, org.graph),
        [] if problem else rows,
        nested if nested is not None and not _find_problem(nested, org) else None,
        problem,
    )


def _find_problem(query: PathQuery, org: OrgSchema) -> str:
    """Return why the org would not run a query."""
    return next((item.message for item in org.validate(query.text).messages if item.type == "error"), "")


def _title(path: Path, graph: SchemaGraph) -> str:
    """Return the objects on the way, with the fields that are not called like what they point to."""
    last = len(path.steps)
    parts = {place: [_label(name, graph)] for place, name in enumerate(_names(path)[1:-1], 1)}
    for place, step in enumerate(path.steps):
        role = _role(step.edge, graph)
        child, parent = (place, place + 1) if step.direction == "up" else (place + 1, place)
        is_named = role.startswith(QUOTE)
        if role and last == 1:
            return f"Directly, {'by' if is_named else 'its' if step.direction == 'up' else 'as'} {role}"
        if role and child in parts:
            parts[child].append(f"by {role}" if is_named else f"by its {role}")
        elif role:
            parts[parent].append(f"by {role}" if is_named else f"as {role}")
    return _join([", ".join(dict.fromkeys(words)) for words in parts.values()]) if parts else "Directly"


def _sentence(path: Path, graph: SchemaGraph) -> str:
    """Return the way as a sentence made of labels."""
    text = ", ".join(_clause(step, graph) for step in path.steps)
    return f"{text[:1].upper()}{text[1:]}."


def _clause(step: Step, graph: SchemaGraph) -> str:
    source, target = graph.get(step.source), graph.get(step.target)
    assert source is not None  # the path was found in this graph
    assert target is not None
    role = _role(step.edge, graph)
    is_named = role.startswith(QUOTE)  # a label that does not read as a noun stands for itself
    if step.direction == "down":
        many = lower(target.plural or f"{target.label}s")
        return f"{a(source.label)} has {many}" + (f" by {role}" if is_named else f" as their {role}" if role else "")
    if role and not is_named:
        return f"{a(source.label)} has {a(target.label)} as its {role}"
    return f"{a(source.label)} belongs to {a(target.label)}" + (f" by {role}" if is_named else "")


def _role(edge: Edge, graph: SchemaGraph) -> str:
    """Return what a field calls the record it points to, unless that is what the object is called anyway."""
    label = ID_WORD.sub("", edge.field.label)
    names = {squeeze(_label(edge.parent, graph)), squeeze(edge.parent), squeeze(edge.parent.removesuffix("__c"))}
    bare = edge.field.name.removesuffix("Id").removesuffix("__c")
    is_part = set(label.lower().split()) <= set(_label(edge.parent, graph).lower().split())  # Visit of Service Visit
    if is_part or squeeze(label) in names or squeeze(bare) in names:
        return ""
    return f"{QUOTE}{label}{END_QUOTE}" if NO_NOUN.search(label) else lower(label)


def _label(name: str, graph: SchemaGraph) -> str:
    item = graph.get(name)
    return item.label if item is not None else name


def _names(path: Path) -> list[str]:
    return [path.steps[0].source, *(step.target for step in path.steps)]


def _field_names(path: Path) -> str:
    return ", ".join(step.edge.field.name for step in path.steps)


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
