"""A reading that was interrupted goes on where it stopped, with the result of one that was not."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bedstone.ingest.extraction import Notes, Page, ReadOptions
from bedstone.ingest.reader import FileReader
from bedstone.ingest.resuming import NotesLog, PageSpool, merge_notes
from bedstone.records import ProgressSnapshot
from bedstone.services.knowledge.file_storage import SPOOL
from bedstone.services.knowledge.listing import ListQuery
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.records import FileDocument
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.engines.sqlite import SqliteStore
from ingest.test_reader import pdf, pptx
from support.corpus import CorpusFile, corpus
from support.scans import scanned_pdf

PAGES = 8
STARTED = """
import sys
from pathlib import Path
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.engines.sqlite import SqliteStore
root = Path(sys.argv[1])
store = SqliteStore(root / "index" / "knowledge.sqlite", durable=True)
base = KnowledgeBase(store, KnowledgeOptions(root / "documents", root / "index"), lambda: None)
base.open()
base.wait(base.add(Path(sys.argv[2])).id)
"""


def open_base(folder: Path, *, is_working: bool = True) -> KnowledgeBase:
    store = SqliteStore(folder / "index" / "knowledge.sqlite", durable=True)
    base = KnowledgeBase(store, KnowledgeOptions(folder / "documents", folder / "index"), lambda: None)
    if is_working:
        base.open()
    return base


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def spooled_pages(folder: Path) -> int:
    return sum(path.read_bytes().count(b'"page"') for path in folder.glob(f"documents/*/{SPOOL}"))


def content(base: KnowledgeBase) -> tuple[FileDocument, list[tuple[str, int | None, tuple[str, ...]]]]:
    """The one document, without what differs from run to run, and its chunks."""
    (document,) = base.documents()
    chunks = [(item.text, item.head.page, item.head.breadcrumb) for item in base.chunks(document.id)]
    return replace(document, id="", added_at=0.0, submitted_at=None, seconds=None), chunks


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scan.pdf"
    path.write_bytes(scanned_pdf(*[f"Chapter {number}\nThe tide of day {number}" for number in range(1, PAGES + 1)]))
    return path


def test_a_killed_server_resumes_ocr_at_the_page_it_was_at(file: Path, tmp_path: Path) -> None:
    for name in ("whole", "killed"):
        (tmp_path / name / "index").mkdir(parents=True)
    whole = open_base(tmp_path / "whole")
    assert whole.wait(whole.add(file).id).status == "completed"
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-c", STARTED, folder, file], start_new_session=True)
    wait_for(lambda: spooled_pages(folder) >= 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
    (spool,) = folder.glob(f"documents/*/{SPOOL}")
    known = spooled_pages(folder)
    with spool.open("ab") as tail:
        tail.write(b'{"page": {"markdown": "torn')
    resumed = open_base(folder, is_working=False)
    (task,) = resumed.active_tasks()
    saved = task.progress.step if task.progress else ""
    resumed.open()
    states = [state.progress or ProgressSnapshot() for state in resumed.watch(task.id)]
    assert resumed.task(task.id).status == "completed"
    read = {state.step for state in states if state.step.startswith("Processing page")} - {saved}
    assert read
    assert min(int(step.split()[2]) for step in read) > known
    shares = [state.share for state in states[:-1]]  # a completed task has no progress
    assert shares == sorted(shares)
    assert content(resumed) == content(whole)
    assert not list(folder.glob(f"documents/*/{SPOOL}"))
    for base in (whole, resumed):
        base.close()


def test_a_server_that_is_stopped_resumes_too_and_other_options_start_anew(file: Path, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    base = open_base(tmp_path)
    base.add(file)
    wait_for(lambda: spooled_pages(tmp_path) >= 2)
    base.close()
    known = spooled_pages(tmp_path)
    base = open_base(tmp_path, is_working=False)
    assert [item.status for item in base.list_documents(ListQuery()).documents] == ["pending"]
    (spool,) = tmp_path.glob(f"documents/*/{SPOOL}")
    assert len(PageSpool(spool, "another key").load().pages) == 0
    assert not spool.exists()
    assert 2 <= known <= PAGES
    base.open()
    (task,) = base.active_tasks()
    assert base.wait(task.id).status == "completed"
    base.close()


def test_text_is_not_kept_twice_while_it_is_read(tmp_path: Path) -> None:
    spool = PageSpool(tmp_path / SPOOL, "key")
    for number in range(1, 4):
        spool.add(Page("plain text", number, 4), {}, 0.1)
    assert not (tmp_path / SPOOL).exists()
    spool.add(Page("recognized", 4, 4, "ocr", 0.9), {"warnings": ["blurred"]}, 3.0)
    spool.close()
    known = PageSpool(tmp_path / SPOOL, "key").load()
    assert [page.markdown for page in known.pages] == ["plain text"] * 3 + ["recognized"]
    assert (known.notes, known.seconds) == ({"warnings": ["blurred"]}, 3.0)


@pytest.mark.parametrize(
    "tail", [b"", b'{"page"', b"\xff\xfe\n", b"[]\n", b'{"page": {"markdown": "x", "number": 9}}\n']
)
def test_what_was_not_written_completely_is_read_again(tail: bytes, tmp_path: Path) -> None:
    path = tmp_path / SPOOL
    spool = PageSpool(path, "key")
    for number in (1, 2):
        spool.add(Page(f"page {number}", number, 3, "ocr"), {}, 1.0)
    spool.close()
    path.write_bytes(path.read_bytes() + tail)
    spool = PageSpool(path, "key")
    assert len(spool.load().pages) == 2
    spool.add(Page("page 3", 3, 3, "ocr"), {}, 2.0)
    spool.close()
    assert [page.markdown for page in PageSpool(path, "key").load().pages] == ["page 1", "page 2", "page 3"]


def test_readers_start_at_any_page_with_the_same_result(tmp_path: Path) -> None:
    mixed = pdf(*[f"Part {number}: Words of the part, long enough to be one." for number in range(1, 40)])
    for name, data in (("a.pdf", mixed), ("a.pptx", pptx())):
        path = tmp_path / name
        path.write_bytes(data)
        whole = FileReader(path)
        pages = list(whole.pages())
        for first in (2, len(pages), len(pages) + 1):
            rest = FileReader(path, ReadOptions(first_page=first), known_notes={"warnings": ["seen before"]})
            assert list(rest.pages()) == pages[first - 1 :]
            assert rest.notes.metadata == whole.notes.metadata
            assert rest.notes.warnings == ["seen before", *whole.notes.warnings]


@pytest.mark.parametrize("file", [item for item in corpus() if item.name.endswith((".pdf", ".pptx"))], ids=str)
def test_what_repeats_is_left_out_and_counted_as_without_an_interruption(file: CorpusFile, tmp_path: Path) -> None:
    path = file.write(tmp_path)
    whole = FileReader(path)
    spool = PageSpool(tmp_path / SPOOL, "key")
    pages = []
    for page in whole.pages():
        pages.append(page)
        if page.number == 6:
            spool.close()
        elif len(pages) < 6:
            spool.add(page, whole.page_notes, 10.0)
    known = PageSpool(tmp_path / SPOOL, "key").load()
    assert len(known.pages) == 5
    rest = FileReader(path, ReadOptions(first_page=6), known_notes=known.notes)
    assert [*known.pages, *rest.pages()] == pages
    assert whole.notes.left_out.total > 0
    assert rest.notes == whole.notes


def test_notes_are_told_as_they_are_made() -> None:
    notes = Notes()
    log = NotesLog(notes)
    notes.learn("title", "Tides")
    notes.warn("Page 1 is corrupt")
    first = log.changes()
    notes.warn("Page 2 is corrupt")
    assert log.changes() == {"warnings": ["Page 2 is corrupt"]}
    assert log.changes() == {}
    assert merge_notes(Notes(), first) == Notes({"title": "Tides"}, ["Page 1 is corrupt"])
