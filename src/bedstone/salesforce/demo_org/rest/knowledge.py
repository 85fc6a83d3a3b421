"""Routes for Knowledge: articles and data categories."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from bedstone.salesforce.demo_org.content.articles import categories, category_names
from bedstone.salesforce.demo_org.errors import ApiError, not_found
from bedstone.salesforce.demo_org.rest.messages import Request, Response
from bedstone.salesforce.demo_org.rest.routes import Routes, route
from bedstone.salesforce.soql.quoting import search_term, soql_string

MAX_PAGE_SIZE = 100
MAX_CATEGORIES = 3
LANGUAGES = frozenset({"en_us", "de", "fr", "en"})
FIELDS = "Id, KnowledgeArticleId, Title, Summary, UrlName, ArticleNumber, LastPublishedDate, ArticleTotalViewCount"
SORT_FIELDS = {
    "lastpublisheddate": "LastPublishedDate",
    "createddate": "CreatedDate",
    "title": "Title",
    "viewscore": "ArticleTotalViewCount",
}


class KnowledgeRoutes(Routes):
    """Everything below /support."""

    @route("GET", r"support/knowledgeArticles")
    def _list(self, request: Request, base: str) -> Response:
        self._check_enabled()
        language = _language(request)
        size, page = int(request.query.get("pageSize", 20)), int(request.query.get("pageNumber", 1))
        if not 1 <= size <= MAX_PAGE_SIZE or page < 1:
            raise ApiError("INVALID_PARAMETER", f"pageSize is 1 to {MAX_PAGE_SIZE}, pageNumber 1 or more")
        rows = self._rows(request, language, base)

        def address(number: int) -> str:
            parameters = {**request.query, "pageSize": size, "pageNumber": number}
            return f"{base}/support/knowledgeArticles?{urlencode(parameters)}"

        return Response(
            body={
                "articles": [_summary(row, base) for row in rows[(page - 1) * size : page * size]],
                "currentPageUrl": address(page),
                "nextPageUrl": address(page + 1) if page * size < len(rows) else None,
                "pageNumber": page,
            }
        )

    def _check_enabled(self) -> None:
        self._state.check_knowledge(lambda: ["KnowledgeArticleVersion"])

    def _rows(self, request: Request, language: str, base: str) -> list[dict[str, Any]]:
        where = f"PublishStatus = 'Online' AND Language = {soql_string(language)}"
        if words := request.query.get("q"):
            statement = f"FIND {{{search_term(words, 'OR')}}} RETURNING KnowledgeArticleVersion({FIELDS} WHERE {where})"
            rows = self._org.searches.run(statement, base)["searchRecords"]
        else:
            sort = SORT_FIELDS.get(request.query.get("sort", "LastPublishedDate").lower())
            order = request.query.get("order", "DESC").upper()
            if sort is None or order not in ("ASC", "DESC"):
                raise ApiError("INVALID_PARAMETER", "Articles cannot be sorted by this sort or order")
            statement = f"SELECT {FIELDS} FROM KnowledgeArticleVersion WHERE {where} ORDER BY {sort} {order}"
            rows = self._org.queries.run(statement, base)["records"]
        return self._in_categories(rows, request)

    def _in_categories(self, rows: list[dict[str, Any]], request: Request) -> list[dict[str, Any]]:
        chosen = json.loads(request.query.get("categories", "{}"))
        if len(chosen) > MAX_CATEGORIES:
            raise ApiError("INVALID_FILTER_VALUE", "At most three categories can be given")
        for group, category in chosen.items():
            names = category_names(group, request.query.get("queryMethod", "AT"), [category])
            inside = self._org.database.ids_in_categories(group, names)
            rows = [row for row in rows if row["Id"] in inside]
        return rows

    @route("GET", r"support/knowledgeArticles/(?P<record>\w+)")
    def _read(self, request: Request, base: str, record: str) -> Response:
        self._check_enabled()
        condition = f"KnowledgeArticleId = {soql_string(record)} OR UrlName = {soql_string(record)}"
        statement = (
            f"SELECT {FIELDS}, Answer__c, Steps__c FROM Knowledge__kav WHERE PublishStatus = 'Online' AND ({condition})"
        )
        rows = self._org.queries.run(statement, base)["records"]
        if not rows:
            raise not_found()
        items = [
            {"label": label, "name": name, "type": "RICH_TEXT_AREA", "value": rows[0][name]}
            for name, label in (("Answer__c", "Answer"), ("Steps__c", "Steps"))
        ]
        return Response(body=_summary(rows[0], base) | {"layoutItems": items})

    @route("GET", r"support/dataCategoryGroups")
    def _category_groups(self, request: Request, base: str) -> Response:
        self._check_enabled()
        is_deep = request.query.get("topCategoriesOnly", "true") == "false"
        groups = [
            {
                "label": group["label"],
                "name": name,
                "objectUsage": "KnowledgeArticleVersion",
                "topCategories": _category_tree(
                    f"{base}/support/dataCategoryGroups/{name}", group["children"], is_deep=is_deep
                ),
            }
            for name, group in categories().items()
        ]
        return Response(body={"categoryGroups": groups})


def _language(request: Request) -> str:
    """Return the first language a client accepts, as Knowledge spells it."""
    first = request.headers.get("accept-language", "").split(",")[0].split(";")[0].strip()
    language = first.replace("-", "_") or "en_US"
    if language.lower() not in LANGUAGES:
        raise ApiError("INVALID_FIELD", "The language code is not valid or not supported by Knowledge.")
    return "en_US" if language == "en" else language


def _summary(row: Mapping[str, Any], base: str) -> dict[str, Any]:
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


def _category_tree(address: str, children: Mapping[str, Any], *, is_deep: bool, depth: int = 0) -> list[dict[str, Any]]:
    """Return categories with those below them; null instead where only the top ones are asked for."""
    return [
        {
            "childCategories": _category_tree(address, item.get("children", {}), is_deep=is_deep, depth=depth + 1)
            if is_deep or not depth
            else None,
            "label": item["label"],
            "name": name,
            "url": f"{address}/dataCategories/{name}",
        }
        for name, item in children.items()
    ]
