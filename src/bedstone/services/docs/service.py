"""Documentation as agents use it: the published indexes, replaced by newer ones while they are served."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from bedstone.errors import InvalidSetting, NotFound, explain
from bedstone.services.docs.index_folder import METADATA, IndexFolder
from bedstone.services.docs.metadata import CorpusMetadata
from bedstone.services.service import READY, NamedPage, Service, State, Summary, SyncFacts, format_count, parse_time

if TYPE_CHECKING:  # the engine is imported on first use, not when a server starts
    from bedstone.search.index import Weights
    from bedstone.services.catalog import FetchedText, FindRequest, Found
    from bedstone.services.docs.corpus import EmbedderFor
    from bedstone.services.docs.fetching import PublishedCorpus
    from bedstone.services.docs.library import DocsLibrary
    from bedstone.services.docs.watcher import CorpusWatcher
    from bedstone.settings import CorpusTuning

logger = logging.getLogger(__name__)

FOLLOW_SECONDS = 1.0
REOPEN_SECONDS = 0.2
RETIREMENT_SECONDS = 60.0  # longer than any search


class DocsService(Service):
    """Serves docs indexes, each under the name of its folder, and newer ones as soon as they are published.

    `watchers` keep indexes up to date with their documents while a server runs.
    """

    schemes = ("docs",)

    def __init__(
        self,
        indexes: Sequence[Path],
        embedder_for: "EmbedderFor | None" = None,
        *,
        watchers: "Sequence[CorpusWatcher | PublishedCorpus]" = (),
        weights: "Weights | None" = None,
        tuning: "Callable[[str], CorpusTuning | None]" = lambda _: None,
        get_secret: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._indexes = {path.name: path for path in indexes}
        if len(self._indexes) < len(indexes):
            raise InvalidSetting("Two docs indexes have the same folder name, which is the name of their corpus.")
        self._embedder_for = embedder_for
        self._watchers = watchers
        self._weights = weights
        self._tuning = tuning
        self._get_secret = get_secret
        self._lock = threading.Lock()
        self._library: DocsLibrary | None = None
        self._retired: list[tuple[float, DocsLibrary]] = []
        self._stop = threading.Event()
        self._problem: str | None = None
        self.on_published: Callable[[], None] = lambda: None
        self.metadata: Mapping[str, CorpusMetadata] = {} if watchers else self._published_metadata()

    @property
    def is_fast(self) -> bool:  # type: ignore[override]
        """Whether a search takes less time than handing it to a thread."""
        return self._library is not None and self._library.is_fast

    async def start(self) -> None:
        """Bring indexes up to date and follow what is published, in threads."""
        for watcher in self._watchers:
            await to_thread.run_sync(watcher.start)
        self.metadata = self._published_metadata()
        threading.Thread(target=self._follow, name="docs-follow", daemon=True).start()

    async def aclose(self) -> None:
        """Stop following and close the indexes."""
        self._stop.set()
        for watcher in self._watchers:
            watcher.stop()
        with self._lock:
            if self._library is not None:
                self._library.close()
                self._library = None

    def problems(self) -> Sequence[str]:
        """Return what is wrong with served indexes, why a newer one cannot be opened, or why a search fails."""
        served = self._library.problems if self._library is not None else []
        found = [*([self._problem] if self._problem else []), *served]
        problem = None if found else self._find_search_problem()
        return [problem] if problem else found

    def _find_search_problem(self) -> str | None:
        """Search as agents do; return why that fails, or None."""
        try:
            self.library.compare("probe", {}, 1, "keyword")
        except Exception as error:  # noqa: BLE001 - what fails here fails for agents
            return f"Cannot search the docs: {error}"
        return None

    async def summary(self) -> Summary:
        """Return how many corpora and files there are, how fresh they are, and which cannot be served."""
        return await to_thread.run_sync(self._summarize)

    def _summarize(self) -> Summary:
        library = self.library
        metadata = library.metadata.values()
        files = sum(len(item.files) for item in metadata)
        broken = State(
            "bad", f"{format_count(len(library.unavailable), 'corpus', 'corpora')} cannot be opened", "/docs"
        )
        building = (item.progress for item in map(IndexFolder, self._indexes.values()))
        busy = [
            State("busy", f"Building, {item}", "/docs") for item in building if item is not None and item.is_running
        ]
        return Summary(
            f"{format_count(len(metadata), 'corpus', 'corpora')}, {format_count(files, 'file')}",
            files,
            max((at for item in metadata if (at := parse_time(item.stats.indexed_at))), default=None),
            (broken,) if library.unavailable else tuple(busy[:1]) or (READY,),
            is_empty=not files,
        )

    def syncs(self) -> Sequence[SyncFacts]:
        """Return the builds of the corpora, also of those that a command builds."""
        watched = {watcher.name: watcher.facts() for watcher in self._watchers}
        built = {name: self._built_elsewhere(name, item) for name, item in self.metadata.items() if name not in watched}
        return [*watched.values(), *built.values()]

    async def sync_now(self, name: str) -> None:
        """Begin to build a corpus from its folder."""
        watcher = next((item for item in self._watchers if item.name == name), None)
        if watcher is None:
            raise NotFound(f"No folder is known that the corpus {name} could be built from.")
        watcher.build_now()

    def _built_elsewhere(self, name: str, metadata: CorpusMetadata) -> SyncFacts:
        path, stats = self._indexes[name], metadata.stats
        folder, result = IndexFolder(path), f"{format_count(stats.total_files, 'file')}, "
        result += format_count(stats.total_chunks, "passage")
        progress = folder.progress
        if progress is not None and not progress.is_running:
            result += f"; the last build was interrupted, {progress}"
        return SyncFacts(
            "Documentation",
            folder.source or str(path),
            parse_time(stats.indexed_at),
            result=result,
            is_running=progress is not None and progress.is_running,
            rhythm="when built again",
            verb="Build now",
            progress=str(progress or ""),
        )

    async def find(self, request: "FindRequest") -> "Found":
        """Return the best chunks for the search over everything."""
        from bedstone.services.docs.finding import find_chunks  # noqa: PLC0415 - loads the engine

        return await to_thread.run_sync(lambda: find_chunks(self.library, request), abandon_on_cancel=True)

    async def find_names(self, text: str, limit: int) -> "Sequence[NamedPage]":
        """Return the files whose titles or paths have a text."""
        from bedstone.services.docs.finding import find_files  # noqa: PLC0415 - loads the engine

        return await to_thread.run_sync(lambda: find_files(self.library, text.lower(), limit))

    async def fetch(self, scheme: str, name: str) -> "FetchedText":
        """Return the text of a file, or of a chunk of it."""
        from bedstone.services.docs.finding import fetch_text  # noqa: PLC0415 - loads the engine

        return await to_thread.run_sync(lambda: fetch_text(self.library, name))

    @property
    def library(self) -> "DocsLibrary":
        """Return the open corpora; blocks while they are opened."""
        with self._lock:
            if self._library is None:
                try:
                    self._library = self._open_library()
                except (OSError, ValueError, sqlite3.Error):  # replaced while it was opened: there is a newer one
                    time.sleep(REOPEN_SECONDS)
                    self._library = self._open_library()
            return self._library

    def _open_library(self) -> "DocsLibrary":
        from bedstone.services.docs.corpus import DocsCorpus  # noqa: PLC0415
        from bedstone.services.docs.library import DocsLibrary  # noqa: PLC0415
        from bedstone.store.engine import StoreUnavailable  # noqa: PLC0415

        corpora, unavailable = {}, {}
        for name, path in self._indexes.items():
            try:
                corpora[name] = DocsCorpus(
                    path, self._embedder_for, weights=self._weights, tuning=self._tuning(f"docs/{name}")
                )
            except StoreUnavailable as error:
                unavailable[name] = (
                    f"The docs index {name!r} cannot be opened: {error.message} Build it again with: bedstone docs "
                    f"build DIR --out {path} --rebuild-cache"
                )
        if not corpora:
            raise StoreUnavailable(next(iter(unavailable.values())))
        for text in unavailable.values():
            logger.error("%s", text, extra={"action": "docs_not_opened"})
        return DocsLibrary(corpora, unavailable, get_secret=self._get_secret)

    def _published_metadata(self) -> dict[str, CorpusMetadata]:
        return {name: IndexFolder(path).existing_metadata for name, path in self._indexes.items()}

    def _follow(self) -> None:
        """Open newer indexes as they are published, and close replaced ones once no search uses them."""
        seen: list[int] = []
        verified: DocsLibrary | None = None
        while not self._stop.wait(FOLLOW_SECONDS):
            try:
                changed = [(path / METADATA).stat().st_mtime_ns for path in self._indexes.values()]
                if changed != seen:
                    self._swap()
                seen, self._problem = changed, None
                if (library := self._library) is not None and library is not verified:
                    verified = library
                    library.verify()
            except Exception as error:  # noqa: BLE001 - a build may be replacing files; the next round decides
                self._problem = f"Cannot open the docs index: {explain(error)}"
                logger.warning("%s", self._problem, extra={"action": "docs_not_opened"})
            while self._retired and self._retired[0][0] < time.monotonic() - RETIREMENT_SECONDS:
                self._retired.pop(0)[1].close()

    def _swap(self) -> None:
        """Serve the published generations if they are not the served ones."""
        published = self._published_metadata()
        if _generations(published) == _generations(self.metadata):
            return
        fresh = self._open_library() if self._library is not None else None
        with self._lock:
            if self._library is not None:
                self._retired.append((time.monotonic(), self._library))
            self._library = fresh
        self.metadata = {**published, **(fresh.metadata if fresh is not None else {})}
        logger.info("Serving a newer docs index", extra={"action": "docs_swapped"})
        self.on_published()


def _generations(metadata: Mapping[str, CorpusMetadata]) -> list[str]:
    return [item.generation for item in metadata.values()]
