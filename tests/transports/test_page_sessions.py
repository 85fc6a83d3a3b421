"""Logins and logouts of browsers, across restarts."""

import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

from support.processes import Listening, listening

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
TOKEN = "a-long-made-up-token"


def cookie_after_login(server: Listening) -> str:
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/login", urlencode({"token": TOKEN}), headers)
        response = connection.getresponse()
        assert response.status == 303
        return response.headers["set-cookie"].partition(";")[0]


def log_out(server: Listening, cookie: str) -> None:
    page = server.request("GET", "/", headers={"cookie": cookie, "accept": "text/html"})[1].decode()
    csrf = page.partition('name="csrf" content="')[2].partition('"')[0]
    headers = {"cookie": cookie, "content-type": "application/x-www-form-urlencoded"}
    assert server.request("POST", "/logout", urlencode({"csrf": csrf}).encode(), headers)[0] == 303


def test_a_logout_survives_a_restart_and_so_does_a_login(tmp_path: Path) -> None:
    arguments = ("--toolsets", "kb", "--data-dir", tmp_path / "data")

    def opens(server: Listening, cookie: str) -> bool:
        return server.request("GET", "/tools", headers={"cookie": cookie})[0] == 200

    with listening(*arguments, log=tmp_path / "log", BEDSTONE_MCP__TOKEN=TOKEN) as server:
        first, second = cookie_after_login(server), cookie_after_login(server)
        log_out(server, first)
        assert [opens(server, first), opens(server, second)] == [False, True]
        assert server.request("POST", "/mcp", json.dumps(LIST).encode(), {"cookie": second})[0] == 401
    with listening(*arguments, log=tmp_path / "log", BEDSTONE_MCP__TOKEN=TOKEN) as server:
        assert [opens(server, first), opens(server, second)] == [False, True]
        assert not opens(server, second[:-1])
    with listening(*arguments, log=tmp_path / "log", BEDSTONE_MCP__TOKEN="another-long-made-up-token") as server:
        assert not opens(server, second)
    file = tmp_path / "data" / "sessions.json"
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("damaged")
    with listening(*arguments, log=tmp_path / "log", BEDSTONE_MCP__TOKEN=TOKEN) as server:
        assert [opens(server, first), opens(server, second)] == [False, False]
        assert opens(server, cookie_after_login(server))
