"""What an org tells of its article types: which fields there are, and which of them are the body."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from bedstone.ingest.formats.html import fragment_to_markdown, html_to_text
from bedstone.services.articles.article import Article

logger = logging.getLogger(__name__)

BODY_NAMES = re.compile(r"body|answer|content|detail|solution|description|resolution|procedure|steps", re.IGNORECASE)
LONG_TEXT = 255
TAG = re.compile(r"<[^>]*>")
MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(?:\+0000|\+00:00|Z)")
ALWAYS = ("Id", "KnowledgeArticleId", "Title", "Summary", "UrlName", "LastPublishedDate")
WHERE_THERE_ARE = ("ArticleType", "ArticleNumber", "Language", "PublishStatus", "IsMasterLanguage")


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

    @classmethod
    def of(cls, described: Mapping[str, Any], body_fields: Sequence[str] = ()) -> "ArticleType":
        """From a describe; `body_fields` are the operator's choice of bodies."""
        fields = {item["name"]: item for item in described["fields"]}
        columns = [name for name in (*ALWAYS, *WHERE_THERE_ARE) if name in fields]
        if fields.get("RecordTypeId", {}).get("relationshipName") == "RecordType":
            columns.append("RecordType.DeveloperName")
        values = fields.get("Language", {}).get("picklistValues") or []
        return cls(
            described["name"],
            tuple(columns),
            tuple(_bodies(fields, body_fields)),
            frozenset(item["value"] for item in values if item.get("active", True)),
            bool(fields.get("Summary", {}).get("filterable")),
        )

    @property
    def selection(self) -> str:
        """The columns of every article, as SELECT and RETURNING take them."""
        return ", ".join(self.columns)

    def body(self, row: Mapping[str, Any]) -> str:
        """The text of an article, from the row of its type; under the fields' labels where several have some."""
        written = [(item, text) for item in self.bodies if (text := _text(row.get(item.name), item.is_rich))]
        if len(written) == 1:
            return written[0][1]
        return "\n\n".join(f"{item.label}\n\n{text}" for item, text in written) or str(row.get("Summary") or "")

    def markdown(self, row: Mapping[str, Any]) -> str:
        """The same as Markdown, for those who cut it by its headings."""
        parts = []
        for item in self.bodies:
            value = str(row.get(item.name) or "")
            text = fragment_to_markdown(value) if item.is_rich else value.strip()
            if text:
                parts.append(f"## {item.label}\n\n{text}" if len(self.bodies) > 1 else text)
        return "\n\n".join(parts)


def article_of(row: Mapping[str, Any]) -> Article:
    """An article without its body, from a row."""
    record_type = row.get("RecordType") or {}
    return Article(
        id=row["Id"],
        article_id=row["KnowledgeArticleId"],
        title=row["Title"],
        summary=row.get("Summary"),
        url_name=row.get("UrlName"),
        last_published=moment(row.get("LastPublishedDate")),
        article_type=record_type.get("DeveloperName") or row.get("ArticleType"),
        article_number=row.get("ArticleNumber"),
        language=row.get("Language"),
        snippet=plain_snippet(row.get("snippet.text")),
    )


def moment(text: str | None) -> str | None:
    """A time as RFC 3339 writes it; Salesforce leaves out the colon of the zone."""
    found = MOMENT.fullmatch(text) if text else None
    return f"{found[1]}Z" if found else text


def plain_snippet(text: str | None) -> str | None:
    """A snippet without its marks."""
    return " ".join(unescape(TAG.sub("", text)).split()) or None if text else None


def _bodies(fields: Mapping[str, Mapping[str, Any]], chosen: Sequence[str]) -> list[BodyField]:
    by_name = {name.lower(): item for name, item in fields.items()}
    wanted = [by_name[name.lower()] for name in chosen if name.lower() in by_name]
    if chosen and not wanted:
        message = "None of salesforce.article_body_fields is there; the text comes from the fields that look like it"
        logger.warning(message, extra={"action": "no_body_fields"})
    if not wanted:
        long = [item for item in fields.values() if item["type"] == "textarea" and item["name"].endswith("__c")]
        candidates = [item for item in long if item.get("htmlFormatted") or (item.get("length") or 0) > LONG_TEXT]
        wanted = sorted(candidates, key=_place)
    return [BodyField(item["name"], item["label"], bool(item.get("htmlFormatted"))) for item in wanted]


def _place(item: Mapping[str, Any]) -> int:
    """Bodies by their names first, then rich text, then the rest."""
    is_named = bool(BODY_NAMES.search(item["name"]) or BODY_NAMES.search(item["label"]))
    return 0 if is_named else 1 if item.get("htmlFormatted") else 2


def _text(value: Any, is_rich: bool) -> str:
    if not value:
        return ""
    return html_to_text(str(value)) if is_rich else str(value).strip()
