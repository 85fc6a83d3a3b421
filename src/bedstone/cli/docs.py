"""`bedstone docs`: make a corpus searchable."""

import sys
import time
from pathlib import Path
from typing import Any

import click

from bedstone.cli.options import configuration, settings_options
from bedstone.errors import InvalidInput

DOCS_FLAGS = {"--data-dir": "data_dir"}


@click.group
def docs() -> None:
    """Make documentation searchable."""


@docs.command
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--docs-dir", type=click.Path(path_type=Path), help="The documents; the same as DIR.")
@click.option("--out", type=click.Path(path_type=Path), help="Index folder [default: docs/<name> in the data folder].")
@click.option(
    "--embedding-provider", type=click.Choice(["minilm", "none"]), default="minilm", show_default=True, help="Vectors."
)
@click.option("--description", help="What the corpus is, for the tool's description.")
@click.option("--mcp-server-instructions", "instructions", help="Instructions for agents.")
@click.option("--tool-description-search", help="Replaces the description of search_docs.")
@click.option("--tool-description-get-doc", help="Replaces the description of get_doc.")
@click.option("--rebuild-cache", is_flag=True, help="Build everything again, also what did not change.")
@settings_options(DOCS_FLAGS)
def build(folder: Path | None, docs_dir: Path | None, out: Path | None, **options: Any) -> None:
    """Index the Markdown files in DIR; what did not change since the last build costs nothing."""
    from bedstone.app import build_embedder
    from bedstone.library.docs_builder import DEFAULT_DESCRIPTION, BuildOptions, DocsBuilder

    source = folder or docs_dir
    if source is None:
        raise InvalidInput("Say which folder: bedstone docs build DIR")
    settings = configuration(options).settings
    target = out or settings.data_folder / "docs" / source.resolve().name
    described = {"search_docs": options["tool_description_search"], "get_doc": options["tool_description_get_doc"]}
    build_options = BuildOptions(
        description=options["description"] or DEFAULT_DESCRIPTION,
        instructions=options["instructions"],
        tool_descriptions={name: text for name, text in described.items() if text},
        fresh=options["rebuild_cache"],
    )
    embedder = build_embedder(options["embedding_provider"])
    report = DocsBuilder(source, target, embedder, build_options, _Bar()).build()
    for warning in report.warnings:
        click.echo(f"Warning: {warning}", err=True)
    click.echo(
        f"{report.files} files, {report.chunks} chunks in {target}: {report.changed} files read anew, "
        f"{report.removed} removed, {len(report.warnings)} warnings."
    )


class _Bar:
    """A line that moves on a terminal, and one line a step elsewhere."""

    def __init__(self) -> None:
        self._step = ""
        self._next = 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        now = time.monotonic()
        if sys.stderr.isatty():
            if now >= self._next or done >= total:
                self._next = now + 0.1
                width = 30 * done // max(total, 1)
                bar = f"{step:15} [{'#' * width:30}] {done}/{total}"
                click.echo(f"\r{bar}" + ("\n" if done >= total else ""), nl=False, err=True)
        elif step != self._step:
            click.echo(f"{step} ...", err=True)
        self._step = step
