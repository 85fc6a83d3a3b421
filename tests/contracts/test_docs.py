"""The docs contract on a small corpus, with a real client and the real model."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from bedstone.app import build_toolset, make_services
from bedstone.search.embedder import Embedder
from bedstone.search.embedders.minilm import MiniLm
from bedstone.server import BedstoneServer
from bedstone.services.docs.builder import BuildOptions, DocsBuilder
from bedstone.services.docs.corpus import DocsCorpus
from bedstone.services.docs.service import DocsService
from bedstone.services.service import Handle
from bedstone.settings import Settings
from bedstone.toolkit import Reply
from bedstone.toolsets.docs.toolset import DocsToolset
from contracts.requirements import proves
from support.doors import DOORS, HANDSHAKE, Door, payload, stdio_client
from support.noise import noisy_variants
from support.processes import bedstone
from support.replicas import shared
from support.sample_docs import BEST_HITS, MISSPELLED, NONSENSE, REIMBURSED, WAITING, build_sample_docs

NOISY_VARIANTS = 30


EMBEDDERS = make_services(Settings()).context.embedders


def docs(index: Path, *, is_semantic: bool = False) -> DocsToolset:
    return DocsToolset(Handle.of(DocsService([index], EMBEDDERS.get if is_semantic else None)))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_sample_docs(tmp_path_factory.mktemp("docs"), EMBEDDERS.get())


@pytest.fixture(params=["memory-2026", "http-handshake", "plain"])
async def door(request: pytest.FixtureRequest, index: Path, tmp_path: Path) -> AsyncIterator[Door]:
    settings = Settings.model_validate({"data_dir": tmp_path / "data", "docs": {"index": [index]}})
    toolset = build_toolset("docs", shared(settings))
    async with toolset.opened(), DOORS[request.param]([toolset]) as door:
        yield door


async def search(door: Door, query: str, **arguments: Any) -> Any:
    return payload(await door.call("search_docs", {"query": query, **arguments}))


async def refusal(door: Door, name: str, arguments: dict[str, Any]) -> str:
    answer = await door.call(name, arguments)
    assert answer.is_error
    text: str = answer.content[0].text  # type: ignore[union-attr]
    return text


@proves("docs.search.schema", "docs.get.schema")
async def test_the_schemas_are_the_contracts_with_the_facets_of_the_corpus(door: Door) -> None:
    search_docs, get_doc = await door.list_tools()
    assert search_docs.description == (
        "Search the Acme documentation. Use this to find relevant documentation, guides, or API references."
    )
    assert search_docs.input_schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "query": {
                "type": "string",
                "description": "The search query (e.g., 'how to paginate', 'RateLimitError').",
            },
            "limit": {
                "type": "integer",
                "description": "Maximum number of results to return. Default is 10.",
                "minimum": 1,
                "maximum": 50,
                "default": 10,
            },
            "cursor": {
                "type": "string",
                "description": "Opaque pagination token returned from a previous search. Omit for the first page. "
                "Returns an error if invalid or malformed.",
            },
            "language": {"type": "string", "description": "The language of the SDK.", "enum": ["go", "python"]},
            "scope": {
                "type": "string",
                "description": "Filter results by scope.",
                "enum": ["global-guide", "sdk-specific"],
            },
        },
        "required": ["query"],
    }
    assert get_doc.input_schema["additionalProperties"] is False
    assert get_doc.input_schema["required"] == ["chunk_id"]
    assert get_doc.input_schema["properties"]["context"] == {
        "type": "integer",
        "description": "Number of adjacent chunks to include before and after the target chunk. Default is 0. "
        "Use this to read the surrounding file context.",
        "minimum": 0,
        "maximum": 5,
        "default": 0,
    }


@proves("docs.search.answer")
async def test_a_hit_has_every_printed_field(door: Door) -> None:
    answer = await door.call("search_docs", {"query": WAITING, "limit": 2})
    result = payload(answer)
    structured = answer.structured_content
    assert structured
    highlights = [hit.pop("highlights") for hit in structured["hits"]]
    assert structured == result
    assert answer.content[0].text.startswith('{\n  "hits"')  # type: ignore[union-attr]
    assert set(result) == {"hits", "next_cursor", "hint"}
    assert result["hint"] is None
    first = result["hits"][0]
    assert first["chunk_id"] == BEST_HITS[WAITING]
    assert (first["heading"], first["breadcrumb"]) == ("Backoff Strategy", "Retries > Backoff Strategy")
    assert (first["filepath"], first["metadata"]) == ("guides/retries.md", {"scope": "global-guide"})
    assert first["snippet"] == "Backoff Strategy The SDK waits longer each time."
    assert [first["snippet"][start:end] for start, end in highlights[0]] == ["waits"]
    assert 1 >= result["hits"][0]["score"] >= result["hits"][1]["score"] >= 0


@proves("docs.search.meaning")
async def test_meaning_finds_what_words_miss(door: Door) -> None:
    assert (await search(door, REIMBURSED))["hits"][0]["chunk_id"] == BEST_HITS[REIMBURSED]


def test_best_hits_have_a_clear_margin(tmp_path: Path) -> None:
    for embedder in noisy_variants(MiniLm(), NOISY_VARIANTS):
        assert best_hits(build_sample_docs(tmp_path, embedder), embedder) == BEST_HITS


def best_hits(index: Path, embedder: Embedder) -> dict[str, str | None]:
    corpus = DocsCorpus(index, lambda _: embedder)
    pages = {query: corpus.search(query, {}, 0, 1).hits for query in BEST_HITS}
    corpus.close()
    return {query: hits[0].head.id if hits else None for query, hits in pages.items()}


@proves("docs.search.filters")
async def test_filters_hold_and_a_language_lets_guides_in(door: Door) -> None:
    only = await search(door, "client timeout", language="python", scope="sdk-specific")
    assert {hit["metadata"]["language"] for hit in only["hits"]} == {"python"}
    wide = await search(door, "client timeout retries invoices", language="python")
    seen = {(hit["metadata"].get("language"), hit["metadata"]["scope"]) for hit in wide["hits"]}
    assert seen == {("python", "sdk-specific"), (None, "global-guide")}


@proves("docs.search.collapse")
async def test_language_variants_collapse_unless_asked_for(door: Door) -> None:
    hits = [hit["chunk_id"] for hit in (await search(door, "NewClient creates a client"))["hits"]]
    assert len([name for name in hits if name.endswith("client.md#client/newclient")]) == 1
    asked = await search(door, "NewClient creates a client", language="go")
    assert asked["hits"][0]["chunk_id"] == "sdk/go/client.md#client/newclient"


@proves("docs.search.cursor")
async def test_pages_follow_each_other_without_gaps(door: Door) -> None:
    everything = [hit["chunk_id"] for hit in (await search(door, "client retries errors", limit=50))["hits"]]
    seen: list[str] = []
    cursor = None
    for _ in range(20):
        page = await search(door, "client retries errors", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [hit["chunk_id"] for hit in page["hits"]]
        if (cursor := page["next_cursor"]) is None:
            break
    assert seen == everything
    assert len(set(seen)) == len(seen) > 4


@proves("docs.search.cursor-invalid")
async def test_cursors_fit_only_their_own_query(door: Door) -> None:
    cursor = (await search(door, "client", limit=1))["next_cursor"]
    other = "Invalid cursor: does not match current query or filters"
    assert await refusal(door, "search_docs", {"query": "errors", "cursor": cursor}) == other
    assert await refusal(door, "search_docs", {"query": "client", "cursor": cursor, "language": "go"}) == other
    damaged = cursor[:-3] + ("AAA" if cursor[-3:] != "AAA" else "BBB")
    assert (await refusal(door, "search_docs", {"query": "client", "cursor": damaged})).startswith("Invalid cursor: ")
    malformed = "Invalid cursor: malformed JSON payload"
    assert await refusal(door, "search_docs", {"query": "client", "cursor": "%%%"}) == malformed
    expected = "Invalid cursor: expected a search cursor payload"
    assert await refusal(door, "search_docs", {"query": "client", "cursor": "WzFd"}) == expected


@proves("docs.search.errors")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "query must be a non-empty string"),
        ({"query": "  "}, "query must be a non-empty string"),
        ({"query": 5}, "query must be a non-empty string"),
        ({"query": "a", "limit": "5"}, "limit must be an integer"),
        ({"query": "a", "limit": 2.5}, "limit must be an integer"),
        ({"query": "a", "limit": 0}, "limit must be between 1 and 50"),
        ({"query": "a", "limit": 51}, "limit must be between 1 and 50"),
        ({"query": "a", "foo": 1}, "Unexpected field 'foo'"),
        (
            {"query": "a", "language": "ruby"},
            "Invalid taxonomy value for 'language': 'ruby'. Allowed values: go, python",
        ),
        ({"query": "a", "cursor": 5}, "cursor must be a string"),
    ],
)
async def test_wrong_arguments_of_search_are_told_in_words(door: Door, arguments: dict[str, Any], message: str) -> None:
    assert await refusal(door, "search_docs", arguments) == message


@proves("docs.get.answer")
async def test_a_chunk_comes_with_its_neighbours(door: Door) -> None:
    target = "guides/retries.md#retries/backoff-strategy"
    alone = await door.call("get_doc", {"chunk_id": target})
    assert alone.content[0].text == (  # type: ignore[union-attr]
        f"--- Chunk: {target} (Chunk 2 of 3) (Target) ---\n## Backoff Strategy\nThe SDK waits *longer* each time."
    )
    assert alone.structured_content is None
    around = await door.call("get_doc", {"chunk_id": target, "context": 5})
    assert around.content[0].text == (  # type: ignore[union-attr]
        "--- Chunk: guides/retries.md#_preamble (Chunk 1 of 3) (Context: -1) ---\n"
        "# Retries\nHow to configure retries.\n\n"
        f"--- Chunk: {target} (Chunk 2 of 3) (Target) ---\n## Backoff Strategy\nThe SDK waits *longer* each time.\n\n"
        "--- Chunk: guides/retries.md#retries/jitter (Chunk 3 of 3) (Context: +1) ---\n"
        "## Jitter\nRandom delays prevent thundering herds."
    )


@proves("docs.get.errors")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"chunk_id": "a.md#no"}, "Chunk ID 'a.md#no' not found. Use search_docs to discover valid chunk IDs."),
        (
            {"chunk_id": "a#b#c"},
            "Chunk ID 'a#b#c' has invalid format. Expected {filepath} or {filepath}#{heading-path}.",
        ),
        ({"chunk_id": ""}, "chunk_id must be a non-empty string"),
        ({"chunk_id": "a", "context": 6}, "context must be between 0 and 5"),
        ({"chunk_id": "a", "context": "1"}, "context must be an integer"),
        ({"chunk_id": "a", "x": 1}, "Unexpected field 'x'"),
    ],
)
async def test_wrong_arguments_of_get_are_told_in_words(door: Door, arguments: dict[str, Any], message: str) -> None:
    assert await refusal(door, "get_doc", arguments) == message


@proves("docs.search.hint")
async def test_nothing_found_comes_with_a_hint(index: Path) -> None:
    async with DOORS["memory-2026"]([docs(index)]) as door:
        nothing = await search(door, "xyzzyqwe")
        elsewhere = await search(door, "RateLimitError", language="go", scope="sdk-specific")
    assert (nothing["hits"], nothing["next_cursor"]) == ([], None)
    assert nothing["hint"] == {
        "message": "0 results found. No matches were found for this query in the indexed corpus.",
        "suggested_filters": {},
    }
    assert elsewhere["hint"] == {
        "message": "0 results found for query 'RateLimitError' with filters language='go', scope='sdk-specific'.",
        "suggested_filters": {"language": ["python"]},
    }


@proves("docs.search.hint.meaning")
async def test_hints_come_with_vectors_on_too(door: Door) -> None:
    nothing = await search(door, NONSENSE)
    assert nothing["hits"] == []
    assert nothing["hint"]["message"].startswith("0 results found. No matches were found for this query")
    misspelt = await search(door, MISSPELLED)
    assert misspelt["hint"]["message"].endswith("Did you mean: jitter?")
    elsewhere = await search(door, "RateLimitError", language="go", scope="sdk-specific")
    assert elsewhere["hint"]["suggested_filters"] == {"language": ["python"]}


@proves("docs.get.nearest")
async def test_a_miss_lists_what_was_perhaps_meant(door: Door) -> None:
    wrong = await refusal(door, "get_doc", {"chunk_id": "guides/retries.md#retries/jiter"})
    text = "Chunk ID 'guides/retries.md#retries/jiter' not found. Use search_docs to discover valid chunk IDs."
    assert wrong == f"{text}\nNearest IDs: guides/retries.md#retries/jitter"
    bare = await refusal(door, "get_doc", {"chunk_id": "guides/retries.md"})
    assert bare.endswith(
        "\nNearest IDs: guides/retries.md#_preamble, guides/retries.md#retries/backoff-strategy, "
        "guides/retries.md#retries/jitter"
    )
    other = await refusal(door, "get_doc", {"chunk_id": "retries.md#jitter"})
    assert other.endswith("\nNearest IDs: guides/retries.md#_preamble")


@proves("docs.resources")
async def test_marked_files_are_resources(index: Path) -> None:
    async with Client(BedstoneServer("docs", [docs(index)]), mode=HANDSHAKE) as client:
        listed = (await client.list_resources()).resources
        assert [(item.uri, item.mime_type, item.title) for item in listed] == [
            ("docs:///guides/billing%20notes.md", "text/markdown", "Guides / Billing notes"),
            ("docs:///guides/retries.md", "text/markdown", "Guides / Retries"),
        ]
        spaced = (await client.read_resource(listed[0].uri)).contents[0]
        assert spaced.text.startswith("Invoices are sent monthly.")  # type: ignore[union-attr]
        contents = (await client.read_resource("docs:///guides/retries.md")).contents[0]
        assert contents.text.startswith("# Retries\nHow to configure retries.\n\n## Backoff Strategy\n")  # type: ignore[union-attr]
        for uri, message in {
            "docs:///sdk/go/client.md": "Resource not found: docs:///sdk/go/client.md",
            "docs:///%2e%2e/secret.md": "Resource not found: docs:///%2e%2e/secret.md",
            "docs:///../secret.md": "Resource not found: docs:///../secret.md",
            "http://example.com/": "Invalid URI scheme: http:. Expected 'docs:'",
        }.items():
            with pytest.raises(MCPError, match=re.escape(message)):
                await client.read_resource(uri)


@proves("docs.prompts")
async def test_templates_are_prompts(index: Path) -> None:
    async with Client(BedstoneServer("docs", [docs(index)]), mode=HANDSHAKE) as client:
        ask, talk = (await client.list_prompts()).prompts
        assert (ask.name, ask.title, ask.description) == ("guides/ask", "Ask", "Asks.")
        assert [(item.name, item.required) for item in ask.arguments or []] == [("topic", True), ("tone", False)]
        assert talk.name == "guides/talk"
        (message,) = (await client.get_prompt("guides/ask", {"topic": "<b>", "tone": "x"})).messages
        assert (message.role, message.content.text) == ("user", "Tell me about <b> & x.")  # type: ignore[union-attr]
        messages = (await client.get_prompt("guides/talk", {"name": "Ada"})).messages
        assert [item.role for item in messages] == ["user", "assistant"]
        with pytest.raises(MCPError, match="Missing required prompt argument 'topic'"):
            await client.get_prompt("guides/ask", {})
        with pytest.raises(MCPError, match="Prompt 'nope' not found"):
            await client.get_prompt("nope", {})


@proves("docs.search.names")
async def test_names_and_descriptions_come_from_prefix_and_build(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.md").write_text("# A\n")
    described = ("--tool-description-search", "Look it up.", "--mcp-server-instructions", "Be kind.")
    bedstone("docs", "build", source, "--out", tmp_path / "index", "--embedding-provider", "hash", *described)
    options = ("--index-dir", str(tmp_path / "index"), "--tool-prefix", "acme", "--name", "acme-docs")
    weights = ("--phrase-slop", "2", "--proximity-weight", "2", "--vector-weight", "0.5")
    async with stdio_client(HANDSHAKE, "serve", "--toolsets", "docs", *options, *weights) as client:
        tools = {item.name: item.description for item in (await client.list_tools()).tools}
        assert list(tools) == ["acme_search_docs", "acme_get_doc"]
        assert tools["acme_search_docs"] == "Look it up."
        assert client.instructions == "Be kind."
        assert client.server_info
        assert client.server_info.name == "acme-docs"
        hit = payload(await client.call_tool("acme_search_docs", {"query": "A"}))["hits"][0]
        assert hit["chunk_id"] == "a.md#_preamble"
    refused = bedstone("serve", "--toolsets", "docs", "--docs-index", tmp_path / "index", "--tool-prefix", "a b")
    assert "Invalid docs.tool_prefix. Use up to 52 letters" in refused.stderr


@proves("docs.search.corpora")
async def test_several_corpora_in_one_server(index: Path, tmp_path: Path) -> None:
    source = tmp_path / "more"
    source.mkdir()
    (source / "jitter.md").write_text("# Jitter in audio\n\nJitter of a clock.\n")
    other = tmp_path / "audio"
    bedstone("docs", "build", source, "--out", other, "--description", "Audio handbook", "--embedding-provider", "none")
    arguments = ("serve", "--toolsets", "docs", "--docs-index", str(index), "--docs-index", str(other))
    async with stdio_client(HANDSHAKE, *arguments) as client:
        tools = (await client.list_tools()).tools
        assert tools[0].description
        assert tools[0].description.startswith("Search the Acme documentation and Audio handbook.")
        assert tools[0].input_schema["properties"]["corpus"]["enum"] == ["audio", "index"]
        hits = payload(await client.call_tool("search_docs", {"query": "jitter"}))["hits"]
        assert {hit["filepath"] for hit in hits[:2]} == {"audio/jitter.md", "index/guides/retries.md"}
        only = payload(await client.call_tool("search_docs", {"query": "jitter", "corpus": "audio"}))["hits"]
        assert [hit["metadata"] for hit in only] == [{"corpus": "audio"}]
        text = (await client.call_tool("get_doc", {"chunk_id": only[0]["chunk_id"]})).content[0]
        assert text.text.startswith("--- Chunk: audio/jitter.md#_preamble (Chunk 1 of 1) (Target) ---")  # type: ignore[union-attr]


@proves("docs.swap", "docs.search.cursor-stale")
async def test_a_newer_index_is_served_without_a_restart(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "index"
    source.mkdir()
    for name in ("a", "b", "c"):
        (source / f"{name}.md").write_text(f"# Title {name}\n\nold words\n")
    build = ("docs", "build", source, "--out", built, "--embedding-provider", "none")
    bedstone(*build)
    toolset = docs(built)
    told = anyio.Event()

    async def listen() -> None:
        told.set()

    toolset.on_tools_changed(listen)
    async with toolset.opened():
        first = payload_of(await toolset.call("search_docs", {"query": "old words", "limit": 1}))
        (source / "a.md").write_text("---\nmetadata:\n  kind: fresh\n---\n# Title a\n\nnew words\n")
        await anyio.to_thread.run_sync(lambda: bedstone(*build))
        with anyio.fail_after(10):
            await told.wait()
        assert toolset.tools["search_docs"].input_schema["properties"]["kind"]["enum"] == ["fresh"]
        found = payload_of(await toolset.call("search_docs", {"query": "new words", "kind": "fresh"}))
        assert [hit["chunk_id"] for hit in found["hits"]] == ["a.md#_preamble"]
        stale = await toolset.call("search_docs", {"query": "old words", "limit": 1, "cursor": first["next_cursor"]})
        assert stale.is_error
        assert "Invalid cursor: the index has changed since" in stale.text


def payload_of(reply: Reply) -> Any:
    return json.loads(reply.text)


@proves("docs.watch")
async def test_a_folder_is_served_and_followed(tmp_path: Path) -> None:
    source = tmp_path / "handbook"
    source.mkdir()
    (source / "a.md").write_text("# Alpha\n\nfirst words\n")
    arguments = ("serve", "--toolsets", "docs", "--docs-dir", str(source), "--watch", "--data-dir", str(tmp_path / "d"))
    async with stdio_client(HANDSHAKE, *arguments) as client:

        async def found(query: str) -> list[str]:
            answer = payload(await client.call_tool("search_docs", {"query": query}))
            return [hit["chunk_id"] for hit in answer["hits"]]

        assert await found("first words") == ["a.md#_preamble"]
        (source / "b.md").write_text("# Beta\n\nsecond helping of porridge\n")
        with anyio.fail_after(20):
            while "b.md#_preamble" not in await found("porridge"):  # noqa: ASYNC110
                await anyio.sleep(0.2)
    assert (tmp_path / "d" / "served" / "handbook" / "metadata.json").exists()


@proves("docs.serve")
async def test_build_and_serve_from_the_command_line(index: Path, tmp_path: Path) -> None:
    source = index.parent / "source"
    built = bedstone("docs", "build", source, "--out", tmp_path / "index", "--embedding-provider", "none")
    assert "Indexed 11 chunks from 5 files" in built.stdout
    again = bedstone("docs", "build", source, "--out", tmp_path / "index", "--embedding-provider", "none")
    assert "(0 changed, 0 removed)" in again.stdout
    arguments = ("serve", "--toolsets", "docs", "--docs-index", str(tmp_path / "index"))
    async with stdio_client(HANDSHAKE, *arguments) as client:
        assert client.server_info
        assert client.server_info.name == "docs"
        assert client.instructions == "Prefer guides."
        answer = await client.call_tool("search_docs", {"query": "jitter"})
    assert payload(answer)["hits"][0]["chunk_id"] == "guides/retries.md#retries/jitter"


@proves("docs.build.incremental")
def test_a_build_reads_only_what_changed(index: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("a", "b", "c"):
        (source / f"{name}.md").write_text(f"# {name}\n")

    def build() -> Any:
        return DocsBuilder(source, tmp_path / "index", None, BuildOptions(), lambda *_: None).build()

    assert (build().changed, build().changed) == (3, 0)
    (source / "a.md").write_text("# other\n")
    (source / "b.md").unlink()
    (source / "binary.md").write_bytes(b"\xff\xfe\x00")
    (source / "loop").symlink_to(source)
    (source / "broken.md").write_text("---\ntitle: [\n---\n")
    report = build()
    assert (report.files, report.changed, report.removed) == (3, 2, 1)
    assert [warning.partition(":")[0] for warning in report.warnings] == ["binary.md", "broken.md"]
    (source / ".docs-mcp.json").write_text('{"version": "1", "metadata": {"language": "go"}}')
    assert build().changed == 3
    (source / ".docs-mcp.json").write_text('{"version": "1", "metadata": {"language": ""}}')
    warnings = build().warnings
    assert [text for text in warnings if "manifest" in text] == [
        ".docs-mcp.json: manifest.metadata.language cannot be empty"
    ]
