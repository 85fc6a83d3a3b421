"""The real command in a subprocess."""

import json
import os
import pty
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from bedstone import __version__
from bedstone.toolsets import TOOLSETS
from support.processes import BEDSTONE, bedstone, clean_environment


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    file = tmp_path / "handbook.txt"
    file.write_text("Charging takes four hours.")
    return file


def test_it_knows_its_version() -> None:
    assert bedstone("--version").stdout == f"bedstone, version {__version__}\n"


def test_on_a_terminal_it_explains_itself() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(ours), os.fdopen(theirs):
        run = subprocess.run(
            [BEDSTONE], stdin=theirs, capture_output=True, text=True, timeout=30, check=False, env=clean_environment()
        )
    assert run.stdout.startswith("Usage: bedstone")


@pytest.mark.parametrize("arguments", [[], ["serve"], ["--log-level", "info"]])
def test_on_a_pipe_it_serves_until_the_pipe_closes(handbook: Path, arguments: list[str]) -> None:
    run = bedstone(*arguments, BEDSTONE_KB__FILE_PATH=str(handbook))
    assert run.returncode == 0
    assert run.stdout == ""
    assert "Serving everything, knowledge, kb" in run.stderr


def test_with_nothing_configured_it_serves_the_knowledge_base(tmp_path: Path) -> None:
    run = bedstone("serve", cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path / "data"))
    assert run.returncode == 0
    assert "Serving everything, knowledge" in run.stderr
    assert not (tmp_path / "data").exists()  # nothing is made before it is needed


@pytest.mark.parametrize("name", ["kbb", "kb,doks"])
def test_a_typo_in_a_toolset_lists_the_valid_names(name: str) -> None:
    run = bedstone("serve", "--toolsets", name)
    assert run.returncode == 1
    assert "Valid names: everything, knowledge, docs, kb" in run.stderr
    assert "conformance" not in run.stderr


def test_tools_are_listed_shown_and_called(handbook: Path) -> None:
    kb = ["--toolsets", "kb", "--kb-file", str(handbook)]
    assert "get_kb_info" in bedstone("tools", "list", *kb).stdout
    assert [row["name"] for row in json.loads(bedstone("tools", "list", "--json", *kb).stdout)] == [
        "get_kb_info",
        "get_kb_content",
    ]
    shown = json.loads(bedstone("tools", "show", "get_kb_info", *kb).stdout)
    assert shown["inputSchema"] == {"type": "object", "properties": {}}
    called = bedstone("tools", "call", "get_kb_content", *kb)
    assert called.returncode == 0
    assert json.loads(called.stdout)["content"] == "Charging takes four hours."


def test_a_failing_call_fails_the_command(handbook: Path) -> None:
    refused = bedstone("tools", "call", "get_kb_content", "page=2", "--kb-file", handbook)
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"] == "Unknown parameter: page. Parameters: none"
    unknown = bedstone("tools", "call", "get_kb", "--kb-file", handbook)
    assert unknown.returncode == 1
    assert "get_kb_info, get_kb_content" in unknown.stderr
    for arguments in (["page"], ["--json", "{"], ["--json", "[]"]):
        assert "Error:" in bedstone("tools", "call", "get_kb_content", *arguments, "--kb-file", handbook).stderr


def test_kb_prints_what_the_tools_answer(handbook: Path) -> None:
    info = json.loads(bedstone("kb", "info", "--kb-file", handbook).stdout)
    assert info["info"]["contentLength"] == 26
    content = json.loads(bedstone("kb", "content", "--kb-file", handbook).stdout)
    assert content == {"status": "ok", "contentLength": 26, "content": "Charging takes four hours."}
    missing = bedstone("kb", "content", "--kb-file", handbook.with_name("none.txt"))
    assert missing.returncode == 1
    assert json.loads(missing.stdout)["status"] == "error"


def test_settings_say_where_each_value_came_from(tmp_path: Path) -> None:
    config = tmp_path / "bedstone.toml"
    config.write_text('[kb]\nfile_path = "notes.txt"\ndescription = "From the file"\n[mcp]\nport = 4000\n')
    run = bedstone(
        "settings",
        "--json",
        "--port",
        "5000",
        cwd=tmp_path,
        BEDSTONE_KB__DESCRIPTION="From outside",
        BEDSTONE_MCP__TOKEN="tulip",
    )
    rows = {row["setting"]: (row["value"], row["source"]) for row in json.loads(run.stdout)}
    assert rows["mcp.port"] == (5000, "flag")
    assert rows["kb.description"] == ("From outside", "BEDSTONE_KB__DESCRIPTION")
    assert rows["kb.file_path"] == (str(tmp_path / "notes.txt"), str(config))
    assert rows["data_dir"] == (str(tmp_path / ".bedstone"), "default")
    assert rows["kb.reload"] == ("on-change", "default")
    assert rows["mcp.token"] == ("********", "BEDSTONE_MCP__TOKEN")
    assert "tulip" not in bedstone("settings", BEDSTONE_MCP__TOKEN="tulip").stdout


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("[kb]\nfile_pat = 1", "Unknown setting kb.file_pat (from"),
        ("[mcp]\nport = 70000", "Invalid value for mcp.port (from"),
        ("[mcp", "Cannot read the configuration file"),
        ("kb = 5", "Invalid value for kb (from"),
        ('[kb]\nfile_path = "~nobody-of-that-name/x"', "Cannot find the home folder"),
        ("[kbb]\nfile_path = 1", "Unknown setting kbb (from"),
    ],
)
def test_a_wrong_configuration_file_is_named(tmp_path: Path, config: str, message: str) -> None:
    (tmp_path / "bedstone.toml").write_text(config)
    run = bedstone("settings", cwd=tmp_path)
    assert run.returncode == 1
    assert message in run.stderr
    assert "bedstone.toml" in run.stderr or "home folder" in message


def test_the_stronger_source_of_a_token_wins(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("from-the-file")
    run = bedstone("settings", "--json", "--token-file", token, BEDSTONE_MCP__TOKEN="tulip")
    rows = {row["setting"]: row["value"] for row in json.loads(run.stdout)}
    assert (rows["mcp.token"], rows["mcp.token_file"]) == (None, str(token))


@pytest.mark.parametrize("name", ["DATA_DIR", "KB__FILE_PATH", "TOOLSETS", "MCP__TOKEN", "MCP__PORT"])
def test_an_empty_variable_is_none(name: str, tmp_path: Path) -> None:
    plain = json.loads(bedstone("settings", "--json", cwd=tmp_path).stdout)
    assert json.loads(bedstone("settings", "--json", cwd=tmp_path, **{f"BEDSTONE_{name}": ""}).stdout) == plain


def test_variables_that_are_no_settings_are_mentioned(handbook: Path) -> None:
    run = bedstone(
        "serve", "--kb-file", handbook, BEDSTONE_KB_FILE="x", BEDSTONE_TOOLSETS="", BEDSTONE_LOG__LEVEL="INFO"
    )
    assert "Unknown environment variable BEDSTONE_KB_FILE. Did you mean BEDSTONE_KB__FILE_PATH?" in run.stderr
    assert "Serving everything, knowledge, kb" in run.stderr


def test_doctor_says_what_to_fix(tmp_path: Path, handbook: Path) -> None:
    healthy = bedstone("doctor", "--json", "--kb-file", handbook, "--data-dir", tmp_path / "data")
    assert healthy.returncode == 0
    assert {row["verdict"] for row in json.loads(healthy.stdout)} <= {"ok", "note"}
    model = {"subject": "embedding model", "verdict": "ok", "message": f"bedstone-minilm {version('bedstone-minilm')}"}
    assert model in json.loads(healthy.stdout)
    on_terminal = bedstone("doctor", "--data-dir", tmp_path)
    assert re.search(r"ok +OCR +tesserocr", on_terminal.stdout)
    sick = bedstone("doctor", "--kb-file", tmp_path / "none.txt", "--host", "0.0.0.0", "--data-dir", "/proc/nowhere")
    assert sick.returncode == 1
    for words in ("does not exist", "without a token", "Choose another with"):
        assert words in " ".join(sick.stdout.split())
    assert bedstone("doctor", "--toolsets", "kbb").returncode == 1


@pytest.mark.parametrize(
    "command",
    [
        *("--help", "tools list", "tools call get_kb_content", "tools show get_kb_info", "settings", "doctor --json"),
        *("kb content", "knowledge list --json", "docs validate .", "docs build .", "install cursor"),
    ],
)
def test_a_reader_that_goes_away_causes_no_traceback(command: str, handbook: Path, tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Page\n\nText.\n")
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as output:
        run = subprocess.run(
            [BEDSTONE, *command.split()],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
            env=clean_environment() | {"BEDSTONE_KB__FILE_PATH": str(handbook), "BEDSTONE_DATA_DIR": str(tmp_path)},
        )
    assert run.returncode != 0
    assert "Traceback" not in run.stderr
    assert "Exception ignored" not in run.stderr


SDK = ["mcp", "mcp_types", "starlette", "uvicorn", "watchfiles"]
ENGINES = [
    *("numpy", "tantivy", "usearch", "numkong", "onnxruntime", "lxml", "pypdfium2", "tesserocr"),
    *("bedstone.search.indexes", "bedstone.search.embedders.minilm", "bedstone.store.engines.sqlite"),
    *("bedstone.ingest.formats", "bedstone.salesforce.client"),
]


@pytest.mark.parametrize(
    ("script", "absent"),
    [
        (
            "import bedstone.cli.serve, bedstone.transports.stdio, bedstone.server",
            ["rich", "typer", "jinja2", "bedstone.cli.clients", "bedstone.web", *ENGINES],
        ),
        ("import bedstone.cli.tools, bedstone.cli.kb, bedstone.cli.settings", ["rich", "httpx2", *SDK, *ENGINES]),
        ("import bedstone.services.service, bedstone.services.docs.service", ["httpx2", *SDK, *ENGINES]),
        *(
            (f"import bedstone.toolsets.{label}.toolset", ["httpx2", *SDK, *ENGINES])
            for label in (*TOOLSETS.builtin, "conformance")
        ),
    ],
)
def test_nothing_is_imported_before_it_is_needed(script: str, absent: list[str]) -> None:
    check = f"{script}\nimport sys\nprint([name for name in {absent} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=30, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("command", [("serve",), ("knowledge", "add", "a.md"), ("docs", "build", ".")])
def test_a_data_folder_that_cannot_be_written_is_said_in_one_line(command: tuple[str, ...], tmp_path: Path) -> None:
    folder = tmp_path / "taken"
    folder.write_text("a file")
    (tmp_path / "a.md").write_text("# A\n\nwords\n")
    done = bedstone(*command, "--data-dir", folder, cwd=tmp_path)
    assert done.returncode == 1
    assert str(folder) in done.stderr
    assert "Not a directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_that_is_misspelt_is_told_the_right_one() -> None:
    assert "Did you mean 'serve'?" in bedstone("serv").stderr
