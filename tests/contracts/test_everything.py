"""search, fetch and cite over every source, through every door, with real content."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # comes with the SDK
import pytest

from bedstone.app import App, open_app
from bedstone.services.docs.builder import BuildOptions, DocsBuilder
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.services.schema.service import SchemaService
from bedstone.settings import Settings
from bedstone.toolkit import Toolset
from support.doors import DOORS, payload
from support.replicas import shared

ROOT = Path(__file__).parents[2]
FILES = ROOT / "demo" / "files"
# What OpenAI's connectors expect: the inputs they send, and the outputs they read.
SEARCH_INPUT = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SEARCH_OUTPUT = {
    "type": "object",
    "required": ["results"],
    "properties": {
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "title", "url"],
                "properties": {name: {"type": "string", "minLength": 1} for name in ("id", "title", "url")},
            },
        }
    },
}
FETCH_OUTPUT = {
    "type": "object",
    "required": ["id", "title", "text", "url", "metadata"],
    "properties": {
        **{name: {"type": "string", "minLength": 1} for name in ("id", "title", "text", "url")},
        "metadata": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
MAX_TOKENS = 1_500  # of a concise answer with the default number of results
CHARACTERS_PER_TOKEN = 4


@pytest.fixture(scope="module")
async def app(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    """Documents, documentation, the knowledge file and a schema from the demo; no org, no model."""
    folder = tmp_path_factory.mktemp("everything")
    DocsBuilder(ROOT / "demo" / "docs", folder / "docs", None, BuildOptions(), lambda *_: None).build()
    given = {
        "data_dir": folder / "data",
        "toolsets": ["everything", "knowledge", "docs", "kb", "salesforce_graph"],
        "docs": {"index": [folder / "docs"]},
        "kb": {"file_path": ROOT / "demo" / "handbook.txt"},
        "embedding": {"provider": "none"},
        "mcp": {"public_url": "https://kb.example.org/"},
    }
    async with open_app(shared(Settings.model_validate(given))) as app:
        base: KnowledgeBase = await app.services["knowledge"].open()
        for file in sorted(FILES.iterdir()):
            base.wait(base.add(file).id)
        schemas: SchemaService = await app.services["salesforce_graph"].open()
        schemas.import_folder("demo", _describes(folder / "describes"))
        yield app


def _describes(folder: Path) -> Path:
    folder.mkdir()
    stages = [{"value": value, "label": value, "active": True} for value in ("Accepted", "Refused")]
    fields = [
        {"name": "Id", "label": "Record ID", "type": "id"},
        {"name": "Outcome__c", "label": "Outcome", "type": "picklist", "picklistValues": stages},
    ]
    claim = {"name": "Warranty_Claim__c", "label": "Warranty Claim", "labelPlural": "Warranty Claims", "fields": fields}
    (folder / "Warranty_Claim__c.json").write_text(json.dumps(claim))
    return folder


@pytest.fixture
def tools(app: App) -> Toolset:
    return app.toolsets["everything"]


async def ask(toolset: Toolset, name: str, **arguments: Any) -> dict[str, Any]:
    reply = await toolset.call(name, arguments)
    assert not reply.is_error, reply.text
    assert isinstance(reply.payload, dict)
    return reply.payload


@pytest.mark.parametrize("door", DOORS)
async def test_search_and_fetch_have_the_shapes_that_connectors_expect_at_every_door(app: App, door: str) -> None:
    async with DOORS[door]([app.toolsets["everything"]]) as client:
        listed = {tool.name: tool for tool in await client.list_tools()}
        assert list(listed) == ["search", "fetch", "cite"]
        for tool in listed.values():
            assert tool.output_schema is not None
            assert tool.annotations is not None
            hints = (
                tool.annotations.read_only_hint,
                tool.annotations.destructive_hint,
                tool.annotations.open_world_hint,
            )
            assert hints == (True, False, False)
        assert listed["search"].input_schema["required"] == ["query"]
        assert listed["fetch"].input_schema["required"] == ["id"]
        found = await client.call("search", {"query": "when to replace a brake disc"})
        read = await client.call("fetch", {"id": payload(found)["results"][0]["id"]})
        empty = await client.call("search", {"query": ""})
    assert found.structured_content == payload(found)
    assert read.structured_content == payload(read)
    jsonschema.validate(payload(found), SEARCH_OUTPUT)
    jsonschema.validate(payload(read), FETCH_OUTPUT)
    assert payload(empty) == {"results": []}
    assert "thinner than 1.8 mm" in payload(read)["text"]


async def test_every_hit_says_where_it_comes_from_and_its_range_holds(tools: Toolset) -> None:
    schemes = set()
    for query in (
        "replace a brake disc",
        "rate limits",
        "warranty of the frame",
        "outcome of a warranty claim",
        "winter range",
    ):
        for hit in (await ask(tools, "search", query=query, detail="full", limit=20))["results"]:
            schemes.add(hit["id"].partition(":")[0])
            assert hit["origin"]
            assert hit["url"].startswith("https://kb.example.org/")
            whole = await _whole_text(tools, hit["id"].partition("#")[0])
            passage = whole[hit["start"] : hit["end"]]
            words = [word for word in hit["text"].split() if word.isalpha()]
            assert words
            assert all(word in passage for word in words if hit["source"] != "Schema"), (hit["id"], passage)
    assert schemes >= {"doc", "docs", "kb", "field"}


async def _whole_text(tools: Toolset, item_id: str) -> str:
    """Read a text to its end, part by part."""
    text, offset = "", 0
    while True:
        part = await ask(tools, "fetch", id=item_id, offset=offset, detail="concise")
        assert len(part["text"]) <= 4_000
        text += str(part["text"])
        if "next_offset" not in part:
            assert len(text) == part["total_characters"]
            return text
        offset = part["next_offset"]


async def test_ids_are_readable_and_name_pages_sections_objects_and_fields(tools: Toolset) -> None:
    manual = (await ask(tools, "search", query="replace a brake disc"))["results"][0]
    assert manual["id"].startswith("doc:porter-workshop-manual.pdf~")
    assert manual["id"].endswith("#page=2")
    assert manual["page"] == 2
    page = await ask(tools, "fetch", id=manual["id"])
    assert page["next_id"] == manual["id"].replace("#page=2", "#page=3")
    section = await ask(tools, "fetch", id="docs:guides/errors-and-retries.md#errors-and-retries/backoff")
    assert section["text"].startswith("## Backoff")
    assert "Rate limits" in (await ask(tools, "fetch", id="docs:guides/errors-and-retries.md"))["text"]
    warranty = await ask(tools, "fetch", id="kb:handbook.txt#4-warranty")
    assert "10 years" in warranty["text"]
    assert (
        "Outcome__c (Outcome): picklist; values Accepted, Refused"
        in (await ask(tools, "fetch", id="object:Warranty_Claim__c"))["text"]
    )
    assert (await ask(tools, "fetch", id="field:Warranty_Claim__c.Outcome__c"))[
        "title"
    ] == "Warranty_Claim__c.Outcome__c"


@pytest.mark.parametrize(
    ("item_id", "reason"),
    [
        ("nonsense", "Use an id that search returned"),
        ("web:page", "Use an id that search returned"),
        ("doc:missing.pdf~00000000", "No document is called 'missing.pdf'"),
        ("doc:porter-workshop-manual.pdf#page=99", "has no page 99"),
        ("doc:porter-workshop-manual.pdf#../../etc", "Unknown part"),
        ("docs:guides/nothing.md", "Documentation has no 'docs:guides/nothing.md'"),
        (
            "docs:guides/errors-and-retries.md#errors-and-retries/backof",
            "Nearest: docs:guides/errors-and-retries.md#errors-and-retries/backoff",
        ),
        ("kb:other.txt#4-warranty", "The knowledge file is kb:handbook.txt, not kb:other.txt."),
        ("kb:handbook.txt#nothing", "has no section 'nothing'"),
        ("object:Warranty", "Nearest: object:Warranty_Claim__c"),
        ("field:Warranty_Claim__c.Outcom__c", "Nearest: field:Warranty_Claim__c.Outcome__c"),
    ],
)
async def test_an_id_that_names_nothing_is_refused_with_the_next_step(
    tools: Toolset, item_id: str, reason: str
) -> None:
    reply = await tools.call("fetch", {"id": item_id})
    assert reply.is_error
    assert reason in reply.text


async def test_a_source_is_chosen_by_its_name(tools: Toolset) -> None:
    for source, query in (("documents", "disc"), ("Knowledge file", "warranty"), ("schema", "warranty claim")):
        found = (await ask(tools, "search", query=query, source=source))["results"]
        assert found
        assert {hit["source"].lower() for hit in found} == {source.lower()}
    reply = await tools.call("search", {"query": "x", "source": "elsewhere"})
    assert "Sources: documents, documentation, knowledge file, schema" in reply.text


async def test_concise_answers_stay_within_their_budget(tools: Toolset) -> None:
    for query in ("bike", "battery range and warranty", "replace a brake disc", "error codes and rate limits"):
        concise = await tools.call("search", {"query": query})
        assert len(concise.text) <= MAX_TOKENS * CHARACTERS_PER_TOKEN, query
        full = await tools.call("search", {"query": query, "detail": "full"})
        assert len(full.text) > len(concise.text)


async def test_nonsense_finds_nothing_and_says_so(tools: Toolset) -> None:
    answer = await ask(tools, "search", query="zyxwv qponm")
    assert answer["results"] == []
    assert "Nothing relevant found" in answer["message"]


async def test_a_true_quote_is_confirmed_with_its_page_and_an_altered_one_is_not(tools: Toolset) -> None:
    manual = "doc:porter-workshop-manual.pdf"
    true = await ask(tools, "cite", id=f"{manual}#page=1", quote="A disc thinner than 1.8 mm must be replaced")
    assert (true["confirmed"], true["page"]) == (True, 2)
    assert true["id"].endswith("#page=2")
    whole = await _whole_text(tools, manual)
    assert "1.8 mm" in whole[true["start"] : true["end"]]
    altered = await ask(tools, "cite", id=manual, quote="A disc thinner than 1.3 mm must be replaced.")
    assert (altered["confirmed"], altered["match"]) == (False, "nearest")
    assert "1.8" in altered["passage"]
    assert altered["differences"]
    absent = await ask(tools, "cite", id=manual, quote="The moon orbits the earth in twenty-seven days.")
    assert (absent["confirmed"], absent["match"]) == (False, "absent")
    assert (await tools.call("cite", {"id": manual, "quote": "  "})).is_error


async def test_without_a_page_hits_have_no_url(app: App) -> None:
    from bedstone.toolsets.everything.toolset import EverythingToolset  # noqa: PLC0415

    alone = EverythingToolset(app.services["everything"])
    answer = await ask(alone, "search", query="rate limits")
    assert answer["results"]
    assert all("url" not in hit for hit in answer["results"])


async def test_the_instructions_tell_the_order_of_tools_in_ten_lines(app: App) -> None:
    instructions = app.hub().instructions or ""
    assert len(instructions.splitlines()) <= 10
    places = [
        instructions[:512].find(f"{number}. {name}") for number, name in enumerate(("search", "fetch", "cite"), 1)
    ]
    assert -1 < places[0] < places[1] < places[2]


async def test_other_search_tools_cite_what_fetch_reads(app: App, tools: Toolset) -> None:
    passages = await ask(app.toolsets["knowledge"], "knowledge-search", query="brake disc")
    docs = await app.toolsets["docs"].call("search_docs", {"query": "rate limits"})
    assert docs.structured is not None
    for citation in (passages["results"][0]["metadata"]["citation"], docs.structured["hits"][0]["citation"]):
        assert citation["url"].startswith("https://kb.example.org/")
        whole = await _whole_text(tools, citation["id"].partition("#")[0])
        assert 0 <= citation["start"] < citation["end"] <= len(whole)
