"""An asynchronous client of the REST API: one connection pool, one login at a time, retries for reads."""

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx2

from bedstone.errors import ReadOnly
from bedstone.salesforce.client.auth import TIMEOUT, Auth, Session
from bedstone.salesforce.client.errors import BUSY, UNAUTHORIZED, OrgUnavailable, SalesforceError, error_of, first_error
from bedstone.salesforce.soql.quoting import soql_list

MAX_CONNECTIONS = 10
MAX_ATTEMPTS = 4
FIRST_WAIT = 0.5
MAX_WAIT = 8.0
BUSY_STATUS = frozenset({420, 429, 502, 503, 504})
MAX_VERSION = 66
MAX_DESCRIBES = 25  # in one call
MAX_IDS = 200  # in one IN, which keeps addresses short
USAGE = re.compile(r"api-usage=(\d+)/(\d+)")
NOT_MODIFIED = 304
FIRST_ERROR = 400


@dataclass(frozen=True)
class Usage:
    """The daily API calls: used and allowed."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        """The used share of the limit, from 0 to 1."""
        return self.used / self.limit if self.limit else 0.0


class SalesforceClient:
    """A client of one org; `version` is negotiated unless it is given.

    A `read_only` client sends nothing but reads, and only reads are retried.
    """

    def __init__(
        self,
        auth: Auth,
        *,
        version: str | None = None,
        read_only: bool = False,
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        self._auth = auth
        self._read_only = read_only
        self._version = version
        self._http = http or httpx2.AsyncClient(
            timeout=TIMEOUT,
            limits=httpx2.Limits(max_connections=MAX_CONNECTIONS),
            headers={"accept": "application/json"},
        )
        self._session: Session | None = None
        self._logging_in = asyncio.Lock()
        self._failed: tuple[float, SalesforceError] | None = None
        self.usage: Usage | None = None

    @property
    def instance_url(self) -> str | None:
        """Return the address of the org, as far as the client has logged in."""
        return self._session.instance_url if self._session is not None else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def query(self, soql: str, *, all_rows: bool = False, batch: int | None = None) -> dict[str, Any]:
        """Return the first page of a query; `batch` is the number of records per page, at least 200."""
        base = await self.base()
        headers = {"Sforce-Query-Options": f"batchSize={batch}"} if batch else {}
        path = f"{base}/{'queryAll' if all_rows else 'query'}"
        return await self._json("GET", path, params={"q": soql}, headers=headers)

    async def more(self, next_records_url: str) -> dict[str, Any]:
        """Return a further page."""
        return await self._json("GET", next_records_url)

    async def rows(self, soql: str, *, all_rows: bool = False) -> AsyncIterator[dict[str, Any]]:
        """Yield every record of a query, page by page."""
        page = await self.query(soql, all_rows=all_rows)
        while True:
            for record in page["records"]:
                yield record
            if page["done"]:
                return
            page = await self.more(page["nextRecordsUrl"])

    async def rows_by_id(self, select: str, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Run `SELECT ... FROM ...` for some ids, and return the records in the order of the ids."""
        found: dict[str, dict[str, Any]] = {}
        for start in range(0, len(ids), MAX_IDS):
            async for row in self.rows(f"{select} WHERE Id IN {soql_list(ids[start : start + MAX_IDS])}"):
                found[row["Id"]] = row
        return [found[record] for record in ids if record in found]

    async def search(self, sosl: str) -> list[dict[str, Any]]:
        """Return what a search finds."""
        answer = await self._json("GET", f"{await self.base()}/search", params={"q": sosl})
        records: list[dict[str, Any]] = answer["searchRecords"] if isinstance(answer, dict) else answer
        return records

    async def describe_global(self) -> list[dict[str, Any]]:
        """List every object."""
        answer = await self._json("GET", f"{await self.base()}/sobjects")
        objects: list[dict[str, Any]] = answer["sobjects"]
        return objects

    async def describe(self, name: str, *, since: str | None = None) -> dict[str, Any] | None:
        """Describe an object; return None if it has not changed since a time."""
        headers = {"If-Modified-Since": since} if since else {}
        answer = await self._send(
            "GET", f"{await self.base()}/sobjects/{quote(name, safe='')}/describe", headers=headers
        )
        return None if answer.status_code == NOT_MODIFIED else _read_json(answer)

    async def describe_many(
        self, names: Sequence[str], *, since: Mapping[str, str] | None = None
    ) -> AsyncIterator[tuple[str, int, Any]]:
        """Describe many objects, 25 per call; yield name, status and description, which is null if unchanged."""
        base = await self.base()
        for start in range(0, len(names), MAX_DESCRIBES):
            part = names[start : start + MAX_DESCRIBES]
            requests = [
                {
                    "method": "GET",
                    "url": f"{base}/sobjects/{quote(name, safe='')}/describe",
                    "referenceId": f"d{number}",
                    "httpHeaders": {"If-Modified-Since": since[name]} if since and name in since else {},
                }
                for number, name in enumerate(part)
            ]
            answer = await self._json("POST", f"{base}/composite", json={"compositeRequest": requests})
            for name, item in zip(part, answer["compositeResponse"], strict=True):
                yield name, item["httpStatusCode"], item["body"]

    async def count_many(self, statements: Sequence[str]) -> dict[str, int]:
        """Return the rows of `SELECT COUNT()` statements, by one call; those that the org refuses are left out."""
        base = await self.base()
        version = base.rpartition("/")[2]
        requests = [{"method": "GET", "url": f"{version}/query?q={quote(text, safe='')}"} for text in statements]
        answer = await self._json("POST", f"{base}/composite/batch", json={"batchRequests": requests})
        return {
            text: item["result"]["totalSize"]
            for text, item in zip(statements, answer["results"], strict=True)
            if item["statusCode"] == HTTPStatus.OK
        }

    async def limits(self) -> dict[str, Any]:
        """Return the limits of the org and what remains of them."""
        return await self._json("GET", f"{await self.base()}/limits")

    async def get(self, path: str, *, headers: Mapping[str, str] | None = None, **params: str) -> Any:
        """Read any path below the API version."""
        return await self._json("GET", f"{await self.base()}/{path}", params=params, headers=dict(headers or {}))

    # Requests

    async def base(self) -> str:
        """Return the path of the API version: the newest that both sides support."""
        if self._version is None:
            session = await self._open_session(None)
            answer = await self._http_request("GET", f"{session.instance_url}/services/data")
            if answer.status_code >= FIRST_ERROR:
                raise error_of(answer.status_code, _body(answer))
            offered = [float(item["version"]) for item in _read_json(answer)]
            self._version = f"{min(max(offered), MAX_VERSION):.1f}"
        return f"/services/data/v{self._version}"

    async def _json(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = _read_json(await self._send(method, path, **request))
        return answer

    async def _send(self, method: str, path: str, **request: Any) -> httpx2.Response:
        """Send a request with a session; an expired session is renewed once."""
        if self._read_only and not _is_read(method, request):
            raise ReadOnly("This org is read-only; see `bedstone salesforce orgs`.")
        session = await self._open_session(None)
        for attempt in range(2):
            headers = {**request.get("headers", {}), "Authorization": f"Bearer {session.access_token}"}
            given = {key: value for key, value in request.items() if key != "headers"}
            answer = await self._http_request(method, f"{session.instance_url}{path}", headers=headers, **given)
            if answer.status_code != UNAUTHORIZED or attempt:
                break
            session = await self._open_session(session)
        if answer.status_code >= FIRST_ERROR:
            raise error_of(answer.status_code, _body(answer))
        return answer

    async def _open_session(self, expired: Session | None) -> Session:
        """Return the session, or a new one if the last has expired; concurrent callers share one login."""
        if self._session is not None and self._session is not expired:
            return self._session
        called_at = time.monotonic()
        async with self._logging_in:
            if self._failed is not None and self._failed[0] >= called_at:  # it failed while this caller waited
                raise self._failed[1]
            if self._session is None or self._session is expired:
                try:
                    self._session = await self._login()
                except SalesforceError as error:
                    self._failed = (time.monotonic(), error)
                    raise
            return self._session

    async def _login(self) -> Session:
        wait = FIRST_WAIT
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return await self._auth.login(self._http)
            except OrgUnavailable:
                await asyncio.sleep(wait)
                wait = min(wait * 2, MAX_WAIT)
        return await self._auth.login(self._http)

    async def _http_request(self, method: str, address: str, **request: Any) -> httpx2.Response:
        """Send a request, and retry a read while the org is busy."""
        wait = FIRST_WAIT
        attempts = MAX_ATTEMPTS if _is_read(method, request) else 1
        for attempt in range(1, attempts + 1):
            is_last = attempt == attempts
            try:
                answer = await self._http.request(method, address, **request)
            except httpx2.InvalidURL:
                raise SalesforceError("The query is too long for a URL.") from None
            except httpx2.HTTPError as error:
                if is_last:
                    raise OrgUnavailable(f"The org does not answer: {type(error).__name__}.") from None
            else:
                self._note_usage(answer)
                if is_last or not _is_busy(answer):
                    return answer
            await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
            wait = min(wait * 2, MAX_WAIT)
        raise AssertionError("unreachable")

    def _note_usage(self, answer: httpx2.Response) -> None:
        found = USAGE.search(answer.headers.get("sforce-limit-info", ""))
        if found:
            self.usage = Usage(int(found[1]), int(found[2]))


def _is_read(method: str, request: Mapping[str, Any]) -> bool:
    """Return whether a request changes nothing: GET, or a composite request of nothing but GET."""
    content = request.get("json", {})
    parts = content.get("compositeRequest") or content.get("batchRequests", ())
    return method == "GET" or (len(parts) > 0 and all(part["method"] == "GET" for part in parts))


def _is_busy(answer: httpx2.Response) -> bool:
    if answer.status_code in BUSY_STATUS:
        return True
    if answer.status_code < FIRST_ERROR:
        return False
    code, message = first_error(_body(answer))
    return code in BUSY or (code == "REQUEST_LIMIT_EXCEEDED" and "Concurrent" in message)


def _read_json(answer: httpx2.Response) -> Any:
    """Return the JSON of an answer; during maintenance an org answers with HTML."""
    try:
        return answer.json()
    except ValueError:
        raise OrgUnavailable(f"The org answered {answer.status_code} with something that is not JSON.") from None


def _body(answer: httpx2.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None
