"""The pages in a real browser, against the real server."""

import re
import time
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from support.processes import Listening, listening

HOSTILE_NAME = "<img src=x onerror=alert(1)>.txt"
HOSTILE_TEXT = "The quick walrus <script>alert(2)</script> sleeps at noon."
TOKEN = "open-sesame-please"
AXE_RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "notes.txt").write_text("Opening hours are nine to five.")
    (folder / "docs").mkdir()
    (folder / "docs" / "guide.md").write_text("# Guide\n\n## Pagination\n\nUse the cursor to page through results.\n")
    options = ("--data-dir", folder / "data", "--kb-file", folder / "notes.txt", "--docs-dir", folder / "docs")
    with listening(*options, log=folder / "log") as server:
        yield server


def test_pages_keep_to_their_policy(server: Listening) -> None:
    for path in ("/", "/search?q=x", "/documents", "/tools", "/tools/get_kb_info"):
        status, body = server.request("GET", path)
        assert status == 200
        assert len(body) < 150_000
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(server: Listening, browser: Browser, scheme: str) -> None:
    """Pages have no violation of WCAG level A or AA that axe-core finds."""
    context = browser.new_context(bypass_csp=True, color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    for path in (
        "/", "/search?q=cursor", "/search/beside?q=cursor", "/documents",
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
        _, body = server.request("GET", "/documents?status=completed")
        if found := re.search(rb'href="/documents/([0-9a-f-]{36})["?]', body):
            return found[1].decode()
        time.sleep(0.1)
    raise AssertionError("nothing was added")
