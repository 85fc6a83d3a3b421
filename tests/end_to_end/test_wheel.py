"""The wheel in an empty environment."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.processes import bedstone
from support.scans import scanned_pdf

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


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel alone: no OCR engine and no model, as on systems without them."""
    folder = tmp_path_factory.mktemp("bare")
    forbidden = folder / "forbidden.txt"
    forbidden.write_text("tesserocr<0\ntessdata.eng<0\nonnxruntime<0\nbedstone-minilm<0\n")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=120)
    programs = folder / "venv" / "bin"
    install: list[str | Path] = [programs / "pip", "install", "--quiet", "--constraint", forbidden, wheel]
    subprocess.run(install, check=True, timeout=600, capture_output=True)
    return programs


def test_it_serves_in_an_empty_environment(bare: Path, tmp_path: Path) -> None:
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
        [bare / "python", "-m", "bedstone.mcp_servers.kb.server"],
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
    installed = bedstone("install", "cursor", "--toolsets", "kb", program=(bare / "bedstone",))
    # A wheel from a file is no release: only the index knows a release, and then the command is uvx.
    assert json.loads(installed.stdout)["mcpServers"]["bedstone"]["command"] == str(bare / "bedstone")


def test_without_ocr_and_model_it_searches_by_keyword_and_says_what_is_missing(bare: Path, tmp_path: Path) -> None:
    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return bedstone(*arguments, program=(bare / "bedstone",), BEDSTONE_DATA_DIR=str(tmp_path / "data"))

    (tmp_path / "oars.txt").write_text("Oars are stored in the boathouse.")
    (tmp_path / "scan.pdf").write_bytes(scanned_pdf("Rowing club"))
    assert run("knowledge", "add", tmp_path / "oars.txt").returncode == 0
    found = run("knowledge", "search", "oars", "--json")
    assert json.loads(found.stdout)["results"][0]["filename"] == "oars.txt"
    refused = run("knowledge", "add", tmp_path / "scan.pdf")
    assert refused.returncode == 1
    assert "pip install 'bedstone[ocr]'" in refused.stdout + refused.stderr
    doctor = run("doctor").stdout
    assert "search is keyword only. Install it with: pip install 'bedstone[minilm]'" in doctor
    assert "Install it with: pip install 'bedstone[ocr]'" in doctor
