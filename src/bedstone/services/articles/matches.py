"""What a search for articles finds: rows that match all words, then rows that match some."""

from collections.abc import Iterable
from typing import Any

from bedstone.services.articles.article import ArticlePage, ArticleQuery, Method
from bedstone.services.articles.article_types import article_of

MAX_ROWS = 200
FEW_ROWS = 3  # with fewer, articles that match some of the words are added


class Matches:
    """The rows of one search: those that match all words, then those that match some."""

    def __init__(self, query: ArticleQuery) -> None:
        self._limit = query.limit
        self._title = " ".join(query.query.casefold().split())
        self._rows: dict[str, dict[str, Any]] = {}
        self._matching_all: int | None = None

    @property
    def are_few(self) -> bool:
        """Whether a broader search is worth a call; not if the query is the title of an article."""
        if any(str(row["Title"]).casefold() == self._title for row in self._rows.values()):
            return False
        return len(self._rows) < min(FEW_ROWS, self._limit)

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Add rows that match."""
        for row in rows:
            self._rows.setdefault(row["Id"], row)

    def broaden(self, rows: Iterable[dict[str, Any]]) -> None:
        """Add rows that match some of the words."""
        before = len(self._rows)
        self.add(rows)
        if len(self._rows) > before:
            self._matching_all = before

    def page(self, method: Method) -> ArticlePage:
        """Return the best of them."""
        total = len(self._rows)
        articles = [article_of(row) for row in list(self._rows.values())[: self._limit]]
        return ArticlePage(articles, total, method, is_minimum=total >= MAX_ROWS, matching_all=self._matching_all)
