"""Logins: the OAuth flows clients use, and the SOAP login. Every secret of the demo org is in this file."""

import secrets
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from typing import Any
from xml.etree.ElementTree import ParseError

from lxml import etree

from bedstone.salesforce.demo_org.org import DemoOrg
from bedstone.salesforce.demo_org.rest import Response

USERNAME = "admin@kestrel.example"
PASSWORD = "demo"  # noqa: S105 - invented
CLIENT = "demo-client"
SECRET = "demo-secret"  # noqa: S105 - invented
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
PARTNER = "urn:partner.soap.sforce.com"
BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


class Identity:
    """Tokens, refresh tokens and authorization codes of one org."""

    def __init__(self, org: DemoOrg) -> None:
        self._org = org
        self.standing = f"{org.organization_id[:15]}!demo.standing.token"  # valid without a login
        self._tokens = {self.standing}
        self._refresh = {"demo-refresh-token"}
        self._codes: dict[str, dict[str, str]] = {}
        self.logins = 0

    def is_valid(self, token: str | None) -> bool:
        """Return whether a token is valid."""
        return token in self._tokens

    def expire(self) -> None:
        """Invalidate every token issued so far."""
        self._tokens.clear()

    def revive(self) -> None:
        """Make the standing token valid again."""
        self._tokens.add(self.standing)

    def token(self, form: Mapping[str, str], headers: Mapping[str, str], origin: str) -> Response:
        """Response POST /services/oauth2/token."""
        client, secret = _client_credentials(form, headers)
        grant = form.get("grant_type")
        match grant:
            case "client_credentials" if (client, secret) != (CLIENT, SECRET):
                return _oauth_error("invalid_client", "invalid client credentials")
            case "password" if form.get("username") != USERNAME or not form.get("password", "").startswith(PASSWORD):
                return _oauth_error("invalid_grant", "authentication failure")
            case "refresh_token" if form.get("refresh_token") not in self._refresh:
                return _oauth_error("invalid_grant", "expired access/refresh token")
            case "authorization_code" if not self._redeem_code(form):
                return _oauth_error("invalid_grant", "invalid authorization code")
            case "client_credentials" | "password" | "refresh_token" | "authorization_code":
                pass
            case _ if grant == BEARER_GRANT and form.get("assertion", "").count(".") == 2:  # noqa: PLR2004 - a JWT
                pass
            case _:
                return _oauth_error("unsupported_grant_type", "grant type not supported")
        body = self._grant(origin)
        if grant == "authorization_code":
            body["refresh_token"] = self._new_refresh()
        return Response(200, body)

    def authorize(self, query: Mapping[str, str]) -> Response:
        """Response GET /services/oauth2/authorize; the demo user agrees at once."""
        code = secrets.token_urlsafe(16)
        self._codes[code] = {"challenge": query.get("code_challenge", ""), "redirect": query.get("redirect_uri", "")}
        sign = "&" if "?" in query.get("redirect_uri", "") else "?"
        state = f"&state={query['state']}" if query.get("state") else ""
        return Response(302, None, {"Location": f"{query.get('redirect_uri', '/')}{sign}code={code}{state}"})

    def user_info(self, origin: str) -> dict[str, Any]:
        """Return the user who is logged in."""
        org, user = self._org.organization_id, self._org.user
        record = self._org.read("User", user, "/services/data/v68.0", ["Username", "Name", "Email"])
        urls = {
            "rest": f"{origin}/services/data/v{{version}}/",
            "sobjects": f"{origin}/services/data/v{{version}}/sobjects/",
            "query": f"{origin}/services/data/v{{version}}/query/",
            "search": f"{origin}/services/data/v{{version}}/search/",
            "custom_domain": origin,
        }
        return {
            "sub": f"{origin}/id/{org}/{user}",
            "id": f"{origin}/id/{org}/{user}",
            "user_id": user,
            "organization_id": org,
            "preferred_username": record["Username"],
            "username": record["Username"],
            "nick_name": "demo",
            "name": record["Name"],
            "display_name": record["Name"],
            "email": record["Email"],
            "active": True,
            "user_type": "STANDARD",
            "language": "en_US",
            "locale": "en_US",
            "urls": urls,
        }

    def introspect(self, form: Mapping[str, str]) -> dict[str, Any]:
        """Response whether a token is valid, in the form of OAuth."""
        return {"active": self.is_valid(form.get("token")), "username": USERNAME, "client_id": CLIENT}

    def revoke(self, token: str | None) -> None:
        """Invalidate a token."""
        self._tokens.discard(token or "")
        self._refresh.discard(token or "")

    def soap(self, body: bytes, origin: str, path: str) -> Response:
        """Response the SOAP calls login and getUserInfo."""
        try:
            root = etree.fromstring(body, etree.XMLParser(resolve_entities=False, no_network=True))
        except (etree.XMLSyntaxError, ParseError, ValueError):
            return _soap_fault("sf:INVALID_OPERATION", "The request cannot be read")
        names = {etree.QName(item).localname: (item.text or "") for item in root.iter() if isinstance(item.tag, str)}
        if "login" not in names and "getUserInfo" not in names:
            return _soap_fault("sf:INVALID_OPERATION", "Only login and getUserInfo are served here")
        if "login" in names and (
            names.get("username") != USERNAME or not names.get("password", "").startswith(PASSWORD)
        ):
            text = "Invalid username, password, security token; or user locked out."
            return _soap_fault("sf:INVALID_LOGIN", f"INVALID_LOGIN: {text}")
        info = self.user_info(origin)
        user = (
            f"<userInfo><organizationId>{info['organization_id']}</organizationId><userId>{info['user_id']}</userId>"
            f"<userName>{escape(info['username'])}</userName><userFullName>{escape(info['name'])}</userFullName>"
            "<sessionSecondsValid>7200</sessionSecondsValid></userInfo>"
        )
        if "login" not in names:
            inner = f"<getUserInfoResponse><result>{user}</result></getUserInfoResponse>"
        else:
            address = f"{origin}{path.rstrip('/')}/{info['organization_id'][:15]}"
            inner = (
                "<loginResponse><result><passwordExpired>false</passwordExpired><sandbox>false</sandbox>"
                f"<metadataServerUrl>{address.replace('/u/', '/m/')}</metadataServerUrl>"
                f"<serverUrl>{address}</serverUrl>"
                f"<sessionId>{self._new_token()}</sessionId><userId>{info['user_id']}</userId>{user}"
                "</result></loginResponse>"
            )
        return Response(200, _envelope(inner), {"content-type": "text/xml;charset=UTF-8"})

    def _grant(self, origin: str) -> dict[str, str]:
        return {
            "access_token": self._new_token(),
            "instance_url": origin,
            "id": f"{origin}/id/{self._org.organization_id}/{self._org.user}",
            "token_type": "Bearer",
            "issued_at": str(int(time.time() * 1000)),
            "signature": "demo",
            "scope": "api refresh_token",
        }

    def _new_token(self) -> str:
        self.logins += 1
        token = f"{self._org.organization_id[:15]}!{secrets.token_urlsafe(40).replace('-', '.')}"
        self._tokens.add(token)
        return token

    def _new_refresh(self) -> str:
        token = f"5Aep{secrets.token_urlsafe(30)}"
        self._refresh.add(token)
        return token

    def _redeem_code(self, form: Mapping[str, str]) -> bool:
        """Return whether an authorization code is valid; it is valid once."""
        saved = self._codes.pop(form.get("code", ""), None)
        if saved is None:
            return False
        if not saved["challenge"]:
            return True
        hashed = sha256(form.get("code_verifier", "").encode()).digest()
        return urlsafe_b64encode(hashed).decode().rstrip("=") == saved["challenge"]


def _client_credentials(form: Mapping[str, str], headers: Mapping[str, str]) -> tuple[str, str]:
    basic = headers.get("authorization", "")
    if basic.lower().startswith("basic "):
        name, _, secret = b64decode(basic[6:]).decode(errors="replace").partition(":")
        return name, secret
    return form.get("client_id", ""), form.get("client_secret", "")


def _oauth_error(name: str, description: str) -> Response:
    return Response(400, {"error": name, "error_description": description})


def _soap_fault(code: str, message: str) -> Response:
    exception = code.removeprefix("sf:")
    inner = (
        f"<soapenv:Fault><faultcode>{code}</faultcode><faultstring>{escape(message)}</faultstring><detail>"
        f'<sf:fault xmlns:sf="urn:fault.partner.soap.sforce.com"><sf:exceptionCode>{exception}</sf:exceptionCode>'
        f"<sf:exceptionMessage>{escape(message)}</sf:exceptionMessage></sf:fault></detail></soapenv:Fault>"
    )
    return Response(500, _envelope(inner), {"content-type": "text/xml;charset=UTF-8"})


def _envelope(inner: str) -> bytes:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="{SOAP}" xmlns="{PARTNER}">'
        f"<soapenv:Body>{inner}</soapenv:Body></soapenv:Envelope>"
    ).encode()
