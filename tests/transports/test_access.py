"""One guard in front of every route."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from bedstone.errors import InvalidSetting
from bedstone.transports.access import Access, Guard, is_loopback
from support.doors import serving
from support.processes import bedstone, listening
from support.workshop import Workshop

TOKEN = "a-long-made-up-token"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ROUTES = [
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("POST", "/mcp/tools/list"),
    ("POST", "/workshop/mcp"),
    ("GET", "/sse"),
    ("POST", "/messages/"),
    ("GET", "/nowhere"),
    ("GET", "/healthz/../mcp"),
    ("GET", "/healthzzz"),
]
OPEN = ("/healthz", "/readyz")


@pytest.fixture(scope="module")
async def base() -> AsyncIterator[str]:
    async with serving([Workshop()]) as base:
        yield base


@pytest.fixture(scope="module")
async def guarded() -> AsyncIterator[str]:
    async with serving([Workshop()], token=TOKEN) as base:
        yield base


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example:3000",
        "localhost@evil.example",
        "@localhost",
        "[::1].evil.example",
        "[::1",
    ],
)
async def test_a_strange_host_is_misdirected(base: str, method: str, path: str, host: str) -> None:
    async with httpx2.AsyncClient() as http:
        response = await http.request(method, f"{base}{path}", headers={"host": host}, json=LIST)
    assert response.status_code == 421


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://localhost.evil.example",
        "null",
        "",
        "file://",
        "http://user@localhost",
        "localhost",
        "http://localhost",
        "http://localhost:1",
        "http://127.0.0.1:1",
        "http://[::1]:1",
    ],
)
async def test_a_strange_origin_is_forbidden(base: str, method: str, path: str, origin: str) -> None:
    async with httpx2.AsyncClient() as http:
        response = await http.request(method, f"{base}{path}", headers={"origin": origin}, json=LIST)
    assert response.status_code == 403
    assert "mcp.allowed_hosts" in response.json()["error"]["message"]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"])
async def test_loopback_names_are_ours(base: str, host: str) -> None:
    port = base.rpartition(":")[2]
    async with httpx2.AsyncClient() as http:
        headers = {"host": f"{host}:{port}", "origin": f"http://{host}:{port}"}
        response = await http.post(f"{base}/mcp/tools/list", headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("authorization", [None, "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer", "é"])
async def test_every_route_but_health_needs_the_token(
    guarded: str, method: str, path: str, authorization: str | None
) -> None:
    headers = {b"authorization": authorization.encode()} if authorization else {}
    async with httpx2.AsyncClient() as http:
        response = await http.request(method, f"{guarded}{path}", headers=headers, json=LIST)
    assert response.status_code == (200 if path in OPEN else 401)
    if path not in OPEN:
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert TOKEN not in response.text


async def test_the_right_token_opens_every_door(guarded: str) -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        assert (await http.post(f"{guarded}/mcp", json=LIST)).status_code == 200
        assert (await http.get(f"{guarded}/nowhere")).status_code == 404
    address = f"{guarded}/mcp".replace("http", "ws")
    async with connect_websocket(address, additional_headers=headers) as socket:
        await socket.send("{}")
        assert json.loads(await socket.recv())["error"]["code"] == -32600


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Bearer {TOKEN}", "origin": "http://evil.example"}],
)
async def test_a_websocket_is_refused_before_it_opens(guarded: str, headers: dict[str, str]) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with connect_websocket(f"{guarded}/mcp".replace("http", "ws"), additional_headers=headers):
            pass
    assert refused.value.response.status_code == 403


async def test_a_websocket_of_a_strange_host_is_refused(base: str) -> None:
    port = int(base.rpartition(":")[2])
    with pytest.raises(InvalidStatus) as refused:
        async with connect_websocket(f"ws://evil.example:{port}/mcp", host="127.0.0.1", port=port):
            pass
    assert refused.value.response.status_code == 403


async def test_an_oversized_frame_closes_the_socket_alone(base: str) -> None:
    async with connect_websocket(f"{base}/mcp".replace("http", "ws")) as socket:
        await socket.send(" " * 5_000_000)
        with pytest.raises(ConnectionClosedError):
            await socket.recv()
    async with httpx2.AsyncClient() as http:
        assert (await http.get(f"{base}/healthz")).status_code == 200


def test_any_host_is_not_any_origin() -> None:
    guard = Guard(_nobody, Access.for_address("127.0.0.1", allowed_hosts=["*"]))

    def refusal(host: str, origin: str) -> Any:
        headers = [(b"host", host.encode()), (b"origin", origin.encode())]
        return guard._refusal({"type": "websocket", "path": "/mcp", "headers": headers})  # noqa: SLF001

    assert refusal("kb.example", "https://evil.example").status == 403
    assert refusal("kb.example", "https://kb.example") is None


async def _nobody(scope: Any, receive: Any, send: Any) -> None:
    raise AssertionError("not called")


@pytest.mark.parametrize("path", ["/mcp", "/mcp/tools/list"])
@pytest.mark.parametrize("accept", ["*/*", "application/json, text/event-stream"])
@pytest.mark.parametrize("chunked", [True, False])
async def test_a_large_body_is_refused(base: str, path: str, accept: str, chunked: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(6):
            yield b" " * 1024 * 1024

    headers = {"accept": accept, "content-type": "application/json"}
    content = pieces() if chunked else b" " * 6 * 1024 * 1024
    async with httpx2.AsyncClient() as http:
        response = await http.post(f"{base}{path}", headers=headers, content=content)
        assert response.status_code == 413
        assert (await http.get(f"{base}/healthz")).status_code == 200


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_loopback_addresses_are_known(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "bedstone.example"])
def test_other_addresses_need_a_token(host: str) -> None:
    with pytest.raises(InvalidSetting, match="without a token"):
        Access.for_address(host)
    assert host in Access.for_address(host, token=TOKEN).hosts


def test_the_server_refuses_to_start_open_to_everybody(tmp_path: Path) -> None:
    file = tmp_path / "kb.txt"
    file.write_text("text")
    refused = bedstone("serve", "--transport", "http", "--host", "0.0.0.0", "--kb-file", file)
    assert refused.returncode == 1
    assert "Refusing to listen on 0.0.0.0 without a token" in refused.stderr
    empty = tmp_path / "token"
    empty.touch()
    assert "is empty" in bedstone("serve", "--transport", "http", "--kb-file", file, "--token-file", empty).stderr


def test_with_a_token_file_it_listens_everywhere(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    arguments = ["--host", "0.0.0.0", "--token-file", str(token), "--toolsets", "kb"]
    with listening(*arguments, log=tmp_path / "log", BEDSTONE_MCP__ALLOWED_HOSTS="kb.example") as server:
        assert server.post("/mcp", LIST)[0] == 401
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        body = json.dumps(LIST).encode()
        assert server.request("POST", "/mcp", body, headers)[0] == 200
        assert server.request("POST", "/mcp", body, headers | {"host": "kb.example"})[0] == 200
        assert server.request("POST", "/mcp", body, headers | {"host": "evil.example"})[0] == 421
        assert [server.request("GET", path)[0] for path in ("/", "/static/search.js", "/login")] == [401, 401, 200]
        assert [server.request("GET", path, headers=headers)[0] for path in ("/", "/static/search.js")] == [200, 200]
        assert TOKEN not in server.log.read_text()


async def test_a_client_that_hangs_up_cancels_its_call() -> None:
    workshop = Workshop()
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait", "arguments": {}}}
    async with serving([workshop]) as base, httpx2.AsyncClient() as http:
        with pytest.raises(httpx2.ReadTimeout):
            await http.post(f"{base}/mcp", json=call, timeout=0.3)
        with anyio.fail_after(5):
            await workshop.cancelled.wait()
        assert (await http.get(f"{base}/healthz")).json()["status"] == "ok"


async def test_ready_means_that_every_toolset_is() -> None:
    class Broken(Workshop):
        def problems(self) -> list[str]:
            return ["the roof leaks"]

    async with serving([Workshop()]) as base, httpx2.AsyncClient() as http:
        assert (await http.get(f"{base}/readyz")).json()["status"] == "ready"
    async with serving([Broken()]) as base, httpx2.AsyncClient() as http:
        response = await http.get(f"{base}/readyz")
    assert (response.status_code, response.json()["problems"]) == (503, ["workshop: the roof leaks"])
