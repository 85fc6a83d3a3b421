"""search, fetch and cite where it gets odd: long answers, slow sources, names with every character, closed schemas."""

import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bedstone.app import App, build_toolset, open_app
from bedstone.search.hits import Snippet
from bedstone.server.tools import definition
from bedstone.services.catalog import FoundItem
from bedstone.services.docs.builder import BuildOptions, DocsBuilder
from bedstone.services.everything import service as everything
from bedstone.services.everything.folding import rank
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.services.schema.service import SchemaService
from bedstone.settings import Settings
from bedstone.toolkit.strict import strict_schema

SECTIONS = 60
WORDS = ("harbour", "gravel", "lantern", "meadow", "pepper", "quarry", "saddle", "timber", "velvet", "willow", "anchor")
ODD_NAMES = ("100% #1 plan?.md", "notes~0f0bbaff.txt", "Zürich & Genève.txt", "it's (a) copy; v=1,2.txt", "doc:x.txt")
ODD_PATHS = ("c#/notes.md", "guides/100% sure?.md", "guides/übersicht & co.md")
OBJECTS = 80


@asynccontextmanager
async def serving(folder: Path, *toolsets: str, **sections: Any) -> AsyncIterator[App]:
    given = {"data_dir": folder / "data", "toolsets": ["everything", *toolsets], "embedding": {"provider": "none"}}
    async with open_app(Settings.model_validate(given | sections)) as app:
        yield app


async def ask(app: App, name: str, **arguments: Any) -> dict[str, Any]:
    reply = await app.toolsets["everything"].call(name, arguments)
    assert not reply.is_error, reply.text
    assert isinstance(reply.payload, dict)
    return reply.payload


async def add(app: App, *files: Path) -> None:
    base: KnowledgeBase = await app.services["knowledge"].open()
    for file in files:
        base.wait(base.add(file).id)


def long_text() -> str:
    """Sections that all mention a walrus, each with other words around it."""
    parts = ["# Walrus book\n"]
    for number in range(SECTIONS):
        words = " ".join(f"{WORDS[(number * 7 + place) % len(WORDS)]}{number}" for place in range(90))
        parts.append(f"## Chapter {number}\n\nThe walrus of chapter {number} sleeps on {words}.\n")
    return "\n".join(parts)


@pytest.mark.parametrize(("detail", "characters"), [("concise", 20_000), ("full", 60_000)])
async def test_an_answer_has_a_budget_and_counts_what_does_not_fit(
    tmp_path: Path, detail: str, characters: int
) -> None:
    book = tmp_path / f"{'a-long-name-' * 18}.md"
    book.write_text(long_text())
    async with serving(tmp_path, "knowledge", mcp={"public_url": "https://kb.example.org"}) as app:
        await add(app, book)
        answer = await ask(app, "search", query="walrus", limit=50, detail=detail)
        few = await ask(app, "search", query="walrus", limit=3, detail=detail)
    shown = answer["results"]
    assert len(json.dumps(shown, ensure_ascii=False, separators=(",", ":"))) <= characters + 2 * len(shown) + 2
    assert len(shown) + int(answer["notice"].split(maxsplit=1)[0]) == 50
    assert "do not fit into this answer" in answer["notice"]
    assert len(few["results"]) == 3
    assert "notice" not in few


async def test_a_source_that_does_not_answer_in_time_is_named_and_the_others_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "walrus.md").write_text("# Walrus\n\nThe walrus sleeps.\n")
    DocsBuilder(tmp_path / "guide", tmp_path / "index", None, BuildOptions(), lambda *_: None).build()
    (tmp_path / "hours.txt").write_text("The walrus house opens at nine.")
    monkeypatch.setattr(everything, "SOURCE_SECONDS", 1.0)
    sections = {"docs": {"index": [tmp_path / "index"]}, "kb": {"file_path": tmp_path / "hours.txt"}}
    async with serving(tmp_path, "docs", "kb", **sections) as app:
        docs = await app.services["docs"].open()
        with held(docs._lock):  # noqa: SLF001 - as while the library is opened
            answer = await ask(app, "search", query="walrus")
        again = await ask(app, "search", query="walrus")
    assert [hit["source"] for hit in answer["results"]] == ["Knowledge file"]
    assert "Documentation could not be searched: It did not answer within 1 seconds." in answer["notice"]
    assert {hit["source"] for hit in again["results"]} == {"Knowledge file", "Documentation"}


class held:  # noqa: N801 - reads as a word in `with`
    """Holds a lock in a thread of its own."""

    def __init__(self, lock: Any) -> None:
        self._lock, self._taken, self._done = lock, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def _hold(self) -> None:
        with self._lock:
            self._taken.set()
            self._done.wait(30)

    def __enter__(self) -> None:
        self._thread.start()
        assert self._taken.wait(10)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join(10)


async def test_ids_of_files_with_odd_names_hold_across_restarts(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for number, name in enumerate(ODD_PATHS):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        text = f"# Guide {number}\n\nPreface of guide {number}.\n\n## Tides\n\nThe walrus of guide {number} naps.\n"
        (source / name).write_text(f"{text}\n## Winds\n\nGuide {number} has a gale from the north.\n")
    DocsBuilder(source, tmp_path / "index", None, BuildOptions(), lambda *_: None).build()
    files = []
    for number, name in enumerate(ODD_NAMES):
        files.append(tmp_path / name)
        files[-1].write_text(f"The walrus of file {number} swims.")
    sections = {"docs": {"index": [tmp_path / "index"]}, "mcp": {"public_url": "https://kb.example.org"}}
    async with serving(tmp_path, "knowledge", "docs", **sections) as app:
        await add(app, *files)
        first = {hit["id"]: hit for hit in (await ask(app, "search", query="walrus", limit=50))["results"]}
    async with serving(tmp_path, "knowledge", "docs", **sections) as app:
        again = {hit["id"]: hit for hit in (await ask(app, "search", query="walrus", limit=50))["results"]}
        assert set(again) == set(first)
        assert len(first) == len(ODD_NAMES) + len(ODD_PATHS)
        for item_id, hit in first.items():
            fetched = await ask(app, "fetch", id=item_id)
            assert "walrus" in fetched["text"]
            number = hit["snippet"].split(" of ")[1].split()[1]
            quote = f"walrus of {'guide' if item_id.startswith('docs:') else 'file'} {number}"
            assert (await ask(app, "cite", id=item_id, quote=quote))["confirmed"]
            if item_id.startswith("docs:"):  # elsewhere in the file of a section
                assert (await ask(app, "cite", id=item_id, quote=f"Guide {number} has a gale"))["confirmed"]


async def test_the_best_field_is_found_however_few_results_are_wanted(tmp_path: Path) -> None:
    """Many objects have a field with the same name: only its object tells which one is meant."""
    folder = tmp_path / "describes"
    folder.mkdir()
    for name in [f"Thing{number}" for number in range(OBJECTS)] + ["Warranty_Claim__c"]:
        label = name.removesuffix("__c").replace("_", " ")
        names = [("Id", f"{label} ID", "id"), ("OwnerId", "Owner ID", "reference"), ("Name", f"{label} Name", "string")]
        fields = [{"name": field, "label": text, "type": kind} for field, text, kind in names]
        (folder / f"{name}.json").write_text(
            json.dumps({"name": name, "label": label, "labelPlural": f"{label}s", "fields": fields})
        )
    async with serving(tmp_path, "salesforce_graph") as app:
        schemas: SchemaService = await app.services["salesforce_graph"].open()
        schemas.import_folder("demo", folder)
        for limit in (1, 3, 50):
            found = (await ask(app, "search", query="OwnerId of a warranty claim", limit=limit))["results"]
            assert found[0]["id"] == "field:Warranty_Claim__c.OwnerId", limit


def test_a_hit_without_a_score_is_not_called_strong() -> None:
    items = [FoundItem(str(score), "", "", "", Snippet(f"text {score}"), "", score) for score in (0.9, None, 0.3)]
    hits = rank(("diary", item) for item in items)
    assert [(hit.item.id, hit.band) for hit in hits] == [("0.9", "strong"), ("None", "good"), ("0.3", "good")]


def test_no_schema_has_a_boolean_where_some_adapters_expect_a_schema() -> None:
    tools = build_toolset("everything", Settings.model_validate({})).tools.values()
    for tool in tools:
        for listed in (definition(tool), definition(tool, strict_schema(tool.input_schema))):
            for schema in (listed.input_schema, listed.output_schema):
                assert not any(isinstance(value, bool) for value in additional(schema)), tool.name


def additional(node: Any) -> Iterator[Any]:
    """Yield every `additionalProperties` in a schema."""
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    if isinstance(node, dict) and "additionalProperties" in node:
        yield node["additionalProperties"]
    for child in children:
        yield from additional(child)
