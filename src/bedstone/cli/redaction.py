"""Remove tokens, passwords and keys from what is logged or printed."""

import re
from urllib.parse import quote

HIDDEN = "********"
MIN_SECRET_LENGTH = 6  # shorter values occur in ordinary words

_HEADERS = r"(?P<name>\b(?:proxy-)?authorization|\b(?:set-)?cookie|\bx-api-key|\bx-csrf)"
_FIELDS = (
    r"(?P<name>\b(?:access_?token|refresh_?token|id_?token|client_?secret|(?:aws_)?secret_?access_?key|client_assertion"
    r"|assertion|api[_-]?key|(?:ssl)?password|passwd|secret|token|csrf))"
)
_LINE = re.compile(rf"(?i){_HEADERS}(?P<gap>: ?+)(?!Bearer <)(?P<value>[^\r\n'\"]+)")  # Authorization: Bearer x
_PAIR = re.compile(rf"(?i){_HEADERS}(?P<gap>['\"]\s*[,:]\s*b?['\"])(?P<value>[^'\"]+)")  # (b'cookie', b'x')
_FIELD = re.compile(rf"(?i){_FIELDS}(?P<gap>=|['\"]\s*[,:]\s*b?['\"])(?P<value>[^\s'\"&]+)")  # token=x, "token": "x"
_BEARER = re.compile(r"(?i)(?P<name>\bbearer)(?P<gap>\s+)(?P<value>(?=\S*\d)[\w.~+/=!-]{12,})")
_USER = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^\s/@'\"]*:[^\s/@'\"]*@", re.IGNORECASE)
_KEY = re.compile(r"\b(?:sk-[\w-]{16,}|00D\w{9,15}![\w.]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)")

# What any of them needs, in lower case: nearly every line has none, and searching for them costs a twentieth.
_MARKS = (
    "authorization",
    "cookie",
    "key",
    "csrf",
    "token",
    "secret",
    "assertion",
    "passw",
    "bearer",
    "://",
    "sk-",
    "00d",
    "eyj",
)

_secrets: set[str] = set()


def hide(secret: str | None) -> None:
    """Remove this value wherever it occurs from now on, also as part of an address."""
    if secret and len(secret) >= MIN_SECRET_LENGTH:
        _secrets.update((secret, quote(secret, safe="")))


def redact(text: str) -> str:
    """Return the text without values that are known or look like secrets."""
    for secret in _secrets:
        text = text.replace(secret, HIDDEN)
    lower = text.lower()
    if not any(mark in lower for mark in _MARKS):
        return text
    for pattern in (_LINE, _PAIR, _FIELD, _BEARER):
        text = pattern.sub(rf"\g<name>\g<gap>{HIDDEN}", text)
    return redact_addresses(_KEY.sub(HIDDEN, text))


def redact_addresses(text: str) -> str:
    """Return the text with the user and the password of addresses removed."""
    return _USER.sub(rf"\g<scheme>{HIDDEN}@", text)
