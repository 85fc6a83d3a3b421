"""Page tokens that are valid only for the query they were made for."""

import hmac
import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from bedstone.errors import InvalidInput


class InvalidCursor(InvalidInput):
    """A page token is malformed or belongs to another query."""

    code = "invalid_cursor"


Place = tuple[int, float]  # the number of hits before the page, and the score of the last of them


def make_cursor(key: str, state: str, place: Place, query: str, filters: Mapping[str, str]) -> str:
    """Return the token of the page that begins at a place; `state` identifies the content of the index."""
    offset, score = place
    payload = {
        "v": 1,
        "offset": offset,
        "score": score,
        "state": state,
        "sig": _signature(key, state, place, query, filters),
    }
    return urlsafe_b64encode(json.dumps(payload).encode()).decode().rstrip("=")


def read_cursor(cursor: str, key: str, state: str, query: str, filters: Mapping[str, str]) -> Place:
    """Return the place that a token stands for."""
    try:
        payload = json.loads(b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
    except (ValueError, RecursionError):
        raise InvalidCursor("Invalid cursor: malformed JSON payload") from None
    fields: dict[str, Any] = payload if isinstance(payload, dict) else {}
    offset, score = fields.get("offset"), fields.get("score")
    if type(offset) is not int or not isinstance(score, int | float) or offset < 0 or fields.get("v") != 1:
        raise InvalidCursor("Invalid cursor: expected a search cursor payload")
    made_for = str(fields.get("state"))
    signature = _signature(key, made_for, (offset, score), query, filters).encode()
    if not hmac.compare_digest(str(fields.get("sig")).encode(errors="replace"), signature):
        raise InvalidCursor("Invalid cursor: does not match current query or filters")
    if made_for != state:
        raise InvalidCursor("Invalid cursor: the index has changed since; search again without a cursor")
    return offset, score


def _signature(key: str, state: str, place: Place, query: str, filters: Mapping[str, str]) -> str:
    text = json.dumps([state, *place, query.strip(), sorted(filters.items())], ensure_ascii=False)
    return hmac.new(key.encode(), text.encode(errors="surrogatepass"), sha256).hexdigest()[:32]
