"""Results say, once, that semantic search did not take part because the model cannot read the query."""

# ruff: noqa: RUF001 - punctuation of other scripts

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bedstone.app import App, open_app
from bedstone.search.embedder import Embedder
from bedstone.search.embedders import EMBEDDERS
from bedstone.search.language import KEYWORDS_ONLY
from bedstone.services.docs.builder import BuildOptions, DocsBuilder
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.settings import EmbeddingSettings, Settings

PAGES = {
    "duck.md": "# 鸭\n\n野鸭在浅水里觅食，以水草和谷粒为食。\n",
    "goose.md": "# 鹅\n\n鹅什么时候换羽取决于气候。\n",
    "ducks.md": "# Ducks\n\nWild ducks feed on water plants, snails and grain.\n",
}
QUESTION = "鸭子吃什么"
SEARCHES = {"search_docs": "docs", "knowledge-search": "knowledge", "search": "everything"}


async def open_with(folder: Path, provider: str) -> AsyncIterator[App]:
    pages = folder / "pages"
    pages.mkdir()
    for name, text in PAGES.items():
        (pages / name).write_text(text, encoding="utf-8")
    embedder: Embedder | None = None
    if provider != "none":
        embedder = EMBEDDERS.load(provider).from_settings(EmbeddingSettings(), None)
    DocsBuilder(pages, folder / "docs", embedder, BuildOptions(), lambda *_: None).build()
    given = {
        "data_dir": folder / "data",
        "toolsets": ["everything", "knowledge", "docs"],
        "docs": {"index": [folder / "docs"]},
        "embedding": {"provider": provider},
    }
    async with open_app(Settings.model_validate(given)) as app:
        base: KnowledgeBase = await app.services["knowledge"].open()
        for file in sorted(pages.iterdir()):
            base.wait(base.add(file).id)
        yield app


@pytest.fixture(scope="module")
async def minilm(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    async for app in open_with(tmp_path_factory.mktemp("minilm"), "minilm"):
        yield app


@pytest.fixture(scope="module")
async def multilingual(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    async for app in open_with(tmp_path_factory.mktemp("multilingual"), "use-multilingual"):
        yield app


@pytest.fixture(scope="module")
async def without_model(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[App]:
    async for app in open_with(tmp_path_factory.mktemp("none"), "none"):
        yield app


async def ask(app: App, tool: str, query: str) -> dict[str, Any]:
    reply = await app.toolsets[SEARCHES[tool]].call(tool, {"query": query})
    assert not reply.is_error, reply.text
    answer: dict[str, Any] = json.loads(reply.text)
    return answer


def found(answer: dict[str, Any]) -> list[Any]:
    hits: list[Any] = answer.get("hits") or answer.get("results") or []
    return hits


@pytest.mark.parametrize("tool", SEARCHES)
async def test_a_question_the_model_cannot_read_is_answered_by_keywords_and_the_result_says_so(
    minilm: App, tool: str
) -> None:
    answer = await ask(minilm, tool, QUESTION)
    assert "野鸭" in json.dumps(found(answer)[0], ensure_ascii=False)
    assert json.dumps(answer, ensure_ascii=False).count(KEYWORDS_ONLY) == 1
    assert answer["notice"] == KEYWORDS_ONLY


@pytest.mark.parametrize("tool", SEARCHES)
async def test_a_question_the_model_can_read_has_no_notice(minilm: App, tool: str) -> None:
    answer = await ask(minilm, tool, "what do ducks eat")
    assert found(answer)
    assert answer.get("notice") is None


@pytest.mark.parametrize("tool", SEARCHES)
async def test_nothing_is_said_of_a_model_that_is_switched_off(without_model: App, tool: str) -> None:
    answer = await ask(without_model, tool, QUESTION)
    assert found(answer)
    assert answer.get("notice") is None


@pytest.mark.parametrize("tool", SEARCHES)
async def test_a_multilingual_model_takes_part_and_finds_texts_in_another_language(
    multilingual: App, tool: str
) -> None:
    answer = await ask(multilingual, tool, QUESTION)
    assert answer.get("notice") is None
    listed = json.dumps(found(answer), ensure_ascii=False)
    assert "野鸭" in listed
    assert "Wild ducks" in listed
