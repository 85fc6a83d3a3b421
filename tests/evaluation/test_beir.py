"""Labelled sets in BEIR layout."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bedstone.cli.evaluate import beir

TEXTS = {"d1": "Tulips need sun.", "d2": "Replace worn brake pads.", "d3": "Tide tables of the harbour."}
QUERIES = {"q1": ("worn brake pads", "d2"), "q2": ("tide tables", "d3"), "q3": ("tulips", "d2")}


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    folder = tmp_path / "garden"
    (folder / "qrels").mkdir(parents=True)
    rows = {
        "corpus": [{"_id": name, "text": text} for name, text in TEXTS.items()],
        "queries": [{"_id": name, "text": text} for name, (text, _) in QUERIES.items()],
    }
    for name, items in rows.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, items)))
    grades = [f"{query}\t{document}\t1" for query, (_, document) in QUERIES.items()]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query\tdocument\tgrade", *grades]))
    return folder


@pytest.mark.parametrize("mode", ["keyword", "words"])
def test_two_of_three_queries_find_their_document(labelled: Path, tmp_path: Path, mode: str) -> None:
    done = CliRunner().invoke(beir, [str(labelled), "--mode", mode, "--data-dir", str(tmp_path / "data")])
    assert done.exit_code == 0, done.output
    figures = json.loads(done.stdout)
    assert figures == {
        "set": "garden", "mode": "keyword", "ndcg@10": 0.6667, "recall@10": 0.6667, "mrr@10": 0.6667, "queries": 3
    }  # fmt: skip


def test_an_unknown_mode_is_refused(labelled: Path) -> None:
    done = CliRunner().invoke(beir, [str(labelled), "--mode", "letters"])
    assert done.exit_code == 2
    assert "'keyword', 'semantic', 'hybrid'" in done.stderr
