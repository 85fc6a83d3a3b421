"""The page of the knowledge file in this process: reading, finding, the file as stored, long and hostile files."""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path

import pytest

from support.payloads import MARKDOWN_PAYLOADS, PAYLOADS, check_markup, visible_text
from support.site import Site, links, make_settings, open_site

HANDBOOK = Path(__file__).parents[2] / "demo" / "handbook.txt"
PAGE = "/knowledge-file"
MAX_BYTES = 150_000


@asynccontextmanager
async def open_page(folder: Path, text: str, name: str = "notes.txt") -> AsyncIterator[Site]:
    """Serve one text."""
    (folder / name).write_bytes(text.encode("utf-8", "replace"))
    async with open_site(make_settings(folder, "kb", kb={"file_path": folder / name, "description": "Notes"})) as site:
        yield site


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with open_page(tmp_path_factory.mktemp("kb"), HANDBOOK.read_text(), "handbook.txt") as site:
        yield site


def reading(page: str) -> str:
    """Return the text as it is to read."""
    return page.split('<div class="reading"')[1].split("<aside", maxsplit=1)[0].partition(">")[2]


def stored(page: str) -> str:
    """Return the file as the page has it."""
    found = re.search(r'aria-hidden="true">([\d\n]*)</pre><pre>(.*?)</pre></div>', page, re.DOTALL)
    assert found
    return unescape(re.sub(r"<[^>]*>", "", found[2]))


async def test_the_text_is_read_in_paragraphs_lists_and_sections(site: Site) -> None:
    page = await site.text(PAGE)
    text = reading(page)
    assert '<section id="1-the-bikes"><h3>1. THE BIKES <a class="anchor" href="#1-the-bikes"' in text
    assert "<dt>Kestrel Haul</dt><dd>long-tail bike, carries" in text
    assert "<dt>red, three blinks</dt><dd>cell fault: stop using" in text, "one space is enough where the others align"
    assert "<p>Batteries are called K500 and K750" in text
    assert visible_text(text).replace(" # ", " ").split()[:4] == ["KESTREL", "CYCLES", "SUPPORT", "HANDBOOK"]
    facts = visible_text(page)
    assert all(item in facts for item in ("3.9 kB", "3,896 characters", "73 lines", "Available"))
    assert 'href="#4-warranty">4. WARRANTY</a> <span class="number softer">163</span>' in page


async def test_every_word_of_the_file_can_be_read(site: Site) -> None:
    text = visible_text(re.sub(r'<a class="anchor".*?</a>', "", reading(await site.text(PAGE)).replace("</", " </")))
    assert text.split() == HANDBOOK.read_text().split()


async def test_what_an_agent_gets_is_shown_with_its_price(site: Site) -> None:
    page = unescape(await site.text(PAGE))
    assert '"fileSizeBytes": 3896' in page
    assert "about 974 tokens" in page
    text = unescape(await site.text(f"{PAGE}?agent=text"))
    assert "get_kb_content</code>, about 974 tokens" in text
    assert "and 2,396 more characters." in text


async def test_words_are_found_in_the_text_without_a_script(site: Site) -> None:
    first = await site.text(f"{PAGE}?q=battery")
    assert "1 of 13" in first
    assert len(re.findall(r'<mark id="found-\d+"', first)) == 13
    assert '<mark id="found-1" aria-current="true">battery</mark>' in first
    assert {f"{PAGE}?q=battery&match=13", f"{PAGE}?q=battery&match=2"} <= links(first)
    third = await site.text(f"{PAGE}?q=battery&match=3")
    assert "3 of 13" in third
    assert '<mark id="found-3" aria-current="true">' in third
    last = await site.text(f"{PAGE}?q=battery&match=13")
    assert f'{PAGE}?q=battery&amp;match=1#found-1"' in last, "after the last comes the first"
    assert "1 of 13" in await site.text(f"{PAGE}?find=battery"), "as links of other pages write it"


async def test_a_phrase_may_run_over_a_line_break_and_words_may_have_endings(site: Site) -> None:
    phrase = await site.text(f"{PAGE}?q=ONE+text+that")
    assert "1 of 1" in phrase
    assert '<mark id="found-1" aria-current="true">one text</mark>\n<mark aria-current="true">that</mark>' in phrase
    words = await site.text(f"{PAGE}?q=warranties+chargers")
    assert "<mark" in words
    missing = await site.text(f"{PAGE}?q=zeppelin")
    assert "Not found" in missing
    assert "/search?q=zeppelin" in links(missing)


async def test_the_file_is_shown_as_it_is_stored(site: Site) -> None:
    page = await site.text(f"{PAGE}?view=stored&q=battery")
    assert stored(page) == HANDBOOK.read_text()
    assert "72\n73\n74</pre>" in page
    assert '<span id="4-warranty"></span>4. WARRANTY' in page
    assert f"{PAGE}?q=battery" in links(page), "back to reading, with what was found"


async def test_the_original_is_saved_and_never_shown(site: Site) -> None:
    response = await site.get(f"{PAGE}/original")
    assert response.text == HANDBOOK.read_text()
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''handbook.txt"
    assert response.headers["content-type"].startswith("text/plain")
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_a_long_text_is_shown_in_parts(tmp_path: Path) -> None:
    words = "Some words about the weather of the week, and no tag like <b>.\n" * 14
    text = "".join(f"{number}. Section number {number}\n\n{words}\n" for number in range(1, 999))
    text = f"{text}\n999. Last section\n\nThe zebra sleeps.\n"
    assert len(text) > 900_000
    async with open_page(tmp_path, text) as site:
        await site.get(PAGE)
        for path in (PAGE, f"{PAGE}?view=stored", f"{PAGE}?q=e", f"{PAGE}?q=e&view=stored", f"{PAGE}?page=7"):
            started = time.process_time()
            response = await site.get(path)
            assert time.process_time() - started < 1
            assert len(response.content) < MAX_BYTES, path
            assert "A long text is shown in" in response.text
        last = int(re.findall(r"Page 1 of (\d+)", await site.text(PAGE))[0])
        read = [stored(await site.text(f"{PAGE}?view=stored&page={number}")) for number in range(1, last + 1)]
        assert "".join(read) == text
        found = await site.text(f"{PAGE}?q=zebra")
        assert "The <mark" in found, "the part with the match is shown"
        assert f"Page {last} of {last}" in found
        assert 'id="500-section-number-500"' in await site.text(f"{PAGE}?section=500-section-number-500")
        assert f"Page {last} of {last}" in await site.text(f"{PAGE}?page=99999")
        many = await site.text(f"{PAGE}?q=e&match=900")
        assert '<mark id="found-900" aria-current="true">' in many, "marks are few, but the current one is among them"
        assert "of 999 sections: those of this part." in visible_text(await site.text(PAGE))


async def test_a_markdown_file_is_rendered(tmp_path: Path) -> None:
    text = "# Guide\n\nUse the *battery* [here](other.md).\n\n## Table\n\n| a | b |\n|---|---|\n| battery | 2 |\n"
    async with open_page(tmp_path, text, "notes.md") as site:
        page = await site.text(f"{PAGE}?q=battery&match=2")
        assert '<em><mark id="found-1">battery</mark></em> here.' in page
        assert '<mark id="found-2" aria-current="true">battery</mark>' in page
        assert '<section id="table"><h3>Table <a class="anchor" href="#table"' in page
        assert stored(await site.text(f"{PAGE}?view=stored")) == text


async def test_sections_never_take_the_ids_of_the_page(tmp_path: Path) -> None:
    text = "# Content\n\none\n\n# Menu\n\ntwo\n\n# Found 1\n\nthree\n\n# Palette\n\nfour\n"
    async with open_page(tmp_path, text) as site:
        for view in ("", "&view=stored"):
            page = await site.text(f"{PAGE}?q=one{view}")
            ids = re.findall(r' id="([^"]+)"', page)
            assert sorted(ids) == sorted(set(ids))
            assert "section-content" in ids


@pytest.mark.parametrize("name", ["hostile.txt", "hostile.md"])
async def test_a_hostile_text_can_only_be_read(tmp_path: Path, name: str) -> None:
    payloads = [*PAYLOADS, *MARKDOWN_PAYLOADS] if name.endswith(".md") else PAYLOADS
    text = "".join(f"{payload}\n\n# Case {number} {payload[:40]}\n\n" for number, payload in enumerate(payloads))
    async with open_page(tmp_path, text, name) as site:
        pages = [await site.text(f"{PAGE}?q=alert")]
        last = int(re.findall(r"Page 1 of (\d+)", pages[0])[0]) if "Page 1 of" in pages[0] else 1
        pages = [await site.text(f"{PAGE}?q=alert&page={number}") for number in range(1, last + 1)]
        for page in pages:
            assert not re.search(r"<(?:img|iframe|object|embed|form name|script>alert|style)", page)
            for section in re.findall(r"<section id=\"[^\"]*\">(.*?)</section>", reading(page), re.DOTALL):
                wrong = [item for item in check_markup(section) if " id=" not in item and item != "<mark aria-current>"]
                assert wrong == [], section
        assert stored(await site.text(f"{PAGE}?view=stored")).startswith(payloads[0])


async def test_a_file_that_cannot_be_read_says_why_and_what_to_do(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, "kb", kb={"file_path": tmp_path / "gone.txt", "description": "Notes"})
    async with open_site(settings) as site:
        page = await site.text(PAGE)
        assert "The knowledge base file does not exist: gone.txt" in page
        assert '<span class="state bad">Not readable</span>' in page
        assert (await site.get(f"{PAGE}/original")).status_code == 503
        (tmp_path / "gone.txt").write_text("Back again.")
        assert "<p>Back again.</p>" in await site.text(PAGE)
        (tmp_path / "gone.txt").write_text("\n \n")
        assert "The file is empty" in await site.text(PAGE)


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("To buy:\n- milk\n- eggs and\n  bread\n", "<p>To buy:</p>\n<ul><li>milk</li><li>eggs and\nbread</li></ul>"),
        ("3) three\n4) four\n", '<ol start="3"><li>three</li><li>four</li></ol>'),
        ("a    one\nbb   two\n     more\n", '<dt>bb</dt><dd>two\nmore</dd></dl>'),
        ("    x = 1\n    y = 2\n", '<pre tabindex="0">    x = 1\n    y = 2</pre>'),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", '<pre tabindex="0">| a | b |'),
        ("a   b   c\nd   e   f\n", '<pre tabindex="0">a   b   c'),
        ("one line\ntwo  lines\n", "<p>one line\ntwo  lines</p>"),
    ],
    ids=["list", "numbers", "columns", "code", "table", "three-columns", "prose"],
)  # fmt: skip
async def test_plain_text_keeps_its_shape(tmp_path: Path, text: str, markup: str) -> None:
    async with open_page(tmp_path, text) as site:
        assert markup in reading(await site.text(PAGE))
