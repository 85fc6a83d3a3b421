"""A local mirror of an org's published articles, searchable while the org is unavailable."""

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from bedstone.errors import InvalidInput, Unavailable
from bedstone.permissions import make_private_folder
from bedstone.records import ChunkHead, Document
from bedstone.salesforce.ids import long_id
from bedstone.search.filters import AllOf, Filter, OneOf
from bedstone.search.hits import Hit, Mode, SearchRequest, SearchResponse
from bedstone.search.live_index import LiveIndex
from bedstone.search.matching import Matcher
from bedstone.search.relevance import QueryTerms
from bedstone.search.retriever import Profile
from bedstone.search.snippets import snippet
from bedstone.services.articles.article import (
    DEFAULT_LANGUAGE,
    Article,
    ArticleNotFound,
    ArticlePage,
    ArticleQuery,
)
from bedstone.services.articles.categories import Categories
from bedstone.services.articles.contents import MirrorContents, to_article
from bedstone.services.articles.languages import resolve_language
from bedstone.services.articles.live import ARTICLE_PREFIX, LiveArticles
from bedstone.services.articles.mirror_sync import (
    ARTICLE_ID,
    CATEGORIES,
    INSTANCE_URL,
    LANGUAGES,
    MIRRORED_AT,
    MirrorSync,
    OnProgress,
    SyncReport,
)
from bedstone.services.articles.passages import find_passage
from bedstone.store.engine import Store, StoreDamaged
from bedstone.store.locks import FileLock
from bedstone.store.opening import open_store

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

MAX_CANDIDATES = 200
READING_PAUSE = 10  # times as long as reading the contents took; a sync of many articles changes them all the time
# The translation in the default language is shown if it scores at least this share of the best one. For 84 English
# questions, 13 of the first five hits are in another language with it, 28 without; German ones keep German hits.
SIMILAR_SCORE = 0.5


def _document_key(head: ChunkHead, request: SearchRequest) -> str:
    return head.document_id


PROFILE = Profile(windows=(MAX_CANDIDATES,), group_key=_document_key, counts_all=True, has_documents=True)


class MirrorMissing(Unavailable):
    """The mirror, or a part of it, does not exist yet."""


class MirrorBusy(Unavailable):
    """Another process is syncing the mirror."""

    code = "mirror_busy"


class ArticleMirror:
    """A folder with the published articles of one org. Many processes can read it while one syncs it."""

    def __init__(self, folder: Path, make_embedder: "Callable[[], Embedder | None]") -> None:
        self._folder = folder
        self._file = folder / "articles.sqlite"
        self.get_embedder = make_embedder
        self._lock = threading.RLock()
        self._open: tuple[int, Store, LiveIndex] | None = None  # with the inode of the open file
        self._cached: tuple[Store, float, MirrorContents] | None = None  # with the time to read the contents again

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
                index = LiveIndex(store, self._folder, self.get_embedder, PROFILE)
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
        """Return the best articles, each with a snippet of its best chunk and the passage it comes from."""
        hits, response = self._search_chunks(wanted, mode)
        articles = self.show_passages(hits, wanted.query)
        total = max(response.matched, len(articles))
        return ArticlePage(articles, total, is_minimum=response.is_lower_bound, mirrored_at=self.mirrored_at)

    def rank(self, wanted: ArticleQuery, min_score: float) -> Sequence[Hit]:
        """Return what is worth showing, best first; `show_passages` makes articles of those that are shown."""
        return self._search_chunks(wanted, "hybrid", min_score)[0]

    def show_passages(self, hits: Sequence[Hit], query: str) -> list[Article]:
        """Return the articles of hits, each with the passage that matched."""
        matcher = Matcher(query)
        return [_found_article(hit, hit.document, matcher) for hit in hits if hit.document is not None]

    def _search_chunks(
        self, wanted: ArticleQuery, mode: Mode, min_score: float = 0.0
    ) -> tuple[Sequence[Hit], SearchResponse]:
        """Return the best chunk of each article, and the whole response."""
        store, index = self._ready()
        filters: list[Filter] = []
        limit = wanted.limit
        if wanted.language is not None:
            language = resolve_language(wanted.language, json.loads(store.get_value(LANGUAGES) or "[]"))
            filters.append(OneOf("language", (language.lower(),)))
        else:
            limit *= max(1, len(self.contents().languages))
        if wanted.categories:
            filters.append(OneOf("article", self._in_categories(store, wanted.categories)))
        condition = AllOf(tuple(filters)) if filters else None
        response = index.search(SearchRequest(wanted.query, condition, mode=mode, limit=limit, min_score=min_score))
        if wanted.language is None:
            return _choose_translations(response.hits)[: wanted.limit], response
        return response.hits, response

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
            return to_article(document)
        return self._read(self.contents().translations(record), f"No published article has the id {article_id}.")

    def by_url_name(self, url_name: str, language: str = DEFAULT_LANGUAGE) -> Article:
        """Return an article by its URL name."""
        message = f"No published article has the URL name {url_name!r}."
        return self._read(self.contents().find_named(url_name), message, language)

    def by_name(self, name: str, language: str = DEFAULT_LANGUAGE) -> Article:
        """Return an article by its URL name, its id or the id of its version."""
        contents, record = self.contents(), long_id(name)
        if record is None or contents.find_named(name):
            return self.by_url_name(name, language)
        known = contents.by_id.get(record)
        found = (known,) if known is not None else contents.translations(record)
        return self._read(found, f"No published article has the id {name}.", language)

    def url_names(self, prefix: str = "") -> list[str]:
        """List the URL names with a prefix."""
        return self.contents().url_names(prefix)

    def contents(self) -> MirrorContents:
        """Return what there is, without the texts; blocks when it changed. During a sync it may be a little old."""
        store, _ = self._ready()
        version, started = store.version(), time.monotonic()
        if self._cached is not None and self._cached[0] is store:
            _, read_again_at, contents = self._cached
            if contents.version == version or started < read_again_at:
                return contents
        contents = MirrorContents.of(version, store)
        finished = time.monotonic()
        self._cached = (store, finished + READING_PAUSE * (finished - started), contents)
        return contents

    @property
    def instance_url(self) -> str | None:
        """Return the address of the org at the last sync."""
        return self._open_store()[0].get_value(INSTANCE_URL) if self._file.exists() else None

    def weigh_terms(self, matcher: Matcher) -> QueryTerms:
        """Return the terms of a query, weighed by how many chunks of the mirror have each."""
        index = self._ready()[1].current().index
        return QueryTerms(matcher.terms, index.chunk_count, index.document_frequency)

    def _read(self, found: Sequence[Article], error_message: str, language: str = DEFAULT_LANGUAGE) -> Article:
        """Return one of some translations with its text: the one in a language, or else the first."""
        store, _ = self._ready()
        wanted = language.lower()
        chosen = min(found, key=lambda item: (item.language or "").lower() != wanted, default=None)
        document = store.document(chosen.id) if chosen is not None else None
        if document is None:
            raise ArticleNotFound(error_message)
        return to_article(document)

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
        index = LiveIndex(store, self._folder, self.get_embedder)
        try:
            index.become_writer()
            return await MirrorSync(store, live, on_progress, check).run(index)
        finally:
            await to_thread.run_sync(index.finish)
            await to_thread.run_sync(index.close)
            lock.release()


def _found_article(hit: Hit, document: Document, matcher: Matcher) -> Article:
    """Return the article of a hit, with the passage that matched."""
    article = to_article(document)
    text = article.text
    span = find_passage(text, hit.snippet.text, len(article.title) + 1)
    passage = text[slice(*span)] if span else ""
    repeated = {"", article.title, *(part.label for part in article.parts)}
    lines = [line for line in passage.splitlines() if line.strip() not in repeated]
    return replace(
        article,
        snippet=snippet(" ".join(lines), matcher).text if lines else hit.snippet.text,
        matched_by=hit.matched_by,
        score=hit.score,
        span=span,
        passage=passage,
        body="",
        parts=(),
    )


def _choose_translations(hits: Sequence[Hit]) -> list[Hit]:
    """Return one translation of each article: the best, or the one in the default language if it is nearly as good."""
    chosen: dict[str, Hit] = {}
    for hit in hits:
        article_id = hit.document.attributes[ARTICLE_ID] if hit.document is not None else None
        key = article_id or hit.head.document_id
        best = chosen.setdefault(key, hit)
        if _is_default_language(hit) and not _is_default_language(best) and hit.score >= SIMILAR_SCORE * best.score:
            chosen[key] = replace(hit, score=best.score)
    return list(chosen.values())


def _is_default_language(hit: Hit) -> bool:
    return hit.head.facets.get("language") == DEFAULT_LANGUAGE.lower()
