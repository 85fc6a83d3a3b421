"""Knowledge articles of the demo org: 120 in English, 36 of them also in German and French, some with drafts or old versions."""

import json
import random
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any

from bedstone.salesforce.demo_org.content.objects import ARTICLE_RECORD_TYPES
from bedstone.salesforce.demo_org.dates import format_moment, parse_moment
from bedstone.salesforce.ids import make_id

LANGUAGES = ("en_US", "de", "fr")
ENGLISH = LANGUAGES[0]
RECORD_TYPES = {item.developer_name: item.id for item in ARTICLE_RECORD_TYPES}
FIRST = parse_moment("2024-02-01T08:00:00Z")
Add = Callable[..., str]


@dataclass(frozen=True)
class Article:
    """One article in one language."""

    title: str
    summary: str
    answer: str
    steps: tuple[str, ...]
    kind: str
    topic: str
    model: str | None = None


@lru_cache(maxsize=1)
def sources() -> dict[str, Any]:
    """Return the texts of the articles and the data categories."""
    data: dict[str, Any] = json.loads(
        files("bedstone.salesforce.demo_org.content").joinpath("articles.json").read_text("utf-8")
    )
    return data


def articles() -> Iterator[dict[str, Article]]:
    """Yield every article by language."""
    data = sources()
    for group in data["topics"]:
        for title, summary, answer, *steps in group["articles"]:
            yield {ENGLISH: Article(title, summary, answer, tuple(steps), group["kind"], group["topic"])}
    for procedure in data["procedures"]:
        for model, numbers in data["models"].items():
            yield {language: _procedure(procedure, procedure[language], model, numbers) for language in LANGUAGES}


def _procedure(procedure: dict[str, Any], words: Sequence[str], model: str, numbers: dict[str, Any]) -> Article:
    title, summary, answer, *steps = (text.format(model=model, **numbers) for text in words)
    return Article(title, summary, answer, tuple(steps), "How_To", procedure["topic"], model)


def categories() -> dict[str, Any]:
    """Return the data category groups as a tree: names, labels, children."""
    groups: dict[str, Any] = sources()["categories"]
    return groups


def add_articles(add: Add, users: Sequence[str], chance: random.Random) -> None:
    """Add the articles to the org: all published, some with a draft or an archived version."""
    for number, translations in enumerate(articles(), start=1):
        article_id = make_id("kA0", number)
        published = FIRST + timedelta(days=6 * number)
        for language, article in translations.items():
            _add_version(add, article, language, article_id, number, published, users, version=1)
        english = translations[ENGLISH]
        if number % 10 == 3:
            _add_version(add, english, ENGLISH, article_id, number, published, users, version=2, status="Draft")
        if number % 10 == 7:
            old = published - timedelta(days=200)
            _add_version(add, english, ENGLISH, article_id, number, old, users, version=0, status="Archived")
        chance.random()


def _add_version(
    add: Add,
    article: Article,
    language: str,
    article_id: str,
    number: int,
    published: datetime,
    users: Sequence[str],
    *,
    version: int,
    status: str = "Online",
) -> None:
    url_name = _url_name(article.title)
    suffix = "" if status == "Online" else f" ({status.lower()})"
    record = add(
        "Knowledge__kav",
        KnowledgeArticleId=article_id,
        OwnerId=users[number % len(users)],
        PublishStatus=status,
        VersionNumber=version,
        IsLatestVersion=int(status != "Archived"),
        IsVisibleInApp=1,
        IsVisibleInPkb=int(number % 3 != 0),
        Language=language,
        Title=article.title + suffix,
        UrlName=url_name if status == "Online" else f"{url_name}-{status.lower()}",
        ArticleNumber=f"{1000 + number:09}",
        Summary=article.summary,
        LastPublishedDate=format_moment(published) if status != "Draft" else None,
        FirstPublishedDate=format_moment(published),
        CreatedDate=format_moment(published - timedelta(days=3)),
        LastModifiedDate=format_moment(published),
        SystemModstamp=format_moment(published),
        ArticleTotalViewCount=(number * 37) % 900,
        ArticleType="Knowledge__kav",
        RecordTypeId=RECORD_TYPES[article.kind],
        Answer__c=_rich_answer(article),
        Steps__c=_rich_steps(article),
        Internal_Notes__c="Ask the workshop team before changing this article." if number % 4 == 0 else None,
        Models__c=article.model,
    )
    add(
        "Knowledge__DataCategorySelection",
        ParentId=record,
        DataCategoryGroupName="Topics",
        DataCategoryName=article.topic,
    )
    if article.model:
        add(
            "Knowledge__DataCategorySelection",
            ParentId=record,
            DataCategoryGroupName="Models",
            DataCategoryName=article.model,
        )


def _rich_answer(article: Article) -> str:
    paragraphs = "".join(f"<p>{escape(part)}</p>" for part in article.answer.split("\n"))
    return f"<h2>{escape(article.title)}</h2>{paragraphs}"


def _rich_steps(article: Article) -> str | None:
    if not article.steps:
        return None
    return "<ol>" + "".join(f"<li>{escape(step)}</li>" for step in article.steps) + "</ol>"


def _url_name(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "-", plain).strip("-")


def category_names(group: str, operator: str, chosen: Sequence[str]) -> list[str]:
    """Return the categories a selection means: itself, those above, those below."""
    root = categories().get(group.removesuffix("__c"), {"children": {}})
    parents: dict[str, str | None] = {}

    def walk(children: dict[str, Any], parent: str | None) -> None:
        for name, item in children.items():
            parents[name] = parent
            walk(item.get("children", {}), name)

    walk(root["children"], None)
    found: list[str] = []
    for category in (name.removesuffix("__c") for name in chosen):
        above = _chain(parents, category)
        below = [name for name in parents if category in _chain(parents, name)]
        found += {"AT": [category], "ABOVE": [*above, category], "BELOW": [category, *below]}.get(
            operator, [*above, category, *below]
        )
    return list(dict.fromkeys(found))


def _chain(parents: dict[str, str | None], name: str) -> list[str]:
    chain = []
    current = parents.get(name)
    while current is not None:
        chain.append(current)
        current = parents.get(current)
    return chain
