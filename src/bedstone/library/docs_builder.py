"""Builds a docs corpus: what changed in the folder is cut and indexed, the rest stays as it was."""

import secrets
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from bedstone.errors import BedstoneError
from bedstone.ingest.documents_folder import DocumentsFolder, SourceFile
from bedstone.ingest.manifest import Manifest
from bedstone.library.docs_index import IndexFolder
from bedstone.search.embedder import Embedder
from bedstone.search.indexer import embed_missing
from bedstone.search.indexes.words import WordIndex
from bedstone.store.engines.sqlite import SqliteStore

BATCH_FILES = 200
DEFAULT_DESCRIPTION = "Documentation corpus"
Progress = Callable[[str, int, int], None]  # step, done, total


@dataclass(frozen=True)
class BuildOptions:
    """What a build is told beyond the two folders."""

    description: str = DEFAULT_DESCRIPTION
    instructions: str | None = None
    tool_descriptions: dict[str, str] = field(default_factory=dict)
    fresh: bool = False


@dataclass(frozen=True)
class BuildReport:
    """What a build did."""

    files: int
    chunks: int
    changed: int
    removed: int
    warnings: Sequence[str]


class DocsBuilder:
    """One build of one corpus."""

    def __init__(
        self, docs: Path, index: Path, embedder: Embedder | None, options: BuildOptions, progress: Progress
    ) -> None:
        self._folder = DocumentsFolder(docs)
        self._docs = docs
        self._index = IndexFolder(index)
        self._embedder = embedder
        self._options = options
        self._progress = progress
        self._warnings: list[str] = []
        self._cursor_key = (self._index.metadata or {}).get("cursor_key") or secrets.token_hex(32)

    def build(self) -> BuildReport:
        """Words first, published; then vectors, published again."""
        fresh = self._options.fresh or self._speaks_another_language()
        with self._index.building(fresh=fresh) as work:
            store = SqliteStore(work / "store.sqlite")
            changed, removed = self._update(store)
            self._index_words(work, store)
            waiting = bool(self._embedder and store.unembedded(limit=1))
            if waiting and self._embedder:
                store.seal()
                self._index.publish(work, self._metadata(store), last=False)
                total = store.counts().chunks
                done = 0

                def advance(count: int) -> None:
                    nonlocal done
                    done += count
                    self._progress("Embedding", done, total)

                embed_missing(store, self._embedder, advance)
                self._index_words(work, store)
            store.seal()
            metadata, counts = self._metadata(store), store.counts()
            store.close()
            self._index.publish(work, metadata, last=True)
        warnings = list(dict.fromkeys(self._warnings))  # a manifest is wrong for every file it governs
        return BuildReport(counts.documents, counts.chunks, changed, removed, warnings)

    def _speaks_another_language(self) -> bool:
        """Vectors of two models cannot stand in one index."""
        before = (self._index.metadata or {}).get("embedding")
        now = _embedding(self._embedder)
        return before is not None and now is not None and before != now

    def _update(self, store: SqliteStore) -> tuple[int, int]:
        known = store.digests()
        paths = self._folder.paths()
        files = self._changed_files(paths, known)
        changed = 0
        while batch := list(islice(files, BATCH_FILES)):
            store.put(file.document() for file in batch)
            changed += len(batch)
        gone = sorted(set(known) - {str(path) for path in paths})
        store.delete(gone)
        return changed, len(gone)

    def _changed_files(self, paths: Sequence[PurePosixPath], known: dict[str, str]) -> Iterator[SourceFile]:
        for number, path in enumerate(paths, start=1):
            self._progress("Reading", number, len(paths))
            try:
                file = self._folder.read(path)
            except BedstoneError as error:
                self._warnings.append(error.message)
                continue
            if known.get(str(path)) != file.digest:
                yield file

    def _index_words(self, work: Path, store: SqliteStore) -> None:
        words = WordIndex(work / "words")
        last = store.last_change()
        total = last.seq if last else 0
        words.catch_up(store, lambda seq: self._progress("Indexing words", seq, total))
        words.finish()

    def _metadata(self, store: SqliteStore) -> dict[str, Any]:
        counts = store.counts()
        return {
            "corpus_description": self._options.description,
            "taxonomy": _taxonomy(store, self._folder.manifests.all),
            "stats": {
                "total_chunks": counts.chunks,
                "total_files": counts.documents,
                "indexed_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "source_commit": _commit(self._docs),
            },
            "embedding": _embedding(self._embedder) if counts.passages else None,
            "tool_descriptions": self._options.tool_descriptions,
            "mcpServerInstructions": self._options.instructions
            or next((item.instructions for item in self._folder.manifests.all if item.instructions), None),
            "cursor_key": self._cursor_key,
        }


def _taxonomy(store: SqliteStore, manifests: Sequence[Manifest]) -> dict[str, Any]:
    """Every facet with its values; what manifests say of it is united."""
    taxonomy: dict[str, Any] = {}
    for key, values in store.facets().items():
        settings = [manifest.taxonomy[key] for manifest in manifests if key in manifest.taxonomy]
        description = next((item.description for item in settings if item.description), f"Filter results by {key}.")
        entry: dict[str, Any] = {"description": description, "values": list(values)}
        if any(item.vector_collapse for item in settings):
            entry["vector_collapse"] = True
        if resources := sorted({value for item in settings for value in item.resources}):
            entry["properties"] = {value: {"mcp_resource": True} for value in resources}
        taxonomy[key] = entry
    return taxonomy


def _embedding(embedder: Embedder | None) -> dict[str, Any] | None:
    if embedder is None:
        return None
    return {"model": embedder.name, "fingerprint": embedder.fingerprint, "dimensions": embedder.dimensions}


def _commit(folder: Path) -> str | None:
    try:
        found = subprocess.run(  # noqa: S603 - git is asked about a folder, nothing is run in it
            ["git", "-C", str(folder), "rev-parse", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()
