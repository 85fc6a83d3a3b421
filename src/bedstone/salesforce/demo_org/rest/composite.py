"""Routes that do several things at once: composite and batch requests, collections and trees of records."""

import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from bedstone.salesforce.demo_org.errors import ApiError, not_found
from bedstone.salesforce.demo_org.rest.messages import Request, Response
from bedstone.salesforce.demo_org.rest.routes import ApiState, Routes, route

MAX_SUBREQUESTS = 25
MAX_RECORDS = 200
NOT_FOUND_STATUS = 404
REFERENCE = re.compile(r"@\{(\w+)\.([\w.\[\]]+)\}")


class CompositeRoutes(Routes):
    """Everything below /composite; `handle` answers the requests inside a request."""

    def __init__(self, state: ApiState, handle: Callable[[Request], Response]) -> None:
        super().__init__(state)
        self._handle = handle

    # Requests inside a request

    @route("POST", r"composite")
    def _composite(self, request: Request, base: str) -> Response:
        body = request.json_object()
        requests = body["compositeRequest"]
        if body.get("allOrNone"):
            return self._all_or_none(lambda: self._run_composite(requests), _has_failed_subrequest)
        return self._run_composite(requests)

    def _run_composite(self, requests: Any) -> Response:
        if len(requests) > MAX_SUBREQUESTS:
            raise ApiError("PROCESSING_HALTED", "The composite request has more than 25 subrequests")
        results: dict[str, Any] = {}
        entries = []
        for item in requests:
            response = self._run_subrequest(item, results)
            results[item["referenceId"]] = response.body
            entries.append(
                {
                    "body": response.body,
                    "httpHeaders": dict(response.headers),
                    "httpStatusCode": response.status,
                    "referenceId": item["referenceId"],
                }
            )
        return Response(body={"compositeResponse": entries})

    def _run_subrequest(self, item: Any, results: Mapping[str, Any]) -> Response:
        try:
            filled = json.loads(_fill_references(json.dumps(item), results))
        except (KeyError, IndexError, TypeError, ValueError):
            message = f"Invalid reference specified in {item['referenceId']}"
            return Response(400, [{"errorCode": "PROCESSING_HALTED", "message": message}])
        return self._send(filled["method"], filled["url"], filled.get("httpHeaders", {}), filled.get("body"))

    @route("POST", r"composite/batch")
    def _batch(self, request: Request, base: str) -> Response:
        version_root = base.rpartition("/")[0]
        responses = []
        for item in request.json_object()["batchRequests"]:
            url = item["url"] if item["url"].startswith("/") else f"{version_root}/{item['url']}"
            responses.append(self._send(item["method"], url, {}, item.get("richInput")))
        rows = [{"statusCode": response.status, "result": response.body} for response in responses]
        return Response(body={"hasErrors": any(response.is_error for response in responses), "results": rows})

    def _send(self, method: str, url: str, headers: Mapping[str, str], body: Any) -> Response:
        parts = urlsplit(url)
        lower = {name.lower(): value for name, value in headers.items()}
        return self._handle(Request(method.upper(), parts.path, dict(parse_qsl(parts.query)), lower, body))

    def _all_or_none(self, work: Callable[[], Response], has_failed: Callable[[Any], bool]) -> Response:
        """Do the work, and roll it back if any part of it failed."""
        response = None
        try:
            with self._org.database.transaction():
                response = work()
                if has_failed(response.body):
                    raise _RollBack  # noqa: TRY301 - leaving the transaction is what rolls it back
        except _RollBack:
            pass
        assert response is not None
        return response

    # Collections of records

    @route("POST PATCH DELETE", r"composite/sobjects")
    def _collection(self, request: Request, base: str) -> Response:
        if request.method == "DELETE":
            return Response(body=[self._change("DELETE", None, record, {}) for record in request.names("ids")])
        body = request.json_object()
        records = body["records"]
        if not all(isinstance(record, dict) and "type" in record.get("attributes", {}) for record in records):
            raise ApiError("INVALID_FIELD", "Every record needs attributes with its type")
        if len(records) > MAX_RECORDS:
            raise ApiError(
                "EXCEEDED_ID_LIMIT", "record limit reached. cannot submit more than 200 records into this call"
            )
        if body.get("allOrNone"):
            return self._all_or_none(lambda: self._change_all(request.method, records), _has_failed_record)
        return self._change_all(request.method, records)

    def _change_all(self, method: str, records: Any) -> Response:
        rows = []
        for record in records:
            values = {key: value for key, value in record.items() if key not in ("attributes", "Id", "id")}
            record_id = record.get("Id") or record.get("id")
            rows.append(self._change(method, record["attributes"]["type"], record_id, values))
        return Response(body=rows)

    def _change(self, method: str, name: str | None, record: str | None, values: Mapping[str, Any]) -> dict[str, Any]:
        """Create, update or delete one record; an error becomes its row."""
        try:
            if method == "POST":
                record = self._org.create(str(name), values)
            else:
                self._change_existing(method, str(record), values)
        except ApiError as error:
            return _failure(error.code, error.message, error.fields or [])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, sqlite3.Error) as error:
            return _failure("JSON_PARSER_ERROR", f"The record cannot be read: {type(error).__name__}", [])
        return {"id": record, "success": True, "errors": []}

    def _change_existing(self, method: str, record: str, values: Mapping[str, Any]) -> None:
        item = self._org.schema.of_id(record)
        if item is None:
            raise not_found()
        if method == "DELETE":
            self._org.delete(item.name, record)
        else:
            self._org.update(item.name, record, values)

    @route("GET POST", r"composite/sobjects/(?P<name>\w+)")
    def _retrieve(self, request: Request, base: str, name: str) -> Response:
        """Return records by their ids; null for one that does not exist."""
        is_post = request.method == "POST"
        wanted = request.body if is_post else {key: value.split(",") for key, value in request.query.items()}
        rows: list[Any] = []
        for record in wanted["ids"]:
            try:
                rows.append(self._org.read(self._state.object(name).name, record, base, list(wanted["fields"])))
            except ApiError as error:
                if error.status != NOT_FOUND_STATUS:
                    raise
                rows.append(None)
        return Response(body=rows)

    # Trees of records

    @route("POST", r"composite/tree/(?P<name>\w+)")
    def _tree(self, request: Request, base: str, name: str) -> Response:
        results = []
        with self._org.database.transaction():
            for record in request.json_object()["records"]:
                results += self._create_tree(name, record, None)
        return Response(201, {"hasErrors": False, "results": results})

    def _create_tree(self, name: str, record: Mapping[str, Any], link: tuple[str, str] | None) -> list[dict[str, str]]:
        """Create a record and the children inside it; `link` is the field and the id of its parent."""
        nested = {key: value for key, value in record.items() if isinstance(value, dict) and "records" in value}
        values = {key: value for key, value in record.items() if key not in nested and key != "attributes"}
        record_id = self._org.create(name, values | (dict([link]) if link else {}))
        rows = [{"referenceId": record["attributes"]["referenceId"], "id": record_id}]
        for key, value in nested.items():
            relation = self._org.schema.child(self._org.object(name).name, key)
            if relation is None:
                raise ApiError("INVALID_FIELD", f"No such column '{key}' on sobject of type {name}")
            for child in value["records"]:
                rows += self._create_tree(relation.child, child, (relation.field, record_id))
        return rows


class _RollBack(Exception):
    """Leaves a transaction without keeping its changes."""


def _has_failed_subrequest(body: Any) -> bool:
    return any(Response(item["httpStatusCode"]).is_error for item in body["compositeResponse"])


def _has_failed_record(body: Any) -> bool:
    return not all(row["success"] for row in body)


def _failure(code: str, message: str, fields: list[str]) -> dict[str, Any]:
    return {"success": False, "errors": [{"statusCode": code, "message": message, "fields": fields}]}


def _fill_references(text: str, results: Mapping[str, Any]) -> str:
    """Replace references to earlier responses: @{refAccount.id}, @{q.records[0].Id}."""

    def value(reference: "re.Match[str]") -> str:
        current: Any = results.get(reference[1])
        for part in re.findall(r"\w+", reference[2]):
            current = current[int(part)] if part.isdigit() and isinstance(current, list) else current[part]
        return json.dumps(str(current))[1:-1]

    return REFERENCE.sub(value, text)
