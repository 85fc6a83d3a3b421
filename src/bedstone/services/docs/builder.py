"""Builds a docs corpus: what changed in the folder is cut and indexed, the rest stays as it was."""

import logging
import re
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bedstone.errors import BedstoneError
from bedstone.records import Document, DocumentAndChunks
from bedstone.search.indexes.keyword import WordIndex
from bedstone.services.docs.index_folder import VECTORS, IndexFolder
from bedstone.services.docs.source.folder import DocumentsFolder, SourceFile
from bedstone.services.docs.source.manifest import Manifest
from bedstone.services.docs.source.prompt_templates import read_templates
from bedstone.store.engine import StoreVersionMismatch
from bedstone.store.engines.sqlite import SqliteStore

if TYPE_CHECKING:  # a build without vectors never loads numpy
    from bedstone.search.embedder import Embedder

BATCH_FILES = 200
DEFAULT_DESCRIPTION = "Documentation corpus"
MODEL = "embedding_fingerprint"  # the store's note of whose vectors it holds
RESERVED = frozenset({"query", "limit", "cursor", "corpus"})
FACET = re.compile(r"[A-Za-z][\w.-]*")
MOST_FACETS, LONGEST_FACET, MOST_VALUES, LONGEST_VALUE = 64, 64, 512, 128
Progress = Callable[[str, int, int], None]  # step, done, total
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class BuildOptions:
    """What a build is told beyond the two folders."""

    description: str | None = None
    instructions: str | None = None
    tool_descriptions: dict[str, str] = field(default_factory=dict)
    fresh: bool = False
    workers: int | None = None  # that embed at a time; as many as the embedder likes


@dataclass(frozen=True)
class BuildReport:
    """What a build did."""

    files: int
    chunks: int
    changed: int
    removed: int
    unreadable: int
    warnings: Sequence[str]


class DocsBuilder:
    """One build of one corpus."""

    def __init__(
        self, docs: Path, index: Path, embedder: "Embedder | None", options: BuildOptions, progress: Progress
    ) -> None:
        self._folder = DocumentsFolder(docs)
        self._docs = docs
        self._index = IndexFolder(index)
        self._embedder = embedder
        self._options = options
        self._progress = progress
        self._warnings: list[str] = []
        self._touched: list[Document] = []
        self._rebuilt = False
        self._unreadable: set[str] = set()
        self._published = self._index.metadata or {}
        self._cursor_key = self._published.get("cursor_key") or secrets.token_hex(32)

    def build(self) -> BuildReport:
        """Words first, published; then vectors, published again; nothing where nothing changed."""
        try:
            return self._build(fresh=self._options.fresh)
        except sqlite3.OperationalError:  # a full disk, a lock: nothing is damaged
            raise
        except (sqlite3.DatabaseError, ValueError) as error:
            # Whatever the disk has made of the files we work on, the documents are still there.
            logger.warning("Starting again: %s", error, extra={"action": "docs_rebuilt"})
            self._warnings, self._touched, self._unreadable = [], [], set()
            return self._build(fresh=True)

    def _build(self, *, fresh: bool) -> BuildReport:
        with self._index.building(self._docs, fresh=fresh) as work, closing(self._store(work)) as store:
            changed, removed = self._update(store)
            self._index_words(work, store)
            try:
                self._forget_other_vectors(store)
            except BedstoneError:  # a service that is not there costs meaning, not words
                store.seal()
                self._index.publish(work, self._metadata(store, self._published.get("embedding")), last=False)
                raise
            embedding = _embedding(self._embedder)
            if self._embedder is not None and store.chunks_without_vectors(limit=1):
                store.seal()
                self._index.publish(work, self._metadata(store, embedding), last=False)
                self._embed(store, self._embedder)
                self._index_words(work, store)
            if self._embedder is not None:
                self._index_vectors(work, store, self._embedder)
            store.seal()
            metadata, counts = self._metadata(store, embedding), store.counts()
            store.close()  # before its folder gets another name
            if self._is_published(metadata):
                self._index.discard(work)
            else:
                self._index.publish(work, metadata, last=True)
        warnings = list(dict.fromkeys(self._warnings))  # a manifest is wrong for every file it governs
        return BuildReport(counts.documents, counts.chunks, changed, removed, len(self._unreadable), warnings)

    @staticmethod
    def _store(work: Path) -> SqliteStore:
        """What was built before, or nothing if another version built it."""
        try:
            return SqliteStore(work / "store.sqlite")
        except StoreVersionMismatch:
            shutil.rmtree(work)
            return SqliteStore(work / "store.sqlite")

    def _forget_other_vectors(self, store: SqliteStore) -> None:
        """Vectors of two models cannot stand in one index, published or not."""
        if self._embedder is not None and store.get_value(MODEL) != self._embedder.fingerprint:
            store.delete_passages()
            store.set_value(MODEL, self._embedder.fingerprint)

    def _is_published(self, metadata: dict[str, Any]) -> bool:
        """Whether readers have all this already, word index and graph included; when it was indexed does not count."""
        old = {key: self._published.get(key) for key in metadata}
        return {**old, "stats": None} == {**metadata, "stats": None} and not self._rebuilt

    def _update(self, store: SqliteStore) -> tuple[int, int]:
        known = {document.id: document for document in store.documents(limit=2**31)}
        paths = self._folder.paths()
        files = self._changed_files(paths, known)
        changed = 0
        while batch := list(islice(files, BATCH_FILES)):
            store.put(self._cut(batch))
            changed += len(batch)
        store.update_documents(self._touched)
        gone = sorted(set(known) - set(paths) | known.keys() & self._unreadable)
        store.delete(gone)
        return changed, len(gone)

    def _changed_files(self, paths: Sequence[str], known: dict[str, Document]) -> Iterator[SourceFile]:
        for number, path in enumerate(paths, start=1):
            self._progress("Reading", number, len(paths))
            old = known.get(path)
            if old and old.attributes.get("signature") and old.attributes["signature"] == self._folder.signature(path):
                continue
            try:
                file = self._folder.read(path)
            except BedstoneError as error:
                self._warnings.append(error.message)
                self._unreadable.add(path)
                continue
            except Exception as error:
                logger.exception("%s cannot be read", path, extra={"action": "docs_file_failed"})
                self._warnings.append(f"{path}: cannot be read ({type(error).__name__}: {error})")
                self._unreadable.add(path)
                continue
            if old is None or old.digest != file.digest:
                yield file
            elif file.signature and file.signature != old.attributes.get("signature"):
                self._touched.append(replace(old, attributes={**old.attributes, "signature": file.signature}))

    def _cut(self, files: Sequence[SourceFile]) -> Iterator[DocumentAndChunks]:
        """Files as documents; one that cannot be cut costs itself only."""
        for file in files:
            try:
                yield file.document()
            except Exception as error:
                logger.exception("%s cannot be cut", file.path, extra={"action": "docs_file_failed"})
                self._warnings.append(f"{file.path}: cannot be cut ({type(error).__name__}: {error})")

    def _index_words(self, work: Path, store: SqliteStore) -> None:
        last = store.last_change()
        total = last.seq if last else 0
        with closing(WordIndex(work / "words")) as words:
            if words.applied != ((last.seq, last.stamp) if last else (0, 0)):
                self._rebuilt = True
                words.catch_up(store, lambda seq: self._progress("Indexing words", seq, total))
            words.finish()

    def _embed(self, store: SqliteStore, embedder: "Embedder") -> None:
        from bedstone.search.indexer import embed_missing  # noqa: PLC0415

        total, done = store.counts().chunks, 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self._progress("Embedding", done, total)

        embed_missing(store, embedder, on_progress=advance, workers=self._options.workers)

    def _index_vectors(self, work: Path, store: SqliteStore, embedder: "Embedder") -> None:
        total = store.counts().passages
        if not total:
            return
        from bedstone.search.indexes.vector import GRAPH_FROM, VectorIndex  # noqa: PLC0415

        if total <= GRAPH_FROM and not (work / VECTORS).exists():
            return
        vectors = VectorIndex(store, embedder.dimensions, embedder.reach, work / VECTORS)
        vectors.catch_up(lambda done: self._progress("Indexing vectors", done, total))
        self._rebuilt = vectors.save() or self._rebuilt

    def _metadata(self, store: SqliteStore, embedding: dict[str, Any] | None) -> dict[str, Any]:
        counts = store.counts()
        manifests, broken = self._folder.every_manifest()
        self._warnings += broken
        before = {} if self._options.fresh else self._published
        told = self._options.instructions or before.get("told_instructions")
        taxonomy = _taxonomy(store, manifests)
        taxonomy, problems = _offered(taxonomy, manifests)
        self._warnings += problems
        templates, wrong, doubtful = read_templates(self._folder.root, self._folder.template_paths())
        self._warnings += wrong + doubtful
        return {
            "corpus_description": self._options.description or before.get("corpus_description", DEFAULT_DESCRIPTION),
            "taxonomy": taxonomy,
            "stats": {
                "total_chunks": counts.chunks,
                "total_files": counts.documents,
                "indexed_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "source_commit": _commit(self._docs),
            },
            "embedding": embedding if counts.passages else None,
            "files": {path: {"title": title} for path, title in store.titles().items()},
            "prompts": [template.to_json() for template in templates],
            "tool_descriptions": before.get("tool_descriptions", {}) | self._options.tool_descriptions,
            "told_instructions": told,
            "mcpServerInstructions": told or next((item.instructions for item in manifests if item.instructions), None),
            "cursor_key": self._cursor_key,
            "state": _state(store),
        }


def _state(store: SqliteStore) -> str:
    """Changes whenever the content does; the same for every copy of the index."""
    last = store.last_change()
    return f"{last.seq:x}-{last.stamp:x}" if last else "empty"


def _offered(taxonomy: dict[str, Any], manifests: Sequence[Manifest]) -> tuple[dict[str, Any], list[str]]:
    """The facets clients can take, and what is wrong with the others."""
    wanted = sorted({key for manifest in manifests for key in manifest.taxonomy} - taxonomy.keys())
    problems = [f"taxonomy.{key}: configured in a manifest, but no file has it" for key in wanted]
    offered: dict[str, Any] = {}
    for key, entry in taxonomy.items():
        if len(offered) >= MOST_FACETS:
            problems.append(f"taxonomy.{key}: left out, there are more than {MOST_FACETS} facets")
        elif key in RESERVED or key.startswith("model_") or not FACET.fullmatch(key) or len(key) > LONGEST_FACET:
            problems.append(f"taxonomy.{key}: not offered as a filter, its name cannot be the name of an argument")
        elif len(entry["values"]) > MOST_VALUES or max(map(len, entry["values"])) > LONGEST_VALUE:
            problems.append(
                f"taxonomy.{key}: not offered as a filter, it has more than {MOST_VALUES} values "
                f"or values of more than {LONGEST_VALUE} characters"
            )
        else:
            offered[key] = entry
    return offered, problems


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


def _embedding(embedder: "Embedder | None") -> dict[str, Any] | None:
    if embedder is None:
        return None
    return {
        "provider": embedder.provider,
        "model": embedder.name,
        "dimensions": embedder.dimensions,
        "fingerprint": embedder.fingerprint,
        **embedder.origin,
    }


def _commit(folder: Path) -> str | None:
    """The commit the documents are at; git is asked only where there is a repository."""
    place = folder.resolve()
    if not any((above / ".git").exists() for above in (place, *place.parents)):
        return None
    import subprocess  # noqa: PLC0415

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
