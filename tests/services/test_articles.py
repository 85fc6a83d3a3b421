"""Articles as a source of the search over everything: found in the mirror and in the org, cited, fetched."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bedstone.app import build_toolset, make_services
from bedstone.errors import NotFound
from bedstone.search.hits import Mode
from bedstone.services.articles.article import Article, ArticleQuery
from bedstone.services.articles.found import ArticleNaming
from bedstone.services.articles.mirror import MirrorMissing
from bedstone.services.articles.passages import find_passage
from bedstone.services.articles.service import ArticleService
from bedstone.services.catalog import FindRequest, FoundItem
from bedstone.settings import Settings
from support.demo_org import Running, V, log_in
from support.processes import bedstone

pytestmark = pytest.mark.usefixtures("calm")

QUESTIONS = json.loads((Path(__file__).parents[1] / "salesforce" / "article_questions.json").read_text())
WORD = re.compile(r"\w+")


@pytest.fixture(scope="module")
def live_data(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that knows the org, and has no mirror."""
    folder = tmp_path_factory.mktemp("live")
    log_in(demo, folder)
    return folder


@pytest.fixture(scope="module")
def data(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a mirror."""
    folder = tmp_path_factory.mktemp("mirrored")
    log_in(demo, folder)
    made = bedstone("salesforce", "sync-knowledge", "--json", "--data-dir", folder)
    assert made.returncode == 0, made.stderr
    return folder


@asynccontextmanager
async def opened(folder: Path, **salesforce: Any) -> AsyncIterator[ArticleService]:
    services = make_services(Settings.model_validate({"data_dir": folder, "salesforce": salesforce}))
    try:
        yield services["salesforce_knowledge"].get()
    finally:
        await services.aclose()


async def find(service: ArticleService, query: str, limit: int = 10, mode: Mode = "hybrid") -> list[FoundItem]:
    return list((await service.find(FindRequest(query, mode, limit=limit))).items)


@contextmanager
def published(demo: Running, title: str, **facts: Any) -> Iterator[str]:
    """An article that exists for a while."""
    given = {"Title": title, "UrlName": re.sub(r"\W+", "-", title), "PublishStatus": "Online", "Language": "en_US"}
    made = demo.http.post(f"{V}/sobjects/Knowledge__kav", json=given | facts)
    assert made.status_code == 201, made.text
    record = str(made.json()["id"])
    try:
        yield record
    finally:
        demo.http.delete(f"{V}/sobjects/Knowledge__kav/{record}")


async def test_a_search_over_everything_uses_the_mirror_with_words_and_meaning(data: Path) -> None:
    found = 0
    async with opened(data) as service:
        for case in QUESTIONS:
            items = await find(service, case["question"], 5)
            found += case["title"] in [item.title for item in items]
            scores = [item.score or 0.0 for item in items]
            assert scores == sorted(scores, reverse=True)
            assert all(0 <= score <= 1 for score in scores)
    assert found / len(QUESTIONS) >= 0.9


async def test_a_question_in_another_language_finds_the_translation_in_that_language(data: Path) -> None:
    async with opened(data) as service:
        german = await find(service, "Wie wechsle ich die Bremsbeläge am Porter?")
        assert german[0].title == "Bremsbeläge am Porter wechseln"
        english = await find(service, "How do I change the brake pads of the Porter?")
        assert english[0].title == "How to change the brake pads of the Porter"
        numbers = [item.location for item in german]
        assert len(set(numbers)) == len(numbers)  # translations of one article are one hit


async def test_the_span_of_every_article_is_its_passage_in_the_fetched_text(data: Path) -> None:
    async with opened(data) as service:
        articles = service.mirror.contents().articles
        assert len(articles) == 192
        ids = set()
        for listed in articles:
            article = service.mirror.get(listed.id)
            last_line = article.body.splitlines()[-1].removeprefix("-").strip()
            wanted = re.sub(r"^\d+\.\s*", "", last_line)
            items = await find(service, f"{wanted} {article.title}", 25)
            item = next(item for item in items if item.title == article.title)
            fetched = await service.fetch("article", item.id.partition(":")[2])
            assert item.span is not None
            start, end = item.span
            assert (fetched.text[start:end], fetched.id) == (item.text, item.id)
            assert fetched.text == f"{article.title}\n\n{article.summary}\n\n{article.body}"
            assert 0 < end - start <= len(fetched.text) - len(article.title)
            snippet = WORD.findall(item.snippet.text.lower())
            assert set(snippet) <= set(WORD.findall(item.text.lower()))
            ids.add(item.id)
        assert len(ids) == 192


async def test_an_item_says_where_it_stands(data: Path) -> None:
    async with opened(data) as service:
        item = (await find(service, "flat tyre on the Porter"))[0]
        assert item.id == "article:How-to-fix-a-flat-tyre-on-the-Porter"
        assert item.location == "How To \u203a 000001090"
        assert item.origin == "demo"
        assert item.changed_at is not None
        assert item.span is not None
        start, end = item.span
        address = "/salesforce/articles/How-to-fix-a-flat-tyre-on-the-Porter"
        assert item.address == f"{address}?q=flat+tyre+on+the+Porter&start={start}&end={end}#found"
        fetched = await service.fetch("article", "How-to-fix-a-flat-tyre-on-the-Porter")
        assert fetched.facts["number"] == "000001090"
        assert fetched.facts["language"] == "en_US"
        assert fetched.facts["read from"].startswith("mirror of 20")


def test_an_article_of_a_real_org_has_its_url_there() -> None:
    article = Article("ka1", "kA1", "T", url_name="T", language="de")
    naming = ArticleNaming("acme", "https://acme.my.salesforce.com", lambda _: False)
    assert naming.origin(article) == "https://acme.my.salesforce.com/ka1"
    assert naming.item_id(article) == "article:T#de"
    assert naming.address(article) == "/salesforce/articles/T?language=de"
    unnamed = Article("ka1", "kA1", "T")
    assert ArticleNaming("acme", None, lambda _: True).item_id(unnamed) == "article:kA1"
    assert ArticleNaming("acme", "http://127.0.0.1:3001", lambda _: True).origin(unnamed) == "acme"


async def test_translations_with_one_url_name_are_told_apart(demo: Running, tmp_path: Path) -> None:
    log_in(demo, tmp_path)
    with (
        published(demo, "Zebra crossing"),
        published(
            demo, "Zebrastreifen", UrlName="Zebra-crossing", Language="de", Summary="Am Zebrastreifen absteigen."
        ),
    ):
        async with opened(tmp_path) as service:
            await service.sync()
            german = (await find(service, "Zebrastreifen absteigen"))[0]
            assert (german.id, german.title) == ("article:Zebra-crossing#de", "Zebrastreifen")
            assert (await service.fetch("article", "Zebra-crossing#de")).title == "Zebrastreifen"
            assert (await service.fetch("article", "Zebra-crossing")).title == "Zebra crossing"
            assert (await service.fetch("article", "zebra-CROSSING#fr")).title == "Zebra crossing"


async def test_articles_published_since_the_sync_are_found_by_one_call_a_minute(data: Path, demo: Running) -> None:
    async with opened(data) as service:
        with published(demo, "Squeaky saddle", Summary="Grease the rails and the noise is gone."):
            found = {item.title: item for item in await find(service, "strange sound from what I sit on", 5)}
            item = found["Squeaky saddle"]
            assert (item.span, item.matched_by) == (None, "semantic")
            assert 0 < (item.score or 0.0) <= 1
            before = demo.calls()
            for _ in range(5):
                assert "Squeaky saddle" in [item.title for item in await find(service, "squeaky saddle")]
            assert demo.calls() == before + 1  # the one that counts them
            assert "Grease the rails" in (await service.fetch("article", "Squeaky-saddle")).text


async def test_an_article_that_changed_since_the_sync_is_read_from_the_org(demo: Running, tmp_path: Path) -> None:
    log_in(demo, tmp_path)
    drafts = "SELECT Id, KnowledgeArticleId FROM Knowledge__kav WHERE PublishStatus = 'Draft' ORDER BY Id LIMIT 1"
    draft = demo.query(drafts)["records"][0]
    same = f"KnowledgeArticleId = '{draft['KnowledgeArticleId']}' AND PublishStatus = 'Online'"
    old = demo.query(f"SELECT Id, Title, UrlName FROM Knowledge__kav WHERE {same}")["records"][0]
    async with opened(tmp_path) as service:
        await service.sync()
        assert (await find(service, old["Title"]))[0].span is not None
    republished = {
        "UrlName": old["UrlName"],
        "PublishStatus": "Online",
        "Summary": "The purple bell rings three times.",
    }
    demo.http.patch(f"{V}/sobjects/Knowledge__kav/{old['Id']}", json={"PublishStatus": "Archived"})
    demo.http.patch(f"{V}/sobjects/Knowledge__kav/{draft['Id']}", json=republished)
    try:
        async with opened(tmp_path) as service:
            assert await service.compare_with_org() == (1, None)
            item = (await find(service, old["Title"]))[0]
            assert (item.id, item.span) == (f"article:{old['UrlName']}", None)
            fetched = await service.fetch("article", old["UrlName"])
            assert "rings three times" in fetched.text
            assert fetched.facts["read from"] == "org demo"
    finally:
        demo.http.patch(f"{V}/sobjects/Knowledge__kav/{draft['Id']}", json={"PublishStatus": "Draft"})
        demo.http.patch(f"{V}/sobjects/Knowledge__kav/{old['Id']}", json={"PublishStatus": "Online"})


@pytest.mark.parametrize("fault", ["unavailable", "limit-over", "no-permission", "knowledge-off"])
async def test_an_org_that_fails_does_not_fail_a_search_in_the_mirror(data: Path, demo: Running, fault: str) -> None:
    demo.faults(fault)
    async with opened(data) as service:
        assert (await find(service, "rusty spots on my frame"))[0].title == "Rust on the frame"
        assert "pencil" in (await service.fetch("article", "Rust-on-the-frame")).text
        count, problem = await service.compare_with_org()
        assert (count, bool(problem)) == (None, True)


async def test_the_org_is_not_asked_where_it_must_not_be(data: Path, demo: Running) -> None:
    async with opened(data, article_source="mirror") as service:
        before = demo.calls()
        assert await find(service, "brake pads")
        assert demo.calls() == before + 1
    async with opened(data, call_floor=10_000_000) as service:
        await service.ask_org(ArticleQuery("battery"))  # the org's limits are known from now on
        before = demo.calls()
        assert await find(service, "brake pads")
        assert demo.calls() == before + 1
        assert "calls of the day are left" in str((await service.compare_with_org())[1])


async def test_without_a_mirror_the_hits_of_the_org_are_scored_and_ranked(live_data: Path) -> None:
    async with opened(live_data) as service:
        items = await find(service, "flat tyre on the Porter")
        assert items[0].title == "How to fix a flat tyre on the Porter"
        scores = [item.score or 0.0 for item in items]
        assert scores == sorted(scores, reverse=True)
        assert 0 < scores[-1] < scores[0] <= 1
        assert {item.matched_by for item in items} == {"keyword"}
        assert {item.span for item in items} == {None}
        assert all(item.text and item.snippet.text for item in items)
        assert items[0].address.endswith("?q=flat+tyre+on+the+Porter")
        fetched = await service.fetch("article", items[0].id.partition(":")[2])
        assert "The Porter rolls on 20 x 2.60 tyres" in fetched.text
        assert fetched.facts["read from"] == "org demo"
        for mode in ("keyword", "semantic"):
            with pytest.raises(MirrorMissing):
                await service.find(FindRequest("flat tyre", mode))


@pytest.mark.parametrize("source", ["live", "mirror", "live-or-mirror"])
async def test_an_unknown_name_is_answered_with_similar_ones(data: Path, source: str) -> None:
    async with opened(data, article_source=source) as service:
        with pytest.raises(NotFound, match="Did you mean article:Gift-vouchers") as caught:
            await service.fetch("article", "Gift-voucher")
        assert caught.value.details["suggestions"][0] == "Gift-vouchers"
        for unknown in ("zzzzzz", "kA0000000000zzz", "ka0000000000zzzAAA", "x" * 300):
            with pytest.raises(NotFound):
                await service.fetch("article", unknown)


@pytest.mark.parametrize("source", ["live", "mirror"])
async def test_an_article_is_fetched_by_its_ids_too(data: Path, source: str) -> None:
    async with opened(data, article_source=source) as service:
        by_name = await service.fetch("article", "Gift-vouchers")
        article, _ = await service.read("Gift-vouchers")
        for name in (article.id, article.article_id):
            assert (await service.fetch("article", name)).text == by_name.text


async def test_hits_of_the_tool_carry_a_citation_that_holds(data: Path) -> None:
    async def search(**settings: Any) -> Any:
        given = {"data_dir": data, "salesforce": {"article_source": settings.pop("source")}, **settings}
        toolset = build_toolset("salesforce_knowledge", Settings.model_validate(given))
        async with toolset.opened():
            reply = await toolset.call("search_articles", {"query": "flat tyre Porter"})
        return json.loads(reply.text)["articles"]

    async with opened(data) as service:
        for hit in await search(source="mirror", mcp={"public_url": "https://b.example"}):
            citation = hit["citation"]
            fetched = await service.fetch("article", citation["id"].partition(":")[2])
            passage = fetched.text[citation["start"] : citation["end"]]
            assert set(WORD.findall(hit["snippet"].lower())) <= set(WORD.findall(passage.lower()))
            assert citation["url"].startswith("https://b.example/salesforce/articles/How-to-")
            assert f"start={citation['start']}" in citation["url"]
        assert "url" not in (await search(source="mirror"))[0]["citation"]
        (live, *_) = await search(source="live", mcp={"public_url": "https://b.example"})
        assert live["citation"]["id"] == "article:How-to-fix-a-flat-tyre-on-the-Porter"
        assert "start" not in live["citation"]
        assert live["citation"]["url"].endswith("?q=flat+tyre+Porter")


def test_categories_are_a_tree_with_labels(data: Path) -> None:
    service = make_services(Settings.model_validate({"data_dir": data}))["salesforce_knowledge"].get()
    contents = service.mirror.contents()
    topics, models = contents.categories
    assert [category.label for category in topics.categories] == ["The bike", "Service"]
    assert "Brakes" in [category.label for category in topics.categories[0].children]
    assert [category.label for category in models.categories] == ["Kestrel Haul", "Kestrel Barrow", "Kestrel Porter"]
    (article,) = contents.find_named("How-to-fix-a-flat-tyre-on-the-Porter")
    assert [category.label for category in contents.categories_of(article)] == ["Wheels", "Kestrel Porter"]
    assert [category.label for category in topics.find("Topics.Wheels")] == ["The bike", "Wheels"]


@pytest.mark.parametrize(
    ("text", "excerpt", "passage"),
    [
        ("Title\n\nFirst line.\nSecond one here.", "...Second one...", "Second one here."),
        ("Title\n\nSee the site (https://a.example/x) for more.", "See the site for more.", None),
        ("Title\n\n日本語の文章です。\n次の行。", "語の文章", "日本語の文章です。"),
        ("Title\n\nfoo_bar *baz* qux", "foo bar baz", "foo_bar *baz* qux"),
        ("Title\n\nBody", "Title", "Title"),
        ("Title\n\nBody", "nothing of it", ""),
        ("Title\n\n" + "Long. " * 200 + "The needle here. " + "Tail. " * 200, "needle here", "The needle here."),
    ],
)
def test_the_passage_of_an_excerpt_is_whole_lines(text: str, excerpt: str, passage: str | None) -> None:
    span = find_passage(text, excerpt, len("Title") + 1)
    if passage == "":
        assert span is None
    else:
        assert span is not None
        assert text[slice(*span)] == (passage or "See the site (https://a.example/x) for more.")
