"""A thin asynchronous client of the REST API: one pool of connections, one login at a time, patience where it helps."""

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx2

from bedstone.errors import ReadOnly
from bedstone.salesforce.client.auth import TIMEOUT, Auth, Session
from bedstone.salesforce.client.errors import BUSY, UNAUTHORIZED, OrgUnavailable, SalesforceError, error_of, first_error
from bedstone.salesforce.soql.quoting import soql_list

CONNECTIONS = 10
TRIES, FIRST_WAIT, LONGEST_WAIT = 4, 0.5, 8.0
RETRIED = frozenset({420, 429, 502, 503, 504})
NEWEST_VERSION = 66
DESCRIBES_AT_ONCE = 25
LONGEST_LIST = 200  # ids in one IN, which keeps addresses short
USAGE = re.compile(r"api-usage=(\d+)/(\d+)")
NOT_MODIFIED = 304
FIRST_ERROR = 400


@dataclass(frozen=True)
class Usage:
    """The calls of the day: used, and allowed."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        """0 to 1."""
        return self.used / self.limit if self.limit else 0.0


class SalesforceClient:
    """One org. `version` is negotiated unless it is given."""

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
            timeout=TIMEOUT, limits=httpx2.Limits(max_connections=CONNECTIONS), headers={"accept": "application/json"}
        )
        self._session: Session | None = None
        self._logging_in = asyncio.Lock()
        self._failed: tuple[float, SalesforceError] | None = None
        self.usage: Usage | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    # Reading

    async def query(self, soql: str, *, all_rows: bool = False, batch: int | None = None) -> dict[str, Any]:
        """The first page of a query; `batch` is how many records a page should have, 200 at least."""
        base = await self.base()
        headers = {"Sforce-Query-Options": f"batchSize={batch}"} if batch else {}
        path = f"{base}/{'queryAll' if all_rows else 'query'}"
        return await self._json("GET", path, params={"q": soql}, headers=headers)

    async def more(self, next_records_url: str) -> dict[str, Any]:
        """A further page."""
        return await self._json("GET", next_records_url)

    async def rows(self, soql: str, *, all_rows: bool = False) -> AsyncIterator[dict[str, Any]]:
        """Every record of a query, page by page."""
        page = await self.query(soql, all_rows=all_rows)
        while True:
            for record in page["records"]:
                yield record
            if page["done"]:
                return
            page = await self.more(page["nextRecordsUrl"])

    async def rows_by_id(self, select: str, ids: Sequence[str]) -> list[dict[str, Any]]:
        """`SELECT ... FROM ...` for some ids, in their order, in as many queries as addresses allow."""
        found: dict[str, dict[str, Any]] = {}
        for start in range(0, len(ids), LONGEST_LIST):
            async for row in self.rows(f"{select} WHERE Id IN {soql_list(ids[start : start + LONGEST_LIST])}"):
                found[row["Id"]] = row
        return [found[record] for record in ids if record in found]

    async def search(self, sosl: str) -> list[dict[str, Any]]:
        """What a search finds."""
        answer = await self._json("GET", f"{await self.base()}/search", params={"q": sosl})
        records: list[dict[str, Any]] = answer["searchRecords"] if isinstance(answer, dict) else answer
        return records

    async def parameterized_search(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The same, asked with parameters."""
        answer = await self._json("POST", f"{await self.base()}/parameterizedSearch", json=dict(body), repeat=True)
        records: list[dict[str, Any]] = answer["searchRecords"]
        return records

    async def describe_global(self) -> list[dict[str, Any]]:
        """Every object in a line."""
        answer = await self._json("GET", f"{await self.base()}/sobjects")
        objects: list[dict[str, Any]] = answer["sobjects"]
        return objects

    async def describe(self, name: str, *, since: str | None = None) -> dict[str, Any] | None:
        """An object; None if it is what it was at a time."""
        headers = {"If-Modified-Since": since} if since else {}
        answer = await self._send(
            "GET", f"{await self.base()}/sobjects/{quote(name, safe='')}/describe", headers=headers
        )
        return None if answer.status_code == NOT_MODIFIED else _read_json(answer)

    async def describe_many(
        self, names: Sequence[str], *, since: Mapping[str, str] | None = None
    ) -> AsyncIterator[tuple[str, int, Any]]:
        """Describes of many objects, 25 for one call: name, status, and what it says (nothing for those unchanged)."""
        base = await self.base()
        for start in range(0, len(names), DESCRIBES_AT_ONCE):
            part = names[start : start + DESCRIBES_AT_ONCE]
            requests = [
                {
                    "method": "GET",
                    "url": f"{base}/sobjects/{quote(name, safe='')}/describe",
                    "referenceId": f"d{number}",
                    "httpHeaders": {"If-Modified-Since": since[name]} if since and name in since else {},
                }
                for number, name in enumerate(part)
            ]
            answer = await self._json("POST", f"{base}/composite", json={"compositeRequest": requests}, repeat=True)
            for name, item in zip(part, answer["compositeResponse"], strict=True):
                yield name, item["httpStatusCode"], item["body"]

    async def limits(self) -> dict[str, Any]:
        """What the org allows, and what is left of it."""
        return await self._json("GET", f"{await self.base()}/limits")

    async def tooling_query(self, soql: str) -> dict[str, Any]:
        """A query of the Tooling API."""
        return await self._json("GET", f"{await self.base()}/tooling/query", params={"q": soql})

    async def get(self, path: str, *, headers: Mapping[str, str] | None = None, **params: str) -> Any:
        """Any address below the version."""
        return await self._json("GET", f"{await self.base()}/{path}", params=params, headers=dict(headers or {}))

    # Changing

    async def record(self, name: str, record_id: str, fields: Sequence[str] = ()) -> dict[str, Any]:
        """A record by its id."""
        params = {"fields": ",".join(fields)} if fields else {}
        return await self._json(
            "GET", f"{await self.base()}/sobjects/{quote(name, safe='')}/{quote(record_id, safe='')}", params=params
        )

    async def create(self, name: str, values: Mapping[str, Any]) -> str:
        """Add a record; its id. It is never sent twice."""
        self._check_writable()
        answer = await self._json(
            "POST", f"{await self.base()}/sobjects/{quote(name, safe='')}", json=dict(values), repeat=False
        )
        return str(answer["id"])

    async def update(self, name: str, record_id: str, values: Mapping[str, Any]) -> None:
        """Change a record."""
        self._check_writable()
        await self._send(
            "PATCH",
            f"{await self.base()}/sobjects/{quote(name, safe='')}/{quote(record_id, safe='')}",
            json=dict(values),
        )

    async def delete(self, name: str, record_id: str) -> None:
        """Remove a record."""
        self._check_writable()
        await self._send("DELETE", f"{await self.base()}/sobjects/{quote(name, safe='')}/{quote(record_id, safe='')}")

    def _check_writable(self) -> None:
        if self._read_only:
            raise ReadOnly("This org is pinned: nothing of ours changes it.")

    # The way there

    async def base(self) -> str:
        """The path of the API's version: the newest both sides know."""
        if self._version is None:
            session = await self._logged_in(None)
            answer = await self._http_request("GET", f"{session.instance_url}/services/data", repeat=True)
            if answer.status_code >= FIRST_ERROR:
                raise error_of(answer.status_code, _body(answer))
            offered = [float(item["version"]) for item in _read_json(answer)]
            self._version = f"{min(max(offered), NEWEST_VERSION):.1f}"
        return f"/services/data/v{self._version}"

    async def _json(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        answer: dict[str, Any] = _read_json(await self._send(method, path, **request))
        return answer

    async def _send(self, method: str, path: str, *, repeat: bool = True, **request: Any) -> httpx2.Response:
        """A request with a session; one that is spent is renewed once."""
        session = await self._logged_in(None)
        for attempt in range(2):
            headers = {**request.get("headers", {}), "Authorization": f"Bearer {session.access_token}"}
            given = {key: value for key, value in request.items() if key != "headers"}
            answer = await self._http_request(
                method, f"{session.instance_url}{path}", repeat=repeat, headers=headers, **given
            )
            if answer.status_code != UNAUTHORIZED or attempt:
                break
            session = await self._logged_in(session)
        if answer.status_code >= FIRST_ERROR:
            raise error_of(answer.status_code, _body(answer))
        return answer

    async def _logged_in(self, spent: Session | None) -> Session:
        """The session; a new one if the last is spent. However many ask, one logs in."""
        if self._session is not None and self._session is not spent:
            return self._session
        asked = time.monotonic()
        async with self._logging_in:
            if self._failed is not None and self._failed[0] >= asked:  # whoever waited meanwhile hears the same
                raise self._failed[1]
            if self._session is None or self._session is spent:
                try:
                    self._session = await self._login()
                except SalesforceError as error:
                    self._failed = (time.monotonic(), error)
                    raise
            return self._session

    async def _login(self) -> Session:
        wait = FIRST_WAIT
        for _ in range(TRIES - 1):
            try:
                return await self._auth.login(self._http)
            except OrgUnavailable:
                await asyncio.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT)
        return await self._auth.login(self._http)

    async def _http_request(self, method: str, address: str, *, repeat: bool, **request: Any) -> httpx2.Response:
        """With patience for an org that is busy: only where repeating changes nothing."""
        wait = FIRST_WAIT
        for attempt in range(1, TRIES + 1):
            last = attempt == TRIES or not repeat
            try:
                answer = await self._http.request(method, address, **request)
            except httpx2.InvalidURL:
                raise SalesforceError("The request is too long for an address.") from None
            except httpx2.HTTPError as error:
                if last:
                    raise OrgUnavailable(f"The org does not answer: {type(error).__name__}.") from None
            else:
                self._note_usage(answer)
                if last or not _is_busy(answer):
                    return answer
            await asyncio.sleep(wait * random.uniform(0.5, 1.0))  # noqa: S311 - no secret
            wait = min(wait * 2, LONGEST_WAIT)
        raise AssertionError("unreachable")

    def _note_usage(self, answer: httpx2.Response) -> None:
        found = USAGE.search(answer.headers.get("sforce-limit-info", ""))
        if found:
            self.usage = Usage(int(found[1]), int(found[2]))


def _is_busy(answer: httpx2.Response) -> bool:
    if answer.status_code in RETRIED:
        return True
    if answer.status_code < FIRST_ERROR:
        return False
    code, message = first_error(_body(answer))
    return code in BUSY or (code == "REQUEST_LIMIT_EXCEEDED" and "Concurrent" in message)


def _read_json(answer: httpx2.Response) -> Any:
    """What an org says; a page for people, as during maintenance, is no answer."""
    try:
        return answer.json()
    except ValueError:
        raise OrgUnavailable(f"The org answered {answer.status_code} with something that is not JSON.") from None


def _body(answer: httpx2.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None
