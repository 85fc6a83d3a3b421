"""`bedstone eval`: how good the search is."""

import json
import sys
from pathlib import Path

import click

from bedstone.search.query import Mode


@click.group("eval")
def evaluation() -> None:
    """Measure search quality."""


@evaluation.command
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--mode", type=click.Choice(["hybrid", "words", "vectors"]), default="hybrid", show_default=True)
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures to this file.")
def beir(folder: Path, mode: Mode, json_file: Path | None) -> None:
    """Evaluate a labelled set in BEIR layout: corpus.jsonl, queries.jsonl, qrels/test.tsv."""
    from bedstone.app import build_embedder
    from bedstone.library.beir import LabelledSet, build_engine, evaluate
    from bedstone.settings import load_settings

    labelled = LabelledSet.read(folder)
    embedder = None if mode == "words" else build_embedder(load_settings().settings)
    with click.progressbar(length=len(labelled.documents), label="Embedding", file=sys.stderr) as bar:
        engine = build_engine(labelled, embedder, bar.update)
    figures = {name: round(value, 4) for name, value in evaluate(labelled, engine, mode).items()}
    text = json.dumps({"set": folder.name, "mode": mode} | figures)
    if json_file:
        json_file.write_text(text + "\n", encoding="utf-8")
    click.echo(text)
