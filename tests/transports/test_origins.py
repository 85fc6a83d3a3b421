"""Which pages may use the server: the same rule on every route."""

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from bedstone.errors import InvalidSetting
from bedstone.transports.access import Access
from bedstone.transports.origins import Origins
from support.processes import Listening, listening

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ROUTES = [
    ("POST", "/mcp"),
    ("POST", "/mcp/tools/list"),
    ("GET", "/mcp"),
    ("GET", "/sse"),
    ("POST", "/messages/"),
    ("POST", "/kb/mcp"),
    ("GET", "/"),
    ("POST", "/login"),
    ("POST", "/documents"),
    ("GET", "/healthz"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    folder = tmp_path_factory.mktemp("origins")
    with listening("--toolsets", "kb", "--data-dir", folder / "data", log=folder / "log") as running:
        yield running


def opens_websocket(server: Listening, origin: str | None, host: str = "127.0.0.1") -> bool:
    try:
        with connect(f"ws://{host}:{server.port}/mcp", origin=origin) as socket:  # type: ignore[arg-type]
            socket.send(json.dumps(LIST))
            return bool(socket.recv(timeout=10))
    except InvalidStatus as refused:
        return refused.response.status_code != 403


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
def test_a_page_on_another_port_opens_no_websocket(server: Listening, name: str) -> None:
    assert not opens_websocket(server, f"http://{name}:{server.port + 1}")
    assert not opens_websocket(server, f"http://{name}")
    assert not opens_websocket(server, "null")
    assert opens_websocket(server, f"http://{name}:{server.port}")
    assert opens_websocket(server, None)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_page_on_another_port_reaches_no_route(server: Listening, method: str, path: str) -> None:
    for name in ("localhost", "127.0.0.1", "[::1]"):
        headers = {"origin": f"http://{name}:{server.port + 1}", "content-type": "application/json"}
        assert server.request(method, path, json.dumps(LIST).encode(), headers)[0] == 403


def test_a_request_without_origin_from_a_foreign_page_is_refused(server: Listening) -> None:
    """An image or a script of another site: browsers send no Origin, but say where it comes from."""
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        assert server.request("POST", "/mcp/tools/list", b"", {"sec-fetch-site": site})[0] == status
    assert server.request("GET", "/", None, {"sec-fetch-site": "cross-site"})[0] == 200  # a link to the page


@pytest.mark.parametrize(
    ("origin", "host", "allowed"),
    [
        ("http://kb.example:3000", "kb.example:3000", True),
        ("https://kb.example", "kb.example", True),
        ("https://kb.example:443", "kb.example", True),
        ("https://kb.example", "127.0.0.1:3000", True),  # a reverse proxy that names the server itself
        ("https://kb.example:8443", "127.0.0.1:3000", False),
        ("https://kb.example:8443", "kb.example", False),
        ("https://other.example", "kb.example", False),
        ("http://localhost:3000", "[::1]:3000", True),
        ("http://localhost", "localhost", True),
        ("http://localhost", "localhost:3000", False),
        ("https://localhost", "localhost:80", False),
        ("https://app.example:8443", "kb.example", True),
        ("https://app.example", "kb.example", False),
        ("vscode-webview://abc", "kb.example", True),
        ("chrome-extension://abc", "kb.example", False),
        ("null", "kb.example", False),
        ("http://", "", False),
        ("", "", False),
    ],
)
def test_the_rule(origin: str, host: str, allowed: bool) -> None:
    origins = Origins.of(["kb.example", "localhost", "*"], ["https://App.example:8443/", "vscode-webview://abc"])
    assert origins.allow(origin, host) is allowed


@pytest.mark.parametrize("origin", ["null", "*", "app.example", "https://", "https://*.example", "https://a.example/x"])
def test_an_invalid_origin_in_the_settings_is_an_error(origin: str) -> None:
    with pytest.raises(InvalidSetting, match=r"mcp\.allowed_origins"):
        Access.for_address("127.0.0.1", allowed_origins=[origin])


def test_a_configured_origin_can_use_the_server_from_a_browser(tmp_path: Path) -> None:
    app = "https://app.example:8443"
    with listening("--toolsets", "kb", log=tmp_path / "log", BEDSTONE_MCP__ALLOWED_ORIGINS=app) as server:
        assert opens_websocket(server, app)
        assert not opens_websocket(server, "https://app.example")
        asked = {"access-control-request-method": "POST", "access-control-request-headers": "mcp-session-id"}
        with closing(HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
            connection.request("OPTIONS", "/mcp", headers={"origin": app} | asked)
            response = connection.getresponse()
            response.read()
            assert (response.status, response.headers["access-control-allow-origin"]) == (200, app)
            assert response.headers["access-control-allow-credentials"] is None
            connection.request("OPTIONS", "/mcp", headers={"origin": "https://evil.example"} | asked)
            response = connection.getresponse()
            assert (response.status, response.headers["access-control-allow-origin"]) == (400, None)
