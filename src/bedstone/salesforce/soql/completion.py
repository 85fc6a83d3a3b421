"""Suggest how a half-typed query can go on: objects, fields, paths, values, functions and keywords."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bedstone.salesforce.graph.model import NAME_OBJECT, Field, ObjectSchema, SchemaGraph, name_field
from bedstone.salesforce.soql.caret import LISTS, Caret, Select, find_caret
from bedstone.salesforce.soql.quoting import soql_string
from bedstone.salesforce.soql.suggestions import (
    Suggestion,
    order_fields,
    rank,
    suggest_field,
    suggest_functions,
    suggest_keywords,
    suggest_name_fields,
    suggest_parent,
    suggest_plain_values,
)

MAX_CHARACTERS = 20_000
MAX_SUGGESTIONS = 50
MAX_DEPTH = 10  # SELECTs inside each other
MAX_LEVELS_UP = 5

AGGREGATES = ("COUNT", "COUNT_DISTINCT", "SUM", "AVG", "MIN", "MAX")
DATE_PARTS = (
    *("CALENDAR_YEAR", "CALENDAR_QUARTER", "CALENDAR_MONTH", "DAY_ONLY", "DAY_IN_MONTH", "DAY_IN_WEEK", "DAY_IN_YEAR"),
    *("FISCAL_YEAR", "FISCAL_QUARTER", "FISCAL_MONTH", "HOUR_IN_DAY", "WEEK_IN_MONTH", "WEEK_IN_YEAR"),
)
SELECTED = (*AGGREGATES, "FORMAT", "toLabel", "convertCurrency", *DATE_PARTS, "GROUPING")
FOLLOWING = ("WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET")
OPERAND = frozenset({"where", "having", "and", "or", "not", "("})  # a field follows them in a condition
COMPARISONS = frozenset({"=", "<", ">", "!=", "<>", "like"})
EQUALITY = ("=", "!=")
ORDERED = (*EQUALITY, "<", ">", "<=", ">=")
OPERATORS = {
    "boolean": EQUALITY,
    "multipicklist": (*EQUALITY, "INCLUDES", "EXCLUDES"),
    **dict.fromkeys(("date", "datetime", "time", "int", "long", "double", "currency", "percent"), ORDERED),
    **dict.fromkeys(("id", "reference"), (*EQUALITY, "IN", "NOT IN")),
}
TEXT_OPERATORS = (*EQUALITY, "LIKE", "IN", "NOT IN")


@dataclass(frozen=True)
class Completion:
    """The best suggestions, the stretch of the query that they replace, and how many there are in all."""

    start: int
    end: int
    suggestions: tuple[Suggestion, ...] = ()
    total: int = 0


def complete(text: str, position: int, graph: SchemaGraph) -> Completion:
    """Return suggestions for a position of a query; the cost is bounded for any text."""
    nothing = Completion(position, position)
    if len(text) > MAX_CHARACTERS or not 0 <= position <= len(text):
        return nothing
    caret = find_caret(text, position)
    if caret.is_mute or len(caret.selects) > MAX_DEPTH:
        return nothing
    site = _Site(caret, graph)
    if caret.text_at is not None:
        return _complete_text(site, caret.text_at)
    typed = caret.typed.rpartition(".")[2]
    start = position - len(typed)
    found = rank(typed, site.candidates())
    is_done = len(found) == 1 and found[0].name.lower() == text[start : caret.end].lower()
    return nothing if is_done else Completion(start, caret.end, tuple(found[:MAX_SUGGESTIONS]), len(found))


def find_main_object(text: str, graph: SchemaGraph) -> ObjectSchema | None:
    """Return the object that a query is about; the query may be incomplete."""
    if len(text) > MAX_CHARACTERS:
        return None
    caret = find_caret(text, len(text))
    return _Site(caret, graph).object_of(0) if caret.selects else None


def _complete_text(site: "_Site", place: int) -> Completion:
    """Suggest values for the string around the caret."""
    caret = site.caret
    start, end, position = caret.tokens.starts[place] + 1, caret.tokens.ends[place], caret.position
    rest = caret.tokens.text[position:end]
    # A quote further on may begin the next string instead of ending this one.
    is_closed = rest.endswith("'") and not re.search(r"[\n=<>()]", rest)
    found = rank(caret.tokens.text[start:position], site.values(quoted=False))
    return Completion(start, end if is_closed else position, tuple(found[:MAX_SUGGESTIONS]), len(found))


class _Site:
    """A caret with the schema: what can stand there."""

    def __init__(self, caret: Caret, graph: SchemaGraph) -> None:
        self.caret = caret
        self.graph = graph
        self.select = caret.selects[-1] if caret.selects else Select(0, is_join=False, clause="")
        self.place = len(caret.selects) - 1

    def candidates(self) -> Iterator[Suggestion]:
        """Yield what can stand at the caret, in a sensible order."""
        last = self.caret.last
        if last in ("order", "group") and self.caret.word(self.caret.at - 2) != "from":
            yield from suggest_keywords("BY")
        elif last == "nulls":
            yield from suggest_keywords("FIRST", "LAST")
        else:
            clauses = {
                "": self._at_start,
                "select": self._in_select,
                "from": self._in_from,
                "using": self._in_using,
                "where": self._in_condition,
                "having": self._in_condition,
                "group by": self._in_group_by,
                "order by": self._in_order_by,
                "limit": self._in_limit,
                "offset": self._in_limit,
                "for": self._in_for,
            }
            yield from clauses.get(self.select.clause, self._nowhere)()

    # Objects and fields

    def object_of(self, place: int) -> ObjectSchema | None:
        """Return the object of a SELECT: the one that FROM names, or the children of the SELECT around it."""
        select = self.caret.selects[place]
        sources = self.caret.sources(select)
        if not sources:
            return None
        if place == 0 or select.is_join:
            return self.graph.get(".".join(sources[0].parts))
        parent = self.object_of(place - 1)
        found = self.graph.child_object(parent, sources[0].parts[-1]) if parent is not None else None
        return found[1] if found is not None else None

    def _aliases(self) -> dict[str, tuple[str, ...]]:
        """Return what the names of FROM stand for, as paths from the object."""
        known: dict[str, tuple[str, ...]] = {}
        for number, source in enumerate(self.caret.sources(self.select)):
            first, *rest = source.parts
            chain = (*known.get(first.lower(), ()), *rest) if number else ()
            known[(source.alias or source.parts[-1]).lower()] = chain
            if number == 0:
                known[source.parts[-1].lower()] = ()
        return known

    def owner(self, parts: tuple[str, ...]) -> ObjectSchema | str | None:
        """Return the object at the end of a path of relationships; `Name` where it can be one of several."""
        item = self.object_of(self.place) if self.place >= 0 else None
        if parts and (chain := self._aliases().get(parts[0].lower())) is not None:
            parts = (*chain, *parts[1:])
        if len(parts) > MAX_LEVELS_UP:
            return None
        for number, part in enumerate(parts, start=1):
            link = item.by_relationship.get(part.lower()) if item is not None else None
            if link is None:
                return None
            if len(link.reference_to) > 1:
                return NAME_OBJECT if number == len(parts) else None
            item = self.graph.get(link.reference_to[0]) if link.reference_to else None
        return item

    def _fields(self, flag: str = "") -> Iterator[Suggestion]:
        """Yield the fields and parents that can follow the path typed so far; `flag` names what they must be."""
        owner = self.owner(tuple(self.caret.typed.split(".")[:-1]))
        if owner == NAME_OBJECT:
            yield from suggest_name_fields()
        elif isinstance(owner, ObjectSchema):
            for item in order_fields(owner):
                if not item.is_deprecated and (not flag or getattr(item, flag)):
                    yield suggest_field(item)
            yield from (suggest_parent(item) for item in owner.fields if item.relationship and item.reference_to)

    # Clauses

    def _nowhere(self) -> Iterator[Suggestion]:
        yield from ()

    def _at_start(self) -> Iterator[Suggestion]:
        if self.caret.at == 0 or (self.caret.last == "(" and self.caret.at == 1):
            yield from suggest_keywords("SELECT")

    def _in_select(self) -> Iterator[Suggestion]:
        caret = self.caret
        typeof = self._typeof_at()
        if typeof >= 0:
            yield from self._in_typeof(typeof)
        elif caret.opened_by == "fields":
            yield from (Suggestion(word, word, "", "keyword") for word in ("STANDARD", "CUSTOM", "ALL"))
        elif caret.is_in_parentheses:
            if caret.last == "(" and caret.opened_by in ("select", ","):
                yield from suggest_keywords("SELECT")
            elif caret.last in ("(", ","):
                yield from self._fields()
        elif caret.last in ("select", ","):
            yield from self._fields()
            if "." not in caret.typed:
                yield from self._children()
                yield from suggest_functions(SELECTED)
                yield Suggestion("FIELDS(STANDARD)", "FIELDS(STANDARD)", "function", "function")
                yield from suggest_keywords("TYPEOF")
        elif self.select.from_at is None or self.select.from_at >= caret.at:
            yield from suggest_keywords("FROM")

    def _children(self) -> Iterator[Suggestion]:
        """Yield a subquery for each child relationship."""
        item = self.object_of(self.place)
        if item is None or self.select.is_join:
            return
        for child in item.children:
            if child.relationship and self.graph.get(child.object) is not None:
                insert = f"(SELECT Id FROM {child.relationship})"  # noqa: S608 - a name of the schema
                yield Suggestion(insert, child.relationship, f"children: {child.object}", "children")

    def _typeof_at(self) -> int:
        """Return the place of the TYPEOF that is open at the caret, or -1."""
        for place in range(self.caret.at - 1, -1, -1):
            word = self.caret.word(place)
            if word in ("end", "select"):
                return -1
            if word == "typeof":
                return place
        return -1

    def _in_typeof(self, place: int) -> Iterator[Suggestion]:
        caret, last = self.caret, self.caret.last
        item = self.object_of(self.place)
        name = caret.tokens.source_text(place + 1).lower() if place + 1 < caret.at else ""
        link = item.by_relationship.get(name) if item is not None else None
        if last == "typeof" and item is not None:
            several = (field for field in item.fields if field.relationship and len(field.reference_to) > 1)
            yield from (
                Suggestion(f"{field.relationship} ", str(field.relationship), "", "parent") for field in several
            )
        elif last == "when" and link is not None:
            yield from (Suggestion(f"{target} ", target, "object", "object") for target in link.reference_to)
        elif last == "else":
            yield from suggest_name_fields()
        elif last in ("then", ","):
            whens = [index for index in range(place, caret.at) if caret.word(index) == "when"]
            chosen = self.graph.get(caret.tokens.source_text(whens[-1] + 1)) if whens else None
            yield from map(suggest_field, order_fields(chosen) if chosen is not None else ())
        elif caret.word(caret.at - 2) == "when":
            yield from suggest_keywords("THEN")
        else:
            yield from suggest_keywords("WHEN", "ELSE", "END")

    def _in_from(self) -> Iterator[Suggestion]:
        if self.caret.last == ",":
            return
        if self.caret.last != "from":
            yield from self._next_clauses()
            if self.place == 0:
                yield from suggest_keywords("USING SCOPE")
        elif self.place > 0 and not self.select.is_join:
            parent = self.object_of(self.place - 1)
            for child in parent.children if parent is not None else ():
                if child.relationship:
                    yield Suggestion(f"{child.relationship}", child.relationship, child.object, "children")
        else:
            yield from self._objects()

    def _objects(self) -> Iterator[Suggestion]:
        """Yield the objects that can be queried: custom ones first, what belongs to other objects last."""
        derived = ("Share", "Feed", "History", "ChangeEvent")
        queryable = [item for item in self.graph.objects.values() if item.queryable]
        queryable.sort(key=lambda item: (item.name.endswith(derived), not item.is_custom))
        for item in queryable:
            detail = "custom object" if item.is_custom else "object"
            yield Suggestion(item.name, item.name, detail, "object", item.label)

    def _in_using(self) -> Iterator[Suggestion]:
        if self.caret.last == "using":
            yield from suggest_keywords("SCOPE")
        elif self.caret.last == "scope":
            item = self.object_of(self.place)
            yield from (Suggestion(f"{name} ", name, "scope", "value") for name in (item.scopes if item else ()))
        else:
            yield from self._next_clauses()

    def _in_condition(self) -> Iterator[Suggestion]:
        caret, last = self.caret, self.caret.last
        before = caret.word(caret.at - 2)
        if caret.is_in_parentheses and caret.opened_by in LISTS:
            if last == "(" and caret.opened_by == "in":
                yield from suggest_keywords("SELECT")
            if last in ("(", ","):
                yield from self.values(quoted=True)
        elif last == "not" and before not in OPERAND and caret.kind(caret.at - 2) == "name":
            yield from suggest_keywords("IN")
        elif last in OPERAND or last == ",":
            yield from self._operands()
        elif last in LISTS:
            yield Suggestion("(", "(", "a list", "keyword")
        elif last in COMPARISONS:
            yield from self.values(quoted=True)
        elif self._is_left_side(caret.at - 1):
            field = self.field_before(caret.at)
            operators = OPERATORS.get(field.type, TEXT_OPERATORS) if field is not None else ORDERED
            yield from suggest_keywords(*operators)
        else:
            yield from suggest_keywords("AND", "OR")
            yield from self._next_clauses() if not caret.is_in_parentheses else ()

    def _operands(self) -> Iterator[Suggestion]:
        """Yield what a condition can begin with."""
        caret = self.caret
        yield from self._fields("filterable" if self.select.clause == "where" else "")
        if "." in caret.typed:
            return
        if not caret.opened_by:
            yield from suggest_functions(DATE_PARTS if self.select.clause == "where" else (*AGGREGATES, *DATE_PARTS))
            yield from suggest_keywords("NOT")

    def _is_left_side(self, place: int) -> bool:
        """Return whether the token at a place ends the left side of a comparison."""
        caret = self.caret
        if caret.word(place) == ")":
            place = caret.matching(place) - 1  # the name of the function
        is_name = caret.kind(place) == "name" and caret.word(place) not in (*OPERAND, *LISTS)
        return is_name and caret.word(place - 1) in (*OPERAND, ",")

    def field_before(self, at: int) -> Field | None:
        """Return the field that ends before a place, also inside a function that keeps its type."""
        caret = self.caret
        place = at - 1
        if caret.word(place) == ")":
            opening = caret.matching(place)
            if caret.word(opening - 1) not in ("tolabel", "day_only", "min", "max"):
                return None
            place -= 1
        if caret.kind(place) != "name":
            return None
        *parents, name = caret.tokens.source_text(place).split(".")
        owner = self.owner(tuple(parents))
        if owner == NAME_OBJECT:
            return name_field(name)
        return owner.field(name) if isinstance(owner, ObjectSchema) else None

    def values(self, *, quoted: bool) -> Iterator[Suggestion]:
        """Yield the values that the field left of the caret can have; inside quotes without the first quote."""
        at = self._operator_at()
        field = self.field_before(at) if at > 0 else None
        if field is None:
            return
        is_label = self.caret.word(at - 1) == ")" and self.caret.word(self.caret.matching(at - 1) - 1) == "tolabel"
        for choice in field.choices:
            if choice.is_active:
                value = choice.label if is_label else choice.value
                insert = soql_string(value)
                label = choice.label if choice.label != value else ""
                yield Suggestion(insert if quoted else insert[1:], value, label or "value", "value", label)
        if quoted:
            yield from suggest_plain_values(field)

    def _operator_at(self) -> int:
        """Return the place of the operator left of the caret, or 0."""
        caret = self.caret
        place = caret.at - 1
        if caret.opened_by in LISTS:
            place = caret.openings[-1] - 1
            return place - 1 if caret.word(place - 1) == "not" else place
        while place > 0 and caret.word(place) in COMPARISONS:
            place -= 1
        return place + 1 if place < caret.at - 1 else 0

    def _in_group_by(self) -> Iterator[Suggestion]:
        if self.caret.last in ("by", ",", "("):
            yield from self._fields("groupable")
            if "." not in self.caret.typed:
                yield from suggest_functions(DATE_PARTS)
                yield from suggest_functions(("ROLLUP", "CUBE") if self.caret.last == "by" else ())
        elif not self.caret.is_in_parentheses:
            yield from self._next_clauses()

    def _in_order_by(self) -> Iterator[Suggestion]:
        if self.caret.last in ("by", ",", "("):
            yield from self._fields("sortable")
            if "." not in self.caret.typed and self.select.is_grouped:
                yield from suggest_functions((*AGGREGATES, *DATE_PARTS, "GROUPING"))
        elif not self.caret.is_in_parentheses:
            if self.caret.last not in ("asc", "desc"):
                yield from suggest_keywords("ASC", "DESC")
            yield from suggest_keywords("NULLS FIRST", "NULLS LAST")
            yield from self._next_clauses()

    def _in_limit(self) -> Iterator[Suggestion]:
        if self.caret.kind(self.caret.at - 1) == "integer":
            yield from self._next_clauses()
            yield from suggest_keywords("FOR VIEW", "FOR REFERENCE") if self.place == 0 else ()

    def _in_for(self) -> Iterator[Suggestion]:
        if self.caret.last == "for":
            yield from suggest_keywords("VIEW", "REFERENCE")

    def _next_clauses(self) -> Iterator[Suggestion]:
        """Yield the clauses that can follow the current one."""
        current = self.select.clause.upper()
        following = FOLLOWING[FOLLOWING.index(current) + 1 :] if current in FOLLOWING else FOLLOWING
        for clause in following:
            if self.select.is_join and clause != "WHERE":
                continue
            if clause != "HAVING" or self.select.is_grouped:
                yield from suggest_keywords(clause)
