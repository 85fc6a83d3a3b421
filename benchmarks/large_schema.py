"""Convert the largest schema of the data folder to describes; relationships are derived from field names."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bedstone.salesforce.graph.describes import from_describe, to_row
from bedstone.services.schema.store import SchemaStore, Staged

FILE = "apexdevtools_sobject_types.json.gz"
TYPES = {
    "Id": "reference",
    "String": "string",
    "Boolean": "boolean",
    "Integer": "int",
    "Decimal": "double",
    "Double": "double",
    "Date": "date",
    "Datetime": "datetime",
    "Time": "time",
    "Blob": "base64",
    "Address": "address",
    "Location": "location",
    "Long": "long",
}


def fill(store: SchemaStore, data: Path) -> list[bytes]:
    """Fill a store as a sync of an org would; return the rows."""
    objects = [from_describe(item) for item in describes(data / "salesforce" / "schema" / FILE)]
    rows = [to_row(item) for item in objects]
    store.stage([Staged(item.name, row, "") for item, row in zip(objects, rows, strict=True)], {})
    store.complete([item.name for item in objects], {"synced_at": "2026-01-01T00:00:00Z"})
    return rows


def describes(file: Path) -> Iterator[dict[str, Any]]:
    """Yield each object as a describe, as far as the file has the facts."""
    objects = json.loads(gzip.decompress(file.read_bytes()))
    fields = {name: _describe_fields(item["fields"], objects) for name, item in objects.items()}
    for name, item in objects.items():
        children, used = [], set()
        for child in item["children"]:
            link = next(
                (
                    field["name"]
                    for field in fields.get(child["childSObject"], ())
                    if name in field["referenceTo"] and (child["childSObject"], field["name"]) not in used
                ),
                None,
            )
            if link is not None:
                used.add((child["childSObject"], link))
                children.append({**child, "field": link})
        yield {
            "name": name,
            "label": name,
            "labelPlural": f"{name}s",
            "fields": fields[name],
            "childRelationships": children,
        }


def _describe_fields(items: list[dict[str, str]], objects: dict[str, Any]) -> list[dict[str, Any]]:
    parents = {item["name"]: item["apexType"] for item in items if item["apexType"] in objects}
    fields = []
    for item in items:
        name, apex = item["name"], item["apexType"]
        if name in parents and apex not in TYPES:
            continue
        kind = TYPES.get(apex, "string")
        relationship = None
        if name == "Id":
            kind = "id"
        elif kind == "reference":
            relationship = name[:-2] if name.endswith("Id") else name.replace("__c", "__r")
        target = parents.get(relationship or "")
        fields.append(
            {
                "name": name,
                "label": name,
                "type": kind,
                "referenceTo": [target] if target else [],
                "relationshipName": relationship if target else None,
                "nameField": name == "Name",
            }
        )
    return fields
