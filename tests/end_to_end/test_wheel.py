"""The wheel in an empty environment."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"bedstone"}
    assert "bedstone/py.typed" in names
    assert "bedstone/web/templates/home.html" in names


def test_it_serves_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True, timeout=120)
    install = [str(environment / "bin" / "pip"), "install", "--quiet", str(wheel)]
    subprocess.run(install, check=True, timeout=600, capture_output=True)
    messages = [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    served = subprocess.Popen(
        [environment / "bin" / "python", "-m", "bedstone.mcp_servers.kb.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
    )
    assert served.stdin
    assert served.stdout
    answers = []
    for message in messages:
        served.stdin.write(json.dumps(message) + "\n")
        served.stdin.flush()
        answers.append(json.loads(served.stdout.readline()))
    served.communicate(timeout=10)
    assert [tool["name"] for tool in answers[1]["result"]["tools"]] == ["get_kb_info", "get_kb_content"]
    installed = subprocess.run(
        [environment / "bin" / "bedstone", "install", "cursor", "--toolsets", "kb"],
        capture_output=True,
        text=True,
        check=True,
    )
    # A wheel from a file is no release: only the index knows a release, and then the command is uvx.
    assert json.loads(installed.stdout)["mcpServers"]["bedstone"]["command"] == str(environment / "bin" / "bedstone")
