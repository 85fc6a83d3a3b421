"""`bedstone salesforce sync-knowledge` and `sync-schema`: copies of an org that work without it."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from bedstone.cli.options import UserPath, configuration, settings_options
from bedstone.cli.progress import progress_bar
from bedstone.cli.salesforce.options import AS_JSON, ORG_FLAGS
from bedstone.errors import InvalidInput

if TYPE_CHECKING:
    from bedstone.services.articles.mirror_sync import SyncReport
    from bedstone.services.articles.service import ArticleService
    from bedstone.services.schema.service import SchemaService
    from bedstone.services.schema.sync import SyncReport as SchemaReport

SCHEMA_NAME = re.compile(r"\w[\w.-]{0,59}")


@click.command("sync-knowledge")
@AS_JSON
@settings_options(ORG_FLAGS)
def sync_knowledge(as_json: bool, **options: Any) -> None:
    """Mirror the org's published articles, for semantic search and for times when the org is unavailable.

    Only changes are read; an interrupted sync resumes.
    """
    from bedstone.app import make_services

    services = make_services(configuration(options).settings)

    async def sync() -> "SyncReport":
        service: ArticleService = services["salesforce_knowledge"].get()
        try:
            with progress_bar() as bar:
                line = bar.add_task("Reading articles", total=None)
                return await service.sync(lambda done, total: bar.update(line, completed=done, total=total))
        finally:
            await services.aclose()

    report = anyio.run(sync)
    if as_json:
        click.echo(json.dumps(vars(report)))
    else:
        click.echo(f"{report.total} articles: {report.changed} new or changed, {report.removed} removed.")


@click.command("sync-schema")
@click.option(
    "--from",
    "source",
    type=UserPath(exists=True, file_okay=False, path_type=Path),
    help="Folder of describes saved as JSON, instead of an org.",
)
@click.option("--name", default="imported", show_default=True, help="Name for a schema from a folder.")
@click.option("--derived", is_flag=True, help="Include shares, feeds, histories and change events.")
@AS_JSON
@settings_options(ORG_FLAGS)
def sync_schema(source: Path | None, name: str, derived: bool, as_json: bool, **options: Any) -> None:
    """Sync the org's schema: objects, fields, relationships, picklists. Only changes are read."""
    from bedstone.app import make_services

    services = make_services(configuration(options).settings)
    service: SchemaService = services["salesforce_graph"].get()

    async def sync() -> "SchemaReport":
        try:
            with progress_bar() as bar:
                line = bar.add_task("Reading objects", total=None)

                def on_progress(done: int, total: int) -> None:
                    bar.update(line, completed=done, total=total)

                if source is not None:
                    if not SCHEMA_NAME.fullmatch(name):
                        raise InvalidInput("--name takes letters, digits, dots and hyphens.")
                    report = service.import_folder(name, source, on_progress)
                else:
                    report = await service.sync(None, on_progress, derived=derived)
                bar.update(line, description="Embedding names")
                service.embed_names(name if source is not None else None, on_progress)
                return report
        finally:
            await services.aclose()

    report = anyio.run(sync)
    if as_json:
        click.echo(json.dumps(vars(report)))
        return
    click.echo(f"{report.objects} objects: {report.changed} new or changed, {report.removed} removed.")
    if report.failed:
        click.echo(f"{report.failed} objects could not be read; see the log.", err=True)
