"""Every way in, with a real client at each: the same calls must give the same answers at all of them."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
import httpx2
import mcp_types as wire
import uvicorn
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.shared.message import SessionMessage
from mcp_types.jsonrpc import jsonrpc_message_adapter
from pydantic import ConfigDict
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as connect_websocket

from bedstone.server import BedstoneServer
from bedstone.services.peers import Peers
from bedstone.settings import LimitSettings
from bedstone.toolkit import Toolset
from bedstone.transports.access import Access
from bedstone.transports.connections import protocol_options
from bedstone.transports.http import MAX_BODY_BYTES, build_http_app, listen
from support import balancer
from support.processes import BEDSTONE, clean_environment
from support.replicas import replicas

MODERN, HANDSHAKE = "2026-07-28", "legacy"
LARGE = 64 * 1024 * 1024


class Door(Protocol):
    """A connected client, whatever lies between it and the server."""

    async def list_tools(self) -> list[wire.Tool]: ...
    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> wire.CallToolResult: ...
    async def read(self, uri: str) -> wire.ReadResourceResult: ...
    async def send(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]: ...


class AnyRequest(wire.Request[dict[str, Any], str]):
    pass


class AnyResult(wire.Result):
    model_config = ConfigDict(extra="allow")


@dataclass(frozen=True)
class ClientDoor:
    """The official Python client."""

    client: Client

    async def list_tools(self) -> list[wire.Tool]:
        return (await self.client.list_tools()).tools

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> wire.CallToolResult:
        return await self.client.call_tool(name, dict(arguments or {}))

    async def read(self, uri: str) -> wire.ReadResourceResult:
        return await self.client.read_resource(uri)

    async def send(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        request = AnyRequest(method=method, params=dict(params))
        return (await self.client.session.send_request(request, AnyResult)).model_dump(by_alias=True)


class BareDoor:
    """Single JSON-RPC messages, without a handshake."""

    async def exchange(self, method: str, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message and return its answer."""
        raise NotImplementedError

    async def send(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params)}
        answer = await self.exchange(method, message)
        if "error" in answer:
            raise MCPError(**answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    async def list_tools(self) -> list[wire.Tool]:
        return wire.ListToolsResult.model_validate(await self.send("tools/list", {})).tools

    async def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> wire.CallToolResult:
        params = {"name": name, "arguments": dict(arguments or {})}
        return wire.CallToolResult.model_validate(await self.send("tools/call", params))

    async def read(self, uri: str) -> wire.ReadResourceResult:
        return wire.ReadResourceResult.model_validate(await self.send("resources/read", {"uri": uri}))


@dataclass(frozen=True)
class PlainDoor(BareDoor):
    """Nothing but HTTP and JSON: POST /mcp/<method>, or everything to POST /mcp."""

    http: httpx2.AsyncClient
    url: str
    bare: bool

    async def exchange(self, method: str, message: dict[str, Any]) -> dict[str, Any]:
        url = self.url if self.bare else f"{self.url}/{method}"
        answer: dict[str, Any] = (await self.http.post(url, json=message)).json()
        return answer


@dataclass(frozen=True)
class SocketDoor(BareDoor):
    """A WebSocket that sends the same messages."""

    socket: ClientConnection

    async def exchange(self, method: str, message: dict[str, Any]) -> dict[str, Any]:
        await self.socket.send(json.dumps(message))
        try:
            answer: dict[str, Any] = json.loads(await self.socket.recv())
        except anyio.get_cancelled_exc_class():
            notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}}
            with anyio.CancelScope(shield=True):
                await self.socket.send(json.dumps(notice))
            raise
        return answer


@asynccontextmanager
async def websocket_client(url: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[Any]:
    """The official client's streams over a plain WebSocket."""
    incoming_writer, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_reader = anyio.create_memory_object_stream[SessionMessage](0)
    options: dict[str, Any] = {"max_size": LARGE, "subprotocols": ["mcp"], "additional_headers": headers}
    async with connect_websocket(url, **options) as socket_:

        async def receive() -> None:
            async with incoming_writer:
                async for text in socket_:
                    await incoming_writer.send(SessionMessage(jsonrpc_message_adapter.validate_json(text)))

        async def send() -> None:
            async with outgoing_reader:
                async for item in outgoing_reader:
                    await socket_.send(item.message.model_dump_json(by_alias=True, exclude_unset=True))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            tasks.start_soon(send)
            yield incoming, outgoing
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def serving(
    toolsets: Sequence[Toolset], *, token: str | None = None, json_response: bool = False
) -> AsyncIterator[str]:
    """The whole network side of the product in this process; gives its base address.

    With `--balancer`, two of them behind a balancer, which do not know each other's sessions.
    """
    if balancer.chosen is None:
        async with _serving_once(toolsets, token, json_response=json_response) as port:
            yield f"http://127.0.0.1:{port}"
        return
    stateless = balancer.chosen.is_stateless
    async with AsyncExitStack() as stack:
        ports = [
            await stack.enter_async_context(
                _serving_once(item.toolsets, token, json_response=json_response, stateless=stateless, relay=item.peers)
            )
            for item in await stack.enter_async_context(replicas(toolsets))
        ]
        yield await stack.enter_async_context(balanced(balancer.chosen, ports))


@asynccontextmanager
async def balanced(choice: balancer.Choice, ports: Sequence[int]) -> AsyncIterator[str]:
    """The balancer in front of servers of this process, whose event loop must go on meanwhile."""
    context = choice.run(ports)
    base = await anyio.to_thread.run_sync(context.__enter__)
    try:
        yield base
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(context.__exit__, None, None, None)


@asynccontextmanager
async def _serving_once(
    toolsets: Sequence[Toolset],
    token: str | None,
    *,
    json_response: bool,
    stateless: bool = False,
    relay: Peers | None = None,
) -> AsyncIterator[int]:
    servers = {"": BedstoneServer("bedstone", toolsets, relay=relay)}
    for toolset in toolsets:
        servers[f"/{toolset.label}"] = BedstoneServer(toolset.server_name, [toolset], relay=relay)
    access = Access.for_address("127.0.0.1", token=token)
    app = build_http_app(servers, access, json_response=json_response, stateless=stateless)
    limits = protocol_options(LimitSettings())
    config = uvicorn.Config(app, log_config=None, ws_max_size=MAX_BODY_BYTES, timeout_graceful_shutdown=1, **limits)
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            with anyio.fail_after(10):
                while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
                    await anyio.sleep(0.005)
            yield listener.getsockname()[1]
            server.should_exit = True


Opener = Callable[[Sequence[Toolset]], AbstractAsyncContextManager[Door]]


def _memory(mode: str) -> Opener:
    @asynccontextmanager
    async def open_door(toolsets: Sequence[Toolset]) -> AsyncIterator[Door]:
        async with Client(BedstoneServer("bedstone", toolsets), mode=mode) as client:
            yield ClientDoor(client)

    return open_door


def _network(client_for: Callable[..., Client]) -> Opener:
    @asynccontextmanager
    async def open_door(toolsets: Sequence[Toolset]) -> AsyncIterator[Door]:
        async with serving(toolsets) as base, client_for(base) as client:
            yield ClientDoor(client)

    return open_door


def _plain(*, bare: bool) -> Opener:
    @asynccontextmanager
    async def open_door(toolsets: Sequence[Toolset]) -> AsyncIterator[Door]:
        async with serving(toolsets) as base, httpx2.AsyncClient() as http:
            yield PlainDoor(http, f"{base}/mcp", bare)

    return open_door


@asynccontextmanager
async def _bare_websocket(toolsets: Sequence[Toolset]) -> AsyncIterator[Door]:
    async with serving(toolsets) as base, connect_websocket(_socket_address(base), max_size=LARGE) as socket:
        yield SocketDoor(socket)


def stdio_client(mode: str, *arguments: str, **options: Any) -> Client:
    """The real command in a process of its own."""
    parameters = StdioServerParameters(command=str(BEDSTONE), args=list(arguments), env=clean_environment())
    return Client(parameters, mode=mode, **options)


def _websocket(base: str) -> Any:
    return websocket_client(_socket_address(base))


def _socket_address(base: str) -> str:
    return f"{base}/mcp".replace("http", "ws")


NETWORK_CLIENTS: dict[str, Callable[..., Client]] = {
    "http-2026": lambda base, **options: Client(f"{base}/mcp", mode=MODERN, **options),
    "http-handshake": lambda base, **options: Client(f"{base}/mcp", mode=HANDSHAKE, **options),
    "sse": lambda base, **options: Client(sse_client(f"{base}/sse"), mode=HANDSHAKE, **options),
    "websocket-2026": lambda base, **options: Client(_websocket(base), mode=MODERN, **options),
    "websocket-handshake": lambda base, **options: Client(_websocket(base), mode=HANDSHAKE, **options),
}
NETWORK_DOORS: dict[str, Opener] = {
    **{name: _network(client_for) for name, client_for in NETWORK_CLIENTS.items()},
    "plain": _plain(bare=False),
    "bare": _plain(bare=True),
    "websocket-bare": _bare_websocket,
}
DOORS: dict[str, Opener] = {"memory-2026": _memory(MODERN), "memory-handshake": _memory(HANDSHAKE), **NETWORK_DOORS}
STDIO_DOORS = {"stdio-2026": MODERN, "stdio-handshake": HANDSHAKE}


def payload(result: wire.CallToolResult) -> Any:
    """The JSON in the one text block of an answer."""
    (block,) = result.content
    assert isinstance(block, wire.TextContent)
    return json.loads(block.text)
