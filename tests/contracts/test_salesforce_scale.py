"""Answers about a large schema, made up here: what is left out is counted, and the rest can be asked for."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import mcp_types as wire
import pytest

from bedstone.app import build_toolset, make_services
from bedstone.settings import Settings
from support.doors import DOORS, Door, payload
from support.processes import bedstone
from support.site import open_site

OBJECTS = 1_205
FIELDS = 612
VALUES = 300
CHILDREN = 130


def described(name: str, fields: list[dict[str, Any]], children: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    common = {"name": "Id", "label": "Record Id", "type": "id"}
    return {
        "name": name,
        "label": name.replace("_", " "),
        "fields": [common, *fields],
        "childRelationships": children or [],
    }


def wide_object() -> dict[str, Any]:
    """An object with very many fields, values and children."""
    values = [{"value": f"Value {number}", "label": f"Value {number}", "active": True} for number in range(VALUES)]
    owner = {"type": "reference", "referenceTo": ["User"], "relationshipName": "Keeper__r"}
    special: list[dict[str, Any]] = [
        {"name": "Keeper__c", "label": "Keeper", **owner},
        {"name": "Stage__c", "label": "Stage", "type": "picklist", "picklistValues": values},
    ]
    plain = [
        {"name": f"Field_{number}__c", "label": f"Field {number}", "type": "string"} for number in range(FIELDS - 3)
    ]
    children = [
        {"childSObject": f"Child_{number:04}__c", "field": "Wide__c", "relationshipName": f"Children_{number:04}__r"}
        for number in range(CHILDREN)
    ]
    return described("Wide__c", [*plain, *special], children)


def child_object(number: int) -> dict[str, Any]:
    link = {"name": "Wide__c", "label": "Wide", "type": "reference", "referenceTo": ["Wide__c"]}
    return described(f"Child_{number:04}__c", [{**link, "relationshipName": "Wide__r"}] if number < CHILDREN else [])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    source = folder / "describes"
    source.mkdir()
    objects = [wide_object(), described("User", []), *(child_object(number) for number in range(OBJECTS - 2))]
    (source / "objects.json").write_text(json.dumps(objects))
    service = make_services(Settings.model_validate({"data_dir": folder}))["salesforce_graph"].get()
    assert service.import_folder("large", source).objects == OBJECTS
    return folder


@pytest.fixture
async def door(data: Path) -> AsyncIterator[Door]:
    toolset = build_toolset("salesforce_graph", Settings.model_validate({"data_dir": data}))
    async with toolset.opened(), DOORS["memory-2026"]([toolset]) as door:
        yield door


def texts(result: wire.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, wire.TextContent)]


async def test_a_list_that_is_cut_says_so_in_its_text(door: Door) -> None:
    result = await door.call("list-objects")
    rows, note = texts(result)
    assert len(json.loads(rows)) == 1_000
    assert result.structured_content is not None
    cursor = result.structured_content["nextCursor"]
    assert f"Objects 1 to 1,000 of {OBJECTS:,}" in note
    assert cursor in note
    rest = payload(await door.call("list-objects", {"cursor": cursor}))  # one block: nothing follows
    names = {row["apiName"] for row in [*json.loads(rows), *rest]}
    assert (len(rest), len(names)) == (OBJECTS - 1_000, OBJECTS)


async def test_a_wide_object_comes_in_pages(door: Door) -> None:
    asked: dict[str, Any] = {"apiName": "Wide__c"}
    first = payload(await door.call("get-object", asked))
    assert len(json.dumps(first)) < 50_000
    assert (len(first["fields"]), first["fieldsLeftOut"]) == (100, FIELDS - 100)
    assert (len(first["childRelationships"]), first["childRelationshipsLeftOut"]) == (100, CHILDREN - 100)
    assert f"{FIELDS - 100} fields" in first["notes"][0]
    assert "nextCursor" in first["notes"][0]
    fields, children, page = list(first["fields"]), list(first["childRelationships"]), first
    while page.get("nextCursor"):
        page = payload(await door.call("get-object", {**asked, "cursor": page["nextCursor"]}))
        fields += page["fields"]
        children += page.get("childRelationships", [])
    assert len({field["apiName"] for field in fields}) == len(fields) == FIELDS
    assert len({child["relationshipName"] for child in children}) == len(children) == CHILDREN
    assert "notes" not in page
    whole = payload(await door.call("get-object", {**asked, "limit": 1_000}))
    assert len(whole["fields"]) == FIELDS


async def test_fields_are_filtered_and_have_what_a_query_needs(door: Door) -> None:
    found = payload(await door.call("get-object", {"apiName": "Wide__c", "search": "keep"}))
    (keeper,) = found["fields"]
    assert (keeper["referenceTo"], keeper["relationshipName"]) == (["User"], "Keeper__r")
    (stage,) = payload(await door.call("get-object", {"apiName": "Wide__c", "type": "picklist"}))["fields"]
    assert stage["picklistValues"] == [f"Value {number}" for number in range(VALUES)]
    listed = payload(await door.call("get-object", {"apiName": "Wide__c", "limit": 1_000}))["fields"]
    (short,) = [field for field in listed if field["apiName"] == "Stage__c"]
    assert len(short["picklistValues"]) + short["picklistValuesLeftOut"] == VALUES
    child = payload(await door.call("get-object", {"apiName": "Wide__c", "search": "children_0007"}))
    assert child["childRelationships"] == [
        {"relationshipName": "Children_0007__r", "childObject": "Child_0007__c", "field": "Wide__c"}
    ]


async def test_related_objects_that_are_left_out_are_counted_and_follow(door: Door) -> None:
    found = payload(await door.call("find-object", {"objectApiName": "Wide__c"}))
    assert len(found["relationshipHints"]) + found["relationshipHintsLeftOut"] == CHILDREN + 1
    asked: dict[str, Any] = {"objectApiName": "Wide__c", "maxDepth": 1}
    page = payload(await door.call("find-related-objects", asked))
    assert (len(page["relatedObjects"]["1"]), page["truncated"]) == (50, {"1": CHILDREN + 1 - 50})
    assert "nextCursor" in page["notes"][0]
    names = list(page["relatedObjects"]["1"])
    while page.get("nextCursor"):
        page = payload(await door.call("find-related-objects", {**asked, "cursor": page["nextCursor"]}))
        names += page["relatedObjects"]["1"]
    assert len(set(names)) == len(names) == CHILDREN + 1
    every = payload(await door.call("find-related-objects", {**asked, "limit": 1_000}))
    assert (len(every["relatedObjects"]["1"]), "truncated" in every) == (CHILDREN + 1, False)


async def test_the_command_line_says_what_is_cut(data: Path) -> None:
    run = bedstone("tools", "call", "list-objects", "--data-dir", data)
    assert len(json.loads(run.stdout)) == 1_000
    assert f"Objects 1 to 1,000 of {OBJECTS:,}" in run.stderr


async def test_without_an_org_the_schema_decides(door: Door) -> None:
    unknown = payload(await door.call("execute-soql", {"query": "SELECT Nothing__c FROM Wide__c LIMIT 1"}))["error"]
    assert (unknown["code"], unknown["details"]["messages"][0]["code"]) == ("INVALID_INPUT", "FIELD_UNKNOWN")
    known = payload(await door.call("execute-soql", {"query": "SELECT Keeper__c FROM Wide__c LIMIT 1"}))["error"]
    assert "imported from files" in known["message"]


async def test_the_page_counts_every_object(data: Path) -> None:
    settings = Settings.model_validate({"data_dir": data, "toolsets": ["salesforce_graph"]})
    async with open_site(settings) as site:
        page = await site.text("/salesforce/orgs/large")
    assert f"{OBJECTS:,} objects" in page
