"""`bedstone knowledge`: files people add."""

import glob
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bedstone.cli.options import configuration, settings_options
from bedstone.cli.progress import progress_bar
from bedstone.cli.tools import answer_of, call_and_print
from bedstone.errors import BedstoneError, InvalidInput

if TYPE_CHECKING:
    from bedstone.services.knowledge.service import KnowledgeBase
    from bedstone.store.engine import TaskRecord

KNOWLEDGE_FLAGS = {"--data-dir": "data_dir"}
POLL_SECONDS = 0.05
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")


@click.group
def knowledge() -> None:
    """Add files and search them."""


@knowledge.command
@click.argument("paths", nargs=-1, required=True, metavar="PATH|FOLDER|GLOB...")
@click.option("--force-ocr", is_flag=True, help="Read pages as pictures, also where they have text.")
@click.option("--context", "contexts", multiple=True, help="Context the documents go into; may be given again.")
@AS_JSON
@settings_options(KNOWLEDGE_FLAGS)
def add(paths: tuple[str, ...], force_ocr: bool, contexts: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Add files, whole folders, or what a pattern matches."""
    files = list(_files(paths))
    if not files:
        raise InvalidInput("No files of a known kind were found.")
    rows: list[dict[str, Any]] = []
    with _opened(options) as base:
        tasks: dict[Path, TaskRecord] = {}
        base.contexts.check(contexts)
        for path in files:
            try:
                tasks[path] = base.add(path, {}, force_ocr=force_ocr, contexts=contexts)
            except BedstoneError as error:
                rows.append({"file": str(path), "status": "failed", "message": error.message})
        with progress_bar() as bar:
            line = bar.add_task("Reading", total=len(tasks))
            for path, task in tasks.items():
                ended = _watched(base, task, lambda said: bar.update(line, description=said))
                bar.advance(line)
                rows.append({"file": str(path), "status": ended.status, **_told(ended)})
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for row in rows:
            click.echo(f"{row['file']}: {row['message'] if row['status'] != 'completed' else _added(row)}")
    sys.exit(0 if all(row["status"] == "completed" for row in rows) else 1)


@knowledge.command
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--once", is_flag=True, help="Look once, and end.")
@click.option("--context", "contexts", multiple=True, help="Context the documents go into; may be given again.")
@settings_options(KNOWLEDGE_FLAGS)
def watch(folder: Path, once: bool, contexts: tuple[str, ...], **options: Any) -> None:
    """Keep a folder in step: added, changed, moved and removed files.

    A server does the same with the setting storage.watch.
    """
    from bedstone.services.knowledge.folder_sync import FolderKeeper, FolderReport

    def tell(report: FolderReport) -> None:
        for what, names in vars(report).items():
            for name in names:
                why = f": {report.failed[name]}" if what == "failed" else ""
                click.echo(f"{what:8} {Path(name).relative_to(folder.resolve())}{why}")

    with _opened(options) as base:
        keeper = FolderKeeper(base, folder, base.contexts.check(contexts) if contexts else ())
        if not keeper.ownership.acquire():
            raise InvalidInput(f"Another process keeps {folder} in step already.")
        if once:
            with progress_bar() as bar:
                line = bar.add_task("Reading", total=None)
                report = keeper.update(
                    lambda name, number, of: bar.update(line, description=Path(name).name, completed=number, total=of)
                )
            tell(report)
            sys.exit(1 if report.failed else 0)
        click.echo(f"Watching {folder}; Ctrl-C ends.", err=True)
        stop = threading.Event()
        with suppress(KeyboardInterrupt):
            keeper.run(stop, tell)


@knowledge.command
@click.argument("query")
@click.option("--top-k", type=click.IntRange(1, 50), default=5, show_default=True, help="Results.")
@click.option("--format", "formats", multiple=True, help="Only files of this format.")
@click.option("--context", help="Only documents of this context.")
@AS_JSON
@settings_options(KNOWLEDGE_FLAGS)
def search(
    query: str, top_k: int, formats: tuple[str, ...], context: str | None, as_json: bool, **options: Any
) -> None:
    """Search what was added."""
    from bedstone.services.knowledge.errors import EmptyKnowledgeBase

    if as_json:
        chosen = {"filters": {"format": list(formats)} if formats else None, "context": context}
        given = {name: value for name, value in chosen.items() if value is not None}
        call_and_print("knowledge-search", {"query": query, "top_k": top_k, **given}, _asked(options))
    with _opened(options) as base:
        filters = {"format": list(formats)} if formats else None
        try:
            hits = base.search(query, top_k=top_k, filters=filters, context=context)
        except EmptyKnowledgeBase:
            raise click.ClickException("Nothing was added yet: bedstone knowledge add FILE") from None
        for hit in hits:
            page = f", page {hit.stored.chunk.page}" if hit.stored.chunk.page else ""
            click.secho(f"{hit.score:.2f}  {hit.document.metadata['filename']}{page}  {hit.document.id}", bold=True)
            click.echo(f"{hit.stored.chunk.text}\n")
        if not hits:
            click.echo("Nothing was found.", err=True)


@knowledge.command("list")
@click.option("--context", help="Only documents of this context.")
@click.option("--sort-by", type=click.Choice(["date_added", "filename", "size"]), default="date_added")
@AS_JSON
@settings_options(KNOWLEDGE_FLAGS)
def list_documents(context: str | None, sort_by: str, as_json: bool, **options: Any) -> None:
    """List what was added."""
    arguments = {"limit": 1000, "sort_by": sort_by, **({"context": context} if context else {})}
    if as_json:
        call_and_print("knowledge-show", arguments, _asked(options))
    answer = _answered("knowledge-show", arguments, options)
    rows = answer["documents"]
    while len(rows) < answer["total_count"]:
        rows += _answered("knowledge-show", arguments | {"offset": len(rows)}, options)["documents"]
    if not rows:
        click.echo(answer["message"])
        return
    from rich.markup import escape
    from rich.table import Table

    from bedstone.cli.progress import console

    table = Table(box=None, pad_edge=False)
    for heading in ("file", "size", "chunks", "status"):
        table.add_column(heading, overflow="fold")
    table.add_column("document", no_wrap=True, min_width=36)
    for row in rows:
        size = f"{row['size_bytes'] / 1024:,.0f} KB"
        table.add_row(escape(row["filename"]), size, str(row["chunk_count"]), row["processing_status"], row["id"])
    console().print(table)


@knowledge.command
@click.argument("document_id")
@click.option("--pages", help="A page or a range: 3, 2-5.")
@AS_JSON
@settings_options(KNOWLEDGE_FLAGS)
def show(document_id: str, pages: str | None, as_json: bool, **options: Any) -> None:
    """Print a document's text as it was read, or some pages of it."""
    arguments: dict[str, Any] = {"document_id": document_id, "max_characters": 200_000}
    if pages:
        first, _, last = pages.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise InvalidInput(f"--pages takes a page or a range such as 2-5, not {pages!r}.")
        arguments |= {"start_page": int(first), "end_page": int(last or first)}
    if as_json:
        call_and_print("knowledge-get", arguments, _asked(options))
    while True:
        answer = _answered("knowledge-get", arguments, options)
        click.echo(answer["text"], nl=False)
        if answer["next_offset"] is None:
            click.echo()
            return
        arguments["offset"] = answer["next_offset"]


@knowledge.command
@click.argument("document_id")
@click.option("--yes", is_flag=True, help="Do not ask.")
@settings_options(KNOWLEDGE_FLAGS)
def remove(document_id: str, yes: bool, **options: Any) -> None:
    """Remove a document."""
    if not yes:
        click.confirm(f"Remove {document_id}?", abort=True)
    call_and_print("knowledge-remove", {"document_id": document_id, "confirm": True}, _asked(options))


@knowledge.command
@click.option("--yes", is_flag=True, help="Do not ask.")
@settings_options(KNOWLEDGE_FLAGS)
def clear(yes: bool, **options: Any) -> None:
    """Remove everything."""
    phrase = "DELETE ALL" if yes else click.prompt("This removes ALL documents. Type DELETE ALL to go on")
    if phrase != "DELETE ALL":
        raise click.ClickException("Nothing was removed: the phrase is DELETE ALL.")
    call_and_print("knowledge-clear", {"confirm": True, "confirmation_phrase": phrase}, _asked(options))


@knowledge.command
@settings_options(KNOWLEDGE_FLAGS)
def status(**options: Any) -> None:
    """Print figures and health, as JSON."""
    call_and_print("knowledge-status", {}, _asked(options))


@knowledge.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@settings_options(KNOWLEDGE_FLAGS)
def export_all(file: Path, **options: Any) -> None:
    """Write the whole base, files and contexts, to one file."""
    from bedstone.services.knowledge.archive import export_base

    with _opened(options) as base, progress_bar() as bar:
        line = bar.add_task("Writing", total=len(base.documents()))
        count = export_base(base, file, lambda name: bar.update(line, description=name, advance=1))
    click.echo(f"{count} documents written to {file}.")


@knowledge.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@settings_options(KNOWLEDGE_FLAGS)
def import_all(file: Path, **options: Any) -> None:
    """Add what an export holds; documents with the same content are left alone."""
    from bedstone.services.knowledge.archive import import_base

    with _opened(options) as base, progress_bar() as bar:
        line = bar.add_task("Reading", total=None)
        tasks = list(import_base(base, file, lambda name: bar.update(line, description=name)))
        bar.update(line, total=len(tasks))
        ended = []
        for task in tasks:
            ended.append(_watched(base, task, lambda said: bar.update(line, description=said)))
            bar.advance(line)
    failed = [task for task in ended if task.status != "completed"]
    for task in failed:
        click.echo(f"{task.details['filename']}: {_told(task)['message']}", err=True)
    click.echo(f"{len(ended) - len(failed)} documents added from {file}.")
    sys.exit(1 if failed else 0)


@knowledge.group
def context() -> None:
    """Named collections of documents."""


@context.command
@click.argument("name")
@click.option("--description", default="", help="What it is for.")
@settings_options(KNOWLEDGE_FLAGS)
def create(name: str, description: str, **options: Any) -> None:
    """Add a context."""
    call_and_print("knowledge-context-create", {"name": name, "description": description}, _asked(options))


@context.command("list")
@settings_options(KNOWLEDGE_FLAGS)
def list_contexts(**options: Any) -> None:
    """List the contexts, as JSON."""
    call_and_print("knowledge-context-list", {}, _asked(options))


@context.command
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@settings_options(KNOWLEDGE_FLAGS)
def delete(name: str, yes: bool, **options: Any) -> None:
    """Remove a context; documents that are in no other one move to `default`."""
    confirmed = yes or click.confirm(f"Delete the context {name}?")
    call_and_print("knowledge-context-delete", {"name": name, "confirm": confirmed}, _asked(options))


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


def _answered(tool: str, arguments: dict[str, Any], options: dict[str, Any]) -> Any:
    """What a tool answers; its errors are told as sentences."""
    reply = answer_of(tool, arguments, _asked(options))
    answer = json.loads(reply.text)
    if reply.is_error:
        raise click.ClickException(answer["message"])
    return answer


def _asked(options: dict[str, Any]) -> dict[str, Any]:
    return options | {"toolsets": "knowledge"}


@contextmanager
def _opened(options: dict[str, Any]) -> "Iterator[KnowledgeBase]":
    from bedstone.app import open_services

    with open_services(configuration(options).settings) as services:
        yield services["knowledge"].get()


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


def _watched(base: "KnowledgeBase", task: "TaskRecord", tell: Callable[[str], object]) -> "TaskRecord":
    """Wait for a task, telling how far it is."""
    name = str(task.details["filename"])
    while (current := base.store.task(task.id)) is not None and current.finished is None:
        if (progress := base.tasks.progress(task.id)) is not None:
            tell(f"{name}: {progress.step}")
        time.sleep(POLL_SECONDS)
    assert current is not None
    return current


def _told(task: "TaskRecord") -> dict[str, Any]:
    if task.status == "completed":
        return dict(task.details["result"])
    return {"message": task.details.get("message") or "Reading was cancelled."}


def _added(row: dict[str, Any]) -> str:
    known = " (known already)" if row.get("duplicate") else ""
    return f"{row['chunks_created']} passages by {row['processing_method']}{known}, id {row['document_id']}"
