"""The index folder of a docs corpus: published whole, opened without writing to it.

metadata.json      what the corpus is, and which generation holds it; replaced atomically
generation-7/      store.sqlite, words/ and, with many vectors, vectors.usearch: one complete state
building/          a build on its way; picked up again if it was interrupted
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bedstone.errors import InvalidInput, NotFound, Unavailable

METADATA_VERSION = "1.1.0"
BUILDING = "building"
METADATA = "metadata.json"
LOCK = ".lock"
SOURCE = ".source"
VECTORS = "vectors.usearch"
CORPUS = "corpus"  # the facet that chooses among several
READABLE_FILE, READABLE_FOLDER = 0o644, 0o755
CHANGING = {".sqlite", ".sqlite-wal", ".sqlite-shm", "meta.json", ".managed.json", "version.json", ".lock"}


class IndexFolder:
    """Where builds put their results and servers find them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def metadata(self) -> dict[str, Any] | None:
        """What the last build wrote; None before the first."""
        try:
            data = json.loads((self.path / METADATA).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise InvalidInput(f"Cannot read the index in {self.path}: {error}") from error
        version = str(data.get("metadata_version")) if isinstance(data, dict) else "none"
        if version.partition(".")[0] != METADATA_VERSION.partition(".")[0]:
            raise InvalidInput(f"Unsupported metadata_version major: expected 1.x.x, got {version}")
        assert isinstance(data, dict)
        return data

    @property
    def existing_metadata(self) -> dict[str, Any]:
        """What the last build wrote; an error where there was none."""
        if (metadata := self.metadata) is None:
            raise NotFound(
                f"There is no docs index in {self.path}. Make one with: bedstone docs build DIR --out {self.path}"
            )
        return metadata

    @property
    def source(self) -> str | None:
        """The documents this folder is the index of, as far as this machine knows."""
        try:
            return (self.path / SOURCE).read_text(encoding="utf-8")
        except OSError:
            return None

    def claim(self, docs: Path) -> None:
        """Note whose index this is, if it is one."""
        self._refuse_strange()
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / SOURCE).write_text(str(docs.resolve()), encoding="utf-8")

    def _refuse_strange(self) -> None:
        """A folder that holds something else is no index."""
        strange = {item.name for item in self.path.iterdir()} - {LOCK} if self.path.is_dir() else set()
        if self.path.exists() and not self.path.is_dir():
            raise InvalidInput(f"{self.path} is a file; an index is a folder.")
        if strange and METADATA not in strange and BUILDING not in strange and SOURCE not in strange:
            raise InvalidInput(f"{self.path} holds something else; an index needs a folder of its own.")

    @property
    def generation(self) -> Path | None:
        """The folder of the published state."""
        metadata = self.metadata
        return self.path / metadata["index"]["generation"] if metadata else None

    @contextmanager
    def building(self, docs: Path, *, fresh: bool) -> Iterator[Path]:
        """A folder to build in, with what was published or interrupted before; one build at a time."""
        self._refuse_strange()
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / LOCK).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise Unavailable(f"Another build is writing to {self.path}.") from None
            self.claim(docs)
            work = self.path / BUILDING
            if fresh:
                shutil.rmtree(work, ignore_errors=True)
            if not work.exists():
                self._prepare(work, None if fresh else self.generation)
            yield work

    def discard(self, work: Path) -> None:
        """Leave everything as it is published."""
        shutil.rmtree(work, ignore_errors=True)

    def publish(self, work: Path, metadata: dict[str, Any], *, last: bool) -> None:
        """Make the state in `work` the published one; the last time the folder itself becomes it."""
        number = self._next_number()
        target = self.path / f"generation-{number}"
        if last:
            work.rename(target)
        else:
            draft = self.path / f"{target.name}.tmp"
            shutil.rmtree(draft, ignore_errors=True)
            _copy(work, draft)
            draft.rename(target)
        for path in target.rglob("*"):
            path.chmod(READABLE_FOLDER if path.is_dir() else READABLE_FILE)  # tantivy lets only the builder read
        data = {"metadata_version": METADATA_VERSION, **metadata, "index": {"generation": target.name}}
        draft_file = self.path / "metadata.json.tmp"
        # A line for each key: with `indent`, thousands of files would be written by Python instead of C.
        lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in data.items()]
        draft_file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        draft_file.replace(self.path / METADATA)
        self._sweep(keep=target)

    def _prepare(self, work: Path, source: Path | None) -> None:
        draft = self.path / f"{BUILDING}.tmp"
        shutil.rmtree(draft, ignore_errors=True)
        if source is not None and source.is_dir():
            _copy(source, draft)
        else:
            draft.mkdir()
        draft.rename(work)  # a copy that was interrupted is never taken for a whole one

    def _next_number(self) -> int:
        return max((int(path.name.rpartition("-")[2]) for path in self._generations()), default=0) + 1

    def _generations(self) -> list[Path]:
        return [path for path in self.path.glob("generation-*") if path.name.rpartition("-")[2].isdigit()]

    def _sweep(self, keep: Path) -> None:
        """Old generations go; a server that still has one open keeps its files until it closes them."""
        for path in (*self._generations(), *self.path.glob("*.tmp")):
            if path != keep and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)


def united_taxonomy(corpora: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The facets of corpora, given their metadata; with more than one, also which corpus."""
    if len(corpora) == 1:
        (metadata,) = corpora.values()
        return dict(metadata["taxonomy"])
    united: dict[str, dict[str, Any]] = {
        CORPUS: {"description": f"Filter results by {CORPUS}.", "values": sorted(corpora)}
    }
    for metadata in corpora.values():
        for key, entry in metadata["taxonomy"].items():
            known = united.setdefault(key, {"description": entry["description"], "values": []})
            known["values"] = sorted({*known["values"], *entry["values"]})
    return united


def _copy(source: Path, target: Path) -> None:
    """Copy a state; files that are written once and never changed are shared."""
    shutil.copytree(source, target, copy_function=_share)


def _share(source: str, target: str) -> str:
    if Path(source).suffix in CHANGING or Path(source).name in CHANGING:
        return str(shutil.copy2(source, target))
    try:
        os.link(source, target)
    except OSError:  # no links on this file system
        shutil.copy2(source, target)
    return target
