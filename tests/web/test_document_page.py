"""The page of one document in this process: original beside text, what was found, facts, and the ways out."""

import io
import json
import re
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from html import escape, unescape
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import anyio
import pytest
from PIL import Image

from bedstone.records import Chunk, Task, TaskRetry
from bedstone.services.knowledge.records import AddFile
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.opening import open_store
from bedstone.web.documents.rich_parts import cut_html, cut_markdown, find_part, mark_passage
from bedstone.web.rich_text.rendering import render_html, render_markdown
from support.corpus import corpus, pdf_of, pdf_page
from support.cost import relative_cost
from support.doors import DOORS, payload
from support.payloads import MARKDOWN_PAYLOADS, PAYLOADS, check_markup
from support.scans import scanned_pdf
from support.site import Site, make_settings, open_site

HOSTILE = "<img src=x onerror=alert(1)>"
MANUAL = Path(__file__).parents[2] / "demo" / "files" / "porter-workshop-manual.pdf"
QUERY = "when to replace a brake disc"
RICH = (
    r'<div class="reading prose"[^>]*>(.*?)</div>\s*</section>',
    r'<div class="prose">(.*?)</div>\s*<p class="small softer',
)
MAX_COST = 10  # times a unit of work: make bench-pages has the limit in milliseconds
MAX_BYTES = 150_000


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(make_settings(tmp_path, "knowledge")) as site:
        yield site


async def base_of(site: Site) -> KnowledgeBase:
    base: KnowledgeBase = await site.app.services["knowledge"].open()
    return base


async def chunk_ids(site: Site, document: str) -> list[str]:
    return [stored.head.id for stored in (await base_of(site)).chunks(document)]


def segment(page: str, begin: str) -> str:
    """Return the element of a page that begins like this, up to the end of its section."""
    return page.partition(begin)[2].partition("</section>")[0]


async def test_a_cited_passage_is_marked_in_the_page_and_in_the_text(site: Site) -> None:
    document = await site.add(MANUAL.name, MANUAL.read_bytes())
    found = (await site.text(f"/documents/{document}?q={quote(QUERY)}")).replace("&amp;", "&")
    chunk = (await chunk_ids(site, document))[1]
    assert f'<div class="passage found" id="chunk-{chunk}">' in found
    assert "<mark>Replacing</mark> a <mark>brake</mark> <mark>disc</mark></h2>" in found
    assert f'href="/search?q={QUERY.replace(" ", "+")}">{QUERY}</a>' in found
    assert "found by keyword search, passage 1 of 1 here" in found
    assert re.search(r'class="band strong">.*?Strong <span class="number">0\.\d\d<', found)
    assert f'data-link="http://localhost:3000/documents/{document}?chunk={chunk}"' in found
    assert 'data-quote="porter-workshop-manual.pdf, page 2"' in found
    drawing = re.search(r'data-marks="([^"]+)"', found)
    assert drawing
    marks = await site.get(drawing[1])
    assert marks.headers["content-type"] == "image/svg+xml"
    assert marks.text.count('class="page-passage"') == 1
    assert marks.text.count('class="page-found"') >= 3
    words = re.findall(r'page-found"[^>]*y="([\d.]+)"', marks.text)
    frame = re.search(r'page-passage"[^>]*y="([\d.]+)"[^>]*height="([\d.]+)"', marks.text)
    assert frame
    assert all(float(frame[1]) <= float(top) <= float(frame[1]) + float(frame[2]) for top in words)


async def test_addresses_of_passages_keep_working(site: Site) -> None:
    document = await site.add(MANUAL.name, MANUAL.read_bytes())
    chunk = (await chunk_ids(site, document))[2]
    page = await site.text(f"/documents/{document}?chunk={chunk}")
    assert f'class="passage found" id="chunk-{chunk}"' in page
    assert 'aria-label="Page 3 as it looks"' in page
    assert "found-bar" not in page
    assert "Torque table" in page
    assert 'class="passage found"' not in await site.text(f"/documents/{document}?chunk=none")
    odd = await site.text(f"/documents/{document}?page=%C2%B2&view=none&mode=words&offset=x")
    assert 'aria-label="Page 1 as it looks"' in odd
    assert 'aria-label="Page 3 as it looks"' in await site.text(f"/documents/{document}?page=99999")


async def test_what_was_found_is_kept_while_paging(site: Site) -> None:
    document = await site.add(MANUAL.name, MANUAL.read_bytes())
    chunk = (await chunk_ids(site, document))[1]
    page = unescape(await site.text(f"/documents/{document}?page=1&chunk={chunk}&q={quote(QUERY)}&mode=words"))
    following = re.search(r'rel="next" href="([^"]+)"', page)
    assert following
    given = parse_qs(urlsplit(following[1]).query)
    assert given == {"page": ["2"], "chunk": [chunk], "q": [QUERY], "mode": ["keyword"]}
    assert "passage 1 of 1 here" in page  # found, on another page
    assert re.search(r'<a href="[^"]*page=2[^"]*">page 2</a>', page)
    assert 'rel="prev"' not in page
    assert "not found in this document" in await site.text(f"/documents/{document}?q=zzzzz")


async def test_pictures_of_pages_are_cached_by_the_browser(site: Site) -> None:
    document = await site.add(MANUAL.name, MANUAL.read_bytes())
    first = await site.get(f"/documents/{document}/pages/2.webp?width=300")
    assert (first.status_code, first.headers["content-type"]) == (200, "image/webp")
    assert first.headers["cache-control"] == "private, max-age=31536000, immutable"
    with Image.open(io.BytesIO(first.content)) as picture:
        assert picture.width == 640  # the next width that is drawn
    again = await site.get(f"/documents/{document}/pages/2.webp?width=300", **{"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    small = await site.get(f"/documents/{document}/pages/2.webp?width=100", **{"if-none-match": first.headers["etag"]})
    assert small.status_code == 200
    assert (await site.get(f"/documents/{document}/pages/4.webp")).status_code == 404
    assert (await site.get(f"/documents/{document}/pages/0.webp")).status_code == 404
    assert (await site.get("/documents/none/pages/1.webp")).status_code == 404
    text = await site.add("tides.txt", b"High water is at noon.")
    assert (await site.get(f"/documents/{text}/pages/1.webp")).status_code == 404
    assert (await site.get(f"/documents/{text}/pages/1/marks.svg?q=water")).status_code == 404


async def test_the_original_is_only_ever_downloaded(site: Site) -> None:
    for name, content, media in (
        ("page.html", b"<p>Tulips<script>alert(1)</script></p>", "application/octet-stream"),
        (MANUAL.name, MANUAL.read_bytes(), "application/pdf"),
        ("%E6%BC%A2%22.txt", b"Tulips", "application/octet-stream"),
    ):
        document = await site.add(name, content)
        answer = await site.get(f"/documents/{document}/original")
        assert (answer.status_code, answer.content) == (200, content)
        assert answer.headers["content-type"].partition(";")[0] == media
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    base = await base_of(site)
    base.originals.path(base.get_document(document)).unlink()
    assert (await site.get(f"/documents/{document}/original")).status_code in (404, 503)
    assert "Tulips" in await site.text(f"/documents/{document}")


async def test_rich_documents_stand_beside_their_passages(site: Site) -> None:
    html = f"<h1>Winter {HOSTILE}</h1><p>Six bikes were ridden.</p><h2>Range</h2><p>The K750 had <b>53 km</b> left.</p>"
    document = await site.add("winter.html", html.encode())
    page = await site.text(f"/documents/{document}?q=range+of+the+K750")
    original = segment(page, 'aria-label="The original"')
    assert re.search(r'<p [^>]*class="found"[^>]*>The <mark>K750</mark> had <b>53 km</b> left\.</p>', original)
    assert HOSTILE not in page
    markdown = await site.add("recall.md", b"# Recall\n\n```soql\nSELECT Id\n```\n\n* one\n* two\n")
    rendered = await site.text(f"/documents/{markdown}")
    assert "```" not in segment(rendered, "What agents read")
    assert rendered.count("<li>one</li>") == 2
    assert "# Recall" not in rendered


async def test_plain_text_has_one_column(site: Site) -> None:
    document = await site.add("tides.txt", b"High water is at noon.")
    page = await site.text(f"/documents/{document}?q=noon")
    assert '<div class="viewer text">' in page
    assert 'aria-label="The original"' not in page
    assert "<mark>noon</mark>" in page
    assert "1 passage<" in page


async def test_slides_and_sheets_are_shown_page_by_page(site: Site) -> None:
    slides = next(file for file in corpus() if file.name == "slides.pptx")
    document = await site.add(slides.name, slides.content)
    page = await site.text(f"/documents/{document}?page=3")
    original = segment(page, 'aria-label="The original"')
    assert "Project 3" in original
    assert "Project 4" not in original
    assert f'value="3" inputmode="numeric" autocomplete="off"> of {len(slides.pages)}' in page


async def test_no_payload_becomes_markup(site: Site) -> None:
    for name, payloads in (("page.html", PAYLOADS), ("page.md", (*PAYLOADS, *MARKDOWN_PAYLOADS))):
        text = "\n\n".join(f"Harmless words {number}. {item}" for number, item in enumerate(payloads))
        document = await site.add(name, text.encode(errors="replace"))
        for part in range(1, 4):
            address = f"/documents/{document}?page={part}&q=harmless+{quote(HOSTILE)}"
            page = await site.text(address)
            panes = [rich for expression in RICH for rich in re.findall(expression, page, re.DOTALL)]
            assert len(panes) > 1
            assert [problem for pane in panes for problem in check_markup(pane, prefix="found")] == []
        for view in ("text", "outline", "facts"):
            assert HOSTILE not in await site.text(f"{address}&view={view}&chunk={quote(HOSTILE)}")


async def test_agents_and_people_see_the_same_text(site: Site) -> None:
    document = await site.add(MANUAL.name, MANUAL.read_bytes())
    async with DOORS["http-handshake"](list(site.app.toolsets.values())) as door:
        wanted = {"document_id": document, "start_page": 2, "end_page": 2}
        got = payload(await door.call("knowledge-get", wanted))
    page = await site.text(f"/documents/{document}?view=text&page=2")
    shown = re.search(r'<pre id="raw" tabindex="0">(.*?)</pre>', page, re.DOTALL)
    assert shown
    assert unescape(shown[1]) == got["text"]
    assert got["text"].startswith("[page 2]\n\n# Replacing a brake disc")
    long = await site.add("long.txt", ("All work and no play. " * 2_000).encode())
    first = await site.text(f"/documents/{long}?view=text")
    assert "Characters 1 to 20,000 of 4" in first
    assert "Characters 20,001 to " in await site.text(f"/documents/{long}?view=text&offset=20000")


async def test_outline_and_facts_lead_to_their_pages(site: Site) -> None:
    document = await site.add(MANUAL.name, MANUAL.read_bytes())
    chunk = (await chunk_ids(site, document))[2]
    page = unescape(await site.text(f"/documents/{document}?view=outline&page=2"))
    assert f'href="/documents/{document}?page=3&chunk={chunk}#chunk-{chunk}">Torque table</a>' in page
    assert 'aria-current="true">Replacing a brake disc</a>' in page
    facts = await site.text(f"/documents/{document}?view=facts")
    for fact in ("Text extraction", "pdf, 2.6 kB", document, "Your metadata", "Collections"):
        assert fact in facts, fact
    plain = await site.add("tides.txt", b"High water is at noon.")
    assert "This document has no headings." in await site.text(f"/documents/{plain}?view=outline")


async def test_metadata_that_are_refused_stay_in_their_form(site: Site) -> None:
    document = await site.add("tides.txt", b"High water is at noon.")
    page = f"/documents/{document}"
    for bad in ('{"a": "\\ud800"}', '{"a": NaN}', '{"a": 1e999}', "[" * 5_000, "5", f'{{"{HOSTILE}"'):
        refused = await site.post(f"{page}/metadata", {"metadata": bad})
        assert refused.status_code == 400, bad
        assert escape(bad).replace("&quot;", "&#34;") in refused.text
        assert 'aria-invalid="true"' in refused.text
        assert HOSTILE not in refused.text
    saved = await site.post(f"{page}/metadata", {"metadata": json.dumps({"topic": HOSTILE, "price": 1.5})})
    assert (saved.status_code, saved.headers["location"]) == (303, f"{page}?view=facts")
    text = await site.text(f"{page}?view=facts")
    assert HOSTILE not in text
    assert "1.5" in text
    assert (await site.post("/documents/x/metadata", {"metadata": "{"})).status_code == 404


async def test_a_document_is_removed(site: Site) -> None:
    document = await site.add("%E6%BC%A2" * 100 + ".txt", b"Tulips bloom in spring.")
    assert (await site.post(f"/documents/{document}/retry")).status_code == 404
    removed = await site.post(f"/documents/{document}/remove")
    assert (removed.status_code, removed.headers["location"]) == (303, "/documents")
    assert (await site.post(f"/documents/{document}/remove")).status_code == 404
    await site.text(f"/documents/{document}", status=404)
    other = await site.add("tides.txt", b"High water is at noon.")
    assert (await site.post(f"/documents/{other}/remove", {}, **{"x-part": "1"})).status_code == 204


async def test_a_file_that_cannot_be_read_says_what_to_do_and_is_retried(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "late.html"
    file.write_text("<p></p>")
    await site.post("/tools/knowledge-add", {"file_path": str(file), "async": "false"})
    found = re.search(r'href="(/documents/[0-9a-f-]{36})"', await site.text("/documents?status=failed"))
    assert found
    text = await site.text(found[1])
    assert "No text was found in the file." in text
    assert "If it is a scan, retry with OCR, or add a sharper copy." in text
    assert "Retry</button>" in text
    file.write_text("<p>Better late than never.</p>")
    retried = await site.post(f"{found[1]}/retry", {"force_ocr": ""})
    assert retried.status_code == 303
    with anyio.fail_after(60):
        while "Better late than never." not in (page := await site.text(retried.headers["location"])):
            await site.get(f"/tasks?ids={','.join(re.findall('data-task=.([^ ]+).', page))}")
    upload = await site.http.post(
        "/documents", content=b"%PDF-1.7 torn", headers={"x-csrf": await site.csrf(), "x-filename": "torn.pdf"}
    )
    await site.get(f"/tasks?ids={upload.json()['task_id']}")
    torn = re.search(r'data-document="([^"]+)" data-name="torn.pdf"', await site.text("/documents"))
    assert torn
    page = await site.text(f"/documents/{torn[1]}")
    assert "not kept" in page
    assert "Retry</button>" not in page
    assert (await site.post(f"/documents/{torn[1]}/retry")).status_code == 400
    assert (await site.post(f"/documents/{torn[1]}/remove")).status_code == 303
    await site.text(f"/documents/{torn[1]}", status=404)


async def test_a_document_in_process_says_who_finds_it(site: Site, tmp_path: Path) -> None:
    earlier = await site.add("plan.txt", b"The plan of last year.")
    known = (await base_of(site)).get_document(earlier)
    store, source = open_store(tmp_path / "data" / "index" / "knowledge.sqlite"), str(tmp_path / "plan.txt")
    store.update_documents([replace(known, source=source).to_stored()])
    new = replace(known, id="0" * 36, digest="other", source=source, status="processing", replaces=(earlier,))
    alone = replace(new, id="1" * 36, digest="third", replaces=())
    for document in (new, alone):
        store.put([(document.to_stored(), [Chunk(f"{document.id}_0", "The plan of now.", "The plan of now.")])])
    page = await site.text(f"/documents/{new.id}")
    assert "Agents find the earlier version until this one is complete." in page
    assert "The plan of now." in page
    assert "Keyword search finds it already; semantic search follows" in await site.text(f"/documents/{alone.id}")
    later = TaskRetry("The disk is full", 1, time.time() + 3_600)
    task = Task("a" * 36, "add", "queued", time.time(), AddFile.of_document(new).to_payload(), retry=later)
    store.put_task(task)
    old = await site.text(f"/documents/{earlier}")
    assert "A newer version of this file is being read" in old
    assert f'href="/documents/{new.id}"' in old
    for path in (f"/documents/{new.id}", "/documents"):
        waiting = await site.text(path)
        assert f'data-task="{task.id}"' in waiting
        assert "The disk is full. The next attempt follows by itself." in waiting
    assert "1 ready with 3 passages, 2 being read" in re.sub("<[^>]*>", "", await site.text("/documents"))
    store.close()


async def test_ocr_says_how_sure_it_was_and_can_read_more(site: Site) -> None:
    scan = await site.add("scan.pdf", scanned_pdf("Tulips need cold winters\nand light soil"))
    page = await site.text(f"/documents/{scan}?q=tulips")
    assert re.search(r"\d\d % sure", segment(page, "Recognised by OCR"))
    marks = (await site.get(f"/documents/{scan}/pages/1/marks.svg?q=tulips")).text
    assert 'class="page-found"' in marks
    base = await base_of(site)
    confidence = base.ocr_confidence(scan)
    assert list(confidence) == [1]
    assert 0.5 < confidence[1] <= 1.0
    assert (await site.post(f"/documents/{scan}/read-again")).status_code == 400  # OCR has read all of it
    manual = await site.add(MANUAL.name, MANUAL.read_bytes())
    assert "Read again with OCR" in await site.text(f"/documents/{manual}")
    assert base.get_document(manual).method == "text_extraction"
    again = await site.post(f"/documents/{manual}/read-again")
    assert (again.status_code, again.headers["location"]) == (303, f"/documents/{manual}")
    with anyio.fail_after(120):
        while task := re.search(r'data-task="([^"]+)"', await site.text(f"/documents/{manual}")):
            await site.get(f"/tasks?ids={task[1]}")
    assert base.get_document(manual).method == "ocr"
    assert "brake disc" in await site.text(f"/documents/{manual}?page=2")
    facts = await site.text(f"/documents/{manual}?view=facts")
    assert "OCR: 3 pages of 3" in facts


async def test_a_passage_of_several_pages_says_what_is_on_which(site: Site) -> None:
    invoices = next(file for file in corpus() if file.name == "invoices.pdf")
    document = await site.add(invoices.name, invoices.content)
    page = await site.text(f"/documents/{document}?page=2")
    passage = segment(page, '<div class="passage" id=')
    labels = re.findall(r'<p class="label">Page (\d)</p>\s*<div class="prose( away)?">', passage)
    assert labels == [("1", " away"), ("2", ""), ("3", " away")]
    assert 'data-quote="invoices.pdf, pages 1 to 3"' in passage
    chunk = (await chunk_ids(site, document))[0]
    for number, invoice in ((1, "2026-1037"), (2, "2026-1038")):
        marks = await site.get(f"/documents/{document}/pages/{number}/marks.svg?chunk={chunk}&q={invoice}")
        assert marks.text.count("page-passage") >= 1
        assert marks.text.count("page-found") >= 1


async def test_a_picture_is_a_document_of_one_page(site: Site) -> None:
    image = Image.new("RGB", (300, 200), "white")
    target = io.BytesIO()
    image.save(target, "PNG")
    document = await site.add("empty.png", target.getvalue())
    page = await site.text(f"/documents/{document}")
    assert f"/documents/{document}/pages/1.webp?width=640" in page
    assert 'class="strip"' not in page
    assert "empty.png" in page


async def test_a_thousand_pages_cost_little(site: Site) -> None:
    pages = [pdf_page(f"Chapter {number}", [f"The tide of day {number} is high."]) for number in range(1, 1_001)]
    document = await site.add("long.pdf", pdf_of(pages))
    for path in ("", "?page=500&q=tide", "?page=1000&view=outline", "?view=facts"):
        page = await site.text(f"/documents/{document}{path}")
        assert await relative_cost(partial(site.text, f"/documents/{document}{path}")) < MAX_COST, path
        assert len(page.encode()) < MAX_BYTES, path
        assert page.count('loading="lazy"') == 40
    middle = await site.text(f"/documents/{document}?page=500")
    assert "1,000 pages" in middle
    assert "pages/490.webp" in middle
    assert "pages/489.webp" not in middle
    assert ">1 …</a>" in middle
    assert ">… 1,000</a>" in middle
    assert "The tide of day 500 is high." in middle


async def test_a_long_text_comes_in_parts(site: Site) -> None:
    text = "\n\n".join(f"Paragraph {number} is about herons. {'They wait in water. ' * 20}" for number in range(400))
    document = await site.add("long.md", text.encode())
    page = await site.text(f"/documents/{document}?q=paragraph+390+herons&mode=keyword")
    assert len(page.encode()) < MAX_BYTES
    assert re.search(r'class="found">Paragraph 390 is|<mark>390</mark>', segment(page, 'aria-label="The original"'))
    assert "part 4 of 4" in page
    assert "Paragraph 0 is" in await site.text(f"/documents/{document}")
    second = await site.text(f"/documents/{document}?page=2&section=1")
    assert "part 1 of 4" in second
    assert 'rel="prev"' in second


async def test_a_read_only_server_shows_everything_and_changes_nothing(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "knowledge")) as site:
        document = await site.add("kept.txt", b"Kept as it is.")
    async with open_site(make_settings(tmp_path, "knowledge", read_only=True)) as site:
        for view in ("", "text", "outline", "facts"):
            page = await site.text(f"/documents/{document}?view={view}")
            assert "kept.txt" in page
            assert 'method="post"' not in page.partition("<main")[2]
        assert "Kept as it is." in await site.text(f"/documents/{document}")
        for path in ("metadata", "remove", "retry", "read-again", "collections"):
            response = await site.post(f"/documents/{document}/{path}", {"metadata": "{}"})
            assert (response.status_code, response.text) == (403, "This server is read-only."), path


def test_html_is_cut_between_blocks_and_begins_again_with_what_was_open() -> None:
    html = "<div class=a><ul>" + "".join(f"<li>Item {number} of many.</li>" for number in range(100)) + "</ul></div>"
    parts = cut_html(html, size=600)
    assert len(parts) > 3
    assert all(part.startswith("<div class=a><ul>") for part in parts)
    shown = "".join(re.sub("<[^>]*>", "", part) for part in parts)
    assert shown == re.sub("<[^>]*>", "", html)
    assert cut_html("", 10) == [""]
    for hostile in ("<!--" * 50_000, "<a " * 50_000, "<p></div>" * 20_000, "<script>" * 50_000):
        started = time.process_time()
        cut_html(hostile)
        assert time.process_time() - started < 1


def test_markdown_is_never_cut_inside_a_fence() -> None:
    text = "Before.\n\n```\n" + "line\n\n" * 50 + "```\n\nAfter.\n\n" + "More.\n\n" * 50
    parts = cut_markdown(text, size=60)
    assert "".join(parts) == text
    assert all(part.count("```") in (0, 2) for part in parts)


def test_the_part_with_a_passage_is_found() -> None:
    parts = [f"<p>Chapter {number}: the <b>tide</b> of day {number}.</p>" for number in range(5)]
    assert find_part(parts, "Chapter 3: the tide of day 3.", 0.0) == 3
    assert find_part(parts, "not there", 0.9) == 4


def test_a_passage_is_marked_without_touching_other_markup() -> None:
    markup = render_html(
        '<h1>One</h1><p>First words.</p><p><abbr title="<p onclick=x>">The</abbr> passage</p><table><tr>'
        "<td align=right>12</td></tr></table><p>Last words.</p>"
    )
    marked = mark_passage(markup, "The passage 12")
    assert marked.count("found") == 3  # an id and a class of the first block, and the class of the cell
    assert '<p id="found" class="found"><abbr title=' in marked
    assert '<td class="found right">' in marked
    assert mark_passage(markup, "nothing of it") == markup
    assert mark_passage(render_markdown("# Only\n\nwords"), "") == render_markdown("# Only\n\nwords")
