"""The objects around one: by which fields they are joined, in which direction, and of which kind the link is."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bedstone.salesforce.graph.categories import is_derived
from bedstone.salesforce.graph.model import AUDIT_FIELDS, Edge, ObjectSchema
from bedstone.salesforce.graph.paths import HUBS
from bedstone.services.schema.service import OrgSchema

Kind = Literal["master", "lookup", "any"]
GroupKey = Literal["custom", "standard", "any", "up", "audit"]
KIND_NAMES: Mapping[Kind, str] = {"master": "master-detail", "lookup": "lookup", "any": "several objects"}
MAX_TITLE_CHARACTERS = 24  # of an object's name in the title of a group
ANY_SHARE = 6  # every sixth place at most goes to fields that may point elsewhere, unless others leave room


@dataclass(frozen=True)
class Neighbour:
    """An object that points here, or that this one points to; `edges` are the fields that do."""

    name: str
    label: str
    edges: tuple[Edge, ...]
    points_here: bool
    is_custom: bool
    is_self: bool = False

    @property
    def kind(self) -> Kind:
        """Return the strongest kind of its fields."""
        kinds = [kind_of_link(edge) for edge in self.edges]
        return "master" if "master" in kinds else "lookup" if "lookup" in kinds else "any"

    @property
    def field_label(self) -> str:
        """Return the first field, and how many more there are."""
        more = len(self.edges) - 1
        return f"{self.edges[0].field.name} +{more}" if more else self.edges[0].field.name

    @property
    def description(self) -> str:
        """Return the link as a sentence, for those who hear it."""
        fields = ", ".join(edge.field.name for edge in self.edges)
        direction = "points here" if self.points_here else "is pointed to"
        return f"{self.name}: {direction} by {fields}, {KIND_NAMES[self.kind]}"

    def matches(self, text: str) -> bool:
        """Return whether a text in lower case occurs in its names or in a field."""
        names = (self.name, self.label, *(edge.field.name for edge in self.edges))
        return any(text in name.lower() for name in names)


@dataclass(frozen=True)
class Group:
    """Neighbours of one sort."""

    key: GroupKey
    title: str
    neighbours: Sequence[Neighbour]

    @property
    def is_drawn(self) -> bool:
        """Return whether it tells enough: who created or changed a record is listed, but not drawn."""
        return self.key != "audit"


def group_neighbours(org: OrgSchema, item: ObjectSchema) -> list[Group]:
    """Return the objects around one, the nearest of each group first."""
    found = list(_neighbours(org, item))
    name = item.label if len(item.label) <= MAX_TITLE_CHARACTERS else "this object"
    titles: Mapping[GroupKey, str] = {
        "custom": f"Custom objects that point to {name}",
        "standard": f"Standard objects that point to {name}",
        "any": "Can point to several objects",
        "up": f"{name[:1].upper()}{name[1:]} points to",
        "audit": "Only by who created or changed a record",
    }
    members: dict[GroupKey, list[Neighbour]] = {key: [] for key in titles}
    for neighbour in found:
        members[_group_of(neighbour)].append(neighbour)
    return [Group(key, title, members[key]) for key, title in titles.items() if members[key]]


def filter_groups(groups: Iterable[Group], text: str) -> list[Group]:
    """Return the neighbours whose names or fields contain a text."""
    if not text:
        return list(groups)
    wanted = text.lower()
    found = [
        replace(group, neighbours=[neighbour for neighbour in group.neighbours if neighbour.matches(wanted)])
        for group in groups
    ]
    return [group for group in found if group.neighbours]


def choose_drawn(groups: Iterable[Group], limit: int) -> list[Group]:
    """Return the groups to draw, each with a fair share of the places there are."""
    drawn = [group for group in groups if group.is_drawn]
    others = sum(len(group.neighbours) for group in drawn if group.key != "any")
    chosen: dict[GroupKey, Sequence[Neighbour]] = {}
    for place, group in enumerate(sorted(drawn, key=lambda group: (group.key != "any", len(group.neighbours)))):
        left = limit - sum(len(neighbours) for neighbours in chosen.values())
        share = max(limit // ANY_SHARE, limit - others) if group.key == "any" else left // (len(drawn) - place)
        chosen[group.key] = group.neighbours[:share]
    return [replace(group, neighbours=chosen[group.key]) for group in drawn if chosen[group.key]]


def count_objects(groups: Iterable[Group]) -> int:
    """Return how many objects the drawn groups have; one in two groups counts once."""
    return len({neighbour.name for group in groups if group.is_drawn for neighbour in group.neighbours})


def count_relationships(org: OrgSchema, item: ObjectSchema) -> int:
    """Return how many fields point from an object or to it."""
    return len(org.graph.parents(item.name)) + sum(edge.child != item.name for edge in org.graph.children(item.name))


@dataclass(frozen=True)
class Branch:
    """A neighbour, and the objects that are one step behind it and not nearer."""

    neighbour: Neighbour
    behind: frozenset[str]


def branches(org: OrgSchema, item: ObjectSchema, groups: Iterable[Group]) -> list[Branch]:
    """Return the objects around one with those behind them; what nearly all objects point to is not followed."""
    near = {item.name, *HUBS, *org.graph.neighbours(item.name, audit=False)}
    neighbours: dict[str, Neighbour] = {}
    for group in groups:
        for neighbour in group.neighbours:
            if group.is_drawn and not neighbour.is_self:
                neighbours.setdefault(neighbour.name, neighbour)
    return [
        Branch(neighbour, frozenset() if name in HUBS else org.graph.neighbours(name, audit=False) - near)
        for name, neighbour in neighbours.items()
    ]


def order_names(names: Iterable[str], org: OrgSchema) -> list[str]:
    """Return names in order; histories, feeds and the like, which tell little, come last."""
    return sorted(names, key=lambda name: (is_derived(name, org.graph), name.lower()))


def kind_of_link(edge: Edge) -> Kind:
    """Return how a field joins its object to another."""
    if edge.field.relationship_type == "MASTER_DETAIL":
        return "master"
    return "any" if len(edge.field.reference_to) > 1 or edge.field.is_polymorphic else "lookup"


def _neighbours(org: OrgSchema, item: ObjectSchema) -> Iterator[Neighbour]:
    """Yield the neighbours by how near they are, each direction on its own."""
    rings, _ = org.paths.find_related(item.name, 1, len(org.graph.objects))
    order = {name: place for place, name in enumerate([item.name, *rings.get(1, [])])}
    joined: dict[tuple[str, bool], list[Edge]] = {}
    for edge in org.graph.parents(item.name):
        joined.setdefault((edge.parent, False), []).append(edge)
    for edge in org.graph.children(item.name):
        if edge.child != item.name:  # its own fields are among those that point away
            joined.setdefault((edge.child, True), []).append(edge)
    for name, points_here in sorted(joined, key=lambda key: (order.get(key[0], len(order)), key)):
        other = org.graph.get(name)
        if other is not None:
            edges = tuple(sorted(joined[name, points_here], key=_field_order))
            yield Neighbour(name, other.label, edges, points_here, other.is_custom, name == item.name)


def _field_order(edge: Edge) -> tuple[bool, bool, bool, str]:
    """Fields that say most come first: not who changed a record, not one that may point elsewhere or is rarely set."""
    return _is_audit(edge), kind_of_link(edge) == "any", edge.field.name == "MasterRecordId", edge.field.name


def _group_of(neighbour: Neighbour) -> GroupKey:
    if all(_is_audit(edge) for edge in neighbour.edges):
        return "audit"
    if not neighbour.points_here:
        return "up"
    if neighbour.kind == "any":
        return "any"
    return "custom" if neighbour.is_custom else "standard"


def _is_audit(edge: Edge) -> bool:
    return edge.field.name.lower() in AUDIT_FIELDS
