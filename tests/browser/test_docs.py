"""Documentation and the knowledge file in a real browser: reading, passages, finding, hostile texts."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browsing import check_pages
from support.payloads import MARKDOWN_PAYLOADS, PAYLOADS, SAFE_ATTRIBUTES, SAFE_TAGS
from support.processes import Listening, listening

HANDBOOK = Path(__file__).parents[2] / "demo" / "handbook.txt"
GUIDE = "/docs/corpora/guide"
ERRORS = """# Errors

What to do. See [paging](paging.md#next-page).

## Error codes

| code | status | what to do |
|---|---|---|
| `RATE_LIMIT` | 429 | wait as long as `Retry-After` says |

```sh
curl https://example.org/a/very/long/address/that/does/not/fit/on/a/telephone/because/it/is/so/very/long
```

## Rate limits

A key may send 100 requests a minute.

## Backoff

Wait one second, then two.
"""
# Every element and attribute below the texts of others, as the browser sees them.
INSPECT = """([tags, attributes]) => {
  const wrong = [];
  for (const element of document.querySelectorAll(".prose > section *")) {
    if (!tags.includes(element.localName)) wrong.push(element.localName);
    for (const { name, value } of element.attributes) {
      if (!attributes.includes(name) && !(element.localName === "mark" && name === "aria-current")) wrong.push(name);
      if (name === "href" && !/^(https?|mailto):$/.test(new URL(value, location.href).protocol)) wrong.push(value);
    }
  }
  return wrong;
}"""


def write_files(folder: Path) -> tuple[Any, ...]:
    """Write documentation and a knowledge file, and return the options that serve them."""
    guide = folder / "guide"
    guide.mkdir()
    (guide / "errors.md").write_text(ERRORS)
    (guide / "paging.md").write_text("# Paging\n\nFollow the cursor.\n\n## Next page\n\nAsk again.\n")
    hostile = [item.encode("utf-8", "replace").decode().replace("\0", "") for item in (*PAYLOADS, *MARKDOWN_PAYLOADS)]
    (guide / "hostile.md").write_text("# Hostile\n" + "".join(f"\n\n## Case\n\n{item}\n" for item in hostile))
    (folder / "handbook.txt").write_bytes(HANDBOOK.read_bytes())
    return ("--data-dir", folder / "data", "--docs-dir", guide, "--kb-file", folder / "handbook.txt")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    folder = tmp_path_factory.mktemp("docs")
    with listening(*write_files(folder), log=folder / "log") as server:
        yield server


def test_documentation_is_browsed_down_to_what_an_agent_gets(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/docs")
    page.get_by_role("link", name="guide", exact=True).click()
    page.get_by_role("link", name="errors.md").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Errors")
    answer = page.locator("#answer")
    expect(answer).to_contain_text("Passage 1 of 4")
    page.evaluate("window.stays = true")
    page.get_by_role("navigation", name="On this page").get_by_role("link", name="Rate limits").click()
    expect(answer).to_contain_text("--- Chunk: errors.md#errors/rate-limits (Chunk 3 of 4) (Target) ---")
    expect(page.locator("section.found")).to_contain_text("A key may send 100 requests a minute.")
    expect(page).to_have_url(re.compile(r"chunk=errors\.md%23errors%2Frate-limits#errors\.md"))
    answer.get_by_role("link", name="With its neighbours").click()
    expect(answer).to_contain_text("(Context: +1)")
    answer.get_by_role("link", name="Without its neighbours").click()
    expect(answer).not_to_contain_text("(Context: +1)")
    assert page.evaluate("window.stays"), "the page was not loaded again"
    answer.get_by_role("link", name="Try get_doc").click()
    expect(page).to_have_url(re.compile(r"/tools/get_doc\?chunk_id=errors"))


def test_links_inside_documentation_stay_on_this_server(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}{GUIDE}/errors.md")
    page.get_by_role("article").get_by_role("link", name="paging").click()
    expect(page).to_have_url(f"{server.base}{GUIDE}/paging.md#paging.md%23paging/next-page")
    expect(page.get_by_role("heading", name="Next page")).to_be_in_viewport()
    page.get_by_role("link", name="Before Hostile").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Hostile")


def test_a_search_leads_to_the_passage_and_back(server: Listening, page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 400})
    chunk = "errors.md#errors/backoff"
    page.goto(f"{server.base}{GUIDE}/errors.md?chunk={quote(chunk, safe='')}&q=wait+second#{quote(chunk)}")
    found = page.locator("section.found")
    expect(found.get_by_role("heading")).to_be_in_viewport()
    expect(found.locator("mark").first).to_have_text("Wait")
    page.get_by_role("article").get_by_role("link", name="Results").click()
    expect(page).to_have_url(re.compile(r"/search\?q=wait(\+|%20)second"))


def test_code_and_ids_are_copied(server: Listening, browser: Browser) -> None:
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(f"{server.base}{GUIDE}/errors.md")
    page.locator(".prose .code").get_by_role("button", name="Copy").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith("curl https://example.org/")
    page.goto(f"{server.base}/knowledge-file")
    page.get_by_role("button", name="Copy text").click()
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == HANDBOOK.read_text()
    context.close()


def test_hostile_documentation_runs_nothing_and_loads_nothing(server: Listening, page: Page) -> None:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    number = 1
    while page.goto(f"{server.base}{GUIDE}/hostile.md?page={number}&q=alert"):
        assert page.evaluate(INSPECT, [sorted(SAFE_TAGS), sorted(SAFE_ATTRIBUTES)]) == []
        assert page.evaluate("document.querySelector('meta[name=csrf]').content.length") > 20
        if page.locator(".pager").get_by_role("link", name="Next").count() == 0:
            break
        number += 1
    assert number > 1
    assert [address for address in requests if not address.startswith(server.base)] == []


def test_words_are_found_in_the_knowledge_file_step_by_step(server: Listening, page: Page) -> None:
    page.goto(f"{server.base}/knowledge-file")
    page.get_by_label("Find in this text").fill("battery")
    page.keyboard.press("Enter")
    status = page.get_by_role("search").get_by_role("status")
    expect(status).to_have_text("1 of 13")
    page.evaluate("window.stays = true")
    page.get_by_role("link", name="Next match").click()
    expect(status).to_have_text("2 of 13")
    expect(page.locator("mark[aria-current]")).to_have_attribute("id", "found-2")
    for _ in range(2):
        page.get_by_role("link", name="Match before").click()
    expect(status).to_have_text("13 of 13")
    expect(page.locator("#found-13")).to_be_in_viewport()
    assert page.evaluate("window.stays")
    page.reload()
    expect(status).to_have_text("13 of 13")
    page.get_by_role("link", name="As stored").click()
    expect(page.locator(".stored")).to_contain_text("KESTREL CYCLES SUPPORT HANDBOOK")
    page.get_by_role("link", name="Read").click()
    page.get_by_role("navigation", name="In this text").get_by_role("link", name="4. WARRANTY").click()
    expect(page.get_by_role("heading", name="4. WARRANTY")).to_be_in_viewport()


def test_pages_work_without_scripts(server: Listening, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{server.base}{GUIDE}/errors.md")
    page.get_by_role("navigation", name="On this page").get_by_role("link", name="Backoff").click()
    expect(page.locator("#answer")).to_contain_text("Passage 4 of 4")
    page.locator("#answer").get_by_role("link", name="With its neighbours").click()
    expect(page.locator("#answer")).to_contain_text("(Context: -1)")
    page.goto(f"{server.base}/knowledge-file?q=battery")
    page.get_by_role("link", name="Next match").click()
    expect(page.get_by_text("2 of 13")).to_be_visible()
    expect(page.get_by_role("button", name="Copy text")).to_be_hidden()
    context.close()


def test_a_link_to_a_section_of_a_long_text_finds_its_part(browser: Browser, tmp_path: Path) -> None:
    words = "Some words about the weather of the week.\n" * 20
    text = "".join(f"{number}. Section number {number}\n\n{words}\n" for number in range(1, 300))
    (tmp_path / "long.txt").write_text(text)
    options = ("--data-dir", tmp_path / "data", "--kb-file", tmp_path / "long.txt", "--toolsets", "kb")
    with listening(*options, log=tmp_path / "log") as server:
        page = browser.new_page()
        page.goto(f"{server.base}/knowledge-file#250-section-number-250")
        expect(page.get_by_role("heading", name="250. Section number 250")).to_be_in_viewport()
        page.close()
        check_pages(browser, server.base, "/knowledge-file?q=weather&page=2", "/knowledge-file?view=stored")


def test_the_pages_are_accessible_and_never_scroll_sideways(server: Listening, browser: Browser) -> None:
    chunk = quote("errors.md#errors/rate-limits", safe="")
    check_pages(
        browser,
        server.base,
        "/docs",
        GUIDE,
        f"{GUIDE}?name=zebra",
        f"{GUIDE}/errors.md?chunk={chunk}&q=rate",
        f"{GUIDE}/hostile.md",
        f"{GUIDE}/hostile.md?page=2",
        "/knowledge-file?q=battery",
        "/knowledge-file?q=battery&view=stored",
        "/knowledge-file?q=zeppelin&agent=text",
    )
