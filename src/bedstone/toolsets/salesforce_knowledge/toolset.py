"""The salesforce_knowledge toolset: search published articles, read one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from anyio import to_thread

from bedstone.errors import BedstoneError, NotFound, UnknownResource
from bedstone.toolkit import (
    Citation,
    Links,
    Reply,
    Resource,
    ResourceContents,
    ResourceTemplate,
    Result,
    Toolset,
    ToolsetContext,
    tool,
)
from bedstone.toolkit.error_envelope import render_error_envelope
from bedstone.toolsets.salesforce_knowledge.contract import (
    ArticleLine,
    ArticleText,
    FoundArticles,
    GetArticle,
    OneArticle,
    SearchArticles,
    Warned,
)

if TYPE_CHECKING:  # the engine is imported on first use, not when a server starts
    from bedstone.services.articles.article import Article, UsageWarning
    from bedstone.services.articles.found import ArticleNaming
    from bedstone.services.articles.service import ArticleService
    from bedstone.services.service import Handle

URI_PREFIX = "salesforce-knowledge://article/"
MAX_COMPLETIONS = 100
ERROR_CODES = {  # by the code of an error class, or of its nearest base class
    "invalid_input": "INVALID_INPUT",
    "article_not_found": "NOT_FOUND",
    "record_not_found": "NOT_FOUND",
    "unknown_org": "AUTH_ERROR",
    "auth_error": "AUTH_ERROR",
    "permission_denied": "PERMISSION_DENIED",
    "knowledge_disabled": "KNOWLEDGE_DISABLED",
    "api_reserve_reached": "RATE_LIMIT_WARNING",
    "limit_exceeded": "RATE_LIMIT_EXCEEDED",
}


class SalesforceKnowledgeToolset(Toolset):
    """Serves the published articles of one org."""

    label = "salesforce_knowledge"
    title = "Articles"
    server_name = "salesforce-knowledge"
    instructions = (
        "Knowledge articles of the company's Salesforce org: search_articles finds published ones by keywords, "
        "get_article_by_id returns the full text of one. If Knowledge is disabled, tell the user that an administrator "
        "must enable it."
    )

    def __init__(
        self, articles: "Handle[ArticleService]", *, read_only: bool = False, links: Links | None = None
    ) -> None:
        super().__init__(articles, read_only=read_only)
        self._articles = articles
        self._links = links or Links()

    @classmethod
    def build(cls, context: ToolsetContext) -> "SalesforceKnowledgeToolset":
        """Serve the articles of the configured org."""
        assert context.service is not None
        return cls(context.service, read_only=context.read_only, links=context.links)

    @tool(
        "search_articles",
        "Search Salesforce Knowledge Articles by keyword with relevance ranking. "
        "Uses SOSL for full-text search when available, falls back to SOQL LIKE queries.",
        title="Search articles",
        open_world=True,
    )
    async def search(self, arguments: SearchArticles) -> FoundArticles:
        """Return published articles, the best first."""
        from bedstone.services.articles.article import ArticleQuery  # noqa: PLC0415 - with the engine

        service = await self._articles.open()
        page = await service.search(
            ArticleQuery(arguments.query, arguments.language, arguments.limit, arguments.data_categories)
        )
        naming = await service.naming()
        return FoundArticles(
            articles=[line_of(article, naming, self._links, arguments.query) for article in page.articles],
            total_count=page.total,
            search_method=page.method,
            broadened=page.matching_all is not None or None,
            all_words_count=page.matching_all,
            total_is_minimum=page.is_minimum or None,
            source="mirror" if page.mirrored_at else None,
            mirrored_at=page.mirrored_at,
            warnings=_to_warnings(page.warnings),
        )

    @tool(
        "get_article_by_id",
        "Retrieve the full content of a Knowledge Article by its version ID.",
        title="Read an article",
        open_world=True,
    )
    async def get(self, arguments: GetArticle) -> OneArticle:
        """Return the text of one article."""
        return answer_with(*await (await self._articles.open()).get(arguments.article_id))

    def render_error(self, error: BedstoneError) -> Reply:
        """Render an error in the envelope of this contract."""
        return render_error_envelope(error, ERROR_CODES, "SF_API_ERROR")

    async def resources(self) -> Sequence[Resource]:
        """List the mirrored articles; others can be read by their URL name too."""
        try:
            mirror = self._articles.get().mirror
        except BedstoneError:  # no org yet
            return ()
        if mirror.mirrored_at is None:
            return ()
        return [
            Resource(f"{URI_PREFIX}{quote(name)}", name, f"Knowledge article {name}", "text/plain")
            for name in await to_thread.run_sync(mirror.url_names)
        ]

    def resource_templates(self) -> Sequence[ResourceTemplate]:
        """Return the template for an article by its URL name."""
        return [
            ResourceTemplate(
                f"{URI_PREFIX}{{urlName}}", "Knowledge article", "A published article by its URL name", "text/plain"
            )
        ]

    async def read_resource(self, uri: str) -> ResourceContents:
        """Return title, summary and text of an article."""
        name = unquote(uri.removeprefix(URI_PREFIX))
        if not uri.startswith(URI_PREFIX) or not name:
            raise UnknownResource(f"Resource not found: {uri}", uri=uri)
        try:
            article = await (await self._articles.open()).by_url_name(name)
        except NotFound:
            raise UnknownResource(f"Resource not found: {uri}", uri=uri) from None
        return ResourceContents(uri, article.text, "text/plain")

    async def complete(self, subject: str, argument: str, value: str) -> Sequence[str]:
        """Complete the URL name of an article."""
        if subject != f"{URI_PREFIX}{{urlName}}" or argument != "urlName":
            return ()
        return await (await self._articles.open()).url_names(value, MAX_COMPLETIONS)


def line_of(article: "Article", naming: "ArticleNaming", links: Links | None = None, query: str = "") -> ArticleLine:
    """Return what search_articles says about an article; of a hit of the org, the passage is not known."""
    start, end = article.span or (None, None)
    url = links.url(naming.address(article, "" if article.span else query)) if links is not None else None
    citation = Citation(id=naming.item_id(article), url=url, start=start, end=end)
    return ArticleLine(**_facts(article, ArticleLine, citation=citation))


def answer_with(article: "Article", mirrored_at: str | None, warnings: "Sequence[UsageWarning]") -> OneArticle:
    """Return what get_article_by_id answers with an article."""
    return OneArticle(
        article=ArticleText(**_facts(article, ArticleText, fields_left_out=list(article.fields_left_out) or None)),
        source="mirror" if mirrored_at else None,
        mirrored_at=mirrored_at,
        warnings=_to_warnings(warnings),
    )


def _facts(article: "Article", result: type[Result], **others: Any) -> dict[str, Any]:
    return {name: getattr(article, name) for name in result.model_fields if name not in others} | others


def _to_warnings(warnings: "Sequence[UsageWarning]") -> list[Warned] | None:
    return [
        Warned(
            code="RATE_LIMIT_WARNING",
            message=f"{usage.used} of the org's {usage.limit} calls of the day are used up.",
            details={"used": usage.used, "limit": usage.limit},
        )
        for usage in warnings
    ] or None
