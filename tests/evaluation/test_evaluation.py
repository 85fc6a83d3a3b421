"""`bedstone eval` against real servers, and the arithmetic of its reports."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bedstone.errors import InvalidInput
from bedstone.evaluation.cases import read_cases
from bedstone.evaluation.charts import bar_chart
from bedstone.evaluation.report import compare_runs
from support.processes import BEDSTONE, bedstone, listening

PAGES = {
    "retries.md": "# Retries\n\n## Backoff\nWaits grow longer.\n\n## Jitter\nRandom delays.\n",
    "install.md": "# Install\n\nRun the installer.\n\n## Windows\nUse the wizard.\n",
    "bikes.md": "# Bikes\n\n## Brakes\nReplace the pads.\n",
}
CASES: list[dict[str, Any]] = [
    {"query": "growing waits", "expectedChunkId": "retries.md#retries/backoff", "category": "meaning"},
    {"query": "Jitter", "expectedChunkId": "retries.md#retries/jitter", "category": "heading"},
    {"query": "wizard", "expectedFiles": {"install.md": 2}, "category": "meaning"},
    {"query": "Brakes", "expectedChunkId": "install.md#install/windows", "category": "wrong", "name": "a wrong case"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("eval")
    (root / "docs").mkdir()
    for name, text in PAGES.items():
        (root / "docs" / name).write_text(text)
    (root / "cases.json").write_text(json.dumps(CASES))
    bedstone("docs", "build", root / "docs", "--out", root / "index", "--embedding-provider", "none")
    return root


def command(folder: Path) -> tuple[str, ...]:
    return (str(BEDSTONE), "serve", "--toolsets", "docs", "--docs-index", str(folder / "index"))


def test_a_run_measures_a_server_over_pipes(folder: Path, tmp_path: Path) -> None:
    data = ("--data-dir", tmp_path)
    done = bedstone("eval", "run", "--cases", folder / "cases.json", *data, "--", *command(folder))
    report = json.loads(done.stdout)
    assert (report["cases"], report["errors"], report["name"]) == (4, 0, "cases")
    assert report["quality"] == {"mrr@5": 0.75, "ndcg@5": 0.75, "hit@5": 0.75, "hit@1": 0.75}
    assert report["by_category"]["wrong"]["mrr@5"] == 0.0
    assert report["by_category"]["meaning"]["ndcg@5"] == 1.0
    assert report["rounds"] == 1.75
    assert set(report["search_ms"]) == {"p50", "p95", "p99"}
    assert report["cpu_ms_per_search"] is not None  # the clock ticks every ten milliseconds
    assert report["peak_rss_mb"] > 10
    assert report["ready_ms"] > 0
    assert [item["rank"] for item in report["results"]] == [1, 1, 1, None]
    (kept,) = (tmp_path / "evaluations").iterdir()
    assert json.loads(kept.read_text()) == report


def test_a_run_is_compared_with_a_baseline(folder: Path, tmp_path: Path) -> None:
    cases = [*CASES[:3], {**CASES[3], "expectedChunkId": "bikes.md#bikes/brakes"}]
    (tmp_path / "corrected.json").write_text(json.dumps(cases))
    first = tmp_path / "first.json"
    arguments = ("--data-dir", str(tmp_path), "--", *command(folder))
    bedstone("eval", "run", "--cases", folder / "cases.json", "--json", first, *arguments)
    second = tmp_path / "second.json"
    done = bedstone(
        "eval", "run", "--cases", tmp_path / "corrected.json", "--baseline", first, "--out", second, *arguments
    )
    assert "| MRR@5 | 0.75 | 1 | +0.250 (+33.3%) better |" in done.stdout
    assert "Improvements of now (1):\n\n- a wrong case: not found -> 1" in done.stdout
    compared = bedstone("eval", "compare", second, first, "--svg", tmp_path / "chart.svg")
    assert "Regressions of cases (1):" in compared.stdout
    assert ElementTree.fromstring((tmp_path / "chart.svg").read_text()).tag.endswith("svg")


def test_a_run_over_http_and_at_file_level(folder: Path, tmp_path: Path) -> None:
    options = ("--toolsets", "docs", "--docs-index", folder / "index")
    with listening(*options, log=tmp_path / "log") as server:
        url = ("--url", f"{server.base}/mcp", "--pid", str(server.process.pid))
        files = ("--file-level", "--data-dir", tmp_path)
        done = bedstone("eval", "run", "--cases", folder / "cases.json", *url, *files)
    report = json.loads(done.stdout)
    assert report["quality"]["mrr@5"] == 0.75
    assert report["peak_rss_mb"] > 10


def test_several_configurations_are_built_and_compared(folder: Path, tmp_path: Path) -> None:
    providers = ("--provider", "none", "--provider", "hash", "--data-dir", tmp_path)
    where = ("--cases", folder / "cases.json", "--docs-dir", folder / "docs", "--out", tmp_path / "out")
    done = bedstone("eval", "benchmark", *where, *providers)
    assert "| MRR@5 | 0.75 | 0.75 | = |" in done.stdout
    assert "| build CPU s |" in done.stdout
    assert "| index MB |" in done.stdout
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "comparison.md",
        "comparison.svg",
        "hash.json",
        "none.json",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--", "no-such-command"), "Cannot start no-such-command"),
        (("--", "true"), "The server exited before"),
        ((), "Name the server: a command after --, or --url."),
        (("--url", "http://127.0.0.1:9/mcp"), "Cannot reach the server"),
        (("--", str(BEDSTONE), "serve", "--toolsets", "kb"), "The server has no tool search_docs"),
        (("--build-command", "false", "--", "true"), "The build failed with exit code 1"),
    ],
)
def test_what_cannot_be_measured_is_told(
    folder: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = bedstone("eval", "run", "--cases", folder / "cases.json", "--data-dir", tmp_path, *arguments)
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "Cannot read cases"),
        ("[]", "must hold a list of cases"),
        ('[{"query": " "}]', r"cases.json\[0\]: query must be a non-empty string"),
        ('[{"query": "a"}]', r"cases.json\[0\]: expectedChunkId or expectedFiles"),
    ],
)
def test_wrong_cases_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "cases.json").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_cases(tmp_path / "cases.json")


def test_reports_are_arithmetic() -> None:
    one = {"quality": {"mrr@5": 0.5}, "search_ms": {"p50": 4.0}, "results": []}
    two = {"quality": {"mrr@5": 0.4}, "search_ms": {"p50": 2.0}, "results": []}
    table = compare_runs({"one": one, "two": two})
    assert "| MRR@5 | 0.5 | 0.4 | -0.100 (-20.0%) worse |" in table
    assert "| search p50 ms | 4 | 2 | -2.000 (-50.0%) better |" in table
    assert "memory" not in table
    drawing = bar_chart({"one <a>": one, "two": two}, "A & B")
    texts = [item.text for item in ElementTree.fromstring(drawing).iter() if item.text and item.text.strip()]
    assert {"A & B", "one <a>", "two", "MRR@5", "0.500", "0.400"} <= set(texts)
