"""Activity in this process: tasks, syncs, what finished, and what its buttons do."""

import re
import time
from functools import partial
from html import escape
from pathlib import Path

import anyio
import pytest

from bedstone.records import Task, TaskError, TaskRetry, TaskStatus
from bedstone.services.knowledge.records import AddFile
from bedstone.settings import layout
from bedstone.store.engines.sqlite import SqliteStore
from support.cost import relative_cost
from support.demo_org import Running, log_in
from support.site import Site, make_settings, open_site

HOSTILE = "<img src=x onerror=alert(1)>"
STOP = re.compile(r'action="(/activity/tasks/[0-9a-f-]{36}/stop)"')
RETRY = re.compile(r'action="(/activity/tasks/[0-9a-f-]{36}/retry)"')
LONG_TEXT = "\n\n".join(f"Paragraph {number} tells of tulips and tides. " * 12 for number in range(4_000)).encode()
FINISHED, QUEUED = 10_000, 200
MAX_LIVE_COST = 5  # times a unit of work


async def upload(site: Site, name: str, content: bytes) -> None:
    headers = {"x-csrf": await site.csrf(), "x-filename": name}
    assert (await site.http.post("/documents", content=content, headers=headers)).status_code == 202


async def wait_for(site: Site, pattern: str, path: str = "/activity") -> str:
    """Return the page as soon as it has a text."""
    with anyio.fail_after(60):
        while not re.search(pattern, text := await site.text(path), re.DOTALL):  # noqa: ASYNC110 - a page has no event
            await anyio.sleep(0.05)
    return text


def make_task(number: int, status: TaskStatus, **fields: object) -> Task:
    """Return a task of a file, at a time of this day."""
    file = AddFile(f"{number:08x}-0000-4000-8000-000000000000", f"file-{number}.txt", "", "txt", 9, "0" * 64)
    at = time.time() - FINISHED + number
    times = {} if status == "queued" else {"started_at": at, "finished_at": at + 1.5}
    return Task(f"{number:08x}-0000-4000-9000-000000000000", "add", status, at, file.to_payload(), **times, **fields)  # type: ignore[arg-type]


def result_of(number: int) -> dict[str, object]:
    name = f"{number:08x}-0000-4000-8000-000000000000"
    return {"document_id": name, "filename": "x", "chunks_created": 3, "processing_method": "text_extraction"}


async def test_files_that_are_read_and_wait_are_shown_with_what_they_wait_for_and_stopped(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, "knowledge", processing={"max_concurrent_tasks": 1})
    async with open_site(settings) as site:
        assert "Nothing was read yet" in await site.text("/activity")
        await upload(site, "long.txt", LONG_TEXT)
        for name in ("%3Cb%3Etwo.txt", "three.txt", "four.txt"):
            await upload(site, name, f"Short {name}.".encode())
        text = await wait_for(site, "1 task is running, 3 wait")
        assert '<progress value="' in text
        assert text.index("long.txt") < text.index("&lt;b&gt;two.txt") < text.index("three.txt")
        waits = re.findall(r"<p>(Is next|Waits for[^<]*)</p>", text)
        assert waits == ["Is next", "Waits for the file before it", "Waits for 2 files before it"]
        assert '<span class="count">4 running</span>' in text  # the menu says the same
        part = await site.get("/activity/live", **{"x-part": "1"})
        assert "<html" not in part.text
        assert 'data-count="4 running"' in part.text
        for address in STOP.findall(text):
            answer = await site.post(address, {"next": "/activity?show="})
            assert (answer.status_code, answer.headers["location"]) == (303, "/activity?show=")
        text = await wait_for(site, r"<p aria-live=\"polite\">Nothing is running</p>")
        assert text.count(">Stopped</span>") == 4
        assert "Running</h2>" not in text
        assert "4 running" not in text


async def test_what_finished_says_what_came_of_it_or_why_not_and_what_to_do(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, "knowledge")
    page = tmp_path / "late.html"
    page.write_text("<p></p>")
    async with open_site(settings) as site:
        document = await site.add("walrus.txt", b"The walrus sleeps at noon.")
        await site.post("/tools/knowledge-add", {"file_path": str(page), "async": "false"})
        await upload(site, "torn.pdf", b"%PDF-1.7 torn in half")
        text = await wait_for(site, "2 failed")
        assert f'<a href="/documents/{document}">walrus.txt</a>' in text
        assert re.search(r"1 passage in \d+\.\d s\.", text)
        assert "No text was found in the file." in text
        assert "If it is a scan" in text  # the next step
        assert text.count(">Failed</span>") == 2
        failed = await site.text("/activity?show=failed")
        assert "walrus.txt" not in failed
        assert 'href="/activity?show=failed" aria-current="true">Failed <b>2</b>' in failed
        (retry,) = RETRY.findall(failed)  # an upload was not kept: it is added again
        page.write_text("<p>Better late than never.</p>")
        assert (await site.post(retry)).status_code == 303
        text = await wait_for(site, r"Read</span><div class=\"main\"><a href=\"[^\"]*\">late.html")
        assert "Read again or removed since." in text
        assert "Failed <b>1</b>" in text
        await site.post(f"/documents/{document}/remove")
        assert "Removed since." in await site.text("/activity")
        assert "Page 9 does not exist" in await site.text("/activity?page=9")


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with very many tasks."""
    folder = tmp_path_factory.mktemp("crowded")
    settings = make_settings(folder, "knowledge")
    layout.knowledge_index(settings).mkdir(parents=True)
    store = SqliteStore.open(f"sqlite:{layout.knowledge_index(settings) / 'knowledge.sqlite'}")
    for number in range(FINISHED):
        if number % 100:
            store.put_task(make_task(number, "completed", result=result_of(number)))
        else:
            store.put_task(make_task(number, "failed", error=TaskError("extraction_failed", f"Bad {HOSTILE}.")))
    for number in range(FINISHED, FINISHED + QUEUED):
        retry = TaskRetry("No space left on device", 2, time.time() + 90) if number == FINISHED else None
        store.put_task(make_task(number, "queued", retry=retry))
    store.close()
    return folder


async def test_ten_thousand_tasks_are_shown_a_page_at_a_time(crowded: Path) -> None:
    async with open_site(make_settings(crowded, "knowledge", read_only=True)) as site:
        text = await site.text("/activity")
        assert len(text) < 150_000
        assert "200 wait, 100 failed" in text
        assert text.count("Waiting</span>") == 25
        assert "175 more wait." in text
        assert "No space left on device. It is tried again in 1 minute." in text
        assert "Page 1 of 400" in text
        assert "file-9999.txt" in text  # the last to finish comes first
        last = await site.text("/activity?page=400")
        assert "file-0.txt" in last
        assert HOSTILE not in last
        assert escape(f"Bad {HOSTILE}.") in last
        failed = await site.text("/activity?show=failed")
        assert "Page 1 of 4" in failed
        assert 'href="?show=failed&amp;page=2"' in failed
        assert await relative_cost(partial(site.get, "/activity/live", **{"x-part": "1"})) < MAX_LIVE_COST


async def test_a_read_only_server_stops_and_syncs_nothing(crowded: Path) -> None:
    async with open_site(make_settings(crowded, "knowledge", read_only=True)) as site:
        text = await site.text("/activity")
        assert 'disabled title="This server is read-only">Remove</button>' in text
        for path in (STOP.findall(text)[0], "/activity/sync", "/activity/sync/knowledge"):
            response = await site.post(path)
            assert (response.status_code, response.text) == (403, "This server is read-only."), path


async def test_a_change_needs_the_token_of_the_page_and_a_known_source(tmp_path: Path) -> None:
    async with open_site(make_settings(tmp_path, "knowledge")) as site:
        form = {"content-type": "application/x-www-form-urlencoded"}
        for path in ("/activity/sync", "/activity/sync/knowledge", "/activity/tasks/x/stop", "/activity/tasks/x/retry"):
            refused = await site.http.post(path, content=b"", headers=form)
            assert (refused.status_code, refused.text) == (403, "This form has expired. Reload the page."), path
        assert (await site.post("/activity/sync/none")).status_code == 404
        assert (await site.post("/activity/tasks/x/stop")).status_code == 404
        for given, location in (("//evil.example", "/"), ("/salesforce?x=1", "/salesforce?x=1"), ("", "/activity")):
            answer = await site.post("/activity/sync/knowledge", {"next": given})
            assert (answer.status_code, answer.headers["location"]) == (303, location)


async def test_watched_folders_and_documentation_are_looked_at_again_on_request(tmp_path: Path) -> None:
    folder, guide = tmp_path / "inbox", tmp_path / "guide"
    folder.mkdir()
    guide.mkdir()
    (folder / "one.txt").write_text("Opening hours are nine to five.")
    (guide / "guide.md").write_text("# Guide\n\nUse the cursor.\n")
    settings = make_settings(tmp_path, "knowledge", "docs", storage={"watch": [folder]}, docs={"dir": [guide]})
    async with (
        open_site(settings) as site,
        site.app.services["knowledge"].serving(),
        site.app.services["docs"].serving(),
    ):
        text = await wait_for(site, "1 added.*1 file, 1 changed")
        assert f'<code title="{folder}">' in text
        assert "when files change" in text
        (guide / "more.md").write_text("# More\n\nMuch more.\n")
        assert (await site.post("/activity/sync/docs")).status_code == 303
        await wait_for(site, "2 files, 1 changed")
        assert (await site.post("/activity/sync")).status_code == 303
        await wait_for(site, "Nothing changed.*2 files, nothing changed")
        named = re.search(r'name="name" value="(\w+)"', await site.text("/activity"))
        assert named
        assert (await site.post("/activity/sync/knowledge", {"name": named[1]})).status_code == 303
        assert (await site.post("/activity/sync/knowledge", {"name": "none"})).status_code == 404


async def test_the_schema_and_the_articles_of_an_org_are_synced_on_request(demo: Running, tmp_path: Path) -> None:
    log_in(demo, tmp_path / "data")
    async with open_site(make_settings(tmp_path, "salesforce_graph", "salesforce_knowledge")) as site:
        text = await site.text("/activity")
        assert "Not synced yet" in text
        assert "never" in text
        assert (await site.post("/activity/sync/salesforce_graph", {"next": "/salesforce"})).status_code == 303
        await wait_for(site, r"\d+ objects, \d+ changed")
        assert (await site.post("/activity/sync")).status_code == 303
        text = await wait_for(
            site, r"objects, nothing changed.*\d+ articles, |\d+ articles, .*objects, nothing changed"
        )
        assert "never" not in text
        demo.faults("api-off")
        try:
            await site.post("/activity/sync/salesforce_knowledge")
            text = await wait_for(site, r"Failed</span>")
        finally:
            demo.faults()
        assert re.search(r"Failed</span> <time[^>]*>just now</time><p class=\"small\">[^<]{10,}</p>", text)
        assert "sync-knowledge" not in text


async def test_a_source_that_cannot_be_opened_says_so_and_hides_nothing_else(tmp_path: Path) -> None:
    index = tmp_path / "data" / "index"
    index.mkdir(parents=True)
    (index / "knowledge.sqlite").write_bytes(b"not a database, although it has its name" * 100)
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "guide.md").write_text("# Guide\n\nUse the cursor.\n")
    async with open_site(make_settings(tmp_path, "knowledge", "docs", docs={"dir": [tmp_path / "guide"]})) as site:
        text = await wait_for(site, "1 file, ")
        assert "The tasks cannot be read" in text
        assert "is damaged: file is not a database" in text


async def test_a_server_that_reads_and_syncs_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Opening hours are nine to five.")
    async with open_site(make_settings(tmp_path, "kb", kb={"file_path": tmp_path / "notes.txt"})) as site:
        text = await site.text("/activity")
        assert "Nothing to follow" in text
        assert (await site.post("/activity/tasks/x/stop")).status_code == 404
