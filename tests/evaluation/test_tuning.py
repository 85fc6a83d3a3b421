"""`bedstone tune`: measures settings on held-out halves, and writes only what is better beyond chance."""

import json
import shutil
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bedstone.evaluation.questions import make_questions
from bedstone.evaluation.tuning import judge
from bedstone.records import Chunk, Document
from bedstone.settings import CorpusTuning, Settings
from bedstone.settings.writing import write_tuning
from bedstone.store.engines.memory import MemoryStore
from support.processes import bedstone

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "demo"
PARTS = [
    "valve", "pump", "gasket", "bearing", "piston", "clutch", "gearbox", "sprocket", "flywheel",
    "camshaft", "radiator", "thermostat", "alternator", "starter", "carburettor", "muffler", "axle", "hub",
    "rotor", "caliper", "bellows", "spindle", "lathe", "chuck", "chisel", "reamer", "mandrel",
    "anvil", "crucible", "ladle", "flange", "nozzle", "turbine", "impeller", "manifold", "solenoid",
]  # fmt: skip


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus in which promoting documents is wrong: each answer is one section, beside a page full of mentions."""
    folder = tmp_path_factory.mktemp("workshop")
    (folder / "docs").mkdir()
    cases = []
    for part in PARTS:
        mentions = "\n\n".join(
            f"## Room {number}\n\nThe {part} lies in oil on shelf {number} of the store with other things."
            for number in range(1, 6)
        )
        (folder / "docs" / f"store-{part}.md").write_text(f"# Rooms\n\n{mentions}\n")
        answer = f"# Care\n\n## Upkeep\n\nOil for the {part} stands on the shelf: oil the {part} in the store room.\n"
        (folder / "docs" / f"care-{part}.md").write_text(answer)
        cases.append({"query": f"shelf oil {part} room", "expectedFiles": [f"care-{part}.md"]})
    (folder / "cases.json").write_text(json.dumps(cases))
    done = bedstone("docs", "build", folder / "docs", "--out", folder / "workshop", "--embedding-provider", "none")
    assert done.returncode == 0, done.stderr
    return folder


def tune(*arguments: str | Path, folder: Path) -> tuple[dict[str, Any], str]:
    done = bedstone("tune", *arguments, "--data-dir", folder / "data", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report, done.stderr


def first_files(folder: Path, config: Path) -> list[str]:
    """What agents find first, served with a configuration."""
    found = []
    for part in PARTS[:3]:
        arguments = json.dumps({"query": f"shelf oil {part} room", "limit": 1})
        done = bedstone(
            "tools", "call", "search_docs", "--json", arguments, "--docs-index", folder / "workshop", "--config", config
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout)["hits"][0]["filepath"])
    return found


def test_a_better_setting_is_written_only_on_request_and_then_used(workshop: Path, tmp_path: Path) -> None:
    config = tmp_path / "bedstone.toml"
    config.write_text("# Ours.\nread_only = true  # kept\n\n[docs]\nphrase_slop = 1\n")
    before = config.read_text()
    arguments = (workshop / "workshop", "--questions", workshop / "cases.json", "--config", config)
    report, progress = tune(*arguments, folder=tmp_path)
    trials = {trial["setting"]: trial for trial in report["trials"]}
    assert trials["promote_documents"]["verdict"] == "better", report
    assert trials["promote_documents"]["gain"] > 0.1
    assert trials["proximity"]["verdict"] == "within noise" or trials["proximity"]["gain"] > 0
    assert report["better"]["corpus"] == "docs/workshop"
    assert report["better"]["promote_documents"] is False
    assert (report["written_to"], config.read_text()) == (None, before)
    assert "Searching" in progress
    assert any(name.startswith("store-") for name in first_files(workshop, config))
    written, _ = tune(*arguments, "--write", folder=tmp_path)
    assert written["written_to"] == str(config.resolve())
    assert config.read_text().startswith(before)
    assert all(name.startswith("care-") for name in first_files(workshop, config))
    again, _ = tune(*arguments, "--write", folder=tmp_path)  # the setting is the current one now
    assert {trial["setting"]: trial["now"] for trial in again["trials"]}["promote_documents"] is False
    assert "promote_documents" not in (again["better"] or {})


def test_few_questions_about_the_demo_content_decide_nothing(tmp_path: Path) -> None:
    shutil.copytree(DEMO / "docs", tmp_path / "docs")
    bedstone("docs", "build", tmp_path / "docs", "--out", tmp_path / "guides", "--embedding-provider", "minilm")
    config = tmp_path / "own.toml"
    config.write_text("")
    report, _ = tune(
        tmp_path / "guides", "--questions", DEMO / "questions.json", "--write", "--config", config, folder=tmp_path
    )
    assert (report["questions"], sum(report["answers"].values())) == (10, 10)
    assert set(report["figures"]) == {"keyword", "semantic", "hybrid"}
    assert {trial["verdict"] for trial in report["trials"]} == {"too few questions"}
    assert (report["better"], report["written_to"], config.read_text()) == (None, None, "")
    made = bedstone("tune", tmp_path / "guides", "--data-dir", tmp_path / "data")
    assert "Made 12 questions" in made.stdout
    assert "No setting is better beyond chance. Nothing is written." in made.stdout


def test_documents_of_a_data_folder_are_tuned_by_file_name(tmp_path: Path) -> None:
    for path in (DEMO / "files").iterdir():
        if path.suffix in (".md", ".csv"):
            shutil.copy(path, tmp_path)
    data = tmp_path / "data"
    names = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert bedstone("knowledge", "add", *(tmp_path / name for name in names), "--data-dir", data).returncode == 0
    cases = tmp_path / "cases.json"
    cases.write_text(
        json.dumps(
            [
                {"query": "which bikes are recalled", "expectedFiles": [names[1]]},
                {"query": "bike shops", "expectedFiles": [names[0]]},
                {"query": "lost page", "expectedFiles": ["nowhere.md"]},
            ]
        )
    )
    done = bedstone("tune", data, "--questions", cases, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 questions about 2 answers" in done.stdout
    assert "The corpus does not have 1 of the expected answers: nowhere.md." in done.stdout
    config = tmp_path / "own.toml"
    write_tuning(config, CorpusTuning(corpus="documents", semantic_share=0.3))
    report, _ = tune(data, "--questions", cases, "--config", config, folder=tmp_path)
    assert {trial["setting"]: trial["now"] for trial in report["trials"]} == {"semantic_share": 0.3, "proximity": 1.0}
    refused = bedstone("tune", tmp_path, cwd=tmp_path)
    assert refused.returncode == 1
    assert "neither a docs index nor a data folder" in refused.stderr


def test_the_share_of_a_corpus_decides_which_side_wins(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "hens.md").write_text("# Poultry\n\nHens lay an egg a day. The price of a vehicle is fixed.\n")
    (tmp_path / "docs" / "cars.md").write_text("# Garage\n\nRepair of automobiles and lorries.\n")
    (tmp_path / "docs" / "tide.md").write_text("# Harbour\n\nTide tables for the north pier.\n")
    index, config = tmp_path / "farm", tmp_path / "own.toml"
    bedstone("docs", "build", tmp_path / "docs", "--out", index, "--embedding-provider", "minilm")

    def first() -> str:
        arguments = json.dumps({"query": "where is my vehicle fixed"})
        options = ("--docs-index", index, "--config", config)
        done = bedstone("tools", "call", "search_docs", "--json", arguments, *options)
        return str(json.loads(done.stdout)["hits"][0]["filepath"])

    write_tuning(config, CorpusTuning(corpus="docs/farm", semantic_share=0.9))
    assert first() == "cars.md"
    write_tuning(config, CorpusTuning(corpus="docs/farm", semantic_share=0.02))
    write_tuning(config, CorpusTuning(corpus="docs/other", semantic_share=0.9))
    assert first() == "hens.md"


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_hardly_ever_taken_for_a_gain(seed: int) -> None:
    chance = np.random.default_rng(seed)
    groups = np.arange(60)
    verdicts = [judge("semantic_share", list(range(10)), chance.random((10, 60)), groups).verdict for _ in range(60)]
    assert verdicts.count("better") <= 3


def test_a_real_gain_is_found_and_few_groups_never_suffice() -> None:
    chance = np.random.default_rng(1)
    table = np.clip(chance.normal(0.5, 0.2, (4, 80)), 0, 1)
    table[2] = np.clip(table[0] + chance.normal(0.08, 0.1, 80), 0, 1)
    found = judge("semantic_share", [0.5, 0.4, 0.6, 0.7], table, np.arange(80))
    assert (found.verdict, found.best) == ("better", 0.6)
    assert 0 < found.low < found.gain < found.high
    assert judge("semantic_share", [0.5, 0.4, 0.6, 0.7], table, np.arange(80) % 10).verdict == "too few questions"


def test_questions_come_from_headings_and_links_and_name_one_document() -> None:
    store = MemoryStore()

    def page(name: str, text: str, trail: tuple[str, ...]) -> None:
        store.put([(Document(name, trail[0], ""), [Chunk(name, text, text, trail[-1], len(trail), trail)])])

    page("guide/start.md", "Read [how to tune the engine](../engine.md#idle) or [here](../engine.md).", ("Start",))
    page(
        "engine.md",
        "Turn the screw. See [first steps](guide/start.md) and [a site](https://example.com/a).",
        ("Engine",),
    )
    page("a.md", "Text.", ("Boats", "Sail repair"))
    page("b.md", "Text.", ("Boats", "Paint the hull"))
    page("c.md", "Text.", ("Boats", "Paint the hull"))
    made = make_questions(store, 10, lambda text: text == "Sail repair Boats")
    assert {(item.query, item.document, item.origin) for item in made} == {
        ("how to tune the engine", "engine.md", "link"),
        ("first steps", "guide/start.md", "link"),
    }
    assert next(item for item in made if "tune" in item.query).repeated_in == {"guide/start.md"}
    assert not [item for item in made if "hull" in item.query]  # two documents have it
    everything = make_questions(store, 10, lambda _: False)
    assert ("Sail repair Boats", "a.md") in {(item.query, item.document) for item in everything}


def test_settings_of_other_corpora_and_everything_else_in_the_file_stay(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    write_tuning(file, CorpusTuning(corpus="docs/v1.2 beta", semantic_share=0.4))
    file.write_text(file.read_text() + "\n# About the log.\n[log]\nlevel = 'debug' # why\n")
    write_tuning(file, CorpusTuning(corpus="documents", semantic_share=0.7, proximity=2.0))
    write_tuning(file, CorpusTuning(corpus="docs/v1.2 beta", promote_documents=False))
    tree = tomllib.loads(file.read_text())
    assert tree["search"]["tuning"] == [
        {"corpus": "documents", "semantic_share": 0.7, "proximity": 2.0},
        {"corpus": "docs/v1.2 beta", "promote_documents": False},
    ]
    assert "# About the log.\n[log]\nlevel = 'debug' # why" in file.read_text()
    settings = Settings.model_validate(tree)
    assert settings.search.tuning_of("docs/v1.2 beta") == CorpusTuning(corpus="docs/v1.2 beta", promote_documents=False)
    assert settings.search.tuning_of("docs/other") is None


def test_a_file_in_another_form_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    text = 'search = { tuning = [{ corpus = "documents", semantic_share = 0.4 }] }\n'
    file.write_text(text)
    with pytest.raises(Exception, match="Add these lines yourself"):
        write_tuning(file, CorpusTuning(corpus="documents", semantic_share=0.6))
    assert file.read_text() == text
