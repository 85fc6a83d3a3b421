"""An export from anyone: what is valid is imported, the rest is refused by its name, and nothing is believed."""

import hashlib
import io
import json
import signal
import subprocess
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from bedstone.errors import BedstoneError
from bedstone.search.embedders.hashing import HashingEmbedder
from bedstone.services.knowledge.archive_reader import MANIFEST, UnsafeArchive
from bedstone.services.knowledge.listing import ListQuery
from bedstone.services.knowledge.options import KnowledgeOptions
from bedstone.services.knowledge.records import iso_time
from bedstone.services.knowledge.service import KnowledgeBase
from bedstone.store.engines.sqlite import SqliteStore
from support.processes import BEDSTONE, bedstone, clean_environment

MEGABYTE = 2**20
Record = dict[str, Any]


class Export:
    """An export as the version before wrote it, to be changed by hand."""

    def __init__(self) -> None:
        self.contexts: Any = {}
        self.records: list[Any] = []
        self.files: dict[str, bytes] = {}

    def add(self, text: str, filename: str = "tides.txt", **metadata: Any) -> Record:
        document_id, content = str(uuid4()), text.encode()
        facts = {
            "filename": filename,
            "source": f"/home/ada/{filename}",
            "format": "txt",
            "size": str(len(content)),
            "added": "1700000000.5",
            "status": "completed",
            "method": "text_extraction",
            "pages": "",
            "user": '{"author": "Ada"}',
            "facts": "{}",
            "warnings": "[]",
            "contexts": '["default"]',
            "seconds": "0.5",
            **metadata,
        }
        digest = hashlib.sha256(content).hexdigest()
        record = {"id": document_id, "title": filename, "digest": digest, "metadata": facts}
        self.records.append(record)
        self.files[f"documents/{document_id}/content.txt"] = content
        self.files[f"documents/{document_id}/text.json.z"] = packed([[None, text]])
        return record

    def write(self, path: Path, manifest: bytes | None = None) -> Path:
        whole = {"version": 1, "contexts": self.contexts, "documents": self.records}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(MANIFEST, json.dumps(whole, indent=1) if manifest is None else manifest)
            for name, content in self.files.items():
                archive.writestr(name, content)
        return path


def packed(pages: Any) -> bytes:
    return zlib.compress(json.dumps(pages).encode())


@pytest.fixture
def base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    store = SqliteStore(tmp_path / "index" / "knowledge.sqlite")
    options = KnowledgeOptions(tmp_path / "documents", tmp_path / "index", max_file_size_mb=1)
    base = KnowledgeBase(store, options, HashingEmbedder)
    base.open()
    yield base
    base.close()


def import_all(base: KnowledgeBase, path: Path) -> list[str]:
    """Import an export, and return why documents were refused."""
    refused: list[str] = []
    for task in list(base.import_from(path, on_refused=refused.append)):
        assert base.wait(task.id).status == "completed"
    return refused


def names(base: KnowledgeBase) -> list[str]:
    """List the documents as knowledge-show does; a bad field of any of them would raise."""
    return sorted(
        f"{item.filename} {iso_time(item.added_at)[:4]}" for item in base.list_documents(ListQuery()).documents
    )


def change(field: str, value: Any) -> Callable[[Export, Record], None]:
    def apply(export: Export, record: Record) -> None:
        target = record if field in record else record["metadata"]
        target[field] = value

    return apply


def remove(field: str) -> Callable[[Export, Record], None]:
    def apply(export: Export, record: Record) -> None:
        del record["metadata"][field]

    return apply


def text(content: bytes) -> Callable[[Export, Record], None]:
    def apply(export: Export, record: Record) -> None:
        export.files[f"documents/{record['id']}/text.json.z"] = content

    return apply


def original(content: bytes | None) -> Callable[[Export, Record], None]:
    def apply(export: Export, record: Record) -> None:
        name = f"documents/{record['id']}/content.txt"
        if content is None:
            del export.files[name]
        else:
            export.files[name] = content

    return apply


DEEP = "[" * 2_000 + "]" * 2_000
REFUSED: list[tuple[str, Callable[[Export, Record], None]]] = [
    ("id", change("id", "../../etc/passwd")),
    ("id", change("id", 7)),
    ("title", change("title", None)),
    ("title", change("title", "half \ud800")),
    ("digest", change("digest", "f00d")),
    ("another digest", change("digest", "0" * 64)),
    ("metadata", change("metadata", [])),
    ("filename", change("filename", "../../x.txt")),
    ("filename is missing", remove("filename")),
    ("format", change("format", "exe")),
    ("size", change("size", "many")),
    ("added", change("added", "1e300")),
    ("added", change("added", "nan")),
    ("added is missing", remove("added")),
    ("method", change("method", "magic")),
    ("pages", change("pages", "-3")),
    ("user", change("user", "null")),
    ("user", change("user", "[1]")),
    ("user", change("user", '{"a": NaN}')),
    ("user", change("user", '{"a": "\\ud800"}')),
    ("user", change("user", f'{{"a": {DEEP}}}')),
    ("user", change("user", json.dumps({"a": "x" * (2 * MEGABYTE)}))),
    ("facts", change("facts", '{"title": 5}')),
    ("warnings", change("warnings", '"none"')),
    ("contexts", change("contexts", "[null]")),
    ("ocr_confidence is missing", change("ocr_pages", "3")),
    ("left_out", change("left_out", '{"counts": {"picture": "many"}}')),
    ("content.txt is missing", original(None)),
    ("another digest", original(b"something else")),
    ("content.txt exceeds 1 MB", original(bytes(2 * MEGABYTE))),
    ("text.json.z: the text", text(zlib.compress(b"not JSON"))),
    ("text", text(packed({"a": 1}))),
    ("page number", text(packed([["one", "tide"]]))),
    ("text", text(packed([[1, None]]))),
    ("text", text(packed([[1, "half \ud800"]]))),
    ("text is empty", text(packed([[None, " "]]))),
    ("", text(b"not compressed")),
    ("cut off", text(packed([[None, "tide " * 100]])[:-9])),
]


@pytest.mark.parametrize(("reason", "spoil"), REFUSED)
def test_a_document_that_is_not_valid_is_refused_and_the_others_are_imported(
    reason: str, spoil: Callable[[Export, Record], None], base: KnowledgeBase, tmp_path: Path
) -> None:
    export = Export()
    export.add("tide tables of the harbour", "good.txt")
    spoil(export, export.add("something bad in the water", "bad.txt"))
    export.add("lighthouses of the coast", "last.txt")
    (refused,) = import_all(base, export.write(tmp_path / "all.zip"))
    assert reason in refused
    assert names(base) == ["good.txt 2023", "last.txt 2023"]
    folders = {path.name for path in (tmp_path / "documents").glob("[!.]*")}
    assert folders == {item.id for item in base.documents()}


def test_a_record_that_is_no_object_is_refused(base: KnowledgeBase, tmp_path: Path) -> None:
    export = Export()
    export.records += [7, None, [], {}]
    export.add("tide tables", "good.txt")
    assert len(import_all(base, export.write(tmp_path / "all.zip"))) == 4
    assert names(base) == ["good.txt 2023"]


def test_a_forged_digest_does_not_shadow_the_real_file(base: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "contract.txt").write_text("The rent is 900 a month.")
    export = Export()
    record = export.add("The rent is 90 a month.", "contract.txt")
    record["digest"] = hashlib.sha256((tmp_path / "contract.txt").read_bytes()).hexdigest()
    (refused,) = import_all(base, export.write(tmp_path / "all.zip"))
    assert "another digest" in refused
    added = base.wait(base.add(tmp_path / "contract.txt").id)
    assert added.result
    assert "duplicate" not in added.result
    assert "900" in base.chunks(added.result["document_id"])[0].text


def entry_names(count: int) -> bytes:
    """Return an archive that is nothing but a list of entries."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(MANIFEST, "{}")
        info = archive.infolist()[0]
        archive.filelist.extend([info] * count)
    return buffer.getvalue()


def unsafe(path: Path, kind: str) -> Path:
    """Write an archive that no export is like."""
    export, manifest = Export(), None
    export.add("tide tables", "good.txt")
    if kind == "text":
        path.write_bytes(b"no archive")
        return path
    if kind == "entries":
        path.write_bytes(entry_names(500_000))
        return path
    if kind == "size":  # 160 MB in 160 KB
        export.files |= {f"documents/{number}": bytes(40 * MEGABYTE) for number in range(4)}
    elif kind == "manifest":
        manifest = b'{"version": 1, "contexts": {}, "documents": ["' + b"x" * (70 * MEGABYTE)
    elif kind == "record":
        manifest = b'{"version": 1, "contexts": {}, "documents": ["' + b"x" * (6 * MEGABYTE) + b'"]}'
    elif kind == "nesting":
        manifest = b'{"version": 1, "documents": [' + b"[" * 100_000
    elif kind == "version":
        manifest = b'{"version": 99, "contexts": {}, "documents": []}'
    elif kind == "collection":
        export.contexts = {"../up": "a name"}
    return export.write(path, manifest)


@pytest.mark.parametrize("kind", ["text", "entries", "size", "manifest", "record", "nesting", "version", "collection"])
def test_an_archive_that_is_unsafe_as_a_whole_is_refused_before_anything_is_stored(
    kind: str, base: KnowledgeBase, tmp_path: Path
) -> None:
    with pytest.raises(UnsafeArchive):
        import_all(base, unsafe(tmp_path / "all.zip", kind))
    assert (names(base), list((tmp_path / "documents").glob("[!.]*"))) == ([], [])
    assert [item.name for item in base.collections.all()] == ["default"]


def test_a_bomb_in_a_text_is_refused_while_it_is_unpacked(base: KnowledgeBase, tmp_path: Path) -> None:
    """160 MB in 160 KB, which the archive packs once more: no header tells."""
    export = Export()
    export.add("tide tables", "good.txt")
    bomb = export.add("something bad", "bad.txt")
    export.files[f"documents/{bomb['id']}/text.json.z"] = zlib.compress(bytes(160 * MEGABYTE))
    (refused,) = import_all(base, export.write(tmp_path / "all.zip"))
    assert refused == f"documents/{bomb['id']}/text.json.z exceeds 128 MB"
    assert names(base) == ["good.txt 2023"]


def test_the_command_line_lists_what_it_refuses(tmp_path: Path) -> None:
    export = Export()
    export.add("tide tables", "good.txt")
    bad = export.add("something bad", "bad.txt", added="inf")
    command = ("knowledge", "import", export.write(tmp_path / "all.zip"), "--data-dir", tmp_path / "data")
    done = bedstone(*command, BEDSTONE_EMBEDDING__MODEL_NAME="none")
    assert (done.returncode, done.stdout) == (1, f"1 documents added from {tmp_path}/all.zip. 1 refused.\n")
    assert done.stderr.strip() == f"Refused: document {bad['id']}: added: inf is not between 0 and 253402300799"


def test_ids_of_others_are_refused(base: KnowledgeBase, tmp_path: Path) -> None:
    export = Export()
    record = export.add("tide tables")
    assert import_all(base, export.write(tmp_path / "all.zip")) == []
    other = Export()
    forged = other.add("something else")
    for name in list(other.files):
        other.files[name.replace(forged["id"], record["id"])] = other.files.pop(name)
    forged["id"] = record["id"]
    (refused,) = import_all(base, other.write(tmp_path / "other.zip"))
    assert "another document has this id" in refused
    assert base.chunks(record["id"])[0].text == "tide tables"


def test_collections_are_kept_and_unknown_ones_are_not(base: KnowledgeBase, tmp_path: Path) -> None:
    export = Export()
    export.contexts = {"sea": "ships"}
    export.add("tide tables", contexts='["sea", "unknown"]')
    assert import_all(base, export.write(tmp_path / "all.zip")) == []
    assert [(item.name, item.description, item.documents) for item in base.collections.all()][1:] == [
        ("sea", "ships", 1)
    ]
    assert [item.collections for item in base.documents()] == [("sea",)]


def test_that_ocr_was_forced_is_kept(base: KnowledgeBase, tmp_path: Path) -> None:
    export = Export()
    forced, plain = export.add("tides", ocr_forced="True"), export.add("currents")
    export.add("winds", ocr_forced="perhaps")
    refused = import_all(base, export.write(tmp_path / "export.zip"))
    assert base.get_document(forced["id"]).is_ocr_forced
    assert not base.get_document(plain["id"]).is_ocr_forced
    assert len(refused) == 1
    assert "ocr_forced" in refused[0]


def test_a_killed_import_can_be_repeated(tmp_path: Path) -> None:
    export = Export()
    for number in range(40):
        export.add(f"subject{number}x " + "about the bay. " * 200, f"{number}.txt")
    path, data = export.write(tmp_path / "all.zip"), tmp_path / "data"
    command = [str(BEDSTONE), "knowledge", "import", str(path), "--data-dir", str(data)]
    environment = clean_environment() | {"BEDSTONE_EMBEDDING__MODEL_NAME": "none"}
    for wanted in (3, 20):
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while len(list((data / "documents").glob("*-*"))) < wanted and process.poll() is None:
            assert time.monotonic() < deadline
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    done = bedstone(*command[1:], BEDSTONE_EMBEDDING__MODEL_NAME="none")
    assert done.returncode == 0
    listed = json.loads(bedstone("knowledge", "list", "--json", "--data-dir", data).stdout)
    assert sorted(row["filename"] for row in listed["documents"]) == sorted(f"{number}.txt" for number in range(40))
    assert {row["processing_status"] for row in listed["documents"]} == {"completed"}
    assert {path.name for path in (data / "documents").glob("[!.]*")} == {row["id"] for row in listed["documents"]}
    assert list((data / "documents").glob(".draft-*")) == []


def test_an_import_on_a_full_disk_is_an_error_and_can_be_repeated(base: KnowledgeBase, tmp_path: Path) -> None:
    export = Export()
    export.add("tide tables")
    path = export.write(tmp_path / "all.zip")
    (tmp_path / "documents").rename(tmp_path / "aside")
    (tmp_path / "documents").write_text("in the way")
    with pytest.raises(BedstoneError, match="Cannot store the file"):
        import_all(base, path)
    (tmp_path / "documents").unlink()
    (tmp_path / "aside").rename(tmp_path / "documents")
    assert import_all(base, path) == []
    assert names(base) == ["tides.txt 2023"]
