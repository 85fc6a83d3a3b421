"""Home, search, comparison and palette in this process: one ranked list, filters in the address, nothing unescaped."""

import json
import re
from collections.abc import AsyncIterator
from html import escape, unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from bedstone.search.hits import Snippet
from bedstone.services.schema.service import SchemaService
from bedstone.web.search.pages import without_title
from support.site import Site, make_settings, open_site

DEMO = Path(__file__).parents[2] / "demo"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """Documents, documentation, the knowledge file and a schema, searched by keyword."""
    folder = tmp_path_factory.mktemp("search")
    describes = folder / "describes"
    describes.mkdir()
    fields = [
        {"name": "Id", "label": "Record ID", "type": "id"},
        {"name": "Cause__c", "label": HOSTILE, "type": "string"},
    ]
    claim = {"name": "Warranty_Claim__c", "label": f"Warranty Claim {HOSTILE}", "fields": fields}
    (describes / "Warranty_Claim__c.json").write_text(json.dumps(claim))
    settings = make_settings(
        folder,
        *("everything", "knowledge", "docs", "kb", "salesforce_graph"),
        docs={"dir": [DEMO / "docs"]},
        kb={"file_path": DEMO / "handbook.txt"},
    )
    async with open_site(settings) as site:
        schemas: SchemaService = await site.app.services["salesforce_graph"].open()
        schemas.import_folder("one", describes)
        await site.add("porter-workshop-manual.pdf", (DEMO / "files" / "porter-workshop-manual.pdf").read_bytes())
        await site.add("notes.txt", f"The walrus {HOSTILE} sleeps at noon.".encode())
        yield site


def results(page: str) -> list[str]:
    return page.partition('id="preview"')[0].split('<li class="result')[1:]


async def test_results_of_all_sources_stand_in_one_list_with_their_place_band_and_reason(site: Site) -> None:
    page = await site.text("/search?q=replace+brake+disc+warranty&most=50")
    found = results(page)
    addresses = [unescape(address) for item in found for address in re.findall(r'<h2><a href="([^"]+)"', item)]
    for start in ("/documents/", "/knowledge-file"):
        assert any(address.startswith(start) for address in addresses), start
    scores = [float(score) for item in found for score in re.findall(r'class="number">([\d.]+)<', item)]
    assert scores == sorted(scores, reverse=True)
    manual = next(item for item in found if "porter-workshop-manual.pdf" in item)
    assert "page 2" in manual
    assert "the words" in manual


async def test_the_chosen_result_is_shown_with_its_page_picture_and_what_frames_the_passage(site: Site) -> None:
    page = await site.text("/search?q=replace+a+brake+disc")
    assert re.search(r'<img class="paper" src="/documents/[0-9a-f-]{36}/pages/2.webp\?width=\d+"', page)
    assert "/pages/2/marks.svg?chunk=" in page
    docs = await site.text("/search/preview?q=rate+limits&in=docs")
    assert "Retry-After" in docs
    assert "<mark>" in docs
    assert "##" not in docs  # Markdown is rendered


async def test_filters_and_modes_are_links_and_keep_the_rest_of_the_address(site: Site) -> None:
    page = await site.text("/search?q=list+bikes&in=docs&mode=words")
    assert re.search(r'aria-current="true">(?:<svg.*?</svg> )?Documentation <b>[1-9]', page)
    assert 'aria-current="true">Keyword</a>' in page
    assert "f.language=python" in unescape(page)
    narrowed = await site.text("/search?q=list+bikes&in=docs&f.language=python")
    assert "sdk/python/client.md" in narrowed
    assert "sdk/typescript/client.md" not in narrowed
    assert "Nothing found for" in await site.text("/search?q=zyxwv&in=knowledge")
    assert "Search all sources" in await site.text("/search?q=zyxwv&in=knowledge")


async def test_modes_are_compared_with_what_moved(site: Site) -> None:
    page = await site.text("/search/beside?q=replace+a+brake+disc")
    assert [title for title in ("Keyword", "Hybrid", "Semantic") if f'aria-label="{title}"' in page] == [
        "Keyword",
        "Hybrid",
        "Semantic",
    ]
    assert ">same</span>" in page
    assert '<path class="move main"' in page


async def test_the_palette_finds_names_of_everything_and_offers_what_to_do(site: Site) -> None:
    page = await site.text("/palette?q=warranty")
    assert "/salesforce/objects/Warranty_Claim__c" in page
    assert "Query" in page
    assert "Find a path from" in page
    assert "/search?q=warranty" in page
    assert "-workshop-manual.pdf" in await site.text("/palette?q=porter")
    assert "/tools/search_docs" in await site.text("/palette?q=search_d")
    assert "/docs/corpora/docs/guides/pagination.md" in await site.text("/palette?q=pagination")
    only = await site.text(f"/palette?q={quote('> warranty')}")
    assert "Search everything for" in only
    assert "/salesforce/objects/" not in only


async def test_home_says_what_is_here_and_how_to_connect_each_client(site: Site) -> None:
    page = await site.text("/")
    for title in ("Documents", "Documentation", "Knowledge file", "Schema"):
        assert re.search(rf'href="[^"]+">{title}</a>', page), title
    assert "2 files" in page
    assert "3,896 characters" in page
    assert "http://localhost:3000/mcp" in page
    assert "autofocus" in page


async def test_an_empty_installation_shows_three_steps(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "everything", "knowledge")) as site:
        page = await site.text("/")
        assert [f"{number}. " in page for number in (1, 2, 3)] == [True, True, True]
        assert "Solid ground in three steps" in page
        found = await site.text("/search?q=anything")
        assert "There is nothing to search yet" in found
        assert '<a class="btn primary" href="/">Open Home</a>' in found


@pytest.mark.parametrize(
    ("text", "title", "shown", "marked"),
    [
        ("Brake disc Fit the disc.", "Brake disc", "Fit the disc.", "disc"),
        ("Brake disc 1. Fit the disc.", "Brake disc", "1. Fit the disc.", "disc"),
        ("Brake disc wear shortens every disc.", "Brake disc", "Brake disc wear shortens every disc.", "disc"),
        ("Brake discs", "Brake disc", "Brake discs", "disc"),
        ("Brake disc", "Brake disc", "Brake disc", "disc"),
        ("Fit the disc.", "", "Fit the disc.", "disc"),
    ],
)
def test_a_snippet_leaves_out_only_the_heading_that_is_its_title(
    text: str, title: str, shown: str, marked: str
) -> None:
    at = text.rindex(marked)
    snippet = without_title(Snippet(text, ((at, at + len(marked)),)), title)
    assert snippet.text == shown
    assert [snippet.text[start:end] for start, end in snippet.highlights] == [marked]


async def test_words_are_marked_in_titles_too(site: Site) -> None:
    page = await site.text("/search?q=replacing+a+brake+disc")
    assert re.search(r"<h2><a [^>]+><mark>Replacing</mark> a <mark>brake</mark> <mark>disc</mark></a></h2>", page)
    assert "disc</mark> Lift the wheel" not in page


async def test_home_offers_questions_that_an_evaluation_answered_first(tmp_path: Path) -> None:
    runs = tmp_path / "data" / "evaluations"
    runs.mkdir(parents=True)
    results = [
        {"name": "one", "query": f"rate limits {HOSTILE}", "rank": 1},
        {"name": "two", "query": "never found", "rank": None},
        {"name": "three", "query": "long " * 30, "rank": 1},
    ]
    run = {"name": "mine", "at": "2026-01-01T09:00:00+00:00", "quality": {"mrr@5": 1.0}, "results": results}
    (runs / "20260101-mine.json").write_text(json.dumps(run))
    settings = make_settings(tmp_path, "everything", "kb", kb={"file_path": DEMO / "handbook.txt"})
    async with open_site(settings) as site:
        page = await site.text("/")
        tries = page.partition('aria-label="Questions to try"')[2].partition("</nav>")[0]
        assert tries.count('class="chip"') == 1
        assert f'href="/search?q={quote(f"rate limits {HOSTILE}")}"' in tries
        assert HOSTILE not in page


async def test_a_source_that_fails_is_named_and_hides_no_other(site: Site, tmp_path: Path) -> None:
    settings = make_settings(tmp_path, "everything", "knowledge", "kb", kb={"file_path": DEMO / "handbook.txt"})
    index = tmp_path / "data" / "index"
    index.mkdir(parents=True)
    (index / "knowledge.sqlite").write_bytes(b"not a database, although it has its name" * 100)
    async with open_site(settings) as broken:
        page = await broken.text("/search?q=warranty")
        assert "Documents could not be searched" in page
        assert "/knowledge-file?q=warranty" in page
        assert "is damaged" in await broken.text("/")


@pytest.mark.parametrize(
    "path",
    [
        f"/search?q={quote(HOSTILE)}",
        f"/search?q=walrus+{quote(HOSTILE)}&in={quote(HOSTILE)}&f.format={quote(HOSTILE)}",
        "/search/results?q=walrus+sleeps",
        "/search/preview?q=walrus+sleeps",
        f"/search/beside?q=walrus+{quote(HOSTILE)}",
        f"/palette?q={quote(HOSTILE)}",
        "/search?q=warranty+claim&in=salesforce_graph",
        "/palette?q=warranty",
    ],
)
async def test_hostile_queries_names_and_texts_are_text(site: Site, path: str) -> None:
    page = await site.text(path)
    assert HOSTILE not in page
    assert escape(HOSTILE, quote=False) in page or escape(HOSTILE) in page
