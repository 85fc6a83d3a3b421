"""Published articles kept here, found by words and meaning when the org cannot be asked."""

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import to_thread

from bedstone.errors import BedstoneError, InvalidInput, Unavailable
from bedstone.ingest.chunking.by_size import SplitOptions, chunk_pages
from bedstone.ingest.extraction import Page
from bedstone.records import Chunk, Document, StoredChunk
from bedstone.salesforce.client import SalesforceError
from bedstone.salesforce.ids import long_id
from bedstone.search.hits import AllOf, Filter, Is, Mode
from bedstone.search.live_index import LiveIndex
from bedstone.search.matching import Matcher
from bedstone.search.snippets import snippet
from bedstone.services.articles.article import DEFAULT_LANGUAGE, Article, ArticleNotFound, ArticlePage, ArticleQuery
from bedstone.services.articles.article_types import ArticleType, article_of
from bedstone.services.articles.live import ARTICLE_PREFIX, ONLINE, VERSIONS, LiveArticles
from bedstone.store.engines.sqlite import SqliteStore
from bedstone.store.locks import FileLock

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

logger = logging.getLogger(__name__)

Tell = Callable[[int, int], None]
MIRRORED_AT, CURSOR, CATEGORIES, LANGUAGES, ORG = "mirrored_at", "cursor:", "categories", "languages", "org"
ARTICLE_ID, URL_NAME = "article_id", "url_name"
NO_CATEGORIES = frozenset({"INVALID_TYPE", "NOT_FOUND"})
Answer = TypeVar("Answer")
BATCH = 50
SPLIT = SplitOptions(size=1_000, overlap=100)
MOST_CANDIDATES = 200


class NoMirror(Unavailable):
    """Nothing was mirrored yet."""

    code = "SF_API_ERROR"


class MirrorBusy(Unavailable):
    """Another process brings the mirror up to date."""

    code = "mirror_busy"


@dataclass(frozen=True)
class SyncReport:
    """What a sync did."""

    changed: int
    removed: int
    total: int


@dataclass(frozen=True)
class _Contents:
    """What a mirror holds, without the texts: read once for each version of its store."""

    version: int
    articles: list[Article]
    by_key: Mapping[tuple[str, str], list[str]]  # documents by article id or name in addresses

    @classmethod
    def of(cls, version: int, documents: Sequence[Document]) -> "_Contents":
        articles = [Article(**{**_kept(document), "body": ""}) for document in documents]
        by_key: dict[tuple[str, str], list[str]] = {}
        for document in documents:
            for key in (ARTICLE_ID, URL_NAME):
                by_key.setdefault((key, document.attributes[key]), []).append(document.id)
        return cls(version, sorted(articles, key=lambda item: (item.title.lower(), item.id)), by_key)


class ArticleMirror:
    """A folder with one org's published articles. Several processes may read it while one brings it up to date."""

    def __init__(self, folder: Path, make_embedder: "Callable[[], Embedder | None]") -> None:
        self._folder = folder
        self._file = folder / "articles.sqlite"
        self._make_embedder = make_embedder
        self._lock = threading.RLock()
        self._open: tuple[int, SqliteStore, LiveIndex] | None = None  # with the number of the file that is open
        self._known: tuple[SqliteStore, _Contents] | None = None

    @property
    def mirrored_at(self) -> str | None:
        """Since when the mirror holds what the org had then."""
        if not self._file.exists():
            return None
        return self._opened()[0].get_value(MIRRORED_AT)

    @property
    def count(self) -> int:
        """How many articles it holds."""
        return self._opened()[0].counts().documents if self._file.exists() else 0

    def close(self) -> None:
        """Let go of files."""
        with self._lock:
            if self._open is not None:
                _, store, index = self._open
                index.close()
                store.close()
            self._open = None

    def _opened(self) -> tuple[SqliteStore, LiveIndex]:
        """The store and its index; again, if somebody put others in their place."""
        with self._lock:
            if self._open is not None and (not self._file.exists() or self._file.stat().st_ino != self._open[0]):
                self.close()
            if self._open is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                store = SqliteStore(self._file, durable=True)
                index = LiveIndex(store, self._folder, self._make_embedder)
                self._open = (self._file.stat().st_ino, store, index)
            return self._open[1], self._open[2]

    # Reading

    def search(self, wanted: ArticleQuery, mode: Mode = "hybrid") -> ArticlePage:
        """The best articles; a passage of each says why."""
        store, index = self._ready()
        languages = json.loads(store.get_value(LANGUAGES) or "[]")
        if wanted.language.lower() not in languages:
            listed = ", ".join(languages)
            raise InvalidInput(f"language {wanted.language!r} is not one of the mirror: {listed}", parameter="language")
        conditions: list[Filter] = [Is("language", (wanted.language.lower(),))]
        if wanted.categories:
            allowed = self._in_categories(store, wanted.categories)
            if not allowed:
                return ArticlePage([], 0, mirrored_at=self.mirrored_at)
            conditions.append(Is("article", allowed))
        condition = AllOf(tuple(conditions))
        found = index.opened().search(wanted.query, condition=condition, limit=MOST_CANDIDATES, mode=mode)
        floor = index.embedder.floor if index.embedder is not None else 0.0
        matching = {hit.rowid for hit in found.hits if hit.words is not None or (hit.cosine or 0.0) >= floor}
        chunks = store.chunks([hit.rowid for hit in found.hits]) if matching else {}
        best: dict[str, tuple[StoredChunk, str]] = {}
        for hit in found.hits:  # the order is of both signals: what is shown may be below what counts as a match
            if hit.rowid in chunks:
                best.setdefault(chunks[hit.rowid].head.document_id, (chunks[hit.rowid], hit.why(floor)))
        matches = len({chunks[rowid].head.document_id for rowid in matching if rowid in chunks})
        matcher = Matcher(wanted.query)
        articles = []
        for document_id, (chunk, why) in list(best.items())[: wanted.limit]:
            document = store.document(document_id)
            if document is not None:
                shown = snippet(chunk.plain, matcher).text
                articles.append(Article(**{**_kept(document), "snippet": shown, "why": why, "body": ""}))
        is_minimum = len(found.hits) >= MOST_CANDIDATES
        total = max(matches, len(articles))
        return ArticlePage(articles, total, is_minimum=is_minimum, mirrored_at=self.mirrored_at)

    def get(self, given: str) -> Article:
        """An article by the id of its version, or by its own."""
        store, _ = self._ready()
        record = long_id(given.strip())
        if record is None:
            raise InvalidInput(f"article_id is not a Salesforce id: {given[:40]!r}", parameter="article_id")
        if not record.startswith(ARTICLE_PREFIX):
            document = store.document(record)
            if document is None:
                raise ArticleNotFound(f"No published article has the id {given}.")
            return Article(**_kept(document))
        return self._preferred(ARTICLE_ID, record, f"No published article has the id {given}.")

    def by_url_name(self, url_name: str) -> Article:
        """An article by its name in addresses."""
        return self._preferred(URL_NAME, url_name.lower(), f"No published article is called {url_name!r}.")

    def url_names(self, beginning: str = "") -> list[str]:
        """Names in addresses."""
        names = {item.url_name for item in self.listed() if item.url_name}
        return sorted(name for name in names if name.lower().startswith(beginning.lower()))

    def listed(self) -> list[Article]:
        """Every article without its text, by title."""
        return self._contents()[1].articles

    def _preferred(self, key: str, value: str, otherwise: str) -> Article:
        store, contents = self._contents()
        known = contents.by_key.get((key, value), [])
        documents = [document for identity in known if (document := store.document(identity))]
        if not documents:
            raise ArticleNotFound(otherwise)
        return Article(**min(map(_kept, documents), key=lambda facts: facts["language"] != DEFAULT_LANGUAGE))

    def _contents(self) -> tuple[SqliteStore, _Contents]:
        store, _ = self._ready()
        version = store.version()
        if self._known is None or self._known[0] is not store or self._known[1].version != version:
            self._known = (store, _Contents.of(version, store.documents(limit=2**31)))
        return self._known

    def _ready(self) -> tuple[SqliteStore, LiveIndex]:
        if self.mirrored_at is None:
            raise NoMirror(
                "There is no mirror of this org's articles yet; `bedstone salesforce sync-knowledge` makes one."
            )
        return self._opened()

    @staticmethod
    def _in_categories(store: SqliteStore, wanted: Mapping[str, str]) -> tuple[str, ...]:
        setting = store.get_value(CATEGORIES)
        if setting is None:
            raise NoMirror("Data categories are not in the mirror of this org's articles.")
        kept = json.loads(setting)
        allowed: set[str] | None = None
        for group, category in wanted.items():
            names = kept["below"].get(f"{_bare(group)}.{_bare(category)}", [_bare(category)])
            inside = {record for name in names for record in kept["articles"].get(f"{_bare(group)}.{name}", ())}
            allowed = inside if allowed is None else allowed & inside
        return tuple(sorted(allowed or ()))

    # Bringing it up to date

    async def sync(
        self, live: LiveArticles, tell: Tell = lambda done, total: None, check: Callable[[], None] = lambda: None
    ) -> SyncReport:
        """Take over what changed since, and let go of what is no longer published; `check` may end it.

        What was taken over is kept at once: a sync that was interrupted goes on where it was.
        """
        store, _ = await to_thread.run_sync(self._opened)
        ownership = FileLock(self._folder / ".owner")
        if not ownership.acquire():
            raise MirrorBusy("Another process brings the mirror up to date right now.")
        index = LiveIndex(store, self._folder, self._make_embedder)
        try:
            index.own()
            return await _Sync(store, live, tell, check).run(index)
        finally:
            await to_thread.run_sync(index.close)
            ownership.release()


class _Sync:
    """One sync, by the process that holds the mirror."""

    def __init__(self, store: SqliteStore, live: LiveArticles, tell: Tell, check: Callable[[], None]) -> None:
        self._store = store
        self._live = live
        self._tell = tell
        self._check = check
        self._changed = 0
        self._done = 0
        self._total = 0

    async def run(self, index: LiveIndex) -> SyncReport:
        started = datetime.now(UTC)
        await self._check_org()
        types = await self._live.types()
        for kind in types:
            await self._take_changes(kind)
        online: set[str] = set()
        for kind in types:  # after the changes: what was published meanwhile is not taken for gone
            ids = {row["Id"] async for row in self._live.client.rows(f"SELECT Id FROM {kind.name} WHERE {ONLINE}")}
            await self._take_missing(kind, ids)
            online |= ids
            self._check()
        gone = [record for record in await self._in_thread(self._store.digests) if record not in online]
        await self._in_thread(self._store.delete, gone)
        await self._take_categories(types)
        await self._in_thread(_embed, self._store, index)
        await self._in_thread(index.opened)
        versions = await self._live.type_of(VERSIONS)
        await self._in_thread(self._finish, started, sorted(name.lower() for name in versions.languages))
        return SyncReport(self._changed, len(gone), self._store.counts().documents)

    async def _check_org(self) -> None:
        """A mirror of another org is of no use to this one."""
        rows = [row async for row in self._live.client.rows("SELECT Id FROM Organization LIMIT 1")]
        org = rows[0]["Id"] if rows else ""
        if await self._in_thread(self._store.get_value, ORG) not in (None, org):
            await self._in_thread(self._forget)
        await self._in_thread(self._store.set_value, ORG, org)

    def _forget(self) -> None:
        self._store.delete(list(self._store.digests()))
        cursors = [f"{CURSOR}{name}" for name in self._store.list_values(CURSOR)]
        for name in (MIRRORED_AT, CATEGORIES, LANGUAGES, *cursors):
            self._store.delete_value(name)

    def _finish(self, started: datetime, languages: Sequence[str]) -> None:
        known = set(languages) | set(self._store.facets().get("language", ()))
        self._store.set_value(LANGUAGES, json.dumps(sorted(known)))
        self._store.set_value(MIRRORED_AT, started.strftime("%Y-%m-%dT%H:%M:%SZ"))

    async def _take_changes(self, kind: ArticleType) -> None:
        """The oldest change first, so that a sync can go on where it was."""
        cursor = f"{CURSOR}{kind.name}:{','.join(item.name for item in kind.bodies)}"  # other bodies, other texts
        since = await self._in_thread(self._store.get_value, cursor)
        condition = f" AND SystemModstamp >= {since}" if since else ""
        select = f"{_select(kind)} WHERE {ONLINE}{condition} ORDER BY SystemModstamp, Id"
        page = await self._live.client.query(select)
        self._total += page["totalSize"]
        while True:
            await self._take(kind, page["records"])
            if page["records"]:
                last = _literal(str(page["records"][-1]["SystemModstamp"]))
                await self._in_thread(self._store.set_value, cursor, last)
            if page["done"]:
                return
            page = await self._live.client.more(page["nextRecordsUrl"])

    async def _take_missing(self, kind: ArticleType, online: set[str]) -> None:
        """What is published and was not told as a change: it came into view without one."""
        known = await self._in_thread(self._store.digests)
        missing = sorted(online - known.keys())
        if missing:
            rows = await self._live.client.rows_by_id(_select(kind), missing)
            self._total += len(rows)
            await self._take(kind, rows)

    async def _take(self, kind: ArticleType, rows: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(rows), BATCH):
            self._changed += await self._in_thread(_put, self._store, kind, rows[start : start + BATCH])
            self._done += len(rows[start : start + BATCH])
            self._tell(self._done, self._total)
        self._check()

    async def _take_categories(self, types: Sequence[ArticleType]) -> None:
        """Which articles stand in which data categories, and which categories stand below which."""
        articles: dict[str, list[str]] = {}
        try:
            for kind in types:
                selections = f"{kind.name.removesuffix('__kav')}__DataCategorySelection"
                columns = "ParentId, DataCategoryGroupName, DataCategoryName"
                async for row in self._live.client.rows(f"SELECT {columns} FROM {selections}"):
                    key = f"{row['DataCategoryGroupName']}.{row['DataCategoryName']}"
                    articles.setdefault(key, []).append(row["ParentId"])
            groups = await self._live.client.get(
                "support/dataCategoryGroups", sObjectName="KnowledgeArticleVersion", topCategoriesOnly="false"
            )
        except SalesforceError as error:
            if error.details.get("details", {}).get("errorCode") not in NO_CATEGORIES:
                raise
            logger.info("This org has no data categories", extra={"action": "no_categories"})
            return
        below: dict[str, list[str]] = {}
        for group in groups.get("categoryGroups", []):
            for category in group.get("topCategories", []):
                _note_below(group["name"], category, below)
        kept = json.dumps({"below": below, "articles": articles})
        await self._in_thread(self._store.set_value, CATEGORIES, kept)

    @staticmethod
    async def _in_thread(work: Callable[..., Answer], *arguments: Any) -> Answer:
        return await to_thread.run_sync(work, *arguments)


def _note_below(group: str, category: Mapping[str, Any], below: dict[str, list[str]]) -> list[str]:
    names = [category["name"]]
    for child in category.get("childCategories") or []:
        names += _note_below(group, child, below)
    below[f"{group}.{category['name']}"] = names
    return names


def _select(kind: ArticleType) -> str:
    bodies = "".join(f", {item.name}" for item in kind.bodies)
    return f"SELECT {kind.selection}, SystemModstamp{bodies} FROM {kind.name}"


def _put(store: SqliteStore, kind: ArticleType, rows: Sequence[Mapping[str, Any]]) -> int:
    """Keep some articles; how many of them are new or others than before."""
    known = store.digests()
    made = [_document(kind, row) for row in rows]
    fresh = [(document, chunks) for document, chunks in made if known.get(document.id) != document.digest]
    store.put(fresh)
    return len(fresh)


def _document(kind: ArticleType, row: Mapping[str, Any]) -> tuple[Document, list[Chunk]]:
    article = Article(**{**vars(article_of(row)), "body": kind.body(row)})
    facts = {key: value for key, value in vars(article).items() if key not in ("snippet", "why")}
    kept = json.dumps(facts, ensure_ascii=False, sort_keys=True)
    found_by = {ARTICLE_ID: article.article_id, URL_NAME: (article.url_name or "").lower()}
    document = Document(article.id, article.title, sha256(kept.encode()).hexdigest(), {"article": kept, **found_by})
    parts = (f"# {article.title}", article.summary or "", kind.markdown(row))
    pages = [Page("\n\n".join(part for part in parts if part))]
    facets = {"language": (article.language or DEFAULT_LANGUAGE).lower(), "article": article.id}
    return document, chunk_pages(article.id, pages, SPLIT, facets)


def _embed(store: SqliteStore, index: LiveIndex) -> None:
    embedder = index.embedder
    if embedder is None:
        return
    from bedstone.search.indexer import embed_missing  # noqa: PLC0415 - loads numpy

    try:
        index.check_model()
        embed_missing(store, embedder)
    except BedstoneError as error:  # found by words meanwhile; the next sync makes up for it
        logger.warning("Articles have no vectors yet: %s", error.message, extra={"action": "no_vectors"})


def _kept(document: Document) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(document.attributes["article"])
    return facts


def _bare(name: str) -> str:
    return name.removesuffix("__c")


def _literal(moment: str) -> str:
    """A time of an answer as a query takes it."""
    return moment.replace("+0000", "Z")
