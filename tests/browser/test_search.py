"""Ask, see the answer in its document, move by keyboard, jump: the pages one opens in a meeting, in a real browser."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browsing import check_pages
from support.processes import Listening, bedstone, listening

DEMO = Path(__file__).parents[2] / "demo"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    folder = tmp_path_factory.mktemp("search")
    data = ("--data-dir", folder / "data")
    added = bedstone("knowledge", "add", DEMO / "files", *data)
    assert added.returncode == 0, added.stderr
    options = (*data, "--kb-file", DEMO / "handbook.txt", "--docs-dir", DEMO / "docs")
    with listening(*options, log=folder / "log") as server:
        yield server


def test_a_question_leads_to_the_passage_framed_on_its_page_by_keyboard_alone(server: Listening, page: Page) -> None:
    page.goto(server.base)
    page.keyboard.type("when to replace a brake disc")  # the search box has the focus
    page.keyboard.press("Enter")
    first = page.locator(".result").first
    expect(first).to_have_class(re.compile("chosen"))
    expect(first).to_contain_text("porter-workshop-manual.pdf")
    expect(first).to_contain_text("Strong")
    picture = page.locator("#preview img.paper")
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("image => image.naturalWidth") > 300
    page.keyboard.press("ArrowDown")
    expect(first.get_by_role("link")).to_be_focused()
    page.keyboard.press("ArrowDown")
    second = page.locator(".result").nth(1)
    expect(second).to_have_class(re.compile("chosen"))
    expect(page.locator("#preview")).to_contain_text("Score")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("Search everything")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/documents/[0-9a-f-]{36}\?page=2&chunk="))
    expect(page.get_by_role("heading", level=1)).to_have_text("porter-workshop-manual.pdf")
    expect(page.locator(".passage.found")).to_contain_text("A disc thinner than 1.8 mm must be replaced.")
    page.keyboard.press("/")
    expect(page).to_have_url(f"{server.base}/search")


def test_results_follow_the_typing_and_the_address_can_be_shared(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/search")
    page.get_by_label("Search everything").press_sequentially("rate limits")
    expect(page.locator(".result").first).to_contain_text("guides/errors-and-retries.md")
    expect(page).to_have_url(re.compile(r"q=rate\+limits"))
    page.locator("#results").get_by_label("Sources").get_by_role("link", name="Documentation").click()
    expect(page.locator(".result").first).to_contain_text("errors-and-retries.md")
    page.get_by_label("Mode").get_by_role("link", name="Keyword").click()
    expect(page).to_have_url(re.compile("mode=keyword"))
    expect(page.get_by_label("Mode").get_by_role("link", name="Keyword")).to_have_attribute("aria-current", "true")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Share").click()
    expect(page.get_by_role("status").filter(has_text="Link copied")).to_be_visible()
    assert "mode=keyword" in page.evaluate("navigator.clipboard.readText()")
    page.get_by_role("link", name="Compare modes").click()
    for title in ("Keyword", "Hybrid", "Semantic"):
        expect(page.get_by_role("region", name=title)).to_be_visible()
    expect(page.locator(".compare path").first).to_be_attached()


def test_the_palette_jumps_anywhere_and_closes_with_escape(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/quality")
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Search or jump to")
    expect(box).to_be_focused()
    page.keyboard.type("porter")
    option = page.get_by_role("option", name="porter-workshop-manual.pdf")
    expect(option).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(option).to_have_attribute("aria-selected", "false")
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    page.keyboard.press("Control+k")
    box.fill("pagination")
    expect(page.get_by_role("option", name=re.compile("^Pagination"))).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/docs/corpora/docs/guides/pagination.md"))
    page.keyboard.press("Control+k")
    box.fill("brake disc")
    page.keyboard.press("Control+Enter")
    expect(page).to_have_url(re.compile(r"/search\?q=brake\+disc"))


def test_a_client_is_picked_and_its_configuration_copied(server: Listening, page: Page) -> None:
    page.goto(server.base)
    page.get_by_label("Clients").get_by_role("link", name="Cursor").click()
    expect(page.locator("#client-setup")).to_contain_text(f'"url": "{server.base}/mcp"')
    link = page.get_by_role("link", name="Add to Cursor")
    expect(link).to_have_attribute("href", re.compile("^cursor://anysphere.cursor-deeplink/mcp/install"))
    page.get_by_label("Clients").get_by_role("link", name="VS Code").click()
    expect(page.get_by_role("link", name="Add to VS Code")).to_have_attribute("href", re.compile("^vscode:mcp/install"))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".code").get_by_role("button", name="Copy").click()
    assert '"servers"' in page.evaluate("navigator.clipboard.readText()")


def test_the_theme_is_chosen_and_remembered(server: Listening, page: Page) -> None:
    page.goto(server.base)
    page.get_by_role("navigation", name="Main").get_by_role("button", name="Light or dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto(f"{server.base}/search")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_nothing_moves_for_people_who_ask_for_that(server: Listening, browser: Browser) -> None:
    page = browser.new_page(reduced_motion="reduce")
    page.goto(server.base)
    durations = "[...document.querySelectorAll('*')].map(e => parseFloat(getComputedStyle(e).transitionDuration))"
    assert max(page.evaluate(durations)) == 0
    page.close()


def test_a_phone_has_the_menu_in_a_sheet(server: Listening, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(server.base)
    expect(page.get_by_role("navigation", name="Main")).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Quality").click()
    expect(page).to_have_url(f"{server.base}/quality")
    page.close()


def test_home_search_and_comparison_are_accessible_and_fit_every_width(server: Listening, browser: Browser) -> None:
    asked = "q=when+to+replace+a+brake+disc"
    check_pages(browser, server.base, "/", "/?client=cursor", "/search", f"/search?{asked}", f"/search/beside?{asked}")


def test_the_first_start_is_accessible_and_fits_every_width(browser: Browser, tmp_path: Path) -> None:
    with listening("--data-dir", tmp_path / "data", log=tmp_path / "log") as server:
        check_pages(browser, server.base, "/", "/search?q=anything")
