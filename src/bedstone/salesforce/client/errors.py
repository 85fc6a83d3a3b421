"""Errors of the Salesforce API, mapped to exceptions by their codes."""

from collections.abc import Mapping
from typing import Any

from bedstone.errors import BedstoneError, NotFound, Unavailable


class SalesforceError(BedstoneError):
    """An org rejected a request; `details` has the status, Salesforce's code and its message."""


class AuthError(SalesforceError):
    """Login failed: the org rejected the credentials."""


class PermissionDenied(SalesforceError):
    """The user has no permission for the request."""


class LimitExceeded(SalesforceError):
    """The daily API limit is exceeded; a retry cannot help."""


class RecordNotFound(SalesforceError, NotFound):
    """The record or resource does not exist."""


class OrgUnavailable(SalesforceError, Unavailable):
    """The org does not answer."""


AUTH = frozenset({"INVALID_SESSION_ID", "INVALID_AUTH_HEADER", "INVALID_LOGIN", "SESSION_EXPIRED"})
DENIED = frozenset(
    {"INSUFFICIENT_ACCESS", "INSUFFICIENT_ACCESS_OR_READONLY", "API_DISABLED_FOR_ORG", "API_CURRENTLY_DISABLED"}
)
MISSING = frozenset({"NOT_FOUND", "ENTITY_IS_DELETED"})
LIMIT = "REQUEST_LIMIT_EXCEEDED"
BUSY = frozenset({"UNABLE_TO_LOCK_ROW", "SERVER_UNAVAILABLE"})
UNAUTHORIZED = 401
FORBIDDEN = 403
NOT_FOUND_STATUS = 404
FIRST_SERVER_ERROR = 500
TOO_MANY = frozenset({420, 429})


def first_error(body: Any) -> tuple[str, str]:
    """Return the code and message of the first error in an answer of any shape."""
    entry = body[0] if isinstance(body, list) and body else body
    if not isinstance(entry, Mapping):
        return "", ""
    code = entry.get("errorCode") or entry.get("error") or entry.get("statusCode") or ""
    return str(code), str(entry.get("message") or entry.get("error_description") or "")


def error_of(status: int, body: Any) -> SalesforceError:
    """Return the exception for an error answer."""
    code, message = first_error(body)
    details = {"status": status, "errorCode": code, "message": message}
    text = message.strip() or f"Salesforce answered {status}."
    kind: type[SalesforceError] = SalesforceError
    if code in AUTH or status == UNAUTHORIZED or code.startswith("invalid_"):
        kind = AuthError
    elif code == LIMIT and "Concurrent" not in message:
        kind = LimitExceeded
    elif code in MISSING or status == NOT_FOUND_STATUS:
        kind = RecordNotFound
    elif code in DENIED or (status == FORBIDDEN and code != LIMIT):
        kind = PermissionDenied
    elif code in BUSY or status in TOO_MANY or status >= FIRST_SERVER_ERROR:
        kind = OrgUnavailable
    return kind(text, details=details)
