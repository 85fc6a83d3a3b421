"""Published articles kept here, found by words and meaning when the org cannot be asked."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from bedstone.documents import Chunk, Document
from bedstone.errors import BedstoneError, InvalidInput, Unavailable
from bedstone.ingest.extraction import Page
from bedstone.ingest.formats.html import html_to_markdown
from bedstone.ingest.splitting import SplitOptions, split_pages
from bedstone.library.articles.article import DEFAULT_LANGUAGE, Article, ArticleNotFound, Found, Wanted
from bedstone.library.articles.live import ARTICLE_PREFIX, ONLINE, LiveArticles
from bedstone.library.articles.types import ArticleType, article_of
from bedstone.library.live_index import LiveIndex
from bedstone.salesforce.client import SalesforceError
from bedstone.salesforce.ids import long_id
from bedstone.search.matching import Matcher
from bedstone.search.query import AllOf, Filter, Is
from bedstone.search.snippets import snippet
from bedstone.store.engines.sqlite import SqliteStore
from bedstone.tasks import Ownership

if TYPE_CHECKING:
    from bedstone.search.embedder import Embedder

logger = logging.getLogger(__name__)

Tell = Callable[[int, int], None]
MIRRORED_AT, CURSOR, CATEGORIES = "mirrored_at", "cursor:", "categories"
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


class ArticleMirror:
    """A folder with one org's published articles. Several processes may read it while one brings it up to date."""

    def __init__(self, folder: Path, make_embedder: "Callable[[], Embedder | None]") -> None:
        self._folder = folder
        self._make_embedder = make_embedder
        self._store: SqliteStore | None = None
        self._index: LiveIndex | None = None

    @property
    def mirrored_at(self) -> str | None:
        """When the mirror was last complete."""
        if not (self._folder / "articles.sqlite").exists():
            return None
        return self._opened()[0].setting(MIRRORED_AT)

    def close(self) -> None:
        """Let go of files."""
        if self._index is not None and self._store is not None:
            self._index.close()
            self._store.close()
        self._index = self._store = None

    def _opened(self) -> tuple[SqliteStore, LiveIndex]:
        if self._store is None or self._index is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._store = SqliteStore(self._folder / "articles.sqlite", durable=True)
            self._index = LiveIndex(self._store, self._folder, self._make_embedder)
        return self._store, self._index

    # Reading

    def search(self, wanted: Wanted) -> Found:
        """The best articles; a passage of each says why."""
        store, index = self._ready()
        conditions: list[Filter] = [Is("language", (wanted.language.lower(),))]
        if wanted.language.lower() not in store.facets().get("language", ()):
            raise InvalidInput(f"language {wanted.language!r} is not in the mirror", parameter="language")
        if wanted.categories:
            allowed = self._in_categories(store, wanted.categories)
            if not allowed:
                return Found([], 0, mirrored_at=self.mirrored_at)
            conditions.append(Is("article", allowed))
        condition = AllOf(tuple(conditions))
        found = index.opened().search(wanted.query, condition=condition, limit=MOST_CANDIDATES)
        floor = index.embedder.floor if index.embedder is not None else 0.0
        near = [hit for hit in found.hits if "words" in found.signals or (hit.cosine or 0.0) >= floor]
        chunks = store.chunks([hit.rowid for hit in near])
        best: dict[str, Chunk] = {}
        for hit in near:
            if hit.rowid in chunks:
                best.setdefault(chunks[hit.rowid].document, chunks[hit.rowid].chunk)
        matcher = Matcher(wanted.query)
        articles = []
        for document_id, chunk in list(best.items())[: wanted.limit]:
            document = store.document(document_id)
            if document is not None:
                shown = snippet(chunk.plain, matcher).text
                articles.append(Article(**{**_kept(document), "snippet": shown, "body": ""}))
        return Found(articles, len(best), mirrored_at=self.mirrored_at)

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
        return self._preferred("article_id", record, f"No published article has the id {given}.")

    def by_url_name(self, url_name: str) -> Article:
        """An article by its name in addresses."""
        return self._preferred("url_name", url_name, f"No published article is called {url_name!r}.")

    def url_names(self, beginning: str = "") -> list[str]:
        """Names in addresses."""
        names = (str(_kept(document)["url_name"] or "") for document in self._ready()[0].documents(limit=2**31))
        return sorted({name for name in names if name.lower().startswith(beginning.lower())} - {""})

    def _preferred(self, key: str, value: str, otherwise: str) -> Article:
        matching = [facts for item in self._ready()[0].documents(limit=2**31) if (facts := _kept(item))[key] == value]
        if not matching:
            raise ArticleNotFound(otherwise)
        return Article(**min(matching, key=lambda facts: facts["language"] != DEFAULT_LANGUAGE))

    def _ready(self) -> tuple[SqliteStore, LiveIndex]:
        if self.mirrored_at is None:
            raise NoMirror(
                "There is no mirror of this org's articles yet; `bedstone salesforce sync-knowledge` makes one."
            )
        return self._opened()

    @staticmethod
    def _in_categories(store: SqliteStore, wanted: Mapping[str, str]) -> tuple[str, ...]:
        kept = json.loads(store.setting(CATEGORIES) or '{"below": {}, "articles": {}}')
        allowed: set[str] | None = None
        for group, category in wanted.items():
            names = kept["below"].get(f"{_bare(group)}.{_bare(category)}", [_bare(category)])
            inside = {record for name in names for record in kept["articles"].get(f"{_bare(group)}.{name}", ())}
            allowed = inside if allowed is None else allowed & inside
        return tuple(sorted(allowed or ()))

    # Bringing it up to date

    async def sync(self, live: LiveArticles, tell: Tell = lambda done, total: None) -> SyncReport:
        """Take over what changed since, and let go of what is no longer published.

        What was taken over is kept at once: a sync that was interrupted goes on where it was.
        """
        store, _ = await to_thread.run_sync(self._opened)
        ownership = Ownership(self._folder / ".owner")
        if not ownership.acquire():
            raise MirrorBusy("Another process brings the mirror up to date right now.")
        index = LiveIndex(store, self._folder, self._make_embedder)
        try:
            index.own()
            return await self._synced(store, index, live, tell)
        finally:
            await to_thread.run_sync(index.close)
            ownership.release()

    async def _synced(self, store: SqliteStore, index: LiveIndex, live: LiveArticles, tell: Tell) -> SyncReport:
        known = store.digests()
        online: set[str] = set()
        changed = 0
        types = await live.types()
        for kind in types:
            rows = live.client.rows(f"SELECT Id FROM {kind.name} WHERE {ONLINE}")
            online |= {row["Id"] async for row in rows}
        total = len(online)
        for kind in types:
            batch: list[dict[str, Any]] = []
            async for row in live.client.rows(_changes(kind, store.setting(f"{CURSOR}{kind.name}"), known)):
                batch.append(row)
                if len(batch) == BATCH:
                    changed += await to_thread.run_sync(_put, store, kind, batch, known)
                    tell(changed, total)
                    batch = []
            changed += await to_thread.run_sync(_put, store, kind, batch, known)
            tell(changed, total)
        gone = [record for record in store.digests() if record not in online]
        await to_thread.run_sync(store.delete, gone)
        await self._sync_categories(store, live, types)
        await to_thread.run_sync(_embed, store, index)
        await to_thread.run_sync(index.opened)
        store.set_setting(MIRRORED_AT, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        return SyncReport(changed, len(gone), store.counts().documents)

    @staticmethod
    async def _sync_categories(store: SqliteStore, live: LiveArticles, types: Sequence[ArticleType]) -> None:
        """Which articles stand in which data categories, and which categories stand below which."""
        articles: dict[str, list[str]] = {}
        try:
            for kind in types:
                selections = f"{kind.name.removesuffix('__kav')}__DataCategorySelection"
                columns = "ParentId, DataCategoryGroupName, DataCategoryName"
                async for row in live.client.rows(f"SELECT {columns} FROM {selections}"):
                    key = f"{row['DataCategoryGroupName']}.{row['DataCategoryName']}"
                    articles.setdefault(key, []).append(row["ParentId"])
            groups = await live.client.get(
                "support/dataCategoryGroups", sObjectName="KnowledgeArticleVersion", topCategoriesOnly="false"
            )
        except SalesforceError as error:  # an org without categories has no such objects
            logger.info("Data categories are not mirrored: %s", error.message, extra={"action": "no_categories"})
            return
        below: dict[str, list[str]] = {}
        for group in groups.get("categoryGroups", []):
            for category in group.get("topCategories", []):
                _note_below(group["name"], category, below)
        store.set_setting(CATEGORIES, json.dumps({"below": below, "articles": articles}))


def _note_below(group: str, category: Mapping[str, Any], below: dict[str, list[str]]) -> list[str]:
    names = [category["name"]]
    for child in category.get("childCategories") or []:
        names += _note_below(group, child, below)
    below[f"{group}.{category['name']}"] = names
    return names


def _changes(kind: ArticleType, cursor: str | None, known: Mapping[str, str]) -> str:
    """What to ask for: the oldest change first, so that a sync can go on where it was."""
    bodies = "".join(f", {item.name}" for item in kind.bodies)
    since = f" AND SystemModstamp >= {cursor}" if cursor and known else ""
    return (
        f"SELECT {kind.selection}, SystemModstamp{bodies} FROM {kind.name} "
        f"WHERE {ONLINE}{since} ORDER BY SystemModstamp, Id"
    )


def _put(store: SqliteStore, kind: ArticleType, rows: Sequence[Mapping[str, Any]], known: Mapping[str, str]) -> int:
    """Keep some articles, and how far the sync has come; how many of them are new or others than before."""
    made = [_document(kind, row) for row in rows]
    fresh = [(document, chunks) for document, chunks in made if known.get(document.id) != document.digest]
    store.put(fresh)
    if rows:
        store.set_setting(f"{CURSOR}{kind.name}", _literal(str(rows[-1]["SystemModstamp"])))
    return len(fresh)


def _document(kind: ArticleType, row: Mapping[str, Any]) -> tuple[Document, list[Chunk]]:
    article = Article(**{**vars(article_of(row)), "body": kind.body(row)})
    facts = {key: value for key, value in vars(article).items() if key != "snippet"}
    kept = json.dumps(facts, ensure_ascii=False, sort_keys=True)
    document = Document(article.id, article.title, sha256(kept.encode()).hexdigest(), {"article": kept})
    _, text = html_to_markdown(kind.html(row).encode())
    pages = [Page("\n\n".join(part for part in (f"# {article.title}", article.summary or "", text) if part))]
    facets = {"language": (article.language or DEFAULT_LANGUAGE).lower(), "article": article.id}
    return document, split_pages(article.id, pages, SPLIT, facets)


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
    facts: dict[str, Any] = json.loads(document.metadata["article"])
    return facts


def _bare(name: str) -> str:
    return name.removesuffix("__c")


def _literal(moment: str) -> str:
    """A time of an answer as a query takes it."""
    return moment.replace("+0000", "Z")
