"""`bedstone salesforce query`, `search` and `describe`: read from an org."""

import json
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import anyio
import click

from bedstone.cli.options import configuration, settings_options
from bedstone.cli.salesforce.options import ORG_FLAGS
from bedstone.services.orgs import default_org, open_client, open_orgs

if TYPE_CHECKING:
    from bedstone.salesforce.client import SalesforceClient

SEARCHED = "Account(Id, Name), Contact(Id, Name), Lead(Id, Name), Opportunity(Id, Name), Case(Id, CaseNumber, Subject)"
FORMAT = click.option(
    "--format",
    "output",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="Output format.",
)


@click.command
@click.argument("soql")
@FORMAT
@click.option(
    "--limit", type=click.IntRange(1), default=200, show_default=True, help="Maximum number of rows to print."
)
@click.option("--all-rows", is_flag=True, help="Include deleted rows.")
@settings_options(ORG_FLAGS)
def query(soql: str, output: str, limit: int, all_rows: bool, **options: Any) -> None:
    """Run a SOQL query and print its rows."""
    from bedstone.salesforce.rows import count_row, selected_columns
    from bedstone.salesforce.soql import parse_soql

    parse_soql(soql)  # a syntax error costs no API call

    async def fetch() -> tuple[list[dict[str, Any]], int]:
        async with _client(options) as client:
            page = await client.query(soql, all_rows=all_rows)
            total, rows = page["totalSize"], list(page["records"])
            while not page["done"] and len(rows) < limit:
                page = await client.more(page["nextRecordsUrl"])
                rows += page["records"]
            return rows[:limit], total

    rows, total = anyio.run(fetch)
    _print_rows(rows or count_row(soql, total), output, selected_columns(soql))
    if 0 < len(rows) < total:
        click.echo(f"{len(rows)} of {total} rows; raise --limit for more", err=True)
    elif output == "table":
        click.echo(f"{total} row{'' if total == 1 else 's'}", err=True)


@click.command
@click.argument("sosl")
@FORMAT
@settings_options(ORG_FLAGS)
def search(sosl: str, output: str, **options: Any) -> None:
    """Run a SOSL search; text without FIND searches accounts, contacts, leads, opportunities and cases."""
    from bedstone.salesforce.soql import parse_sosl
    from bedstone.salesforce.soql.quoting import search_term

    if not re.match(r"\s*find\s*\{", sosl, re.IGNORECASE):
        sosl = f"FIND {{{search_term(sosl)}}} RETURNING {SEARCHED}"
    parse_sosl(sosl)

    async def fetch() -> list[dict[str, Any]]:
        async with _client(options) as client:
            return await client.search(sosl)

    _print_rows([{"type": row["attributes"]["type"], **row} for row in anyio.run(fetch)], output)


@click.command
@click.argument("object_name", required=False)
@FORMAT
@settings_options(ORG_FLAGS)
def describe(object_name: str | None, output: str, **options: Any) -> None:
    """Print the fields of an object, or list every object."""

    async def fetch() -> Any:
        async with _client(options) as client:
            return await client.describe(object_name) if object_name else await client.describe_global()

    answer = anyio.run(fetch)
    if output == "json":
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    elif object_name:
        rows = [
            {"field": item["name"], "label": item["label"], "type": item["type"], "to": ", ".join(item["referenceTo"])}
            for item in answer["fields"]
        ]
        _print_rows(rows, output)
    else:
        rows = [{"object": item["name"], "label": item["label"], "prefix": item["keyPrefix"]} for item in answer]
        _print_rows(rows, output)


def _client(options: dict[str, Any]) -> "SalesforceClient":
    """Return a client of the org that an option or a setting names, or of the only one."""
    settings = configuration(options).settings
    orgs = open_orgs(settings)
    return open_client(orgs, orgs.get(default_org(settings)))


def _print_rows(rows: list[dict[str, Any]], output: str, selected: Sequence[str] = ()) -> None:
    """Print rows as a table, CSV or JSON; fields of parents get names with dots."""
    if output == "json":
        click.echo(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    from bedstone.salesforce.rows import column_names, table_rows

    flat = table_rows(rows, None) if output == "csv" else table_rows(rows)
    names = column_names(flat, selected)
    if output == "csv":
        import csv

        writer = csv.DictWriter(sys.stdout, names, restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(flat)
    elif names:
        _print_table(flat, names)


def _print_table(rows: list[dict[str, Any]], names: Sequence[str]) -> None:
    from rich.table import Table

    from bedstone.cli.progress import console

    table = Table(*names, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(str(row.get(name, "")) for name in names))
    console().print(table)
