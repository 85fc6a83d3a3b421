"""`bedstone knowledge`: add files, search them, manage documents."""

import glob
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bedstone.cli.options import UserPath, configuration, settings_options
from bedstone.cli.progress import progress_bar
from bedstone.cli.tools import call_and_print, call_tool
from bedstone.errors import BedstoneError, InvalidInput
from bedstone.user_paths import parse_path

if TYPE_CHECKING:
    from bedstone.records import Task
    from bedstone.services.knowledge.service import KnowledgeBase

KNOWLEDGE_FLAGS = {"--data-dir": "data_dir"}
MAX_LISTED = 100  # refused documents
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@click.group
def knowledge() -> None:
    """Add files and search them."""


@knowledge.command
@click.argument("paths", nargs=-1, required=True, metavar="PATH|FOLDER|GLOB...")
@click.option("--force-ocr", is_flag=True, help="Run OCR even on pages that have text.")
@click.option("--context", "contexts", multiple=True, help="Add the documents to this collection. Repeatable.")
@AS_JSON
@settings_options(KNOWLEDGE_FLAGS)
def add(paths: tuple[str, ...], force_ocr: bool, contexts: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Add files, folders, or the files that match a pattern; a changed file replaces its earlier version."""
    rows: list[dict[str, Any]] = []
    with _open_base(options) as base:
        files = list(_files(paths, base.places.own_files.contain))
        if not files:
            raise InvalidInput("No supported files found.")
        tasks: dict[Path, Task] = {}
        base.collections.check(contexts)
        for path in files:
            try:
                tasks[path] = base.add(path, force_ocr=force_ocr, collections=contexts)
            except BedstoneError as error:
                rows.append({"file": str(path), "status": "failed", "message": error.message})
        with progress_bar() as bar:
            line = bar.add_task("Reading", total=len(tasks))
            for path, task in tasks.items():
                ended = _wait(base, task, lambda text: bar.update(line, description=text))
                bar.advance(line)
                rows.append({"file": str(path), "status": ended.status, **_outcome(ended)})
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    else:
        for row in rows:
            click.echo(f"{row['file']}: {row['message'] if row['status'] != 'completed' else _describe(row)}")
    sys.exit(0 if all(row["status"] == "completed" for row in rows) else 1)


@knowledge.command
@click.argument("folder", type=UserPath(exists=True, file_okay=False, path_type=Path))
@click.option("--once", is_flag=True, help="Sync once and exit.")
@click.option("--context", "contexts", multiple=True, help="Add the documents to this collection. Repeatable.")
@settings_options(KNOWLEDGE_FLAGS)
def watch(folder: Path, once: bool, contexts: tuple[str, ...], **options: Any) -> None:
    """Keep a folder in sync: added, changed, moved and removed files.

    The setting storage.watch makes a server do the same.
    """
    from bedstone.services.knowledge.folder_sync import FolderReport

    def print_report(report: FolderReport) -> None:
        for kind, names in vars(report).items():
            for name in names:
                reason = f": {report.failed[name]}" if kind == "failed" else ""
                click.echo(f"{kind:8} {Path(name).relative_to(folder.resolve())}{reason}")

    with _open_base(options) as base:
        sync = base.folder_sync(folder, base.collections.check(contexts) if contexts else ())
        if not sync.lock.acquire():
            raise InvalidInput(f"Another process keeps {folder} in sync already.")
        if once:
            with progress_bar() as bar:
                line = bar.add_task("Reading", total=None)
                report = sync.sync(
                    lambda name, number, of: bar.update(line, description=Path(name).name, completed=number, total=of)
                )
            print_report(report)
            sys.exit(1 if report.failed else 0)
        click.echo(f"Watching {folder} (press Ctrl-C to stop)", err=True)
        stop = threading.Event()
        with suppress(KeyboardInterrupt):
            sync.run(stop, print_report)


@knowledge.command
@click.argument("query")
@click.option("--top-k", type=click.IntRange(1, 50), default=5, show_default=True, help="Maximum number of results.")
@click.option("--format", "formats", multiple=True, help="Search only files of this format. Repeatable.")
@click.option("--context", help="Search only this collection.")
@AS_JSON
@settings_options(KNOWLEDGE_FLAGS)
def search(
    query: str, top_k: int, formats: tuple[str, ...], context: str | None, as_json: bool, **options: Any
) -> None:
    """Search the documents."""
    from bedstone.services.knowledge.errors import EmptyKnowledgeBase
    from bedstone.services.knowledge.searching import KnowledgeQuery

    if as_json:
        chosen = {"filters": {"format": list(formats)} if formats else None, "context": context}
        given = {name: value for name, value in chosen.items() if value is not None}
        call_and_print("knowledge-search", {"query": query, "top_k": top_k, **given}, _with_toolset(options))
    with _open_base(options) as base:
        filters = {"format": list(formats)} if formats else {}
        try:
            hits = base.search(KnowledgeQuery(query, top_k, filters=filters, collection=context))
        except EmptyKnowledgeBase as error:
            if len(error.details) > 1:  # files are being read, or failed
                raise click.ClickException(error.message) from None
            raise click.ClickException("No documents yet. Add one with: bedstone knowledge add FILE") from None
        if notice := base.search_notice(query):
            click.echo(notice, err=True)
        for hit in hits:
            page = f", page {hit.place.page}" if hit.place.page else ""
            click.secho(f"{hit.score:.2f}  {hit.document.filename}{page}  {hit.document.id}", bold=True)
            if source := next(iter(base.places.shown_paths(hit.document)), None):
                click.secho(source, dim=True)
            click.echo(f"{hit.chunk.text}\n")
        if not hits:
            click.echo("No results.", err=True)


@knowledge.command("list")
@click.option("--context", help="List only this collection.")
@click.option("--sort-by", type=click.Choice(["date_added", "filename", "size"]), default="date_added")
@AS_JSON
@settings_options(KNOWLEDGE_FLAGS)
def list_documents(context: str | None, sort_by: str, as_json: bool, **options: Any) -> None:
    """List the documents."""
    arguments = {"limit": 1000, "sort_by": sort_by, **({"context": context} if context else {})}
    if as_json:
        call_and_print("knowledge-show", arguments, _with_toolset(options))
    answer = _call("knowledge-show", arguments, options)
    rows = answer["documents"]
    while len(rows) < answer["total_count"]:
        rows += _call("knowledge-show", arguments | {"offset": len(rows)}, options)["documents"]
    if not rows:
        click.echo(answer["message"])
        return
    from rich.table import Table

    from bedstone.cli.progress import console

    table = Table(box=None, pad_edge=False)
    for heading in ("file", "size", "chunks", "status"):
        table.add_column(heading, overflow="fold")
    table.add_column("document", no_wrap=True, min_width=36)
    table.add_column("source", overflow="fold")
    for row in rows:
        size = f"{row['size_bytes'] / 1024:,.0f} KB"
        status = f"{row['processing_status']}: {row['message']}" if "message" in row else row["processing_status"]
        table.add_row(row["filename"], size, str(row["chunk_count"]), status, row["id"], row.get("source", ""))
    console().print(table)


@knowledge.command
@click.argument("document_id")
@click.option("--pages", help="A page or a range: 3, 2-5.")
@AS_JSON
@settings_options(KNOWLEDGE_FLAGS)
def show(document_id: str, pages: str | None, as_json: bool, **options: Any) -> None:
    """Print the text of a document, or some of its pages."""
    arguments: dict[str, Any] = {"document_id": document_id, "max_characters": 200_000}
    if pages:
        first, _, last = pages.partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise InvalidInput(f"--pages takes a page or a range such as 2-5, not {pages!r}.")
        arguments |= {"start_page": int(first), "end_page": int(last or first)}
    if as_json:
        call_and_print("knowledge-get", arguments, _with_toolset(options))
    while True:
        answer = _call("knowledge-get", arguments, options)
        click.echo(answer["text"], nl=False)
        if answer["next_offset"] is None:
            click.echo()
            return
        arguments["offset"] = answer["next_offset"]


@knowledge.command
@click.argument("document_id")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@settings_options(KNOWLEDGE_FLAGS)
def remove(document_id: str, yes: bool, **options: Any) -> None:
    """Remove a document."""
    if not yes:
        click.confirm(f"Remove {document_id}?", abort=True)
    call_and_print("knowledge-remove", {"document_id": document_id, "confirm": True}, _with_toolset(options))


@knowledge.command
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@settings_options(KNOWLEDGE_FLAGS)
def clear(yes: bool, **options: Any) -> None:
    """Remove all documents."""
    phrase = "DELETE ALL" if yes else click.prompt("This removes ALL documents. Type DELETE ALL to continue")
    if phrase != "DELETE ALL":
        raise click.ClickException("Nothing removed: the phrase is DELETE ALL.")
    call_and_print("knowledge-clear", {"confirm": True, "confirmation_phrase": phrase}, _with_toolset(options))


@knowledge.command
@settings_options(KNOWLEDGE_FLAGS)
def status(**options: Any) -> None:
    """Print figures and health, as JSON."""
    call_and_print("knowledge-status", {}, _with_toolset(options))


@knowledge.command("export")
@click.argument("file", type=UserPath(dir_okay=False, path_type=Path))
@settings_options(KNOWLEDGE_FLAGS)
def export_all(file: Path, **options: Any) -> None:
    """Write all documents and collections to one file."""
    with _open_base(options) as base, progress_bar() as bar:
        line = bar.add_task("Writing", total=base.count_documents().completed_count)
        count = base.export_to(file, lambda name: bar.update(line, description=name, advance=1))
    click.echo(f"{count} documents written to {file}.")


@knowledge.command("import")
@click.argument("file", type=UserPath(exists=True, dir_okay=False, path_type=Path))
@settings_options(KNOWLEDGE_FLAGS)
def import_all(file: Path, **options: Any) -> None:
    """Add the documents of an export; skip those whose content exists already.

    The original of each document must have the digest that the export names. Its text is taken from the export, so
    import only files of people you trust.
    """
    from bedstone.services.knowledge.records import AddFile

    refused: list[str] = []
    with _open_base(options) as base, progress_bar() as bar:
        line = bar.add_task("Reading", total=None)
        tasks = list(base.import_from(file, lambda name: bar.update(line, description=name), refused.append))
        bar.update(line, total=len(tasks))
        ended = []
        for task in tasks:
            ended.append(_wait(base, task, lambda text: bar.update(line, description=text)))
            bar.advance(line)
    failed = [task for task in ended if task.status != "completed"]
    for task in failed:
        click.echo(f"{AddFile.from_payload(task.payload).filename}: {_outcome(task)['message']}", err=True)
    for reason in refused[:MAX_LISTED]:
        click.echo(f"Refused: {reason}", err=True)
    if len(refused) > MAX_LISTED:
        click.echo(f"and {len(refused) - MAX_LISTED} more", err=True)
    note = f" {len(refused)} refused." if refused else ""
    click.echo(f"{len(ended) - len(failed)} documents added from {file}.{note}")
    sys.exit(1 if failed or refused else 0)


@knowledge.command
@AS_JSON
@settings_options(KNOWLEDGE_FLAGS)
def verify(as_json: bool, **options: Any) -> None:
    """Check the store, the index and every document completely; change nothing.

    The exit code is 1 if there is a problem.
    """
    from dataclasses import asdict

    from bedstone.services.knowledge.verifying import verify as verify_base

    with progress_bar() as bar:
        line = bar.add_task("Checking", total=None)
        findings = verify_base(
            configuration(options).settings,
            lambda step, done, of: bar.update(line, description=step, completed=done, total=of),
        )
    problems = [finding for finding in findings if finding.is_problem]
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False, indent=2))
    else:
        for finding in findings:
            click.echo(f"{'problem' if finding.is_problem else 'note':8} {finding.part}: {finding.message}")
        click.echo(f"{len(problems)} problems found." if problems else "No problems found.")
    sys.exit(1 if problems else 0)


@knowledge.command
@AS_JSON
@settings_options(KNOWLEDGE_FLAGS)
def rebuild(as_json: bool, **options: Any) -> None:
    """Read documents again from their stored copies: those that the store lost, and those whose text is damaged.

    A damaged store is set aside first. What was interrupted continues when the command is repeated.
    """
    from bedstone.app import open_services
    from bedstone.services.knowledge.opening import open_for_rebuild
    from bedstone.services.knowledge.records import AddFile

    with open_services(configuration(options).settings) as services, progress_bar() as bar:
        base = open_for_rebuild(services.context)
        try:
            line = bar.add_task("Looking for documents", total=None)
            report = base.rebuild(lambda name: bar.update(line, description=name))
            tasks = {task.id: task for task in (*base.active_tasks(), *report.tasks)}
            bar.update(line, total=len(tasks))
            rows = []
            for task in tasks.values():
                ended = _wait(base, task, lambda text: bar.update(line, description=text))
                bar.advance(line)
                file = AddFile.from_payload(ended.payload)
                facts = {"document_id": file.document_id, "file": file.filename, "status": ended.status}
                rows.append(facts | _outcome(ended))
        finally:
            base.close()
    failed = [row for row in rows if row["status"] != "completed"]
    if as_json:
        answer = {"documents": rows, "left": report.left, "warnings": report.warnings}
        click.echo(json.dumps(answer, ensure_ascii=False, indent=2))
    else:
        for row in failed:
            click.echo(f"{row['file']}: {row['message']}", err=True)
        for text in (*report.warnings, *(f"Left {place}: {reason}" for place, reason in report.left.items())):
            click.echo(text, err=True)
        click.echo(f"{len(rows) - len(failed)} documents read again.")
    sys.exit(1 if failed else 0)


@knowledge.group
def context() -> None:
    """Manage collections: named sets of documents."""


@context.command
@click.argument("name")
@click.option("--description", default="", help="Purpose of the collection.")
@settings_options(KNOWLEDGE_FLAGS)
def create(name: str, description: str, **options: Any) -> None:
    """Create a collection."""
    call_and_print("knowledge-context-create", {"name": name, "description": description}, _with_toolset(options))


@context.command("list")
@settings_options(KNOWLEDGE_FLAGS)
def list_contexts(**options: Any) -> None:
    """List the collections, as JSON."""
    call_and_print("knowledge-context-list", {}, _with_toolset(options))


@context.command
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@settings_options(KNOWLEDGE_FLAGS)
def delete(name: str, yes: bool, **options: Any) -> None:
    """Delete a collection; documents that are in no other one move to `default`."""
    confirmed = yes or click.confirm(f"Delete the collection {name}?")
    call_and_print("knowledge-context-delete", {"name": name, "confirm": confirmed}, _with_toolset(options))


@knowledge.command
@click.argument("file", type=UserPath(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print text, pages, error, warnings and texts left out as JSON.")
@click.option("--password", help="Password of a protected file.")
@click.option("--force-ocr", is_flag=True, help="Run OCR even on pages that have text.")
def extract(file: Path, as_json: bool, password: str | None, force_ocr: bool) -> None:
    """Print the text of a file without adding it."""
    from bedstone.ingest.extraction import ExtractionError, ReadOptions
    from bedstone.ingest.left_out import LeftOut
    from bedstone.ingest.reader import read_whole

    options = ReadOptions(password=password, force_ocr=force_ocr)
    try:
        pages, notes = read_whole(file, options)
    except ExtractionError as error:
        if not as_json:
            raise click.ClickException(error.message) from None
        nothing = {"markdown": "", "pages": None, "error": error.message}
        click.echo(json.dumps({**nothing, "warnings": [], "left_out": LeftOut().to_dict()}))
        return
    text = "\n\n".join(page.markdown for page in pages)
    if not as_json:
        click.echo(text)
        for warning in notes.warnings:
            click.echo(f"Warning: {warning}", err=True)
        if notes.left_out.total:
            click.echo(f"Left out: {notes.left_out.summary()}. --json lists the texts.", err=True)
        return
    numbered = [page.markdown for page in pages] if pages and pages[0].number is not None else None
    answer = {"markdown": text, "pages": numbered, "error": None, "warnings": notes.warnings}
    click.echo(json.dumps({**answer, "left_out": notes.left_out.to_dict()}, ensure_ascii=False))


def _call(tool: str, arguments: dict[str, Any], options: dict[str, Any]) -> Any:
    """Return the result of a tool; raise its errors."""
    reply = call_tool(tool, arguments, _with_toolset(options))
    answer = json.loads(reply.text)
    if reply.is_error:
        raise click.ClickException(answer["message"])
    return answer


def _with_toolset(options: dict[str, Any]) -> dict[str, Any]:
    return options | {"toolsets": "knowledge"}


@contextmanager
def _open_base(options: dict[str, Any]) -> "Iterator[KnowledgeBase]":
    from bedstone.app import open_services

    with open_services(configuration(options).settings) as services:
        yield services["knowledge"].get()


def _files(paths: tuple[str, ...], is_own: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield named files, and supported files in folders or matching a pattern, except those of the server itself."""
    from bedstone.ingest.detection import format_of

    for text in paths:
        path = parse_path(text)
        if path.is_dir():
            found = sorted(path.rglob("*"))
        elif path.exists() or not glob.has_magic(str(path)):
            yield path
            continue
        else:
            matching = glob.glob(str(path), recursive=True)  # noqa: PTH207 - a user's pattern
            found = sorted(Path(item) for item in matching)
        yield from (item for item in found if item.is_file() and format_of(item.name) and not is_own(item))


def _wait(base: "KnowledgeBase", task: "Task", on_progress: Callable[[str], object]) -> "Task":
    """Wait for a task, and report its progress."""
    from bedstone.services.knowledge.records import AddFile

    name = AddFile.from_payload(task.payload).filename
    for current in base.watch(task.id):
        if current.progress is not None:
            on_progress(f"{name}: {current.progress.step}")
    return current


def _outcome(task: "Task") -> dict[str, Any]:
    if task.status == "completed":
        return dict(task.result or {})
    return {"message": task.error.message if task.error else "The task was cancelled."}


def _describe(row: dict[str, Any]) -> str:
    count = row["chunks_created"]
    chunks = f"{count} chunk{'' if count == 1 else 's'}"
    notes = [
        *(["already added"] if row.get("duplicate") else []),
        *([f"updated {' and '.join(row['updated'])}"] if row.get("updated") else []),
        *(["replaces the earlier version"] if row.get("replaced") else []),
        *(["a later version was added meanwhile"] if row.get("superseded") else []),
    ]
    known = f" ({', '.join(notes)})" if notes else ""
    return f"{chunks} by {row['processing_method']}{known}, id {row['document_id']}"
