"""`bedstone docs`: build and inspect docs indexes."""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bedstone.cli.options import EMBEDDING_FLAGS, UserPath, configuration, settings_options
from bedstone.errors import InvalidInput, NotFound
from bedstone.permissions import user_permissions
from bedstone.settings import layout
from bedstone.settings.own_files import OwnFiles

if TYPE_CHECKING:
    from bedstone.services.docs.builder import BuildReport
    from bedstone.services.docs.corpus import DocsCorpus

DOCS_FLAGS = {"--data-dir": "data_dir"}
MAX_QUOTED = 500  # characters of a text for agents
MAX_REASONS = 5  # for skipped files
MAX_EXAMPLES = 3  # of skipped files
QUIET_SECONDS = 10.0  # between lines of progress without a terminal
PATH = UserPath(path_type=Path)
BUILD_OPTIONS = (
    click.option("--out", type=PATH, help="Index folder.  [default: docs/<name> in the data folder]"),
    click.option(
        "--description",
        help="Description of the corpus, for the description of search_docs.  [default: from its README and titles]",
    ),
    click.option("--mcp-server-instructions", "instructions", help="Instructions for agents."),
    click.option("--tool-description-search", help="Replaces the description of search_docs."),
    click.option("--tool-description-get-doc", help="Replaces the description of get_doc."),
    click.option("--rebuild-cache", is_flag=True, help="Rebuild the index from scratch."),
    click.option(
        "--publish",
        metavar="ADDRESS",
        help="Publish the index as well, such as to s3://BUCKET/docs/NAME?region=REGION.",
    ),
)
Command = TypeVar("Command", bound=Callable[..., Any])


@click.group
def docs() -> None:
    """Make documentation searchable."""


def _folder_argument(command: Command) -> Command:
    """Add FOLDER and its alias --docs-dir."""
    command = click.option("--docs-dir", type=PATH, help="Documents folder; same as FOLDER.")(command)
    return click.argument("folder", required=False, type=PATH)(command)


def _build_options(command: Command) -> Command:
    for option in reversed(BUILD_OPTIONS):
        command = option(command)
    return _folder_argument(settings_options(DOCS_FLAGS | EMBEDDING_FLAGS)(command))


@docs.command
@_build_options
@click.option("--strict", is_flag=True, help="Exit with code 1 if a page has problems.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def build(folder: Path | None, docs_dir: Path | None, strict: bool, as_json: bool, **options: Any) -> None:
    """Index the documents in FOLDER; files that did not change since the last build are skipped.

    Keyword search is available first, vectors follow. The next build resumes an interrupted one. Pages that are not
    indexed, or only in part, are named; files that .gitignore or .bedstoneignore exclude are counted.
    """
    source = _require_folder(folder, docs_dir)
    target = _index_folder(source, options)
    report = _build(source, target, options, as_json=as_json)
    if as_json:
        click.echo(json.dumps({"index": str(target), **_report_facts(report)}, ensure_ascii=False, indent=2))
    if options["publish"] and report.files:
        _publish(target, options["publish"], options)
    if not report.files:
        reason = f"{_count(report.unreadable, 'file')} unreadable" if report.unreadable else "no documents found"
        click.echo(f"Nothing indexed in {source}: {reason} (.md, .mdx, .rst, .txt, .html).", err=True)
    if report.problems and (strict or not report.files):
        sys.exit(1)


@docs.command
@_build_options
def watch(folder: Path | None, docs_dir: Path | None, **options: Any) -> None:
    """Build an index, and rebuild it when documents change; running servers reload it."""
    from bedstone.services.docs.watcher import CorpusWatcher

    source = _require_folder(folder, docs_dir)
    target = _index_folder(source, options)
    click.echo(f"Watching {source} (press Ctrl-C to stop)", err=True)
    options["rebuild_cache"] = False
    with suppress(KeyboardInterrupt):
        CorpusWatcher(source, target, lambda: _build_and_publish(source, target, options), watch=True).run()


@docs.command
@click.argument("index", required=False, type=PATH)
@click.option("--to", "address", required=True, help="Where to: s3://BUCKET/docs/NAME, or folder:/PATH/NAME.")
@settings_options(DOCS_FLAGS)
def publish(index: Path | None, address: str, **options: Any) -> None:
    """Upload an index to a bucket or a shared folder, from where servers with docs.published fetch it.

    Only what changed since the last time is uploaded. Servers go on with the earlier state until they have all of the
    new one.
    """
    from bedstone.services.docs.opening import default_index

    _publish(index or default_index(configuration(options).settings), address, options)


@docs.command
@_folder_argument
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def validate(folder: Path | None, docs_dir: Path | None, as_json: bool) -> None:
    """Check manifests, files, links and prompt templates; the exit code is 1 if a file cannot be indexed."""
    from bedstone.services.docs.validation import validate_documents

    report = validate_documents(_require_folder(folder, docs_dir), _ProgressBar())
    if as_json:
        click.echo(json.dumps(vars(report), ensure_ascii=False, indent=2))
    else:
        lines = [f"Error: {error}" for error in report.errors] + [f"Warning: {text}" for text in report.warnings]
        click.echo("".join(f"{line}\n" for line in lines), err=True, nl=False)
        click.echo(
            f"Validated {_count(report.files, 'file')} with {_count(report.chunks, 'chunk')}: "
            f"{_count(len(report.errors), 'error')}, {_count(len(report.warnings), 'warning')}."
        )
    if report.errors:
        sys.exit(1)


@docs.command
@_folder_argument
def fix(folder: Path | None, docs_dir: Path | None) -> None:
    """Write a manifest (.docs-mcp.json) that chunks each file by its headings; an existing one is not changed."""
    from bedstone.services.docs.source.folder import DocumentsFolder
    from bedstone.services.docs.source.manifest import NAME
    from bedstone.services.docs.source.suggestion import suggest_manifest

    source = _require_folder(folder, docs_dir)
    target = source / NAME
    if target.exists():
        click.echo(f"{target} already exists; nothing was changed.")
        return
    manifest = suggest_manifest(DocumentsFolder(source))
    with user_permissions():
        target.write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    overrides = _count(len(manifest.get("overrides", [])), "override")
    click.echo(f"Wrote {target}: chunk by {manifest['strategy']['chunk_by']}, {overrides}.")


@docs.command
@click.argument("index", required=False, type=PATH)
@click.argument("path", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options(DOCS_FLAGS)
def inspect(index: Path | None, path: str | None, as_json: bool, **options: Any) -> None:
    """Show what an index contains; with PATH (a file or a chunk id), show the chunks of that file."""
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
        click.echo("\n".join(f"{key:13} {_format_value(value)}" for key, value in fact.items()))
        click.echo()


@docs.command
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options(DOCS_FLAGS)
def status(as_json: bool, **options: Any) -> None:
    """Show how far each index is: what keyword search finds, and how many chunks have vectors."""
    settings = configuration(options).settings
    built = {path.parent for path in layout.docs_indexes(settings).glob("*/.source")}
    facts = [_status_facts(path) for path in sorted({*layout.configured_docs_indexes(settings), *built})]
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False, indent=2))
        return
    if not facts:
        click.echo("No docs index found. Build one with `bedstone docs build DIR`.")
    for item in facts:
        click.echo(f"{item['index']}\n  {item['files']:,} files, {item['chunks']:,} chunks; {_describe_state(item)}")


def _status_facts(path: Path) -> dict[str, Any]:
    from bedstone.services.docs.index_folder import IndexFolder

    folder = IndexFolder(path)
    metadata, progress = folder.metadata, folder.progress
    stats = metadata.stats if metadata else None
    return {
        "index": str(path),
        "files": stats.total_files if stats else 0,
        "chunks": stats.total_chunks if stats else 0,
        "is_searchable": metadata is not None,
        "embedding": metadata.embedding.model if metadata and metadata.embedding else None,
        "build": asdict(progress) if progress else None,
    }


def _describe_state(item: dict[str, Any]) -> str:
    from bedstone.services.docs.index_folder import BuildProgress

    words = "keyword search is ready" if item["is_searchable"] else "not searchable yet"
    if item["build"] is None:
        return f"{words}, semantic search too" if item["embedding"] else f"{words}, without vectors"
    progress = BuildProgress(**item["build"])
    return f"{words}; {progress}{'' if progress.is_running else ' (interrupted; the next build goes on from there)'}"


def _index_facts(corpus: "DocsCorpus", folder: Path) -> dict[str, Any]:
    from bedstone.services.docs.index_folder import IndexFolder

    metadata, progress = corpus.metadata, IndexFolder(folder).progress
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return {
        "index": str(folder),
        "description": metadata.description,
        **asdict(metadata.stats),
        "embedding": metadata.embedding.model if metadata.embedding else None,
        "build": str(progress) + ("" if progress.is_running else " (interrupted)") if progress else "complete",
        "megabytes": round(size / 1e6, 1),
        "facets": {key: list(facet.values) for key, facet in metadata.taxonomy.items()},
        "prompts": [prompt.name for prompt in metadata.prompts],
        "instructions": metadata.instructions,
    }


def _chunk_facts(corpus: "DocsCorpus", path: str) -> list[dict[str, Any]]:
    chunks = corpus.chunks_of(path)
    if not chunks:
        try:
            chunks, _, _ = corpus.read(path, 0)
        except NotFound:
            near = corpus.nearest_ids(path)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise InvalidInput(f"The index has no file or chunk {path}, or the file is empty.{hint}") from None
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


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_format_value(item)}" for key, item in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None else str(value).replace("\n", "\n" + " " * 14)


def _require_folder(folder: Path | None, docs_dir: Path | None) -> Path:
    source = folder or docs_dir
    if source is None:
        raise InvalidInput("Missing argument FOLDER. For example: bedstone docs build DIR")
    return source


def _index_folder(source: Path, options: dict[str, Any]) -> Path:
    from bedstone.services.docs.opening import index_folder

    if out := options["out"]:
        with user_permissions(), suppress(FileExistsError):  # an index that others may share; a file is refused later
            out.mkdir(parents=True, exist_ok=True)
        return Path(out)
    return index_folder(layout.docs_indexes(configuration(options).settings), source)


def _build(source: Path, target: Path, options: dict[str, Any], *, as_json: bool = False) -> "BuildReport":
    from bedstone.app import make_services
    from bedstone.services.docs.builder import BuildOptions, DocsBuilder
    from bedstone.services.docs.index_folder import IndexFolder

    settings = configuration(options).settings
    embedder = make_services(settings).context.embedders.get()
    descriptions = {"search_docs": options["tool_description_search"], "get_doc": options["tool_description_get_doc"]}
    build_options = BuildOptions(
        description=options["description"],
        instructions=options["instructions"],
        tool_descriptions={name: text for name, text in descriptions.items() if text},
        fresh=options["rebuild_cache"],
        own_files=OwnFiles.of(settings),
        coverage=settings.embedding.coverage,
        on_searchable=lambda chunks: click.echo(_searchable(chunks, target), err=True),
    )
    started = time.monotonic()
    try:
        report = DocsBuilder(source, target, embedder, build_options, _ProgressBar()).build()
    except KeyboardInterrupt:
        if progress := IndexFolder(target).progress:
            click.echo(f"\nInterrupted, {progress}. The next build goes on from there.", err=True)
        raise
    for warning in report.warnings:
        click.echo(f"Warning: {warning}", err=True)
    for where, text in report.words.items():
        click.echo(f"Agents read as {where}: {_shorten(text)}", err=True)
    if not as_json:
        changes = [f"{report.changed} changed", f"{report.removed} removed"]
        changes += [f"{report.unreadable} unreadable"] if report.unreadable else []
        click.echo(
            f"Indexed {_count(report.chunks, 'chunk')} from {_count(report.files, 'file')} "
            f"in {time.monotonic() - started:.1f} s ({', '.join(changes)}): {target}"
        )
        click.echo("".join(f"{line}\n" for line in _summary(report)), nl=False)
    return report


def _build_and_publish(source: Path, target: Path, options: dict[str, Any]) -> "BuildReport":
    report = _build(source, target, options)
    if options["publish"] and report.files:
        _publish(target, options["publish"], options)
    return report


def _publish(index: Path, address: str, options: dict[str, Any]) -> None:
    from bedstone.services.docs.opening import open_published_place
    from bedstone.services.docs.publishing import publish as publish_index

    blobs = open_published_place(configuration(options).settings, address)
    report = publish_index(index, blobs, _ProgressBar())
    state = "Published" if report.is_new else "Nothing changed in"
    megabytes = report.uploaded_bytes / 1e6
    uploaded = f"{report.uploaded} of {_count(report.files, 'file')} uploaded, {megabytes:.1f} MB"
    deleted = f"; {_count(report.deleted, 'old file')} deleted" if report.deleted else ""
    click.echo(f"{state} {blobs.place}: {uploaded}{deleted}", err=True)


def _searchable(chunks: int, target: Path) -> str:
    return f"Keyword search is ready in {target} ({_count(chunks, 'chunk')}); vectors follow."


def _summary(report: "BuildReport") -> Iterator[str]:
    """Say how many files were skipped, and how many pages have problems."""
    if report.skipped:
        counts = Counter(item.reason for item in report.skipped)
        listed = [f"{count} {reason}" for reason, count in counts.most_common(MAX_REASONS)]
        if others := len(report.skipped) - sum(count for _, count in counts.most_common(MAX_REASONS)):
            listed.append(f"{others} for other reasons")
        examples = ", ".join(item.path for item in report.skipped[:MAX_EXAMPLES])
        more = ", ..." if len(report.skipped) > MAX_EXAMPLES else ""
        yield f"Skipped {_count(len(report.skipped), 'file or folder', 'files and folders')}: {', '.join(listed)}"
        yield f"  ({examples}{more}; --json lists all)"
    if report.problems:
        pages, lost = _count(report.problem_pages, "page"), report.unreadable
        partial = report.problem_pages - lost
        yield f"{pages} with problems: {lost} not indexed, {partial} indexed in part. The warnings name them."
    else:
        yield "0 pages with problems."


def _report_facts(report: "BuildReport") -> dict[str, Any]:
    counts = {name: getattr(report, name) for name in ("files", "chunks", "changed", "removed", "problem_pages")}
    return {
        **counts,
        "problems": [
            {"path": item.path, "reason": item.reason, "is_indexed": item.is_indexed} for item in report.problems
        ],
        "skipped": [asdict(item) for item in report.skipped],
        "warnings": list(report.warnings),
    }


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_QUOTED else f"{line[:MAX_QUOTED]}..."


def _count(number: int, noun: str, plural: str | None = None) -> str:
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


class _ProgressBar:
    """Progress: a bar on a terminal, one line per step elsewhere."""

    def __init__(self) -> None:
        self._step = ""
        self._next = 0.0

    def __call__(self, step: str, done: int, total: int) -> None:
        now = time.monotonic()
        if sys.stderr.isatty():
            if now >= self._next or done >= total:
                self._next = now + 0.1
                width = 30 * done // max(total, 1)
                bar = f"{step:17} [{'#' * width:30}] {done}/{total}"
                click.echo(f"\r{bar}" + ("\n" if done >= total else ""), nl=False, err=True)
        elif step != self._step or now >= self._next:
            self._next = now + QUIET_SECONDS
            click.echo(f"{step} ..." if step != self._step else f"{step}: {done} of {total}", err=True)
        self._step = step
