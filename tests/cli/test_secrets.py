"""Secrets stay secret: in logs, in files, and because they cannot be guessed."""

import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

import pytest
from websockets.sync.client import connect

from bedstone.cli.redaction import redact
from support.processes import BEDSTONE, Listening, bedstone, listening

TOKEN = "a-long-made-up-token-4711"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
BOTH = "application/json, text/event-stream"
OPEN_UMASK = ("sh", "-c", 'umask 000; exec "$0" "$@"', str(BEDSTONE))


def use_every_transport(server: Listening) -> str:
    """Present the token at every door, and return the cookie of a page session."""
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    body = json.dumps(LIST).encode()
    with connect(f"ws://127.0.0.1:{server.port}/mcp", additional_headers=headers) as socket:
        socket.send(body.decode())
        assert json.loads(socket.recv(timeout=10))["id"] == 1
    assert server.request("POST", "/mcp", body, headers)[0] == 200
    assert server.request("POST", "/mcp/tools/list", body, headers)[0] == 200
    assert server.request("POST", "/mcp", body, headers | {"accept": BOTH})[0] == 200
    assert server.request("POST", "/mcp", body, {"authorization": f"Basic {TOKEN}"})[0] == 401
    assert server.request("POST", f"/mcp?token={TOKEN}", body)[0] == 401
    assert server.request("GET", f"/search?q={TOKEN}", None, headers)[0] == 200
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=10)) as stream:
        stream.request("GET", "/sse", headers=headers)
        assert stream.getresponse().status == 200
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        form = {"content-type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/login", urlencode({"token": TOKEN}), form)
        cookie = connection.getresponse().headers["set-cookie"].partition(";")[0]
    with connect(f"ws://127.0.0.1:{server.port}/mcp", additional_headers=headers | {"cookie": cookie}):
        pass
    assert server.request("GET", "/", None, {"cookie": cookie})[0] == 200
    return cookie.partition("=")[2]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_log_contains_the_token_or_a_cookie(tmp_path: Path, log_format: str) -> None:
    arguments = ("--toolsets", "kb", "--log-level", "debug", "--log-format", log_format)
    with listening(*arguments, log=tmp_path / "log", BEDSTONE_MCP__TOKEN=TOKEN) as server:
        cookie = use_every_transport(server)
    log = (tmp_path / "log").read_text()
    assert "********" in log  # the handshake of the WebSocket is there
    assert TOKEN not in log
    assert cookie not in log


@pytest.mark.parametrize(
    "line",
    [
        "< Authorization: Bearer S3cr3tValue1234",
        "> Cookie: theme=dark; bedstone_page=S3cr3tValue1234",
        "headers=[(b'Host', b'kb'), (b'Authorization', b'Basic S3cr3tValue1234')]",
        "{'set-cookie': 'sid=S3cr3tValue1234; Path=/'}",
        "POST https://login.example/token?client_id=a&client_secret=S3cr3tValue1234&x=1",
        '{"access_token": "S3cr3tValue1234", "scope": "api"}',
        "connecting to postgres://admin:S3cr3tValue1234@db.example/kb failed",
        "Bearer S3cr3tValue1234 was refused",
        "invalid key sk-S3cr3tValue1234S3cr3tValue1234",
        "token=S3cr3tValue1234",
        "postgresql://db.example/kb?sslkey=client.key&sslpassword=S3cr3tValue1234",
    ],
)
def test_secrets_are_removed(line: str) -> None:
    assert "S3cr3tValue1234" not in redact(line)


@pytest.mark.parametrize(
    "line",
    [
        "Refused '/mcp': A valid token is needed: send Authorization: Bearer <token>.",
        "Basic authentication is not supported; bearer tokens are",
        "The answer took 4000 tokens: too many for the model",
        'Request {"progressToken": 17, "query": "reset a password"}',
        "http://localhost:3000/mcp answered 200; user@example.com wrote at 10:30",
        "token files and secrets belong to their owner, and so do cookies, says the guide",
        "Ended session 0123456789abcdef0123456789abcdef",
        "Cannot read /data/sk-notes.md: no such file",
    ],
)
def test_other_text_stays(line: str) -> None:
    assert redact(line) == line


@pytest.mark.parametrize("token", ["x", "short-token", "a" * 40, "abababababababababab"])
def test_a_token_that_is_easy_to_guess_is_refused(tmp_path: Path, token: str) -> None:
    file = tmp_path / "token"
    file.write_text(token)
    file.chmod(0o600)
    arguments = ("serve", "--transport", "http", "--toolsets", "kb")
    from_file, from_variable = (
        bedstone(*arguments, "--token-file", file),
        bedstone(*arguments, BEDSTONE_MCP__TOKEN=token),
    )
    for refused in (from_file, from_variable):
        assert refused.returncode == 1
        assert "easy to guess" in refused.stderr
        assert "token_urlsafe" in refused.stderr
        assert token not in refused.stderr or token == "x"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "the token"
    file.write_text(TOKEN)
    file.chmod(mode)
    arguments = ("--transport", "http", "--toolsets", "kb", "--token-file", file)
    refused = bedstone("serve", *arguments)
    assert refused.returncode == 1
    assert f"chmod 600 '{file}'" in refused.stderr
    assert any("chmod 600" in item["message"] for item in json.loads(bedstone("doctor", "--json", *arguments).stdout))


def test_a_secret_in_a_file_that_others_can_read_is_reported(tmp_path: Path) -> None:
    config = tmp_path / "bedstone.toml"
    config.write_text('[embedding]\napi_key = "some-key-1234"\nbase_url = "http://me:some-word-1234@localhost/v1"\n')
    config.chmod(0o644)
    shown = bedstone("settings", "--config", config)
    assert "Other users can read embedding.api_key" in shown.stderr
    assert "some-key-1234" not in shown.stdout + shown.stderr
    assert "some-word-1234" not in shown.stdout + shown.stderr
    config.chmod(0o600)
    assert "Other users" not in bedstone("settings", "--config", config).stderr


def modes(folder: Path) -> tuple[set[int], set[int]]:
    """Return the permissions of all folders and of all files."""
    paths = [folder, *folder.rglob("*")]
    found = [{path.stat().st_mode & 0o777 for path in paths if path.is_dir() is kind} for kind in (True, False)]
    return found[0], found[1]


def test_the_data_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    """Under any umask of the user, also while the server runs."""
    data, docs = tmp_path / "data", tmp_path / "docs"
    docs.mkdir()
    (docs / "guide.md").write_text("# Guide\n\nTurn the key to the left.\n")
    option = ("--data-dir", data)
    added = bedstone("knowledge", "add", docs / "guide.md", *option, program=OPEN_UMASK)
    assert added.returncode == 0, added.stderr
    assert bedstone("docs", "build", docs, *option, program=OPEN_UMASK).returncode == 0
    arguments = (*option, "--toolsets", "knowledge,docs", "--docs-dir", docs)
    with listening(*arguments, log=tmp_path / "log", program=OPEN_UMASK, BEDSTONE_MCP__TOKEN=TOKEN) as server:
        call = {"name": "knowledge-add", "arguments": {"file_path": str(docs / "guide.md")}}
        headers = {"authorization": f"Bearer {TOKEN}"}
        assert server.post("/mcp/tools/call", LIST | {"method": "tools/call", "params": call}, **headers)[0] == 200
        assert {path.name for path in data.iterdir()} >= {"index", "documents", "docs", "sessions.json"}
        assert list((data / "index").glob("*-wal"))
        assert modes(data) == ({0o700}, {0o600})
    export = tmp_path / "export.zip"
    assert bedstone("knowledge", "export", export, *option, program=OPEN_UMASK).returncode == 0
    assert export.stat().st_mode & 0o777 == 0o600


def test_an_older_data_folder_is_closed_at_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "index" / "words").mkdir(parents=True)
    (data / "index" / "notes").write_text("private")
    for path in (data, *data.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    with listening("--toolsets", "knowledge", "--data-dir", data, log=tmp_path / "log"):
        folders, files = modes(data)
        assert (folders, files) == ({0o700}, {0o600})
    assert f"Other users had access to {data}" in (tmp_path / "log").read_text()


def test_a_folder_with_other_things_keeps_its_permissions(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "index").mkdir(parents=True)
    (home / "letter.txt").write_text("mine")
    for path in (home, home / "index"):
        path.chmod(0o755)
    (home / "letter.txt").chmod(0o644)
    with listening("--toolsets", "knowledge", "--data-dir", home, log=tmp_path / "log"):
        assert home.stat().st_mode & 0o777 == 0o755
        assert (home / "letter.txt").stat().st_mode & 0o777 == 0o644
        assert modes(home / "index")[0] == {0o700}


def test_files_that_the_user_asks_for_can_be_shared(tmp_path: Path) -> None:
    docs, index = tmp_path / "docs", tmp_path / "index"
    docs.mkdir()
    (docs / "guide.md").write_text("# Guide\n\nTurn the key to the left.\n")
    built = bedstone("docs", "build", docs, "--out", index, "--data-dir", tmp_path / "data", program=OPEN_UMASK)
    assert built.returncode == 0, built.stderr
    shared = [path for path in (index, *index.rglob("*")) if path.name != ".lock"]
    assert all(path.stat().st_mode & 0o044 == 0o044 for path in shared)
    assert bedstone("docs", "fix", docs, program=OPEN_UMASK).returncode == 0
    assert (docs / ".docs-mcp.json").stat().st_mode & 0o777 == 0o666
