"""Articles as the search over everything shows them: ids, addresses, passages."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from bedstone.search.hits import Snippet
from bedstone.search.matching import Matcher
from bedstone.services.articles.article import Article
from bedstone.services.catalog import FetchedText, FoundItem
from bedstone.services.service import parse_time

SCHEME = "article"
PAGES = "/salesforce/articles"
MAX_SNIPPET = 240
PLACE_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "


@dataclass(frozen=True)
class ArticleNaming:
    """How the articles of one org are named; `is_default` says whether a name alone means this translation."""

    org: str
    instance_url: str | None
    is_default: Callable[[Article], bool]

    def item_id(self, article: Article) -> str:
        """Return the id for `fetch`: the URL name, and the language if several translations have that name."""
        part = "" if self.is_default(article) else f"#{article.language}"
        return f"{SCHEME}:{_name(article)}{part}"

    def address(self, article: Article, query: str = "") -> str:
        """Return the page of an article, with the passage highlighted that matched; else with the words of a query."""
        span = article.span
        wanted = {
            "language": "" if self.is_default(article) else article.language,
            "q": query,
            "start": str(span[0]) if span else "",
            "end": str(span[1]) if span else "",
        }
        given = urlencode({key: value for key, value in wanted.items() if value})
        anchor = "#found" if span else ""
        return f"{PAGES}/{quote(_name(article), safe='')}{f'?{given}' if given else ''}{anchor}"

    def origin(self, article: Article) -> str:
        """Return where an article comes from: its URL in the org, or the name of the org while that is unknown."""
        return article_url(self.instance_url, article) or self.org

    def found_item(self, article: Article, query: str, matcher: Matcher) -> FoundItem:
        """Return a hit."""
        passage = article.passage or article.snippet or article.summary or article.title
        item_id = self.item_id(article)
        return FoundItem(
            id=item_id,
            title=article.title,
            location=describe_place(article),
            address=self.address(article, query),
            snippet=mark_snippet(article.snippet or article.summary or article.title, matcher),
            matched_by=article.matched_by,
            score=article.score,
            origin=self.origin(article),
            span=article.span,
            section=item_id,
            text=passage,
            changed_at=parse_time(article.last_published),
        )

    def fetched_text(self, article: Article, read_from: str) -> FetchedText:
        """Return the whole text of an article."""
        facts = {
            "number": article.article_number,
            "type": article.article_type,
            "language": article.language,
            "published": article.last_published,
            "read from": read_from,
        }
        return FetchedText(
            id=self.item_id(article),
            title=article.title,
            text=article.text,
            address=self.address(article),
            origin=self.origin(article),
            facts={key: value for key, value in facts.items() if value},
        )


def article_url(instance_url: str | None, article: Article) -> str | None:
    """Return the URL of an article in its org; None for the demo org, which has no pages, and while it is unknown."""
    return f"{instance_url}/{article.id}" if (instance_url or "").startswith("https://") else None


def describe_place(article: Article) -> str:
    """Return the type and the number of an article, for people."""
    kind = (article.article_type or "").replace("_", " ")
    return PLACE_SEPARATOR.join(part for part in (kind, article.article_number) if part)


def mark_snippet(text: str, matcher: Matcher) -> Snippet:
    """Return a short text with the words of a query marked."""
    shown = text if len(text) <= MAX_SNIPPET else f"{text[:MAX_SNIPPET].rpartition(' ')[0]}..."
    return Snippet(shown, tuple((start, end) for start, end, _ in matcher.find(shown)))


def _name(article: Article) -> str:
    return article.url_name or article.article_id or article.id
