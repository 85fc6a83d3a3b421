"""Runs SOSL: terms to the word index, what was found back through SOQL."""

import re
from collections.abc import Callable, Sequence
from html import unescape
from typing import Any
from unicodedata import combining, normalize

from bedstone.salesforce.demo_org.content.articles import category_names
from bedstone.salesforce.demo_org.database import Database
from bedstone.salesforce.demo_org.errors import Refused, no_object
from bedstone.salesforce.demo_org.querying import QueryEngine, Record
from bedstone.salesforce.soql import SyntaxProblem, parse_sosl, write
from bedstone.salesforce.soql.quoting import soql_list
from bedstone.salesforce.soql.sosl_parser import MISSING_TERM
from bedstone.salesforce.soql.tree import DataCategories, Number, Returning, Search, SearchOption

FIELDS = {"NAME": "name", "EMAIL": "email", "PHONE": "phone"}
ONE_OBJECT, WITH_CONDITION, ALL = 250, 2_000, 2_000
# What comes back without being named in RETURNING.
USUAL = ("Account", "Contact", "Lead", "Opportunity", "Case", "Campaign", "User")
ARTICLES = frozenset({"knowledge__kav", "knowledgearticleversion"})
TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|(\()|(\))|((?:\\.|[^\s()"\\])+)', re.DOTALL)
WORD = re.compile(r"[^\W_]+")
WILD_WORD = re.compile(r"(?=.*[*?])[^\W_*?]+[\w*?]*")
SNIPPET, MOST_WORDS = 300, 200
NOTHING = '"\U0010fffd"'  # a word no record has
Vocabulary = Callable[[str, "re.Pattern[str]"], list[str]]
NOT = "NOT"


class SearchEngine:
    """The org's /search."""

    def __init__(self, database: Database, queries: QueryEngine) -> None:
        self._database = database
        self._queries = queries

    def run(self, statement: str, base: str) -> dict[str, Any]:
        """What a statement finds."""
        try:
            search = parse_sosl(statement.strip())
        except SyntaxProblem as problem:
            message = (
                MISSING_TERM if problem.message == MISSING_TERM else f"unexpected token: '{problem.found or '<EOF>'}'"
            )
            raise Refused(
                "MALFORMED_SEARCH", message, position=None if message == MISSING_TERM else problem.position
            ) from None
        return {"searchRecords": self.records(search, base)}

    def records(self, search: Search, base: str) -> list[Record]:
        """Records, object by object, the best first."""
        wanted = search.returning or tuple(Returning(name) for name in USUAL)
        for item in wanted:
            if self._database.schema.get(item.name) is None:
                raise no_object(item.name, item.span[0])
        most = int(search.limit.value) if isinstance(search.limit, Number) else ALL
        share = max(1, most // len(wanted)) if len(wanted) > 1 else most
        found: list[Record] = []
        for item in wanted:
            found += self._of_object(search, item, min(share, ALL // len(wanted) if len(wanted) > 1 else ALL), base)
        return found[:most]

    def _of_object(self, search: Search, item: Returning, most: int, base: str) -> list[Record]:
        schema = self._database.schema.get(item.name)
        assert schema
        is_article = schema.name.lower() in ARTICLES
        expression = fts_expression(search.term, default="OR" if is_article else "AND", known=self._words_like)
        if expression is None:
            return []
        column = FIELDS.get(search.within or "ALL") if not is_article else None
        asked = f"{{{column}}}: ({expression})" if column else expression
        source = "Knowledge__kav" if is_article else schema.name
        rows = self._database.rows(
            "SELECT id FROM _search WHERE object = ? AND _search MATCH ? "
            "ORDER BY bm25(_search, 0, 0, 8.0, 2.0, 2.0, 1.0), id",
            (source, asked),
        )
        ids = [row[0] for row in rows][:10_000]
        ids = self._in_categories(ids, search)
        limit = int(item.limit.value) if isinstance(item.limit, Number) else None
        cap = WITH_CONDITION if item.where or item.order_by else ONE_OBJECT
        return self._read(search, item, ids, min(most, cap, limit if limit is not None else cap), base) if ids else []

    def _words_like(self, start: str, pattern: "re.Pattern[str]") -> list[str]:
        """Words of the index that begin so and match."""
        rows = self._database.rows(
            "SELECT term FROM _words WHERE term >= ? AND term < ?", (start, f"{start}{chr(0x10FFFF)}")
        )
        return [term for (term,) in rows if pattern.fullmatch(term)][:MOST_WORDS]

    def _in_categories(self, ids: list[str], search: Search) -> list[str]:
        for option in search.options:
            if isinstance(option, DataCategories):
                for selection in option.selections:
                    names = category_names(selection.group, selection.operator, selection.categories)
                    marks = ", ".join("?" for _ in names)
                    rows = self._database.rows(
                        'SELECT "ParentId" FROM "Knowledge__DataCategorySelection" WHERE "DataCategoryGroupName" = ? '
                        f'AND "DataCategoryName" IN ({marks})',
                        (selection.group.removesuffix("__c"), *names),
                    )
                    inside = {row[0] for row in rows}
                    ids = [record for record in ids if record in inside]
        return ids

    def _read(self, search: Search, item: Returning, ids: Sequence[str], most: int, base: str) -> list[Record]:
        schema = self._database.schema.get(item.name)
        assert schema
        columns = ", ".join(write(field) for field in item.fields) or "Id"
        has_id = re.search(r"(^|, )id(,|$)", columns, re.IGNORECASE)
        condition = f"Id IN {soql_list(ids)}" + (f" AND ({write(item.where)})" if item.where else "")
        order = f" ORDER BY {', '.join(write(order) for order in item.order_by)}" if item.order_by else ""
        statement = f"SELECT {columns if has_id else f'Id, {columns}'} FROM {schema.name} WHERE {condition}{order}"
        try:
            records: list[Record] = self._queries.run(statement, base, batch=10_000)["records"]
        except Refused as refused:  # its place is in the statement we made
            raise Refused(refused.code, refused.message, status=refused.status) from None
        if not item.order_by:
            places = {record_id: place for place, record_id in enumerate(ids)}
            records.sort(key=lambda record: places[record["Id"]])
        start = int(item.offset.value) if isinstance(item.offset, Number) else 0
        records = records[start : start + most]
        self._add_extras(search, records)
        if not has_id and item.fields:
            for record in records:
                del record["Id"]
        return records

    def _add_extras(self, search: Search, records: list[Record]) -> None:
        names = {option.name.upper(): option for option in search.options if isinstance(option, SearchOption)}
        words = [word.casefold() for word in WORD.findall(search.term)]
        if "SNIPPET" in names and len(records) <= 20:  # noqa: PLR2004 - the org's own limit
            length = next(
                (int(value.value) for _, value in names["SNIPPET"].settings if isinstance(value, Number)), SNIPPET
            )
            for record in records:
                text = self._long_text(str(record["Id"]))
                record["snippet.text"] = marked(_window(text, words, length), words)
                if isinstance(record.get("Title"), str):
                    record["highlight.Title"] = marked(record["Title"], words)
        if "HIGHLIGHT" in names:
            for record in records[:25]:
                shown = {
                    key: marked(value, words) for key, value in record.items() if isinstance(value, str) and key != "Id"
                }
                lit = {key: value for key, value in shown.items() if "<mark>" in value}
                if lit:
                    record["highlight"] = lit

    def _long_text(self, record_id: str) -> str:
        """What snippets are cut from."""
        item = self._database.schema.of_id(record_id)
        values = self._database.record(item, record_id) if item else None
        if item is None or values is None:
            return ""
        texts = [str(values[field.name]) for field in item.fields if field.type == "textarea" and values[field.name]]
        return unescape(re.sub(r"<[^>]+>", " ", "\n".join(texts)))[:6_000]


def fts_expression(term: str, *, default: str, known: Vocabulary) -> str | None:
    """A SOSL term as an expression of the word index, every word quoted; None where nothing could match.

    AND binds tighter than OR; `AND NOT` excludes. Wildcards inside a word stand for the words that are `known`.
    """
    tokens: list[str] = []
    for found in TOKEN.finditer(term):
        phrase, opening, closing, word = found.groups()
        if opening or closing:
            tokens.append(found[0])
        elif phrase is not None:
            tokens.append(_quoted(_plain(phrase)) or "")
        elif word.upper() in ("AND", "OR", "NOT"):
            tokens.append(word.upper())
        else:
            tokens.append(_word(word, known) or "")
    made = _joined([token for token in tokens if token], default)
    return made or None


def _joined(tokens: list[str], default: str) -> str:
    """Operators between all operands, none at the ends."""
    out: list[str] = []
    for piece in tokens:
        needs_joint = bool(out) and out[-1] not in ("AND", "OR", "NOT", "(") and piece not in ("AND", "OR", "NOT", ")")
        if needs_joint:
            out.append(default)
        if piece in ("AND", "OR") and (not out or out[-1] in ("AND", "OR", "NOT", "(")):
            continue
        if piece == NOT and out and out[-1] == "AND":
            out[-1] = "NOT"
            continue
        if piece == ")" and out and out[-1] in ("AND", "OR", "NOT"):
            out.pop()
        if piece == ")" and out and out[-1] == "(":
            out.pop()
            continue
        out.append(piece)
    while out and out[-1] in ("AND", "OR", "NOT", "("):
        out.pop()
    if out and out[0] == NOT:
        return ""
    return " ".join(out)


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _quoted(text: str) -> str | None:
    words = WORD.findall(text)
    return '"' + " ".join(words) + '"' if words else None


def _word(word: str, known: Vocabulary) -> str | None:
    """A word; `*` at its end finds what begins so, `*` and `?` inside what fits."""
    if WILD_WORD.fullmatch(word) and not word.startswith(("*", "?")):
        if word.endswith("*") and word[:-1].isalnum():
            return f'"{word[:-1]}" *'
        folded = "".join(sign for sign in normalize("NFD", word.casefold()) if not combining(sign))
        signs = {"*": ".*", "?": "."}
        pattern = re.compile("".join(signs.get(sign, re.escape(sign)) for sign in folded))
        found = known(re.split(r"[*?]", folded)[0], pattern)
        return f"({' OR '.join(quoted for quoted in map(_quoted, found) if quoted)})" if found else NOTHING
    return _quoted(_plain(word))


def marked(text: str, words: Sequence[str]) -> str:
    """Found words between marks."""
    return WORD.sub(lambda found: f"<mark>{found[0]}</mark>" if found[0].casefold() in words else found[0], text)


def _window(text: str, words: Sequence[str], length: int) -> str:
    first = next((found.start() for found in WORD.finditer(text) if found[0].casefold() in words), 0)
    start = max(0, first - length // 3)
    if start:
        start = text.find(" ", start, first) + 1 or start
    return " ".join(text[start : start + length].split())
