"""Every error of Salesforce as one of ours, decided in one place by its code."""

from collections.abc import Mapping
from typing import Any

from bedstone.errors import BedstoneError, NotFound, Unavailable


class SalesforceError(BedstoneError):
    """An org refused something; `details` has the status, Salesforce's code and its message."""

    code = "SF_API_ERROR"


class AuthError(SalesforceError):
    """The org does not let us in."""

    code = "AUTH_ERROR"


class PermissionDenied(SalesforceError):
    """The user may not do that."""

    code = "PERMISSION_DENIED"


class LimitExceeded(SalesforceError):
    """The org's calls of the day are used up: asking again would not help."""

    code = "RATE_LIMIT_EXCEEDED"


class RecordNotFound(SalesforceError, NotFound):
    """There is no such record or resource."""

    code = "NOT_FOUND"


class OrgUnavailable(SalesforceError, Unavailable):
    """The org does not answer."""

    code = "SF_API_ERROR"


AUTH = frozenset({"INVALID_SESSION_ID", "INVALID_AUTH_HEADER", "INVALID_LOGIN", "SESSION_EXPIRED"})
DENIED = frozenset(
    {"INSUFFICIENT_ACCESS", "INSUFFICIENT_ACCESS_OR_READONLY", "API_DISABLED_FOR_ORG", "API_CURRENTLY_DISABLED"}
)
MISSING = frozenset({"NOT_FOUND", "ENTITY_IS_DELETED"})
LIMIT = "REQUEST_LIMIT_EXCEEDED"
BUSY = frozenset({"UNABLE_TO_LOCK_ROW", "SERVER_UNAVAILABLE"})
UNAUTHORIZED, FORBIDDEN, NOT_FOUND_STATUS = 401, 403, 404
TOO_MANY, FIRST_SERVER_ERROR = frozenset({420, 429}), 500


def first_error(body: Any) -> tuple[str, str]:
    """Code and message of an answer's first error, whatever its shape."""
    entry = body[0] if isinstance(body, list) and body else body
    if not isinstance(entry, Mapping):
        return "", ""
    code = entry.get("errorCode") or entry.get("error") or entry.get("statusCode") or ""
    return str(code), str(entry.get("message") or entry.get("error_description") or "")


def error_of(status: int, body: Any) -> SalesforceError:
    """The error an answer stands for."""
    code, message = first_error(body)
    details = {"status": status, "errorCode": code, "message": message}
    said = message.strip() or f"Salesforce answered {status}."
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
    return kind(said, details=details)
