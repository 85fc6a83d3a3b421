"""The org's /search: SOSL terms go to a full-text index, and SOQL reads the records found."""

import re
from collections.abc import Callable, Sequence
from html import unescape
from typing import Any
from unicodedata import combining, normalize

from bedstone.salesforce.demo_org.content.articles import category_names
from bedstone.salesforce.demo_org.database import Database
from bedstone.salesforce.demo_org.errors import ApiError, no_object
from bedstone.salesforce.demo_org.query import QueryEngine
from bedstone.salesforce.demo_org.query.shapes import Record
from bedstone.salesforce.soql import SyntaxProblem, parse_sosl, write
from bedstone.salesforce.soql.quoting import soql_list
from bedstone.salesforce.soql.sosl_parser import MISSING_TERM
from bedstone.salesforce.soql.tree import DataCategories, Number, Returning, Search, SearchOption

FIELDS = {"NAME": "name", "EMAIL": "email", "PHONE": "phone"}
MAX_RECORDS = 2_000
MAX_OF_OBJECT = 250  # without a condition or an order
MAX_IDS = 10_000
# The objects searched without RETURNING.
DEFAULT_OBJECTS = ("Account", "Contact", "Lead", "Opportunity", "Case", "Campaign", "User")
ARTICLES = frozenset({"knowledge__kav", "knowledgearticleversion"})
TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|(\()|(\))|((?:\\.|[^\s()"\\])+)', re.DOTALL)
WORD = re.compile(r"[^\W_]+")
WILD_WORD = re.compile(r"(?=.*[*?])[^\W_*?]+[\w*?]*")
SNIPPET_LENGTH = 300
MAX_SNIPPETS = 20
MAX_HIGHLIGHTS = 25
MAX_WILDCARD_WORDS = 200
MAX_TEXT = 6_000
OPERATORS = frozenset({"AND", "OR", "NOT"})
BEFORE_OPERAND = OPERATORS | {"("}
AFTER_OPERAND = OPERATORS | {")"}
NO_RECORD = "000000000000000AAA"  # a search without hits is checked all the same
NO_MATCH = '"\U0010fffd"'  # a word no record has
Vocabulary = Callable[[str, "re.Pattern[str]"], list[str]]


class SearchEngine:
    """Runs SOSL."""

    def __init__(self, database: Database, queries: QueryEngine) -> None:
        self._database = database
        self._queries = queries

    def run(self, statement: str, base: str) -> dict[str, Any]:
        """Return what a statement finds."""
        try:
            search = parse_sosl(statement.strip())
        except SyntaxProblem as problem:
            message = (
                MISSING_TERM if problem.message == MISSING_TERM else f"unexpected token: '{problem.found or '<EOF>'}'"
            )
            raise ApiError(
                "MALFORMED_SEARCH", message, position=None if message == MISSING_TERM else problem.position
            ) from None
        return {"searchRecords": self.records(search, base)}

    def records(self, search: Search, base: str) -> list[Record]:
        """Return the records object by object, the best first."""
        wanted = search.returning or tuple(Returning(name) for name in DEFAULT_OBJECTS)
        for item in wanted:
            if self._database.schema.get(item.name) is None:
                raise no_object(item.name, item.span[0])
        maximum = int(search.limit.value) if isinstance(search.limit, Number) else MAX_RECORDS
        share = min(max(1, maximum // len(wanted)), MAX_RECORDS // len(wanted))
        found: list[Record] = []
        for item in wanted:
            found += self._search_object(search, item, share, base)
        return found[:maximum]

    def _search_object(self, search: Search, item: Returning, maximum: int, base: str) -> list[Record]:
        schema = self._database.schema.get(item.name)
        assert schema
        is_article = schema.name.lower() in ARTICLES
        expression = _fts_expression(search.term, default="OR" if is_article else "AND", known=self._known_words)
        if expression is None:
            return []
        column = FIELDS.get(search.within or "ALL") if not is_article else None
        match = f"{{{column}}}: ({expression})" if column else expression
        source = "Knowledge__kav" if is_article else schema.name
        rows = self._database.rows(
            "SELECT id FROM _search WHERE object = ? AND _search MATCH ? "
            "ORDER BY bm25(_search, 0, 0, 8.0, 2.0, 2.0, 1.0), id",
            (source, match),
        )
        ids = self._in_categories([row[0] for row in rows][:MAX_IDS], search)
        limit = int(item.limit.value) if isinstance(item.limit, Number) else None
        cap = MAX_RECORDS if item.where or item.order_by else MAX_OF_OBJECT
        return self._read(search, item, ids, min(maximum, cap, limit if limit is not None else cap), base)

    def _known_words(self, start: str, pattern: "re.Pattern[str]") -> list[str]:
        """Return the words of the index that begin with a text and match a pattern."""
        rows = self._database.rows(
            "SELECT term FROM _words WHERE term >= ? AND term < ?", (start, f"{start}{chr(0x10FFFF)}")
        )
        return [term for (term,) in rows if pattern.fullmatch(term)][:MAX_WILDCARD_WORDS]

    def _in_categories(self, ids: list[str], search: Search) -> list[str]:
        for option in search.options:
            if isinstance(option, DataCategories):
                for selection in option.selections:
                    names = category_names(selection.group, selection.operator, selection.categories)
                    inside = self._database.ids_in_categories(selection.group.removesuffix("__c"), names)
                    ids = [record for record in ids if record in inside]
        return ids

    def _read(self, search: Search, item: Returning, ids: Sequence[str], maximum: int, base: str) -> list[Record]:
        schema = self._database.schema.get(item.name)
        assert schema
        columns = ", ".join(write(field) for field in item.fields) or "Id"
        has_id = re.search(r"(^|, )id(,|$)", columns, re.IGNORECASE)
        condition = f"Id IN {soql_list(ids or [NO_RECORD])}" + (f" AND ({write(item.where)})" if item.where else "")
        order = f" ORDER BY {', '.join(write(order) for order in item.order_by)}" if item.order_by else ""
        statement = f"SELECT {columns if has_id else f'Id, {columns}'} FROM {schema.name} WHERE {condition}{order}"
        try:
            records: list[Record] = self._queries.run(statement, base, batch=10_000)["records"]
        except ApiError as error:  # its position is in our statement, not in the caller's
            raise ApiError(error.code, error.message, status=error.status) from None
        if not item.order_by:
            places = {record_id: place for place, record_id in enumerate(ids)}
            records.sort(key=lambda record: places[record["Id"]])
        start = int(item.offset.value) if isinstance(item.offset, Number) else 0
        records = records[start : start + maximum]
        self._add_extras(search, records)
        if not has_id and item.fields:
            for record in records:
                del record["Id"]
        return records

    def _add_extras(self, search: Search, records: list[Record]) -> None:
        names = {option.name.upper(): option for option in search.options if isinstance(option, SearchOption)}
        words = [word.casefold() for word in WORD.findall(search.term)]
        if "SNIPPET" in names and len(records) <= MAX_SNIPPETS:
            lengths = (int(value.value) for _, value in names["SNIPPET"].settings if isinstance(value, Number))
            length = next(lengths, SNIPPET_LENGTH)
            for record in records:
                text = self._long_text(str(record["Id"]))
                record["snippet.text"] = _mark(_window(text, words, length), words)
                if isinstance(record.get("Title"), str):
                    record["highlight.Title"] = _mark(record["Title"], words)
        if "HIGHLIGHT" in names:
            for record in records[:MAX_HIGHLIGHTS]:
                texts = {key: value for key, value in record.items() if isinstance(value, str) and key != "Id"}
                marked = {key: _mark(value, words) for key, value in texts.items()}
                highlight = {key: value for key, value in marked.items() if "<mark>" in value}
                if highlight:
                    record["highlight"] = highlight

    def _long_text(self, record_id: str) -> str:
        """Return the text that snippets of a record are cut from."""
        item = self._database.schema.of_id(record_id)
        values = self._database.record(item, record_id) if item else None
        if item is None or values is None:
            return ""
        texts = [str(values[field.name]) for field in item.fields if field.type == "textarea" and values[field.name]]
        return unescape(re.sub(r"<[^>]+>", " ", "\n".join(texts)))[:MAX_TEXT]


def _fts_expression(term: str, *, default: str, known: Vocabulary) -> str | None:
    """Return a SOSL term as an expression of the full-text index, or None if nothing can match.

    AND binds tighter than OR; `AND NOT` excludes. Wildcards inside a word stand for the words that `known` returns.
    """
    tokens: list[str] = []
    for found in TOKEN.finditer(term):
        phrase, opening, closing, word = found.groups()
        if opening or closing:
            tokens.append(found[0])
        elif phrase is not None:
            tokens.append(_quote(_unescape(phrase)) or "")
        elif word.upper() in OPERATORS:
            tokens.append(word.upper())
        else:
            tokens.append(_word(word, known) or "")
    return _join([token for token in tokens if token], default) or None


def _join(tokens: list[str], default: str) -> str:
    """Join tokens with an operator between all operands and none at the ends."""
    out: list[str] = []
    for piece in tokens:
        needs_operator = bool(out) and out[-1] not in BEFORE_OPERAND and piece not in AFTER_OPERAND
        if needs_operator:
            out.append(default)
        if piece in ("AND", "OR") and (not out or out[-1] in BEFORE_OPERAND):
            continue
        if piece == "NOT" and out and out[-1] == "AND":
            out[-1] = "NOT"
            continue
        if piece == ")" and out and out[-1] in OPERATORS:
            out.pop()
        if piece == ")" and out and out[-1] == "(":
            out.pop()
            continue
        out.append(piece)
    while out and out[-1] in BEFORE_OPERAND:
        out.pop()
    if out and out[0] == "NOT":
        return ""
    return " ".join(out)


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _quote(text: str) -> str | None:
    words = WORD.findall(text)
    return '"' + " ".join(words) + '"' if words else None


def _word(word: str, known: Vocabulary) -> str | None:
    """Return a word; `*` at its end matches a prefix, `*` and `?` inside match the words of the index."""
    if WILD_WORD.fullmatch(word) and not word.startswith(("*", "?")):
        if word.endswith("*") and word[:-1].isalnum():
            return f'"{word[:-1]}" *'
        folded = "".join(sign for sign in normalize("NFD", word.casefold()) if not combining(sign))
        signs = {"*": ".*", "?": "."}
        pattern = re.compile("".join(signs.get(sign, re.escape(sign)) for sign in folded))
        found = known(re.split(r"[*?]", folded)[0], pattern)
        return f"({' OR '.join(quoted for quoted in map(_quote, found) if quoted)})" if found else NO_MATCH
    return _quote(_unescape(word))


def _mark(text: str, words: Sequence[str]) -> str:
    """Put <mark> around the words of a search."""
    return WORD.sub(lambda found: f"<mark>{found[0]}</mark>" if found[0].casefold() in words else found[0], text)


def _window(text: str, words: Sequence[str], length: int) -> str:
    first = next((found.start() for found in WORD.finditer(text) if found[0].casefold() in words), 0)
    start = max(0, first - length // 3)
    if start:
        start = text.find(" ", start, first) + 1 or start
    return " ".join(text[start : start + length].split())
