"""Describes to the model, and the model to short rows that load fast."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.salesforce.graph.model import Child, Choice, Field, ObjectSchema, relationship_type


class _FlagSets(dict[int, tuple[bool, ...]]):
    """Flags by the number they are written as; few of all combinations occur."""

    def __missing__(self, bits: int) -> tuple[bool, ...]:
        made = self[bits] = tuple(bool(bits >> place & 1) for place in range(len(FLAGS)))
        return made


FLAGS = (
    "nillable",
    "unique",
    "filterable",
    "sortable",
    "groupable",
    "aggregatable",
    "createable",
    "is_calculated",
    "is_auto_number",
    "is_defaulted",
    "is_name",
    "is_polymorphic",
    "is_restricted",
    "is_external_id",
    "is_deprecated",
    "is_html",
)
FLAG_SETS = _FlagSets()
TYPES = ("LOOKUP", "MASTER_DETAIL", "HIERARCHICAL")


class BadDescribe(InvalidInput):
    """Something that is no describe of an object."""

    code = "bad_describe"


def from_describe(described: Any) -> ObjectSchema:
    """An object from what an org says of it."""
    try:
        name = _text(described["name"])
        fields = tuple(_field(item, name, described) for item in described["fields"])
        return ObjectSchema(
            name=name,
            label=_text(described.get("label") or name),
            plural=_text(described.get("labelPlural") or described.get("label") or name),
            fields=fields,
            children=tuple(
                Child(_text(item["childSObject"]), _text(item["field"]), _optional(item.get("relationshipName")))
                for item in described.get("childRelationships") or ()
                if item.get("childSObject") and item.get("field")
            ),
            prefix=_optional(described.get("keyPrefix")),
            queryable=bool(described.get("queryable", True)),
            searchable=bool(described.get("searchable", True)),
            createable=bool(described.get("createable", True)),
            record_types=tuple(
                _text(item["developerName"] if "developerName" in item else item["name"])
                for item in described.get("recordTypeInfos") or ()
                if not item.get("master")
            ),
            scopes=tuple(_text(item["name"]) for item in described.get("supportedScopes") or ()),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadDescribe(f"This is no describe of an object: {type(error).__name__} {error}") from None


def _field(item: Mapping[str, Any], owner: str, described: Mapping[str, Any]) -> Field:
    controller = item.get("controllerName")
    compound = item.get("compoundFieldName")
    return Field(
        name=_text(item["name"]),
        label=_text(item.get("label") or item["name"]),
        type=_text(item["type"]),
        length=int(item.get("length") or 0),
        precision=int(item.get("precision") or item.get("digits") or 0),
        scale=int(item.get("scale") or 0),
        nillable=bool(item.get("nillable", True)),
        unique=bool(item.get("unique")),
        filterable=bool(item.get("filterable", True)),
        sortable=bool(item.get("sortable", True)),
        groupable=bool(item.get("groupable", True)),
        aggregatable=bool(item.get("aggregatable", True)),
        createable=bool(item.get("createable", True)),
        is_calculated=bool(item.get("calculated")),
        is_auto_number=bool(item.get("autoNumber")),
        is_defaulted=bool(item.get("defaultedOnCreate")),
        is_name=bool(item.get("nameField")),
        is_polymorphic=bool(item.get("namePointing") or item.get("polymorphicForeignKey")),
        is_restricted=bool(item.get("restrictedPicklist")),
        is_external_id=bool(item.get("externalId")),
        is_deprecated=bool(item.get("deprecatedAndHidden")),
        is_html=bool(item.get("htmlFormatted")),
        reference_to=tuple(_text(target) for target in _listed(item.get("referenceTo"))),
        relationship=_optional(item.get("relationshipName")),
        relationship_type=relationship_type(item, owner),
        controller=_optional(controller),
        compound=_optional(compound) if compound != item["name"] else None,
        help=_optional(item.get("inlineHelpText")),
        choices=tuple(_choice(value) for value in item.get("picklistValues") or ()),
    )


def _text(value: Any) -> str:
    """A name or label: a text, and one that can be written."""
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"{value!r} is no name")
    return value.encode("utf-8", "replace").decode()


def _optional(value: Any) -> str | None:
    return _text(value) if value not in (None, "") else None


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple | None):
        raise TypeError(f"{value!r} is no list")
    return list(value or ())


def _choice(value: Mapping[str, Any]) -> Choice:
    mask = value.get("validFor")
    places = None
    if mask:
        bits = base64.b64decode(mask)
        places = frozenset(place for place in range(len(bits) * 8) if bits[place // 8] >> (7 - place % 8) & 1)
    written = str(value["value"])
    return Choice(written, str(value.get("label") or written), bool(value.get("active", True)), places)


def to_row(item: ObjectSchema) -> bytes:
    """An object as short JSON."""
    fields = [
        [
            field.name,
            field.label,
            field.type,
            sum(1 << place for place, flag in enumerate(FLAGS) if getattr(field, flag)),
            field.length,
            field.precision,
            field.scale,
            field.reference_to,
            field.relationship,
            TYPES.index(field.relationship_type),
            field.controller,
            field.compound,
            field.help,
            [
                [choice.value, choice.label, int(choice.is_active)]
                + ([sorted(choice.valid_for)] if choice.valid_for is not None else [])
                for choice in field.choices
            ],
        ]
        for field in item.fields
    ]
    children = [[child.object, child.field, child.relationship] for child in item.children]
    facts = [item.name, item.label, item.plural, item.prefix, item.queryable, item.searchable, item.createable]
    return json.dumps([facts, item.record_types, item.scopes, fields, children], separators=(",", ":")).encode()


def from_row(row: bytes) -> ObjectSchema:
    """And back."""
    (name, label, plural, prefix, queryable, searchable, createable), types, scopes, fields, children = json.loads(row)
    return ObjectSchema(
        name=name,
        label=label,
        plural=plural,
        fields=tuple(_from_row(item) for item in fields),
        children=tuple(Child(*child) for child in children),
        prefix=prefix,
        queryable=queryable,
        searchable=searchable,
        createable=createable,
        record_types=tuple(types),
        scopes=tuple(scopes),
    )


def _from_row(row: list[Any]) -> Field:
    (
        name,
        label,
        kind,
        bits,
        length,
        precision,
        scale,
        targets,
        relationship,
        link,
        controller,
        compound,
        text,
        values,
    ) = row
    parts: list[Any] = [
        name,
        label,
        kind,
        length,
        precision,
        scale,
        *FLAG_SETS[bits],
        tuple(targets),
        relationship,
        TYPES[link],
        controller,
        compound,
        text,
        tuple(
            Choice(value[0], value[1], bool(value[2]), frozenset(value[3]) if len(value) > 3 else None)  # noqa: PLR2004
            for value in values
        )
        if values
        else (),
    ]
    return Field(*parts)
