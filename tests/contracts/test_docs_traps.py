"""Documentation as it is written: no page gets lost, and what is skipped or unused is said."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import mcp_types as wire
import pytest
from mcp import Client
from mcp.client.subscriptions import ServerEvent
from mcp.server.subscriptions import PromptsListChanged

from bedstone.app import make_services
from bedstone.services.docs.service import DocsService
from bedstone.services.service import Handle
from bedstone.settings import Settings
from bedstone.toolsets.docs.toolset import DocsToolset
from contracts.requirements import proves
from support.doors import DOORS, MODERN, Door, payload, serving
from support.processes import bedstone
from support.trap_docs import FOUND, PAGES, SVELTE_TITLE, write_pages

NO_VECTORS = ("--embedding-provider", "none")


@dataclass(frozen=True)
class Built:
    """A corpus, and what the build said about it."""

    source: Path
    index: Path
    report: dict[str, Any]

    def reasons(self, kind: str) -> dict[str, str]:
        return {item["path"]: item["reason"] for item in self.report[kind]}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    root = tmp_path_factory.mktemp("traps")
    source, index = write_pages(root / "source", PAGES), root / "index"
    (root / "outside").mkdir()
    (root / "outside" / "passwd.md").write_text("# Passwords\n\nroot:x:0:0 secret\n")
    (source / "link.md").symlink_to(root / "outside" / "passwd.md")
    (source / "folder").symlink_to(root / "outside")
    (source / "site" / "loop").symlink_to(source)
    (source / "alias.md").symlink_to(source / "README.md")
    (source / "odd\nname.md").write_text("# Odd\n")
    done = bedstone("docs", "build", source, "--out", index, *NO_VECTORS, "--json")
    assert done.returncode == 0, done.stderr
    return Built(source, index, json.loads(done.stdout))


def serve(index: Path, *, is_semantic: bool = False) -> DocsToolset:
    embedders = make_services(Settings()).context.embedders
    return DocsToolset(Handle.of(DocsService([index], embedders.get if is_semantic else None)))


@pytest.fixture
async def door(built: Built) -> AsyncIterator[Door]:
    async with DOORS["memory-2026"]([serve(built.index)]) as door:
        yield door


async def search(door: Door, query: str, **arguments: Any) -> Any:
    return payload(await door.call("search_docs", {"query": query, **arguments}))


async def read(door: Door, chunk_id: str) -> str:
    answer = await door.call("get_doc", {"chunk_id": chunk_id})
    text: str = answer.content[0].text  # type: ignore[union-attr]
    return text


@proves("docs.build.complete")
async def test_every_page_is_found_whatever_its_front_matter_says(door: Door) -> None:
    found = {word: (await search(door, word))["hits"][0]["filepath"] for word in FOUND}
    assert found == FOUND
    (hit,) = (await search(door, "marmalade"))["hits"]
    assert hit["breadcrumb"] == SVELTE_TITLE
    (hit,) = (await search(door, "gooseberry", version="1.20"))["hits"]
    assert (hit["heading"], hit["metadata"]) == ("1.20", {"version": "1.20", "since": "2024-01-05"})
    assert (await search(door, "hidden"))["hits"] == []
    assert (await search(door, "secret"))["hits"] == []


@proves("docs.build.complete")
def test_a_build_names_every_page_with_problems(built: Built) -> None:
    problems = built.reasons("problems")
    assert {path for path, item in problems.items() if "YAML" in item} == {"syntax/if.md", "syntax/quoted.md"}
    assert problems["syntax/if.md"].endswith("used only: title")
    assert problems["syntax/nested.md"] == "metadata.tags ignored: the value must be a string that is not empty"
    assert problems["syntax/strategy.md"] == "strategy must be an object"
    assert problems["codes/latin.md"] == "not UTF-8; decoded as cp1252"
    assert problems["broken/page.md"].startswith("indexed without its manifest (broken/.docs-mcp.json: chunk_by")
    lost = {item["path"]: item["reason"] for item in built.report["problems"] if not item["is_indexed"]}
    assert lost == {
        "folder/": "a link out of the documents folder, not followed",
        "link.md": "a link out of the documents folder, not followed",
        "lost/binary.md": "not a text file (contains NUL bytes)",
        "lost/deep.html": "The page is nested too deeply.",
        "odd\ufffdname.md": "the name of the file has characters that cannot be printed",
    }
    assert built.report["problem_pages"] == len(problems) == 11


@proves("docs.build.ignored")
def test_a_build_says_what_it_skips(built: Built) -> None:
    assert built.reasons("skipped") == {
        "LICENSE.md": "ignored by built-in patterns",
        "codes/empty.md": "no text",
        "drafts/": "ignored by .gitignore",
        "guides/notes.ipynb": "format not supported (.ipynb)",
        "internal/secret.md": "ignored by .bedstoneignore",
        "node_modules/pkg/README.md": "ignored by built-in patterns",
        "only-here.md": "ignored by .gitignore",
        "site/loop/": "a link to a folder that is indexed elsewhere",
        "site/note.tmp.md": "ignored by .gitignore",
        "vendor/": "ignored by built-in patterns (packages of others)",
    }


@proves("docs.build.complete")
def test_a_strict_build_fails_while_a_page_has_problems(tmp_path: Path) -> None:
    source = write_pages(tmp_path / "source", {"a.md": "---\ntitle: {#if}\n---\n\nText.\n", "b.md": "# B\n"})
    build = ("docs", "build", source, "--out", tmp_path / "index", *NO_VECTORS)
    lenient = bedstone(*build)
    assert (lenient.returncode, lenient.stdout.splitlines()[-1][:22]) == (0, "1 page with problems: ")
    assert "Warning: a.md: front matter is not valid YAML" in lenient.stderr
    again = bedstone(*build, "--strict")  # nothing changed, and nothing was fixed
    assert (again.returncode, "(0 changed, 0 removed)" in again.stdout) == (1, True)
    assert bedstone("docs", "validate", source).returncode == 1
    (source / "a.md").write_text("---\ntitle: '{#if}'\n---\n\nText.\n")
    fixed = bedstone(*build, "--strict")
    assert (fixed.returncode, fixed.stdout.splitlines()[-1]) == (0, "0 pages with problems.")


@proves("docs.build.ignored")
def test_nested_ignore_files_and_negations(tmp_path: Path) -> None:
    pages: dict[str, str | bytes] = {
        ".gitignore": "*.txt\n# comment\n\\#odd.md\nbuild/\ndeep/**/x.md\n",
        "a/.gitignore": "!keep.txt\n/top.md\n",
        "a/keep.txt": "kept\n",
        "a/drop.txt": "dropped\n",
        "a/top.md": "# T\n",
        "a/b/top.md": "# T\n",
        "b/keep.txt": "dropped\n",
        "build/.bedstoneignore": "!page.md\n",
        "build/page.md": "# Ignored with its folder\n",
        "#odd.md": "# Odd\n",
        "deep/one/two/x.md": "# X\n",
        "deep/one/two/y.md": "# Y\n",
        ".bedstoneignore": "!LICENSE.md\n!vendor/\n",
        "LICENSE.md": "# Wanted\n",
        "go.mod": "",
        "vendor/v.md": "# V\n",
    }
    source = write_pages(tmp_path / "source", pages)
    done = bedstone("docs", "build", source, "--out", tmp_path / "index", *NO_VECTORS)
    assert "Skipped 6 files and folders:" in done.stdout
    metadata = json.loads((tmp_path / "index" / "metadata.json").read_text())
    assert sorted(metadata["files"]) == ["LICENSE.md", "a/b/top.md", "a/keep.txt", "deep/one/two/y.md", "vendor/v.md"]


@proves("docs.text")
async def test_markup_in_text_files_is_read(tmp_path: Path) -> None:
    pages: dict[str, str | bytes] = {
        "ref/settings.txt": "========\nSettings\n========\n\nSee :ref:`the\nguide <x>`.\n\n.. setting:: PUMP_SIZE\n\n"
        "``PUMP_SIZE``\n-------------\n\nDefault: ``3``\n\nClasses\n-------\n\n.. class:: Pump(size)\n\n"
        "   .. method:: start(force=False)\n\n      Starts it by :func:`go`.\n",
        "llms.txt": "# Acme\n\n## Pages\n\n- [Pumps](pumps.md)\n",
        "old/README": "Old pumps\n=========\n\n.. note::\n\n   Out of :term:`service`.\n",
        "letter.txt": "Dear Anna,\n\n# not a heading\n\nwe *do* have 3 pumps.\n",
    }
    source = write_pages(tmp_path / "source", pages)
    assert bedstone("docs", "build", source, "--out", tmp_path / "index", *NO_VECTORS).returncode == 0
    async with DOORS["memory-2026"]([serve(tmp_path / "index")]) as door:
        start, size, guide, letter, listed, bare = [
            (await search(door, query))["hits"][0]
            for query in ("start force", "PUMP_SIZE", "guide", "Anna", "Acme Pages", "service")
        ]
    assert start["chunk_id"] == "ref/settings.txt#settings/classes/class-pump/start"
    assert start["breadcrumb"] == "Settings > Classes > class Pump > start()"
    assert (size["heading"], guide["snippet"]) == ("PUMP_SIZE", "Settings See the guide.")
    assert (letter["heading"], "we *do* have" in letter["snippet"]) == ("", True)
    assert (bare["chunk_id"], bare["heading"]) == ("old/README#_preamble", "Old pumps")
    assert listed["chunk_id"] == "llms.txt#acme/pages"


@proves("docs.readable")
async def test_headings_and_snippets_are_as_people_read_them(door: Door) -> None:
    (hit,) = (await search(door, "tayberry"))["hits"]
    assert (hit["heading"], hit["breadcrumb"]) == ("Using one", "Hooks > Using one")
    assert hit["snippet"] == "Using one tip Read the rules of tayberry. import x from 'y';"
    assert hit["chunk_id"] == "site/hooks.mdx#using-one-use-hook"
    text = await read(door, hit["chunk_id"])
    assert await read(door, "site/hooks.mdx#use-hook") == text
    assert '## Using one {#use-hook}\n\n:::tip\nRead [the rules]({{< relref "rules.md" >}})' in text


@proves("docs.get.answer")
async def test_a_chunk_that_shows_delimiters_has_one_target(door: Door) -> None:
    (hit,) = (await search(door, "cranberry"))["hits"]
    text = await read(door, hit["chunk_id"])
    grammar = re.compile(r"--- Chunk: (.+?) \(Chunk (\d+) of (\d+)\) \((Target|Context: [+-]\d+)\) ---")
    assert grammar.findall(text) == [(hit["chunk_id"], "2", "2", "Target")]
    assert (text.count("(Target) ---"), text.count("\n--- Chunk: ")) == (1, 0)
    assert "--- Chunk\\: a.md#c (Chunk 2 of 2) (Context: +1) ---" in text


@proves("docs.search.errors")
async def test_null_stands_for_the_default(door: Door) -> None:
    with_null = await search(door, "of", limit=None, cursor=None, kind=None)
    assert with_null == await search(door, "of")
    assert len(with_null["hits"]) == 10
    chunk_id = with_null["hits"][0]["chunk_id"]
    answer = await door.call("get_doc", {"chunk_id": chunk_id, "context": None})
    assert answer.content == (await door.call("get_doc", {"chunk_id": chunk_id})).content
    assert (await door.call("search_docs", {"query": None})).is_error


LANGUAGES: dict[str, str | bytes] = {
    ".docs-mcp.json": json.dumps(
        {
            "version": "1",
            "overrides": [
                {"pattern": "go/**", "metadata": {"language": "go"}},
                {"pattern": "python/**", "metadata": {"language": "python"}},
            ],
        }
    ),
    "backoff.md": "# Backoff\n\nThe client waits longer after each attempt. Jitter is random.\n",
    "go/timeouts.md": "# Timeouts\n\nSet WithTimeout to limit the length of a request.\n",
    "python/billing.md": "# Billing\n\nInvoices are sent monthly, refunds take ten days.\n",
}


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("languages")
    source = write_pages(root / "source", LANGUAGES)
    assert bedstone("docs", "build", source, "--out", root / "index").returncode == 0
    return root / "index"


@proves("docs.search.filters", "docs.search.hint")
async def test_a_filter_keeps_every_hit_that_has_its_value(languages: Path) -> None:
    async with DOORS["memory-2026"]([serve(languages, is_semantic=True)]) as door:
        for query in ("jitter", "what about jitter", "how long may a request take", "money back"):
            for hit in (await search(door, query))["hits"]:
                for value in hit["metadata"].values():
                    filtered = await search(door, query, language=value)
                    assert hit["chunk_id"] in [item["chunk_id"] for item in filtered["hits"]]
        nothing = await search(door, "jitter", language="go")
    assert nothing["hits"] == []
    assert nothing["hint"]["message"].endswith("with filters language='go'. There are results without language.")


@proves("docs.search.hint")
@pytest.mark.parametrize("is_semantic", [True, False])
async def test_nonsense_with_a_stray_word_comes_with_a_hint(languages: Path, is_semantic: bool) -> None:
    async with DOORS["memory-2026"]([serve(languages, is_semantic=is_semantic)]) as door:
        nonsense = await search(door, "purple elephant attempt")
        sensible = await search(door, "refunds and invoices")
    assert nonsense["hint"]["message"].startswith("Probably nothing fits this query: the best score is ")
    assert "No page has: purple, elephant." in nonsense["hint"]["message"]
    assert (sensible["hint"], sensible["hits"][0]["filepath"]) == (None, "python/billing.md")


@proves("docs.description")
async def test_a_corpus_describes_itself(built: Built, tmp_path: Path) -> None:
    async with DOORS["memory-2026"]([serve(built.index)]) as door:
        description = (await door.list_tools())[0].description
    assert description == (
        "Search the Acme Pumps documentation: Acme Pumps moves water uphill (topics: Syntax, Codes, Site, Guides, "
        "Broken, Internal). Use this to find relevant documentation, guides, or API references."
    )
    pages: dict[str, str | bytes] = {"a.md": "# Valves\n", "b.md": "# Seals\n"}
    source, index = write_pages(tmp_path / "source", pages), tmp_path / "index"

    def described(*options: str) -> Any:
        bedstone("docs", "build", source, "--out", index, *NO_VECTORS, *options)
        return json.loads((index / "metadata.json").read_text())["corpus_description"]

    assert described() == "documentation (topics: Valves, Seals)"
    (source / "b.md").unlink()
    (source / "c.md").write_text("# Hoses\n")
    assert described() == "documentation (topics: Valves, Hoses)"
    assert described("--description", "Plumbing manual") == "Plumbing manual"
    assert described() == "Plumbing manual"


@pytest.fixture
def prompted(tmp_path: Path) -> tuple[Path, Path]:
    source = write_pages(tmp_path / "source", {"a.md": "# A\n", "ask.template.md": "Ask about pumps.\n"})
    bedstone("docs", "build", source, "--out", tmp_path / "index", *NO_VECTORS)
    return source, tmp_path / "index"


def add_prompt(source: Path, index: Path) -> None:
    (source / "tell.template.md").write_text("Tell about pumps.\n")
    bedstone("docs", "build", source, "--out", index, *NO_VECTORS)


@proves("docs.prompts.changed")
@pytest.mark.parametrize("name", ["memory-handshake", "websocket-handshake"])
async def test_handshake_clients_hear_of_new_prompts(name: str, prompted: tuple[Path, Path]) -> None:
    heard: list[Any] = []
    told = anyio.Event()

    async def listen(message: Any) -> None:
        heard.append(type(message))
        if isinstance(message, wire.PromptListChangedNotification):
            told.set()

    toolset = serve(prompted[1])
    async with toolset.opened(), DOORS[name]([toolset]) as door:
        client: Client = door.client  # type: ignore[attr-defined]
        client.session._message_handler = listen  # noqa: SLF001
        assert client.server_capabilities.prompts == wire.PromptsCapability(list_changed=True)
        assert [item.name for item in (await client.list_prompts()).prompts] == ["ask"]
        await anyio.to_thread.run_sync(add_prompt, *prompted)
        with anyio.fail_after(20):
            await told.wait()
        assert [item.name for item in (await client.list_prompts()).prompts] == ["ask", "tell"]
    assert wire.ToolListChangedNotification not in heard


@proves("docs.prompts.changed")
async def test_modern_clients_hear_of_new_prompts(prompted: tuple[Path, Path]) -> None:
    events: list[ServerEvent] = []
    toolset = serve(prompted[1])
    async with (
        toolset.opened(),
        serving([toolset]) as base,
        Client(f"{base}/mcp", mode=MODERN) as client,
        client.listen(prompts_list_changed=True) as stream,
    ):
        await anyio.to_thread.run_sync(add_prompt, *prompted)
        with anyio.fail_after(20):
            async for event in stream:
                events.append(event)
                break
    assert events == [PromptsListChanged()]
