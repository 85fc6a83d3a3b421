"""Articles asked in the org: SOSL with its own order, SOQL where SOSL fails."""

import asyncio
import logging
import re
import time
from collections.abc import Sequence
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
from bedstone.services.articles.article_types import ArticleType, article_of

logger = logging.getLogger(__name__)

VERSIONS = "KnowledgeArticleVersion"
MOST_ROWS, LONGEST_TERM, MOST_WORDS, LONGEST_LIKE, LONGEST_WORD = 200, 4_000, 20, 300, 60
SNIPPET_LENGTH = 120
DESCRIBED_SECONDS = 3600.0
ONLINE = "PublishStatus = 'Online'"
CATEGORY = re.compile(r"[A-Za-z]\w{0,79}")
LONGEST_NAME, LONGEST_ADDRESS = 255, 12_000
ARTICLE_PREFIX = "kA"  # of an article; of one of its versions it is ka
DISABLED = (
    "Salesforce Knowledge is not enabled in this org, or not for this user. An administrator must enable Knowledge "
    "and give the user the View Articles permission (internal users need the Knowledge User licence)."
)


class LiveArticles:
    """One org's articles. What the org tells of its types is kept for an hour."""

    def __init__(self, client: SalesforceClient, body_fields: Sequence[str] = ()) -> None:
        self.client = client
        self._body_fields = body_fields
        self._types: dict[str, tuple[float, ArticleType]] = {}
        self._describing = asyncio.Lock()
        self._failed: tuple[float, OrgUnavailable] | None = None

    # Searching

    async def search(self, wanted: ArticleQuery) -> ArticlePage:
        """By SOSL: all words, then any of them; by SOQL if SOSL does not work."""
        term = checked_term(wanted)
        versions = await self.type_of(VERSIONS)
        language = _language(wanted.language, versions)
        where = f"{ONLINE} AND Language = {soql_string(language)}"
        categories = _categories(wanted)
        try:
            rows = await self._found(term, versions, where, categories)
            if not rows and " AND " in term:
                rows = await self._found(search_term(wanted.query, "OR"), versions, where, categories)
                logger.debug("All words found nothing, any of them %d", len(rows), extra={"action": "sosl_or"})
        except SalesforceError as error:
            if await self._is_final(error):
                raise
            logger.info("SOSL failed, asking by SOQL: %s", error.message, extra={"action": "sosl_failed"})
            return await self._by_title(wanted, versions, where, categories)
        articles = [article_of(row) for row in rows[: wanted.limit]]
        return ArticlePage(articles, len(rows), "sosl", is_minimum=len(rows) >= MOST_ROWS)

    async def _found(self, term: str, versions: ArticleType, where: str, categories: str) -> list[dict[str, Any]]:
        returning = f"{VERSIONS}({versions.selection} WHERE {where} LIMIT {MOST_ROWS})"
        snippet = f" WITH SNIPPET (target_length={SNIPPET_LENGTH})"
        return await self.client.search(f"FIND {{{term}}} IN ALL FIELDS RETURNING {returning}{categories}{snippet}")

    async def _is_final(self, error: SalesforceError) -> bool:
        """Whether asking in another way is of no use; what is not there is told in better words."""
        if isinstance(error, AuthError | LimitExceeded | PermissionDenied):
            return True
        if isinstance(error, OrgUnavailable) and "details" not in error.details:  # there was no answer at all
            return True
        if _code(error) == "INVALID_TYPE":
            raise await self._explained(error) from None
        return False

    async def _by_title(self, wanted: ArticleQuery, versions: ArticleType, where: str, categories: str) -> ArticlePage:
        select = f"SELECT {versions.selection} FROM {VERSIONS} WHERE {where}"
        more = f"{categories} ORDER BY LastPublishedDate DESC LIMIT {MOST_ROWS}"
        phrase = " ".join(wanted.query.split())[:LONGEST_LIKE]  # a title is shorter
        rows = await self._query(f"{select} AND Title LIKE {like_string(phrase, before=True)}{more}")
        words = list(dict.fromkeys(word.casefold()[:LONGEST_WORD] for word in re.findall(r"\w+", wanted.query)))
        words = words[:MOST_WORDS]
        if not rows and words:
            columns = ("Title", "Summary") if versions.filters_summary else ("Title",)
            terms = [
                "(" + " OR ".join(f"{column} LIKE {like_string(word, before=True)}" for column in columns) + ")"
                for word in words
            ]
            rows = await self._query(f"{select} AND {' AND '.join(terms)}{more}")
            rows.sort(key=lambda row: -sum(word in row["Title"].casefold() for word in words))
        articles = [article_of(row) for row in rows[: wanted.limit]]
        return ArticlePage(articles, len(rows), "soql", is_minimum=len(rows) >= MOST_ROWS)

    # Reading

    async def get(self, given: str) -> Article:
        """A published article by the id of its version, or by its own."""
        record = long_id(given.strip())
        if record is None:
            raise InvalidInput(
                f"article_id is not a Salesforce id: {given[:40]!r} (15 or 18 letters and digits)",
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
            raise await self._not_found(given, rows)
        return await self._with_body(_preferred(online))

    async def by_url_name(self, url_name: str, language: str = DEFAULT_LANGUAGE) -> Article:
        """A published article by its name in addresses."""
        versions = await self.type_of(VERSIONS)
        if len(url_name) > LONGEST_NAME:
            raise ArticleNotFound("No published article has so long a name.")
        rows = await self._query(
            f"SELECT {versions.selection} FROM {VERSIONS} WHERE {ONLINE} AND UrlName = {soql_string(url_name)}"
        )
        if not rows:
            raise ArticleNotFound(f"No published article is called {url_name!r}.")
        return await self._with_body(_preferred(rows, language))

    async def url_names(self, beginning: str, most: int) -> list[str]:
        """Names in addresses that begin so."""
        rows = await self._query(
            f"SELECT UrlName FROM {VERSIONS} WHERE {ONLINE} AND UrlName LIKE {like_string(beginning)} "
            f"ORDER BY UrlName LIMIT {most}"
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
        return Article(**{**vars(article), "body": body})

    async def _type_by_prefix(self, record: str) -> str:
        objects = await self.client.describe_global()
        found = next((item["name"] for item in objects if item.get("keyPrefix") == record[:3]), None)
        if found is None:
            raise ArticleNotFound(f"No article type has ids like {record}.")
        return str(found)

    async def _not_found(self, given: str, rows: Sequence[dict[str, Any]]) -> ArticleNotFound:
        """Which version is published instead, where this one is a draft or was replaced."""
        if not rows:
            return ArticleNotFound(f"No published article has the id {given}.")
        same = f"KnowledgeArticleId = {soql_string(rows[0]['KnowledgeArticleId'])} AND {ONLINE}"
        online = await self._query(f"SELECT Id, Language FROM {VERSIONS} WHERE {same}")
        status = str(rows[0]["PublishStatus"]).lower()
        of_language = [row for row in online if row["Language"] == rows[0].get("Language")]
        found = next(iter([*of_language, *online]), None)
        message = f"The version {given} is not published ({status})."
        if found is None:
            return ArticleNotFound(message)
        return ArticleNotFound(f"{message} Published is {found['Id']}.", details={"published_id": found["Id"]})

    # What there is

    async def type_of(self, name: str) -> ArticleType:
        """What the org tells of an object that holds articles."""
        asked = time.monotonic()
        async with self._describing:
            if self._failed is not None and self._failed[0] >= asked:  # whoever waited meanwhile hears the same
                raise self._failed[1]
            known = self._types.get(name)
            if known is not None and time.monotonic() - known[0] < DESCRIBED_SECONDS:
                return known[1]
            try:
                described = await self.client.describe(name)
            except RecordNotFound as error:
                raise await self._explained(error) from None
            except OrgUnavailable as error:
                self._failed = (time.monotonic(), error)
                raise
            assert described is not None
            found = ArticleType.of(described, self._body_fields)
            self._types[name] = (time.monotonic(), found)
            return found

    async def types(self) -> list[ArticleType]:
        """Every object that holds articles."""
        await self.type_of(VERSIONS)  # Knowledge is there, or it is said why not
        names = [item["name"] for item in await self.client.describe_global() if item.get("queryable", True)]
        return [await self.type_of(name) for name in names if name.endswith("__kav")]

    async def _query(self, soql: str) -> list[dict[str, Any]]:
        try:
            return [row async for row in self.client.rows(soql)]
        except SalesforceError as error:
            if _code(error) == "INVALID_TYPE":
                raise await self._explained(error) from None
            raise

    async def _explained(self, error: SalesforceError) -> SalesforceError:
        """An object that is refused: not enabled if the org does not list it, not permitted if it does."""
        self._types.clear()
        names = {item["name"] for item in await self.client.describe_global()}
        if VERSIONS not in names:
            return KnowledgeDisabled(DISABLED, **error.details)
        return PermissionDenied("The user may not read Knowledge articles in this org.", **error.details)


def checked_term(wanted: ArticleQuery) -> str:
    """The words of a query as SOSL takes them; what no source could answer is refused."""
    term = search_term(wanted.query)
    if len(term) > LONGEST_TERM or len(quote(term)) > LONGEST_ADDRESS:
        message = (
            f"query is too long: with its words joined it has {len(term):,} characters, {LONGEST_TERM:,} is the most"
        )
        raise InvalidInput(message, parameter="query")
    for name in (*wanted.categories, *wanted.categories.values()):
        if not CATEGORY.fullmatch(name):
            raise InvalidInput(f"data_categories: {name[:80]!r} is not a name", parameter="data_categories")
    return term


def _code(error: SalesforceError) -> str:
    return str(error.details.get("details", {}).get("errorCode", ""))


def _preferred(rows: Sequence[dict[str, Any]], language: str = DEFAULT_LANGUAGE) -> dict[str, Any]:
    """Of several translations: the language asked for, else the one the others were made from."""
    return min(rows, key=lambda row: (row.get("Language") != language, not row.get("IsMasterLanguage")))


def _language(given: str, versions: ArticleType) -> str:
    known = {name.lower(): name for name in versions.languages}
    if known and given.lower() not in known:
        listed = ", ".join(sorted(versions.languages))
        raise InvalidInput(f"language {given!r} is not one of this org's Knowledge: {listed}", parameter="language")
    return known.get(given.lower(), given)


def _categories(wanted: ArticleQuery) -> str:
    """A clause for data categories, those below each included."""
    parts = [f"{_custom(group)} BELOW {_custom(category)}" for group, category in wanted.categories.items()]
    return f" WITH DATA CATEGORY {' AND '.join(parts)}" if parts else ""


def _custom(name: str) -> str:
    return name if name.endswith("__c") else f"{name}__c"
