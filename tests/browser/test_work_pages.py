"""Activity, Quality, Tools, the login and error pages in a real browser, against the real server."""

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from support.browsing import check_pages
from support.processes import Listening, listening

TOKEN = "open-sesame-please"
SLOW = 30_000  # milliseconds, on a busy machine


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    folder = tmp_path_factory.mktemp("work")
    for name in ("docs", "inbox"):
        (folder / name).mkdir()
    (folder / "docs" / "guide.md").write_text("# Guide\n\n## Pagination\n\nUse the cursor to page through results.\n")
    (folder / "inbox" / "hours.txt").write_text("Opening hours are nine to five.")
    write_runs(folder / "data" / "evaluations")
    options = ("--data-dir", folder / "data", "--docs-dir", folder / "docs")
    with listening(*options, log=folder / "log", BEDSTONE_STORAGE__WATCH=str(folder / "inbox")) as server:
        yield server


def write_runs(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number, value in enumerate((0.5, 0.75)):
        ranks = (2, 1) if number else (4, None)
        results = [
            {"name": f"question {n}", "category": kind, "rank": ranks[n]} for n, kind in enumerate(("easy", "hard"))
        ]
        report = {
            "name": "mine",
            "at": f"2026-01-0{number + 1}T09:00:00+00:00",
            "cases": 2,
            "quality": {"mrr@5": value, "hit@5": value},
            "by_category": {"easy": {"mrr@5": value}, "hard": {"mrr@5": 0.0}},
            "search_ms": {"p50": 4 * value},
            "results": results,
        }
        (folder / f"2026010{number + 1}-mine.json").write_text(json.dumps(report))


def long_text() -> bytes:
    """Return a text that takes a while: no other run had it, so no vector is cached."""
    own = uuid4().hex
    return "\n\n".join(f"Paragraph {number} of {own} tells of tulips. " * 12 for number in range(4_000)).encode()


def upload(page: Page, base: str, name: str, content: bytes) -> None:
    """Send a file as the page Documents does."""
    page.goto(f"{base}/activity")
    csrf = page.locator("meta[name=csrf]").get_attribute("content") or ""
    sent = page.request.post(f"{base}/documents", data=content, headers={"x-csrf": csrf, "x-filename": name})
    assert sent.status == 202, sent.text()


def log_in(page: Page) -> None:
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()


def test_work_is_followed_live_and_stopped_without_a_reload(server: Listening, page: Page) -> None:
    upload(page, server.base, "long.txt", long_text())
    page.goto(f"{server.base}/activity")
    row = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="long.txt"))
    bar = row.get_by_role("progressbar")
    expect(bar).to_be_visible()
    expect(bar).not_to_have_attribute("value", "0", timeout=SLOW)  # until it runs, and no longer waits
    page.evaluate("window.kept = document.querySelector('progress')")
    expect(bar).not_to_have_attribute("value", bar.get_attribute("value") or "0", timeout=SLOW)
    assert page.evaluate("window.kept.isConnected")  # it moves; it is not another one
    stop = row.get_by_role("button", name="Stop long.txt")
    with page.expect_response(re.compile("/activity/live")):
        stop.focus()
    expect(stop).to_be_focused()  # an update takes nothing away
    page.evaluate("window.isSamePage = true")
    page.keyboard.press("Enter")
    expect(page.locator(".log li").first).to_contain_text("Stopped", timeout=SLOW)
    assert page.evaluate("window.isSamePage")
    expect(page.get_by_role("heading", name="Running")).to_have_count(0)
    expect(page.get_by_role("link", name="Activity", exact=True)).to_have_text(re.compile(r"^\s*Activity\s*$"))


def test_what_failed_has_its_reason_and_a_link(server: Listening, page: Page) -> None:
    upload(page, server.base, "torn.pdf", b"%PDF-1.7 torn in half")
    failed = page.locator(".log li", has_text="torn.pdf")
    expect(failed).to_contain_text("Not a PDF, or the file is corrupt.", timeout=SLOW)  # it appears by itself
    expect(failed).to_contain_text("save it again")
    page.get_by_role("link", name="Failed").click()
    expect(page).to_have_url(f"{server.base}/activity?show=failed")
    expect(page.locator(".log li")).to_have_count(1)
    page.get_by_role("link", name="torn.pdf").click()
    expect(page).to_have_url(re.compile("/documents/"))


def test_a_folder_and_the_documentation_are_looked_at_again_with_a_click(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/activity")
    folder = page.get_by_role("row").filter(has_text="Watched folder")
    expect(folder).to_contain_text("inbox")
    folder.get_by_role("button", name="Look now").click()
    expect(folder).to_contain_text("Nothing changed", timeout=SLOW)
    docs = page.get_by_role("row").filter(has_text="Documentation")
    docs.get_by_role("button", name="Build now").click()
    expect(docs).to_contain_text("1 file, nothing changed", timeout=SLOW)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Listening]:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "guide" / "mcp").mkdir(parents=True)
    for name in ("mcp/intro.md", "what? %.md"):
        (tmp_path / "guide" / name).write_text("# Intro\n\nWords.\n")
    uploads = tmp_path / "data" / "uploads"
    for name, age in (("left", 2 * 24 * 3600), ("travelling", 0)):
        (uploads / name).mkdir(parents=True)
        os.utime(uploads / name, (time.time() - age,) * 2)
    options = ("--data-dir", tmp_path / "data", "--token-file", tmp_path / "token", "--docs-dir", tmp_path / "guide")
    with listening(*options, log=tmp_path / "log") as server:
        assert [item.name for item in uploads.iterdir()] == ["travelling"]  # a killed server left the other one
        yield server


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    yield context
    context.close()


def test_the_page_says_that_it_is_logged_out_and_goes_on_after_a_login(
    guarded: Listening, context: BrowserContext
) -> None:
    page, other = context.new_page(), context.new_page()
    page.goto(f"{guarded.base}/activity")
    log_in(page)
    upload(page, guarded.base, "long.txt", long_text())
    expect(page.get_by_role("progressbar")).to_be_visible(timeout=SLOW)
    other.goto(guarded.base)
    other.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("status").filter(has_text="You are logged out")).to_be_visible(timeout=SLOW)
    other.goto(f"{guarded.base}/activity")
    log_in(other)
    expect(page.get_by_role("status").filter(has_text="You are logged out")).to_be_hidden(timeout=60_000)
    page.get_by_role("button", name="Stop long.txt").click()  # with the token of the new session
    expect(page.locator(".log li").first).to_contain_text("Stopped", timeout=SLOW)


def test_a_token_is_asked_for_once(guarded: Listening, context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(f"{guarded.base}/documents")
    expect(page).to_have_url(f"{guarded.base}/login?next=/documents")
    expect(page.get_by_label("Token")).to_be_focused()
    card = page.locator("form.card")
    assert card.evaluate("card => getComputedStyle(card).borderRadius") == "10px"  # strangers get the styles
    page.get_by_label("Token").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Wrong token")
    expect(page.get_by_label("Token")).to_have_attribute("aria-invalid", "true")
    page.get_by_text("Where do I find the token?").click()
    expect(page.get_by_text("BEDSTONE_MCP__TOKEN")).to_be_visible()
    log_in(page)
    expect(page).to_have_url(f"{guarded.base}/documents")
    (cookie,) = context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], TOKEN in cookie["value"]) == (True, "Strict", False)
    headers = {"cookie": f"{cookie['name']}={cookie['value']}", "content-type": "application/json"}
    message = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
    for path in ("/mcp", "/knowledge/mcp", "/mcp/tools/list"):  # agents show the token itself
        assert guarded.request("POST", path, message, headers)[0] == 401
        assert guarded.request("POST", f"{path}%0A", message, headers)[0] == 400
    stranger = {"accept": "text/html"}
    assert b"<nav" not in guarded.request("GET", "/.well-known/oauth-protected-resource/x", None, stranger)[1]
    csrf = re.search(rb'name="csrf" content="(\w+)"', guarded.request("GET", "/documents", None, headers)[1])
    assert csrf
    form = {**headers, "x-csrf": csrf[1].decode(), "content-type": "application/x-www-form-urlencoded"}
    for host, origin, expected in (
        ("localhost:443", "https://localhost", 404),  # the same origin, spelled in two ways
        ("localhost", "http://localhost:80", 404),
        ("LOCALHOST:3000", "http://localhost:9999", 403),
        ("[::1]:3000", "http://[::1]", 403),
    ):
        asked = {**form, "host": host, "origin": origin}
        assert guarded.request("POST", "/documents/x/remove", b"", asked)[0] == expected, host
    there = {"origin": f"http://127.0.0.1:{guarded.port + 1}"}
    assert guarded.request("POST", "/documents/x/remove", b"", form)[0] == 404
    status, body = guarded.request("POST", "/documents/x/remove", b"", form | there)
    assert (status, b"Origin not allowed" in body) == (403, True)  # a cookie knows no ports
    assert b'content=""' in guarded.request("GET", "/login")[1]  # strangers get no form token
    page.get_by_role("button", name="Log out").click()
    page.goto(guarded.base)
    expect(page).to_have_url(f"{guarded.base}/login?next=/")
    assert guarded.request("GET", "/documents", None, headers)[0] == 401


def test_pages_about_mcp_are_pages_and_deep_links_survive_the_login(
    guarded: Listening, browser: Browser, context: BrowserContext
) -> None:
    check_pages(browser, guarded.base, "/login")
    page = context.new_page()
    page.goto(f"{guarded.base}/search?q=words&in=docs")
    log_in(page)
    expect(page).to_have_url(f"{guarded.base}/search?q=words&in=docs")
    page.get_by_role("button", name="Log out").click()
    page.goto(f"{guarded.base}/docs/corpora/guide/what%3F%20%25.md")
    log_in(page)
    expect(page).to_have_url(f"{guarded.base}/docs/corpora/guide/what%3F%20%25.md")
    page.goto(f"{guarded.base}/docs/corpora/guide/mcp/intro.md")
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_a_tool_is_found_called_and_its_answer_looked_at_with_the_keyboard(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/tools")
    page.get_by_label("Filter tools").fill("search_docs")
    expect(page.get_by_role("link", name="knowledge-search")).to_be_hidden()
    page.get_by_role("link", name="search_docs").click()
    page.get_by_label("query").fill("pagination")
    page.get_by_label("limit").fill("3")
    page.keyboard.press("Control+Enter")
    answer = page.get_by_role("region", name="Answer", exact=True)
    expect(answer.locator("#readable")).to_contain_text("guide.md")
    expect(answer.locator("#readable")).to_contain_text("tokens")
    answer.get_by_role("link", name="What an agent sees").click()
    expect(answer.locator("#literal-text")).to_contain_text('"filepath": "guide.md"')
    expect(answer.locator("#readable")).to_be_hidden()
    page.get_by_label("query").press("Control+Enter")
    expect(answer.locator("#literal-text")).to_be_visible()  # the chosen part stays
    answer.get_by_text("The call").click()
    expect(answer.locator("#request-text")).to_contain_text('"limit": 3')
    answer.get_by_role("link", name="Schema").click()
    expect(answer.locator("#schema-1")).to_contain_text('"properties"')
    page.get_by_label("Filter tools").fill("clear")
    expect(page.get_by_role("link", name="knowledge-clear")).to_be_visible()  # its group opens
    page.get_by_label("Filter tools").fill("")
    expect(page.get_by_role("link", name="knowledge-clear")).to_be_hidden()


def test_a_wrong_entry_is_pointed_at_and_a_call_is_copied(server: Listening, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server.base}/tools/knowledge-search?query=tulips")
    page.get_by_text("filters", exact=False).first.click()
    page.get_by_label("filters").fill("{")
    page.get_by_role("button", name="Call").click()
    expect(page.get_by_role("alert")).to_contain_text("filters must be valid JSON")
    expect(page.get_by_label("filters")).to_be_focused()
    expect(page.get_by_label("filters")).to_have_attribute("aria-invalid", "")
    page.get_by_label("filters").fill("")
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_text("Copied", exact=True)).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith("curl -s http")


def test_tools_are_called_and_activity_is_read_without_a_script(server: Listening, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.base}/tools/search_docs")
    page.get_by_label("query").fill("pagination")
    page.get_by_role("button", name="Call").click()
    expect(page.locator("#readable")).to_contain_text("guide.md")
    expect(page.locator("#literal-text")).to_contain_text("guide.md")
    expect(page.get_by_label("query")).to_have_value("pagination")
    page.goto(f"{server.base}/activity")
    page.get_by_role("button", name="Sync everything").click()
    expect(page).to_have_url(f"{server.base}/activity")
    context.close()


def test_runs_are_compared_in_charts_that_follow_the_theme(server: Listening, browser: Browser) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
        page.goto(f"{server.base}/quality")
        expect(page.get_by_role("img", name="MRR@5: 0.750, before 0.500")).to_be_visible()
        expect(page.get_by_role("img", name="Latest: 3 ms; Before: 2 ms")).to_be_visible()
        colours.add(page.locator("rect.now").first.evaluate("bar => getComputedStyle(bar).fill"))
        rows = page.get_by_role("region", name="Questions").get_by_role("row")
        expect(rows.nth(1)).to_contain_text("question 0")  # the worst first
        expect(rows.nth(2)).to_contain_text("found")
        page.get_by_role("link", name="question 0").click()
        expect(page).to_have_url(re.compile(r"/search\?q=question%200"))
        page.close()
    assert len(colours) == 2
    chart = server.request("GET", "/quality/chart.svg?name=mine")[1].decode()
    assert "0.750" in chart
    assert "hard" in chart  # readers look for what fails


def test_a_missing_page_leads_on(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/nowhere/pagination-guide")
    expect(page.get_by_role("heading", level=1)).to_have_text("Page not found: /nowhere/pagination-guide")
    expect(page.get_by_label("Search everything")).to_have_value("pagination guide")
    page.get_by_role("button", name="Search everything").click()
    expect(page).to_have_url(re.compile(r"/search\?q=pagination\+guide"))


@pytest.mark.one_server("the store is a damaged file")
def test_what_is_broken_is_said_and_hides_nothing_else(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Opening hours are nine to five.")
    index = tmp_path / "data" / "index"
    index.mkdir(parents=True)
    (index / "knowledge.sqlite").write_bytes(b"not a database, although it has its name" * 100)
    options = ("--data-dir", tmp_path / "data", "--kb-file", tmp_path / "notes.txt", "--toolsets", "knowledge,kb")
    with listening(*options, log=tmp_path / "log") as server:
        page = browser.new_page()
        page.goto(f"{server.base}/documents")
        expect(page.get_by_role("alert")).to_contain_text("is damaged: file is not a database")
        page.goto(f"{server.base}/activity")
        expect(page.get_by_role("alert")).to_contain_text("is damaged: file is not a database")
        page.goto(f"{server.base}/knowledge-file")
        expect(page.get_by_text("Opening hours are nine to five.").first).to_be_visible()
        page.close()


def test_pages_are_accessible_and_fit_every_width(server: Listening, browser: Browser) -> None:
    check_pages(
        browser, server.base,
        "/activity", "/activity?show=failed", "/quality", "/tools", "/tools?find=zzz", "/tools/knowledge-search",
        "/tools/knowledge-clear", "/nowhere", "/documents/none", "/tools/knowledge-serch",
    )  # fmt: skip


def test_an_empty_installation_is_accessible_too(browser: Browser, tmp_path: Path) -> None:
    with listening("--data-dir", tmp_path / "data", "--toolsets", "knowledge", log=tmp_path / "log") as server:
        check_pages(browser, server.base, "/activity", "/quality")
