"""Documentation as agents use it: the published indexes, replaced by newer ones while they are served."""

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from anyio import to_thread

from bedstone.errors import InvalidSetting, explain
from bedstone.services.docs.index_folder import METADATA, IndexFolder
from bedstone.services.docs.metadata import CorpusMetadata
from bedstone.services.service import DATE, Service

if TYPE_CHECKING:  # the engine is imported on first use, not when a server starts
    from bedstone.search.index import Weights
    from bedstone.services.catalog import FindRequest, Found
    from bedstone.services.docs.corpus import EmbedderFor
    from bedstone.services.docs.library import DocsLibrary
    from bedstone.services.docs.watcher import CorpusWatcher

logger = logging.getLogger(__name__)

FOLLOW_SECONDS = 1.0
REOPEN_SECONDS = 0.2
RETIREMENT_SECONDS = 60.0  # longer than any search


class DocsService(Service):
    """Serves docs indexes, each under the name of its folder, and newer ones as soon as they are published.

    `watchers` keep indexes up to date with their documents while a server runs.
    """

    def __init__(
        self,
        indexes: Sequence[Path],
        embedder_for: "EmbedderFor | None" = None,
        *,
        watchers: "Sequence[CorpusWatcher]" = (),
        weights: "Weights | None" = None,
    ) -> None:
        self._indexes = {path.name: path for path in indexes}
        if len(self._indexes) < len(indexes):
            raise InvalidSetting("Two docs indexes have the same folder name, which is the name of their corpus.")
        self._embedder_for = embedder_for
        self._watchers = watchers
        self._weights = weights
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

    async def figures(self) -> Sequence[tuple[str, str]]:
        """Return how many corpora, files and chunks there are, and how fresh they are."""
        corpora = await to_thread.run_sync(self._overview)
        files, chunks = (sum(item[key] for item in corpora) for key in ("files", "chunks"))
        counts = [("corpora", str(len(corpora))), ("files", f"{files:,}"), ("chunks", f"{chunks:,}")]
        return [*counts, ("indexed", max(item["indexed_at"] for item in corpora)[DATE])] if corpora else counts

    async def find(self, request: "FindRequest") -> "Found":
        """Return the best chunks for the search over everything."""
        return await to_thread.run_sync(self._find, request)

    def _find(self, request: "FindRequest") -> "Found":
        from bedstone.services.catalog import Found, FoundItem  # noqa: PLC0415 - with the engine

        library = self.library
        known = library.facets
        filters = {key: value for key, value in request.filters.items() if key in known}
        facets: dict[str, Mapping[str, int]] = {}
        if request.with_facets:
            counts = library.count_facets(request.query, filters)
            facets = {key: counts.get(key, {}) for key in sorted(known)}
        hits = library.compare(request.query, filters, request.limit, request.mode)
        items = [
            FoundItem(
                id=hit.head.id,
                title=hit.head.heading or hit.head.document_id,
                location=" > ".join([hit.head.document_id, *hit.head.breadcrumb]),
                address=f"/docs/chunk?id={quote(hit.head.id)}",
                snippet=hit.snippet,
                matched_by=hit.matched_by,
                score=hit.score,
            )
            for hit in hits
        ]
        return Found(items, facets)

    def _overview(self) -> list[dict[str, Any]]:
        return self.library.overview()

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
                corpora[name] = DocsCorpus(path, self._embedder_for, weights=self._weights)
            except StoreUnavailable as error:
                unavailable[name] = (
                    f"The docs index {name!r} cannot be opened: {error.message} Build it again with: bedstone docs "
                    f"build DIR --out {path} --rebuild-cache"
                )
        if not corpora:
            raise StoreUnavailable(next(iter(unavailable.values())))
        for text in unavailable.values():
            logger.error("%s", text, extra={"action": "docs_not_opened"})
        return DocsLibrary(corpora, unavailable)

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
