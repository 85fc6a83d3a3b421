"""The salesforce_knowledge contract: a real client, the demo org over HTTP, stdio and SSE."""

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import mcp_types as wire
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

from bedstone.app import build_toolset, make_services
from bedstone.errors import UnknownResource
from bedstone.salesforce.client import client as salesforce_client
from bedstone.salesforce.client.orgs import Org
from bedstone.services.articles.mirror_sync import SyncReport
from bedstone.services.orgs import open_orgs
from bedstone.settings import Settings
from bedstone.toolkit import Reply, Toolset
from contracts.requirements import proves
from support.balancer import server_count
from support.demo_org import Running, V, log_in
from support.doors import HANDSHAKE, MODERN, ClientDoor, Door, payload, serving
from support.processes import bedstone, clean_environment, listening
from support.replicas import shared

pytestmark = pytest.mark.usefixtures("calm")

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = json.loads((ROOT / "tests" / "salesforce" / "article_questions.json").read_text())
RESERVED = "? & | ! { } [ ] ( ) ^ ~ * : \\ \" ' + - % _"


@pytest.fixture(scope="module")
def data(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that knows the org, and has no mirror."""
    folder = tmp_path_factory.mktemp("live")
    log_in(demo, folder)
    return folder


@pytest.fixture(scope="module")
def mirrored(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a mirror."""
    folder = tmp_path_factory.mktemp("mirrored")
    log_in(demo, folder)
    made = bedstone("salesforce", "sync-knowledge", "--json", "--data-dir", folder)
    assert json.loads(made.stdout) == {"changed": 192, "removed": 0, "total": 192}, made.stderr
    return folder


@asynccontextmanager
async def opened(folder: Path, **salesforce: Any) -> AsyncIterator[Toolset]:
    settings = shared(Settings.model_validate({"data_dir": folder, "salesforce": salesforce}))
    toolset = build_toolset("salesforce_knowledge", settings)
    async with toolset.opened():
        yield toolset


@pytest.fixture(params=["stdio", "sse"])
async def door(request: pytest.FixtureRequest, data: Path, tmp_path: Path) -> AsyncIterator[Door]:
    """The entry point of the contract, in a process of its own."""
    entry = ROOT / "mcp_servers" / "salesforce_knowledge" / "server.py"
    if request.param == "stdio":
        arguments = [str(entry), "--data-dir", str(data)]
        parameters = StdioServerParameters(command=sys.executable, args=arguments, env=clean_environment())
        async with Client(parameters, mode=MODERN) as client:
            yield ClientDoor(client)
        return
    options = ("--toolsets", "salesforce-knowledge", "--transport", "sse", "--data-dir", data)
    with listening(*options, log=tmp_path / "log") as server:
        async with Client(sse_client(f"{server.base}/sse"), mode=HANDSHAKE) as client:
            yield ClientDoor(client)


def told(reply: Reply) -> Any:
    return json.loads(reply.text)


def refused(answer: Any) -> tuple[str, str]:
    (error,) = answer.values()
    assert set(error) == {"code", "message", "details"}
    return error["code"], error["message"]


@proves("sfk.tools", "sfk.search.answer", "sfk.search.sosl", "sfk.get.answer", "sfk.errors")
async def test_articles_are_found_and_read(door: Door) -> None:
    tools = {tool.name: tool for tool in await door.list_tools()}
    assert list(tools) == ["search_articles", "get_article_by_id"]
    properties = tools["search_articles"].input_schema["properties"]
    assert {name: properties["limit"][name] for name in ("default", "minimum", "maximum")} == {
        "default": 10,
        "minimum": 1,
        "maximum": 25,
    }
    assert properties["language"]["default"] == "en_US"
    assert tools["search_articles"].input_schema["required"] == ["query"]
    assert tools["get_article_by_id"].input_schema["required"] == ["article_id"]

    found = payload(await door.call("search_articles", {"query": "flat tyre Porter"}))
    assert found["search_method"] == "sosl"
    best = found["articles"][0]
    assert best["title"] == "How to fix a flat tyre on the Porter"
    assert best["url_name"] == "How-to-fix-a-flat-tyre-on-the-Porter"
    assert best["article_type"] == "How_To"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", best["last_published"])
    assert "body" not in best

    answer = payload(await door.call("get_article_by_id", {"article_id": best["id"]}))
    article = answer["article"]
    assert {key: article[key] for key in ("id", "title", "summary")} == {
        key: best[key] for key in ("id", "title", "summary")
    }
    assert "The Porter rolls on 20 x 2.60 tyres" in article["body"]
    assert "1. Let the air out" in article["body"]
    assert "<" not in article["body"]

    result = await door.call("get_article_by_id", {"article_id": "ka0000000000zzzAAA"})
    assert result.is_error
    assert refused(payload(result))[0] == "NOT_FOUND"
    resource = await door.read("salesforce-knowledge://article/How-to-fix-a-flat-tyre-on-the-Porter")
    (contents,) = resource.contents
    assert isinstance(contents, wire.TextResourceContents)
    assert contents.text.startswith("How to fix a flat tyre on the Porter")
    with pytest.raises(MCPError):
        await door.read("salesforce-knowledge://article/no-such-article")


@proves("sfk.search.limit", "sfk.search.language", "sfk.search.online", "sfk.search.categories")
async def test_what_is_found_can_be_narrowed(data: Path) -> None:
    async with opened(data) as toolset:

        async def search(**asked: Any) -> Any:
            return told(await toolset.call("search_articles", asked))

        first = await search(query="battery", limit=3)
        assert len(first["articles"]) == 3
        everything = await search(query="battery", limit=25)
        assert first["total_count"] == everything["total_count"] > 3
        assert [row["id"] for row in first["articles"]] == [row["id"] for row in everything["articles"][:3]]
        german = await search(query="Bremsbeläge", language="de")
        assert all("Bremsbeläge" in row["title"] for row in german["articles"])
        assert german["total_count"] == 3
        assert (await search(query="Bremsbeläge"))["total_count"] == 0
        drafts = await search(query="draft OR archived", limit=25)
        assert not [row for row in drafts["articles"] if row["title"].endswith(("(draft)", "(archived)"))]
        porter = await search(query="wheel", data_categories={"Models": "Porter"}, limit=25)
        assert {row["title"].rpartition(" ")[2] for row in porter["articles"]} == {"Porter"}
        assert porter["articles"][0]["article_number"]


@proves("sfk.search.fallback")
async def test_sosl_that_fails_is_replaced_by_soql(data: Path, demo: Running) -> None:
    demo.faults("search-off")
    async with opened(data) as toolset:
        phrase = told(await toolset.call("search_articles", {"query": "flat tyre"}))
        assert (phrase["search_method"], phrase["total_count"]) == ("soql", 3)
        words = told(await toolset.call("search_articles", {"query": "tube puncture"}))
        assert {row["title"] for row in words["articles"]} == {row["title"] for row in phrase["articles"]}
        wild = told(await toolset.call("search_articles", {"query": "100% _ '"}))
        assert wild["total_count"] == 0


@proves("sfk.get.ids", "sfk.get.unpublished")
async def test_ids_of_versions_and_articles_are_taken_and_only_published_text_is_given(
    data: Path, demo: Running
) -> None:
    def ids(status: str) -> dict[str, str]:
        statement = f"SELECT Id, KnowledgeArticleId FROM Knowledge__kav WHERE PublishStatus = '{status}' LIMIT 1"
        row: dict[str, str] = demo.query(statement)["records"][0]
        return row

    async with opened(data) as toolset:

        async def get(article_id: str) -> Any:
            return told(await toolset.call("get_article_by_id", {"article_id": article_id}))

        online = ids("Online")
        whole = await get(online["Id"])
        assert whole == await get(online["Id"][:15]) == await get(online["KnowledgeArticleId"])
        for status in ("Draft", "Archived"):
            code, message = refused(await get(ids(status)["Id"]))
            assert (code, status.lower() in message) == ("NOT_FOUND", True)
        assert refused(await get("kA0000000000zzz"))[0] == "NOT_FOUND"
        for wrong in ("", "ka0", "ka00000000000' OR Id != '", "ka0000000000001AAB"):
            assert refused(await get(wrong))[0] == "INVALID_INPUT"


@proves("sfk.errors.input")
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": "?!*"}, "query"),
        ({"query": "x" * 10_000}, "query"),
        ({"query": 5}, "query"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": 26}, "limit"),
        ({"query": "x", "limit": "5"}, "limit"),
        ({"query": "x", "language": "en_US' OR Title != '"}, "language"),
        ({"query": "x", "language": "xx"}, "language"),
        ({"query": "x", "data_categories": {"Models": "x') OR"}}, "data_categories"),
        ({"query": "x", "colour": "red"}, "colour"),
    ],
)
async def test_wrong_arguments_are_named(data: Path, arguments: dict[str, Any], field: str) -> None:
    async with opened(data) as toolset:
        reply = await toolset.call("search_articles", arguments)
    assert reply.is_error
    error = told(reply)["error"]
    assert (error["code"], error["details"]["field"]) == ("INVALID_INPUT", field)
    assert field in error["message"] or "search for" in error["message"]


@proves("sfk.search.escaping")
async def test_signs_and_operators_are_words_like_others(data: Path, demo: Running) -> None:
    title = f"Sign {RESERVED} \N{BICYCLE} AND NOT here"
    facts = {"Title": title, "Summary": "%_ \\", "PublishStatus": "Online", "Language": "en_US"}
    facts |= {"UrlName": "sign"}
    made = demo.http.post(f"{V}/sobjects/Knowledge__kav", json=facts)
    assert made.status_code == 201, made.text
    try:
        async with opened(data) as toolset:
            for query in (f"Sign {RESERVED}", "Sign AND NOT here", "here \N{BICYCLE}", "Sign* } LIMIT 1 {here"):
                found = told(await toolset.call("search_articles", {"query": query, "limit": 25}))
                assert title in [row["title"] for row in found["articles"]], query
            injected = told(await toolset.call("search_articles", {"query": "zzz} RETURNING Account(Name)"}))
            assert all(row["id"].startswith("ka") for row in injected["articles"])
            demo.faults("search-off")
            for query in (RESERVED, "\\", "%", "_ \\ '", title):
                found = told(
                    await toolset.call("search_articles", {"query": f"{query} qqq" if query != title else query})
                )
                assert [row["title"] for row in found["articles"]] == ([title] if query == title else [])
    finally:
        demo.faults()
        demo.http.delete(f"{V}/sobjects/Knowledge__kav/{made.json()['id']}")


@proves("sfk.errors.codes", "sfk.limits")
async def test_every_code_can_be_met(data: Path, demo: Running) -> None:
    async def search(**salesforce: Any) -> Any:
        async with opened(data, **salesforce) as toolset:
            await toolset.call("search_articles", {"query": "battery"})  # the org's limits are known from now on
            return told(await toolset.call("search_articles", {"query": "battery"}))

    demo.faults("limit-near")
    (warning,) = (await search())["warnings"]
    assert (warning["code"], set(warning["details"])) == ("RATE_LIMIT_WARNING", {"used", "limit"})
    assert "warnings" not in await search(warn_share=1)
    assert refused(await search(call_floor=14_000))[0] == "RATE_LIMIT_WARNING"
    demo.faults("limit-over")
    assert refused(await search())[0] == "RATE_LIMIT_EXCEEDED"
    demo.faults("knowledge-off")
    code, message = refused(await search())
    assert (code, "administrator must enable" in message) == ("KNOWLEDGE_DISABLED", True)
    demo.faults("no-permission")
    code, message = refused(await search())
    assert (code, "no permission" in message) == ("KNOWLEDGE_DISABLED", True)
    demo.faults("api-off")
    assert refused(await search())[0] == "PERMISSION_DENIED"
    demo.faults("unavailable")
    assert refused(await search())[0] == "SF_API_ERROR"
    demo.faults()
    assert refused(await search(org="nobody"))[0] == "AUTH_ERROR"


@proves("sfk.errors.auth")
async def test_a_login_that_fails_is_an_auth_error_and_says_no_secret(demo: Running, tmp_path: Path) -> None:
    log_in(demo, tmp_path)
    secrets = tmp_path / "salesforce" / "secrets.json"
    secrets.write_text('{"demo": "a-wrong-secret"}')
    async with opened(tmp_path) as toolset:
        reply = await toolset.call("search_articles", {"query": "battery"})
    assert refused(told(reply))[0] == "AUTH_ERROR"
    assert "a-wrong-secret" not in reply.text


@proves("sfk.mirror")
async def test_the_mirror_answers_while_the_org_does_not(mirrored: Path, demo: Running) -> None:
    asked = {"query": "rusty spots on my frame"}
    async with opened(mirrored) as toolset:
        assert told(await toolset.call("search_articles", {"query": "battery"}))["search_method"] == "sosl"
        for fault in ("unavailable", "limit-over"):
            demo.faults(fault)
            found = told(await toolset.call("search_articles", asked))
            assert (found["source"], "search_method" in found) == ("mirror", False)
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["mirrored_at"])
            best = found["articles"][0]
            assert best["title"] == "Rust on the frame"
            article = told(await toolset.call("get_article_by_id", {"article_id": best["id"]}))
            assert (article["source"], "pencil" in article["article"]["body"]) == ("mirror", True)
    demo.faults("unavailable")
    async with opened(mirrored, article_source="live") as toolset:
        assert refused(told(await toolset.call("search_articles", asked)))[0] == "SF_API_ERROR"
    async with opened(mirrored, article_source="mirror") as toolset:
        porter = {"query": "wheel", "data_categories": {"Models": "Porter"}, "limit": 25}
        narrowed = told(await toolset.call("search_articles", porter))
        assert all("Porter" in row["title"] for row in narrowed["articles"])
        german = told(await toolset.call("search_articles", {"query": "Reifenpanne", "language": "de"}))
        assert german["articles"][0]["title"].startswith("Reifenpanne")
        assert refused(told(await toolset.call("search_articles", {"query": "x", "language": "xx"})))[0] == (
            "INVALID_INPUT"
        )
        addresses = [item.uri for item in await toolset.resources()]
        assert "salesforce-knowledge://article/Locating-a-stolen-bike" in addresses
        assert await toolset.complete("salesforce-knowledge://article/{urlName}", "urlName", "gift") == [
            "Gift-vouchers"
        ]


@proves("sfk.mirror.sync")
async def test_a_sync_takes_what_changed_and_drops_what_is_gone(
    demo: Running, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("synced")
    log_in(demo, folder)

    def sync() -> tuple[int, int]:
        made = bedstone("salesforce", "sync-knowledge", "--json", "--data-dir", folder)
        report = json.loads(made.stdout)
        return report["changed"], report["removed"]

    demo.faults("small-batches")
    assert sync() == (192, 0)
    demo.faults()
    assert sync() == (0, 0)
    row = demo.query("SELECT Id, Title FROM Knowledge__kav WHERE UrlName = 'Gift-vouchers'")["records"][0]
    address = f"{V}/sobjects/Knowledge__kav/{row['Id']}"
    try:
        demo.http.patch(address, json={"Summary": "Vouchers glow in the dark."})
        assert sync() == (1, 0)
        async with opened(folder, article_source="mirror") as toolset:
            found = told(await toolset.call("search_articles", {"query": "glowing in the dark"}))
            assert found["articles"][0]["title"] == "Gift vouchers"
        demo.http.patch(address, json={"PublishStatus": "Archived"})
        assert sync() == (0, 1)
        async with opened(folder, article_source="mirror") as toolset:
            reply = await toolset.call("get_article_by_id", {"article_id": row["Id"]})
            assert refused(told(reply))[0] == "NOT_FOUND"
    finally:
        demo.http.patch(address, json={"PublishStatus": "Online", "Summary": "They are good for three years."})


async def test_a_sync_loses_nothing_that_happens_meanwhile(
    demo: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Articles published while it runs, one that nests beyond reason, and one that came into view without a change."""
    log_in(demo, tmp_path)
    made: list[str] = []

    def publish(title: str, answer: str = "") -> str:
        facts = {"Title": title, "UrlName": title, "PublishStatus": "Online", "Language": "en_US", "Answer__c": answer}
        record: str = demo.http.post(f"{V}/sobjects/Knowledge__kav", json=facts).json()["id"]
        made.append(record)
        return record

    deep = publish("Deep", "<div>" * 400 + "<script>alert(1)</script>walrus" + "</div>" * 400)
    rows = salesforce_client.SalesforceClient.rows
    hidden: list[str] = []

    async def watched(self: Any, soql: str, *, all_rows: bool = False) -> AsyncIterator[dict[str, Any]]:
        if soql.startswith("SELECT Id FROM Knowledge__kav") and not hidden:
            hidden.append(publish("Late"))
        async for row in rows(self, soql, all_rows=all_rows):
            yield row

    monkeypatch.setattr(salesforce_client.SalesforceClient, "rows", watched)
    try:
        service = make_services(Settings.model_validate({"data_dir": tmp_path}))["salesforce_knowledge"].get()
        assert await service.sync() == SyncReport(194, 0, 194)
        assert service.mirror.get(deep).body == "walrus"
        assert service.mirror.get(hidden[0]).title == "Late"
        assert (await service.sync()).removed == 0
        await service.aclose()
    finally:
        for record in made:
            demo.http.delete(f"{V}/sobjects/Knowledge__kav/{record}")


async def test_an_org_of_the_same_name_gets_a_mirror_of_its_own(demo: Running, mirrored: Path, tmp_path: Path) -> None:
    orgs = open_orgs(Settings.model_validate({"data_dir": tmp_path}))
    names = {orgs.folder_name(Org("acme", "soap", url)) for url in ("https://a.example", "https://b.example")}
    assert len(names) == 2
    assert len(orgs.folder_name(Org("\u00fc/.." * 100, "soap", "https://a.example"))) < 100


async def test_an_org_that_is_down_costs_one_wait_not_one_for_each_call(mirrored: Path, demo: Running) -> None:
    demo.faults("unavailable")
    async with opened(mirrored) as toolset:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for _ in range(30):
                    tasks.start_soon(toolset.call, "search_articles", {"query": "battery"})
        reply = await toolset.call("search_articles", {"query": "???"})
        assert refused(told(reply))[0] == "INVALID_INPUT"
        honest = told(await toolset.call("search_articles", {"query": "gift voucher"}))
        assert honest["total_count"] < 60


@pytest.mark.parametrize("query", ["\u65e5" * 3999, "x" * 5000])
async def test_what_is_too_long_is_said_so(data: Path, demo: Running, query: str) -> None:
    demo.faults("search-off")
    async with opened(data) as toolset:
        assert refused(told(await toolset.call("search_articles", {"query": query})))[0] == "INVALID_INPUT"
        categories = {"query": "x", "data_categories": {"Models": "a" * 70_000}}
        assert refused(told(await toolset.call("search_articles", categories)))[0] == "INVALID_INPUT"
        with pytest.raises(UnknownResource):
            await toolset.read_resource(f"salesforce-knowledge://article/{'a' * 70_000}")


@proves("sfk.mirror.quality")
async def test_the_mirror_finds_what_people_ask_for(data: Path, mirrored: Path) -> None:
    assert len(QUESTIONS) >= 60

    async def share(folder: Path, source: str) -> float:
        found = 0
        async with opened(folder, article_source=source) as toolset:
            for item in QUESTIONS:
                answer = told(await toolset.call("search_articles", {"query": item["question"], "limit": 5}))
                found += item["title"] in [row["title"] for row in answer["articles"]]
        return found / len(QUESTIONS)

    from_mirror, from_org = await share(mirrored, "mirror"), await share(data, "live")
    assert from_mirror >= max(0.9, from_org)


@proves("sfk.load")
async def test_fifty_clients_share_one_login_and_lose_no_call(data: Path, demo: Running) -> None:
    answers: list[Any] = []
    async with opened(data) as toolset, serving([toolset]) as base:

        async def ask(number: int) -> None:
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call"}
            arguments = {"query": f"battery {number}"}
            params = {"params": {"name": "search_articles", "arguments": arguments}}
            async with httpx2.AsyncClient(timeout=60) as http:
                answers.append((await http.post(f"{base}/mcp", json=message | params)).json())

        async def all_ask() -> None:
            async with anyio.create_task_group() as tasks:
                for number in range(50):
                    tasks.start_soon(ask, number)

        before = demo.faults("slow")["logins"]
        await all_ask()
        demo.faults("slow", "expired-token")
        await all_ask()
        logins = demo.faults()["logins"] - before
    assert len(answers) == 100
    assert all(not answer["result"].get("isError") for answer in answers)
    assert logins == 2 * server_count()
