"""Objects and fields of the demo org."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

TEXT_TYPES = frozenset({"string", "picklist", "multipicklist", "combobox", "email", "phone", "url", "textarea"})
NUMBER_TYPES = frozenset({"int", "double", "currency", "percent"})
ID_TYPES = frozenset({"id", "reference"})


@dataclass(frozen=True)
class FieldType:
    """A field of an object."""

    name: str
    type: str
    label: str
    length: int = 0
    nillable: bool = True
    filterable: bool = True
    sortable: bool = True
    groupable: bool = True
    read_only: bool = False
    name_field: bool = False
    reference_to: tuple[str, ...] = ()
    relationship: str | None = None
    values: tuple[str, ...] = ()
    inactive: tuple[str, ...] = ()
    restricted: bool = False
    controller: str | None = None
    depends: Mapping[str, Sequence[str]] = field(default_factory=dict)
    external_id: bool = False
    unique: bool = False
    formula: str | None = None  # SQL over the object's own columns
    rich: bool = False
    digits: tuple[int, int] = (18, 2)
    master_detail: int | None = None
    auto_number: str | None = None
    parts: tuple[str, ...] = ()  # of a compound field
    help: str | None = None
    default: Any = None

    @property
    def is_custom(self) -> bool:
        return self.name.endswith("__c")

    @property
    def is_polymorphic(self) -> bool:
        return len(self.reference_to) > 1

    @property
    def is_stored(self) -> bool:
        """Whether the field has a column of its own."""
        return self.formula is None and not self.parts


@dataclass(frozen=True)
class ChildRelationship:
    """A relationship to the records of another object that reference this one."""

    child: str
    field: str
    name: str | None
    cascade: bool = False


@dataclass(frozen=True)
class RecordType:
    id: str
    developer_name: str
    label: str


@dataclass(frozen=True)
class ObjectType:
    """An object with its fields in order."""

    name: str
    label: str
    plural: str
    prefix: str
    fields: tuple[FieldType, ...]
    searchable: bool = True
    record_types: tuple[RecordType, ...] = ()
    can_change: bool = True
    feature: str | None = None  # the feature the object belongs to

    @cached_property
    def by_name(self) -> dict[str, FieldType]:
        return {item.name.lower(): item for item in self.fields}

    @cached_property
    def by_relationship(self) -> dict[str, FieldType]:
        return {item.relationship.lower(): item for item in self.fields if item.relationship}

    @cached_property
    def name_field(self) -> FieldType | None:
        return next((item for item in self.fields if item.name_field), None)

    @property
    def is_custom(self) -> bool:
        return self.name.endswith(("__c", "__x", "__mdt", "__e", "__b"))

    def field(self, name: str) -> FieldType | None:
        """Return a field by its name; case does not count."""
        return self.by_name.get(name.lower())


class Schema:
    """Every object of the org."""

    def __init__(self, objects: Iterable[ObjectType], named_children: Mapping[tuple[str, str, str], str]) -> None:
        self.objects = {item.name.lower(): item for item in objects}
        self._named = named_children
        self._prefixes = {item.prefix: item for item in self.objects.values() if item.prefix}

    def get(self, name: str) -> ObjectType | None:
        """Return an object by its name; case does not count."""
        return self.objects.get(name.lower())

    def of_id(self, record_id: str) -> ObjectType | None:
        """Return the object a record belongs to."""
        return self._prefixes.get(record_id[:3])

    @cache  # noqa: B019 - lives as long as the schema
    def children(self, name: str) -> tuple[ChildRelationship, ...]:
        """Return the relationships to records that reference an object."""
        found = []
        for other in self.objects.values():
            for item in other.fields:
                if name in item.reference_to:
                    known = self._named.get((name, other.name, item.name))
                    cascade = item.master_detail is not None
                    found.append(ChildRelationship(other.name, item.name, known, cascade))
        return tuple(sorted(found, key=lambda item: (item.child, item.field)))

    def child(self, parent: str, relationship: str) -> ChildRelationship | None:
        """Return a child relationship by its name."""
        wanted = relationship.lower()
        return next((item for item in self.children(parent) if item.name and item.name.lower() == wanted), None)


NAME_FIELDS = (
    *("FirstName", "LastName", "Email", "Phone", "Title", "Username"),
    *("IsActive", "ProfileId", "UserRoleId", "Alias"),
)


def names_sql(schema: Schema, targets: Iterable[str]) -> str:
    """Return the targets of a polymorphic field as one table with the columns of Name."""
    parts = []
    for target in targets:
        item = schema.get(target)
        if item is None or item.name_field is None:
            continue
        known = {field.name for field in item.fields if field.is_stored}
        columns = [f'"{name}"' if name in known else f'NULL AS "{name}"' for name in NAME_FIELDS]
        parts.append(
            f'SELECT "Id", "{item.name_field.name}" AS "Name", \'{item.name}\' AS "Type", {", ".join(columns)} '
            f'FROM "{item.name}" WHERE "IsDeleted" = 0'
        )
    return " UNION ALL ".join(parts)


def load_schema(custom: Iterable[ObjectType], named: Mapping[tuple[str, str, str], str]) -> Schema:
    """Load the standard objects of the package and add custom ones."""
    data = json.loads(files("bedstone.salesforce.demo_org").joinpath("standard_objects.json").read_text("utf-8"))
    objects = [_standard(name, facts) for name, facts in data.items()]
    names = {
        (name, child, field_name): relationship
        for name, facts in data.items()
        for child, field_name, relationship in facts["children"]
    }
    return Schema([*objects, *custom], names | dict(named))


def _standard(name: str, facts: Mapping[str, Any]) -> ObjectType:
    fields = [_field(item) for item in facts["fields"]]
    known = {item.name for item in fields}
    fields = [_with_parts(item, known) for item in fields]
    if "IsDeleted" not in known:
        fields.append(FieldType("IsDeleted", "boolean", "Deleted", nillable=False, read_only=True))
    hidden = name in (
        "Profile",
        "PermissionSet",
        "ApexClass",
        "ApexTrigger",
        "CronTrigger",
        "AsyncApexJob",
        "Organization",
    )
    return ObjectType(
        name,
        facts["label"],
        facts["labelPlural"],
        facts["keyPrefix"] or "",
        tuple(fields),
        searchable=not hidden and not name.endswith("History"),
        can_change=not name.endswith("History") and name not in ("Organization", "Profile", "RecordType"),
    )


def _field(item: Mapping[str, Any]) -> FieldType:
    return FieldType(
        item["name"],
        item["type"],
        item["label"],
        length=item.get("length", 0),
        nillable=item.get("nillable", True),
        filterable=item.get("filterable", True),
        sortable=item.get("sortable", True),
        groupable=item.get("groupable", True),
        read_only=item.get("readOnly", False),
        name_field=item.get("nameField", False),
        reference_to=tuple(item.get("referenceTo", ())),
        relationship=item.get("relationshipName"),
        values=tuple(item.get("values", ())),
    )


def _with_parts(item: FieldType, known: set[str]) -> FieldType:
    """Add the fields an address is made of."""
    if item.type != "address":
        return item
    prefix = item.name.removesuffix("Address")
    names = ("Street", "City", "State", "PostalCode", "Country", "Latitude", "Longitude", "GeocodeAccuracy")
    parts = tuple(prefix + name for name in names if prefix + name in known)
    return replace(item, parts=parts, groupable=False, sortable=False)
