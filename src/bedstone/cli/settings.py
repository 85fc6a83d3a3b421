"""`bedstone settings`: print every setting, its value and its source."""

import json
from typing import Any

import click
from pydantic import BaseModel, SecretStr

from bedstone.cli.options import CONTENT_FLAGS, SERVER_FLAGS, configuration, settings_options
from bedstone.settings import Configuration, environment_name, setting_fields


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
    """Return one row per setting; secrets are masked."""
    return [
        {
            "setting": key,
            "value": _display_value(loaded, key),
            "source": loaded.sources.get(key, "default"),
            "meaning": info.description,
        }
        for key, info in setting_fields()
    ]


def _display_value(loaded: Configuration, key: str) -> Any:
    node: Any = loaded.settings
    for name in key.split("."):
        assert isinstance(node, BaseModel)
        node = getattr(node, name)
    if key == "data_dir":
        return loaded.settings.data_folder
    return "********" if isinstance(node, SecretStr) else node
