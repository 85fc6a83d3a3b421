"""`bedstone install`: what each client gets, and what stays as it was."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bedstone.cli.clients import CLIENTS
from bedstone.cli.jsonc import set_member
from support.processes import BEDSTONE, bedstone

GOLDEN = Path(__file__).parents[1] / "golden" / "clients.json"
URL = "http://localhost:3000/mcp"


def entries(folder: Path, *arguments: str) -> dict[str, Any]:
    """What every client is told to add, with this machine's paths replaced."""
    answers: dict[str, Any] = {}
    for client in CLIENTS:
        run = bedstone("install", client, *arguments, cwd=folder, HOME=str(folder / "home"), XDG_CONFIG_HOME="")
        text = run.stdout.replace(str(BEDSTONE), "PROGRAM").replace(str(folder), "FOLDER")
        place = run.stderr.replace(str(folder), "FOLDER").split(", or run")[0].strip()
        answers[client] = {"place": place, "configuration": json.loads(text) if text else None}
    return answers


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("The bay opens at nine.")
    return tmp_path


def test_every_client_gets_its_own_form(project: Path) -> None:
    expected = json.loads(GOLDEN.read_text())
    assert {
        "starts the server": entries(project, "--kb-file", "notes.txt"),
        "connects to a server": entries(project, "--url", URL),
        "connects, shared by a team": entries(project, "--url", URL, "--scope", "project"),
    } == expected


@pytest.mark.parametrize("client", list(CLIENTS))
def test_the_printed_command_serves(client: str, project: Path) -> None:
    run = bedstone("install", client, "--kb-file", "notes.txt", cwd=project)
    entry = json.loads(run.stdout)[CLIENTS[client].key]["bedstone"]
    command = [entry["command"], *entry["args"]]
    served = subprocess.run(command, input="", capture_output=True, text=True, timeout=30, check=False, cwd="/")
    assert served.returncode == 0


@pytest.mark.parametrize(
    ("client", "folder"), [("claude-code", "."), ("cursor", "${workspaceFolder}"), ("vscode", "${workspaceFolder}")]
)
def test_a_shared_file_has_no_path_of_this_machine(client: str, folder: str, project: Path) -> None:
    (project / ".venv" / "bin").mkdir(parents=True)
    program = project / ".venv" / "bin" / "python"
    program.symlink_to(BEDSTONE.with_name("python"))
    (project / ".venv" / "pyvenv.cfg").write_text((BEDSTONE.parents[1] / "pyvenv.cfg").read_text())
    (project / ".venv" / "lib").symlink_to(BEDSTONE.parents[1] / "lib")
    run = bedstone(
        *("-m", "bedstone", "install", client, "--scope", "project", "--kb-file", "notes.txt", "--write"),
        program=(program,),
        cwd=project,
    )
    assert run.returncode == 0, run.stderr
    written = (project / str(CLIENTS[client].project_file)).read_text()
    entry = json.loads(written)[CLIENTS[client].key]["bedstone"]
    assert entry["command"] == f"{folder}/.venv/bin/bedstone"
    assert entry["args"] == ["--kb-file", f"{folder}/notes.txt"]
    assert str(project) not in written


def test_a_path_elsewhere_is_not_written_into_a_shared_file(project: Path) -> None:
    run = bedstone("install", "vscode", "--toolsets", "kb", "--scope", "project", "--write", cwd=project)
    assert run.returncode == 1
    assert "is a path of this machine" in run.stderr
    assert "--scope user" in run.stderr
    assert not (project / ".vscode").exists()


def test_settings_of_this_environment_are_carried_over(project: Path) -> None:
    config = project / "bedstone.toml"
    config.write_text('[kb]\nfile_path = "notes.txt"\n')
    for arguments in ([], ["--config", "bedstone.toml"]):
        entry = json.loads(bedstone("install", "cursor", *arguments, cwd=project).stdout)["mcpServers"]["bedstone"]
        assert entry["args"] == ["--config", str(config)]
    config.unlink()
    variables = {"BEDSTONE_KB__FILE_PATH": "notes.txt", "BEDSTONE_MCP__TOKEN": "tulip"}
    run = bedstone("install", "cursor", cwd=project, **variables)
    entry = json.loads(run.stdout)["mcpServers"]["bedstone"]
    assert entry["env"] == {"BEDSTONE_KB__FILE_PATH": str(project / "notes.txt")}


def test_a_server_with_a_token_gets_a_header() -> None:
    run = bedstone("install", "vscode", "--url", URL, BEDSTONE_MCP__TOKEN="a-long-made-up-token")
    entry = json.loads(run.stdout)["servers"]["bedstone"]
    assert entry == {"type": "http", "url": URL, "headers": {"Authorization": "Bearer <token>"}}


@pytest.mark.parametrize(
    ("client", "arguments", "message"),
    [
        ("cursor", ["--url", "not-a-url"], "Invalid address"),
        ("cursor", ["--toolsets", "kb", "--server-name", ""], "Invalid server name"),
        ("claude-desktop", ["--url", URL], "starts its own servers"),
        ("claude-desktop", ["--toolsets", "kb", "--scope", "project"], "no configuration per project"),
    ],
)
def test_what_cannot_work_is_refused(client: str, arguments: list[str], message: str, tmp_path: Path) -> None:
    run = bedstone("install", client, *arguments, "--write", cwd=tmp_path, HOME=str(tmp_path), XDG_CONFIG_HOME="")
    assert run.returncode == 1
    assert message in run.stderr
    assert not list(tmp_path.rglob("*.json"))


COMMENTED = """\
// Servers of our team.
{
\t"inputs": [ { "id": "a//b" } ],  // asked once
\t"servers": {
\t\t/* the old one */
\t\t"other": {"command": "x", "args": [1, 2,]},
\t},
}
"""


def test_a_file_with_comments_keeps_every_byte_outside_the_entry(tmp_path: Path) -> None:
    file = tmp_path / "Code" / "User" / "mcp.json"
    file.parent.mkdir(parents=True)
    for original in (COMMENTED, COMMENTED.replace("\n", "\r\n"), "\ufeff" + COMMENTED):
        file.write_bytes(original.encode())
        for backup in file.parent.glob("*.bak"):
            backup.unlink()
        for name in ("one", "two", "one"):
            arguments = ("--toolsets", "kb", "--server-name", name, "--write")
            assert bedstone("install", "vscode", *arguments, XDG_CONFIG_HOME=str(tmp_path)).returncode == 0
        written = file.read_bytes().decode()
        before, after = original.split('"servers": {')
        assert written.startswith(before + '"servers": {')
        assert written.endswith(after)
        added = written[len(before) + len('"servers": {') : -len(after)]
        assert set(json.loads("{" + added.strip().rstrip(",") + "}")) == {"one", "two"}
        assert (file.parent / "mcp.json.bak").read_bytes().decode() == original


def test_links_and_permissions_stay(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text('{"mcpServers": {"other": {"command": "x"}}, "theme": "dark"}')
    real.chmod(0o600)
    link = tmp_path / ".claude.json"
    link.symlink_to(real)
    assert bedstone("install", "claude-code", "--toolsets", "kb", "--write", HOME=str(tmp_path)).returncode == 0
    written = json.loads(real.read_text())
    assert set(written["mcpServers"]) == {"other", "bedstone"}
    assert written["mcpServers"]["bedstone"]["type"] == "stdio"
    assert written["theme"] == "dark"
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["{broken", "[]", '{"mcpServers": []}', "{} trailing", '{"a": 1 "b": 2}', None])
def test_a_file_that_cannot_be_understood_stays_as_it_is(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / ".claude.json"
    if content is None:
        file.mkdir()
    else:
        file.write_text(content)
    run = bedstone("install", "claude-code", "--toolsets", "kb", "--write", HOME=str(tmp_path))
    assert run.returncode == 1
    assert "nothing was written" in run.stderr
    assert content is None or file.read_text() == content


@pytest.mark.parametrize(
    "text", ["", "{}", " { } ", "{\n  // none\n}", '{"a": {"x": [1, {"y": "}"}]}}', '{"k": {"n": 1}, "k": {"n": 2}}']
)
def test_an_edit_adds_one_member_and_is_repeatable(text: str) -> None:
    once = set_member(text, ("k", "n"), {"v": ["é", 1]})
    plain = json.loads("\n".join(line.partition("//")[0] for line in once.splitlines()))
    assert plain["k"]["n"] == {"v": ["é", 1]}
    assert set_member(once, ("k", "n"), {"v": ["é", 1]}) == once
