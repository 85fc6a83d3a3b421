"""What the article tools take and answer, as the contract prints it; what it does not print is optional."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from bedstone.toolkit import Arguments, Result

LANGUAGE = r"^[A-Za-z]{2,3}(_[A-Za-z]{2,4})?$"


class SearchArticles(Arguments):
    query: str = Field(description="Search keywords (natural language or specific terms)", min_length=1)
    language: Annotated[str, StringConstraints(pattern=LANGUAGE)] = Field(
        "en_US", description="Article language filter"
    )
    limit: int = Field(10, ge=1, le=25)
    data_categories: dict[str, str] = Field(
        default_factory=dict,
        max_length=3,
        description="Only articles in these data categories, by group: {Group: Category}; those below count too",
    )


class GetArticle(Arguments):
    article_id: str = Field(description="Knowledge Article Version ID", min_length=1)


class ArticleLine(Result):
    id: str = Field(description="Knowledge Article Version ID")
    title: str
    summary: str | None = Field(description="Article summary/excerpt")
    url_name: str | None = Field(description="URL-safe article identifier")
    last_published: str | None = Field(json_schema_extra={"format": "date-time"})
    article_type: str | None
    article_number: str | None = Field(None, description="Number people know the article by")
    snippet: str | None = Field(None, description="Passage that matched")


class Warned(Result):
    code: Literal["RATE_LIMIT_WARNING"]
    message: str
    details: dict[str, Any]


class FoundArticles(Result):
    articles: list[ArticleLine]
    total_count: int = Field(description="How many articles match")
    search_method: Literal["sosl", "soql"] | None = Field(None, description="Search method used")
    total_is_minimum: bool | None = Field(None, description="True where there may be more than were counted")
    source: Literal["mirror"] | None = Field(None, description="Where the answer is not the org's own")
    mirrored_at: str | None = Field(None, description="When the mirror was last in step with the org")
    warnings: list[Warned] | None = None


class ArticleText(Result):
    id: str
    title: str
    summary: str | None
    body: str = Field(description="Full article content (HTML or plain text, stripped of tags)")
    url_name: str | None
    last_published: str | None = Field(json_schema_extra={"format": "date-time"})
    article_type: str | None
    article_number: str | None = Field(None, description="Number people know the article by")
    language: str | None = None


class OneArticle(Result):
    article: ArticleText
    source: Literal["mirror"] | None = Field(None, description="Where the answer is not the org's own")
    mirrored_at: str | None = Field(None, description="When the mirror was last in step with the org")
    warnings: list[Warned] | None = None
