"""A local mirror of an org's published articles, searchable while the org is unavailable."""

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from bedstone.errors import InvalidInput, Unavailable
from bedstone.permissions import make_private_folder
from bedstone.records import ChunkHead, Document
from bedstone.salesforce.ids import long_id
from bedstone.search.filters import AllOf, Filter, OneOf
from bedstone.search.hits import Mode, SearchRequest
from bedstone.search.live_index import LiveIndex
from bedstone.search.retriever import Profile
from bedstone.services.articles.article import DEFAULT_LANGUAGE, Article, ArticleNotFound, ArticlePage, ArticleQuery
from bedstone.services.articles.categories import Categories
from bedstone.services.articles.languages import resolve_language
from bedstone.services.articles.live import ARTICLE_PREFIX, LiveArticles
from bedstone.services.articles.mirror_sync import (
    ARTICLE_ID,
    CATEGORIES,
    LANGUAGES,
    MIRRORED_AT,
    URL_NAME,
    MirrorSync,
    OnProgress,
    SyncReport,
)
from bedstone.store.engine import Store, StoreDamaged
from bedstone.store.locks import FileLock
from bedstone.store.opening import open_store

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

MAX_CANDIDATES = 200


def _document_key(head: ChunkHead, request: SearchRequest) -> str:
    return head.document_id


PROFILE = Profile(windows=(MAX_CANDIDATES,), group_key=_document_key, counts_all=True, has_documents=True)


class MirrorMissing(Unavailable):
    """The mirror, or a part of it, does not exist yet."""


class MirrorBusy(Unavailable):
    """Another process is syncing the mirror."""

    code = "mirror_busy"


@dataclass(frozen=True)
class _Contents:
    """The articles of a mirror without their texts, read once per version of the store."""

    version: int
    articles: list[Article]
    by_key: Mapping[tuple[str, str], list[str]]  # document ids by article id or URL name

    @classmethod
    def of(cls, version: int, documents: Sequence[Document]) -> "_Contents":
        articles = [Article(**{**_article_facts(document), "body": ""}) for document in documents]
        by_key: dict[tuple[str, str], list[str]] = {}
        for document in documents:
            for key in (ARTICLE_ID, URL_NAME):
                by_key.setdefault((key, document.attributes[key]), []).append(document.id)
        return cls(version, sorted(articles, key=lambda item: (item.title.lower(), item.id)), by_key)


class ArticleMirror:
    """A folder with the published articles of one org. Many processes can read it while one syncs it."""

    def __init__(self, folder: Path, make_embedder: "Callable[[], Embedder | None]") -> None:
        self._folder = folder
        self._file = folder / "articles.sqlite"
        self._make_embedder = make_embedder
        self._lock = threading.RLock()
        self._open: tuple[int, Store, LiveIndex] | None = None  # with the inode of the open file
        self._cached: tuple[Store, _Contents] | None = None

    @property
    def mirrored_at(self) -> str | None:
        """Return the start of the last complete sync, or None before the first."""
        if not self._file.exists():
            return None
        return self._open_store()[0].get_value(MIRRORED_AT)

    @property
    def count(self) -> int:
        """Return the number of articles."""
        return self._open_store()[0].counts().documents if self._file.exists() else 0

    def find_problem(self) -> str | None:
        """Search the mirror, if there is one; return why that fails, or None."""
        try:
            if self.mirrored_at is not None:
                _, index = self._open_store()
                index.search(SearchRequest("probe", mode="keyword", limit=1))
        except Exception as error:  # noqa: BLE001 - what fails here fails for agents
            return f"Cannot search the mirrored articles: {error}"
        return None

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            if self._open is not None:
                _, store, index = self._open
                index.close()
                store.close()
            self._open = None

    def _open_store(self) -> tuple[Store, LiveIndex]:
        """Return the store and its index; reopen them after another process replaced the files."""
        with self._lock:
            if self._open is not None and (not self._file.exists() or self._file.stat().st_ino != self._open[0]):
                self.close()
            if self._open is None:
                make_private_folder(self._folder)
                store = self._open_file()
                index = LiveIndex(store, self._folder, self._make_embedder, PROFILE)
                self._open = (self._file.stat().st_ino, store, index)
            return self._open[1], self._open[2]

    def _open_file(self) -> Store:
        try:
            return open_store(self._file, durable=True)
        except StoreDamaged as error:
            advice = f"Delete {self._file} and mirror the articles again with `bedstone salesforce sync-knowledge`."
            raise StoreDamaged(f"{error.message} {advice}") from error

    @property
    def problem(self) -> str | None:
        """What is wrong with the index right now, as far as it is open."""
        opened = self._open
        return opened[2].problem() if opened is not None else None

    # Reading

    def search(self, wanted: ArticleQuery, mode: Mode = "hybrid") -> ArticlePage:
        """Return the best articles, each with a snippet of its best chunk."""
        store, index = self._ready()
        language = resolve_language(wanted.language, json.loads(store.get_value(LANGUAGES) or "[]"))
        filters: list[Filter] = [OneOf("language", (language.lower(),))]
        if wanted.categories:
            filters.append(OneOf("article", self._in_categories(store, wanted.categories)))
        request = SearchRequest(wanted.query, AllOf(tuple(filters)), mode=mode, limit=wanted.limit)
        response = index.search(request)
        articles = []
        for hit in response.hits:
            if hit.document is not None:
                found = {"snippet": hit.snippet.text, "matched_by": hit.matched_by, "score": hit.score, "body": ""}
                articles.append(Article(**{**_article_facts(hit.document), **found}))
        total = max(response.matched, len(articles))
        return ArticlePage(articles, total, is_minimum=response.is_lower_bound, mirrored_at=self.mirrored_at)

    def get(self, article_id: str) -> Article:
        """Return an article by its id or the id of its version."""
        store, _ = self._ready()
        record = long_id(article_id.strip())
        if record is None:
            raise InvalidInput(f"article_id is not a Salesforce id: {article_id[:40]!r}", parameter="article_id")
        if not record.startswith(ARTICLE_PREFIX):
            document = store.document(record)
            if document is None:
                raise ArticleNotFound(f"No published article has the id {article_id}.")
            return Article(**_article_facts(document))
        return self._get_translation(ARTICLE_ID, record, f"No published article has the id {article_id}.")

    def by_url_name(self, url_name: str) -> Article:
        """Return an article by its URL name."""
        return self._get_translation(URL_NAME, url_name.lower(), f"No published article has the URL name {url_name!r}.")

    def url_names(self, prefix: str = "") -> list[str]:
        """List the URL names with a prefix."""
        names = {item.url_name for item in self.list_articles() if item.url_name}
        return sorted(name for name in names if name.lower().startswith(prefix.lower()))

    def list_articles(self) -> list[Article]:
        """List all articles without their texts, by title."""
        return self._contents()[1].articles

    def _get_translation(self, key: str, value: str, error_message: str) -> Article:
        store, contents = self._contents()
        ids = contents.by_key.get((key, value), [])
        documents = [document for document_id in ids if (document := store.document(document_id))]
        if not documents:
            raise ArticleNotFound(error_message)
        return Article(**min(map(_article_facts, documents), key=lambda facts: facts["language"] != DEFAULT_LANGUAGE))

    def _contents(self) -> tuple[Store, _Contents]:
        store, _ = self._ready()
        version = store.version()
        if self._cached is None or self._cached[0] is not store or self._cached[1].version != version:
            self._cached = (store, _Contents.of(version, store.documents(limit=2**31)))
        return self._cached

    def _ready(self) -> tuple[Store, LiveIndex]:
        if self.mirrored_at is None:
            raise MirrorMissing("Articles are not mirrored yet. Run `bedstone salesforce sync-knowledge`.")
        return self._open_store()

    @staticmethod
    def _in_categories(store: Store, categories: Mapping[str, str]) -> tuple[str, ...]:
        setting = store.get_value(CATEGORIES)
        if setting is None:
            raise MirrorMissing("The mirror has no data categories. Run `bedstone salesforce sync-knowledge`.")
        stored = json.loads(setting)
        allowed: set[str] | None = None
        for group, category in Categories.of_keys(stored["below"]).resolve(categories).items():
            names = stored["below"][f"{group}.{category}"]
            inside = {record for name in names for record in stored["articles"].get(f"{group}.{name}", ())}
            allowed = inside if allowed is None else allowed & inside
        return tuple(sorted(allowed or ()))

    # Syncing

    async def sync(
        self,
        live: LiveArticles,
        on_progress: OnProgress = lambda done, total: None,
        check: Callable[[], None] = lambda: None,
    ) -> SyncReport:
        """Load what changed since the last sync; `check` may raise an error to stop. Resumes an interrupted sync."""
        store, _ = await to_thread.run_sync(self._open_store)
        lock = FileLock(self._folder / ".owner")
        if not lock.acquire():
            raise MirrorBusy("Another process is syncing the mirror. Try again when it has finished.")
        index = LiveIndex(store, self._folder, self._make_embedder)
        try:
            index.become_writer()
            return await MirrorSync(store, live, on_progress, check).run(index)
        finally:
            await to_thread.run_sync(index.finish)
            await to_thread.run_sync(index.close)
            lock.release()


def _article_facts(document: Document) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(document.attributes["article"])
    return facts
