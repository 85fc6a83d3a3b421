"""Build a docs corpus: chunk and index the files that changed, keep the rest."""

import json
import logging
import re
import secrets
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bedstone.errors import BedstoneError, explain
from bedstone.records import Document, DocumentAndChunks
from bedstone.search.embedders import ESTIMATOR
from bedstone.search.indexes.keyword import KeywordIndex
from bedstone.services.docs.description import describe
from bedstone.services.docs.index_folder import VECTORS, BuildProgress, IndexFolder
from bedstone.services.docs.metadata import DEFAULT_DESCRIPTION, CorpusMetadata, EmbeddingOrigin, Facet, IndexStats
from bedstone.services.docs.source.folder import PROBLEMS, DocumentsFolder, SourceFile
from bedstone.services.docs.source.listing import PageProblem, SkippedFile
from bedstone.services.docs.source.manifest import FacetSettings, Manifest, ignored_words, root_manifest
from bedstone.services.docs.source.prompt_templates import read_templates
from bedstone.settings.own_files import OwnFiles
from bedstone.store.engine import Store, StoreDamaged, StoreVersionMismatch
from bedstone.store.opening import open_store

if TYPE_CHECKING:  # a build without vectors never loads numpy
    from bedstone.search.embedder import Embedder

BATCH_FILES = 200
MODEL = "embedding_fingerprint"  # key in the store: the embedder that made its vectors
RESERVED_ARGUMENTS = frozenset({"query", "limit", "cursor", "corpus"})
FACET_NAME = re.compile(r"(?!model_)[A-Za-z][\w.-]{,63}")  # pydantic reserves model_
MAX_FACETS = 64
MAX_FACET_VALUES = 512
MAX_FACET_VALUE_LENGTH = 128
RECORD_SECONDS = 0.5  # between two notes of the progress that others can read
OnProgress = Callable[[str, int, int], None]  # step, done, total
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class BuildOptions:
    """Options of a build."""

    description: str | None = None
    instructions: str | None = None
    tool_descriptions: dict[str, str] = field(default_factory=dict)
    fresh: bool = False
    workers: int | None = None  # threads that embed; default: the number the embedder prefers
    coverage: Literal["fast", "full"] = "fast"  # whether the model embeds the first passages only
    on_searchable: Callable[[int], None] = lambda _: None  # gets the chunks that keyword search finds from now on
    own_files: OwnFiles = field(default_factory=OwnFiles)  # of the server, which are not documents


@dataclass(frozen=True)
class BuildReport:
    """The result of a build."""

    files: int
    chunks: int
    changed: int
    removed: int
    problems: Sequence[PageProblem]  # pages that are not indexed, or without a part of what they say
    skipped: Sequence[SkippedFile]  # left out on purpose
    warnings: Sequence[str]  # the problems, and what is wrong with settings
    words: Mapping[str, str]  # what agents read in addition to the documents, by where they read it

    @property
    def problem_pages(self) -> int:
        """Number of pages with problems."""
        return len({problem.path for problem in self.problems})

    @property
    def unreadable(self) -> int:
        """Number of pages that are not indexed."""
        return len({problem.path for problem in self.problems if not problem.is_indexed})


class DocsBuilder:
    """One build of one corpus."""

    def __init__(
        self, docs: Path, index: Path, embedder: "Embedder | None", options: BuildOptions, on_progress: OnProgress
    ) -> None:
        self._folder = DocumentsFolder(docs, options.own_files)
        self._docs = docs
        self._index = IndexFolder(index)
        self._embedder = embedder
        self._options = options
        self._progress = _Progress(self._index, on_progress)
        self._warnings: list[str] = []
        self._touched: list[Document] = []
        self._rebuilt = False
        self._problems: list[PageProblem] = []
        self._published = self._index.metadata or CorpusMetadata()
        self._cursor_key = self._published.cursor_key or secrets.token_hex(32)

    def build(self) -> BuildReport:
        """Publish the keyword index first, then the vectors; publish nothing if nothing changed."""
        try:
            report = self._try_build()
        except BaseException:
            self._progress.stop()
            raise
        self._index.record_progress(None)
        return report

    def _try_build(self) -> BuildReport:
        try:
            return self._build(fresh=self._options.fresh)
        except sqlite3.OperationalError:  # a full disk or a lock: the files are intact
            raise
        except (sqlite3.DatabaseError, StoreDamaged, ValueError) as error:
            # The files of the build are corrupt; the documents are not.
            logger.warning("Rebuilding the index from scratch: %s", error, extra={"action": "docs_rebuilt"})
            self._warnings, self._touched, self._problems = [], [], []
            return self._build(fresh=True)

    def _build(self, *, fresh: bool) -> BuildReport:
        with self._index.building(self._docs, fresh=fresh) as work, closing(self._open_store(work)) as store:
            changed, removed = self._update(store)
            self._index_keywords(work, store)
            try:
                self._discard_other_vectors(store)
            except BedstoneError:  # the embedding service is down: publish keyword search
                store.seal()
                self._index.publish(work, self._metadata(store, self._published.embedding), last=False)
                raise
            embedding = _describe_embedding(self._embedder)
            if self._embedder is not None and store.chunks_without_vectors(limit=1):
                store.seal()
                self._publish_keywords(work, self._metadata(store, embedding))
                self._embed(store, self._embedder)
                self._index_keywords(work, store)
            if self._embedder is not None:
                self._index_vectors(work, store, self._embedder)
            store.seal()
            metadata, counts = self._metadata(store, embedding), store.counts()
            empty = _empty_pages(store)
            store.close()  # before its folder is renamed
            if self._is_published(metadata):
                self._index.discard(work)
            else:
                self._index.publish(work, metadata, last=True)
        return BuildReport(
            files=counts.documents,
            chunks=counts.chunks,
            changed=changed,
            removed=removed,
            problems=self._problems,
            skipped=[*self._folder.listing.skipped, *empty],
            warnings=list(dict.fromkeys(self._warnings)),
            words=_words_for_agents(metadata),
        )

    @staticmethod
    def _open_store(work: Path) -> Store:
        """Open the store of the last build; start empty if an incompatible version wrote it."""
        try:
            return open_store(work / "store.sqlite")
        except StoreVersionMismatch:
            shutil.rmtree(work)
            return open_store(work / "store.sqlite")

    def _publish_keywords(self, work: Path, metadata: CorpusMetadata) -> None:
        """Let servers search by keywords while vectors are made, unless they have that state already."""
        if not self._is_published(metadata):
            self._index.publish(work, metadata, last=False)
            self._published = metadata
        self._options.on_searchable(metadata.stats.total_chunks)

    def _discard_other_vectors(self, store: Store) -> None:
        """Delete the vectors of another model, which one index cannot mix, and estimates if none are wanted."""
        if self._embedder is None:
            return
        is_estimated = self._options.coverage == "full" and store.get_value(ESTIMATOR) is not None
        if is_estimated or store.get_value(MODEL) != self._embedder.fingerprint:
            store.delete_passages()
            store.delete_value(ESTIMATOR)
            store.set_value(MODEL, self._embedder.fingerprint)

    def _is_published(self, metadata: CorpusMetadata) -> bool:
        """Return whether readers already have this state, ignoring the time of the build."""
        old = replace(self._published, stats=metadata.stats, generation=metadata.generation)
        return old == metadata and not self._rebuilt

    def _update(self, store: Store) -> tuple[int, int]:
        known = {document.id: document for document in store.documents(limit=2**31)}
        paths = self._folder.paths()
        self._note(*self._folder.listing.problems)
        files = self._changed_files(paths, known)
        changed = 0
        while batch := list(islice(files, BATCH_FILES)):
            store.put(self._chunk_files(batch))
            changed += len(batch)
        store.update_documents(self._touched)
        lost = {problem.path for problem in self._problems if not problem.is_indexed}
        removed = sorted(set(known) - set(paths) | known.keys() & lost)
        store.delete(removed)
        return changed, len(removed)

    def _changed_files(self, paths: Sequence[str], known: dict[str, Document]) -> Iterator[SourceFile]:
        for number, path in enumerate(paths, start=1):
            self._progress.advance("Reading", number, len(paths))
            old = known.get(path)
            if reason := self._folder.manifest_problem(path):  # one warning is enough for all its pages
                self._problems.append(PageProblem(path, f"indexed without its manifest ({reason})", is_indexed=True))
            if old and old.attributes.get("signature") and old.attributes["signature"] == self._folder.signature(path):
                self._note_unused(path, old.attributes.get(PROBLEMS, "").splitlines())
                continue
            try:
                file = self._folder.read(path)
            except BedstoneError as error:
                self._note(PageProblem(path, error.message.removeprefix(f"{path}: ")))
                continue
            except Exception as error:
                logger.exception("Cannot read %s", path, extra={"action": "docs_file_failed"})
                self._note(PageProblem(path, f"cannot be read: {explain(error)}; see the log"))
                continue
            self._note_unused(path, file.problems)
            if old is None or old.digest != file.digest:
                yield file
            elif file.signature and file.signature != old.attributes.get("signature"):
                self._touched.append(replace(old, attributes={**old.attributes, "signature": file.signature}))

    def _chunk_files(self, files: Sequence[SourceFile]) -> Iterator[DocumentAndChunks]:
        """Chunk the files; one that fails is left out and reported."""
        for file in files:
            try:
                yield file.document()
            except Exception as error:
                logger.exception("Cannot chunk %s", file.path, extra={"action": "docs_file_failed"})
                self._note(PageProblem(file.path, f"cannot be chunked: {explain(error)}; see the log"))

    def _note_unused(self, path: str, reasons: Sequence[str]) -> None:
        self._note(*(PageProblem(path, reason, is_indexed=True) for reason in reasons))

    def _note(self, *problems: PageProblem) -> None:
        self._problems += problems
        self._warnings += map(str, problems)

    def _index_keywords(self, work: Path, store: Store) -> None:
        last = store.last_change()
        total = last.seq if last else 0
        with closing(KeywordIndex(work / "words")) as words:
            if words.last_applied != ((last.seq, last.stamp) if last else (0, 0)):
                self._rebuilt = True
                words.catch_up(store, lambda seq: self._progress.advance("Indexing keywords", seq, total))
            words.finish()

    def _embed(self, store: Store, embedder: "Embedder") -> None:
        total, done = store.counts().chunks, _count_embedded(store)

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self._progress.advance("Embedding", done, total)

        advance(0)
        if self._options.coverage == "full":
            from bedstone.search.indexer import embed_missing  # noqa: PLC0415

            embed_missing(store, embedder, on_progress=advance, workers=self._options.workers)
            return
        from bedstone.search.coverage import embed_first_passages  # noqa: PLC0415

        embed_first_passages(store, embedder, on_progress=advance, workers=self._options.workers)

    def _index_vectors(self, work: Path, store: Store, embedder: "Embedder") -> None:
        total = store.counts().passages
        if not total and not (work / VECTORS).exists():
            return
        from bedstone.search.indexes.vector import VectorIndex  # noqa: PLC0415

        vectors = VectorIndex(store, embedder.dimensions, embedder.max_component, work / VECTORS)
        vectors.catch_up(lambda done: self._progress.advance("Indexing vectors", done, total))
        vectors.finish()
        for old in work.glob(f"{VECTORS}.damaged-*"):
            shutil.rmtree(old, ignore_errors=True)
        self._rebuilt = vectors.save() or self._rebuilt

    def _metadata(self, store: Store, embedding: EmbeddingOrigin | None) -> CorpusMetadata:
        counts = store.counts()
        manifests, errors = self._folder.all_manifests()
        self._warnings += [*errors, *ignored_words(manifests)]
        before = CorpusMetadata() if self._options.fresh else self._published
        description = self._options.description or before.given_description
        instructions = self._options.instructions or before.given_instructions
        taxonomy = _build_taxonomy(store, manifests)
        taxonomy, unusable = usable_facets(taxonomy, manifests)
        self._warnings += unusable
        templates, problems, warnings = read_templates(self._folder.root, self._folder.template_paths())
        self._note(*(problem for problem in problems if problem not in self._problems))
        self._warnings += warnings
        return CorpusMetadata(
            description=description or describe(store),
            taxonomy=taxonomy,
            stats=IndexStats(
                total_chunks=counts.chunks,
                total_files=counts.documents,
                indexed_at=datetime.now(UTC).isoformat(timespec="seconds"),
                source_commit=_read_commit(self._docs),
            ),
            embedding=embedding if counts.passages else None,
            files=store.titles(),
            prompts=tuple(templates),
            tool_descriptions={**before.tool_descriptions, **self._options.tool_descriptions},
            given_description=description,
            given_instructions=instructions,
            instructions=instructions or root_manifest(manifests).instructions,
            cursor_key=self._cursor_key,
            state=_content_state(store),
        )


class _Progress:
    """Tells the caller how far a build is, and now and then other processes."""

    def __init__(self, index: IndexFolder, on_progress: OnProgress) -> None:
        self._index = index
        self._on_progress = on_progress
        self._last: BuildProgress | None = None
        self._recorded_at = float("-inf")

    def advance(self, step: str, done: int, total: int) -> None:
        """Note how far the current step is."""
        self._on_progress(step, done, total)
        is_new = self._last is None or self._last.step != step
        self._last = BuildProgress(step, done, total)
        if is_new or time.monotonic() - self._recorded_at > RECORD_SECONDS:
            self._index.record_progress(self._last)
            self._recorded_at = time.monotonic()

    def stop(self) -> None:
        """Note that the build ended before it was complete."""
        if self._last is not None:
            self._index.record_progress(replace(self._last, is_running=False))


def _count_embedded(store: Store) -> int:
    """Return how many chunks have vectors."""
    if not store.counts().passages:
        return 0
    return len({item.passage.chunk_rowid for item in store.passages_between(0, 2**62)})


def _empty_pages(store: Store) -> list[SkippedFile]:
    """Return the pages without text, which no search can find."""
    counts = store.chunk_counts()
    return [SkippedFile(path, "no text") for path in store.titles() if not counts.get(path)]


def _content_state(store: Store) -> str:
    """Return a value that changes with the content, and is equal for every index of the same content."""
    content = [sorted(store.digests().items()), sorted(store.facets().items()), store.counts().passages]
    return sha256(json.dumps(content).encode(errors="surrogatepass")).hexdigest()[:32]


def usable_facets(taxonomy: Mapping[str, Facet], manifests: Sequence[Manifest]) -> tuple[dict[str, Facet], list[str]]:
    """Return the facets that can be arguments of a tool, and what is wrong with the others."""
    unused = sorted({key for manifest in manifests for key in manifest.taxonomy} - taxonomy.keys())
    problems = [f"taxonomy.{key}: configured in a manifest, but no file has it" for key in unused]
    usable: dict[str, Facet] = {}
    for key, facet in taxonomy.items():
        if len(usable) >= MAX_FACETS:
            problems.append(f"taxonomy.{key}: not offered as a filter, there are more than {MAX_FACETS} facets")
        elif key in RESERVED_ARGUMENTS or not FACET_NAME.fullmatch(key):
            problems.append(f"taxonomy.{key}: not offered as a filter, its name cannot be an argument name")
        elif len(facet.values) > MAX_FACET_VALUES or max(map(len, facet.values)) > MAX_FACET_VALUE_LENGTH:
            problems.append(
                f"taxonomy.{key}: not offered as a filter, it has more than {MAX_FACET_VALUES} values "
                f"or values of more than {MAX_FACET_VALUE_LENGTH} characters"
            )
        else:
            usable[key] = facet
    return usable, problems


def _build_taxonomy(store: Store, manifests: Sequence[Manifest]) -> dict[str, Facet]:
    """Return every facet with its values and the merged settings of the manifests."""
    taxonomy: dict[str, Facet] = {}
    own = root_manifest(manifests).taxonomy
    for key, values in store.facets().items():
        settings = [manifest.taxonomy[key] for manifest in manifests if key in manifest.taxonomy]
        taxonomy[key] = Facet(
            own.get(key, FacetSettings()).description or _default_description(key),
            tuple(values),
            collapses_variants=any(item.vector_collapse for item in settings),
            resource_values=tuple(sorted({value for item in settings for value in item.resources})),
        )
    return taxonomy


def _default_description(facet: str) -> str:
    return f"Filter results by {facet}."


def _words_for_agents(metadata: CorpusMetadata) -> dict[str, str]:
    """Return what the index tells agents in addition to the documents: instructions, descriptions, prompts."""
    is_derived = metadata.description not in (metadata.given_description, DEFAULT_DESCRIPTION)
    words = {"description of the corpus": metadata.description} if is_derived else {}
    words |= {"instructions": metadata.instructions} if metadata.instructions else {}
    words |= {f"description of {name}": text for name, text in sorted(metadata.tool_descriptions.items())}
    for key, facet in metadata.taxonomy.items():
        if facet.description != _default_description(key):
            words[f"description of the filter {key}"] = facet.description
    if metadata.prompts:
        words["prompts"] = ", ".join(prompt.name for prompt in metadata.prompts)
    return words


def _describe_embedding(embedder: "Embedder | None") -> EmbeddingOrigin | None:
    if embedder is None:
        return None
    return EmbeddingOrigin(embedder.provider, embedder.name, embedder.dimensions, embedder.fingerprint, embedder.origin)


def _read_commit(folder: Path) -> str | None:
    """Return the commit of the documents; runs git only inside a repository."""
    place = folder.resolve()
    if not any((above / ".git").exists() for above in (place, *place.parents)):
        return None
    import subprocess  # noqa: PLC0415

    try:
        done = subprocess.run(  # noqa: S603 - git reads the folder and runs nothing in it
            ["git", "-C", str(folder), "rev-parse", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
