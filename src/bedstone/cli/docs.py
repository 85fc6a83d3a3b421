"""`bedstone docs`: make a corpus searchable."""

import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bedstone.cli.options import EMBEDDING_FLAGS, configuration, settings_options
from bedstone.errors import InvalidInput, NotFound
from bedstone.settings import layout

if TYPE_CHECKING:
    from bedstone.services.docs.builder import BuildReport

DOCS_FLAGS = {"--data-dir": "data_dir"}
QUIET_SECONDS = 10.0  # between lines where nobody sees a bar move
Command = TypeVar("Command", bound=Callable[..., Any])


@click.group
def docs() -> None:
    """Make documentation searchable."""


def _folder(command: Command) -> Command:
    """DIR, or --docs-dir DIR."""
    command = click.option("--docs-dir", type=click.Path(path_type=Path), help="The documents; the same as FOLDER.")(
        command
    )
    return click.argument("folder", required=False, type=click.Path(path_type=Path))(command)


def _build_options(command: Command) -> Command:
    for option in reversed(
        [
            click.option(
                "--out",
                type=click.Path(path_type=Path),
                help="Index folder [default: docs/<name> in the data folder].",
            ),
            click.option("--description", help="What the corpus is, for the tool's description."),
            click.option("--mcp-server-instructions", "instructions", help="Instructions for agents."),
            click.option("--tool-description-search", help="Replaces the description of search_docs."),
            click.option("--tool-description-get-doc", help="Replaces the description of get_doc."),
            click.option("--rebuild-cache", is_flag=True, help="Build everything again, also what did not change."),
        ]
    ):
        command = option(command)
    return _folder(settings_options(DOCS_FLAGS | EMBEDDING_FLAGS)(command))


@docs.command
@_build_options
def build(folder: Path | None, docs_dir: Path | None, **options: Any) -> None:
    """Index the documents in FOLDER; what did not change since the last build costs nothing.

    Words can be searched first, vectors follow; an interrupted build is picked up where it was.
    """
    source = _chosen(folder, docs_dir)
    report = _build(source, _target(source, options), options)
    if not report.files:
        found = f"none of {report.unreadable} files could be read" if report.unreadable else "no documents were found"
        click.echo(f"Nothing to search in {source}: {found} (.md, .mdx, .rst, .txt, .html).", err=True)
        sys.exit(1 if report.unreadable else 0)


@docs.command
@_build_options
def watch(folder: Path | None, docs_dir: Path | None, **options: Any) -> None:
    """Build, and build again whenever a document changes; servers of the index follow by themselves."""
    from bedstone.services.docs.watcher import CorpusWatcher

    source = _chosen(folder, docs_dir)
    target = _target(source, options)
    click.echo(f"Watching {source}; Ctrl-C ends.", err=True)
    watcher = CorpusWatcher(
        source, target, lambda: _build(source, target, options | {"rebuild_cache": False}), watch=True
    )
    with suppress(KeyboardInterrupt):
        watcher.run()


@docs.command
@_folder
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def validate(folder: Path | None, docs_dir: Path | None, as_json: bool) -> None:
    """Check manifests, files, links and prompt templates; ends with an error code if something cannot be indexed."""
    from bedstone.services.docs.validation import check_documents

    report = check_documents(_chosen(folder, docs_dir), _Bar())
    if as_json:
        click.echo(json.dumps(vars(report), ensure_ascii=False, indent=2))
    else:
        for error in report.errors:
            click.echo(f"Error: {error}", err=True)
        for warning in report.warnings:
            click.echo(f"Warning: {warning}", err=True)
        click.echo(
            f"{report.files} files validated, {report.chunks} chunks, {len(report.warnings)} warnings, "
            f"{len(report.errors)} errors."
        )
    if report.errors:
        sys.exit(1)


@docs.command
@_folder
def fix(folder: Path | None, docs_dir: Path | None) -> None:
    """Write a manifest (.docs-mcp.json) that cuts each file where its headings are; one that exists is left alone."""
    from bedstone.services.docs.source.folder import DocumentsFolder
    from bedstone.services.docs.source.manifest import NAME
    from bedstone.services.docs.source.suggestion import suggest_manifest

    source = _chosen(folder, docs_dir)
    target = source / NAME
    if target.exists():
        click.echo(f"{target} exists; nothing was changed.")
        return
    manifest = suggest_manifest(DocumentsFolder(source))
    target.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    others = len(manifest.get("overrides", []))
    click.echo(f"Wrote {target}: cut at {manifest['strategy']['chunk_by']}, {others} files otherwise.")


@docs.command
@click.argument("index", required=False, type=click.Path(path_type=Path))
@click.argument("path", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@settings_options(DOCS_FLAGS)
def inspect(index: Path | None, path: str | None, as_json: bool, **options: Any) -> None:
    """Show what an index holds; with PATH (a file or a chunk id) the chunks of that file."""
    from bedstone.services.docs.corpus import DocsCorpus
    from bedstone.services.docs.opening import default_index

    folder = index or default_index(configuration(options).settings)
    corpus = DocsCorpus(folder)
    facts = _chunk_facts(corpus, path) if path else _index_facts(corpus, folder)
    corpus.close()
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False, indent=2))
        return
    for fact in facts if isinstance(facts, list) else [facts]:
        click.echo("\n".join(f"{key:13} {_shown(value)}" for key, value in fact.items()))
        click.echo()


def _index_facts(corpus: Any, folder: Path) -> dict[str, Any]:
    metadata = corpus.metadata
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {
        "index": str(folder),
        "description": metadata["corpus_description"],
        **metadata["stats"],
        "embedding": (metadata["embedding"] or {}).get("model"),
        "megabytes": round(size / 1e6, 1),
        "facets": {key: entry["values"] for key, entry in metadata["taxonomy"].items()},
        "prompts": [prompt["name"] for prompt in metadata["prompts"]],
        "instructions": metadata["mcpServerInstructions"],
    }


def _chunk_facts(corpus: Any, path: str) -> list[dict[str, Any]]:
    chunks = corpus.chunks_of(path)
    if not chunks:
        try:
            chunks, _, _ = corpus.read(path, 0)
        except NotFound:
            near = corpus.nearest_ids(path)
            named = f" Nearest: {', '.join(near)}" if near else ""
            raise InvalidInput(f"The index has no file or chunk {path}, or it is empty.{named}") from None
    return [
        {
            "chunk_id": stored.head.id,
            "heading": stored.head.heading,
            "breadcrumb": " > ".join(stored.head.breadcrumb),
            "level": stored.head.level,
            "characters": len(stored.text),
            "metadata": dict(stored.head.facets),
            "plain": stored.plain,
        }
        for stored in chunks
    ]


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_shown(item)}" for key, item in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value).replace("\n", "\n" + " " * 14)


def _chosen(folder: Path | None, docs_dir: Path | None) -> Path:
    source = folder or docs_dir
    if source is None:
        raise InvalidInput("Say which folder: bedstone docs build DIR")
    return source


def _target(source: Path, options: dict[str, Any]) -> Path:
    from bedstone.services.docs.opening import index_folder

    return options["out"] or index_folder(layout.docs_indexes(configuration(options).settings), source)


def _build(source: Path, target: Path, options: dict[str, Any]) -> "BuildReport":
    from bedstone.app import make_services
    from bedstone.services.docs.builder import BuildOptions, DocsBuilder

    settings = configuration(options).settings
    described = {"search_docs": options["tool_description_search"], "get_doc": options["tool_description_get_doc"]}
    build_options = BuildOptions(
        description=options["description"],
        instructions=options["instructions"],
        tool_descriptions={name: text for name, text in described.items() if text},
        fresh=options["rebuild_cache"],
    )
    report = DocsBuilder(source, target, make_services(settings).context.embedders.get(), build_options, _Bar()).build()
    for warning in report.warnings:
        click.echo(f"Warning: {warning}", err=True)
    left_out = f"{report.unreadable} could not be read, " if report.unreadable else ""
    click.echo(
        f"{report.files} files, {report.chunks} chunks in {target}: {report.changed} files read anew, "
        f"{report.removed} removed, {left_out}{len(report.warnings)} warnings."
    )
    return report


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
                bar = f"{step:16} [{'#' * width:30}] {done}/{total}"
                click.echo(f"\r{bar}" + ("\n" if done >= total else ""), nl=False, err=True)
        elif step != self._step or now >= self._next:
            self._next = now + QUIET_SECONDS
            click.echo(f"{step} ..." if step != self._step else f"{step}: {done} of {total}", err=True)
        self._step = step
