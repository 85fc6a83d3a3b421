"""What a mirror holds, without the texts: articles by name, their translations and their categories."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from heapq import nsmallest
from itertools import count
from typing import Any

from bedstone.records import Document
from bedstone.services.articles.article import DEFAULT_LANGUAGE, Article, ArticlePart
from bedstone.services.articles.categories import Category, CategoryGroup, build_tree
from bedstone.services.articles.mirror_sync import ARTICLE, ARTICLE_ID, CATEGORIES, PARTS, URL_NAME
from bedstone.store.engine import Store

BATCH_SIZE = 500
MAX_SUGGESTIONS = 3
MAX_COMPARED_NAMES = 200
MIN_SIMILARITY = 0.6
WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class MirrorContents:
    """The articles of a mirror by title, read once per version of its store."""

    version: int
    articles: Sequence[Article]
    by_id: Mapping[str, Article]  # by the id of the version
    by_key: Mapping[tuple[str, str], Sequence[Article]]  # by article id or URL name in lower case
    categories: Sequence[CategoryGroup]

    @classmethod
    def of(cls, version: int, store: Store) -> "MirrorContents":
        """Read a store."""
        articles: list[Article] = []
        for offset in count(0, BATCH_SIZE):  # the texts of all articles at once may be too much
            documents = store.documents(offset=offset, limit=BATCH_SIZE)
            articles += [to_article(document, with_text=False) for document in documents]
            if len(documents) < BATCH_SIZE:
                break
        articles.sort(key=lambda item: (item.title.lower(), item.id))
        by_key: dict[tuple[str, str], list[Article]] = {}
        for article in sorted(articles, key=_by_language):
            for key, value in ((ARTICLE_ID, article.article_id), (URL_NAME, (article.url_name or "").lower())):
                if value:
                    by_key.setdefault((key, value), []).append(article)
        stored = store.get_value(CATEGORIES)
        groups = build_tree(json.loads(stored)) if stored else []
        return cls(version, articles, {article.id: article for article in articles}, by_key, groups)

    @property
    def languages(self) -> list[str]:
        """List the languages of the articles, the default one first."""
        found = {item.language for item in self.articles if item.language}
        return sorted(found, key=lambda name: (name != DEFAULT_LANGUAGE, name))

    def translations(self, article_id: str) -> Sequence[Article]:
        """List the translations of an article, the default language first."""
        return self.by_key.get((ARTICLE_ID, article_id), ())

    def find_named(self, url_name: str) -> Sequence[Article]:
        """List the translations with a URL name, the default language first."""
        return self.by_key.get((URL_NAME, url_name.lower()), ())

    def has(self, article: Article) -> bool:
        """Return whether this version of an article is here."""
        known = self.by_id.get(article.id)
        return known is not None and known.last_published == article.last_published

    def is_default(self, article: Article) -> bool:
        """Return whether the URL name alone means this translation; without one, the id of the article."""
        found = self.find_named(article.url_name or "") or self.translations(article.article_id)
        return not found or found[0].id == article.id

    def categories_of(self, article: Article) -> list[Category]:
        """Return the lowest categories that an article is in."""
        return [category for group in self.categories for category in group.lowest(article.id)]

    def url_names(self, prefix: str = "") -> list[str]:
        """List the URL names with a prefix."""
        names = {item.url_name for item in self.articles if item.url_name}
        return sorted(name for name in names if name.lower().startswith(prefix.lower()))


def to_article(document: Document, *, with_text: bool = True) -> Article:
    """Return the article that a document of the mirror holds."""
    facts: dict[str, Any] = json.loads(document.attributes[ARTICLE])
    if not with_text:
        return Article(**{**facts, "body": ""})
    parts = json.loads(document.attributes.get(PARTS, "[]"))
    return Article(**facts, parts=tuple(ArticlePart(**part) for part in parts))


def similar_names(name: str, names: Sequence[str]) -> list[str]:
    """List the names that are most similar to a wrong one; of many, those that share words with it are compared."""
    words = set(WORD.findall(name.lower()))
    by_lower = {known.lower(): known for known in names}
    likely = nsmallest(MAX_COMPARED_NAMES, by_lower, key=lambda known: -sum(word in known for word in words))
    near = get_close_matches(name.lower(), likely, MAX_SUGGESTIONS, MIN_SIMILARITY)
    return [by_lower[known] for known in near]


def _by_language(article: Article) -> tuple[bool, str, str]:
    return article.language != DEFAULT_LANGUAGE, article.language or "", article.id
