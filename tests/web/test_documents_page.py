"""The list of documents in this process: facts, filters, collections, uploads, failures, and 10,000 documents."""

import os
import re
import time
from collections.abc import AsyncIterator
from functools import partial
from html import escape
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

from bedstone.records import Chunk, DocumentAndChunks, TaskError
from bedstone.services.knowledge.next_steps import OTHERWISE, next_step
from bedstone.services.knowledge.records import FileDocument
from bedstone.store.opening import open_store
from support.cost import relative_cost
from support.site import Site, make_settings, open_site

HOSTILE = "<img src=x onerror=alert(1)>"
MAX_COST = 10  # times a unit of work: make bench-pages has the limit in milliseconds
MAX_BYTES = 150_000


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    async with open_site(make_settings(tmp_path, "knowledge")) as site:
        yield site


def names(page: str) -> list[str]:
    """Return the documents of a list in order."""
    return re.findall(r'data-name="([^"]*)"', page)


def facts(page: str) -> str:
    """Return the line below the title, without its links."""
    found = re.search(r'<p id="facts">(.*?)</p>', page)
    assert found
    return re.sub("<[^>]*>", "", found[1])


async def test_the_list_says_how_many_are_ready_and_failed_and_why(site: Site) -> None:
    assert "No documents yet" in await site.text("/documents")
    await site.add("tides.txt", b"High water is at noon.")
    await site.add("moon.txt", b"The moon moves the water.")
    await site.http.post("/documents", content=b"%PDF-1.7 torn", headers=await _headers(site, "torn.pdf"))
    await _wait(site)
    page = await site.text("/documents")
    assert facts(page) == "2 ready with 2 passages, 1 failed"
    assert "Failed: not a PDF, or the file is corrupt" in page
    assert "Open it in its program, save it again and add that copy." in page
    assert names(await site.text("/documents?status=failed")) == ["torn.pdf"]
    assert names(await site.text("/documents?status=completed&sort=filename")) == ["moon.txt", "tides.txt"]
    assert facts(await site.text("/documents?status=pending,processing")) == facts(page)
    assert "No documents match" in await site.text("/documents?name=none")


async def test_the_list_is_narrowed_by_name_and_filters_in_the_address(site: Site) -> None:
    for name in ("b.txt", "a.txt", "c.html"):
        await site.add(name, f"<p>About {name}.</p>".encode())
    assert names(await site.text("/documents?sort=filename")) == ["a.txt", "b.txt", "c.html"]
    assert names(await site.text("/documents?name=A.T")) == ["a.txt"]
    narrowed = await site.text("/documents?format=txt&sort=filename")
    assert names(narrowed) == ["a.txt", "b.txt"]
    assert 'href="/documents?sort=filename">Format: txt' in narrowed  # clears the filter, keeps the order
    assert '<option value="txt" selected>txt (2)</option>' in narrowed
    assert '<option value="filename" selected>By name</option>' in narrowed
    gone = await site.text("/documents?page=99&name=a")
    assert "Page 99 does not exist" in gone
    assert 'href="?name=a&amp;page=1"' in gone


async def test_documents_are_arranged_in_collections(site: Site) -> None:
    document = await site.add("dealers.csv", b"name,city\nAda,Ghent\n")
    made = await site.post("/collections", {"name": "Sales", "description": "What we sell"})
    assert (made.status_code, made.headers["location"]) == (303, "/documents?context=Sales")
    moved = await site.post(f"/documents/{document}/collections", {"into": "Sales"}, **{"x-part": "1"})
    assert moved.json() == {"collections": ["Sales"]}
    page = await site.text("/documents?context=Sales")
    assert names(page) == ["dealers.csv"]
    assert re.search(r'aria-current="true" title="What we sell">Sales <b>1</b>', page)
    assert "Into <b>Sales</b>" in page
    upload = await _headers(site, "more.csv")
    await site.http.post("/documents", content=b"name\nBen\n", headers=upload | {"x-collection": "Sales"})
    await _wait(site)
    assert sorted(names(await site.text("/documents?context=Sales"))) == ["dealers.csv", "more.csv"]
    form = await site.post(f"/documents/{document}/collections", {"out_of": "Sales"})
    assert form.headers["location"] == f"/documents/{document}?view=facts"
    assert names(await site.text("/documents?context=default")) == ["dealers.csv"]
    unknown = await site.post(f"/documents/{document}/collections", {"into": "Nothing"})
    assert (unknown.status_code, unknown.text) == (400, "Collection 'Nothing' not found")
    assert (await site.post("/documents/x/collections", {"into": "Sales"})).status_code == 404
    assert (await site.post("/collections/Sales/delete")).status_code == 303
    assert sorted(names(await site.text("/documents?context=default"))) == ["dealers.csv", "more.csv"]
    assert "No documents match" in await site.text("/documents?context=Sales")


async def test_a_collection_that_is_refused_stays_in_its_form(site: Site) -> None:
    refused = await site.post("/collections", {"name": f"Sales {HOSTILE}", "description": "What we sell"})
    assert refused.status_code == 400
    assert f'value="Sales {escape(HOSTILE)}"'.replace("&#x27;", "&#39;") in refused.text
    assert 'value="What we sell"' in refused.text
    assert 'aria-invalid="true"' in refused.text
    assert "A name has 1 to 64 letters, digits, _ or -" in refused.text
    again = await site.post("/collections", {"name": "default"})
    assert "Collection &#39;default&#39; already exists" in again.text


async def test_collections_beyond_those_that_fit_are_in_a_list(site: Site) -> None:
    for number in range(14):
        await site.post("/collections", {"name": f"part-{number:02}"})
    page = await site.text("/documents?context=part-13")
    assert page.count('class="chip"') == 1 + 10 + 1
    assert '<option value="part-13" selected>part-13 (0)</option>' in page


async def test_files_with_the_same_name_show_where_they_come_from(site: Site, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "notes.txt").write_text(f"Notes of {folder}.")
        path = str(tmp_path / folder / "notes.txt")
        await site.post("/tools/knowledge-add", {"file_path": path, "async": "false"})
    page = await site.text("/documents")
    assert f'below">{tmp_path}/one/notes.txt<' in page
    assert 'below">' not in await site.text("/documents?name=none")


async def test_hostile_names_and_filters_are_text(site: Site) -> None:
    await site.add(f"{quote(HOSTILE)}.txt", b"The walrus sleeps.")
    hostile = quote(HOSTILE)
    for path in ("/documents", f"/documents?name={hostile}&context={hostile}&format={hostile}&status={hostile}"):
        text = await site.text(path)
        assert HOSTILE not in text
        assert escape(HOSTILE) in text


async def test_an_upload_that_is_too_large_or_unsupported_is_refused(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, "knowledge", processing={"max_file_size_mb": 1})
    async with open_site(settings) as site:
        large = await site.http.post(
            "/documents", content=b"x" * (1024 * 1024 + 1), headers=await _headers(site, "large.txt")
        )
        assert (large.status_code, large.text) == (413, "The file is larger than 1 MB.")
        program = await site.http.post("/documents", content=b"MZ", headers=await _headers(site, "program.exe"))
        assert program.status_code == 400
        assert "Unsupported file format: .exe" in program.text
        nowhere = await _headers(site, "a.txt") | {"x-collection": "none"}
        assert (await site.http.post("/documents", content=b"x", headers=nowhere)).status_code == 404
        assert "No documents yet" in await site.text("/documents")
        assert not list((tmp_path / "data" / "uploads").iterdir())


async def test_uploads_that_a_killed_server_left_are_deleted(tmp_path: Path) -> None:
    uploads = tmp_path / "data" / "uploads"
    for name, age in (("left", 2 * 24 * 3600), ("recent", 0)):
        (uploads / name).mkdir(parents=True)
        os.utime(uploads / name, (time.time() - age,) * 2)
    async with open_site(make_settings(tmp_path, "knowledge")):
        assert [item.name for item in uploads.iterdir()] == ["recent"]


async def test_watched_folders_are_named(tmp_path: Path) -> None:
    (tmp_path / "office" / "inbox").mkdir(parents=True)
    settings = make_settings(tmp_path, "knowledge", storage={"watch": [tmp_path / "office" / "inbox"]})
    async with open_site(settings) as site:
        await site.app.services["knowledge"].open()
        assert f'<code title="{tmp_path}/office/inbox">office/inbox</code>' in await site.text("/documents")


async def test_a_read_only_server_offers_no_changes(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "knowledge")) as site:
        await site.add("kept.txt", b"Kept as it is.")
    async with open_site(make_settings(tmp_path, "knowledge", read_only=True)) as site:
        page = await site.text("/documents")
        assert names(page) == ["kept.txt"]
        for offer in ("Add files", "New collection", "data-more", "row-menu", 'type="file"'):
            assert offer not in page, offer
        for path in ("/collections", "/collections/x/delete", "/documents/x/collections", "/documents/x/read-again"):
            response = await site.post(path)
            assert (response.status_code, response.text) == (403, "This server is read-only."), path


async def test_ten_thousand_documents_cost_little(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "knowledge")) as site:
        await site.text("/documents")
        store = open_store(tmp_path / "data" / "index" / "knowledge.sqlite")
        store.put(_many_documents(10_000))
        store.close()
        for path in ("/documents", "/documents?sort=filename&page=150", "/documents?name=9&format=pdf&sort=size"):
            page = await site.text(path)
            assert await relative_cost(partial(site.text, path)) < MAX_COST, path
            assert len(page.encode()) < MAX_BYTES, path
        page = await site.text("/documents?page=200")
        assert facts(page) == "10,000 ready with 10,000 passages"
        assert "Documents 9,951 to 10,000 of 10,000. Narrow them by name, collection or filter." in page


def test_each_reason_has_a_way_out() -> None:
    for reason, step in {
        "The document requires a password.": "Save a copy without the password and add that copy.",
        "The file is encrypted, or older than Office 2007.": "Save a copy without the password and add that copy.",
        "No text was found in the file.": "If it is a scan, retry with OCR, or add a sharper copy.",
        "The file is corrupt: its XML is not valid.": "Open it in its program, save it again and add that copy.",
        "Reading the file exceeds the time limit.": "Split it into smaller files and add those.",
        "The stored copy of the file is missing. Add the file again.": "Add the file again.",
        "Internal error; see the server log.": OTHERWISE,
    }.items():
        assert next_step(TaskError("extraction_failed", reason)) == step


async def _headers(site: Site, name: str) -> dict[str, str]:
    return {"x-csrf": await site.csrf(), "x-filename": name}


async def _wait(site: Site) -> None:
    """Wait until every task has finished."""
    tasks = re.findall(r'data-task="([^"]+)"', await site.text("/documents"))
    with anyio.fail_after(60):
        await site.get(f"/tasks?ids={','.join(tasks)}")


def _many_documents(count: int) -> list[DocumentAndChunks]:
    documents: list[DocumentAndChunks] = []
    for number in range(count):
        identity, kind = f"{number:08x}-0000-4000-8000-000000000000", ("pdf", "docx", "html")[number % 3]
        document = FileDocument(
            identity,
            f"Report {number}",
            f"digest {number}",
            filename=f"report-{number:05}.{kind}",
            source=f"/srv/files/report-{number:05}.{kind}",
            format=kind,
            size_bytes=1_000 + number,
            added_at=1_700_000_000.0 + number,
            status="completed",
            method="text_extraction",
        )
        documents.append((document.to_stored(), [Chunk(f"{identity}_0", "Words of it.", "Words of it.")]))
    return documents
