"""Sync the mirror of an org's articles: load what changed, delete what is no longer published."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from anyio import to_thread

from bedstone.errors import BedstoneError
from bedstone.ingest.chunking.by_size import chunk_pages
from bedstone.ingest.chunking.pieces import SplitOptions
from bedstone.ingest.extraction import Page
from bedstone.records import Chunk, Document
from bedstone.salesforce.client import SalesforceError
from bedstone.search.live_index import LiveIndex
from bedstone.services.articles.article import DEFAULT_LANGUAGE
from bedstone.services.articles.article_types import ArticleType, article_of
from bedstone.services.articles.live import ONLINE, VERSIONS, LiveArticles
from bedstone.store.engine import Store

logger = logging.getLogger(__name__)

OnProgress = Callable[[int, int], None]  # done, total
BATCH_SIZE = 50
SPLIT = SplitOptions(size=1_000, overlap=100)
NO_CATEGORIES = frozenset({"INVALID_TYPE", "NOT_FOUND"})  # error codes of an org without data categories

# Keys in the settings of the store
MIRRORED_AT = "mirrored_at"
CURSOR = "cursor:"
CATEGORIES = "categories"
LANGUAGES = "languages"
ORG = "org"
INSTANCE_URL = "instance_url"

# Keys in the metadata of a document
ARTICLE = "article"
PARTS = "parts"
ARTICLE_ID = "article_id"
URL_NAME = "url_name"
FORMAT = 2  # of the metadata: with another one, the next sync loads every article again
OF_A_SEARCH = frozenset({"snippet", "matched_by", "score", "span", "passage", "parts"})  # not facts of an article


@dataclass(frozen=True)
class SyncReport:
    """The result of a sync."""

    changed: int
    removed: int
    total: int


class MirrorSync:
    """One sync, in the process that holds the lock of the mirror. `check` may raise an error to stop it."""

    def __init__(self, store: Store, live: LiveArticles, on_progress: OnProgress, check: Callable[[], None]) -> None:
        self._store = store
        self._live = live
        self._on_progress = on_progress
        self._check = check
        self._changed = 0
        self._done = 0
        self._total = 0

    async def run(self, index: LiveIndex) -> SyncReport:
        """Sync all article types, then embed and index the changes."""
        started = datetime.now(UTC)
        await self._check_org()
        types = await self._live.types()
        for kind in types:
            await self._load_changes(kind)
        online: set[str] = set()
        for kind in types:  # after the changes, so that articles published meanwhile are not deleted
            ids = {row["Id"] async for row in self._live.client.rows(f"SELECT Id FROM {kind.name} WHERE {ONLINE}")}
            await self._load_missing(kind, ids)
            online |= ids
            self._check()
        removed = [record for record in await to_thread.run_sync(self._store.digests) if record not in online]
        await to_thread.run_sync(self._store.delete, removed)
        await self._load_categories(types)
        await to_thread.run_sync(_embed_chunks, self._store, index)
        await to_thread.run_sync(index.refresh)
        versions = await self._live.type_of(VERSIONS)
        await to_thread.run_sync(self._finish, started, sorted(name.lower() for name in versions.languages))
        return SyncReport(self._changed, len(removed), self._store.counts().documents)

    async def _check_org(self) -> None:
        """Delete the articles of another org."""
        rows = [row async for row in self._live.client.rows("SELECT Id FROM Organization LIMIT 1")]
        org = rows[0]["Id"] if rows else ""
        if await to_thread.run_sync(self._store.get_value, ORG) not in (None, org):
            await to_thread.run_sync(self._delete_all)
        await to_thread.run_sync(self._store.set_value, ORG, org)
        if instance_url := self._live.client.instance_url:
            await to_thread.run_sync(self._store.set_value, INSTANCE_URL, instance_url)

    def _delete_all(self) -> None:
        self._store.delete(list(self._store.digests()))
        cursors = [f"{CURSOR}{name}" for name in self._store.list_values(CURSOR)]
        for name in (MIRRORED_AT, CATEGORIES, LANGUAGES, INSTANCE_URL, *cursors):
            self._store.delete_value(name)

    def _finish(self, started: datetime, languages: Sequence[str]) -> None:
        known = set(languages) | set(self._store.facets().get("language", ()))
        self._store.set_value(LANGUAGES, json.dumps(sorted(known)))
        self._store.set_value(MIRRORED_AT, started.strftime("%Y-%m-%dT%H:%M:%SZ"))

    async def _load_changes(self, kind: ArticleType) -> None:
        """Load changes, oldest first, so that an interrupted sync can resume."""
        # Includes the body fields, so that a change of those reloads all articles.
        cursor = f"{CURSOR}{kind.name}:{','.join(item.name for item in kind.bodies)}:{FORMAT}"
        since = await to_thread.run_sync(self._store.get_value, cursor)
        condition = f" AND SystemModstamp >= {since}" if since else ""
        select = f"{_select(kind)} WHERE {ONLINE}{condition} ORDER BY SystemModstamp, Id"
        page = await self._live.client.query(select)
        self._total += page["totalSize"]
        while True:
            await self._save(kind, page["records"])
            if page["records"]:
                last = _datetime_literal(str(page["records"][-1]["SystemModstamp"]))
                await to_thread.run_sync(self._store.set_value, cursor, last)
            if page["done"]:
                return
            page = await self._live.client.more(page["nextRecordsUrl"])

    async def _load_missing(self, kind: ArticleType, online: set[str]) -> None:
        """Load published articles that became visible without a change."""
        known = await to_thread.run_sync(self._store.digests)
        missing = sorted(online - known.keys())
        if missing:
            rows = await self._live.client.rows_by_id(_select(kind), missing)
            self._total += len(rows)
            await self._save(kind, rows)

    async def _save(self, kind: ArticleType, rows: Sequence[Mapping[str, Any]]) -> None:
        for start in range(0, len(rows), BATCH_SIZE):
            batch = rows[start : start + BATCH_SIZE]
            self._changed += await to_thread.run_sync(_save_changed, self._store, kind, batch)
            self._done += len(batch)
            self._on_progress(self._done, self._total)
        self._check()

    async def _load_categories(self, types: Sequence[ArticleType]) -> None:
        """Store the articles of each data category, and the categories below each."""
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
            logger.info("The org has no data categories", extra={"action": "no_categories"})
            return
        below: dict[str, list[str]] = {}
        labels: dict[str, str] = {}
        for group in groups.get("categoryGroups", []):
            labels[group["name"]] = group.get("label") or group["name"]
            for category in group.get("topCategories", []):
                _collect_below(group["name"], category, below, labels)
        categories = json.dumps({"below": below, "articles": articles, "labels": labels})
        await to_thread.run_sync(self._store.set_value, CATEGORIES, categories)


def _collect_below(
    group: str, category: Mapping[str, Any], below: dict[str, list[str]], labels: dict[str, str]
) -> list[str]:
    """Return a category and all below it; fill `below` with the same for each of them, and `labels`."""
    key, names = f"{group}.{category['name']}", [category["name"]]
    for child in category.get("childCategories") or []:
        names += _collect_below(group, child, below, labels)
    below[key], labels[key] = names, category.get("label") or category["name"]
    return names


def _select(kind: ArticleType) -> str:
    bodies = "".join(f", {item.name}" for item in kind.bodies)
    return f"SELECT {kind.selection}, SystemModstamp{bodies} FROM {kind.name}"


def _save_changed(store: Store, kind: ArticleType, rows: Sequence[Mapping[str, Any]]) -> int:
    """Save the articles that are new or changed; return their number."""
    known = store.digests()
    documents = [_to_document(kind, row) for row in rows]
    changed = [(document, chunks) for document, chunks in documents if known.get(document.id) != document.digest]
    store.put(changed)
    return len(changed)


def _to_document(kind: ArticleType, row: Mapping[str, Any]) -> tuple[Document, list[Chunk]]:
    article = replace(article_of(row), body=kind.body(row), fields_left_out=kind.left_out)
    facts = {key: value for key, value in vars(article).items() if key not in OF_A_SEARCH}
    text = json.dumps(facts, ensure_ascii=False, sort_keys=True)
    parts = json.dumps([vars(part) for part in kind.parts(row)], ensure_ascii=False)
    keys = {ARTICLE_ID: article.article_id, URL_NAME: (article.url_name or "").lower()}
    digest = sha256(f"{text}{parts}".encode()).hexdigest()
    document = Document(article.id, article.title, digest, {ARTICLE: text, PARTS: parts, **keys})
    blocks = (f"# {article.title}", article.summary or "", kind.markdown(row))
    pages = [Page("\n\n".join(block for block in blocks if block))]
    facets = {"language": (article.language or DEFAULT_LANGUAGE).lower(), "article": article.id}
    return document, chunk_pages(article.id, pages, SPLIT, facets)


def _embed_chunks(store: Store, index: LiveIndex) -> None:
    embedder = index.embedder
    if embedder is None:
        return
    from bedstone.search.indexer import embed_missing  # noqa: PLC0415 - loads numpy

    try:
        index.ensure_model()
        embed_missing(store, embedder)
    except BedstoneError as error:  # keyword search still works; the next sync retries
        logger.warning("Cannot embed articles: %s", error.message, extra={"action": "no_vectors"})


def _datetime_literal(moment: str) -> str:
    """Return a timestamp of a reply as a SOQL literal."""
    return moment.replace("+0000", "Z")
