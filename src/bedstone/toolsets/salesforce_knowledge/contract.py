"""Arguments and results of the article tools, as in the contract; what it does not print is optional."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from bedstone.toolkit import Arguments, Citation, Result

LANGUAGE = r"^[A-Za-z]{2,3}([_-][A-Za-z]{2,4})?$"


class SearchArticles(Arguments):
    query: str = Field(description="Search keywords (natural language or specific terms)", min_length=1)
    language: Annotated[str, StringConstraints(pattern=LANGUAGE)] = Field(
        "en_US", description="Article language filter"
    )
    limit: int = Field(10, ge=1, le=25)
    data_categories: dict[str, str] = Field(
        default_factory=dict,
        max_length=3,
        description="Only articles in these data categories or below: {Group: Category}",
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
    article_number: str | None = Field(None, description="Article number, as users see it")
    snippet: str | None = Field(None, description="Excerpt that matches the query")
    citation: Citation | None = Field(None, description="Where the excerpt comes from")


class Warned(Result):
    code: Literal["RATE_LIMIT_WARNING"]
    message: str
    details: dict[str, Any]


class FoundArticles(Result):
    articles: list[ArticleLine]
    total_count: int = Field(description="Number of matching articles")
    search_method: Literal["sosl", "soql"] | None = Field(None, description="Search method used")
    broadened: bool | None = Field(
        None, description="True if few articles have all words, so articles with some of them were added"
    )
    all_words_count: int | None = Field(None, description="If broadened: number of articles that have all words")
    total_is_minimum: bool | None = Field(None, description="True if total_count is a lower bound")
    source: Literal["mirror"] | None = Field(None, description="Set if the answer comes from the mirror")
    mirrored_at: str | None = Field(None, description="Time of the last sync of the mirror")
    warnings: list[Warned] | None = None


class ArticleText(Result):
    id: str
    title: str
    summary: str | None
    body: str = Field(description="Full article content (HTML or plain text, stripped of tags)")
    url_name: str | None
    last_published: str | None = Field(json_schema_extra={"format": "date-time"})
    article_type: str | None
    article_number: str | None = Field(None, description="Article number, as users see it")
    language: str | None = None
    fields_left_out: list[str] | None = Field(None, description="Internal fields that the body does not include")


class OneArticle(Result):
    article: ArticleText
    source: Literal["mirror"] | None = Field(None, description="Set if the answer comes from the mirror")
    mirrored_at: str | None = Field(None, description="Time of the last sync of the mirror")
    warnings: list[Warned] | None = None
