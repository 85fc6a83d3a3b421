"""Where articles come from: the org, the mirror, or the org with the mirror behind it."""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar

import anyio
from anyio import to_thread

from bedstone.salesforce.client import LimitExceeded, OrgUnavailable, Usage
from bedstone.services.articles.article import Article, CallsRunningOut, Found, Wanted
from bedstone.services.articles.live import LiveArticles, checked_term
from bedstone.services.articles.mirror import ArticleMirror, SyncReport, Tell

logger = logging.getLogger(__name__)

Source = Literal["live", "mirror", "live-or-mirror"]
Answer = TypeVar("Answer")
Warnings = tuple[Mapping[str, Any], ...]
PATIENCE_SECONDS, DOWN_SECONDS = 10.0, 30.0  # for an org that does not answer, where there is a mirror
REMEMBERED_SECONDS = 300.0  # how long the last known count of calls keeps us from asking


class ArticleService:
    """Asks where the operator wants it, and says when the org's calls run out.

    `warn_share` of the calls used is told with each answer. Fewer calls left than `call_floor` is an error.
    """

    def __init__(
        self,
        live: Callable[[], LiveArticles],
        mirror: ArticleMirror,
        *,
        source: Source = "live-or-mirror",
        warn_share: float = 0.8,
        call_floor: int = 0,
    ) -> None:
        self._make_live = live
        self._live: LiveArticles | None = None
        self.mirror = mirror
        self._source = source
        self._warn_share = warn_share
        self._call_floor = call_floor
        self._asked = self._down_until = float("-inf")

    async def close(self) -> None:
        """Let go of connections and files."""
        if self._live is not None:
            await self._live.client.close()
        await to_thread.run_sync(self.mirror.close)

    @property
    def live(self) -> LiveArticles:
        """The org, opened when it is first asked."""
        if self._live is None:
            self._live = self._make_live()
        return self._live

    async def sync(self, tell: Tell = lambda done, total: None) -> SyncReport:
        """Bring the mirror up to date, as long as the operator's calls last."""
        return await self.mirror.sync(self.live, tell, self._check_left)

    async def search(self, wanted: Wanted) -> Found:
        """The best articles."""
        checked_term(wanted)
        found, _, warnings = await self._ask(lambda live: live.search(wanted), lambda: self.mirror.search(wanted))
        return replace(found, warnings=warnings)

    async def get(self, article_id: str) -> tuple[Article, str | None, Warnings]:
        """An article by its id; when it was mirrored, if it comes from there; warnings."""
        return await self._ask(lambda live: live.get(article_id), lambda: self.mirror.get(article_id))

    async def by_url_name(self, url_name: str) -> Article:
        """An article by its name in addresses."""
        answer = await self._ask(lambda live: live.by_url_name(url_name), lambda: self.mirror.by_url_name(url_name))
        return answer[0]

    async def url_names(self, beginning: str, most: int) -> list[str]:
        """Names in addresses that begin so."""
        answer = await self._ask(lambda live: live.url_names(beginning, most), lambda: self.mirror.url_names(beginning))
        return answer[0][:most]

    async def _ask(
        self, live: Callable[[LiveArticles], Awaitable[Answer]], mirrored: Callable[[], Answer]
    ) -> tuple[Answer, str | None, Warnings]:
        """What the org says, or the mirror in its place: with the time it was in step, and with warnings."""
        mirrored_at = None if self._source == "live" else await to_thread.run_sync(lambda: self.mirror.mirrored_at)
        is_down = mirrored_at is not None and time.monotonic() < self._down_until
        if self._source == "mirror" or is_down:
            return await to_thread.run_sync(mirrored), mirrored_at, ()
        try:
            self._check_floor()
            with anyio.fail_after(PATIENCE_SECONDS if mirrored_at is not None else None):
                answer = await live(self.live)
            self._asked = time.monotonic()
            self._check_floor()
        except (OrgUnavailable, LimitExceeded, TimeoutError) as error:
            if mirrored_at is None:
                raise
            if not isinstance(error, CallsRunningOut):
                self._down_until = time.monotonic() + DOWN_SECONDS
            logger.warning("Answering from the mirror: %s", error, extra={"action": "mirrored"})
            return await to_thread.run_sync(mirrored), mirrored_at, ()
        return answer, None, self._warnings()

    @property
    def _usage(self) -> Usage | None:
        return self._live.client.usage if self._live is not None else None

    def _check_floor(self) -> None:
        if time.monotonic() - self._asked < REMEMBERED_SECONDS:
            self._check_left()

    def _check_left(self) -> None:
        usage = self._usage
        if usage is not None and usage.limit - usage.used < self._call_floor:
            left = max(0, usage.limit - usage.used)
            raise CallsRunningOut(
                f"{left} of the org's {usage.limit} calls of the day are left; the operator keeps the last "
                f"{self._call_floor} back.",
                details={"used": usage.used, "limit": usage.limit},
            )

    def _warnings(self) -> Warnings:
        usage = self._usage
        if usage is None or usage.share < self._warn_share:
            return ()
        message = f"{usage.used} of the org's {usage.limit} calls of the day are used up."
        return (
            {
                "code": "RATE_LIMIT_WARNING",
                "message": message,
                "details": {"used": usage.used, "limit": usage.limit},
            },
        )
