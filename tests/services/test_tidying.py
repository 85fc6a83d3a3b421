"""Orphans in a place that several machines use: found and deleted by their age, counted, and never what is in use."""

import io
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from bedstone.services.knowledge.file_storage import DRAFT, OWNER, FileStorage
from bedstone.services.knowledge.quarantine import KEPT_DAYS, MIN_AGE_SECONDS, ORPHANS, REMOVED, Quarantine
from bedstone.services.knowledge.records import AddFile
from bedstone.services.knowledge.tidying import INTERVAL_SECONDS, TIDIED, Tidying
from bedstone.store.blobs import Blobs
from bedstone.store.engines.memory import MemoryStore
from bedstone.store.opening import open_blobs

DAY = 24 * 3600.0


@pytest.fixture(params=["folder", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Blobs]:
    if request.param == "folder":
        address = f"folder:{tmp_path / 'shared'}"
    else:
        address = request.getfixturevalue("bucket").address()
    blobs = open_blobs(address, tmp_path / "cache")
    yield blobs
    blobs.close()


def stored(storage: FileStorage, *, is_known: bool = True) -> str:
    """Store the copy of a file, and what is known of it."""
    file = storage.import_file(io.BytesIO(b"tulips"), "a.txt", lambda _: None)
    if is_known:
        storage.save_file(AddFile(file.document_id, "a.txt", "", "txt", file.size_bytes, file.digest))
    return file.document_id


def after(seconds: float, blobs: Blobs, storage: FileStorage) -> Quarantine:
    """What looks at a place some time from now."""
    return Quarantine(blobs, storage.delete, clock=lambda: time.time() + seconds)


def test_what_was_just_stored_is_left_alone(blobs: Blobs, tmp_path: Path) -> None:
    storage = FileStorage(blobs, tmp_path / ".adding")
    names = {stored(storage), stored(storage, is_known=False)}
    assert storage.quarantine_orphans(lambda: ()) == 0
    assert storage.document_ids() == names
    assert storage.aside.folders() == {}


def test_old_orphans_are_moved_aside_or_deleted(blobs: Blobs, tmp_path: Path) -> None:
    storage = FileStorage(blobs, tmp_path / ".adding")
    known, orphan, unfinished, removed = (
        stored(storage),
        stored(storage),
        stored(storage, is_known=False),
        stored(storage),
    )
    storage.mark_removed([removed])
    draft = f"{DRAFT}{uuid4()}"
    blobs.write(f"{draft}/content.txt", b"half")
    quarantine = after(MIN_AGE_SECONDS + 60, blobs, storage)
    assert quarantine.sort_out({known, orphan, unfinished, removed}, {known}, {draft}) == 1
    assert list(quarantine.folders()) == [orphan]
    left = {blob.key.partition("/")[0] for blob in blobs.list()}
    assert left == {known, ORPHANS}
    storage.aside.bring_back(orphan)
    assert storage.document_ids() >= {known, orphan}
    assert storage.find_copy(orphan) is not None


def test_moving_back_goes_on_after_an_interruption(blobs: Blobs, tmp_path: Path) -> None:
    """A bucket copies the files of a folder one by one, and deletes them when all were copied."""
    storage = FileStorage(blobs, tmp_path / ".adding")
    orphan, complete = stored(storage), stored(storage)
    after(2 * DAY, blobs, storage).sort_out({orphan}, (), ())
    copy = storage.find_copy(storage.aside.folders()[orphan])
    assert copy is not None
    blobs.write(f"{orphan}/{copy.key.rpartition('/')[2]}", blobs.read(copy.key))
    blobs.write(f"{ORPHANS}/2026-01-01/{complete}/{copy.key.rpartition('/')[2]}", b"tulips")
    for name in (orphan, complete):
        storage.aside.bring_back(name)
        assert storage.read_sidecar(name) is not None
        assert storage.find_copy(name) is not None
    assert [blob.key for blob in blobs.list(f"{ORPHANS}/") if orphan in blob.key] == []


def test_what_was_moved_aside_is_deleted_after_a_month(blobs: Blobs, tmp_path: Path) -> None:
    storage = FileStorage(blobs, tmp_path / ".adding")
    orphan = stored(storage)
    after(2 * DAY, blobs, storage).sort_out({orphan}, (), ())
    after((KEPT_DAYS - 1) * DAY, blobs, storage).sort_out((), (), ())
    assert list(storage.aside.folders()) == [orphan]
    after((KEPT_DAYS + 2) * DAY, blobs, storage).sort_out((), (), ())
    assert [blob.key for blob in blobs.list()] == []


def test_one_process_looks_once_a_day(blobs: Blobs, tmp_path: Path) -> None:
    store = MemoryStore()
    storage = FileStorage(blobs, tmp_path / ".adding")
    now = time.time()
    assert Tidying(store, storage, clock=lambda: now).tidy_if_due() == 0
    assert store.get_value(TIDIED) is not None
    assert Tidying(store, storage, clock=lambda: now + INTERVAL_SECONDS / 2).tidy_if_due() is None
    assert Tidying(store, storage, clock=lambda: now + INTERVAL_SECONDS + 1).tidy_if_due() == 0


def test_a_removed_document_leaves_nothing(blobs: Blobs, tmp_path: Path) -> None:
    storage = FileStorage(blobs, tmp_path / ".adding")
    names = [stored(storage) for _ in range(20)]
    storage.set_owner("me")
    storage.mark_removed(names)
    assert all(blobs.find(f"{name}/{REMOVED}") is not None for name in names)
    storage.delete_all(names)
    assert [blob.key for blob in blobs.list()] == [OWNER]
