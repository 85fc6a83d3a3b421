"""Objects, fields and relationships of an org; immutable after loading."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from bedstone.salesforce.graph.names import Names

RelationshipType = Literal["LOOKUP", "MASTER_DETAIL", "HIERARCHICAL"]

TEXT_TYPES = frozenset(
    {"string", "picklist", "multipicklist", "combobox", "email", "phone", "url", "textarea", "encryptedstring"}
)
NUMBER_TYPES = frozenset({"int", "double", "currency", "percent", "long"})
ID_TYPES = frozenset({"id", "reference"})
AUDIT_FIELDS = frozenset({"createdbyid", "lastmodifiedbyid"})
# Fields that a path through a polymorphic field can reach, for any target.
NAME_OBJECT = "Name"
NAME_FIELDS = {
    "Id": "id",
    "Name": "string",
    "Type": "picklist",
    "FirstName": "string",
    "LastName": "string",
    "Email": "email",
    "Phone": "phone",
    "Title": "string",
    "Username": "string",
    "IsActive": "boolean",
    "ProfileId": "reference",
    "UserRoleId": "reference",
    "Alias": "string",
}
NAME_SPELLINGS = {name.lower(): name for name in NAME_FIELDS}


@dataclass(frozen=True, slots=True)
class Choice:
    """A picklist value. `valid_for` holds the positions of the controlling values that allow it."""

    value: str
    label: str
    is_active: bool = True
    valid_for: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A field, with the properties that queries and records need."""

    name: str
    label: str
    type: str
    length: int = 0
    precision: int = 0
    scale: int = 0
    nillable: bool = True
    unique: bool = False
    filterable: bool = True
    sortable: bool = True
    groupable: bool = True
    aggregatable: bool = True
    createable: bool = True
    is_calculated: bool = False
    is_auto_number: bool = False
    is_defaulted: bool = False
    is_name: bool = False
    is_polymorphic: bool = False
    is_restricted: bool = False
    is_external_id: bool = False
    is_deprecated: bool = False
    is_html: bool = False
    reference_to: tuple[str, ...] = ()
    relationship: str | None = None
    relationship_type: RelationshipType = "LOOKUP"
    controller: str | None = None
    compound: str | None = None
    help: str | None = None
    choices: tuple[Choice, ...] = ()

    @property
    def is_custom(self) -> bool:
        return self.name.endswith(("__c", "__pc"))

    @property
    def values(self) -> list[str]:
        """Return the active values of a picklist."""
        return [choice.value for choice in self.choices if choice.is_active]


@dataclass(frozen=True, slots=True)
class Child:
    """A child relationship: the object and field that point here, and its name in subqueries."""

    object: str
    field: str
    relationship: str | None


@dataclass(frozen=True)
class ObjectSchema:
    """An object with its fields."""

    name: str
    label: str
    plural: str
    fields: tuple[Field, ...]
    children: tuple[Child, ...] = ()
    prefix: str | None = None
    queryable: bool = True
    searchable: bool = True
    createable: bool = True
    record_types: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()

    @cached_property
    def by_name(self) -> Mapping[str, Field]:
        return {item.name.lower(): item for item in self.fields}

    @cached_property
    def by_relationship(self) -> Mapping[str, Field]:
        return {item.relationship.lower(): item for item in self.fields if item.relationship}

    @cached_property
    def by_child(self) -> Mapping[str, Child]:
        return {item.relationship.lower(): item for item in self.children if item.relationship}

    @cached_property
    def name_field(self) -> Field | None:
        return next((item for item in self.fields if item.is_name), None)

    @property
    def is_custom(self) -> bool:
        return self.name.endswith(("__c", "__x", "__mdt", "__e", "__b", "__kav"))

    def field(self, name: str) -> Field | None:
        """Return a field by its name, ignoring case."""
        return self.by_name.get(name.lower())


@dataclass(frozen=True, slots=True)
class Edge:
    """A field that points from a child to a parent; `child_relationship` is its name in subqueries of the parent."""

    child: str
    field: Field
    parent: str
    child_relationship: str | None


@dataclass(frozen=True)
class SchemaGraph:
    """All objects of an org. `problems` holds objects that could not be read, with the reason."""

    objects: Mapping[str, ObjectSchema] = field(default_factory=dict)  # by name in lower case
    problems: Mapping[str, str] = field(default_factory=dict)
    unsynced: frozenset[str] = frozenset()  # other objects of the org, in lower case

    @classmethod
    def of(
        cls, objects: Iterable[ObjectSchema], problems: Mapping[str, str] | None = None, unsynced: Iterable[str] = ()
    ) -> "SchemaGraph":
        """Build a graph of objects, ordered by name."""
        ordered = sorted(objects, key=lambda item: item.name.lower())
        by_name = {item.name.lower(): item for item in ordered}
        return cls(by_name, dict(problems or {}), frozenset(name.lower() for name in unsynced) - by_name.keys())

    def get(self, name: str) -> ObjectSchema | None:
        """Return an object by its name, ignoring case."""
        return self.objects.get(name.lower())

    @cached_property
    def field_count(self) -> int:
        return sum(len(item.fields) for item in self.objects.values())

    @cached_property
    def names(self) -> Names:
        """Return the index of object names for suggestions."""
        return Names({item.name: item.label for item in self.objects.values()})

    @cached_property
    def by_prefix(self) -> Mapping[str, ObjectSchema]:
        return {item.prefix: item for item in reversed(self.objects.values()) if item.prefix}  # type: ignore[call-overload]

    @cached_property
    def _edges(self) -> tuple[Mapping[str, list[Edge]], Mapping[str, list[Edge]]]:
        """Return the edges to parents and to children, by object in lower case."""
        up: dict[str, list[Edge]] = {}
        down: dict[str, list[Edge]] = {}
        for child in self.objects.values():
            for item in child.fields:
                for target in item.reference_to:
                    parent = self.get(target)
                    if parent is None:
                        continue
                    back = self._child_names.get((parent.name, child.name, item.name))
                    edge = Edge(child.name, item, parent.name, back)
                    up.setdefault(child.name.lower(), []).append(edge)
                    down.setdefault(parent.name.lower(), []).append(edge)
        return up, down

    @cached_property
    def _child_names(self) -> Mapping[tuple[str, str, str], str]:
        return {
            (parent.name, child.object, child.field): child.relationship
            for parent in self.objects.values()
            for child in parent.children
            if child.relationship
        }

    def parents(self, name: str) -> list[Edge]:
        """Return the edges from an object to its parents."""
        return self._edges[0].get(name.lower(), [])

    def children(self, name: str) -> list[Edge]:
        """Return the edges from children to an object."""
        return self._edges[1].get(name.lower(), [])

    def neighbours(self, name: str, *, audit: bool) -> frozenset[str]:
        """Return the objects one step away, with or without audit fields."""
        return self._neighbours[audit].get(name, frozenset())

    @cached_property
    def _neighbours(self) -> tuple[Mapping[str, frozenset[str]], Mapping[str, frozenset[str]]]:
        near: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})
        for edges in self._edges[0].values():
            for edge in edges:
                for audit in (False, True):
                    if audit or edge.field.name.lower() not in AUDIT_FIELDS:
                        near[audit].setdefault(edge.child, set()).add(edge.parent)
                        near[audit].setdefault(edge.parent, set()).add(edge.child)
        without, with_audit = ({name: frozenset(names) for name, names in part.items()} for part in near)
        return without, with_audit

    def child_object(self, parent: ObjectSchema, relationship: str) -> tuple[Child, ObjectSchema] | None:
        """Return the child relationship with this name, and its object."""
        child = parent.by_child.get(relationship.lower())
        item = self.get(child.object) if child is not None else None
        return (child, item) if child is not None and item is not None else None


def name_field(name: str) -> Field | None:
    """Return a field of `Name`, which stands for the target of a polymorphic field."""
    spelling = NAME_SPELLINGS.get(name.lower())
    return Field(spelling, spelling, NAME_FIELDS[spelling]) if spelling else None


def relationship_type(describe: Mapping[str, Any], owner: str) -> RelationshipType:
    """Return the type by the describe of the field; cascadeDelete of the parent also marks plain lookups."""
    if describe.get("relationshipOrder") is not None:
        return "MASTER_DETAIL"
    if describe.get("cascadeDelete") and not describe.get("nillable", True):
        return "MASTER_DETAIL"
    if owner == "User" and describe.get("referenceTo") == ["User"] and describe.get("custom"):
        return "HIERARCHICAL"
    return "LOOKUP"
