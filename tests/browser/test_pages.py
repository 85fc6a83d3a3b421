"""The pages in a real browser, against the real server."""

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, expect, sync_playwright

from support.demo_org import Running, V, log_in
from support.processes import Listening, bedstone, listening

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE_NAME = "<img src=x onerror=alert(1)>.txt"
HOSTILE_TEXT = "The quick walrus <script>alert(2)</script> sleeps at noon."
TOKEN = "open-sesame-please"
AXE_RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium not found; .ci/run installs it.")
        pytest.skip("Chromium not found")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "notes.txt").write_text("Opening hours are nine to five.")
    (folder / "docs").mkdir()
    (folder / "docs" / "guide.md").write_text("# Guide\n\n## Pagination\n\nUse the cursor to page through results.\n")
    options = ("--data-dir", folder / "data", "--kb-file", folder / "notes.txt", "--docs-dir", folder / "docs")
    with listening(*options, log=folder / "log") as server:
        yield server


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page without dialogs, script errors or violations of the content policy."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    alarms: list[str] = []

    def note_dialog(dialog: Dialog) -> None:
        alarms.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def note_console(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(
            "Failed to load resource"
        ):  # a refused request is expected
            alarms.append(message.text)

    page.on("dialog", note_dialog)
    page.on("pageerror", lambda error: alarms.append(str(error)))
    page.on("console", note_console)
    yield page
    page.close()
    assert alarms == []


def test_home_shows_what_is_connected(server: Listening, page: Page) -> None:
    page.goto(server.base)
    expect(page.get_by_role("heading", name="What your agents know")).to_be_visible()
    for title in ("Knowledge base", "Documentation", "Knowledge base file"):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    page.get_by_text("VS Code", exact=True).click()
    expect(page.locator("details[open] pre")).to_contain_text(f'"url": "{server.base}/mcp"')
    expect(page.locator("details[open] pre")).to_contain_text('"servers"')
    page.get_by_label("Search everything").fill("cursor")
    page.keyboard.press("Enter")
    expect(page.locator("#results mark").first).to_have_text("cursor")


def test_a_hostile_file_is_added_found_shown_as_text_and_removed(server: Listening, page: Page, tmp_path: Path) -> None:
    file = tmp_path / HOSTILE_NAME
    file.write_text(HOSTILE_TEXT)
    page.goto(f"{server.base}/documents")
    page.set_input_files("#files", str(file))
    expect(page.locator("#tasks li")).to_contain_text("completed", timeout=30_000)
    page.goto(f"{server.base}/search")
    page.get_by_label("Search everything").press_sequentially("walrus")
    found = page.locator("#results article").first
    expect(found).to_contain_text(HOSTILE_TEXT)
    expect(found.locator("mark")).to_have_text("walrus")
    expect(page).to_have_url(re.compile("q=walrus"))
    found.get_by_role("link").click()
    expect(page.locator(".chunk.target")).to_have_text(HOSTILE_TEXT)
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE_NAME)
    page.get_by_label("Your metadata").fill('{"topic": "<b>animals</b>"}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_label("Your metadata")).to_have_value(re.compile("<b>animals</b>"))
    page.get_by_text("Remove this document").click()
    page.get_by_role("button", name="Remove").click()
    expect(page).to_have_url(f"{server.base}/documents")
    expect(page.get_by_text(HOSTILE_NAME)).to_have_count(0)


def test_a_file_that_cannot_be_taken_is_refused_in_words(server: Listening, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "program.exe"
    file.write_bytes(b"MZ\0\0")
    page.goto(f"{server.base}/documents")
    page.set_input_files("#files", str(file))
    expect(page.locator("#tasks li")).to_contain_text("program.exe: unsupported format .exe")


def test_a_file_that_cannot_be_read_says_why_and_can_be_tried_again(
    server: Listening, page: Page, tmp_path: Path
) -> None:
    file = tmp_path / "torn.pdf"
    file.write_bytes(b"%PDF-1.7 torn in half")
    page.goto(f"{server.base}/documents")
    page.set_input_files("#files", str(file))
    page.get_by_role("button", name="Retry").click(timeout=30_000)
    expect(page.get_by_role("button", name="Retry")).to_be_visible(timeout=30_000)
    page.goto(f"{server.base}/documents?status=failed")
    page.get_by_role("link", name="torn.pdf").first.click()
    expect(page.locator(".error")).to_contain_text("PDF")
    expect(page.get_by_text("The uploaded file was not stored")).to_be_visible()
    page.get_by_role("button", name="Remove from the list").click()
    expect(page).to_have_url(f"{server.base}/documents")
    expect(page.get_by_role("link", name="torn.pdf")).to_have_count(0)


def test_a_file_on_this_machine_is_read_again_from_where_it_is(server: Listening, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "late.html"
    file.write_text("<p></p>")
    call = {"name": "knowledge-add", "arguments": {"file_path": str(file)}}
    status, _ = server.post("/mcp/tools/call", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    assert status == 200
    page.goto(f"{server.base}/documents?sort=filename&name=late")
    page.get_by_role("link", name="late.html").click()
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    file.write_text("<p>Better late than never.</p>")
    page.get_by_role("button", name="Retry").click()
    expect(page.locator("tr", has_text="late.html")).to_contain_text("completed")
    page.get_by_role("link", name="late.html").first.click()
    expect(page.locator(".chunk")).to_have_text("Better late than never.")


def test_reading_a_long_file_is_watched_and_cancelled(server: Listening, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "long.txt"
    file.write_text("\n\n".join(f"Paragraph {number} tells of tulips and tides. " * 12 for number in range(4_000)))
    page.goto(f"{server.base}/documents")
    page.set_input_files("#files", str(file))
    page.get_by_role("button", name="Cancel").click(timeout=30_000)
    expect(page.locator("#tasks li")).to_contain_text("cancelled", timeout=60_000)
    page.goto(f"{server.base}/documents")
    expect(page.get_by_role("link", name="long.txt")).to_have_count(0)


def test_search_says_why_and_can_be_narrowed_and_compared(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/search?q=page+through+results")
    expect(page.locator("#results article").first).to_contain_text("keyword")
    page.get_by_label("Mode").select_option("keyword")
    expect(page.locator("#results article").first).to_contain_text("keyword")
    expect(page).to_have_url(re.compile("mode=keyword"))
    page.get_by_role("link", name="Compare keyword, semantic and hybrid search").click()
    for title in ("Keyword", "Semantic", "Hybrid"):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Semantic").get_by_role("link", name="Pagination")).to_be_visible()
    facets = page.goto(f"{server.base}/search?q=cursor&in=docs&f.nothing=x")
    assert facets is not None
    assert facets.status == 200
    page.goto(f"{server.base}/search?q=hours+of+opening&in=knowledge&f.format=epub")
    expect(page.locator("#results article")).to_have_count(0)
    page.get_by_role("link", name="epub 0").click()  # a chosen value can be cleared
    expect(page).not_to_have_url(re.compile("epub"))


def test_a_tool_is_called_with_a_form_made_from_its_schema(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/tools")
    page.get_by_role("link", name="search_docs").click()
    page.get_by_label("query").fill("pagination")
    page.get_by_label("limit").fill("3")
    page.get_by_role("button", name="Call").click()
    answer = page.locator("#answer")
    expect(answer.locator("pre").first).to_contain_text('"limit": 3')
    expect(answer.locator("pre.answer")).to_contain_text("guide.md")
    expect(answer).to_contain_text("tokens")


def test_the_page_fits_a_phone_and_the_dark(server: Listening, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark")
    for path in ("/", "/search?q=cursor", "/documents", "/tools", "/tools/knowledge-search"):
        page.goto(f"{server.base}{path}")
        width = page.locator("html").evaluate("element => element.scrollWidth")
        assert width <= 360, path
        background = page.locator("body").evaluate("element => getComputedStyle(element).backgroundColor")
        assert background == "rgb(20, 23, 26)"
    page.close()


def test_pages_keep_to_their_policy(server: Listening) -> None:
    for path in ("/", "/search?q=x", "/documents", "/tools", "/tools/get_kb_info"):
        status, body = server.request("GET", path)
        assert status == 200
        assert len(body) < 200_000
        text = body.decode()
        assert "<script>" not in text
        assert "onclick=" not in text
        assert "http://" not in text.replace(server.base, "").replace("http://127.0.0.1", "")
    status, _ = server.request("GET", "/tools/no-such-tool")
    assert status == 404
    status, body = server.request("POST", "/documents", b"x", {"x-filename": "a.txt"})
    assert (status, b"Reload the page" in body) == (403, True)
    status, _ = server.request(
        "POST", "/documents/x/remove", b"", {"content-type": "application/x-www-form-urlencoded"}
    )
    assert status == 403


def test_a_token_is_asked_for_once(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    options = ("--data-dir", tmp_path / "data", "--token-file", tmp_path / "token", "--toolsets", "knowledge")
    with listening(*options, log=tmp_path / "log") as server:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{server.base}/documents")
        expect(page).to_have_url(f"{server.base}/login?next=/documents")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("Wrong token")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        expect(page).to_have_url(f"{server.base}/documents")
        (cookie,) = context.cookies()
        assert (cookie["httpOnly"], cookie["sameSite"], TOKEN in cookie["value"]) == (True, "Strict", False)
        headers = {"cookie": f"{cookie['name']}={cookie['value']}", "content-type": "application/json"}
        message = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'
        for path in ("/mcp", "/knowledge/mcp", "/mcp/tools/list"):  # agents show the token itself
            assert server.request("POST", path, message, headers)[0] == 401
            assert server.request("POST", f"{path}%0A", message, headers)[0] == 400
        stranger = {"accept": "text/html"}
        assert b"<nav" not in server.request("GET", "/.well-known/oauth-protected-resource/x", None, stranger)[1]
        status, body = server.request("GET", "/documents", None, headers)
        csrf = _csrf(body)
        form = {**headers, "x-csrf": csrf, "content-type": "application/x-www-form-urlencoded"}
        for host, origin, expected in (
            ("localhost:443", "https://localhost", 404),  # the same origin, spelled in two ways
            ("localhost", "http://localhost:80", 404),
            ("LOCALHOST:3000", "http://localhost:9999", 403),
            ("[::1]:3000", "http://[::1]", 403),
        ):
            asked = {**form, "host": host, "origin": origin}
            assert server.request("POST", "/documents/x/remove", b"", asked)[0] == expected, host
        there = {"origin": f"http://127.0.0.1:{server.port + 1}"}
        assert server.request("POST", "/documents/x/remove", b"", form)[0] == 404
        status, body = server.request("POST", "/documents/x/remove", b"", form | there)
        assert (status, b"Origin not allowed" in body) == (403, True)  # a cookie knows no ports
        assert b'content=""' in server.request("GET", "/login")[1]  # strangers get no form token
        page.get_by_role("button", name="Log out").click()
        page.goto(server.base)
        expect(page).to_have_url(f"{server.base}/login?next=/")
        assert server.request("GET", "/documents", None, headers)[0] == 401
        context.close()


def test_what_is_broken_is_said_and_hides_nothing_else(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Opening hours are nine to five.")
    index = tmp_path / "data" / "index"
    index.mkdir(parents=True)
    (index / "knowledge.sqlite").write_bytes(b"not a database, although it has its name" * 100)
    options = ("--data-dir", tmp_path / "data", "--kb-file", tmp_path / "notes.txt", "--toolsets", "knowledge,kb")
    with listening(*options, log=tmp_path / "log") as server:
        page = browser.new_page()
        page.goto(server.base)
        expect(page.locator(".error")).to_contain_text("is damaged: file is not a database")
        expect(page.get_by_text("available")).to_be_visible()
        page.goto(f"{server.base}/search?q=hours")
        expect(page.locator("#results")).to_contain_text("is damaged: file is not a database")
        page.goto(f"{server.base}/documents")
        expect(page.get_by_role("alert")).to_contain_text("is damaged: file is not a database")
        page.goto(f"{server.base}/nowhere/")
        expect(page.get_by_role("alert")).to_contain_text("Page not found: /nowhere/")
        page.close()


def test_more_files_than_one_stream_watches_are_all_reported(server: Listening, page: Page, tmp_path: Path) -> None:
    files = [tmp_path / f"note-{number}.txt" for number in range(104)]
    for file in files:
        file.write_text(f"Note {file.stem} about herons.")
    page.goto(f"{server.base}/documents")
    page.set_input_files("#files", [str(file) for file in files])
    expect(page.locator("#tasks li", has_text="completed")).to_have_count(104, timeout=120_000)
    page.goto(f"{server.base}/documents?name=note-&page=3")
    expect(page.locator("tbody tr")).to_have_count(4)


def test_a_read_only_server_offers_and_takes_no_changes(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("Kept as it is.")
    data = ("--data-dir", tmp_path / "data")
    assert bedstone("knowledge", "add", tmp_path / "kept.txt", *data).returncode == 0
    with listening(*data, "--read-only", "--toolsets", "knowledge", log=tmp_path / "log") as server:
        page = browser.new_page()
        page.goto(f"{server.base}/documents")
        expect(page.get_by_text("This server is read-only")).to_be_visible()
        expect(page.locator("#files")).to_have_count(0)
        page.get_by_role("link", name="kept.txt").click()
        expect(page.locator(".chunk")).to_have_text("Kept as it is.")
        expect(page.get_by_role("button")).to_have_count(0)
        address, csrf = page.url.removeprefix(server.base), page.locator("meta[name=csrf]").get_attribute("content")
        form = {"x-csrf": csrf or "", "content-type": "application/x-www-form-urlencoded"}
        for path in (f"{address}/metadata", f"{address}/remove", f"{address}/retry", "/documents", "/tasks/x/cancel"):
            status, body = server.request("POST", path, b"metadata={}", form)
            assert (status, b"read-only" in body) == (403, True), path
        status, body = server.request("POST", "/tools/knowledge-clear", b"confirm=true", form)
        assert b"read-only" in body
        page.reload()
        expect(page.locator(".chunk")).to_have_text("Kept as it is.")
        page.close()


def _import_schema(folder: Path, data: Path, name: str) -> None:
    """Two objects, as an org describes them."""
    folder.mkdir(exist_ok=True)
    link = {"type": "reference", "referenceTo": ["Account"], "relationshipName": "Account"}
    for item, more in (("Account", []), ("Contact", [{"name": "AccountId", "label": "Account", **link}])):
        fields = [
            {"name": "Id", "label": f"{item} ID", "type": "id"},
            {"name": "Name", "label": f"{item} <b>Name</b>", "type": "string", "nameField": True},
        ]
        described = {"name": item, "label": item, "fields": [*fields, *more]}
        (folder / f"{item}.json").write_text(json.dumps(described))
    made = bedstone("salesforce", "sync-schema", "--from", folder, "--name", name, "--data-dir", data)
    assert made.returncode == 0, made.stderr


def test_a_schema_is_looked_at_and_queried(browser: Browser, tmp_path: Path) -> None:
    data = ("--data-dir", tmp_path / "data")
    _import_schema(tmp_path / "describes", tmp_path / "data", "one")
    with listening(*data, "--toolsets", "salesforce_graph", log=tmp_path / "log") as server:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(f"{server.base}/salesforce")
        page.get_by_role("link", name="Contact").click()
        expect(page.locator("svg a", has_text="Account")).to_be_visible()
        expect(page.locator("#fields")).to_contain_text("<b>Name</b>")
        page.get_by_label("Name, help text or value contains").fill("accountid")
        page.keyboard.press("Enter")
        expect(page.locator("#fields tbody tr")).to_have_count(1)
        page.locator("#fields").get_by_role("link", name="Account").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Account")
        page.get_by_role("link", name="All relationships").click()
        expect(page.locator("tbody")).to_contain_text("is referenced by")
        page.goto(f"{server.base}/salesforce/paths?from=Account&to=Contact")
        expect(page.locator("svg line")).to_have_count(1)
        context = browser.new_context(bypass_csp=True)
        checked = context.new_page()
        for path in ("", "/objects/Contact", "/objects/Contact?depth=2", "/paths?from=Account&to=Contact", "/soql"):
            checked.goto(f"{server.base}/salesforce{path}")
            expect(checked.get_by_role("heading", level=1)).to_be_visible()
            assert Axe().run(checked, options=AXE_RULES).response["violations"] == [], path
        context.close()
        page.goto(f"{server.base}/salesforce/soql?q=SELECT+Id%0AFROM+Contact+LIMIT+1")
        page.get_by_label("Query").fill(
            "SELECT Id\nFROM Contact\nWHERE Name = '\N{GRINNING FACE}' AND Nmae = 'x' LIMIT 1"
        )
        page.get_by_role("button", name="line 3").first.click()
        chosen = "box => box.value.slice(box.selectionStart, box.selectionEnd)"
        assert page.get_by_label("Query").evaluate(chosen) == "Nmae"
        page.goto(f"{server.base}/salesforce/soql?q=SELECT+Id+FROM+Acount+LIMIT+1")
        expect(page.locator("#check")).to_contain_text("column 16")
        page.get_by_role("button", name="Use this query").click()
        expect(page.get_by_label("Query")).to_have_value("SELECT Id FROM Account LIMIT 1")
        expect(page.locator("#check")).to_contain_text("valid")
        page.get_by_role("button", name="Run").click()
        expect(page.locator("#rows")).to_contain_text("no org to query")
        page.close()


def test_each_of_several_schemas_has_its_pages(browser: Browser, tmp_path: Path) -> None:
    data = ("--data-dir", tmp_path / "data")
    for name in ("one", "two"):
        _import_schema(tmp_path / "describes", tmp_path / "data", name)
    with listening(*data, "--toolsets", "salesforce_graph", log=tmp_path / "log") as server:
        page = browser.new_page()
        page.goto(f"{server.base}/salesforce")
        page.get_by_role("link", name="two").click()
        page.get_by_role("link", name="Contact").click()
        expect(page).to_have_url(f"{server.base}/salesforce/orgs/two/objects/Contact")
        expect(page.locator("svg a", has_text="Account")).to_be_visible()
        page.goto(f"{server.base}/salesforce/objects/Contact")
        expect(page.get_by_role("alert")).to_contain_text("Known: one, two")
        page.close()


def test_an_org_is_asked_and_what_it_says_is_text(demo: Running, page: Page, tmp_path: Path) -> None:
    """Rows with paging, CSV without formulas, an article: nothing in a record runs as code."""
    data = ("--data-dir", tmp_path / "data")
    log_in(demo, tmp_path / "data")
    for command in ("sync-schema", "sync-knowledge"):
        made = bedstone("salesforce", command, *data)
        assert made.returncode == 0, made.stderr
    for name in ("=1+1", "<img src=x onerror=alert(3)>"):
        made_record = demo.http.post(f"{V}/sobjects/Contact", json={"LastName": name, "Title": "Tester"})
        assert made_record.status_code == 201
    toolsets = ("--toolsets", "salesforce_graph,salesforce_knowledge")
    with listening(*data, *toolsets, log=tmp_path / "log") as server:
        page.goto(f"{server.base}/salesforce/soql")
        page.get_by_label("Query").fill("SELECT LastName, Account.Name FROM Contact WHERE Title = 'Tester'")
        page.get_by_role("button", name="Run").click()
        table = page.locator("#rows table")
        expect(table).to_contain_text("<img src=x onerror=alert(3)>")
        expect(table.locator("th")).to_have_text(["LastName", "Account.Name"])
        with page.expect_download() as download:
            page.get_by_role("button", name="Download CSV").click()
        text = download.value.path().read_text()
        assert text.splitlines()[0] == "LastName,Account.Name"
        assert "'=1+1," in text
        page.get_by_label("Query").fill("SELECT COUNT() FROM Contact")
        page.get_by_role("button", name="Run").click()
        expect(table.locator("th")).to_have_text(["COUNT()"])
        page.get_by_label("Query").fill("SELECT Id FROM Contact ORDER BY Id")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#rows tbody tr")).to_have_count(100)
        page.get_by_role("button", name="More rows").click()
        expect(page.locator("#rows tbody tr")).to_have_count(200)
        with page.expect_download() as download:
            page.get_by_role("button", name="Download CSV").click()
        assert (
            len(download.value.path().read_text().splitlines())
            == demo.query("SELECT COUNT() FROM Contact")["totalSize"] + 1
        )
        page.goto(f"{server.base}/salesforce")
        page.get_by_role("navigation").get_by_role("link", name="Articles").click()
        page.get_by_label("Title contains").fill("battery")
        page.keyboard.press("Enter")
        page.locator("tbody").get_by_role("link").first.click()
        expect(page.locator(".chunk")).to_contain_text("attery")


def test_documentation_is_browsed_down_to_what_an_agent_sees(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/docs")
    page.get_by_role("link", name="docs", exact=True).click()
    page.get_by_role("link", name="guide.md").click()
    page.locator("ul.outline").get_by_role("link", name="Pagination").click()
    expect(page).to_have_url(re.compile("#guide.md"))
    page.locator("section").get_by_role("link", name="Pagination").click()
    expect(page.locator("pre")).to_contain_text("Use the cursor to page through results.")
    page.get_by_role("link", name="With the chunks around it").click()
    expect(page.locator("pre")).to_contain_text("Guide")


def test_evaluations_are_shown_beside_the_ones_before(browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "evaluations"
    folder.mkdir(parents=True)
    for number, value in enumerate((0.5, 0.75)):
        report = {
            "name": "mine",
            "at": f"2026-01-0{number + 1}",
            "quality": {"mrr@5": value, "hit@5": value},
            "by_category": {"easy": {"mrr@5": 2 * value}, "hopeless": {"mrr@5": 0.0}},
        }
        (folder / f"2026010{number + 1}-mine.json").write_text(json.dumps(report))
    (folder / "broken.json").write_text("[" * 100_000)
    (folder / "gone.json").symlink_to(tmp_path / "nowhere")
    with listening("--data-dir", tmp_path / "data", "--toolsets", "knowledge", log=tmp_path / "log") as server:
        page = browser.new_page()
        page.goto(f"{server.base}/quality")
        expect(page.get_by_role("img", name="mrr@5 0.75 (before: 0.5)")).to_be_visible()
        chart = server.request("GET", "/quality/chart.svg?name=mine")[1].decode()
        assert "0.75" in chart
        assert "hopeless" in chart  # readers look for what fails
        page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(server: Listening, browser: Browser, scheme: str) -> None:
    """Pages have no violation of WCAG level A or AA that axe-core finds."""
    context = browser.new_context(bypass_csp=True, color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    for path in (
        "/", "/search?q=cursor", "/search/beside?q=cursor", "/documents", "/docs", "/docs/corpora/docs",
        "/docs/corpora/docs/guide.md", "/docs/chunk?id=guide.md%23guide/pagination",
        "/tools", "/tools/knowledge-search", "/quality", "/nowhere", "/tools/none",
    ):  # fmt: skip
        page.goto(f"{server.base}{path}")
        found = Axe().run(page, options=AXE_RULES).response["violations"]
        assert [(item["id"], [node["html"] for node in item["nodes"]]) for item in found] == [], path
    context.close()


def test_odd_input_is_answered_in_words(server: Listening) -> None:
    csrf = _csrf(server.request("GET", "/")[1])
    form = {"x-csrf": csrf, "content-type": "application/x-www-form-urlencoded"}
    for path in (
        "/docs/corpora/docs?page=%C2%B2",
        f"/docs/corpora/docs?page={'9' * 5000}",
        "/documents?page=99999",
        "/documents?page=-1",
    ):
        assert server.request("GET", path)[0] == 200, path
    assert server.request("GET", "/mcp/tools/list")[0] == 405  # the pages do not shadow other routes
    assert server.request("POST", "/healthz", b"")[0] == 405
    assert server.request("POST", "/tools/nope", b"", form)[0] == 404
    assert server.request("POST", "/tasks/x/cancel", b"", form)[0] == 404
    assert server.request("POST", "/tools/get_kb_info", b"x" * 2_000_000, form)[0] == 413
    name = "%E6%BC%A2" * 100 + ".txt"
    status, body = server.request("POST", "/documents", b"Tulips.", {"x-csrf": csrf, "x-filename": name})
    assert status == 202, body
    document = _added(server)
    for bad in (
        rb"metadata={%22a%22:%22\ud800%22}",
        b"metadata={%22a%22:NaN}",
        b"metadata={%22a%22:1e999}",
        b"metadata=" + b"[" * 5_000,
        b"metadata=5",
    ):
        assert server.request("POST", f"/documents/{document}/metadata", bad, form)[0] == 400
    assert server.request("GET", f"/documents/{document}")[0] == 200


def _csrf(page: bytes) -> str:
    found = re.search(rb'name="csrf" content="(\w+)"', page)
    assert found
    return found[1].decode()


def _added(server: Listening) -> str:
    """The id of a document that was read."""
    for _ in range(100):
        _, body = server.request("GET", "/documents")
        if found := re.search(rb'href="/documents/([0-9a-f-]{36})"', body):
            return found[1].decode()
        time.sleep(0.1)
    raise AssertionError("nothing was added")


def test_pages_about_mcp_are_pages_and_deep_links_survive_the_login(browser: Browser, tmp_path: Path) -> None:
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
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{server.base}/search?q=words&in=docs")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        expect(page).to_have_url(f"{server.base}/search?q=words&in=docs")
        page.get_by_role("button", name="Log out").click()
        page.goto(f"{server.base}/docs/corpora/guide/what%3F%20%25.md")
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("what? %.md")
        page.goto(f"{server.base}/docs/corpora/guide/mcp/intro.md")
        expect(page.get_by_role("heading", level=1)).to_have_text("mcp/intro.md")
        context.close()
