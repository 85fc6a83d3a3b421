"""`bedstone migrate-data`: move the base of added files to another database, and to another place for its files."""

import sys
import time
from typing import Any

import click

from bedstone.cli.options import configuration, settings_options
from bedstone.cli.progress import progress_bar

SAY_SECONDS = 5  # between lines of progress without a terminal


@click.command
@click.option("--to", metavar="ADDRESS", help="postgresql://USER@HOST/DATABASE?schema=NAME, or sqlite:FILE.")
@click.option(
    "--blobs-to",
    metavar="ADDRESS",
    help="s3://BUCKET/PREFIX?endpoint=URL, folder:PATH for one that machines share, or the path of a folder.",
)
@settings_options({"--data-dir": "data_dir"})
def migrate_data(to: str | None, blobs_to: str | None, **options: Any) -> None:
    """Move the base of added files to another database, its files to a bucket or folder, or both.

    `--to` moves documents, chunks, vectors, tasks and collections, with their numbers and times; `--blobs-to`
    originals, texts and everything that is kept with them. Stop all servers first; the source is only read, and
    stays as it is. Repeat the command after an interruption: it resumes. At the end everything is compared.
    """
    from bedstone.services.knowledge.moving import move_base

    if to is None and blobs_to is None:
        raise click.UsageError("Name a target: --to for the store, --blobs-to for originals and texts, or both.")
    settings = configuration(options).settings
    with progress_bar() as bar:
        line, said = bar.add_task("Opening", total=None), [time.monotonic()]

        def show(step: str, done: int, total: int) -> None:
            bar.update(line, description=step, completed=done, total=total)
            if not sys.stderr.isatty() and time.monotonic() - said[0] >= SAY_SECONDS:
                said[0] = time.monotonic()
                click.echo(f"{step}: {done:,} of {total:,}", err=True)

        moved = move_base(settings, to, blobs_to, show)
    for table in moved.tables.values():
        click.echo(f"{table.label:18} {table.count:>12,}  sha256 {table.digest[:16]}")
    if (files := moved.files) is not None:
        click.echo(f"{'files':18} {files.count:>12,}  sha256 {files.digest[:16]}  {files.size:,} bytes")
    for sentence in (*moved.summary, "The source is as it was."):
        click.echo(sentence)
    click.echo(f"Put this into bedstone.toml before you start a server:\n\n{moved.setting}")
