"""The article types of an org: their fields, and which of those are the body."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from bedstone.ingest.formats.html import fragment_to_markdown, html_to_text
from bedstone.services.articles.article import Article, ArticlePart

logger = logging.getLogger(__name__)

Described = Mapping[str, Any]  # a field as the org describes it

BODY_NAMES = re.compile(r"body|answer|content|detail|solution|description|resolution|procedure|steps", re.IGNORECASE)
# Notes of the company to itself, which do not belong in an answer.
INTERNAL_NAMES = re.compile(r"internal|private|confidential|(agents?|staff|employees?)[ _]?only", re.IGNORECASE)
MIN_BODY_LENGTH = 255  # of a plain text field, exclusive
TAG = re.compile(r"<[^>]*>")
TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+0000|\+00:00|Z)")
REQUIRED_FIELDS = ("Id", "KnowledgeArticleId", "Title", "Summary", "UrlName", "LastPublishedDate")
OPTIONAL_FIELDS = ("ArticleType", "ArticleNumber", "Language", "PublishStatus", "IsMasterLanguage")


@dataclass(frozen=True)
class BodyField:
    name: str
    label: str
    is_rich: bool


@dataclass(frozen=True)
class ArticleType:
    """An object that holds articles, from its describe."""

    name: str
    columns: tuple[str, ...]
    bodies: tuple[BodyField, ...] = ()
    languages: frozenset[str] = field(default_factory=frozenset)
    filters_summary: bool = False
    left_out: tuple[str, ...] = ()  # labels of internal fields

    @classmethod
    def of(
        cls, describe: Mapping[str, Any], body_fields: Sequence[str] = (), excluded: Sequence[str] = ()
    ) -> "ArticleType":
        """Parse a describe; `body_fields` are the body fields from the settings, and `excluded` those to leave out."""
        fields = {item["name"]: item for item in describe["fields"]}
        columns = [name for name in (*REQUIRED_FIELDS, *OPTIONAL_FIELDS) if name in fields]
        if fields.get("RecordTypeId", {}).get("relationshipName") == "RecordType":
            columns.append("RecordType.DeveloperName")
        values = fields.get("Language", {}).get("picklistValues") or []
        bodies, left_out = _find_bodies(fields, body_fields, {name.lower() for name in excluded})
        return cls(
            describe["name"],
            tuple(columns),
            tuple(BodyField(item["name"], item["label"], bool(item.get("htmlFormatted"))) for item in bodies),
            frozenset(item["value"] for item in values if item.get("active", True)),
            bool(fields.get("Summary", {}).get("filterable")),
            tuple(item["label"] for item in left_out),
        )

    @property
    def selection(self) -> str:
        """Return the columns of an article for SELECT and RETURNING."""
        return ", ".join(self.columns)

    def body(self, row: Mapping[str, Any]) -> str:
        """Return the text of an article; with several bodies, each under the label of its field."""
        texts = [(item, text) for item in self.bodies if (text := _body_text(row.get(item.name), item.is_rich))]
        if len(texts) == 1:
            return texts[0][1]
        return "\n\n".join(f"{item.label}\n\n{text}" for item, text in texts) or str(row.get("Summary") or "")

    def parts(self, row: Mapping[str, Any]) -> tuple[ArticlePart, ...]:
        """Return the fields of an article that the body is made of, as the org has them."""
        filled = [(item, str(row[item.name])) for item in self.bodies if row.get(item.name)]
        return tuple(ArticlePart(item.name, item.label, content, item.is_rich) for item, content in filled)

    def markdown(self, row: Mapping[str, Any]) -> str:
        """Return the text as Markdown, with headings to chunk by."""
        parts = []
        for item in self.bodies:
            value = str(row.get(item.name) or "")
            text = fragment_to_markdown(value) if item.is_rich else value.strip()
            if text:
                parts.append(f"## {item.label}\n\n{text}" if len(self.bodies) > 1 else text)
        return "\n\n".join(parts)


def article_of(row: Mapping[str, Any]) -> Article:
    """Return an article without its body, from a row."""
    record_type = row.get("RecordType") or {}
    return Article(
        id=row["Id"],
        article_id=row["KnowledgeArticleId"],
        title=row["Title"],
        summary=row.get("Summary"),
        url_name=row.get("UrlName"),
        last_published=rfc3339(row.get("LastPublishedDate")),
        article_type=record_type.get("DeveloperName") or row.get("ArticleType"),
        article_number=row.get("ArticleNumber"),
        language=row.get("Language"),
        snippet=plain_snippet(row.get("snippet.text")),
    )


def rfc3339(text: str | None) -> str | None:
    """Return a timestamp in RFC 3339; Salesforce omits the colon of the time zone."""
    match = TIMESTAMP.fullmatch(text) if text else None
    return f"{match[1]}Z" if match else text


def plain_snippet(text: str | None) -> str | None:
    """Return a snippet without its markup."""
    return " ".join(unescape(TAG.sub("", text)).split()) or None if text else None


def _find_bodies(
    fields: Mapping[str, Described], chosen: Sequence[str], excluded: set[str]
) -> tuple[list[Described], list[Described]]:
    """Return the fields of the body, and the fields that would belong to it but are internal."""
    by_name = {name.lower(): item for name, item in fields.items()}
    bodies = [by_name[name.lower()] for name in chosen if name.lower() in by_name]
    if chosen and not bodies:
        message = "No field of salesforce.article_body_fields exists; choosing body fields by name and type"
        logger.warning(message, extra={"action": "no_body_fields"})
    if bodies:
        return [item for item in bodies if item["name"].lower() not in excluded], []
    long = [item for item in fields.values() if item["type"] == "textarea" and item["name"].endswith("__c")]
    candidates = [item for item in long if item.get("htmlFormatted") or (item.get("length") or 0) > MIN_BODY_LENGTH]
    left_out = [item for item in candidates if item["name"].lower() in excluded or _is_internal(item)]
    return sorted((item for item in candidates if item not in left_out), key=_body_priority), left_out


def _is_internal(item: Described) -> bool:
    return bool(INTERNAL_NAMES.search(item["name"]) or INTERNAL_NAMES.search(item["label"]))


def _body_priority(item: Described) -> int:
    """Rank fields: named like a body, then rich text, then the rest."""
    is_named = bool(BODY_NAMES.search(item["name"]) or BODY_NAMES.search(item["label"]))
    return 0 if is_named else 1 if item.get("htmlFormatted") else 2


def _body_text(value: Any, is_rich: bool) -> str:
    if not value:
        return ""
    return html_to_text(str(value)) if is_rich else str(value).strip()
