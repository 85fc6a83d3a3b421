"""Page tokens that only fit the query they were made for."""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256

from bedstone.errors import InvalidInput


class InvalidCursor(InvalidInput):
    """A page token is damaged or belongs to another query."""

    code = "invalid_cursor"


def make_cursor(key: str, state: str, offset: int, query: str, filters: Mapping[str, str]) -> str:
    """The token of the page that begins at `offset`; `state` names what the index holds."""
    payload = {"v": 1, "offset": offset, "state": state, "sig": _signature(key, state, offset, query, filters)}
    return urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")


def read_cursor(cursor: str, key: str, state: str, query: str, filters: Mapping[str, str]) -> int:
    """The offset a token stands for."""
    try:
        payload = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        raise InvalidCursor("Invalid cursor: malformed JSON payload") from None
    offset = payload.get("offset") if isinstance(payload, dict) else None
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0 or payload.get("v") != 1:
        raise InvalidCursor("Invalid cursor: expected a search cursor payload")
    made_for = str(payload.get("state"))
    signature = _signature(key, made_for, offset, query, filters).encode()
    if not hmac.compare_digest(str(payload.get("sig")).encode(errors="replace"), signature):
        raise InvalidCursor("Invalid cursor: does not match current query or filters")
    if made_for != state:
        raise InvalidCursor("Invalid cursor: the index has changed since; search again without a cursor")
    return offset


def _signature(key: str, state: str, offset: int, query: str, filters: Mapping[str, str]) -> str:
    text = json.dumps([state, offset, query.strip(), sorted(filters.items())], ensure_ascii=False)
    return hmac.new(key.encode(), text.encode(errors="surrogatepass"), sha256).hexdigest()[:32]
