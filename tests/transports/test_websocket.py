"""Calls over a WebSocket without a handshake, as the knowledge contract prints them."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from websockets.asyncio.client import ClientConnection, connect

from contracts.requirements import proves
from support.doors import serving
from support.workshop import Workshop

INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture
async def socket() -> AsyncIterator[ClientConnection]:
    async with serving([Workshop()]) as base, connect(f"{base}/mcp".replace("http", "ws")) as socket:
        yield socket


async def send(socket: ClientConnection, method: str, request_id: str | None = None, **params: Any) -> None:
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": request_id} if request_id else {})
    await socket.send(json.dumps(message))


async def receive(socket: ClientConnection) -> dict[str, Any]:
    with anyio.fail_after(10):
        message: dict[str, Any] = json.loads(await socket.recv())
    return message


@proves("mcp.websocket")
async def test_a_call_needs_no_handshake(socket: ClientConnection) -> None:
    await send(socket, "tools/call", "1", name="repeat", arguments={"word": "hi"})
    answer = await receive(socket)
    assert (answer["id"], answer["result"]["structuredContent"]["said"]) == ("1", "hi")


@proves("mcp.websocket")
async def test_a_handshake_can_follow(socket: ClientConnection) -> None:
    await send(socket, "ping", "1")
    assert (await receive(socket))["result"] == {}
    await send(socket, "initialize", "2", **INITIALIZE)
    assert (await receive(socket))["result"]["protocolVersion"] == "2025-06-18"
    await send(socket, "notifications/initialized")
    await send(socket, "tools/call", "3", name="repeat", arguments={"word": "hi"})
    assert (await receive(socket))["result"]["structuredContent"]["said"] == "hi"


@proves("mcp.websocket")
async def test_progress_is_reported_to_callers_with_a_token(socket: ClientConnection) -> None:
    await send(socket, "tools/call", "1", name="count", arguments={}, _meta={"progressToken": "t"})
    reports = [await receive(socket) for _ in range(3)]
    assert [item["params"] for item in reports] == [
        {"progressToken": "t", "progress": step, "total": 3, "message": f"Step {step} of 3"} for step in (1, 2, 3)
    ]
    assert (await receive(socket))["id"] == "1"
    await send(socket, "tools/call", "2", name="count", arguments={})
    assert (await receive(socket))["id"] == "2"


@proves("mcp.websocket")
async def test_a_slow_call_does_not_hold_up_the_next_one(socket: ClientConnection) -> None:
    await send(socket, "tools/call", "slow", name="wait", arguments={})
    await send(socket, "tools/call", "fast", name="repeat", arguments={"word": "hi"})
    assert (await receive(socket))["id"] == "fast"
