"""`bedstone migrate-data`: move the base of added files to another database."""

import sys
import time
from typing import Any

import click

from bedstone.cli.options import configuration, settings_options
from bedstone.cli.progress import progress_bar

SAY_SECONDS = 5  # between lines of progress without a terminal


@click.command
@click.option(
    "--to", required=True, metavar="ADDRESS", help="postgresql://USER@HOST/DATABASE?schema=NAME, or sqlite:FILE."
)
@settings_options({"--data-dir": "data_dir"})
def migrate_data(to: str, **options: Any) -> None:
    """Move the base of added files to another database.

    That is documents, chunks, vectors, tasks and collections, with their numbers and times. Stop all servers first;
    the source is only read, and stays as it is. Repeat the command after an interruption: it resumes. At the end
    everything is compared.
    """
    from bedstone.services.knowledge.moving import move_base

    settings = configuration(options).settings
    with progress_bar() as bar:
        line, said = bar.add_task("Opening", total=None), [time.monotonic()]

        def show(step: str, done: int, total: int) -> None:
            bar.update(line, description=step, completed=done, total=total)
            if not sys.stderr.isatty() and time.monotonic() - said[0] >= SAY_SECONDS:
                said[0] = time.monotonic()
                click.echo(f"{step}: {done:,} of {total:,}", err=True)

        moved = move_base(settings, to, show)
    for table in moved.tables.values():
        click.echo(f"{table.label:18} {table.count:>12,}  sha256 {table.digest[:16]}")
    click.echo(f"Everything was moved from {moved.source} to {moved.target}; all counts and digests agree.")
    click.echo(f"{moved.originals} The source is as it was.")
    click.echo(f"Put this into bedstone.toml before you start a server:\n\n{moved.setting}")
