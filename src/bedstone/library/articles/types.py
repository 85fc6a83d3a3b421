"""What an org tells of its article types: which fields there are, and which of them are the body."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from bedstone.ingest.extraction import Unreadable
from bedstone.ingest.formats.html import html_to_text
from bedstone.library.articles.article import Article

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

    def html(self, row: Mapping[str, Any]) -> str:
        """The same as one page of HTML, for those who cut it by its headings."""
        parts = []
        for item in self.bodies:
            value = row.get(item.name)
            if value:
                rich = str(value) if item.is_rich else "".join(f"<p>{_escaped(part)}</p>" for part in value.split("\n"))
                parts.append(f"<h2>{_escaped(item.label)}</h2>{rich}" if len(self.bodies) > 1 else rich)
        return "".join(parts) or f"<p>{_escaped(str(row.get('Summary') or ''))}</p>"


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
    if chosen:
        by_name = {name.lower(): item for name, item in fields.items()}
        wanted = [by_name[name.lower()] for name in chosen if name.lower() in by_name]
    else:
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
    if not is_rich:
        return str(value).strip()
    try:
        return html_to_text(str(value))
    except Unreadable:  # nested beyond reason: its words at least
        return " ".join(unescape(TAG.sub(" ", str(value))).split())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
