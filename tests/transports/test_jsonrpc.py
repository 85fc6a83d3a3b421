"""Envelopes of JSON-RPC messages."""

import json
from typing import Any

import mcp_types as wire
import pytest

from bedstone.transports.jsonrpc import Malformed, parse, request_method

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def changed(**fields: Any) -> bytes:
    """A ping with other fields; None removes one."""
    message = {name: value for name, value in (PING | fields).items() if value is not None}
    return json.dumps(message).encode()


@pytest.mark.parametrize(
    ("text", "method"),
    [
        (changed(), "ping"),
        (changed(id="a"), "ping"),
        (changed(id=2**70), "ping"),
        (changed(params={"a": [1]}), "ping"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": null}', "ping"),
        (changed(more="fields"), "ping"),
        (changed(id=None), None),
        (b'{"jsonrpc": "2.0", "id": 1, "result": {}}', None),
        (b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "m"}}', None),
    ],
)
def test_only_requests_have_a_request_method(text: bytes, method: str | None) -> None:
    message = parse(text).message
    assert (message.method if isinstance(message, wire.JSONRPCRequest) else None) == method
    assert request_method(text) == method


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff",
        b"[]",
        b"5",
        b"null",
        b"{}",
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "\\ud800"}}',
        b'{"jsonrpc": "2.0", "id": null, "method": "ping"}',
        changed(jsonrpc="1.0"),
        changed(jsonrpc=None),
        changed(id=1.5),
        changed(id=True),
        changed(id=[1]),
        changed(method=None),
        changed(method=5),
        changed(params=[]),
        changed(params="x"),
        changed(params=0),
        b"[" * 10_000,
    ],
)
def test_a_malformed_request_is_explained_as_by_the_parser(text: bytes) -> None:
    with pytest.raises(Malformed) as parsed:
        parse(text)
    with pytest.raises(Malformed) as checked:
        request_method(text)
    assert (checked.value.error, checked.value.request_id) == (parsed.value.error, parsed.value.request_id)
