"""One suite for every place for files: what `Blobs` promises; and what a bucket needs in addition."""

import io
import os
import sys
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from bedstone.errors import InvalidInput, InvalidSetting
from bedstone.store import blob_cache
from bedstone.store.blob_cache import BlobCache, name_copy
from bedstone.store.blob_stores.s3 import PART_BYTES
from bedstone.store.blobs import BlobDamaged, Blobs, BlobsUnavailable
from bedstone.store.opening import open_blobs
from support.bucket import BucketServer

SMALL = b"What the tide leaves."
DIGEST = sha256(SMALL).hexdigest()
LARGE = bytes(range(256)) * (PART_BYTES // 256) + SMALL  # more than one part
ODD = "a/content.p\\d f%20#?*ä&+'\""


@pytest.fixture(params=["folder", "s3"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        return f"folder:{tmp_path / 'blobs'}"
    return str(request.getfixturevalue("bucket").address())


@pytest.fixture
def blobs(address: str, tmp_path: Path) -> Iterator[Blobs]:
    blobs = open_blobs(address, tmp_path / "cache")
    yield blobs
    blobs.close()


@pytest.fixture
def other(address: str, tmp_path: Path) -> Blobs:
    """The same place, as another machine sees it."""
    return open_blobs(address, tmp_path / "other cache")


def keys(blobs: Blobs, prefix: str = "") -> list[str]:
    return [blob.key for blob in blobs.list(prefix)]


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux which file a descriptor is of")
def test_a_file_and_its_name_are_on_the_disk_before_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    sync = os.fsync

    def note(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    blobs = open_blobs(tmp_path / "blobs", tmp_path / "cache")
    blobs.put("a/content.pdf", io.BytesIO(SMALL))
    draft, *folders = synced
    assert draft.parent == tmp_path / "blobs" / "a"
    assert folders == [tmp_path / "blobs" / "a", tmp_path / "blobs"]
    synced.clear()
    blobs.move_folder("a", "b")
    assert synced == [tmp_path / "blobs"]


@pytest.mark.parametrize("content", [b"", SMALL, LARGE], ids=["empty", "small", "in parts"])
def test_what_is_put_comes_back_whole(blobs: Blobs, other: Blobs, content: bytes) -> None:
    sizes: list[int] = []
    stored = blobs.put("a/content.pdf", io.BytesIO(content), sizes.append)
    assert (stored.key, stored.size, stored.digest) == ("a/content.pdf", len(content), sha256(content).hexdigest())
    assert max(sizes, default=0) == len(content)
    for place in (blobs, other):
        found = place.find("a/content.pdf")
        assert found is not None
        assert (found.size, found.digest in (stored.digest, None)) == (len(content), True)
        assert abs(found.modified - time.time()) < 60
        assert place.read("a/content.pdf") == content
        assert b"".join(place.stream("a/content.pdf")) == content
        path = place.local("a/content.pdf")
        assert (path.read_bytes(), path.suffix) == (content, ".pdf")
        assert place.local("a/content.pdf", stored.digest).read_bytes() == content


def test_a_part_of_a_file_is_read(blobs: Blobs) -> None:
    blobs.write("a/text", SMALL)
    assert blobs.read("a/text", 5, 3) == SMALL[5:8]
    assert blobs.read("a/text", 5) == SMALL[5:]
    assert blobs.read("a/text", 0, 1_000) == SMALL
    assert blobs.read("a/text", 1_000, 5) == b""
    blobs.write("a/empty", b"")
    assert blobs.read("a/empty", 0, 5) == b""


def test_a_file_replaces_the_one_with_its_key(blobs: Blobs, other: Blobs) -> None:
    blobs.write("a/text", SMALL)
    assert other.local("a/text").read_bytes() == SMALL
    blobs.put("a/text", io.BytesIO(b"new"))
    assert other.read("a/text") == b"new"
    assert other.local("a/text").read_bytes() == b"new"
    assert keys(other) == ["a/text"]


def test_a_file_that_is_too_large_leaves_nothing(blobs: Blobs) -> None:
    def refuse(size: int) -> None:
        if size > 10:
            raise InvalidInput("too large")

    blobs.write("a/old", SMALL)
    for key in ("a/new", "a/old"):
        with pytest.raises(InvalidInput, match="too large"):
            blobs.put(key, io.BytesIO(SMALL), refuse)
    assert keys(blobs) == ["a/old"]
    assert blobs.read("a/old") == SMALL


def test_what_is_missing_is_a_file_not_found(blobs: Blobs) -> None:
    blobs.write("a/text", SMALL)
    assert blobs.find("a/other") is None
    assert blobs.find("a") is None
    calls: list[Callable[[], object]] = [
        lambda: blobs.read("a/other"),
        lambda: blobs.read("a/other", 0, 5),
        lambda: list(blobs.stream("a/other")),
        lambda: blobs.local("a/other"),
        lambda: blobs.local("a/other", sha256(b"other").hexdigest()),
    ]
    for call in calls:
        with pytest.raises(FileNotFoundError):
            call()
    blobs.delete("a/other")
    blobs.delete_folder("other")
    assert keys(blobs, "other/") == []
    assert not blobs.has_folder("other")


def test_files_are_listed_by_key_and_folders_by_name(blobs: Blobs) -> None:
    for key in ("b/2", "a/x/1", "a/content.pdf", "ab/1", "top", ".hidden/day/a/1"):
        blobs.write(key, SMALL)
    assert keys(blobs, "a/") == ["a/content.pdf", "a/x/1"]
    assert keys(blobs, "a/content.") == ["a/content.pdf"]
    assert keys(blobs) == [".hidden/day/a/1", "a/content.pdf", "a/x/1", "ab/1", "b/2", "top"]
    assert list(blobs.folders()) == [".hidden", "a", "ab", "b"]
    assert list(blobs.folders(".hidden/day")) == ["a"]
    assert list(blobs.folders("missing")) == []
    assert blobs.has_folder("a")
    assert not blobs.has_folder("x")


def test_a_folder_is_moved_and_deleted_with_everything_in_it(blobs: Blobs) -> None:
    for key in ("a/content.pdf", "a/x/1", "ab/1"):
        blobs.write(key, key.encode())
    blobs.move_folder("a", ".aside/day/a")
    assert keys(blobs, ".aside/") == [".aside/day/a/content.pdf", ".aside/day/a/x/1"]
    assert blobs.read(".aside/day/a/x/1") == b"a/x/1"
    assert not blobs.has_folder("a")
    blobs.move_folder(".aside/day/a", "a")
    assert not blobs.has_folder(".aside/day")
    blobs.scratch("a/unfinished").write_text("half")
    blobs.delete_folder("a")
    assert keys(blobs) == ["ab/1"]
    assert not blobs.scratch("a/unfinished").exists()


@pytest.mark.parametrize("key", ["../x", "a/../x", "/x", "a//x", "", "a/.", "x\0y", "x" * 1_000])
def test_a_key_cannot_lead_elsewhere(blobs: Blobs, key: str) -> None:
    for call in (blobs.read, blobs.local, blobs.find, blobs.delete, lambda key: blobs.write(key, SMALL)):
        with pytest.raises(InvalidInput):
            call(key)


def test_a_key_may_have_any_other_characters(blobs: Blobs, other: Blobs) -> None:
    blobs.put(ODD, io.BytesIO(SMALL))
    assert keys(other) == [ODD]
    assert other.local(ODD).read_bytes() == SMALL
    blobs.move_folder("a", "b")
    assert keys(other, "b/") == ["b" + ODD[1:]]


def test_a_place_that_works_can_be_written_and_stays_as_it_is(blobs: Blobs) -> None:
    blobs.check_writable()
    assert keys(blobs) == []
    assert "secret" not in blobs.place


def test_a_bucket_that_is_away_is_reported_at_once_and_works_when_it_is_back(
    bucket: BucketServer, tmp_path: Path
) -> None:
    with bucket.gate() as gate:
        blobs = open_blobs(bucket.address(endpoint=f"http://127.0.0.1:{gate.port}"), tmp_path / "cache")
        blobs.put("a/content.txt", io.BytesIO(SMALL))
        gate.close()
        calls: list[Callable[[], object]] = [
            lambda: blobs.put("b", io.BytesIO(SMALL)),
            lambda: blobs.read("a/content.txt"),
            lambda: blobs.find("a/content.txt"),
            lambda: list(blobs.list()),
            lambda: list(blobs.folders()),
            lambda: blobs.delete_folder("a"),
            lambda: blobs.local("a/content.txt"),
            blobs.check_writable,
        ]
        for call in calls:
            with pytest.raises(BlobsUnavailable, match=r"127\.0\.0\.1:\d+ does not answer"):
                call()
        began = time.monotonic()
        for _ in range(20):
            with pytest.raises(BlobsUnavailable):
                blobs.read("a/content.txt")
        assert time.monotonic() - began < 15  # without the pause each would wait for its retries
        assert blobs.local("a/content.txt", DIGEST).read_bytes() == SMALL  # the copy on this machine
        gate.open()
        blobs.check_writable()
        assert blobs.read("a/content.txt") == SMALL


def test_a_missing_bucket_is_not_an_empty_one(bucket: BucketServer, tmp_path: Path) -> None:
    blobs = open_blobs(bucket.address("no-such-bucket"), tmp_path / "cache")
    for call in (
        lambda: blobs.read("a"),
        lambda: blobs.find("a"),
        lambda: blobs.local("a"),
        lambda: list(blobs.list()),
    ):
        with pytest.raises(BlobsUnavailable, match="does not exist"):
            call()


def test_wrong_and_missing_credentials_are_said_without_them(
    bucket: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "WrongSecret")
    blobs = open_blobs(bucket.address(), tmp_path / "cache")
    for call in (lambda: blobs.read("a"), lambda: blobs.write("a", SMALL), blobs.check_writable):
        with pytest.raises(BlobsUnavailable, match="access is denied") as raised:
            call()
        shown = f"{raised.value.message} {raised.value.details} {raised.value.__cause__}"
        assert "WrongSecret" not in shown
        assert bucket.environment["AWS_ACCESS_KEY_ID"] not in shown


def test_credentials_come_from_the_files_of_other_tools(
    bucket: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = bucket.environment
    lines = ["[team]", *(f"{name.lower()} = {known[name]}" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))]
    (tmp_path / "credentials").write_text("\n".join(lines))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "team")
    blobs = open_blobs(bucket.address(), tmp_path / "cache")
    blobs.write("a", SMALL)
    assert blobs.read("a") == SMALL


@pytest.mark.parametrize(
    "address",
    [
        "s3://KEY:SECRETVALUE@bucket/x",
        "s3://bucket/x?endpoint=http://KEY:SECRETVALUE@127.0.0.1:1",
        "s3://bucket/x?secret_access_key=SECRETVALUE",
        "s3://bucket/x?token=SECRETVALUE",
        "s3:///SECRETVALUE",
        "s3://bucket/../SECRETVALUE",
        "s3://bucket/x?endpoint=SECRETVALUE",
        "s3://bucket/x?endpoint=http://h:SECRETVALUE",
        "s3://bucket/x?region=SECRET VALUE",
        "s3://bucket/x?SECRETVALUE",
    ],
)
def test_an_address_that_is_wrong_is_not_repeated(address: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting) as raised:
        open_blobs(address, tmp_path / "cache")
    assert "SECRETVALUE" not in raised.value.message.replace(" ", "")
    assert raised.value.__cause__ is None


def test_what_another_tool_stored_is_served_and_what_it_changed_is_refused(
    bucket: BucketServer, tmp_path: Path
) -> None:
    import obstore  # noqa: PLC0415 - the other tool
    from obstore.store import S3Store  # noqa: PLC0415

    blobs = open_blobs(bucket.address(prefix="tool"), tmp_path / "cache")
    config = {"endpoint": bucket.endpoint, "region": "us-east-1"}
    tool = S3Store("bedstone", prefix="tool", config=config, client_options={"allow_http": True})  # type: ignore[arg-type]
    obstore.put(tool, "a/content.txt", SMALL)
    assert blobs.local("a/content.txt").read_bytes() == SMALL
    assert blobs.local("a/content.txt", DIGEST).read_bytes() == SMALL
    obstore.put(tool, "a/content.txt", b"forged")
    assert blobs.local("a/content.txt").read_bytes() == b"forged"
    with pytest.raises(BlobDamaged, match="its digest differs"):
        blobs.local("a/content.txt", sha256(b"what it was").hexdigest())
    obstore.put(tool, "a/text", b"forged", attributes={"sha256": DIGEST})
    for call in (blobs.read, blobs.local):
        with pytest.raises(BlobDamaged, match="its digest differs"):
            call("a/text")


def test_a_copy_that_was_damaged_is_fetched_again(bucket: BucketServer, tmp_path: Path) -> None:
    address = bucket.address()
    first = open_blobs(address, tmp_path / "cache")
    first.put("a/content.txt", io.BytesIO(SMALL))
    path = first.local("a/content.txt")
    path.write_bytes(b"x" * len(SMALL))
    again = open_blobs(address, tmp_path / "cache")  # as after a restart
    assert again.local("a/content.txt", DIGEST).read_bytes() == SMALL


def test_copies_make_room_for_new_ones_but_not_those_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob_cache, "USED_SECONDS", 100.0)
    cache = BlobCache(tmp_path, max_bytes=1_000)
    paths = []
    for number in range(12):
        digest = sha256(str(number).encode()).hexdigest()
        with cache.draft() as draft:
            draft.write_bytes(bytes(100))
            paths.append(cache.keep(draft, name_copy(digest, "a/content.pdf"), digest))
        if number < 8:  # used a while ago, the first one longest
            os.utime(paths[-1], (time.time() - 1_000 + number, time.time() - 1_000 + number))
    left = [path.exists() for path in paths]
    assert all(left[8:])
    assert not left[0]
    assert sum(left) * 100 <= 800
    assert not list(tmp_path.glob("*.tmp"))
    with pytest.raises(ValueError, match="not the name of a copy"):
        cache.find("../../etc/passwd", None)
