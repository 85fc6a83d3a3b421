"""Searches for articles that say too much, too little, or in another spelling; and what an article does not show."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bedstone.app import build_toolset
from bedstone.settings import Settings
from bedstone.toolkit import Toolset
from support.demo_org import Running, log_in
from support.processes import bedstone

pytestmark = pytest.mark.usefixtures("calm")
NOTE = "Ask the workshop team before changing this article."


@pytest.fixture(scope="module")
def data(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that knows the org, with a mirror of its articles without vectors."""
    folder = tmp_path_factory.mktemp("searches")
    log_in(demo, folder)
    (folder / "bedstone.toml").write_text('[embedding]\nmodel_name = "none"\n')
    made = bedstone("salesforce", "sync-knowledge", "--json", "--data-dir", folder, cwd=folder)
    assert made.returncode == 0, made.stderr
    return folder


@asynccontextmanager
async def opened(folder: Path, **salesforce: Any) -> AsyncIterator[Toolset]:
    settings = Settings.model_validate({"data_dir": folder, "salesforce": {"article_source": "live", **salesforce}})
    toolset = build_toolset("salesforce_knowledge", settings)
    async with toolset.opened():
        yield toolset


async def search(toolset: Toolset, query: str, **more: Any) -> Any:
    return json.loads((await toolset.call("search_articles", {"query": query, **more})).text)


def titles(answer: Any) -> list[str]:
    return [row["title"] for row in answer["articles"]]


def article_with_note(demo: Running) -> str:
    """The id of an article with a note for the company alone."""
    rows = demo.query("SELECT Id, Internal_Notes__c FROM Knowledge__kav WHERE PublishStatus = 'Online'")["records"]
    return str(next(row["Id"] for row in rows if row["Internal_Notes__c"] == NOTE))


async def read(folder: Path, article_id: str, **salesforce: Any) -> Any:
    async with opened(folder, **salesforce) as toolset:
        return json.loads((await toolset.call("get_article_by_id", {"article_id": article_id})).text)["article"]


async def test_internal_notes_stay_internal(data: Path, demo: Running) -> None:
    article_id = article_with_note(demo)
    for source in ("live", "mirror"):
        article = await read(data, article_id, article_source=source)
        assert article["body"]
        assert NOTE not in article["body"]
        assert article["fields_left_out"] == ["Internal Notes"]
    chosen = await read(data, article_id, article_body_fields=["Answer__c", "Internal_Notes__c"])
    assert NOTE in chosen["body"]
    assert "fields_left_out" not in chosen
    without = await read(data, article_id, article_excluded_fields=["answer__c"])
    assert set(without["fields_left_out"]) == {"Answer", "Internal Notes"}
    async with opened(data, article_source="mirror") as toolset:
        found = await search(toolset, "workshop team before changing this article", limit=25)
        assert not [row for row in found["articles"] if NOTE in (row.get("snippet") or "")]


async def test_few_matches_are_followed_by_articles_with_some_of_the_words(data: Path, demo: Running) -> None:
    async with opened(data) as toolset:
        exact = await search(toolset, "Porter", limit=25)
        assert "broadened" not in exact
        few = await search(toolset, "bike, stolen", limit=25)
        assert (few["broadened"], few["all_words_count"]) == (True, 1)
        assert (few["total_count"] > 25, len({row["id"] for row in few["articles"]})) == (True, 25)
        assert titles(few)[0] == "Locating a stolen bike"
        none = await search(toolset, "battery unicorn", limit=25)
        assert (none["broadened"], none["all_words_count"], none["total_count"] > 0) == (True, 0, True)
        title = await search(toolset, "locating a stolen  bike", limit=25)
        assert ("broadened" in title, titles(title)) == (False, ["Locating a stolen bike"])
        single = await search(toolset, "stolen bike", limit=1)
        assert ("broadened" in single, titles(single)) == (False, ["Locating a stolen bike"])


async def test_the_fallback_finds_some_of_the_words_too(data: Path, demo: Running) -> None:
    demo.faults("search-off")
    async with opened(data) as toolset:
        found = await search(toolset, "unicorn puncture", limit=25)
        assert (found["search_method"], found["broadened"], found["all_words_count"]) == ("soql", True, 0)
        assert found["total_count"] > 0
        phrase = await search(toolset, "Gift vouchers")
        assert (titles(phrase), "broadened" in phrase) == (["Gift vouchers"], False)


@pytest.mark.parametrize("source", ["live", "mirror"])
async def test_languages_are_understood_in_any_spelling(data: Path, source: str) -> None:
    async with opened(data, article_source=source) as toolset:
        wanted = titles(await search(toolset, "flat tyre", language="en_US"))
        assert wanted
        for spelling in ("en", "EN", "en-US", "EN_us", "en-us"):
            assert titles(await search(toolset, "flat tyre", language=spelling)) == wanted
        german = titles(await search(toolset, "Reifenpanne", language="de"))
        assert german
        assert titles(await search(toolset, "Reifenpanne", language="de-AT")) == german
        for unknown in ("xx", "en_GB", "es-MX"):
            error = (await search(toolset, "flat tyre", language=unknown))["error"]
            assert (error["code"], error["details"]["field"]) == ("INVALID_INPUT", "language")
            assert all(name in error["message"].lower() for name in ("de", "en_us", "fr"))


@pytest.mark.parametrize("source", ["live", "mirror"])
async def test_unknown_data_categories_are_named_with_those_there_are(data: Path, source: str) -> None:
    async with opened(data, article_source=source) as toolset:
        wanted = titles(await search(toolset, "wheel", data_categories={"Models": "Porter"}, limit=25))
        assert wanted
        for group, category in (("models", "porter"), ("Models__c", "Porter__c")):
            assert titles(await search(toolset, "wheel", data_categories={group: category}, limit=25)) == wanted
        error = (await search(toolset, "wheel", data_categories={"Models": "Portr"}))["error"]
        assert (error["code"], error["details"]["field"]) == ("INVALID_INPUT", "data_categories")
        assert all(name in error["message"] for name in ("'Portr'", "Haul", "Barrow", "Porter"))
        error = (await search(toolset, "wheel", data_categories={"Model": "Porter"}))["error"]
        assert all(name in error["message"] for name in ("'Model'", "Models", "Topics"))
