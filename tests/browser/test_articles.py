"""Articles in a real browser: search, narrow, open the cited passage, change the language, mirror the org."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browsing import check_pages
from support.demo_org import Running, V, log_in
from support.processes import Listening, bedstone, listening

LIST = "/salesforce/articles"
PADS = f"{LIST}/How-to-change-the-brake-pads-of-the-Porter"
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script><svg/onload=alert(3)>"


@pytest.fixture(scope="module")
def server(demo: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """A server with a mirror of the demo org, and an article that tries to run scripts."""
    folder = tmp_path_factory.mktemp("articles")
    log_in(demo, folder / "data")
    facts = {"Title": f"Hostile {HOSTILE}", "Summary": HOSTILE, "Answer__c": HOSTILE, "UrlName": "Hostile"}
    given = {"PublishStatus": "Online", "Language": "en_US"}
    assert demo.http.post(f"{V}/sobjects/Knowledge__kav", json=facts | given).status_code == 201
    made = bedstone("salesforce", "sync-knowledge", "--data-dir", folder / "data")
    assert made.returncode == 0, made.stderr
    toolsets = ("--toolsets", "salesforce_knowledge")
    with listening("--data-dir", folder / "data", *toolsets, log=folder / "log") as server:
        yield server


def test_a_question_leads_to_the_passage_highlighted_in_its_article(server: Listening, page: Page) -> None:
    page.goto(server.base)
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Articles").click()
    page.get_by_label("Search articles").fill("new brake linings for the Porter")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("from the mirror, best first")
    page.get_by_role("navigation", name="Models").get_by_role("link", name="Kestrel Porter").click()
    expect(page.get_by_label("Search articles")).to_have_value("new brake linings for the Porter")
    page.get_by_role("link", name="How to change the brake pads of the Porter").click()
    expect(page).to_have_url(re.compile(rf"{PADS}\?q=.*&start=\d+&end=\d+#found$"))
    expect(page.locator("#found")).to_be_in_viewport()
    marked = page.locator("#found").evaluate("element => getComputedStyle(element).boxShadow")
    assert marked != "none"
    expect(page.get_by_role("heading", name="Steps")).to_be_visible()
    expect(page.locator(".prose mark").first).to_be_visible()
    page.get_by_role("navigation", name="Language").get_by_role("link", name="Deutsch").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Bremsbeläge am Porter wechseln")


def test_what_an_agent_gets_can_be_seen_and_tried(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}{PADS}")
    answer = page.locator("#answer")
    expect(answer).to_contain_text('"id": "ka000000000001kAAA"')
    page.get_by_role("link", name="Search line").click()
    expect(answer).to_contain_text('"id": "article:How-to-change-the-brake-pads-of-the-Porter"')
    page.get_by_role("link", name="Try get_article_by_id").click()
    expect(page.get_by_label("article_id")).to_have_value("ka000000000001kAAA")


def test_a_heading_of_an_article_can_be_linked(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}{PADS}")
    page.get_by_role("heading", name="Steps").get_by_role("link").click()
    expect(page).to_have_url(re.compile("#part-.*steps"))
    expect(page.locator(":target")).to_contain_text("Steps")


def test_a_category_is_opened_from_an_article(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}{PADS}")
    page.get_by_role("link", name="All 6").click()
    expect(page.get_by_role("status")).to_have_text("6 articles by title")
    topics = page.get_by_role("navigation", name="Topics")
    expect(topics.locator("[aria-current]")).to_contain_text("Brakes")
    topics.get_by_role("link", name="All").click()
    expect(page.get_by_role("status")).to_contain_text("articles by title")


def test_what_the_org_says_never_runs(server: Listening, page: Page) -> None:
    for path in (f"{LIST}?q=Hostile", f"{LIST}?q=Hostile&from=live", f"{LIST}/Hostile?q=alert"):
        page.goto(f"{server.base}{path}")
        expect(page.get_by_role("main")).to_contain_text("onerror=alert(1)")


@pytest.mark.one_server("a server syncs for itself alone")
def test_articles_are_mirrored_from_the_page(demo: Running, page: Page, tmp_path: Path) -> None:
    log_in(demo, tmp_path / "data")
    toolsets = ("--toolsets", "salesforce_knowledge")
    with listening("--data-dir", tmp_path / "data", *toolsets, log=tmp_path / "log") as server:
        page.goto(f"{server.base}{LIST}")
        expect(page.get_by_role("main")).to_contain_text("These articles come from the org")
        page.get_by_role("button", name="Mirror the articles").click()
        expect(page).to_have_url(f"{server.base}{LIST}")
        page.goto(f"{server.base}/activity")
        expect(page.get_by_role("main")).to_contain_text(re.compile(r"19\d articles"))
        page.goto(f"{server.base}{LIST}")
        expect(page.get_by_role("button", name="Sync now")).to_be_visible()
        expect(page.get_by_role("navigation", name="Answered by")).to_be_visible()


def test_the_pages_are_accessible_in_both_themes_and_fit_a_phone(server: Listening, browser: Browser) -> None:
    paths = (
        LIST,
        f"{LIST}?q=brake&category=Topics.Bike",
        f"{LIST}?q=brake&from=live",
        f"{LIST}?q=qqqq",
        f"{PADS}?q=lever&start=259&end=438",
        f"{LIST}/Hostile",
        f"{LIST}/How-to-chnge-the-brake-pads",
    )
    check_pages(browser, server.base, *paths)
