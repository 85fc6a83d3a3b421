"""The salesforce_knowledge toolset: find published articles, read one."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from bedstone.errors import BedstoneError, NotFound, UnknownResource
from bedstone.services.schedule import repeated
from bedstone.toolkit import (
    Reply,
    Resource,
    ResourceContents,
    ResourceTemplate,
    Toolset,
    tool,
)
from bedstone.toolkit.envelope import in_envelope
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
    from bedstone.services.articles.article import Article
    from bedstone.services.articles.service import ArticleService

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
        minutes = 0 if self._read_only else self._sync_minutes
        try:
            async with repeated(self._sync, minutes, "Mirroring articles"):
                yield self
        finally:
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
        from bedstone.services.articles.article import Wanted  # noqa: PLC0415 - with the engine

        found = await self.service.search(
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
        article, mirrored_at, warnings = await self.service.get(arguments.article_id)
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
        return in_envelope(error, CODES, "SF_API_ERROR")

    def resources(self) -> Sequence[Resource]:
        """Articles that are mirrored; others have addresses too, and are found by search."""
        try:
            mirror = self.service.mirror
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
            article = await self.service.by_url_name(name)
        except NotFound:
            raise UnknownResource(f"Resource not found: {uri}", uri=uri) from None
        parts = (article.title, article.summary or "", article.body)
        return ResourceContents(uri, "\n\n".join(part for part in parts if part), "text/plain")

    async def complete(self, subject: str, argument: str, value: str) -> Sequence[str]:
        """Names of articles that begin so."""
        if subject != f"{ADDRESS}{{urlName}}" or argument != "urlName":
            return ()
        return await self.service.url_names(value, MOST_COMPLETIONS)

    @property
    def service(self) -> "ArticleService":
        """The articles, opened when they are first asked for; also for whoever shows more of them than a tool does."""
        if self._made is None:
            self._made = self._make_service()
        return self._made

    async def _sync(self) -> str:
        report = await self.service.sync()
        return f"Articles mirrored: {report.changed} changed, {report.removed} removed, {report.total} in all"


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
