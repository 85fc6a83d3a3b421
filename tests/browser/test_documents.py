"""Documents in a real browser: drop a file, ask, see the cited page; arrange, remove, retry and stop."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from support.browsing import check_pages
from support.corpus import corpus, pdf_of, pdf_page
from support.processes import Listening, bedstone, listening

HOSTILE_NAME = "<img src=x onerror=alert(1)>.txt"
HOSTILE_TEXT = "The quick walrus <script>alert(2)</script> sleeps at noon."
MANUAL = Path(__file__).parents[2] / "demo" / "files" / "porter-workshop-manual.pdf"
QUESTION = "when to replace a brake disc"
DROP = """async ([name, text]) => {
  const data = new DataTransfer();
  data.items.add(new File([text], name));
  const init = {dataTransfer: data, bubbles: true};
  for (const kind of ["dragover", "drop"]) document.body.dispatchEvent(new DragEvent(kind, init));
}"""
GONE = """async (name) => !(await (await fetch(`/documents?name=${name}`)).text()).includes(`data-name="${name}"`)"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    folder = tmp_path_factory.mktemp("documents")
    options = ("--data-dir", folder / "data", "--toolsets", "knowledge")
    with listening(*options, log=folder / "log", BEDSTONE_EMBEDDING__PROVIDER="none") as server:
        yield server


def add(page: Page, server: Listening, *files: Path) -> None:
    """Choose files on the list and wait until all are read."""
    page.goto(f"{server.base}/documents")
    page.set_input_files("#files", [str(file) for file in files])
    expect(page.locator("#said")).not_to_be_empty(timeout=60_000)
    expect(page.locator("#arriving tr")).to_have_count(0)


def row(page: Page, name: str) -> Locator:
    return page.locator("#table tbody tr", has_text=name).first


def open_document(page: Page, server: Listening, name: str, query: str = "") -> str:
    """Open a document from the list, perhaps with a query; return its address."""
    page.goto(f"{server.base}/documents?name={quote(name)}")
    page.locator("#listed").get_by_role("link", name=name).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    address = page.url.removeprefix(server.base)
    if query:
        page.goto(f"{page.url}{query}")
    return address


def test_a_file_is_dropped_asked_about_and_its_cited_page_is_shown(server: Listening, page: Page) -> None:
    add(page, server, MANUAL)
    expect(page.locator("#facts")).to_contain_text("ready with")
    page.goto(f"{server.base}/search?q={QUESTION.replace(' ', '+')}")
    hits = page.locator("#content").get_by_role("link", name=re.compile("porter-workshop|Replacing a brake disc"))
    hits.first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(MANUAL.name)
    expect(page.locator(".found-bar")).to_contain_text(QUESTION)
    expect(page.locator(".found-bar .band")).to_contain_text("Strong")
    expect(page.locator(".passage.found")).to_contain_text("A disc thinner than 1.8 mm must be replaced.")
    picture = page.get_by_role("img", name=f"Page 2 of {MANUAL.name}")
    expect(picture).to_have_js_property("complete", value=True)
    assert picture.evaluate("image => image.naturalWidth") > 0
    frame = page.locator(".sheet .page-passage")
    expect(frame).to_have_count(1)
    inside = "([frame, sheet]) => frame.top > sheet.top && frame.bottom < sheet.bottom && frame.width < sheet.width"
    boxes = [item.evaluate("item => item.getBoundingClientRect().toJSON()") for item in (frame, picture)]
    assert page.evaluate(inside, boxes)
    assert page.locator(".sheet .page-found").count() >= 3
    page.get_by_role("link", name="Results").click()
    expect(page).to_have_url(re.compile(r"/search\?q="))


def test_files_dropped_anywhere_are_added_to_the_collection_that_is_shown(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/documents")
    page.get_by_role("button", name="New collection").click()
    page.get_by_label("Name", exact=True).fill("two words")
    page.get_by_role("button", name="Create collection").click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("two words")
    expect(page.locator("#collection-help")).to_contain_text("letters, digits, _ or -")
    page.get_by_label("Name", exact=True).fill("Harbour")
    page.get_by_role("button", name="Create collection").click()
    expect(page.get_by_role("link", name="Harbour 0")).to_have_attribute("aria-current", "true")
    page.evaluate(DROP, ["tides.txt", "High water is at noon."])
    expect(row(page, "tides.txt")).to_contain_text("Ready", timeout=30_000)
    expect(page.get_by_role("link", name="Harbour 1")).to_be_visible()
    expect(page.locator("#said")).to_have_text("tides.txt is ready")
    page.get_by_role("link", name=re.compile("All ")).click()
    expect(row(page, "tides.txt")).to_contain_text("Harbour")
    row(page, "tides.txt").get_by_role("link", name="More for tides.txt").click()
    page.locator("#row-menu").get_by_label("Harbour").uncheck()
    expect(row(page, "tides.txt")).not_to_contain_text("Harbour")
    page.keyboard.press("Escape")
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(row(page, "tides.txt")).to_contain_text("Harbour")


def test_a_removal_is_taken_back_or_sent_when_the_page_is_left(server: Listening, page: Page, tmp_path: Path) -> None:
    for name in ("stays.txt", "goes.txt"):
        (tmp_path / name).write_text(f"This file {name} is short.")
    add(page, server, tmp_path / "stays.txt", tmp_path / "goes.txt")
    for name in ("stays.txt", "goes.txt"):
        row(page, name).get_by_role("link", name=f"More for {name}").click()
        page.locator("#row-menu").get_by_role("button", name="Remove").click()
        expect(page.locator(".toast")).to_contain_text(f"{name} is removed")
        expect(row(page, name)).to_be_hidden()
        if name == "stays.txt":
            page.locator(".toast").get_by_role("button", name="Undo").click()
            expect(row(page, name)).to_be_visible()
    page.goto(f"{server.base}/documents?name=stays")
    expect(page.locator("#listed tr")).to_have_count(1)
    page.wait_for_function(GONE, arg="goes.txt")


def test_a_hostile_file_is_shown_as_text_described_and_removed(server: Listening, page: Page, tmp_path: Path) -> None:
    file = tmp_path / HOSTILE_NAME
    file.write_text(HOSTILE_TEXT)
    add(page, server, file)
    open_document(page, server, HOSTILE_NAME)
    expect(page.locator(".passage .prose")).to_contain_text("The quick walrus")
    page.get_by_role("link", name="Raw").click()
    expect(page.locator("#raw")).to_have_text(HOSTILE_TEXT)
    page.get_by_role("link", name="Facts").click()
    page.get_by_label("Your metadata").fill('{"topic": "<b>animals</b>"')
    page.get_by_role("button", name="Save metadata").click()
    expect(page.get_by_label("Your metadata")).to_have_value('{"topic": "<b>animals</b>"')
    expect(page.locator("#metadata-help")).to_contain_text("Not valid JSON")
    page.get_by_label("Your metadata").fill('{"topic": "<b>animals</b>"}')
    page.get_by_role("button", name="Save metadata").click()
    expect(page.get_by_label("Your metadata")).to_have_value(re.compile("<b>animals</b>"))
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Remove …").click()
    expect(page.get_by_text("Agents no longer find it.")).to_be_visible()
    page.get_by_role("button", name="Remove", exact=True).click()
    expect(page).to_have_url(f"{server.base}/documents")
    expect(page.get_by_text(HOSTILE_NAME)).to_have_count(0)


def test_pages_are_turned_with_the_keyboard_and_the_original_is_downloaded(server: Listening, page: Page) -> None:
    add(page, server, MANUAL)
    open_document(page, server, MANUAL.name)
    expect(page.get_by_label("Page 1 as it looks")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Page 2 as it looks")).to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Page 3 as it looks")).to_be_visible()
    page.keyboard.press("ArrowRight")  # there is no further page
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_label("Page 2 as it looks")).to_be_visible()
    page.goto(f"{page.url}&view=facts")
    page.get_by_label("Your metadata").press("ArrowRight")  # moves the caret, not the page
    expect(page).to_have_url(re.compile("page=2"))
    page.get_by_role("link", name="Zoom").click()
    expect(page.locator(".well")).to_have_class(re.compile("zoomed"))
    with page.expect_download() as download:
        page.get_by_role("link", name="Original").click()
    assert download.value.suggested_filename == MANUAL.name
    assert download.value.path().read_bytes() == MANUAL.read_bytes()


def test_a_passage_is_copied_with_its_source(server: Listening, browser: Browser) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    add(page, server, MANUAL)
    open_document(page, server, MANUAL.name, "?page=2&q=lock+ring")
    page.locator(".passage.found").get_by_role("button", name="Copy with source").click()
    expect(page.locator(".toast")).to_have_text("Copied with its source")
    text, source, link = page.evaluate("navigator.clipboard.readText()").rsplit("\n", 2)
    assert text.startswith("“Replacing a brake disc")
    assert source == f"{MANUAL.name}, page 2"
    page.get_by_role("button", name="Share").click()
    shared = page.evaluate("navigator.clipboard.readText()")
    assert "q=lock+ring" in shared
    page.goto(link)
    expect(page.locator(".passage.found")).to_contain_text("lock ring")
    context.close()


def test_rich_text_stands_beside_its_passages(server: Listening, page: Page, tmp_path: Path) -> None:
    sections = "".join(f"## Section {number}\n\nThe pump of hall {number} needs oil.\n\n" for number in range(60))
    (tmp_path / "pumps.md").write_text(f"# Pumps\n\n{sections}")
    add(page, server, tmp_path / "pumps.md")
    open_document(page, server, "pumps.md", "?q=oil+for+hall+48&mode=keyword")
    original, passages = page.get_by_role("region", name="Original"), page.get_by_role("region", name="Passages")
    expect(original.locator("#found")).to_be_in_viewport()
    expect(original.locator(".found", has_text="hall 48")).to_be_visible()
    expect(passages.locator(".passage.found")).to_be_in_viewport()
    expect(passages.locator(".passage.found")).to_contain_text("hall 48")
    expect(page.get_by_text("## Section")).to_have_count(0)


def test_a_file_that_cannot_be_taken_is_refused_in_words(server: Listening, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "program.exe"
    file.write_bytes(b"MZ\0\0")
    page.goto(f"{server.base}/documents")
    page.set_input_files("#files", str(file))
    expect(row(page, "program.exe")).to_contain_text("Failed: unsupported format .exe")
    row(page, "program.exe").get_by_role("button", name="Dismiss").click()
    expect(row(page, "program.exe")).to_have_count(0)


def test_a_file_that_cannot_be_read_says_why_and_can_be_sent_again(
    server: Listening, page: Page, tmp_path: Path
) -> None:
    file = tmp_path / "torn.pdf"
    file.write_bytes(b"%PDF-1.7 torn in half")
    page.goto(f"{server.base}/documents")
    page.set_input_files("#files", str(file))
    row(page, "torn.pdf").get_by_role("button", name="Retry").click(timeout=30_000)
    expect(row(page, "torn.pdf").get_by_role("button", name="Retry")).to_be_visible(timeout=30_000)
    expect(page.locator("#table tr", has_text="torn.pdf")).to_have_count(1)
    page.goto(f"{server.base}/documents?status=failed")
    expect(row(page, "torn.pdf")).to_contain_text("Failed: not a PDF, or the file is corrupt")
    open_document(page, server, "torn.pdf")
    expect(page.get_by_role("alert")).to_contain_text("Open it in its program, save it again")
    check_pages(page.context.browser, server.base, page.url.removeprefix(server.base))  # type: ignore[arg-type]
    page.get_by_role("button", name="Remove from the list").click()
    expect(page).to_have_url(f"{server.base}/documents")
    expect(page.get_by_role("link", name="torn.pdf")).to_have_count(0)


def test_a_file_on_this_machine_is_read_again_from_where_it_is(server: Listening, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "late.html"
    file.write_text("<p></p>")
    call = {"name": "knowledge-add", "arguments": {"file_path": str(file)}}
    status, _ = server.post("/mcp/tools/call", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    assert status == 200
    open_document(page, server, "late.html")
    expect(page.get_by_role("button", name="Retry")).to_be_visible(timeout=30_000)
    file.write_text("<p>Better late than never.</p>")
    page.get_by_role("button", name="Retry").click()
    expect(page.locator(".passage .prose")).to_have_text("Better late than never.", timeout=30_000)


def test_reading_a_long_file_is_watched_and_stopped(server: Listening, page: Page, tmp_path: Path) -> None:
    page.goto(f"{server.base}/documents")
    for name, stops_on_its_page in (("long.txt", False), ("longer.txt", True)):
        file = tmp_path / name
        own = uuid4().hex  # no other run had this text, so no vector is cached
        text = "\n\n".join(f"Paragraph {number} of {own} tells of tulips. " * 12 for number in range(6_000))
        file.write_text(text)
        page.goto(f"{server.base}/documents")
        page.set_input_files("#files", str(file))
        expect(row(page, name).get_by_role("button", name=f"Stop {name}")).to_be_visible(timeout=30_000)
        if stops_on_its_page:
            open_document(page, server, name)
            page.get_by_role("button", name="Stop").click()
            expect(page).to_have_url(f"{server.base}/documents", timeout=60_000)
        else:
            row(page, name).get_by_role("button", name=f"Stop {name}").click()
            expect(page.get_by_role("link", name=name)).to_have_count(0, timeout=60_000)


def test_more_files_than_one_stream_watches_are_all_reported(server: Listening, page: Page, tmp_path: Path) -> None:
    files = [tmp_path / f"note-{number}.txt" for number in range(104)]
    for file in files:
        file.write_text(f"Note {file.stem} about herons.")
    page.goto(f"{server.base}/documents?name=note-")
    page.set_input_files("#files", [str(file) for file in files])
    expect(page.locator("#said")).to_have_text("104 files have been read", timeout=120_000)
    expect(page.locator("#arriving tr")).to_have_count(0)
    expect(page.locator("#listed tr")).to_have_count(50)
    page.goto(f"{server.base}/documents?name=note-&page=3")
    expect(page.locator("#listed tr")).to_have_count(4)


def test_the_list_is_narrowed_without_a_mouse(server: Listening, page: Page, tmp_path: Path) -> None:
    (tmp_path / "quay.html").write_text("<p>The quay is dry.</p>")
    add(page, server, MANUAL, tmp_path / "quay.html")
    page.get_by_label("Name contains").fill("quay")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.base}/documents?name=quay")
    expect(page.locator("#listed tr")).to_have_count(1)
    page.get_by_role("button", name="More filters").press("Enter")
    page.get_by_label("Format").select_option("html")
    page.get_by_role("button", name="Apply").press("Enter")
    expect(page).to_have_url(f"{server.base}/documents?name=quay&format=html")
    page.get_by_role("link", name="Format: html").press("Enter")
    expect(page).to_have_url(f"{server.base}/documents?name=quay")
    page.get_by_role("link", name="More for quay.html").press("Enter")
    expect(page.locator("#row-menu").get_by_role("link", name="Open")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="More for quay.html")).to_be_focused()
    page.get_by_label("Sort").select_option("filename")
    expect(page).to_have_url(f"{server.base}/documents?name=quay&sort=filename")


def test_pages_are_accessible_and_fit_a_phone(server: Listening, browser: Browser, page: Page, tmp_path: Path) -> None:
    invoices = next(file for file in corpus() if file.name == "invoices.pdf").write(tmp_path)
    slides = next(file for file in corpus() if file.name == "slides.pptx").write(tmp_path)
    (tmp_path / "long.pdf").write_bytes(
        pdf_of([pdf_page(f"Chapter {number}", [f"The tide of day {number}."]) for number in range(1, 61)])
    )
    add(page, server, MANUAL, invoices, slides, tmp_path / "long.pdf")
    question = f"?q={QUESTION.replace(' ', '+')}"
    paths = ["/documents", "/documents?status=failed&name=zzz"]
    for name, query in ((MANUAL.name, question), (slides.name, "?page=3"), ("long.pdf", "?page=30")):
        paths.append(f"{open_document(page, server, name)}{query}")
    invoice = open_document(page, server, invoices.name)
    paths += [f"{invoice}?page=2&view={view}" for view in ("", "text", "outline", "facts")]
    check_pages(browser, server.base, *paths)


def test_everything_is_read_without_a_script(server: Listening, browser: Browser, page: Page) -> None:
    add(page, server, MANUAL)
    context = browser.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(f"{server.base}/documents?name=porter")
    plain.locator("#listed").get_by_role("link", name=MANUAL.name).first.click()
    plain.get_by_role("link", name="Next page").click()
    expect(plain.locator(".passage")).to_contain_text("Replacing a brake disc")
    plain.goto(f"{plain.url}&q=lock+ring")
    expect(plain.get_by_alt_text("The passage, framed")).to_be_visible()
    plain.get_by_role("link", name="Facts").click()
    plain.get_by_label("Your metadata").fill('{"topic": "brakes"}')
    plain.get_by_role("button", name="Save metadata").click()
    expect(plain.get_by_label("Your metadata")).to_have_value(re.compile("brakes"))
    context.close()


def test_a_read_only_server_offers_and_takes_no_changes(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("Kept as it is.")
    data = ("--data-dir", tmp_path / "data")
    assert bedstone("knowledge", "add", tmp_path / "kept.txt", *data).returncode == 0
    with listening(*data, "--read-only", "--toolsets", "knowledge", log=tmp_path / "log") as server:
        page = browser.new_page()
        page.goto(f"{server.base}/documents")
        expect(page.get_by_text("This server is read-only")).to_be_visible()
        expect(page.locator("#files")).to_have_count(0)
        expect(page.get_by_role("button", name="Add files")).to_have_count(0)
        open_document(page, server, "kept.txt")
        expect(page.locator(".passage .prose")).to_have_text("Kept as it is.")
        page.get_by_role("button", name="More", exact=True).click()
        expect(page.get_by_role("button", name="Remove …")).to_have_count(0)
        address, csrf = page.url.removeprefix(server.base), page.locator("meta[name=csrf]").get_attribute("content")
        form = {"x-csrf": csrf or "", "content-type": "application/x-www-form-urlencoded"}
        changes = ("metadata", "remove", "retry", "read-again", "collections")
        for path in (*(f"{address}/{change}" for change in changes), "/documents", "/collections", "/tasks/x/cancel"):
            status, body = server.request("POST", path, b"metadata={}", form)
            assert (status, b"read-only" in body) == (403, True), path
        page.reload()
        expect(page.locator(".passage .prose")).to_have_text("Kept as it is.")
        page.close()
