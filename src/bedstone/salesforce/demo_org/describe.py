"""Describes: objects and fields in the form of the REST API, with every key a client may read."""

import json
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from typing import Any

from bedstone.salesforce.demo_org.schema import NUMBER_TYPES, TEXT_TYPES, FieldType, ObjectType, Schema
from bedstone.salesforce.demo_org.scope import NOT_AGGREGATED

SOAP = {
    "id": "tns:ID",
    "reference": "tns:ID",
    "boolean": "xsd:boolean",
    "int": "xsd:int",
    "double": "xsd:double",
    "currency": "xsd:double",
    "percent": "xsd:double",
    "date": "xsd:date",
    "datetime": "xsd:dateTime",
    "time": "xsd:time",
    "base64": "xsd:base64Binary",
    "address": "urn:address",
    "location": "urn:location",
    "anyType": "xsd:anyType",
}
SCOPES = (("everything", "All"), ("mine", "My"), ("team", "My team's"))
# What is the same for every field.
CONSTANT_FACTS: dict[str, Any] = {
    **dict.fromkeys(
        (
            "aiPredictionField",
            "caseSensitive",
            "deprecatedAndHidden",
            "displayLocationInDecimal",
            "encrypted",
            "formulaTreatNullNumberAsZero",
            "highScaleNumber",
            "restrictedDelete",
        ),
        False,
    ),
    **dict.fromkeys(
        ("calculatedFormula", "defaultValueFormula", "filteredLookupInfo", "mask", "maskType", "referenceTargetField"),
        None,
    ),
}


def describe(schema: Schema, item: ObjectType, base: str) -> dict[str, Any]:
    """Describe an object with its fields and child relationships."""
    return {
        "actionOverrides": [],
        **_facts(item, base),
        "childRelationships": [
            {
                "cascadeDelete": child.cascade,
                "childSObject": child.child,
                "deprecatedAndHidden": False,
                "field": child.field,
                "junctionIdListNames": [],
                "junctionReferenceTo": [],
                "relationshipName": child.name,
                "restrictedDelete": False,
            }
            for child in schema.children(item.name)
        ],
        "compactLayoutable": True,
        "fields": [describe_field(field, item) for field in item.fields],
        "listviewable": None,
        "lookupLayoutable": None,
        "namedLayoutInfos": [],
        "networkScopeFieldName": None,
        "recordTypeInfos": _record_types(item, base),
        "sobjectDescribeOption": "FULL",
        "supportedScopes": [
            {"label": f"{label} {item.plural}", "name": name}
            for name, label in SCOPES
            if name != "mine" or item.field("OwnerId")
        ],
        "urls": _urls(item, base) | {
            "compactLayouts": f"{base}/sobjects/{item.name}/describe/compactLayouts",
            "layouts": f"{base}/sobjects/{item.name}/describe/layouts",
            "approvalLayouts": f"{base}/sobjects/{item.name}/describe/approvalLayouts",
            "listviews": f"{base}/sobjects/{item.name}/listviews",
            "quickActions": f"{base}/sobjects/{item.name}/quickActions",
        },
    }  # fmt: skip


def describe_global(items: list[ObjectType], base: str) -> dict[str, Any]:
    """List objects."""
    rows = [_facts(item, base) | {"urls": _urls(item, base)} for item in sorted(items, key=lambda item: item.name)]
    return {"encoding": "UTF-8", "maxBatchSize": 200, "sobjects": rows}


def describe_basic(item: ObjectType, base: str) -> dict[str, Any]:
    """Describe an object without its fields."""
    return {"objectDescribe": _facts(item, base) | {"urls": _urls(item, base)}, "recentItems": []}


def etag(description: Mapping[str, Any]) -> str:
    """Return a tag that changes with the description."""
    return f'"{sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:16]}"'


def _facts(item: ObjectType, base: str) -> dict[str, Any]:
    return {
        "activateable": False,
        "associateEntityType": None,
        "associateParentEntity": None,
        "createable": item.can_change,
        "custom": item.is_custom,
        "customSetting": False,
        "deepCloneable": False,
        "defaultImplementation": None,
        "deletable": item.can_change,
        "deprecatedAndHidden": False,
        "extendedBy": None,
        "extendsInterfaces": None,
        "feedEnabled": False,
        "hasSubtypes": False,
        "implementedBy": None,
        "implementsInterfaces": None,
        "isInterface": False,
        "isSubtype": False,
        "keyPrefix": item.prefix or None,
        "label": item.label,
        "labelPlural": item.plural,
        "layoutable": True,
        "mergeable": item.name in ("Account", "Contact", "Lead", "Case"),
        "mruEnabled": True,
        "name": item.name,
        "queryable": True,
        "replicateable": True,
        "retrieveable": True,
        "searchLayoutable": item.searchable,
        "searchable": item.searchable,
        "triggerable": item.can_change,
        "undeletable": item.can_change,
        "updateable": item.can_change,
    }


def _urls(item: ObjectType, base: str) -> dict[str, str]:
    own = f"{base}/sobjects/{item.name}"
    return {"rowTemplate": f"{own}/{{ID}}", "describe": f"{own}/describe", "sobject": own}


def _record_types(item: ObjectType, base: str) -> list[dict[str, Any]]:
    rows = [("012000000000000AAA", "Master", "Master", True)]
    rows += [(kind.id, kind.developer_name, kind.label, False) for kind in item.record_types]
    return [
        {
            "active": True,
            "available": True,
            "defaultRecordTypeMapping": is_master,
            "developerName": developer_name,
            "master": is_master,
            "name": label,
            "recordTypeId": record_type,
            "urls": {"layout": f"{base}/sobjects/{item.name}/describe/layouts/{record_type}"},
        }
        for record_type, developer_name, label, is_master in rows
    ]


@cache
def _cached_values(values: tuple[str, ...], inactive: tuple[str, ...], valid_for: tuple[str | None, ...]) -> list[Any]:
    return [
        {"active": value not in inactive, "defaultValue": False, "label": value, "validFor": mask, "value": value}
        for value, mask in zip((*values, *inactive), valid_for, strict=True)
    ]


def _picklist(field: FieldType, item: ObjectType) -> list[Any]:
    every = (*field.values, *field.inactive)
    masks: tuple[str | None, ...] = (None,) * len(every)
    controller = item.field(field.controller) if field.controller else None
    if controller is not None:
        masks = tuple(_valid_for(value, controller, field) for value in every)
    return _cached_values(field.values, field.inactive, masks)


def _valid_for(value: str, controller: FieldType, field: FieldType) -> str:
    """Return one bit per value of the controlling field, the first one highest, in base64."""
    bits = bytearray((len(controller.values) + 7) // 8)
    for place, controlling in enumerate(controller.values):
        if value in field.depends.get(controlling, ()):
            bits[place // 8] |= 0x80 >> (place % 8)
    return b64encode(bytes(bits)).decode()


def describe_field(field: FieldType, item: ObjectType) -> dict[str, Any]:
    """Describe a field."""
    kind = field.type
    is_number = kind in NUMBER_TYPES and kind != "int"
    writeable = not field.read_only and field.is_stored and field.name != "Id"
    facts = {
        "aggregatable": kind not in NOT_AGGREGATED,
        "autoNumber": field.auto_number is not None,
        "byteLength": field.length * 3 if kind in TEXT_TYPES else field.length,
        "calculated": field.formula is not None,
        "cascadeDelete": field.master_detail is not None,
        "compoundFieldName": _compound_name(field, item),
        "controllerName": field.controller,
        "createable": writeable and item.can_change,
        "custom": field.is_custom,
        "defaultValue": False if kind == "boolean" else None,
        "defaultedOnCreate": kind == "boolean" or field.name in ("OwnerId", "Id", "CreatedDate", "CreatedById"),
        "dependentPicklist": field.controller is not None,
        "digits": 9 if kind == "int" else 0,
        "externalId": field.external_id,
        "extraTypeInfo": "richtextarea" if field.rich else None,
        "filterable": field.filterable,
        "groupable": field.groupable,
        "htmlFormatted": field.rich,
        "idLookup": field.name == "Id"
        or field.external_id
        or (kind == "email" and not field.is_custom)
        or field.name_field,
        "inlineHelpText": field.help,
        "label": field.label,
        "length": field.length,
        "name": field.name,
        "nameField": field.name_field,
        "namePointing": field.is_polymorphic,
        "nillable": field.nillable,
        "permissionable": field.nillable and field.is_stored,
        "picklistValues": _picklist(field, item) if kind in ("picklist", "multipicklist", "combobox") else [],
        "polymorphicForeignKey": field.is_polymorphic,
        "precision": field.digits[0] if is_number else 0,
        "queryByDistance": kind == "location",
        "referenceTo": list(field.reference_to),
        "relationshipName": field.relationship,
        "relationshipOrder": field.master_detail,
        "restrictedPicklist": field.restricted,
        "scale": field.digits[1] if is_number else 0,
        "searchPrefilterable": kind == "reference",
        "soapType": SOAP.get(kind, "xsd:string"),
        "sortable": field.sortable,
        "type": kind,
        "unique": field.unique,
        "updateable": writeable and item.can_change and not (field.master_detail is not None),
        "writeRequiresMasterRead": field.master_detail is not None,
    }
    return CONSTANT_FACTS | facts


def _compound_name(field: FieldType, item: ObjectType) -> str | None:
    """Return the compound field a field is a part of."""
    if field.name in ("FirstName", "LastName") and item.name in ("Contact", "Lead", "User") and item.field("Name"):
        return "Name"
    return next((other.name for other in item.fields if field.name in other.parts), None)
