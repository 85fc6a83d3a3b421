"""An article, what is asked for, and what is answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bedstone.errors import NotFound
from bedstone.salesforce.client import LimitExceeded, SalesforceError

Method = Literal["sosl", "soql"]
DEFAULT_LANGUAGE = "en_US"


class KnowledgeDisabled(SalesforceError):
    """The org has no Knowledge, or shows none of it to this user."""

    code = "KNOWLEDGE_DISABLED"


class CallsRunningOut(LimitExceeded):
    """Fewer calls of the day are left than the operator keeps back."""

    code = "RATE_LIMIT_WARNING"


class ArticleNotFound(NotFound):
    """No published article has that id or name."""

    code = "NOT_FOUND"


@dataclass(frozen=True)
class Article:
    """A published version of an article; `body` is its text, where it was asked for."""

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
    why: str | None = None  # the mirror says by what it was found
    body: str = ""


@dataclass(frozen=True)
class ArticleQuery:
    """What is searched for. `categories` are data categories by their group; those below count too."""

    query: str
    language: str = DEFAULT_LANGUAGE
    limit: int = 10
    categories: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ArticlePage:
    """The best articles, and how many match; with `is_minimum` there may be more. No `method` means the mirror."""

    articles: list[Article]
    total: int
    method: Method | None = None
    is_minimum: bool = False
    mirrored_at: str | None = None
    warnings: tuple[Mapping[str, Any], ...] = ()
