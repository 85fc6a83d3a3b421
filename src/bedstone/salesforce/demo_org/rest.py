"""The REST surface: one request in, one answer out; composite requests come back in here."""

import json
import logging
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from bedstone.errors import BedstoneError
from bedstone.salesforce.demo_org.content.articles import categories, category_names
from bedstone.salesforce.demo_org.content.objects import KNOWLEDGE
from bedstone.salesforce.demo_org.content.records import NOW
from bedstone.salesforce.demo_org.describing import describe, describe_basic, describe_global, etag
from bedstone.salesforce.demo_org.errors import Refused, not_found
from bedstone.salesforce.demo_org.faults import DAILY_CALLS, SMALL_BATCH, Faults
from bedstone.salesforce.demo_org.org import DemoOrg
from bedstone.salesforce.demo_org.querying import Selected
from bedstone.salesforce.demo_org.schema import NUMBER_TYPES, TEXT_TYPES, ObjectType
from bedstone.salesforce.demo_org.searching import SNIPPET, SearchEngine
from bedstone.salesforce.soql import SyntaxProblem, parse_soql, parse_sosl, write
from bedstone.salesforce.soql.quoting import search_term, soql_string
from bedstone.salesforce.soql.tree import And, Condition, Membership, Not, Or, Query, Search, SemiJoin

logger = logging.getLogger(__name__)

FIRST_VERSION, LAST_VERSION = 31, 68
SEASONS = ("Spring", "Summer", "Winter")
VERSION = re.compile(r"v(\d+)\.0")
FIRST_ERROR = 400
NAME = re.compile(r"[\w.]+")
BATCH = re.compile(r"batchSize=(\d+)")
ARTICLE_FIELDS = (
    "Id, KnowledgeArticleId, Title, Summary, UrlName, ArticleNumber, LastPublishedDate, ArticleTotalViewCount"
)
MOST_SUBREQUESTS, MOST_RECORDS, MOST_ARTICLES = 25, 200, 100
ARTICLE_ORDERS = {
    "lastpublisheddate": "LastPublishedDate",
    "createddate": "CreatedDate",
    "title": "Title",
    "viewscore": "ArticleTotalViewCount",
}
CATEGORY_OPERATORS = frozenset({"AT", "ABOVE", "BELOW", "ABOVE_OR_BELOW"})
REFERENCE = re.compile(r"@\{(\w+)\.([\w.\[\]]+)\}")


@dataclass(frozen=True)
class Request:
    """What is asked; header names in lower case."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None


@dataclass(frozen=True)
class Answer:
    """What comes back; a body of None is none."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[..., Answer]


class RestApi:
    """Everything below /services/data, for somebody who is logged in."""

    def __init__(self, org: DemoOrg) -> None:
        self.org = org
        self.faults = Faults()
        self.calls = 0
        self._search = SearchEngine(org.database, org.queries)
        self._routes: list[tuple[str, re.Pattern[str], Handler]] = [
            (method, re.compile(pattern), handler)
            for methods, pattern, handler in (
                ("GET", r"", self._root),
                ("GET", r"query|queryAll", self._query),
                ("GET", r"(?:tooling/)?query/(?P<locator>[\w-]+)", self._more),
                ("GET", r"tooling/query", self._tooling_query),
                ("GET", r"tooling/sobjects", self._tooling_objects),
                ("GET", r"sobjects", self._objects),
                ("GET", r"(?:tooling/)?sobjects/(?P<name>\w+)/describe", self._describe),
                ("GET", r"sobjects/(?P<name>\w+)", self._basic),
                ("POST", r"sobjects/(?P<name>\w+)", self._create),
                ("GET PATCH DELETE", r"sobjects/(?P<name>\w+)/(?P<record>[A-Za-z0-9]{15,18})", self._record),
                ("GET PATCH DELETE", r"sobjects/(?P<name>\w+)/(?P<key>\w+)/(?P<value>[^/]+)", self._by_key),
                ("GET", r"search", self._find),
                ("GET POST", r"parameterizedSearch", self._parameterized),
                ("POST", r"composite", self._composite),
                ("POST", r"composite/batch", self._batch),
                ("POST PATCH DELETE", r"composite/sobjects", self._collection),
                ("GET POST", r"composite/sobjects/(?P<name>\w+)", self._retrieve),
                ("POST", r"composite/tree/(?P<name>\w+)", self._tree),
                ("GET", r"limits", self._limits),
                ("GET", r"limits/recordCount", self._record_count),
                ("GET", r"recent", lambda request, base: Answer(body=[])),
                ("GET", r"chatter/users/me", self._me),
                ("GET", r"support/knowledgeArticles", self._articles),
                ("GET", r"support/knowledgeArticles/(?P<record>\w+)", self._article),
                ("GET", r"support/dataCategoryGroups", self._category_groups),
            )
            for method in methods.split()
        ]

    def versions(self) -> list[dict[str, str]]:
        """What the org offers, to everybody."""
        return [
            {
                "label": f"{SEASONS[number % 3]} '{14 + (number - 29) // 3}",
                "url": f"/services/data/v{number}.0",
                "version": f"{number}.0",
            }
            for number in range(FIRST_VERSION, LAST_VERSION + 1)
        ]

    def handle(self, request: Request) -> Answer:  # noqa: PLR0911 - one for each way out
        """Answer a request below /services/data."""
        parts = request.path.removeprefix("/services/data/").strip("/")
        version, _, rest = parts.partition("/")
        found = VERSION.fullmatch(version)
        if not found or int(found[1]) > LAST_VERSION:
            return self._refused(not_found(), request)
        if int(found[1]) < FIRST_VERSION:
            return Answer(410, [{"errorCode": "UNSUPPORTED_API_VERSION", "message": "This version is retired"}])
        base = f"/services/data/{version}"
        for method, pattern, handler in self._routes:
            matched = pattern.fullmatch(rest)
            if matched and method == request.method:
                try:
                    return handler(request, base, **{key: unquote(value) for key, value in matched.groupdict().items()})
                except Refused as refused:
                    return self._refused(refused, request)
                except BedstoneError as error:
                    return self._refused(Refused("INVALID_SEARCH", error.message), request)
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                    message = f"The request cannot be read: {type(error).__name__}"
                    return self._refused(Refused("JSON_PARSER_ERROR", message), request)
                except (sqlite3.Error, OverflowError) as error:
                    logger.warning("Not served: %s", error, extra={"action": "not_served"})
                    return self._refused(Refused("QUERY_TOO_COMPLICATED", "The request is too complicated"), request)
        if any(pattern.fullmatch(rest) for _, pattern, _ in self._routes):
            allowed = ", ".join(method for method, pattern, _ in self._routes if pattern.fullmatch(rest))
            message = f"HTTP Method '{request.method}' not allowed. Allowed are {allowed}"
            return Answer(405, [{"errorCode": "METHOD_NOT_ALLOWED", "message": message}])
        return self._refused(not_found(), request)

    @staticmethod
    def _refused(refused: Refused, request: Request) -> Answer:
        return Answer(refused.status, refused.body(request.query.get("q", "").strip() or None))

    # What may be seen

    def _is_there(self, item: ObjectType) -> bool:
        return item.name != "Name" and not (item.feature == KNOWLEDGE and "knowledge-off" in self.faults)

    def _object(self, name: str) -> ObjectType:
        item = self.org.object(name)
        if not self._is_there(item):
            raise not_found()
        return item

    def _check_knowledge(self, names: Callable[[], Iterable[str]]) -> None:
        """Refuse objects that are switched off, if a statement names one."""
        if not ("knowledge-off" in self.faults or "no-permission" in self.faults):
            return
        with suppress(SyntaxProblem):  # what cannot be read is refused where it is run
            for name in names():
                item = self.org.schema.get(name)
                if item is not None and item.feature == KNOWLEDGE:
                    raise Refused("INVALID_TYPE", f"sObject type '{item.name}' is not supported.")

    # Query and search

    def _root(self, request: Request, base: str) -> Answer:
        names = (
            "query",
            "queryAll",
            "search",
            "parameterizedSearch",
            "sobjects",
            "limits",
            "composite",
            "tooling",
            "recent",
        )
        me = f"/id/{self.org.organization_id}/{self.org.user}"
        return Answer(
            body={name: f"{base}/{name}" for name in names}
            | {"identity": f"{request.headers.get('origin-of', '')}{me}"}
        )

    def _query(self, request: Request, base: str) -> Answer:
        statement = request.query.get("q")
        if not statement:
            raise Refused("MALFORMED_QUERY", "A query string has to be specified")
        self._check_knowledge(lambda: _sources(parse_soql(statement.strip())))
        if request.query.get("columns") == "true":
            return Answer(body=self._column_metadata(statement, base))
        is_all = request.path.rstrip("/").endswith("queryAll")
        return Answer(body=self.org.queries.run(statement, base, all_rows=is_all, batch=self._batch_size(request)))

    def _batch_size(self, request: Request) -> int | None:
        if "small-batches" in self.faults:
            return SMALL_BATCH
        asked = BATCH.search(request.headers.get("sforce-query-options", ""))
        return min(max(int(asked[1]), 200), 2000) if asked else None

    def _more(self, request: Request, base: str, locator: str) -> Answer:
        return Answer(body=self.org.queries.more(locator, base))

    def _column_metadata(self, statement: str, base: str) -> dict[str, Any]:
        """Names and kinds of the columns, as the sf command asks for them."""
        selected = self.org.queries.selected(statement, base)
        return {
            "columnMetadata": [_column_shown(column) for column in selected.columns],
            "entityName": "AggregateResult" if selected.is_aggregate else selected.object.name,
            "groupBy": selected.is_aggregate,
            "idSelected": any(column.name == "Id" for column in selected.columns),
            "keyPrefix": None if selected.is_aggregate else selected.object.prefix,
        }

    def _tooling_query(self, request: Request, base: str) -> Answer:
        statement = request.query.get("q", "")
        if re.search(
            r"\bFROM\s+(SandboxProcess|ScratchOrgInfo|ApexTestResult|DebugLevel|TraceFlag)\b", statement, re.IGNORECASE
        ):
            return Answer(
                body={
                    "size": 0,
                    "totalSize": 0,
                    "done": True,
                    "queryLocator": None,
                    "entityTypeName": None,
                    "records": [],
                }
            )
        answer = self.org.queries.run(statement, base)
        return Answer(body={"size": len(answer["records"]), "queryLocator": None, "entityTypeName": None} | answer)

    def _tooling_objects(self, request: Request, base: str) -> Answer:
        names = ("ApexClass", "ApexTrigger")
        return Answer(body=describe_global([self._object(name) for name in names], f"{base}/tooling"))

    def _find(self, request: Request, base: str) -> Answer:
        statement = request.query.get("q", "")
        if "search-off" in self.faults:
            raise Refused("SERVER_UNAVAILABLE", "Search is temporarily unavailable", status=503)
        self._check_knowledge(lambda: _returned(parse_sosl(statement.strip())))
        return Answer(body=self._search.run(statement, base))

    def _parameterized(self, request: Request, base: str) -> Answer:
        asked = (
            request.body if request.method == "POST" and isinstance(request.body, dict) else self._from_query(request)
        )
        words = str(asked.get("q", ""))
        fields = ", ".join(asked.get("fields") or ["Id"])
        objects = asked.get("sobjects") or [{"name": "Account"}, {"name": "Contact"}]
        parts = []
        for item in objects:
            entry = item if isinstance(item, dict) else {"name": item}
            named = [entry["name"], *(entry.get("fields") or []), *(asked.get("fields") or [])]
            if not all(NAME.fullmatch(str(name)) for name in named):
                raise Refused("INVALID_SEARCH", "Objects and fields are names")
            own = ", ".join(entry.get("fields") or []) or fields
            where = f" WHERE {_condition(entry)}" if entry.get("where") else ""
            limit = entry.get("limit") or asked.get("defaultLimit")
            parts.append(f"{entry['name']}({own}{where}{f' LIMIT {int(limit)}' if limit else ''})")
        within = {"NAME": "NAME", "EMAIL": "EMAIL", "PHONE": "PHONE"}.get(str(asked.get("in", "ALL")).upper(), "ALL")
        most = f" LIMIT {int(asked['overallLimit'])}" if asked.get("overallLimit") else ""
        extras = _categories(asked.get("dataCategories") or []) + _snippet(asked.get("snippet"))
        statement = f"FIND {{{search_term(words)}}} IN {within} FIELDS RETURNING {', '.join(parts)}{extras}{most}"
        self._check_knowledge(lambda: _returned(parse_sosl(statement)))
        return Answer(body=self._search.run(statement, base))

    @staticmethod
    def _from_query(request: Request) -> dict[str, Any]:
        names = [name for name in request.query.get("sobject", "").split(",") if name]
        listed = {key: value.split(",") for key, value in request.query.items() if key == "fields"}
        return dict(request.query) | listed | {"sobjects": [{"name": name} for name in names]}

    # Objects and records

    def _objects(self, request: Request, base: str) -> Answer:
        return Answer(
            body=describe_global([item for item in self.org.schema.objects.values() if self._is_there(item)], base)
        )

    def _describe(self, request: Request, base: str, name: str) -> Answer:
        described = describe(self.org.schema, self._object(name), base)
        tag, changed = etag(described), NOW.replace(microsecond=0)
        headers = {"ETag": tag, "Last-Modified": format_datetime(changed, usegmt=True)}
        since = request.headers.get("if-modified-since")
        if request.headers.get("if-none-match") == tag or (since and parsedate_to_datetime(since) >= changed):
            return Answer(304, None, headers)
        return Answer(200, described, headers)

    def _basic(self, request: Request, base: str, name: str) -> Answer:
        return Answer(body=describe_basic(self._object(name), base))

    def _create(self, request: Request, base: str, name: str) -> Answer:
        record = self.org.create(self._object(name).name, _object_body(request))
        location = f"{base}/sobjects/{self._object(name).name}/{record}"
        return Answer(201, {"id": record, "success": True, "errors": []}, {"Location": location})

    def _record(self, request: Request, base: str, name: str, record: str) -> Answer:
        name = self._object(name).name
        if request.method == "GET":
            fields = [part.strip() for part in request.query.get("fields", "").split(",") if part.strip()]
            return Answer(body=self.org.read(name, record, base, fields or None))
        if request.method == "DELETE":
            self.org.delete(name, record)
        else:
            self.org.update(name, record, _object_body(request))
        return Answer(204)

    def _by_key(self, request: Request, base: str, name: str, key: str, value: str) -> Answer:
        item = self._object(name)
        if request.method == "PATCH":
            record, is_new = self.org.upsert(item.name, key, value, _object_body(request))
            return Answer(201 if is_new else 200, {"id": record, "success": True, "errors": [], "created": is_new})
        found = item.field(key)
        if found is None or not found.external_id:
            message = f"Provided external ID field does not exist or is not accessible: {key}"
            raise Refused("NOT_FOUND", message, status=404)
        rows = self.org.queries.run(f"SELECT Id FROM {item.name} WHERE {found.name} = {soql_string(value)}", base)[
            "records"
        ]
        if not rows:
            raise not_found()
        if len(rows) > 1:
            return Answer(300, [row["attributes"]["url"] for row in rows])
        return self._record(request, base, name, rows[0]["Id"])

    # Several at once

    def _composite(self, request: Request, base: str) -> Answer:
        body = _object_body(request)
        requests = body["compositeRequest"]
        if body.get("allOrNone"):
            return self._all_or_none(lambda: self._composed(requests), _composite_failed)
        return self._composed(requests)

    def _all_or_none(self, work: Callable[[], Answer], failed: Callable[[Any], bool]) -> Answer:
        """Keep what was done only if nothing of it failed."""
        kept: list[Answer] = []
        try:
            with self.org.database.transaction():
                kept.append(work())
                if failed(kept[0].body):
                    raise _Undone  # noqa: TRY301 - it is what rolls the transaction back
        except _Undone:
            pass
        return kept[0]

    def _composed(self, requests: Any) -> Answer:
        if len(requests) > MOST_SUBREQUESTS:
            raise Refused("PROCESSING_HALTED", "The composite request has more than 25 subrequests")
        results: dict[str, Any] = {}
        answers = []
        for item in requests:
            try:
                filled = json.loads(_filled(json.dumps(item), results))
            except (KeyError, IndexError, TypeError, ValueError):
                message = f"Invalid reference specified in {item['referenceId']}"
                answer = Answer(400, [{"errorCode": "PROCESSING_HALTED", "message": message}])
            else:
                answer = self._sub(filled["method"], filled["url"], filled.get("httpHeaders", {}), filled.get("body"))
            results[item["referenceId"]] = answer.body
            answers.append(
                {
                    "body": answer.body,
                    "httpHeaders": dict(answer.headers),
                    "httpStatusCode": answer.status,
                    "referenceId": item["referenceId"],
                }
            )
        return Answer(body={"compositeResponse": answers})

    def _batch(self, request: Request, base: str) -> Answer:
        requests = _object_body(request)["batchRequests"]
        answers = [
            self._sub(item["method"], _absolute(item["url"], base), {}, item.get("richInput")) for item in requests
        ]
        rows = [{"statusCode": answer.status, "result": answer.body} for answer in answers]
        return Answer(body={"hasErrors": any(answer.status >= 400 for answer in answers), "results": rows})  # noqa: PLR2004

    def _sub(self, method: str, url: str, headers: Mapping[str, str], body: Any) -> Answer:
        parts = urlsplit(url)
        lower = {name.lower(): value for name, value in headers.items()}
        return self.handle(Request(method.upper(), parts.path, dict(parse_qsl(parts.query)), lower, body))

    def _collection(self, request: Request, base: str) -> Answer:
        if request.method == "DELETE":
            ids = [item for item in request.query.get("ids", "").split(",") if item]
            return Answer(body=[self._one("DELETE", None, record, {}) for record in ids])
        body = _object_body(request)
        records = body["records"]
        if not all(isinstance(record, dict) and "type" in record.get("attributes", {}) for record in records):
            raise Refused("INVALID_FIELD", "Every record needs attributes with its type")
        if len(records) > MOST_RECORDS:
            raise Refused(
                "EXCEEDED_ID_LIMIT", "record limit reached. cannot submit more than 200 records into this call"
            )
        if body.get("allOrNone"):
            return self._all_or_none(lambda: self._collected(request.method, records), _collection_failed)
        return self._collected(request.method, records)

    def _collected(self, method: str, records: Any) -> Answer:
        rows = []
        for record in records:
            values = {key: value for key, value in record.items() if key not in ("attributes", "Id", "id")}
            rows.append(self._one(method, record["attributes"]["type"], record.get("Id") or record.get("id"), values))
        return Answer(body=rows)

    def _one(self, method: str, name: str | None, record: str | None, values: Mapping[str, Any]) -> dict[str, Any]:
        try:
            if method == "POST":
                return {"id": self.org.create(str(name), values), "success": True, "errors": []}
            found = self.org.schema.of_id(str(record))
            if found is None:
                raise not_found()
            if method == "DELETE":
                self.org.delete(found.name, str(record))
            else:
                self.org.update(found.name, str(record), values)
        except Refused as refused:
            row = {"statusCode": refused.code, "message": refused.message, "fields": refused.fields or []}
            return {"success": False, "errors": [row]}
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, sqlite3.Error) as error:
            message = f"The record cannot be read: {type(error).__name__}"
            return {"success": False, "errors": [{"statusCode": "JSON_PARSER_ERROR", "message": message, "fields": []}]}
        return {"id": record, "success": True, "errors": []}

    def _retrieve(self, request: Request, base: str, name: str) -> Answer:
        asked = (
            request.body
            if request.method == "POST"
            else {key: value.split(",") for key, value in request.query.items()}
        )
        rows: list[Any] = []
        for record in asked["ids"]:
            try:
                rows.append(self.org.read(self._object(name).name, record, base, list(asked["fields"])))
            except Refused as refused:
                if refused.status != 404:  # noqa: PLR2004
                    raise
                rows.append(None)
        return Answer(body=rows)

    def _tree(self, request: Request, base: str, name: str) -> Answer:
        results = []
        with self.org.database.transaction():
            for record in _object_body(request)["records"]:
                results += self._planted(name, record, None)
        return Answer(201, {"hasErrors": False, "results": results})

    def _planted(self, name: str, record: Mapping[str, Any], link: tuple[str, str] | None) -> list[dict[str, str]]:
        nested = {key: value for key, value in record.items() if isinstance(value, dict) and "records" in value}
        values = {key: value for key, value in record.items() if key not in nested and key != "attributes"}
        made = self.org.create(name, values | (dict([link]) if link else {}))
        rows = [{"referenceId": record["attributes"]["referenceId"], "id": made}]
        for key, value in nested.items():
            relation = self.org.schema.child(self.org.object(name).name, key)
            if relation is None:
                raise Refused("INVALID_FIELD", f"No such column '{key}' on sobject of type {name}")
            for child in value["records"]:
                rows += self._planted(relation.child, child, (relation.field, made))
        return rows

    # The org

    def _limits(self, request: Request, base: str) -> Answer:
        used = self.faults.used(self.calls)
        return Answer(
            body={
                "DailyApiRequests": {"Max": DAILY_CALLS, "Remaining": DAILY_CALLS - used},
                "DailyBulkApiBatches": {"Max": 15_000, "Remaining": 15_000},
                "DataStorageMB": {"Max": 5, "Remaining": 4},
                "FileStorageMB": {"Max": 20, "Remaining": 20},
            }
        )

    def _record_count(self, request: Request, base: str) -> Answer:
        names = [name for name in request.query.get("sObjects", "").split(",") if name]
        counts = [
            {
                "count": self.org.queries.run(f"SELECT COUNT() FROM {self._object(name).name}", base)["totalSize"],
                "name": name,
            }
            for name in names
        ]
        return Answer(body={"sObjects": counts})

    def _me(self, request: Request, base: str) -> Answer:
        return Answer(body=self.org.read("User", self.org.user, base, ["Id", "Name", "Username", "Email"]))

    # Knowledge

    def _articles(self, request: Request, base: str) -> Answer:
        self._check_knowledge(lambda: ["KnowledgeArticleVersion"])
        language = (
            request.headers.get("accept-language", "").split(",")[0].split(";")[0].strip().replace("-", "_") or "en_US"
        )
        if language.lower() not in ("en_us", "de", "fr", "en"):
            raise Refused("INVALID_FIELD", "The language code is not valid or not supported by Knowledge.")
        size, page = int(request.query.get("pageSize", 20)), int(request.query.get("pageNumber", 1))
        if not 1 <= size <= MOST_ARTICLES or page < 1:
            raise Refused("INVALID_PARAMETER", f"pageSize is 1 to {MOST_ARTICLES}, pageNumber 1 or more")
        rows = self._article_rows(request, "en_US" if language == "en" else language, base)
        shown = rows[(page - 1) * size : page * size]

        def address(number: int) -> str:
            asked = {**request.query, "pageSize": size, "pageNumber": number}
            return f"{base}/support/knowledgeArticles?{urlencode(asked)}"

        articles = [self._article_line(row, base) for row in shown]
        return Answer(
            body={
                "articles": articles,
                "currentPageUrl": address(page),
                "nextPageUrl": address(page + 1) if page * size < len(rows) else None,
                "pageNumber": page,
            }
        )

    def _article_rows(self, request: Request, language: str, base: str) -> list[dict[str, Any]]:
        fields = (
            "Id, KnowledgeArticleId, Title, Summary, UrlName, ArticleNumber, LastPublishedDate, ArticleTotalViewCount"
        )
        where = f"PublishStatus = 'Online' AND Language = {soql_string(language)}"
        if words := request.query.get("q"):
            statement = f"FIND {{{search_term(words, 'OR')}}} RETURNING KnowledgeArticleVersion({fields} WHERE {where})"
            rows: list[dict[str, Any]] = self._search.run(statement, base)["searchRecords"]
        else:
            sort = ARTICLE_ORDERS.get(request.query.get("sort", "LastPublishedDate").lower())
            order = request.query.get("order", "DESC").upper()
            if sort is None or order not in ("ASC", "DESC"):
                raise Refused("INVALID_PARAMETER", "sort or order is none that articles have")
            statement = f"SELECT {fields} FROM KnowledgeArticleVersion WHERE {where} ORDER BY {sort} {order}"
            rows = self.org.queries.run(statement, base)["records"]
        chosen = json.loads(request.query.get("categories", "{}"))
        if len(chosen) > 3:  # noqa: PLR2004 - the org's own limit
            raise Refused("INVALID_FILTER_VALUE", "At most three categories can be given")
        for group, category in chosen.items():
            names = category_names(group, request.query.get("queryMethod", "AT"), [category])
            statement = (
                'SELECT "ParentId", "DataCategoryName" FROM "Knowledge__DataCategorySelection" '
                'WHERE "DataCategoryGroupName" = ?'
            )
            inside = {parent for parent, name in self.org.database.rows(statement, (group,)) if name in names}
            rows = [row for row in rows if row["Id"] in inside]
        return rows

    @staticmethod
    def _article_line(row: Mapping[str, Any], base: str) -> dict[str, Any]:
        return {
            "articleNumber": row["ArticleNumber"],
            "categoryGroups": [],
            "downVoteScore": 0.0,
            "id": row["KnowledgeArticleId"],
            "lastPublishedDate": row["LastPublishedDate"],
            "summary": row["Summary"],
            "title": row["Title"],
            "upVoteScore": 0.0,
            "url": f"{base}/support/knowledgeArticles/{row['KnowledgeArticleId']}",
            "urlName": row["UrlName"],
            "viewCount": row["ArticleTotalViewCount"],
            "viewScore": 0.0,
        }

    def _article(self, request: Request, base: str, record: str) -> Answer:
        self._check_knowledge(lambda: ["KnowledgeArticleVersion"])
        fields = f"{ARTICLE_FIELDS}, Answer__c, Steps__c"
        wanted = f"KnowledgeArticleId = {soql_string(record)} OR UrlName = {soql_string(record)}"
        statement = f"SELECT {fields} FROM Knowledge__kav WHERE PublishStatus = 'Online' AND ({wanted})"
        rows = self.org.queries.run(statement, base)["records"]
        if not rows:
            raise not_found()
        items = [
            {"label": label, "name": name, "type": "RICH_TEXT_AREA", "value": rows[0][name]}
            for name, label in (("Answer__c", "Answer"), ("Steps__c", "Steps"))
        ]
        return Answer(body=self._article_line(rows[0], base) | {"layoutItems": items})

    def _category_groups(self, request: Request, base: str) -> Answer:
        self._check_knowledge(lambda: ["KnowledgeArticleVersion"])
        only_top = request.query.get("topCategoriesOnly", "true") != "false"

        def shown(group: str, children: Mapping[str, Any], depth: int) -> list[dict[str, Any]]:
            return [
                {
                    "childCategories": None
                    if only_top and depth
                    else shown(group, item.get("children", {}), depth + 1),
                    "label": item["label"],
                    "name": name,
                    "url": f"{base}/support/dataCategoryGroups/{group}/dataCategories/{name}",
                }
                for name, item in children.items()
            ]

        groups = [
            {
                "label": group["label"],
                "name": name,
                "objectUsage": "KnowledgeArticleVersion",
                "topCategories": shown(name, group["children"], 0),
            }
            for name, group in categories().items()
        ]
        return Answer(body={"categoryGroups": groups})


def _sources(query: Query) -> Iterator[str]:
    """What a query and its subqueries name after FROM."""
    yield query.sources[0].name
    for column in query.columns:
        if isinstance(column.expression, Query):
            yield from _sources(column.expression)
    yield from _joined_sources(query.where)


def _joined_sources(condition: Condition | None) -> Iterator[str]:
    match condition:
        case And(terms) | Or(terms):
            for term in terms:
                yield from _joined_sources(term)
        case Not(term):
            yield from _joined_sources(term)
        case Membership(values=SemiJoin() as inner):
            yield inner.sources[0].name


def _returned(search: Search) -> list[str]:
    return [item.name for item in search.returning]


def _condition(entry: Mapping[str, Any]) -> str:
    """A condition somebody sent, and nothing but that."""
    try:
        query = parse_soql(f"SELECT Id FROM {entry['name']} WHERE {entry['where']}")
    except SyntaxProblem as problem:
        raise Refused("INVALID_SEARCH", f"The condition cannot be read: {problem.message}") from None
    if query != Query(query.columns, query.sources, query.where) or query.where is None:
        raise Refused("INVALID_SEARCH", "The condition is not one condition")
    return write(query.where)


def _categories(asked: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    for item in asked:
        names = [str(item["groupName"]), *map(str, item["categories"])]
        operator = str(item.get("operator", "AT")).upper()
        if not all(NAME.fullmatch(name) for name in names) or operator not in CATEGORY_OPERATORS:
            raise Refused("INVALID_SEARCH", "Data categories are names")
        parts.append(f"{names[0]} {operator} ({', '.join(names[1:])})")
    return f" WITH DATA CATEGORY {' AND '.join(parts)}" if parts else ""


def _snippet(asked: Any) -> str:
    if not asked:
        return ""
    length = asked.get("targetLength", SNIPPET) if isinstance(asked, dict) else asked
    return f" WITH SNIPPET (target_length={int(length)})"


def _column_shown(column: Selected) -> dict[str, Any]:
    item = column.kind
    is_ours = item is not None and not item.read_only
    kind = item.type if item is not None else "string"
    return {
        "aggregate": column.is_child,
        "apexType": None,
        "booleanType": kind == "boolean",
        "columnName": column.name,
        "custom": column.name.endswith("__c"),
        "displayName": column.name,
        "foreignKeyName": None,
        "insertable": is_ours,
        "joinColumns": [_column_shown(inner) for inner in column.inner],
        "numberType": kind in NUMBER_TYPES,
        "textType": kind in TEXT_TYPES - {"multipicklist", "combobox"},
        "updatable": is_ours,
    }


class _Undone(Exception):
    """What was done is taken back."""


def _composite_failed(body: Any) -> bool:
    return any(item["httpStatusCode"] >= FIRST_ERROR for item in body["compositeResponse"])


def _collection_failed(body: Any) -> bool:
    return not all(row["success"] for row in body)


def _object_body(request: Request) -> Mapping[str, Any]:
    if not isinstance(request.body, dict):
        raise Refused(
            "JSON_PARSER_ERROR", "The HTTP entity body is required, but this request has no JSON object in it."
        )
    return request.body


def _absolute(url: str, base: str) -> str:
    return url if url.startswith("/") else f"{base.rpartition('/')[0]}/{url}"


def _filled(text: str, results: Mapping[str, Any]) -> str:
    """References to earlier answers: @{refAccount.id}, @{q.records[0].Id}."""

    def value(found: "re.Match[str]") -> str:
        current: Any = results.get(found[1])
        for part in re.findall(r"\w+", found[2]):
            current = current[int(part)] if part.isdigit() and isinstance(current, list) else current[part]
        return json.dumps(str(current))[1:-1]

    return REFERENCE.sub(value, text)


def now_milliseconds() -> str:
    """The time as tokens carry it."""
    return str(int(time.time() * 1000))
