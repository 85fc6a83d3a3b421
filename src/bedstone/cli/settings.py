"""`bedstone settings`: print every setting, its value and its source."""

import json
from collections.abc import Iterator
from typing import Any

import click
from pydantic import BaseModel, SecretStr

from bedstone.cli.options import CONTENT_FLAGS, SERVER_FLAGS, configuration, settings_options
from bedstone.cli.redaction import HIDDEN, redact
from bedstone.settings import Configuration, Section, environment_name, installed_sections, setting_fields


@click.command(short_help="Print every setting, its value and its source.")
@settings_options(CONTENT_FLAGS | SERVER_FLAGS)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def settings(*, as_json: bool, **options: Any) -> None:
    """Print every setting with its value and its source: a flag, a variable, a file or the default."""
    loaded = configuration(options)
    rows = setting_rows(loaded)
    for warning in loaded.warnings:
        click.echo(f"Note: {warning}", err=True)
    if as_json:
        click.echo(json.dumps(rows, indent=2, default=str))
        return
    from rich.table import Table
    from rich.text import Text

    from bedstone.cli.progress import console

    table = Table(box=None, pad_edge=False)
    for title in ("setting", "value", "from", "meaning"):
        table.add_column(title, overflow="fold")
    for row in rows:
        style = "dim" if row["source"] == "default" else "bold"
        value = "-" if row["value"] is None else str(row["value"])
        table.add_row(row["setting"], Text(value, style=style), Text(row["source"], style=style), row["meaning"])
    out = console()
    out.print(table)
    out.print(f"\nEnvironment variables: kb.file_path is {environment_name('kb.file_path')}.", style="dim")


def setting_rows(loaded: Configuration) -> list[dict[str, Any]]:
    """Return one row per setting, those of other packages last; secrets are masked."""
    rows = list(_rows(loaded, loaded.settings))
    for name, kind in installed_sections().items():
        rows += _rows(loaded, loaded.settings.section(name, kind), f"{name}.")
    return rows


def _rows(loaded: Configuration, section: Section, prefix: str = "") -> Iterator[dict[str, Any]]:
    for key, info in setting_fields(type(section)):
        value = loaded.settings.data_folder if prefix + key == "data_dir" else _value(section, key)
        source = loaded.sources.get(prefix + key, "default")
        yield {"setting": prefix + key, "value": value, "source": source, "meaning": info.description}


def _value(section: Section, key: str) -> Any:
    node: Any = section
    for name in key.split("."):
        assert isinstance(node, BaseModel)
        node = getattr(node, name)
    if isinstance(node, SecretStr):
        return HIDDEN
    return redact(node) if isinstance(node, str) else node
