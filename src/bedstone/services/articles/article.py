"""An article, and the query and result page of a search for articles."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bedstone.errors import NotFound
from bedstone.salesforce.client import LimitExceeded, SalesforceError

Method = Literal["sosl", "soql"]
DEFAULT_LANGUAGE = "en_US"
SEPARATOR = "\n\n"  # between title, summary and body


class KnowledgeDisabled(SalesforceError):
    """Knowledge is not enabled in the org or for this user."""


class ApiReserveReached(LimitExceeded):
    """The remaining daily API calls are held in reserve."""


class ArticleNotFound(NotFound):
    """No published article has this id or URL name."""


@dataclass(frozen=True)
class ArticlePart:
    """The content of one field of an article, as the org has it: HTML if it is rich."""

    name: str
    label: str
    content: str
    is_rich: bool


@dataclass(frozen=True)
class Article:
    """A published version of an article; search results have no `body` and no `parts`."""

    id: str
    article_id: str
    title: str
    summary: str | None = None
    url_name: str | None = None
    last_published: str | None = None
    article_type: str | None = None
    article_number: str | None = None
    language: str | None = None
    snippet: str | None = None
    matched_by: str = ""  # which search matched; set by the mirror only
    score: float | None = None  # relevance from 0 to 1; set by the mirror only
    span: tuple[int, int] | None = None  # of the passage in `text` that matched; set by the mirror only
    passage: str = ""  # that passage
    body: str = ""
    fields_left_out: Sequence[str] = ()  # labels of internal fields that the body does not include
    parts: Sequence[ArticlePart] = ()  # what the body is made of; empty if an earlier version mirrored the article

    @property
    def translation(self) -> tuple[str, str | None]:
        """Return what stays the same when a new version is published: the article, and the language."""
        return self.article_id or self.id, self.language

    @property
    def text(self) -> str:
        """Return what agents read: title, summary and body."""
        return SEPARATOR.join(part for part in (self.title, self.summary or "", self.body) if part)


@dataclass(frozen=True)
class ArticleQuery:
    """A search. `categories` are data categories by group; they include the categories below.

    Without a language, the mirror searches every translation and returns the best of each article.
    """

    query: str
    language: str | None = DEFAULT_LANGUAGE
    limit: int = 10
    categories: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class UsageWarning:
    """Most of the org's daily API calls are used."""

    used: int
    limit: int


@dataclass(frozen=True)
class ArticlePage:
    """The best articles and the number of matches, a lower bound if `is_minimum`. Without `method`: from the mirror.

    `matching_all` is the number of articles with all words, if few have and articles with some of them were added.
    """

    articles: list[Article]
    total: int
    method: Method | None = None
    is_minimum: bool = False
    matching_all: int | None = None
    mirrored_at: str | None = None
    warnings: tuple[UsageWarning, ...] = ()
