"""The salesforce_knowledge toolset: find published articles, read one."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from bedstone.errors import BedstoneError, InvalidInput, NotFound, UnknownResource
from bedstone.toolkit import Reply, Resource, ResourceContents, ResourceTemplate, Toolset, tool
from bedstone.toolsets.salesforce_knowledge.contract import (
    ArticleLine,
    ArticleText,
    FoundArticles,
    GetArticle,
    OneArticle,
    SearchArticles,
    Warned,
)

if TYPE_CHECKING:  # the engine is imported when it is first asked, not when the server starts
    from bedstone.library.articles.article import Article
    from bedstone.library.articles.service import ArticleService

logger = logging.getLogger(__name__)

ADDRESS = "salesforce-knowledge://article/"
MOST_COMPLETIONS = 100
CODES = frozenset(
    {
        "NOT_FOUND",
        "PERMISSION_DENIED",
        "RATE_LIMIT_WARNING",
        "RATE_LIMIT_EXCEEDED",
        "INVALID_INPUT",
        "SF_API_ERROR",
        "AUTH_ERROR",
        "KNOWLEDGE_DISABLED",
    }
)


class SalesforceKnowledgeToolset(Toolset):
    """Serves one org's published articles."""

    label = "salesforce_knowledge"
    title = "Salesforce Knowledge"
    server_name = "salesforce-knowledge"
    instructions = (
        "Knowledge articles of the company's Salesforce org: search_articles finds published ones by keywords, "
        "get_article_by_id gives the full text of one. If Knowledge is disabled, tell the user that an administrator "
        "must enable it."
    )

    def __init__(
        self, make_service: "Callable[[], ArticleService]", *, sync_minutes: int = 0, read_only: bool = False
    ) -> None:
        super().__init__(read_only=read_only)
        self._make_service = make_service
        self._made: ArticleService | None = None
        self._sync_minutes = sync_minutes

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[object]:
        """Keep the mirror in step, if that is wanted; let go of connections at the end."""
        syncing = asyncio.create_task(self._keep_in_step()) if self._sync_minutes and not self._read_only else None
        try:
            yield self
        finally:
            if syncing is not None:
                syncing.cancel()
                await asyncio.wait([syncing])
            if self._made is not None:
                await self._made.close()
                self._made = None

    @tool(
        "search_articles",
        "Search Salesforce Knowledge Articles by keyword with relevance ranking. "
        "Uses SOSL for full-text search when available, falls back to SOQL LIKE queries.",
        title="Search articles",
        open_world=True,
    )
    async def search(self, arguments: SearchArticles) -> FoundArticles:
        """Published articles, the best first."""
        from bedstone.library.articles.article import Wanted  # noqa: PLC0415 - with the engine

        found = await self._service.search(
            Wanted(arguments.query, arguments.language, arguments.limit, arguments.data_categories)
        )
        return FoundArticles(
            articles=[_line(article) for article in found.articles],
            total_count=found.total,
            search_method=found.method,
            total_is_minimum=found.is_minimum or None,
            source="mirror" if found.mirrored_at else None,
            mirrored_at=found.mirrored_at,
            warnings=_warned(found.warnings),
        )

    @tool(
        "get_article_by_id",
        "Retrieve the full content of a Knowledge Article by its version ID.",
        title="Read an article",
        open_world=True,
    )
    async def get(self, arguments: GetArticle) -> OneArticle:
        """The text of one article."""
        article, mirrored_at, warnings = await self._service.get(arguments.article_id)
        return OneArticle(
            article=ArticleText(
                id=article.id,
                title=article.title,
                summary=article.summary,
                body=article.body,
                url_name=article.url_name,
                last_published=article.last_published,
                article_type=article.article_type,
                article_number=article.article_number,
                language=article.language,
            ),
            source="mirror" if mirrored_at else None,
            mirrored_at=mirrored_at,
            warnings=_warned(warnings),
        )

    def render_error(self, error: BedstoneError) -> Reply:
        """The contract's envelope and codes."""
        details: Any = error.details.get("details")
        if isinstance(error, InvalidInput):
            details = {"field": error.details.get("parameter")}
        code = error.code if error.code in CODES else _code(error)
        return Reply({"error": {"code": code, "message": error.message, "details": details}}, is_error=True)

    def resources(self) -> Sequence[Resource]:
        """Articles that are mirrored; others have addresses too, and are found by search."""
        try:
            mirror = self._service.mirror
        except BedstoneError:  # no org yet
            return ()
        if mirror.mirrored_at is None:
            return ()
        return [
            Resource(f"{ADDRESS}{quote(name)}", name, f"Knowledge article {name}", "text/plain")
            for name in mirror.url_names()
        ]

    def resource_templates(self) -> Sequence[ResourceTemplate]:
        """Every published article by its name."""
        return [
            ResourceTemplate(
                f"{ADDRESS}{{urlName}}", "Knowledge article", "A published article by its URL name", "text/plain"
            )
        ]

    async def read_resource(self, uri: str) -> ResourceContents:
        """An article's title, summary and text."""
        name = unquote(uri.removeprefix(ADDRESS))
        if not uri.startswith(ADDRESS) or not name:
            raise UnknownResource(f"Resource not found: {uri}", uri=uri)
        try:
            article = await self._service.by_url_name(name)
        except NotFound:
            raise UnknownResource(f"Resource not found: {uri}", uri=uri) from None
        parts = (article.title, article.summary or "", article.body)
        return ResourceContents(uri, "\n\n".join(part for part in parts if part), "text/plain")

    async def complete(self, subject: str, argument: str, value: str) -> Sequence[str]:
        """Names of articles that begin so."""
        if subject != f"{ADDRESS}{{urlName}}" or argument != "urlName":
            return ()
        return await self._service.url_names(value, MOST_COMPLETIONS)

    @property
    def service(self) -> "ArticleService":
        """The articles, for whoever shows more of them than a tool does."""
        return self._service

    @property
    def _service(self) -> "ArticleService":
        if self._made is None:
            self._made = self._make_service()
        return self._made

    async def _keep_in_step(self) -> None:
        while True:
            await asyncio.sleep(1)  # an org that starts with us listens by then
            try:
                report = await self._service.sync()
                logger.info(
                    "Articles mirrored: %d changed, %d removed, %d in all",
                    report.changed,
                    report.removed,
                    report.total,
                    extra={"action": "articles_mirrored"},
                )
            except BedstoneError as error:
                logger.warning("Articles could not be mirrored: %s", error.message, extra={"action": "not_mirrored"})
            except Exception:  # the next time may be better
                logger.exception("Articles could not be mirrored", extra={"action": "not_mirrored"})
            await asyncio.sleep(self._sync_minutes * 60)


def _code(error: BedstoneError) -> str:
    if isinstance(error, InvalidInput):
        return "INVALID_INPUT"
    return "AUTH_ERROR" if error.code == "unknown_org" else "SF_API_ERROR"


def _line(article: "Article") -> ArticleLine:
    return ArticleLine(
        id=article.id,
        title=article.title,
        summary=article.summary,
        url_name=article.url_name,
        last_published=article.last_published,
        article_type=article.article_type,
        article_number=article.article_number,
        snippet=article.snippet,
    )


def _warned(warnings: Sequence[Any]) -> list[Warned] | None:
    return [Warned(**warning) for warning in warnings] or None
