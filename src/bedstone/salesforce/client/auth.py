"""Login methods, one class each. Tokens and secrets never reach a log, an error or a `repr`."""

import asyncio
import base64
import hashlib
import json
import secrets
import time
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
from lxml import etree

from bedstone.errors import MissingExtra
from bedstone.salesforce.client.errors import AuthError, OrgUnavailable, error_of

TIMEOUT = httpx2.Timeout(30.0, connect=5.0)
ASSERTION_SECONDS = 180
BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
LAST_SOAP_VERSION = 64
OK = 200
BUSY_STATUS = frozenset({420, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Session:
    """The address of an org and an access token for it."""

    instance_url: str
    access_token: str = field(repr=False)


class Auth(Protocol):
    """A login method; the client calls it again when a session has expired."""

    async def login(self, http: httpx2.AsyncClient) -> Session:
        """Log in."""


@dataclass(frozen=True)
class AccessToken:
    """A token from elsewhere, which cannot be renewed when it expires."""

    instance_url: str
    token: str = field(repr=False)
    used: list[bool] = field(default_factory=list, repr=False, compare=False)

    async def login(self, http: httpx2.AsyncClient) -> Session:
        if any(sign.isspace() for sign in self.token):
            raise AuthError("Invalid access token: it contains whitespace.")
        if self.used:
            raise AuthError("The access token has expired or was revoked; log in with a new one.")
        self.used.append(True)
        return Session(self.instance_url.rstrip("/"), self.token)


@dataclass(frozen=True)
class ClientCredentials:
    """A connected app that acts as a user chosen in the org."""

    login_url: str
    client_id: str
    client_secret: str = field(repr=False)

    async def login(self, http: httpx2.AsyncClient) -> Session:
        form = {"grant_type": "client_credentials", "client_id": self.client_id, "client_secret": self.client_secret}
        return (await _request_token(http, self.login_url, form))[0]


@dataclass(frozen=True)
class JwtBearer:
    """A connected app with a certificate instead of a secret."""

    login_url: str
    client_id: str
    username: str
    key_file: Path

    async def login(self, http: httpx2.AsyncClient) -> Session:
        try:
            import jwt  # noqa: PLC0415
        except ImportError:
            raise MissingExtra("JWT logins need PyJWT; install with: pip install 'bedstone[salesforce-jwt]'") from None
        claims = {
            "iss": self.client_id,
            "sub": self.username,
            "aud": self.login_url,
            "exp": int(time.time()) + ASSERTION_SECONDS,
        }
        key = await asyncio.to_thread(self.key_file.read_text)
        form = {"grant_type": BEARER, "assertion": jwt.encode(claims, key, "RS256")}
        return (await _request_token(http, self.login_url, form))[0]


@dataclass
class RefreshToken:
    """The refresh token of a browser login; `keep` saves a new one if the org rotates it."""

    login_url: str
    client_id: str
    refresh_token: str = field(repr=False)
    client_secret: str | None = field(default=None, repr=False)
    keep: Any = field(default=None, repr=False)

    async def login(self, http: httpx2.AsyncClient) -> Session:
        form = {"grant_type": "refresh_token", "client_id": self.client_id, "refresh_token": self.refresh_token}
        if self.client_secret:
            form["client_secret"] = self.client_secret
        session, answer = await _request_token(http, self.login_url, form)
        if rotated := answer.get("refresh_token"):
            self.refresh_token = rotated
            if self.keep:
                self.keep(rotated)
        return session


@dataclass(frozen=True)
class SfCli:
    """An org that the `sf` command is logged in to."""

    alias: str

    async def login(self, http: httpx2.AsyncClient) -> Session:
        org = await _sf("org", "display", "--target-org", self.alias)
        shown = await _sf("org", "auth", "show-access-token", "--target-org", self.alias)
        token = str(shown.get("accessToken", ""))
        if not token or any(sign.isspace() for sign in token):
            raise AuthError(f"`sf` has no access token for {self.alias}; log in with: sf org login web")
        return Session(str(org["instanceUrl"]).rstrip("/"), token)


@dataclass(frozen=True)
class SoapLogin:
    """Username and password over SOAP, which orgs support up to API 64."""

    login_url: str
    username: str
    password: str = field(repr=False)

    async def login(self, http: httpx2.AsyncClient) -> Session:
        body = (
            '<?xml version="1.0"?><env:Envelope xmlns:env="http://schemas.xmlsoap.org/soap/envelope/"><env:Body>'
            f'<login xmlns="urn:partner.soap.sforce.com"><username>{escape(self.username)}</username>'
            f"<password>{escape(self.password)}</password></login></env:Body></env:Envelope>"
        )
        headers = {"content-type": "text/xml", "soapaction": "login"}
        address = f"{self.login_url.rstrip('/')}/services/Soap/u/{LAST_SOAP_VERSION}.0"
        answer = await _post(http, address, content=body, headers=headers)
        texts = _texts(answer.content)
        if "sessionId" not in texts:
            raise AuthError(texts.get("faultstring") or "Login failed: the org rejected the credentials.")
        parts = urlsplit(texts["serverUrl"])
        return Session(f"{parts.scheme}://{parts.netloc}", texts["sessionId"])


@dataclass
class BrowserLogin:
    """The OAuth web server flow with PKCE: the address for the browser, and the redirect back."""

    login_url: str
    client_id: str
    redirect_uri: str
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)
    state: str = field(default_factory=lambda: secrets.token_urlsafe(16), repr=False)

    @property
    def address(self) -> str:
        """The address the browser opens."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "scope": "api refresh_token",
            "state": self.state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{self.login_url.rstrip('/')}/services/oauth2/authorize?{urlencode(query)}"

    async def finish(self, http: httpx2.AsyncClient, redirect: str) -> tuple[Session, str]:
        """Exchange the code in the redirect for a session and a refresh token."""
        found = {name: values[0] for name, values in parse_qs(urlsplit(redirect).query).items()}
        if found.get("state") != self.state or "code" not in found:
            raise AuthError(found.get("error_description") or "The browser login was not completed.")
        form = {
            "grant_type": "authorization_code",
            "code": found["code"],
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier,
        }
        session, answer = await _request_token(http, self.login_url, form)
        return session, str(answer.get("refresh_token", ""))


async def _request_token(
    http: httpx2.AsyncClient, login_url: str, form: dict[str, str]
) -> tuple[Session, dict[str, str]]:
    answer = await _post(http, f"{login_url.rstrip('/')}/services/oauth2/token", data=form)
    if answer.status_code in BUSY_STATUS:
        raise OrgUnavailable(f"{login_url} is unavailable: status {answer.status_code}.")
    try:
        body = answer.json()
    except ValueError:
        raise AuthError(f"{login_url} is not a Salesforce login URL.") from None
    if answer.status_code != OK:
        raise AuthError(error_of(answer.status_code, body).message)
    return Session(str(body["instance_url"]).rstrip("/"), str(body["access_token"])), body


async def _post(http: httpx2.AsyncClient, address: str, **request: Any) -> httpx2.Response:
    try:
        return await http.post(address, timeout=TIMEOUT, **request)
    except httpx2.HTTPError as error:
        raise OrgUnavailable(f"Cannot reach {urlsplit(address).netloc}: {type(error).__name__}.") from None


def _texts(data: bytes) -> dict[str, str]:
    """Return the texts of an XML answer by the names of their elements."""
    try:
        root = etree.fromstring(data, etree.XMLParser(resolve_entities=False, no_network=True))
    except etree.XMLSyntaxError:
        return {}
    return {etree.QName(item).localname: item.text or "" for item in root.iter() if isinstance(item.tag, str)}


async def _sf(*arguments: str) -> dict[str, Any]:
    try:
        process = await asyncio.create_subprocess_exec(
            "sf", *arguments, "--json", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise AuthError("The `sf` command is not installed.") from None
    output, _ = await process.communicate()
    try:
        answer = json.loads(output)
    except ValueError:
        answer = {}
    if process.returncode or not isinstance(answer.get("result"), dict):
        raise AuthError(str(answer.get("message") or f"`sf {' '.join(arguments[:2])}` failed."))
    result: dict[str, Any] = answer["result"]
    return result
