"""`bedstone knowledge`: files people add."""

import glob
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bedstone.cli.options import configuration, settings_options
from bedstone.cli.tools import call_and_print
from bedstone.errors import BedstoneError, InvalidInput

if TYPE_CHECKING:
    from bedstone.library.knowledge.base import KnowledgeBase
    from bedstone.store.engine import TaskRecord

KNOWLEDGE_FLAGS = {"--data-dir": "data_dir"}
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


@click.group
def knowledge() -> None:
    """Add files and search them."""


@knowledge.command
@click.argument("paths", nargs=-1, required=True, metavar="PATH|FOLDER|GLOB...")
@click.option("--force-ocr", is_flag=True, help="Read pages as pictures, also where they have text.")
@settings_options(KNOWLEDGE_FLAGS)
def add(paths: tuple[str, ...], force_ocr: bool, **options: Any) -> None:
    """Add files, whole folders, or what a pattern matches."""
    files = list(_files(paths))
    if not files:
        raise InvalidInput("No files of a known kind were found.")
    failed = 0
    with _opened(options) as base:
        for path in files:
            try:
                task = base.add(base.admit(path, {}, force_ocr=force_ocr))
                ended = _watched(base, task, path.name)
                told = ended.details.get("message") or _added(ended)
                failed += ended.status != "completed"
            except BedstoneError as error:
                told = error.message
                failed += 1
            click.echo(f"{path.name}: {told}")
    sys.exit(1 if failed else 0)


@knowledge.command
@click.argument("query")
@click.option("--top-k", type=click.IntRange(1, 50), default=5, show_default=True, help="Results.")
@click.option("--format", "formats", multiple=True, help="Only files of this format.")
@AS_JSON
@settings_options(KNOWLEDGE_FLAGS)
def search(query: str, top_k: int, formats: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Search what was added."""
    if as_json:
        filters = {"filters": {"format": list(formats)}} if formats else {}
        call_and_print("knowledge-search", {"query": query, "top_k": top_k, **filters}, _asked(options))
    with _opened(options) as base:
        for hit in base.search(query, top_k=top_k, filters={"format": list(formats)} if formats else None):
            page = f", page {hit.stored.chunk.page}" if hit.stored.chunk.page else ""
            click.secho(f"{hit.score:.2f}  {hit.document.metadata['filename']}{page}", bold=True)
            click.echo(f"{hit.stored.chunk.text}\n")


@knowledge.command("list")
@settings_options(KNOWLEDGE_FLAGS)
def list_documents(**options: Any) -> None:
    """List what was added, as JSON."""
    call_and_print("knowledge-show", {"limit": 1000}, _asked(options))


@knowledge.command
@click.argument("document_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@settings_options(KNOWLEDGE_FLAGS)
def remove(document_id: str, yes: bool, **options: Any) -> None:
    """Remove a document."""
    confirmed = yes or click.confirm(f"Remove {document_id}?")
    call_and_print("knowledge-remove", {"document_id": document_id, "confirm": confirmed}, _asked(options))


@knowledge.command
@click.option("--yes", is_flag=True, help="Do not ask.")
@settings_options(KNOWLEDGE_FLAGS)
def clear(yes: bool, **options: Any) -> None:
    """Remove everything."""
    phrase = "DELETE ALL" if yes else click.prompt("This removes ALL documents. Type DELETE ALL to go on")
    call_and_print("knowledge-clear", {"confirm": True, "confirmation_phrase": phrase}, _asked(options))


@knowledge.command
@settings_options(KNOWLEDGE_FLAGS)
def status(**options: Any) -> None:
    """Print figures and health, as JSON."""
    call_and_print("knowledge-status", {}, _asked(options))


@knowledge.command
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print text, pages, error and warnings as JSON.")
@click.option("--password", help="For a file that needs one.")
@click.option("--force-ocr", is_flag=True, help="Read pages as pictures, also where they have text.")
def extract(file: Path, as_json: bool, password: str | None, force_ocr: bool) -> None:
    """Print what would be read of a file, without adding it."""
    from bedstone.ingest.extraction import ReadOptions, Unreadable
    from bedstone.ingest.reader import read_whole

    options = ReadOptions(password=password, force_ocr=force_ocr)
    try:
        pages, notes = read_whole(file, options)
    except Unreadable as error:
        if not as_json:
            raise click.ClickException(error.message) from None
        click.echo(json.dumps({"markdown": "", "pages": None, "error": error.message, "warnings": []}))
        return
    text = "\n\n".join(page.markdown for page in pages)
    if not as_json:
        click.echo(text)
        for warning in notes.warnings:
            click.echo(f"Warning: {warning}", err=True)
        return
    numbered = [page.markdown for page in pages] if pages and pages[0].number is not None else None
    answer = {"markdown": text, "pages": numbered, "error": None, "warnings": notes.warnings}
    click.echo(json.dumps(answer, ensure_ascii=False))


def _asked(options: dict[str, Any]) -> dict[str, Any]:
    return options | {"toolsets": "knowledge"}


@contextmanager
def _opened(options: dict[str, Any]) -> "Iterator[KnowledgeBase]":
    from bedstone.app import open_knowledge

    base = open_knowledge(configuration(options).settings)
    try:
        yield base
    finally:
        base.close()


def _files(paths: tuple[str, ...]) -> Iterator[Path]:
    """Files as named, files of folders, and what patterns match; of the latter two only kinds we read."""
    from bedstone.ingest.detection import format_of

    for text in paths:
        path = Path(text).expanduser()
        if path.is_dir():
            yield from sorted(item for item in path.rglob("*") if item.is_file() and format_of(item.name))
        elif path.exists() or not glob.has_magic(text):
            yield path
        else:
            found = sorted(Path(item) for item in glob.glob(text, recursive=True))  # noqa: PTH207 - a user's pattern
            yield from (item for item in found if item.is_file() and format_of(item.name))


def _watched(base: "KnowledgeBase", task: "TaskRecord", name: str) -> "TaskRecord":
    """Wait for a task, with a bar on a terminal."""
    with click.progressbar(length=100, label=name[:40], file=sys.stderr) as bar:
        while (current := base.store.task(task.id)) is not None and current.finished is None:
            if (progress := base.tasks.progress(task.id)) is not None:
                bar.update(max(0, int(progress.share * 100) - bar.pos))
            time.sleep(0.05)
        bar.update(100 - bar.pos)
    assert current is not None
    return current


def _added(task: "TaskRecord") -> str:
    result = task.details["result"]
    known = " (known already)" if result.get("duplicate") else ""
    return f"{result['chunks_created']} passages by {result['processing_method']}{known}, id {result['document_id']}"
