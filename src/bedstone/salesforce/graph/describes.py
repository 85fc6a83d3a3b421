"""Convert describes to the model, and the model to compact rows that load fast."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from bedstone.errors import InvalidInput
from bedstone.salesforce.graph.model import Child, Choice, Field, ObjectSchema, relationship_type


class _FlagSets(dict[int, tuple[bool, ...]]):
    """Cache of flags by their bits; few of all combinations occur."""

    def __missing__(self, bits: int) -> tuple[bool, ...]:
        flags = self[bits] = tuple(bool(bits >> place & 1) for place in range(len(FLAGS)))
        return flags


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
    """A JSON value is not a describe of an object."""

    code = "bad_describe"


def from_describe(describe: Any) -> ObjectSchema:
    """Parse the describe of an object."""
    try:
        name = _require_text(describe["name"])
        fields = tuple(_parse_field(item, name) for item in describe["fields"])
        return ObjectSchema(
            name=name,
            label=_require_text(describe.get("label") or name),
            plural=_require_text(describe.get("labelPlural") or describe.get("label") or name),
            fields=fields,
            children=tuple(
                Child(
                    _require_text(item["childSObject"]),
                    _require_text(item["field"]),
                    _optional_text(item.get("relationshipName")),
                )
                for item in describe.get("childRelationships") or ()
                if item.get("childSObject") and item.get("field")
            ),
            prefix=_optional_text(describe.get("keyPrefix")),
            queryable=bool(describe.get("queryable", True)),
            searchable=bool(describe.get("searchable", True)),
            createable=bool(describe.get("createable", True)),
            record_types=tuple(
                _require_text(item["developerName"] if "developerName" in item else item["name"])
                for item in describe.get("recordTypeInfos") or ()
                if not item.get("master")
            ),
            scopes=tuple(_require_text(item["name"]) for item in describe.get("supportedScopes") or ()),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise BadDescribe(f"Not a describe of an object: {type(error).__name__} {error}") from None


def _parse_field(item: Mapping[str, Any], owner: str) -> Field:
    controller = item.get("controllerName")
    compound = item.get("compoundFieldName")
    return Field(
        name=_require_text(item["name"]),
        label=_require_text(item.get("label") or item["name"]),
        type=_require_text(item["type"]),
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
        reference_to=tuple(_require_text(target) for target in _as_list(item.get("referenceTo"))),
        relationship=_optional_text(item.get("relationshipName")),
        relationship_type=relationship_type(item, owner),
        controller=_optional_text(controller),
        compound=_optional_text(compound) if compound != item["name"] else None,
        help=_optional_text(item.get("inlineHelpText")),
        choices=tuple(_parse_choice(value) for value in item.get("picklistValues") or ()),
    )


def _require_text(value: Any) -> str:
    """Return a non-empty string; replace what UTF-8 cannot encode."""
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"{value!r} is not a name")
    return value.encode("utf-8", "replace").decode()


def _optional_text(value: Any) -> str | None:
    return _require_text(value) if value not in (None, "") else None


def _as_list(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple | None):
        raise TypeError(f"{value!r} is not a list")
    return list(value or ())


def _parse_choice(value: Mapping[str, Any]) -> Choice:
    mask = value.get("validFor")
    places = None
    if mask:
        bits = base64.b64decode(mask)
        places = frozenset(place for place in range(len(bits) * 8) if bits[place // 8] >> (7 - place % 8) & 1)
    text = str(value["value"])
    return Choice(text, str(value.get("label") or text), bool(value.get("active", True)), places)


def to_row(item: ObjectSchema) -> bytes:
    """Return an object as compact JSON."""
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
    """Restore an object from its row."""
    (name, label, plural, prefix, queryable, searchable, createable), types, scopes, fields, children = json.loads(row)
    return ObjectSchema(
        name=name,
        label=label,
        plural=plural,
        fields=tuple(_field_from_row(item) for item in fields),
        children=tuple(Child(*child) for child in children),
        prefix=prefix,
        queryable=queryable,
        searchable=searchable,
        createable=createable,
        record_types=tuple(types),
        scopes=tuple(scopes),
    )


def _field_from_row(row: list[Any]) -> Field:
    name, label, kind, bits, *sizes, targets, relationship, link, controller, compound, text, values = row
    choices = tuple(map(_choice_from_row, values)) if values else ()
    parts: list[Any] = [
        name, label, kind, *sizes, *FLAG_SETS[bits], tuple(targets), relationship, TYPES[link],
        controller, compound, text, choices,
    ]  # fmt: skip
    return Field(*parts)


def _choice_from_row(row: list[Any]) -> Choice:
    value, label, is_active, *valid_for = row
    return Choice(value, label, bool(is_active), frozenset(valid_for[0]) if valid_for else None)
