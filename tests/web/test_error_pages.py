"""Errors in this process: plain words, what was asked for, the ways on, and nothing of the inside."""

import re
from collections.abc import AsyncIterator
from html import escape, unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.exceptions import HTTPException

from bedstone.toolkit import Reply
from bedstone.web.frame import tool_error
from bedstone.web.problems import describe_problem
from bedstone.web.wording import for_people
from support.site import Site, make_settings, open_site

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("errors")
    (folder / "guide").mkdir()
    (folder / "guide" / "guide.md").write_text("# Guide\n\nUse the cursor to read on.\n")
    settings = make_settings(folder, "knowledge", "docs", "salesforce_graph", docs={"dir": [folder / "guide"]})
    async with open_site(settings) as site:
        yield site


async def test_a_page_that_does_not_exist_offers_a_search_for_its_words(site: Site) -> None:
    text = await site.text("/nowhere/brake-discs_2026.html", status=404)
    assert "<h1>Page not found: /nowhere/brake-discs_2026.html</h1>" in text
    assert '<input id="q" name="q" type="search" value="brake discs 2026"' in text
    assert 'href="/">Open Home</a>' in text
    assert 'data-copy-text="404 /nowhere/brake-discs_2026.html' in text
    assert re.search(r"<span>404</span> <code>/nowhere/brake-discs_2026.html</code> <time[^>]*>\d+ \w+ 20\d\d", text)
    assert '<a href="/" aria-current' not in text
    hostile = await site.text(f"/{quote(HOSTILE)}", status=404)
    assert HOSTILE not in hostile
    assert escape(HOSTILE, quote=False) in hostile
    assert len(await site.text(f"/{'x' * 5_000}", status=404)) < 30_000


async def test_what_is_not_found_is_told_in_the_title_with_its_section(site: Site) -> None:
    for path, title, section in (
        ("/documents/x", "No document has the id 'x'", "/documents"),
        ("/documents/0e0d2893-bc14-45a4-836f-a77472bdf7b2", "No document has the id", "/documents"),
        ("/docs/corpora/none", "Unknown corpus 'none'", "/docs"),
        ("/tools/none", "Unknown tool 'none'", "/tools"),
        ("/quality/chart.svg?name=none", "Evaluation 'none' not found", "/quality"),
    ):
        text = await site.text(path, status=404)
        found = re.search(r"<h1>(.*?)</h1>", text)
        assert found, path
        assert title in unescape(found[1])
        assert f'<a href="{section}" aria-current="page">' in text, path
    assert 'value="">' not in text
    uuid = await site.text("/documents/0e0d2893-bc14-45a4-836f-a77472bdf7b2", status=404)
    assert 'type="search" value=""' in uuid  # nobody searches for an id


async def test_scripts_and_strangers_get_the_sentence_alone(site: Site, tmp_path: Path) -> None:
    for answer in (await site.http.get("/nowhere"), await site.get("/nowhere", **{"x-part": "1"})):
        assert (answer.status_code, answer.text) == (404, "Page not found: /nowhere")
    assert (await site.http.post("/quality")).status_code == 405
    async with open_site(make_settings(tmp_path, "kb", mcp={"token": "open-sesame-please"})) as guarded:
        assert (await guarded.get("/nowhere")).text == "Page not found: /nowhere"


async def test_other_errors_say_what_to_do(site: Site) -> None:
    expired = await site.http.post("/tools/knowledge-status", headers={"accept": "text/html"})
    assert expired.status_code == 403
    assert "<h1>That is not allowed</h1>" in expired.text
    assert "This form has expired. Reload the page." in expired.text
    assert 'role="search"' not in expired.text
    assert "Copy details</button>" in expired.text


async def test_a_source_that_is_broken_says_how_it_is_repaired(tmp_path: Path) -> None:
    index = tmp_path / "data" / "index"
    index.mkdir(parents=True)
    (index / "knowledge.sqlite").write_bytes(b"not a database, although it has its name" * 100)
    async with open_site(make_settings(tmp_path, "knowledge")) as site:
        text = await site.text("/documents", status=503)
        assert "<h1>That is not available right now</h1>" in text
        assert "bedstone knowledge rebuild" in text
        assert '<a class="btn primary" href="/documents">Try again</a>' in text


async def test_no_error_page_names_a_tool_or_the_inside(site: Site) -> None:
    names = {name for toolset in site.app.toolsets.values() for name in toolset.tools if not name.isalpha()}
    for path in ("/documents/x", "/docs/chunk?id=none", "/salesforce", "/salesforce/objects/Acount", "/docs/corpora/x"):
        response = await site.get(path)
        main = response.text[response.text.index("<main") :]
        assert response.status_code >= 400, path
        assert not [name for name in names if re.search(rf"\b{name}\b", main)], path
        assert "Traceback" not in main


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (
            "Chunk ID 'a.md#x' not found. Use search_docs to discover valid chunk IDs.\nNearest IDs: a.md#y",
            "Passage 'a.md#x' not found. The nearest ones: a.md#y",
        ),
        (
            "Knowledge base is empty. Add documents with knowledge-add first",
            "No documents yet. Add some on the page Documents.",
        ),
        (
            "Knowledge base is empty: 3 files could not be read (knowledge-show says why)",
            "No documents can be searched: 3 files could not be read. Activity says why.",
        ),
        (
            "The schema of demo is not synced yet; run `bedstone salesforce sync-schema`.",
            "The schema of demo is not synced yet. Sync it on the page Activity.",
        ),
        (
            "Articles are not mirrored yet. Run `bedstone salesforce sync-knowledge`.",
            "Articles are not mirrored yet. Sync them on the page Activity.",
        ),
        (
            "a.pdf is being read. Try again when task 0e0d2893-bc14 has completed.",
            "a.pdf is being read. Activity shows how far it is.",
        ),
        (
            "Name an org with orgId. Known: one, two.",
            "There are several orgs: choose one on the page Schema. Known: one, two.",
        ),
        ("The org does not answer.", "The org does not answer."),
    ],
)
def test_what_agents_are_told_is_reworded_for_people(told: str, shown: str) -> None:
    assert for_people(told) == shown
    error = tool_error(Reply({"error": {"code": "x", "message": told}}, is_error=True))
    assert isinstance(error, HTTPException)
    assert error.detail == shown


def test_a_sentence_with_the_name_of_a_tool_is_left_out() -> None:
    tools = ["knowledge-get", "search", "get_doc"]
    assert for_people("It is long. Read it with knowledge-get. Done.", tools) == "It is long. Done."
    assert for_people("Call get_doc", tools) == "Call get_doc"  # there is nothing else to say
    assert for_people("Your search found nothing.", tools) == "Your search found nothing."


def test_a_name_that_was_probably_meant_is_one_click_away() -> None:
    problem = describe_problem(
        404, "Unknown tool 'knowlege-get'. Did you mean knowledge-get?", "/tools/knowlege-get", "GET"
    )
    assert (problem.title, problem.meant_address) == ("Unknown tool 'knowlege-get'", "/tools/knowledge-get")
    elsewhere = describe_problem(404, "No object 'Acount'. Did you mean Account?", "/x/Acount/all", "GET")
    assert elsewhere.meant_address == "/x/Account/all"
    assert elsewhere.query == "Acount"
    assert not describe_problem(400, "Did you mean Account?", "/x/Acount", "GET").meant
