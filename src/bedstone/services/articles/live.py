"""Query articles in the org: by SOSL in its ranking, by SOQL if SOSL fails."""

import asyncio
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from anyio import to_thread

from bedstone.errors import InvalidInput
from bedstone.salesforce.client import (
    AuthError,
    LimitExceeded,
    OrgUnavailable,
    PermissionDenied,
    RecordNotFound,
    SalesforceClient,
    SalesforceError,
)
from bedstone.salesforce.ids import long_id
from bedstone.salesforce.soql.quoting import like_string, search_term, soql_string
from bedstone.services.articles.article import (
    DEFAULT_LANGUAGE,
    Article,
    ArticleNotFound,
    ArticlePage,
    ArticleQuery,
    KnowledgeDisabled,
)
from bedstone.services.articles.article_types import REQUIRED_FIELDS, ArticleType, article_of
from bedstone.services.articles.categories import Categories
from bedstone.services.articles.languages import resolve_language
from bedstone.services.articles.matches import MAX_ROWS, Matches

logger = logging.getLogger(__name__)

VERSIONS = "KnowledgeArticleVersion"
MAX_TERM_LENGTH = 4_000
MAX_ADDRESS_LENGTH = 12_000  # of a URL-encoded term
MAX_LIKE_WORDS = 20
MAX_LIKE_LENGTH = 300
MAX_WORD_LENGTH = 60
MIN_TELLING_LENGTH = 3  # nearly every title has a shorter word somewhere
MAX_URL_NAME_LENGTH = 255
SNIPPET_LENGTH = 120
NEWER_FIELDS = (*REQUIRED_FIELDS, "ArticleNumber", "Language")  # every org has them, so no describe is necessary
DESCRIBE_CACHE_SECONDS = 3600.0
ONLINE = "PublishStatus = 'Online'"
CATEGORY = re.compile(r"[A-Za-z]\w{0,79}")
ARTICLE_PREFIX = "kA"  # of article ids; ids of versions begin with ka
# The org's codes for objects that the user cannot use; the contract has one code for both reasons.
KNOWLEDGE_REFUSED = frozenset({"INVALID_TYPE", "INSUFFICIENT_ACCESS", "INSUFFICIENT_ACCESS_OR_READONLY"})
NO_PERMISSION = (
    "The user has no permission to read Knowledge articles in this org. An administrator must give the user the "
    "View Articles permission (internal users need the Knowledge User licence)."
)
DISABLED = (
    "Salesforce Knowledge is not enabled in this org or for this user. An administrator must enable Knowledge "
    "and give the user the View Articles permission (internal users need the Knowledge User licence)."
)


class LiveArticles:
    """The articles of one org. Describes of its article types are cached for an hour."""

    def __init__(
        self, client: SalesforceClient, body_fields: Sequence[str] = (), excluded_fields: Sequence[str] = ()
    ) -> None:
        self.client = client
        self._body_fields = body_fields
        self._excluded_fields = excluded_fields
        self._categories: tuple[float, Categories] | None = None
        self._types: dict[str, tuple[float, ArticleType]] = {}
        self._describe_lock = asyncio.Lock()
        self._failure: tuple[float, OrgUnavailable] | None = None

    # Searching

    async def search(self, query: ArticleQuery) -> ArticlePage:
        """Search by SOSL for all words, and if few articles have them for any; fall back to SOQL if SOSL fails."""
        term = build_search_term(query)
        versions = await self.type_of(VERSIONS)
        language = resolve_language(query.language, versions.languages)
        where = f"{ONLINE} AND Language = {soql_string(language)}"
        categories = _category_clause(await self._resolve_categories(query.categories))
        found = Matches(query)
        try:
            found.add(await self._run_sosl(term, versions, where, categories))
            if found.are_few and " AND " in term:
                some_words = search_term(_telling_words(query.query), "OR")
                found.broaden(await self._run_sosl(some_words, versions, where, categories))
        except SalesforceError as error:
            if await self._is_final(error):
                raise
            logger.info("SOSL failed, falling back to SOQL: %s", error.message, extra={"action": "sosl_failed"})
            return await self._search_titles(query, versions, where, categories)
        return found.page("sosl")

    async def _run_sosl(self, term: str, versions: ArticleType, where: str, categories: str) -> list[dict[str, Any]]:
        returning = f"{VERSIONS}({versions.selection} WHERE {where} LIMIT {MAX_ROWS})"
        snippet = f" WITH SNIPPET (target_length={SNIPPET_LENGTH})"
        return await self.client.search(f"FIND {{{term}}} IN ALL FIELDS RETURNING {returning}{categories}{snippet}")

    async def _is_final(self, error: SalesforceError) -> bool:
        """Return whether a fallback cannot help; raise a better error if Knowledge is unavailable."""
        if _error_code(error) in KNOWLEDGE_REFUSED:
            raise await self._diagnose(error) from None
        if isinstance(error, AuthError | LimitExceeded | PermissionDenied):
            return True
        return isinstance(error, OrgUnavailable) and "details" not in error.details  # the org did not answer

    async def _search_titles(
        self, query: ArticleQuery, versions: ArticleType, where: str, categories: str
    ) -> ArticlePage:
        """Search titles and summaries for the phrase, for all words, and if few articles have them for any."""

        async def select(condition: str) -> list[dict[str, Any]]:
            more = f"{categories} ORDER BY LastPublishedDate DESC LIMIT {MAX_ROWS}"
            rows = await self._query(f"SELECT {versions.selection} FROM {VERSIONS} WHERE {where} AND {condition}{more}")
            return sorted(rows, key=lambda row: -sum(word in row["Title"].casefold() for word in words))

        phrase = " ".join(query.query.split())[:MAX_LIKE_LENGTH]  # titles are shorter
        words = _like_words(query.query)
        columns = ("Title", "Summary") if versions.filters_summary else ("Title",)
        terms = {word: _like_condition(word, columns) for word in words}
        telling = [term for word, term in terms.items() if _is_telling(word)]
        found = Matches(query)
        found.add(await select(f"Title LIKE {like_string(phrase, before=True)}"))
        if found.are_few and words:
            found.add(await select(" AND ".join(terms.values())))
        if found.are_few and len(telling) > 1:
            found.broaden(await select(f"({' OR '.join(telling)})"))
        return found.page("soql")

    async def _resolve_categories(self, wanted: Mapping[str, str]) -> Mapping[str, str]:
        """Return data categories in the org's spelling; unknown ones are an error, because they find nothing."""
        if not wanted:
            return wanted
        if self._categories is None or time.monotonic() - self._categories[0] > DESCRIBE_CACHE_SECONDS:
            try:
                answer = await self.client.get(
                    "support/dataCategoryGroups", sObjectName=VERSIONS, topCategoriesOnly="false"
                )
            except SalesforceError as error:
                if isinstance(error, AuthError | LimitExceeded | OrgUnavailable):
                    raise
                logger.info("Cannot read data categories: %s", error.message, extra={"action": "no_categories"})
                return wanted
            self._categories = (time.monotonic(), Categories.of(answer))
        return self._categories[1].resolve(wanted)

    # Reading

    async def get(self, article_id: str, language: str = DEFAULT_LANGUAGE) -> Article:
        """Return a published article by its id, in a language if it has one, or by the id of its version."""
        record = long_id(article_id.strip())
        if record is None:
            raise InvalidInput(
                f"article_id is not a Salesforce id: {article_id[:40]!r} (15 or 18 letters and digits)",
                parameter="article_id",
            )
        versions = await self.type_of(VERSIONS)
        column = "KnowledgeArticleId" if record.startswith(ARTICLE_PREFIX) else "Id"
        rows = await self._query(
            f"SELECT {versions.selection} FROM {VERSIONS} WHERE {column} = {soql_string(record)}"
            + (f" AND {ONLINE}" if column != "Id" else "")
        )
        online = [row for row in rows if row.get("PublishStatus", "Online") == "Online"]
        if not online:
            raise await self._not_found(article_id, rows)
        return await self._with_body(_choose_translation(online, language))

    async def by_name(self, name: str, language: str = DEFAULT_LANGUAGE) -> Article:
        """Return a published article by its URL name, its id or the id of its version."""
        return await (self.by_url_name(name, language) if long_id(name) is None else self.get(name, language))

    async def list_by_title(self, language: str | None) -> ArticlePage:
        """List the first articles of a language by title."""
        versions = await self.type_of(VERSIONS)
        chosen = resolve_language(language, versions.languages)
        rows = await self._query(
            f"SELECT {versions.selection} FROM {VERSIONS} WHERE {ONLINE} AND Language = {soql_string(chosen)} "
            f"ORDER BY Title LIMIT {MAX_ROWS}"
        )
        return ArticlePage([article_of(row) for row in rows], len(rows), "soql", is_minimum=len(rows) >= MAX_ROWS)

    async def newer(self, since: str) -> list[Article]:
        """List articles that were published or touched since a time, the newest first, by one call."""
        rows = await self._query(
            f"SELECT {', '.join(NEWER_FIELDS)} FROM {VERSIONS} WHERE {ONLINE} AND SystemModstamp >= {since} "
            f"ORDER BY SystemModstamp DESC LIMIT {MAX_ROWS}"
        )
        return [article_of(row) for row in rows]

    async def by_url_name(self, url_name: str, language: str = DEFAULT_LANGUAGE) -> Article:
        """Return a published article by its URL name."""
        versions = await self.type_of(VERSIONS)
        if len(url_name) > MAX_URL_NAME_LENGTH:
            raise ArticleNotFound(f"No published article has a URL name of more than {MAX_URL_NAME_LENGTH} characters.")
        rows = await self._query(
            f"SELECT {versions.selection} FROM {VERSIONS} WHERE {ONLINE} AND UrlName = {soql_string(url_name)}"
        )
        if not rows:
            raise ArticleNotFound(f"No published article has the URL name {url_name!r}.")
        return await self._with_body(_choose_translation(rows, language))

    async def url_names(self, prefix: str, limit: int) -> list[str]:
        """List URL names with a prefix."""
        rows = await self._query(
            f"SELECT UrlName FROM {VERSIONS} WHERE {ONLINE} AND UrlName LIKE {like_string(prefix)} "
            f"ORDER BY UrlName LIMIT {limit}"
        )
        return list(dict.fromkeys(row["UrlName"] for row in rows))

    async def _with_body(self, row: dict[str, Any]) -> Article:
        kind = await self.type_of(row.get("ArticleType") or await self._type_by_prefix(row["Id"]))
        names = ", ".join(item.name for item in kind.bodies)
        article = article_of(row)
        if names:
            statement = f"SELECT Id, Summary, {names} FROM {kind.name} WHERE Id = {soql_string(article.id)}"
            bodies = await self._query(f"{statement} AND {ONLINE}")
            row = bodies[0] if bodies else row
        body = await to_thread.run_sync(kind.body, row)
        return replace(article, body=body, fields_left_out=kind.left_out, parts=kind.parts(row))

    async def _type_by_prefix(self, record: str) -> str:
        objects = await self.client.describe_global()
        name = next((item["name"] for item in objects if item.get("keyPrefix") == record[:3]), None)
        if name is None:
            raise ArticleNotFound(f"No article type has ids like {record}.")
        return str(name)

    async def _not_found(self, article_id: str, rows: Sequence[dict[str, Any]]) -> ArticleNotFound:
        """Return the error, with the published version if this one is a draft or was replaced."""
        if not rows:
            return ArticleNotFound(f"No published article has the id {article_id}.")
        same = f"KnowledgeArticleId = {soql_string(rows[0]['KnowledgeArticleId'])} AND {ONLINE}"
        online = await self._query(f"SELECT Id, Language FROM {VERSIONS} WHERE {same}")
        status = str(rows[0]["PublishStatus"]).lower()
        same_language = [row for row in online if row["Language"] == rows[0].get("Language")]
        published = next(iter([*same_language, *online]), None)
        message = f"The version {article_id} is not published ({status})."
        if published is None:
            return ArticleNotFound(message)
        return ArticleNotFound(f"{message} Use {published['Id']}.", details={"published_id": published["Id"]})

    # Article types

    async def type_of(self, name: str) -> ArticleType:
        """Return an object that holds articles, from the cache or the org."""
        started = time.monotonic()
        async with self._describe_lock:
            if self._failure is not None and self._failure[0] >= started:  # callers that waited get the same error
                raise self._failure[1]
            cached = self._types.get(name)
            if cached is not None and time.monotonic() - cached[0] < DESCRIBE_CACHE_SECONDS:
                return cached[1]
            try:
                describe = await self.client.describe(name)
            except (RecordNotFound, PermissionDenied) as error:
                if isinstance(error, PermissionDenied) and _error_code(error) not in KNOWLEDGE_REFUSED:
                    raise
                raise await self._diagnose(error) from None
            except OrgUnavailable as error:
                self._failure = (time.monotonic(), error)
                raise
            assert describe is not None
            article_type = ArticleType.of(describe, self._body_fields, self._excluded_fields)
            self._types[name] = (time.monotonic(), article_type)
            return article_type

    async def types(self) -> list[ArticleType]:
        """List all objects that hold articles."""
        await self.type_of(VERSIONS)  # raises an error if Knowledge is unavailable
        names = [item["name"] for item in await self.client.describe_global() if item.get("queryable", True)]
        return [await self.type_of(name) for name in names if name.endswith("__kav")]

    async def _query(self, soql: str) -> list[dict[str, Any]]:
        try:
            return [row async for row in self.client.rows(soql)]
        except SalesforceError as error:
            if _error_code(error) in KNOWLEDGE_REFUSED:
                raise await self._diagnose(error) from None
            raise

    async def _diagnose(self, error: SalesforceError) -> SalesforceError:
        """Return why an object is rejected: Knowledge is not enabled, or the user has no permission for it."""
        self._types.clear()
        names = {item["name"] for item in await self.client.describe_global()}
        return KnowledgeDisabled(NO_PERMISSION if VERSIONS in names else DISABLED, **error.details)


def build_search_term(query: ArticleQuery) -> str:
    """Return the query as a SOSL term; raise InvalidInput for a query that is too long or invalid categories."""
    term = search_term(query.query)
    if len(term) > MAX_TERM_LENGTH or len(quote(term)) > MAX_ADDRESS_LENGTH:
        message = f"query is too long: {len(term):,} characters as a SOSL term, the maximum is {MAX_TERM_LENGTH:,}"
        raise InvalidInput(message, parameter="query")
    for name in (*query.categories, *query.categories.values()):
        if not CATEGORY.fullmatch(name):
            raise InvalidInput(f"data_categories: {name[:80]!r} is not a valid name", parameter="data_categories")
    return term


def _error_code(error: SalesforceError) -> str:
    return str(error.details.get("details", {}).get("errorCode", ""))


def _choose_translation(rows: Sequence[dict[str, Any]], language: str = DEFAULT_LANGUAGE) -> dict[str, Any]:
    """Return the translation in a language, or else the master version."""
    wanted = language.lower()
    return min(rows, key=lambda row: (str(row.get("Language")).lower() != wanted, not row.get("IsMasterLanguage")))


def _like_words(text: str) -> list[str]:
    """Return the words to compare titles with."""
    words = (word.casefold()[:MAX_WORD_LENGTH] for word in re.findall(r"\w+", text))
    return list(dict.fromkeys(words))[:MAX_LIKE_WORDS]


def _is_telling(word: str) -> bool:
    """Whether a word says something by itself: "of" and "to" do not, "H16" does."""
    return len(word) >= MIN_TELLING_LENGTH or not word.isascii() or any(map(str.isdigit, word))


def _telling_words(text: str) -> str:
    words = [word for word in text.split() if _is_telling(word) and any(map(str.isalnum, word))]
    return " ".join(words) or text


def _like_condition(word: str, columns: Sequence[str]) -> str:
    return "(" + " OR ".join(f"{column} LIKE {like_string(word, before=True)}" for column in columns) + ")"


def _category_clause(categories: Mapping[str, str]) -> str:
    """Return the clause for data categories; it includes the categories below each."""
    parts = [f"{_api_name(group)} BELOW {_api_name(category)}" for group, category in categories.items()]
    return f" WITH DATA CATEGORY {' AND '.join(parts)}" if parts else ""


def _api_name(name: str) -> str:
    return name if name.endswith("__c") else f"{name}__c"
