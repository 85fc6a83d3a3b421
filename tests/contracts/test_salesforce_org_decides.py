"""execute-soql: the local schema advises, the org decides; against the demo org, with schemas that are out of date."""

import json
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bedstone.app import build_toolset
from bedstone.salesforce.graph.describes import to_row
from bedstone.salesforce.graph.model import ObjectSchema
from bedstone.services.schema.store import SchemaStore, Staged
from bedstone.settings import Settings
from bedstone.toolkit import Toolset
from support.demo_org import Running, log_in
from support.processes import bedstone

pytestmark = pytest.mark.usefixtures("calm")
Change = Callable[[ObjectSchema], ObjectSchema]


@pytest.fixture(scope="module")
def synced(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the schema of the org."""
    folder = tmp_path_factory.mktemp("decides")
    log_in(demo, folder)
    made = bedstone("salesforce", "sync-schema", "--json", "--data-dir", folder)
    assert json.loads(made.stdout)["failed"] == 0, made.stderr
    return folder


@pytest.fixture
def data(synced: Path, tmp_path: Path) -> Path:
    """A copy that a test can change."""
    return shutil.copytree(synced, tmp_path / "data")


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncIterator[Toolset]:
    toolset = build_toolset("salesforce_graph", Settings.model_validate({"data_dir": folder, **settings}))
    async with toolset.opened():
        yield toolset


async def run(toolset: Toolset, query: str, **more: Any) -> Any:
    reply = await toolset.call("execute-soql", {"query": query, **more})
    return json.loads(reply.text)


def store_of(folder: Path) -> SchemaStore:
    (file,) = (folder / "salesforce" / "schemas").glob("*/schema.sqlite")
    return SchemaStore(file.parent)


def make_stale(folder: Path, *removed: str, **changes: Change) -> None:
    """Store the schema as it was before the org changed: without some objects, and with older ones of others."""
    store = store_of(folder)
    graph = store.load()
    older = [change(item) for name, change in changes.items() if (item := graph.get(name)) is not None]
    assert len(older) == len(changes)
    store.stage([Staged(item.name, to_row(item), "") for item in older], {})
    store.complete([item.name for item in graph.objects.values() if item.name not in removed], {})
    store.close()


def stored_object(folder: Path, name: str) -> ObjectSchema | None:
    store = store_of(folder)
    try:
        return store.load().get(name)
    finally:
        store.close()


def without_field(name: str) -> Change:
    return lambda item: replace(item, fields=tuple(field for field in item.fields if field.name != name))


def without_child(name: str) -> Change:
    return lambda item: replace(item, children=tuple(child for child in item.children if child.relationship != name))


async def test_a_field_a_relationship_and_an_object_that_are_new_are_found(data: Path, demo: Running) -> None:
    changes = {"Account": without_field("Industry"), "Contact": without_field("AccountId")}
    make_stale(data, "Bike__c", **changes, Case=without_child("Warranty_Claims__r"))
    queries = [
        "SELECT Id, Industry FROM Account WHERE Industry != null LIMIT 3",
        "SELECT Id, Account.Owner.Name FROM Contact WHERE Account.Name != null LIMIT 3",
        "SELECT Id, (SELECT Id FROM Warranty_Claims__r) FROM Case LIMIT 3",
        "SELECT Id, Model__c, Dealer__r.Name FROM Bike__c WHERE Price__c > 0 LIMIT 3",
    ]
    async with opened(data) as toolset:
        for query in queries:
            verdict = json.loads((await toolset.call("validate-soql", {"query": query})).text)
            assert not verdict["valid"]
            assert "unknown in the synced schema (synced at 20" in verdict["notes"][0]
            calls = demo.calls()
            answer = await run(toolset, query)
            assert len(answer["records"]) == 3, answer
            assert demo.calls() - calls - 1 <= 3  # one of them asks for the number of calls
            verdict = json.loads((await toolset.call("validate-soql", {"query": query})).text)
            assert verdict["valid"], verdict
        calls = demo.calls()
        await run(toolset, queries[0])
        assert demo.calls() - calls - 1 == 1  # nothing is described again
    bike = stored_object(data, "Bike__c")
    assert bike is not None
    assert bike.field("Price__c") is not None


async def test_the_type_of_a_field_is_trusted_while_the_schema_is_fresh(data: Path, demo: Running) -> None:
    def with_text(item: ObjectSchema) -> ObjectSchema:
        return replace(
            item,
            fields=tuple(replace(field, type="string") if field.name == "Amount" else field for field in item.fields),
        )

    query = "SELECT Id FROM Opportunity WHERE Amount > 5 LIMIT 1"
    make_stale(data, Opportunity=with_text)
    async with opened(data) as toolset:
        assert (await run(toolset, query))["error"]["details"]["messages"][0]["code"] == "LITERAL_UNQUOTED"
    store = store_of(data)
    store.stage([], {"synced_at": "2024-01-01T00:00:00Z"})
    store.close()
    async with opened(data) as toolset:
        assert len((await run(toolset, query))["records"]) == 1


async def test_a_server_that_must_not_change_anything_still_answers(data: Path) -> None:
    make_stale(data, Account=without_field("Industry"))
    async with opened(data, read_only=True) as toolset:
        for _ in range(2):
            answer = await run(toolset, "SELECT Id, Industry FROM Account LIMIT 3")
            assert len(answer["records"]) == 3, answer
    account = stored_object(data, "Account")
    assert account is not None
    assert account.field("Industry") is None


async def test_right_after_login_queries_run_and_other_tools_ask_for_a_sync(demo: Running, tmp_path: Path) -> None:
    log_in(demo, tmp_path)
    query = "SELECT Id, Account.Owner.Name, (SELECT Id FROM Cases) FROM Contact WHERE Account.Name != null LIMIT 2"
    async with opened(tmp_path) as toolset:
        answer = await run(toolset, query)
        assert len(answer["records"]) == 2, answer
        wrong = (await run(toolset, "SELECT Id, Emial FROM Contact LIMIT 1"))["error"]
        assert (wrong["code"], wrong["details"]["correctedQuery"]) == (
            "INVALID_INPUT",
            "SELECT Id, Email FROM Contact LIMIT 1",
        )
        assert wrong["details"]["salesforce"]["errorCode"] == "INVALID_FIELD"
        listed = json.loads((await toolset.call("list-objects", {})).text)
        assert listed["error"]["code"] == "NOT_SYNCED"


async def test_the_org_answers_for_names_that_stay_unknown(data: Path) -> None:
    async with opened(data) as toolset:
        for query, code in (
            ("SELECT Id FROM Contacct LIMIT 1", "INVALID_TYPE"),
            ("SELECT Nmae FROM Account LIMIT 1", "INVALID_FIELD"),
            ("SELECT Acount.Name FROM Contact LIMIT 1", "INVALID_FIELD"),
            ("SELECT Id, (SELECT Id FROM Contact) FROM Account LIMIT 1", "INVALID_TYPE"),
        ):
            error = (await run(toolset, query))["error"]
            assert (error["code"], error["details"]["salesforce"]["errorCode"]) == ("INVALID_INPUT", code), error
            assert error["details"]["messages"]


async def test_what_is_certainly_wrong_costs_no_call(data: Path, demo: Running) -> None:
    async with opened(data) as toolset:
        await run(toolset, "SELECT Id FROM Account LIMIT 1")
        calls = demo.calls()
        for query in (
            "SELECT Id FROM",
            "SELECT * FROM Account",
            "SELECT Id FROM Account WHERE Name = 'a' AND Phone = 'b' OR Fax = 'c'",
            "SELECT Id FROM Account ORDER BY Id LIMIT 1 OFFSET 5000",
            "SELECT MAX(CreatedDate) FROM Account LIMIT 1",
            "SELECT Nmae FROM Account OFFSET 5000",
            "SELECT Id FROM Opportunity WHERE Amount > 'much'",
        ):
            assert (await run(toolset, query))["error"]["code"] == "INVALID_INPUT", query
        assert demo.calls() - calls == 1  # the question for the number of calls itself


async def test_a_value_that_a_picklist_lacks_finds_nothing_and_is_noted(data: Path) -> None:
    async with opened(data) as toolset:
        for query in (
            "SELECT Id FROM Bike__c WHERE Model__c = 'Nonsense' LIMIT 5",  # restricted
            "SELECT Id FROM Case WHERE Status = 'Nonsense' LIMIT 5",
        ):
            verdict = json.loads((await toolset.call("validate-soql", {"query": query})).text)
            assert (verdict["valid"], [item["code"] for item in verdict["messages"]]) == (True, ["PICKLIST_VALUE"])
            answer = await run(toolset, query)
            assert (answer["totalSize"], answer["records"]) == (0, [])
            assert '"Nonsense" is not a value of' in answer["notes"][0]


async def test_a_field_that_is_gone_is_explained_by_the_new_schema(data: Path) -> None:
    def with_old_field(item: ObjectSchema) -> ObjectSchema:
        (industry,) = [field for field in item.fields if field.name == "Industry"]
        return replace(item, fields=(*item.fields, replace(industry, name="Branch__c")))

    make_stale(data, Account=lambda item: item)
    async with opened(data) as toolset:
        await run(toolset, "SELECT Id, Industry FROM Account LIMIT 1")  # the object as the org has it
    make_stale(data, Account=with_old_field)
    async with opened(data) as toolset:
        error = (await run(toolset, "SELECT Branch__c FROM Account LIMIT 1"))["error"]
        assert (error["code"], error["details"]["messages"][0]["code"]) == ("INVALID_INPUT", "FIELD_UNKNOWN")
    account = stored_object(data, "Account")
    assert account is not None
    assert account.field("Branch__c") is None


async def test_no_calls_are_spent_on_describes_when_most_are_used(data: Path, demo: Running) -> None:
    make_stale(data, Account=without_field("Industry"))
    demo.faults("limit-near")
    async with opened(data) as toolset:
        await run(toolset, "SELECT Id FROM Account LIMIT 1")
        answer = await run(toolset, "SELECT Id, Industry FROM Account LIMIT 3")
        assert len(answer["records"]) == 3, answer
    account = stored_object(data, "Account")
    assert account is not None
    assert account.field("Industry") is None


async def test_more_than_two_hundred_rows_come_at_once(data: Path, demo: Running) -> None:
    total = demo.query("SELECT COUNT() FROM Contact")["totalSize"]
    assert total > 400
    async with opened(data) as toolset:
        whole = await run(toolset, "SELECT Id FROM Contact ORDER BY Id", maxRows=2_000)
        assert (len(whole["records"]), whole["done"], "nextCursor" in whole) == (total, True, False)
        some = await run(toolset, "SELECT Id FROM Contact ORDER BY Id", maxRows=350)
        assert len(some["records"]) == 350
        query = "SELECT Id FROM Contact ORDER BY Id"
        rest = await run(toolset, query, maxRows=350, cursor=some["nextCursor"])
        assert [*some["records"], *rest["records"]] == whole["records"]
        demo.faults("small-batches")
        seen, cursor = [], None
        while True:
            page = await run(toolset, query, maxRows=300, **({"cursor": cursor} if cursor else {}))
            seen += page["records"]
            if page["done"]:
                break
            assert "Pass nextCursor" in page["notes"][0]
            cursor = page["nextCursor"]
        assert seen == whole["records"]


async def test_ids_are_paged_by_key(data: Path) -> None:
    async with opened(data) as toolset:
        whole = await run(toolset, "SELECT Id FROM Account ORDER BY Id", maxRows=2_000)
        ids = [row["Id"] for row in whole["records"]]
        after = await run(toolset, f"SELECT Id FROM Account WHERE Id > '{ids[99][:15]}' ORDER BY Id", maxRows=2_000)
        assert [row["Id"] for row in after["records"]] == ids[100:]
