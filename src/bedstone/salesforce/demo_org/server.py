"""The demo org over HTTP: an ASGI app with the REST API and the logins."""

import json
import re
import zlib
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, RedirectResponse
from starlette.responses import Response as HttpResponse
from starlette.routing import Route

from bedstone.errors import BedstoneError
from bedstone.salesforce.demo_org.dates import Calendar
from bedstone.salesforce.demo_org.faults import DAILY_CALLS, FIXED_TIME, NAMES, SLOW_SECONDS, Faults
from bedstone.salesforce.demo_org.identity import Identity
from bedstone.salesforce.demo_org.org import DemoOrg
from bedstone.salesforce.demo_org.rest import Request, Response, RestApi

JSON = "application/json;charset=UTF-8"
LOGIN_PREFIX = re.compile(r"^/_login/[^/]*salesforce\.com")
SLASHES = re.compile("/{2,}")  # the sf command doubles the first one
MAX_BODY_BYTES = 16 * 2**20
METHODS = ["GET", "POST", "PATCH", "PUT", "DELETE", "HEAD"]


class DemoServer:
    """One org with its logins and its faults; `admin` lets clients switch faults."""

    def __init__(self, org: DemoOrg, faults: Faults | None = None, *, admin: bool = False) -> None:
        self.org = org
        self.api = RestApi(org)
        self._state = self.api.state
        self.identity = Identity(org)
        self._admin = admin
        self._turn = 0
        self.set_faults(faults or Faults())

    def app(self) -> Starlette:
        """Return the ASGI app."""
        return Starlette(routes=[Route("/{path:path}", self._serve, methods=METHODS)])

    def set_faults(self, faults: Faults) -> None:
        """Replace the faults that are on."""
        if "expired-token" in faults:
            self.identity.expire()
            faults = faults.without("expired-token")
        self._state.faults = faults
        clock = self.org.calendar
        fixed = (
            Calendar(lambda: FIXED_TIME, clock.zone, clock.fiscal_start)
            if "fixed-clock" in faults
            else Calendar(zone=clock.zone)
        )
        self.org.use_calendar(fixed)

    async def _serve(self, http: HttpRequest) -> HttpResponse:
        raw = http.scope.get("raw_path") or http.url.path.encode()  # the router decodes each part once
        path = LOGIN_PREFIX.sub("", SLASHES.sub("/", raw.decode("ascii", "replace").partition("?")[0]))
        origin = f"{http.url.scheme}://{http.url.netloc}"
        if self._admin and path == "/_demo/faults":
            return await self._switch(http)
        try:
            body = await _body(http)
        except ValueError as error:
            return _json(400, [{"errorCode": "JSON_PARSER_ERROR", "message": str(error)}])
        if "slow" in self._state.faults:
            await anyio.sleep(SLOW_SECONDS)
        if self._is_down():
            return _json(503, [{"errorCode": "SERVER_UNAVAILABLE", "message": "Service Unavailable"}])
        return _http_response(await to_thread.run_sync(self._respond, http, path, origin, body), http)

    def _is_down(self) -> bool:
        self._turn += 1
        return "unavailable" in self._state.faults or ("flaky" in self._state.faults and self._turn % 2 == 1)

    def _respond(self, http: HttpRequest, path: str, origin: str, body: bytes) -> Response:
        headers = {name.lower(): value for name, value in http.headers.items()}
        if (response := self._respond_to_anyone(http, path, origin, body, headers)) is not None:
            return response
        token = headers.get("authorization", "").partition(" ")[2] or http.query_params.get("oauth_token")
        if not self.identity.is_valid(token):
            return Response(401, [{"message": "Session expired or invalid", "errorCode": "INVALID_SESSION_ID"}])
        if path.rstrip("/") == "/services/oauth2/userinfo" or path.startswith("/id/"):
            return Response(body=self.identity.user_info(origin))
        return self._call_api(http, path, origin, body, headers)

    def _call_api(self, http: HttpRequest, path: str, origin: str, body: bytes, headers: dict[str, str]) -> Response:
        """Pass a request to the API; it counts against the daily limit."""
        self._state.calls += 1
        used = self._state.faults.count_used(self._state.calls)
        info = {"Sforce-Limit-Info": f"api-usage={used}/{DAILY_CALLS}"}
        if used >= DAILY_CALLS:
            error = [{"message": "TotalRequests Limit exceeded.", "errorCode": "REQUEST_LIMIT_EXCEEDED"}]
            return Response(403, error, info)
        if "api-off" in self._state.faults:
            text = "The REST API is not enabled for this Organization."
            return Response(403, [{"message": text, "errorCode": "API_DISABLED_FOR_ORG"}], info)
        try:
            parsed = json.loads(body, parse_constant=_reject_constant) if body else None
        except (ValueError, RecursionError):
            return Response(400, [{"message": "The request body is not JSON", "errorCode": "JSON_PARSER_ERROR"}], info)
        request = Request(http.method, path, dict(http.query_params), headers | {"origin-of": origin}, parsed)
        response = self.api.handle(request)
        return replace(response, headers={**response.headers, **info})

    def _respond_to_anyone(  # noqa: PLR0911 - one per address
        self, http: HttpRequest, path: str, origin: str, body: bytes, headers: dict[str, str]
    ) -> Response | None:
        """Answer requests that need no token."""
        match path.rstrip("/"):
            case "":
                return Response(body={"name": "Bedstone demo org", "login": f"{origin}/services/oauth2/token"})
            case "/services/data":
                return Response(body=self.api.versions())
            case "/services/oauth2/token":
                return self.identity.token(_form(http, body), headers, origin)
            case "/services/oauth2/authorize":
                return self.identity.authorize(http.query_params)
            case "/services/oauth2/introspect":
                return Response(body=self.identity.introspect(_form(http, body)))
            case "/services/oauth2/revoke":
                self.identity.revoke(_form(http, body).get("token") or http.query_params.get("token"))
                return Response(200, {})
            case "/.well-known/openid-configuration":
                return Response(body=_openid(origin))
        return self.identity.soap(body, origin, path) if path.startswith("/services/Soap/") else None

    async def _switch(self, http: HttpRequest) -> HttpResponse:
        if http.method != "GET":
            try:
                self.set_faults(Faults.of((await http.json())["faults"]))
                self.identity.revive()
            except (BedstoneError, ValueError, KeyError, TypeError) as error:
                return _json(400, {"error": str(error)})
        return _json(200, {"faults": sorted(self._state.faults.names), "known": NAMES, "logins": self.identity.logins})


def _reject_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


async def _body(http: HttpRequest) -> bytes:
    data = b""
    async for part in http.stream():
        data += part
        if len(data) > MAX_BODY_BYTES:
            raise ValueError("The request is too large")
    if http.headers.get("content-encoding", "").lower() == "gzip":
        unpack = zlib.decompressobj(31)
        try:
            data = unpack.decompress(data, MAX_BODY_BYTES)
        except zlib.error:
            raise ValueError("The request is not gzip") from None
        if unpack.unconsumed_tail:
            raise ValueError("The request is too large")
    return data


def _form(http: HttpRequest, body: bytes) -> dict[str, str]:
    return dict(http.query_params) | dict(parse_qsl(body.decode(errors="replace")))


def _openid(origin: str) -> dict[str, Any]:
    oauth = f"{origin}/services/oauth2"
    return {
        "issuer": origin,
        "authorization_endpoint": f"{oauth}/authorize",
        "token_endpoint": f"{oauth}/token",
        "revocation_endpoint": f"{oauth}/revoke",
        "userinfo_endpoint": f"{oauth}/userinfo",
        "introspection_endpoint": f"{oauth}/introspect",
    }


def _json(status: int, body: Any) -> HttpResponse:
    return JSONResponse(body, status, media_type=JSON)


def _http_response(response: Response, http: HttpRequest) -> HttpResponse:
    headers = dict(response.headers)
    if isinstance(response.body, bytes):
        return HttpResponse(response.body, response.status, headers)
    if response.status == 302:  # noqa: PLR2004
        return RedirectResponse(headers["Location"], 302)
    if response.body is None:
        return HttpResponse(status_code=response.status, headers=headers)
    text = json.dumps(response.body, ensure_ascii=False, indent=2 if http.headers.get("x-prettyprint") == "1" else None)
    return HttpResponse(text.encode(), response.status, {**headers, "content-type": JSON})
