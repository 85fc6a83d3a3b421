"""How each corpus is: what is in it, where it comes from, and whether it still is what its folder holds."""

import shlex
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from bedstone.services.docs.index_folder import BuildProgress, IndexFolder
from bedstone.services.docs.service import DocsService
from bedstone.services.service import READY, State, SyncFacts, format_count
from bedstone.settings import Settings, layout
from bedstone.settings.own_files import OwnFiles
from bedstone.web.docs.tree import name_folders

if TYPE_CHECKING:
    from bedstone.services.docs.corpus import DocsCorpus
    from bedstone.services.docs.freshness import Changes
    from bedstone.services.docs.library import DocsLibrary

FRESH_SECONDS = 20.0
MAX_SHARE = 0.01  # of the time: comparing a folder of 17,000 files takes half a second
MAX_WAIT_SECONDS = 1.0  # that a page waits; the next one knows more
DEFAULT_FOLDER = "./docs"


@dataclass(frozen=True)
class CorpusRow:
    """A corpus as the pages list it; `build_name` is what the server can build, `command` what a person can type."""

    name: str
    description: str = ""
    folders: str = ""
    source: str = ""
    files: int = 0
    passages: int = 0
    indexed_at: str = ""
    state: State = READY
    reason: str = ""
    changes: "Changes | None" = None
    taxonomy: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    build_name: str = ""
    command: str = ""

    @property
    def is_open(self) -> bool:
        """Whether there is something to read."""
        return self.files > 0 or self.indexed_at != ""

    @property
    def changed_files(self) -> Sequence[tuple[str, str]]:
        """What happened to each file since the corpus was built."""
        changes = self.changes
        if changes is None:
            return ()
        kinds = (("changed", changes.changed), ("new", changes.added), ("removed", changes.removed))
        return [(path, kind) for kind, paths in kinds for path in paths]


@dataclass(frozen=True)
class _Comparison:
    """What a folder held beside a state of its corpus, and until when that is new enough."""

    state: str
    changes: "Changes | None"
    fresh_until: float


class CorpusStates:
    """Describes corpora; what a folder holds is looked up at most every few seconds."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._found: dict[str, _Comparison] = {}
        self._comparing = threading.Lock()

    async def describe(self, service: DocsService, only: str = "") -> list[CorpusRow]:
        """Return every corpus, or one of them, with its state."""
        library = await to_thread.run_sync(lambda: service.library)
        syncs = {facts.name: facts for facts in await to_thread.run_sync(service.syncs) if facts.name}
        names = [only] if only else [*library.corpora, *library.unavailable]
        with anyio.move_on_after(MAX_WAIT_SECONDS):
            unwatched = [name for name in names if name not in syncs]
            await to_thread.run_sync(self._look, library, unwatched, abandon_on_cancel=True)
        return await to_thread.run_sync(lambda: [self._row(library, name, syncs.get(name)) for name in names])

    def commands(self) -> Mapping[str, str]:
        """Return the commands that add a folder; `serve` if this server does not use what `build` writes."""
        docs, flags = self._settings.docs, self._flags()
        if docs.index or docs.dir or docs.published:
            return {"serve": f"bedstone serve --docs-dir {DEFAULT_FOLDER} --watch"}
        return {
            "build": f"bedstone docs build {DEFAULT_FOLDER}{flags}",
            "watch": f"bedstone docs watch {DEFAULT_FOLDER}{flags}",
        }

    def _build_command(self, source: str, index: Path) -> str:
        is_default = index.parent == layout.docs_indexes(self._settings)
        flags = self._flags() if is_default else f" --out {shlex.quote(str(index))}"
        return f"bedstone docs build {shlex.quote(source)}{flags}"

    def _flags(self) -> str:
        folder = self._settings.data_dir
        return f" --data-dir {shlex.quote(str(folder))}" if folder is not None else ""

    def _look(self, library: "DocsLibrary", names: Sequence[str]) -> None:
        """Compare corpora with their folders, unless that was done a moment ago or is being done."""
        if not self._comparing.acquire(blocking=False):
            return
        try:
            self._compare_stale(library, names)
        finally:
            self._comparing.release()

    def _compare_stale(self, library: "DocsLibrary", names: Sequence[str]) -> None:
        own = OwnFiles.of(self._settings)
        for name in names:
            corpus = library.corpora.get(name)
            if corpus is None:
                continue
            known = self._found.get(name)
            if known is None or known.state != corpus.state or time.monotonic() > known.fresh_until:
                self._found[name] = _compare(corpus, own)

    def _row(self, library: "DocsLibrary", name: str, sync: SyncFacts | None) -> CorpusRow:
        corpus = library.corpora.get(name)
        if corpus is None:
            reason = library.unavailable.get(name, "")
            return CorpusRow(name, state=State("bad", "Cannot be opened"), reason=reason)
        found = self._found.get(name)
        changes = found.changes if found is not None and found.state == corpus.state and sync is None else None
        state, reason = _judge(corpus, changes, sync, IndexFolder(corpus.index).progress)
        source = str(corpus.source or (sync.origin if sync else ""))
        return CorpusRow(
            name=name,
            source=source,
            folders=name_folders(corpus.files),
            state=state,
            reason=reason,
            changes=changes,
            build_name=sync.name if sync else "",
            command=self._build_command(source, corpus.index) if source else "",
            **_facts(corpus),
        )


def _compare(corpus: "DocsCorpus", own_files: OwnFiles) -> _Comparison:
    from bedstone.services.docs.freshness import find_changes  # noqa: PLC0415 - loads the engine

    started = time.monotonic()
    changes = find_changes(corpus, own_files)
    now = time.monotonic()
    return _Comparison(corpus.state, changes, now + max(FRESH_SECONDS, (now - started) / MAX_SHARE))


def _facts(corpus: "DocsCorpus") -> dict[str, Any]:
    return {
        "description": corpus.metadata.description,
        "files": len(corpus.metadata.files),
        "passages": corpus.chunk_count,
        "indexed_at": corpus.metadata.stats.indexed_at,
        "taxonomy": {key: corpus.facets.get(key, {}) for key in corpus.taxonomy},
    }


def _judge(
    corpus: "DocsCorpus", changes: "Changes | None", sync: SyncFacts | None, progress: BuildProgress | None
) -> tuple[State, str]:
    """Return the state of a corpus and the reason, if it needs one."""
    if corpus.problem:
        return State("warn", "Damaged"), corpus.problem
    if sync is not None and sync.is_running:
        return State("busy", "Building"), sync.progress
    if sync is not None and sync.problem:
        return State("bad", "Not built"), sync.problem
    if progress is not None and sync is None:
        return _judge_build(progress)
    if changes is not None and changes.total:
        return State("warn", "Out of date"), f"{format_count(changes.total, 'file')} changed since."
    is_watched = sync is not None and sync.rhythm == "when files change"
    return State("good", "Ready, watched" if is_watched else "Ready"), ""


def _judge_build(progress: BuildProgress) -> tuple[State, str]:
    """Return the state of a corpus that another process builds, or began to build."""
    if progress.is_running:
        return State("busy", "Building"), f"Keyword search works already; {progress}."
    return State("warn", "Interrupted"), f"The last build stopped, {progress}; the next one goes on from there."
