"""A package that is not part of Bedstone adds a toolset with settings, an embedder, a format, an index and a store."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.outside import OUTSIDE_PACKAGE, Environment, create_environment
from support.processes import Listening, bedstone, clean_environment, listening

ROOT = Path(__file__).resolve().parents[2]
ADOC = "= Guide\n\n== Lights\n\nTurn the brass lantern before the tide.\n"


@dataclass(frozen=True)
class Project:
    """A working folder with a configuration file, in the environment with the outside package."""

    environment: Environment
    folder: Path

    def run(self, *arguments: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
        return bedstone(*arguments, cwd=self.folder, program=self.environment.bedstone, **environment)

    def json(self, *arguments: str | Path, **environment: str) -> Any:
        done = self.run(*arguments, **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def fails(self, *arguments: str | Path, **environment: str) -> str:
        done = self.run(*arguments, **environment)
        assert done.returncode == 1, done.stdout
        return done.stdout + done.stderr

    def configure(self, text: str) -> None:
        (self.folder / "bedstone.toml").write_text(text)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = create_environment(tmp_path_factory.mktemp("environment"))
    environment.install(OUTSIDE_PACKAGE)
    return environment


@pytest.fixture
def project(environment: Environment, tmp_path: Path) -> Project:
    """A configured diary with two entries."""
    project = Project(environment, tmp_path)
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary" / "2031-05-04.txt").write_text("Repaired the lantern <again>.\n")
    (tmp_path / "diary" / "2031-05-05.txt").write_text("Sailed home.\n")
    project.configure('[diary]\nfolder = "diary"\n')
    return project


@pytest.fixture
def server(project: Project) -> Iterator[Listening]:
    config = project.folder / "bedstone.toml"
    log = project.folder / "log"
    with listening("--config", config, log=log, program=project.environment.bedstone) as server:
        yield server


def settings_of(project: Project, **environment: str) -> dict[str, dict[str, Any]]:
    return {row["setting"]: row for row in project.json("settings", "--json", **environment)}


def test_its_settings_are_listed_with_the_others(project: Project) -> None:
    row = settings_of(project)["diary.folder"]
    assert row["value"] == str(project.folder / "diary")
    assert row["source"] == str(project.folder / "bedstone.toml")
    assert row["meaning"].startswith("Folder of the diary")
    row = settings_of(project, BEDSTONE_DIARY__FOLDER="elsewhere")["diary.folder"]
    assert (row["value"], row["source"]) == (str(project.folder / "elsewhere"), "BEDSTONE_DIARY__FOLDER")
    project.configure("")
    row = settings_of(project)["diary.folder"]
    assert (row["value"], row["source"]) == (None, "default")


@pytest.mark.parametrize(
    ("configuration", "guess"),
    [
        ('[diary]\nfoldr = "x"', "Unknown setting diary.foldr (from {config}). Did you mean diary.folder?"),
        ('[diery]\nfolder = "x"', "Unknown setting diery (from {config}). Did you mean diary?"),
        ("[diary]\nfolder = 3", "Invalid value for diary.folder (from {config})"),
        ('toolsets = "diery"', "Unknown name in toolsets: 'diery'. Did you mean 'diary'?"),
        ('[embedding]\nprovider = "trigram"', "Unknown name in embedders: 'trigram'. Did you mean 'trigrams'?"),
        ('[search]\nindex = "synonym"', "Unknown name in indexes: 'synonym'. Did you mean 'synonyms'?"),
        ('[storage]\ndatabase = "audit:/x"', "Unknown name in stores: 'audit'. Did you mean 'audited'?"),
    ],
)
def test_a_wrong_name_gets_the_nearest_one(project: Project, configuration: str, guess: str) -> None:
    project.configure(configuration)
    message = project.fails("tools", "call", "knowledge-status")
    assert guess.format(config=project.folder / "bedstone.toml") in message


def test_an_unknown_variable_gets_the_nearest_one(project: Project) -> None:
    done = project.run("settings", "--json", BEDSTONE_DIARY__FOLDRE="x")
    expected = "Unknown environment variable BEDSTONE_DIARY__FOLDRE. Did you mean BEDSTONE_DIARY__FOLDER?"
    assert expected in done.stderr


def test_a_configured_toolset_is_on_and_any_other_only_by_name(project: Project) -> None:
    def toolsets(*arguments: str, **environment: str) -> list[str]:
        rows = project.json("tools", "list", "--json", *arguments, **environment)
        return list(dict.fromkeys(row["toolset"] for row in rows))

    assert toolsets() == ["everything", "knowledge", "diary"]
    assert toolsets("--toolsets", "kb") == ["kb"]
    project.configure("")
    assert toolsets() == ["everything", "knowledge"]
    assert toolsets("--toolsets", "diary") == ["diary"]
    assert toolsets(BEDSTONE_DIARY__FOLDER="diary") == ["everything", "knowledge", "diary"]


def test_its_tools_answer_on_the_command_line(project: Project) -> None:
    alone = ("--toolsets", "diary")
    assert project.json("tools", "call", "diary-list", *alone) == {"days": ["2031-05-05", "2031-05-04"]}
    shown = project.json("tools", "show", "diary-write", *alone)
    assert shown["inputSchema"]["properties"]["day"]["format"] == "date"
    write = ("tools", "call", "diary-write", "day=2031-05-05", "text=Slept.", *alone)
    assert "read_only" in project.fails(*write, "--read-only")
    assert project.json(*write)["text"] == "Sailed home.\nSlept.\n\n"
    missing = json.loads(project.fails("tools", "call", "diary-read", "day=2031-05-06", *alone))
    assert (missing["error"], missing["day"]) == ("entry_not_found", "2031-05-06")
    project.configure("")
    unset = json.loads(project.fails("tools", "call", "diary-list", *alone))
    assert unset["message"] == "No diary is configured. Set diary.folder, or BEDSTONE_DIARY__FOLDER."


def test_its_page_navigation_figures_and_source_are_part_of_the_site(server: Listening) -> None:
    def page(path: str, expected: int = 200) -> str:
        status, body = server.request("GET", path, headers={"accept": "text/html"})
        assert status == expected
        return body.decode()

    home = page("/")
    assert '<a href="/diary">Diary</a>' in home
    assert "2 entries" in home
    assert 'datetime="2031-05-05' in home
    entries = page("/diary")
    assert '<a href="/diary" aria-current="page">' in entries
    assert '<a href="/diary/2031-05-04">2031-05-04</a> Repaired the lantern &lt;again&gt;.' in entries
    assert "Sailed home." in page("/diary/2031-05-05")
    assert "No entry for 2031-05-06." in page("/diary/2031-05-06", 404)
    assert "Not a day: &#39;today&#39;." in page("/diary/today", 404)
    found = page("/search?q=lanterns")
    assert '<h2><a href="/diary/2031-05-04">04 May 2031</a></h2>' in found
    assert "Repaired the <mark>lantern</mark> &lt;again&gt;." in found
    assert "Diary <b>1</b>" in page("/search?q=lanterns&in=diary")
    params = {"name": "fetch", "arguments": {"id": "diary:2031-05-04"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    assert "Repaired the lantern" in server.post("/mcp/tools/call", call)[1].decode()


def test_agents_reach_it_at_its_own_address(server: Listening) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "diary-list", "arguments": {}}}
    for path in ("/diary/mcp/tools/call", "/mcp/tools/call"):
        status, body = server.post(path, call)
        assert status == 200
        assert json.loads(body)["result"]["structuredContent"] == {"days": ["2031-05-05", "2031-05-04"]}


def test_its_format_embedder_and_store_work_together(project: Project) -> None:
    database = project.folder / "kept" / "knowledge.sqlite"
    (project.folder / "guide.adoc").write_text(ADOC)
    project.configure(
        f"[storage]\ndatabase = {json.dumps(f'audited:{database}')}\nmodel_cache_path = 'cache'\n"
        "[embedding]\nprovider = 'trigrams'\n"
    )
    (added,) = project.json("knowledge", "add", "guide.adoc", "--json")
    (hit,) = project.json("knowledge", "search", "lantern", "--json")["results"]
    assert (hit["document_id"], hit["metadata"]["format"]) == (added["document_id"], "adoc")
    assert hit["chunk_text"] == "# Guide\n\n## Lights\n\nTurn the brass lantern before the tide."
    status = project.json("knowledge", "status")
    assert status["configuration"]["embedding_model"] == "trigrams"
    # Only vectors of letters find a misspelt word.
    (misspelt,) = project.json("knowledge", "search", "lantren", "--json")["results"]
    assert misspelt["chunk_id"] == hit["chunk_id"]
    by_keyword = project.json("knowledge", "search", "lantren", "--json", BEDSTONE_EMBEDDING__PROVIDER="none")
    assert by_keyword["results"] == []
    project.json("knowledge", "remove", hit["document_id"], "--yes")
    audit = [json.loads(line) for line in database.with_suffix(".audit.jsonl").read_text().splitlines()]
    assert {line["document"] for line in audit} == {hit["document_id"]}
    actions = [line["action"] for line in audit]
    assert (actions[0], actions[-1]) == ("put", "delete")


def test_its_search_index_finds_synonyms(project: Project) -> None:
    (project.folder / "guide.adoc").write_text(ADOC)
    words_only = {"BEDSTONE_EMBEDDING__PROVIDER": "none"}
    project.json("knowledge", "add", "guide.adoc", "--json", **words_only)
    assert project.json("knowledge", "search", "lamp", "--json", **words_only)["results"] == []
    found = project.json("knowledge", "search", "lamp", "--json", BEDSTONE_SEARCH__INDEX="synonyms", **words_only)
    assert [hit["filename"] for hit in found["results"]] == ["guide.adoc"]


def test_a_toolset_that_fails_to_load_is_left_out(project: Project, tmp_path: Path) -> None:
    environment = create_environment(tmp_path / "environment")
    environment.install(OUTSIDE_PACKAGE)
    environment.register("broken", "1.0", {"bedstone.toolsets": {"broken": "no_such_package:SPEC"}})
    done = Project(environment, project.folder).run("tools", "call", "diary-list")
    assert done.returncode == 0
    assert "Ignoring the toolset 'broken' of another package" in done.stderr


@pytest.mark.parametrize(
    ("suite", "option", "count"),
    [
        ("tests/store/test_engines.py", "--store=audited:{folder}/store.sqlite", 1),
        ("tests/search/test_embedders.py", "--embedder=trigrams", 5),
    ],
)
def test_the_suite_of_a_kind_runs_on_an_installed_extension(
    environment: Environment, tmp_path: Path, suite: str, option: str, count: int
) -> None:
    command = [str(environment.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", suite, option]
    done = subprocess.run(
        [*command, "-k", "what_is_put_comes_back_whole or embedders", "--basetemp", str(tmp_path / "suite")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=clean_environment(),
    )
    assert f"{count} passed" in done.stdout, done.stdout + done.stderr
