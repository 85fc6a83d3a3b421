"""The articles of an org: read from the org, from the mirror, or from the mirror while the org is unavailable."""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

import anyio
from anyio import to_thread

from bedstone.salesforce.client import LimitExceeded, OrgUnavailable, Usage
from bedstone.search.matching import Matcher
from bedstone.search.snippets import snippet
from bedstone.services.articles.article import ApiReserveReached, Article, ArticlePage, ArticleQuery, UsageWarning
from bedstone.services.articles.live import LiveArticles, build_search_term
from bedstone.services.articles.mirror import ArticleMirror
from bedstone.services.articles.mirror_sync import OnProgress, SyncReport
from bedstone.services.catalog import FindRequest, Found, FoundItem
from bedstone.services.orgs import default_org, open_client, open_orgs
from bedstone.services.schedule import PeriodicTask
from bedstone.services.service import DATE, Service, ServiceContext
from bedstone.settings import layout

logger = logging.getLogger(__name__)

Source = Literal["live", "mirror", "live-or-mirror"]
Answer = TypeVar("Answer")
Warnings = tuple[UsageWarning, ...]
LIVE_TIMEOUT_SECONDS = 10.0  # if the mirror can answer instead
RETRY_SECONDS = 30.0  # the mirror answers for this long after the org failed
USAGE_TTL_SECONDS = 300.0  # after that, a request is sent to learn the current usage


class ArticleService(Service):
    """Queries the org or the mirror, as configured, and watches the org's daily API limit.

    Responses include a warning when `warn_share` of the limit is used. With fewer than `call_floor` calls left,
    requests fail with `ApiReserveReached` or are answered from the mirror.
    """

    def __init__(
        self,
        live: Callable[[], LiveArticles],
        mirror: ArticleMirror,
        *,
        source: Source = "live-or-mirror",
        warn_share: float = 0.8,
        call_floor: int = 0,
        sync_minutes: int = 0,
    ) -> None:
        self._make_live = live
        self._live: LiveArticles | None = None
        self.mirror = mirror
        self._source = source
        self._warn_share = warn_share
        self._call_floor = call_floor
        self._usage_read_at = self._retry_at = float("-inf")
        self._periodic_sync = PeriodicTask(self._sync_and_report, sync_minutes, "Mirroring articles")

    async def start(self) -> None:
        """Begin periodic syncs of the mirror, if they are configured."""
        self._periodic_sync.start()

    async def aclose(self) -> None:
        """Stop syncing; close connections and files."""
        await self._periodic_sync.stop()
        if self._live is not None:
            await self._live.client.close()
        await to_thread.run_sync(self.mirror.close)

    async def figures(self) -> Sequence[tuple[str, str]]:
        """Return how many articles are mirrored, and how fresh the mirror is."""
        mirrored_at, count = await to_thread.run_sync(lambda: (self.mirror.mirrored_at, self.mirror.count))
        if not mirrored_at:
            return [("mirrored", "not yet")]
        return [("articles", f"{count:,}"), ("mirrored", mirrored_at[DATE])]

    def problems(self) -> Sequence[str]:
        """Return why the mirror cannot be searched completely, where it may have to answer; the org is not asked."""
        problem = (self.mirror.find_problem() or self.mirror.problem) if self._source != "live" else None
        return [problem] if problem else []

    @property
    def live(self) -> LiveArticles:
        """The articles in the org; the client is created on first use."""
        if self._live is None:
            self._live = self._make_live()
        return self._live

    async def sync(self, on_progress: OnProgress = lambda done, total: None) -> SyncReport:
        """Update the mirror; stop when only the reserved API calls are left."""
        return await self.mirror.sync(self.live, on_progress, self._check_reserve)

    async def _sync_and_report(self) -> str:
        report = await self.sync()
        return f"Articles mirrored: {report.changed} changed, {report.removed} removed, {report.total} in total"

    async def search(self, query: ArticleQuery) -> ArticlePage:
        """Return the best articles for a query."""
        build_search_term(query)  # the mirror rejects the same queries as the org
        page, _, warnings = await self._read(lambda live: live.search(query), lambda: self.mirror.search(query))
        return replace(page, warnings=warnings)

    async def find(self, request: FindRequest) -> Found:
        """Return the best articles for a page; keyword or semantic search alone uses the mirror."""
        query = ArticleQuery(request.query, limit=request.limit)
        if request.mode == "hybrid":
            page = await self.search(query)
        else:
            page = await to_thread.run_sync(self.mirror.search, query, request.mode)
        matcher = Matcher(request.query)
        return Found(
            [
                FoundItem(
                    id=article.id,
                    title=article.title,
                    location=" · ".join(part for part in (article.article_type, article.article_number) if part),
                    address=f"/salesforce/articles/{article.id}",
                    snippet=snippet(article.snippet or article.summary or "", matcher),
                    matched_by=article.matched_by,
                    score=article.score,
                )
                for article in page.articles
            ]
        )

    async def get(self, article_id: str) -> tuple[Article, str | None, Warnings]:
        """Return an article, the time of the last sync if it comes from the mirror, and warnings."""
        return await self._read(lambda live: live.get(article_id), lambda: self.mirror.get(article_id))

    async def by_url_name(self, url_name: str) -> Article:
        """Return the article with a URL name."""
        article, *_ = await self._read(
            lambda live: live.by_url_name(url_name), lambda: self.mirror.by_url_name(url_name)
        )
        return article

    async def url_names(self, prefix: str, limit: int) -> list[str]:
        """Return URL names that start with a prefix."""
        names, *_ = await self._read(lambda live: live.url_names(prefix, limit), lambda: self.mirror.url_names(prefix))
        return names[:limit]

    async def _read(
        self, live: Callable[[LiveArticles], Awaitable[Answer]], mirrored: Callable[[], Answer]
    ) -> tuple[Answer, str | None, Warnings]:
        """Read from the org, or from the mirror while the org is unavailable.

        Return the answer, the time of the last sync if the mirror answered, and warnings.
        """
        mirrored_at = None if self._source == "live" else await to_thread.run_sync(lambda: self.mirror.mirrored_at)
        is_down = mirrored_at is not None and time.monotonic() < self._retry_at
        if self._source == "mirror" or is_down:
            return await to_thread.run_sync(mirrored), mirrored_at, ()
        try:
            self._check_recent_usage()
            with anyio.fail_after(LIVE_TIMEOUT_SECONDS if mirrored_at is not None else None):
                answer = await live(self.live)
            self._usage_read_at = time.monotonic()
            self._check_reserve()
        except (OrgUnavailable, LimitExceeded, TimeoutError) as error:
            if mirrored_at is None:
                raise
            if not isinstance(error, ApiReserveReached):
                self._retry_at = time.monotonic() + RETRY_SECONDS
            logger.warning("Answering from the mirror: %s", error, extra={"action": "mirrored"})
            return await to_thread.run_sync(mirrored), mirrored_at, ()
        return answer, None, self._warnings()

    @property
    def _usage(self) -> Usage | None:
        return self._live.client.usage if self._live is not None else None

    def _check_recent_usage(self) -> None:
        """Check the reserve, unless the known usage is too old."""
        if time.monotonic() - self._usage_read_at < USAGE_TTL_SECONDS:
            self._check_reserve()

    def _check_reserve(self) -> None:
        usage = self._usage
        if usage is not None and usage.limit - usage.used < self._call_floor:
            left = max(0, usage.limit - usage.used)
            raise ApiReserveReached(
                f"{left} of the org's {usage.limit} calls of the day are left; the operator keeps the last "
                f"{self._call_floor} back.",
                details={"used": usage.used, "limit": usage.limit},
            )

    def _warnings(self) -> Warnings:
        usage = self._usage
        if usage is None or usage.share < self._warn_share:
            return ()
        return (UsageWarning(usage.used, usage.limit),)


def open_articles(context: ServiceContext) -> ArticleService:
    """Return the service over the articles of the configured org."""
    settings, options = context.settings, context.settings.salesforce
    orgs = open_orgs(settings)
    org = orgs.get(default_org(settings))
    return ArticleService(
        lambda: LiveArticles(open_client(orgs, org), options.article_body_fields, options.article_excluded_fields),
        ArticleMirror(layout.salesforce(settings) / "articles" / orgs.folder_name(org), context.embedders.get),
        source=options.article_source,
        warn_share=options.warn_share,
        call_floor=options.call_floor,
        sync_minutes=0 if settings.read_only else options.sync_minutes,
    )
