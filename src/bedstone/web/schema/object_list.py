"""What the pages show of an org's objects: made once per schema, because an org may have thousands."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from bedstone.salesforce.graph.categories import kind_of
from bedstone.salesforce.graph.model import AUDIT_FIELDS, ObjectSchema
from bedstone.salesforce.graph.object_names import EXACT
from bedstone.salesforce.graph.paths import HUBS
from bedstone.salesforce.validation.scope import suggest_object
from bedstone.services.schema.service import OrgSchema
from bedstone.web.schema.neighbours import Group, group_neighbours
from bedstone.web.schema.path_story import Way, tell_ways

# Kinds of objects with their names, in the order of the list: what is special about this org comes first.
KINDS: Mapping[str, str] = {
    "custom": "Custom",
    "external": "External",
    "metadata_type": "Metadata type",
    "platform_event": "Platform event",
    "big_object": "Big",
    "standard": "Standard",
    "system": "System",
}
SORTS: Mapping[str, str] = {"label": "By label", "fields": "Most fields", "pointed": "Most pointed to"}
MAX_NAMES = 400  # that a page offers for completion at once; of more, a script asks while one types
MAX_SUGGESTIONS = 4
MAX_WAYS = 10
MAX_CACHED = 64  # answers of each kind


@dataclass(frozen=True)
class ObjectRow:
    """An object in the list; `points_to` has no users, groups and record types, to which nearly all objects point."""

    name: str
    label: str
    kind: str
    fields: int
    pointed_by: int
    points_to: Sequence[str]

    def matches(self, text: str) -> bool:
        """Return whether a text in lower case occurs in the name or the label."""
        return text in self.name.lower() or text in self.label.lower()


class OrgView:
    """The schema of one org with what pages derive from it."""

    def __init__(self, org: OrgSchema) -> None:
        self.org = org
        self.neighbours = lru_cache(MAX_CACHED)(self._find_neighbours)
        self.ways = lru_cache(MAX_CACHED)(self._find_ways)

    @cached_property
    def rows(self) -> Sequence[ObjectRow]:
        """Return every object, by kind and label."""
        points, pointed = self._links()
        rows = [
            ObjectRow(
                item.name,
                item.label,
                kind_of(item.name, self.org.graph),
                len(item.fields),
                len(pointed.get(item.name, ())),
                ["itself" if name == item.name else name for name in sorted(points.get(item.name, set()) - HUBS)],
            )
            for item in self.org.graph.objects.values()
        ]
        order = {kind: place for place, kind in enumerate(KINDS)}
        return sorted(rows, key=lambda row: (order[row.kind], row.label.lower(), row.name))

    @cached_property
    def _rows_by_name(self) -> Mapping[str, ObjectRow]:
        return {row.name: row for row in self.rows}

    def row(self, item: ObjectSchema) -> ObjectRow:
        """Return the row of an object."""
        return self._rows_by_name[item.name]

    def _links(self) -> tuple[dict[str, set[str]], dict[str, set[str]]]:
        """Return the objects that each object points to, and those that point to it, without audit fields."""
        points: dict[str, set[str]] = {}
        pointed: dict[str, set[str]] = {}
        for name in self.org.graph.objects:
            for edge in self.org.graph.parents(name):
                if edge.field.name.lower() not in AUDIT_FIELDS:
                    points.setdefault(edge.child, set()).add(edge.parent)
                    pointed.setdefault(edge.parent, set()).add(edge.child)
        return points, pointed

    @cached_property
    def relationship_count(self) -> int:
        return sum(len(self.org.graph.parents(name)) for name in self.org.graph.objects)

    @cached_property
    def field_count(self) -> int:
        return self.org.graph.field_count

    @cached_property
    def names(self) -> Sequence[ObjectRow]:
        """Return the objects whose names a page offers: all, or those that others point to most."""
        if len(self.rows) <= MAX_NAMES:
            return sorted(self.rows, key=lambda row: row.name.lower())
        most = sorted(self.rows, key=lambda row: (-row.pointed_by, row.name))[: MAX_NAMES // 2]
        return sorted(most, key=lambda row: row.name.lower())

    @property
    def has_more_names(self) -> bool:
        return len(self.rows) > MAX_NAMES

    def find_rows(self, text: str, kind: str, sort: str) -> tuple[list[ObjectRow], list[tuple[str, int]]]:
        """Return the objects that match, and how many of each kind match the text."""
        matching = [row for row in self.rows if row.matches(text.lower())] if text else list(self.rows)
        counts = Counter(row.kind for row in matching)
        rows = [row for row in matching if kind in ("", row.kind)]
        if sort == "fields":
            rows.sort(key=lambda row: -row.fields)
        elif sort == "pointed":
            rows.sort(key=lambda row: -row.pointed_by)
        return rows, [(name, counts[name]) for name in KINDS if counts[name]]

    def complete(self, text: str, limit: int) -> list[ObjectRow]:
        """Return objects for what one types: those that begin with it first."""
        wanted = text.lower()
        found = [row for row in self.rows if row.matches(wanted)]
        return sorted(found, key=lambda row: (not row.name.lower().startswith(wanted), -row.pointed_by))[:limit]

    def find_object(self, text: str) -> ObjectSchema | None:
        """Return an object by its name, or by its label if no other has it."""
        item = self.org.graph.get(text)
        if item is not None:
            return item
        exact = [found.object for found in self.org.search.names.find(text) if found.score == EXACT]
        return exact[0] if len(exact) == 1 else None

    def suggest(self, text: str) -> list[ObjectSchema]:
        """Return the objects that were probably meant, the nearest first."""
        return list(self._suggestions(text))[:MAX_SUGGESTIONS]

    def _suggestions(self, text: str) -> Iterator[ObjectSchema]:
        near = suggest_object(text, self.org.graph).names
        named = [found.object.name for found in self.org.search.names.find(text)]
        for name in dict.fromkeys([*near, *named]):
            item = self.org.graph.get(name)
            if item is not None:
                yield item

    def _find_neighbours(self, name: str) -> list[Group]:
        item = self.org.graph.get(name)
        return group_neighbours(self.org, item) if item is not None else []

    def _find_ways(self, source: str, target: str) -> tuple[list[Way], bool]:
        """Return the paths between two objects, the nearest first, and whether there may be more."""
        found = self.org.paths.find(source, target, limit=MAX_WAYS)
        return tell_ways(found.paths, self.org), found.truncated
